package notify

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The measure of traces.
const (
	// stillFor is how long nothing is told of a commit before it may have settled.
	stillFor = 10 * time.Second
	// askAgain is when a commit is looked at again that waits, for people or for images.
	askAgain = time.Minute
	// mostTraces and mostSteps bound what is remembered; of what failed it is twice as much.
	mostTraces = 20
	mostSteps  = 300
)

// traced are the kinds of which spans are made.
var traced = []string{
	ring.AppInForce, ring.AppRefused, ring.JobStarted, ring.JobSucceeded, ring.JobFailed,
	ring.RolloutBegan, ring.RolloutCompleted, ring.RolloutFailed, ring.RolloutRestored, ring.RolloutSuperseded,
	ring.ForgeTold, ring.ForgeUntold,
}

// trace is a commit on its way, and the lines of the journal about it.
type trace struct {
	Lines []ring.Event `json:"lines"`         // the first is of its acceptance
	Cut   int          `json:"cut,omitempty"` // lines that were too many
	Last  time.Time    `json:"last,omitzero"` // when the newest came
}

func (t *trace) source() string { return t.Lines[0].Source }

func (t *trace) commit() ring.SHA { return t.Lines[0].Commit }

// jobRuns reports whether a job began of which no end is known. Where lines were cut nobody knows.
func (t *trace) jobRuns() bool {
	runs := map[string]bool{}
	for i := range t.Lines {
		switch e := &t.Lines[i]; e.Kind {
		case ring.JobStarted:
			runs[e.App+"/"+e.Service] = true
		case ring.JobSucceeded, ring.JobFailed:
			delete(runs, e.App+"/"+e.Service)
		}
	}
	return len(runs) > 0 && t.Cut == 0
}

// traces folds lines into a note for each commit that settled. It changes nothing of m's lists.
func (c Choice) traces(m memory, events []ring.Event, now time.Time) (memory, []Note, time.Time) {
	m.Traces = slices.Clone(m.Traces)
	for _, e := range events {
		c.trace(&m, e, now)
	}
	var say []Note
	var wake time.Time
	var open []trace
	for i, t := range m.Traces {
		newer := slices.ContainsFunc(m.Traces[i+1:], func(o trace) bool { return o.source() == t.source() })
		settled := newer || m.settled == nil || m.settled(t.source(), t.commit())
		settled = settled && !t.jobRuns() || now.Sub(t.Last) > keepMatter
		switch at := t.Last.Add(stillFor); {
		case at.After(now) && at.Sub(now) <= stillFor:
			open, wake = append(open, t), soonest(wake, at)
		case !settled:
			open, wake = append(open, t), soonest(wake, now.Add(askAgain))
		default:
			say = append(say, traceNote(t))
		}
	}
	m.Traces = open
	return m, say, wake
}

// trace takes one line.
func (c Choice) trace(m *memory, e ring.Event, now time.Time) {
	if e.Kind == ring.CommitAccepted && m.isNews(e, now) {
		m.Traces = append(m.Traces, trace{Lines: []ring.Event{e}, Last: m.when(e, now)})
		m.Traces = m.Traces[max(0, len(m.Traces)-mostTraces):]
		return
	}
	if !slices.Contains(traced, e.Kind) || len(c.Apps) > 0 && !slices.Contains(c.Apps, e.App) {
		return
	}
	for i, t := range slices.Backward(m.Traces) {
		if t.source() != e.Source || t.commit() != e.Commit {
			continue
		}
		if n := len(t.Lines); n < mostSteps || n < 2*mostSteps && failsOf(e.Kind) {
			t.Lines = append(slices.Clone(t.Lines), e)
		} else {
			t.Cut++
		}
		t.Last = m.when(e, now)
		m.Traces[i] = t
		return
	}
}

// failsOf reports whether a line says that a part of a commit failed, or was refused.
func failsOf(kind string) bool {
	return kind == ring.AppRefused || kind == ring.RolloutFailed || kind == ring.JobFailed || kind == ring.ForgeUntold
}

func traceNote(t trace) Note {
	first, last := t.Lines[0], t.Lines[len(t.Lines)-1]
	return Note{Line: last.Seq, Kind: kindTrace, Source: first.Source, Commit: first.Commit, At: last.At, Lines: t.Lines, Cut: t.Cut}
}

// workOf is the name of the span of a rollout or of a run of a job.
func workOf(e *ring.Event) string {
	name := "rollout "
	if strings.HasPrefix(e.Kind, "job.") {
		name = "run "
	}
	return name + e.App + "/" + e.Service
}

// span is a part of what became of a commit.
type span struct {
	name       string
	line       int64 // of the journal, where it begins
	began, end time.Time
	failed     string // why; "" where it did not
	aside      bool   // that it failed says nothing of the commit
	fields     [][2]string
}

// spansOf are what a journal's lines tell of a commit, of which some were cut; the first is all of it.
func spansOf(lines []ring.Event, cut int) []span {
	first := lines[0]
	root := span{name: "commit " + first.Commit.Short(), line: first.Seq, began: first.At, end: first.At, fields: [][2]string{
		{"gitring.source", first.Source}, {"vcs.ref.head.revision", string(first.Commit)}, {"gitring.signer", first.Actor},
	}}
	if cut > 0 {
		root.fields = append(root.fields, [2]string{"gitring.lines_left_out", strconv.Itoa(cut)})
	}
	var parts []span
	verified := first.At
	if !first.Verified.IsZero() {
		verified = first.Verified
		parts = append(parts, span{name: "fetch", line: first.Seq, began: first.At, end: first.Fetched}, span{name: "verify", line: first.Seq, began: first.Fetched, end: verified})
	}
	open := map[string]int{} // by service: the place of what began last
	for i := range lines[1:] {
		e := &lines[i+1]
		key := e.App + "/" + e.Service
		about := [][2]string{{"gitring.app", e.App}, {"gitring.service", e.Service}, {"gitring.version", string(e.Version)}}
		switch e.Kind {
		case ring.AppInForce:
			parts = append(parts, span{name: "stage " + e.App, line: e.Seq, began: verified, end: e.At, fields: about[:1]})
		case ring.AppRefused:
			parts = append(parts, span{name: "stage " + e.App, line: e.Seq, began: verified, end: e.At, failed: e.Reason, fields: about[:1]})
		case ring.ForgeTold, ring.ForgeUntold:
			p := span{name: strings.TrimSpace("post " + e.App), aside: true, line: e.Seq, began: e.Began, end: e.At, fields: [][2]string{{"gitring.app", e.App}, {"gitring.post", e.Reason}}}
			if e.Kind == ring.ForgeUntold {
				p.failed = e.Reason
			}
			parts = append(parts, p)
		case ring.RolloutBegan, ring.JobStarted:
			open[key] = len(parts)
			parts = append(parts, span{name: workOf(e), line: e.Seq, began: e.At, end: e.At, fields: about})
		default:
			at, known := open[key]
			switch {
			case !known && !failsOf(e.Kind):
				continue
			case !known: // its beginning was cut
				at = len(parts)
				open[key] = at
				parts = append(parts, span{name: workOf(e), line: e.Seq, began: e.At, fields: about})
			}
			if e.Kind == ring.RolloutCompleted || e.Kind == ring.JobSucceeded {
				delete(open, key)
			}
			p := &parts[at]
			p.end = e.At
			if failsOf(e.Kind) {
				p.failed = e.Reason
			}
			p.fields = append(slices.DeleteFunc(slices.Clone(p.fields), func(f [2]string) bool { return f[0] == "gitring.result" }), [2]string{"gitring.result", e.Kind})
		}
	}
	for i := range parts {
		p := &parts[i]
		p.end = later(p.end, p.began) // two clocks may be apart
		root.end = later(root.end, p.end)
		if p.failed != "" && !p.aside && root.failed == "" {
			root.failed = p.name + ": " + p.failed
		}
	}
	return append([]span{root}, parts...)
}
