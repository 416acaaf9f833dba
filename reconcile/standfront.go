package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// A service that loses its front publishes its port itself from then on. The front stays as it
// was good until the service serves so: it stops for the new instance, is kept, and starts
// again where that fails. A host without its port after a failed update would be worse than
// one without gitring.

// standingFronts are the fronts that an app in force does not have any more, and that stay
// because their services do not serve without them yet.
func (t *Pass) standingFronts(app *ring.App) (out []*ring.Good) {
	for i := range app.Services {
		s := &app.Services[i]
		id := ring.ID(app.Name, s.Name)
		good, front := t.Facts.Good[id], t.Facts.Good[frontID(id)]
		if s.Route != nil || good == nil || good.Service.Route == nil || front == nil || front.Service.FrontOf != s.Name {
			continue
		}
		if _, planned := inForce(app, front.Service.Name); !planned {
			out = append(out, front)
		}
	}
	return out
}

// standAside has a front that its plan does not have any more stop, and be kept, for as long
// as its service needs the port.
func (t *Pass) standAside(v *service) outcome {
	b := t.serviceBehind(v)
	if b == nil || !t.needsFrontPort(b, v) {
		return outcome{}
	}
	for _, in := range v.instances {
		if in.holdsSlot() && (in.Live() || in.mayRestart()) {
			return outcome{then: stop, move: move{kind: moveClear, in: in, intent: intentPark, why: say("%s publishes its port itself", b.want.Name)}}
		}
	}
	return outcome{then: stop, reason: ring.Reason{
		Code: ring.WhyTransferPending, On: b.id, Says: say("waits until %s serves by itself, or fails", b.want.Name),
	}}
}

// needsFrontPort reports whether a service has an instance that publishes what its front does,
// and that runs or only has to be started.
func (t *Pass) needsFrontPort(v, front *service) bool {
	if firstCommon(portsOf(v.want), portsOf(front.want)) == "" {
		return false
	}
	moves := v.target == v.want && v.failed == nil && v.waits.None() && v.pausedBy.None() && !t.handsOff(v.id)
	return slices.ContainsFunc(v.instances, func(in *instance) bool {
		return in.Version == v.want.Version && (moves && in.holdsSlot() || in.Live() || in.mayRestart())
	})
}
