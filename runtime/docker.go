package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/docker/docker/client"
	"github.com/docker/go-connections/sockets"

	"github.com/gitring/gitring/ring"
)

// DefaultURL is where an engine is looked for when none is given.
const DefaultURL = "unix:///var/run/docker.sock"

// refreshAfter is the age at which an inspected container is inspected again
// although nothing points at a change.
const refreshAfter = 10 * time.Minute

// Options say which engine, for which host, and where its files are.
type Options struct {
	URL        string   // of the engine; "" is DefaultURL
	Host       string   // the value of the owner label
	Sources    []string // the names of those that are followed
	ContentDir string   // absolute: <state>/content
	DataRoot   string   // absolute: below it lie the apps' data folders
	// ContentAt is the folder of one content; nil is below ContentDir.
	ContentAt func(hash string) string
	// Placed are further folders in which gitring lays out what containers mount.
	Placed []string
	// SamePaths are folders that must be the same ones inside and outside where
	// gitring itself runs in a container. Until the engine says that they are,
	// every call is an error.
	SamePaths []string
	// DockerConfig is the file with registry credentials, or its folder; "" is
	// no credentials.
	DockerConfig string
	// Lookup is what a host's name leads to; nil asks the resolver of this host.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Helpers are credential helpers by patterns of registries. They come before the file.
	Helpers map[string]string
	// SeedDir is where it is written down what was last written into seeded
	// folders: <state>/seeds. "" refuses seeds.
	SeedDir string
	// Open gives the value that a sealed one stands for; nil knows none, and an
	// action that holds one is an error.
	Open func(ring.Sealed) (string, error)
	// Values are all values of the host's env folder for an app, with the names of
	// their variables, to be struck out of logs that are kept; nil knows none.
	Values func(app string) (map[string]string, error)
	// Printed is what gitring's own checks of a container printed that failed when they were
	// asked last, by their names; nil knows none.
	Printed func(container string) map[string]string
	// Front is the program that fronts run; zero makes none.
	Front FrontBuild
	// Lease is as whom a manager of a swarm asks for the lease of its cluster.
	Lease LeaseOptions
	// Allow judges what is about to be sent to the engine for an app, a Request,
	// with its sealed values still closed; nil allows everything. A *ring.Refusal
	// among its error's causes reaches the author.
	Allow func(app string, payload any) error
	// ImageRules are the host's rules about signatures of images; nil verifies nothing.
	ImageRules ImageRules
	// Verified reports whether an image, as a commit names it and as it is pinned, may be
	// fetched and run by the rules of this moment; nil lets all.
	Verified func(written, pin string) bool
	// Shared are the folders of the host that the policy lets containers of several apps
	// write to, for the app that asks, whether one is there now or not; nil is none.
	Shared func(app *ring.App) []string
	// OwnerHost says that the signers own the host: a network that takes of the host's
	// own is made, and told, instead of refused.
	OwnerHost func() bool
	// Progress, if set, is called with how far a step is, by Action.Target: at
	// most twice a second for each pull. It must not block.
	Progress func(target, says string)
	// Poke, if set, is called with the ID of a container that an event named,
	// or "" when events may have been missed. It must not block.
	Poke func(containerID string)
	// Asked, if set, is told of each request to the engine: method and path without names, and
	// the status of the answer, or "error" where there was none. It must not block.
	Asked func(call, code string)
	Log   *slog.Logger // nil logs nothing
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Docker is a Docker engine. Its methods may be called from many goroutines; Look by one at a time.
type Docker struct {
	opts     Options
	connect  func() (engine, error)
	calls    *calls
	parallel int // inspects at once

	mu     sync.Mutex
	engine engine // guarded by mu; nil until the API version was agreed on
	sound  bool   // guarded by mu; see mismatch
	inside bool   // guarded by mu; this engine runs us too, and of the host's paths we see SamePaths only

	adopted map[string]bool // guarded by mu: see Adopts

	self   func() string                        // the ID of the container we run in, "" for none
	unseen func(context.Context, engine) string // see hidden
	nets   func(context.Context, engine) (hostNets, error)
	timers func() bool // whether Podman has systemd, which is its clock of checks

	cache  cache
	deaths deaths
	host   hostMemory // of the one goroutine that looks

	seeding sync.Mutex   // held while files are written into a data folder
	loading sync.Mutex   // held while the image of fronts is loaded
	making  sync.RWMutex // read-held while a container is made, held while live folders are swept

	registries registries
	verifying  verifying
	certs      string // where the certificates of registries lie
	surveys    surveys
	lately     lately
	overruns   overruns
}

// Dial is an engine at o.URL. One that does not answer now is no error: every
// call tries again, and says so. One that answers and is too old, or says that
// our own container is not sound, is.
func Dial(ctx context.Context, o Options) (*Docker, error) {
	if o.URL == "" {
		o.URL = DefaultURL
	}
	counts := &calls{told: o.Asked}
	d := newDocker(o, counts, func() (engine, error) { return dialHTTP(o.URL, counts) })
	if _, err := d.connect(); err != nil {
		return nil, fmt.Errorf("cannot use engine %s: %w", o.URL, err)
	}
	if _, err := d.ready(ctx); err != nil {
		if !away(err) {
			return nil, err
		}
		d.opts.Log.Warn("engine did not answer", "url", o.URL, "reason", err.Error())
	}
	return d, nil
}

// Over is Docker over an engine that is no process of any host, such as that of
// enginetest: the same code, so the same calls in the same order. Its containers have
// no processes, it has no host, and inspects go one at a time, so that equal calls give
// equal results.
func Over(e engine, o Options) *Docker {
	o.URL = "memory"
	d := newDocker(o, &calls{}, func() (engine, error) { return e, nil })
	d.unseen = func(context.Context, engine) string { return "" }
	d.nets = func(context.Context, engine) (hostNets, error) { return hostNets{}, nil }
	d.parallel = 1
	return d
}

func newDocker(o Options, counts *calls, connect func() (engine, error)) *Docker {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poke == nil {
		o.Poke = func(string) {}
	}
	d := &Docker{opts: o, connect: connect, calls: counts, parallel: 8, self: ownContainer, timers: bootedBySystemd, cache: newCache(), verifying: make(verifying, verifyAtOnce), certs: certsFolder}
	d.unseen, d.nets = d.hidden, d.hostNets
	return d
}

// dialHTTP makes a client whose requests are counted. Nothing is sent yet.
func dialHTTP(url string, counts *calls) (engine, error) {
	at, err := client.ParseHostURL(url)
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{MaxIdleConns: 8, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second}
	if err := sockets.ConfigureTransport(tr, at.Scheme, at.Host); err != nil {
		return nil, err
	}
	c, err := client.NewClientWithOpts(
		client.WithHost(url),
		// After WithHost, which accepts a plain transport only.
		client.WithHTTPClient(&http.Client{Transport: counted{tr, counts}, CheckRedirect: client.CheckRedirect}),
	)
	if err != nil {
		return nil, err
	}
	return closing{c, tr}, nil
}

// closing closes the connections that the client cannot see behind the counter.
type closing struct {
	*client.Client
	tr *http.Transport
}

// runCheck has Podman run the check of a container, and is what the container is by then.
func (c closing) runCheck(ctx context.Context, id string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://d/v5.1.0/libpod/containers/"+id+"/healthcheck", nil)
	if err != nil {
		return "", err
	}
	res, err := c.tr.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("cannot run the check of container %s: Podman says %d", short(id), res.StatusCode)
	}
	var said struct{ Status string }
	err = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&said)
	return said.Status, err
}

func (c closing) Close() error {
	c.tr.CloseIdleConnections()
	return c.Client.Close()
}

// ready is the engine with its API version agreed on, and known to share our
// paths. The agreement is kept until forget.
func (d *Docker) ready(ctx context.Context) (engine, error) {
	d.mu.Lock()
	e := d.engine
	d.mu.Unlock()
	if e != nil {
		return e, nil
	}
	e, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("cannot use engine %s: %w", d.opts.URL, err)
	}
	ping, err := e.Ping(ctx)
	if err != nil {
		return nil, &ring.EngineError{Err: fmt.Errorf("cannot reach the engine: %w", err)}
	}
	e.NegotiateAPIVersionPing(ping)
	v, err := e.ServerVersion(ctx)
	if err != nil {
		return nil, fault("cannot ask the engine's version", "", err)
	}
	if err := unfit(d.opts.URL, ping, v); err != nil {
		return nil, &ring.EngineError{Permanent: true, Err: err}
	}
	if e, err = d.spokenTo(ctx, e, v); err != nil {
		return nil, err
	}
	if err := d.mismatch(ctx, e); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine = e // of two that came here at once, the later; they are the same
	return e, nil
}

// forget makes the next call agree on the API version anew: the engine may
// have come back as another version.
func (d *Docker) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine = nil
}

// Calls are the requests sent so far, by method and path without ids.
func (d *Docker) Calls() map[string]int { return d.calls.counted() }

// Close closes idle connections. Calls under way end by their contexts.
func (d *Docker) Close() error {
	d.mu.Lock()
	e := d.engine
	d.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.Close()
}

// EngineVersion is what the engine says of itself.
type EngineVersion struct {
	Version string // such as 20.10.24
	API     string // spoken with it
	OS      string
	Arch    string
}

// Version asks the engine.
func (d *Docker) Version(ctx context.Context) (EngineVersion, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return EngineVersion{}, err
	}
	v, err := e.ServerVersion(ctx)
	if err != nil {
		return EngineVersion{}, fault("cannot ask the engine's version", "", err)
	}
	return EngineVersion{Version: v.Version, API: e.ClientVersion(), OS: v.Os, Arch: v.Arch}, nil
}
