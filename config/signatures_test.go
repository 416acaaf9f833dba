package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// keysHere are public keys made for tests alone.
var keysHere = map[string]string{
	"a.pub": `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`,
	"b.pub": `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
`,
	"private.pem": "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n",
	"empty.pub":   "\n",
	"text.pub":    "ssh-ed25519 AAAA\n",
	"cut.pub":     "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n",
	"after.pub":   "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\nand more\n",
}

// withSignatures reads a configuration whose policy has these lines below images.signatures.
func withSignatures(t *testing.T, lines ...string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range keysHere {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	body := "host: edge-1\npolicy:\n  images:\n    signatures:\n      - " + strings.Join(lines, "\n      - ") +
		"\nsources:\n  - {name: prod, url: https://git.example.org/a.git, trust: {mode: disabled}}\n"
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	return Read(file)
}

func TestTheRulesOfSignaturesAreRead(t *testing.T) {
	c, err := withSignatures(
		t, `{match: "ghcr.io/acme/**", keys: [a.pub, b.pub], threshold: 2}`, `{match: quay.io/acme, keys: [b.pub]}`,
		`{match: "docker.io/library/**", none: "official images"}`, `{match: "**", deny: true}`)
	require.NoError(t, err)
	rules := c.Rules.Lists.Signatures
	require.Len(t, rules, 4)
	require.Len(t, rules[0].Keys, 2)
	require.Equal(t, 2, rules[0].Threshold)
	require.Equal(t, 1, rules[1].Threshold)
	require.Equal(t, "official images", rules[2].None)
	require.True(t, rules[3].Deny)
	require.Equal(t, "config.yaml:5", rules[0].At)
	require.Len(t, c.Rules.SignatureFiles, 3)

	again, err := withSignatures(t, `{match: "ghcr.io/acme/**", keys: [b.pub, a.pub], threshold: 2}`)
	require.NoError(t, err)
	require.Equal(t, rules[0].Hash(), again.Rules.Lists.Signatures[0].Hash(), "the order of keys says nothing")
}

func TestAMistakeInTheRulesOfSignaturesIsToldWithItsLine(t *testing.T) {
	for _, tt := range []struct{ name, rule, want string }{
		{"no mapping", `ghcr.io/acme`, "no mapping"},
		{"an unknown key", `{match: "**", key: [a.pub], deny: true}`, `unknown key "key"`},
		{"no match", `{deny: true}`, "a rule has no match"},
		{"a match without its registry", `{match: "acme/**", deny: true}`, "is no pattern of repositories"},
		{"a match with a tag", `{match: "ghcr.io/acme/web@sha256:ab", deny: true}`, "is no pattern of repositories"},
		{"a host that goes on", `{match: "ghcr.io*", deny: true}`, "is no pattern of repositories"},
		{"a host that goes on, below", `{match: "ghcr.io*/acme/**", deny: true}`, "is no pattern of repositories"},
		{"every host", `{match: "*/acme/**", deny: true}`, "is no pattern of repositories"},
		{"two asterisks in a part", `{match: "ghcr.io/acme**", deny: true}`, "is no pattern of repositories"},
		{"a match that no image has, of a tag", `{match: "ghcr.io/acme/web:1.27", deny: true}`, "is no pattern of repositories"},
		{"a match that no image has, in capitals", `{match: "ghcr.io/Acme/**", deny: true}`, "is no pattern of repositories"},
		{"a match that no image has, of an official image", `{match: docker.io/nginx, deny: true}`, "is no pattern of repositories"},
		{"a match that no image has, of all official ones", `{match: "docker.io/*", deny: true}`, "is no pattern of repositories"},
		{"a match that no image has, by another name of the registry", `{match: Index.Docker.io/nginx, deny: true}`, "is no pattern of repositories"},
		{"a match behind one that has the same images", `{match: "docker.io/acme/**", deny: true}`, `never counts, because "docker.io" (config.yaml:5)`},
		{"the same, by another name of the registry", `{match: "Index.docker.io/library/nginx", deny: true}`, `never counts, because "docker.io" (config.yaml:5)`},
		{"nothing asked", `{match: "**"}`, "has 0 of keys, exec, none and deny"},
		{"two things asked", `{match: "**", keys: [a.pub], deny: true}`, "has 2 of keys, exec, none and deny"},
		{"no reason", `{match: "**", none: ""}`, "has no reason"},
		{"no reason but true", `{match: "**", none: true}`, "has no reason"},
		{"deny false", `{match: "**", deny: false}`, `deny: "false" is not known`},
		{"no keys", `{match: "**", keys: []}`, "is no list of files"},
		{"no file", `{match: "**", keys: [none.pub]}`, "no such file or directory"},
		{"a private key", `{match: "**", keys: [private.pem]}`, "holds a private key"},
		{"an empty file", `{match: "**", keys: [empty.pub]}`, "holds no public key"},
		{"another form", `{match: "**", keys: [text.pub]}`, "holds no public key"},
		{"text behind the key", `{match: "**", keys: [after.pub]}`, "holds no public key"},
		{"a cut key", `{match: "**", keys: [cut.pub]}`, "cannot be read"},
		{"one key twice", `{match: "**", keys: [a.pub, a.pub]}`, "was listed before"},
		{"too many wanted", `{match: "**", keys: [a.pub], threshold: 2}`, "is not from 1 to 1"},
		{"none wanted", `{match: "**", keys: [a.pub], threshold: 0}`, "is not from 1 to 1"},
		{"no program", `{match: "**", exec: []}`, "is no list of a program"},
		{"a program by its name", `{match: "**", exec: [cosign, "{image}"]}`, "is no absolute path"},
		{"a program by dots", `{match: "**", exec: [/usr/../bin/cosign, "{image}"]}`, "is no absolute path"},
		{"a program that judges nothing", `{match: "**", exec: [/bin/true]}`, "does not say {image}"},
		{"a long time", `{match: "**", exec: [/bin/true, "{image}"], timeout: 1h}`, "is no time from 1s to 5m"},
		{"a threshold without keys", `{match: "**", deny: true, threshold: 1}`, "threshold is for keys alone"},
		{"a time without a program", `{match: "**", deny: true, timeout: 3s}`, "timeout is for exec alone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := withSignatures(t, `{match: docker.io, none: "a rule before it"}`, tt.rule)
			var ms Mistakes
			require.ErrorAs(t, err, &ms)
			require.Len(t, ms, 1)
			require.Contains(t, ms[0].Says, tt.want)
			require.Equal(t, 6, ms[0].Line)
			require.NotEmpty(t, ms[0].Hint)
		})
	}
	_, err := withSignatures(t, `{match: docker.io, deny: true}`, `{match: docker.io, deny: true}`)
	require.ErrorContains(t, err, "is given twice")
}
