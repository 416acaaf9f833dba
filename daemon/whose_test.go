package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// rows is a memory that holds what it is told.
type rows struct{ facts ring.Facts }

func (r *rows) Facts(context.Context) (ring.Facts, error) { return r.facts, nil }

func (r *rows) Record(_ context.Context, facts []ring.Fact, _ []ring.Event) error {
	for _, f := range facts {
		r.facts.Set(f)
	}
	return nil
}

// hostOf is a host on which sources have had their apps accepted; each file is of the
// source that its key begins with: "prod shop/compose.yaml".
func hostOf(t *testing.T, profile policy.Profile, accepted map[string]map[string]string) (*ledger, admission.Judge) {
	t.Helper()
	l, err := newLedger(t.Context(), &rows{ring.NewFacts()}, config.DefaultDataRoot)
	require.NoError(t, err)
	j := admission.Anywhere(profile)
	j.Whose = l.whose
	for _, source := range slices.Sorted(maps.Keys(accepted)) {
		plan, refusals := planOf(j, source, accepted[source])
		require.Empty(t, refusals, source)
		for _, a := range plan.Apps {
			require.NoError(t, l.Record(t.Context(), []ring.Fact{ring.InForce{App: a}, ring.NameOf(&a, ring.Name{}, time.Unix(1, 0))}, nil))
		}
	}
	return l, j
}

func planOf(j admission.Judge, source string, files map[string]string) (ring.Plan, []*ring.Refusal) {
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return j.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, manifest.Settings{Source: source, Host: "edge-1"})
}

const victim = "networks: {p: {external: true, name: proxy}}\nservices: {web: {image: nginx, networks: [default, p], container_name: shopfront, hostname: front, volumes: ['data:/d', 'special:/s', './files:/f'], ports: ['8080:80'], labels: {'traefik.http.routers.a.rule': 'Host(`shop.example.org`)'}}}\nvolumes: {data: , special: {name: special}}\n"

func TestAnotherSourceGetsNothingOfAnApp(t *testing.T) {
	for _, tt := range []struct {
		name, file, body string
		code             ring.Code
		says             string // "" passes
	}{
		{"its volume", "evil/compose.yaml", "services: {a: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {external: true, name: shop_data}}\n", "", "is a volume of app shop of source prod"},
		{"its volume under a name of its own", "evil/compose.yaml", "services: {a: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {name: special}}\n", "", "is a volume of app shop of source prod"},
		{"its folder", "evil/compose.yaml", "services: {a: {image: a, volumes: ['/srv/gitring/shop/files:/v']}}\n", "", "is the data of app shop of source prod"},
		{"more of its folder", "evil/compose.yaml", "services: {a: {image: a, volumes: ['/srv/gitring/shop:/v']}}\n", "", "is the data of app shop of source prod"},
		{"a folder around it", "compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['/srv/gitring:/v']}}\n", "", "holds the data of app shop of source prod"},
		{"its folder by the same path", "shop/compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['./files:/v']}}\n", "", "is the data of app shop of source prod"},
		{"below its folder by the same path", "shop/compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['./files/deep:/v']}}\n", "", "is the data of app shop of source prod"},
		{"around its folder by the same path", "shop/compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['/srv/gitring/shop:/v']}}\n", "", "holds the data of app shop of source prod"},
		{"its folder by a path inside it", "shop/files/compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['./x:/v']}}\n", "", "is the data of app shop of source prod"},
		{"its folder from the root", "compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['./shop/files:/v']}}\n", "", "is the data of app shop of source prod"},
		{"its network", "evil/compose.yaml", "services: {a: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: shop_default}}\n", "", "is a network of app shop of source prod"},
		{"the cluster's gateway", "evil/compose.yaml", "services: {a: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: docker_gwbridge}}\n", "", "joins all containers"},
		{"its port", "evil/compose.yaml", "services: {a: {image: a, ports: ['127.0.0.1:8080:80']}}\n", "", "is published by app shop of source prod as 8080/tcp"},
		{"its port, for a front", "evil/compose.yaml", "services: {a: {image: a, ports: ['127.0.0.1:8080:80'], x-gitring: {publish: front}}}\n", "", "services.a.ports"},
		{"its container_name", "evil/compose.yaml", "services: {a: {image: a, container_name: shopfront}}\n", "", "is the name of a container of app shop of source prod"},
		{"the name that Compose gives its container", "evil/compose.yaml", "services: {a: {image: a, container_name: shop-web-2}}\n", "", "is the name of a container of app shop of source prod"},
		{"a service called as its container, on a network of both", "evil/compose.yaml", "services: {shop-web-1: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: proxy}}\n", "", "is the name of a container of app shop of source prod"},
		{"a service called as one of its services, there", "evil/compose.yaml", "services: {web: {image: a, networks: [n]}, shop-web-a: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: proxy}}\n", "", ""},
		{"the name of its next container", "evil/compose.yaml", "services: {a: {image: a, container_name: shop-web-1-204ca8d5}}\n", "", "is the name of a container of app shop of source prod"},
		{"a name that only begins as its containers' do", "evil/compose.yaml", "services: {a: {image: a, container_name: shop-web-a}}\n", "", ""},
		{"its host name", "evil/compose.yaml", "services: {a: {image: a, environment: {VIRTUAL_HOST: 'x.example.org, Shop.example.org:80'}}}\n", ring.RouteTaken, "is a host name of app shop of source prod"},

		{"a folder beside it", "evil/compose.yaml", "services: {a: {image: a, volumes: ['./files:/v']}}\n", "", ""},
		{"a folder of the same app path", "shop/compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['./other:/v']}}\n", "", ""},
		{"the root beside it", "compose.yaml", "name: evil\nservices: {a: {image: a, volumes: ['./files:/v']}}\n", "", ""},
		{"another port", "evil/compose.yaml", "services: {a: {image: a, ports: ['8081:80', '8080:80/udp']}}\n", "", ""},
		{"another host name", "evil/compose.yaml", "services: {a: {image: a, labels: {caddy: 'a.example.org', 'traefik.tcp.routers.x.rule': 'HostSNI(`*`)'}}}\n", "", ""},
		{"a network of nobody", "evil/compose.yaml", "services: {a: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: proxy}}\n", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, j := hostOf(t, policy.Compose, map[string]map[string]string{"prod": {"shop/compose.yaml": victim}})
			_, refusals := planOf(j, "lab", map[string]string{tt.file: tt.body})
			if tt.says == "" {
				require.Empty(t, refusals)
				return
			}
			require.NotEmpty(t, refusals)
			require.Contains(t, refusals[0].Error(), tt.says)
			if tt.code == "" {
				tt.code = ring.PolicyDenied
			}
			require.Equal(t, tt.code, refusals[0].Code)
			_, refusals = planOf(j, "prod", map[string]string{"shop/compose.yaml": victim})
			require.Empty(t, refusals, "the one that has it keeps it")
		})
	}
}

// A port is that of the app whose front publishes it, for services and for fronts of others.
func TestAPortOfAFrontIsNobodyElses(t *testing.T) {
	const front = "services: {web: {image: a, ports: ['8080:80'], x-gitring: {publish: front}}}\n"
	_, j := hostOf(t, policy.Compose, map[string]map[string]string{"prod": {"shop/compose.yaml": front}})
	for _, evil := range []string{
		"services: {a: {image: a, ports: ['127.0.0.1:8080:80']}}\n",
		"services: {a: {image: a, ports: ['8070-8090:70-90'], x-gitring: {publish: front}}}\n",
		"services: {web-front: {image: a, ports: ['8080:80']}}\n",
	} {
		_, refusals := planOf(j, "lab", map[string]string{"evil/compose.yaml": evil})
		require.NotEmpty(t, refusals, evil)
		require.Equal(t, ring.PolicyDenied, refusals[0].Code)
		require.Contains(t, refusals[0].Error(), "is published by app shop of source prod as 8080/tcp")
	}
	_, refusals := planOf(j, "prod", map[string]string{"shop/compose.yaml": front})
	require.Empty(t, refusals, "the one that has it keeps it")
}

// What an app left behind is its own still.
func TestAnotherSourceGetsNothingOfAnAppThatLeft(t *testing.T) {
	l, j := hostOf(t, policy.Owner, map[string]map[string]string{"prod": {"shop/compose.yaml": victim}})
	require.NoError(t, l.Record(t.Context(), []ring.Fact{
		ring.Kept{App: "shop", Name: "data /srv/gitring/shop/files"}, ring.Kept{App: "shop", Name: "volume shop_anonymous"}, ring.Forget{Table: "app", Key: "shop"},
	}, nil))
	for _, body := range []string{
		"services: {a: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {external: true, name: special}}\n",
		"services: {a: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {external: true, name: shop_anonymous}}\n",
		"services: {a: {image: a, volumes: ['/srv/gitring/shop/files:/v']}}\n",
	} {
		_, refusals := planOf(j, "lab", map[string]string{"evil/compose.yaml": body})
		require.Len(t, refusals, 1, body)
	}
	_, refusals := planOf(j, "prod", map[string]string{"shop/compose.yaml": victim})
	require.Empty(t, refusals, "it may come back")
}

// The owner of a homelab has many stacks, one network that all join, and names that recur.
func TestOneHandSharesWithANote(t *testing.T) {
	_, j := hostOf(t, policy.Compose, nil)
	plan, refusals := planOf(j, "prod", map[string]string{
		"proxy/compose.yaml": "services: {traefik: {image: a}, db: {image: b}}\n",
		"shop/compose.yaml":  "services: {web: {image: a, networks: {p: {aliases: [db]}}, labels: {'traefik.http.routers.a.rule': 'Host(`a.example.org`) && Path(`/x`)'}}, db: {image: b}}\nnetworks: {p: {external: true, name: proxy_default}}\n",
		"blog/compose.yaml":  "services: {web: {image: a, container_name: shop-db-1, labels: {'traefik.http.routers.b.rule': 'Host(`a.example.org`) && Path(`/y`)'}}, db: {image: b}}\n",
	})
	require.Empty(t, refusals)
	require.Len(t, plan.Apps, 3)
	require.Equal(t, []string{
		"networks.p.name proxy_default: is a network of app proxy, which lets nobody join it",
		"services.web.labels.traefik.http.routers.a.rule a.example.org: is a host name of app blog",
		"services.web.networks.p.aliases db: answers for what app proxy calls so on network proxy_default",
	}, plan.Beside["shop"])
	require.Contains(t, plan.Beside["blog"], "services.web.container_name shop-db-1: is the name of a container of app shop")
}

// Right before a call it is asked once more, with what belongs to whom at that moment.
func TestWhatIsSentIsHeldAgainstAllSources(t *testing.T) {
	_, j := hostOf(t, policy.Owner, map[string]map[string]string{"prod": {"shop/compose.yaml": victim}})
	app := &ring.App{Name: "evil", Source: "lab", Path: "evil", Services: []ring.Service{{Name: "web"}}}
	send := func(kind mount.Type, source string) error {
		body := runtime.ContainerRequest{Config: &container.Config{Image: "a"}, HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: kind, Source: source, Target: "/v"}}}}
		return j.Allow("evil", runtime.Request{Key: "container", Body: body, App: app, Service: &app.Services[0]})
	}
	require.ErrorContains(t, send(mount.TypeVolume, "shop_data"), "is a volume of app shop of source prod")
	require.ErrorContains(t, send(mount.TypeBind, "/srv/gitring/shop/files/deep"), "is the data of app shop of source prod")
	require.NoError(t, send(mount.TypeVolume, "evil_data"))
	require.NoError(t, send(mount.TypeBind, "/srv/gitring/evil/files"))
	require.NoError(t, send(mount.TypeBind, "/mnt/media"))
}

// Two sources that plan in the same moment do not see each other: both come into force,
// and the one that was accepted later starts nothing that takes what is the other's.
func TestOfTwoThatPlannedAtOnceOnlyTheFirstStarts(t *testing.T) {
	const network = "\nnetworks: {n: {external: true, name: %s}}\n"
	for _, tt := range []struct {
		name, first, later string
		code               ring.Code
		says               string // "" is allowed
	}{
		{"a host name", "labels: {caddy: a.example.org}", "environment: {VIRTUAL_HOST: a.example.org}", ring.RouteTaken, "is a host name of app one of source lab"},
		{"a port", "ports: ['8080:80']", "ports: ['127.0.0.1:8080:90']", "", "is published by app one of source lab"},
		{"a container name", "container_name: front", "container_name: front", "", "is the name of a container of app one"},
		{"an alias", "networks: {n: {aliases: [db]}}", "networks: {n: {aliases: [db]}}", "", "answers for what app one of source lab calls so"},
		{"another host name", "labels: {caddy: a.example.org}", "labels: {caddy: b.example.org}", "", ""},
		{"another port", "ports: ['8080:80']", "ports: ['8081:80']", "", ""},
		{"another alias", "networks: {n: {aliases: [db]}}", "networks: {n: {aliases: [cache]}}", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := newLedger(t.Context(), &rows{ring.NewFacts()}, config.DefaultDataRoot)
			require.NoError(t, err)
			j := admission.Anywhere(policy.Compose)
			j.Whose = l.whose
			of := func(name, body string) map[string]string {
				text := "services: {a: {image: a, " + body + "}}\n"
				if strings.Contains(body, "networks") {
					text += strings.Replace(network, "%s", "proxy", 1)
				}
				return map[string]string{name + "/compose.yaml": text}
			}
			first, none := planOf(j, "lab", of("one", tt.first))
			require.Empty(t, none)
			later, none := planOf(j, "prod", of("two", tt.later))
			require.Empty(t, none, "nobody knows of the other yet")
			for i, a := range []ring.App{first.Apps[0], later.Apps[0]} {
				require.NoError(t, l.Record(t.Context(), []ring.Fact{ring.InForce{App: a}, ring.NameOf(&a, ring.Name{}, time.Unix(int64(i+1), 0))}, nil))
			}
			create := func(a *ring.App) error {
				requests, err := runtime.Payloads("edge-1", a, &a.Services[0], config.DefaultDataRoot, config.DefaultState)
				require.NoError(t, err)
				at := slices.IndexFunc(requests, func(r runtime.Request) bool { return r.Key == "container" })
				r := requests[at]
				r.App, r.Service = a, &a.Services[0]
				return j.Allow(a.Name, r)
			}
			require.NoError(t, create(&first.Apps[0]), "the first keeps what it has")
			err = create(&later.Apps[0])
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.says)
			var refusal *ring.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, cmp.Or(tt.code, ring.PolicyDenied), refusal.Code)
		})
	}
}

// A volume is taken over from an app in the same hand alone.
func TestAVolumeIsTakenOverInOneHandAlone(t *testing.T) {
	const shop = "services: {db: {image: postgres, volumes: ['data:/d']}}\nvolumes: {data: }\n"
	const store = "services: {db: {image: postgres, volumes: ['data:/d']}}\nvolumes: {data: {x-gitring: {from: shop}}}\n"
	l, j := hostOf(t, policy.Owner, map[string]map[string]string{"prod": {"apps/shop/compose.yaml": shop}})
	_, refusals := planOf(j, "prod", map[string]string{"apps/store/compose.yaml": store})
	require.Empty(t, refusals)
	_, refusals = planOf(j, "lab", map[string]string{"apps/store/compose.yaml": store})
	require.NotEmpty(t, refusals)
	require.Contains(t, refusals[0].Says, "shop")
	j.Whose = func() policy.Whose {
		w := l.whose()
		w.OneHand = func(string, policy.Holder, policy.Holder) bool { return false }
		w.Holdings = slices.DeleteFunc(w.Holdings, func(h policy.Holding) bool { return h.State != policy.InForce })
		w.Holdings[0].Volumes = nil // from before gitring: nothing tells whose they are
		return w
	}
	_, refusals = planOf(j, "prod", map[string]string{"apps/store/compose.yaml": store})
	require.Len(t, refusals, 1)
	require.Contains(t, refusals[0].Says, "is app shop of source prod, which is in other hands")
	_, refusals = planOf(j, "prod", map[string]string{"apps/shop/compose.yaml": store})
	require.Empty(t, refusals, "from itself")
}

func TestLabelsRoutesNamesWhoseAHostNameIs(t *testing.T) {
	_, j := hostOf(t, policy.Compose, nil)
	j.Rules.Routes = map[string][]string{"shop": {"shop.example.org", "*.shop.example.org"}}
	route := func(app, host string) int {
		_, refusals := planOf(j, "prod", map[string]string{app + "/compose.yaml": "services: {a: {image: a, labels: {caddy_1: 'https://" + host + ":443/x'}}}\n"})
		return len(refusals)
	}
	require.Zero(t, route("shop", "shop.example.org"))
	require.Zero(t, route("shop", "a.shop.example.org"))
	require.Equal(t, 1, route("shop", "blog.example.org"))
	require.Equal(t, 1, route("evil", "shop.example.org"))
	require.Equal(t, 1, route("evil", "a.shop.example.org"))
	require.Zero(t, route("evil", "evil.example.org"))
}

// othersHands is hostOf with an accepted shop, where each app is in hands of its own.
func othersHands(t *testing.T, shop string) (*ledger, admission.Judge) {
	t.Helper()
	l, j := hostOf(t, policy.Compose, map[string]map[string]string{"prod": {"apps/shop/compose.yaml": shop}})
	j.Whose = func() policy.Whose {
		w := l.whose()
		w.OneHand = func(string, policy.Holder, policy.Holder) bool { return false }
		return w
	}
	return l, j
}

const (
	ownShop   = "services: {web: {image: nginx, container_name: front, volumes: ['data:/d', 'special:/s', './files:/f'], ports: ['8080:80'], networks: [net]}}\nvolumes: {data: , special: {name: special}}\nnetworks: {net: {name: shopnet}}\n"
	laterShop = "services: {web: {image: nginx, container_name: front, volumes: ['data:/d', 'special:/s', './files:/f', './later:/l'], ports: ['8080:80', '9090:90'], networks: {net: {aliases: [later]}}, labels: {'traefik.http.routers.a.rule': 'Host(`later.example.org`)'}}}\nvolumes: {data: , special: {name: special}}\nnetworks: {net: {name: shopnet}}\n"
)

func TestWhoMayWriteOneFolderStopsNoOtherAppByWhatItClaims(t *testing.T) {
	const privileged = "services: {a: {image: a, privileged: true, "
	for _, tt := range []struct{ name, body, says string }{
		{"its container_name", "services: {a: {image: a, container_name: front}}\n", "would both be called container_name front"},
		{"its volume by the name it gets", "services: {a: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {name: shop_data}}\n", "would both be called volume shop_data"},
		{"its volume by the name it chose", "services: {a: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {name: special}}\n", "would both be called volume special"},
		{"its network", "services: {a: {image: a, networks: [net]}}\nnetworks: {net: {name: shopnet}}\n", "would both be called network shopnet on the engine, and app shop has it; Compose warns and joins it, where it has the same key"},
		{"its port", "services: {a: {image: a, ports: ['127.0.0.1:8080:80']}}\n", "is published by app shop"},
		{"the folder that it has next", "services: {a: {image: a, volumes: ['../shop/later:/v']}}\n", "is the data of app shop"},
		{"the port that it has next, refused otherwise", privileged + "ports: ['9090:80']}}\n", "a.privileged"},
		{"the host name that it has next, refused otherwise", privileged + "labels: {'traefik.http.routers.b.rule': 'Host(`later.example.org`)'}}}\n", "a.privileged"},
		{"the alias that it has next, refused otherwise", privileged + "networks: {net: {aliases: [later]}}}}\nnetworks: {net: {external: true, name: shopnet}}\n", "a.privileged"},
	} {
		for _, evil := range []string{"aaa", "zzz"} { // before and after shop
			t.Run(tt.name+" by "+evil, func(t *testing.T) {
				l, j := othersHands(t, ownShop)
				plan, refusals := planHeld(j, l, map[string]string{"apps/shop/compose.yaml": laterShop, "apps/" + evil + "/compose.yaml": tt.body})
				require.Len(t, plan.Apps, 1, refusals)
				require.Equal(t, "shop", plan.Apps[0].Name)
				require.Contains(t, plan.Refused, evil)
				says := ""
				for _, r := range refusals {
					require.Equal(t, evil, r.App)
					says += r.Says + "\n"
				}
				require.Contains(t, says, tt.says)
			})
		}
	}
}

// An app that the policy refuses does not run: what it would be called, publish or make is
// free for the others of the commit.
func TestAnAppThatThePolicyRefusesTakesNoName(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"the name of the app", "name: shop\nservices: {a: {image: a%s}}\n"},
		{"a container_name", "services: {a: {image: a, container_name: front%s}}\n"},
		{"a network", "services: {a: {image: a, networks: [n]%s}}\nnetworks: {n: {name: proxy}}\n"},
		{"a volume", "services: {a: {image: a, volumes: ['vol:/v']%s}}\nvolumes: {vol: {name: data}}\n"},
		{"a port", "services: {a: {image: a, ports: ['8080:80']%s}}\n"},
		{"a host name", "services: {a: {image: a, labels: {'traefik.http.routers.a.rule': 'Host(`a.example.org`)'}%s}}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, j := hostOf(t, policy.Compose, nil)
			plan, refusals := planOf(j, "prod", map[string]string{
				"first/compose.yaml":  fmt.Sprintf(tt.body, ", privileged: true"),
				"second/compose.yaml": fmt.Sprintf(tt.body, ""),
			})
			require.Len(t, plan.Apps, 1, refusals)
			require.Equal(t, "second", plan.Apps[0].Path)
			require.Len(t, plan.Refused, 1)
			require.True(t, slices.ContainsFunc(refusals, func(r *ring.Refusal) bool { return r.Code == ring.PolicyDenied && r.File == "first/compose.yaml" }), refusals)
		})
	}
}

// A host that is new knows no app in force: then too an app's own folder and network are its.
func TestANewHostGivesAnAppItsOwnFolderAndNetwork(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		apps       int
	}{
		{"a folder inside it", "services: {a: {image: a, volumes: ['../shop/files:/v']}}\n", 1},
		{"a name on its network", "services: {a: {image: a, networks: {net: {aliases: [front]}}}}\nnetworks: {net: {external: true, name: shopnet}}\n", 1},
		{"a service of such a name on its network", "services: {front: {image: a, networks: [net]}}\nnetworks: {net: {external: true, name: shopnet}}\n", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, j := othersHands(t, "services: {other: {image: a}}\n")
			plan, refusals := planOf(j, "prod", map[string]string{"apps/shop/compose.yaml": ownShop, "apps/aaa/compose.yaml": tt.body})
			require.Len(t, plan.Apps, tt.apps, refusals)
			_, ok := plan.App("shop")
			require.True(t, ok, refusals)
		})
	}
}

// Two that ask for one thing at once are both refused, as are two of one name: neither is
// let in because the other one is not.
func TestTwoNewAppsInOtherHandsGetNotOneHostName(t *testing.T) {
	const same = "services: {a: {image: a, labels: {'traefik.http.routers.b.rule': 'Host(`new.example.org`)'}}}\n"
	_, j := othersHands(t, ownShop)
	plan, refusals := planOf(j, "prod", map[string]string{"apps/b/compose.yaml": same, "apps/c/compose.yaml": same})
	require.Empty(t, plan.Apps)
	require.Len(t, refusals, 2)
}

func planHeld(j admission.Judge, l *ledger, files map[string]string) (ring.Plan, []*ring.Refusal) {
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return j.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree},
		manifest.Settings{Source: "prod", Host: "edge-1", Names: l.names("prod"), Held: l.held("prod")})
}

// A plan is told which apps are in force, of its source alone.
func TestTheLedgerKnowsWhichAppsOfASourceAreInForce(t *testing.T) {
	l := &ledger{facts: ring.NewFacts()}
	for _, a := range []ring.App{{Name: "web", Source: "prod"}, {Name: "db", Source: "prod"}, {Name: "lab", Source: "lab"}} {
		l.facts.Set(ring.InForce{App: a})
	}
	require.Equal(t, []string{"db", "web"}, l.inForce("prod"))
}
