package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// An app that is handed back to Compose goes on running as it is: what gitring
// knows of it is forgotten, the engine's restart policies are set as the Compose
// file says, and from then on nothing of it is touched, healed, removed or deployed
// until a person adopts it again. Its containers keep gitring's labels, which
// nobody can take off; what keeps hands off them is the override.

// Leave is a person's wish that an app is handed back to Compose.
const Leave Verb = "leave"

// leaveIt forgets an app that is at rest.
func (p *person) leaveIt() error {
	f, ok := p.Facts.Apps[p.App]
	if !ok || f.Leaving {
		if o := p.overrideOn(ring.OverrideLeft, ring.ServiceID(p.App)); o != nil {
			return unfitAct(say("gitring adopt %s --reason '…' takes it back", p.App), "%s is %s", p.App, overrideSays(o))
		}
		return ErrNotFound
	}
	if f.App.Commit != p.To {
		return unfitAct("run it again", "another plan of %s came into force meanwhile", p.App)
	}
	if why := p.handedOverride(p.App); !why.None() {
		return unfitAct(say("gitring release %s --reason '…'", p.App), "%s is %s", p.App, why.Says)
	}
	o := ring.OverrideRow{Kind: ring.OverrideLeft, Target: p.App, Actor: p.Actor, Reason: p.Reason, At: p.now, Policies: map[string]ring.EnginePolicy{}}
	runs := "nothing of it runs"
	for _, v := range p.inOrder() {
		if v.app.Name != p.App {
			continue
		}
		if slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Live() }) {
			runs = "it runs on as it is"
		}
		if why := p.movesNow(v); why != "" {
			return unfitAct(say("wait until gitring status says Ready, or gitring rollout abort %s --reason '…'", v.id), "%s is under way: %s", v.id, why)
		}
		if _, scaled := p.scaledCount(v.id); scaled {
			return unfitAct(say("gitring release %s --reason '…'", v.id), "%s is scaled by hand", v.id)
		}
		for _, in := range v.instances {
			want := p.enginePolicy(v, in)
			switch {
			case v.want.Kind.Ends() || want.Name == "" || in.Policy == want.Name && in.MaxRetries == want.MaxRetries:
			case p.adoptedRow(in) != nil: // without its row it may not be touched any more
				return unfitAct("wait until it has run for "+v.stableWindowOf(in).String(), "slot %d of %s crashed lately, and its restarts are gitring's still", in.Slot, v.id)
			default:
				o.Policies[in.ID] = want
			}
		}
	}
	p.forgetApp()
	p.setFact(o)
	p.done.Says = say("%s is Compose's again: %s, and gitring keeps its hands off until gitring adopt %[1]s --reason '…'", p.App, runs)
	p.addEvent(ring.Event{Kind: ring.AppLeft, Source: f.App.Source, App: p.App, Commit: f.App.Commit, Actor: p.Actor, Reason: "handed back to Compose: " + p.Reason})
	return nil
}

// movesNow is what is under way with a service; "" when nothing is.
func (p *person) movesNow(v *service) string {
	if a, busy := p.Busy[string(v.id)]; busy {
		return string(a.Kind)
	}
	if v.want.Kind.Ends() {
		if active := p.underWay(v.id); len(active) > 0 {
			return runSays(active[0])
		}
		return ""
	}
	if !v.rollout.Done || v.rollout.Version != v.want.Version || v.target != v.want {
		return "its rollout is not complete"
	}
	for _, in := range v.instances {
		if in.Version != v.want.Version || in.intent != "" || in.Slot > v.want.Replicas {
			return say("slot %d is not as the plan has it", in.Slot)
		}
	}
	return ""
}

// forgetApp forgets what only an app in gitring's hands needs. Which jobs ran and
// what was given to its instances is remembered: neither is ever to happen twice.
func (p *person) forgetApp() {
	of := func(key string) bool {
		return key == p.App || strings.HasPrefix(key, p.App+"/") || strings.HasPrefix(key, p.App+"@")
	}
	drop := func(table string, keys []string) {
		for _, key := range keys {
			if of(key) {
				p.setFact(ring.Forget{Table: table, Key: key})
			}
		}
	}
	services := func(ids []ring.ServiceID) (out []string) {
		for _, id := range ids {
			out = append(out, string(id))
		}
		return out
	}
	drop("good", services(sortedKeys(p.Facts.Good)))
	drop("verdict", sortedKeys(p.Facts.Verdicts))
	drop("rollout", services(sortedKeys(p.Facts.Rollouts)))
	drop("slot", sortedKeys(p.Facts.Slots))
	drop("mark", services(sortedKeys(p.Facts.Marks)))
	drop("past", sortedKeys(p.Facts.Past))
	drop("cron", services(sortedKeys(p.Facts.Cron)))
	drop("ask", services(sortedKeys(p.Facts.Asks)))
	drop("hands", services(sortedKeys(p.Facts.Hands)))
	drop("drift", services(sortedKeys(p.Facts.Drift)))
	for _, key := range sortedKeys(p.Facts.Troubles) {
		if of(p.Facts.Troubles[key].Subject) {
			p.setFact(ring.Forget{Table: "trouble", Key: key})
		}
	}
	for _, id := range sortedKeys(p.Facts.Adopted) {
		if p.Facts.Adopted[id].App == p.App {
			p.setFact(ring.Forget{Table: "adopted", Key: id})
		}
	}
	p.setFact(ring.Forget{Table: "app", Key: p.App})
}

// Networks are the engine's names of an app's networks, by their keys.
func Networks(w World, app *ring.App) map[string]string {
	return newDecider(w, w.Wall).networkNames(app)
}

// listSays is a few words as people read them.
func listSays(words []string) string { return strings.Join(slices.Compact(words), ", ") }
