package show

import (
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// The JSON has few words, which programs rely on. These are finer, for people: Held is
// what somebody holds, and nothing else.

// syncWord is the state of a source. "Held" in the JSON is also a source that waits.
func syncWord(src *ring.SourceStatus) string {
	if src.Sync != ring.SyncHeld {
		return string(src.Sync)
	}
	return ring.HeldWord(src.Code)
}

// healthWord is the health of an app. "Held" in the JSON is also one that somebody paused,
// undid or left to Compose, and one that stopped by itself.
func healthWord(a *ring.AppStatus) string {
	if a.Health != ring.Held {
		return a.Health
	}
	return ring.HeldWord(a.Code)
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
	return ring.HeldWord(sv.Code)
}

// wordHue is the colour of a service's phase as it is shown.
func wordHue(sv *ring.ServiceStatus) screen.Hue {
	if rank(sv) == failing {
		return screen.Red
	}
	return PhaseHue(sv.Phase)
}

// rolloutWord is the phase of a rollout. "Paused" in the JSON is also one that waits until
// something of this host is mended.
func rolloutWord(sv *ring.ServiceStatus) string {
	return ring.RolloutWord(sv.Rollout.Phase, sv.Rollout.Code, sv.Phase)
}
