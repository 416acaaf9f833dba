package main

import (
	"regexp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// The JSON has few words, which programs rely on. These are finer, for people: Held is
// what somebody holds, and nothing else.

// syncWord is the state of a source. "Held" in the JSON is also a source that waits.
func syncWord(src *ring.SourceStatus) string {
	if src.Sync != ring.SyncHeld {
		return string(src.Sync)
	}
	switch says := src.Reason; {
	case strings.Contains(says, "awaiting approval"):
		return "Awaiting approval"
	case strings.HasPrefix(says, "observe"):
		return "Observed"
	}
	for _, p := range placesOf(src.Apps) {
		if src.Reason == p.id()+" "+p.service.Reason {
			return phaseWord(p.service)
		}
	}
	for _, a := range src.Apps {
		if src.Reason == "app "+a.Name+": "+a.Reason {
			return healthWord(&a)
		}
	}
	return string(src.Sync)
}

// handWords are the words of a person's acts, as the daemon writes them into a reason.
var handWords = regexp.MustCompile(`^(?:[a-z0-9_-]+ )?(held|paused|undone|left)\b`)

// healthWord is the health of an app. "Held" in the JSON is also one that somebody paused,
// undid or left to Compose, and one that stopped by itself.
func healthWord(a *ring.AppStatus) string {
	if a.Health != ring.Held {
		return a.Health
	}
	m := handWords.FindStringSubmatch(a.Reason)
	if m == nil {
		return when(a.Reason == "", ring.Held) + when(a.Reason != "", "Stopped")
	}
	return strings.ToUpper(m[1][:1]) + m[1][1:]
}

// phaseWord is the phase of a service. "Held" in the JSON is also a rollout that stopped by
// itself, one that somebody paused, and what left its commit and stays.
func phaseWord(sv *ring.ServiceStatus) string {
	if sv.Phase == ring.PhaseReady && sv.Rollout != nil && sv.Rollout.Phase == ring.RolloutIsRestored {
		return ring.RolloutIsRestored // what serves is not what is wanted
	}
	if sv.Phase != ring.PhaseHeld {
		return string(sv.Phase)
	}
	says := readyWords.ReplaceAllString(sv.Reason, "")
	switch {
	case strings.HasPrefix(says, "held "), strings.HasPrefix(says, "held:"), strings.HasPrefix(says, "left to "):
		return string(sv.Phase)
	case strings.HasPrefix(says, "paused "):
		return "Paused"
	case strings.HasPrefix(says, "orphan"), strings.HasPrefix(says, "not in the plan"):
		return "Orphan"
	case sv.Rollout != nil && sv.Rollout.Phase == ring.RolloutPaused:
		return "Stopped"
	}
	return string(sv.Phase)
}

// wordHue is the colour of a service's phase as it is shown.
func wordHue(sv *ring.ServiceStatus) hue {
	if rank(sv) == failing {
		return red
	}
	return phaseHue(sv.Phase)
}

// rolloutWord is the phase of a rollout. "Paused" in the JSON is also one that waits until
// something of this host is mended.
func rolloutWord(sv *ring.ServiceStatus) string {
	r := sv.Rollout
	switch {
	case r.Phase != ring.RolloutPaused || strings.HasPrefix(r.Reason, "paused "):
		return r.Phase
	case strings.HasPrefix(r.Reason, "held "):
		return string(ring.PhaseHeld)
	case sv.Phase == ring.PhaseDegraded:
		return "Waiting"
	}
	return "Stopped"
}
