package runtime

import (
	"context"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// checkRunner runs the check of a container at once.
type checkRunner interface {
	runCheck(ctx context.Context, id string) (health string, err error)
}

// bootedBySystemd reports whether this host has systemd: the folder is there exactly then.
func bootedBySystemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

const (
	checksLook     = 500 * time.Millisecond // between looks for checks that are due
	checkInterval  = 30 * time.Second       // of a check that says none
	checkTimeout   = 30 * time.Second       // the same
	checkOvertime  = 5 * time.Second        // what Podman may take beyond the check's own time
	shortestChecks = time.Second            // between two checks, whatever was asked
)

// A check is that of one container.
type check struct {
	next     time.Time
	interval time.Duration
	timeout  time.Duration
	running  bool
}

// runChecks runs the checks of instances at their intervals until ctx ends, where the engine
// is a Podman without systemd: its timers are systemd's, and no check would ever run (P9).
func (d *Docker) runChecks(ctx context.Context) {
	if d.timers() {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	checks := map[string]*check{}
	ended := make(chan string) // checks that have run, by container
	for wait(ctx, checksLook) == nil {
		for more := true; more; {
			select {
			case id := <-ended:
				checks[id].running, checks[id].next = false, d.opts.Now().Add(checks[id].interval)
			default:
				more = false
			}
		}
		e, err := d.ready(ctx)
		p, is := e.(podman)
		if err != nil || !is {
			continue
		}
		runner, can := p.engine.(checkRunner)
		if !can {
			return
		}
		checked := d.cache.checked()
		maps.DeleteFunc(checks, func(id string, c *check) bool { _, there := checked[id]; return !there && !c.running })
		for id, health := range checked {
			c := checks[id]
			if c == nil {
				if c = d.checkOf(ctx, p, id); c == nil {
					continue
				}
				checks[id] = c
			}
			if c.running || d.opts.Now().Before(c.next) {
				continue
			}
			c.running = true
			within := c.timeout + checkOvertime
			all.Go(func() {
				d.runOne(ctx, runner, id, health, within)
				select {
				case ended <- id:
				case <-ctx.Done():
				}
			})
		}
	}
}

// runOne runs the check of a container, and has it looked at where it is told to be other than before.
func (d *Docker) runOne(ctx context.Context, runner checkRunner, id, before string, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if now, err := runner.runCheck(ctx, id); err == nil && now != before {
		d.hint(id)
	}
}

// checkOf is the check of a container, due at once; nil where it has none or cannot be asked.
func (d *Docker) checkOf(ctx context.Context, e engine, id string) *check {
	c, err := e.ContainerInspect(ctx, id)
	if err != nil || c.Config == nil || c.Config.Healthcheck == nil {
		return nil
	}
	out := &check{interval: c.Config.Healthcheck.Interval, timeout: c.Config.Healthcheck.Timeout}
	if out.interval <= 0 {
		out.interval = checkInterval
	}
	if out.timeout <= 0 {
		out.timeout = checkTimeout
	}
	out.interval = max(out.interval, shortestChecks)
	return out
}

// checked are the containers that run and have a check, with what they were told to be.
func (c *cache) checked() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]string{}
	for id, k := range c.known {
		if k.in.State == ring.StateRunning && k.in.Health != "" {
			out[id] = k.in.Health
		}
	}
	return out
}
