package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What Traefik sees twice while a version rolls. Its own rule: containers that define a router, a
// service or a middleware of one name in two ways have none of it; servers are taken together.
func TestWhatTraefikLeavesOutIsAGap(t *testing.T) {
	const router = "traefik.http.routers.shop.rule"
	for _, c := range []struct {
		name      string
		old, next map[string]string
		names     string // what the gap names; "" for no gap
	}{
		{"the same rule", map[string]string{router: "Host(`a`)"}, map[string]string{router: "Host(`a`)"}, ""},
		{"another rule", map[string]string{router: "Host(`a`)"}, map[string]string{router: "Host(`b`)"}, "router shop"},
		{"one key more", map[string]string{router: "Host(`a`)"}, map[string]string{router: "Host(`a`)", "traefik.http.routers.shop.tls": "true"}, "router shop"},
		{"one key less", map[string]string{router: "Host(`a`)", "traefik.http.routers.shop.tls": "true"}, map[string]string{router: "Host(`a`)"}, "router shop"},
		{"another spelling", map[string]string{router: "Host(`a`)"}, map[string]string{"Traefik.HTTP.Routers.shop.Rule": "Host(`a`)"}, ""},
		{"another name", map[string]string{router: "Host(`a`)"}, map[string]string{"traefik.http.routers.shop2.rule": "Host(`b`)"}, ""},
		{"a name in capitals", map[string]string{router: "Host(`a`)"}, map[string]string{"traefik.http.routers.Shop.rule": "Host(`b`)"}, ""},
		{"the name in another protocol", map[string]string{router: "Host(`a`)"}, map[string]string{"traefik.tcp.routers.shop.rule": "HostSNI(`b`)"}, ""},
		{"another middleware", map[string]string{"traefik.http.middlewares.auth.basicauth.users": "a:1"}, map[string]string{"traefik.http.middlewares.auth.basicauth.users": "b:2"}, "middleware auth"},
		{"another port", map[string]string{"traefik.http.services.web.loadbalancer.server.port": "80"}, map[string]string{"traefik.http.services.web.loadbalancer.server.port": "81"}, ""},
		{"a health check of Traefik's", map[string]string{"traefik.tcp.services.web.loadbalancer.server.port": "80"}, map[string]string{"traefik.tcp.services.web.loadbalancer.server.port": "80", "traefik.tcp.services.web.loadbalancer.healthcheck.path": "/"}, "service web"},
		{"a router of another service", nil, map[string]string{router: "Host(`b`)"}, ""},
		{"labels of others", map[string]string{"caddy": "a", "traefik.enable": "true"}, map[string]string{"caddy": "b", "traefik.enable": "false"}, ""},
		{
			"several",
			map[string]string{router: "a", "traefik.http.routers.api.rule": "a", "traefik.udp.services.z.loadbalancer.x": "1"},
			map[string]string{router: "b", "traefik.http.routers.api.rule": "b", "traefik.udp.services.z.loadbalancer.x": "2"},
			"router api",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			says, seconds := definedGap(&ring.Service{Spec: ring.Spec{Labels: c.old}}, &ring.Service{Spec: ring.Spec{Labels: c.next}})
			require.Zero(t, seconds, "nothing was measured")
			if c.names == "" {
				require.Empty(t, says)
				return
			}
			require.Contains(t, says, "until the old instance is gone")
			require.Contains(t, says, "define "+c.names+" in two ways")
		})
	}
	old := &ring.Service{FrontOf: "web", Spec: ring.Spec{Labels: map[string]string{router: "a"}, Healthcheck: &ring.Healthcheck{Interval: 30 * time.Second}}}
	says, seconds := definedGap(old, &ring.Service{FrontOf: "web", Spec: ring.Spec{Labels: map[string]string{router: "b"}}})
	require.Equal(t, "Traefik answers 404 for up to 30s, as old and new define router shop in two ways; another name, such as shop2, has no gap", says)
	require.Equal(t, 30, seconds, "as long as an engine may take to call the old front unhealthy")
}

func TestAPlanSaysThatARouterIsDefinedTwice(t *testing.T) {
	const begin = "service web front none label a\ncommit c1 web=v1\nrest"
	rule := planned(t, begin, "service web label b\ncommit c2 web=v1")["web/web-front"]
	require.Equal(t, ring.ChangeRoll, rule.Class)
	require.Contains(t, rule.Gap, "router web")
	for service, c := range planned(t, begin, "commit c2 web=v2") {
		require.Empty(t, c.Gap, "%s", service)
	}
}

// A front that comes takes the labels of the service, whose instances have them until they go.
func TestAFrontThatComesMayDefineARouterTwice(t *testing.T) {
	labelled := func(name, frontOf, rule string) ring.Service {
		return ring.Service{Name: name, FrontOf: frontOf, Kind: ring.Worker, Spec: ring.Spec{Image: "a", Labels: map[string]string{"traefik.http.routers.shop.rule": rule}}}
	}
	have := &ring.App{Name: "shop", Services: []ring.Service{labelled("web", "", "a")}}
	for rule, gap := range map[string]string{"a": "", "b": "Traefik answers 404 until the old instance is gone, as old and new define router shop in two ways; another name, such as shop2, has no gap"} {
		front := labelled("web-front", "web", rule)
		next := &ring.App{Name: "shop", Services: []ring.Service{{Name: "web", Kind: ring.Worker}, front}}
		c := newDecider(World{}, time.Time{}).serviceChange(have, next, &front)
		require.Equal(t, ring.ChangeCreate, c.Class)
		require.Equal(t, gap, c.Gap)
	}
}
