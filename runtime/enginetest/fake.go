package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
)

// Fake has the controls of an engine in memory. Its zero value is of no use; New
// makes one.
type Fake struct {
	mem *Client
}

// API is the version of the Engine API that it speaks.
const API = "1.41"

// New is an empty engine. now is its clock; nil is time.Now.
func New(now func() time.Time) *Fake {
	if now == nil {
		now = time.Now
	}
	m := &Client{
		now: now, ops: map[string]int{},
		containers: map[string]*fakeContainer{}, networks: map[string]*network.Inspect{}, volumes: map[string]map[string]string{},
		images: map[string]*fakeImage{}, registry: map[string]Image{}, execs: map[string]*fakeExec{},
		pools: 30, memory: 8 << 30,
	}
	for _, name := range []string{network.NetworkBridge, network.NetworkHost, network.NetworkNone} {
		m.addNetwork(name, network.CreateOptions{Driver: name})
	}
	return &Fake{mem: m}
}

// Client is the engine as one who uses it sees it, to be given to runtime.Over.
func (f *Fake) Client() *Client { return f.mem }

// Program is what a faked container does when a command runs in it: its exit
// code and output. f is for its controls only (Exit, SetHealth, …).
type Program func(f *Fake, id string, argv []string) (exit int, output string)

// Command is a command in a container, as the engine is asked for it.
type Command struct {
	Argv             []string
	User, WorkingDir string
	Env              []string
	Privileged       bool
}

// Image is an image that a registry has, or this host.
type Image struct {
	Name string // name:tag
	// Digest is the registry's, "sha256:…"; "" for an image of this host only.
	Digest string
	// Platform is os/arch; "" is one that the image does not tell. Others are
	// further ones of the same digest, in the registry's index.
	Platform string
	Others   []string
	// Programs are the files in it that can be run; none means that any can.
	Programs []string
	// Logs is what a container of it says at each start.
	Logs string
	// Exec answers commands in its containers; nil exits 0 without output.
	Exec Program
	// Command, if set, answers them in the place of Exec, and is told all of the
	// command.
	Command func(f *Fake, id string, c Command) (exit int, output string)
	// Signal is told of each signal that its containers are sent; nil ignores them.
	Signal func(f *Fake, id, signal string)
	// Volumes are the paths of its VOLUME instructions.
	Volumes []string
	// Labels are those of its LABEL instructions.
	Labels map[string]string
	// Refuse, for an image of the registry, is the registry's answer: an error
	// of containerd/errdefs, or any other.
	Refuse error
}

// AddImage puts an image on this host and returns its ID.
func (f *Fake) AddImage(i Image) string {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	return f.mem.addImage(i).id
}

// AddRemote puts an image into the registry.
func (f *Fake) AddRemote(i Image) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.registry[i.Name] = i
}

// DropImage removes an image from this host, as somebody's prune would.
func (f *Fake) DropImage(name string) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if i := f.mem.image(name); i != nil {
		for k, v := range f.mem.images {
			if v == i {
				delete(f.mem.images, k)
			}
		}
	}
}

// Fail makes calls fail: fault gets the name of the call, such as
// ContainerStart, and how many of that name there were, this one included. An
// error as before means that nothing happened; as after, that it did and the
// answer was lost. nil ends it.
func (f *Fake) Fail(fault func(op string, n int) (before, after error)) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.fault = fault
}

// Down makes the engine not answer, and ends its events, until it is up again.
// Containers go on; an engine that was restarted is another matter: Reboot.
func (f *Fake) Down(down bool) {
	f.mem.mu.Lock()
	f.mem.down = down
	var ended []*listener
	if down {
		ended, f.mem.listeners = f.mem.listeners, nil
	}
	f.mem.mu.Unlock()
	for _, l := range ended {
		l.end(ErrDown)
	}
}

// Reboot ends every process with code 255 and starts again those that ran and
// whose restart policy is unless-stopped, and those that ever ran with always,
// as an engine does after the machine.
func (f *Fake) Reboot() {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if n := f.mem.network(network.NetworkBridge); n != nil { // Docker makes it anew
		delete(f.mem.networks, n.ID)
		f.mem.addNetwork(n.Name, network.CreateOptions{Driver: n.Driver})
	}
	for _, c := range f.mem.sorted() {
		ran := c.c.State.Running
		if ran {
			f.mem.end(c, 255, false)
		}
		p := c.policy()
		if p.IsUnlessStopped() && ran || p.IsAlways() && c.c.State.StartedAt != never {
			// A network that is gone keeps it down, as the engine's log would say.
			_ = f.mem.begin(c)
		}
	}
}

// Exit ends the process of a container by itself; a restart policy of the
// engine's starts it again.
func (f *Fake) Exit(id string, code int, oom bool) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	c := f.mem.find(id)
	if c == nil || !c.c.State.Running {
		return
	}
	f.mem.end(c, code, oom)
	f.mem.restartByPolicy(c)
}

// SetHealth sets what the engine's own healthcheck says: starting, healthy or
// unhealthy.
func (f *Fake) SetHealth(id, status string) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	c := f.mem.find(id)
	if c == nil {
		return
	}
	c.c.State.Health = &container.Health{Status: status}
	f.mem.emit("health_status: "+status, c)
}

// FailCheck has the engine's own healthcheck fail, and print that.
func (f *Fake) FailCheck(id, printed string) {
	f.SetHealth(id, container.Unhealthy)
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if c := f.mem.find(id); c != nil {
		c.c.State.Health.Log = []*container.HealthcheckResult{{ExitCode: 0, Output: "all is well"}, {ExitCode: 1, Output: printed}}
	}
}

// AddForeign makes a running container that is not ours, with the name and
// labels given and on volumes as docker run -v takes them, and returns its ID.
func (f *Fake) AddForeign(name string, labels map[string]string, volumes ...string) string {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	hc := &container.HostConfig{NetworkMode: network.NetworkNone}
	for _, v := range volumes {
		source, target, _ := strings.Cut(v, ":")
		hc.Mounts = append(hc.Mounts, mount.Mount{Type: mount.TypeVolume, Source: source, Target: target})
	}
	c := f.mem.add(name, &container.Config{Image: "foreign", Labels: labels}, hc, nil)
	f.mem.mounts(c)
	_ = f.mem.begin(c) // without networks and ports nothing can fail
	return c.c.ID
}

// AddNetwork makes a network that is not ours.
func (f *Fake) AddNetwork(name string) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.addNetwork(name, network.CreateOptions{Driver: network.NetworkBridge})
}

// TakeAway removes a container as somebody's docker rm -f would.
func (f *Fake) TakeAway(id string) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if c := f.mem.find(id); c != nil {
		f.mem.drop(c)
	}
}

// Pools sets how many networks the engine's address pools have room for;
// New sets 30.
func (f *Fake) Pools(n int) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.pools = n
}

// Break has the next n containers that are started for the first time be refused
// for ever, as by an engine that was killed while it started them.
func (f *Fake) Break(n int) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.breaks = n
}

// Memory sets what the host has, in bytes; New sets 8 GiB.
func (f *Fake) Memory(n int64) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.memory = n
}

// Inspect is a container as the engine tells it, for tests of payloads.
func (f *Fake) Inspect(ctx context.Context, ref string) (container.InspectResponse, error) {
	return f.mem.ContainerInspect(ctx, ref)
}

// Volumes are the labels of every volume, by name.
func (f *Fake) Volumes() map[string]map[string]string {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	all := map[string]map[string]string{}
	for name, l := range f.mem.volumes {
		all[name] = l
	}
	return all
}

// Ops are how many calls there were, by name.
func (f *Fake) Ops() map[string]int {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	all := map[string]int{}
	for op, n := range f.mem.ops {
		all[op] = n
	}
	return all
}

// Client is the engine: what it holds and how it answers. Its files are one per
// kind of thing.
type Client struct {
	now func() time.Time

	mu         sync.Mutex // guards all below
	down       bool
	fault      func(op string, n int) (before, after error)
	ops        map[string]int
	made       int // things made so far: IDs and addresses come of it
	containers map[string]*fakeContainer
	networks   map[string]*network.Inspect // by ID
	volumes    map[string]map[string]string
	images     map[string]*fakeImage // by every name, digest and ID
	registry   map[string]Image
	execs      map[string]*fakeExec
	pools      int
	breaks     int
	memory     int64
	listeners  []*listener
}

// ErrDown is what every call gives while the engine is down.
var ErrDown = fmt.Errorf("cannot connect to the engine in memory: %w", cerrdefs.ErrUnavailable)

// call is one call of the API: its fault before, its effect, its fault after.
func call[T any](ctx context.Context, m *Client, op string, effect func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	m.mu.Lock()
	m.ops[op]++
	n, fault, down := m.ops[op], m.fault, m.down
	m.mu.Unlock()
	if down {
		return none, ErrDown
	}
	// Outside the lock: the fault may use the fake itself.
	var before, after error
	if fault != nil {
		before, after = fault(op, n)
	}
	if before != nil {
		return none, before
	}
	m.mu.Lock()
	v, err := effect()
	m.mu.Unlock()
	if after != nil {
		return none, after
	}
	return v, err
}

// do is a call without a result.
func (m *Client) do(ctx context.Context, op string, effect func() error) error {
	_, err := call(ctx, m, op, func() (struct{}, error) { return struct{}{}, effect() })
	return err
}

// id is the next one, 64 hex digits.
func (m *Client) id(kind string) string {
	m.made++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, m.made))
	return hex.EncodeToString(sum[:])
}

// Refuse is an error that reads as the engine's and has a class of containerd/errdefs.
func Refuse(class error, format string, v ...any) error {
	return said{fmt.Sprintf(format, v...), class}
}

// said is an error that reads as the engine's and has a class.
type said struct {
	text  string
	class error
}

func (s said) Error() string { return s.text }
func (s said) Unwrap() error { return s.class }

func (m *Client) Ping(ctx context.Context) (types.Ping, error) {
	return call(ctx, m, "Ping", func() (types.Ping, error) { return types.Ping{APIVersion: API, OSType: "linux"}, nil })
}

func (m *Client) NegotiateAPIVersionPing(types.Ping) {}

func (m *Client) ClientVersion() string { return API }

func (m *Client) Close() error { return nil }

func (m *Client) ServerVersion(ctx context.Context) (types.Version, error) {
	return call(ctx, m, "ServerVersion", func() (types.Version, error) {
		return types.Version{Version: "memory", APIVersion: API, Os: "linux", Arch: "amd64"}, nil
	})
}

func (m *Client) Info(ctx context.Context) (system.Info, error) {
	return call(ctx, m, "Info", func() (system.Info, error) { return system.Info{MemTotal: m.memory}, nil })
}
