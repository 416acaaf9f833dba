package reconcile

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// crashRecords are those that a host was given, as they stand: a later one of the same
// crash takes the place of an earlier one.
func crashRecords(h *host) *[]ring.Crash {
	var out []ring.Crash
	h.with(func() {
		h.kept = func(f ring.Fact) {
			c, ok := f.(ring.Crash)
			if !ok {
				return
			}
			out = slices.DeleteFunc(out, func(x ring.Crash) bool { return x.Instance == c.Instance && x.At.Equal(c.At) })
			out = append(out, c)
		}
	})
	return &out
}

// What an instance said last is worth more than one try, and less than a restart that
// waits for it.
func TestLoopTriesALogOnceMoreThatCouldNotBeRead(t *testing.T) {
	for says, hangs := range map[string]int{"that hangs once is read the second time": 1, "that hangs for ever is told as not read": 100} {
		t.Run(says, func(t *testing.T) {
			playLoop(t, func(t *testing.T, h *host, l *Loop) {
				offer(t, l, tree("c1", "web=v1"))
				await(t, l, ring.SyncSynced, time.Minute)
				time.Sleep(12 * time.Second)
				records := crashRecords(h)
				var asked []ring.Action
				h.with(func() {
					h.hangs = func(a ring.Action) bool {
						if a.Kind != ring.DoLog {
							return false
						}
						asked = append(asked, a)
						return len(asked) <= hangs
					}
				})
				crashAll(h, "web")
				l.Poke()
				if d := startedWithin(h, "web", time.Minute); d > logWithin+time.Second {
					t.Errorf("it runs again after %s: nobody waits for the second try", d)
				}
				time.Sleep(10 * time.Minute)
				h.with(func() {
					require.Len(t, asked, 2, "once, and once more")
					require.Equal(t, asked[0].Instance, asked[1].Instance)
					var ended ring.Instance
					for _, b := range h.engine.boxes {
						ended = b.Instance
					}
					require.False(t, asked[1].To.IsZero(), "it ends where the run did: the container runs again")
					require.True(t, asked[1].To.Before(ended.Started.Add(lastWordsLate)), "%s is of the run after it, which began %s", asked[1].To, ended.Started)
					require.Len(t, *records, 1)
					c := (*records)[0]
					if hangs == 1 {
						require.Empty(t, c.NotRead)
						require.NotEmpty(t, c.Log)
						return
					}
					require.Contains(t, c.NotRead, "deadline")
					require.Empty(t, c.Log)
					require.Empty(t, h.facts.Unread, "and then never again")
				})
			})
		})
	}
}

func TestACrashSaysThatItsLogWasNotRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	crash := ring.Crash{ID: "shop/web", Instance: "id1", At: now, ExitCode: 1, Reason: "exited with code 1"}
	crash.Signature = signatureOf(crash)
	a := ring.Action{Kind: ring.DoLog, Record: crash, Lines: ring.CrashLogLines, From: now.Add(-time.Hour), Over: now.Add(lastWordsLate)}
	failed := crash
	failed.NotRead = "no answer"
	facts, told := Settle(NewRecent(), nil, a, ring.Done{}, errors.New("no answer"), now)
	require.Empty(t, told)
	require.Equal(t, []ring.Fact{failed, ring.Unread{Run: ring.Run{Instance: "crash id1"}, Crash: &failed, From: a.From, Over: a.Over}}, facts)

	// Once more, at the next look.
	w := stopped(now, 1, theNetwork())
	for _, f := range facts {
		w.Facts.Set(f)
	}
	i := slices.IndexFunc(Diff(w, now).Actions, func(a ring.Action) bool { return a.Kind == ring.DoLog })
	require.GreaterOrEqual(t, i, 0)
	again := Diff(w, now).Actions[i]
	require.Equal(t, []any{failed, a.From, a.Over}, []any{again.Record, again.From, again.To})
	read := crash
	read.Log = []string{"no such table"}
	read.Signature = signatureOf(read)
	forget := ring.Forget{Table: "unread", Key: "crash id1"}
	for says, c := range map[string]struct {
		log  []string
		err  error
		want []ring.Fact
	}{
		"read":        {log: read.Log, want: []ring.Fact{forget, read}},
		"empty":       {want: []ring.Fact{forget, crash}},
		"not to read": {err: errors.New("no such container"), want: []ring.Fact{forget}},
	} {
		facts, told := Settle(NewRecent(), nil, again, ring.Done{Log: c.log}, c.err, now)
		require.Equal(t, c.want, facts, says)
		require.Empty(t, told, says)
	}

	// Nobody waits for that: what is to be started is, while it is read.
	w.Seen.Instances[0].Hand, w.Seen.Instances[0].ExitCode = "", 1
	w.Facts.Set(ring.SlotRow{
		ID: "shop/web", Slot: 1, Version: "1:aa", Instance: "id1", Crashes: 2, Finished: w.Seen.Instances[0].Finished, ExitCode: 1, Next: now, Last: now.Add(-time.Minute),
	})
	w.Busy = map[string]ring.Action{"log id1": again}
	starts := func(a ring.Action) bool { return a.Kind == ring.DoStart }
	require.True(t, slices.ContainsFunc(Diff(w, now).Actions, starts))
	w.Facts.Set(forget)
	require.False(t, slices.ContainsFunc(Diff(w, now).Actions, starts), "for the first try it waits")
	w.Busy = nil
	w.Facts.Set(facts[1])

	// Its container went, and the log with it: the record stays as it is.
	w.Seen.Instances = nil
	d := Diff(w, now)
	require.Contains(t, d.Facts, forget)
	require.False(t, slices.ContainsFunc(d.Actions, func(a ring.Action) bool { return a.Kind == ring.DoLog && strings.Contains(a.Reason, "once more") }))
}

// A database is lost as a whole for one row that cannot be read, so what a gitring of
// before reads has to have the key that it knows.
func TestAnOlderGitringReadsTheRowOfACrashAsARunThatIsGone(t *testing.T) {
	a := ring.Action{Kind: ring.DoLog, Record: ring.Crash{ID: "shop/web", Instance: "id1"}}
	facts, _ := Settle(NewRecent(), nil, a, ring.Done{}, errors.New("no answer"), time.Now())
	_, key := facts[1].Row()
	value, err := json.Marshal(facts[1])
	require.NoError(t, err)
	var older struct {
		Run ring.Run `json:"run"`
	}
	require.NoError(t, json.Unmarshal(value, &older))
	require.Equal(t, key, older.Run.Instance)
	newer, known, err := ring.ReadFact("unread", value)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, facts[1], newer)
}

// What crashes again while the log of its last crash is still read is told without one.
func TestACrashDuringTheReadingOfALogSaysThatItsOwnWasNot(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := stopped(now, 1, theNetwork())
	w.Seen.Instances[0].Hand, w.Seen.Instances[0].ExitCode = "", 1
	crash := func() (out []ring.Crash) {
		for _, f := range Diff(w, now).Facts {
			if c, ok := f.(ring.Crash); ok {
				out = append(out, c)
			}
		}
		return out
	}
	require.Len(t, crash(), 1)
	require.Empty(t, crash()[0].NotRead)
	w.Busy = map[string]ring.Action{"log id1": {Kind: ring.DoLog, Instance: "id1"}}
	require.Len(t, crash(), 1)
	require.Contains(t, crash()[0].NotRead, "still being read")
}

// An engine tells a start once the program runs already: its first line can be older.
func TestLoopReadsTheLogOfARunFromItsFirstLine(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		var asked []ring.Action
		h.with(func() {
			h.hangs = func(a ring.Action) bool {
				if a.Kind == ring.DoLog {
					asked = append(asked, a)
				}
				return false
			}
		})
		crashAll(h, "web")
		l.Poke()
		time.Sleep(time.Second)
		h.with(func() {
			require.Len(t, asked, 1)
			c := asked[0].Record.(ring.Crash)
			began := c.At.Add(-c.Uptime)
			require.True(t, asked[0].From.Before(began.Add(-time.Second)), "%s cuts off the first words of a run since %s", asked[0].From, began)
		})
	})
}
