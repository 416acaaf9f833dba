package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// judgeOfPolicy is the judge of a host whose configuration has this policy, as serve reads it.
func judgeOfPolicy(t *testing.T, policy string) admission.Judge {
	t.Helper()
	c, err := config.Load(withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\n" + policy}))
	require.NoError(t, err)
	j := admission.For(c)
	j.Rules.EngineGroups, j.Runtimes = []string{"998"}, nil
	return j
}

// commitOf is a commit of files in memory.
func commitOf(files map[string]string) *ring.Commit {
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
}

var onProd = manifest.Settings{Source: "prod", Host: "edge-1"}

// reasoned is a suggestion as a person puts it into the policy.
func reasoned(s *admission.Suggestion) string {
	return s.Yaml(nil, func(*admission.SuggestedGrant) string { return "measured" })
}

// without is a suggestion with one grant less.
func without(s *admission.Suggestion, app, grant int) *admission.Suggestion {
	out := admission.Suggestion{}
	for i, a := range s.Apps {
		if i == app {
			a.Grants = append(append([]admission.SuggestedGrant{}, a.Grants[:grant]...), a.Grants[grant+1:]...)
		}
		if len(a.Grants) > 0 {
			out.Apps = append(out.Apps, a)
		}
	}
	return &out
}

// passesWithExactly holds a suggestion to what it promises: with it, written to a policy
// file and read again, nothing that it names is refused, and without any one of it something is.
func passesWithExactly(t *testing.T, c *ring.Commit, set manifest.Settings, s *admission.Suggestion) {
	t.Helper()
	_, refusals := judgeOfPolicy(t, reasoned(s)).Look(c, set)
	stay := map[string]bool{}
	for _, r := range s.Refused {
		stay[r.App] = true
	}
	for _, r := range refusals {
		require.True(t, stay[r.App], "%s is refused with what is suggested: %s", r.App, r.Says)
	}
	require.GreaterOrEqual(t, len(refusals), len(s.Refused))
	for i := range s.Apps {
		require.False(t, stay[s.Apps[i].Name], "a grant that changes nothing")
	}
	for i := range s.Apps {
		for k, g := range s.Apps[i].Grants {
			_, less := judgeOfPolicy(t, reasoned(without(s, i, k))).Look(c, set)
			require.Greater(t, len(less), len(refusals), "%s passes without %s %s", s.Apps[i].Name, g.Feature, g.Value)
			require.NotEmpty(t, g.File)
			require.NotEmpty(t, g.Risk)
		}
	}
}

func TestEachRefusalPassesWithWhatSuggestPrintsAndFailsWithoutAnyOfIt(t *testing.T) {
	passed := 0
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			c := commitOf(v.commit())
			if _, refusals := judgeOfPolicy(t, "").Look(c, onProd); len(refusals) == 0 {
				return // that it is refused is another test's to say
			}
			s := judgeOfPolicy(t, "profile: compose\n").Suggest(c, onProd)
			require.True(t, s.Grants() > 0 || len(s.Refused) > 0, "it is refused, and nothing says why")
			require.NotContains(t, s.Yaml(nil, admission.EmptyReason), "hunter2")
			passesWithExactly(t, c, onProd, &s)
			switch {
			case v.owner == denied || v.owner == refused:
				require.NotEmpty(t, s.Refused, "no profile carries it out, and a grant does")
			case len(s.Refused) == 0:
				passed++
			default: // only what is never granted, or what belongs to others
				for _, r := range s.Refused {
					require.Regexp(t, "mounts.never|no grant covers it", r.Hint, r.Says)
				}
			}
		})
	}
	require.Greater(t, passed, 70, "hardly anything can be granted")
}

// What is refused all the same gets nothing, and is told; what waits for nobody gets its own.
func TestNoGrantIsSuggestedThatWouldChangeNothing(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "prod")
	for app, lines := range map[string]string{
		"good":   "cap_add: [NET_ADMIN]",
		"asks":   "cap_add: [NET_ADMIN]\n    command: ${NOT_SET}",
		"docker": "privileged: true\n    cap_add: [NET_ADMIN]\n    volumes: ['/var/lib/docker:/d']",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(repo, app), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(repo, app, "compose.yaml"), []byte("services:\n  web:\n    image: nginx\n    "+lines+"\n"), 0o600))
	}
	code, out, _ := callVerb("policy", "suggest", repo, "-o", "json")
	require.Equal(t, exit.Refused, code)
	var s struct {
		Apps []struct {
			Name   string
			Grants []struct{ Value string }
		}
		Refused []struct {
			App string
		}
		Stays []struct {
			Name, Path string
			Grants     int
		} `json:"stays_refused"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &s), out)
	require.Len(t, s.Apps, 1, out)
	require.Equal(t, "good", s.Apps[0].Name)
	require.Len(t, s.Stays, 2, out)
	for i, want := range []string{"asks", "docker"} {
		require.Equal(t, want, s.Stays[i].Name)
		require.Equal(t, i+1, s.Stays[i].Grants)
		require.True(t, slices.ContainsFunc(s.Refused, func(r struct{ App string }) bool { return r.App == want }), "nothing says why")
	}
	_, out, _ = callVerb("policy", "suggest", repo)
	require.Contains(t, out, "# docker lacks 2 grants and stays refused with them")
	require.NotContains(t, out, `name: "docker"`)
}

func TestStacksOfTheCorpusPassWithWhatSuggestPrints(t *testing.T) {
	for _, name := range escapes {
		tree, err := gitsync.OpenFolder(filepath.Join(corpusDir, name))
		require.NoError(t, err)
		defer tree.Close()
		c, set := &ring.Commit{Tree: tree}, manifest.Settings{Source: "prod", Path: ".", Host: "edge-1"}
		s := judgeOfPolicy(t, "").Suggest(c, set)
		passesWithExactly(t, c, set, &s)
		for _, r := range s.Refused {
			require.Contains(t, r.Hint, "mounts.never", "%s: %s", name, r.Says)
		}
	}
}

// grantOf is a policy with one grant.
func grantOf(app, source, path, grant string) string {
	return fmt.Sprintf("apps: [{name: %s, source: %s, path: %s, grants: [{%s, reason: test}]}]\n", app, source, path, grant)
}

// web is a commit with one service of these lines.
func webWith(lines string) map[string]string {
	return map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx\n    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n"}
}

func TestAGrantLetsThatOneThingPass(t *testing.T) {
	for _, tt := range []struct{ name, grant, lines string }{
		{"a capability", "feature: capabilities.add, value: NET_ADMIN, service: web", "cap_add: [NET_ADMIN]"},
		{"by its long name", "feature: capabilities.add, value: CAP_NET_ADMIN", "cap_add: [cap_net_admin]"},
		{"a socket to read, by the older name of /run", "feature: mounts.bind, value: '/var/run/docker.sock:ro', danger: root-equivalent", "volumes: ['/run/docker.sock:/s:ro']"},
		{"who may write may read", "feature: mounts.bind, value: /mnt/media", "volumes: ['/mnt/media:/m:ro']"},
		{"a path with a slash behind it", "feature: mounts.bind, value: /mnt/media", "volumes: ['/mnt/media/:/m']"},
		{"a port with its protocol", "feature: ports.host, value: 53/udp", "ports: ['53:53/udp']"},
		{"a port", "feature: ports.host, value: 22", "ports: ['22:22']"},
		{"a device", "feature: devices, value: /dev/ttyUSB0", "devices: ['/dev/ttyUSB0:/dev/ttyUSB0']"},
		{"graphics cards", "feature: devices, value: gpus", "gpus: all"},
		{"until the end of a day", "feature: devices, value: gpus, expires: 2999-12-31", "gpus: all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, refusals := judgeOfPolicy(t, grantOf("web", "prod", "web", tt.grant)).Look(commitOf(webWith(tt.lines)), onProd)
			require.Empty(t, refusals)
			app, ok := plan.App("web")
			require.True(t, ok)
			require.NotEmpty(t, app.Powers, "what is granted is told as a power")
		})
	}
}

// A grant for one thing opens no other.
func TestAGrantOpensNothingElse(t *testing.T) {
	const media = "feature: mounts.bind, value: /mnt/media"
	for _, tt := range []struct {
		name, app, source, path, grant, lines string
	}{
		{name: "the folder above", grant: media, lines: "volumes: ['/mnt:/m']"},
		{name: "a folder below", grant: media, lines: "volumes: ['/mnt/media/films:/m']"},
		{name: "a folder whose name begins so", grant: media, lines: "volumes: ['/mnt/media2:/m']"},
		{name: "a folder in other letters", grant: media, lines: "volumes: ['/mnt/Media:/m']"},
		{name: "a folder whose name ends like the grant", grant: "feature: mounts.bind, value: '/mnt/media:ro'", lines: "volumes: [{type: bind, source: '/mnt/media:ro', target: /m}]"},
		{name: "a way out by dots", grant: media, lines: "volumes: ['/mnt/media/../secret:/m']"},
		{name: "a way to the host by dots", grant: media, lines: "volumes: ['/mnt/media/../..:/m']"},
		{name: "the folder below, by dots", grant: media, lines: "volumes: ['/mnt/media/x/../y:/m']"},
		{name: "to write, where reading is granted", grant: "feature: mounts.bind, value: '/mnt/media:ro'", lines: "volumes: ['/mnt/media:/m']"},
		{name: "to relabel, where reading is granted", grant: "feature: mounts.bind, value: '/mnt/media:ro'", lines: "volumes: ['/mnt/media:/m:ro,z']"},
		{name: "shared mounts of a granted path", grant: media, lines: "volumes: ['/mnt/media:/m:rshared']"},
		{name: "the same path as a volume's device", grant: media, lines: "volumes: ['d:/m']\nx-v: 1"},
		{name: "the same path as a device", grant: "feature: mounts.bind, value: /dev/ttyUSB0", lines: "devices: [/dev/ttyUSB0]"},
		{name: "another device", grant: "feature: devices, value: /dev/ttyUSB0", lines: "devices: [/dev/ttyUSB1]"},
		{name: "a folder of devices", grant: "feature: devices, value: /dev/ttyUSB0", lines: "devices: [/dev]"},
		{name: "another capability", grant: "feature: capabilities.add, value: NET_ADMIN", lines: "cap_add: [NET_RAW]"},
		{name: "all capabilities", grant: "feature: capabilities.add, value: NET_ADMIN", lines: "cap_add: [ALL]"},
		{name: "one more capability", grant: "feature: capabilities.add, value: NET_ADMIN", lines: "cap_add: [NET_ADMIN, SYS_TIME]"},
		{name: "everything", grant: "feature: capabilities.add, value: SYS_ADMIN, danger: root-equivalent", lines: "privileged: true"},
		{name: "a hook with everything", grant: "feature: privileged, value: true, danger: root-equivalent", lines: "post_start: [{command: [x], privileged: true}]"},
		{name: "another protocol", grant: "feature: ports.host, value: 53/udp", lines: "ports: ['53:53/tcp']"},
		{name: "another port", grant: "feature: ports.host, value: 53/udp", lines: "ports: ['54:54/udp']"},
		{name: "a range of ports", grant: "feature: ports.host, value: 53/udp", lines: "ports: ['53-54:53-54/udp']"},
		{name: "the host's processes for its network", grant: "feature: namespaces.network, value: host", lines: "pid: host"},
		{name: "another service", grant: "feature: capabilities.add, value: NET_ADMIN, service: vpn", lines: "cap_add: [NET_ADMIN]"},
		{name: "another app", app: "shop", path: "shop", grant: "feature: capabilities.add, value: NET_ADMIN", lines: "cap_add: [NET_ADMIN]"},
		{name: "an app of that name in another folder", path: "other/web", grant: "feature: capabilities.add, value: NET_ADMIN", lines: "cap_add: [NET_ADMIN]"},
		{name: "an app of that name and folder of another source", source: "dev", grant: "feature: capabilities.add, value: NET_ADMIN", lines: "cap_add: [NET_ADMIN]"},
		{name: "an expired grant", grant: "feature: capabilities.add, value: NET_ADMIN, expires: 2020-01-01", lines: "cap_add: [NET_ADMIN]"},
		{name: "another profile of seccomp", grant: "feature: security_opt, value: 'seccomp=sha256:aa', danger: root-equivalent", lines: "security_opt: ['seccomp=unconfined']"},
		{name: "another option", grant: "feature: security_opt, value: 'apparmor=unconfined'", lines: "security_opt: ['seccomp=unconfined']"},
		{name: "the daemon's own", grant: media, lines: "volumes: ['/var/lib/gitring:/m']"},
		{name: "the engine's folder", grant: media, lines: "volumes: ['/var/lib/docker:/m']"},
		{name: "reserved labels", grant: "feature: labels.steering, value: gitring.app, danger: root-equivalent", lines: "labels: {gitring.app: x}"},
		{name: "another job of a runner", grant: "feature: labels.steering, value: ofelia.job-run.a.command, danger: root-equivalent", lines: "labels: {ofelia.job-run.b.command: x}"},
		{name: "a mount in the kernel's folders", grant: media, lines: "volumes: ['/mnt/media:/proc/self']"},
		{name: "the place of a program", grant: media, lines: "volumes: ['/proc/1/root:/m']"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := webWith(tt.lines)
			if strings.Contains(tt.lines, "x-v") {
				files["web/compose.yaml"] += "volumes:\n  d: {driver_opts: {type: none, o: bind, device: /mnt/media}}\n"
			}
			body := grantOf(orText(tt.app, "web"), "prod", orText(tt.path, "web"), tt.grant)
			set := onProd
			set.Source = orText(tt.source, "prod")
			plan, refusals := judgeOfPolicy(t, body).Look(commitOf(files), set)
			_, there := plan.App("web")
			require.False(t, there, "it would be carried out")
			require.NotEmpty(t, refusals)
		})
	}
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// What other apps have is no grant's to give: by the folder, the volume and the port of a
// neighbour.
func TestNoGrantGivesWhatIsAnothersApps(t *testing.T) {
	for name, lines := range map[string]string{
		"the data of another app": "volumes: ['/srv/gitring/db:/m']",
		"a folder in it":          "volumes: ['/srv/gitring/db/data:/m']",
		"all data":                "volumes: ['/srv/gitring:/m']",
	} {
		t.Run(name, func(t *testing.T) {
			files := webWith(lines)
			files["db/compose.yaml"] = "services: {db: {image: postgres, volumes: ['./data:/d']}}\n"
			for _, value := range []string{"/srv/gitring/db", "/srv/gitring/db/data", "/srv/gitring"} {
				_, refusals := judgeOfPolicy(t, grantOf("web", "prod", "web", "feature: mounts.bind, value: "+value)).Look(commitOf(files), onProd)
				require.NotEmpty(t, refusals, value)
			}
			s := judgeOfPolicy(t, "").Suggest(commitOf(files), onProd)
			require.Zero(t, s.Grants(), "%v", s.Apps)
		})
	}
}

// The network of another app is that app's: where the signers own the host it is a power, and
// no grant gives it.
func TestTheNetworkOfAnotherAppIsAPowerOfOwnersOnly(t *testing.T) {
	files := webWith("network_mode: 'container:vpn'")
	files["gate/compose.yaml"] = "services: {vpn: {image: nginx, container_name: vpn}}\n"
	plan, refusals := judgeOfPolicy(t, "profile: owner\n").Look(commitOf(files), onProd)
	require.Empty(t, refusals)
	app, _ := plan.App("web")
	require.Len(t, app.Powers, 1)
	require.Contains(t, fmt.Sprint(app.Powers), "container:gate/vpn")
	require.Contains(t, fmt.Sprint(app.Powers), "shares the network of another app")
	for _, grant := range []string{"", grantOf("web", "prod", "web", "feature: namespaces.network, value: 'container:gate/vpn'"), grantOf("web", "prod", "web", "feature: namespaces.network, value: 'container:vpn'")} {
		_, refusals := judgeOfPolicy(t, grant).Look(commitOf(files), onProd)
		require.Len(t, refusals, 1)
		require.Equal(t, "web/compose.yaml:4", refusals[0].Where())
		require.Contains(t, refusals[0].Hint, "profile: owner")
	}
	s := judgeOfPolicy(t, "").Suggest(commitOf(files), onProd)
	require.Zero(t, s.Grants(), "%v", s.Apps)
}

func TestAFolderInsideOneThatIsNeverGrantedIsNotSuggested(t *testing.T) {
	s := judgeOfPolicy(t, "").Suggest(commitOf(webWith("volumes: ['/root/a:/a', '/root/a/b:/b']")), onProd)
	require.Zero(t, s.Grants(), "%v", s.Apps)
	require.NotEmpty(t, s.Refused)
}

func TestAMistakeInAGrantIsToldWithItsLine(t *testing.T) {
	for _, tt := range []struct{ name, grant, want, hint string }{
		{"no reason", "feature: privileged, value: true, danger: root-equivalent", "has no reason", "reason"},
		{"an empty reason", "feature: capabilities.add, value: NET_ADMIN, reason: ''", "has no reason", "reason"},
		{"an unknown feature", "feature: capabilites.add, value: NET_ADMIN, reason: x", `feature "capabilites.add" is not known`, `did you mean "capabilities.add"?`},
		{"no value", "feature: capabilities.add, reason: x", "cannot be granted", "value"},
		{"all capabilities", "feature: capabilities.add, value: all, reason: x", "cannot be granted", "never"},
		{"what belongs to others", "feature: ports.exclusive, value: 80, reason: x", "is not known", ""},
		{"reserved labels", "feature: labels.reserved, value: gitring.app, reason: x", "is not known", ""},
		{"root without a word", "feature: privileged, value: true, reason: x", "gives root on this host", "danger: root-equivalent"},
		{"a socket without a word", "feature: mounts.bind, value: '/var/run/docker.sock:ro', reason: x", "gives root on this host", "danger: root-equivalent"},
		{"a disk without a word", "feature: devices, value: /dev/sda, reason: x", "gives root on this host", "danger: root-equivalent"},
		{"a folder that holds what the host runs by", "feature: mounts.bind, value: /var/spool, reason: x", "gives root on this host", "danger: root-equivalent"},
		{"the kernel's settings without a word", "feature: security_opt, value: systempaths=unconfined, reason: x", "gives root on this host", "danger: root-equivalent"},
		{"another engine's socket without a word", "feature: mounts.bind, value: /run/crio/crio.sock, reason: x", "gives root on this host", "danger: root-equivalent"},
		{"a nested folder without a word", "feature: mounts.nested, value: /mnt/a/b, reason: x", "gives root on this host", "danger: root-equivalent"},
		{"another word", "feature: privileged, value: true, reason: x, danger: some", `danger: "some" is not known`, "root-equivalent"},
		{"another day", "feature: devices, value: gpus, reason: x, expires: tomorrow", `expires: "tomorrow" is no day`, "2027-06-30"},
		{"the root folder", "feature: mounts.bind, value: /, reason: x, danger: root-equivalent", "is never granted", "never"},
		{"the engine's folder", "feature: mounts.bind, value: /var/lib/docker, reason: x", "is never granted", "never"},
		{"a folder that holds it", "feature: mounts.bind, value: /var/lib, reason: x", "is never granted", "never"},
		{"the daemon's state", "feature: mounts.bind, value: /var/lib/gitring/x, reason: x", "is never granted", "never"},
		{"dots in a path", "feature: mounts.bind, value: /mnt/../etc, reason: x", "cannot be granted", "/etc"},
		{"a star in a path", "feature: mounts.bind, value: '/mnt/*', reason: x", "cannot be granted", "absolute"},
		{"a relative path", "feature: mounts.bind, value: ./x, reason: x", "cannot be granted", "absolute"},
		{"an unknown key", "feature: capabilities.add, value: NET_ADMIN, reason: x, until: 2027", `unknown key "until"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Read(withPolicy(t, "policy: {apps: [{name: web, source: prod, path: web, grants: [{"+tt.grant+"}]}]}", nil))
			var ms config.Mistakes
			require.ErrorAs(t, err, &ms)
			require.Len(t, ms, 1)
			require.Equal(t, 2, ms[0].Line)
			require.Contains(t, ms[0].Says, tt.want)
			require.Contains(t, ms[0].Hint, tt.hint)
		})
	}
}

func TestSeeingAndTracingAllProcessesIsRootTogether(t *testing.T) {
	const both = "policy: {apps: [{name: web, source: prod, path: web, grants: [{feature: namespaces.pid, value: host, reason: x%s}, {feature: capabilities.add, value: SYS_PTRACE, reason: x%s}]}]}"
	_, err := config.Read(withPolicy(t, fmt.Sprintf(both, "", ""), nil))
	require.ErrorContains(t, err, "together give root")
	_, err = config.Read(withPolicy(t, fmt.Sprintf(both, ", danger: root-equivalent", ", danger: root-equivalent"), nil))
	require.NoError(t, err)

	const open = "policy: {namespaces: {pid: [+host]}, apps: [{name: web, source: prod, path: web, grants: [{feature: capabilities.add, value: SYS_PTRACE, reason: x%s}]}]}"
	_, err = config.Read(withPolicy(t, fmt.Sprintf(open, ""), nil))
	require.ErrorContains(t, err, "with host in policy.namespaces.pid gives root")
	_, err = config.Read(withPolicy(t, fmt.Sprintf(open, ", danger: root-equivalent"), nil))
	require.NoError(t, err)

	// One service joins the processes of another.
	joined := strings.NewReplacer("value: host,", "value: host, service: watch,", "value: SYS_PTRACE,", "value: SYS_PTRACE, service: joined,").Replace(fmt.Sprintf(both, "", ""))
	_, err = config.Read(withPolicy(t, joined, nil))
	require.ErrorContains(t, err, "together give root")
}

// Right before a call the same grants count, also for a call that is about no service.
func TestAGrantCountsRightBeforeTheCall(t *testing.T) {
	files := map[string]string{"web/compose.yaml": "services:\n  web: {image: nginx, cap_add: [NET_ADMIN], networks: [m]}\nnetworks:\n  m: {driver: macvlan}\n"}
	grants := "apps: [{name: web, source: prod, path: web, grants: [{feature: capabilities.add, value: NET_ADMIN, service: web, reason: x}, {feature: networks.drivers, value: macvlan, reason: x}]}]\n"
	j := judgeOfPolicy(t, grants)
	plan, refusals := j.Look(commitOf(files), onProd)
	require.Empty(t, refusals)
	j.Whose = func() policy.Whose {
		return policy.Whose{Holdings: []policy.Holding{policy.HoldingOf(&plan.Apps[0], "/srv/gitring", policy.InForce, j.Here().Now)}}
	}
	requests := payloadsOf(t, &plan.Apps[0])
	for _, r := range requests {
		require.NoError(t, j.Allow("web", r))
		r.App, r.Service = nil, nil
		if strings.HasPrefix(r.Key, "network") {
			require.NoError(t, j.Allow("web", r), "a network is made for the app in force")
		}
		require.Error(t, func() error {
			none := j
			none.Rules.Grants = nil
			return none.Allow("web", r)
		}())
	}
	other := plan.Apps[0]
	other.Source = "dev"
	for _, r := range requests {
		r.App = &other
		require.Error(t, j.Allow("web", r), "an app of the same name of another source")
	}
}

func TestSuggestWritesAFileThatServeTakes(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "prod")
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "web"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "web", "compose.yaml"), []byte("services: {web: {image: nginx, cap_add: [NET_ADMIN], privileged: true}}\n"), 0o600))
	file := filepath.Join(dir, "p.yaml")
	code, _, errs := callVerb("policy", "suggest", repo, "--write", file)
	require.Equal(t, exit.Usage, code, "a person has to say why")
	require.Contains(t, errs, "--reason")
	require.NoFileExists(t, file)
	code, _, errs = callVerb("policy", "suggest", repo, "--write", file, "--reason", "it is ours")
	require.Equal(t, exit.OK, code, errs)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = config.Load(withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": string(body)}))
	require.NoError(t, err)
	code, _, errs = callVerb("policy", "suggest", repo, "--write", file, "--reason", "again")
	require.Equal(t, exit.OK, code, errs)
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(body), string(again), "what a person wrote stays")
	code, out, _ := callVerb("policy", "suggest", repo, "--app", "nobody")
	require.Equal(t, exit.OK, code)
	require.Contains(t, out, "no grant is needed")
}

// callVerb runs the program without a configuration.
func callVerb(given ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), given, nil, &o, &e, time.Now)
	return code, o.String(), e.String()
}

// payloadsOf are what the engine would be sent for an app.
func payloadsOf(t *testing.T, a *ring.App) []runtime.Request {
	t.Helper()
	var out []runtime.Request
	for i := range a.Services {
		all, err := runtime.Payloads("edge-1", a, &a.Services[i], "/srv/gitring", "/var/lib/gitring/content")
		require.NoError(t, err)
		out = append(out, all...)
	}
	return out
}
