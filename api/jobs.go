package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// JobQuery asks for the jobs and cron jobs of an app, or for one of them; "" is
// all. Run, the beginning of a run's container ID, chooses that run alone. Limit is
// how many runs of each, 0 is 10. Logs asks for the lines that were kept, and leaves
// out what was skipped.
type JobQuery struct {
	App, Service string
	Run          string
	Limit        int
	Logs         bool
}

// JobNow is a job or cron job: where it stands, and its runs.
type JobNow struct {
	App     string     `json:"app"`
	Service string     `json:"service"`
	Kind    ring.Kind  `json:"kind"`
	Phase   ring.Phase `json:"phase"`
	Reason  string     `json:"reason"`
	// Next is when a cron job is due next; zero is never.
	Next time.Time `json:"next,omitzero"`
	// Schedule and Timezone are of a cron job, as its file has them; Due are the times of the
	// next seven days at which it is due, 50 at most.
	Schedule string      `json:"schedule,omitempty"`
	Timezone string      `json:"timezone,omitempty"`
	Due      []time.Time `json:"due,omitempty"`
	// Runs are the newest first; those under way come before those that ended, and
	// have no end. State is also running, retrying (a try failed and another
	// follows) or waiting (asked for, and not begun).
	Runs []ring.Run `json:"runs"`
}

// The states of a run that has not ended.
const (
	RunRunning  = "running"
	RunRetrying = "retrying"
	RunWaiting  = "waiting"
)

// UnderWay reports whether a run has not ended.
func UnderWay(r *ring.Run) bool {
	return r.State == RunRunning || r.State == RunRetrying || r.State == RunWaiting
}

func (s *Socket) jobs(w http.ResponseWriter, r *http.Request, p Peer) error {
	q := query{values: r.URL.Query()}
	j := JobQuery{App: q.text("app"), Service: q.text("service"), Run: q.text("run"), Limit: q.number("limit", 10), Logs: q.yes("logs")}
	switch {
	case q.err != nil:
		return q.err
	case j.Logs && !p.may(ScopeLogs):
		return noLogs(p)
	case j.App == "" && j.Service != "":
		return Usage("write app/service", "a service without its app")
	case j.Run != "" && len(j.Run) < 7:
		return Usage("gitring jobs shows them", "a run has 7 digits or more")
	}
	if j.App != "" {
		if err := s.knows(r.Context(), p, j.App, j.Service); err != nil {
			return err
		}
	}
	all, err := s.calls.Jobs(r.Context(), j)
	if err != nil {
		return err
	}
	hidden, err := s.hiddenNow(r.Context(), p)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(j JobNow) bool { return !p.apps.Has(j.App) })
	if all, err = scrubbed(hidden, all); err != nil {
		return err
	}
	if all == nil {
		all = []JobNow{}
	}
	return writeJSON(w, all)
}
