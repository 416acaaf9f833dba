package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// violation is an app in force that the rules of today would refuse.
type violation struct {
	source, app, service string
	rule, says           string
}

// violations remembers what was told last.
type violations struct {
	mu  sync.Mutex
	all []violation // guarded by mu
}

func (v *violations) now() []violation {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all
}

// set notes what violates, and returns what did not before.
func (v *violations) set(all []violation) (fresh []violation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range all {
		if !slices.Contains(v.all, x) {
			fresh = append(fresh, x)
		}
	}
	v.all = all
	return fresh
}

const (
	policyEvery  = 5 * time.Second
	expiresAhead = 14 * 24 * time.Hour
	expiresSoon  = 24 * time.Hour
)

// watchPolicy reads the policy again when its files change, and judges all apps in force
// by other rules in one look.
func (d *Daemon) watchPolicy(ctx context.Context) error {
	t := time.NewTicker(policyEvery)
	defer t.Stop()
	judged := ""
	for {
		changed, wrong := d.policy.Look()
		if wrong != "" {
			d.log.Error("could not take the policy, the rules before it count", "err", wrong)
			d.tellPolicy(ctx, ring.PolicyInvalid, "", "", wrong)
		}
		if changed {
			hash := d.policy.Hash()
			d.log.Info("read the policy again", "hash", hash)
			d.tellPolicy(ctx, ring.PolicyChanged, "", "", "other rules count from now on: "+short(hash))
		}
		if changed || wrong != "" {
			for _, f := range d.sources {
				f.poke()
			}
		}
		if print := d.violationPrint(); print != judged {
			judged = print
			d.judgeInForce(ctx)
		}
		d.stopDenied(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// short is the beginning of a hash, for a sentence.
func short(hash string) string { return hash[:min(len(hash), len("sha256:")+12)] }

// violationPrint changes with all that a judgement of the apps in force depends on.
func (d *Daemon) violationPrint() string {
	inForce, _ := d.ledger.apps()
	var b strings.Builder
	b.WriteString(d.policy.Hash() + time.Now().UTC().Format(time.DateOnly))
	for i := range d.cfg.Sources {
		b.WriteString(d.signedPrint(d.cfg.Sources[i].Name))
	}
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		f := inForce[name]
		fmt.Fprintf(&b, " %s %s %s", name, f.App.Commit, f.App.Written)
	}
	if len(d.signing().Rules) > 0 {
		b.WriteString(d.ledger.verdictsPrint())
	}
	return b.String()
}

// judgeInForce judges every app in force by the rules of now, and tells what is new.
func (d *Daemon) judgeInForce(ctx context.Context) {
	inForce, _ := d.ledger.apps()
	var all []violation
	whose := d.ledger.whose().Accepted()
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		a := inForce[name].App
		found, _ := d.judge.Findings(&a, whose.Of(policy.HolderOf(&a)))
		says := sync.OnceValue(func() func(policy.Finding) string { return d.withoutValues(name, inForce[name].Since) }) // only where something is denied
		for _, f := range found {
			if f.Verdict != policy.Deny {
				continue
			}
			v := violation{source: a.Source, app: name, rule: f.Rule, says: says()(f)}
			if kind, service, _ := strings.Cut(f.Of, "."); kind == "services" {
				v.service = service
			}
			all = append(all, v)
		}
		all = append(all, d.unsigned(&a)...)
	}
	for _, v := range d.violations.set(all) {
		d.log.Warn("found an app in force that the policy denies", "app", v.app, "service", v.service, "reason", v.says)
		d.tellPolicy(ctx, ring.PolicyViolated, v.app, v.service, v.says)
	}
	d.tellExpiring(ctx, inForce, time.Now())
}

// withoutValues gives what a finding says without the values of an app's secrets: a place that the
// policy judges may hold one of the host's. They are read once, for all findings of the app. Where
// they cannot be read, or were changed since the plan is in force, a finding is told without what
// stands in its place: that may be a value that nobody knows any more.
func (d *Daemon) withoutValues(app string, since time.Time) func(f policy.Finding) string {
	values, err := d.valuesOf(app)
	unknown := err != nil || d.env.changedSince(app, since.Add(-longestRead))
	longest := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	return func(f policy.Finding) string {
		if unknown {
			f.Value = ""
		}
		says := f.Says()
		for _, value := range longest {
			says = ring.Strike(says, value, "${"+values[value]+"}")
		}
		return says
	}
}

// longestRead is far above the time between the values of a plan being read and a look that
// would have read others, where the plan came into force meanwhile.
const longestRead = 10 * time.Minute

// tellExpiring tells of grants of apps in force that expire soon: 14 days ahead and 1 day.
func (d *Daemon) tellExpiring(ctx context.Context, inForce map[string]ring.InForce, now time.Time) {
	said, _ := d.policy.Said()
	for _, g := range said.Grants {
		if _, runs := inForce[g.App]; !runs || expiresIn(&g, now) == 0 {
			continue
		}
		d.tellPolicy(ctx, ring.GrantExpires, g.App, g.Service, fmt.Sprintf("the grant of %s %s ends with %s (%s)", g.Feature, g.Value, g.LastDay(), g.At))
	}
}

// endingSoon are the grants of apps in force of a source that end within 14 days, the next
// one first.
func endingSoon(grants []policy.Grant, inForce map[string]ring.InForce, source string, now time.Time) []string {
	var soon []policy.Grant
	for _, g := range grants {
		f, runs := inForce[g.App]
		if runs && f.App.Source == source && g.Source == source && !g.Expires.IsZero() && !g.Expired(now) && g.Expires.Sub(now) <= expiresAhead {
			soon = append(soon, g)
		}
	}
	slices.SortStableFunc(soon, func(a, b policy.Grant) int { return a.Expires.Compare(b.Expires) })
	var out []string
	for i := range soon {
		g := &soon[i]
		out = append(out, fmt.Sprintf("%s: its grant of %s %s (%s) ends with %s", g.App, g.Feature, g.Value, g.At, g.LastDay()))
	}
	return out
}

// expiresIn is in how many days a grant expires, on the days on which that is told; else 0.
func expiresIn(g *policy.Grant, now time.Time) int {
	left := g.Expires.Sub(now)
	days := int((left + expiresSoon - 1) / expiresSoon)
	if g.Expires.IsZero() || left <= 0 || days != int(expiresAhead/expiresSoon) && days != 1 {
		return 0
	}
	return days
}

// tellPolicy writes one event into the journal.
func (d *Daemon) tellPolicy(ctx context.Context, kind, app, service, reason string) {
	err := d.store.Record(ctx, nil, []ring.Event{{At: time.Now().UTC(), Kind: kind, App: app, Service: service, Reason: reason}})
	if err != nil && ctx.Err() == nil {
		d.log.Warn("could not write down what the policy says", "err", err)
	}
}

// policyConditions are what is to be known of a source: that the policy cannot be read,
// and that apps in force break it.
func (d *Daemon) policyConditions(source string) []ring.Condition {
	var out []ring.Condition
	said, wrong := d.policy.Said()
	if wrong != "" {
		out = append(out, ring.Condition{Type: ring.ConditionPolicyInvalid, Status: ring.ConditionTrue, Reason: wrong + "; the rules before it count, and no new plan is accepted"})
	}
	var broken []string
	for _, v := range d.violations.now() {
		if v.source == source {
			broken = append(broken, strings.Trim(v.app+"/"+v.service, "/")+": "+v.says)
		}
	}
	if len(broken) > 0 {
		more := wording.When(len(broken) > 1, fmt.Sprintf(" (and %d more)", len(broken)-1))
		what := map[string]string{config.OnViolationHold: "no new instance is made", config.OnViolationReport: "it is only told"}[cmp.Or(said.OnViolation, config.OnViolationHold)]
		if said.OnViolation == config.OnViolationStop {
			_, spared := d.stoppable()
			what = strings.Join(append([]string{"no new instance is made, and what runs is stopped after " + strings.TrimSuffix(stopAfter().String(), "0s")}, spared...), "; ")
		}
		out = append(out, ring.Condition{Type: ring.ConditionPolicyViolated, Status: ring.ConditionTrue, Reason: broken[0] + more + "; " + what})
	}
	inForce, _ := d.ledger.apps()
	if soon := endingSoon(said.Grants, inForce, source, time.Now()); len(soon) > 0 {
		more := wording.When(len(soon) > 1, fmt.Sprintf(" (and %d more)", len(soon)-1))
		out = append(out, ring.Condition{Type: ring.ConditionGrantExpires, Status: ring.ConditionTrue, Reason: soon[0] + more + "; after that no new instance is made by it"})
	}
	return out
}
