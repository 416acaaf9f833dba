package notify

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// ChatEvents are what a chat hears whose receiver names no events: what somebody
// may have to act on, and its end.
var ChatEvents = []string{
	ring.CommitRefused, ring.AppRefused, ring.PlanAwaiting, ring.RolloutFailed, ring.RolloutRestored, ring.RolloutRecovered,
	ring.AppCrashLooping, ring.AppContested, ring.AppIsDegraded, ring.AppRecovered, ring.DriftSeen, ring.DriftHealed,
	ring.JobFailed, ring.JobRecovered, ring.OverrideExpiring, ring.SourceStale, ring.SourceRecovered, ring.TrustIsDegraded,
	ring.SourceOld, ring.SourceRenewed, ring.WaveStuck,
}

// Choice is what a receiver wants to hear.
type Choice struct {
	// Events are kinds, such as "rollout.failed", or patterns: "rollout.*", "*".
	Events []string
	// Apps are those it hears of; none is all. What is of no app it hears anyway.
	Apps []string
	// Fold is for people: state changes alone, and a storm as one message.
	Fold bool
	// Traces is for a collector: one note for each commit that settled.
	Traces bool
}

// KnownPattern reports whether a pattern chooses anything.
func KnownPattern(pattern string) bool {
	return slices.ContainsFunc(ring.EventKinds, func(kind string) bool { return fits(pattern, kind) })
}

func fits(pattern, kind string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return prefix == "" || strings.HasSuffix(prefix, ".") && strings.HasPrefix(kind, prefix)
	}
	return pattern == kind
}

func (c Choice) kind(kind string) bool {
	return slices.ContainsFunc(c.Events, func(p string) bool { return fits(p, kind) })
}

func (c Choice) wants(e ring.Event) bool {
	return c.kind(e.Kind) && (e.App == "" || len(c.Apps) == 0 || slices.Contains(c.Apps, e.App))
}

// The parts that an event can have in an incident: something that begins, lasts, and
// ends.
type part int

const (
	once   part = iota // an incident of its own
	begins             // or goes on
	ends
)

// incidents are the kinds that belong together: what begins each, and what ends it.
var incidents = []struct {
	name   string
	begins []string
	ends   []string
	// byCommit says that another commit is news, not a repetition.
	byCommit bool
}{
	{"rollout", []string{ring.RolloutFailed, ring.RolloutRestored}, []string{ring.RolloutRecovered}, true},
	{"service", []string{ring.AppCrashLooping, ring.AppContested, ring.AppIsDegraded}, []string{ring.AppRecovered}, false},
	{"job", []string{ring.JobFailed}, []string{ring.JobRecovered}, false},
	{"app", []string{ring.AppRefused}, []string{ring.AppRecovered}, true},
	{"drift", []string{ring.DriftSeen}, []string{ring.DriftHealed}, false},
	{"commit", []string{ring.CommitRefused}, []string{ring.SourceRecovered}, true},
	{"stale", []string{ring.SourceStale}, []string{ring.SourceRecovered}, false},
	{"old", []string{ring.SourceOld}, []string{ring.SourceRenewed}, false},
}

// follows is what often comes right after a kind, and says all that it says.
var follows = map[string]string{ring.RolloutFailed: ring.RolloutRestored, ring.DriftSeen: ring.DriftHealed}

// incidentOf is the incident that an event belongs to, by its index, and its part in
// it; -1 for one of its own.
func incidentOf(e ring.Event) (int, part) {
	for i, m := range incidents {
		if slices.Contains(m.begins, e.Kind) {
			return i, begins
		}
		if !slices.Contains(m.ends, e.Kind) {
			continue
		}
		switch m.name {
		case "service":
			if e.Service == "" {
				continue // of the app: refused no more
			}
		case "commit":
			if e.Commit == "" {
				continue // of its remote: it answers again
			}
		}
		return i, ends
	}
	return -1, once
}

// subjectOf is what an event is about.
func subjectOf(e ring.Event) string {
	switch {
	case e.Service != "":
		return e.App + "/" + e.Service
	case e.App != "":
		return e.App
	}
	return e.Source
}
