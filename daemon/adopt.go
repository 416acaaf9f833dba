package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/wording"
)

// adopt takes over what Compose runs of an app. What the engine says now is held
// against the plan, and once more right before the plan comes into force.
func (d *Daemon) adopt(ctx context.Context, p api.Peer, r api.AdoptRequest) (api.Adoption, error) {
	if no := d.notOnSwarm("cannot adopt "+r.App, "a stack is not taken over", "docker stack rm "+r.App+", and gitring makes its services; what volumes hold stays"); no != nil {
		return api.Adoption{}, no
	}
	w, err := d.loop.World(ctx)
	if err != nil {
		return api.Adoption{}, fmt.Errorf("cannot tell what is in force: %w", err)
	}
	app, err := d.toAdopt(&w, r.App)
	if err != nil {
		return api.Adoption{}, err
	}
	found, err := d.engine.Adoption(ctx, ring.Action{Kind: ring.DoAdmit, App: app.Name, Commit: app.Commit, Of: app}, r.Compare)
	if err != nil {
		return api.Adoption{}, err
	}
	out := adoptionOf(&found)
	if r.Compare {
		out.Says = compared(app.Name, &found)
		for _, no := range found.Refusals {
			out.Obstacles = append(out.Obstacles, api.Obstacle{Says: no.Says, Hint: no.Hint})
		}
		return out, nil
	}
	if len(found.Refusals) > 0 {
		return out, admission.InOne(found.Refusals)
	}
	a := reconcile.Act{Verb: reconcile.Adopt, App: app.Name, Actor: p.Actor(), Reason: r.Reason, Keep: found.Kept}
	for _, c := range found.Containers {
		a.Take = append(a.Take, c.Row)
	}
	done, err := d.do(ctx, a)
	out.Says = done.Says
	return out, err
}

// toAdopt is the plan that containers are held against: the one in force, else the
// next one.
func (d *Daemon) toAdopt(w *reconcile.World, name string) (*ring.App, error) {
	if f, ok := w.Facts.Apps[name]; ok && !f.Leaving {
		return &f.App, nil
	}
	for i := range w.Sources {
		next := w.Sources[i].Next
		if next == nil {
			continue
		}
		if app, ok := next.App(name); ok {
			return &app, nil
		}
		if no := next.Refused[name]; no != nil {
			return nil, no
		}
	}
	return nil, d.notInForce(name, "")
}

func adoptionOf(found *runtime.Adoption) api.Adoption {
	out := api.Adoption{Starts: found.Starts, Containers: []api.AdoptedContainer{}}
	for _, c := range found.Containers {
		differs := c.Differs
		if differs == nil {
			differs = []string{}
		}
		out.Containers = append(out.Containers, api.AdoptedContainer{Name: c.Name, Service: c.Row.Service, Slot: c.Row.Slot, Differs: differs})
	}
	return out
}

// compared is what a comparison comes to.
func compared(app string, found *runtime.Adoption) string {
	n := 0
	for _, c := range found.Containers {
		if len(c.Differs) > 0 {
			n++
		}
	}
	switch {
	case len(found.Containers) == 0 && len(found.Refusals) == 0:
		return fmt.Sprintf("Compose runs nothing of %s that is not gitring's", app)
	case n == 0:
		return fmt.Sprintf("%s of %s would be adopted; nothing differs from what gitring would make", wording.Counted(len(found.Containers), "container"), app)
	}
	return fmt.Sprintf("%s of %s would be adopted and not be touched; when its service first changes, %d will differ in more than that", wording.Counted(len(found.Containers), "container"), app, n)
}

// do carries out an act.
func (d *Daemon) do(ctx context.Context, a reconcile.Act) (reconcile.Acted, error) {
	done, err := d.loop.Do(ctx, a)
	return done, d.notDone(&a, err)
}

// notDone says what does not fit as the socket says it.
func (d *Daemon) notDone(a *reconcile.Act, err error) error {
	var unfit *reconcile.Unfit
	switch {
	case errors.Is(err, reconcile.ErrNotFound):
		return d.notInForce(a.App, a.Service)
	case errors.As(err, &unfit):
		return api.Conflicting(unfit.Hint, "cannot %s: %s", a.Verb, unfit.Says)
	}
	return err
}

// leave hands an app back to Compose. The folder to go on from is there before
// gitring lets go.
func (d *Daemon) leave(ctx context.Context, p api.Peer, r api.LeaveRequest) (api.Left, error) {
	if no := d.notOnSwarm("cannot leave "+r.App, "Compose runs nothing there", "its services run on without gitring, and docker service works on them"); no != nil {
		return api.Left{}, no
	}
	w, err := d.loop.World(ctx)
	if err != nil {
		return api.Left{}, fmt.Errorf("cannot tell what is in force: %w", err)
	}
	f := w.Facts.Apps[r.App]
	act := reconcile.Act{Verb: reconcile.Leave, App: r.App, Actor: p.Actor(), Reason: r.Reason, To: f.App.Commit}
	if _, err := reconcile.Carry(w, act, time.Now()); err != nil { // nothing is written for what is not done
		return api.Left{}, d.notDone(&act, err)
	}
	h, err := d.handback(ctx, &w, &f.App, r.WithSecrets)
	if err != nil {
		return api.Left{}, err
	}
	at := r.To
	if at == "" {
		at = d.leftDir(r.App)
	}
	written, err := h.write(at)
	if err != nil {
		return api.Left{}, err
	}
	done, err := d.do(ctx, act)
	if err != nil {
		return api.Left{}, errors.Join(err, written.undo())
	}
	h.notes = append(h.notes, d.tellLeft(ctx, &w, r.App)...)
	return api.Left{Says: done.Says, Dir: written.project, Command: h.command(written.project), Notes: h.notes}, nil
}
