package api

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestTheWayOutThroughTheSocket(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	ctx := context.Background()
	tested, err := c.NotifyTest(ctx, NotifyTestRequest{Name: "team"})
	require.NoError(t, err)
	require.Equal(t, []NotifyTested{{Name: "team", Service: "slack", Reason: "slack: it answered 403"}}, tested)
	all, err := c.Outbox(ctx)
	require.NoError(t, err)
	require.Equal(t, []ring.Unsaid{}, all)
	done, err := c.OutboxRetry(ctx, OutboxRetryRequest{ID: "team/7"})
	require.NoError(t, err)
	require.Equal(t, 3, done.Count)
	uid := strconv.Itoa(os.Geteuid())
	require.Equal(t, []string{"notify test team by=" + uid, "outbox", "outbox retry id=team/7 all=false dead=false by=" + uid}, d.takeCalled())
	for _, wrong := range []OutboxRetryRequest{{}, {ID: "x", All: true}, {All: true, Dead: true}} {
		_, err := c.OutboxRetry(ctx, wrong)
		require.ErrorIs(t, err, ErrUsage)
	}
	require.Empty(t, d.takeCalled())
}
