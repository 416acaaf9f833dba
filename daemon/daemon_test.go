package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// lonely is the configuration of a host whose engine and remote are away.
func lonely(t *testing.T, http string) *config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "g") // short: a unix socket's path has at most 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	file := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `host: edge-1
state: state
data_root: data
engine: {url: "unix://%[1]s/no-engine.sock"}
listen: {socket: run/s, http: %[2]q}
sources:
  - name: prod
    url: file://%[1]s/no-repository
    trust: {mode: disabled}
`, dir, http), 0o600))
	cfg, err := config.Load(file)
	require.NoError(t, err)
	release, err := store.Lock(cfg.State, cfg.Engine.URL, cfg.Host)
	require.NoError(t, err)
	t.Cleanup(release)
	return cfg
}

func TestADaemonWhoseEngineIsAwayStartsSaysSoAndEnds(t *testing.T) {
	before := goleak.IgnoreCurrent()
	cfg := lonely(t, "127.0.0.1:0")
	var out bytes.Buffer
	d, err := New(t.Context(), cfg, slog.New(slog.NewJSONHandler(&out, nil)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	t.Cleanup(cancel)

	c := api.NewClient(cfg.Listen.Socket)
	var st ring.Status
	require.Eventually(t, func() bool {
		st, err = c.Status(t.Context())
		return err == nil && st.Engine != "" && strings.Contains(st.Sources[0].Reason, "cannot look at file://")
	}, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, st.Engine, "cannot reach the engine")
	require.Equal(t, ring.SyncUnknown, st.Sources[0].Sync)
	require.Equal(t, "trust is disabled: unsigned commits run", st.Sources[0].Trust)
	err = c.SyncWait(t.Context(), "prod", func(ring.Status) error { return nil })
	require.ErrorContains(t, err, "source prod: cannot look at file://")
	follow, stop := context.WithCancel(t.Context())
	defer stop()
	followed := make(chan error, 1)
	go func() {
		followed <- c.Events(follow, api.EventQuery{Follow: true}, func(ring.Event) error { return nil })
	}()

	cancel()
	select {
	case err := <-ended:
		require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "a part of the daemon does not end")
	}
	require.NotErrorIs(t, <-followed, context.Canceled, "the daemon ended it, not the test")
	d.Close()
	c.Close()
	require.NoFileExists(t, cfg.Listen.Socket)
	require.NotContains(t, out.String(), "cannot close")
	goleak.VerifyNone(t, before)
}

func TestAnAddressInUseEndsServeBeforeAnythingRuns(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close() //nolint:errcheck // the test's own
	cfg := lonely(t, taken.Addr().String())
	_, err = New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	var f *ring.HostError
	require.ErrorAs(t, err, &f)
	require.Contains(t, f.Says, "address already in use")
	require.Contains(t, f.Hint, "listen.http")
	require.NoFileExists(t, cfg.Listen.Socket, "a client would wait at it for ever")
}

func TestAStreakThatCannotBeReadDoesNotKeepTheDaemonDown(t *testing.T) {
	cfg := lonely(t, "")
	s, err := store.Open(t.Context(), cfg.State)
	require.NoError(t, err)
	require.NoError(t, s.SaveStreaks(t.Context(), []ring.Streak{{Instance: "abc", Check: "up"}}))
	require.NoError(t, s.Close())
	file := filepath.Join(cfg.State, "gitring.db")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := bytes.Replace(raw, []byte(`{"instance":"abc"`), []byte(`{"instance":"abd"`), 1)
	require.NotEqual(t, raw, changed)
	require.NoError(t, os.WriteFile(file, changed, 0o600))

	var out strings.Builder
	d, err := New(t.Context(), cfg, slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	d.Close()
	require.Contains(t, out.String(), "could not read every streak")
}

func TestADaemonWhoseDatabaseHasARowThatCannotBeReadGoesOnWithANewOne(t *testing.T) {
	cfg := lonely(t, "")
	s, err := store.Open(t.Context(), cfg.State)
	require.NoError(t, err)
	job := ring.JobRun{ID: "shop/migrate", Version: "1:a", State: "succeeded"}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{job, ring.Kept{App: "shop", Name: "volume shop_data"}}, nil))
	anchor := ring.Anchor{Source: "prod", SHA: ring.SHA(strings.Repeat("ab", 20)), How: "verified"}
	require.NoError(t, s.Trust(t.Context(), anchor, nil, nil))
	require.NoError(t, s.Close())
	file := filepath.Join(cfg.State, "gitring.db")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := bytes.Replace(raw, []byte(`{"app":"shop","name":"volume`), []byte(`{"app":"shop","name":volume"`), 1)
	require.NotEqual(t, raw, changed)
	require.NoError(t, os.WriteFile(file, changed, 0o600))

	var out bytes.Buffer
	d, err := New(t.Context(), cfg, slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	c := api.NewClient(cfg.Listen.Socket)
	var st ring.Status
	require.Eventually(t, func() bool {
		st, err = c.Status(t.Context())
		return err == nil && st.Engine != ""
	}, 20*time.Second, 20*time.Millisecond)
	require.Empty(t, st.Store, "it writes again")
	var told []ring.Event
	require.NoError(t, c.Events(t.Context(), api.EventQuery{}, func(e ring.Event) error {
		if e.Kind == ring.DaemonStarted {
			told = append(told, e)
		}
		return nil
	}))
	cancel()
	select {
	case err := <-ended:
		require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "a part of the daemon does not end")
	}
	facts, err := d.store.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]ring.JobRun{"shop/migrate@1:a": job}, facts.Jobs, "no job runs twice")
	now, err := d.store.Anchor(t.Context(), "prod")
	require.NoError(t, err)
	require.Equal(t, anchor.SHA, now.SHA, "nothing older is trusted")
	d.Close()
	c.Close()

	require.Len(t, told, 1)
	for _, says := range []string{
		`row "volume shop_data" of table "kept": its value is no JSON`, "it is kept as " + file + ".damaged-", "a new one is made from Git, files and labels",
		"what people had set by hand (holds, pauses, counts, approvals, adoptions) is to be set again", "anchor files of prod", "taken from their mark files",
	} {
		require.Contains(t, told[0].Reason, says)
	}
	require.Equal(t, 1, strings.Count(out.String(), "mended the store"))
	aside, err := filepath.Glob(file + ".damaged-*")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	again, err := store.Open(t.Context(), cfg.State)
	require.NoError(t, err)
	require.Empty(t, again.Notice(), "it is told once")
	require.NoError(t, again.Close())
}

// What waits for a receiver that was taken out of the configuration waits for nobody:
// that is said, asking again does not keep it, and one that comes back is told.
func TestWhatIsForARemovedReceiverIsToldAsSuch(t *testing.T) {
	cfg := lonely(t, "")
	st, err := store.Open(t.Context(), cfg.State)
	require.NoError(t, err)
	queue := func(to string) {
		at := time.Now().UTC()
		require.NoError(t, st.Advance(t.Context(), ring.Receiver{Name: to, Cursor: 1, State: []byte("{}")}, []ring.Delivery{
			{ID: to + "/1", Receiver: to, Kind: "x", Body: []byte("{}"), Queued: at}, {ID: to + "/2", Receiver: to, Kind: "y", Body: []byte("{}"), Queued: at},
		}))
		require.NoError(t, st.GiveUp(t.Context(), to+"/2", "the chat answered 404", at))
	}
	queue("ops")
	queue("team")
	require.NoError(t, st.Close())
	url := filepath.Join(filepath.Dir(cfg.File), "url")
	require.NoError(t, os.WriteFile(url, []byte("ntfy://ntfy.example.org/x"), 0o600))
	cfg.Notify = []config.NotifyConfig{{Name: "team", URLFile: url}}
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(d.Close)

	says := func() map[string]string {
		all, err := d.outbox(t.Context())
		require.NoError(t, err)
		out := map[string]string{}
		for _, u := range all {
			out[u.ID] = u.State + " " + u.Reason
		}
		return out
	}
	require.Equal(t, map[string]string{
		"ops/1":  "left ops is not in the configuration any more: this is not sent, and goes after 30 days",
		"ops/2":  "left ops is not in the configuration any more: this is not sent, and goes after 30 days; the last answer was: the chat answered 404",
		"team/1": "waiting ", "team/2": "dead the chat answered 404",
	}, says())
	_, err = d.outboxRetry(t.Context(), api.Peer{}, api.OutboxRetryRequest{ID: "ops/2"})
	var denied *api.Error
	require.ErrorAs(t, err, &denied)
	require.Equal(t, "ops/2 is for ops, which is not in the configuration any more", denied.Message)
	require.Equal(t, "add ops to the configuration again, and restart gitring", denied.Hint)
	require.ErrorIs(t, err, api.ErrConflict)
	done, err := d.outboxRetry(t.Context(), api.Peer{}, api.OutboxRetryRequest{All: true})
	require.NoError(t, err)
	require.Equal(t, 2, done.Count)
	require.Equal(t, "waiting ", says()["team/2"])
	require.Contains(t, says()["ops/2"], "404", "it is as it was")

	d.cfg.Notify = append(d.cfg.Notify, config.NotifyConfig{Name: "ops"})
	require.Equal(t, "waiting ", says()["ops/1"])
	require.Equal(t, "dead the chat answered 404", says()["ops/2"])
}
