package reconcile

import (
	"errors"
	"time"

	"github.com/gitring/gitring/ring"
)

// Signing is what the host asks of images.
type Signing struct {
	Rules ring.ImageRules
	// Reports says that what is in force and lacks a verdict is only told: its instances are
	// replaced as before. What a plan asks anew is never let pass by it.
	Reports bool
}

const (
	// Waits between questions for a verdict that nobody answered; they double.
	firstVerdict = 10 * time.Second
	lastVerdict  = 15 * time.Minute
	// verifyTimeout is for the longest program and every place that may have signatures.
	verifyTimeout = 6 * time.Minute
	// keepVerdict is how long a verdict stays that nothing names any more.
	keepVerdict = 30 * 24 * time.Hour
)

// verdictOf is the verdict on the image of a service by the rule that counts now. asked
// reports whether the host wants one.
func (t *Pass) verdictOf(s *ring.Service) (v ring.ImageVerdict, known, asked bool) {
	if len(t.Signing.Rules) == 0 || s.FrontOf != "" {
		return v, false, false
	}
	rule := t.Signing.Rules.For(s.Spec.Image)
	if rule == "" {
		return v, false, false
	}
	v, known = t.Facts.Signed[ring.VerdictKey(s.Pin.Image)]
	return v, known && v.Rule == rule, true
}

// lacksVerdict reports whether an image may not be fetched or run before it was found good.
func (t *Pass) lacksVerdict(s *ring.Service) bool {
	v, known, asked := t.verdictOf(s)
	return asked && !(known && v.Good)
}

// verifyStep asks who signed the image of a service.
func (t *Pass) verifyStep(app *ring.App, s *ring.Service, why string) ring.Action {
	return ring.Action{
		Kind: ring.DoVerify, App: app.Name, Service: s.Name, Commit: app.Commit, Timeout: verifyTimeout,
		Image: s.Pin.Image, PullPolicy: s.Spec.PullPolicy,
		Asks: &ring.ImageAsk{Written: s.Spec.Image, Rule: t.Signing.Rules.For(s.Spec.Image)}, Reason: say("image %s %s", s.Pin.Image, why),
	}
}

// unverifiedReason is why a new instance of what is in force may not be made yet; "" where it
// may.
func (t *decider) unverifiedReason(app *ring.App, s *ring.Service) string {
	if t.Signing.Reports || !t.lacksVerdict(s) {
		return ""
	}
	a := t.verifyStep(app, s, "is to be verified before a new instance is made")
	t.addStep(a)
	if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) {
		return withHint(try)
	}
	if v, known, _ := t.verdictOf(s); known {
		return v.Says
	}
	return a.Reason
}

// mayNotFetch reports whether a step would fetch or run an image that lacks its verdict. Every
// rule has looked before; this is the last one.
func (t *Pass) mayNotFetch(a *ring.Action) bool {
	if len(t.Signing.Rules) == 0 || t.Signing.Reports {
		return false
	}
	switch {
	case a.Kind == ring.DoCreate && a.Want != nil:
		return t.lacksVerdict(a.Want)
	case a.Kind == ring.DoPull && a.Asks != nil:
		return t.lacksVerdict(&ring.Service{Spec: ring.Spec{Image: a.Asks.Written}, Pin: ring.Pin{Image: a.Image}})
	}
	return false
}

// verifyInForce asks for the verdicts that the plans in force lack: those of before a rule.
// They are known then when an instance is to be made, or the registry is away.
func (t *decider) verifyInForce() {
	if len(t.Signing.Rules) == 0 {
		return
	}
	for _, name := range sortedKeys(t.Facts.Apps) {
		f := t.Facts.Apps[name]
		for i := range f.App.Services {
			if s := &f.App.Services[i]; !f.Leaving && t.lacksVerdict(s) {
				t.addStep(t.verifyStep(&f.App, s, "is in force and has no verdict by the rule of now"))
			}
		}
	}
}

// forgetVerdicts forgets those on images that nothing names, after a while.
func (t *decider) forgetVerdicts() {
	if len(t.Facts.Signed) == 0 {
		return
	}
	named := map[string]bool{}
	name := func(a *ring.App) {
		for i := range a.Services {
			named[ring.VerdictKey(a.Services[i].Pin.Image)] = true
		}
	}
	for _, f := range t.Facts.Apps {
		name(&f.App)
	}
	for _, p := range t.Facts.Past {
		name(&p.App)
	}
	for _, row := range t.Facts.Pins {
		named[ring.VerdictKey(row.Pin.Image)] = true
	}
	for _, key := range sortedKeys(t.Facts.Signed) {
		if v := t.Facts.Signed[key]; !named[key] && t.now.Sub(v.At) > keepVerdict {
			t.setFact(ring.Forget{Table: "signed", Key: key})
		}
	}
}

// verdictFact is what is remembered of the end of a verify; nil is nothing.
func verdictFact(a ring.Action, done ring.Done, err error, now time.Time) ring.Fact {
	if err == nil && done.Verdict != nil {
		return *done.Verdict
	}
	var ee *ring.EngineError
	if errors.As(err, &ee) && ee.Refusal != nil {
		r := ee.Refusal
		return ring.ImageVerdict{Image: ring.VerdictKey(a.Image), Rule: a.Asks.Rule, At: now, Code: r.Code, Says: r.Says}
	}
	return nil
}
