package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
)

// Each of these ends a daemon at its start, so "config check" has to say it before.
func TestAConfigurationIsCheckedWithTheValuesThatItNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
		require.NoError(t, os.Chmod(file, mode)) // whatever the umask is
		return file
	}
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	key := config.SecretsConfig{Keys: []config.SecretKey{{AgeFile: write("good.key", id.String()+"\n", 0o600)}}}
	provider := func(program, env string) config.SecretsConfig {
		return config.SecretsConfig{Providers: map[string]config.SecretProvider{"vault": {Exec: []string{program, "{ref}"}, EnvFile: env}}}
	}
	program := write("ask", "#!/bin/sh\n", 0o700)
	folder := func(name string, mode os.FileMode) config.EnvConfig {
		made := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(made, 0o700))
		require.NoError(t, os.Chmod(made, mode))
		return config.EnvConfig{Dir: made}
	}
	for _, c := range []struct {
		name    string
		secrets config.SecretsConfig
		env     config.EnvConfig
		says    string // "" where nothing is wrong
	}{
		{name: "a configuration without any"},
		{name: "a good key", secrets: key},
		{name: "a key that is not there", secrets: config.SecretsConfig{Keys: []config.SecretKey{{AgeFile: filepath.Join(dir, "none.key")}}}, says: "secrets.keys: cannot read "},
		{name: "a key that others read", secrets: config.SecretsConfig{Keys: []config.SecretKey{{AgeFile: write("open.key", id.String()+"\n", 0o644)}}}, says: "can be read by others (mode 0644)"},
		{name: "a file that holds no key", secrets: config.SecretsConfig{Keys: []config.SecretKey{{AgeFile: write("no.key", "hello\n", 0o600)}}}, says: "secrets.keys: cannot use the key file "},
		{name: "a good provider", secrets: provider(program, write("good.env", "TOKEN=t\n", 0o600))},
		{name: "an environment that others read", secrets: provider(program, write("open.env", "TOKEN=t\n", 0o644)), says: "secrets.providers.vault: cannot trust "},
		{name: "a program that is not there", secrets: provider(filepath.Join(dir, "none"), ""), says: "secrets.providers.vault: "},
		{name: "a program that others write", secrets: provider(write("loose", "#!/bin/sh\n", 0o777), ""), says: "can be written by others (mode 0777)"},
		{name: "a good env folder", env: folder("env", 0o700)},
		{name: "an env folder that is not there", env: config.EnvConfig{Dir: filepath.Join(dir, "nowhere")}, says: "cannot read env.dir: "},
		{name: "an env folder that others write", env: folder("open", 0o777), says: "env.dir: others may write into "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := &config.Config{State: filepath.Join(dir, "state"), Secrets: c.secrets, Env: c.env}
			err := CheckValues(cfg)
			require.NoDirExists(t, cfg.State, "checking makes nothing")
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Root asks, and the files are those of the user that the daemon runs as: so the how-to has them.
func TestRootChecksAConfigurationAsTheDaemonsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const daemons, another = 4711, 4712
	dir := t.TempDir()
	file, state := filepath.Join(dir, "age.key"), filepath.Join(dir, "state")
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(id.String()+"\n"), 0o600))
	require.NoError(t, os.Chown(file, daemons, daemons))
	env := filepath.Join(dir, "env")
	require.NoError(t, os.Mkdir(env, 0o700))
	require.NoError(t, os.Chown(env, daemons, daemons))
	cfg := &config.Config{State: state, Env: config.EnvConfig{Dir: env}, Secrets: config.SecretsConfig{Keys: []config.SecretKey{{AgeFile: file}}}}
	require.NoError(t, CheckValues(cfg), "before the first start nothing tells who the daemon's user is")

	require.NoError(t, os.Mkdir(state, 0o700))
	require.NoError(t, os.Chown(state, daemons, daemons))
	require.NoError(t, CheckValues(cfg))

	require.NoError(t, os.Chown(state, another, another))
	require.ErrorContains(t, CheckValues(cfg), "belongs to")
}
