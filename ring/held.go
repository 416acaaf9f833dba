package ring

import (
	"cmp"
	"slices"
	"time"
)

// The words below are those of every state that people see, whether in a terminal or on a page.
// The JSON has fewer, which programs rely on.

// SourceWord is the state of a source. One that was not reached for too long, or that is too
// old, is so whatever it is besides: nobody knows better.
func SourceWord(src *SourceStatus) string {
	switch {
	case src.Sync == SyncHeld:
		return HeldWord(src.Code)
	case src.Sync == SyncSynced && src.Condition(ConditionStale) != nil:
		return ConditionStale
	case src.Sync == SyncSynced && src.Condition(ConditionOld) != nil:
		return ConditionOld
	}
	return string(src.Sync)
}

// AppWord is the health of an app. "Held" in the JSON is also one that somebody paused, undid
// or left to Compose, and one that stopped by itself.
func AppWord(a *AppStatus) string {
	switch {
	case a.Health == Held:
		return HeldWord(a.Code)
	case a.Health == Degraded && onlyRestored(a):
		return RolloutIsRestored
	}
	return a.Health
}

// onlyRestored reports whether all that is wrong with an app is that versions of it failed, and
// what was good before is back.
func onlyRestored(a *AppStatus) bool {
	restored := false
	for i := range a.Services {
		switch ServiceWord(&a.Services[i]) {
		case RolloutIsRestored:
			restored = true
		case string(PhaseReady), string(PhaseCompleted):
		default:
			return false
		}
	}
	return restored
}

// ServiceWord is the phase of a service, or what is to be known of one that is ready: what
// serves may not be what is wanted.
func ServiceWord(sv *ServiceStatus) string {
	has := func(kind string) bool {
		return slices.ContainsFunc(sv.Conditions, func(c Condition) bool { return c.Type == kind && c.Status == ConditionTrue })
	}
	switch r := sv.Rollout; {
	case sv.Phase == PhaseHeld:
		return HeldWord(sv.Code)
	case sv.Phase != PhaseReady:
		return string(sv.Phase)
	case r != nil && (r.Phase == RolloutIsRestored || r.Phase == RolloutRestoring):
		return r.Phase
	case has(ConditionQuarantined):
		return ConditionQuarantined
	case has(ConditionContested):
		return ConditionContested
	case r != nil:
		return RolloutWord(r.Phase, r.Code, sv.Phase)
	}
	return string(sv.Phase)
}

// startTakes is how long a service that starts is not called down, unless a check of it fails.
const startTakes = 30 * time.Second

// IsDown reports whether nothing of a service serves that should. One that starts is down once a
// check of it fails, and once it takes long.
func IsDown(sv *ServiceStatus, now time.Time) bool {
	switch {
	case sv.Kind != Worker || sv.Wanted == 0 || sv.Ready > 0:
		return false
	case sv.Phase == PhaseDegraded || sv.Phase == PhaseFailed:
		return true
	}
	return sv.Phase == PhaseProgressing &&
		(slices.ContainsFunc(sv.Instances, func(in InstanceStatus) bool { return in.Failing }) ||
			slices.ContainsFunc(sv.Conditions, func(c Condition) bool {
				return c.Type == ConditionAvailable && c.Status == ConditionFalse && !c.Since.IsZero() && now.Sub(c.Since) > startTakes
			}))
}

// AsStatus is what is explained, as the status has it.
func (e *Explained) AsStatus() *ServiceStatus {
	return &ServiceStatus{Phase: e.Phase, Reason: e.Says, Code: e.Code, Rollout: e.Rollout, Conditions: e.Conditions}
}

// Word is the phase of what is explained, in the word that the status has for it.
func (e *Explained) Word() string { return ServiceWord(e.AsStatus()) }

// ConditionWords says what a condition of a service means where that is not its type; "" of
// the others.
func ConditionWords(c *Condition) string {
	switch {
	case c.Type == ConditionAvailable && c.Status == ConditionFalse:
		return "too few ready"
	case c.Type == ConditionImageResolved && c.Status == ConditionFalse:
		return "image missing"
	case c.Type == ConditionAdmitted && c.Status == ConditionFalse:
		return "no room on this host"
	case c.Type == ConditionFrontUnseen:
		return "its front does not answer"
	case c.Type == ConditionFrontFull:
		return "its front is full"
	case c.Type == ConditionFrontCrashing:
		return "the proxy of its front crashes"
	}
	return ""
}

// HeldWords are what "Held" in the JSON is for people, by the code of its reason. What has
// another code stopped by itself.
var HeldWords = map[ReasonCode]string{
	WhyAwaitingApproval: "Awaiting approval",
	WhyAwaitingPromote:  "Awaiting promote",
	WhyObserveOnly:      "Observed",
	WhyHeldByPerson:     Held,
	WhyHeldInFile:       Held,
	WhyPausedByPerson:   "Paused",
	WhyUndoneByPerson:   "Undone",
	WhyLeftToCompose:    "Left",
	WhyNotPruned:        "Orphan",
	WhyNeededStill:      "Orphan",
	WhyWaveWaiting:      "Waiting",
	WhyWaveFailed:       Held,
}

// Stopped is what stopped by itself, for people.
const Stopped = "Stopped"

// HeldWord is what is held, for people; of a daemon that gives no codes, Held.
func HeldWord(code ReasonCode) string {
	if code == "" {
		return Held
	}
	return cmp.Or(HeldWords[code], Stopped)
}

// RolloutWord is the phase of a rollout, for people. The code of its reason and the phase of
// its service decide: "Paused" in the JSON is also one that waits until something of this
// host is mended.
func RolloutWord(phase string, code ReasonCode, service Phase) string {
	switch {
	case phase != RolloutPaused || code == WhyPausedByPerson:
		return phase
	case code == WhyAwaitingPromote: // a step of a canary does not stop by itself
		return HeldWords[code]
	case code == WhyHeldByPerson, code == WhyLeftToCompose:
		return string(PhaseHeld)
	case service == PhaseDegraded:
		return "Waiting"
	}
	return Stopped
}

// AwaitsChecks reports whether an instance of a service is on its way, or is not ready any more.
func AwaitsChecks(sv *ServiceStatus) bool {
	return slices.ContainsFunc(sv.Instances, func(in InstanceStatus) bool {
		return in.State == SlotStarting || in.State == SlotNotReady
	})
}
