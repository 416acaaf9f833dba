package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// line is the value of a series on a page; "" where it is not there.
func line(page, series string) string {
	for l := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(l, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func TestCountersBeginAtTheStartAndFollowTheJournal(t *testing.T) {
	cfg := lonely(t, "")
	ctx := t.Context()
	log := slog.New(slog.DiscardHandler)
	first, err := New(ctx, cfg, log)
	require.NoError(t, err)
	crash := func(d *Daemon) {
		t.Helper()
		require.NoError(t, d.store.Record(ctx, nil, []ring.Event{{At: time.Now(), Kind: ring.InstanceCrashed, Source: "prod", App: "web", Service: "api"}}))
	}
	crash(first)
	crash(first)
	for range 2 { // a line counts once, however often somebody looks
		page, err := first.scrape(ctx)
		require.NoError(t, err)
		require.Equal(t, "2", line(page, `gitring_events_total{kind="instance.crashed"}`))
	}
	first.Close()

	d, err := New(ctx, cfg, log)
	require.NoError(t, err)
	defer d.Close()
	page, err := d.scrape(ctx)
	require.NoError(t, err)
	require.Equal(t, "0", line(page, `gitring_events_total{kind="instance.crashed"}`), "what was before the start is not counted")
	crash(d)
	page, err = d.scrape(ctx)
	require.NoError(t, err)
	require.Equal(t, "1", line(page, `gitring_events_total{kind="instance.crashed"}`))
	require.Equal(t, "0", line(page, `gitring_fetches_total{source="prod",result="failed"}`))
	require.Empty(t, line(page, `gitring_webhooks_total{source="prod",result="taken"}`), "nobody can knock here")
	require.Equal(t, "1", line(page, `gitring_source_sync{source="prod",sync="Unknown"}`))
}

func TestTheSocketServesTheMetricsOfADaemonWhoseEngineIsAway(t *testing.T) {
	cfg := lonely(t, "")
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	c := api.NewClient(cfg.Listen.Socket)
	require.Eventually(t, func() bool {
		page, err := c.Metrics(ctx)
		return err == nil && line(page, "gitring_engine_up") == "0" && line(page, "gitring_store_up") == "1" &&
			line(page, `gitring_fetches_total{source="prod",result="failed"}`) != "0" &&
			line(page, `gitring_api_requests_total{route="GET /metrics",code="200"}`) != ""
	}, time.Minute, 50*time.Millisecond)
	c.Close()
	cancel()
	<-ended
	d.Close()
}

func TestABackupIsTooOldAfterThirtyDays(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	require.Empty(t, backupSays(time.Time{}, now), "whoever never made one is not told at each status")
	require.Empty(t, backupSays(now.AddDate(0, 0, -30), now))
	require.Equal(t, "the last one was made 2026-10-26, 31 days ago; gitring backup <file> makes one", backupSays(now.AddDate(0, 0, -31), now))
	require.Empty(t, backupSays(now.Add(time.Hour), now), "a clock that was set back is no old backup")
}
