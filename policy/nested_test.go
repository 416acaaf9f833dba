package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAFolderMayLieInsideOnesOwnAndNotInsideAnothers(t *testing.T) {
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
		{"the same, at another place", [][]ring.Mount{{data("web/data", "/data"), data("web/data/logs", "/var/log/app")}}, ""},
		{"the same, committed", [][]ring.Mount{{data("web/app", "/app"), {Kind: ring.MountSeed, Source: "web/app/config", Target: "/app/config"}}}, ""},
		{"a file of the commit in a folder of data", [][]ring.Mount{{data("web/app", "/app"), {Kind: ring.MountContent, Source: "ab", Target: "/app/conf.yml"}}}, ""},
		{"one folder of two services", [][]ring.Mount{{data("web/app", "/app")}, {data("web/app", "/srv")}}, ""},
		{"folders beside each other", [][]ring.Mount{{data("web/app", "/app")}, {data("web/apps", "/srv")}}, ""},
		{"a folder inside another service's", [][]ring.Mount{{data("web/app", "/app")}, {data("web/app/config", "/config")}}, "web/app/config in web/app of service a"},
		{"the same, only read", [][]ring.Mount{{data("web/app", "/app")}, {readOnly(data("web/app/config", "/config"))}}, "web/app/config in web/app of service a"},
		{"a folder inside one that the other only reads", [][]ring.Mount{{readOnly(data("web/app", "/app"))}, {data("web/app/config", "/config")}}, ""},
		{"inside one's own and another's", [][]ring.Mount{{data("web/app", "/app"), data("web/app/config", "/c")}, {data("web/app", "/app")}}, "web/app/config in web/app of service b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := &ring.App{Name: "web"}
			for i, mounts := range c.services {
				app.Services = append(app.Services, ring.Service{Name: string(rune('a' + i)), Replicas: 1, Spec: ring.Spec{Mounts: mounts}})
			}
			found := CheckApp(Rules{}, app, "/srv/gitring")
			if c.denied == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, Deny, found[0].Verdict)
			require.Equal(t, "mounts.nested", found[0].Rule)
			require.Equal(t, c.denied, found[0].Value)
		})
	}
}
