package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestHistoryIsALineForEachCommit(t *testing.T) {
	const first, second, third = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5"), ring.SHA("c3d4e5f6")
	at := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	var events []ring.Event // the newest first
	tell := func(kind string, c ring.SHA, app, service, actor, reason string) {
		at = at.Add(time.Minute)
		events = append([]ring.Event{{Seq: int64(len(events) + 1), At: at, Kind: kind, Source: "prod", Commit: c, App: app, Service: service, Actor: actor, Reason: reason}}, events...)
	}
	outcomes := func() (out []string) {
		for _, c := range foldHistory(events) {
			out = append(out, string(c.Commit)+" "+c.Outcome+" "+c.Signer+" | "+c.Says)
		}
		return out
	}
	tell(ring.CommitAccepted, first, "", "", "alice", "first use")
	require.Equal(t, []string{"a1b2c3d4 accepted alice | "}, outcomes())
	tell(ring.PlanAwaiting, first, "", "", "", "it removes 3 of 4 services")
	require.Equal(t, []string{"a1b2c3d4 awaiting approval alice | it removes 3 of 4 services"}, outcomes())
	tell(ring.PlanApproved, first, "", "", "ops", "moving out")
	tell(ring.AppInForce, first, "shop", "", "", "plan a1 is in force")
	tell(ring.RolloutFailed, first, "shop", "web", "", "slot 1 exited with code 1")
	require.Equal(t, []string{"a1b2c3d4 failed alice | approved by ops: moving out; shop/web: slot 1 exited with code 1"}, outcomes())
	tell(ring.RolloutCompleted, first, "shop", "web", "", "2/2 ready")
	for range 30 {
		tell(ring.JobSucceeded, first, "shop", "backup", "", "exit code 0")
	}
	require.Equal(t, []string{"a1b2c3d4 live alice | approved by ops: moving out"}, outcomes(), "what came last counts, and runs of jobs are no lines")
	tell(ring.JobFailed, first, "shop", "backup", "", "exited with code 2")
	require.Equal(t, "a1b2c3d4 job failed alice | approved by ops: moving out; shop/backup: exited with code 2", outcomes()[0])
	tell(ring.JobSucceeded, first, "shop", "backup", "", "exit code 0")

	tell(ring.CommitAccepted, second, "", "", "bob", "verified")
	tell(ring.AppInForce, second, "shop", "", "", "plan b2 is in force")
	tell(ring.RolloutRestored, second, "shop", "web", "", "kept a1b2c3d: not ready")
	tell(ring.RolloutCompleted, second, "shop", "db", "", "1/1 ready")
	tell(ring.AppRefused, second, "wiki", "", "", "UnknownKey")
	tell(ring.CommitRefused, third, "", "", "", "commit c3d4e5f is not signed")
	tell(ring.OverrideBegan, first, "shop", "", "ops", "undo to a1b2c3d4")
	require.Equal(t, []string{
		"c3d4e5f6 refused  | commit c3d4e5f is not signed",
		"b2c3d4e5 restored bob | shop/web: kept a1b2c3d: not ready",
		"a1b2c3d4 live alice | approved by ops: moving out",
	}, outcomes())

	var own []string
	for _, c := range foldHistory(ofApp(events, "wiki")) {
		own = append(own, string(c.Commit)+" "+c.Outcome+" "+c.Signer)
	}
	require.Equal(t, []string{"b2c3d4e5 partly refused bob"}, own)
}
