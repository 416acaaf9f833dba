package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A forge that hides new commits looks like a quiet branch: after max_age it is told.
func TestASourceIsOldWhenItsNewestCommitWasFirstSeenLongerAgoThanMaxAge(t *testing.T) {
	const day = 24 * time.Hour
	seen := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(u time.Time) *ring.Commit { return &ring.Commit{SHA: shaOf("c1"), FirstSeen: u} }
	for _, tt := range []struct {
		name   string
		maxAge time.Duration
		commit *ring.Commit
		wall   time.Time
		want   bool
	}{
		{"just below", 30 * day, at(seen), seen.Add(30*day - 1), false},
		{"as long to the nanosecond", 30 * day, at(seen), seen.Add(30 * day), false},
		{"just above", 30 * day, at(seen), seen.Add(30*day + 1), true},
		{"the clock went back before it was seen", 30 * day, at(seen), seen.Add(-day), false},
		{"the clock went back to 1970", 30 * day, at(seen), time.Unix(0, 0), false},
		{"no commit is trusted yet", 30 * day, nil, seen.Add(99 * day), false},
		{"nobody knows when it was seen", 30 * day, at(time.Time{}), seen.Add(99 * day), false},
		{"off", 0, at(seen), seen.Add(9_999 * day), false},
		{"claimed long before it was seen", 30 * day, &ring.Commit{SHA: shaOf("c1"), FirstSeen: seen, ClaimedAt: seen.Add(-99 * day)}, seen.Add(day), false},
		{"claimed long after it was seen", 30 * day, &ring.Commit{SHA: shaOf("c1"), FirstSeen: seen, ClaimedAt: seen.Add(99 * day)}, seen.Add(31 * day), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The clock that never jumps says something else: it began before NTP did.
			now := tt.wall.Add(-400 * day)
			src := Source{Name: "s", Branch: "main", FreshFor: time.Hour, Reached: now, MaxAge: tt.maxAge, Commit: tt.commit}
			w := World{Host: "h", Wall: tt.wall, Facts: ring.NewFacts(), Sources: []Source{src}}
			d := Diff(w, now)
			st := d.Status.Sources[0]
			require.Equal(t, tt.want, st.Condition(ring.ConditionOld) != nil)
			var told []string
			for _, e := range d.Events {
				if e.Kind == ring.SourceOld {
					told = append(told, e.Source)
				}
			}
			if !tt.want {
				require.Empty(t, told)
				require.Empty(t, st.Conditions)
				return
			}
			require.Equal(t, []string{"s"}, told)
			require.Equal(t, shaOf("c1"), st.Condition(ring.ConditionOld).Commit)
			require.Equal(t, seen.Add(tt.maxAge), st.Condition(ring.ConditionOld).Since)
			require.Equal(t, "no commit for max_age 30d: "+shaOf("c1").Short()+" was first seen 2026-01-01 12:00 UTC", st.Condition(ring.ConditionOld).Reason)
			require.LessOrEqual(t, len("  old: "+st.Condition(ring.ConditionOld).Reason), 80)
		})
	}
}

// The look that finds it old comes by itself.
func TestALookComesWhenASourceGetsOld(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	src := Source{Name: "s", FreshFor: 1000 * time.Hour, Reached: now, MaxAge: 10 * time.Hour, Commit: &ring.Commit{SHA: "c1", FirstSeen: now.Add(-9 * time.Hour)}}
	d := Diff(World{Host: "h", Wall: now, Facts: ring.NewFacts(), Sources: []Source{src}}, now)
	require.False(t, d.Wake.IsZero())
	require.False(t, d.Wake.After(now.Add(time.Hour+1)), d.Wake)
}

// Its beginning is told once and its end once, over restarts: what was told is kept.
func TestAnOldSourceIsToldOnceAndItsEndOnceOverRestarts(t *testing.T) {
	const day = 24 * time.Hour
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	facts := ring.NewFacts()
	src := Source{Name: "s", Branch: "main", FreshFor: time.Hour, MaxAge: 30 * day}
	trusted := func(name string, seen time.Time) { src.Commit = &ring.Commit{SHA: shaOf(name), FirstSeen: seen} }
	// look is one process's look; what it keeps goes through the facts alone.
	look := func() (told []string, old bool) {
		src.Reached = wall
		d := Diff(World{Host: "h", Wall: wall, Awake: wall, Facts: facts, Sources: []Source{src}}, wall)
		for _, f := range d.Facts {
			facts.Set(f)
		}
		for _, e := range d.Events {
			if e.Kind == ring.SourceOld || e.Kind == ring.SourceRenewed {
				told = append(told, e.Kind+" "+string(e.Reason[:2]))
			}
		}
		return told, d.Status.Sources[0].Condition(ring.ConditionOld) != nil
	}
	check := func(about string, wantOld bool, want ...string) {
		t.Helper()
		told, old := look()
		require.Equal(t, want, told, about)
		require.Equal(t, wantOld, old, about)
	}
	trusted("c1", wall.Add(-31*day))
	check("it is old", true, "source.old no")
	check("it stays old", true)
	src.Commit = nil
	check("a process that began has no commit yet", false)
	trusted("c1", wall.Add(-31*day))
	check("then it has, and does not tell again", true)
	wall = wall.Add(-10 * day)
	check("the clock went back: no proof of an end", false)
	wall = wall.Add(10 * day)
	check("and came again: no second beginning", true)
	trusted("c2", wall)
	check("a commit came", false, "source.renewed co")
	check("its end is told once", false)
	wall = wall.Add(31 * day)
	check("old again", true, "source.old no")
	src.MaxAge = 60 * day
	check("max_age was raised", false, "source.renewed ma")
	src.MaxAge = 30 * day
	check("and put back", true, "source.old no")
	src.MaxAge = 0
	check("max_age was taken out", false, "source.renewed ma")
}

// What is not known of a branch is no converged host: scripts see it by the exit status.
func TestASourceThatIsNotReachedIsStaleUntilItIs(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name           string
		reached, awake time.Time
		stale          bool
	}{
		{name: "just reached", reached: begin.Add(-time.Minute), awake: begin.Add(-time.Hour)},
		{name: "at the end of fresh_for", reached: begin.Add(-5 * time.Minute), awake: begin.Add(-time.Hour)},
		{name: "for longer", reached: begin.Add(-5*time.Minute - 1), awake: begin.Add(-time.Hour), stale: true},
		{name: "the daemon began since", reached: begin.Add(-time.Hour), awake: begin.Add(-time.Minute)},
		{name: "never reached", awake: begin.Add(-6 * time.Minute), stale: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := stopped(begin, 1, theNetwork())
			w.Awake = tt.awake
			w.Sources[0].FreshFor, w.Sources[0].Reached = 5*time.Minute, tt.reached
			st := Diff(w, begin).Status
			stale := st.Sources[0].Condition(ring.ConditionStale)
			require.Equal(t, tt.stale, stale != nil)
			quiet := ring.Status{Sources: []ring.SourceStatus{{Name: "s", Sync: ring.SyncSynced, Conditions: st.Sources[0].Conditions}}}
			require.Equal(t, tt.stale, quiet.ExitCode() == 9)
			if tt.stale {
				require.Contains(t, stale.Reason, "the remote was last reached ")
				silent := tt.reached
				if silent.IsZero() {
					silent = tt.awake
				}
				require.Equal(t, silent.Add(5*time.Minute), stale.Since, "it was fresh until then")
			}
		})
	}
}
