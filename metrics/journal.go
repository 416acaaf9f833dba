package metrics

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// mostCommits and mostRollouts bound what is remembered between two lines.
const (
	mostCommits  = 1000
	mostRollouts = 10_000
)

// The verdicts on a version.
const (
	verdictGood   = "good"
	verdictFailed = "failed"
)

// Journal counts lines of the journal. It belongs to one goroutine.
type Journal struct {
	counts   Counts
	accepted map[ring.SHA]time.Time
	order    []ring.SHA // of accepted, the oldest first
	began    map[ring.ServiceID]begun
	asked    map[ring.ServiceID]bool // by a person, for a rollout of what runs; of an app, too
}

// begun is a rollout that has not ended.
type begun struct {
	at     time.Time
	byHand bool // the commit may be old
}

// results are the ends of a rollout, by kind of event.
var results = map[string]string{
	ring.RolloutCompleted: "completed", ring.RolloutFailed: "failed", ring.RolloutRestored: "restored",
	ring.RolloutSuperseded: "superseded", ring.RolloutAborted: "aborted",
}

// NewJournal has every series of a closed list begin at 0: a first event would be no increase
// otherwise.
func NewJournal() *Journal {
	j := &Journal{accepted: map[ring.SHA]time.Time{}, began: map[ring.ServiceID]begun{}, asked: map[ring.ServiceID]bool{}}
	for _, kind := range ring.EventKinds {
		j.counts.Begin("gitring_events_total", kind)
	}
	for _, r := range results {
		j.counts.Begin("gitring_rollouts_total", r)
	}
	j.counts.Begin("gitring_verdicts_total", verdictGood, "")
	return j
}

// Know has the crashes of a service begin at 0.
func (j *Journal) Know(st *ring.Status) {
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				j.counts.Begin("gitring_crashes_total", src.Name, a.Name, sv.Name)
			}
		}
	}
}

// Count takes the next line.
func (j *Journal) Count(e ring.Event) {
	j.counts.Add("gitring_events_total", e.Kind)
	if r, ok := results[e.Kind]; ok {
		j.counts.Add("gitring_rollouts_total", r)
	}
	id := ring.ID(e.App, e.Service)
	switch e.Kind {
	case ring.CommitAccepted:
		j.accept(e)
	case ring.RestartAsked, ring.RetryAsked, ring.RefreshAsked:
		if len(j.asked) < mostRollouts {
			j.asked[id] = true
		}
	case ring.RolloutBegan:
		if len(j.began) < mostRollouts {
			j.began[id] = begun{e.At, j.asked[id] || j.asked[ring.ID(e.App, "")]}
		}
		delete(j.asked, id)
	case ring.RolloutCompleted:
		j.verdict(e, verdictGood)
		b, moved := j.began[id]
		if at, ok := j.accepted[e.Commit]; ok && moved && !b.byHand {
			j.counts.Observe("gitring_push_to_ready_seconds", e.At.Sub(at).Seconds(), e.Source)
		}
		j.ended(id, e)
	case ring.RolloutFailed:
		// The way back is a part of it: it ends restored, or is superseded.
		j.verdict(e, verdictFailed)
	case ring.RolloutRestored, ring.RolloutSuperseded:
		j.ended(id, e)
	case ring.JobSucceeded:
		j.verdict(e, verdictGood)
	case ring.JobFailed:
		j.verdict(e, verdictFailed)
	case ring.InstanceCrashed:
		j.counts.Add("gitring_crashes_total", e.Source, e.App, e.Service)
	}
}

func (j *Journal) verdict(e ring.Event, result string) {
	code := ""
	if result == verdictFailed {
		code = string(e.Code)
	}
	j.counts.Add("gitring_verdicts_total", result, code)
}

func (j *Journal) ended(id ring.ServiceID, e ring.Event) {
	b, ok := j.began[id]
	if !ok {
		return
	}
	delete(j.began, id)
	j.counts.Observe("gitring_rollout_duration_seconds", e.At.Sub(b.at).Seconds(), results[e.Kind])
}

func (j *Journal) accept(e ring.Event) {
	if _, again := j.accepted[e.Commit]; again {
		return
	}
	if len(j.order) == mostCommits {
		delete(j.accepted, j.order[0])
		j.order = j.order[1:]
	}
	j.accepted[e.Commit] = e.At
	clear(j.asked) // the rollouts that follow are the commit's
	j.order = append(j.order, e.Commit)
}
