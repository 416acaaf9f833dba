package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// create makes an instance, joins its networks and, when asked to, starts it
// and runs its post_start hooks. When a later part fails the container stays, under its
// name, and is in Done.Instance: the next look sees it, and the step repeated finishes it.
func (d *Docker) create(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	if a.Of == nil || a.Want == nil {
		return ring.Done{}, errors.New("cannot create container: the action names no service")
	}
	if a.Version == "" {
		a.Version = a.Want.Version
	}
	if a.Want.FrontOf == "" {
		if err := d.mayUse(a.Want.Spec.Image, a.Want.Pin.Image); err != nil {
			return ring.Done{}, err
		}
	}
	if err := d.imageOf(ctx, e, &a); err != nil {
		return ring.Done{}, err
	}
	at, err := d.siteOf(ctx, e, a)
	if err != nil {
		return ring.Done{}, err
	}
	p, err := containerPayload(at, a)
	if err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseConfig, Err: fmt.Errorf("cannot create container: %w", err)}
	}
	o := d.opener()
	done, err := d.createAndStart(ctx, e, a, p, o)
	return done, o.error(err)
}

// site is where payloads are built for.
func (d *Docker) site(e engine) site {
	return site{host: d.opts.Host, content: d.opts.ContentDir, at: d.opts.ContentAt, data: d.opts.DataRoot, api: e.ClientVersion()}
}

// imageOf has the image say its VOLUMEs and its ID where the plan does not know
// them, as one of an earlier release does not. Without the first the engine would make
// anonymous ones, which the next instance does not get.
func (d *Docker) imageOf(ctx context.Context, e engine, a *ring.Action) error {
	if a.Want.FrontOf != "" {
		return d.frontImageOf(ctx, e, a)
	}
	if a.Want.Image.Known && a.Want.Image.ID != "" {
		return nil
	}
	i, err := e.ImageInspect(ctx, a.Want.Pin.Image)
	if err != nil {
		return fault("cannot inspect image "+a.Want.Pin.Image, ring.CauseImagePull, err)
	}
	want := *a.Want
	want.Image = saysOfItself(i)
	a.Want = &want
	return nil
}

func (d *Docker) createAndStart(ctx context.Context, e engine, a ring.Action, p payload, o *opener) (ring.Done, error) {
	if err := d.noStranger(ctx, e, a); err != nil {
		return ring.Done{}, err
	}
	d.making.RLock() // what is placed for it is not swept before it is there
	defer d.making.RUnlock()
	told, err := d.placeLive(a)
	if err != nil {
		return ring.Done{}, err
	}
	p.Told = append(p.Told, told...)
	mounts, err := d.ofPayload(ctx, e, a, p)
	if err != nil {
		return ring.Done{}, err
	}
	if err := mounts.mayMount(); err != nil {
		return ring.Done{}, err
	}
	if err := d.mayBegin(ctx, e, a, p); err != nil {
		return ring.Done{}, err
	}
	if err := d.prepare(ctx, e, a, p); err != nil {
		return ring.Done{}, err
	}
	var drift []string
	if a.Start {
		if drift, err = d.seeds(a); err != nil {
			return ring.Done{Drift: drift}, err
		}
	}
	// By name, because it can be listed before its ID is known here.
	defer d.cache.hold(p.Name)()
	id, note, err := d.createOrAdopt(ctx, e, a, p, o, mounts)
	if err != nil {
		return ring.Done{}, err
	}
	done := ring.Done{Instance: id, Note: note, Told: p.Told, Drift: drift, Kept: d.given(a, p)}
	if note != "" { // adopted: what it has already joined is not known yet
		return done, d.finish(ctx, e, a, id, a.Start)
	}
	for i, j := range p.Networks {
		if i == 0 {
			continue // it was in the create call
		}
		if err := e.NetworkConnect(ctx, j.Network, id, j.Settings); err != nil {
			return done, fault(fmt.Sprintf("cannot join container %s to network %s", p.Name, j.Network), ring.CauseNetwork, err)
		}
	}
	if !a.Start {
		return done, nil
	}
	if err := mounts.mayMount(); err != nil {
		return done, err
	}
	return done, d.run(ctx, e, instanceOf(p, id), a)
}

// given is what the instance of p was given that outlives it.
func (d *Docker) given(a ring.Action, p payload) []ring.Kept {
	var all []ring.Kept
	for _, name := range p.kept() {
		all = append(all, ring.Kept{App: a.App, Name: name, At: d.opts.Now().UTC()})
	}
	return all
}

// prepare has everything here that the payload mounts, and nothing made anew
// that was there before.
func (d *Docker) prepare(ctx context.Context, e engine, a ring.Action, p payload) error {
	cannot := "cannot create container " + p.Name
	if err := d.keep(ctx, e, a, p); err != nil {
		return err
	}
	for _, m := range p.Contents {
		if err := haveContent(filepath.Dir(d.contentAt(m.Source)), m); err != nil {
			return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
		}
	}
	for _, rel := range p.Data {
		if err := makeData(p.DataRoot, rel); err != nil {
			return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
		}
	}
	if p.Front {
		if err := d.haveFront(a, p); err != nil {
			return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
		}
	}
	for _, v := range p.Volumes {
		if err := d.haveVolume(ctx, e, a, v); err != nil {
			return err
		}
	}
	return nil
}

// haveVolume makes a volume unless one of that name is there: an existing one
// is left as it is, whoever made it. An external one is never made.
func (d *Docker) haveVolume(ctx context.Context, e engine, a ring.Action, v wantedVolume) error {
	_, err := e.VolumeInspect(ctx, v.Name)
	switch {
	case err == nil:
		return nil
	case !cerrdefs.IsNotFound(err):
		return fault("cannot inspect volume "+v.Name, ring.CauseFiles, err)
	case v.External:
		r := gone(a, fmt.Sprintf("volume %s is external and not on this host", v.Name),
			"docker volume create "+v.Name+", or take external out, and gitring makes it")
		r.Refusal.Code = ring.BadValue
		return r
	}
	if err := d.allow(a, v.request()); err != nil {
		return err
	}
	if _, err := e.VolumeCreate(ctx, v.Create); err != nil {
		return fault("cannot create volume "+v.Name, ring.CauseFiles, err)
	}
	return nil
}

// allow asks whether r may be sent. Its no is final for this plan.
func (d *Docker) allow(a ring.Action, r Request) error {
	if d.opts.Allow == nil {
		return nil
	}
	r.App, r.Service = a.Of, a.Want
	err := d.opts.Allow(a.App, r)
	if err == nil {
		return nil
	}
	no := &ring.EngineError{Cause: ring.CauseConfig, Permanent: true, Err: err}
	if errors.As(err, &no.Refusal) {
		return no
	}
	return refused(a, ring.CauseConfig, ring.PolicyDenied, fmt.Sprintf("the policy of this host denies the %s: %v", r.Key, err),
		"change the Compose file, or the policy in the host's configuration")
}

// createOrAdopt makes the container; the name is the lock. A note says that one
// of ours held the name already.
func (d *Docker) createOrAdopt(ctx context.Context, e engine, a ring.Action, p payload, o *opener, mounts *hostMounts) (id, note string, err error) {
	cannot := "cannot create container " + p.Name
	if err := d.allow(a, p.request()); err != nil {
		return "", "", err
	}
	if o.payload(p); o.err != nil {
		return "", "", ofHost(a, ring.CauseConfig, fmt.Sprintf("%s: %v", cannot, o.err),
			"bring back the key or the value, or push what this host can open")
	}
	if err := mounts.mayMount(); err != nil { // prepare took its time
		return "", "", err
	}
	made, err := e.ContainerCreate(ctx, p.Config, p.Host, p.first(), p.Platform, p.Name)
	switch {
	case err == nil:
		return made.ID, "", nil
	case cerrdefs.IsConflict(err):
		return d.adopt(ctx, e, a, p.Name, err)
	case strings.Contains(err.Error(), "No such container"):
		// One that it is tied to is gone; the engine calls that a bad request. The
		// next look knows, and names another.
		return "", "", &ring.EngineError{Cause: ring.CauseCreate, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	return "", "", faultOf(a, cannot, ring.CauseCreate, err)
}

// first is the one network that the create call may name.
func (p payload) first() *network.NetworkingConfig {
	if len(p.Networks) == 0 {
		return nil
	}
	j := p.Networks[0]
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{j.Network: j.Settings}}
}

// adopt finds out who holds the name. The full version label counts: 8 digits
// in a name can be equal by chance.
func (d *Docker) adopt(ctx context.Context, e engine, a ring.Action, name string, taken error) (id, note string, err error) {
	cannot := "cannot create container " + name
	c, err := e.ContainerInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return "", "", &ring.EngineError{Err: fmt.Errorf("%s: the name is in use and its holder is not there yet: %w", cannot, taken)}
	}
	if err != nil {
		return "", "", fault(cannot, "", err)
	}
	if c.ContainerJSONBase == nil || c.Config == nil || strings.TrimPrefix(c.Name, "/") != name {
		return "", "", &ring.EngineError{Err: fmt.Errorf("%s: the name is in use", cannot)}
	}
	in := instance(c)
	same := c.Config.Labels[labelHost] == d.opts.Host && in.App == a.App && in.Service == a.Service &&
		c.Config.Labels[labelSlot] == strconv.Itoa(a.Slot) && in.Version == a.Version
	if !same {
		return "", "", d.heldBy(a, name, c)
	}
	if in.State == ring.StateRemoving || in.State == ring.StateDead {
		return "", "", &ring.EngineError{Err: fmt.Errorf("%s: an earlier one is still being removed", cannot)}
	}
	if !slices.Equal(in.Joined, ownerIDs(a)) {
		return "", "", &ring.EngineError{Cause: ring.CauseCreate, Err: fmt.Errorf(
			"%s: an earlier one (%s) is there, which joins a container that was replaced since; it has to go first", cannot, short(c.ID))}
	}
	return c.ID, "already present", nil
}

// finish joins the networks that an existing container lacks and, when asked
// to, starts it.
func (d *Docker) finish(ctx context.Context, e engine, a ring.Action, id string, start bool) error {
	c, err := d.ours(ctx, e, "cannot finish container", id)
	if err != nil {
		return err
	}
	if err := d.joinMissing(ctx, e, a, c); err != nil {
		return err
	}
	if !start || c.State != nil && c.State.Running {
		return nil
	}
	if err := d.bindsThere(a, c); err != nil {
		return err
	}
	if err := d.mayStart(ctx, e, a, c); err != nil {
		return err
	}
	return d.run(ctx, e, inspected(c, a), a)
}

// mayStart looks at the paths that a container mounts, right before it is started
// again: the engine follows them anew.
func (d *Docker) mayStart(ctx context.Context, e engine, a ring.Action, c container.InspectResponse) error {
	mounts, err := d.ofContainer(ctx, e, a, c)
	if err != nil {
		return err
	}
	return mounts.mayMount()
}

// bindsThere refuses to start again what would find a folder of the host gone:
// for binds in its older form the engine makes an empty one, at every start.
func (d *Docker) bindsThere(a ring.Action, c container.InspectResponse) error {
	if c.HostConfig == nil || c.State == nil || moment(c.State.StartedAt).IsZero() {
		return nil // the first start may make it
	}
	for _, b := range c.HostConfig.Binds {
		source, _, _ := strings.Cut(b, ":")
		if d.missing(source) {
			return goneFolder(a, fmt.Sprintf("folder %s of container %s", source, strings.TrimPrefix(c.Name, "/")), source)
		}
	}
	return nil
}

// joinMissing connects c to the networks of its service that it has not joined,
// and joins anew those that were removed and made again under their names,
// because a container remembers networks by ID. Where the action does not carry
// the service, c's own networks are all that is known: no further one is
// joined, for it might be one that the service must not be on.
func (d *Docker) joinMissing(ctx context.Context, e engine, a ring.Action, c container.InspectResponse) error {
	joins := joinedBy(c)
	if a.Want != nil && c.Config.Labels[labelHost] != "" { // an adopted one stays on what it came with
		var err error
		if joins, err = attachments(a); err != nil {
			return fmt.Errorf("cannot join container: %w", err)
		}
		if !d.site(e).can(FurtherAddresses) {
			for _, j := range joins {
				j.Settings.MacAddress = "" // has a place in the create call alone
			}
		}
	}
	name := strings.TrimPrefix(c.Name, "/")
	for _, j := range joins {
		joined, err := d.joined(ctx, e, c, j.Network)
		if err != nil {
			return err
		}
		if joined {
			continue
		}
		if err := e.NetworkConnect(ctx, j.Network, c.ID, j.Settings); err != nil && !alreadyJoined(err) {
			return fault(fmt.Sprintf("cannot join container %s to network %s", name, j.Network), ring.CauseNetwork, err)
		}
	}
	return nil
}

// joinedBy are the networks that c is on, as it would join them again.
func joinedBy(c container.InspectResponse) []join {
	if c.NetworkSettings == nil || c.HostConfig == nil || !c.HostConfig.NetworkMode.IsUserDefined() {
		return nil
	}
	var js []join
	for _, name := range slices.Sorted(maps.Keys(c.NetworkSettings.Networks)) {
		at := c.NetworkSettings.Networks[name]
		if at == nil {
			continue
		}
		e := &network.EndpointSettings{IPAMConfig: at.IPAMConfig, DriverOpts: at.DriverOpts}
		for _, alias := range at.Aliases {
			if alias != short(c.ID) { // the engine adds it by itself
				e.Aliases = append(e.Aliases, alias)
			}
		}
		js = append(js, join{name, e})
	}
	return js
}

// joined reports whether c is on the network that has this name now. An endpoint on
// an earlier network of the name is taken off.
func (d *Docker) joined(ctx context.Context, e engine, c container.InspectResponse, name string) (bool, error) {
	if c.NetworkSettings == nil {
		return false, nil
	}
	at, ok := c.NetworkSettings.Networks[name]
	if !ok {
		return false, nil
	}
	if at == nil || at.NetworkID == "" || c.State != nil && c.State.Running {
		return true, nil
	}
	n, there, err := d.network(ctx, e, name)
	if err != nil {
		return false, err
	}
	if !there || n.ID == at.NetworkID {
		return true, nil // what is missing, start will tell
	}
	if err := e.NetworkDisconnect(ctx, name, c.ID, true); err != nil {
		return false, fault("cannot leave the former network "+name, ring.CauseNetwork, err)
	}
	return false, nil
}

func alreadyJoined(err error) bool {
	return strings.Contains(err.Error(), "already exists in network") || strings.Contains(err.Error(), "is already attached to network")
}

// run starts a container that the caller knows to be ours, and runs its
// post_start hooks. Started already is fine. One whose hooks fail is stopped
// again: what it was started for is not done.
func (d *Docker) run(ctx context.Context, e engine, c contained, a ring.Action) error {
	if err := d.begin(ctx, e, c, a); err != nil {
		return err
	}
	return d.afterStart(ctx, e, c, a)
}

func (d *Docker) begin(ctx context.Context, e engine, c contained, a ring.Action) error {
	defer d.cache.hold(c.ID)()
	if err := e.ContainerStart(ctx, c.ID, container.StartOptions{}); err != nil {
		return d.startFault(ctx, e, a, "cannot start container "+c.Name, c, err)
	}
	return nil
}
