package history

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
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
		for _, c := range Fold(events, Present{}) {
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
	for _, c := range Fold(OfApp(events, "wiki"), Present{}) {
		own = append(own, string(c.Commit)+" "+c.Outcome+" "+c.Signer)
	}
	require.Equal(t, []string{"b2c3d4e5 partly refused bob"}, own)
}

func TestACommitIsLiveOnceItsRolloutsHaveCompleted(t *testing.T) {
	const first, second = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5")
	began := func(c ring.SHA, app, service string) ring.Event {
		return ring.Event{Kind: ring.RolloutBegan, Source: "prod", Commit: c, App: app, Service: service, Reason: "first deploy"}
	}
	inForce := func(c ring.SHA, app string) ring.Event {
		return ring.Event{Kind: ring.AppInForce, Source: "prod", Commit: c, App: app, Reason: "plan is in force"}
	}
	completed := func(c ring.SHA, app, service string) ring.Event {
		return ring.Event{Kind: ring.RolloutCompleted, Source: "prod", Commit: c, App: app, Service: service, Reason: "1/1 ready"}
	}
	shop := map[string]ring.InForce{"shop": {App: ring.App{Name: "shop", Source: "prod", Commit: second, Services: []ring.Service{
		{Name: "web", Kind: ring.Worker, Changed: second}, {Name: "db", Kind: ring.Worker, Changed: first},
	}}}}
	status := func(web, db ring.Phase) *ring.Status {
		return &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{
			{Name: "web", Kind: ring.Worker, Phase: web, Reason: "the policy refuses its image"}, {Name: "db", Kind: ring.Worker, Phase: db, Reason: "0/1 ready"},
		}}}}}}
	}
	for _, tt := range []struct {
		name   string
		oldest []ring.Event
		st     *ring.Status
		want   string
	}{
		{"in force, and nothing of it has run", []ring.Event{inForce(second, "shop")}, status(ring.PhaseDegraded, ring.PhaseReady), "accepted | shop/web: the policy refuses its image"},
		{"its rollout has begun", []ring.Event{inForce(second, "shop"), began(second, "shop", "web")}, status(ring.PhaseProgressing, ring.PhaseReady), "accepted | shop/web: the policy refuses its image"},
		{"one of two has completed", []ring.Event{inForce(second, "shop"), began(second, "shop", "web"), began(second, "shop", "db"), completed(second, "shop", "db")}, status(ring.PhaseDegraded, ring.PhaseReady), "accepted | shop/web: the policy refuses its image"},
		{"an older commit whose rollout never ended", []ring.Event{inForce(second, "blog"), began(second, "blog", "web")}, &ring.Status{}, "accepted | blog/web: its rollout has not completed"},
		{"another commit's service is ill", []ring.Event{inForce(second, "shop"), began(second, "shop", "web"), completed(second, "shop", "web")}, status(ring.PhaseReady, ring.PhaseDegraded), "live | "},
		{"what completed and is ill later was live", []ring.Event{inForce(second, "shop"), began(second, "shop", "web"), completed(second, "shop", "web")}, status(ring.PhaseDegraded, ring.PhaseReady), "live | "},
		{"a change in place has no rollout", []ring.Event{inForce(second, "shop")}, status(ring.PhaseReady, ring.PhaseReady), "live | "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			slices.Reverse(tt.oldest)
			got := Fold(tt.oldest, PresentOf(shop, tt.st))
			require.Len(t, got, 1)
			require.Equal(t, tt.want, got[0].Outcome+" | "+got[0].Says)
		})
	}
}

// A commit after the one that an undo goes back to may ask for the same: it moved a line, say,
// or reverted what came between. It is no commit that was taken back.
func TestACommitThatAsksForWhatIsBackIsNotUndone(t *testing.T) {
	const first, moved, broken, reverted = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5"), ring.SHA("c3d4e5f6"), ring.SHA("d4e5f6a7")
	plan := func(c ring.SHA, image string) ring.App {
		return ring.App{Name: "shop", Source: "prod", Commit: c, Written: string(c), Services: []ring.Service{
			{Name: "web", Kind: ring.Worker, Changed: c, Line: int(c[0]), Version: ring.Version("1:" + image)},
		}}
	}
	var events []ring.Event // the newest first
	for i, c := range []struct {
		commit ring.SHA
		image  string
	}{{first, "1"}, {moved, "1"}, {broken, "2"}, {reverted, "1"}} {
		app := plan(c.commit, c.image)
		events = append([]ring.Event{
			{Seq: int64(2*i + 1), Kind: ring.AppInForce, Source: "prod", Commit: c.commit, App: "shop", Version: ring.AskedVersion(&app)},
			{Seq: int64(2 * i), Kind: ring.CommitAccepted, Source: "prod", Commit: c.commit},
		}, events...)
	}
	back := map[string]ring.InForce{"shop": {Undone: true, App: plan(first, "1")}}
	outcomes := func() (got []string) {
		for _, c := range Fold(events, PresentOf(back, &ring.Status{})) {
			got = append(got, c.Outcome)
		}
		return got
	}
	require.Equal(t, []string{"live", "undone", "live", "live"}, outcomes())
	for i := range events {
		events[i].Version = "" // as an older daemon wrote them
	}
	require.Equal(t, []string{"undone", "undone", "undone", "live"}, outcomes())
}

// "live" is what runs: of two commits that changed the same, one.
func TestOnlyWhatRunsIsLive(t *testing.T) {
	const first, second, third = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5"), ring.SHA("c3d4e5f6")
	var events []ring.Event // the newest first
	for i, c := range []ring.SHA{first, second, third} {
		for _, kind := range []string{ring.CommitAccepted, ring.AppInForce, ring.RolloutCompleted} {
			e := ring.Event{Seq: int64(3*i + 1), Kind: kind, Source: "prod", Commit: c}
			if kind != ring.CommitAccepted {
				e.App = "shop"
			}
			if kind == ring.RolloutCompleted {
				e.Service = "web"
			}
			events = append([]ring.Event{e}, events...)
		}
	}
	shop := func(c ring.SHA, db ring.SHA, undone bool) map[string]ring.InForce {
		return map[string]ring.InForce{"shop": {Undone: undone, App: ring.App{Name: "shop", Source: "prod", Commit: c, Services: []ring.Service{
			{Name: "web", Kind: ring.Worker, Changed: c}, {Name: "db", Kind: ring.Worker, Changed: db},
		}}}}
	}
	running := func(c ring.SHA) *ring.Status {
		return &ring.Status{
			Sources:   []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{{Name: "web", Phase: ring.PhaseReady, Running: c}}}}}},
			Overrides: []ring.Override{{Kind: "undo", Target: "shop", Actor: "ops", Reason: "checkout answers 500"}},
		}
	}
	for _, tt := range []struct {
		name    string
		inForce map[string]ring.InForce
		runs    ring.SHA
		want    []string // the newest first
	}{
		{"the newest runs", shop(third, third, false), third, []string{"live | ", "replaced | ", "replaced | "}},
		{"a service of the first was not changed since", shop(third, first, false), third, []string{"live | ", "replaced | ", "live | "}},
		{"a service still runs what the second brought", shop(third, third, false), second, []string{"live | ", "live | ", "replaced | "}},
		{
			"a person took the last two back", shop(first, first, true), first,
			[]string{"undone | shop: undone to a1b2c3d by ops: checkout answers 500", "undone | shop: undone to a1b2c3d by ops: checkout answers 500", "live | "},
		},
		{"the app is gone", nil, "", []string{"replaced | ", "replaced | ", "replaced | "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Fold(events, PresentOf(tt.inForce, running(tt.runs))) {
				got = append(got, c.Outcome+" | "+c.Says)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// A comment, and the revert of what was refused, ask for nothing that does not run: no line of an
// app tells of them.
func TestACommitThatChangesNothingThatRunsIsLiveOnceTheHostIsAsItSays(t *testing.T) {
	const first, comment, next = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5"), ring.SHA("c3d4e5f6")
	accepted := func(seq int64, c ring.SHA) ring.Event {
		return ring.Event{Seq: seq, Kind: ring.CommitAccepted, Source: "prod", Commit: c}
	}
	ran := func(seq int64, c ring.SHA) ring.Event {
		return ring.Event{Seq: seq, Kind: ring.AppInForce, Source: "prod", Commit: c, App: "shop"}
	}
	status := func(c ring.SHA, sync ring.Sync) *ring.Status {
		return &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Commit: c, Sync: sync, Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{{Name: "web", Phase: ring.PhaseReady, Running: first}}}}}}}
	}
	ended := func(kind string, seq int64, c ring.SHA) ring.Event {
		return ring.Event{Seq: seq, Kind: kind, Source: "prod", Commit: c, App: "shop", Service: "web"}
	}
	began := func(seq int64, c ring.SHA) ring.Event { return ended(ring.RolloutBegan, seq, c) }
	running := func(c ring.SHA) *ring.Status {
		st := status(c, ring.SyncSynced)
		st.Sources[0].Apps[0].Services[0].Running = c
		return st
	}
	waiting := func(st *ring.Status, n ring.Next) *ring.Status { st.Sources[0].Next = &n; return st }
	for _, tt := range []struct {
		name   string
		events []ring.Event // the newest first
		now    *ring.Status
		want   []string
	}{
		{"the host is as it says", []ring.Event{accepted(3, comment), ran(2, first), accepted(1, first)}, status(comment, ring.SyncSynced), []string{"live", "live"}},
		{"nobody came to it so far", []ring.Event{accepted(3, comment), ran(2, first), accepted(1, first)}, status(first, ring.SyncSynced), []string{"accepted", "live"}},
		{"the host is on its way", []ring.Event{accepted(3, comment), ran(2, first), accepted(1, first)}, status(comment, ring.SyncApplying), []string{"accepted", "live"}},
		{
			"another one came after it",
			[]ring.Event{ran(5, next), accepted(4, next), accepted(3, comment), ran(2, first), accepted(1, first)},
			status(next, ring.SyncSynced),
			[]string{"live", "replaced", "live"},
		},
		{
			"another comment came after it",
			[]ring.Event{accepted(4, next), accepted(3, comment), ran(2, first), accepted(1, first)},
			status(next, ring.SyncSynced),
			[]string{"live", "replaced", "live"},
		},
		{
			"one that waits came after it",
			[]ring.Event{{Seq: 5, Kind: ring.PlanAwaiting, Source: "prod", Commit: next, Reason: "it removes shop"}, accepted(4, next), accepted(3, comment), ran(2, first), accepted(1, first)},
			status(comment, ring.SyncHeld),
			[]string{"awaiting approval", "accepted", "live"},
		},
		{
			"one that waited for a yes was passed",
			[]ring.Event{ran(6, next), accepted(5, next), {Seq: 4, Kind: ring.PlanAwaiting, Source: "prod", Commit: comment, Reason: "it removes shop"}, accepted(3, comment), ran(2, first), accepted(1, first)},
			status(next, ring.SyncSynced),
			[]string{"live", "replaced", "live"},
		},
		{
			"a hold keeps it",
			[]ring.Event{{Seq: 4, Kind: ring.PlanAwaiting, Source: "prod", Commit: next, Reason: "it removes shop"}, accepted(3, next), ran(2, first), accepted(1, first)},
			waiting(status(first, ring.SyncHeld), ring.Next{Commit: next, Reason: "app shop: held by alice", Code: ring.WhyHeldByPerson}),
			[]string{"held", "live"},
		},
		{
			"an undo of what was live is released before it is done",
			[]ring.Event{ended(ring.RolloutCompleted, 9, comment), began(8, comment), ended(ring.RolloutSuperseded, 7, first), began(6, first), ended(ring.RolloutCompleted, 5, comment), ran(4, comment), ended(ring.RolloutCompleted, 3, first), ran(2, first), accepted(1, first)},
			running(comment),
			[]string{"live", "replaced"},
		},
		{
			"what never ran and was passed",
			[]ring.Event{ended(ring.RolloutCompleted, 9, comment), began(8, comment), ended(ring.RolloutSuperseded, 7, first), began(6, first), ran(2, first), accepted(1, first)},
			running(comment),
			[]string{"live", "superseded"},
		},
		{
			"what failed has failed, also where a mend came before the version before it was back",
			[]ring.Event{ended(ring.RolloutCompleted, 9, comment), began(8, comment), ended(ring.RolloutSuperseded, 7, first), ended(ring.RolloutFailed, 6, first), began(5, first), ran(2, first), accepted(1, first)},
			running(comment),
			[]string{"live", "failed"},
		},
		{
			"what was restored was restored, whatever came after it",
			[]ring.Event{ended(ring.RolloutCompleted, 9, comment), began(8, comment), ended(ring.RolloutSuperseded, 7, first), ended(ring.RolloutRestored, 6, first), began(5, first), ran(2, first), accepted(1, first)},
			running(comment),
			[]string{"live", "restored"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inForce := next
			if tt.now.Sources[0].Apps[0].Services[0].Running == comment {
				inForce = comment
			}
			var got []string
			for _, c := range Fold(tt.events, PresentOf(map[string]ring.InForce{"shop": {App: ring.App{Name: "shop", Source: "prod", Commit: inForce, Services: []ring.Service{{Name: "web", Kind: ring.Worker, Changed: tt.now.Sources[0].Apps[0].Services[0].Running}}}}}, tt.now)) {
				got = append(got, c.Outcome)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestTheHistoryHasEachMoveOfATagWithWhatCameOfIt(t *testing.T) {
	const c = ring.SHA("a1b2c3d4e5f60718293a4b5c6d7e8f9012345678")
	var events []ring.Event // the newest first
	tell := func(kind, service, reason string) {
		events = append([]ring.Event{{Seq: int64(len(events) + 1), Kind: kind, Source: "prod", Commit: c, App: "shop", Service: service, Actor: "ops", Reason: reason}}, events...)
	}
	line := func() api.CommitNow {
		all := Fold(events, Present{})
		require.Len(t, all, 1)
		return all[0]
	}
	tell(ring.AppInForce, "", "in force")
	tell(ring.RolloutCompleted, "web", "1/1 ready")
	require.Empty(t, line().Says)
	tell(ring.TagFollowed, "web", "tag nginx:1 moved, image a -> b")
	require.Equal(t, "shop/web: tag nginx:1 moved, image a -> b (accepted)", line().Says)
	tell(ring.RolloutBegan, "web", "tag nginx:1 moved")
	tell(ring.RolloutFailed, "web", "slot 1 exited")
	require.Contains(t, line().Says, "image a -> b (failed)")
	tell(ring.RolloutRestored, "web", "slot 1 exited")
	tell(ring.TagFollowed, "api", "tag nginx:1 moved, image a -> b")
	tell(ring.RolloutCompleted, "api", "1/1 ready")
	require.Contains(t, line().Says, "shop/web: tag nginx:1 moved, image a -> b (restored); shop/api: tag nginx:1 moved, image a -> b (live)")
	for _, to := range []string{"c", "d", "e"} {
		tell(ring.TagFollowed, "web", "tag nginx:1 moved, image a -> "+to)
		tell(ring.RolloutCompleted, "web", "1/1 ready")
	}
	require.NotContains(t, line().Says, "-> b")
	require.Contains(t, line().Says, "image a -> e (live); 2 moves of tags before")
	require.Equal(t, api.OutcomeLive, line().Outcome)
	tell(ring.TagApproved, "web", "image nginx:1 at b: it is meant")
	require.Contains(t, line().Says, "approved by ops: image nginx:1 at b: it is meant")
}

func TestAnAppThatIsRefusedNoMoreIsNoLineOfItsCommit(t *testing.T) {
	const c, next = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5")
	var events []ring.Event // the newest first
	tell := func(kind string, c ring.SHA, app, service string) {
		events = append([]ring.Event{{Seq: int64(len(events) + 1), Kind: kind, Source: "prod", Commit: c, App: app, Service: service, Reason: "why"}}, events...)
	}
	outcomes := func() (out []string) {
		for _, c := range Fold(events, Present{}) {
			out = append(out, string(c.Commit)+" "+c.Outcome+" | "+c.Says)
		}
		return out
	}
	tell(ring.CommitAccepted, c, "", "")
	tell(ring.AppInForce, c, "shop", "")
	tell(ring.AppRefused, c, "shop", "") // the host lost a key, say
	tell(ring.AppRefused, c, "wiki", "")
	require.Equal(t, []string{"a1b2c3d4 partly refused | shop: why; wiki: why"}, outcomes())
	tell(ring.AppRecovered, c, "wiki", "web") // a service of what runs is well again
	tell(ring.AppRecovered, c, "shop", "")
	require.Equal(t, []string{"a1b2c3d4 partly refused | wiki: why"}, outcomes())
	tell(ring.AppRecovered, c, "wiki", "")
	require.Equal(t, []string{"a1b2c3d4 live | "}, outcomes())

	tell(ring.AppRefused, c, "shop", "")
	tell(ring.CommitAccepted, next, "", "")
	tell(ring.AppInForce, next, "shop", "")
	tell(ring.AppRecovered, next, "shop", "") // by another commit: this one was refused
	require.Equal(t, []string{"b2c3d4e5 live | ", "a1b2c3d4 partly refused | shop: why"}, outcomes())
	require.Contains(t, Kinds, ring.AppRecovered)
}
