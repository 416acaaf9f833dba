package pages

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

// fake answers with what a test sets. It keeps to the scopes of its viewer, as the API does.
type fake struct {
	viewer  api.Viewer
	status  ring.Status
	events  []ring.Event
	commits []api.CommitNow
	inspect map[string]ring.Explained
	logs    string
	jobs    []api.JobNow
	crashes []api.CrashGroup
	fronts  []api.FrontNow
	trust   []ring.TrustState
	plan    ring.Changes
	doctor  doctor.Report
	acts    []api.ActNow
	actsErr error
	err     error // of everything

	acted    []api.ActRequest
	approved []api.ApproveRequest
	actErr   error
	asked    map[string]int
}

func (f *fake) ask(call string) error {
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[call]++
	return f.err
}

func (f *fake) Status(context.Context) (ring.Status, error) { return f.status, f.ask("status") }

func (f *fake) Events(_ context.Context, q api.EventQuery, each func(ring.Event) error) error {
	all := []ring.Event{}
	for _, e := range f.events {
		if q.App == "" || e.App == q.App {
			all = append(all, e)
		}
	}
	if q.Last > 0 && len(all) > q.Last {
		all = all[len(all)-q.Last:]
	}
	for _, e := range all {
		if err := each(e); err != nil {
			return err
		}
	}
	return f.ask("events")
}

func (f *fake) Commits(context.Context, api.HistoryQuery) ([]api.CommitNow, error) {
	return f.commits, f.ask("commits")
}

func (f *fake) Inspect(_ context.Context, q api.InspectQuery) (ring.Explained, error) {
	e, ok := f.inspect[q.App+"/"+q.Service]
	if !ok {
		return e, api.NotFound("gitring status lists them", "there is no %s/%s", q.App, q.Service)
	}
	if e.Crash != nil && !f.viewer.Scopes.Has(api.ScopeLogs) {
		c := *e.Crash
		c.Log, e.Crash = nil, &c
	}
	return e, f.ask("inspect")
}

func (f *fake) Logs(_ context.Context, _ api.LogQuery, w io.Writer) error {
	if !f.viewer.Scopes.Has(api.ScopeLogs) {
		return api.Denied("", "may not read logs")
	}
	_, err := io.WriteString(w, f.logs)
	if err != nil {
		return err
	}
	return f.ask("logs")
}

func (f *fake) Jobs(context.Context, api.JobQuery) ([]api.JobNow, error) {
	return f.jobs, f.ask("jobs")
}

func (f *fake) Crashes(_ context.Context, q api.CrashQuery) ([]api.CrashGroup, error) {
	if q.Logs && !f.viewer.Scopes.Has(api.ScopeLogs) {
		return nil, api.Denied("", "may not read logs")
	}
	out := []api.CrashGroup{}
	for _, c := range f.crashes {
		if !f.viewer.Scopes.Has(api.ScopeLogs) {
			c.Words, c.Newest.Log = "", nil
		}
		out = append(out, c)
	}
	return out, f.ask("crashes")
}

func (f *fake) Traffic(context.Context, api.TrafficQuery) ([]api.FrontNow, error) {
	return f.fronts, f.ask("traffic")
}

func (f *fake) Trust(context.Context, string) ([]ring.TrustState, error) {
	return f.trust, f.ask("trust")
}

func (f *fake) Plan(context.Context, api.PlanRequest) (ring.Changes, error) {
	return f.plan, f.ask("plan")
}

func (f *fake) Acts(context.Context, api.ActsQuery) ([]api.ActNow, error) {
	if err := f.ask("acts"); err != nil {
		return nil, err
	}
	return f.acts, f.actsErr
}

func (f *fake) Doctor(context.Context) (doctor.Report, error) { return f.doctor, f.ask("doctor") }

func (f *fake) Act(_ context.Context, r api.ActRequest) (api.Acted, error) {
	f.acted = append(f.acted, r)
	return api.Acted{Says: "held: " + r.App, At: noon, Until: noon.Add(4 * time.Hour)}, f.actErr
}

func (f *fake) Approve(_ context.Context, r api.ApproveRequest) error {
	f.approved = append(f.approved, r)
	return f.actErr
}

func (f *fake) Refresh(context.Context, api.RefreshRequest) ([]api.ImageNow, error) {
	return nil, f.actErr
}

func (f *fake) Sync(context.Context, string) error {
	if err := f.ask("sync"); err != nil {
		return err
	}
	return f.actErr
}

// handler serves the fake's answers to a viewer.
func (f *fake) handler(v api.Viewer) *Handler {
	f.viewer = v
	return New(Options{
		Answers: func(api.Viewer) Answers { return f },
		Viewer:  func(*http.Request) (api.Viewer, bool) { return v, true },
		SignIn:  func(http.ResponseWriter, *http.Request, string) error { return nil },
		SignOut: func(http.ResponseWriter) {},
		Now:     func() time.Time { return noon },
	})
}

var noon = time.Date(2026, 11, 26, 14, 37, 0, 0, time.UTC)

// everything is who may do all.
var everything = api.Viewer{Actor: "token/alice", Scopes: api.Scopes{api.ScopeRead, api.ScopeLogs, api.ScopeOperate, api.ScopeApprove}, Session: true}
