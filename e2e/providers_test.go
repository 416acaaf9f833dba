package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProvidersValueIsDeployedAndNowhereElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	vault := filepath.Join(h.dir, "vault")
	const first, second, key = "cana.ry-horse-1", "cana.ry-horse-2", "cana.ry-of-the-vault"
	write := func(name, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(vault, name), []byte(text), mode))
	}
	require.NoError(t, os.MkdirAll(vault, 0o755))
	// It prints on its other output, too, what it may not keep.
	write("ask", "#!/bin/sh\necho call >> "+vault+"/calls\n[ \"$TOKEN\" = "+key+" ] || exit 9\ncat "+vault+"/value >&2\ncat "+vault+"/value\n", 0o755)
	write("env", "TOKEN="+key+"\n", 0o600)
	h.config["secrets"] = obj{"at_rest": "disk", "providers": obj{"vault": obj{"exec": []any{filepath.Join(vault, "ask"), "{ref}"}, "env_file": filepath.Join(vault, "env")}}}
	ref := "vault:secret/" + app + "/db"
	sha := h.repo.pushed("With a value of the vault", files{app + "/compose.yaml": h.compose(app, obj{
		"db":    web("1", obj{"environment": obj{"VERSION": "1", "PW": "${PW}"}}),
		"file":  web("1", obj{"secrets": []any{"pw"}}),
		"plain": web("1"),
	}, obj{"secrets": obj{"pw": obj{"environment": "PW"}}, "x-gitring": obj{"secrets": obj{"PW": ref}}})})
	h.start()

	// The vault is away: the app waits, and says for what.
	h.await("the app waits for the vault", func(st status) bool {
		return strings.Contains(st.app(app).Reason, "waits for "+ref+": "+filepath.Join(vault, "ask")+" ended with exit status 1")
	})
	require.Empty(t, h.containers())
	write("value", first+"\n", 0o600)
	h.done("secret", "refresh", app, "--reason", "it answers now")
	h.synced(sha)
	has := func(value string) {
		t.Helper()
		require.Equal(t, value, h.one("db").env("PW"))
		_, body := h.ask(h.one("file"), "/file?path=/run/secrets/pw")
		require.Equal(t, value, body)
		h.nowhere("cana.ry")
		require.NotContains(t, h.ofDaemon(), "cana.ry")
	}
	has(first)
	settled(h)

	// What runs can be proved, and the value is in no proof.
	file := filepath.Join(h.dir, "proof.json")
	h.done("prove", app+"/db", "-o", file)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(body), "cana.ry")
	code, proved := proofChecked(t, handedOver(t, file, h.repo.signers), "--check", "proof.json", "--allowed-signers", "allowed_signers", "--from", sha)
	require.Equal(t, 0, code, proved.Faults)
	require.Contains(t, strings.Join(proved.Word, "\n"), "PW of "+ref)

	// Killed, and the vault away: a container that is gone comes back, and nobody is asked.
	plain := h.one("plain").ID
	require.NoError(t, os.Remove(filepath.Join(vault, "value")))
	h.kill()
	require.NoError(t, os.Remove(filepath.Join(vault, "calls")))
	require.NoError(t, h.engine.call("DELETE", "/containers/"+h.one("db").ID+"?force=1", nil, nil, nil))
	h.start()
	h.until("it is back without the vault", func() bool { return len(h.running("db")) == 1 })
	h.synced(sha)
	has(first)
	require.NoFileExists(t, filepath.Join(vault, "calls"))

	// Another value rolls what uses it, and nothing else.
	write("value", second, 0o600)
	db, mounted := h.one("db").ID, h.one("file").ID
	require.Contains(t, h.done("secret", "refresh", app), "changed")
	h.until("the new value is live", func() bool { // an old one goes when the new one is ready
		cs := h.containers("db", "file")
		return len(cs) == 2 && !slices.ContainsFunc(cs, func(c *container) bool { return c.ID == db || c.ID == mounted })
	})
	settled(h)
	has(second)
	require.Equal(t, plain, h.one("plain").ID)
}
