package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Compose hashes values as they are. A hash of a host's value in a label would give
// it to who tries a few, so there is none; neither where the value stands sealed nor
// where it stands as it is.
func TestNoHashIsMadeOfAHostsValue(t *testing.T) {
	for says, not := range map[string]bool{
		`environment: {P: "${PIN}"}`:               true,
		`environment: [PIN]`:                       true,
		`command: ["run", "${PIN}"]`:               true,
		`labels: {p: "${PIN}"}`:                    true,
		`env_file: .env`:                           true,
		`env_file: held.env`:                       true,
		`ports: ["${PORT}:80"]`:                    true,
		`user: "${PORT}"`:                          true,
		`healthcheck: {test: "check ${PIN}"}`:      true,
		`logging: {options: {tag: "${PIN}"}}`:      true,
		`extends: {file: base.yaml, service: own}`: true,
		`environment: {P: "1"}`:                    false,
		`environment: {P: "${COMMITS}"}`:           false,
	} {
		s := settings()
		s.Env = map[string]map[string][]byte{"web": {".env": []byte("PIN=4711\nPORT=8080\n"), "held.env": []byte("HELD=4711\n")}}
		s.EnvKey = []byte("key")
		plan, _ := Read(repo(map[string]string{
			"web/.env":         "COMMITS=1\n",
			"web/base.yaml":    "services: {own: {image: a, user: \"${PORT}\"}}\n",
			"web/compose.yaml": "services:\n  other: {image: b, user: \"1\"}\n  web:\n    image: a\n    " + says + "\n",
		}), s)
		require.Len(t, plan.Apps, 1, "%s: %v", says, plan.Refused)
		a := &plan.Apps[0]
		web, _ := a.Service("web")
		hash, why := a.ComposeHash(&web, ring.Composing{})
		require.Equal(t, not, hash == "", says)
		require.Equal(t, not, strings.Contains(why, "host's env folder"), "%s: %s", says, why)
		require.NotContains(t, dump(t, web.Composed), "4711", says)
	}
}

// Why there is no hash names what the values are of.
func TestWhyThereIsNoHashNamesWhereValuesComeFrom(t *testing.T) {
	for want, from := range map[string][]ring.SealedFrom{
		"the host's env folder":                        {ring.FromEnvFolder},
		"encrypted files":                              {ring.FromSOPS, ring.FromAge},
		"a program of the host":                        {ring.FromProvider},
		"encrypted files and of the host's env folder": {ring.FromEnvFolder, ring.FromSOPS},
	} {
		said := map[string]any{"command": []string{"run"}}
		environment := map[string]string{}
		for i, f := range from {
			environment[strings.Repeat("A", i+1)] = "x" + ring.Sealed{From: f, App: "web", File: "f", Name: "N", MAC: "00"}.String()
		}
		said["environment"] = environment
		b, err := json.Marshal(said)
		require.NoError(t, err)
		require.Equal(t, want, sealedOf(b))
	}
}

// What differs between releases of Compose is told by its name, not hashed wrongly.
func TestWhatComposeReadsInAnotherWayHasNoHash(t *testing.T) {
	for says, word := range map[string]string{
		`label_file: a.labels`:         "label_file",
		`post_start: [{command: [a]}]`: "post_start",
		`gpus: all`:                    "gpus",
		`networks: {default: {use_service_name_alias: true}}`:                         "use_service_name_alias",
		`volumes: [{type: bind, source: /a, target: /a, bind: {recursive: enabled}}]`: "bind.recursive",
		`deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}`:     "devices",
	} {
		plan, _ := Read(repo(map[string]string{
			"web/a.labels": "a=1\n", "web/compose.yaml": "services:\n  web:\n    image: a\n    " + says + "\n",
		}), settings())
		if len(plan.Apps) != 1 {
			t.Fatalf("%s: %v", says, plan.Refused)
		}
		a := &plan.Apps[0]
		hash, why := a.ComposeHash(&a.Services[0], ring.Composing{})
		require.Empty(t, hash, says)
		require.Contains(t, why, word, says)
	}
}
