package hub

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/history"
	"github.com/gitring/gitring/ring"
)

// journalRead is how many of the newest lines of a journal pages are made of.
const journalRead = 5000

// Pages are those of all hosts, for the door that knows who looks.
func (h *Hub) Pages(o pages.FleetOptions) http.Handler {
	o.Hosts = h.Fleet
	o.Answers = func(key string) (pages.Answers, bool) {
		s, ok := h.find(key)
		return stored{row: s.row}, ok
	}
	o.Now = h.Now
	return pages.NewFleet(o)
}

// stored answers with what is kept of a row. It acts on nothing: there is nothing that it could reach.
type stored struct{ *row }

// notStored is the answer to what no host reports.
func notStored() error {
	return api.NotFound("ask the host itself: gitring --host, or its own pages", "a hub does not store this")
}

// Status is what the host said last.
func (s stored) Status(context.Context) (ring.Status, error) {
	_, st, err := readKept(s.dir)
	if err != nil {
		return ring.Status{}, err
	}
	return *st, nil
}

// names are the days that there are now.
func (s stored) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.days.names)
}

// Events are the newest lines of the journal.
func (s stored) Events(_ context.Context, q api.EventQuery, each func(ring.Event) error) error {
	if q.Last == 1 && q.App == "" { // what tells one version of a page from another
		s.mu.Lock()
		seq := s.change
		s.mu.Unlock()
		return each(ring.Event{Seq: seq})
	}
	events, err := newest(s.dir, s.names(), cmp.Or(q.Last, journalRead), func(e *ring.Event) bool { return q.App == "" || e.App == q.App })
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// of are the newest lines of kinds, the oldest first.
func (s stored) of(kinds ...string) ([]ring.Event, error) {
	return newest(s.dir, s.names(), journalRead, func(e *ring.Event) bool { return slices.Contains(kinds, e.Kind) })
}

// Commits is what became of each commit, as far as the journal that is kept tells.
func (s stored) Commits(ctx context.Context, q api.HistoryQuery) ([]api.CommitNow, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	events, err := s.of(append(slices.Clone(history.Kinds), ring.RolloutBegan)...)
	if err != nil {
		return nil, err
	}
	slices.Reverse(events)
	commits := history.Commits(events, q.App, history.PresentOfStatus(&st))
	commits = commits[:min(len(commits), cmp.Or(q.Limit, 100))]
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range commits {
		commits[i].Subject = s.now.Subjects[commits[i].Commit]
	}
	return commits, nil
}

// Inspect is what the status says of a service.
func (s stored) Inspect(ctx context.Context, q api.InspectQuery) (ring.Explained, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return ring.Explained{}, err
	}
	events, err := s.of(ring.InstanceCrashed)
	if err != nil {
		return ring.Explained{}, err
	}
	e, ok := explained(&st, events, q)
	if !ok {
		says, hint := api.Missing(&st, q.App+"/"+q.Service)
		return e, api.NotFound(hint, "%s", says)
	}
	return e, nil
}

// Jobs are those of the status, with the runs that the journal tells of.
func (s stored) Jobs(ctx context.Context, q api.JobQuery) ([]api.JobNow, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	events, err := s.of(ring.JobStarted, ring.JobSucceeded, ring.JobFailed, ring.JobSkipped)
	if err != nil {
		return nil, err
	}
	q.Limit = cmp.Or(q.Limit, 10)
	return jobsOf(&st, events, q), nil
}

// Crashes are those that the journal tells of.
func (s stored) Crashes(_ context.Context, q api.CrashQuery) ([]api.CrashGroup, error) {
	events, err := s.of(ring.InstanceCrashed)
	return crashesOf(events, q), err
}

// Traffic is empty: what fronts carry is not reported.
func (stored) Traffic(context.Context, api.TrafficQuery) ([]api.FrontNow, error) { return nil, nil }

// What follows is not stored, or would act.

// Logs are not stored.
func (stored) Logs(context.Context, api.LogQuery, io.Writer) error { return notStored() }

// Trust is not stored.
func (stored) Trust(context.Context, string) ([]ring.TrustState, error) { return nil, notStored() }

// Plan is not stored.
func (stored) Plan(context.Context, api.PlanRequest) (ring.Changes, error) {
	return ring.Changes{}, notStored()
}

// Acts are of the host alone.
func (stored) Acts(context.Context, api.ActsQuery) ([]api.ActNow, error) { return nil, notStored() }

// Doctor is not stored.
func (stored) Doctor(context.Context) (doctor.Report, error) { return doctor.Report{}, notStored() }

// Act reaches no host.
func (stored) Act(context.Context, api.ActRequest) (api.Acted, error) {
	return api.Acted{}, notStored()
}

// Approve reaches no host.
func (stored) Approve(context.Context, api.ApproveRequest) error { return notStored() }

// Refresh reaches no host.
func (stored) Refresh(context.Context, api.RefreshRequest) ([]api.ImageNow, error) {
	return nil, notStored()
}

// Sync reaches no host.
func (stored) Sync(context.Context, string) error { return notStored() }
