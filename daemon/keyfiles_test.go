package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// A file of keys may go bad while apps run. What was read from it opens the next commit all the
// same, the sources that it is for are told, and a file that is good again takes that back.
func TestAKeyFileThatGoesBadLaterStopsNothingAndIsTold(t *testing.T) {
	keys, other := newKeyring(t), newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file, Sources: []string{"prod"}})
	good, err := os.ReadFile(keys.file)
	require.NoError(t, err)
	others, err := os.ReadFile(other.file)
	require.NoError(t, err)
	told := func(source string) []ring.Condition {
		h.d.keyFiles.look(h.d.cfg.Secrets.Keys, h.d.secrets.keys)
		return h.d.keyFiles.conditions(h.d.cfg.Secrets.Keys, source)
	}
	mended := func() {
		t.Helper()
		require.NoError(t, os.RemoveAll(keys.file))
		require.NoError(t, os.WriteFile(keys.file, good, 0o600))
		require.Empty(t, told("prod"), "it is good again")
	}
	require.Empty(t, told("prod"))
	commit := 0
	opens := func() string { // as the next commit and each new instance need it
		commit++
		value := canary + string(rune('a'+commit))
		app := h.app(h.look(nextSHA, fstest.MapFS{
			"shop/compose.yaml": file("services: {db: {image: 'web:1', pull_policy: never, env_file: db.enc.env}}\n"),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+value+"\n", keys.recipient)),
		}), "shop")
		db, _ := app.Service("db")
		require.Equal(t, value, h.opened(db.Spec.Environment["PASSWORD"]))
		return db.Written
	}
	require.NotEmpty(t, opens())
	for _, tt := range []struct {
		name, says string
		ends       bool // a daemon that starts now ends with that
		spoil      func() error
	}{
		{"gone", "no such file", true, func() error { return os.Remove(keys.file) }},
		{"empty", "cannot use the key file", true, func() error { return os.WriteFile(keys.file, nil, 0o600) }},
		{"readable by others", "can be read by others", true, func() error { return os.Chmod(keys.file, 0o644) }},
		{"no key", "cannot use the key file", true, func() error {
			_ = os.Chmod(keys.file, 0o600)
			return os.WriteFile(keys.file, []byte("AGE-SECRET-KEY-1\n"), 0o600)
		}},
		{"a folder", "", true, func() error { _ = os.Remove(keys.file); return os.Mkdir(keys.file, 0o700) }},
		{"another key", "holds other keys", false, func() error { return os.WriteFile(keys.file, others, 0o600) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.spoil())
			all := told("prod")
			require.Len(t, all, 1)
			require.Equal(t, ring.ConditionKeysInvalid, all[0].Type)
			require.Contains(t, all[0].Reason, keys.file)
			require.Contains(t, all[0].Reason, tt.says)
			require.NotContains(t, all[0].Reason, "AGE-SECRET-KEY")
			require.Empty(t, told("staging"), "its files are not opened by this one")
			require.Equal(t, all, told("prod"), "and it stays so")
			opens()
			_, err := newSecretFiles(h.d.cfg, h.d.env.key)
			require.Equal(t, tt.ends, err != nil, "%v", err)
			mended()
		})
	}
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(keys.file), "more"), nil, 0o600))
	require.Empty(t, told("prod"), "another file beside it is no matter")
}
