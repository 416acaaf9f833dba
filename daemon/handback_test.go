package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

func handbackOf(t *testing.T, tree fstest.MapFS, app *ring.App) *handback {
	t.Helper()
	h := &handback{app: app, tree: tree, root: app.Path, more: map[string][]byte{}, project: manifest.Project{Dir: ".", Files: []string{"compose.yaml"}}}
	return h
}

func TestWhatOnlyGitringKnewIsWrittenBesideTheComposeFile(t *testing.T) {
	app := &ring.App{
		Name: "shop", Path: "shop", DataRoot: "/opt", Networks: []ring.Network{{Key: "default"}, {Key: "out", External: "proxy"}},
		Services: []ring.Service{
			{Name: "db", Replicas: 1, Pin: ring.Pin{Image: "postgres@sha256:aa"}, Spec: ring.Spec{Mounts: []ring.Mount{
				{Kind: ring.MountVolume, Source: "pg", Target: "/pg"},
				{Kind: ring.MountVolume, Source: ring.AnonymousVolume("db", "/cache"), Target: "/cache"},
				{Kind: ring.MountData, Source: "shop/uploads", Target: "/uploads"},
				{Kind: ring.MountContent, Source: "c0ffee", File: "conf", Target: "/conf"},
			}}},
			{Name: "own", Replicas: 1, Pin: ring.Pin{Image: "sha256:bb"}},
		},
	}
	b, err := composeBeside(app, map[string]ring.Composing{"db": {DataRoot: "/srv"}}, map[string]string{"default": "shop_default_ab12", "out": "proxy"}, nil)
	require.NoError(t, err)
	key := "db_1_" + ring.AnonymousVolume("db", "/cache")[len("db_{slot}_"):]
	require.Equal(t, `# What gitring knew of this app beside its Compose files: which images run, where its data is.
# Merged after them by COMPOSE_FILE in .env. A line that you want to change yourself, take out here.
networks:
  default:
    name: shop_default_ab12
services:
  db:
    image: postgres@sha256:aa
    volumes:
      - type: volume
        source: `+key+`
        target: /cache
      - type: bind
        source: /opt/shop/uploads
        target: /uploads
        bind:
          create_host_path: false
volumes:
  `+key+`:
    external: true
    name: shop_`+key+`
`, string(b))
}

// Compose does not know x-gitring, and no commit's message.
func TestAHandedBackProjectHasTheVolumesThatWereTakenOver(t *testing.T) {
	app := &ring.App{
		Name: "store", Path: "store", Volumes: []ring.Volume{{Key: "pg", Name: "shop_pg", From: "shop"}, {Key: "cache", From: ring.FromNone}, {Key: "own", Name: "own"}},
		Services: []ring.Service{{Name: "db", Replicas: 1, Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/pg"}}}}},
	}
	b, err := composeBeside(app, nil, nil, nil)
	require.NoError(t, err)
	require.Contains(t, string(b), "volumes:\n  pg:\n    name: shop_pg\n")
	require.NotContains(t, string(b), "cache")
	require.NotContains(t, string(b), "own")
}

func TestTheValuesOfAHandedBackProjectWinAsTheyDid(t *testing.T) {
	h := handbackOf(t, fstest.MapFS{
		"shop/.env": {Data: []byte("A=commit\nB=${A}\n")}, "shop/prod.env": {Data: []byte("C=prod")},
	}, &ring.App{Name: "shop", Path: "shop"})
	h.project.EnvFiles, h.project.Profiles = []string{"prod.env", "held.env"}, []string{"web", "admin"}
	got := h.env(nil, map[string][]byte{".env": []byte("A=host\n"), "held.env": []byte("D=held\n")}, map[string]string{"Q": "it's"})
	require.Equal(t, `# the host's env folder
A=host
# .env of the commit
A=commit
B=${A}
# the host's env folder, which wins
A=host
# prod.env
C=prod
# held.env
D=held
# interpolation of gitring's configuration
Q='it\'s'
# how Compose reads this project
COMPOSE_PROJECT_NAME=shop
COMPOSE_PATH_SEPARATOR=:
COMPOSE_FILE=compose.yaml:compose.gitring.yaml
COMPOSE_PROFILES=web,admin
`, string(got))
}

func TestTheCommandOfAHandedBackProjectRunsNoJob(t *testing.T) {
	h := handbackOf(t, nil, &ring.App{Name: "shop", Path: "shop", Services: []ring.Service{{Name: "db"}, {Name: "web"}}})
	require.Equal(t, "docker compose up -d", h.up())
	h.anew = map[string]string{"db": "of this test"}
	require.Equal(t, "docker compose up -d --no-recreate", h.up())
	h.app.Services = append(h.app.Services, ring.Service{Name: "migrate", Kind: ring.JobK}, ring.Service{Name: "night", Kind: ring.CronK})
	h.project.Files = []string{"files/base.yaml"}
	require.Equal(t, "cd /x && docker compose --project-directory . up -d --no-recreate --no-deps db web", h.command("/x"))
	h.note()
	require.Len(t, h.notes, 3)

	h = handbackOf(t, nil, &ring.App{Name: "chores", Path: "chores", Services: []ring.Service{{Name: "tidy", Kind: ring.JobK}}})
	h.note()
	require.Empty(t, h.command("/x"), "without names up would run the job again")
	const left = "othing of chores is left for Compose to start; docker compose run --rm tidy runs tidy"
	require.Equal(t, []string{"job tidy has run; docker compose up without names runs it again", "n" + left}, h.notes)
	require.Contains(t, string(h.readme()), "\n\nN"+left+", in this folder.\n")
	require.NotContains(t, string(h.readme()), "docker compose up")
	require.NotContains(t, string(h.readme()), "go on running")

	h = handbackOf(t, nil, &ring.App{Name: "shop", Path: "shop", Services: []ring.Service{{Name: "db"}}})
	h.note()
	require.Len(t, h.notes, 1)
	require.Contains(t, string(h.readme()), "    docker compose up -d\n\nPlain")
	require.Contains(t, h.notes[0], "another release may replace each container once", "a plain up is told of only one release")
}

func TestAHandedBackProjectIsWrittenWholeOrNotAtAll(t *testing.T) {
	tree := fstest.MapFS{
		"shop/compose.yaml": {Data: []byte("services: {}\n")}, "shop/run.sh": {Data: []byte("#!"), Mode: 0o755}, "shop/.env": {Data: []byte("A=1")},
		"other/compose.yaml": {Data: []byte("x")},
	}
	h := handbackOf(t, tree, &ring.App{Name: "shop", Path: "shop"})
	h.more[".env"] = []byte("A=1\nSECRET=2\n")
	dir := filepath.Join(t.TempDir(), "left", "shop")
	w, err := h.write(dir)
	require.NoError(t, err)
	require.Equal(t, dir, w.project)
	for name, mode := range map[string]fs.FileMode{"compose.yaml": 0o644, "run.sh": 0o755, ".env": 0o600} {
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, st.Mode().Perm(), name)
	}
	require.NoFileExists(t, filepath.Join(dir, "other", "compose.yaml"))
	_, err = h.write(dir)
	require.ErrorContains(t, err, "is not empty")
	require.NoError(t, w.undo())
	require.NoDirExists(t, dir)

	// The whole tree, where the app reads more than its folder.
	h.root = "."
	w, err = h.write(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "shop"), w.project)
	require.FileExists(t, filepath.Join(dir, "other", "compose.yaml"))
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing half written stays")
}

func TestAnAppThatReadsBesideItsFolderIsHandedBackWithTheTree(t *testing.T) {
	tree := fstest.MapFS{
		"shop/compose.yaml": {Data: []byte("services: {web: {image: a}}\n")}, "base.yaml": {Data: []byte("services: {web: {image: b}}\n")},
		"other/compose.yaml": {Data: []byte("services: {web: {extends: {file: ../base.yaml, service: web}}}\n")},
	}
	f := &follower{d: &Daemon{cfg: &config.Config{}, env: &envFolder{}}, cfg: &config.SourceConfig{Path: "."}, settings: manifest.Settings{Source: "prod", Path: "."}}
	c := &ring.Commit{SHA: "c0ffee", Tree: tree}
	all := f.asked(c, HostValues{})
	for name, alone := range map[string]bool{"shop": true, "other": false} {
		app, ok := all.Plan.App(name)
		require.True(t, ok, "%v", all.Refusals)
		require.Equal(t, alone, f.alone(c, HostValues{}, &all, &app), name)
	}
}
