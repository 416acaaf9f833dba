package ring

import "cmp"

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
