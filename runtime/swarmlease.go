package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// LeaseOptions say as whom a manager asks for the lease of its cluster.
type LeaseOptions struct {
	// ID is the same after a restart, and that of no other daemon; "" asks for no lease, and
	// acts without one.
	ID string
	// Manager is the name of this machine, for people.
	Manager string
	// Key is a check value of the cluster's key, which says nothing of the key itself.
	Key string
}

// Labels of the lease, which is a config: its version index has one writer win.
const (
	labelLeaseID      = "gitring.lease.id"
	labelLeaseManager = "gitring.lease.manager"
	labelLeaseKey     = "gitring.lease.key"
)

var started = time.Now()

func thisInstant() instant {
	return instant{up: sinceBoot(), wall: time.Duration(time.Now().UnixNano())}
}

// swarmLease is the lease as this manager has it. Its methods may be called from many goroutines.
type swarmLease struct {
	opts LeaseOptions
	name string // of the config
	now  func() instant
	mu   sync.Mutex
	is   lease
	by   string // the manager that has it, as last seen
	node string // this one's in the swarm, so that a copy of this machine's disk is another holder
}

func newSwarmLease(cluster string, o LeaseOptions) *swarmLease {
	if o.ID == "" {
		return nil
	}
	return &swarmLease{opts: o, name: "gitring." + cluster + ".lease", now: thisInstant}
}

// onNode says which node of the swarm this manager is.
func (l *swarmLease) onNode(node string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
}

// holder is by what the lease names this manager.
func (l *swarmLease) holder() string { return l.opts.ID + "." + l.node }

// renew looks at the lease, and renews, takes or makes it where that is this manager's to do. It
// says who acts.
func (l *swarmLease) renew(ctx context.Context, m manager) (ring.Lease, error) {
	if l == nil {
		return ring.Lease{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is.isFresh(l.now()) {
		return l.says(), nil
	}
	was, err := l.find(ctx, m)
	if err != nil {
		return ring.Lease{}, err
	}
	labels := was.Spec.Labels
	step := l.is.see(was.Version.Index, labels[labelLeaseID] == l.holder(), l.now())
	if step == leaseFollow {
		l.by = labels[labelLeaseManager]
		return l.says(), nil
	}
	sent := l.now()
	if step == leaseMake {
		_, err = m.ConfigCreate(ctx, swarm.ConfigSpec{Annotations: swarm.Annotations{Name: l.name, Labels: l.labels(nil)}, Data: []byte("Its labels say which manager acts.\n")})
	} else {
		spec := was.Spec
		spec.Labels = l.labels(spec.Labels)
		err = m.ConfigUpdate(ctx, was.ID, was.Version, spec)
	}
	switch {
	case err == nil:
		l.is.wrote(sent)
		l.by = l.opts.Manager
		return l.says(), nil
	case isWrittenMeanwhile(err):
		l.is.held = false // it was written meanwhile: the next look says by whom
		return ring.Lease{}, &ring.EngineError{Err: fmt.Errorf("cannot renew the lease of the cluster: it was written meanwhile, and is looked at again: %w", err)}
	}
	return ring.Lease{}, swarmFault("cannot renew the lease of the cluster", err)
}

// find is the lease that there is, the zero value for none. One of another key is an UnfitError.
func (l *swarmLease) find(ctx context.Context, m manager) (swarm.Config, error) {
	was, _, err := m.ConfigInspectWithRaw(ctx, l.name)
	switch {
	case cerrdefs.IsNotFound(err):
		return swarm.Config{}, nil
	case err != nil:
		return swarm.Config{}, swarmFault("cannot look at the lease of the cluster", err)
	case was.Spec.Name != l.name: // found by an ID that begins so
		return swarm.Config{}, nil
	}
	if was.Spec.Labels[labelLeaseID] == "" { // a person's own
		return swarm.Config{}, notOurConfig(l.name)
	}
	if has := was.Spec.Labels[labelLeaseKey]; has != l.opts.Key {
		return swarm.Config{}, &ring.EngineError{Permanent: true, Err: &UnfitError{
			Says: fmt.Sprintf("cannot act for this cluster: manager %s has another cluster key", was.Spec.Labels[labelLeaseManager]),
			Hint: fmt.Sprintf("copy its engine.key_file to this manager; if no gitring runs on any other, docker config rm %s begins anew", l.name),
		}}
	}
	return was, nil
}

// notOurConfig is that somebody has a config of a name that managers of the cluster need.
func notOurConfig(name string) error {
	return &ring.EngineError{Permanent: true, Err: &UnfitError{
		Says: fmt.Sprintf("cannot act for this cluster: a config %s is on the swarm, and gitring did not make it", name),
		Hint: "give the cluster another name in engine.cluster, or the config another one",
	}}
}

// labels are those of the lease once this manager has written it. What others put there stays.
func (l *swarmLease) labels(were map[string]string) map[string]string {
	out := maps.Clone(were)
	if out == nil {
		out = map[string]string{}
	}
	out[labelLeaseID], out[labelLeaseManager], out[labelLeaseKey] = l.holder(), l.opts.Manager, l.opts.Key
	return out
}

func (l *swarmLease) says() ring.Lease {
	return ring.Lease{Holder: l.by, Mine: l.is.acts(l.now())}
}

// errNotHolder is no fault of the step: whoever has the lease takes it.
var errNotHolder = errors.New("another manager may have the lease of the cluster by now")

// mayAct is nil while this manager may change the cluster.
func (l *swarmLease) mayAct() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is.acts(l.now()) {
		return &ring.EngineError{Err: errNotHolder}
	}
	return nil
}

// leased is a manager whose calls that change the cluster ask the lease first, each one anew: a
// daemon may have been stopped between two.
type leased struct {
	manager
	lease *swarmLease
}

func (l leased) ServiceCreate(ctx context.Context, s swarm.ServiceSpec, o swarm.ServiceCreateOptions) (swarm.ServiceCreateResponse, error) {
	if err := l.lease.mayAct(); err != nil {
		return swarm.ServiceCreateResponse{}, err
	}
	return l.manager.ServiceCreate(ctx, s, o)
}

func (l leased) ServiceUpdate(ctx context.Context, id string, v swarm.Version, s swarm.ServiceSpec, o swarm.ServiceUpdateOptions) (swarm.ServiceUpdateResponse, error) {
	if err := l.lease.mayAct(); err != nil {
		return swarm.ServiceUpdateResponse{}, err
	}
	return l.manager.ServiceUpdate(ctx, id, v, s, o)
}

func (l leased) ServiceRemove(ctx context.Context, id string) error {
	if err := l.lease.mayAct(); err != nil {
		return err
	}
	return l.manager.ServiceRemove(ctx, id)
}

func (l leased) ConfigCreate(ctx context.Context, c swarm.ConfigSpec) (swarm.ConfigCreateResponse, error) {
	if err := l.lease.mayAct(); err != nil {
		return swarm.ConfigCreateResponse{}, err
	}
	return l.manager.ConfigCreate(ctx, c)
}

func (l leased) ConfigUpdate(ctx context.Context, id string, v swarm.Version, c swarm.ConfigSpec) error {
	if err := l.lease.mayAct(); err != nil {
		return err
	}
	return l.manager.ConfigUpdate(ctx, id, v, c)
}

func (l leased) ConfigRemove(ctx context.Context, id string) error {
	if err := l.lease.mayAct(); err != nil {
		return err
	}
	return l.manager.ConfigRemove(ctx, id)
}

func (l leased) SecretCreate(ctx context.Context, s swarm.SecretSpec) (swarm.SecretCreateResponse, error) {
	if err := l.lease.mayAct(); err != nil {
		return swarm.SecretCreateResponse{}, err
	}
	return l.manager.SecretCreate(ctx, s)
}

func (l leased) SecretRemove(ctx context.Context, id string) error {
	if err := l.lease.mayAct(); err != nil {
		return err
	}
	return l.manager.SecretRemove(ctx, id)
}

func (l leased) NetworkCreate(ctx context.Context, name string, o network.CreateOptions) (network.CreateResponse, error) {
	if err := l.lease.mayAct(); err != nil {
		return network.CreateResponse{}, err
	}
	return l.manager.NetworkCreate(ctx, name, o)
}

func (l leased) NetworkRemove(ctx context.Context, id string) error {
	if err := l.lease.mayAct(); err != nil {
		return err
	}
	return l.manager.NetworkRemove(ctx, id)
}
