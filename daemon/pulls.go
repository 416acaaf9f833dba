package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// wirePulls makes what tells pull requests of their plan, for the sources that ask
// for it: nothing of this exists for the others.
func (d *Daemon) wirePulls() {
	for _, f := range d.sources {
		st := f.cfg.Status
		if st == nil || !st.PullRequests {
			continue
		}
		forge := d.forges[f.cfg.Name]
		forge.Branch = f.cfg.Branch
		f.pulls = notify.NewPulls(notify.PullOptions{
			Source: f.cfg.Name, Host: d.cfg.OwnerName(), Forge: forge, Log: d.log,
			Edition: f.pullEdition, Judge: f.pullPlan, Post: d.postPlan,
		})
	}
}

// pullEdition changes with all that a plan depends on but the head: the trusted commit
// and trust files, the host's values, and what is in force here. It is "" while the
// engine cannot be looked at: not seen is not empty.
func (f *follower) pullEdition(ctx context.Context) (string, error) {
	trusted, err := f.git.ProposalEdition(ctx)
	if err != nil || trusted == "" {
		return "", err
	}
	values, err := f.d.env.read()
	if err != nil {
		return "", err
	}
	st, _ := f.d.loop.Status()
	for _, s := range st.Sources {
		if s.Name == f.cfg.Name && st.Engine == "" {
			sum := sha256.Sum256([]byte(trusted + "\n" + values.print + "\n" + string(s.Commit)))
			return hex.EncodeToString(sum[:8]), nil
		}
	}
	return "", nil
}

// pullPlan is the plan of a pull request's head. It reads the head in its quarantine and
// the facts of this host; the engine is not asked for anything, and no registry.
func (f *follower) pullPlan(ctx context.Context, p notify.Pull) (*notify.PullPlan, error) {
	var out *notify.PullPlan
	err := f.git.Propose(ctx, gitsync.Proposal{Head: p.Head, Ref: p.Ref, Fork: p.Fork}, func(got gitsync.Proposed) error {
		out = &notify.PullPlan{
			Host: f.d.cfg.OwnerName(), Source: f.cfg.Name, Branch: f.cfg.Branch, Head: p.Head,
			Untrusted: got.Refusal, Behind: got.Behind, Merged: got.Merged, Alone: got.Alone,
		}
		if got.Refusal != nil {
			return nil
		}
		would, err := f.planned(ctx, f.d.judge.Unsigned(), got.Commit) // who signs what lands is not known yet
		if err != nil {
			return err
		}
		changes := would.public()
		out.Changes = &changes
		for _, r := range changes.Refusals {
			if r.Code == ring.Unreadable { // not the author's fault
				return fmt.Errorf("cannot read commit %s: %s", p.Head.Short(), r.Says)
			}
		}
		return nil
	})
	if errors.Is(err, gitsync.ErrForkUnread) {
		f.d.log.Debug("pull request not read", "source", f.cfg.Name, "reason", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// plannedHere is what carrying out a plan would do here, with what it was made of.
type plannedHere struct {
	ring.Changes
	next    ring.Plan
	world   reconcile.World
	secrets func() []string
}

// planned is what carrying out a commit would do here; nothing is changed.
func (f *follower) planned(ctx context.Context, j admission.Judge, c *ring.Commit) (plannedHere, error) {
	values, err := f.d.env.read()
	if err != nil {
		return plannedHere{}, err
	}
	r := manifest.Look(c, closed(f.here(values)))
	values.apply(&r.Plan, f.d.cfg.DataRoot)
	return f.plannedAs(ctx, j, r, values)
}

// plannedFolder is planned for a folder that a person sent, with the Compose files in it
// that no app reads.
func (f *follower) plannedFolder(ctx context.Context, c *ring.Commit) (plannedHere, error) {
	values, err := f.d.env.read()
	if err != nil {
		return plannedHere{}, err
	}
	r, notRead := f.askedFurther(c, values)
	p, err := f.plannedAs(ctx, f.d.judge.Unsigned(), r, values)
	p.NotRead = notRead
	return p, err
}

func (f *follower) plannedAs(ctx context.Context, j admission.Judge, r manifest.Reading, values HostValues) (plannedHere, error) {
	next, _, refusals := f.judged(j, r, values)
	w, err := f.d.loop.World(ctx)
	if err != nil {
		return plannedHere{}, fmt.Errorf("cannot plan: %w", err)
	}
	changes := reconcile.Plan(w, &next, time.Now())
	for _, r := range changes.Refusals {
		if r.Code == ring.AppTaken && !slices.ContainsFunc(refusals, func(o *ring.Refusal) bool { return o.App == r.App && o.Code == r.Code }) {
			refusals = append(refusals, r) // which only this host knows
		}
	}
	changes.Refusals = refusals // each by itself, as validate tells them
	return plannedHere{changes, next, w, func() []string { return f.d.env.all(values) }}, nil
}

// public is what of it may be told to everybody.
func (p *plannedHere) public() ring.Changes {
	open := map[string]bool{}
	for i := range p.next.Apps {
		have := p.world.Facts.Apps[p.next.Apps[i].Name].App
		open[p.next.Apps[i].Name] = manifest.Open(&p.next.Apps[i]) || manifest.Open(&have)
	}
	return public(p.Changes, open, p.secrets())
}

// postPlan queues the status of a pull request's head. A status goes to commits on the
// trusted chain of the branch, to a refused tip and to the commit at fault, and to
// nothing else but these heads, which the source asks for by status.pull_requests: so
// what is posted here is in their own context alone. An app that has the name of that
// context keeps it.
func (d *Daemon) postPlan(ctx context.Context, p ring.Post) error {
	if f := d.follower(p.Source); f == nil || f.pulls == nil || p.Context != notify.PlanContext(d.cfg.OwnerName()) {
		return fmt.Errorf("cannot post to %s: not the head of a pull request", p.SHA.Short())
	}
	st, _ := d.loop.Status()
	if slices.ContainsFunc(st.Sources, func(s ring.SourceStatus) bool {
		return slices.ContainsFunc(s.Apps, func(a ring.AppStatus) bool { return a.Name == "plan" })
	}) {
		return nil
	}
	if err := d.store.Record(ctx, []ring.Fact{p}, nil); err != nil {
		return err
	}
	d.sender.Poke()
	return nil
}
