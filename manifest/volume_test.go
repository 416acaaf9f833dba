package manifest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// onVolume makes an app that mounts the volume vol, declared by the lines from line 5 on.
func onVolume(lines ...string) map[string]string {
	return map[string]string{"web/compose.yaml": "services:\n  web: {image: a, volumes: ['vol:/x']}\nvolumes:\n  vol:\n    " + strings.Join(lines, "\n    ") + "\n"}
}

func TestFormsOfVolumes(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  ring.Volume
	}{
		{"an external one goes by its key", []string{"external: true"}, ring.Volume{External: "vol"}},
		{"or by its name", []string{"external: true", "name: photos"}, ring.Volume{External: "photos"}},
		{"or by the old form", []string{"external: {name: photos}"}, ring.Volume{External: "photos"}},
		{"one of another name", []string{"name: photos"}, ring.Volume{Name: "photos"}},
		{"the name it has anyway is none", []string{"name: web_vol", "driver: local"}, ring.Volume{}},
		{
			"driver and options are for policy",
			[]string{"driver: local", "driver_opts: {type: nfs, o: 'addr=10.0.0.1', device: ':/x'}", "labels: [a=b]"},
			ring.Volume{DriverOpts: map[string]string{"type": "nfs", "o": "addr=10.0.0.1", "device": ":/x"}, Labels: map[string]string{"a": "b"}},
		},
		{"another driver", []string{"driver: rclone"}, ring.Volume{Driver: "rclone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Key = "vol"
			if d := cmp.Diff([]ring.Volume{c.want}, accepted(t, onVolume(c.lines...)).Volumes); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheAppsOwnHavePlaces(t *testing.T) {
	a := accepted(t, onVolume("driver: local", "driver_opts:", "  o: bind"))
	for key, line := range map[string]int{"volumes.vol": 4, "volumes.vol.driver_opts": 6, "volumes.vol.driver_opts.o": 7, "volumes.vol.labels": 4} {
		if got := a.Place(key); got != (ring.Place{File: "web/compose.yaml", Line: line}) {
			t.Errorf("%s is at %v, not on line %d", key, got, line)
		}
	}
}

// Compose lets services share what they write. Only their author knows whether they can.
func TestServicesThatWriteOneVolumeAreNoted(t *testing.T) {
	a := accepted(t, map[string]string{"web/compose.yaml": `
services:
  db: {image: a, volumes: ['vol:/x', './d:/d', '/srv/y:/y']}
  backup: {image: a, volumes: ['vol:/x:ro', './d:/e']}
  cron: {image: a, volumes: ['vol:/x', '/srv/y:/y']}
volumes: {vol: }
`})
	for _, want := range []string{"cron, db all write volume vol", "backup, db all write the data folder web/d", "cron, db all write the host's /srv/y"} {
		if !strings.Contains(notes(a), want) {
			t.Errorf("%q is not in %q", want, notes(a))
		}
	}
}

func TestRefusedVolumes(t *testing.T) {
	areRefused(t, []refused{
		{name: "a name that is none", files: onVolume("name: a b"), code: ring.BadName, line: 5},
		{name: "an external one with a driver", files: onVolume("external: true", "driver: local"), code: ring.BadValue, line: 4, says: "conflicting"},
		{
			name:  "one volume under two keys",
			files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, volumes: ['vol:/x', 'wol:/y']}\nvolumes:\n  vol: {name: z}\n  wol:\n    name: z\n"},
			code:  ring.BadValue, line: 6, says: "both z",
		},
		{name: "a reserved label", files: onVolume("labels:", "  gitring.app: x"), code: ring.PolicyDenied, line: 6},
	})
}

// Two apps that make one volume or network would each take it for its own. That
// onVolume makes it and the other says external is what external is for.
func TestTwoAppsThatMakeOneName(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		at         []string // places of the refusals; none: both are carried out
	}{
		{
			"both make the volume", "services: {s: {image: a, volumes: ['vol:/x']}}\nvolumes:\n  vol:\n    name: photos\n", "services: {s: {image: a, volumes: ['wol:/x']}}\nvolumes:\n  wol:\n    name: photos\n",
			[]string{"a/compose.yaml:4 Conflict", "b/compose.yaml:4 Conflict"},
		},
		{
			"one names the other's by its name", "services: {s: {image: a, volumes: ['vol:/x']}}\nvolumes: {vol: }\n", "services: {s: {image: a, volumes: ['wol:/x']}}\nvolumes:\n  wol:\n    name: a_vol\n",
			[]string{"a/compose.yaml:1 AppTaken", "b/compose.yaml:4 Conflict"},
		},
		{
			"both make the network", "services: {s: {image: a, networks: [n]}}\nnetworks:\n  n:\n    name: proxy\n", "services: {s: {image: a, networks: [n]}}\nnetworks:\n  n: {name: proxy}\n",
			[]string{"b/compose.yaml:3 Conflict"},
		},
		{
			"one names the other's network by its name", "services: {s: {image: a, networks: [n]}}\nnetworks: {n: }\n", "services: {s: {image: a, networks: [m]}}\nnetworks:\n  m:\n    name: a_n\n",
			[]string{"a/compose.yaml:1 AppTaken", "b/compose.yaml:4 Conflict"},
		},
		{
			"both are called alike", "services:\n  s:\n    image: a\n    container_name: db\n", "services:\n  s: {image: a, container_name: db}\n",
			[]string{"b/compose.yaml:2 Conflict"},
		},
		{name: "one makes it, the other joins it", a: "services: {s: {image: a, networks: [n]}}\nnetworks: {n: {name: proxy}}\n", b: "services: {s: {image: a, networks: [n]}}\nnetworks: {n: {name: proxy, external: true}}\n"},
		{name: "both say that it is there", a: "services: {s: {image: a, volumes: ['vol:/x']}}\nvolumes: {vol: {external: true}}\n", b: "services: {s: {image: a, volumes: ['vol:/x']}}\nvolumes: {vol: {external: true}}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, _ := Read(repo(map[string]string{"a/compose.yaml": c.a, "b/compose.yaml": c.b}), settings())
			var at []string
			for _, name := range sortedKeys(plan.Refused) {
				r := plan.Refused[name]
				if r.Hint == "" || !strings.Contains(r.Says, "app a") || !strings.Contains(r.Says, "app b") {
					t.Errorf("both are not named: %+v", r)
				}
				at = append(at, r.Where()+" "+string(r.Code))
			}
			if d := cmp.Diff(c.at, at); d != "" {
				t.Error(d)
			}
		})
	}
}

// A volume says which app had it before.
func TestAVolumeTakesOverFromAnApp(t *testing.T) {
	for _, tt := range []struct{ name, volume, engine, from, says string }{
		{name: "nothing said", volume: "", engine: "store_pgdata"},
		{name: "from an app", volume: "x-gitring: {from: shop}", engine: "shop_pgdata", from: "shop"},
		{name: "from itself", volume: "x-gitring: {from: store}", engine: "store_pgdata", from: "store"},
		{name: "from an app, under its name there", volume: "name: special, x-gitring: {from: shop}", engine: "special", from: "shop"},
		{name: "begins empty", volume: "x-gitring: {from: none}", engine: "store_pgdata", from: "none"},
		{name: "no app's name", volume: "x-gitring: {from: ../shop}", says: "which is no app's name"},
		{name: "another key", volume: "x-gitring: {form: shop}", says: "unknown key form"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{"store/compose.yaml": {Data: []byte("services: {db: {image: postgres, volumes: ['pgdata:/d']}}\nvolumes: {pgdata: {" + tt.volume + "}}\n"), Mode: 0o644}}
			r := Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, Settings{Source: "prod", Host: "edge-1"})
			if tt.says != "" {
				require.Len(t, r.Refusals, 1)
				require.Contains(t, r.Refusals[0].Says, tt.says)
				return
			}
			require.Empty(t, r.Refusals)
			v := r.Plan.Apps[0].Volumes[0]
			require.Equal(t, tt.engine, v.EngineName("store"))
			require.Equal(t, tt.from, v.From)
		})
	}
}
