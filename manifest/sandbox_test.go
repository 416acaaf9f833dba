package manifest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
)

// canary is a text that is on the host and not in the commit: wherever it comes
// up, something of the host was read.
const canary = "canary-of-the-host"

// Every key by which Compose reads a file, with every way out of the commit:
// nothing of the host comes into the plan, a content or a refusal.
func TestNothingOfTheHostIsRead(t *testing.T) {
	host := t.TempDir()
	secret := filepath.Join(host, "secret")
	if err := os.WriteFile(secret, []byte("A="+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	compose := filepath.Join(host, "compose.yaml")
	if err := os.WriteFile(compose, []byte("services: {x: {image: "+canary+"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(host) // a relative path that leaks would be found here
	t.Setenv("HOST_VARIABLE", canary)
	t.Setenv("HOME", host)
	t.Setenv("COMPOSE_FILE", compose)
	t.Setenv("COMPOSE_PROFILES", "*")

	ways := []string{secret, "secret", "./secret", "../secret", "../../../../../../../.." + secret, "~/secret", "$$HOME/secret", "file://" + secret, "link", "dir/secret"}
	for _, way := range append(ways, compose, "compose.yaml.host", "./../compose.yaml") {
		for key, text := range map[string]string{
			"env_file":             "services: {web: {image: a, env_file: [%q]}}",
			"env_file long":        "services: {web: {image: a, env_file: [{path: %q}]}}",
			"env_file raw":         "services: {web: {image: a, env_file: [{path: %q, format: raw}]}}",
			"env_file optional":    "services: {web: {image: a, env_file: [{path: %q, required: false}]}}",
			"label_file":           "services: {web: {image: a, label_file: %q}}",
			"extends":              "services: {web: {image: a, extends: {file: %q, service: x}}}",
			"include":              "include: [%q]\nservices: {web: {image: a}}",
			"include long":         "include: [{path: compose.yaml, env_file: %q, project_directory: /}]\nservices: {web: {image: a}}",
			"secret":               "services: {web: {image: a, secrets: [s]}}\nsecrets: {s: {file: %q}}",
			"config":               "services: {web: {image: a, configs: [s]}}\nconfigs: {s: {file: %q}}",
			"credential_spec":      "services: {web: {image: a, credential_spec: {file: %q}}}",
			"build":                "services: {web: {build: %q}}",
			"build dockerfile":     "services: {web: {build: {context: ., dockerfile: %q}}}",
			"volume":               "services: {web: {image: a, volumes: [{type: bind, source: %q, target: /x}]}}",
			"develop":              "services: {web: {image: a, develop: {watch: [{path: %q, action: sync, target: /x}]}}}",
			"provider":             "services: {web: {provider: {type: %q}}}",
			"a command in a shell": "services: {web: {image: a, command: \"echo `cat %s`\"}}",
			"a hook":               "services: {web: {image: a, post_start: [{command: [cat, %q]}]}}",
		} {
			files := map[string]string{"web/compose.yaml": fmt.Sprintf(text, way), "web/other.env": "B=1\n"}
			c := repo(files)
			c.Tree.(fstest.MapFS)["web/link"] = &fstest.MapFile{Data: []byte(secret), Mode: fs.ModeSymlink | 0o777}
			c.Tree.(fstest.MapFS)["web/dir"] = &fstest.MapFile{Data: []byte(host), Mode: fs.ModeSymlink | 0o777}
			noCanary(t, c, key+" "+way)
		}
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
