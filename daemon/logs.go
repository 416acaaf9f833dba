package daemon

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/wording"
)

// logs writes the output of the instances of a service, oldest slot first. Who
// follows sees those too that come later, as during a rollout.
func (d *Daemon) logs(ctx context.Context, q api.LogQuery, out func(string) io.WriteCloser) error {
	t := tail{status: d.loop.Status, read: d.engine.Logs, out: out, last: map[string]time.Time{}, failed: map[string]error{}}
	return t.run(ctx, q)
}

// tail is one call of logs.
type tail struct {
	status func() (ring.Status, <-chan struct{})
	read   func(context.Context, string, runtime.LogOptions, io.Writer) error
	out    func(string) io.WriteCloser

	reads  int                  // under way
	last   map[string]time.Time // by instance, when its log ended; zero while it is read
	failed map[string]error     // by instance, until it is known whether it is just gone
}

// reading is what became of the log of one instance.
type reading struct {
	id  string
	err error
}

// logged are the instances that a query is about.
type logged struct {
	instances []ring.InstanceStatus
	found     bool // this host knows such a service
	grows     bool // one of the services is there to stay, so that more instances may come
}

func (t *tail) run(ctx context.Context, q api.LogQuery) error {
	ctx, cancel := context.WithCancel(ctx)
	st, changed := t.status()
	l := loggedBy(&st, q)
	if !l.found {
		cancel()
		says, hint := api.Missing(&st, q.App+wording.When(q.Service != "", "/"+q.Service))
		return api.NotFound(hint, "%s", says)
	}
	ends := make(chan reading)
	defer func() { // nobody writes any more when it returns
		for cancel(); t.reads > 0; t.reads-- {
			<-ends
		}
	}()
	o := runtime.LogOptions{Follow: q.Follow, Tail: q.Tail, Since: q.Since, Timestamps: q.Timestamps}
	t.begin(ctx, l.instances, o, ends)
	o.Tail, o.Since = -1, time.Time{} // all of what comes later
	for t.reads > 0 || q.Follow && l.grows {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-ends:
			t.reads--
			t.last[r.id], t.failed[r.id] = time.Now(), r.err
		case <-changed:
			if st, changed = t.status(); !q.Follow {
				continue
			}
			l = loggedBy(&st, q)
			if err := t.trouble(l.instances); err != nil {
				return err
			}
			t.begin(ctx, l.instances, o, ends)
		}
	}
	return t.trouble(l.instances)
}

// begin reads each instance that nobody reads yet: from its start, or where its
// log ended before it was started again.
func (t *tail) begin(ctx context.Context, instances []ring.InstanceStatus, o runtime.LogOptions, ends chan<- reading) {
	for _, in := range instances {
		since, known := t.last[in.ID]
		if known && (since.IsZero() || in.State != ring.SlotStarting && in.State != ring.SlotReady && in.State != ring.SlotNotReady) {
			continue
		}
		from := o
		if known {
			from.Since = since
		}
		t.last[in.ID] = time.Time{}
		t.reads++
		w := t.out(in.Name)
		go func() {
			err := t.read(ctx, in.ID, from, w)
			ends <- reading{in.ID, errors.Join(err, w.Close())}
		}()
	}
}

// trouble is what could not be read of instances that are still here: one that
// went meanwhile is missed by nobody.
func (t *tail) trouble(instances []ring.InstanceStatus) error {
	var all []error
	for _, in := range instances {
		all = append(all, t.failed[in.ID])
	}
	return errors.Join(all...)
}

func loggedBy(st *ring.Status, q api.LogQuery) logged {
	var l logged
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, s := range a.Services {
				if a.Name == q.App && (q.Service == "" || q.Service == s.Name) {
					l.found, l.grows = true, l.grows || !s.Kind.Ends()
					l.instances = append(l.instances, s.Instances...)
				}
			}
		}
	}
	return l
}
