package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// envAt makes an env folder with files, by path, each 0600.
func envAt(t *testing.T, files map[string]string) (*envFolder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "env")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, text := range files {
		putEnv(t, dir, name, text)
	}
	c := &config.Config{State: t.TempDir(), Env: config.EnvConfig{Dir: dir}, Interpolation: map[string]string{"DOMAIN": "example.org"}}
	e, err := newEnvFolder(c)
	require.NoError(t, err)
	return e, dir
}

func putEnv(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestTheEnvFolderIsReadByApp(t *testing.T) {
	e, dir := envAt(t, map[string]string{"shop/.env": "A=1\n", "shop/conf/db.env": "B=2\n", "blog/.env": "C=3\n", "README": "hello"})
	v, err := e.read()
	require.NoError(t, err)
	require.Empty(t, v.bad)
	require.Equal(t, map[string]map[string][]byte{
		"shop": {".env": []byte("A=1\n"), "conf/db.env": []byte("B=2\n")}, "blog": {".env": []byte("C=3\n")},
	}, v.files)
	again, err := e.read()
	require.NoError(t, err)
	require.Equal(t, v.print, again.print)
	putEnv(t, dir, "shop/.env", "A=2\n")
	changed, err := e.read()
	require.NoError(t, err)
	require.NotEqual(t, v.print, changed.print)
}

// Of the values that a commit uses, that of an image stands as it is, and each place of it is noted: so
// the plan and its page show it. That of an environment is sealed.
func TestAValueInAnImageIsShownAndNoted(t *testing.T) {
	read := func(value string) *ring.App {
		e, _ := envAt(t, map[string]string{"shop/.env": "TAG=" + value + "\nPASSWORD=secret-" + value + "\n"})
		v, err := e.read()
		require.NoError(t, err)
		c := &ring.Commit{Tree: fstest.MapFS{
			"shop/compose.yaml": {Data: []byte("services: {w: {image: 'app:${TAG}', environment: {PW: '${PASSWORD}'}}}\n"), Mode: 0o644},
		}}
		plan, _ := manifest.Read(c, v.Settings(manifest.Settings{Source: "prod", Host: "edge-1"}, e.key))
		require.Nil(t, plan.Refused)
		app, _ := plan.App("shop")
		return &app
	}
	old, app := read("canary-1"), read("canary-2")
	says := reconcile.Differs(old, &old.Services[0], app, &app.Services[0])
	require.Equal(t, "image app:canary-1 -> app:canary-2, the host's PASSWORD in <env.dir>/shop/.env changed", says)
	require.NotContains(t, fmt.Sprintf("%+v", *app), "secret-canary")
	require.Equal(t, []string{"TAG of the host's env is used in image and stands in the plan as it is"}, app.Notes)
}

// What all apps of a source may use lies in a folder that no app can be called after, is
// opened like the values of an app, and struck out of logs that are kept.
func TestValuesForAllAppsOfASource(t *testing.T) {
	e, dir := envAt(t, map[string]string{"_shared/prod/.env": "PW=secret-one\n", "_shared/prod/media/stack.env": "B=secret-two\n", "_shared/README": "x", "shop/.env": "A=1\n"})
	v, err := e.read()
	require.NoError(t, err)
	require.Equal(t, map[string]map[string][]byte{"shop": {".env": []byte("A=1\n")}}, v.files)
	require.Equal(t, map[string][]byte{".env": []byte("PW=secret-one\n"), "media/stack.env": []byte("B=secret-two\n")}, v.shared["prod"])

	c := &ring.Commit{Tree: fstest.MapFS{
		"media/tv/compose.yaml": {Data: []byte("services: {w: {image: a, env_file: ../stack.env, environment: {PW: '${PW}'}}}\n"), Mode: 0o644},
		"shop/compose.yaml":     {Data: []byte("services: {w: {image: a}}\n"), Mode: 0o644},
	}}
	plan, _ := manifest.Read(c, v.Settings(manifest.Settings{Source: "prod", Host: "edge-1"}, e.key))
	require.Nil(t, plan.Refused)
	app, _ := plan.App("tv")
	got := map[string]string{}
	for name, text := range app.Services[0].Spec.Environment {
		open, err := ring.Open(text, e.open)
		require.NoError(t, err)
		got[name] = open
	}
	require.Equal(t, map[string]string{"PW": "secret-one", "B": "secret-two"}, got)
	values, err := e.values("tv")
	require.NoError(t, err)
	require.Equal(t, "PW", values["secret-one"])

	other, _ := manifest.Read(c, v.Settings(manifest.Settings{Source: "lab", Host: "edge-1"}, e.key))
	require.NotNil(t, other.Refused["tv"], "another source has none of it")

	putEnv(t, dir, "_shared/prod/.env", "PW=new\n")
	changed, err := e.read()
	require.NoError(t, err)
	require.NotEqual(t, v.print, changed.print)

	require.NoError(t, os.Chmod(filepath.Join(dir, "_shared/prod/.env"), 0o644))
	v, err = e.read()
	require.NoError(t, err)
	plan, _ = manifest.Read(c, v.Settings(manifest.Settings{Source: "prod", Host: "edge-1"}, e.key))
	plan.Source = "prod"
	v.apply(&plan, "/srv")
	require.Empty(t, plan.Apps)
	require.Contains(t, plan.Refused["shop"].Says, "is open to others")
	require.Contains(t, plan.Refused["shop"].Hint, "chmod 600")
	require.Equal(t, "shop", plan.Refused["shop"].App)
}

func TestWhatOthersCanReadOrWriteIsNotUsed(t *testing.T) {
	big := strings.Repeat("x", MaxEnvFile+1)
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		says   string // %s is the env folder
		hint   string
	}{
		{"a file for everybody", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir+"/shop/.env", 0o644)) }, "%s/shop/.env is open to others (mode 0644)", "chmod 600"},
		{"a file for a group", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir+"/shop/.env", 0o640)) }, "%s/shop/.env is open to others (mode 0640)", "chmod 600"},
		{"a folder that others may write into", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir+"/shop", 0o770)) }, "others may write into %s/shop (mode 0770)", "chmod 700"},
		{"a link", func(t *testing.T, dir string) { require.NoError(t, os.Symlink("/etc/shadow", dir+"/shop/more.env")) }, "%s/shop/more.env is no regular file", "not followed"},
		{"an app that is a link", func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir+"/shop", dir+"/other"))
			require.NoError(t, os.Symlink("other", dir+"/shop"))
		}, "%s/shop is no folder", "not followed"},
		{"a file that is too large", func(t *testing.T, dir string) { putEnv(t, dir, "shop/big", big) }, "%s/shop/big is larger than 1 MiB", "only values"},
		{"too many files", func(t *testing.T, dir string) {
			for i := range MaxEnvFiles {
				putEnv(t, dir, fmt.Sprintf("shop/%d.env", i), "A=1")
			}
		}, "%s/shop holds more than 64 files", "only values"},
		{"a file that lies too deep", func(t *testing.T, dir string) { putEnv(t, dir, "shop/"+strings.Repeat("a/", 24)+".env", "A=1") }, "%s/shop" + strings.Repeat("/a", 24) + " lies too deep", "at most"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, dir := envAt(t, map[string]string{"shop/.env": "A=1\n", "blog/.env": "C=3\n"})
			tt.damage(t, dir)
			v, err := e.read()
			require.NoError(t, err)
			require.NotContains(t, v.files, "shop", "all of the app's values, or none")
			require.Contains(t, v.files, "blog", "and of no other app")
			r := v.bad["shop"]
			require.NotNil(t, r)
			require.Equal(t, ring.BadValue, r.Code)
			require.Equal(t, fmt.Sprintf(tt.says, dir), r.Says)
			require.Contains(t, r.Hint, tt.hint)
			require.NotEmpty(t, r.File)
		})
	}
}

// A refusal names where a file may lie in the folder: there it is read, however deep the app
// lies and whatever path it names.
func TestTheFolderIsAsDeepAsAppsAre(t *testing.T) {
	app := strings.Repeat("d/", 15) + "web"
	for _, named := range []string{"./conf/x.env", "../x.env", "/home/me/.config/web/x.env"} {
		tree := fstest.MapFS{
			"gitring.yaml":        {Data: []byte("version: 1\napps: [{path: " + app + "}]\n")},
			app + "/compose.yaml": {Data: []byte("services: {w: {image: a, env_file: [" + named + "]}}\n")},
		}
		c := &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
		e, dir := envAt(t, nil)
		s := manifest.Settings{Source: "prod", Host: "edge-1", EnvKey: []byte("0123456789abcdef0123456789abcdef")}
		r := manifest.Look(c, s)
		require.Len(t, r.Refusals, 1, named)
		_, place, ok := strings.Cut(r.Refusals[0].Hint, "<env.dir>/")
		require.True(t, ok, r.Refusals[0].Hint)
		place, _, _ = strings.Cut(place, " ")
		putEnv(t, dir, strings.TrimSuffix(place, ","), "A=1\n")

		v, err := e.read()
		require.NoError(t, err)
		require.Empty(t, v.bad, named)
		s.Env, s.Shared = v.files, v.shared["prod"]
		r = manifest.Look(c, s)
		require.Empty(t, r.Refusals, named)
	}
}

func TestAFileOfSomebodyElseIsNotUsed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	e, dir := envAt(t, map[string]string{"shop/.env": "A=1\n"})
	require.NoError(t, os.Chown(dir+"/shop/.env", 1000, 1000))
	v, err := e.read()
	require.NoError(t, err)
	require.Equal(t, dir+"/shop/.env belongs to user 1000", v.bad["shop"].Says)
}

func TestAnEnvFolderThatIsNotThereIsAnErrorAndNoValues(t *testing.T) {
	e, dir := envAt(t, map[string]string{"shop/.env": "A=1\n"})
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := e.read()
	require.ErrorContains(t, err, "others may write into "+dir)
	require.NoError(t, os.RemoveAll(dir))
	_, err = e.read()
	require.ErrorContains(t, err, "cannot read env.dir")
}

func TestTheKeyIsMadeOnce(t *testing.T) {
	c := &config.Config{State: t.TempDir(), Env: config.EnvConfig{Dir: t.TempDir()}}
	file := filepath.Join(c.State, "env.key")
	first, err := newEnvFolder(c)
	require.NoError(t, err)
	require.Len(t, first.key, 32)
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	second, err := newEnvFolder(c)
	require.NoError(t, err)
	require.Equal(t, first.key, second.key)

	require.NoError(t, os.WriteFile(file, []byte("half"), 0o600))
	_, err = newEnvFolder(c)
	require.ErrorContains(t, err, "is no key")
	entries, err := os.ReadDir(c.State)
	require.NoError(t, err)
	require.Len(t, entries, 1, "a broken key is left to people, and nothing else lies about")

	none := &config.Config{State: t.TempDir()}
	e, err := newEnvFolder(none)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(none.State, "env.key"), "nobody asked for one")
	_, err = e.open(ring.Sealed{App: "shop", File: ".env", Name: "A"})
	require.EqualError(t, err, "A of shop/.env is a value of the host's env folder, and env.dir is not configured any more")
}

func TestAValueIsOpenedAsLongAsItsFileHasIt(t *testing.T) {
	e, dir := envAt(t, map[string]string{"shop/.env": "A=one\nURL=https://${DOMAIN}/$A\n", "blog/.env": "A=one\n"})
	tokens := func() map[string]ring.Sealed {
		v, err := e.read()
		require.NoError(t, err)
		values, refusal := manifest.Seal("shop", v.files["shop"], e.key, e.interpolation)
		require.Nil(t, refusal)
		out := map[string]ring.Sealed{}
		for s, value := range values {
			out[s.Name+"="+value] = s
		}
		return out
	}
	old := tokens()
	for name, want := range map[string]string{"A": "one", "URL": "https://example.org/one", "": "A=one\nURL=https://${DOMAIN}/$A\n"} {
		require.Contains(t, old, name+"="+want)
		got, err := e.open(old[name+"="+want])
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	other := old["A=one"]
	other.App = "blog"
	_, err := e.open(other)
	require.Error(t, err, "what seals one app's value is nothing in another")

	putEnv(t, dir, "shop/.env", "A=two\nURL=https://${DOMAIN}/one\n")
	_, err = e.open(old["A=one"])
	require.EqualError(t, err, "A of "+dir+"/shop/.env is not what it was when this version was read, so it cannot be made again; put the old value back, or go on to a newer version")
	require.NotContains(t, err.Error(), "one\n")
	got, err := e.open(old["URL=https://example.org/one"])
	require.NoError(t, err, "its value is the same")
	require.Equal(t, "https://example.org/one", got)
	got, err = e.open(tokens()["A=two"])
	require.NoError(t, err)
	require.Equal(t, "two", got)

	putEnv(t, dir, "shop/.env", "A=one\nURL=https://${DOMAIN}/$A\n")
	got, err = e.open(old["A=one"])
	require.NoError(t, err)
	require.Equal(t, "one", got, "put back, it is the same again")
	require.NoError(t, os.Chmod(dir+"/shop/.env", 0o644))
	_, err = e.open(old["A=one"])
	require.ErrorContains(t, err, "is open to others")
}

// envCompose is a service that uses a value of the host's, and one that does not.
const envCompose = `services:
  db:
    image: web:1
    pull_policy: never
    environment: {PASSWORD: "${PASSWORD}"}
  web:
    image: web:1
    pull_policy: never
`

func TestANewValueIsANewPlanAtTheNextLook(t *testing.T) {
	f := following(t)
	e, dir := envAt(t, map[string]string{"shop/.env": "PASSWORD=hunter1\n"})
	f.d.env = e
	r := ring.Report{Source: "prod", At: time.Now(), Reached: true, Tip: older, Commit: &ring.Commit{SHA: older, Tree: fstest.MapFS{"shop/compose.yaml": {Data: []byte(envCompose)}}}}
	written := func() (db, web string) {
		t.Helper()
		f.report(t.Context(), r)
		require.NotNil(t, f.source.Next)
		app, ok := f.source.Next.App("shop")
		require.True(t, ok, "%v", f.source.Next.Refused["shop"])
		for _, s := range app.Services {
			require.NotContains(t, fmt.Sprintf("%+v", s), "hunter", "the value itself is in no plan")
		}
		d, _ := app.Service("db")
		w, _ := app.Service("web")
		return d.Written, w.Written
	}
	db, web := written()
	was := f.source.Next
	db2, web2 := written()
	require.Same(t, was, f.source.Next, "nothing changed, so nothing is read again")
	require.Equal(t, []string{db, web}, []string{db2, web2})

	putEnv(t, dir, "shop/.env", "PASSWORD=hunter2\n")
	r.Commit, r.Err, r.Reached = nil, os.ErrDeadlineExceeded, false // the forge is away
	db3, web3 := written()
	require.NotEqual(t, db, db3)
	require.Equal(t, web, web3, "who does not use it is not touched")

	was = f.source.Next
	require.NoError(t, os.Rename(dir, dir+".away"))
	f.report(t.Context(), r)
	require.Same(t, was, f.source.Next, "values that are not there now are not empty")
	require.Contains(t, f.says(t).Reason, "cannot read env.dir")
	require.NoError(t, os.Rename(dir+".away", dir))

	require.NoError(t, os.Chmod(dir+"/shop/.env", 0o644))
	f.report(t.Context(), r)
	refusal := f.source.Next.Refused["shop"]
	require.NotNil(t, refusal)
	require.Equal(t, dir+"/shop/.env is open to others (mode 0644)", refusal.Says)
	require.Empty(t, f.source.Next.Apps)
	require.NoError(t, os.Chmod(dir+"/shop/.env", 0o600))
	db4, _ := written()
	require.Equal(t, db3, db4)
}

func TestWhatIsWrongWithValuesIsToldOnce(t *testing.T) {
	e, dir := envAt(t, map[string]string{"shop/.env": "A=1\n"})
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	lines := func() int { return strings.Count(said.String(), "\n") }
	look := func() { _, _ = e.readAndTell(log) } // its error is in the log
	look()
	require.Zero(t, lines())
	require.NoError(t, os.Chmod(dir+"/shop/.env", 0o604))
	look()
	look()
	require.Equal(t, 1, lines(), said.String())
	require.Contains(t, said.String(), "is open to others")
	require.NoError(t, os.Chmod(dir+"/shop/.env", 0o600))
	look()
	require.NoError(t, os.Chmod(dir+"/shop/.env", 0o604))
	look()
	require.Equal(t, 2, lines())
}

func TestADataRootThatIsTheHostsIsNoOther(t *testing.T) {
	plan := ring.Plan{Apps: []ring.App{{Name: "a", DataRoot: "/srv/gitring"}, {Name: "b", DataRoot: "/mnt"}, {Name: "c"}}}
	HostValues{}.apply(&plan, "/srv/gitring")
	require.Equal(t, []ring.App{{Name: "a"}, {Name: "b", DataRoot: "/mnt"}, {Name: "c"}}, plan.Apps)
}

func TestAnAppWithABadFolderClaimsWhatWasReadOfItInItsOwnFolder(t *testing.T) {
	db := ring.App{Name: "a", DataRoot: "/srv/gitring", Services: []ring.Service{{Name: "db"}}}
	plan := ring.Plan{Apps: []ring.App{db}}
	plan.Refuse("b", &ring.Refusal{Code: ring.BadValue}, db)
	HostValues{bad: map[string]*ring.Refusal{"a": {Code: ring.PolicyDenied, App: "a"}}}.apply(&plan, "/srv/gitring")
	require.Empty(t, plan.Apps)
	require.Equal(t, ring.PolicyDenied, plan.Refused["a"].Code)
	for _, name := range []string{"a", "b"} {
		require.Len(t, plan.Claims[name].Services, 1, name)
		require.Empty(t, plan.Claims[name].DataRoot, "the host's")
	}
}

func TestTheValuesOfAnAppAreKnownByWhatTheyAre(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "web"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web", ".env"), []byte("TOKEN=hunter22\nURL=http://x\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web", "db.env"), []byte("PASSWORD='p w'\n"), 0o600))
	e := &envFolder{dir: dir, key: make([]byte, EnvKeySize)}
	got, err := e.values("web")
	require.NoError(t, err)
	for value, name := range map[string]string{"hunter22": "TOKEN", "http://x": "URL", "p w": "PASSWORD"} {
		require.Equal(t, name, got[value], value)
	}
	got, err = e.values("other")
	require.NoError(t, err)
	require.Empty(t, got)
	require.NoError(t, os.Chmod(filepath.Join(dir, "web", ".env"), 0o644))
	_, err = e.values("web")
	require.Error(t, err, "what cannot be read cannot be struck out")
	got, err = (&envFolder{}).values("web")
	require.NoError(t, err)
	require.Empty(t, got)
}

// Nothing of the folder is read again that was not touched, and each way to touch it shows.
func TestALookAtValuesReadsNothingAgainThatNobodyTouched(t *testing.T) {
	files := map[string]string{"shop/.env": "A=1\n", "shop/conf/db.env": "B=2\n", "_shared/prod/.env": "C=3\n"}
	log := slog.New(slog.DiscardHandler)
	settled := func(t *testing.T) (e *envFolder, dir string) {
		e, dir = envAt(t, files)
		_, err := e.look(log, time.Now())
		require.NoError(t, err)
		require.False(t, e.seen.still(dir, e.seen.at), "what was written a moment ago may be written again within a tick")
		e.seen.at = e.seen.at.Add(time.Hour) // as after a while
		require.True(t, e.seen.still(dir, e.seen.at))
		return e, dir
	}
	touches := map[string]func(t *testing.T, dir string) error{
		"as many bytes, and the times put back": func(t *testing.T, dir string) error {
			st, err := os.Stat(dir + "/shop/.env")
			require.NoError(t, err)
			putEnv(t, dir, "shop/.env", "A=2\n")
			return os.Chtimes(dir+"/shop/.env", st.ModTime(), st.ModTime())
		},
		"another file in its place": func(t *testing.T, dir string) error {
			putEnv(t, dir, "new", "A=3\n")
			return os.Rename(dir+"/new", dir+"/shop/conf/db.env")
		},
		"a file more":          func(t *testing.T, dir string) error { putEnv(t, dir, "shop/conf/x.env", "X=1\n"); return nil },
		"a file less":          func(_ *testing.T, dir string) error { return os.Remove(dir + "/shop/conf/db.env") },
		"an app more":          func(t *testing.T, dir string) error { putEnv(t, dir, "blog/.env", "X=1\n"); return nil },
		"another name":         func(_ *testing.T, dir string) error { return os.Rename(dir+"/shop", dir+"/blog") },
		"what all may use":     func(t *testing.T, dir string) error { putEnv(t, dir, "_shared/prod/.env", "C=4\n"); return nil },
		"open to others":       func(_ *testing.T, dir string) error { return os.Chmod(dir+"/shop/.env", 0o644) },
		"a folder of anybody":  func(_ *testing.T, dir string) error { return os.Chmod(dir+"/shop/conf", 0o777) },
		"the folder of anyone": func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o777) },
	}
	for name, touch := range touches {
		t.Run(name, func(t *testing.T) {
			e, dir := settled(t)
			was := e.seen.print
			require.NoError(t, touch(t, dir))
			print, err := e.look(log, e.seen.at)
			if name == "the folder of anyone" {
				require.ErrorContains(t, err, "others may write into")
				return
			}
			require.NoError(t, err)
			require.NotEqual(t, was, print)
			v, err := e.read()
			require.NoError(t, err)
			require.Equal(t, v.print, print)
		})
	}
	t.Run("what is wrong is looked at each time", func(t *testing.T) {
		e, dir := settled(t)
		require.NoError(t, os.Chmod(dir+"/shop/.env", 0o644))
		_, err := e.look(log, e.seen.at)
		require.NoError(t, err)
		require.Empty(t, e.seen.stamps)
	})
	// An image of fixed times that was mounted in place of another one has the stamps of the other one.
	t.Run("what was read long ago, or by another clock, is read again", func(t *testing.T) {
		e, dir := settled(t)
		require.True(t, e.seen.still(dir, e.seen.at.Add(readAgain)))
		require.False(t, e.seen.still(dir, e.seen.at.Add(readAgain+1)))
		require.False(t, e.seen.still(dir, e.seen.at.Add(-1)), "the clock was set back")
		read := e.seen.at
		_, err := e.look(log, read.Add(readAgain+1))
		require.NoError(t, err)
		require.NotEqual(t, read, e.seen.at)
	})
}
