package runtime

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// Labels of services, configs and secrets of a swarm, besides those of labels.go.
const (
	labelSettings = "gitring.settings" // of what changes in place
	labelSent     = "gitring.sent"     // the hash of the spec that was sent
	labelContent  = "gitring.content"  // of a config or secret
	labelFailed   = "gitring.failed"   // the wanted version, where it failed and this one is back
	labelGood     = "gitring.good"     // the version that was good last, where this is another one
	stackName     = "com.docker.stack.namespace"
)

// swarmFile is one file that tasks of a service are given as a config or secret.
type swarmFile struct {
	Secret  bool
	Content string // hash of the content that it is of
	Path    string // in the content
	Target  string // in the container
	Exec    bool
	As      *ring.FileOwner
}

// longestName is the longest that Swarm takes for a config or secret.
const longestName = 64

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

// name of a file on the swarm: <app>_<name>_<8 digits>. Those of a secret are of a hash with a
// key in it, for a plain one would let anybody try values: in the content of a secret each
// value stands as its keyed hash.
func (f swarmFile) name(app string) string {
	sum := sha256.Sum256([]byte(f.Content + "\x00" + f.Path))
	digits := hex.EncodeToString(sum[:4])
	base := strings.Trim(notInName.ReplaceAllString(path.Base(f.Target), "-"), "-_.")
	room := longestName - len(app) - len(digits) - 2
	if len(base) > room {
		base = strings.TrimRight(base[:max(0, room)], "-_.")
	}
	if base == "" {
		return app[:min(len(app), longestName-len(digits)-1)] + "_" + digits
	}
	return app + "_" + base + "_" + digits
}

func (f swarmFile) mode() fs.FileMode {
	switch {
	case f.As != nil:
		return fs.FileMode(f.As.Mode)
	case f.Exec:
		return 0o555
	}
	return 0o444
}

// owner is whose the file is, in Swarm's form.
func (f swarmFile) owner() (uid, gid string) {
	if f.As == nil {
		return "0", "0"
	}
	return strconv.Itoa(f.As.UID), strconv.Itoa(f.As.GID)
}

// fileLabels are those of a config or secret.
func fileLabels(cluster, app, content string) map[string]string {
	return map[string]string{labelHost: cluster, labelApp: app, labelContent: content, stackName: app}
}

// configSpec is what making a config sends.
func configSpec(cluster, app string, f swarmFile, data []byte) swarm.ConfigSpec {
	return swarm.ConfigSpec{Annotations: swarm.Annotations{Name: f.name(app), Labels: fileLabels(cluster, app, f.Content)}, Data: data}
}

// secretSpec is what making a secret sends.
func secretSpec(cluster, app string, f swarmFile, data []byte) swarm.SecretSpec {
	return swarm.SecretSpec{Annotations: swarm.Annotations{Name: f.name(app), Labels: fileLabels(cluster, app, f.Content)}, Data: data}
}

// swarmServiceName is what a service is called on the swarm.
func swarmServiceName(app, service string) string { return app + "_" + service }

// serviceSpec builds what making or changing the service of an action sends, without the IDs of
// configs, secrets and networks, which stand by their names. It is a function of its arguments.
// What Swarm cannot carry was refused before: see NotBySwarm.
func serviceSpec(cluster string, a ring.Action, files []swarmFile) (swarm.ServiceSpec, error) {
	if a.Of == nil || a.Want == nil {
		return swarm.ServiceSpec{}, fmt.Errorf("the action names no service")
	}
	if a.Version == "" {
		a.Version = a.Want.Version
	}
	s := &a.Want.Spec
	c := s.Cluster
	if c == nil {
		return swarm.ServiceSpec{}, fmt.Errorf("service %s was not read for a cluster", a.Service)
	}
	task, err := taskSpec(cluster, a, files)
	if err != nil {
		return swarm.ServiceSpec{}, err
	}
	if a.Want.Kind.Ends() {
		return jobSpec(cluster, a, task), nil
	}
	alone := a.Of.Alone(a.Want) != ""
	spec := swarm.ServiceSpec{
		Annotations:  swarm.Annotations{Name: swarmServiceName(a.App, a.Service), Labels: serviceLabels(cluster, a, alone)},
		TaskTemplate: task,
		UpdateConfig: updateConfig(a.Want, alone),
		EndpointSpec: &swarm.EndpointSpec{Mode: swarm.ResolutionMode(cmp.Or(c.Endpoint, string(swarm.ResolutionModeVIP))), Ports: swarmPorts(s.Ports)},
	}
	if c.Global {
		spec.Mode.Global = &swarm.GlobalService{}
	} else {
		n := uint64(max(0, a.Want.Replicas)) //nolint:gosec // not negative
		spec.Mode.Replicated = &swarm.ReplicatedService{Replicas: &n}
	}
	spec.Labels[labelSent] = sentHash(&spec, nil)
	return spec, nil
}

// serviceLabels are of the service itself: its containers have others.
func serviceLabels(cluster string, a ring.Action, alone bool) map[string]string {
	l := own(a.Want.Spec.Cluster.Labels)
	maps.Copy(l, map[string]string{
		labelHost: cluster, labelSource: a.Of.Source, labelApp: a.App, labelService: a.Service,
		labelVersion: string(a.Version), labelCommit: string(a.Commit), labelKind: string(a.Want.Kind),
		labelSettings:  ring.ClusterSettings(a.Want, alone),
		stackName:      a.App,
		composeProject: a.App, composeService: a.Service,
	})
	if a.Condemned != "" {
		l[labelFailed] = string(a.Condemned)
	}
	if a.Good != "" {
		l[labelGood] = string(a.Good)
	}
	return l
}

// taskLabels are of the containers. They say nothing that changes while the version stays: each
// other label would have every task made anew.
func taskLabels(cluster string, a ring.Action) map[string]string {
	l := own(a.Want.Spec.Labels)
	maps.Copy(l, map[string]string{
		labelHost: cluster, labelApp: a.App, labelService: a.Service, labelVersion: string(a.Version), labelKind: string(a.Want.Kind),
		stackName: a.App, composeProject: a.App, composeService: a.Service,
	})
	return l
}

func taskSpec(cluster string, a ring.Action, files []swarmFile) (swarm.TaskSpec, error) {
	s := &a.Want.Spec
	c, err := swarmContainer(cluster, a, files)
	if err != nil {
		return swarm.TaskSpec{}, err
	}
	t := swarm.TaskSpec{
		ContainerSpec: c,
		Resources:     swarmResources(s),
		RestartPolicy: restartPolicy(s.Cluster.Restart),
		Placement:     placement(s),
		Runtime:       swarm.RuntimeContainer,
	}
	if s.Logging != nil {
		t.LogDriver = &swarm.Driver{Name: s.Logging.Driver, Options: maps.Clone(s.Logging.Options)}
	}
	for _, at := range s.Networks {
		name := a.Networks[at.Network]
		if name == "" {
			return swarm.TaskSpec{}, fmt.Errorf("network %q of service %s has no name on the engine", at.Network, a.Service)
		}
		t.Networks = append(t.Networks, swarm.NetworkAttachmentConfig{
			Target: name, Aliases: append([]string{a.Service}, at.Aliases...), DriverOpts: maps.Clone(at.DriverOpts),
		})
	}
	return t, nil
}

func swarmContainer(cluster string, a ring.Action, files []swarmFile) (*swarm.ContainerSpec, error) {
	s := &a.Want.Spec
	c := &swarm.ContainerSpec{
		Image:      a.Want.Pin.Image,
		Labels:     taskLabels(cluster, a),
		Command:    entrypoint(*s),
		Args:       slices.Clone(s.Command),
		Hostname:   s.Hostname,
		Env:        environment(s.Environment, s.Unset),
		Dir:        s.WorkingDir,
		User:       s.User,
		Groups:     slices.Clone(s.GroupAdd),
		Init:       s.Init,
		StopSignal: s.StopSignal,
		TTY:        s.Tty,
		OpenStdin:  s.StdinOpen,
		ReadOnly:   s.ReadOnly,
		Hosts:      swarmHosts(s.ExtraHosts),
		Isolation:  container.IsolationDefault,
		Sysctls:    maps.Clone(s.Sysctls),
	}
	grace := cmp.Or(s.StopGrace, ring.DefaultStopGrace)
	c.StopGracePeriod = &grace
	c.Healthcheck = nodeCheck(s, a.Want.Image.Healthcheck)
	if len(s.DNS)+len(s.DNSSearch)+len(s.DNSOptions) > 0 {
		c.DNSConfig = &swarm.DNSConfig{Nameservers: slices.Clone(s.DNS), Search: slices.Clone(s.DNSSearch), Options: slices.Clone(s.DNSOptions)}
	}
	c.CapabilityAdd, c.CapabilityDrop = swarmCapabilities(s.CapAdd), swarmCapabilities(s.CapDrop)
	for _, u := range s.Ulimits {
		c.Ulimits = append(c.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, m := range a.Of.Mounts(a.Want) {
		if m.Kind == ring.MountContent {
			continue // its files come below
		}
		at, err := swarmMount(cluster, a, m)
		if err != nil {
			return nil, err
		}
		c.Mounts = append(c.Mounts, at)
	}
	for _, f := range files {
		name := f.name(a.App)
		uid, gid := f.owner()
		if f.Secret {
			c.Secrets = append(c.Secrets, &swarm.SecretReference{SecretName: name, File: &swarm.SecretReferenceFileTarget{Name: f.Target, UID: uid, GID: gid, Mode: f.mode()}})
			continue
		}
		c.Configs = append(c.Configs, &swarm.ConfigReference{ConfigName: name, File: &swarm.ConfigReferenceFileTarget{Name: f.Target, UID: uid, GID: gid, Mode: f.mode()}})
	}
	return c, nil
}

func swarmMount(cluster string, a ring.Action, m ring.Mount) (mount.Mount, error) {
	at := mount.Mount{Target: m.Target, ReadOnly: m.ReadOnly}
	switch m.Kind {
	case ring.MountVolume:
		one := a
		one.Slot = 1 // what writes to a volume of a node runs once
		v := volumeOf(cluster, one, m.Source)
		at.Type, at.Source = mount.TypeVolume, v.Name
		if o := (mount.VolumeOptions{NoCopy: m.NoCopy, Subpath: m.Subpath}); v.External {
			if o.NoCopy || o.Subpath != "" {
				at.VolumeOptions = &o
			}
		} else {
			o.Labels = swarmVolumeLabels(v.Create.Labels)
			if v.Create.Driver != "" || len(v.Create.DriverOpts) > 0 {
				o.DriverConfig = &mount.Driver{Name: cmp.Or(v.Create.Driver, "local"), Options: maps.Clone(v.Create.DriverOpts)}
			}
			at.VolumeOptions = &o
		}
	case ring.MountBind:
		at.Type, at.Source = mount.TypeBind, m.Source
		if m.Propagation != "" {
			at.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(m.Propagation)}
		}
	case ring.MountTmpfs:
		at.Type = mount.TypeTmpfs
		if m.Size != 0 || m.Mode != 0 {
			at.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.Size, Mode: fs.FileMode(m.Mode)}
		}
	default:
		return mount.Mount{}, fmt.Errorf("mount at %s is of kind %q, which no node has", m.Target, m.Kind)
	}
	return at, nil
}

// judgedFirst is how much longer than its patience a node lets a container be whose check has not
// passed yet: gitring says first that it failed.
const judgedFirst = 15 * time.Second

// nodeCheck is the check that each node asks; nil for none. No node may end a container that was never
// healthy while gitring waits for it: one that then ends with status 0 passes for running for a moment, and
// Swarm ends the good one of its slot. The start period counts only until a check passed once.
func nodeCheck(s *ring.Spec, image *ring.Healthcheck) *container.HealthConfig {
	said := s.Healthcheck
	is := cmp.Or(said, image)
	if is == nil {
		return nil
	}
	h := &container.HealthConfig{}
	if said != nil { // else the node takes that of the image
		h.Test, h.Interval, h.Timeout, h.Retries, h.StartPeriod = slices.Clone(said.Test), said.Interval, said.Timeout, said.Retries, said.StartPeriod
	}
	if patience := s.Cluster.Patience; patience > 0 && !is.Disabled() {
		if h.StartPeriod == 0 && image != nil {
			h.StartPeriod = image.StartPeriod
		}
		h.StartPeriod = max(h.StartPeriod, patience) + judgedFirst
	}
	return h
}

// swarmVolumeLabels are those of a volume without what changes while the version of its service
// stays: they are a part of each task.
func swarmVolumeLabels(all map[string]string) map[string]string {
	l := maps.Clone(all)
	for _, key := range []string{labelSource, composeWorkingDir, composeFiles} {
		delete(l, key)
	}
	return l
}

// swarmHosts are extra hosts in the form of a hosts file.
func swarmHosts(hosts []string) []string {
	var out []string
	for _, h := range hosts {
		name, ip, _ := strings.Cut(h, ":")
		out = append(out, strings.Trim(ip, "[]")+" "+name)
	}
	return out
}

func swarmCapabilities(names []string) []string {
	var out []string
	for _, n := range names {
		if n != "ALL" {
			n = "CAP_" + n
		}
		out = append(out, n)
	}
	return out
}

func swarmResources(s *ring.Spec) *swarm.ResourceRequirements {
	r := &swarm.ResourceRequirements{Limits: &swarm.Limit{}, Reservations: &swarm.Resources{NanoCPUs: s.Cluster.ReservedCPUs}}
	if b := s.Resources; b != nil {
		r.Limits.NanoCPUs, r.Limits.MemoryBytes = b.NanoCPUs, b.Memory
		r.Reservations.MemoryBytes = b.MemoryReservation
		if b.PidsLimit != nil {
			r.Limits.Pids = max(0, *b.PidsLimit) // 0 is no limit
		}
	}
	return r
}

// swarmDelay is Swarm's own wait between restarts.
const swarmDelay = 5 * time.Second

func restartPolicy(r ring.Restart) *swarm.RestartPolicy {
	p := &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionAny}
	attempts, window, delay := uint64(0), r.Window, cmp.Or(r.Delay, swarmDelay)
	switch r.Policy {
	case ring.OnFail:
		p.Condition = swarm.RestartPolicyConditionOnFailure
		attempts = uint64(max(0, r.MaxRetries)) //nolint:gosec // not negative
	case ring.NeverStop:
		p.Condition = swarm.RestartPolicyConditionNone
	}
	p.MaxAttempts, p.Window, p.Delay = &attempts, &window, &delay
	return p
}

func placement(s *ring.Spec) *swarm.Placement {
	p := &swarm.Placement{Constraints: slices.Clone(s.Cluster.Constraints), MaxReplicas: uint64(max(0, s.Cluster.PerNode))} //nolint:gosec // not negative
	for _, by := range s.Cluster.Spread {
		p.Preferences = append(p.Preferences, swarm.PlacementPreference{Spread: &swarm.SpreadOver{SpreadDescriptor: by}})
	}
	if s.Platform != "" {
		want := parsePlatform(s.Platform)
		p.Platforms = []swarm.Platform{{OS: want.os, Architecture: want.arch}}
	}
	return p
}

func swarmPorts(ports []ring.Port) []swarm.PortConfig {
	var out []swarm.PortConfig
	for _, p := range ports {
		published, _ := strconv.ParseUint(p.HostPort, 10, 16) // "" lets the swarm choose
		out = append(out, swarm.PortConfig{
			Protocol: swarm.PortConfigProtocol(cmp.Or(p.Protocol, "tcp")), TargetPort: uint32(p.Container), //nolint:gosec // a port
			PublishedPort: uint32(published), PublishMode: swarm.PortConfigPublishMode(cmp.Or(p.Mode, ring.PortIngress)),
		})
	}
	return out
}

// updateConfig is how the swarm goes from one spec to the next. It pauses where a task fails,
// and never goes back by itself: what came before was not always good.
func updateConfig(s *ring.Service, alone bool) *swarm.UpdateConfig {
	surge, unavailable := s.Rollout.Room(s.Replicas)
	u := &swarm.UpdateConfig{
		Order: swarm.UpdateOrderStartFirst, FailureAction: swarm.UpdateFailureActionPause,
		// One batch has been good for min_ready_time before the next one begins.
		Delay: s.Rollout.MinReadyTime, Monitor: max(s.Rollout.MinReadyTime, worstOf(s.Spec.Healthcheck, s.Image.Healthcheck)),
	}
	room := surge
	if alone || surge == 0 {
		u.Order, room = swarm.UpdateOrderStopFirst, unavailable
	}
	u.Parallelism = uint64(max(1, min(s.Rollout.MaxParallel, room))) //nolint:gosec // at least 1
	return u
}

// worstOf is how long a check may take until it says that a container is not healthy.
func worstOf(said, image *ring.Healthcheck) time.Duration {
	h := cmp.Or(said, image)
	if h == nil || h.Disabled() {
		return 0
	}
	once := cmp.Or(h.Interval, checkInterval) + cmp.Or(h.Timeout, checkTimeout)
	return h.StartPeriod + time.Duration(cmp.Or(h.Retries, 3))*once
}

// swarmNetwork is what making a network of an app sends.
func swarmNetwork(cluster, app string, n ring.Network) network.CreateOptions {
	o := networkPayload(cluster, app, n)
	o.Driver, o.Scope = cmp.Or(n.Driver, "overlay"), swarmScope
	o.Labels[stackName] = app
	return o
}

// sentHash is the short hash of a spec without what the engine puts into it: IDs of what stands
// there by its name, and the label that has the hash. named are the names of networks by ID.
func sentHash(spec *swarm.ServiceSpec, named map[string]string) string {
	text, err := json.Marshal(canonical(spec, named))
	if err != nil { // texts, numbers, lists and maps of those
		panic(fmt.Sprintf("cannot encode a spec: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// canonical is a spec in the one form that is compared.
func canonical(from *swarm.ServiceSpec, named map[string]string) swarm.ServiceSpec {
	spec := *from
	spec.Labels = maps.Clone(spec.Labels)
	delete(spec.Labels, labelSent)
	spec.TaskTemplate.ForceUpdate = 0 // how often, and not what
	spec.TaskTemplate.Networks = slices.Clone(spec.TaskTemplate.Networks)
	for i := range spec.TaskTemplate.Networks {
		n := &spec.TaskTemplate.Networks[i]
		n.Target = cmp.Or(named[n.Target], n.Target)
	}
	slices.SortStableFunc(spec.TaskTemplate.Networks, func(x, y swarm.NetworkAttachmentConfig) int { return cmp.Compare(x.Target, y.Target) })
	if from.TaskTemplate.ContainerSpec == nil {
		return spec
	}
	c := *from.TaskTemplate.ContainerSpec
	c.Secrets, c.Configs = slices.Clone(c.Secrets), slices.Clone(c.Configs)
	for i, r := range c.Secrets {
		c.Secrets[i] = &swarm.SecretReference{SecretName: r.SecretName, File: r.File}
	}
	for i, r := range c.Configs {
		c.Configs[i] = &swarm.ConfigReference{ConfigName: r.ConfigName, File: r.File, Runtime: r.Runtime}
	}
	spec.TaskTemplate.ContainerSpec = &c
	return spec
}

// addressOf reports whether an extra host has an address, which Swarm asks for.
func addressOf(host string) bool {
	_, ip, _ := strings.Cut(host, ":")
	_, err := netip.ParseAddr(strings.Trim(ip, "[]"))
	return err == nil
}
