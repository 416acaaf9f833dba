package pages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// runsOfJob are how many runs of each job are asked for.
const runsOfJob = 60

// cellMarks are how many runs of a day are shown one by one.
const cellMarks = 4

// dueTold are how many due times the API tells of a job: of what is due more often, the later
// days are not known whole.
const dueTold = 50

type jobsView struct {
	Days []dayView
	Jobs []*jobView
}

type dayView struct {
	Says  string
	Today bool
}

type jobView struct {
	App, Name  string
	Mark       Mark
	Kind       ring.Kind
	Reason     string
	Schedule   string
	Zone       string
	Next       *dueMoment
	Cells      []jobCell
	Runs       []jobRun
	Logs, Acts bool
}

// jobCell is a day of a job.
type jobCell struct {
	Day   string
	Today bool
	Marks []cellMark
}

// cellMark is one run, or N of a day that came out alike.
type cellMark struct {
	Mark Mark
	At   string
	N    int
}

type jobRun struct {
	Mark           Mark
	Due, Ended     *moment
	Trigger, Actor string
	Reason         string
	Took           string
	Commit         ring.SHA
	Try            int
	// Failed is a run that did: what it printed is wanted.
	Failed bool
}

func jobsPage(ctx context.Context, a *asking) (*drawn, error) {
	jobs, err := a.answers.Jobs(ctx, api.JobQuery{Limit: runsOfJob})
	if err != nil {
		return nil, err
	}
	v := &jobsView{}
	today := a.clock.now.UTC().Truncate(24 * time.Hour)
	days := []time.Time{}
	for i := -3; i <= 3; i++ {
		day := today.AddDate(0, 0, i)
		days = append(days, day)
		v.Days = append(v.Days, dayView{day.Format("Mon 2 Jan"), i == 0})
	}
	for i := range jobs {
		j := a.job(&jobs[i], days, today)
		v.Jobs = append(v.Jobs, j)
	}
	slices.SortStableFunc(v.Jobs, func(x, y *jobView) int { return cmp.Compare(x.Mark.Rank, y.Mark.Rank) })
	return &drawn{template: "jobs", title: "Jobs · " + a.status.Host, live: "status", view: v}, nil
}

func (a *asking) job(j *api.JobNow, days []time.Time, today time.Time) *jobView {
	v := &jobView{
		App: j.App, Name: j.Service, Kind: j.Kind, Reason: j.Reason, Schedule: j.Schedule, Zone: j.Timezone, Next: a.clock.due(j.Next, j.Timezone),
		Mark: markOf(string(j.Phase)), Logs: a.may(api.ScopeLogs), Acts: a.may(api.ScopeOperate),
	}
	if sv := a.findService(j.App, j.Service); sv != nil {
		v.Mark = serviceMark(sv)
	}
	for i := range j.Runs {
		if i < 5 {
			v.Runs = append(v.Runs, a.run(&j.Runs[i]))
		}
	}
	for _, day := range days {
		v.Cells = append(v.Cells, cellOf(j, day, day.Equal(today)))
	}
	return v
}

func (a *asking) run(r *ring.Run) jobRun {
	out := jobRun{
		Mark: markOf(r.State), Due: a.clock.of(cmp.Or(r.Due, r.Started)), Ended: a.clock.of(r.Ended), Trigger: r.Trigger, Actor: r.Actor, Reason: r.Reason,
		Commit: r.Commit, Try: r.Try,
	}
	out.Failed = out.Mark.Tone == toneBad
	if !r.Started.IsZero() && r.Ended.After(r.Started) {
		out.Took = lasted(r.Ended.Sub(r.Started))
	}
	return out
}

// cellOf is what of a job was, or will be, on a day.
func cellOf(j *api.JobNow, day time.Time, today bool) jobCell {
	c := jobCell{Day: day.Format("Mon 2 Jan"), Today: today}
	var marks []cellMark
	for i := len(j.Runs) - 1; i >= 0; i-- {
		r := &j.Runs[i]
		at := cmp.Or(r.Started, r.Due, r.Ended).UTC()
		if at.Truncate(24 * time.Hour).Equal(day) {
			marks = append(marks, cellMark{Mark: markOf(r.State), At: at.Format("15:04")})
		}
	}
	for _, at := range j.Due {
		if at.UTC().Truncate(24 * time.Hour).Equal(day) {
			marks = append(marks, cellMark{Mark: markOf("due"), At: at.UTC().Format("15:04")})
		}
	}
	if n := len(j.Due); n >= dueTold && !j.Due[n-1].UTC().Truncate(24*time.Hour).After(day) {
		marks = append(slices.DeleteFunc(marks, func(m cellMark) bool { return m.Mark == markOf("due") }), cellMark{Mark: markOf("due"), At: "often"})
	}
	if len(marks) <= cellMarks {
		c.Marks = marks
		return c
	}
	// Too many to be shown one by one: how many came out how, the worst first.
	slices.SortStableFunc(marks, func(x, y cellMark) int { return cmp.Compare(x.Mark.Rank, y.Mark.Rank) })
	for _, m := range marks {
		if n := len(c.Marks); n > 0 && c.Marks[n-1].Mark == m.Mark {
			c.Marks[n-1].N++
			continue
		}
		c.Marks = append(c.Marks, cellMark{Mark: m.Mark, N: 1})
	}
	return c
}
