package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// SIGHUP has the daemon read its configuration anew, whole or not at all: the process and
// what runs stay, and what is wrong is told.
func TestTheConfigurationIsReadAnewOnSIGHUP(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	h.start()
	h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1")})})
	before := identities(h.containers())
	process := h.daemon.Process
	hup := func() { require.NoError(t, process.Signal(syscall.SIGHUP)) }
	says := func(what, text string, sources int) {
		h.await(what, func(st status) bool {
			return strings.Contains(st.Config, text) && (text != "" || st.Config == "") && len(st.Sources) == sources
		})
	}

	second := obj{"name": "lab", "url": "file://" + h.repo.bare, "branch": "main", "path": "lab", "trust": obj{"mode": "strict", "allowed_signers": h.repo.signers}}
	h.config["sources"] = append(h.config["sources"].([]any), second)
	h.writeConfig()
	hup()
	h.await("the second source is followed", func(st status) bool {
		return len(st.Sources) == 2 && st.Sources[0].Sync == "Synced" && st.Sources[1].Sync == "Synced"
	})

	h.config["pol"] = "1s"
	h.writeConfig()
	hup()
	says("the mistake is told with its line, and the one before is in force", "config.yaml:", 2)
	code, out := h.run("status")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "configuration: not read anew: ")

	delete(h.config, "pol")
	h.config["host"] = h.name + "x"
	h.writeConfig()
	hup()
	says("what is locked takes a restart", "host was changed", 2)
	h.config["host"] = h.name

	// What reads well and cannot start gives way to the one before.
	second["trust"] = obj{"mode": "strict", "allowed_signers": h.dir + "/none"}
	h.writeConfig()
	hup()
	says("keys that cannot be read are told", "none", 2)

	h.config["sources"] = h.config["sources"].([]any)[:1]
	h.writeConfig()
	hup()
	says("the second source is followed no more", "", 1)
	h.await("the first one was looked at", func(st status) bool { return st.Sources[0].Sync == "Synced" })
	require.Equal(t, before, identities(h.containers()), "nothing was touched")
	h.deployed("It goes on", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2")})})
	require.NoError(t, process.Signal(syscall.Signal(0)), "it is the same process")

	// The policy is read anew too: what it refused is carried out.
	tall := files{app + "/compose.yaml": h.compose(app, obj{"web": web("3", obj{"cap_add": []string{"SYS_ADMIN"}})})}
	refused := h.repo.pushed("Ask for more", tall)
	h.await("the policy refuses it", func(st status) bool { return st.app(app).Refusal != nil && st.app(app).Refusal.Commit == refused })
	h.config["policy"] = obj{"profile": "owner"}
	h.writeConfig()
	hup()
	h.synced(refused)
	require.NotEqual(t, before, identities(h.containers()), "and a commit still moves it")

	// And the signers: who is among them now may sign.
	bob := filepath.Join(h.dir, "bob")
	line := "bob@example.org namespaces=\"git\" " + newKey(t, bob) + "\n"
	bobs := h.repo.pushed("By somebody new", files{app + "/compose.yaml": h.compose(app, obj{"web": web("4")})}, "-S"+bob)
	h.await("nobody knows the key", func(st status) bool {
		return st.Sources[0].Refusal != nil && st.Sources[0].Refusal.Commit == bobs
	})
	signers, err := os.ReadFile(h.repo.signers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.repo.signers, append(signers, []byte(line)...), 0o600))
	hup()
	h.synced(bobs)
	require.NoError(t, h.stop())
}
