package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"gopkg.in/yaml.v3"
)

// env is a daemon's environment.
func env(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

const smallConfig = `host: edge-1
sources:
  - name: prod
    url: https://git.example.org/acme/infra.git
    trust: {allowed_signers: /etc/gitring/allowed_signers}
`

func TestTheSmallestConfigurationIsCompletedWithTheDefaults(t *testing.T) {
	c, err := Parse("/etc/gitring/config.yaml", []byte(smallConfig), env())
	require.NoError(t, err)
	grace := Duration(72 * time.Hour)
	want := &Config{
		Host: "edge-1", State: "/var/lib/gitring", DataRoot: "/srv/gitring",
		Engine: EngineConfig{Kind: "docker", URL: "unix:///var/run/docker.sock"},
		Listen: Listen{Socket: "/run/gitring/gitring.sock", HTTP: "127.0.0.1:9480"},
		Poll:   "60s", Secrets: SecretsConfig{Dir: "/run/gitring/secrets"},
		Traffic: TrafficConfig{
			Publish: "direct", Labels: []string{"traefik.", "caddy", "sablier."}, Env: []string{"VIRTUAL_", "LETSENCRYPT_"},
			TrustedProxies: []string{"networks"}, Front: FrontConfig{Memory: "256MiB", Connections: 10000},
		},
		Sources: []SourceConfig{{
			Name: "prod", URL: "https://git.example.org/acme/infra.git", Branch: "main", Path: ".", Poll: "60s", Apply: "auto",
			Trust: &TrustRules{Mode: "strict", AllowedSigners: "/etc/gitring/allowed_signers", ExpiryGrace: &grace, MaxRange: 10000},
		}},
	}
	require.Empty(t, cmp.Diff(want, c, cmpopts.IgnoreUnexported(Config{}, SourceConfig{}, Signers{}), cmpopts.IgnoreFields(Config{}, "File", "Rules")))
}

func TestTheWholeConfigurationIsRead(t *testing.T) {
	const sha = "0123456789012345678901234567890123456789"
	c, err := Parse("/etc/gitring/config.yaml", []byte(`
host: edge-1
facts: {tier: edge, rack: 7}
interpolation: {HOSTNAME: edge-1}
registries: {docker_config: docker.json}
state: /state
data_root: /data
engine: {kind: docker, url: unix:///run/podman/podman.sock}
listen: {socket: run/gitring.sock, http: "", url: https://example.org/edge-1/}
poll: 30s
traffic: {publish: front, labels: [traefik.], env: [], trusted_proxies: [gateway, 10.0.0.0/8], front: {memory: 1GiB, connections: 50}}
sources:
  - name: prod
    url: ssh://git@github.com/acme/infra.git
    branch: release/2
    path: hosts/edge-1/
    poll: "*/5 * * * *"
    auth: {ssh_key_file: "${CREDENTIALS_DIRECTORY}/key", known_hosts_file: known_hosts}
    trust: {mode: strict, allowed_signers: signers, openpgp_keys: keys.asc, revoked_keys: revoked, introduction: `+sha+`,
      min_commit: `+sha+`, require_target: true, expiry_grace: 24h, max_range: 50, signers: bindings.yaml, require: {hardware_key: true, approvals: 2},
      signers_in_repo: .gitring/signers, trust_threshold: 2}
    status: {forge: github, token_file: token}
  - name: lab
    url: file:///srv/git/lab.git
    trust: {mode: disabled}
    status: {forge: gitea, token_file: token, api_url: "http://127.0.0.1:3000/api/v1/", repo: acme/lab}
`), env("CREDENTIALS_DIRECTORY", "/run/credentials/gitring"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"tier": "edge", "rack": "7"}, c.Facts)
	require.Equal(t, "/etc/gitring/docker.json", c.Registries.DockerConfig)
	require.Equal(t, Listen{Socket: "/etc/gitring/run/gitring.sock", URL: "https://example.org/edge-1"}, c.Listen)
	require.Equal(t, manifest.Traffic{
		Publish: "front", Labels: []string{"traefik."}, Env: []string{}, Trusted: []string{"gateway", "10.0.0.0/8"}, Memory: 1 << 30, Connections: 50,
	}, SettingsOf(c, c.Source("prod")).Traffic)
	prod, lab := c.Source("prod"), c.Source("lab")
	require.Equal(t, "hosts/edge-1", prod.Path)
	require.Equal(t, "*/5 * * * *", prod.Poll)
	require.Equal(t, AuthConfig{SSHKeyFile: "/run/credentials/gitring/key", KnownHostsFile: "/etc/gitring/known_hosts"}, prod.Auth)
	require.Equal(t, sha, string(prod.Trust.Introduced()))
	require.Equal(t, "/etc/gitring/bindings.yaml", prod.Trust.TrustConfig().SignersFile)
	require.Equal(t, gitsync.Require{HardwareKey: true, Approvals: 2}, prod.Trust.TrustConfig().Require)
	require.Equal(t, ".gitring/signers", prod.Trust.TrustConfig().SignersInRepo)
	require.Equal(t, 2, prod.Trust.TrustConfig().TrustThreshold)
	require.Equal(t, "/etc/gitring/keys.asc", prod.Trust.OpenPGPKeys)
	require.Equal(t, 24*time.Hour, time.Duration(*prod.Trust.ExpiryGrace))
	require.Equal(t, &ForgeStatus{Forge: "github", TokenFile: "/etc/gitring/token", APIURL: "https://api.github.com", Repo: "acme/infra"}, prod.Status)
	require.Equal(t, &ForgeStatus{Forge: "gitea", TokenFile: "/etc/gitring/token", APIURL: "http://127.0.0.1:3000/api/v1", Repo: "acme/lab"}, lab.Status)
	require.Equal(t, "30s", lab.Poll)
	require.Nil(t, c.Source("other"))
}

// Each case is the small configuration with one thing changed; its oracle is
// the whole message, line included.
func TestAMistakeIsToldWithItsLineAndWhatToDo(t *testing.T) {
	cases := []struct{ name, old, new, want, hint string }{
		{"an unknown key at the top", "host: edge-1", "host: edge-1\nsorces: []", `c.yaml:2: unknown key "sorces"`, `did you mean "sources"?`},
		{"an unknown key in a source", "    url:", "    brnch: main\n    url:", `c.yaml:4: unknown key "brnch"`, `did you mean "branch"?`},
		{"an unknown key of trust", "{allowed_signers:", "{allowed_signer:", `c.yaml:5: unknown key "allowed_signer"`, `did you mean "allowed_signers"?`},
		{"a key far from any other", "host: edge-1", "host: edge-1\nzzzzzz: 1", `c.yaml:2: unknown key "zzzzzz"`, "known here: host, "},
		{"a key twice", "host: edge-1", "host: edge-1\nhost: edge-2", `c.yaml:2: key "host" is given twice, first in line 1`, "keep one"},
		{"a key file of no kind", "host: edge-1", "host: edge-1\nsecrets:\n  keys:\n    - {paths: [a/**]}", "c.yaml:4: secrets.keys: one of age_file, ssh_file and openpgp_file names the file of a key", "gitring secret keys --create"},
		{"a key of two files", "host: edge-1", "host: edge-1\nsecrets:\n  keys:\n    - {age_file: /a, ssh_file: /b}", "c.yaml:4: secrets.keys: one of age_file, ssh_file and openpgp_file names the file of a key", "age_file"},
		{"a key of a source that is none", "host: edge-1", "host: edge-1\nsecrets:\n  keys:\n    - {age_file: /a, sources: [prod, dev]}", `c.yaml:4: secrets.keys: there is no source "dev"`, "name a source"},
		{"a key for paths that are none", "host: edge-1", "host: edge-1\nsecrets:\n  keys:\n    - {age_file: /a, paths: [/etc/**]}", `c.yaml:4: secrets.keys: "/etc/**" is no path inside a commit`, "apps/shop/**"},
		{"secrets that rest nowhere", "host: edge-1", "host: edge-1\nsecrets: {at_rest: ram}", `c.yaml:2: secrets.at_rest: "ram" is not known`, "memory or disk"},
		{"secrets inside of the state", "host: edge-1", "host: edge-1\nsecrets: {dir: /var/lib/gitring/secrets}", "c.yaml:2: secrets.dir: /var/lib/gitring/secrets and state share a folder", "memory file system"},
		{"an unknown key of secrets", "host: edge-1", "host: edge-1\nsecrets: {key: []}", `c.yaml:2: unknown key "key"`, `did you mean "keys"?`},
		{"a list for a text", "host: edge-1", "host: [edge-1]", "c.yaml:1: a list where a text belongs", ""},
		{"a text for a mapping", "host: edge-1", "host: edge-1\nfacts: edge", `c.yaml:2: "edge" where a mapping belongs`, ""},
		{"an unknown key of a signer", "trust: {", "trust: {signers: [{signer: a, path: [x]}], ", `c.yaml:5: trust.signers: unknown key "path"`, `did you mean "paths"?`},
		{"an unknown role", "trust: {", "trust: {signers: [{signer: a, roles: [comit]}], ", `c.yaml:5: trust.signers: role "comit" is not known`, `did you mean "commit"?`},
		{"signers that are no list", "trust: {", "trust: {signers: {a: b}, ", "c.yaml:5: trust.signers: neither a list nor the name of a file", ""},
		{"an unknown requirement", "trust: {", "trust: {require: {hardwarekey: true}, ", `c.yaml:5: unknown key "hardwarekey"`, `did you mean "hardware_key"?`},
		{"approvals in mode tip", "trust: {", "trust: {mode: tip, require: {approvals: 2}, ", "c.yaml:5: trust.require.approvals does not go with mode tip, which looks at one signature: set mode: strict or forge-merge", ""},
		{"signers in the repository in mode tip", "trust: {", "trust: {mode: tip, signers_in_repo: .gitring/signers, ", "c.yaml:5: trust.signers_in_repo does not go with mode tip, in which anybody could change them: set mode: strict or forge-merge", ""},
		{"a text for a number", "trust: {", "trust: {max_range: many, ", `c.yaml:5: "many" where a number belongs`, ""},
		{"no yaml", "host: edge-1", "host: [edge-1", "c.yaml:1: did not find expected ',' or ']'", ""},
		{"a second document", "sources:", "---\nsources:", "c.yaml:2: a second document begins here", "one document"},
		{"no host", "host: edge-1", "poll: 60s", "c.yaml:1: host is missing", "never change it"},
		{"a host with capitals", "edge-1", "Edge 1", `c.yaml:1: host: "Edge 1" is no name for a host`, "lower-case"},
		{"a host that ends another's context", "edge-1", "edge/web", `c.yaml:1: host: "edge/web" is no name for a host`, ""},
		{"no trust", "    trust: {allowed_signers: /etc/gitring/allowed_signers}", "", `c.yaml:3: source "prod" has no trust`, "allowed_signers"},
		{"trust that says nothing", "{allowed_signers: /etc/gitring/allowed_signers}", "", `c.yaml:3: source "prod" has no trust`, ""},
		{"an unknown mode", "trust: {", "trust: {mode: stirct, ", `c.yaml:5: trust.mode: "stirct" is not known`, `did you mean "strict"?`},
		{"a short introduction", "trust: {", "trust: {introduction: abc1234, ", `c.yaml:5: trust.introduction: "abc1234" is no full commit id`, "40 digits"},
		{"a short floor", "trust: {", "trust: {min_commit: abc1234, ", `c.yaml:5: trust.min_commit: "abc1234" is no full commit id`, ""},
		{"a grace without a unit", "trust: {", "trust: {expiry_grace: 72, ", `c.yaml:5: "72" is no duration such as 72h or 10m`, ""},
		{"a poll without a unit", "host: edge-1", "host: edge-1\npoll: 60", `c.yaml:2: poll: "60" is neither a duration with its unit nor a cron expression of five fields`, "60s"},
		{"a provider that is asked too often", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [/bin/vault, "{ref}"], refresh: 1m}`, `c.yaml:4: secrets.providers.vault: refresh 1m0s is less than 5m0s`, `5m or longer`},
		{"a provider that may take too long", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [/bin/vault, "{ref}"], timeout: 10m}`, `c.yaml:4: secrets.providers.vault: timeout 10m0s is not between 0 and 5m0s`, `10s`},
		{"a provider that is kept somehow", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [/bin/vault, "{ref}"], keep: yes}`, `c.yaml:4: secrets.providers.vault: keep: "yes" is not known`, `sealed or none`},
		{"a provider by its name", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [vault, "{ref}"]}`, `c.yaml:4: secrets.providers.vault: exec has to begin with the absolute path of a program`, `/usr/local/bin/vault`},
		{"a provider that is not told what", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [/bin/vault, get]}`, `c.yaml:4: secrets.providers.vault: no argument of exec has {ref}`, `{ref}`},
		{"a provider that is chosen by a reference", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: ["/bin/{app}", "{ref}"]}`, `c.yaml:4: secrets.providers.vault: exec has {app}, which is not replaced`, `in arguments`},
		{"a provider with another word", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [/bin/vault, "{ref}", "{user}"]}`, `c.yaml:4: secrets.providers.vault: exec has {user}, which is not replaced`, `{host}`},
		{"a pattern of references that is none", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `vault: {exec: [/bin/vault, "{ref}"], refs: ["secret/[a-z]/*"]}`, `c.yaml:4: secrets.providers.vault: "secret/[a-z]/*" is no pattern of what an app may name`, `secret/{app}/*`},
		{"a provider with a colon", "host: edge-1", "host: edge-1\nsecrets:\n  providers:\n    " + `"va:ult": {exec: [/bin/vault, "{ref}"]}`, `c.yaml:4: secrets.providers: "va:ult" is no name of a provider`, `small letters`},
		{"a poll of less than a second", "host: edge-1", "host: edge-1\npoll: 100ms", "c.yaml:2: poll: 100ms is less than 1s", ""},
		{"a poll with a time zone alone", "host: edge-1", "host: edge-1\npoll: TZ=UTC", `c.yaml:2: poll: "TZ=UTC" names a time zone; times are in UTC`, ""},
		{"a poll that never comes", "    url:", "    poll: 0 0 30 2 *\n    url:", `c.yaml:4: poll: "0 0 30 2 *" never comes`, ""},
		{"a max_age without a unit", "    url:", "    max_age: 30\n    url:", `c.yaml:4: "30" is no duration such as 72h or 10m`, ""},
		{"a max_age of zero", "    url:", "    max_age: 0d\n    url:", `c.yaml:4: max_age: 0s is less than an hour`, "leave it out for never"},
		{"a negative max_age", "    url:", "    max_age: -3d\n    url:", `c.yaml:4: "-3d" is no duration such as 72h or 10m`, ""},
		{"a max_age of half a day in days", "    url:", "    max_age: 0.5d\n    url:", `c.yaml:4: "0.5d" is no duration such as 72h or 10m`, ""},
		{"a max_age of more than a hundred years", "    url:", "    max_age: 36501d\n    url:", `c.yaml:4: "36501d" is no duration such as 72h or 10m`, ""},
		{"a max_age with days twice", "    url:", "    max_age: 1d1d\n    url:", `c.yaml:4: "1d1d" is no duration such as 72h or 10m`, ""},
		{"a max_age of minutes", "    url:", "    max_age: 30m\n    url:", `c.yaml:4: max_age: 30m0s is less than an hour`, "30d"},
		{"no url", "    url: https://git.example.org/acme/infra.git\n", "", `c.yaml:3: source "prod" has no url`, ""},
		{"http to the world", "https://git", "http://git", "c.yaml:4: url: http to git.example.org would send credentials in the clear", "https"},
		{"the git protocol", "https://git", "git://git", "c.yaml:4: url: git is not a way to fetch", ""},
		{"an scp address", "https://git.example.org/acme", "git@git.example.org:acme", `c.yaml:4: url: "git.example.org:acme/infra.git" is no url`, "ssh://git@git.example.org/acme/infra.git"},
		{"a password in the url", "https://git", "https://bot:hunter2@git", "c.yaml:4: url: a password does not belong here", "auth.password_file"},
		{"a relative file url", "https://git.example.org/acme/infra.git", "file://srv/infra.git", `c.yaml:4: url: "file://srv/infra.git" is no absolute path`, "three slashes"},
		{"a path out of the commit", "    url:", "    path: ../other\n    url:", `c.yaml:4: path: "../other" leaves the repository`, ""},
		{"a branch that is a ref", "    url:", "    branch: refs/heads/main\n    url:", `c.yaml:4: branch: "refs/heads/main" is no name of a branch`, ""},
		{"images of no plan", "host: edge-1", "host: edge-1\nprune: {images: {keep: 0}}", "c.yaml:2: prune.images.keep: 0 plans cannot keep their images", "a number from 1 to 10; take prune out to keep every image"},
		{"an unknown apply", "    url:", "    apply: atuo\n    url:", `c.yaml:4: apply: "atuo" is not known`, `did you mean "auto"?`},
		{"a source without a name", "  - name: prod\n    url:", "  - url:", "c.yaml:3: this source has no name", ""},
		{"a source with a path for a name", "name: prod", "name: ../prod", `c.yaml:3: name: "../prod" is no name for a source`, ""},
		{"no sources", smallConfig[strings.Index(smallConfig, "sources"):], "", "c.yaml:1: sources: there is none to follow", ""},
		{"an unset credentials folder", "/etc/gitring/allowed_signers", "\"${CREDENTIALS_DIRECTORY}/s\"", "c.yaml:5: trust.allowed_signers: CREDENTIALS_DIRECTORY is not set", ""},
		{"another variable", "/etc/gitring/allowed_signers", "\"${HOME}/s\"", `c.yaml:5: trust.allowed_signers: only ${CREDENTIALS_DIRECTORY} is expanded in "${HOME}/s"`, ""},
		{"ssh without known hosts", "https://git.example.org/acme/infra.git", "ssh://git@h/acme/infra.git\n    auth: {ssh_key_file: /k}", "c.yaml:5: auth.known_hosts_file is missing: an unknown host is never trusted", "ssh-keyscan h"},
		{"a key for https", "    trust:", "    auth: {ssh_key_file: /k}\n    trust:", "c.yaml:5: auth.ssh_key_file does nothing for this url", ""},
		{"a user without a password", "    trust:", "    auth: {username: bot}\n    trust:", "c.yaml:5: auth.username does nothing without a password_file", ""},
		{"a webhook without a secret", "    trust:", "    webhook: {forge: github}\n    trust:", "c.yaml:5: webhook.secret_file is missing", "urandom"},
		{"a webhook of an unknown forge", "    trust:", "    webhook: {forge: bitbuckt, secret_file: s}\n    trust:", `c.yaml:5: webhook.forge: "bitbuckt" is not known`, `did you mean "bitbucket"?`},
		{"a webhook nobody listens for", "host: edge-1", "host: edge-1\nlisten: {http: \"\"}", "", ""},
		{"a status without a token", "    trust:", "    status: {forge: github}\n    trust:", "c.yaml:5: status.token_file is missing", ""},
		{"a status of a short url", "https://git.example.org/acme/infra.git\n", "https://git.example.org/infra.git\n    status: {forge: gitea, token_file: t}\n", `c.yaml:5: cannot tell the API of the forge from the source's url: set status.api_url`, ""},
		{"an api with a password", "    trust:", "    status: {forge: gitea, token_file: t, api_url: \"https://a:b@h/api\"}\n    trust:", `c.yaml:5: cannot use status.api_url: it holds a user or password, which belongs into token_file`, ""},
		{"an address without a port", "host: edge-1", "host: edge-1\nlisten: {http: localhost}", `c.yaml:2: listen.http: "localhost" is not host:port`, ""},
		{"a listener's url of no web", "host: edge-1", "host: edge-1\nlisten: {url: edge-1.example.org}", `c.yaml:2: listen.url: "edge-1.example.org" is no address of the web`, "https://edge-1.example.org"},
		{"a listener's url with a password", "host: edge-1", "host: edge-1\nlisten: {url: \"https://me:hunter2@edge-1\"}", `c.yaml:2: listen.url: an address without user, query and fragment is wanted; webhooks are authenticated by their secret`, ""},
		{"a listener's url with a secret in the query", "host: edge-1", "host: edge-1\nlisten: {url: \"https://edge-1?hunter2\"}", `c.yaml:2: listen.url: an address without user, query and fragment is wanted; webhooks are authenticated by their secret`, ""},
		{"a listener's url in a folder of a proxy", "host: edge-1", "host: edge-1\nlisten: {url: https://example.org/edge-1/}", "", ""},
		{"an engine of another kind", "host: edge-1", "host: edge-1\nengine: {kind: dokcer}", `c.yaml:2: engine.kind: "dokcer" is not known`, `did you mean "docker"?`},
		{"an engine nowhere", "host: edge-1", "host: edge-1\nengine: {url: /var/run/docker.sock}", `c.yaml:2: engine.url: "/var/run/docker.sock" is no address of an engine`, ""},
		{"the whole machine as data", "    url:", "    apps: {db: {data_root: /}}\n    url:", "c.yaml:4: apps.db.data_root: / is the whole machine", ""},
		{"an app that cannot be", "    url:", "    apps: {../db: {data_root: /x}}\n    url:", `c.yaml:4: apps: "../db" is no name of an app`, ""},
		{"an unknown key of env", "host: edge-1", "host: edge-1\nenv: {dri: /x}", `c.yaml:2: unknown key "dri"`, `did you mean "dir"?`},
		{"ingress, as it was to be called", "host: edge-1", "host: edge-1\ningress: {kind: proxy}", `c.yaml:2: unknown key "ingress"`, "write traffic: {publish: front}"},
		{"an unknown key of traffic", "host: edge-1", "host: edge-1\ntraffic: {puplish: front}", `c.yaml:2: unknown key "puplish"`, `did you mean "publish"?`},
		{"an unknown key of fronts", "host: edge-1", "host: edge-1\ntraffic:\n  front: {mem: 1GiB}", `c.yaml:3: unknown key "mem"`, "memory"},
		{"a default that is neither", "host: edge-1", "host: edge-1\ntraffic:\n  publish: fornt", `c.yaml:3: traffic.publish: "fornt" is neither front nor direct`, `did you mean "front"?`},
		{"a label that begins with nothing", "host: edge-1", "host: edge-1\ntraffic:\n  labels:\n    - traefik.\n    - ''", `c.yaml:5: traffic.labels: "" is no beginning of a label`, "traefik."},
		{"a label by which gitring knows its own", "host: edge-1", "host: edge-1\ntraffic: {labels: [com.docker.]}", `c.yaml:2: traffic.labels: by labels that begin with "com.docker." gitring and Compose know what is theirs`, "take it out"},
		{"a variable of no name", "host: edge-1", "host: edge-1\ntraffic: {env: [VIRTUAL-]}", `c.yaml:2: traffic.env: "VIRTUAL-" is no beginning of a variable's name`, "VIRTUAL_"},
		{"a trusted proxy by its name", "host: edge-1", "host: edge-1\ntraffic: {trusted_proxies: [traefik]}", `c.yaml:2: traffic.trusted_proxies: "traefik" is none of networks, gateway and CIDRs`, "10.0.0.0/8"},
		{"a front's memory without a unit", "host: edge-1", "host: edge-1\ntraffic: {front: {memory: 256}}", `c.yaml:2: traffic.front.memory: "256" is no size`, "256MiB"},
		{"a front with no memory to speak of", "host: edge-1", "host: edge-1\ntraffic: {front: {memory: 8MiB}}", "c.yaml:2: traffic.front.memory: 8MiB is too little to work with, the least is 16MiB", "256MiB"},
		{"a front of no connections", "host: edge-1", "host: edge-1\ntraffic: {front: {connections: 0}}", "c.yaml:2: traffic.front.connections: 0 is no number from 1 to 30000", "10000"},
		{"the whole machine as state", "host: edge-1", "host: edge-1\nstate: /", "c.yaml:2: state: / is the whole machine", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			require.Contains(t, smallConfig, tc.old)
			_, err := Parse("c.yaml", []byte(strings.Replace(smallConfig, tc.old, tc.new, 1)), env())
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			var ms Mistakes
			require.ErrorAs(t, err, &ms)
			require.Equal(t, tc.want, ms[0].Error())
			require.Contains(t, ms[0].Hint, tc.hint)
			require.NotContains(t, ms.Error(), "hunter2")
		})
	}
}

func TestTheEnvironmentOnlySaysWhereThingsAre(t *testing.T) {
	c, err := Parse("c.yaml", []byte(smallConfig), env("HOME", "/root"))
	require.NoError(t, err)
	require.Equal(t, "/root/.docker/config.json", c.Registries.DockerConfig)
	c, err = Parse("c.yaml", []byte(smallConfig), env("HOME", "/root", "DOCKER_CONFIG", "/d"))
	require.NoError(t, err)
	require.Equal(t, "/d/config.json", c.Registries.DockerConfig)

	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte(smallConfig), 0o600))
	t.Setenv("GITRING_SOCKET", "/elsewhere.sock")
	c, err = Load(file)
	require.NoError(t, err)
	require.Equal(t, "/elsewhere.sock", c.Listen.Socket)
}

func TestEveryMistakeIsToldAtOnceByLine(t *testing.T) {
	_, err := Parse("c.yaml", []byte("host: E\nsources:\n  - {name: a, url: git://x}\n  - {name: a, url: file:///x, trust: {mode: disabled}}\nstate: /\n"), env())
	var ms Mistakes
	require.ErrorAs(t, err, &ms)
	var lines []int
	for _, m := range ms {
		lines = append(lines, m.Line)
	}
	require.Equal(t, []int{1, 3, 3, 4, 5}, lines)
}

func TestAMistakeInThePollOfAllIsToldOnce(t *testing.T) {
	_, err := Parse("c.yaml", []byte("poll: 60\n"+smallConfig), env())
	require.EqualError(t, err, `c.yaml:1: poll: "60" is neither a duration with its unit nor a cron expression of five fields`)
}

func TestAWebhookNeedsAListener(t *testing.T) {
	_, err := Parse("c.yaml", []byte("listen: {http: ''}\n"+smallConfig+"    webhook: {forge: github, secret_file: s}\n"), env())
	require.EqualError(t, err, "c.yaml:7: webhook: nothing listens for it, because listen.http is empty")
}

func TestAnEmptyOrEndlessConfigurationIsTold(t *testing.T) {
	_, err := Parse("c.yaml", []byte("# nothing\n"), env())
	require.EqualError(t, err, "c.yaml:1: the configuration is empty")
	big := filepath.Join(t.TempDir(), "big.yaml")
	require.NoError(t, os.WriteFile(big, make([]byte, maxConfig+1), 0o600))
	_, err = Read(big)
	require.ErrorContains(t, err, "is larger than 1 MiB")
	_, err = Read(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorContains(t, err, "cannot read the configuration")
	_, err = Parse("c.yaml", []byte("facts: &a {x: *a}\n"), env())
	require.ErrorContains(t, err, "c.yaml")
}

// referenceSections are the tables of keys in the reference, by heading: what their keys
// are below.
var referenceSections = map[string]string{
	"The host": "", "A source": "sources.", "A source's status": "sources.status.", "Trust": "sources.trust.", "Receivers": "notify.", "Traffic": "traffic.", "Encrypted files": "secrets.", "Providers of secrets": "secrets.providers.*.",
}

// The documentation has a row for every key that a file may have, and for no other.
func TestTheReferenceHasARowForEachKey(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/configuration.md")
	require.NoError(t, err)
	var rows []string
	prefix, counts := "", false
	for line := range strings.Lines(string(page)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			prefix, counts = referenceSections[strings.TrimSpace(heading)]
		}
		counts = counts && !strings.HasPrefix(line, "### ")
		if m := regexp.MustCompile("^\\| `([a-z_.*]+)` \\| [^|]+ \\| ").FindStringSubmatch(line); counts && m != nil {
			rows = append(rows, prefix+m[1])
		}
	}
	known := keysOfType(reflect.TypeFor[Config](), "")
	for _, key := range known {
		require.Contains(t, rows, key)
	}
	for _, row := range rows {
		require.True(t, slices.ContainsFunc(known, func(key string) bool { return key == row || strings.HasPrefix(key, row+".") }), "%s is no key", row)
	}
}

// keysOfType are the keys of a type of the configuration, those of what it holds behind dots.
func keysOfType(of reflect.Type, prefix string) (keys []string) {
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		holds := of.Field(i).Type
		for holds.Kind() == reflect.Pointer || holds.Kind() == reflect.Slice || holds.Kind() == reflect.Map {
			if holds.Kind() == reflect.Map && holds.Elem().Kind() == reflect.Struct {
				key += ".*"
			}
			holds = holds.Elem()
		}
		var below []string
		if holds.Kind() == reflect.Struct && holds.PkgPath() == of.PkgPath() {
			below = keysOfType(holds, prefix+key+".")
		}
		if below == nil {
			below = []string{prefix + key}
		}
		keys = append(keys, below...)
	}
	return keys
}

func TestTheExampleOfTheReferenceIsCarriedOut(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/configuration.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	_, err = Parse("config.yaml", []byte(example), env("CREDENTIALS_DIRECTORY", "/run/credentials"))
	require.NoError(t, err)
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(example), &n))
}

func TestEveryExampleIsCarriedOut(t *testing.T) {
	files, err := filepath.Glob("../deploy-examples/*/config.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	demo := strings.NewReplacer("@ENGINE@", "unix:///var/run/docker.sock", "@DEMO@", "/demo") // as scripts/demo.sh does
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = Parse(file, []byte(demo.Replace(string(body))), env("CREDENTIALS_DIRECTORY", "/run/credentials/gitring.service"))
		require.NoError(t, err)
	}
}

func TestDataRootsAreBySourceAndApp(t *testing.T) {
	more := "    data_root: /mnt/a\n    apps: {db: {data_root: /mnt/b}, web: {data_root: data}}\n"
	c, err := Parse("/etc/gitring/config.yaml", []byte(smallConfig+more), env())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"": "/mnt/a", "db": "/mnt/b", "web": "/etc/gitring/data"}, c.Sources[0].dataRoots())
	require.Equal(t, []string{"/var/lib/gitring", "/srv/gitring", "/etc/gitring/data", "/mnt/a", "/mnt/b"}, c.SamePaths(),
		"each is the same inside and outside of a container")
}
