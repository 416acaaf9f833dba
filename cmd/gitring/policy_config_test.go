package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// withPolicy is the small configuration with a policy in its second line.
func withPolicy(t *testing.T, said string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(smallHost, "host: edge-1", "host: edge-1\n"+said, 1)), 0o600))
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
			c, err := config.Load(withPolicy(t, tt.said, map[string]string{"p.yaml": tt.file}))
			require.NoError(t, err)
			require.Equal(t, tt.want, admission.For(c).Rules.Profile)
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
			_, err := config.Read(withPolicy(t, tt.said, map[string]string{"p.yaml": tt.file}))
			var ms config.Mistakes
			require.ErrorAs(t, err, &ms)
			require.Len(t, ms, 1)
			require.Contains(t, ms[0].Error(), tt.want)
			require.Contains(t, ms[0].Hint, tt.hint)
		})
	}
}

// wholePolicy has every key with the value that profile compose has, as the contract writes it.
const wholePolicy = `version: 1
profile: compose
images: {registries: ["*"], tags: resolve, latest: warn, pull: missing, moving: allow, min_age: 0, signatures: []}
build: deny
privileged: deny
use_api_socket: deny
provider: deny
capabilities:
  add: [NET_BIND_SERVICE, CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, SETFCAP, SYS_CHROOT, AUDIT_WRITE, SYS_NICE]
namespaces: {network: [bridge, none, "service:*"], pid: private, ipc: [private, shareable, none, "service:*"], uts: private, userns: default, cgroup: private}
devices: deny
security_opt: {allow: ["no-new-privileges", "no-new-privileges:true"], profiles: {seccomp: [], apparmor: []}}
sysctls: [net.core.somaxconn, net.ipv4.ip_local_port_range, net.ipv4.ip_unprivileged_port_start, net.ipv4.ping_group_range, net.ipv4.tcp_keepalive_*, net.ipv4.tcp_syncookies, net.ipv4.tcp_tw_reuse, net.ipv4.tcp_fin_timeout, kernel.shm_rmid_forced]
mounts:
  repo_binds: read-only
  bind_roots: ["{data_root}/{path}"]
  always: ["/etc/localtime:ro", "/etc/timezone:ro", "/usr/share/zoneinfo:ro", "/etc/ssl/certs:ro"]
  grant_only: ["**/docker.sock", "**/containerd.sock", "**/podman.sock", "/dev", "/run/dbus", "/run/udev", "/sys", "/proc", "/etc", "/home", "/var/log", "/lib/modules"]
  never: ["/", "/boot", "/root", "/var/lib/docker", "/var/lib/containerd"]
  propagation: [rprivate]
  nested: deny
  links: deny
  volume_drivers: [local]
  driver_opts: []
  external_volumes: own
  volumes_from: same-app
  tmpfs_max: 2GiB
networks: {drivers: [bridge, overlay], external: shared, driver_opts: [com.docker.network.driver.mtu, encrypted], subnets: private}
ports:
  host: ["80-65535"]
  exclusive: true
  deny: [88, 111, 123, 135, 137, 138, 139, 161, 162, 177, 179, 445, 464, 500, 512, 513, 514, 515, 520, 521, 546, 547, 623, 631, 749, 750, 860, 873, 953, 2375, 2376, 2377, 4789, 7946]
logging: [local, json-file, journald, none]
labels: {reserved: ["gitring.", "com.docker.compose."], steering: deny, routes: {}}
interpolation: {env: [], allow_daemon_env: never}
secrets: {in: [file, env, command, labels]}
hooks: {exec: allow, privileged: deny}
traffic: {fronts: allow, internal: allow}
healthcheck: {http_target: own-instance-only, redirects: own-instance-only}
limits: {replicas: 20, stop_grace_max: 10m, oom_score_adj_min: 0, oom_kill_disable: deny, shm_max: 2GiB, pids_max: 0}
destructive: {volumes: never-delete, max_removed_services: 50%, empty_tree: hold}
`

func TestTheWholePolicyWrittenOutIsTheProfile(t *testing.T) {
	c, err := config.Load(withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": wholePolicy}))
	require.NoError(t, err)
	want := policy.ListsOf(policy.Compose)
	got := *c.Rules.Lists
	got.Seccomp, got.AppArmor, got.DriverOpts = nil, nil, nil // empty lists are none
	require.Equal(t, want, got)
	for key := range config.PolicySettings {
		require.Contains(t, keysIn(t, wholePolicy), key, "the whole policy lacks a key")
	}
}

// keysIn are the paths of a YAML document's keys.
func keysIn(t *testing.T, doc string) map[string]bool {
	t.Helper()
	var root map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(doc), &root))
	out := map[string]bool{"limits.services_per_app": true} // its value is that of the source's limits
	var walk func(at string, v any)
	walk = func(at string, v any) {
		out[at] = true
		if m, ok := v.(map[string]any); ok {
			for key, below := range m {
				walk(strings.TrimPrefix(at+"."+key, "."), below)
			}
		}
	}
	walk("", root)
	return out
}

// Each key changes what passes: what the profile refuses passes, or the other way round.
func TestEachKeyOfAPolicyIsCarriedOut(t *testing.T) {
	for _, tt := range []struct{ policy, lines, rest string }{
		{"images: {registries: [ghcr.io]}", "image: nginx", ""},
		{"images: {registries: [docker.io/library]}", "", ""},
		{"images: {tags: require-digest}", "image: nginx:1", ""},
		{"images: {latest: deny}", "image: nginx:latest", ""},
		{"images: {moving: deny}", "image: nginx\n    pull_policy: always", ""},
		{"images: {registries: ['docker.io/library/*']}", "image: acme/web", ""},
		{"images: {signatures: [{match: docker.io, deny: true}]}", "image: nginx", ""},
		{"capabilities: {add: [+NET_ADMIN]}", "cap_add: [NET_ADMIN]", ""},
		{"capabilities: {add: [-CHOWN]}", "cap_add: [CHOWN]", ""},
		{"namespaces: {network: [+host]}", "network_mode: host", ""},
		{"namespaces: {network: [bridge]}", "network_mode: none", ""},
		{"namespaces: {pid: [private, host]}", "pid: host", ""},
		{"namespaces: {ipc: host}", "ipc: host", ""},
		{"namespaces: {uts: host}", "uts: host", ""},
		{"namespaces: {userns: host}", "userns_mode: host", ""},
		{"namespaces: {cgroup: host}", "cgroup: host", ""},
		{"devices: [/dev/dri]", "devices: ['/dev/dri/renderD128:/dev/dri/renderD128']", ""},
		{"devices: [+gpus]", "gpus: all", ""},
		{"security_opt: {allow: [+label:disable]}", "security_opt: ['label:disable']", ""},
		{"security_opt: {profiles: {seccomp: [unconfined]}}", "security_opt: ['seccomp:unconfined']", ""},
		{"security_opt: {profiles: {apparmor: [my-profile]}}", "security_opt: ['apparmor=my-profile']", ""},
		{"sysctls: [+net.ipv4.ip_forward]", "sysctls: {net.ipv4.ip_forward: 1}", ""},
		{"mounts: {bind_roots: [+/mnt/media]}", "volumes: ['/mnt/media/films:/m']", ""},
		{"mounts: {bind_roots: [/mnt/media]}", "volumes: ['./data:/m']", ""},
		{"mounts: {always: ['+/etc/machine-id:ro']}", "volumes: ['/etc/machine-id:/etc/machine-id:ro']", ""},
		{"mounts: {always: ['-/etc/timezone:ro']}", "volumes: ['/etc/timezone:/etc/timezone:ro']", ""},
		{"mounts: {propagation: [+rshared]}", "volumes: [{type: bind, source: ./d, target: /m, bind: {propagation: rshared}}]", ""},
		{"mounts: {volume_drivers: [+rclone]}", "volumes: ['vol:/m']", "volumes: {vol: {driver: rclone}}"},
		{"mounts: {driver_opts: [type=tmpfs, device=tmpfs]}", "volumes: ['vol:/m']", "volumes: {vol: {driver_opts: {type: tmpfs, device: tmpfs}}}"},
		{"mounts: {tmpfs_max: 4GiB}", "tmpfs: ['/t:size=3g']", ""},
		{"mounts: {tmpfs_max: 1MiB}", "tmpfs: ['/t:size=2m']", ""},
		{"networks: {drivers: [+macvlan]}", "networks: [n]", "networks: {n: {driver: macvlan}}"},
		{"networks: {external: [proxy]}", "networks: [n]", "networks: {n: {external: true, name: other}}"},
		{"networks: {driver_opts: [+com.docker.network.bridge.name]}", "networks: [n]", "networks: {n: {driver_opts: {com.docker.network.bridge.name: br1}}}"},
		{"networks: {subnets: [203.0.113.0/24]}", "networks: [n]", "networks: {n: {ipam: {config: [{subnet: 203.0.113.0/25}]}}}"},
		{"ports: {host: [+53/udp]}", "ports: ['53:53/udp']", ""},
		{"ports: {host: [443]}", "ports: ['80:80']", ""},
		{"ports: {deny: [+9000]}", "ports: ['9000:80']", ""},
		{"logging: [+syslog]", "logging: {driver: syslog}", ""},
		{"labels: {reserved: [+internal.]}", "labels: {internal.x: y}", ""},
		{"hooks: {exec: deny}", "post_start: [{command: [x]}]", ""},
		{"limits: {services_per_app: 1}", "init: true", "  db: {image: nginx}"},
		{"limits: {replicas: 1}", "scale: 2", ""},
		{"limits: {stop_grace_max: 1m}", "stop_grace_period: 2m", ""},
		{"limits: {oom_score_adj_min: -100}", "oom_score_adj: -50", ""},
		{"limits: {shm_max: 4GiB}", "shm_size: 3gb", ""},
		{"limits: {pids_max: 100}", "pids_limit: 200", ""},
	} {
		if tt.lines == "" {
			continue
		}
		t.Run(tt.policy, func(t *testing.T) {
			image := wording.When(!strings.HasPrefix(tt.lines, "image:"), "image: nginx\n    ")
			c := commitOf(map[string]string{"web/compose.yaml": "services:\n  web:\n    " + image + tt.lines + "\n" + tt.rest + "\n"})
			_, plain := judgeOfPolicy(t, "").Look(c, onProd)
			_, changed := judgeOfPolicy(t, tt.policy+"\n").Look(c, onProd)
			require.True(t, (len(plain) == 0) != (len(changed) == 0), "%v\n%v", plain, changed)
			for _, r := range append(plain, changed...) {
				require.Equal(t, ring.PolicyDenied, r.Code, r.Says)
			}
		})
	}
}

func TestValuesOfTheHostStandOnlyWhereThePolicyLetsThem(t *testing.T) {
	c := commitOf(map[string]string{"web/compose.yaml": "services: {web: {image: nginx, environment: {A: '${A}'}}}\n"})
	set := onProd
	set.Env, set.EnvKey = map[string]map[string][]byte{"web": {".env": []byte("A=hunter2hunter2\n")}}, []byte("key")
	_, plain := judgeOfPolicy(t, "").Look(c, set)
	require.Empty(t, plain)
	_, refusals := judgeOfPolicy(t, "secrets: {in: [file]}\n").Look(c, set)
	require.Len(t, refusals, 1)
	require.Contains(t, refusals[0].Says, "environment.A")
	require.NotContains(t, refusals[0].Says+refusals[0].Hint, "hunter2")
}

// Wherever a value reaches the engine, a host that wants values in files alone says no, and one
// that names the kind of the place says yes.
func TestAValueOfTheHostIsFoundInEachPlaceThatTheEngineKeeps(t *testing.T) {
	for _, tt := range []struct{ says, key, kind string }{
		{"environment: {K: '$A'}", "environment.K", "env"},
		{"post_start: [{command: [a], environment: {K: '$A'}}]", "post_start.environment.K", "env"},
		{"pre_stop: [{command: [a], environment: {K: '$A'}}]", "pre_stop.environment.K", "env"},
		{"command: [a, '$A']", "command", "command"},
		{"command: 'a $A'", "command", "command"},
		{"command: 'a $TWO'", "command", "command"}, // split into words once it is opened
		{"entrypoint: [a, '$A']", "entrypoint", "command"},
		{"entrypoint: 'a $TWO'", "entrypoint", "command"},
		{"healthcheck: {test: [CMD, a, '$A']}", "healthcheck", "command"},
		{"post_start: [{command: [a, '$A']}]", "post_start", "command"},
		{"pre_stop: [{command: [a, '$A']}]", "pre_stop", "command"},
		{"labels: {k: '$A'}", "labels.k", "labels"},
		{"logging: {driver: local, options: {tag: '$A'}}", "logging.options.tag", "labels"},
	} {
		c := commitOf(map[string]string{"web/compose.yaml": "services: {web: {image: nginx, " + tt.says + "}}\n"})
		set := onProd
		set.Env, set.EnvKey = map[string]map[string][]byte{"web": {".env": []byte("A=hunter2hunter2\nTWO='hunter2 hunter2'\n")}}, []byte("key")
		for _, in := range []string{"file", "file, env", "file, command", "file, labels"} {
			_, refusals := judgeOfPolicy(t, "secrets: {in: ["+in+"]}\n").Look(c, set)
			if strings.HasSuffix(in, tt.kind) {
				require.Empty(t, refusals, "%s in %s", tt.says, in)
				continue
			}
			require.Len(t, refusals, 1, "%s in %s", tt.says, in)
			require.Equal(t, ring.PolicyDenied, refusals[0].Code, tt.says)
			require.Contains(t, refusals[0].Says, tt.key)
			require.NotContains(t, refusals[0].Says+refusals[0].Hint, "hunter2")
		}
	}
}

func TestAMistakeInAListIsToldWithItsLine(t *testing.T) {
	for _, tt := range []struct{ said, want, hint string }{
		{"capabilities: {add: [+NET_ADMIN, CHOWN]}", "some items begin with + or -", "begin each"},
		{"capabilities: {add: [ALL]}", `"ALL" is not known`, "never"},
		{"capabilities: {add: NET_ADMIN}", "no list", "write a list"},
		{"capabilities: {ad: [NET_ADMIN]}", `unknown key "ad"`, "add"},
		{"capabilities: {add: [-NET_ADMIN]}", `"NET_ADMIN" is not in the list`, "the list has"},
		{"capabilities: {add: [CHOWN, CHOWN]}", `"CHOWN" is given twice`, "keep one"},
		{"devices: [/dev/sda]", `"/dev/sda" is not known`, "by a grant"},
		{"devices: [+/dev]", `"/dev" is not known`, "by a grant"},
		{"devices: [+/dev/dri/../mem]", "is not known", "by a grant"},
		{"devices: allow", `"allow" is not known`, "write deny, or a list"},
		{"mounts: {bind_roots: [/]}", `"/" is not known`, "such as /mnt/media"},
		{"mounts: {bind_roots: [mnt]}", `"mnt" is not known`, "absolute"},
		{"mounts: {bind_roots: [/mnt/../etc]}", "is not known", "absolute"},
		{"mounts: {bind_roots: [+/var/lib/docker/volumes]}", "is closed by /var/lib/docker in mounts.never", "never: [-/var/lib/docker]"},
		{"mounts: {bind_roots: [+/root/data]}", "gives root on this host to every app", "danger: root-equivalent"},
		{"mounts: {bind_roots: [+/etc]}", "/etc gives root on this host to every app", "danger: root-equivalent"},
		{"mounts: {bind_roots: [+/etc/cron.d]}", "/etc/cron.d gives root on this host to every app", "danger: root-equivalent"},
		{"mounts: {bind_roots: [+/var]}", "/var gives root on this host to every app", "danger: root-equivalent"},
		{"mounts: {bind_roots: [+/var/lib]}", "/var/lib gives root on this host to every app", "such as /mnt/media"},
		{"mounts: {bind_roots: [+/usr/local]}", "/usr/local gives root on this host to every app", "danger: root-equivalent"},
		{"mounts: {bind_roots: [+/run]}", "/run gives root on this host to every app", "danger: root-equivalent"},
		{"mounts: {bind_roots: [+/var/lib/gitring]}", "daemon's own", "another folder"},
		{"mounts: {always: [/etc/hosts]}", "is not known", ":ro"},
		{"mounts: {links: allow}", `"allow" is not carried out`, "write deny"},
		{"mounts: {tmpfs_max: 2g}", "is no size", "512MiB"},
		{"privileged: allow", `"allow" is not carried out`, "gitring policy suggest"},
		{"namespaces: {pid: container}", `"container" is not known`, "private"},
		{"ports: {host: [0-80]}", `"0-80" is not known`, "1024-65535"},
		{"ports: {exclusive: false}", "is not carried out", "write true"},
		{"labels: {reserved: [mine.]}", "gitring. is always reserved", "begin each item with +"},
		{"labels: {steering: allow}", "is not carried out", "deny"},
		{"images: {registries: ['ghcr.io*']}", "is not known", "ghcr.io/our-team/*"},
		{"images: {registries: [docker.io/nginx]}", "is not known", "docker.io/library/nginx"},
		{"images: {registries: [ghcr.io/Acme]}", "is not known", "lower case"},
		{"images: {signatures: [x]}", "no mapping", ""},
		{"images: {tags: latest}", "is not known", "require-digest"},
		{"networks: {subnets: [here]}", `"here" is not known`, "10.90.0.0/16"},
		{"limits: {stop_grace_max: long}", "is no time", "10m"},
		{"destructive: {volumes: delete}", "is not carried out", "never-delete"},
		{"sysctls: {a: b}", "no list", ""},
		{"secrets: {in: [files]}", `"files" is not known`, "file"},
	} {
		t.Run(tt.said, func(t *testing.T) {
			_, err := config.Read(withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\n\n" + tt.said + "\n"}))
			var ms config.Mistakes
			require.ErrorAs(t, err, &ms)
			require.Len(t, ms, 1, "%v", ms)
			require.Equal(t, 3, ms[0].Line)
			require.Contains(t, ms[0].File, "p.yaml")
			require.Contains(t, ms[0].Says, tt.want)
			require.Contains(t, ms[0].Hint, tt.hint)
		})
	}
}

func TestAFolderOfTheHostMayBeSharedAndNothingBesideIt(t *testing.T) {
	const media = "mounts: {bind_roots: [+/mnt/media]}\n"
	for _, tt := range []struct{ name, policy, lines string }{
		{"the folder above", media, "volumes: ['/mnt:/m']"},
		{"a folder whose name begins so", media, "volumes: ['/mnt/media2:/m']"},
		{"a way out by dots", media, "volumes: ['/mnt/media/../x:/m']"},
		{"a socket in it", media, "volumes: ['/mnt/media/docker.sock:/m']"},
		{"what is never granted, below it", "mounts: {bind_roots: [+/mnt/media], never: [+/mnt/media/keys]}\n", "volumes: ['/mnt/media/keys:/m']"},
		{"a folder that holds what is never granted", "mounts: {bind_roots: [+/mnt/media], never: [+/mnt/media/a/keys]}\n", "volumes: ['/mnt/media/a:/m']"},
		{"the root itself, where it holds that", "mounts: {bind_roots: [+/mnt/media], never: [+/mnt/media/keys]}\n", "volumes: ['/mnt/media:/m']"},
		{"what needs a grant, below it", "mounts: {bind_roots: [+/home/ann]}\n", "volumes: ['/home/ann/docker.sock:/m']"},
		{"shared mounts", media, "volumes: ['/mnt/media:/m:rshared']"},
		{"a folder inside one that is written", media, "volumes: ['/mnt/media:/m', '/mnt/media/x:/elsewhere']"},
		{"the daemon's own, among what all may read", "mounts: {always: ['+/etc:ro']}\n", "volumes: ['/etc/gitring:/m:ro']"},
		{"a folder that holds it, among what all may read", "mounts: {always: ['+/etc:ro']}\n", "volumes: ['/etc:/m:ro']"},
		{"what is never granted, among what all may read", "mounts: {always: ['+/var/lib:ro']}\n", "volumes: ['/var/lib/docker:/m:ro']"},
		{"the volumes of all apps beside them", "mounts: {bind_roots: [+/var/lib/containers]}\n", "volumes: ['/var/lib/containers/storage/volumes:/m']"},
		{"a volume's options", media, "volumes: ['vol:/m']"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := webWith(tt.lines)
			if strings.Contains(tt.lines, "vol:/m'") {
				files["web/compose.yaml"] += "volumes: {vol: {driver_opts: {type: none, o: bind, device: /mnt/media}}}\n"
			}
			_, refusals := judgeOfPolicy(t, tt.policy).Look(commitOf(files), onProd)
			require.NotEmpty(t, refusals)
		})
	}
}

// No list lets a volume's options reach what nobody gets.
func TestOptionsThatPassReachNothingOfTheDaemons(t *testing.T) {
	for _, device := range []string{"/var/lib/gitring", "/", "/var/lib/docker"} {
		files := webWith("volumes: ['vol:/m']")
		files["web/compose.yaml"] += "volumes: {vol: {driver_opts: {type: none, o: bind, device: " + device + "}}}\n"
		_, refusals := judgeOfPolicy(t, "mounts: {driver_opts: [type=none, o=bind, 'device="+device+"']}\n").Look(commitOf(files), onProd)
		require.NotEmpty(t, refusals, device)
	}
}
