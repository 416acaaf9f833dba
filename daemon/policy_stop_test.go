package daemon

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// The times are told by hand: ten minutes after it was found, and anew after a person
// released it.
func TestWhatThePolicyDeniesIsStoppedAfterTenMinutes(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var s stopping
	standing := map[ring.ServiceID]bool{}
	look := func(after time.Duration, denied ...ring.ServiceID) []ring.ServiceID {
		all := map[ring.ServiceID]string{}
		for _, id := range denied {
			all[id] = "why"
		}
		return slices.Sorted(maps.Keys(s.due(all, standing, 10*time.Minute, start.Add(after))))
	}
	require.Empty(t, look(0, "web/vpn"))
	require.Empty(t, look(10*time.Minute-time.Second, "web/vpn", "web/other"))
	require.Equal(t, []ring.ServiceID{"web/vpn"}, look(10*time.Minute, "web/vpn", "web/other"))
	require.Equal(t, []ring.ServiceID{"web/vpn"}, look(10*time.Minute+5*time.Second, "web/vpn"), "it is asked until it is seen")
	standing["web/vpn"] = true
	require.Equal(t, []ring.ServiceID{"web/vpn"}, look(3*time.Hour, "web/vpn"))
	require.Empty(t, look(3*time.Hour+time.Second), "the policy lets it pass again")
	delete(standing, "web/vpn")
	require.Empty(t, look(4*time.Hour, "web/vpn"), "then it begins anew")
	require.Equal(t, []ring.ServiceID{"web/vpn"}, look(4*time.Hour+10*time.Minute, "web/vpn"))

	standing["web/vpn"] = true
	require.Equal(t, []ring.ServiceID{"web/vpn"}, look(5*time.Hour, "web/vpn"))
	delete(standing, "web/vpn") // by gitring release
	require.Empty(t, look(5*time.Hour+5*time.Second, "web/vpn"))
	require.Empty(t, look(5*time.Hour+9*time.Minute, "web/vpn"))
	require.Equal(t, []ring.ServiceID{"web/vpn"}, look(5*time.Hour+11*time.Minute, "web/vpn"))

	var anew stopping // the daemon started again
	standing = map[ring.ServiceID]bool{"web/vpn": true}
	require.Len(t, anew.due(map[ring.ServiceID]string{"web/vpn": "why"}, standing, 10*time.Minute, start), 1, "what is stopped stays so")
}

func TestAServiceWhoseDataAnotherNeedsIsNotStopped(t *testing.T) {
	const db = "services:\n  db: {image: pg, cap_add: [NET_ADMIN], volumes: ['data:/d', './files:/f']}\n"
	const volumes = "volumes: {data: {}}\n"
	for _, tt := range []struct {
		name   string
		files  map[string]string
		needed string
	}{
		{"nobody", map[string]string{"shop/compose.yaml": db + "  web: {image: a, volumes: ['own:/d', './filesystem:/f']}\nvolumes: {data: {}, own: {}}\n"}, ""},
		{"its own app, by the volume", map[string]string{"shop/compose.yaml": db + "  web: {image: a, volumes: ['data:/x:ro']}\n" + volumes}, "shop/web needs its volume shop_data"},
		{"its own app, by volumes_from", map[string]string{"shop/compose.yaml": db + "  web: {image: a, volumes_from: [db]}\n" + volumes}, "shop/web takes its volumes"},
		{"a folder below one of its", map[string]string{"shop/compose.yaml": db + "  web: {image: a, volumes: ['./files/x:/x:ro']}\n" + volumes}, "shop/web needs its folder"},
		{"another app", map[string]string{
			"shop/compose.yaml": db + volumes, "log/compose.yaml": "services: {log: {image: a, volumes: ['disk:/x']}}\nvolumes: {disk: {external: true, name: shop_data}}\n",
		}, "log/log needs its volume shop_data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := manifest.Look(commitWith(tt.files), manifest.Settings{Source: "prod", Host: "edge-1"})
			require.Empty(t, r.Refusals)
			inForce := map[string]ring.InForce{}
			for _, a := range r.Plan.Apps {
				inForce[a.Name] = ring.InForce{App: a}
			}
			app := inForce["shop"].App
			s, ok := app.Service("db")
			require.True(t, ok)
			got := neededBy(inForce, &app, &s)
			if tt.needed == "" {
				require.Empty(t, got)
			}
			require.Contains(t, got, tt.needed)
		})
	}
}
