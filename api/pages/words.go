package pages

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

// Mark is how a state looks: its word, its shape, and its tone, which is a colour. No two
// tones have a shape in common, so that a state is known without its colour.
type Mark struct {
	Word  string
	Shape string
	Tone  string
	// Rank orders what is shown: the lowest is the most wrong.
	Rank int
}

// Tones. Only what is as it is wanted is good.
const (
	toneBad  = "bad"
	toneWait = "wait" // it waits for somebody
	toneMove = "move" // it is under way
	toneOff  = "off"  // nothing is known, or nothing is wanted
	toneGood = "good"
)

// Ranks of tones.
var ranks = map[string]int{toneBad: 0, toneWait: 1, toneMove: 2, toneOff: 3, toneGood: 4}

// look is a shape and a tone.
type look struct{ shape, tone string }

// looks are of all words of states.
var looks = map[string]look{
	// of a source
	string(ring.SyncUnknown): {"open", toneOff},
	string(ring.SyncRefused): {"square", toneBad},
	string(ring.SyncStaging): {"half", toneMove},
	string(ring.SyncSynced):  {"dot", toneGood},
	"Applying":               {"half", toneMove},
	"Stale":                  {"clock", toneWait},
	hostWaits:                {"clock", toneWait},
	hostSilent:               {"triangle", toneBad},
	"Old":                    {"clock", toneWait},
	// of an app
	ring.Healthy:     {"dot", toneGood},
	ring.Progressing: {"half", toneMove},
	ring.Degraded:    {"triangle", toneBad},
	// of what is held
	ring.Held:           {"bars", toneWait},
	"Paused":            {"bars", toneWait},
	"Undone":            {"back", toneWait},
	"Awaiting approval": {"diamond", toneWait},
	"Awaiting promote":  {"diamond", toneWait},
	"Observed":          {"dash", toneOff},
	"Left":              {"dash", toneOff},
	"Orphan":            {"dash", toneOff},
	ring.Stopped:        {"bars", toneWait},
	"Waiting":           {"bars", toneWait},
	// of a service
	string(ring.PhasePending):   {"half", toneMove},
	string(ring.PhaseReady):     {"dot", toneGood},
	string(ring.PhaseFailed):    {"cross", toneBad},
	string(ring.PhaseRemoving):  {"half", toneMove},
	string(ring.PhaseCompleted): {"tick", toneGood},
	ring.ConditionQuarantined:   {"cross", toneBad},
	ring.ConditionCrashLooping:  {"triangle", toneBad},
	ring.ConditionContested:     {"triangle", toneBad},
	// of a rollout
	ring.RolloutIsRestored: {"square", toneBad},
	ring.RolloutRestoring:  {"square", toneBad},
	"completed":            {"tick", toneGood},
	"aborted":              {"back", toneWait},
	// of an instance
	ring.SlotStarting:   {"half", toneMove},
	ring.SlotCreating:   {"half", toneMove},
	ring.SlotNotReady:   {"triangle", toneBad},
	ring.SlotDraining:   {"half", toneMove},
	ring.SlotStopping:   {"half", toneMove},
	ring.SlotCrashed:    {"cross", toneBad},
	ring.SlotBackingOff: {"triangle", toneBad},
	// of a front
	ring.FrontBehind: {"half", toneMove},
	ring.FrontUnseen: {"triangle", toneBad},
	// of an instance, as its front has it
	string(ring.FrontActive):   {"dot", toneGood},
	string(ring.FrontWarm):     {"dash", toneOff},
	string(ring.FrontDraining): {"half", toneMove},
	// of a commit
	api.OutcomeRefused:    {"square", toneBad},
	api.OutcomeFailed:     {"cross", toneBad},
	api.OutcomeRestored:   {"square", toneBad},
	api.OutcomePartly:     {"square", toneBad},
	api.OutcomeJob:        {"cross", toneBad},
	api.OutcomeAwaiting:   {"diamond", toneWait},
	api.OutcomeHeld:       {"diamond", toneWait},
	api.OutcomeSuperseded: {"dash", toneOff},
	api.OutcomeUndone:     {"back", toneWait},
	api.OutcomeReplaced:   {"dash", toneOff},
	api.OutcomeLive:       {"dot", toneGood},
	api.OutcomeAccepted:   {"half", toneMove},
	// of a run
	ring.RunSucceeded: {"tick", toneGood},
	api.RunRunning:    {"half", toneMove},
	api.RunRetrying:   {"triangle", toneBad},
	api.RunWaiting:    {"half", toneMove},
	"due":             {"open", toneOff},
	"skipped":         {"dash", toneOff},
	// of a check
	string(doctor.OK):   {"dot", toneGood},
	string(doctor.Warn): {"clock", toneWait},
	string(doctor.Fail): {"cross", toneBad},
	string(doctor.Skip): {"dash", toneOff},
	"passed":            {"dot", toneGood},
}

// markOf is how a word looks. A word that a newer daemon has is shown as it is, and as
// nothing that is known.
func markOf(word string) Mark {
	l, ok := looks[word]
	if !ok {
		l = look{"open", toneOff}
	}
	return Mark{Word: word, Shape: l.shape, Tone: l.tone, Rank: ranks[l.tone]}
}

// sourceMark is the state of a source.
func sourceMark(src *ring.SourceStatus) Mark { return markOf(ring.SourceWord(src)) }

// appMark is the state of an app. What its newest commit asked and did not get is wrong,
// however healthy the plan in force is.
func appMark(a *ring.AppStatus) Mark {
	if a.Refusal != nil {
		return markOf(string(ring.SyncRefused))
	}
	m := markOf(ring.AppWord(a))
	for i := range a.Services {
		if s := serviceMark(&a.Services[i]); m.Tone == toneGood && s.Rank < m.Rank {
			m = s
		}
	}
	return m
}

// downMark is the state of what does not serve and should: nothing is more wrong.
func downMark(m Mark) Mark {
	if m.Tone != toneBad {
		m.Shape, m.Tone = "triangle", toneBad
	}
	m.Rank = -1
	return m
}

// appIsDown reports whether a service of an app does not serve and should.
func appIsDown(a *ring.AppStatus, now time.Time) bool {
	return slices.ContainsFunc(a.Services, func(sv ring.ServiceStatus) bool { return ring.IsDown(&sv, now) })
}

// serviceMark is the state of a service. Its conditions stand beside it.
func serviceMark(sv *ring.ServiceStatus) Mark { return markOf(ring.ServiceWord(sv)) }

// worst is the mark with the lowest rank; none is good.
func worst(marks ...Mark) Mark {
	if len(marks) == 0 {
		return markOf(ring.Healthy)
	}
	return slices.MinFunc(marks, func(a, b Mark) int { return cmp.Compare(a.Rank, b.Rank) })
}
