package manifest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// claimsOf is what the app of one Compose file claims.
func claimsOf(t *testing.T, body string) (ring.App, bool) {
	t.Helper()
	plan, _ := Read(repo(map[string]string{"data/compose.yaml": body}), settings())
	require.NotNil(t, plan.Refused["data"], "refused")
	app, ok := plan.Claims["data"]
	return app, ok
}

func TestARefusedAppClaimsWhatCouldBeReadOfIt(t *testing.T) {
	app, ok := claimsOf(t, `services:
  db:
    image: postgres:17
    imgae: typo
    environment: {POSTGRES_PASSWORD: kept to itself}
    volumes: ["pg:/var/lib/postgresql/data", "./files:/files"]
  web: {image: nginx}
volumes:
  pg: {name: shop_pg}
`)
	require.True(t, ok)
	require.Equal(t, "data", app.Name)
	require.Len(t, app.Services, 2)
	db, _ := app.Service("db")
	require.Equal(t, "postgres:17", db.Spec.Image)
	require.Equal(t, ring.Worker, db.Kind)
	require.Equal(t, 1, db.Replicas)
	require.Len(t, db.Spec.Mounts, 2)
	require.Equal(t, "shop_pg", app.Volumes[0].EngineName(app.Name))
	require.Empty(t, db.Spec.Environment, "nothing of it is carried out, so nothing else is kept")
}

func TestAServiceWithoutItsImageClaimsItsVolumeStill(t *testing.T) {
	app, ok := claimsOf(t, `services:
  db:
    image: [not, an, image]
    volumes: ["pg:/data"]
volumes:
  pg: {external: true, name: pg}
`)
	require.True(t, ok)
	db, _ := app.Service("db")
	require.Empty(t, db.Spec.Image)
	require.Len(t, db.Spec.Mounts, 1)
	require.Equal(t, "pg", app.Volumes[0].EngineName(app.Name))
}

func TestAnAppOfWhichNothingCanBeReadClaimsNothing(t *testing.T) {
	for _, body := range []string{"services:\n  db: {\n", "services: {}\n", "\tservices:\n"} {
		_, ok := claimsOf(t, body)
		require.False(t, ok, body)
	}
}

func TestAnAppThatIsCarriedOutClaimsNothing(t *testing.T) {
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": one}), settings())
	require.Empty(t, plan.Claims)
}

// Two apps that make one volume are both refused; each claims it.
func TestAppsThatClashClaimWhatTheyClashOver(t *testing.T) {
	plan, _ := Read(repo(map[string]string{
		"a/compose.yaml": "services: {x: {image: x, volumes: ['data:/d']}}\nvolumes: {data: {name: pg}}\n",
		"b/compose.yaml": "services: {y: {image: x, volumes: ['data:/d']}}\nvolumes: {data: {name: pg}}\n",
	}), settings())
	require.Len(t, plan.Refused, 2)
	for _, name := range []string{"a", "b"} {
		app := plan.Claims[name]
		require.Equal(t, name, app.Name)
		require.Len(t, app.Volumes, 1, dump(t, plan))
		require.Equal(t, "pg", app.Volumes[0].EngineName(name))
	}
}

// A repository that holds alternatives runs one of them, as Compose does: a
// container_name is one app's, and only the others are refused.
func TestOneAppHasAContainerName(t *testing.T) {
	named := func(names ...string) string {
		out := "services:\n"
		for i, n := range names {
			out += "  " + string(rune('r'+i)) + ": {image: a, container_name: " + n + "}\n"
		}
		return out
	}
	const broken = "services:\n  r: {image: a, container_name: db, typo: 1}\n"
	for _, tt := range []struct {
		name    string
		files   map[string]string
		held    map[string]string
		refused []string // why, by app, in order
	}{
		{"the first folder has it", map[string]string{"a/compose.yaml": named("db"), "b/compose.yaml": named("db"), "c/compose.yaml": named("db")}, nil, []string{
			"service r of app a and service r of app b would both be called container_name db on the engine, and app a comes first",
			"service r of app a and service r of app c would both be called container_name db on the engine, and app a comes first",
		}},
		{"the first of the list has it", map[string]string{
			"a/compose.yaml": named("db"), "b/compose.yaml": named("db"), "gitring.yaml": "version: 1\napps: [{path: b}, {path: a}]\n",
		}, nil, []string{"service r of app b and service r of app a would both be called container_name db on the engine, and app b comes first"}},
		{"who is refused takes none", map[string]string{"a/compose.yaml": named("db"), "b/compose.yaml": named("db", "web"), "c/compose.yaml": named("web")}, nil, []string{
			"service r of app a and service r of app b would both be called container_name db on the engine, and app a comes first",
		}},
		{"the app in force keeps it", map[string]string{"a/compose.yaml": named("db"), "b/compose.yaml": named("db")}, map[string]string{"container_name db": "b"}, []string{
			"service r of app b and service r of app a would both be called container_name db on the engine, and app b has it",
		}},
		{"the app in force keeps it while its next version is refused", map[string]string{"a/compose.yaml": named("db"), "b/compose.yaml": broken}, map[string]string{"container_name db": "b"}, []string{
			"service r of app b and service r of app a would both be called container_name db on the engine, and app b has it",
			"unknown key services.r.typo",
		}},
		{"one that was never in force and is refused has none", map[string]string{"a/compose.yaml": broken, "b/compose.yaml": named("db")}, nil, []string{"unknown key services.r.typo"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := settings()
			s.Held = tt.held
			plan, _ := Read(repo(tt.files), s)
			var says []string
			for _, name := range sortedKeys(plan.Refused) {
				says = append(says, plan.Refused[name].Says)
			}
			require.Equal(t, tt.refused, says)
		})
	}
}

// An app that the host denies does not run, so what it would be called is free for others.
func TestAnAppThatTheHostDeniesTakesNoName(t *testing.T) {
	const (
		container = "services: {r: {image: a, container_name: db}}\n"
		network   = "services: {r: {image: a, networks: [n]}}\nnetworks: {n: {name: proxy}}\n"
		volume    = "services: {r: {image: a, volumes: ['vol:/v']}}\nvolumes: {vol: {name: data}}\n"
		called    = "name: shop\nservices: {r: {image: a}}\n"
	)
	for _, tt := range []struct {
		name   string
		bodies map[string]string
		denied []string // folders
		held   map[string]string
		names  map[string]string
		runs   []string // folders
		says   map[string]string
	}{
		{name: "a container_name", bodies: map[string]string{"a": container, "b": container}, denied: []string{"a"}, runs: []string{"a", "b"}},
		{name: "a network", bodies: map[string]string{"a": network, "b": network}, denied: []string{"a"}, runs: []string{"a", "b"}},
		{name: "a volume", bodies: map[string]string{"a": volume, "b": volume}, denied: []string{"a"}, runs: []string{"a", "b"}},
		{
			name: "a volume, from an earlier folder", bodies: map[string]string{"a": volume, "b": volume}, denied: []string{"b"}, runs: []string{"a"},
			says: map[string]string{"b": "would both be called volume data"},
		},
		{
			name: "the name of the app", bodies: map[string]string{"a": called, "b": called}, denied: []string{"a"}, runs: []string{"b"},
			says: map[string]string{"a": "two apps are called shop: a and b"},
		},
		{
			name: "of three, two are left", bodies: map[string]string{"a": called, "b": called, "c": called}, denied: []string{"a"}, runs: nil,
			says: map[string]string{"shop": "two apps are called shop"},
		},
		{
			name: "what it has in force stays its", bodies: map[string]string{"a": container, "b": container}, denied: []string{"a"},
			held: map[string]string{"container_name db": "a"}, runs: []string{"a"}, says: map[string]string{"b": "and app a has it"},
		},
		{
			name: "the volume that it has in force stays its", bodies: map[string]string{"a": volume, "b": volume}, denied: []string{"a"},
			held: map[string]string{"volume data": "a"}, runs: []string{"a"}, says: map[string]string{"b": "would both be called volume data"},
		},
		{
			name: "its name of before stays its", bodies: map[string]string{"a": called, "b": called}, denied: []string{"a"},
			names: map[string]string{"shop": "a"}, runs: []string{"a"}, says: map[string]string{"b": "two apps are called shop"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{}
			for folder, body := range tt.bodies {
				files[folder+"/compose.yaml"] = body
			}
			s := settings()
			s.Held, s.Names = tt.held, tt.names
			s.Denied = func(a *ring.App) bool { return slices.Contains(tt.denied, a.Path) }
			plan, _ := Read(repo(files), s)
			var runs []string
			for i := range plan.Apps {
				runs = append(runs, plan.Apps[i].Path)
			}
			slices.Sort(runs)
			require.Equal(t, tt.runs, runs, dump(t, plan))
			require.Len(t, plan.Refused, len(tt.says))
			for key, says := range tt.says {
				require.NotNil(t, plan.Refused[key], key)
				require.Contains(t, plan.Refused[key].Says, says)
			}
		})
	}
}
