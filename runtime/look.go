package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"

	"github.com/gitring/gitring/ring"
)

// cache is what was inspected, by container ID.
type cache struct {
	mu    sync.Mutex
	known map[string]known   // guarded by mu
	stale map[string]uint64  // guarded by mu: by ID, the mark's number; "" is every container
	marks uint64             // guarded by mu
	held  map[string]int     // guarded by mu: see hold
	sets  map[string]setting // guarded by mu: by ID, see set
	own   map[ownEvent]int   // guarded by mu: see expect
}

// setting is what a step has set of a container; what is nil it left as it was.
type setting struct {
	n      uint64 // of the marks
	policy *container.RestartPolicy
	name   *string
}

// ownEvent is one that a step of ours makes.
type ownEvent struct {
	id     string
	action events.Action
}

// known is an inspected container and the row that it belongs to.
type known struct {
	in    ring.Instance
	row   row
	up    time.Time // see upSince
	asked time.Time
	ears  ears
}

func newCache() cache {
	return cache{
		known: map[string]known{}, stale: map[string]uint64{}, held: map[string]int{},
		sets: map[string]setting{}, own: map[ownEvent]int{},
	}
}

// hold keeps looks from inspecting a container, by ID or name, until release.
// The engine locks a container that it starts or removes, and an inspect would
// wait: a look would take as long as the slowest start. What a look says of it
// is what was there before the step, which is in flight in any case.
func (c *cache) hold(key string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[key]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held[key]--; c.held[key] == 0 {
			delete(c.held, key)
		}
	}
}

// isHeld reports whether looks are kept from a container, by its ID or its name.
func (c *cache) isHeld(id, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id] > 0 || name != "" && c.held[name] > 0
}

// mark makes the next look inspect a container, "" all of them. A look that
// has already begun does not undo it.
func (c *cache) mark(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks++
	c.stale[id] = c.marks
	if id == "" {
		clear(c.own)
	}
}

// has reports whether a look found the container to be this host's.
func (c *cache) has(id string) bool {
	_, _, ok := c.name(id)
	return ok
}

// name is that of a container that a look found to be this host's.
func (c *cache) name(id string) (_, name string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.known[id]
	return id, k.in.Name, ok
}

// set is told what a step has set by now. A look under way may have seen the container before
// that.
func (c *cache) set(id string, s setting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks++
	old := c.sets[id]
	s.n, s.policy, s.name = c.marks, cmp.Or(s.policy, old.policy), cmp.Or(s.name, old.name)
	c.sets[id] = s
	if k, ok := c.known[id]; ok {
		c.known[id] = k.with(s)
	}
}

func (k known) with(s setting) known {
	if s.policy != nil {
		k.in.Policy, k.in.MaxRetries = string(s.policy.Name), s.policy.MaximumRetryCount
	}
	if s.name != nil {
		if k.row.names == "/"+k.in.Name {
			k.row.names = "/" + *s.name // else others gave it more: the next look inspects it
		}
		k.in.Name = *s.name
	}
	return k
}

// expect says that the engine is about to tell of what is ours.
// After a gap in its events nothing is expected any more, and all is inspected.
func (c *cache) expect(e ownEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[e]++
}

// unexpect takes back an expect, and says whether there was one.
func (c *cache) unexpect(e ownEvent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.own[e]
	if n > 1 {
		c.own[e] = n - 1
	} else {
		delete(c.own, e)
	}
	return n > 0
}

func (c *cache) snapshot() snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return snapshot{maps.Clone(c.known), maps.Clone(c.stale), maps.Clone(c.held), c.marks}
}

// snapshot is a copy of the cache as a look begins.
type snapshot struct {
	known map[string]known
	marks map[string]uint64
	held  map[string]int
	last  uint64 // mark
}

func (s snapshot) holds(c container.Summary) bool {
	if s.held[c.ID] > 0 {
		return true
	}
	return slices.ContainsFunc(c.Names, func(name string) bool { return s.held[strings.TrimPrefix(name, "/")] > 0 })
}

// keep replaces what is known and drops the marks that were there before the
// look began; a later mark stays, and so does what was set since.
func (c *cache) keep(k map[string]known, before snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = k
	for id, s := range c.sets {
		switch now, there := k[id]; {
		case s.n <= before.last:
			delete(c.sets, id)
		case there:
			k[id] = now.with(s)
		}
	}
	for e := range c.own {
		if _, there := k[e.id]; !there {
			delete(c.own, e)
		}
	}
	for id, n := range before.marks {
		if c.stale[id] == n {
			delete(c.stale, id)
		}
	}
}

// Look is one observation: one list of this host's containers, adopted ones among them, one of all
// networks, and an inspect of each container that is new, was named by an
// event, or whose row changed, and of few that were not inspected for long.
// Any failure is an error: what was not seen is not empty.
func (d *Docker) Look(ctx context.Context) (ring.Seen, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return ring.Seen{}, err
	}
	d.surveys.drop()
	before := d.cache.snapshot()
	now := d.opts.Now()
	list, err := d.listed(ctx, e)
	if err != nil {
		return ring.Seen{}, err
	}
	nets, err := e.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return ring.Seen{}, fault("cannot list networks", "", err)
	}
	after, err := d.inspect(ctx, e, list, before, now)
	if err != nil {
		return ring.Seen{}, err
	}
	if err := d.going(ctx, before, after); err != nil {
		return ring.Seen{}, err
	}
	listen(procs, after, now)
	d.cache.keep(after, before)
	s := d.seen(now, after, nets)
	s.Memory = d.memory(ctx, e, now)
	s.BoundsProcesses = isPodman(e)
	return s, nil
}

func (d *Docker) seen(now time.Time, all map[string]known, nets []network.Summary) ring.Seen {
	s := ring.Seen{At: now.UTC(), Instances: make([]ring.Instance, 0, len(all)), Networks: make([]ring.SeenNetwork, 0, len(nets))}
	for _, k := range all {
		s.Instances = append(s.Instances, k.in)
	}
	for _, n := range nets {
		s.Networks = append(s.Networks, seenNetwork(d.opts.Host, n))
		if n.Name == network.NetworkBridge {
			s.Engine = n.ID // Docker makes this one anew whenever it starts
		}
	}
	slices.SortFunc(s.Instances, func(a, b ring.Instance) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.Networks, func(a, b ring.SeenNetwork) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return s
}

// inspect is what is known of every listed container after asking for those
// that need it. One that is gone meanwhile is left out, because the engine says so.
func (d *Docker) inspect(ctx context.Context, e engine, list []container.Summary, before snapshot, now time.Time) (map[string]known, error) {
	after := make(map[string]known, len(list))
	var mu sync.Mutex // guards after while the group runs
	var g errgroup.Group
	g.SetLimit(d.parallel)
	ask := due(list, before, now)
	for _, c := range list {
		if !ask[c.ID] {
			k, ok := before.known[c.ID]
			k.up = upSince(c.Status, k.up, now)
			switch {
			case !ok:
				k = known{in: made(c)}
			case before.holds(c):
				k.row = row{} // unlike any: the next look that may inspects it
			}
			mu.Lock()
			after[c.ID] = k
			mu.Unlock()
			continue
		}
		g.Go(func() error {
			full, err := e.ContainerInspect(ctx, c.ID)
			if cerrdefs.IsNotFound(err) {
				return nil
			}
			if err == nil && full.ContainerJSONBase == nil {
				err = errors.New("the engine's answer is empty")
			}
			if err != nil {
				return fault(fmt.Sprintf("cannot inspect container %s", short(c.ID)), "", err)
			}
			in := instance(full)
			in.Writes = append(outlived(full.Mounts, d.opts.DataRoot), hostPorts(full.HostConfig)...)
			d.deaths.tell(&in, stopSignal(full))
			mu.Lock()
			defer mu.Unlock()
			after[c.ID] = known{
				in: in, row: rowOf(c), up: upSince(c.Status, time.Time{}, now), asked: now, ears: earsOf(full, before.known[c.ID]),
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return after, nil
}

// due are the containers to inspect at this look. Those that are only old are
// spread: one in a hundred per look, the oldest first, so that a quiet look
// over a hundred containers costs three calls.
func due(list []container.Summary, before snapshot, now time.Time) map[string]bool {
	ask := map[string]bool{}
	_, all := before.marks[""]
	var old []string
	for _, c := range list {
		k, ok := before.known[c.ID]
		_, marked := before.marks[c.ID]
		switch {
		case before.holds(c) && (ok || fresh(c)):
			// Not now; see hold.
		case !ok, all, marked, k.row != rowOf(c), restarted(c.Status, k.up, now):
			ask[c.ID] = true
		case now.Sub(k.asked) >= refreshAfter:
			old = append(old, c.ID)
		}
	}
	slices.SortFunc(old, func(a, b string) int {
		return cmp.Or(before.known[a].asked.Compare(before.known[b].asked), cmp.Compare(a, b))
	})
	for _, id := range old[:min(len(old), (len(list)+99)/100)] {
		ask[id] = true
	}
	return ask
}

// fresh reports whether a container is one that we make at this moment.
func fresh(c container.Summary) bool {
	return ring.State(c.State) == ring.StateCreated || ring.State(c.State) == ring.StateRunning
}

// made is a container of ours that is being made, as far as the list tells. The
// engine has not said that it was started, so it was not.
func made(c container.Summary) ring.Instance {
	in := ring.Instance{
		ID: c.ID, State: ring.StateCreated, Created: time.Unix(c.Created, 0).UTC(), Image: c.Image,
		Addresses: map[string]string{}, Policy: string(container.RestartPolicyDisabled),
	}
	for _, name := range c.Names {
		in.Name = strings.TrimPrefix(name, "/")
	}
	labelled(&in, c.Labels)
	if c.NetworkSettings != nil {
		for name, e := range c.NetworkSettings.Networks {
			in.Addresses[name] = address(e)
		}
	}
	return in
}

// short is a container's ID as people read it.
func short(id string) string {
	if len(id) < 12 {
		return id
	}
	return id[:12]
}
