package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hearing is one receiver in a world without a store: what is folded is written
// as text and read again after every step, as a restart would.
type hearing struct {
	t      *testing.T
	choice Choice
	m      memory
	seq    int64
	now    time.Time
	wake   time.Time
	said   []string
}

func newHearing(t *testing.T, c Choice) *hearing {
	if len(c.Events) == 0 {
		c.Events = ChatEvents
	}
	c.Fold = true
	return &hearing{t: t, choice: c, now: noon}
}

// hears gives it events at once; an event is "kind subject [commit [reason]]".
func (h *hearing) hears(lines ...string) {
	var events []ring.Event
	for _, line := range lines {
		words := strings.SplitN(line, " ", 4)
		h.seq++
		e := ring.Event{Seq: h.seq, Kind: words[0], At: h.now, Source: "prod"}
		if app, service, ok := strings.Cut(words[1], "/"); ok {
			e.App, e.Service = app, service
		} else if words[1] != "prod" {
			e.App = words[1]
		}
		if len(words) > 2 && words[2] != "-" {
			e.Commit = ring.SHA(words[2])
		}
		if len(words) > 3 {
			e.Reason = words[3]
		}
		events = append(events, e)
	}
	h.step(events)
}

func (h *hearing) step(events []ring.Event) {
	m, notes, wake := h.choice.fold(h.m, events, h.now)
	raw, err := json.Marshal(m)
	require.NoError(h.t, err)
	h.m = memory{}
	require.NoError(h.t, json.Unmarshal(raw, &h.m))
	h.wake = wake
	for _, n := range notes {
		says := n.Kind + " " + subjectOf(ring.Event{Source: n.Source, App: n.App, Service: n.Service})
		if n.Count > 0 {
			says += fmt.Sprintf(" (%d more)", n.Count)
		}
		if n.Total > 0 {
			says = fmt.Sprintf("%d at once", n.Total)
		}
		h.said = append(h.said, says)
	}
}

// pass lets time pass, and asks whenever the fold wants to be asked.
func (h *hearing) pass(d time.Duration) {
	end := h.now.Add(d)
	for !h.wake.IsZero() && !h.wake.After(end) {
		require.True(h.t, h.wake.After(h.now), "it asks for the past")
		h.now = h.wake
		h.step(nil)
	}
	h.now = end
}

func (h *hearing) saidSince(want ...string) {
	h.t.Helper()
	require.Equal(h.t, want, h.said)
	h.said = nil
}

func TestATroubleIsToldOnceAndSoIsItsEnd(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("app.crash_looping web/web c1")
	h.saidSince("app.crash_looping web/web")
	for range 3 {
		h.pass(time.Hour)
		h.hears("app.crash_looping web/web c1")
	}
	h.saidSince()
	h.pass(time.Minute)
	h.hears("app.recovered web/web c1")
	h.saidSince("app.recovered web/web (3 more)")
	h.hears("app.recovered web/web c1")
	h.saidSince()
	h.pass(time.Hour)
	h.hears("app.crash_looping web/web c1")
	h.saidSince("app.crash_looping web/web")
}

func TestARolloutThatFailedAndWasRestoredIsOneMessage(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("rollout.failed web/web c2 not ready")
	h.saidSince()
	h.pass(20 * time.Second)
	h.hears("rollout.restored web/web c2 kept c1")
	h.saidSince("rollout.restored web/web")
	h.pass(time.Hour)
	h.saidSince()

	// Another commit that fails is news; the same one again is not.
	h.hears("rollout.failed web/web c3 not ready")
	h.pass(2 * time.Minute)
	h.saidSince("rollout.failed web/web")
	h.hears("rollout.restored web/web c3 kept c1")
	h.saidSince("rollout.restored web/web")
	h.hears("rollout.failed web/web c3", "rollout.restored web/web c3")
	h.pass(5 * time.Minute)
	h.saidSince()
	h.hears("rollout.recovered web/web c4 2/2 ready")
	h.saidSince("rollout.recovered web/web (2 more)")
}

func TestWhatIsOverBeforeItWasSaidIsOneMessage(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("drift.seen web/web c1 renamed")
	h.pass(5 * time.Second)
	h.hears("drift.healed web/web c1 in order again: renamed")
	h.pass(time.Hour)
	h.saidSince("drift.healed web/web")
}

func TestADriftThatStaysIsTold(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("drift.seen web/web c1 renamed")
	h.pass(59 * time.Second)
	h.saidSince()
	h.pass(2 * time.Second)
	h.saidSince("drift.seen web/web")
}

func TestAnEndIsToldOnlyToWhomTheBeginningWas(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("app.recovered web/web c1") // it began before this receiver did
	h.saidSince()
	ends := newHearing(t, Choice{Events: []string{ring.AppRecovered}})
	ends.hears("app.recovered web/web c1")
	ends.saidSince("app.recovered web/web")
}

func TestTwoTroublesOfOneSourceEndEachForItself(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("commit.refused prod c2 Unsigned")
	h.hears("source.stale prod")
	h.saidSince("commit.refused prod", "source.stale prod")
	h.hears("source.recovered prod - the remote answers again")
	h.saidSince("source.recovered prod")
	h.hears("source.recovered prod c3 commit c3 is trusted")
	h.saidSince("source.recovered prod")
	h.pass(time.Minute)
	h.hears("app.refused web c2", "app.crash_looping web/web c1", "app.recovered web/web c1")
	h.saidSince("app.refused web", "app.recovered web/web")
	h.hears("app.recovered web c3")
	h.saidSince("app.recovered web")
}

func TestAStormIsOneMessageAndAMinuteHoldsFew(t *testing.T) {
	h := newHearing(t, Choice{})
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf("app.crash_looping app%d/web c1", i))
	}
	h.hears(all...)
	h.saidSince("40 at once")
	for i := range 12 { // one in every second: five more, then the rest at the end of the minute
		h.pass(time.Second)
		h.hears(fmt.Sprintf("app.contested app%d/web c1", i))
	}
	require.Len(t, h.said, perMinute-1)
	h.said = nil
	h.pass(time.Minute)
	h.saidSince("7 at once")
	h.pass(time.Hour)
	h.hears("job.failed db/backup c1", "job.failed web/backup c1", "plan.awaiting prod c9")
	h.saidSince("job.failed db/backup", "job.failed web/backup", "plan.awaiting prod")
}

func TestATroubleThatLastsIsToldAgainAfterADay(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("job.failed db/backup c1")
	h.saidSince("job.failed db/backup")
	for range 3 {
		h.pass(6 * time.Hour)
		h.hears("job.failed db/backup c1")
	}
	h.saidSince()
	h.pass(6 * time.Hour)
	h.hears("job.failed db/backup c1")
	h.saidSince("job.failed db/backup (3 more)")
	h.hears("plan.awaiting prod c9", "plan.awaiting prod c9")
	h.saidSince("plan.awaiting prod")
	h.hears("plan.awaiting prod c9")
	h.saidSince()
}

func TestWhatIsOlderThanADayIsNotTold(t *testing.T) {
	for _, fold := range []bool{true, false} {
		c := Choice{Events: []string{"*"}, Fold: fold}
		old := ring.Event{Seq: 1, Kind: ring.SourceStale, Source: "prod", At: noon.Add(-tooOld - time.Second)}
		fresh := ring.Event{Seq: 2, Kind: ring.AppContested, App: "web", Service: "web", At: noon.Add(-tooOld + time.Second)}
		_, notes, _ := c.fold(memory{}, []ring.Event{old, fresh}, noon)
		require.Len(t, notes, 1)
		require.Equal(t, ring.AppContested, notes[0].Kind)
	}
}

func TestAnAppThatLeftOrWasRemovedLeavesNoTroubleBehind(t *testing.T) {
	for _, kind := range []string{ring.AppLeft, ring.AppRemoved} {
		h := newHearing(t, Choice{})
		h.hears("app.crash_looping web/web c1", "app.refused web c1", "app.crash_looping webby/web c1")
		h.said = nil
		h.hears(kind + " web c1")
		h.hears("app.crash_looping web/web c1", "app.crash_looping webby/web c1")
		h.saidSince("app.crash_looping web/web")
	}
}

func TestAReceiverHearsWhatItChose(t *testing.T) {
	c := Choice{Events: []string{"rollout.*", ring.JobFailed}, Apps: []string{"web"}}
	for line, want := range map[ring.Event]bool{
		{Kind: ring.RolloutFailed, App: "web"}:   true,
		{Kind: ring.RolloutFailed, App: "db"}:    false,
		{Kind: ring.JobFailed, App: "web"}:       true,
		{Kind: ring.JobSucceeded, App: "web"}:    false,
		{Kind: "rollouts.failed", App: "web"}:    false,
		{Kind: ring.CommitRefused, Source: "s"}:  false,
		{Kind: ring.RolloutBegan, Source: "all"}: true,
	} {
		require.Equal(t, want, c.wants(line), line)
	}
	for pattern, known := range map[string]bool{"*": true, "rollout.*": true, "job.failed": true, "rollout": false, "roll*": false, "jobs.*": false, "": false} {
		require.Equal(t, known, KnownPattern(pattern), pattern)
	}
}

func TestMachinesHearEveryEventUnfolded(t *testing.T) {
	c := Choice{Events: []string{"app.*"}}
	e := ring.Event{Seq: 4, Kind: ring.AppCrashLooping, App: "web", Service: "web", At: noon}
	_, notes, wake := c.fold(memory{}, []ring.Event{e, e, {Seq: 5, Kind: ring.JobFailed, At: noon}, e}, noon)
	require.Len(t, notes, 3)
	require.Equal(t, e, *notes[0].Event)
	require.True(t, wake.IsZero())
}

func TestTheMemoryOfAReceiverIsBounded(t *testing.T) {
	h := newHearing(t, Choice{})
	for range 20 {
		var all []string
		for range 100 {
			all = append(all, fmt.Sprintf("plan.awaiting prod c%d", h.seq+int64(len(all))))
		}
		h.hears(all...)
	}
	require.LessOrEqual(t, len(h.m.Open), mostMatters)
	require.LessOrEqual(t, len(h.m.Held), mostHeld)
	h.pass(time.Minute)
	require.Equal(t, fmt.Sprintf("%d at once", 20*100-perMinute*100), h.said[len(h.said)-1], "none is forgotten in the count")
}

func TestAFoldChangesNothingOfWhatItIsGiven(t *testing.T) {
	c := Choice{Events: ChatEvents, Fold: true}
	e := ring.Event{Seq: 1, Kind: ring.RolloutFailed, App: "web", Service: "web", Commit: "c1", At: noon}
	m, _, _ := c.fold(memory{}, []ring.Event{e}, noon)
	before, err := json.Marshal(m)
	require.NoError(t, err)
	for range 3 {
		_, _, _ = c.fold(m, []ring.Event{e, {Seq: 2, Kind: ring.RolloutRecovered, App: "web", Service: "web", At: noon}}, noon.Add(time.Hour))
	}
	after, err := json.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}
