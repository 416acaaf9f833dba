package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// manager is what is used of the client beside what engine has, where it speaks with a manager
// of a swarm. No method of it changes a node, and none may be added.
type manager interface {
	engine
	ServiceList(ctx context.Context, o swarm.ServiceListOptions) ([]swarm.Service, error)
	ServiceInspectWithRaw(ctx context.Context, id string, o swarm.ServiceInspectOptions) (swarm.Service, []byte, error)
	ServiceCreate(ctx context.Context, s swarm.ServiceSpec, o swarm.ServiceCreateOptions) (swarm.ServiceCreateResponse, error)
	ServiceUpdate(ctx context.Context, id string, v swarm.Version, s swarm.ServiceSpec, o swarm.ServiceUpdateOptions) (swarm.ServiceUpdateResponse, error)
	ServiceRemove(ctx context.Context, id string) error
	TaskList(ctx context.Context, o swarm.TaskListOptions) ([]swarm.Task, error)
	NodeList(ctx context.Context, o swarm.NodeListOptions) ([]swarm.Node, error)
	ConfigList(ctx context.Context, o swarm.ConfigListOptions) ([]swarm.Config, error)
	ConfigInspectWithRaw(ctx context.Context, id string) (swarm.Config, []byte, error)
	ConfigCreate(ctx context.Context, c swarm.ConfigSpec) (swarm.ConfigCreateResponse, error)
	ConfigUpdate(ctx context.Context, id string, v swarm.Version, c swarm.ConfigSpec) error
	ConfigRemove(ctx context.Context, id string) error
	SecretList(ctx context.Context, o swarm.SecretListOptions) ([]swarm.Secret, error)
	SecretCreate(ctx context.Context, s swarm.SecretSpec) (swarm.SecretCreateResponse, error)
	SecretRemove(ctx context.Context, id string) error
}

// Swarm is a manager of a swarm as gitring sees it. It shares the client, the credentials and
// the judge of payloads with Docker, whose Options.Host is the name of the cluster here. Its
// methods may be called from many goroutines; Look by one at a time.
type Swarm struct {
	docker *Docker
	lease  *swarmLease // nil acts without one

	mu    sync.Mutex
	words map[string][]string // by run: the end of a log that went with its task
}

// DialSwarm is the swarm that the engine at o.URL is a manager of. One that does not answer now
// is no error, as for Dial. One that answers and is no manager, or one whose lease has another key, is an UnfitError.
func DialSwarm(ctx context.Context, o Options) (*Swarm, error) {
	d, err := Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	return swarmOver(ctx, d)
}

// swarmOver is the swarm that an engine is a manager of.
func swarmOver(ctx context.Context, d *Docker) (*Swarm, error) {
	s := &Swarm{docker: d, lease: newSwarmLease(d.opts.Host, d.opts.Lease)}
	m, err := s.ready(ctx)
	if err == nil && s.lease != nil {
		if _, err = s.lease.find(ctx, m); err == nil {
			_, err = s.findRecord(ctx, m)
		}
	}
	if err != nil {
		var unfit *UnfitError
		if errors.As(err, &unfit) {
			return nil, errors.Join(err, d.Close())
		}
	}
	return s, nil
}

// ready is the manager, known to be one.
func (s *Swarm) ready(ctx context.Context) (manager, error) {
	e, err := s.docker.ready(ctx)
	if err != nil {
		return nil, err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return nil, fault("cannot ask the engine what it is", "", err)
	}
	m, can := e.(manager)
	switch says := noManager(info.Swarm, can); {
	case says != "":
		return nil, &ring.EngineError{Permanent: true, Err: &UnfitError{
			Says: fmt.Sprintf("cannot use the engine at %s as a swarm: %s", s.docker.opts.URL, says), Hint: "engine.url has to name a manager; docker node ls lists them",
		}}
	case !info.Swarm.ControlAvailable:
		return nil, &ring.EngineError{Err: fmt.Errorf("cannot look at the swarm: this manager is %s", info.Swarm.LocalNodeState)}
	}
	s.lease.onNode(info.Swarm.NodeID)
	return m, nil
}

// noManager is why an engine is no manager of a swarm; "" where it is one, or may be one soon.
func noManager(info swarm.Info, can bool) string {
	switch {
	case !can:
		return "its API has no services"
	case info.LocalNodeState == swarm.LocalNodeStateInactive || info.LocalNodeState == "":
		return "it is part of none"
	case info.LocalNodeState == swarm.LocalNodeStateActive && !info.ControlAvailable:
		return "it is a worker"
	}
	return ""
}

// swarmFault is fault of a question to the swarm. Without a leader nothing is known, and what
// runs goes on.
func swarmFault(cannot string, err error) error {
	if text := err.Error(); strings.Contains(text, "does not have a leader") || strings.Contains(text, "code = DeadlineExceeded") {
		return &ring.EngineError{NoQuorum: true, Err: fmt.Errorf("%s: no quorum of its managers, and what runs goes on: %w", cannot, err)}
	}
	return fault(cannot, "", err)
}

// Close closes idle connections.
func (s *Swarm) Close() error { return s.docker.Close() }

// Look is one observation of the swarm, whole or none.
func (s *Swarm) Look(ctx context.Context) (ring.Seen, error) {
	m, err := s.ready(ctx)
	if err != nil {
		return ring.Seen{}, err
	}
	lease, err := s.lease.renew(ctx, m)
	if err != nil {
		return ring.Seen{}, err
	}
	at := s.docker.opts.Now()
	ours := filters.NewArgs(filters.Arg("label", labelHost+"="+s.docker.opts.Host))
	var all swarmAnswers
	for _, ask := range []struct {
		what string
		do   func() error
	}{
		// Tasks after services: what a service says of its update, its tasks show by then.
		{"services", func() (err error) {
			all.services, err = m.ServiceList(ctx, swarm.ServiceListOptions{Filters: ours})
			return
		}},
		{"tasks", func() (err error) { all.tasks, err = m.TaskList(ctx, swarm.TaskListOptions{}); return }},
		{"nodes", func() (err error) { all.nodes, err = m.NodeList(ctx, swarm.NodeListOptions{}); return }},
		{"networks", func() (err error) { all.networks, err = m.NetworkList(ctx, network.ListOptions{}); return }},
		{"configs", func() (err error) {
			all.configs, err = m.ConfigList(ctx, swarm.ConfigListOptions{Filters: ours})
			return
		}},
		{"secrets", func() (err error) {
			all.secrets, err = m.SecretList(ctx, swarm.SecretListOptions{Filters: ours})
			return
		}},
	} {
		if err := ask.do(); err != nil {
			return ring.Seen{}, swarmFault("cannot list "+ask.what+" of the swarm", err)
		}
	}
	seen := all.seen(s.docker.opts.Host, at)
	seen.Cluster.Lease = lease
	return seen, nil
}

// Do carries out one step. Each can be repeated: its effect is the same the second time.
func (s *Swarm) Do(ctx context.Context, a ring.Action) (ring.Done, error) {
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout)
		defer cancel()
	}
	m, err := s.ready(ctx)
	if err != nil {
		return ring.Done{}, err
	}
	if s.lease != nil {
		m = leased{m, s.lease}
	}
	switch a.Kind {
	case ring.DoServe:
		return s.serve(ctx, m, a)
	case ring.DoServeOff:
		return s.serveOff(ctx, m, a)
	case ring.DoCreate:
		return s.createRun(ctx, m, a)
	case ring.DoStart:
		return s.startRun(ctx, m, a)
	case ring.DoStop:
		return s.onRun(ctx, m, "cannot stop", a, s.stopRun)
	case ring.DoRemove:
		return s.onRun(ctx, m, "cannot remove", a, s.removeRun)
	case ring.DoLog:
		return s.keepRunLog(ctx, m, a)
	case ring.DoFileOff:
		return s.fileOff(ctx, m, a)
	case ring.DoWords:
		return s.writeCommitWords(ctx, m, a)
	case ring.DoNetwork:
		return s.makeNetwork(ctx, m, a)
	case ring.DoNetworkOff:
		return s.networkOff(ctx, m, a)
	case ring.DoAdmit:
		return s.admit(ctx, m, a)
	case ring.DoResolve:
		return s.resolve(ctx, m, a)
	case ring.DoVerify, ring.DoPull, ring.DoImageOff:
		return s.docker.do(ctx, m, a)
	}
	return ring.Done{}, &ring.EngineError{Permanent: true, Err: fmt.Errorf("cannot %s on a swarm, which does that by itself", a.Kind)}
}

// resolve says what an image's name means now. One that this manager alone has is refused.
func (s *Swarm) resolve(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	done, err := s.docker.do(ctx, m, a)
	if err == nil && !strings.Contains(done.Pin.Image, "@") {
		return ring.Done{}, refused(a, ring.CauseImagePull, ring.ImageNotFound, fmt.Sprintf("no registry has image %s, and each node pulls what it does not have", a.Image), pushIt)
	}
	return done, err
}

// serve makes the service of an action, or sends it another spec: configs and secrets first,
// then the service. The version index that the step was decided on has to be there still.
func (s *Swarm) serve(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	if a.Of == nil || a.Want == nil {
		return ring.Done{}, errors.New("cannot send service: the action names no service")
	}
	name := swarmServiceName(a.App, a.Service)
	cannot := "cannot send service " + name
	spec, files, err := s.specOf(a, cannot)
	if err != nil {
		return ring.Done{}, err
	}
	was, err := s.service(ctx, m, a, name, ownService)
	if err != nil {
		return ring.Done{}, err
	}
	if was != nil && was.Version.Index != a.Index && was.Spec.Labels[labelSent] == spec.Labels[labelSent] && sentHash(&was.Spec, s.networkNames(ctx, m)) == spec.Labels[labelSent] {
		return ring.Done{Instance: was.ID, Note: "already present"}, nil // an answer was lost; with the index that was looked at it is sent once more
	}
	if (was == nil) != (a.Index == 0) || was != nil && was.Version.Index != a.Index {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseCreate, Err: fmt.Errorf("%s: it is another one than was looked at", cannot)}
	}
	if was == nil {
		return s.create(ctx, m, a, cannot, &spec, files)
	}
	auth, err := s.prepare(ctx, m, a, &spec, files)
	if err != nil {
		return ring.Done{}, err
	}
	if spec.TaskTemplate.ForceUpdate, err = s.madeAs(ctx, m, a, was); err != nil {
		return ring.Done{}, err
	}
	sent, err := m.ServiceUpdate(ctx, was.ID, was.Version, spec, swarm.ServiceUpdateOptions{EncodedRegistryAuth: auth, RegistryAuthFrom: swarm.RegistryAuthFromSpec})
	if err != nil {
		return ring.Done{}, serveFault(a, cannot, err)
	}
	return ring.Done{Instance: was.ID, Told: sent.Warnings}, nil
}

// specOf is the spec that an action sends, as far as this host lets it in, and the files in it.
func (s *Swarm) specOf(a ring.Action, cannot string) (swarm.ServiceSpec, []swarmFile, error) {
	files, err := s.files(a)
	if err != nil {
		return swarm.ServiceSpec{}, nil, &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	spec, err := serviceSpec(s.docker.opts.Host, a, files)
	if err != nil {
		return swarm.ServiceSpec{}, nil, &ring.EngineError{Cause: ring.CauseConfig, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	if err := s.docker.allow(a, Request{Key: "container", Body: ServiceRequest{spec}}); err != nil {
		return swarm.ServiceSpec{}, nil, err
	}
	if all := mountRefusals(a.Of, a.Want); len(all) > 0 { // the image's own volumes are known only now
		return swarm.ServiceSpec{}, nil, &ring.EngineError{Cause: ring.CauseConfig, Permanent: true, Refusal: all[0], Err: all[0]}
	}
	return spec, files, nil
}

// create makes a service, after what it needs.
func (s *Swarm) create(ctx context.Context, m manager, a ring.Action, cannot string, spec *swarm.ServiceSpec, files []swarmFile) (ring.Done, error) {
	auth, err := s.prepare(ctx, m, a, spec, files)
	if err != nil {
		return ring.Done{}, err
	}
	made, err := m.ServiceCreate(ctx, *spec, swarm.ServiceCreateOptions{EncodedRegistryAuth: auth})
	if err != nil {
		return ring.Done{}, serveFault(a, cannot, err)
	}
	return ring.Done{Instance: made.ID, Told: made.Warnings}, nil
}

// madeAs is the number in a spec that has every task made anew where it is another one: that of the
// tasks of the version that run. A version that comes back finds its own ones so.
func (s *Swarm) madeAs(ctx context.Context, m manager, a ring.Action, was *swarm.Service) (uint64, error) {
	is := was.Spec.TaskTemplate.ForceUpdate
	switch {
	case a.Anew:
		return is + 1, nil
	case was.Spec.Labels[labelVersion] == string(a.Version):
		return is, nil
	}
	all, err := m.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", was.ID), filters.Arg("desired-state", "running"))})
	if err != nil {
		return 0, swarmFault("cannot list tasks of service "+was.Spec.Name, err)
	}
	for i := range all {
		if versionOfTask(&all[i]) == a.Version {
			return all[i].Spec.ForceUpdate, nil
		}
	}
	return is, nil
}

// service is the one of a name; nil for none. One that is not ours is a refusal.
func (s *Swarm) service(ctx context.Context, m manager, a ring.Action, name string, ours func(cluster, app string, s *swarm.Service) bool) (*swarm.Service, error) {
	was, _, err := m.ServiceInspectWithRaw(ctx, name, swarm.ServiceInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fault("cannot inspect service "+name, "", err)
	case was.Spec.Name != name: // found by an ID that begins so
		return nil, nil
	}
	if !ours(s.docker.opts.Host, a.App, &was) {
		return nil, refused(a, ring.CauseCreate, ring.ForeignProject, notOurs(name), notOursHint(name))
	}
	return &was, nil
}

// networkNames are those of networks by ID; none where they cannot be asked for, and then
// nothing looks as it was sent.
func (s *Swarm) networkNames(ctx context.Context, m manager) map[string]string {
	list, err := m.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, n := range list {
		out[n.ID] = n.Name
	}
	return out
}

// files are those that the service of an action is given, by their targets.
func (s *Swarm) files(a ring.Action) (out []swarmFile, err error) {
	for _, at := range a.Of.Mounts(a.Want) {
		if at.Kind != ring.MountContent {
			continue
		}
		root := s.docker.contentAt(at.Source)
		if err := haveContent(filepath.Dir(root), at); err != nil {
			return nil, err
		}
		err := filepath.WalkDir(filepath.Join(root, at.File), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			f := swarmFile{Secret: at.Secret, Content: at.Source, Path: filepath.ToSlash(rel), Target: at.Target, Exec: info.Mode()&0o111 != 0, As: givenTo(info)}
			if at.File == "" {
				f.Target = at.Target + "/" + f.Path
			}
			out = append(out, f)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// givenTo is whose a file is where the app said so, as it lies in the store; nil where it is
// for everybody to read, as every other.
func givenTo(info fs.FileInfo) *ring.FileOwner {
	uid, gid, ok := disk.OwnersOf(info)
	mode := uint32(info.Mode().Perm())
	if !ok || uid == os.Geteuid() && (mode == 0o444 || mode == 0o555) {
		return nil
	}
	return &ring.FileOwner{UID: uid, GID: gid, Mode: mode}
}

// prepare makes the configs and secrets of a spec that are not there, and puts the IDs of all in. It
// returns the credentials that go with the spec.
func (s *Swarm) prepare(ctx context.Context, m manager, a ring.Action, spec *swarm.ServiceSpec, files []swarmFile) (auth string, err error) {
	configs, err := m.ConfigList(ctx, swarm.ConfigListOptions{})
	if err != nil {
		return "", fault("cannot list configs of the swarm", "", err)
	}
	secrets, err := m.SecretList(ctx, swarm.SecretListOptions{})
	if err != nil {
		return "", fault("cannot list secrets of the swarm", "", err)
	}
	ids := map[string]string{}
	for _, f := range files {
		name := f.name(a.App)
		what, there := "config", swarm.Annotations{}
		id := ""
		for _, c := range configs {
			if !f.Secret && c.Spec.Name == name {
				id, there = c.ID, c.Spec.Annotations
			}
		}
		for _, c := range secrets {
			if f.Secret && c.Spec.Name == name {
				id, there, what = c.ID, c.Spec.Annotations, "secret"
			}
		}
		if id != "" {
			if l := there.Labels; l[labelHost] != s.docker.opts.Host || l[labelApp] != a.App || l[labelContent] != f.Content {
				return "", refused(a, ring.CauseConfig, ring.Conflict, fmt.Sprintf("a %s %s is on the swarm with another content", what, name), "docker "+what+" rm "+name)
			}
		} else if id, err = s.makeFile(ctx, m, a, f); err != nil {
			return "", err
		}
		ids[name] = id
	}
	c := spec.TaskTemplate.ContainerSpec
	for _, r := range c.Configs {
		r.ConfigID = ids[r.ConfigName]
	}
	for _, r := range c.Secrets {
		r.SecretID = ids[r.SecretName]
	}
	if auth, err = s.auth(ctx, a.Want.Pin.Image); err != nil {
		return "", &ring.EngineError{Cause: ring.CauseImagePull, Err: err}
	}
	return auth, nil
}

func (s *Swarm) makeFile(ctx context.Context, m manager, a ring.Action, f swarmFile) (string, error) {
	what, cannot := "config", "cannot make config "+f.name(a.App)
	if f.Secret {
		what, cannot = "secret", "cannot make secret "+f.name(a.App)
	}
	data, err := os.ReadFile(filepath.Join(s.docker.contentAt(f.Content), filepath.FromSlash(f.Path)))
	if err != nil {
		return "", &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	if len(data) > largestFile {
		return "", refused(a, ring.CauseConfig, ring.TooLarge, fmt.Sprintf("the %s at %s is larger than 500 KiB, which is the most that a swarm keeps", what, f.Target), "put it into the image, or into a volume")
	}
	if f.Secret {
		made, err := m.SecretCreate(ctx, secretSpec(s.docker.opts.Host, a.App, f, data))
		if err != nil {
			return "", fault(cannot, ring.CauseConfig, err)
		}
		return made.ID, nil
	}
	made, err := m.ConfigCreate(ctx, configSpec(s.docker.opts.Host, a.App, f, data))
	if err != nil {
		return "", fault(cannot, ring.CauseConfig, err)
	}
	return made.ID, nil
}

// largestFile is the most that Swarm takes as a secret; a config is held to the same.
const largestFile = 500 << 10

// auth are the credentials that go with a spec, for the nodes to pull by; "" for none.
func (s *Swarm) auth(ctx context.Context, pin string) (string, error) {
	if strings.HasPrefix(pin, "sha256:") {
		return "", nil // no node pulls that
	}
	named, err := reference.ParseNormalizedNamed(pin)
	if err != nil {
		return "", fmt.Errorf("cannot read the name of image %s: %w", pin, err)
	}
	return s.docker.credentials(ctx, named)
}

// serveOff removes the service of an action; gone already is fine.
func (s *Swarm) serveOff(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	name := swarmServiceName(a.App, a.Service)
	was, err := s.service(ctx, m, a, name, ownService)
	if err != nil {
		return ring.Done{}, err
	}
	if was == nil {
		return ring.Done{Note: "already gone"}, nil
	}
	if was.Version.Index != a.Index {
		return ring.Done{}, &ring.EngineError{Err: fmt.Errorf("cannot remove service %s: it is another one than was looked at", name)}
	}
	if err := m.ServiceRemove(ctx, was.ID); err != nil && !cerrdefs.IsNotFound(err) {
		return ring.Done{}, fault("cannot remove service "+name, "", err)
	}
	return ring.Done{}, nil
}

// fileOff removes a config or secret of ours by its ID. One that a service still names stays:
// the swarm says so.
func (s *Swarm) fileOff(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	ours := filters.NewArgs(filters.Arg("label", labelHost+"="+s.docker.opts.Host), filters.Arg("label", labelApp+"="+a.App))
	var ids []string
	named := func(id, name string) {
		if name == a.Name {
			ids = append(ids, id)
		}
	}
	remove := m.ConfigRemove
	if a.Secret {
		remove = m.SecretRemove
		list, err := m.SecretList(ctx, swarm.SecretListOptions{Filters: ours})
		if err != nil {
			return ring.Done{}, fault("cannot list secrets of the swarm", "", err)
		}
		for i := range list {
			named(list[i].ID, list[i].Spec.Name)
		}
	} else {
		list, err := m.ConfigList(ctx, swarm.ConfigListOptions{Filters: ours})
		if err != nil {
			return ring.Done{}, fault("cannot list configs of the swarm", "", err)
		}
		for i := range list {
			named(list[i].ID, list[i].Spec.Name)
		}
	}
	if len(ids) == 0 {
		return ring.Done{Note: "already gone"}, nil
	}
	err := remove(ctx, ids[0])
	switch {
	case err == nil, cerrdefs.IsNotFound(err):
		return ring.Done{}, nil
	case strings.Contains(err.Error(), "is in use by"):
		return ring.Done{InUse: true, Note: "a service names it"}, nil
	}
	return ring.Done{}, fault("cannot remove "+a.Name+" of the swarm", "", err)
}

// networkOff removes a network of an app. One that tasks are still on is so for a moment more.
func (s *Swarm) networkOff(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	done, err := s.docker.removeNetwork(ctx, m, a)
	if err == nil {
		return done, nil
	}
	switch text := err.Error(); {
	case cerrdefs.IsNotFound(err), strings.Contains(text, "not found"): // a node lists it for a while longer
		return ring.Done{Note: "already gone"}, nil
	case strings.Contains(text, "in use by"), strings.Contains(text, "has active endpoints"):
		return ring.Done{InUse: true, Note: "tasks are still on it"}, nil
	}
	return done, err
}

// makeNetwork makes a network of an app, over all nodes.
func (s *Swarm) makeNetwork(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	if a.Network.External != "" {
		return s.docker.makeNetwork(ctx, m, a)
	}
	n, there, err := s.docker.network(ctx, m, a.NetworkName)
	if err != nil {
		return ring.Done{}, err
	}
	switch {
	case there && n.Scope != swarmScope:
		return ring.Done{}, refused(a, ring.CauseNetwork, ring.Conflict, fmt.Sprintf("network %s is of one node and not of the swarm", a.NetworkName), "docker network rm "+a.NetworkName+", or rename the network")
	case there:
		return s.docker.usable(a, n)
	}
	o := swarmNetwork(s.docker.opts.Host, a.App, *a.Network)
	if err := s.docker.allow(a, Request{Key: "network " + a.Network.Key, Body: NetworkRequest{Name: a.NetworkName, Options: o}}); err != nil {
		return ring.Done{}, err
	}
	if _, err := m.NetworkCreate(ctx, a.NetworkName, o); err != nil {
		return ring.Done{}, notMade(a, err)
	}
	return ring.Done{}, nil
}
