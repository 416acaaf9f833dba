package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// create makes an instance, joins its networks and, when asked to, starts it.
// When a later part fails the container stays, under its name, and is in
// Done.Instance: the next look sees it, and the step repeated finishes it.
func (d *Docker) create(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	if a.Of == nil || a.Want == nil {
		return ring.Done{}, errors.New("cannot create container: the action names no service")
	}
	if a.Version == "" {
		a.Version = a.Want.Version
	}
	p, err := containerPayload(d.opts.Host, a, folders{d.opts.ContentDir, d.opts.DataRoot})
	if err != nil {
		return ring.Done{}, fmt.Errorf("cannot create container: %w", err)
	}
	cannot := "cannot create container " + p.Name
	if err := d.prepare(ctx, e, cannot, p); err != nil {
		return ring.Done{}, err
	}
	// By name, because it can be listed before its ID is known here.
	defer d.cache.hold(p.Name)()
	id, note, err := d.createOrAdopt(ctx, e, a, p)
	if err != nil {
		return ring.Done{}, err
	}
	done := ring.Done{Instance: id, Note: note}
	if note != "" { // adopted: what it has already joined is not known yet
		return done, d.finish(ctx, e, a, id, a.Start)
	}
	for _, j := range p.Joins {
		if err := e.NetworkConnect(ctx, j.Network, id, j.Settings); err != nil {
			return done, fault(fmt.Sprintf("cannot join container %s to network %s", p.Name, j.Network), ring.CauseNetwork, err)
		}
	}
	if !a.Start {
		return done, nil
	}
	return done, d.run(ctx, e, p.Name, id)
}

// prepare has everything here that the payload mounts.
func (d *Docker) prepare(ctx context.Context, e engine, cannot string, p payload) error {
	for _, m := range p.Contents {
		if err := haveContent(d.opts.ContentDir, m); err != nil {
			return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
		}
	}
	for _, rel := range p.Data {
		if err := makeData(d.opts.DataRoot, rel); err != nil {
			return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("%s: %w", cannot, err)}
		}
	}
	for _, v := range p.Volumes {
		// An existing volume is left as it is, whoever made it.
		if _, err := e.VolumeCreate(ctx, v); err != nil {
			return fault("cannot create volume "+v.Name, ring.CauseFiles, err)
		}
	}
	return nil
}

// createOrAdopt makes the container; the name is the lock. A note says that one
// of ours held the name already.
func (d *Docker) createOrAdopt(ctx context.Context, e engine, a ring.Action, p payload) (id, note string, err error) {
	made, err := e.ContainerCreate(ctx, p.Config, p.Host, p.Net, nil, p.Name)
	switch {
	case err == nil:
		return made.ID, "", nil
	case cerrdefs.IsConflict(err):
		return d.adopt(ctx, e, a, p.Name, err)
	}
	return "", "", fault("cannot create container "+p.Name, ring.CauseCreate, err)
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
		return "", "", refused(a, ring.CauseCreate, ring.Conflict,
			fmt.Sprintf("the name %s is held by another container (%s)", name, short(c.ID)),
			"remove or rename that container; gitring does not touch it")
	}
	if in.State == ring.StateRemoving || in.State == ring.StateDead {
		return "", "", &ring.EngineError{Err: fmt.Errorf("%s: an earlier one is still being removed", cannot)}
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
	return d.run(ctx, e, strings.TrimPrefix(c.Name, "/"), c.ID)
}

// joinMissing connects c to the networks of its service that it has not joined,
// and joins anew those that were removed and made again under their names,
// because a container remembers networks by ID. Where the action does not carry
// the service, c's own networks are all that is known: no further one is
// joined, for it might be one that the service must not be on.
func (d *Docker) joinMissing(ctx context.Context, e engine, a ring.Action, c container.InspectResponse) error {
	joins := joinedBy(c)
	if a.Want != nil {
		var err error
		if joins, err = attachments(a); err != nil {
			return fmt.Errorf("cannot join container: %w", err)
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
		e := &network.EndpointSettings{IPAMConfig: at.IPAMConfig}
		for _, alias := range at.Aliases {
			if alias != short(c.ID) { // the engine adds it by itself
				e.Aliases = append(e.Aliases, alias)
			}
		}
		js = append(js, join{name, e})
	}
	return js
}

// joined says that c is on the network that has this name now. An endpoint on
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

// run starts a container that the caller knows to be ours. Started already is fine.
func (d *Docker) run(ctx context.Context, e engine, name, id string) error {
	defer d.cache.hold(id)()
	if err := e.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return fault("cannot start container "+name, ring.CauseCreate, err)
	}
	return nil
}
