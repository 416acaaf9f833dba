package manifest

import (
	"math"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// rolloutWords are the knobs that x-gitring rollout sets.
type rolloutWords struct {
	place            place
	strategy         *string
	maxSurge         *ring.Count
	maxUnavailable   *ring.Count
	maxParallel      *int
	minReadyTime     *time.Duration
	startTimeout     *time.Duration
	progressDeadline *time.Duration
	pullTimeout      *time.Duration
	failureThreshold *int
	onFailure        *string
	drainDelay       *time.Duration
	bake             *time.Duration
	warmFor          *time.Duration
	canary           canaryWords
}

var rolloutKeys = []string{"strategy", "max_surge", "max_unavailable", "max_parallel", "min_ready_time", "start_timeout", "progress_deadline", "pull_timeout", "failure_threshold", "on_failure", "drain_delay", "bake", "warm_for", "steps", "canary_replicas", "match", "judge"}

func (d *decoder) rollout(n *node, w *rolloutWords) {
	w.place = n.place
	d.keys(n, "rollout", rolloutKeys)
	d.setWord(n, "strategy", &w.strategy, ring.Rolling, ring.Recreate, ring.BlueGreen, ring.Canary)
	d.setWord(n, "on_failure", &w.onFailure, ring.OnFailureRestore, ring.OnFailurePause, ring.OnFailureContinue)
	d.canary(n, &w.canary)
	d.setCount(n, "max_surge", &w.maxSurge)
	d.setCount(n, "max_unavailable", &w.maxUnavailable)
	d.setNumber(n, "max_parallel", &w.maxParallel)
	d.setNumber(n, "failure_threshold", &w.failureThreshold)
	d.setDuration(n, "min_ready_time", &w.minReadyTime, 0)
	d.setDuration(n, "start_timeout", &w.startTimeout, time.Millisecond)
	d.setDuration(n, "progress_deadline", &w.progressDeadline, time.Millisecond)
	d.setDuration(n, "pull_timeout", &w.pullTimeout, time.Millisecond)
	d.setDuration(n, "drain_delay", &w.drainDelay, 0)
	d.setDuration(n, "bake", &w.bake, 0)
	d.setDuration(n, "warm_for", &w.warmFor, 0)
}

func (d *decoder) setCount(n *node, key string, to **ring.Count) {
	if v := n.get(key); !v.null() {
		c := d.count(v, key)
		*to = &c
	}
}

func (d *decoder) setNumber(n *node, key string, to **int) {
	if v := n.get(key); !v.null() {
		c := d.number(v, key, 1, 1000)
		*to = &c
	}
}

func (d *decoder) setDuration(n *node, key string, to **time.Duration, least time.Duration) {
	if v := n.get(key); !v.null() {
		t := d.duration(v, key, least)
		*to = &t
	}
}

// rollout starts from ring's defaults, lets Compose's update_config
// speak, and then x-gitring, which wins.
func (b *builderOf) rollout(c types.ServiceConfig, h *ring.Healthcheck, x *extras) ring.Rollout {
	r := ring.DefaultRollout()
	if c.Deploy != nil && c.Deploy.UpdateConfig != nil {
		b.updateConfig(c, &r)
	}
	w := x.rollout
	b.wins(c.Name, w)
	set(&r.Strategy, w.strategy)
	set(&r.MaxSurge, w.maxSurge)
	set(&r.MaxUnavailable, w.maxUnavailable)
	set(&r.MaxParallel, w.maxParallel)
	set(&r.MinReadyTime, w.minReadyTime)
	set(&r.StartTimeout, w.startTimeout)
	set(&r.ProgressDeadline, w.progressDeadline)
	set(&r.PullTimeout, w.pullTimeout)
	set(&r.FailureThreshold, w.failureThreshold)
	set(&r.OnFailure, w.onFailure)
	set(&r.DrainDelay, w.drainDelay)
	set(&r.Bake, w.bake)
	set(&r.WarmFor, w.warmFor)
	b.second(c.Name, w, r)
	r.Canary = b.canary(c.Name, w, r)
	if r.Strategy != ring.BlueGreen && r.MaxSurge.N == 0 && r.MaxUnavailable.N == 0 && !b.anyLost(c.Name, []string{extensionKey, "rollout"}, []string{"deploy", "update_config"}) {
		at := w.place
		if at.line == 0 {
			at = b.place("services", c.Name, "deploy", "update_config")
		}
		b.bad(at, "let one of them be 1 or more", "services.%s max_surge and max_unavailable are both 0: no rollout could move", c.Name)
	}
	b.startTimeout(c.Name, h, &r)
	r.Back = b.back(c, r)
	return r
}

// second holds the knobs of a second set to the strategy that has one.
func (b *builderOf) second(service string, w rolloutWords, r ring.Rollout) {
	if w.warmFor != nil && r.Strategy != ring.BlueGreen && !b.anyLost(service, []string{extensionKey, "rollout", "strategy"}) {
		b.bad(w.place, "say strategy: blue_green beside it, or remove it", "services.%s rollout.warm_for is for an old set that is kept, and strategy %s keeps none", service, r.Strategy)
	}
	if r.Strategy == ring.BlueGreen && (w.maxSurge != nil || w.maxUnavailable != nil) {
		b.note("%s: max_surge and max_unavailable are not used: blue_green runs a full second set beside the first", service)
	}
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// updateConfig maps Compose's words onto the knobs.
func (b *builderOf) updateConfig(c types.ServiceConfig, r *ring.Rollout) {
	u := c.Deploy.UpdateConfig
	r.MaxSurge, r.MaxUnavailable, r.MaxParallel = pace(c, u, r.MaxParallel)
	if b.says("services", c.Name, "deploy", "update_config", "monitor") {
		r.MinReadyTime = b.positive(c.Name, "update_config", "monitor", u.Monitor)
	}
	if delay := b.positive(c.Name, "update_config", "delay", u.Delay); delay > r.MinReadyTime {
		r.MinReadyTime = delay
		b.note("%s: deploy.update_config.delay %s is carried out as min_ready_time", c.Name, delay)
	}
	b.failureWords(c, u, r)
}

func (b *builderOf) positive(service, of, key string, d types.Duration) time.Duration {
	if d < 0 || time.Duration(d) > longest {
		b.bad(b.place("services", service, "deploy", of, key), "write a duration such as 10s", "services.%s.deploy.%s.%s is not a duration from 0s on", service, of, key)
		return 0
	}
	return time.Duration(d)
}

func (b *builderOf) failureWords(c types.ServiceConfig, u *types.UpdateConfig, r *ring.Rollout) {
	at := func(key string) place { return b.place("services", c.Name, "deploy", "update_config", key) }
	switch u.FailureAction {
	case "":
	case "rollback":
		r.OnFailure = ring.OnFailureRestore
	case "pause", "continue":
		r.OnFailure = u.FailureAction
	default:
		b.bad(at("failure_action"), "write rollback, pause or continue", "services.%s.deploy.update_config.failure_action %q is unknown", c.Name, head(u.FailureAction))
	}
	if !b.says("services", c.Name, "deploy", "update_config", "max_failure_ratio") {
		return
	}
	ratio := float64(u.MaxFailureRatio)
	if !(ratio >= 0 && ratio <= 1) {
		b.bad(at("max_failure_ratio"), "write a number from 0 to 1", "services.%s.deploy.update_config.max_failure_ratio is not from 0 to 1", c.Name)
		return
	}
	// the ratio may be reached, not passed
	r.FailureThreshold = int(math.Floor(ratio*float64(max(1, c.GetScale()))+1e-6)) + 1
}

// wins notes where x-gitring and Compose both speak.
func (b *builderOf) wins(service string, w rolloutWords) {
	for _, both := range []struct {
		said    bool
		ours    string
		compose []string
	}{
		{w.maxSurge != nil, "max_surge", []string{"order", "parallelism"}},
		{w.maxUnavailable != nil, "max_unavailable", []string{"order", "parallelism"}},
		{w.maxParallel != nil, "max_parallel", []string{"parallelism"}},
		{w.minReadyTime != nil, "min_ready_time", []string{"monitor", "delay"}},
		{w.onFailure != nil, "on_failure", []string{"failure_action"}},
		{w.failureThreshold != nil, "failure_threshold", []string{"max_failure_ratio"}},
	} {
		for _, key := range both.compose {
			if both.said && b.says("services", service, "deploy", "update_config", key) {
				b.note("%s: x-gitring rollout.%s wins over deploy.update_config.%s", service, both.ours, key)
			}
		}
	}
}

// Defaults of the engine's health check.
const (
	engineInterval = 30 * time.Second
	engineRetries  = 3
)

// startTimeout leaves the health check the time it may take by its own words.
func (b *builderOf) startTimeout(service string, h *ring.Healthcheck, r *ring.Rollout) {
	if h == nil || h.Disabled() {
		return
	}
	interval, retries := h.Interval, h.Retries
	if interval == 0 {
		interval = engineInterval
	}
	if retries == 0 {
		retries = engineRetries
	}
	if least := h.StartPeriod + interval*time.Duration(retries); r.StartTimeout < least {
		r.StartTimeout = least
		b.note("%s: start_timeout is %s, what its healthcheck may take", service, least)
	}
}

// dockerCheck is the name of the check that Compose's healthcheck makes.
const dockerCheck = "healthcheck"

// engineCheck is the engine's own verdict, of which it has counted the retries itself.
func engineCheck() ring.Check {
	return ring.Check{
		Name: dockerCheck, For: ring.Readiness, Docker: true,
		Interval: checkInterval, Timeout: checkTimeout, Failures: 1, Successes: 1,
	}
}

// checks are those of x-gitring, after the one that Compose's healthcheck is.
func (b *builderOf) checks(c types.ServiceConfig, s ring.Service, x *extras) []ring.Check {
	if s.Kind.Ends() && b.kindLost(c.Name) {
		return nil
	}
	if s.Kind.Ends() {
		for _, check := range x.checks {
			b.bad(x.places[check.Name], "remove the checks: a job is judged by its exit code", "services.%s is a job, but has check %s", c.Name, check.Name)
		}
		return nil
	}
	var out []ring.Check
	if h := s.Spec.Healthcheck; h != nil && !h.Disabled() && len(h.Test) > 0 { // without a test it is the image's, if there is one
		out = append(out, engineCheck())
	}
	for _, check := range x.checks {
		at := x.places[check.Name]
		if check.For == ring.OfCanary && !b.isCanary(x) && !b.anyLost(c.Name, []string{extensionKey, "rollout"}) {
			b.bad(at, "say rollout: {strategy: canary}, or let it be for: readiness", "services.%s check %s is for a canary, and its rollouts have none", c.Name, check.Name)
		}
		if s.Spec.NoNetwork && (check.HTTP != nil || check.TCP != nil || check.GRPC != nil) {
			b.bad(at, "use an exec check", "services.%s has no network, which check %s needs", c.Name, check.Name)
		}
		if owner := networkOwner(&s.Spec); owner != "" && (check.HTTP != nil || check.TCP != nil || check.GRPC != nil) {
			b.bad(at, "use an exec check, or move it to "+owner, "services.%s has no address of its own for check %s: its network is that of %s", c.Name, check.Name, owner)
		}
		if check.Docker && s.Spec.Healthcheck.Disabled() {
			b.bad(at, "remove the check, or enable the healthcheck", "services.%s check %s asks for the engine's healthcheck, which is disabled", c.Name, check.Name)
		}
	}
	return append(out, x.checks...)
}
