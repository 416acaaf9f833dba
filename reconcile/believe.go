package reconcile

import (
	"cmp"
	"time"

	"github.com/gitring/gitring/ring"
)

// A front may have been taken over. What it says is followed only within reach of what it was
// told; nothing that it says, and no silence, keeps an instance for ever.

const (
	// claimReach is how many tables a front may be ahead of what is remembered: the database
	// may have come back from a copy.
	claimReach = 1 << 20
	// claimMost is the largest generation that is ever followed, a thousand tables a second
	// for thirty years: so the counter is never spent.
	claimMost = 1 << 40
	// claimTimes is how often one container may have another table than it was told.
	claimTimes = 3
	// longestDrain is how long what is in flight may have at most, whoever says more.
	longestDrain = 24 * time.Hour

	frontRests = 10 * time.Minute // at least between two starts of a container for its silence
	frontQuiet = 2 * time.Minute  // of silence, until its container is started anew
	frontTold  = time.Minute      // of silence, until its table is put on its disk once more
	frontTries = 3                // starts of its container, until it is made anew instead
	frontAnew  = time.Minute      // of silence, until its proxy is started anew, once in frontRests
)

// disbelieved is why nothing is believed of what a front says; "" where it is.
func disbelieved(in *instance, seen ring.FrontSeen, row ring.FrontRow) string {
	told := newestTold(row)
	switch {
	case seen.Wrong != "":
		return say("%s %s", in.Name, seen.Wrong)
	case seen.Generation > claimMost:
		return say("%s claims table %d, and none has such a number", in.Name, seen.Generation)
	case row.Front != "" && seen.Generation > told+claimReach:
		return say("%s claims table %d, and the newest that it was told is %d", in.Name, seen.Generation, told)
	case row.Front == in.ID && row.Claims >= claimTimes && seen.Generation != row.Table.Generation && seen.Generation != told:
		return say("%s claims table %d, and had %d others that it was not told", in.Name, seen.Generation, row.Claims)
	}
	return ""
}

// newestTold is the largest generation that a front of the row was told.
func newestTold(row ring.FrontRow) int64 {
	if row.Sent != nil {
		return max(row.Table.Generation, row.Sent.Generation)
	}
	return row.Table.Generation
}

// claimsOf counts the tables that a front had and was not told, with the one that it has now.
func (f *toldFront) claimsOf(row ring.FrontRow) int {
	if row.Front != f.in.ID {
		return 0
	}
	if f.seen != nil && (f.seen.Generation > newestTold(row) || f.seen.Generation < row.Table.Generation) {
		return row.Claims + 1
	}
	return row.Claims
}

// bounded is a table that a front claims, with no deadline beyond what any can have.
func (t *Pass) bounded(table ring.FrontTable) *ring.FrontTable {
	table.Instances = append([]ring.FrontInstance(nil), table.Instances...)
	for i := range table.Instances {
		if in := &table.Instances[i]; in.Until.After(t.now.Add(longestDrain)) {
			in.Until = t.now.Add(longestDrain).UTC()
		}
	}
	return &table
}

// noteSilence remembers since when the front of a service runs and is not heard.
func (t *decider) noteSilence(v *service) {
	row, told := t.Facts.Fronts[v.id]
	if !told || !v.hasFront() {
		return
	}
	silent, steady := false, false
	for _, f := range t.frontsOf(v.id) {
		silent = silent || t.isItsFront(row, f.in) && f.in.State == ring.StateRunning && f.seen == nil
		steady = steady || t.isItsFront(row, f.in) && f.seen != nil && !t.now.Before(laterOf(f.in.Since, t.Awake).Add(frontRests))
	}
	if row.Restarts > 0 && steady && !silent {
		row.Restarts, row.Silent = 0, time.Time{}
		t.setFact(row)
		return
	}
	switch {
	case silent && row.Silent.IsZero():
		row.Silent = t.now
	case !silent && !row.Silent.IsZero():
		row.Silent = time.Time{}
	default:
		return
	}
	t.setFact(row)
}

// isItsFront reports whether a container is the front that was heard last, or stands in the
// place of one that is gone and was never heard.
func (t *Pass) isItsFront(row ring.FrontRow, in *instance) bool {
	return row.Front == in.ID || !t.isSeen(row.Front)
}

// lacksTable reports whether a front has been silent for so long that it may have found no
// table, or none that it can read: telling it writes one to its disk.
func (t *Pass) lacksTable(in *instance, row ring.FrontRow) bool {
	if !t.isItsFront(row, in) || row.Silent.IsZero() || in.State != ring.StateRunning {
		return false
	}
	at := laterOf(laterOf(row.Silent, in.Since), t.Awake).Add(frontTold)
	t.wakeBy(at)
	return !t.now.Before(at)
}

// inTurn are fronts in the order in which they are told: those that answer first.
func inTurn(fronts []toldFront) (out []*toldFront) {
	for _, answers := range []bool{true, false} {
		for i := range fronts {
			if (fronts[i].seen != nil) == answers {
				out = append(out, &fronts[i])
			}
		}
	}
	return out
}

// lostFront is why the container of a front is to be started anew; "" where it is not. What
// took a front over does not outlive that: nothing in it can be written but the folder of its
// socket.
func (t *Pass) lostFront(v *service, in *instance) string {
	row := t.Facts.Fronts[ring.ID(v.app.Name, v.want.FrontOf)]
	if !t.isItsFront(row, in) || row.Silent.IsZero() || in.State != ring.StateRunning {
		return ""
	}
	at := laterOf(laterOf(row.Silent, t.Awake).Add(frontQuiet), in.Since.Add(frontRests))
	if t.now.Before(at) {
		t.wakeBy(at)
		return ""
	}
	why := ""
	if seen, answers := t.Fronts[in.ID]; answers {
		why = disbelieved(in, seen, row)
	}
	return cmp.Or(why, say("%s does not answer for %d min", in.Name, int(frontQuiet.Minutes())))
}

// startedForSilence counts one more start of the container of a front that is silent.
func (t *Pass) startedForSilence(v *service, in *instance) []ring.Fact {
	b := t.serviceBehind(v)
	if b == nil || t.lostFront(v, in) == "" {
		return nil
	}
	row := t.Facts.Fronts[b.id]
	row.Restarts++
	return []ring.Fact{row}
}

// silentProxy has the proxy of a front started anew that has been silent for a while: what it
// carries goes on, and nobody is refused. If that does not help its container is started anew.
func (t *Pass) silentProxy(v *service, in *instance) outcome {
	b := t.serviceBehind(v)
	if b == nil || in.State != ring.StateRunning || in.intent != "" {
		return outcome{}
	}
	row := t.Facts.Fronts[b.id]
	if !t.isItsFront(row, in) || row.Silent.IsZero() {
		return outcome{}
	}
	at := laterOf(laterOf(row.Silent, in.Since), t.Awake).Add(frontAnew)
	if !row.Signaled.IsZero() {
		at = laterOf(at, row.Signaled.Add(frontRests))
	}
	if t.now.Before(at) {
		t.wakeBy(at)
		return outcome{}
	}
	row.Signaled = t.now
	o := trying(move{kind: moveSignal, in: in, why: say("%s does not answer for %d min", in.Name, int(frontAnew.Minutes()))})
	o.facts = []ring.Fact{row}
	return o
}

// restartedInVain tells of a front that no start of its container helps.
func restartedInVain(times int) string {
	return say("its front was started anew %d times and does not answer as it should", times)
}

// hopelessFront has a front made anew whose container was started anew again and again and is
// still silent: whoever takes it over does so after each start. While it is away nothing is
// sent to an instance, so what waits for it goes on.
func (t *Pass) hopelessFront(v *service, in *instance) outcome {
	b := t.serviceBehind(v)
	if b == nil || in.intent != "" || t.Facts.Fronts[b.id].Restarts < frontTries {
		return outcome{}
	}
	why := t.lostFront(v, in)
	if why == "" {
		return outcome{}
	}
	return removing(in, say("%s, though it was started anew %d times", why, frontTries))
}
