package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestNoFolderLiesInsideOneThatAContainerMayWriteTo(t *testing.T) {
	data := func(source, target string) ring.Mount {
		return ring.Mount{Kind: ring.MountData, Source: source, Target: target}
	}
	readOnly := func(m ring.Mount) ring.Mount { m.ReadOnly = true; return m }
	for _, c := range []struct {
		name     string
		services [][]ring.Mount
		denied   string // "" is none
	}{
		{"./app and ./app/config of one service", [][]ring.Mount{{data("web/app", "/app"), data("web/app/config", "/app/config")}}, ""},
		{"the same, at another place", [][]ring.Mount{{data("web/data", "/data"), data("web/data/logs", "/var/log/app")}}, "web/data/logs in web/data of service a"},
		{"the same, at another place too", [][]ring.Mount{{data("web/app", "/app"), data("web/app/config", "/app/config"), data("web/app", "/srv")}}, "web/app/config in web/app of service a"},
		{"two levels down", [][]ring.Mount{{data("web/app", "/app"), data("web/app/etc/config", "/app/etc/config")}}, "web/app/etc/config in web/app of service a"},
		{"two levels down, in place of one", [][]ring.Mount{{data("web/app", "/app"), data("web/app/etc/config", "/app/config")}}, "web/app/etc/config in web/app of service a"},
		{"at its place under another name", [][]ring.Mount{{data("web/app", "/app"), data("web/app/config", "/app/conf")}}, "web/app/config in web/app of service a"},
		{"in place in both services", [][]ring.Mount{{data("web/app", "/app"), data("web/app/config", "/app/config")}, {data("web/app", "/srv"), data("web/app/config", "/srv/config")}}, ""},
		{"the outer one by an absolute path", [][]ring.Mount{{{Kind: ring.MountBind, Source: "/srv/gitring/web", Target: "/all"}, data("web/app", "/app")}}, "web/app in web of service a"},
		{"the inner one by an absolute path", [][]ring.Mount{{data("web/app", "/app"), {Kind: ring.MountBind, Source: "/srv/gitring//web/./app/x", Target: "/x"}}}, "web/app/x in web/app of service a"},
		{"inside a volume that is a folder of the host", [][]ring.Mount{{{Kind: ring.MountVolume, Source: "bound", Target: "/v"}, data("web/app", "/app")}}, "web/app in web of service a"},
		{"a volume", [][]ring.Mount{{{Kind: ring.MountVolume, Source: "plain", Target: "/v"}, data("web/app", "/app")}}, ""},
		{"the same, committed", [][]ring.Mount{{data("web/app", "/app"), {Kind: ring.MountSeed, Source: "web/app/config", Target: "/app/config"}}}, ""},
		{"committed, at another place", [][]ring.Mount{{data("web/app", "/app"), {Kind: ring.MountSeed, Source: "web/app/config", Target: "/etc/app"}}}, "web/app/config in web/app of service a"},
		{"a file of the commit in a folder of data", [][]ring.Mount{{data("web/app", "/app"), {Kind: ring.MountContent, Source: "ab", Target: "/app/conf.yml"}}}, ""},
		{"one folder of two services", [][]ring.Mount{{data("web/app", "/app")}, {data("web/app", "/srv")}}, ""},
		{"folders beside each other", [][]ring.Mount{{data("web/app", "/app")}, {data("web/apps", "/srv")}}, ""},
		{"a folder inside another service's", [][]ring.Mount{{data("web/app", "/app")}, {data("web/app/config", "/config")}}, "web/app/config in web/app of service a"},
		{"the same, only read", [][]ring.Mount{{data("web/app", "/app")}, {readOnly(data("web/app/config", "/config"))}}, "web/app/config in web/app of service a"},
		{"a folder inside one that the other only reads", [][]ring.Mount{{readOnly(data("web/app", "/app"))}, {data("web/app/config", "/config")}}, ""},
		{"inside one's own and another's", [][]ring.Mount{{data("web/app", "/app"), data("web/app/config", "/app/config")}, {data("web/app", "/app")}}, "web/app/config in web/app of service b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := &ring.App{Name: "web", Volumes: []ring.Volume{
				{Key: "plain"}, {Key: "bound", DriverOpts: map[string]string{"type": "none", "o": "bind", "device": "/srv/gitring/web/"}},
			}}
			for i, mounts := range c.services {
				app.Services = append(app.Services, ring.Service{Name: string(rune('a' + i)), Replicas: 1, Spec: ring.Spec{Mounts: mounts}})
			}
			found := CheckApp(Rules{}, app, "/srv/gitring", Others{})
			if c.denied == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, Deny, found[0].Verdict)
			require.Equal(t, "mounts.nested", found[0].Rule)
			require.Equal(t, c.denied, found[0].Value)
			power := CheckApp(Rules{Profile: Owner}, app, "/srv/gitring", Others{})
			require.Len(t, power, 1)
			require.Equal(t, Power, power[0].Verdict)
			for _, f := range append(found, power...) {
				require.Contains(t, f.Says(), "a program that is broken into can become root here by a restart")
			}
		})
	}
}

// Two apps on one folder outside of the data root are each other's way out.
func TestAFolderInsideAnotherAppsIsNested(t *testing.T) {
	inner := &ring.App{Name: "films", Services: []ring.Service{{Name: "films", Replicas: 1, Spec: ring.Spec{
		Mounts: []ring.Mount{{Kind: ring.MountBind, Source: "/mnt/media/films", Target: "/films"}},
	}}}}
	outer := func(readOnly bool) Others {
		w := &Whose{Holdings: []Holding{{Holder: Holder{App: "sort", Path: "sort"}, State: Next, Mounts: []ring.HostMounts{
			{Who: "service sort", Mounts: []ring.HostMount{{Source: "/mnt/media", Target: "/media", ReadOnly: readOnly}}},
		}}}}
		return w.Of(HolderOf(inner))
	}
	require.Empty(t, CheckApp(Rules{}, inner, "/srv", outer(true)))
	found := CheckApp(Rules{}, inner, "/srv", outer(false))
	require.Len(t, found, 1)
	require.Equal(t, "/mnt/media/films in /mnt/media of service sort of app sort", found[0].Value)
	require.Equal(t, Deny, found[0].Verdict)
	power := CheckApp(Rules{Profile: Owner}, inner, "/srv", outer(false))
	require.Len(t, power, 1)
	require.Equal(t, Power, power[0].Verdict)
}

// What a service takes over from another one it may write to as well.
func TestFoldersTakenFromAnotherServiceCountForNested(t *testing.T) {
	data := func(source, target string) ring.Mount {
		return ring.Mount{Kind: ring.MountData, Source: source, Target: target}
	}
	app := func(readOnly bool) *ring.App {
		return &ring.App{Name: "web", Services: []ring.Service{
			{Name: "a", Replicas: 1, Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountData, Source: "web/app", Target: "/app", ReadOnly: readOnly}}}},
			{Name: "b", Replicas: 1, Spec: ring.Spec{VolumesFrom: []ring.VolumesFrom{{Service: "a"}}, Mounts: []ring.Mount{data("web/app/x", "/x")}}},
		}}
	}
	require.Len(t, CheckApp(Rules{}, app(false), "/srv", Others{}), 1)
	require.Empty(t, CheckApp(Rules{}, app(true), "/srv", Others{}))
}
