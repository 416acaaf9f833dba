package pages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// rowsOfTime are how many services a timeline shows.
const rowsOfTime = 12

type historyView struct {
	App     string
	Commits []commitRow
	Time    *timeline
}

// timeline is rollouts as bars, the services that moved last on top.
type timeline struct {
	Rows  []timeRow
	Ticks []tick
	Span  string
}

type timeRow struct {
	App, Service string
	Bars         []bar
	// Labels name the commits of bars, as far as there is room.
	Labels []label
	Tall   bool // some are in a second line
}

// label is the commit of a bar: At is its place in percent, and End whether it ends there.
type label struct {
	At, Commit string
	End        bool
	Y          int
}

// labelWidth is how wide a label is at most, in thousandths of the width.
const labelWidth = 90

// labelsOf name the commits of bars in two lines, the newest first, and none over another.
func labelsOf(bars []bar) (out []label, tall bool) {
	var taken [2][]int
	for i := range bars {
		from := bars[i].X
		end := from > 1000-labelWidth
		if end {
			from = bars[i].X + bars[i].Width - labelWidth
		}
		line := slices.IndexFunc(taken[:], func(line []int) bool {
			return !slices.ContainsFunc(line, func(x int) bool { return x-from < labelWidth && from-x < labelWidth })
		})
		if line < 0 {
			continue
		}
		taken[line] = append(taken[line], from)
		tall = tall || line == 1
		at := from
		if end {
			at += labelWidth
		}
		out = append(out, label{fmt.Sprintf("%.1f%%", float64(at)/10), bars[i].Commit, end, 12 + 13*line})
	}
	return out, tall
}

// bar is a rollout, in thousandths of the width.
type bar struct {
	X, Width int
	Mark     Mark
	Commit   string
	Says     string
}

type tick struct {
	X    int
	At   string // the same in percent
	Says string
}

func historyPage(ctx context.Context, a *asking) (*drawn, error) {
	v := &historyView{App: a.r.URL.Query().Get("app")}
	if v.App != "" {
		if _, _, err := a.findApp(v.App); err != nil {
			return nil, err
		}
	}
	commits, err := a.answers.Commits(ctx, api.HistoryQuery{App: v.App, Limit: 50})
	if err != nil {
		return nil, err
	}
	for i := range commits {
		v.Commits = append(v.Commits, a.commitRow(&commits[i]))
	}
	var events []ring.Event
	err = a.answers.Events(ctx, api.EventQuery{App: v.App, Last: journalBack}, func(e ring.Event) error {
		if strings.HasPrefix(e.Kind, "rollout.") {
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.Time = timelineOf(events, a.clock, func(app, service string) bool {
		sv := a.findService(app, service)
		return sv != nil && sv.Rollout != nil
	})
	return &drawn{template: "history", title: "History · " + a.status.Host, live: "status", view: v}, nil
}

// spans are what a timeline may show, the shortest that has a few rollouts.
var spans = []struct {
	of   time.Duration
	says string
	tick time.Duration
	form string
}{
	{6 * time.Hour, "the last 6 hours", time.Hour, "15:04"},
	{24 * time.Hour, "the last day", 4 * time.Hour, "15:04"},
	{7 * 24 * time.Hour, "the last week", 24 * time.Hour, "2 Jan"},
	{28 * 24 * time.Hour, "the last 4 weeks", 7 * 24 * time.Hour, "2 Jan"},
}

// moved is one rollout of a service.
type moved struct {
	app, service string
	from, to     time.Time // to is zero while it goes on
	word, reason string
	commit       ring.SHA
}

// ends are the kinds that end a rollout, and how that is told.
var ends = map[string]string{
	ring.RolloutCompleted: "completed", ring.RolloutFailed: ring.RunFailed, ring.RolloutRestored: ring.RolloutIsRestored,
	ring.RolloutSuperseded: api.OutcomeSuperseded, ring.RolloutAborted: "aborted",
}

// rolloutsOf are the rollouts that the lines of a journal tell of.
func rolloutsOf(events []ring.Event) []moved {
	var out []moved
	open := map[string]int{}
	for i := range events {
		e := &events[i]
		id := e.App + "/" + e.Service
		at, going := open[id]
		switch word, ended := ends[e.Kind]; {
		case e.Kind == ring.RolloutBegan:
			if going {
				out[at].to, out[at].word = e.At, api.OutcomeSuperseded
			}
			open[id] = len(out)
			out = append(out, moved{app: e.App, service: e.Service, from: e.At, word: ring.Progressing, commit: e.Commit})
		case ended && going && e.Kind == ring.RolloutRestored && out[at].word == ring.RunFailed, ended && going && out[at].to.IsZero():
			out[at].to, out[at].word, out[at].reason = e.At, word, e.Reason
			if e.Kind != ring.RolloutFailed { // the way back may follow
				delete(open, id)
			}
		}
	}
	return out
}

// endNotTold is how a rollout is shown that the journal began, and that is over: its service
// may have left its commit.
const endNotTold = "end not told"

// timelineOf are the bars; nil where nothing moved for four weeks. goesOn reports whether a
// service has a rollout now.
func timelineOf(events []ring.Event, c clock, goesOn func(app, service string) bool) *timeline {
	all := rolloutsOf(events)
	for i := range all {
		if m := &all[i]; m.to.IsZero() && !goesOn(m.app, m.service) {
			m.to, m.word = m.from, endNotTold
		}
	}
	span := spans[len(spans)-1]
	for _, s := range spans {
		n := 0
		for i := range all {
			if all[i].from.After(c.now.Add(-s.of)) {
				n++
			}
		}
		if n >= 3 || n > 0 && n == len(all) {
			span = s
			break
		}
	}
	begin := c.now.Add(-span.of)
	all = slices.DeleteFunc(all, func(m moved) bool { return !m.to.IsZero() && m.to.Before(begin) })
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(x, y moved) int { return cmp.Compare(y.from.UnixNano(), x.from.UnixNano()) })
	t := &timeline{Span: span.says}
	place := func(at time.Time) int {
		return max(0, min(1000, int(1000*at.Sub(begin)/span.of)))
	}
	for i := range all {
		m := &all[i]
		row := slices.IndexFunc(t.Rows, func(r timeRow) bool { return r.App == m.app && r.Service == m.service })
		if row < 0 {
			if len(t.Rows) == rowsOfTime {
				continue
			}
			t.Rows, row = append(t.Rows, timeRow{App: m.app, Service: m.service}), len(t.Rows)
		}
		end := m.to
		if end.IsZero() {
			end = c.now
		}
		b := bar{X: place(m.from), Mark: markOf(m.word), Commit: m.commit.Short()}
		b.Width = max(6, place(end)-b.X)
		b.X = min(b.X, 1000-b.Width)
		b.Says = fmt.Sprintf("%s, %s, for %s", m.commit.Short(), c.of(m.from).UTC, lasted(end.Sub(m.from)))
		b.Says += wording.When(m.reason != "", ": "+m.reason)
		t.Rows[row].Bars = append(t.Rows[row].Bars, b)
	}
	for i := range t.Rows {
		t.Rows[i].Labels, t.Rows[i].Tall = labelsOf(t.Rows[i].Bars)
	}
	for at := begin.UTC().Truncate(span.tick).Add(span.tick); at.Before(c.now); at = at.Add(span.tick) {
		t.Ticks = append(t.Ticks, tick{place(at), fmt.Sprintf("%d%%", place(at)/10), at.Format(span.form)})
	}
	return t
}

// lasted is a duration in its largest unit that is not 0.
func lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}
