package manifest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
)

// canary is a text that is on the host and not in the commit: wherever it comes
// up, something of the host was read.
const canary = "canary-of-the-host"

// reading is a key that names a file or folder, and how a commit uses it: %q is
// the name. body is what the host has under that name: of a kind that would be
// taken, were it read.
type reading struct {
	key   string
	files map[string]string
	body  string
	dir   bool // a folder is named, whose .env has the body
	// bind says that an absolute path is a mount of the host, which is never read
	// and which the policy decides about.
	bind bool
	// unread says that the key means nothing here: what it names is not even looked at.
	unread bool
}

const (
	hostEnvBody     = "A=" + canary + "\n"
	hostComposeBody = `{"services": {"x": {"image": "` + canary + `", "labels": {"l": "` + canary + `"}}}}`
)

func composed(text string) map[string]string { return map[string]string{"web/compose.yaml": text} }

var readings = []reading{
	{key: "env_file", files: composed("services: {web: {image: a, env_file: %q}}"), body: hostEnvBody},
	{key: "env_file in a list", files: composed("services: {web: {image: a, env_file: [%q]}}"), body: hostEnvBody},
	{key: "env_file by its path", files: composed("services: {web: {image: a, env_file: [{path: %q}]}}"), body: hostEnvBody},
	{key: "env_file raw", files: composed("services: {web: {image: a, env_file: [{path: %q, format: raw}]}}"), body: hostEnvBody},
	{key: "label_file", files: composed("services: {web: {image: a, label_file: %q}}"), body: hostEnvBody},
	{key: "label_file in a list", files: composed("services: {web: {image: a, label_file: [%q]}}"), body: hostEnvBody},
	{key: "extends", files: composed("services: {web: {image: a, extends: {file: %q, service: x}}}"), body: hostComposeBody},
	{key: "extends in a base", files: map[string]string{"web/compose.yaml": "services: {web: {image: a, extends: {file: sub/b.yaml, service: b}}}", "web/sub/b.yaml": "services: {b: {image: a, extends: {file: %q, service: x}}}"}, body: hostComposeBody},
	{key: "env_file in a base", files: map[string]string{"web/compose.yaml": "services: {web: {image: a, extends: {file: sub/b.yaml, service: b}}}", "web/sub/b.yaml": "services: {b: {env_file: %q}}"}, body: hostEnvBody},
	{key: "include", files: composed("include: [%q]\nservices: {web: {image: a}}"), body: hostComposeBody},
	{key: "include by its path", files: composed("include: [{path: %q}]\nservices: {web: {image: a}}"), body: hostComposeBody},
	{key: "include as an override", files: map[string]string{"web/compose.yaml": "include: [{path: [inc.yaml, %q]}]\nservices: {web: {image: a}}", "web/inc.yaml": "services: {x: {image: a}}"}, body: hostComposeBody},
	{key: "include in an included file", files: map[string]string{"web/compose.yaml": "include: [sub/inc.yaml]\nservices: {web: {image: a}}", "web/sub/inc.yaml": "include: [%q]"}, body: hostComposeBody},
	{key: "include project_directory", files: map[string]string{"web/compose.yaml": "include: [{path: inc.yaml, project_directory: %q}]\nservices: {web: {image: a}}", "web/inc.yaml": "services: {x: {image: a, environment: {V: '${A:-}'}}}"}, body: hostEnvBody, dir: true},
	{key: "include env_file", files: map[string]string{"web/compose.yaml": "include: [{path: inc.yaml, env_file: %q}]\nservices: {web: {image: a}}", "web/inc.yaml": "services: {x: {image: a, environment: {V: '${A:-}'}}}"}, body: hostEnvBody},
	{key: "config", files: composed("services: {web: {image: a, configs: [s]}}\nconfigs: {s: {file: %q}}"), body: canary, bind: true},
	{key: "secret", files: composed("services: {web: {image: a, secrets: [s]}}\nsecrets: {s: {file: %q}}"), body: canary, bind: true},
	{key: "secret in an included file", files: map[string]string{"web/compose.yaml": "include: [sub/inc.yaml]\nservices: {web: {image: a}}", "web/sub/inc.yaml": "services: {x: {image: a, secrets: [s]}}\nsecrets: {s: {file: %q}}"}, body: canary, bind: true},
	{key: "volume", files: composed("services: {web: {image: a, volumes: [%q]}}"), body: canary, bind: true},
	{key: "volume in long form", files: composed("services: {web: {image: a, volumes: [{type: bind, source: %q, target: /x}]}}"), body: canary, bind: true},
	{key: "seccomp profile", files: composed("services: {web: {image: a, security_opt: [%q]}}"), body: hostComposeBody},
	{key: "COMPOSE_FILE", files: map[string]string{"web/compose.yaml": "services: {web: {image: a}}", "web/.env": "COMPOSE_PATH_SEPARATOR=','\nCOMPOSE_FILE='%s'\n"}, body: hostComposeBody},
	{key: "gitring.yaml path", files: map[string]string{gitringFile: "version: 1\napps: [{path: %q}]"}, body: hostComposeBody, dir: true},
	{key: "gitring.yaml files", files: map[string]string{gitringFile: "version: 1\napps: [{path: web, files: [%q]}]"}, body: hostComposeBody},
	{key: "gitring.yaml env_files", files: map[string]string{gitringFile: "version: 1\napps: [{path: web, env_files: [%q]}]", "web/compose.yaml": "services: {web: {image: a, environment: {V: '${A:-}'}}}"}, body: hostEnvBody},
	{key: "build", files: composed("services: {web: {build: %q}}"), body: canary, dir: true},
	{key: "build dockerfile", files: composed("services: {web: {image: a, build: {context: ., dockerfile: %q}}}"), body: canary, unread: true},
	{key: "credential_spec", files: composed("services: {web: {image: a, credential_spec: {file: %q}}}"), body: hostComposeBody},
	{key: "develop", files: composed("services: {web: {image: a, develop: {watch: [{path: %q, action: sync, target: /x}]}}}"), body: canary, unread: true},
}

// named is a commit that uses the key with a name, and its symlinks.
func (r reading) named(name string) *ring.Commit {
	files := map[string]string{"web/inside.env": "A=1\n", "web/inside/.env": "A=1\n", "web/inside/compose.yaml.d": "x"}
	switch r.key {
	case "volume":
		name += ":/x"
	case "seccomp profile":
		name = "seccomp=" + name
	}
	for p, text := range r.files {
		if strings.Contains(text, "%") {
			text = fmt.Sprintf(text, name)
		}
		files[p] = text
	}
	return repo(files)
}

// Through every key that names a file, by every way out of the commit: no byte of
// the host comes into plan, content or refusal, and each is refused with file and
// line. The host has a file under that very name, wherever a reader could look.
func TestNothingOfTheHostIsRead(t *testing.T) {
	hits := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits++
		fmt.Fprint(w, hostComposeBody)
	}))
	defer server.Close()
	t.Setenv("HOST_VARIABLE", canary)
	t.Setenv("COMPOSE_PROFILES", "*")
	for _, r := range readings {
		t.Run(r.key, func(t *testing.T) {
			host := t.TempDir()
			place := func(p string) {
				p = filepath.Join(host, p)
				if r.dir {
					p = filepath.Join(p, ".env")
				}
				for _, p := range []string{p, filepath.Join(filepath.Dir(p), "compose.yaml")} {
					if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(p, []byte(r.body), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			// where a reader could look: the working folder is below host, and is home too
			for _, p := range []string{"secret", "deep/secret", "deep/er/secret", "deep/er/web/secret", "deep/er/~/secret", `deep/er/C:\secret`, "deep/er/web/sub/secret", "deep/er/https:/example.org/secret"} {
				place(p)
			}
			t.Chdir(filepath.Join(host, "deep/er"))
			t.Setenv("HOME", filepath.Join(host, "deep"))
			t.Setenv("COMPOSE_FILE", filepath.Join(host, "secret"))
			secret := filepath.Join(host, "secret")
			for what, name := range map[string]string{
				"an absolute path":         secret,
				"out by ..":                "../../secret",
				"far out by ..":            strings.Repeat("../", 20) + secret,
				"out in the middle":        "inside/../../../secret",
				"home":                     "~/secret",
				"a path of Windows":        `C:\secret`,
				"https":                    "https://example.org/secret",
				"http":                     server.URL + "/secret",
				"file":                     "file://" + secret,
				"git":                      "git@github.com:acme/secret.git",
				"git by https":             "https://github.com/acme/secret.git#main:secret",
				"oci":                      "oci://example.org/secret",
				"a symlink out":            "out",
				"a symlink in":             "in",
				"a symlink out on the way": "outdir/secret",
				"a symlink in on the way":  "indir/inside.env",
			} {
				c := r.named(name)
				for _, dir := range []string{"", "web/", "web/sub/"} {
					up := strings.Repeat("../", strings.Count(dir, "/"))
					symlinkAt(c, dir+"out", secret)
					symlinkAt(c, dir+"outdir", host)
					symlinkAt(c, dir+"in", up+"web/inside.env")
					symlinkAt(c, dir+"indir", up+"web")
				}
				plan, all := Check(c, settings())
				noCanary(t, c, what)
				if strings.Contains(dump(t, all), canary) {
					t.Errorf("%s: a refusal holds a byte of the host: %s", what, dump(t, all))
				}
				if r.unread { // what it names means nothing
					continue
				}
				if strings.HasPrefix(what, "a symlink in") { // read, as the commit holds what it leads to
					continue
				}
				if r.bind && strings.HasPrefix(name, "/") {
					if m := plan.Apps[0].Services[len(plan.Apps[0].Services)-1].Spec.Mounts[0]; m.Kind != ring.MountBind {
						t.Errorf("%s: %+v", what, m)
					}
					continue
				}
				if len(plan.Apps) != 0 || len(all) == 0 {
					t.Errorf("%s is not refused: %s", what, dump(t, plan.Apps))
				}
				for _, refusal := range all {
					if refusal.File == "" || refusal.Line == 0 || refusal.Hint == "" {
						t.Errorf("%s: %+v", what, refusal)
					}
				}
			}
		})
	}
	if hits != 0 {
		t.Errorf("%d requests were made", hits)
	}
}

// What is not required may be absent, and is still not looked for outside.
func TestAFileThatIsNotRequiredIsNotReadFromTheHost(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "secret"), []byte(hostEnvBody), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(host)
	for _, way := range []string{filepath.Join(host, "secret"), "secret", "../secret", "~/secret", "https://example.org/secret"} {
		noCanary(t, repo(composed(fmt.Sprintf("services: {web: {image: a, env_file: [{path: %q, required: false}]}}", way))), way)
	}
	for _, text := range []string{
		"services: {web: {image: a, command: \"echo `cat secret`\"}}",
		"services: {web: {image: a, post_start: [{command: [cat, secret]}]}}",
		"services: {web: {provider: {type: secret}}}",
	} {
		noCanary(t, repo(composed(text)), text)
	}
}

func noCanary(t *testing.T, c *ring.Commit, what string) {
	t.Helper()
	plan, contents := Read(c, settings())
	if strings.Contains(dump(t, plan), canary) {
		t.Errorf("%s: the plan holds a byte of the host: %s", what, dump(t, plan))
	}
	for _, content := range contents {
		for _, f := range content.Files {
			if b, err := f.Read(); err == nil && strings.Contains(string(b), canary) {
				t.Errorf("%s: content %s holds a byte of the host", what, f.Path)
			}
		}
	}
}

// The environment of the daemon is not asked, by whatever key.
func TestNothingOfTheEnvironmentIsSeen(t *testing.T) {
	t.Setenv("HOST_VARIABLE", canary)
	for what, text := range map[string]string{
		"a variable":              "services: {web: {image: a, user: $HOST_VARIABLE}}",
		"a variable in braces":    "services: {web: {image: a, user: '${HOST_VARIABLE}'}}",
		"a default":               "services: {web: {image: a, user: '${HOST_VARIABLE:-none}'}}",
		"a replacement":           "services: {web: {image: a, user: 'x${HOST_VARIABLE:+set}'}}",
		"a name in a list":        "services: {web: {image: a, environment: [HOST_VARIABLE]}}",
		"a name in a mapping":     "services: {web: {image: a, environment: {HOST_VARIABLE: }}}",
		"a name in an env file":   "services: {web: {image: a, env_file: bare.env}}",
		"a secret of environment": "services: {web: {image: a, secrets: [s]}}\nsecrets: {s: {environment: HOST_VARIABLE}}",
		"a config of environment": "services: {web: {image: a, configs: [s]}}\nconfigs: {s: {environment: HOST_VARIABLE}}",
		"the name":                "name: ${HOST_VARIABLE:-web}\nservices: {web: {image: a}}",
		"x-gitring":               "services: {web: {image: a, x-gitring: {checks: [{name: a, exec: '$HOST_VARIABLE'}]}}}",
	} {
		noCanary(t, repo(map[string]string{"web/compose.yaml": text, "web/bare.env": "HOST_VARIABLE\n"}), what)
	}
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, user: 'x${HOST_VARIABLE:+set}'}}"}), settings())
	if got := plan.Apps[0].Services[0].Spec.User; got != "x" {
		t.Errorf("user is %q: the daemon's environment was asked", got)
	}
}

// Only what the configuration declares, over what the commit says.
func TestLaterValuesWin(t *testing.T) {
	c := repo(map[string]string{
		gitringFile:        "version: 1\napps: [{name: web, path: web, env_files: [a.env, b.env]}]\n",
		"web/.env":         "ONE=dotenv\nTWO=dotenv\nTHREE=dotenv\nFOUR=dotenv\nFROM_HOST=$FOUR\n",
		"web/a.env":        "TWO=a\nTHREE=a\n",
		"web/b.env":        "THREE=b\nFOUR=b\n",
		"web/compose.yaml": "services: {web: {image: a, environment: {V: '$ONE $TWO $THREE $FOUR $FROM_HOST'}}}",
	})
	s := settings()
	s.Interpolation = map[string]string{"FOUR": "host"}
	plan, _ := Read(c, s)
	if len(plan.Apps) != 1 {
		t.Fatal(dump(t, plan))
	}
	if got := plan.Apps[0].Services[0].Spec.Environment["V"]; got != "dotenv a b host host" {
		t.Errorf("got %q", got)
	}
}
