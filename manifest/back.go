package manifest

import (
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// back is the way back to the last good version, as Compose's rollback_config has
// it; nil where that says nothing about the way. It starts from the knobs of the
// way there, whoever said those: x-gitring has none of its own for the way back.
func (b *builderOf) back(c types.ServiceConfig, r ring.Rollout) *ring.Back {
	if c.Deploy == nil || c.Deploy.RollbackConfig == nil {
		return nil
	}
	u := c.Deploy.RollbackConfig
	says := func(key string) bool { return b.says("services", c.Name, "deploy", "rollback_config", key) }
	for _, key := range []string{"failure_action", "max_failure_ratio"} {
		if says(key) {
			b.note("%s: deploy.rollback_config.%s is not used: the last good version is brought back for as long as it takes", c.Name, key)
		}
	}
	back := ring.Back{MaxSurge: r.MaxSurge, MaxUnavailable: r.MaxUnavailable, MaxParallel: r.MaxParallel, MinReadyTime: r.MinReadyTime}
	if says("order") || says("parallelism") {
		back.MaxSurge, back.MaxUnavailable, back.MaxParallel = pace(c, u, r.MaxParallel)
	}
	if says("monitor") {
		back.MinReadyTime = b.positive(c.Name, "rollback_config", "monitor", u.Monitor)
	}
	if delay := b.positive(c.Name, "rollback_config", "delay", u.Delay); delay > back.MinReadyTime {
		back.MinReadyTime = delay
	}
	if back == (ring.Back{MaxSurge: r.MaxSurge, MaxUnavailable: r.MaxUnavailable, MaxParallel: r.MaxParallel, MinReadyTime: r.MinReadyTime}) {
		return nil
	}
	return &back
}

// pace is the room and how many start at once, by Compose's order and
// parallelism; parallel is for a file that says no parallelism.
func pace(c types.ServiceConfig, u *types.UpdateConfig, parallel int) (surge, unavailable ring.Count, atOnce int) {
	room := ring.Count{N: 1}
	if u.Parallelism != nil {
		parallel = int(min(*u.Parallelism, 1000))
		room = ring.Count{N: parallel}
		if parallel == 0 { // Compose: all at once
			room, parallel = ring.Count{N: 100, Percent: true}, max(1, c.GetScale())
		}
	}
	if u.Order == "stop-first" {
		return ring.Count{}, room, parallel
	}
	return room, ring.Count{}, parallel
}

// The least of both keep a crash loop from taking the host: below them it would
// be forgiven, and so restarted at once, as often as it crashes.
const (
	leastDelay  = time.Second
	leastWindow = 10 * time.Second
)

// pauses are Compose's waits between restarts: the delay is the first of
// gitring's, which double, and the window the run that forgives earlier crashes.
func (b *builderOf) pauses(c types.ServiceConfig, kind ring.Kind, r ring.Restart) ring.Restart {
	if c.Deploy == nil || c.Deploy.RestartPolicy == nil {
		return r
	}
	p := c.Deploy.RestartPolicy
	if kind != ring.Worker {
		for _, key := range []string{"delay", "window"} {
			if b.says("services", c.Name, "deploy", "restart_policy", key) {
				b.note("%s: deploy.restart_policy.%s is not used: what runs to its end is not restarted", c.Name, key)
			}
		}
		return r
	}
	if p.Delay != nil {
		r.Delay = b.pause(c.Name, "delay", *p.Delay)
		if r.Delay < leastDelay {
			r.Delay = leastDelay
			b.note("%s: deploy.restart_policy.delay is carried out as %s, the shortest", c.Name, leastDelay)
		}
	}
	if p.Window != nil {
		r.Window = b.pause(c.Name, "window", *p.Window)
		if r.Window > 0 && r.Window < leastWindow {
			r.Window = leastWindow
			b.note("%s: deploy.restart_policy.window is carried out as %s, the shortest", c.Name, leastWindow)
		}
	}
	return r
}

func (b *builderOf) pause(service, key string, d types.Duration) time.Duration {
	if d < 0 || time.Duration(d) > longest {
		b.bad(b.place("services", service, "deploy", "restart_policy", key), "write a duration such as 10s", "services.%s.deploy.restart_policy.%s is not a duration from 0s on", service, key)
		return 0
	}
	return time.Duration(d)
}

// secondSet notes where a second version cannot run beside the first.
func (b *builderOf) secondSet(app *ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		if s.Rollout.Strategy != ring.BlueGreen && s.Rollout.Strategy != ring.Canary || s.Kind != ring.Worker {
			continue
		}
		if why := app.Alone(s); why != "" {
			b.note("%s: strategy %s is carried out as recreate, because two instances cannot run at once: %s", s.Name, s.Rollout.Strategy, why)
		}
	}
}
