package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/pkg/stdcopy"
)

// A Life is what becomes of a task once it is started.
type Life struct {
	Unhealthy bool // its check never passes
	Ends      bool // it ends by itself, with Code
	Code      int
	Log       string
}

// Swarm has the controls of a swarm in memory. It has what the stories of services need: replicated
// services and such with a task on each node, restarted whatever they end with, updates that pause, and
// replicated jobs. It refuses others.
type Swarm struct {
	*Fake
	m *Manager
}

// NewSwarm is an empty swarm of some nodes, all of them managers, the first of which is the engine
// that is spoken to. Its time begins now and goes on by Pass alone. lives says what becomes of tasks.
func NewSwarm(lives func(*swarm.ContainerSpec) Life, nodes ...string) *Swarm {
	m := &Manager{lives: lives}
	m.clock.Store(time.Now().UnixNano())
	f := New(func() time.Time { return time.Unix(0, m.clock.Load()) })
	m.Client = f.mem
	for _, name := range nodes {
		n := swarm.Node{ID: m.shortID("node"), ManagerStatus: &swarm.ManagerStatus{Leader: len(m.nodes) == 0}}
		n.Spec.Availability, n.Spec.Role = swarm.NodeAvailabilityActive, swarm.NodeRoleManager
		n.Description.Hostname, n.Status.State = name, swarm.NodeStateReady
		m.nodes = append(m.nodes, n)
	}
	return &Swarm{f, m}
}

// Client is the first manager as one who uses it sees it.
func (s *Swarm) Client() *Manager { return s.m }

// Now is the time of the swarm.
func (s *Swarm) Now() time.Time { return s.m.now() }

// Pass lets time pass, in which the swarm does what it has to do.
func (s *Swarm) Pass(d time.Duration) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for ; d > 0; d -= tick {
		s.m.clock.Add(int64(tick))
		if !s.m.leaderless {
			s.m.work()
		}
	}
}

// Drain has nothing run on a node any more, or has it take tasks again.
func (s *Swarm) Drain(node string, drained bool) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for i := range s.m.nodes {
		if n := &s.m.nodes[i]; n.Description.Hostname == node {
			n.Spec.Availability = swarm.NodeAvailabilityActive
			if drained {
				n.Spec.Availability = swarm.NodeAvailabilityDrain
			}
		}
	}
}

// LoseQuorum leaves too few managers to decide anything. What runs goes on.
func (s *Swarm) LoseQuorum() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.leaderless = true
}

// Manager is an engine that manages a swarm.
type Manager struct {
	*Client
	lives func(*swarm.ContainerSpec) Life
	clock atomic.Int64

	// All below is guarded by the mutex of Client.
	leaderless bool
	index      uint64
	nodes      []swarm.Node
	services   []*fakeService
	leaving    []*fakeTask // of services that are gone
	configs    []*swarm.Config
	secrets    []*swarm.Secret
}

type fakeService struct {
	swarm.Service
	tasks  []*fakeTask
	sent   bool // its spec was sent and not seen to yet
	update *fakeUpdate
}

// ask is one call to the managers. Its answer is a copy, as it is after the wire.
func ask[T any](ctx context.Context, m *Manager, op string, effect func() (T, error)) (T, error) {
	return call(ctx, m.Client, op, func() (T, error) {
		if m.leaderless {
			var none T
			return none, Refuse(cerrdefs.ErrUnknown, "rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are online. Make sure more than half of the managers are online.")
		}
		v, err := effect()
		return wired(v), err
	})
}

// wired is a copy as JSON brings it over.
func wired[T any](v T) (out T) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil { // texts, numbers, lists and maps of those
		panic(fmt.Sprintf("cannot copy %T: %v", v, err))
	}
	return out
}

func (m *Manager) shortID(kind string) string { return m.id(kind)[:25] }

// written is a new version of an object.
func (m *Manager) written(meta *swarm.Meta) {
	m.index++
	meta.Version.Index, meta.UpdatedAt = m.index, m.now()
	if meta.CreatedAt.IsZero() {
		meta.CreatedAt = meta.UpdatedAt
	}
}

func outOfSequence(was, is swarm.Version) error {
	if was.Index != is.Index {
		return Refuse(cerrdefs.ErrUnknown, "rpc error: code = Unknown desc = update out of sequence")
	}
	return nil
}

// only are those of a list that a filter lets through.
func only[T any](all []*T, f filters.Args, of func(*T) (id string, a swarm.Annotations)) []T {
	out := []T{}
	for _, x := range all {
		if id, a := of(x); f.ExactMatch("id", id) && f.MatchKVList("label", a.Labels) {
			out = append(out, *x)
		}
	}
	return out
}

func (m *Manager) Info(ctx context.Context) (system.Info, error) {
	info, err := m.Client.Info(ctx)
	info.Name = m.nodes[0].Description.Hostname
	info.Swarm = swarm.Info{
		NodeID: m.nodes[0].ID, LocalNodeState: swarm.LocalNodeStateActive, ControlAvailable: true,
		Nodes: len(m.nodes), Managers: len(m.nodes), Cluster: &swarm.ClusterInfo{},
	}
	return info, err
}

func (m *Manager) NodeList(ctx context.Context, o swarm.NodeListOptions) ([]swarm.Node, error) {
	return ask(ctx, m, "NodeList", func() ([]swarm.Node, error) {
		return slices.DeleteFunc(slices.Clone(m.nodes), func(n swarm.Node) bool { return !o.Filters.ExactMatch("id", n.ID) }), nil
	})
}

// service is one by its name or ID; nil for none.
func (m *Manager) service(ref string) *fakeService {
	for _, s := range m.services {
		if s.ID == ref || s.Spec.Name == ref {
			return s
		}
	}
	return nil
}

func (m *Manager) mustService(ref string) (*fakeService, error) {
	if s := m.service(ref); s != nil {
		return s, nil
	}
	return nil, Refuse(cerrdefs.ErrNotFound, "service %s not found", ref)
}

func (m *Manager) tellOf(s *fakeService, action events.Action) {
	m.tell(events.Message{
		Type: events.ServiceEventType, Action: action, Scope: "swarm", TimeNano: m.now().UnixNano(),
		Actor: events.Actor{ID: s.ID, Attributes: map[string]string{"name": s.Spec.Name}},
	})
}

func (m *Manager) ServiceList(ctx context.Context, o swarm.ServiceListOptions) ([]swarm.Service, error) {
	return ask(ctx, m, "ServiceList", func() ([]swarm.Service, error) {
		var all []*swarm.Service
		for _, s := range m.services {
			all = append(all, &s.Service)
		}
		return only(all, o.Filters, func(s *swarm.Service) (string, swarm.Annotations) { return s.ID, s.Spec.Annotations }), nil
	})
}

func (m *Manager) ServiceInspectWithRaw(ctx context.Context, ref string, _ swarm.ServiceInspectOptions) (swarm.Service, []byte, error) {
	s, err := ask(ctx, m, "ServiceInspectWithRaw", func() (swarm.Service, error) {
		s, err := m.mustService(ref)
		if err != nil {
			return swarm.Service{}, err
		}
		return s.Service, nil
	})
	return s, nil, err
}

// taken is a spec as the swarm keeps it: networks stand by their IDs.
func (m *Manager) taken(from swarm.ServiceSpec) (swarm.ServiceSpec, error) {
	s := wired(from)
	t := &s.TaskTemplate
	if job := s.Mode.ReplicatedJob; job != nil {
		if s.UpdateConfig != nil || t.ContainerSpec == nil || t.RestartPolicy == nil || t.RestartPolicy.Delay == nil || job.TotalCompletions == nil {
			return s, Refuse(cerrdefs.ErrInvalidArgument, "rpc error: code = InvalidArgument desc = Jobs may not have an update config")
		}
	} else if s.Mode.Replicated == nil && s.Mode.Global == nil || s.UpdateConfig == nil || s.UpdateConfig.FailureAction != swarm.UpdateFailureActionPause ||
		t.ContainerSpec == nil || t.RestartPolicy == nil || t.RestartPolicy.Condition != swarm.RestartPolicyConditionAny {
		return s, Refuse(cerrdefs.ErrNotImplemented, "the swarm in memory has replicated and global services alone, restarted always and updated until one fails")
	}
	if t.Placement != nil && slices.ContainsFunc(t.Placement.Constraints, func(c string) bool { return !strings.HasPrefix(c, byName) }) {
		return s, Refuse(cerrdefs.ErrNotImplemented, "the swarm in memory has constraints on the names of nodes alone")
	}
	for i, n := range t.Networks {
		at, err := m.mustNetwork(n.Target)
		if err != nil {
			return s, err
		}
		t.Networks[i].Target = at.ID
	}
	for _, c := range t.ContainerSpec.Configs {
		if !slices.ContainsFunc(m.configs, func(x *swarm.Config) bool { return x.ID == c.ConfigID && x.Spec.Name == c.ConfigName }) {
			return s, Refuse(cerrdefs.ErrInvalidArgument, "rpc error: code = InvalidArgument desc = config not found: %s", c.ConfigName)
		}
	}
	for _, c := range t.ContainerSpec.Secrets {
		if !slices.ContainsFunc(m.secrets, func(x *swarm.Secret) bool { return x.ID == c.SecretID && x.Spec.Name == c.SecretName }) {
			return s, Refuse(cerrdefs.ErrInvalidArgument, "rpc error: code = InvalidArgument desc = secret not found: %s", c.SecretName)
		}
	}
	return s, nil
}

func (m *Manager) ServiceCreate(ctx context.Context, spec swarm.ServiceSpec, _ swarm.ServiceCreateOptions) (swarm.ServiceCreateResponse, error) {
	return ask(ctx, m, "ServiceCreate", func() (swarm.ServiceCreateResponse, error) {
		if m.service(spec.Name) != nil {
			return swarm.ServiceCreateResponse{}, Refuse(cerrdefs.ErrConflict, "rpc error: code = AlreadyExists desc = name conflicts with an existing object: service %s already exists", spec.Name)
		}
		kept, err := m.taken(spec)
		if err != nil {
			return swarm.ServiceCreateResponse{}, err
		}
		s := &fakeService{Service: swarm.Service{ID: m.shortID("service"), Spec: kept}}
		m.written(&s.Meta)
		if s.isJob() {
			s.JobStatus = &swarm.JobStatus{}
		}
		m.services = append(m.services, s)
		m.tellOf(s, events.ActionCreate)
		return swarm.ServiceCreateResponse{ID: s.ID}, nil
	})
}

func (m *Manager) ServiceUpdate(ctx context.Context, id string, v swarm.Version, spec swarm.ServiceSpec, _ swarm.ServiceUpdateOptions) (swarm.ServiceUpdateResponse, error) {
	return ask(ctx, m, "ServiceUpdate", func() (swarm.ServiceUpdateResponse, error) {
		s, err := m.mustService(id)
		if err == nil {
			err = outOfSequence(v, s.Version)
		}
		if err != nil {
			return swarm.ServiceUpdateResponse{}, err
		}
		kept, err := m.taken(spec)
		if err != nil {
			return swarm.ServiceUpdateResponse{}, err
		}
		was := s.Spec
		s.PreviousSpec, s.Spec, s.UpdateStatus, s.sent = &was, kept, nil, true
		if s.isJob() {
			s.iterate()
		}
		m.written(&s.Meta)
		m.tellOf(s, events.ActionUpdate)
		return swarm.ServiceUpdateResponse{}, nil
	})
}

func (m *Manager) ServiceRemove(ctx context.Context, id string) error {
	_, err := ask(ctx, m, "ServiceRemove", func() (struct{}, error) {
		s, err := m.mustService(id)
		if err != nil {
			return struct{}{}, err
		}
		m.services = slices.DeleteFunc(m.services, func(x *fakeService) bool { return x == s })
		for _, t := range s.tasks {
			if !s.isJob() { // an engine before 24 leaves those of a job as they are
				t.DesiredState = swarm.TaskStateRemove
			}
		}
		m.leaving = append(m.leaving, s.tasks...)
		m.tellOf(s, events.ActionRemove)
		return struct{}{}, nil
	})
	return err
}

// tasks are all that there are.
func (m *Manager) tasks() (all []*fakeTask) {
	for _, s := range m.services {
		all = append(all, s.tasks...)
	}
	return append(all, m.leaving...)
}

func (m *Manager) TaskList(ctx context.Context, o swarm.TaskListOptions) ([]swarm.Task, error) {
	return ask(ctx, m, "TaskList", func() ([]swarm.Task, error) {
		out := []swarm.Task{}
		for _, ref := range o.Filters.Get("service") {
			if _, err := m.mustService(ref); err != nil {
				return nil, err
			}
		}
		for _, t := range m.tasks() {
			if o.Filters.ExactMatch("id", t.ID) && o.Filters.ExactMatch("node", t.NodeID) && o.Filters.ExactMatch("service", t.ServiceID) && o.Filters.ExactMatch("desired-state", string(t.DesiredState)) {
				out = append(out, t.Task)
			}
		}
		return out, nil
	})
}

// TaskLogs is the log of a task, whichever node it runs on.
func (m *Manager) TaskLogs(ctx context.Context, id string, _ container.LogsOptions) (io.ReadCloser, error) {
	text, err := ask(ctx, m, "TaskLogs", func() (string, error) {
		for _, t := range m.tasks() {
			if t.ID == id {
				return t.life.Log, nil
			}
		}
		return "", Refuse(cerrdefs.ErrNotFound, "task %s not found", id)
	})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	_, _ = io.WriteString(stdcopy.NewStdWriter(&b, stdcopy.Stdout), text) // to memory
	return io.NopCloser(strings.NewReader(b.String())), nil
}

func ofConfig(c *swarm.Config) (string, swarm.Annotations) { return c.ID, c.Spec.Annotations }
func ofSecret(c *swarm.Secret) (string, swarm.Annotations) { return c.ID, c.Spec.Annotations }

// file is a config or secret by its name or ID; nil for none.
func file[T any](all []*T, ref string, of func(*T) (string, swarm.Annotations)) *T {
	for _, x := range all {
		if id, a := of(x); id == ref || a.Name == ref {
			return x
		}
	}
	return nil
}

func (m *Manager) ConfigList(ctx context.Context, o swarm.ConfigListOptions) ([]swarm.Config, error) {
	return ask(ctx, m, "ConfigList", func() ([]swarm.Config, error) { return only(m.configs, o.Filters, ofConfig), nil })
}

func (m *Manager) ConfigInspectWithRaw(ctx context.Context, ref string) (swarm.Config, []byte, error) {
	c, err := ask(ctx, m, "ConfigInspectWithRaw", func() (swarm.Config, error) {
		if c := file(m.configs, ref, ofConfig); c != nil {
			return *c, nil
		}
		return swarm.Config{}, Refuse(cerrdefs.ErrNotFound, "config %s not found", ref)
	})
	return c, nil, err
}

func (m *Manager) ConfigCreate(ctx context.Context, spec swarm.ConfigSpec) (swarm.ConfigCreateResponse, error) {
	return ask(ctx, m, "ConfigCreate", func() (swarm.ConfigCreateResponse, error) {
		if file(m.configs, spec.Name, ofConfig) != nil {
			return swarm.ConfigCreateResponse{}, Refuse(cerrdefs.ErrConflict, "rpc error: code = AlreadyExists desc = config %s already exists", spec.Name)
		}
		c := &swarm.Config{ID: m.shortID("config"), Spec: wired(spec)}
		m.written(&c.Meta)
		m.configs = append(m.configs, c)
		return swarm.ConfigCreateResponse{ID: c.ID}, nil
	})
}

func (m *Manager) ConfigUpdate(ctx context.Context, id string, v swarm.Version, spec swarm.ConfigSpec) error {
	_, err := ask(ctx, m, "ConfigUpdate", func() (struct{}, error) {
		c := file(m.configs, id, ofConfig)
		switch {
		case c == nil:
			return struct{}{}, Refuse(cerrdefs.ErrNotFound, "config %s not found", id)
		case c.Spec.Name != spec.Name || string(c.Spec.Data) != string(spec.Data):
			return struct{}{}, Refuse(cerrdefs.ErrInvalidArgument, "rpc error: code = InvalidArgument desc = only updates to Labels are allowed")
		}
		if err := outOfSequence(v, c.Version); err != nil {
			return struct{}{}, err
		}
		c.Spec = wired(spec)
		m.written(&c.Meta)
		return struct{}{}, nil
	})
	return err
}

// namedBy is the service that names a config or secret; "" for none.
func (m *Manager) namedBy(id string) string {
	for _, s := range m.services {
		c := s.Spec.TaskTemplate.ContainerSpec
		if slices.ContainsFunc(c.Configs, func(r *swarm.ConfigReference) bool { return r.ConfigID == id }) ||
			slices.ContainsFunc(c.Secrets, func(r *swarm.SecretReference) bool { return r.SecretID == id }) {
			return s.Spec.Name
		}
	}
	return ""
}

// without is a list without one, unless a service names it.
func without[T any](m *Manager, what, ref string, all []*T, of func(*T) (string, swarm.Annotations)) ([]*T, error) {
	x := file(all, ref, of)
	if x == nil {
		return all, Refuse(cerrdefs.ErrNotFound, "%s %s not found", what, ref)
	}
	id, a := of(x)
	if by := m.namedBy(id); by != "" {
		return all, Refuse(cerrdefs.ErrInvalidArgument, "rpc error: code = InvalidArgument desc = %s '%s' is in use by the following service: %s", what, a.Name, by)
	}
	return slices.DeleteFunc(all, func(y *T) bool { return y == x }), nil
}

func (m *Manager) ConfigRemove(ctx context.Context, id string) error {
	_, err := ask(ctx, m, "ConfigRemove", func() (_ struct{}, err error) {
		m.configs, err = without(m, "config", id, m.configs, ofConfig)
		return
	})
	return err
}

// SecretList says nothing of what secrets hold.
func (m *Manager) SecretList(ctx context.Context, o swarm.SecretListOptions) ([]swarm.Secret, error) {
	return ask(ctx, m, "SecretList", func() ([]swarm.Secret, error) { return only(m.secrets, o.Filters, ofSecret), nil })
}

func (m *Manager) SecretCreate(ctx context.Context, spec swarm.SecretSpec) (swarm.SecretCreateResponse, error) {
	return ask(ctx, m, "SecretCreate", func() (swarm.SecretCreateResponse, error) {
		if file(m.secrets, spec.Name, ofSecret) != nil {
			return swarm.SecretCreateResponse{}, Refuse(cerrdefs.ErrConflict, "rpc error: code = AlreadyExists desc = secret %s already exists", spec.Name)
		}
		spec.Data = nil
		c := &swarm.Secret{ID: m.shortID("secret"), Spec: wired(spec)}
		m.written(&c.Meta)
		m.secrets = append(m.secrets, c)
		return swarm.SecretCreateResponse{ID: c.ID}, nil
	})
}

func (m *Manager) SecretRemove(ctx context.Context, id string) error {
	_, err := ask(ctx, m, "SecretRemove", func() (_ struct{}, err error) {
		m.secrets, err = without(m, "secret", id, m.secrets, ofSecret)
		return
	})
	return err
}

// NetworkRemove leaves a network that a service or a task is on.
func (m *Manager) NetworkRemove(ctx context.Context, ref string) error {
	_, err := ask(ctx, m, "NetworkInUse", func() (struct{}, error) {
		n := m.network(ref)
		on := func(t *swarm.TaskSpec) bool {
			return n != nil && slices.ContainsFunc(t.Networks, func(a swarm.NetworkAttachmentConfig) bool { return a.Target == n.ID })
		}
		for _, s := range m.services {
			if on(&s.Spec.TaskTemplate) {
				return struct{}{}, Refuse(cerrdefs.ErrFailedPrecondition, "rpc error: code = FailedPrecondition desc = network %s is in use by service %s", n.ID, s.ID)
			}
		}
		for _, t := range m.tasks() {
			if on(&t.Spec) && !t.over() {
				return struct{}{}, Refuse(cerrdefs.ErrFailedPrecondition, "rpc error: code = FailedPrecondition desc = network %s is in use by task %s", n.ID, t.ID)
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	return m.Client.NetworkRemove(ctx, ref)
}
