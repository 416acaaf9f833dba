package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// V67 in status: what waits for an approval holds the source with its sentence and
// exit 9, the forge is told at the tip, and nothing of it is carried out.
func TestASourceThatAwaitsApprovalIsHeld(t *testing.T) {
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	const says = "commit 2222222 has 1 of 2 approvals; it waits for somebody else with the role vouch to answer for it"
	src := Source{
		Name: "s", Branch: "main", Tip: "2222222222222222222222222222222222222222", Awaiting: says, Reached: now, FreshFor: time.Hour,
		Commit: &ring.Commit{SHA: "1111111111111111111111111111111111111111"},
		Next:   &ring.Plan{Source: "s", Commit: "1111111111111111111111111111111111111111"},
	}
	look := func() Decision {
		return Diff(World{Host: "h", Sources: []Source{src}, Seen: ring.Seen{}, Facts: ring.NewFacts()}, now)
	}
	d := look()
	require.Equal(t, ring.SyncHeld, d.Status.Sources[0].Sync)
	require.Equal(t, says, d.Status.Sources[0].Reason)
	require.Equal(t, 9, d.Status.ExitCode())
	require.Empty(t, d.Actions)
	tip := func() *ring.Post {
		for _, f := range look().Facts {
			if p, ok := f.(ring.Post); ok && p.SHA == src.Tip {
				return &p
			}
		}
		return nil
	}
	require.Equal(t, ring.PostPending, tip().State)
	require.Contains(t, tip().Description, "awaiting approval: commit 2222222 has 1 of 2")

	src.Awaiting, src.Refusal = "", &ring.Refusal{Code: ring.Unsigned, Commit: src.Tip, Says: "commit 2222222 is not signed"}
	require.Equal(t, ring.SyncRefused, look().Status.Sources[0].Sync)
	src.Refusal, src.Next, src.Commit, src.Awaiting = nil, nil, nil, says
	require.Equal(t, ring.SyncHeld, look().Status.Sources[0].Sync, "also before anything was trusted")
}
