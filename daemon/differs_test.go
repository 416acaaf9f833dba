package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
)

func TestAConfigurationThatDiffersFromWhatRunsIsTold(t *testing.T) {
	const said = "host: edge-1\npolicy: {profile: compose}\nsources: [{name: prod, url: 'file:///srv/x.git', trust: {mode: disabled}}]\n"
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(said), 0o600))
	cfg, err := config.Read(file)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		d := &Daemon{cfg: cfg}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.watchConfig(ctx) }()
		for _, tt := range []struct {
			name, text string
			differs    bool
		}{
			{"as it was read", said, false},
			{"another key", said + "poll: 5m\n", true},
			{"as it was read again", said, false},
			{"a comment and another order", "# mine\npolicy: {profile: compose}\n" + "host:   \"edge-1\"\n" + said[len("host: edge-1\npolicy: {profile: compose}\n"):], false},
			{"another policy, which counts by itself", "host: edge-1\npolicy: {profile: owner}\n" + said[len("host: edge-1\npolicy: {profile: compose}\n"):], false},
			{"half a save", said[:20], true},
			{"what is no YAML", "host: [", true},
		} {
			require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
			time.Sleep(configEvery + time.Second)
			synctest.Wait()
			require.Equal(t, tt.differs, d.differs.Load(), tt.name)
		}
		require.NoError(t, os.Remove(file))
		time.Sleep(configEvery + time.Second)
		synctest.Wait()
		require.True(t, d.differs.Load())
		cancel()
		require.NoError(t, <-ended)
	})
}
