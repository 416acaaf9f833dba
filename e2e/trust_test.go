package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// loseState takes away all that says up to where the source was trusted, but for
// what is on the engine. The mirror is a cache and stays.
func (h *host) loseState() {
	h.t.Helper()
	state := filepath.Join(h.dir, "state")
	left, err := filepath.Glob(filepath.Join(state, "gitring.db*"))
	require.NoError(h.t, err)
	require.NotEmpty(h.t, left)
	for _, name := range append(left, filepath.Join(state, "anchors")) {
		require.NoError(h.t, os.RemoveAll(name))
	}
}

func TestV51ALostStateDirectoryDoesNotOpenTheDoorToAnOlderCommit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v)})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	code, out := h.run("status")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "trust rests on first use of "+first[:7])
	second := h.deployed("Version 2", version("2"))
	settled(h)
	before := identities(h.containers())

	// The forge serves the first commit again, and the host has forgotten.
	h.kill()
	h.loseState()
	h.repo.git("reset", "-q", "--hard", first)
	h.repo.push()
	mark := h.events.mark()
	h.start()
	st := h.await("the older commit is refused", func(st status) bool { return st.Sources[0].Refusal != nil })
	require.Equal(t, "StateLostRollback", st.Sources[0].Refusal.Code)
	require.Equal(t, second, st.Sources[0].Trusted)
	require.Equal(t, before, identities(h.containers()))
	code, out = h.run("trust", "show")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "trusted up to "+second[:7])
	require.Contains(t, out, "labels of containers")
	require.Contains(t, out, "alice@example.org")
	require.Contains(t, out, "commit, merge, vouch")

	// A person may say that it is right, and is named for it.
	code, out = h.run("trust", "accept", first, "--reason", "version 2 was a mistake")
	require.Equal(t, 0, code, out)
	h.synced(first)
	require.NotEmpty(t, h.events.after(mark, "create"), "version 1 again")
	code, out = h.run("events", "-o", "json", "-n", "0")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "(uid ")
	require.Contains(t, out, "version 2 was a mistake")
	code, out = h.run("trust", "reverify")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "all would pass now")
}

func TestV55AndV56ATrustSetThatIsWrongOrOldStopsNothingAndAcceptsNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v)})}
	}
	signers, err := os.ReadFile(h.repo.signers)
	require.NoError(t, err)
	counted := func(line string) {
		require.NoError(t, os.WriteFile(h.repo.signers, append([]byte(line+"\n"), signers...), 0o600))
	}
	counted("# trust_version: 2")
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	settled(h)
	before := identities(h.containers())

	held := func(code string) {
		t.Helper()
		st := h.await("the reason is "+code, func(st status) bool { return strings.HasPrefix(st.Sources[0].Reason, code+": ") })
		require.Equal(t, first, st.Sources[0].Trusted)
		require.Equal(t, before, identities(h.containers()))
	}
	require.NoError(t, os.Chmod(h.repo.signers, 0o666))
	second := h.repo.pushed("Version 2", version("2"))
	held("TrustConfigInvalid")
	require.NoError(t, os.Chmod(h.repo.signers, 0o600))
	counted("# trust_version: 1")
	held("TrustRollback")

	// The same at a start.
	h.kill()
	h.start()
	held("TrustRollback")
	counted("# trust_version: 3")
	h.synced(second)
}
