package daemon

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// A prompter is the status and the engine of a host on which one app runs.
type prompter struct {
	mu      sync.Mutex // guards what follows
	status  ring.Status
	changed chan struct{}
	written strings.Builder
	stops   map[string]chan struct{} // ends the log of an instance
	fails   map[string]error
	asked   []runtime.LogOptions
}

func newPrompter(kind ring.Kind, ids ...string) *prompter {
	p := &prompter{changed: make(chan struct{}), stops: map[string]chan struct{}{}, fails: map[string]error{}}
	p.show(kind, ids...)
	return p
}

func (p *prompter) show(kind ring.Kind, ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []ring.InstanceStatus
	for _, id := range ids {
		all = append(all, ring.InstanceStatus{ID: id, Name: "shop-web-" + id, State: ring.SlotReady})
		if p.stops[id] == nil {
			p.stops[id] = make(chan struct{})
		}
	}
	p.status = ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{{Name: "web", Kind: kind, Instances: all}}}}}}}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *prompter) now() (ring.Status, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status, p.changed
}

func (p *prompter) log(ctx context.Context, id string, o runtime.LogOptions, w io.Writer) error {
	p.mu.Lock()
	stop, err := p.stops[id], p.fails[id]
	p.asked = append(p.asked, o)
	p.mu.Unlock()
	if _, err := io.WriteString(w, "up\n"); err != nil {
		return err
	}
	if !o.Follow || err != nil {
		return err
	}
	select {
	case <-stop:
	case <-ctx.Done():
	}
	return nil
}

// A promptLine is where the lines of one instance go.
type promptLine struct {
	*prompter
	name string
}

func (l promptLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written.WriteString(l.name + " " + string(b))
	return len(b), nil
}

func (promptLine) Close() error { return nil }

// logs begins a call; its error comes when it has ended.
func (p *prompter) logs(ctx context.Context, q api.LogQuery) <-chan error {
	q.App, q.Tail = "shop", -1
	t := tail{
		status: p.now, read: p.log, out: func(name string) io.WriteCloser { return promptLine{p, name} },
		last: map[string]time.Time{}, failed: map[string]error{},
	}
	ended := make(chan error, 1)
	go func() { ended <- t.run(ctx, q) }()
	return ended
}

func (p *prompter) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

func TestLogsAreFollowedFromAnInstanceToTheOneThatReplacesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPrompter(ring.Worker, "a")
		ended := p.logs(ctx, api.LogQuery{Follow: true, Since: time.Now()})
		synctest.Wait()
		require.Equal(t, "shop-web-a up\n", p.lines())
		require.NotZero(t, p.asked[0].Since)

		p.show(ring.Worker, "a", "b")
		synctest.Wait()
		require.Equal(t, "shop-web-a up\nshop-web-b up\n", p.lines(), "the new one from its start, the old one not again")
		require.Zero(t, p.asked[1].Since)

		close(p.stops["a"])
		p.show(ring.Worker, "b")
		synctest.Wait()
		require.Empty(t, ended)
		close(p.stops["b"])
		p.show(ring.Worker)
		synctest.Wait()
		require.Empty(t, ended, "a worker without instances gets new ones")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestLogsOfAnInstanceThatWasStartedAgainGoOnWhereTheyEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPrompter(ring.Worker, "a")
		ended := p.logs(ctx, api.LogQuery{Follow: true})
		synctest.Wait()
		close(p.stops["a"])
		synctest.Wait()
		stopped := time.Now()
		time.Sleep(time.Minute)
		p.mu.Lock()
		p.stops["a"] = make(chan struct{})
		p.mu.Unlock()
		p.show(ring.Worker, "a")
		synctest.Wait()
		require.Len(t, p.asked, 2)
		require.Equal(t, stopped, p.asked[1].Since)
		cancel()
		<-ended
	})
}

func TestLogsEnd(t *testing.T) {
	gone := errors.New("no such container")
	for _, c := range []struct {
		name string
		kind ring.Kind
		q    api.LogQuery
		do   func(p *prompter)
		err  string
	}{
		{name: "that nobody follows, at once", kind: ring.Worker, do: func(*prompter) {}},
		{name: "of a job, with its run", kind: ring.JobK, q: api.LogQuery{Follow: true}, do: func(p *prompter) { close(p.stops["a"]) }},
		{name: "of a service that left the host", kind: ring.Worker, q: api.LogQuery{Follow: true}, do: func(p *prompter) {
			close(p.stops["a"])
			p.mu.Lock()
			p.status = ring.Status{}
			close(p.changed)
			p.changed = make(chan struct{})
			p.mu.Unlock()
		}},
		{name: "with what could not be read", kind: ring.Worker, q: api.LogQuery{Follow: true}, err: "no such container", do: func(p *prompter) {
			p.mu.Lock()
			p.fails["b"] = gone
			p.mu.Unlock()
			p.show(ring.Worker, "a", "b")
			synctest.Wait()
			p.show(ring.Worker, "a", "b")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPrompter(c.kind, "a")
				ended := p.logs(t.Context(), c.q)
				synctest.Wait()
				c.do(p)
				synctest.Wait()
				require.Len(t, ended, 1)
				if err := <-ended; c.err != "" {
					require.ErrorContains(t, err, c.err)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

func TestAnInstanceThatWentWhileItsLogWasAskedForIsMissedByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPrompter(ring.Worker, "a", "b")
		p.fails["b"] = errors.New("no such container")
		ended := p.logs(ctx, api.LogQuery{Follow: true})
		synctest.Wait()
		p.show(ring.Worker, "a")
		synctest.Wait()
		require.Empty(t, ended)
		cancel()
		<-ended
	})
}
