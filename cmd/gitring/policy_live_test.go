package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

const oneGrant = "version: 1\napps: [{name: web, source: prod, path: web, grants: [{feature: capabilities.add, value: NET_ADMIN, reason: vpn}]}]\n"

// rewritten writes a policy file anew.
func rewritten(t *testing.T, file, body string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "p.yaml"), []byte(body), 0o600))
}

// settledPolicy looks until what a file says now can have been taken.
func settledPolicy(live *admission.LivePolicy) (changed bool, wrong string) {
	if changed, wrong = live.Look(); !changed && wrong == "" {
		changed, wrong = live.Look()
	}
	return changed, wrong
}

// TestHalfAPolicyIsNotTaken cuts a save short at every byte: nothing counts of it, and no
// mistake is told.
func TestHalfAPolicyIsNotTaken(t *testing.T) {
	const whole = "version: 1\nprofile: hardened\n" + "ports: {host: [443]}\n"
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": oneGrant})
	c, err := config.Load(file)
	require.NoError(t, err)
	live := admission.NewLivePolicy(c)
	settledPolicy(live)
	first := live.Hash()
	for n := range len(whole) {
		rewritten(t, file, whole[:n])
		changed, wrong := live.Look()
		require.False(t, changed, whole[:n])
		require.Empty(t, wrong, whole[:n])
		require.Equal(t, first, live.Hash())
	}
	rewritten(t, file, whole)
	changed, wrong := settledPolicy(live)
	require.True(t, changed)
	require.Empty(t, wrong)

	half := live.Hash()
	rewritten(t, file, "version: 1\n")
	live.Look()
	rewritten(t, file, whole)
	changed, _ = settledPolicy(live)
	require.False(t, changed, "what was there for one look never counts")
	require.Equal(t, half, live.Hash())
}

// The print of the policy costs nothing while it is the same, and is never that of rules before.
func TestThePrintOfThePolicyIsMadeOnceForEachPolicy(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": oneGrant})
	c, err := config.Load(file)
	require.NoError(t, err)
	live := admission.NewLivePolicy(c)
	seen := map[string]string{}
	for i, body := range []string{
		oneGrant, "version: 1\nprofile: hardened\n", "version: 1\nports: {host: [443]}\n", "version: 1\nports: {host: [443, 80]}\n",
		"version: 1\nimages: {latest: deny}\n", "version: 1\nmounts: {bind_roots: [/srv/media]}\n", "version: 1\n", oneGrant,
	} {
		rewritten(t, file, body)
		settledPolicy(live)
		said, wrong := live.Said()
		require.Empty(t, wrong)
		var fresh policy.Rules
		said.Over(&fresh)
		require.Equal(t, fresh.Hash(), live.Hash(), body)
		require.Zero(t, testing.AllocsPerRun(10, func() { live.Hash() }))
		if before, ok := seen[live.Hash()]; ok {
			require.Equal(t, before, body, "policy %d", i)
		}
		seen[live.Hash()] = body
	}
	require.Len(t, seen, 7)
	rewritten(t, file, "nonsense: [")
	before := live.Hash()
	_, wrong := settledPolicy(live)
	require.NotEmpty(t, wrong)
	require.Equal(t, before, live.Hash(), "a mistake keeps the rules that were in effect")
}

func TestThePolicyIsReadAgainWhenItsFileChanges(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": oneGrant})
	c, err := config.Load(file)
	require.NoError(t, err)
	j := admission.For(c)
	j.Live, j.Runtimes = admission.NewLivePolicy(c), nil
	asks := commitOf(webWith("cap_add: [NET_ADMIN]"))
	refused := func() int {
		_, refusals := j.Look(asks, onProd)
		return len(refusals)
	}
	require.Zero(t, refused())
	changed, wrong := settledPolicy(j.Live)
	require.False(t, changed)
	require.Empty(t, wrong)
	first := j.Live.Hash()

	rewritten(t, file, "version: 1\n")
	changed, wrong = settledPolicy(j.Live)
	require.True(t, changed)
	require.Empty(t, wrong)
	require.Equal(t, 1, refused(), "the grant is gone")
	require.NotEqual(t, first, j.Live.Hash())

	for _, mistake := range []string{"version: 1\nprofil: owner\n", "version: 1\nprofile: owner\non_violation: end\n", "- a\n", oneGrant + "mounts: {bind_roots: [/]}\n"} {
		rewritten(t, file, mistake)
		changed, wrong = settledPolicy(j.Live)
		require.False(t, changed)
		require.Contains(t, wrong, "p.yaml:")
		require.Equal(t, 1, refused(), "the rules before it count")
		_, still := j.Live.Said()
		require.Equal(t, wrong, still)
		_, again := settledPolicy(j.Live)
		require.Empty(t, again, "it is told once")
	}

	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(file), "p.yaml")))
	_, wrong = settledPolicy(j.Live)
	require.NotEmpty(t, wrong)
	require.Equal(t, 1, refused())

	rewritten(t, file, oneGrant)
	changed, _ = settledPolicy(j.Live)
	require.True(t, changed)
	require.Zero(t, refused())
	require.Equal(t, first, j.Live.Hash(), "the same rules have the same hash")
	_, still := j.Live.Said()
	require.Empty(t, still)
}

func TestAnEditOfTheConfigurationsOwnPolicyCounts(t *testing.T) {
	file := withPolicy(t, "policy: {profile: compose}", nil)
	c, err := config.Load(file)
	require.NoError(t, err)
	live := admission.NewLivePolicy(c)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(string(body)+"# a comment\n"), 0o600))
	changed, wrong := settledPolicy(live)
	require.False(t, changed, "a comment changes no rule")
	require.Empty(t, wrong)
	require.NoError(t, os.WriteFile(file, []byte("policy: {profile: owner}\n"+smallHost), 0o600))
	changed, _ = settledPolicy(live)
	require.True(t, changed)
	said, _ := live.Said()
	require.Equal(t, policy.Owner, said.Profile)
}

func TestTheHashIsOfWhatCountsAlone(t *testing.T) {
	hash := func(body string) string {
		rules := judgeOfPolicy(t, body).Here()
		return rules.Hash()
	}
	require.Equal(t, hash(""), hash("profile: compose\n"))
	require.Equal(t, hash(""), hash(wholePolicy[len("version: 1\n"):]), "the profile written out is the profile")
	require.Equal(t, hash(oneGrant[len("version: 1\n"):]), hash("\n\n"+oneGrant[len("version: 1\n"):]), "a line that moved changes nothing")
	seen := map[string]bool{}
	for _, body := range []string{"", "profile: owner\n", "sysctls: [+a.b]\n", "ports: {host: [443]}\n", oneGrant[len("version: 1\n"):], "labels: {routes: {web: [a.example.org]}}\n"} {
		require.False(t, seen[hash(body)], body)
		seen[hash(body)] = true
	}
}

// The policy's own file is the daemon's: who could write it would rule the host.
func TestNoAppGetsThePolicysOwnFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("version: 1\nmounts: {bind_roots: [+"+dir+"]}\n"), 0o600))
	c, err := config.Load(withPolicy(t, "policy: "+filepath.Join(dir, "p.yaml"), nil))
	require.NoError(t, err)
	j := admission.For(c)
	j.Runtimes = nil
	for _, source := range []string{dir, filepath.Join(dir, "p.yaml")} {
		_, refusals := j.Look(commitOf(webWith("volumes: ['"+source+":/x']")), onProd)
		require.NotEmpty(t, refusals, source)
	}
	_, refusals := j.Look(commitOf(webWith("volumes: ['"+dir+"/media:/x']")), onProd)
	require.Empty(t, refusals, "the rest of the folder may be used")
}

func TestWhatReportLetsPassIsOnlyWhatIsInForce(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": oneGrant})
	c, err := config.Load(file)
	require.NoError(t, err)
	j := admission.For(c)
	j.Live, j.Runtimes = admission.NewLivePolicy(c), nil
	plan, refusals := j.Look(commitOf(webWith("cap_add: [NET_ADMIN]")), onProd)
	require.Empty(t, refusals)
	sent := payloadsOf(t, &plan.Apps[0])[0]
	require.NoError(t, j.Allow("web", sent))
	rewritten(t, file, "version: 1\n")
	settledPolicy(j.Live)
	require.Error(t, j.Allow("web", sent), "hold makes no new instance")
	rewritten(t, file, "version: 1\non_violation: report\n")
	settledPolicy(j.Live)
	require.NoError(t, j.Allow("web", sent), "report goes on with what was accepted")
	_, refusals = j.Look(commitOf(webWith("cap_add: [NET_ADMIN]")), onProd)
	require.NotEmpty(t, refusals, "and accepts nothing anew")
}

// No plan has judged how an image begins, and nothing lets the daemon's own be mounted.
func TestReportLetsNothingPassThatNoPlanAccepted(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\non_violation: report\n"})
	c, err := config.Load(file)
	require.NoError(t, err)
	j := admission.For(c)
	j.Live, j.Runtimes = admission.NewLivePolicy(c), nil
	app := &ring.App{Name: "web", Source: "prod", Path: "web", Services: []ring.Service{{Name: "web"}}}
	for _, body := range []runtime.ContainerRequest{
		{Config: &container.Config{WorkingDir: "/proc/self/fd/8"}},
		{Config: &container.Config{Image: "a"}, HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: c.State, Target: "/x"}}}},
		{Config: &container.Config{Image: "a", Labels: map[string]string{"gitring.app": "other"}}, HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: c.File, Target: "/x"}}}},
	} {
		require.Error(t, j.Allow("web", runtime.Request{Key: "container", Body: body, App: app, Service: &app.Services[0]}), "%+v", body.Config)
	}
}

// A file that was edited between its first read and the first look is read all the same.
func TestNoEditOfThePolicyIsMissed(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\nprofile: owner\n"})
	c, err := config.Load(file)
	require.NoError(t, err)
	rewritten(t, file, "version: 1\nprofile: hardened\n")
	live := admission.NewLivePolicy(c)
	changed, wrong := settledPolicy(live)
	require.Empty(t, wrong)
	require.True(t, changed)
	said, _ := live.Said()
	require.Equal(t, policy.Hardened, said.Profile)
	changed, _ = settledPolicy(live)
	require.False(t, changed)
}

// Whoever can write the policy is root on this host by it.
func TestAPolicyThatOthersCanWriteIsNotTaken(t *testing.T) {
	config0 := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": oneGrant})
	file := filepath.Join(filepath.Dir(config0), "p.yaml")
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644} {
		require.NoError(t, os.Chmod(file, mode))
		_, err := config.Load(config0)
		require.NoError(t, err, "%o", mode)
	}
	refused := func(what string) {
		_, err := config.Load(config0)
		var ms config.Mistakes
		require.ErrorAs(t, err, &ms, what)
		require.Contains(t, ms[0].File, "p.yaml")
		require.Contains(t, ms[0].Says, "cannot trust", what)
		_, err = config.Read(config0)
		require.NoError(t, err, "only who serves minds")
	}
	for _, mode := range []os.FileMode{0o666, 0o664, 0o602} {
		require.NoError(t, os.Chmod(file, mode))
		refused(mode.String())
	}
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.Chmod(filepath.Dir(file), 0o777))
	refused("its folder")
	require.NoError(t, os.Chmod(filepath.Dir(file), 0o755))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(file, 12345, 0))
		refused("its owner")
		require.NoError(t, os.Chown(file, 0, 0))
	}
	require.NoError(t, os.Rename(file, file+"2"))
	require.NoError(t, os.Symlink(file+"2", file))
	refused("a link")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Rename(file+"2", file))

	c, err := config.Load(config0)
	require.NoError(t, err)
	live := admission.NewLivePolicy(c)
	settledPolicy(live)
	require.NoError(t, os.Chmod(file, 0o666))
	_, wrong := settledPolicy(live)
	require.Contains(t, wrong, "can be written by others", "also where nothing in it has changed")
	first := live.Hash()
	rewritten(t, config0, "version: 1\nprofile: owner\n")
	settledPolicy(live)
	require.Equal(t, first, live.Hash(), "the rules before it count")
	require.NoError(t, os.Chmod(file, 0o600))
	changed, wrong := settledPolicy(live)
	require.True(t, changed)
	require.Empty(t, wrong)
}

// Whoever can write the configuration writes the policy and the trust that stand in it.
func TestAConfigurationThatOthersCanWriteIsNotTaken(t *testing.T) {
	file := withPolicy(t, "policy: {profile: owner}", nil)
	refused := func(what, hint string) {
		_, err := config.Load(file)
		var ms config.Mistakes
		require.ErrorAs(t, err, &ms, what)
		require.Equal(t, file, ms[0].File, what)
		require.Contains(t, ms[0].Says, "cannot trust", what)
		require.Equal(t, hint, ms[0].Hint, what)
		_, err = config.Read(file)
		require.NoError(t, err, "only who serves minds")
	}
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o444} {
		require.NoError(t, os.Chmod(file, mode))
		_, err := config.Load(file)
		require.NoError(t, err, "%o", mode)
	}
	for _, mode := range []os.FileMode{0o666, 0o664, 0o602} {
		require.NoError(t, os.Chmod(file, mode))
		refused(mode.String(), "chmod go-w "+file)
	}
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.Chmod(filepath.Dir(file), 0o777))
	refused("its folder", "chmod go-w "+filepath.Dir(file))
	require.NoError(t, os.Chmod(filepath.Dir(file), 0o755))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(file, 12345, 0))
		refused("its owner", "chown root "+file)
		require.NoError(t, os.Chown(file, 0, 0))
	}

	c, err := config.Load(file)
	require.NoError(t, err)
	live := admission.NewLivePolicy(c)
	settledPolicy(live)
	first := live.Hash()
	require.NoError(t, os.Chmod(file, 0o666))
	require.NoError(t, os.WriteFile(file, []byte("policy: {profile: hardened}\n"+smallHost), 0o666))
	changed, wrong := settledPolicy(live)
	require.False(t, changed)
	require.Contains(t, wrong, "can be written by others")
	require.Equal(t, first, live.Hash(), "the rules before it count")
	require.NoError(t, os.Chmod(file, 0o600))
	changed, wrong = settledPolicy(live)
	require.True(t, changed)
	require.Empty(t, wrong)
}

// What ended says so where it is refused, and when.
func TestARefusalNamesTheGrantThatEnded(t *testing.T) {
	j := judgeOfPolicy(t, grantOf("web", "prod", "web", "feature: capabilities.add, value: NET_ADMIN, expires: 2020-06-30"))
	_, refusals := j.Look(commitOf(webWith("cap_add: [NET_ADMIN]")), onProd)
	require.Len(t, refusals, 1)
	require.Contains(t, refusals[0].Says, "its grant (p.yaml:2) ended with 2020-06-30")
	require.Contains(t, refusals[0].Hint, "write a later day in expires of p.yaml:2")
}
