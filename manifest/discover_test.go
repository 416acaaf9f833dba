package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const one = "services: {web: {image: a}}\n"

func names(plan ring.Plan) []string {
	var out []string
	for _, a := range plan.Apps {
		out = append(out, a.Name+" at "+a.Path)
	}
	return out
}

func TestAppsAreFoundByFolder(t *testing.T) {
	files := map[string]string{
		"compose.yaml":                     one,
		"web/compose.yml":                  one,
		"apps/db/docker-compose.yml":       one,
		"apps/cache/docker-compose.yaml":   one,
		"apps/named/compose.yaml":          "name: other\n" + one,
		"a/b/c/compose.yaml":               one, // three levels down
		".github/compose.yaml":             one,
		"apps/.hidden/compose.yaml":        one,
		"docs/readme.md":                   "x",
		"web/sub/notes/docker-compose.txt": "x",
	}
	plan, _ := Read(repo(files), settings())
	want := []string{"cache at apps/cache", "db at apps/db", "other at apps/named", "prod at .", "web at web"}
	if d := cmp.Diff(want, names(plan)); d != "" || plan.Refused != nil {
		t.Error(d, plan.Refused)
	}
	s := settings()
	s.Path = "apps"
	if plan, _ = Read(repo(files), s); cmp.Diff([]string{"cache at apps/cache", "db at apps/db", "other at apps/named"}, names(plan)) != "" {
		t.Error(names(plan))
	}
	s.Path = "./apps/db/"
	if plan, _ = Read(repo(files), s); cmp.Diff([]string{"prod at apps/db"}, names(plan)) != "" {
		t.Error(names(plan))
	}
	for _, empty := range []string{"docs", "not/there"} {
		s.Path = empty
		if plan, _ = Read(repo(files), s); plan.Apps != nil || plan.Refused != nil || plan.Refusal != nil {
			t.Errorf("%s: %s", empty, dump(t, plan))
		}
	}
}

func TestComposeFilesComeInOrder(t *testing.T) {
	for _, c := range []struct {
		files string
		want  string
		note  string
	}{
		{"compose.yaml compose.yml docker-compose.yml", "web/compose.yaml", "compose.yml is not read"},
		{"docker-compose.yml compose.yml", "web/compose.yml", "docker-compose.yml is not read"},
		{"docker-compose.yml docker-compose.yaml", "web/docker-compose.yaml", ""},
		{"compose.yaml compose.override.yaml", "web/compose.yaml web/compose.override.yaml", ""},
		{"compose.yaml compose.override.yml", "web/compose.yaml web/compose.override.yml", ""},
		{"compose.yml compose.override.yml compose.override.yaml", "web/compose.yml web/compose.override.yml", "compose.override.yaml is not read"},
		{"compose.yaml docker-compose.override.yml", "web/compose.yaml web/docker-compose.override.yml", ""},
		{"docker-compose.yml compose.override.yaml docker-compose.override.yml", "web/docker-compose.yml web/compose.override.yaml", "docker-compose.override.yml is not read: compose.override.yaml comes first"},
		{"docker-compose.yml docker-compose.override.yml", "web/docker-compose.yml web/docker-compose.override.yml", ""},
	} {
		files := map[string]string{}
		for name := range strings.FieldsSeq(c.files) {
			files["web/"+name] = one
		}
		plan, _ := Read(repo(files), settings())
		a, _ := plan.App("web")
		if got := strings.Join(a.Files, " "); got != c.want || !strings.Contains(strings.Join(a.Notes, ";"), c.note) {
			t.Errorf("%s: read %s, notes %q", c.files, got, a.Notes)
		}
	}
}

// The oracle is Compose's own search. Whatever the Compose file is called, it takes the first
// override of four names.
func TestTheOverrideIsTheOneThatComposeTakes(t *testing.T) {
	overrides := []string{"compose.override.yml", "compose.override.yaml", "docker-compose.override.yml", "docker-compose.override.yaml"}
	for _, name := range composeNames {
		for which := range 1 << len(overrides) {
			files, noted := map[string]string{"web/" + name: one}, -1
			for i, o := range overrides {
				if which&(1<<i) != 0 {
					files["web/"+o] = "services: {web: {labels: {from: " + o + "}}}\n"
					noted++
				}
			}
			options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(writtenFiles(t, files)), cli.WithDefaultConfigPath)
			require.NoError(t, err)
			var want []string
			for _, f := range options.ConfigPaths {
				want = append(want, "web/"+path.Base(f))
			}
			plan, _ := Read(repo(files), settings())
			a, ok := plan.App("web")
			require.True(t, ok)
			require.Equal(t, want, a.Files, "%s with %04b", name, which)
			require.Equal(t, max(0, noted), strings.Count(notes(a), "is not read"), notes(a))
		}
	}
}

func TestTheOverrideFileWins(t *testing.T) {
	plan, _ := Read(repo(map[string]string{
		"web/compose.yaml":          "services:\n  web: {image: a, privileged: true, command: one, environment: {A: '1', B: '1'}, x-gitring: {checks: [{name: x, tcp: {port: 1}}], rollout: {max_surge: 2}}}\n",
		"web/compose.override.yaml": "services:\n  web: {image: b, privileged: false, command: two, environment: [B=2], x-gitring: {checks: [{name: x, tcp: {port: 2}}, {name: y, tcp: {port: 3}}]}}\n",
	}), settings())
	a, ok := plan.App("web")
	if !ok {
		t.Fatal(dump(t, plan))
	}
	s := a.Services[0]
	if s.Spec.Image != "b" || s.Spec.Command[0] != "two" || s.Spec.Environment["A"] != "1" || s.Spec.Environment["B"] != "2" ||
		len(s.Checks) != 2 || s.Checks[0].TCP.Port != 2 || s.Rollout.MaxSurge.N != 2 {
		t.Error(dump(t, s))
	}
}

func TestNamesAreUnique(t *testing.T) {
	plan, _ := Read(repo(map[string]string{
		"a/web/compose.yaml": one, "b/web/compose.yaml": one, "c/compose.yaml": one,
		"d/compose.yaml": "name: c\n" + one,
	}), settings())
	if len(plan.Apps) != 0 || len(plan.Refused) != 2 {
		t.Fatal(dump(t, plan))
	}
	for name, both := range map[string]string{"web": "a/web and b/web", "c": "c and d"} {
		if r := plan.Refused[name]; r == nil || r.Code != ring.AppTaken || !strings.Contains(r.Says, both) || r.File == "" || r.Line == 0 {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// Two apps of which two things would have one name on the engine.
func TestNamesOnTheEngineDoNotCollide(t *testing.T) {
	for _, c := range []struct{ a, b, says string }{
		{"services: {b-c: {image: x}}\n", "services: {c: {image: x}}\n", "container a-b-c"},
	} {
		plan, _ := Read(repo(map[string]string{"a/compose.yaml": c.a, "a-b/compose.yaml": c.b, "z/compose.yaml": one}), settings())
		if len(plan.Apps) != 1 || len(plan.Refused) != 2 || !strings.Contains(plan.Refused["a"].Says, c.says) || plan.Refused["a-b"].Code != ring.AppTaken {
			t.Error(dump(t, plan))
		}
	}
	plan, _ := Read(repo(map[string]string{
		"a/compose.yaml":   "services: {x: {image: x, volumes: ['b_data:/d']}}\nvolumes: {b_data: }\n",
		"a_b/compose.yaml": "services: {y: {image: x, volumes: ['data:/d']}}\nvolumes: {data: }\n",
	}), settings())
	if len(plan.Apps) != 0 || !strings.Contains(plan.Refused["a"].Says, "volume a_b_data") {
		t.Error(dump(t, plan))
	}
}

// An app in force must be found again while its file is broken: else it would
// seem to have left the commit.
func TestABrokenFileKeepsItsName(t *testing.T) {
	for _, text := range []string{"name: shop\nservices:\n  web: {\n", "services: [\nname: \"shop\" # ours\n", "name: shop\nservices: {web: {image: a, oops: 1}}\n", "name: shop\n" + bomb()} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": text}), settings())
		if plan.Refused["shop"] == nil || plan.Refused["shop"].App != "shop" {
			t.Errorf("%q: %s", text[:20], dump(t, plan.Refused))
		}
	}
	// one of two broken apps has the name of the other
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": one, "x/web/compose.yaml": "a: {"}), settings())
	if len(plan.Apps) != 1 || plan.Refused["web"] != nil || plan.Refused["x/web"] == nil {
		t.Error(dump(t, plan))
	}
}

func TestGitringYAML(t *testing.T) {
	files := map[string]string{
		gitringFile: `version: 1
apps:
  - path: apps/db
  - name: front
    path: apps/web
    files: [compose.yaml, ../shared/extra.yaml]
    after: [db, {app: cache, until: started}, {app: edge, until: completed}]
    targets: {tier: edge}
  - {name: cache, path: apps/cache, prune: true}
  - {name: edge, path: apps/edge, targets: {tier: core}}
`,
		"apps/db/compose.yaml":     "name: postgres\n" + one,
		"apps/web/compose.yaml":    one,
		"apps/shared/extra.yaml":   "services: {extra: {image: b}}\n",
		"apps/cache/compose.yaml":  one,
		"apps/edge/compose.yaml":   one,
		"apps/unused/compose.yaml": one,
	}
	s := settings()
	s.Facts = map[string]string{"tier": "edge", "region": "eu"}
	plan, _ := Read(repo(files), s)
	if d := cmp.Diff([]string{"cache at apps/cache", "front at apps/web", "postgres at apps/db"}, names(plan)); d != "" {
		t.Fatal(d, dump(t, plan))
	}
	front, _ := plan.App("front")
	want := []ring.AfterApp{{App: "postgres", Until: ring.ReadyDep}, {App: "cache", Until: ring.Started}}
	if d := cmp.Diff(want, front.After); d != "" || len(front.Services) != 2 {
		t.Error(d, dump(t, front))
	}
	if !strings.Contains(strings.Join(front.Notes, ";"), "edge, which is not for this host") {
		t.Error(front.Notes)
	}
	// the path of the source is where gitring.yaml is
	moved := map[string]string{"compose.yaml": one}
	for p, text := range files {
		moved["hosts/a/"+p] = text
	}
	s.Path = "hosts/a"
	if plan, _ := Read(repo(moved), s); len(plan.Apps) != 3 || plan.Apps[0].Path != "hosts/a/apps/cache" {
		t.Error(dump(t, plan))
	}
}

func TestMistakesInGitringYAMLStopTheCommit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       ring.Code
		line       int
		says       string
	}{
		{"no YAML", "version: 1\napps: {\n", ring.Yaml, 3, ""},
		{"no version", "apps: [{path: a}]\n", ring.BadValue, 1, "version"},
		{"another version", "version: 2\napps: [{path: a}]\n", ring.BadValue, 1, "version"},
		{"no apps", "version: 1\n", ring.BadValue, 1, "no apps"},
		{"an unknown key", "version: 1\napps:\n  - path: a\n    file: [x]\n", ring.UnknownKey, 4, "file"},
		{"an unknown key at the top", "version: 1\nappz: []\napps: [{path: a}]\n", ring.UnknownKey, 2, "appz"},
		{"no path", "version: 1\napps:\n  - name: a\n", ring.BadValue, 3, "no path"},
		{"a path out of the source", "version: 1\napps:\n  - path: ../x\n", ring.OutsideCommit, 3, "../x"},
		{"an absolute path", "version: 1\napps:\n  - path: /etc\n", ring.OutsideCommit, 3, "/etc"},
		{"a bad name", "version: 1\napps:\n  - {path: a, name: 'a b'}\n", ring.BadName, 3, "a b"},
		{"a name twice", "version: 1\napps:\n  - {path: a, name: a}\n  - {path: b, name: a}\n", ring.AppTaken, 4, "first on line 3"},
		{"after nobody", "version: 1\napps:\n  - {path: a, after: [{app: dbb}]}\n  - {path: db}\n", ring.BadValue, 3, "dbb"},
		{"after itself", "version: 1\napps:\n  - {path: a, after: [a]}\n", ring.BadValue, 3, "itself"},
		{"in a circle", "version: 1\napps:\n  - {path: a, after: [b]}\n  - {path: b, after: [a]}\n", ring.BadValue, 4, "a after b after a"},
		{"until never", "version: 1\napps:\n  - {path: a, after: [{app: b, until: never}]}\n  - {path: b}\n", ring.BadValue, 3, "never"},
		{"a hold without a reason", "version: 1\napps:\n  - path: a\n    hold: {until: 2027-01-31}\n", ring.BadValue, 4, "reason"},
		{"a hold until some day", "version: 1\napps:\n  - path: a\n    hold: {reason: x, until: soon}\n", ring.BadValue, 4, "soon"},
		{"prune of neither", "version: 1\napps:\n  - {path: a, prune: maybe}\n", ring.BadValue, 3, "maybe"},
		{"an LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ring.LfsPointer, 1, ""},
		{"a key twice", "version: 1\nversion: 1\napps: []\n", ring.Yaml, 2, "twice"},
	} {
		plan, _ := Read(repo(map[string]string{gitringFile: c.text, "a/compose.yaml": one, "db/compose.yaml": one, "b/compose.yaml": one}), settings())
		r := plan.Refusal
		if r == nil || len(plan.Apps) != 0 || plan.Refused != nil || r.Code != c.code || r.Where() != fmt.Sprintf("gitring.yaml:%d", c.line) || !strings.Contains(r.Says, c.says) || r.Hint == "" || r.Commit != plan.Commit {
			t.Errorf("%s: %s", c.name, dump(t, plan))
		}
	}
	if plan, _ := Read(repo(map[string]string{"gitring.yml": "version: 1", "a/compose.yaml": one}), settings()); plan.Refusal == nil || plan.Refusal.Code != ring.BadName {
		t.Error("gitring.yml is passed over in silence")
	}
}

// What is wrong with one app of gitring.yaml is that app's alone.
func TestAnAppThatIsNotThereIsRefusedAlone(t *testing.T) {
	plan, _ := Read(repo(map[string]string{
		gitringFile: "version: 1\napps:\n  - {path: gone, name: lost}\n  - {path: empty}\n  - {path: ok, files: [none.yaml]}\n  - {path: web}\n",
		"empty/x":   "x", "ok/compose.yaml": one, "web/compose.yaml": one,
	}), settings())
	if d := cmp.Diff([]string{"web at web"}, names(plan)); d != "" {
		t.Error(d)
	}
	for name, line := range map[string]int{"lost": 3, "empty": 4, "ok": 5} {
		if r := plan.Refused[name]; r == nil || r.Code != ring.BadValue || r.Where() != fmt.Sprintf("gitring.yaml:%d", line) {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// odds are trees with something else than files: V42 to V45.
func TestOddEntriesOfATree(t *testing.T) {
	link := &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink | 0o777}
	gitlink := &fstest.MapFile{Mode: fs.ModeIrregular | 0o644}
	pointer := &fstest.MapFile{Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")}
	crypted := &fstest.MapFile{Data: []byte("\x00GITCRYPT\x00abc\x01def")}
	compose := "services:\n  web:\n    image: a\n    volumes: ['./conf:/conf:ro']\n"
	for _, c := range []struct {
		name  string
		at    string
		entry *fstest.MapFile
		code  ring.Code // "" is accepted
		where string
	}{
		{"a Compose file that is a link", "web/compose.yaml", link, ring.SymlinkInManifest, "web/compose.yaml"},
		{"an override file that is a link", "web/compose.override.yaml", link, ring.SymlinkInManifest, "web/compose.override.yaml"},
		{"a .env that is a link", "web/.env", link, ring.SymlinkInManifest, "web/.env"},
		{"a mounted link to nothing", "web/conf", link, ring.SymlinkInManifest, "web/compose.yaml:4"},
		{"a link in a mounted folder", "web/conf/a", link, ring.SymlinkInManifest, "web/compose.yaml:4"},
		{"a link elsewhere", "web/other", link, "", ""},
		{"a linked folder elsewhere", "apps", link, "", ""},
		{"a submodule in the app", "web/vendor", gitlink, ring.Submodule, "web/vendor"},
		{"a mounted submodule", "web/conf", gitlink, ring.Submodule, "web/conf"},
		{"a submodule elsewhere", "other/vendor", gitlink, "", ""},
		{"a Compose file in LFS", "web/compose.yaml", pointer, ring.LfsPointer, "web/compose.yaml:1"},
		{"a .env in LFS", "web/.env", pointer, ring.LfsPointer, "web/.env:1"},
		{"a mounted file in LFS", "web/conf", pointer, ring.LfsPointer, "web/compose.yaml:4"},
		{"a Compose file of git-crypt", "web/compose.yaml", crypted, ring.SecretForm, "web/compose.yaml:1"},
		{"a .env of git-crypt", "web/.env", crypted, ring.SecretForm, "web/.env:1"},
		{"a mounted file of git-crypt", "web/conf", crypted, ring.SecretForm, "web/compose.yaml:4"},
		{"a file of git-crypt in a mounted folder", "web/conf/key", crypted, ring.SecretForm, "web/compose.yaml:4"},
		{"a file of git-crypt elsewhere", "web/key", crypted, "", ""},
		{"attributes", "web/.gitattributes", &fstest.MapFile{Data: []byte("* filter=lfs eol=crlf export-subst\n")}, "", ""},
	} {
		co := repo(map[string]string{"web/compose.yaml": compose})
		co.Tree.(fstest.MapFS)[c.at] = c.entry
		plan, _ := Read(co, settings())
		r := plan.Refused["web"]
		if c.code == "" {
			if len(plan.Apps) != 1 || r != nil {
				t.Errorf("%s: %s", c.name, dump(t, plan))
			}
			continue
		}
		if r == nil || r.Code != c.code || !strings.HasPrefix(r.Where(), c.where) || len(plan.Apps) != 0 {
			t.Errorf("%s: %v", c.name, r)
		}
	}
	deep := repo(map[string]string{"web/compose.yaml": one, ".gitmodules": "x"})
	deep.Tree.(fstest.MapFS)["web/a/b/vendor"] = gitlink
	if plan, _ := Read(deep, settings()); plan.Refused["web"] == nil || plan.Refused["web"].Code != ring.Submodule {
		t.Error("a submodule deep below the app is accepted")
	}
	for name, entry := range map[string]*fstest.MapFile{"symlink": link, "submodule": gitlink} {
		co := repo(map[string]string{"x": "y"})
		co.Tree.(fstest.MapFS)[gitringFile] = entry
		if plan, _ := Read(co, settings()); plan.Refusal == nil || plan.Refusal.File != gitringFile {
			t.Errorf("gitring.yaml as %s is accepted", name)
		}
	}
}

// broken fails to read one path: a damaged mirror.
type broken struct {
	fs.FS
	path string
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.path {
		return nil, errors.New("object is missing")
	}
	return b.FS.Open(name)
}

// A mirror that cannot be read must not look like a commit without apps.
func TestADamagedMirrorChangesNothing(t *testing.T) {
	for _, path := range []string{".", "web", "web/compose.yaml", "web/conf", "web/conf/a", "web/.env"} {
		c := repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./conf:/c']}}\n", "web/conf/a": "x", "web/.env": "A=1", "b/compose.yaml": one})
		c.Tree = broken{c.Tree, path}
		plan, contents := Read(c, settings())
		if plan.Refusal == nil || plan.Refusal.Code != ring.Unreadable || plan.Apps != nil || plan.Refused != nil || contents != nil {
			t.Errorf("%s: %s", path, dump(t, plan))
		}
	}
}
