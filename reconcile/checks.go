package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// imageCheck is the name of the check that a HEALTHCHECK of the image alone is:
// the one that Compose's healthcheck has.
const imageCheck = "healthcheck"

// withImages are the checks of an instance with the one that its image brings.
// The engine runs it whether or not the Compose file speaks of it, unless that
// disables it; a verdict that is there and not waited for would be ignored.
func withImages(in *instance, checks []ring.Check) []ring.Check {
	if in.Health == "" || slices.ContainsFunc(checks, func(c ring.Check) bool { return c.Docker }) {
		return checks
	}
	own := ring.Check{Name: imageCheck, For: ring.Readiness, Docker: true, Failures: 1, Successes: 1}
	return append([]ring.Check{own}, checks...)
}

// readyUnaskedSince is since when an instance counts as ready without having been asked,
// where the checks that it has now are its first; else zero.
func (t *Pass) readyUnaskedSince(in *instance, want *ring.Service, good *ring.Good) time.Time {
	if want == nil || good == nil || in.Version != want.Version || good.Service.Version != want.Version || in.Health != "" {
		return time.Time{}
	}
	if good.Service.Gated() || !want.Gated() {
		return time.Time{}
	}
	row := t.Facts.Rollouts[ring.ID(good.AppName, want.Name)]
	if !row.Done || row.Version != want.Version {
		return time.Time{}
	}
	return in.Since
}

// Defaults of the engine's own health check.
const (
	engineInterval = 30 * time.Second
	engineRetries  = 3
)

// patienceOf is how long an instance of s may take to become ready: what the plan
// says, and at least what the HEALTHCHECK of its image may take by its own words.
// The plan knows of one that Compose sets.
func patienceOf(s *ring.Service) time.Duration { return patienceFrom(s, s.Rollout.StartTimeout) }

// patienceFrom is patienceOf where the plan says how long.
func patienceFrom(s *ring.Service, planned time.Duration) time.Duration {
	h := s.Image.Healthcheck
	if own := s.Spec.Healthcheck; h == nil || own != nil && len(own.Test) > 0 {
		return planned
	}
	interval, retries := h.Interval, h.Retries
	if interval == 0 {
		interval = engineInterval
	}
	if retries == 0 {
		retries = engineRetries
	}
	return max(planned, h.StartPeriod+interval*time.Duration(retries))
}

// probeInstances asks for the checks of each instance's own version.
func (t *decider) probeInstances(ins []*instance, want *ring.Service, good *ring.Good) {
	if t.onCluster() {
		return // their nodes ask
	}
	for _, in := range ins {
		if in.State != ring.StateRunning {
			continue
		}
		if checks, known := t.checksOf(in, want, good); known && len(checks) > 0 {
			t.probes = append(t.probes, ring.Probe{Instance: in.Instance, Checks: checks, Ready: t.readyUnaskedSince(in, want, good)})
		}
	}
}

func (t *Pass) checksOf(in *instance, want *ring.Service, good *ring.Good) ([]ring.Check, bool) {
	checks, known := t.ownChecks(in, want, good)
	return withImages(in, checks), known
}

// ownChecks are the checks that the plan of an instance's version has.
func (t *Pass) ownChecks(in *instance, want *ring.Service, good *ring.Good) ([]ring.Check, bool) {
	if want != nil && in.Version == want.Version {
		return want.Checks, true
	}
	if good != nil && in.Version == good.Service.Version {
		return good.Service.Checks, true
	}
	c, ok := t.Facts.Rollouts[ring.ID(in.App, in.Service)].Checks[in.Version]
	return c, ok
}
