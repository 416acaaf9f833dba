package reconcile

import "github.com/gitring/gitring/ring"

// chooseTarget sets the target: the last good version while the wanted one failed
// (restore, quarantine) or waits for what it depends on.
func (t *Pass) chooseTarget(v *service) {
	v.failed, v.waits, v.says = nil, ring.Reason{}, ""
	v.pausedBy = t.pauseReason(v.id)
	if d, failed := t.failedVerdict(v); failed {
		failure := d // on its own: most have none, and none is made for those
		v.failed = &failure
	}
	v.of, v.target = v.app, v.want
	if t.isOutrun(v.app.Name) {
		v.waits = ring.Reason{Code: ring.WhyStateOlder, Says: "what runs is newer than what gitring remembers; it stays until the newest commit is in force"}
		v.says = v.waits.Says
		return
	}
	if v.waits = t.portGate(v); !v.waits.None() {
		v.says = v.waits.Says
		return
	}
	if v.waits = t.frontKeeps(v); !v.waits.None() {
		v.of, v.target = &v.good.App, &v.good.Service
		v.says = v.waits.Says
		return
	}
	if v.failed != nil && v.wouldRestore() {
		v.of, v.target = &v.good.App, &v.good.Service
		v.says = v.failed.Reason
		return
	}
	if v.rollout.Version == v.want.Version { // begun: what it depends on gates only the beginning
		if why := t.undoneReason(v); why != "" && !v.rollout.Done {
			v.waits, v.says = ring.Reason{Code: ring.WhyHostNotReady, Dead: true, Says: why}, why
			v.of, v.target = &v.good.App, &v.good.Service
			return
		}
		v.waits = t.runBeforeMissing(v) // as after a person had a version tried again that it failed
	} else {
		v.waits = t.gateReason(v)
	}
	if v.waits.None() {
		return
	}
	v.says = v.waits.Says
	if v.good != nil {
		v.of, v.target = &v.good.App, &v.good.Service
	}
}
