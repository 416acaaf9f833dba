package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ageKey has gitring make a key, and is its file and whom to encrypt for.
func ageKey(t *testing.T, file string) (recipient string) {
	t.Helper()
	out, err := exec.Command(binary, "secret", "keys", "--create", "--age-file", file).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// encrypted is a text as gitring encrypts it, by the name of its file.
func encrypted(t *testing.T, name, plain string, recipients ...string) string {
	t.Helper()
	rules := filepath.Join(t.TempDir(), ".sops.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("creation_rules: [{age: '"+strings.Join(recipients, ",")+"'}]\n"), 0o600))
	cmd := exec.Command(binary, "secret", "encrypt", "--rules", rules, "--as", name, "-")
	cmd.Stdin = strings.NewReader(plain)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// ofDaemon is what every user of the host may see of the daemon's process, which dumps no core.
func (h *host) ofDaemon() string {
	h.t.Helper()
	h.mu.Lock()
	pid := h.daemon.Process.Pid
	h.mu.Unlock()
	out := ""
	for _, name := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		require.NoError(h.t, err)
		out += string(b)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	require.NoError(h.t, err)
	require.Regexp(h.t, `Max core file size +0 +0 `, string(limits), "a core would have all values")
	return out
}

func TestEncryptedFilesReachTheirContainersAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, other := h.app("web"), h.app("other")
	mine, stranger := ageKey(t, filepath.Join(h.dir, "age.key")), ageKey(t, filepath.Join(h.dir, "stranger.key"))
	h.config["secrets"] = obj{"keys": []any{obj{"age_file": filepath.Join(h.dir, "age.key")}}, "at_rest": "disk"}
	const first, second, key = "cana.ry-horse-1", "cana.ry-horse-2", "cana.ry-key"
	commit := func(value string, recipients ...string) files {
		return files{
			app + "/compose.yaml": h.compose(app, obj{
				"db":    web("1", obj{"env_file": []any{"db.enc.env"}}),
				"file":  web("1", obj{"secrets": []any{obj{"source": "tls", "mode": "0444"}}}),
				"plain": web("1"),
			}, obj{"secrets": obj{"tls": obj{"file": "./tls.enc"}}}),
			app + "/db.enc.env": encrypted(t, "db.env", "PASSWORD="+value+"\n", recipients...),
			app + "/tls.enc":    encrypted(t, "tls.key", key, recipients...),
		}
	}
	start := commit(first, mine)
	start[other+"/compose.yaml"] = h.compose(other, obj{"neighbour": web("1")})
	sha := h.repo.pushed("With secrets", start)
	h.start()
	h.synced(sha)
	has := func(value string) {
		t.Helper()
		require.Equal(t, value, h.one("db").env("PASSWORD"))
		_, body := h.ask(h.one("file"), "/file?path=/run/secrets/tls")
		require.Equal(t, key, body)
		h.nowhere("cana.ry")
		require.NotContains(t, h.ofDaemon(), "cana.ry")
	}
	has(first)
	settled(h)
	ids := func() map[string]string {
		out := map[string]string{}
		for _, s := range []string{"db", "file", "plain", "neighbour"} {
			out[s] = h.one(s).ID
		}
		return out
	}
	before := ids()

	mark := h.events.mark()
	h.synced(h.repo.pushed("For another key too", commit(first, stranger, mine)))
	require.Empty(t, h.events.after(mark, mutations...), "encrypting again is nothing to do")

	h.synced(h.repo.pushed("Another password", commit(second, mine)))
	h.until("the new value is live", func() bool {
		cs := h.containers("db")
		return len(cs) == 1 && cs[0].env("PASSWORD") == second
	})
	settled(h)
	has(second)
	after := ids()
	require.NotEqual(t, before["db"], after["db"])
	for _, s := range []string{"file", "plain", "neighbour"} {
		require.Equal(t, before[s], after[s], s)
	}

	without := commit("cana.ry-horse-3", stranger)
	without[other+"/compose.yaml"] = h.compose(other, obj{"neighbour": web("2")})
	h.repo.pushed("For somebody else", without)
	st := h.await("the app is refused", func(st status) bool { return st.app(app).Refusal != nil })
	require.Equal(t, "SecretKey", string(st.app(app).Refusal.Code))
	require.Contains(t, st.app(app).Refusal.Hint, mine)
	h.until("the neighbour goes on", func() bool {
		cs := h.containers("neighbour")
		return len(cs) == 1 && cs[0].ID != after["neighbour"]
	})
	for _, s := range []string{"db", "file", "plain"} {
		require.Equal(t, after[s], h.one(s).ID, s)
	}
	sha = h.repo.pushed("For this host again", commit(second, mine, stranger))
	h.synced(sha)
	require.Equal(t, after["db"], h.one("db").ID)

	// Killed, and the containers removed by hand: what it makes again is made of what it kept.
	h.kill()
	for _, s := range []string{"db", "file"} {
		require.NoError(t, h.engine.call("DELETE", "/containers/"+after[s]+"?force=1", nil, nil, nil))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(h.dir, "state", "secrets")))
	require.NoError(t, os.Rename(h.repo.bare, h.repo.bare+".away"))
	h.start()
	h.until("both are back without the forge", func() bool {
		cs := h.containers("db", "file")
		return len(cs) == 2 && cs[0].State.Running && cs[1].State.Running
	})
	// Neither does who goes back need it: the older value is made of what was kept of its commit.
	code, out := h.run("rollout", "undo", app, "--reason", "the other password")
	require.Zero(t, code, out)
	h.until("the older value is back without the forge", func() bool {
		cs := h.containers("db")
		return len(cs) == 1 && cs[0].State.Running && cs[0].env("PASSWORD") == first
	})
	h.nowhere("cana.ry")
	code, out = h.run("release", app, "--reason", "and back")
	require.Zero(t, code, out)
	require.NoError(t, os.Rename(h.repo.bare+".away", h.repo.bare))
	h.synced(sha)
	h.until("what Git asks for is back", func() bool {
		cs := h.containers("db")
		return len(cs) == 1 && cs[0].State.Running && cs[0].env("PASSWORD") == second
	})
	has(second)

	// Whoever leaves without a word about secrets leaves nothing behind, and is told why.
	settled(h)
	mark, before = h.events.mark(), ids()
	code, out = h.run("leave", app, "--reason", "another team has it")
	require.NotZero(t, code, out)
	require.Contains(t, out, "db")
	require.Contains(t, out, "--with-secrets")
	require.Empty(t, h.events.after(mark, mutations...), "nothing is touched")
	require.Equal(t, before, ids())
	require.NotNil(t, h.status().app(app))
	h.nowhere("cana.ry")
}
