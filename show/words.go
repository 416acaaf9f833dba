package show

import (
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// wordHue is the colour of a service's phase as it is shown.
func wordHue(sv *ring.ServiceStatus) screen.Hue {
	if rank(sv) == failing {
		return screen.Red
	}
	if sv.Phase == ring.PhaseReady && ring.ServiceWord(sv) != string(sv.Phase) {
		return screen.Yellow
	}
	return PhaseHue(sv.Phase)
}

// rolloutWord is the phase of a rollout. "Paused" in the JSON is also one that waits until
// something of this host is mended.
func rolloutWord(sv *ring.ServiceStatus) string {
	return ring.RolloutWord(sv.Rollout.Phase, sv.Rollout.Code, sv.Phase)
}
