package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// service makes one service of what compose-go understood and of x-gitring.
func (b *builderOf) service(c types.ServiceConfig) ring.Service {
	x := b.extras[c.Name]
	at := b.declared(c.Name)
	s := ring.Service{Name: c.Name, File: at.file, Line: at.line, Share: x.share}
	s.Kind = b.kind(c, x)
	s.Before = x.before.text
	s.Replicas = b.replicas(c, s.Kind)
	s.Spec = b.spec(c)
	s.Updates = b.updates(c, x)
	b.onlyOne(c, s.Replicas)
	s.DependsOn = b.dependencies(c)
	s.Restart, s.Job = b.restart(c, s.Kind, x)
	s.Cron = b.cron(c, s.Kind, x)
	s.Restart = b.pauses(c, s.Kind, s.Restart)
	s.Checks = b.checks(c, s, x)
	s.Rollout = b.rollout(c, s.Spec.Healthcheck, x)
	s.Reload = b.reload(c, &s, x)
	if b.settings.Swarm {
		b.onSwarm(c, &s)
	}
	s.Written = ring.WrittenHash(s.Spec)
	s.Composed = b.composed(c, &s)
	s.Places = b.places(c.Name)
	for _, m := range s.Spec.Mounts {
		if at, ok := b.hostFiles[c.Name+" "+m.Target]; ok {
			s.Places["volumes."+m.Target] = at
		}
	}
	return s
}

// declared is where the service is first named.
func (b *builderOf) declared(name string) place {
	for _, f := range b.files {
		if _, took, at := f.root.at([]string{"services", name}); took == 2 {
			return at
		}
	}
	return b.place("services", name)
}

func (b *builderOf) bad(at place, hint, says string, args ...any) {
	b.faults.add(ring.BadValue, at, hint, says, args...)
}

// kind is what x-gitring says, else what Compose implies.
func (b *builderOf) kind(c types.ServiceConfig, x *extras) ring.Kind {
	implied, why := b.impliedKind(c)
	if x.kind == "" {
		if why != "" {
			b.note("%s: a job, because %s", c.Name, why)
		}
		return implied
	}
	if implied == ring.JobK && x.kind == ring.Worker {
		if dependent := b.waitsForEnd(c.Name); dependent != "" {
			b.bad(x.kindAt, "make it a job, or let "+dependent+" wait for service_started or service_healthy",
				"services.%s is a worker, but %s waits for its end", c.Name, dependent)
		}
		b.note("%s: a worker by x-gitring kind, although %s", c.Name, why)
	}
	return x.kind
}

func (b *builderOf) impliedKind(c types.ServiceConfig) (kind ring.Kind, why string) {
	if policy, _ := b.restartWord(c); policy == types.RestartPolicyNo {
		return ring.JobK, "it says restart: no"
	}
	if dependent := b.waitsForEnd(c.Name); dependent != "" {
		return ring.JobK, dependent + " waits for it with service_completed_successfully"
	}
	return ring.Worker, ""
}

// waitsForEnd is a service that waits until name has completed.
func (b *builderOf) waitsForEnd(name string) string {
	for _, other := range sortedKeys(b.project.Services) {
		d, ok := b.project.Services[other].DependsOn[name]
		if ok && d.Condition == types.ServiceConditionCompletedSuccessfully {
			return other
		}
	}
	return ""
}

func (b *builderOf) replicas(c types.ServiceConfig, kind ring.Kind) int {
	n := c.GetScale()
	at := b.place("services", c.Name, "deploy", "replicas")
	if c.Scale != nil {
		at = b.place("services", c.Name, "scale")
	}
	if n < 0 || n > b.limits.Replicas {
		b.bad(at, fmt.Sprintf("write a number from 0 to %d", b.limits.Replicas), "services.%s cannot have %d replicas", c.Name, n)
		return 1
	}
	if kind.Ends() && n != 1 && !b.kindLost(c.Name) {
		b.faults.add(ring.Unsupported, at, "remove the replicas, or say x-gitring: {kind: worker}", "services.%s is a job and runs once, not as %d replicas", c.Name, n)
		return 1
	}
	return n
}

// onlyOne refuses for several instances what only one can have.
func (b *builderOf) onlyOne(c types.ServiceConfig, replicas int) {
	for _, other := range sortedKeys(b.project.Services) {
		if c.ContainerName != "" && other < c.Name && b.project.Services[other].ContainerName == c.ContainerName {
			b.bad(b.place("services", c.Name, "container_name"), "give each its own, or leave it out", "services.%s.container_name %s is that of %s too", c.Name, c.ContainerName, other)
		}
	}
	for key, says := range map[string]string{"container_name": c.ContainerName, "mac_address": c.MacAddress} {
		if says != "" && replicas > 1 {
			b.bad(b.place("services", c.Name, key), "remove it, or run one replica", "services.%s.%s %s cannot be that of %d replicas", c.Name, key, says, replicas)
		}
	}
}

// restartWord is the policy by Compose's rule: deploy wins over restart. The
// second is the most attempts of on-failure, 0 for no limit.
func (b *builderOf) restartWord(c types.ServiceConfig) (policy string, attempts int) {
	if c.Deploy != nil && c.Deploy.RestartPolicy != nil && c.Deploy.RestartPolicy.Condition != "" {
		if m := c.Deploy.RestartPolicy.MaxAttempts; m != nil {
			attempts = int(min(*m, 1<<20))
		}
		switch cond := c.Deploy.RestartPolicy.Condition; cond {
		case "none", types.RestartPolicyNo: // as Compose, which takes the words of restart too
			return types.RestartPolicyNo, 0
		case "on-failure":
			return types.RestartPolicyOnFailure, attempts
		case "any", types.RestartPolicyAlways:
			return types.RestartPolicyAlways, 0
		case types.RestartPolicyUnlessStopped:
			return types.RestartPolicyUnlessStopped, 0
		default:
			b.bad(b.place("services", c.Name, "deploy", "restart_policy", "condition"), "write none, on-failure, any or unless-stopped",
				"services.%s.deploy.restart_policy.condition %q is none of none, on-failure, any, unless-stopped", c.Name, head(cond))
		}
	}
	policy, n, _ := strings.Cut(c.Restart, ":")
	attempts, _ = strconv.Atoi(n)
	return policy, attempts
}

func (b *builderOf) restart(c types.ServiceConfig, kind ring.Kind, x *extras) (ring.Restart, *ring.Job) {
	policy, attempts := b.restartWord(c)
	switch kind {
	case ring.JobK:
		return ring.Restart{Policy: ring.NeverStop, Engine: "no"}, b.job(c, x, policy, attempts)
	case ring.CronK:
		return ring.Restart{Policy: ring.NeverStop, Engine: "no"}, nil
	}
	if d := c.Deploy; d != nil && d.RestartPolicy != nil && d.RestartPolicy.Condition == "" && policy != "" && policy != types.RestartPolicyNo {
		b.note("%s: deploy.restart_policy has no condition, so restart: %s counts; Compose would never restart it", c.Name, c.Restart)
	}
	if x.job.place.line > 0 && !b.kindLost(c.Name) {
		b.bad(x.job.place, "say kind: job beside it, or remove it", "services.%s is neither a job nor a cron job, but x-gitring has job:", c.Name)
	}
	switch policy {
	case types.RestartPolicyOnFailure:
		return ring.Restart{Policy: ring.OnFail, Engine: policy, MaxRetries: attempts}, nil
	case types.RestartPolicyNo:
		return ring.Restart{Policy: ring.NeverStop, Engine: policy}, nil
	case types.RestartPolicyUnlessStopped:
		return ring.Restart{Policy: ring.Always, Engine: policy}, nil
	}
	return ring.Restart{Policy: ring.Always, Engine: types.RestartPolicyAlways}, nil
}

func (b *builderOf) job(c types.ServiceConfig, x *extras, policy string, attempts int) *ring.Job {
	j := ring.Job{Run: or2(x.job.run, "on_change"), Timeout: x.job.timeout, Rerun: x.job.rerun, Replace: x.job.replace}
	switch {
	case x.job.retries != nil:
		j.Retries = *x.job.retries
	case policy == types.RestartPolicyOnFailure && attempts > 0:
		j.Retries = attempts
		b.note("%s: restart on-failure:%d is carried out as %d retries of the job", c.Name, attempts, attempts)
	case policy != "" && policy != types.RestartPolicyNo:
		b.note("%s: restart %s is not used, a job runs once", c.Name, policy)
	}
	return &j
}

func (b *builderOf) dependencies(c types.ServiceConfig) []ring.Dependency {
	var out []ring.Dependency
	for _, name := range sortedKeys(c.DependsOn) {
		d := c.DependsOn[name]
		if _, here := b.project.Services[name]; !here {
			continue // required: false, and off by its profile
		}
		to := ring.Dependency{Service: name, Until: ring.Started, Optional: !d.Required}
		switch d.Condition {
		case types.ServiceConditionHealthy:
			to.Until = ring.ReadyDep
		case types.ServiceConditionCompletedSuccessfully:
			to.Until = ring.Completed
		}
		out = append(out, to)
	}
	return out
}

// spec is what an instance runs.
func (b *builderOf) spec(c types.ServiceConfig) ring.Spec {
	s := ring.Spec{
		Image: c.Image, PullPolicy: pullWord(c.PullPolicy), Platform: strings.ToLower(c.Platform),
		Entrypoint: b.entrypoint(c), Command: b.command(c),
		User: c.User, WorkingDir: c.WorkingDir, Hostname: c.Hostname, Labels: b.labels(c),
		Ports: b.ports(c), Expose: b.exposed(c), Mounts: b.mounts(c),
		Healthcheck: b.healthcheck(c), StopSignal: c.StopSignal,
		ExtraHosts: extraHosts(c), Init: c.Init, Logging: b.logging(c),
		ContainerName: c.ContainerName, Domainname: c.DomainName, MacAddress: c.MacAddress, Annotations: b.annotations(c),
		Tty: c.Tty, StdinOpen: c.StdinOpen, ReadOnly: c.ReadOnly, GroupAdd: sortedSet(c.GroupAdd),
		DNS: filled(c.DNS), DNSSearch: filled(c.DNSSearch), DNSOptions: filled(c.DNSOpts),
		Ulimits: ulimits(c), ShmSize: int64(c.ShmSize), Resources: b.resources(c), Follows: b.follows(c),
		PostStart: b.hooks(c.Name, "post_start", c.PostStart), PreStop: b.hooks(c.Name, "pre_stop", c.PreStop),
	}
	s.Environment, s.Unset = b.environment(c)
	s.CommandText, s.EntrypointText = b.textToSplit(c.Name, "command"), b.textToSplit(c.Name, "entrypoint")
	s.CgroupMode, s.UTSMode, s.UsernsMode = c.Cgroup, c.Uts, c.UserNSMode
	b.security(c, &s)
	b.joins(c, &s)
	if len(c.StorageOpt) > 0 {
		s.StorageOpt = c.StorageOpt
	}
	if c.StopGracePeriod != nil {
		s.StopGrace = time.Duration(*c.StopGracePeriod)
	}
	if c.Attach != nil {
		b.note("%s: attach is for docker compose up in a terminal, and means nothing here", c.Name)
	}
	return s
}

// filled is nil for none, so that saying so changes no version.
func filled(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	return words
}

// cleared is an entrypoint that is not the image's and is none: the engine takes
// an empty list so, and runs the command, or the image's, by itself.
var cleared = []string{""}

func (b *builderOf) entrypoint(c types.ServiceConfig) []string {
	if c.Entrypoint != nil && len(c.Entrypoint) == 0 {
		return slices.Clone(cleared)
	}
	return c.Entrypoint
}

// command: an engine has no word for "not the image's command, and none". Where
// there is an entrypoint the image's command is left out anyway.
func (b *builderOf) command(c types.ServiceConfig) []string {
	if c.Command == nil || len(c.Command) > 0 {
		return c.Command
	}
	switch {
	case len(c.Entrypoint) > 0 || b.anyLost(c.Name, []string{"command"}, []string{"entrypoint"}):
	case c.Entrypoint == nil:
		b.note("%s: command is empty, and the engine runs the image's all the same, as under Compose", c.Name)
	default:
		b.faults.add(ring.Unsupported, b.place("services", c.Name, "command"), "write what to run, or remove both",
			"services.%s: command and entrypoint are empty, which would clear the image's; the engine runs its command all the same", c.Name)
	}
	return nil
}

func (b *builderOf) annotations(c types.ServiceConfig) map[string]string {
	if len(c.Annotations) == 0 {
		return nil
	}
	b.note("%s: annotations need Docker 24 (API 1.43); an older engine drops them", c.Name)
	return c.Annotations
}

// follows are the services whose replacement this one asks to follow. What
// compose-go adds of itself for links and shared namespaces is not asked.
func (b *builderOf) follows(c types.ServiceConfig) []string {
	var out []string
	for _, name := range sortedKeys(c.DependsOn) {
		_, here := b.project.Services[name]
		if here && c.DependsOn[name].Restart && b.says("services", c.Name, "depends_on", name) {
			out = append(out, name)
		}
	}
	return out
}

// logOptions are those of the drivers that write on this host. The engine
// refuses others when the container is created; those of other drivers only it knows.
var (
	logDrivers = []string{"", "local", "json-file", "journald", "none"}
	logOptions = []string{
		"max-size", "max-file", "compress", "labels", "labels-regex", "env", "env-regex", "tag", "mode", "max-buffer-size",
		"cache-disabled", "cache-max-size", "cache-max-file", "cache-compress",
	}
)

func (b *builderOf) logging(c types.ServiceConfig) *ring.Logging {
	if c.Logging == nil || c.Logging.Driver == "" && len(c.Logging.Options) == 0 {
		return nil
	}
	out := &ring.Logging{Driver: c.Logging.Driver}
	for _, key := range sortedKeys(c.Logging.Options) {
		if contains(logDrivers, out.Driver) && !contains(logOptions, key) && !b.lost("services", c.Name, "logging", "driver") {
			b.faults.add(ring.UnknownKey, b.place("services", c.Name, "logging", "options", key), didYouMean(key, slices.Clone(logOptions)),
				"unknown key services.%s.logging.options.%s", c.Name, head(key))
		}
	}
	if len(c.Logging.Options) > 0 {
		out.Options = c.Logging.Options
	}
	return out
}

// pullWord is "" for Compose's default, so that saying it changes no version, and for what
// goes by the clock, which is the service's and not its instances'.
func pullWord(p string) string {
	if _, clock := everyOf(p); clock || p == pullRefresh || p == types.PullPolicyMissing || p == types.PullPolicyIfNotPresent {
		return ""
	}
	return p
}

// environment is env_file, later files winning, with environment on top. A name
// without a value takes the variable of that name. Where there is none it is unset, as
// in Compose: neither env_file nor the image sets it.
func (b *builderOf) environment(c types.ServiceConfig) (set map[string]string, unset []string) {
	set = b.envFiles(c)
	for _, name := range sortedKeys(c.Environment) {
		if value := c.Environment[name]; value != nil {
			set[name] = *value
			continue
		}
		delete(set, name)
		unset = append(unset, name)
		b.note("%s: %s", c.Name, leftOut(name, "environment"))
	}
	if len(set) == 0 {
		set = nil
	}
	return set, unset
}

// leftOut is the note on a name without a value.
func leftOut(name, where string) string {
	return fmt.Sprintf("%s in %s has no value and no variable has that name: it is left out, as by Compose", head(name), where)
}

func extraHosts(c types.ServiceConfig) []string {
	return sortedSet(c.ExtraHosts.AsList(":"))
}

// healthcheck is the engine's check as Compose writes it; nil without one.
func (b *builderOf) healthcheck(c types.ServiceConfig) *ring.Healthcheck {
	h := c.HealthCheck
	if h == nil {
		return nil
	}
	if h.Disable || len(h.Test) > 0 && h.Test[0] == "NONE" {
		return &ring.Healthcheck{Test: []string{"NONE"}}
	}
	at := func(key string) place { return b.place("services", c.Name, "healthcheck", key) }
	if len(h.Test) == 1 && !b.lost("services", c.Name, "healthcheck", "test") {
		b.bad(at("test"), "write the command behind "+h.Test[0], "services.%s.healthcheck.test runs nothing", c.Name)
	}
	out := &ring.Healthcheck{Test: h.Test}
	set := func(to *time.Duration, from *types.Duration, key string) {
		if from == nil {
			return
		}
		if *to = time.Duration(*from); *to != 0 && (*to < time.Millisecond || *to > longest) {
			b.bad(at(key), "write a duration such as 5s", "services.%s.healthcheck.%s is not a duration from 1ms on", c.Name, key)
		}
	}
	set(&out.Interval, h.Interval, "interval")
	set(&out.Timeout, h.Timeout, "timeout")
	set(&out.StartPeriod, h.StartPeriod, "start_period")
	set(&out.StartInterval, h.StartInterval, "start_interval")
	if out.StartInterval != 0 {
		b.note("%s: healthcheck.start_interval needs Docker 25 (API 1.44); an older engine uses interval from the start", c.Name)
	}
	if h.Retries != nil {
		if *h.Retries > 10_000 {
			b.bad(at("retries"), "write a small number", "services.%s.healthcheck.retries is too large", c.Name)
		}
		out.Retries = int(min(*h.Retries, 10_000))
	}
	return out
}
