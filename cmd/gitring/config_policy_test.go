package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
)

// withPolicy is the small configuration with a policy in its second line.
func withPolicy(t *testing.T, said string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(smallConfig, "host: edge-1", "host: edge-1\n"+said, 1)), 0o600))
	return file
}

func TestAPolicyIsAProfileInPlaceOrInAFile(t *testing.T) {
	for _, tt := range []struct {
		name, said, file string
		want             policy.Profile
	}{
		{name: "nothing is compose", said: "poll: 60s", want: policy.Compose},
		{name: "an empty one is compose", said: "policy:", want: policy.Compose},
		{name: "compose", said: "policy: {profile: compose}", want: policy.Compose},
		{name: "owner", said: "policy: {profile: owner}", want: policy.Owner},
		{name: "with its version", said: "policy: {version: 1, profile: owner}", want: policy.Owner},
		{name: "in a file beside it", said: "policy: p.yaml", file: "version: 1\nprofile: owner\n", want: policy.Owner},
		{name: "a file without a profile", said: "policy: p.yaml", file: "version: 1\n", want: policy.Compose},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := LoadConfig(withPolicy(t, tt.said, map[string]string{"p.yaml": tt.file}))
			require.NoError(t, err)
			require.Equal(t, tt.want, judgeOf(c).rules.Profile)
		})
	}
}

func TestAMistakeInAPolicyIsToldWithItsLine(t *testing.T) {
	for _, tt := range []struct{ name, said, file, want, hint string }{
		{"an unknown profile", "policy: {profile: onwer}", "", `config.yaml:2: policy.profile: "onwer" is not known`, `did you mean "owner"?`},
		{"an unknown key", "policy: {profil: owner}", "", `config.yaml:2: unknown key "profil"`, `did you mean "profile"?`},
		{"a key twice", "policy:\n  profile: owner\n  profile: compose", "", `config.yaml:4: key "profile" is given twice, first in line 3`, "keep one"},
		{"another version", "policy: {version: 2}", "", `config.yaml:2: version: "2" is not known`, "version: 1"},
		{"a list", "policy: [owner]", "", "config.yaml:2: policy: neither a mapping nor the name of a file", "{profile: owner}"},
		{"a number", "policy: 1", "", "config.yaml:2: policy: neither a mapping nor the name of a file", ""},
		{"no file", "policy: none.yaml", "", "none.yaml: no such file or directory", "{profile: compose}"},
		{"an unknown key in the file", "policy: p.yaml", "version: 1\nprofle: owner\n", `p.yaml:2: unknown key "profle"`, `did you mean "profile"?`},
		{"a file without a version", "policy: p.yaml", "profile: owner\n", "p.yaml:1: version is missing", "version: 1"},
		{"a file that is no mapping", "policy: p.yaml", "- owner\n", "p.yaml:1: no mapping, which a policy is", ""},
		{"a file that is no YAML", "policy: p.yaml", "profile: {\n", "p.yaml:", ""},
		{"an app without its folder", "policy: {apps: [{name: web, source: prod}]}", "", "config.yaml:2: policy.apps: an item needs name, source and path", "apps/shop"},
		{"an app of no source", "policy: {apps: [{name: web, source: prd, path: web}]}", "", `config.yaml:2: policy.apps: there is no source "prd"`, `did you mean "prod"?`},
		{"an app outside", "policy: {apps: [{name: web, source: prod, path: ../web}]}", "", "leaves the repository", ""},
		{"an app twice", "policy: {apps: [{name: web, source: prod, path: web}, {name: web, source: prod, path: b}]}", "", `app "web" is given twice`, "keep one"},
		{"an unknown key of an app", "policy: {apps: [{name: web, source: prod, path: web, pth: b}]}", "", `unknown key "pth"`, `did you mean "path"?`},
		{"apps that are no list", "policy: {apps: {name: web}}", "", "policy.apps: no list", "apps/shop"},
		{"routes that are no mapping", "policy: {labels: {routes: [a.example.org]}}", "", "policy.labels.routes: no mapping", "shop"},
		{"a route that is an address", "policy: {labels: {routes: {shop: ['https://a.example.org']}}}", "", "is no host name", "shop"},
		{"an unknown key of labels", "policy: {labels: {route: {}}}", "", `unknown key "route"`, `did you mean "routes"?`},
		{"an empty file", "policy: p.yaml", "", "p.yaml:1: no mapping", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadConfig(withPolicy(t, tt.said, map[string]string{"p.yaml": tt.file}))
			var ms Mistakes
			require.ErrorAs(t, err, &ms)
			require.Len(t, ms, 1)
			require.Contains(t, ms[0].Error(), tt.want)
			require.Contains(t, ms[0].Hint, tt.hint)
		})
	}
}

func TestWhatAPolicyMaySayLaterEndsServeWithItsLine(t *testing.T) {
	const whole = `version: 1
profile: hardened
images: {registries: ["*"]}
capabilities:
  add: [NET_ADMIN]
apps:
  - {name: web, source: prod, path: web, grants: []}
`
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": whole})
	_, err := LoadConfig(file)
	var ms Mistakes
	require.ErrorAs(t, err, &ms)
	for i, want := range []string{"p.yaml:2: policy.profile: hardened", "p.yaml:3: policy.images", "p.yaml:4: policy.capabilities", "p.yaml:7: policy.apps.grants"} {
		require.Contains(t, ms[i].Error(), want+" is not carried out by this release")
	}
	require.Len(t, ms, 4)
	c, err := ReadConfig(file)
	require.NoError(t, err, "only serve minds")
	require.Equal(t, policy.Compose, judgeOf(c).rules.Profile, "what is not carried out widens nothing")
}
