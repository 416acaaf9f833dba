package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
)

// A value of the host may stand in a place that the policy judges. What is denied of the plan in
// force is told without it, also once the host has another value: then nobody knows any more
// which part of the plan was one.
func TestAViolationTellsNoValueThatTheHostHadBefore(t *testing.T) {
	cfg := lonely(t, "")
	body, err := os.ReadFile(cfg.File)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cfg.File, append(body, []byte("env: {dir: env}\n")...), 0o600))
	cfg, err = config.Load(cfg.File)
	require.NoError(t, err)
	folder := filepath.Join(cfg.Env.Dir, "web")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.Chmod(cfg.Env.Dir, 0o700))
	env, long := filepath.Join(folder, ".env"), time.Now().Add(-24*time.Hour)
	has := func(value string, at time.Time) {
		t.Helper()
		require.NoError(t, os.WriteFile(env, []byte("CAP="+value+"\n"), 0o600))
		for _, path := range []string{env, folder, cfg.Env.Dir} {
			require.NoError(t, os.Chtimes(path, at, at))
		}
	}
	has("CANARY_OLD", long)
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer d.Close()
	app := ring.App{Name: "web", Source: "prod", Path: "web", Services: []ring.Service{{
		Name: "web", Kind: ring.Worker, Replicas: 1, Spec: ring.Spec{Image: "a:1", CapAdd: []string{"CANARY_OLD"}},
	}}}
	require.NoError(t, d.ledger.Record(t.Context(), []ring.Fact{ring.InForce{App: app, Since: time.Now().Add(-time.Hour)}}, nil))
	says := func() string {
		t.Helper()
		d.judgeInForce(t.Context())
		all := d.violations.now()
		require.Len(t, all, 1)
		require.NotContains(t, all[0].says, "CANARY")
		require.Contains(t, all[0].says, "services.web.cap_add")
		return all[0].says
	}
	require.Contains(t, says(), "${CAP}")
	has("CANARY_NEW", time.Now())
	require.NotContains(t, says(), "${CAP}", "it is not the value of now")
	// Whoever removes the folder altogether changes the one above.
	has("CANARY_OLD", long)
	require.NoError(t, os.RemoveAll(folder))
	says()
}
