package runtime

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// heard are the events that can change what a look sees. Each health probe of
// the engine makes three exec_* events; they are not among them.
var heard = []events.Action{
	events.ActionCreate, events.ActionStart, events.ActionDie, events.ActionStop, events.ActionOOM,
	events.ActionPause, events.ActionUnPause, events.ActionRestart, events.ActionRename,
	events.ActionUpdate, events.ActionDestroy, events.ActionHealthStatus, events.ActionKill,
}

// settle is how long a stream must stand before it counts as one: the client
// hands back an engine's "no" a moment after it began.
const settle = 20 * time.Millisecond

// Run listens to the engine's events until ctx ends, which is its only error.
// An event is a hint: the container is inspected at the next look, and Poke is
// told. After a gap everything is inspected, because events may be lost.
func (d *Docker) Run(ctx context.Context) error {
	checks := make(chan struct{})
	go func() {
		defer close(checks)
		d.runChecks(ctx)
	}()
	defer func() { <-checks }() // it ends with ctx, as this does
	return d.heed(ctx, d.listen)
}

// heed reads one stream of events after the other until ctx ends. listen returns the moment up
// to which it heard all.
func (d *Docker) heed(ctx context.Context, listen func(ctx context.Context, since time.Time) (time.Time, error)) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 5*time.Second
	var since time.Time
	for told := false; ; {
		last, err := listen(ctx, since)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if last.After(since) { // it worked for a while
			since, told = last, false
			pause.Reset()
		}
		if !told {
			d.opts.Log.Warn("lost the engine's events", "reason", err.Error())
			told = true
		}
		d.forget()
		if wait(ctx, pause.NextBackOff()) != nil {
			return ctx.Err()
		}
	}
}

// listen reads one stream to its end. It returns the moment up to which events
// were heard, or since when there was no stream.
func (d *Docker) listen(ctx context.Context, since time.Time) (time.Time, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return since, err
	}
	opts := events.ListOptions{Filters: d.filter()}
	if !since.IsZero() {
		opts.Since = stamp(since)
	}
	return d.hear(ctx, e, opts, since, func() { d.hint("") }, func(m events.Message) {
		if !d.about(m) {
			return // of a Compose project that is not ours
		}
		d.deaths.hear(m)
		if m.Action == events.ActionKill {
			return // a signal changes nothing that a look sees; the end that follows does
		}
		if d.cache.unexpect(ownEvent{m.Actor.ID, m.Action}) {
			return // the step that made it knows
		}
		if d.beingMade(m) {
			d.cache.mark(m.Actor.ID)
			return
		}
		d.hint(m.Actor.ID)
	})
}

// beingMade reports whether an event is part of a step under way that makes or starts a container:
// a look in the middle of it inspects nothing, keeps the engine from its work, and finds nothing
// to do. The end of the step brings a look, whatever came of it.
func (d *Docker) beingMade(m events.Message) bool {
	switch m.Action {
	case events.ActionCreate, events.ActionStart:
		return d.cache.isHeld(m.Actor.ID, m.Actor.Attributes["name"])
	}
	return false
}

// hear reads one stream to its end: begun is told once it stands, and each of what it says.
func (d *Docker) hear(ctx context.Context, e engine, opts events.ListOptions, since time.Time, begun func(), each func(events.Message)) (time.Time, error) {
	// The engine's stream must end with this call, whatever ends it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last, began := since, d.opts.Now()
	stream, errs := e.Events(ctx, opts)
	settled := time.After(settle)
	for {
		select {
		case <-settled:
			// From here nothing is missed; what happened before may have been.
			if began.After(last) {
				last = began
			}
			begun()
		case m := <-stream:
			if t := time.Unix(0, m.TimeNano); t.After(last) {
				last = t
			}
			each(m)
		case err := <-errs:
			return last, lost(err)
		}
	}
}

// lost gives an ended stream an error to tell of.
func lost(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("the engine ended the stream")
	}
	return err
}

func (d *Docker) filter() filters.Args {
	f := filters.NewArgs(
		filters.Arg("label", composeProject), // ours have it, and so have adopted ones
		filters.Arg("type", string(events.ContainerEventType)),
	)
	for _, a := range heard {
		f.Add("event", string(a))
	}
	return f
}

// hint makes the next look inspect a container, "" all, and asks for that look.
func (d *Docker) hint(id string) {
	d.cache.mark(id)
	d.opts.Poke(id)
}
