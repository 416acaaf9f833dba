package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestShownKnowsCommitsByTheirStart(t *testing.T) {
	const (
		tip  = ring.SHA("a1b2c3d4e5f60718293a4b5c6d7e8f9012345678")
		twin = ring.SHA("a1b2c3d4ffffffffffffffffffffffffffffffff")
		good = ring.SHA("b2c3d4e5f60718293a4b5c6d7e8f9012345678a1")
		none = "c3d4e5f60718293a4b5c6d7e8f9012345678a1b2"
	)
	st := &ring.Status{Sources: []ring.SourceStatus{{Tip: tip, Commit: tip, Apps: []ring.AppStatus{{
		Commit: twin, Services: []ring.ServiceStatus{{LastGood: good}},
	}}}}}
	for _, tt := range []struct {
		name, rev string
		want      ring.SHA
		ok        bool
	}{
		{name: "seven digits of one commit name it", rev: "b2c3d4e", want: good, ok: true},
		{name: "a start of two commits names neither", rev: "a1b2c3d", ok: false},
		{name: "a longer start tells them apart", rev: "a1b2c3d4e", want: tip, ok: true},
		{name: "six digits are too few", rev: "b2c3d4", ok: false},
		{name: "a full id need not be shown", rev: none, want: ring.SHA(none), ok: true},
		{name: "a revision is for a clone", rev: "HEAD~10", ok: false},
		{name: "nothing names nothing", rev: "", ok: false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := shown(st, tt.rev)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

// The code is the one that the loop gives a plan that a guard holds.
func TestAPlanAwaitsAYesWhateverTheTip(t *testing.T) {
	const sha = ring.SHA("b2c3d4e5f60718293a4b5c6d7e8f9012345678a1")
	source := func(sync ring.Sync, code ring.ReasonCode) *ring.Status {
		return &ring.Status{Sources: []ring.SourceStatus{{}, {Sync: sync, Next: &ring.Next{Commit: sha, Code: code, Reason: "it says so"}}}}
	}
	const waits = ring.WhyAwaitingApproval
	require.True(t, awaits(source(ring.SyncHeld, waits), "b2c3d4e"))
	require.True(t, awaits(source(ring.SyncRefused, waits), sha), "a newer tip is refused meanwhile")
	require.False(t, awaits(source(ring.SyncHeld, waits), "a1b2c3d"), "another commit")
	require.False(t, awaits(source(ring.SyncStaging, ring.WhyImagePending), sha), "it only takes its time")
	require.False(t, awaits(&ring.Status{Sources: []ring.SourceStatus{{Commit: sha}}}, sha), "it is in force")
}
