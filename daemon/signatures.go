package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// signaturesRule is the name of the policy's rule in violations.
const signaturesRule = "images.signatures"

// errPolicyInvalid keeps new images out while nobody can say what the policy is.
var errPolicyInvalid = errors.New("the policy cannot be read, and no image is verified by the rules before it")

// imageRules are the rules about signatures, as they are now.
func (d *Daemon) imageRules() ([]imagesign.Rule, error) {
	said, wrong := d.policy.Said()
	if wrong != "" {
		return nil, errPolicyInvalid
	}
	if said.Lists == nil {
		return nil, nil
	}
	return said.Lists.Signatures, nil
}

// signing is what the loop needs to know of the rules. The rules before a mistake count on:
// what was verified by them goes on.
func (d *Daemon) signing() reconcile.Signing {
	said, _ := d.policy.Said()
	if said.Lists == nil || len(said.Lists.Signatures) == 0 {
		return reconcile.Signing{}
	}
	return reconcile.Signing{Rules: imagesign.Prints(said.Lists.Signatures), Reports: said.OnViolation == config.OnViolationReport}
}

// tagRules is what the loop needs to know of tags that are followed by the clock.
func (d *Daemon) tagRules() reconcile.TagRules {
	said, _ := d.policy.Said()
	lists := said.Lists
	if lists == nil {
		all := policy.ListsOf(said.Profile)
		lists = &all
	}
	return reconcile.TagRules{Deny: lists.DenyMoving, MinAge: time.Duration(lists.MinAge) * time.Second}
}

// isVerified reports whether an image may be fetched or run by the rules of this moment: the
// loop decided by those of a moment before.
func (d *Daemon) isVerified(written, pin string) bool {
	s := d.signing()
	rule := s.Rules.For(written)
	if rule == "" || s.Reports {
		return true
	}
	v, ok := d.ledger.verdict(pin)
	return ok && v.Good && v.Rule == rule
}

// verdict is what was found of a pinned image.
func (l *ledger) verdict(pin string) (ring.ImageVerdict, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.facts.Signed[ring.VerdictKey(pin)]
	return v, ok
}

// verdictsPrint changes with what was found of images.
func (l *ledger) verdictsPrint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, v := range l.facts.Signed {
		all = append(all, fmt.Sprintf("%s %s %v", v.Image, v.Rule, v.Good))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// unsigned are the services of an app in force whose image was found not to be signed as the
// rule of now asks. One that nobody has answered for yet is not among them: it gets no new
// instance all the same.
func (d *Daemon) unsigned(app *ring.App) (out []violation) {
	rules := d.signing().Rules
	for i := range app.Services {
		s := &app.Services[i]
		rule := rules.For(s.Spec.Image)
		if rule == "" || s.FrontOf != "" {
			continue
		}
		if v, ok := d.ledger.verdict(s.Pin.Image); ok && v.Rule == rule && !v.Good {
			out = append(out, violation{source: app.Source, app: app.Name, service: s.Name, rule: signaturesRule, says: "services." + s.Name + ".image: " + v.Says})
		}
	}
	return out
}
