package reconcile

import "github.com/gitring/gitring/ring"

// withImage is s with what its image says of itself, if that is known by now.
func (t *Pass) withImage(s *ring.Service) *ring.Service {
	if s.Image.Known {
		return s
	}
	i := t.Images[s.Pin.Image]
	if !i.Known {
		return s
	}
	out := *s
	out.Image = i
	return &out
}

// pullStep has an image here. Under pull_policy never it only looks.
func (t *Pass) pullStep(app *ring.App, s *ring.Service, why string) ring.Action {
	a := ring.Action{
		Kind: ring.DoPull, App: app.Name, Service: s.Name, Commit: app.Commit, Version: s.Version,
		Image: s.Pin.Image, Platform: s.Spec.Platform, PullPolicy: s.Spec.PullPolicy, Timeout: s.Rollout.PullTimeout,
		Reason: say("image %s %s", s.Pin.Image, why),
	}
	if len(t.Signing.Rules) > 0 {
		a.Asks = &ring.ImageAsk{Written: s.Spec.Image, Rule: t.Signing.Rules.For(s.Spec.Image)}
	}
	return a
}
