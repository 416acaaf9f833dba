package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

type servicePageView struct {
	App, Name  string
	Mark       Mark
	Kind       ring.Kind
	Says, Next string
	Rule       string
	Waits      []string
	Until      *moment
	Wanted     *ring.ExplainedWant
	Good       *ring.ExplainedGood
	GoodAt     *moment
	WantedBy   string // who signed its commit; "" where nobody knows
	GoodBy     string
	Rollout    *rolloutView
	Bar        []barPart
	Refusal    *ring.Refusal
	Conditions []conditionView
	Overrides  []overrideView
	Notes      []string
	Steps      []stepView
	Tries      []tryView
	Inputs     []ring.ExplainedInput
	Instances  []instanceView
	Crash      *crashView
	Front      *frontView
	Image      string
	Digest     string
	Ports      []string
	NextRun    *dueMoment
	Logs, Acts bool
}

// barPart is an instance in the bar of a rollout.
type barPart struct {
	Mark   Mark
	Stands string // wanted, last good, superseded
}

type conditionView struct {
	Mark   Mark
	Says   string
	Since  *moment
	Commit ring.SHA
}

type stepView struct {
	When, Kind, Reason, Far string
	Slot                    int
}

type tryView struct {
	Kind, Err, Cause, Hint string
	N                      int
	Next                   *moment
}

type instanceView struct {
	Mark            Mark
	Name            string
	Slot            int
	Version         ring.Version
	Stands          string
	Commit          ring.SHA
	Started         *moment
	Crashes         int
	NextTry         *moment
	Reason, Address string
	Checks          []checkView
	Adopted         bool
	InFlight        int
}

type checkView struct {
	Mark  Mark
	Name  string
	Count int
	Last  *moment
	Says  string
}

type crashView struct {
	Head      string
	Slot      int
	At        *moment
	Says      string
	Reason    string
	NotRead   string
	Log       []string
	Checked   []string
	Signature string
}

type frontView struct {
	Mark        Mark
	Ports       []string
	Connections int
	Queued      int
	Carried     []carriedView
}

// carriedView is what a front carries to one instance.
type carriedView struct {
	Mark     Mark
	Name     string
	Set      string
	Weight   string
	InFlight int
	Errors   int64
	Times    string // of half of the answers, and of nearly all
	Why      string
}

func servicePage(ctx context.Context, a *asking) (*drawn, error) {
	app, name := a.r.PathValue("app"), a.r.PathValue("service")
	e, err := a.answers.Inspect(ctx, api.InspectQuery{App: app, Service: name})
	if err != nil {
		return nil, err
	}
	v := &servicePageView{
		App: app, Name: name, Says: e.Says, Next: e.Next, Rule: e.Rule, Waits: e.Waits, Until: a.clock.of(e.Until), Wanted: e.Wanted,
		Good: e.LastGood, Refusal: e.Refusal, Notes: e.Notes, Inputs: e.Inputs, Logs: a.may(api.ScopeLogs), Acts: a.may(api.ScopeOperate),
		Mark: serviceMark(e.AsStatus()),
	}
	if sv := a.findService(app, name); sv != nil {
		v.Mark, v.Kind, v.Image, v.Digest, v.Ports, v.NextRun = serviceMark(sv), sv.Kind, sv.Image, sv.Digest, sv.Ports, a.clock.due(sv.NextRun, sv.Timezone)
		if f := sv.Front; f != nil {
			v.Front = &frontView{Mark: markOf(f.Phase), Ports: f.Ports, Connections: f.Connections, Queued: f.Queued}
			if err := a.carried(ctx, v); err != nil {
				return nil, err
			}
		}
	}
	once := said{e.Says}
	v.Rule = once.tell(e.Rule)
	if e.Wanted != nil && e.Wanted.Commit != "" {
		v.WantedBy = a.signedBy(ctx, e.Wanted.Commit).signer
	}
	if e.LastGood != nil && e.LastGood.Commit != "" {
		v.GoodAt, v.GoodBy = a.clock.of(e.LastGood.At), a.signedBy(ctx, e.LastGood.Commit).signer
	}
	if r := e.Rollout; r != nil {
		v.Rollout = &rolloutView{Mark: markOf(ring.RolloutWord(r.Phase, r.Code, e.Phase)), Commit: r.Commit, Reason: once.tell(r.Reason)}
		if c := r.Canary; c != nil {
			v.Rollout.Canary = canarySays(c)
		}
	}
	for _, c := range e.Conditions {
		says := conditionSays(&c)
		if why := once.tell(c.Reason); why != "" {
			says += ": " + why
		}
		v.Conditions = append(v.Conditions, conditionView{markOf(c.Type), says, a.clock.of(c.Since), c.Commit})
	}
	for i := range e.Overrides {
		v.Overrides = append(v.Overrides, a.override(&e.Overrides[i]))
	}
	for _, s := range e.Steps {
		v.Steps = append(v.Steps, stepView{map[bool]string{true: "under way", false: "decided"}[s.Now], string(s.Kind), s.Reason, s.Far, s.Slot})
	}
	for _, t := range e.Tries {
		v.Tries = append(v.Tries, tryView{string(t.Kind), t.Err, t.Cause, t.Hint, t.N, a.clock.of(t.Next)})
	}
	for i := range e.Instances {
		in := a.instance(&e.Instances[i])
		v.Instances = append(v.Instances, in)
		v.Bar = append(v.Bar, barPart{in.Mark, in.Stands})
	}
	if c := e.Crash; c != nil {
		v.Crash = a.crash(c)
		v.Crash.Reason = once.tell(c.Reason)
	}
	return &drawn{template: "service", title: titleOf(app+"/"+name, a.status.Host, []Mark{v.Mark}), live: "status", view: v}, nil
}

// carried adds what the front of a service says of each instance.
func (a *asking) carried(ctx context.Context, v *servicePageView) error {
	fronts, err := a.answers.Traffic(ctx, api.TrafficQuery{App: v.App, Service: v.Name})
	if errors.Is(err, api.ErrNotFound) { // it has gone meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	for i := range fronts {
		for j := range fronts[i].Instances {
			in := &fronts[i].Instances[j]
			c := carriedView{
				Mark: markOf(string(in.State)), Name: cmp.Or(in.Instance, in.Name), Set: in.Set, Weight: fmt.Sprintf("%.0f %%", in.Weight), InFlight: in.InFlight,
				Errors: in.Errors, Why: in.Why,
			}
			if in.P50 > 0 {
				c.Times = fmt.Sprintf("%.0f ms, %.0f ms", in.P50, in.P99)
			}
			v.Front.Carried = append(v.Front.Carried, c)
		}
	}
	return nil
}

func (a *asking) instance(in *ring.ExplainedInstance) instanceView {
	v := instanceView{
		Mark: markOf(in.State), Name: in.Name, Slot: in.Slot, Version: in.Version, Stands: in.Stands, Commit: in.Commit, Started: a.clock.of(in.Started),
		Crashes: in.Crashes, Reason: in.Reason, Address: in.Address, Adopted: in.Adopted, InFlight: in.InFlight,
	}
	if in.NextTry.After(a.clock.now) {
		v.NextTry = a.clock.of(in.NextTry)
	}
	for _, r := range in.Checks {
		c := checkView{markOf("passed"), r.Check, r.Count, a.clock.of(r.Last), r.Says}
		if !r.OK {
			c.Mark = markOf(ring.RunFailed)
		}
		v.Checks = append(v.Checks, c)
	}
	return v
}

func (a *asking) crash(c *ring.Crash) *crashView {
	v := &crashView{Head: "Last crash", Slot: c.Slot, At: a.clock.of(c.At), Reason: c.Reason, NotRead: c.NotRead, Log: c.Log, Checked: c.Checked, Signature: c.Signature}
	switch {
	case c.Class == "": // how it ended is told by the reason alone
	case c.ExitCode == ring.NoExit:
		v.Head, v.Says = "Last failure", "it was running"
	case c.OOM:
		v.Says = fmt.Sprintf("exit %d, out of memory", c.ExitCode)
	default:
		v.Says = fmt.Sprintf("exit %d, %s", c.ExitCode, c.Class)
	}
	if c.Crashes > 1 {
		v.Says += fmt.Sprintf(", %d in a row", c.Crashes)
	}
	return v
}

func canarySays(c *ring.CanaryStatus) string {
	return strings.TrimSpace(fmt.Sprintf("step %d: %d %% of the requests, %d answered, %.1f %% errors, p99 %d ms", c.Step, c.Weight, c.Answers, c.Errors, c.P99))
}
