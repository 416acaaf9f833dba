package pages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

type planView struct {
	Plans []*planned
	Rev   string
}

// planned is what a commit of a source would change.
type planned struct {
	Source    string
	Commit    ring.SHA
	Subject   string // "" where nobody knows
	Signer    string
	Why       string // it is shown: what waits, or that nothing does
	Waits     bool
	Approve   bool
	Release   string // where the hold that it waits for can be ended
	Error     *failView
	Refusals  []*ring.Refusal
	Doubts    []string
	Decisions []string
	Awaiting  string
	NotYet    string // which hosts it waits for, or what else is in its way
	Apps      []plannedApp
	Same      int        // services that stay as they are
	Moves     []moveView // that go on
	Ended     []moveView // that did not come to their end
}

type plannedApp struct {
	Name, Order string
	Files       string // that it is read from, inside the commit
	Notes       []string
	Services    []plannedService
}

type plannedService struct {
	Name, Sign, Class, Reason, Gap, Order, Needs string
	Fields                                       []ring.FieldChange
}

type moveView struct {
	Mark            Mark
	App, Service    string
	Commit          ring.SHA
	Updated, Wanted int
	Reason          string
	Since           *moment
}

// signs are of a class of change, as in a diff.
var signs = map[ring.Class]string{
	ring.ChangeCreate: "+", ring.ChangeRemove: "−", ring.ChangeRoll: "~", ring.ChangeRecreate: "±", ring.ChangeInPlace: "·",
}

func planPage(ctx context.Context, a *asking) (*drawn, error) {
	v := &planView{Rev: a.r.URL.Query().Get("rev")}
	if v.Rev != "" && !shaOf.MatchString(v.Rev) {
		return nil, api.NotFound("a commit has 7 to 40 hex digits", "there is no such commit")
	}
	for i := range a.status.Sources {
		src := &a.status.Sources[i]
		p := a.plannedOf(ctx, src, v.Rev)
		if p == nil {
			continue
		}
		v.Plans = append(v.Plans, p)
	}
	return &drawn{template: "plan", title: "Plan · " + a.status.Host, live: "status", view: v}, nil
}

// plannedOf is the plan of the next commit of a source, of its tip where none waits, or of
// one that was asked for.
func (a *asking) plannedOf(ctx context.Context, src *ring.SourceStatus, rev string) *planned {
	p := &planned{Source: src.Name}
	switch {
	case rev != "":
		p.Commit, p.Why = ring.SHA(rev), "if it were carried out now"
	case src.Next != nil:
		p.Commit, p.Waits = src.Next.Commit, true
		p.Why = "is next" + wording.When(src.Next.Reason != "", ": "+src.Next.Reason)
		p.Approve, p.Release = src.Next.AwaitsYes() && a.may(api.ScopeApprove), a.releaseOf(src.Next)
	case src.Refusal != nil:
		p.Commit, p.Refusals = src.Refusal.Commit, []*ring.Refusal{src.Refusal}
		p.Why = "is refused"
		return p
	case src.Commit == "":
		p.Why = "nothing of this source was carried out yet"
		return p
	default:
		p.Commit, p.Why = src.Commit, "is in force"
	}
	of := a.signedBy(ctx, p.Commit)
	p.Subject, p.Signer = of.subject, of.signer
	c, err := a.answers.Plan(ctx, api.PlanRequest{Source: src.Name, Rev: string(p.Commit)})
	if err != nil {
		f := failOf(err)
		p.Error = &f
		return p
	}
	if c.Commit != "" {
		p.Commit = c.Commit
	}
	p.Refusals, p.Doubts, p.Awaiting, p.NotYet = c.Refusals, c.Doubts, c.Awaiting, c.Waits
	if p.Waits { // what is said beside the commit is not said again
		p.NotYet = strings.TrimPrefix(strings.TrimPrefix(c.Waits, src.Next.Reason), "; ")
	}
	if p.Waits && c.Awaiting != "" && src.Next.Code == ring.WhyAwaitingApproval {
		p.Why = "is next" // what it awaits is said below
	}
	for i := range c.Decisions {
		p.Decisions = append(p.Decisions, decisionSays(&c.Decisions[i]))
	}
	for i := range c.Apps {
		p.app(&c.Apps[i])
	}
	// What changes stands before what is only noted of apps that stay as they are.
	slices.SortStableFunc(p.Apps, func(a, b plannedApp) int { return min(len(b.Services), 1) - min(len(a.Services), 1) })
	for i := range c.UnderWay {
		m := &c.UnderWay[i]
		move := moveView{markOf(ring.RolloutWord(m.Phase, m.Code, m.ServicePhase)), m.App, m.Service, m.Commit, m.Updated, m.Wanted, m.Reason, a.clock.of(m.Since)}
		if m.On() {
			p.Moves = append(p.Moves, move)
		} else {
			p.Ended = append(p.Ended, move)
		}
	}
	return p
}

// app adds what one app would see: of each field its name, and of an image what it was and will be.
// Values of variables are left out: a page shows none, and one of the host may stand in any of them.
func (p *planned) app(c *ring.AppChanges) {
	app := plannedApp{Name: c.App, Order: c.Order, Files: strings.Join(c.Files, ", "), Notes: c.Notes}
	for i := range c.Services {
		s := &c.Services[i]
		if s.Class == ring.ChangeNone {
			p.Same++
			continue
		}
		out := plannedService{Name: s.Service, Sign: signs[s.Class], Class: string(s.Class), Reason: s.Reason, Gap: s.Gap, Order: s.Order, Needs: s.Needs}
		for _, f := range s.Fields {
			f.Values = nil
			out.Fields = append(out.Fields, f)
		}
		out.Reason = beyondFields(out.Reason, out.Fields)
		app.Services = append(app.Services, out)
	}
	if len(app.Services) > 0 || len(app.Notes) > 0 {
		p.Apps = append(p.Apps, app)
	}
}

// beyondFields is what a reason says besides the fields that stand below it.
func beyondFields(reason string, fields []ring.FieldChange) string {
	for _, f := range fields {
		rest, begins := strings.CutPrefix(reason, f.Field)
		if !begins || rest != "" && !strings.HasPrefix(rest, ", ") && !strings.HasPrefix(rest, "; ") {
			return reason
		}
		reason = strings.TrimLeft(rest, ",; ")
	}
	return reason
}

// decisionSays is what the policy says of one power.
func decisionSays(d *ring.Decision) string {
	of := strings.TrimSuffix(d.App+"/"+d.Service, "/")
	return fmt.Sprintf("%s: %s, %s by %s", of, d.Field, d.Verdict, d.Rule) + wording.When(d.Grant != "", ", as "+d.Grant+" lets it")
}
