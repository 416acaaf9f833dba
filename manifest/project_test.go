package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

func TestComposesOwnVariablesSteerTheApp(t *testing.T) {
	listed := func(more string) string { return "version: 1\napps: [{path: web" + more + "}]\n" }
	two := "services:\n  a: {image: a}\n  b: {image: a, profiles: [p]}\n  c: {image: a, profiles: [q]}\n  d: {image: a, profiles: [r]}\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		host  string
		app   string
		has   string // services
	}{
		{"profiles", map[string]string{"web/.env": "COMPOSE_PROFILES=p, q\n", "web/compose.yaml": two}, "", "web", "a b c"},
		{"profiles besides those of gitring.yaml", map[string]string{gitringFile: listed(", profiles: [r]"), "web/.env": "COMPOSE_PROFILES=p\n", "web/compose.yaml": two}, "", "web", "a b d"},
		{"profiles of the host", map[string]string{"web/.env": "COMPOSE_PROFILES=p\n", "web/compose.yaml": two}, "COMPOSE_PROFILES=q\n", "web", "a c"},
		{"every profile", map[string]string{"web/.env": "COMPOSE_PROFILES=*\n", "web/compose.yaml": two}, "", "web", "a b c d"},
		{"a name", map[string]string{"web/.env": "COMPOSE_PROJECT_NAME=shop\n", "web/compose.yaml": two}, "", "shop", "a"},
		{"a name before that of the file, as in Compose", map[string]string{"web/.env": "COMPOSE_PROJECT_NAME=shop\n", "web/compose.yaml": "name: other\n" + two}, "", "shop", "a"},
		{"a name after that of gitring.yaml", map[string]string{gitringFile: listed(", name: mine"), "web/.env": "COMPOSE_PROJECT_NAME=shop\n", "web/compose.yaml": two}, "", "mine", "a"},
		{"a name of the host", map[string]string{"web/compose.yaml": two}, "COMPOSE_PROJECT_NAME=ours\n", "ours", "a"},
		{"a file", map[string]string{"web/.env": "COMPOSE_FILE=prod.yaml\n", "web/compose.yaml": two, "web/prod.yaml": "services: {p: {image: a}}\n", "web/compose.override.yaml": "services: {o: {image: a}}\n"}, "", "web", "p"},
		{"files", map[string]string{"web/.env": "COMPOSE_FILE=compose.yaml:prod.yaml\n", "web/compose.yaml": two, "web/prod.yaml": "services: {p: {image: a}}\n"}, "", "web", "a p"},
		{"files by another separator", map[string]string{"web/.env": "COMPOSE_PATH_SEPARATOR=,\nCOMPOSE_FILE=compose.yaml,prod.yaml\n", "web/compose.yaml": two, "web/prod.yaml": "services: {p: {image: a}}\n"}, "", "web", "a p"},
		{"files that gitring.yaml names win", map[string]string{gitringFile: listed(", files: [compose.yaml]"), "web/.env": "COMPOSE_FILE=prod.yaml\n", "web/compose.yaml": two}, "", "web", "a"},
		{"a file of a folder without one", map[string]string{gitringFile: listed(""), "web/.env": "COMPOSE_FILE=prod.yaml\n", "web/prod.yaml": "services: {p: {image: a}}\n"}, "", "web", "p"},
		{"a file in a folder, which names the app as in Compose", map[string]string{gitringFile: listed(""), "web/.env": "COMPOSE_FILE=deploy/prod.yaml\n", "web/deploy/prod.yaml": "services: {p: {image: a, env_file: p.env}}\n", "web/deploy/p.env": "A=1\n"}, "", "deploy", "p"},
	} {
		s := withHost(map[string]string{".env": c.host})
		if c.host == "" {
			s.Env = nil
		}
		plan, _ := Read(repo(c.files), s)
		if len(plan.Apps) != 1 {
			t.Errorf("%s: %v %s", c.name, plan.Refusal, dump(t, plan.Refused))
			continue
		}
		var has []string
		for _, svc := range plan.Apps[0].Services {
			has = append(has, svc.Name)
		}
		if plan.Apps[0].Name != c.app || strings.Join(has, " ") != c.has {
			t.Errorf("%s: app %s with %v", c.name, plan.Apps[0].Name, has)
		}
	}
}

func TestComposeFileIsRefusedWithItsPlace(t *testing.T) {
	for value, code := range map[string]ring.Code{
		"no.yaml": ring.BadValue, "../../x.yaml": ring.OutsideCommit, "/etc/x.yaml": ring.OutsideCommit, "https://x/y.yaml": ring.OutsideCommit, "-": ring.BadValue, "','": ring.BadValue, "link.yaml": ring.SymlinkInManifest,
	} {
		c := repo(map[string]string{"web/.env": "# c\nCOMPOSE_PATH_SEPARATOR=,\nCOMPOSE_FILE=" + value + "\n", "web/compose.yaml": "services: {web: {image: a}}\n"})
		symlinkAt(c, "web/link.yaml", "../../compose.yaml")
		plan, _ := Read(c, settings())
		if r := plan.Refused["web"]; r == nil || r.Code != code || r.Where() != "web/.env:3" || r.Hint == "" {
			t.Errorf("%s: %v", value, r)
		}
	}
}

// The name is a Compose file's own variable, whatever else says it.
func TestTheProjectNameIsTheApps(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		gitringFile: "version: 1\napps: [{path: web, name: mine}]\n", "web/.env": "COMPOSE_PROJECT_NAME=shop\n",
		"web/compose.yaml": "services: {web: {image: a, environment: {N: '$COMPOSE_PROJECT_NAME'}}}\n",
	})
	if got := serviceOf(t, a, "web").Spec.Environment["N"]; got != "mine" {
		t.Error(got)
	}
}

func TestConfigsAndSecretsAreMounted(t *testing.T) {
	a, contents := onlyApp(t, settings(), map[string]string{
		"web/.env": "PW=from env\n", "web/s.txt": "from file", "web/run.sh": "#!/bin/sh\n", "web/dir/x": "in a folder",
		"web/compose.yaml": `services:
  web:
    image: a
    configs: [c, {source: e, target: sub/e}, {source: i, target: /etc/i.conf, mode: 0555}, {source: d, target: /dir}]
    secrets: [s, {source: s, target: two, mode: 0444, uid: "0"}, {source: e, target: /etc/pw}]
configs: {c: {file: ./s.txt}, e: {environment: PW}, i: {content: "pw=${PW}, $$5"}, d: {file: dir}}
secrets: {s: {file: s.txt}, e: {environment: PW}, unused: {file: no.txt}}
`,
	})
	web := serviceOf(t, a, "web").Spec
	got := map[string]string{}
	for _, m := range web.Mounts {
		if m.Target != "/dir" {
			got[m.Target] = textAt(t, contents, web, m.Target)
		} else if m.File != "" || len(contents[m.Source].Files) != 1 {
			t.Errorf("%+v", m)
		}
		if f := contents[m.Source].Files[0]; f.Sealed || f.Exec != (m.Target == "/etc/i.conf") {
			t.Errorf("%s: %+v", m.Target, f)
		}
	}
	if d := cmp.Diff(map[string]string{
		"/c": "from file", "/sub/e": "from env", "/etc/i.conf": "pw=from env, $5",
		"/run/secrets/s": "from file", "/run/secrets/two": "from file", "/etc/pw": "from env",
	}, got); d != "" {
		t.Error(d)
	}
	if len(a.Notes) != 0 {
		t.Error(a.Notes)
	}
}

func TestConfigsAndSecretsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, top string
		code      ring.Code
		line      int
		says      string
		hint      string
	}{
		{"a file that is nowhere", "secrets:\n  s: {file: no.txt}", ring.BadValue, 5, "web/no.txt", "<env.dir>/web/no.txt"},
		{"one that is not declared", "secrets:\n  t: {file: x}", ring.BadValue, 3, "secret s", "declare"},
		{"a variable that is not set", "secrets:\n  s: {environment: NO}", ring.UndefinedVariable, 5, "NO", ".env"},
		{"one of Swarm", "secrets:\n  s: {external: true}", ring.Unsupported, 5, "external is Swarm's", "file:"},
		{"one of Swarm by its name", "secrets:\n  s: {external: {name: x}}", ring.Unsupported, 5, "Swarm's", "file:"},
		{"a driver", "secrets:\n  s: {driver: x}", ring.Unsupported, 5, "secrets.s.driver", "remove"},
		{"a template", "secrets:\n  s: {file: x, template_driver: golang}", ring.Unsupported, 5, "secrets.s.template_driver", "remove"},
		{"an encrypted one", "secrets:\n  s: {file: sops.yaml}", ring.SecretForm, 3, "its list age", "encrypt it anew"},
		{"an unknown key", "secrets:\n  s: {fil: x}", ring.UnknownKey, 5, "secrets.s.fil", "file"},
		{"a file and a variable", "secrets:\n  s: {file: x, environment: PW}", ring.BadValue, 5, "exclusive", ""},
	} {
		plan, _ := Read(repo(map[string]string{
			"web/compose.yaml": "services:\n  web:\n    image: a\n    secrets: [s]\n"[:len("services:\n  web:\n")] + "    {image: a, secrets: [s]}\n" + c.top + "\n",
			"web/x":            "x", "web/sops.yaml": sopsYAML, "web/.env": "PW=1\n",
		}), settings())
		r := plan.Refused["web"]
		if r == nil || r.Code != c.code || r.Line != c.line || !strings.Contains(r.Says, c.says) || !strings.Contains(r.Hint, c.hint) {
			t.Errorf("%s: %v (%+v)", c.name, r, r)
		}
	}
}

func TestLabelFilesAreLabels(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": "services: {web: {image: a, label_file: [a.labels, b.labels], labels: {over: c}}}\n",
		"web/a.labels":     "one=1\nover=a\ntraefik.http.routers.x.rule='Host(`a`)'\n", "web/b.labels": "over=b\ntwo=$one\n",
	})
	if d := cmp.Diff(map[string]string{"one": "1", "two": "1", "over": "c", "traefik.http.routers.x.rule": "Host(`a`)"}, serviceOf(t, a, "web").Spec.Labels); d != "" {
		t.Error(d)
	}
	for body, says := range map[string]string{"a=1\ngitring.x=1\n": "reserved", "a=1\nb=$NO\n": "NO", "a=1\n???\n": "NAME=value"} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, label_file: l}}\n", "web/l": body}), settings())
		if r := plan.Refused["web"]; r == nil || r.Where() != "web/l:2" || !strings.Contains(r.Says, says) || r.Hint == "" {
			t.Errorf("%q: %v", body, r)
		}
	}
}

func TestANameWithoutAValueIsLeftOutAsByCompose(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		env   map[string]string
		unset []string
		note  string
	}{
		{
			"an env file",
			map[string]string{"web/compose.yaml": "services: {web: {image: a, env_file: a.env}}\n", "web/a.env": "A=1\nNO\n"},
			map[string]string{"A": "1"},
			nil, "NO in web/a.env:2 has no value",
		},
		{
			"the app's .env",
			map[string]string{"web/compose.yaml": "services: {web: {image: a}}\n", "web/.env": "NO\n"},
			nil, nil, "NO in web/.env:1 has no value",
		},
		{
			"a list",
			map[string]string{"web/compose.yaml": "services: {web: {image: a, environment: [NO, B=2]}}\n"},
			map[string]string{"B": "2"},
			[]string{"NO"},
			"web: NO in environment has no value",
		},
		{
			"a mapping over an env file",
			map[string]string{"web/compose.yaml": "services: {web: {image: a, env_file: a.env, environment: {NO: }}}\n", "web/a.env": "A=1\nNO=3\n"},
			map[string]string{"A": "1"},
			[]string{"NO"},
			"web: NO in environment has no value",
		},
	} {
		a, _ := onlyApp(t, settings(), c.files)
		s := serviceOf(t, a, "web").Spec
		if d := cmp.Diff([]any{c.env, c.unset}, []any{s.Environment, s.Unset}); d != "" || !strings.Contains(strings.Join(a.Notes, "\n"), c.note) {
			t.Errorf("%s: %s %q", c.name, d, a.Notes)
		}
	}
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, environment: {A: $NO}}}\n", "web/.env": "NO\n"}), settings())
	if r := plan.Refused["web"]; r == nil || r.Code != ring.UndefinedVariable {
		t.Error("a variable that a bare name does not set is still not set:", r)
	}
}

// The oracle is Compose's own loader, which docker compose hands the folder to.
func TestTheNameOfTheFileIsWhatComposeMakesOfIt(t *testing.T) {
	const env = "STACK=From.Env\nEMPTY=\nIN=of-${STACK}\n"
	for _, name := range []string{
		"shop", "My.Shop", "${STACK}", "$STACK", "${STACK:-foo}", "${NO:-foo}", "${NO-foo}", "${NO:-My Foo}", "${EMPTY:-foo}", "${EMPTY-foo}",
		"${EMPTY}", "${NO:-}", "${STACK:+with}", "${NO:+with}", "a-${STACK}-b", "${NO:-${STACK}}", "$$x", "${IN}", "${COMPOSE_PROJECT_NAME}", "${COMPOSE_PROJECT_NAME:-foo}",
	} {
		for _, set := range []string{"", "COMPOSE_PROJECT_NAME=ours\n"} {
			files := map[string]string{
				"My.Web/.env": env + set, "My.Web/compose.yaml": "name: " + name + "\nservices: {w: {image: a}}\n",
				"My.Web/compose.override.yaml": "services: {w: {image: b}}\n",
			}
			want, refused := composesName(t, files)
			a, _ := onlyApp(t, settings(), files)
			if refused && (a.Name != "myweb" || !strings.Contains(strings.Join(a.Notes, "\n"), "comes to nothing")) || !refused && a.Name != want {
				t.Errorf("name: %s with %q: %s %q, Compose says %s", name, set, a.Name, a.Notes, want)
			}
		}
	}
	files := map[string]string{
		"web/compose.yaml": "name: one\nservices: {w: {image: a}}\n", "web/compose.override.yaml": "name: ${NO:-}\nservices: {w: {image: b}}\n",
	}
	if _, refused := composesName(t, files); !refused {
		t.Error("Compose takes the name of a file that is not the last")
	}
	if a, _ := onlyApp(t, settings(), files); a.Name != "web" {
		t.Error("the last file names the app:", a.Name)
	}
}

// composesName is what Compose calls the project of the one folder; refused where its name
// comes to nothing, which releases up to 2.29 took for none.
func composesName(t *testing.T, files map[string]string) (name string, refused bool) {
	t.Helper()
	options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(writtenFiles(t, files)), cli.WithEnvFiles(), cli.WithDotEnv, cli.WithDefaultConfigPath)
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil && strings.Contains(err.Error(), "project name must not be empty") {
		return "", true
	}
	if err != nil {
		t.Fatal(err)
	}
	return project.Name, false
}

// writtenFiles writes the files of one app, and is its folder.
func writtenFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		dir = filepath.Join(root, filepath.Dir(name))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The app's own folder in the host's env folder goes by the name, and so cannot say it.
func TestAVariableThatNamesTheAppIsSetWhereItsHintSays(t *testing.T) {
	files := map[string]string{"web/compose.yaml": "name: ${PROJECT}-web\nservices: {w: {image: '${NO}', environment: {P: $COMPOSE_PROJECT_NAME}}}\n"}
	_, all := Check(repo(files), withHost(map[string]string{".env": "PROJECT=own\n"}))
	if len(all) != 1 || all[0].Code != ring.UndefinedVariable || all[0].Where() != "web/compose.yaml:1" || all[0].Variable != "PROJECT" ||
		!strings.HasSuffix(all[0].Says, "is not set and has no default, and it names the app") ||
		all[0].Answers != [2]string{"_shared/prod/.env"} || strings.Contains(all[0].Hint, "<env.dir>/web") {
		t.Fatal(dump(t, all))
	}
	shared := withShared(map[string]string{".env": "PROJECT=Home.Lab\nPW=Home.Lab-is-secret\n"})
	config := settings()
	config.Interpolation = map[string]string{"PROJECT": "Home.Lab"}
	for name, s := range map[string]Settings{"the host's file for all apps": shared, "the configuration": config} {
		plan, _ := Read(repo(files), s)
		if r := plan.Refused["homelab-web"]; r == nil || r.Variable != "NO" {
			t.Error(name, dump(t, plan.Refused))
		}
		_, all := Check(repo(files), s)
		if s.EnvKey != nil && (len(all) != 1 || !strings.Contains(all[0].Hint, "<env.dir>/homelab-web/.env")) {
			t.Error("the name is no secret:", dump(t, all))
		}
	}
	files[gitringFile] = "version: 1\napps: [{path: web, name: mine}]\n"
	if plan, _ := Read(repo(files), settings()); plan.Refused["mine"] == nil || plan.Refused["mine"].Variable != "NO" {
		t.Error(dump(t, plan.Refused))
	}
	delete(files, gitringFile)
	_, all = Check(repo(files), withShared(map[string]string{".env": "PROJECT='Home\n"}))
	if len(all) != 1 || !strings.HasPrefix(all[0].File, "<env.dir>/_shared") {
		t.Error("a line of the host that cannot be read is told, and nothing that follows of it:", dump(t, all))
	}
}
