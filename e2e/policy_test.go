package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePolicyIsReadAgainAndJudgesWhatRuns changes the policy below a running daemon: what
// runs is told of and goes on, a mistake keeps the rules before it, and nothing new is
// accepted meanwhile.
func TestThePolicyIsReadAgainAndJudgesWhatRuns(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("vpn")
	image := idleImage(t, h.engine)
	file := filepath.Join(h.dir, "policy.yaml")
	write := func(body string) { require.NoError(t, os.WriteFile(file, []byte("version: 1\n"+body), 0o600)) }
	granted := "apps: [{name: " + app + ", source: " + h.source()["name"].(string) + ", path: " + app + ", grants: [{feature: capabilities.add, value: NET_ADMIN, service: web, reason: vpn}]}]\n"
	write(granted)
	h.config["policy"] = file
	service := func(label string) files {
		return files{app + "/compose.yaml": "services:\n  web: {image: " + image + ", pull_policy: never, cap_add: [NET_ADMIN], labels: {v: '" + label + "'}}\n"}
	}
	first := h.repo.pushed("Ask for a capability that is granted", service("1"))
	h.start()
	h.synced(first)
	running := h.of(app, "web").ID

	write("")
	h.await("the app in force breaks the policy", func(st status) bool { return st.condition("PolicyViolated") != "" })
	require.Contains(t, h.status().condition("PolicyViolated"), "NET_ADMIN")
	require.Equal(t, running, h.of(app, "web").ID, "what runs goes on")

	write("profil: owner\n")
	h.await("a mistake is told", func(st status) bool { return strings.Contains(st.condition("PolicyInvalid"), "policy.yaml:2") })
	second := h.repo.pushed("Change it meanwhile", service("2"))
	write(granted + "profil: owner\n")
	h.await("the second mistake is told", func(st status) bool { return strings.Contains(st.condition("PolicyInvalid"), "policy.yaml:3") })
	require.Equal(t, running, h.of(app, "web").ID, "nothing new is accepted")

	write(granted)
	h.synced(second)
	require.NotEqual(t, running, h.of(app, "web").ID)
	h.await("all is well", func(st status) bool {
		return st.condition("PolicyViolated") == "" && st.condition("PolicyInvalid") == ""
	})
}

// condition is the reason of a condition of the first source, "" where it does not hold.
func (st status) condition(kind string) string {
	i := slices.IndexFunc(st.Sources[0].Conditions, func(c struct{ Type, Reason string }) bool { return c.Type == kind })
	if i < 0 {
		return ""
	}
	return st.Sources[0].Conditions[i].Reason
}

// TestAGrantForASignerCountsForWhatShePushed has two people change one app: what only one
// of them may let pass stands in a file of its own.
func TestAGrantForASignerCountsForWhatShePushed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, image := h.app("vpn"), idleImage(t, h.engine)
	bob := filepath.Join(h.dir, "bob")
	all, err := os.ReadFile(h.repo.signers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.repo.signers, []byte(strings.TrimSpace(string(all))+"\nbob@example.org "+newKey(t, bob)), 0o600))
	revoked := filepath.Join(h.dir, "revoked")
	require.NoError(t, os.WriteFile(revoked, nil, 0o600))
	h.source()["trust"].(obj)["revoked_keys"] = revoked
	file := filepath.Join(h.dir, "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\napps: [{name: "+app+", source: "+h.source()["name"].(string)+", path: "+app+
		", grants: [{feature: capabilities.add, value: NET_ADMIN, service: web, reason: vpn, signers: [alice@example.org]}]}]\n"), 0o600))
	h.config["policy"] = file
	compose := func(label string) files {
		return files{app + "/compose.yaml": "services:\n  web: {image: " + image + ", pull_policy: never, labels: {v: '" + label + "'}}\n"}
	}
	asks := func(comment string) files {
		return files{app + "/compose.override.yaml": "services: {web: {cap_add: [NET_ADMIN]}} # " + comment + "\n"}
	}
	h.repo.write(compose("1"))
	h.repo.commit("A service", "-S"+bob)
	first := h.repo.pushed("Let it have the network", asks("1"))
	h.start()
	h.synced(first)

	second := h.repo.pushed("Change the service", compose("2"), "-S"+bob)
	h.synced(second)
	running := h.of(app, "web").ID

	third := h.repo.pushed("Change what alice asked for", asks("bob was here"), "-S"+bob)
	refused := func(st status) bool {
		r := st.app(app).Refusal
		return r != nil && strings.HasPrefix(third, r.Commit)
	}
	h.await("the newest change of the file is not alice's", refused)
	says := h.status().app(app).Refusal.Says
	require.Contains(t, says, "NET_ADMIN")
	require.Contains(t, says, third[:7]+", the newest that changed "+app+"/compose.override.yaml, was signed by bob@example.org")
	require.NoError(t, h.stop())
	h.start()
	h.await("so after a restart", refused)
	require.Equal(t, running, h.of(app, "web").ID, "what runs goes on")
	require.Empty(t, h.status().condition("PolicyViolated"), "it is what alice let pass")

	fourth := h.repo.pushed("Let it have the network", asks("2"))
	h.synced(fourth)
	running = h.of(app, "web").ID

	pub, err := os.ReadFile(filepath.Join(h.dir, "key.pub"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(revoked, pub, 0o600))
	h.await("her key is revoked", func(st status) bool { return strings.Contains(st.condition("PolicyViolated"), "revoked") })
	require.Equal(t, running, h.of(app, "web").ID, "what runs goes on")
}

// TestOnViolationStopEndsWhatThePolicyDenies has a daemon that waits for seconds in the
// place of ten minutes: what is denied is stopped and stays so, but not what serves data that
// another service needs; it comes back when it passes again.
func TestOnViolationStopEndsWhatThePolicyDenies(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.program = filepath.Join(h.dir, "gitring-soon")
	require.NoError(t, goBuild(h.program, "github.com/gitring/gitring/cmd/gitring", "-X github.com/gitring/gitring/daemon.violationStopAfter=3s"))
	app, image := h.app("vpn"), idleImage(t, h.engine)
	file := filepath.Join(h.dir, "policy.yaml")
	write := func(grants string) {
		require.NoError(t, os.WriteFile(file, []byte("version: 1\non_violation: stop\napps: [{name: "+app+", source: "+h.source()["name"].(string)+", path: "+app+", grants: ["+grants+"]}]\n"), 0o600))
	}
	const grant = "{feature: capabilities.add, value: NET_ADMIN, reason: vpn}"
	write(grant)
	h.config["policy"] = file
	first := h.repo.pushed("Ask for a capability that is granted", files{app + "/compose.yaml": "services:\n" +
		"  vpn: {image: " + image + ", pull_policy: never, cap_add: [NET_ADMIN]}\n" +
		"  db: {image: " + image + ", pull_policy: never, cap_add: [NET_ADMIN], volumes: ['data:/data']}\n" +
		"  web: {image: " + image + ", pull_policy: never, volumes: ['data:/data:ro']}\nvolumes: {data: {}}\n"})
	h.start()
	h.synced(first)
	db, web := h.of(app, "db").ID, h.of(app, "web").ID

	write("")
	h.until("what is denied is stopped", func() bool { return len(h.containers("vpn")) == 0 })
	st := h.await("and it is told", func(st status) bool {
		return slices.ContainsFunc(st.Overrides, func(o struct{ Kind, Target, Actor string }) bool { return o.Kind == "stop" && o.Target == app+"/vpn" })
	})
	require.Contains(t, st.condition("PolicyViolated"), app+"/db is not stopped: "+app+"/web needs its volume "+app+"_data")
	code, out := h.run("events", "--app", app)
	require.Zero(t, code, out)
	require.Contains(t, out, "override.began")
	require.NoError(t, h.stop())
	h.start()
	h.await("so after a restart", func(st status) bool { return st.condition("PolicyViolated") != "" })
	require.Empty(t, h.containers("vpn"))
	require.Equal(t, []string{db, web}, []string{h.of(app, "db").ID, h.of(app, "web").ID}, "the others go on")

	write(grant)
	h.await("it comes back", func(st status) bool { return st.service(app, "vpn").Ready == 1 && len(st.Overrides) == 0 })
	h.synced(first)
	require.Equal(t, []string{db, web}, []string{h.of(app, "db").ID, h.of(app, "web").ID}, "the others were never touched")
}

// TestWhatThePolicyRefusedRunsOnceItIsGranted goes the whole way of a refusal: nothing is
// made, suggest says what is missing, a person gives the reason, and the same commit runs.
// A link below the folder that apps may use leads nowhere else.
func TestWhatThePolicyRefusedRunsOnceItIsGranted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("media")
	media, err := os.MkdirTemp("/srv", "gitring-e2e-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(media) })
	require.NoError(t, os.MkdirAll(filepath.Join(media, "films"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(media, "films", "list"), []byte("one film\n"), 0o644))
	require.NoError(t, os.Symlink("/etc", filepath.Join(media, "shows")))
	file := filepath.Join(h.dir, "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\n"), 0o600))
	h.config["policy"] = file
	mounts := func(folder string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", obj{
			"cap_add": []any{"NET_ADMIN"}, "volumes": []any{filepath.Join(media, folder) + ":/media"},
		})})}
	}
	first := h.repo.pushed("Serve films", mounts("films"))
	h.start()
	h.await("the app is refused", func(st status) bool { r := st.app(app).Refusal; return r != nil && r.Code == "PolicyDenied" })
	require.Empty(t, h.containers("web"))

	code, out := h.run("policy", "suggest", h.repo.work, "--config", h.configFile(), "--bind-root", media, "--write", file, "--reason", "it mends routes")
	require.Zero(t, code, out)
	said, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(said), `reason: "it mends routes"`)
	h.synced(first)
	runs := h.one("web")
	_, body := h.ask(runs, "/file?path=/media/list")
	require.Equal(t, "one film\n", body)

	h.repo.pushed("Serve shows", mounts("shows"))
	h.await("the link is refused", func(st status) bool {
		return len(st.app(app).Services) == 1 && strings.Contains(st.app(app).Services[0].Reason, "is a link to /etc")
	})
	require.Equal(t, runs.ID, h.one("web").ID, "what runs goes on")
}
