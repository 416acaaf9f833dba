package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The daemon ended after a run was told and before its log was read, and a person had
// the job tried again meanwhile, so that its container is meant to go.
func TestTheContainerOfARunStaysUntilItsLogIsRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := stopped(now, 1, theNetwork())
	id, app := ring.ID("shop", "web"), w.Facts.Apps["shop"]
	app.App.Services[0].Kind, app.App.Services[0].Job = ring.JobK, &ring.Job{Run: "on_change"}
	w.Facts.Set(app)
	w.Seen.Instances[0].Kind = ring.JobK
	run := ring.Run{ID: id, Version: "1:aa", Commit: "c1", Instance: "id1", State: jobFailed, Reason: "exited with code 3", Ended: now}
	w.Facts.Set(ring.Unread{Run: run})
	w.Facts.Set(ring.Intent{Instance: "id1", Kind: intentRemove, Reason: "runs again", At: now})

	d := Diff(w, now)
	require.Len(t, d.Actions, 1)
	require.Equal(t, ring.DoLog, d.Actions[0].Kind)
	require.Equal(t, run, d.Actions[0].Record)
	read := run
	read.Log = []string{"no such table"}
	for says, c := range map[string]struct {
		log  []string
		err  error
		want []ring.Fact
	}{
		"read":        {log: read.Log, want: []ring.Fact{read, ring.Forget{Table: "unread", Key: "id1"}}},
		"empty":       {want: []ring.Fact{ring.Forget{Table: "unread", Key: "id1"}}},
		"not to read": {err: errors.New("no such container"), want: []ring.Fact{ring.Forget{Table: "unread", Key: "id1"}}},
	} {
		facts, told := Settle(NewRecent(), nil, d.Actions[0], ring.Done{Log: c.log}, c.err, now)
		require.Equal(t, c.want, facts, says)
		require.Empty(t, told, says)
	}

	w.Facts.Set(ring.Forget{Table: "unread", Key: "id1"})
	d = Diff(w, now)
	require.Len(t, d.Actions, 1)
	require.Equal(t, ring.DoRemove, d.Actions[0].Kind)

	w.Seen.Instances = nil
	w.Facts.Set(ring.Unread{Run: run})
	require.Contains(t, Diff(w, now).Facts, ring.Forget{Table: "unread", Key: "id1"}, "somebody removed it")
}
