package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// askAgain is how soon it is looked again whether a person did what a refusal
// says: the app is down until then.
const askAgain = 10 * time.Second

// admit looks whether an app can be carried out beside what is here: at most
// three lists, which apps that are asked about at once share, a glance into its data folders, and one at each stopped container
// that Compose has under its name. Its refusals are not permanent, because a person may do what they say at any moment.
func (d *Docker) admit(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	if a.Of == nil {
		return ring.Done{}, errors.New("cannot admit an app: the action names none")
	}
	b, err := d.survey(ctx, e, a)
	if err != nil {
		return ring.Done{}, err
	}
	told, all := admit(a, b)
	all = append(all, d.adoptable(a, b)...)
	done := ring.Done{Told: told}
	if len(all) == 0 {
		return done, nil
	}
	r := joined(all)
	return done, &ring.EngineError{Cause: ring.CauseConfig, Refusal: r, Err: r, Wait: askAgain}
}

func (d *Docker) survey(ctx context.Context, e engine, a ring.Action) (b beside, err error) {
	ask := lists{volumes: len(mountedVolumes(a.Of)) > 0, networks: len(joinedNetworks(a.Of))+len(bridged(a.Of)) > 0}
	all, err := d.surveys.ask(ctx, a.Asked, ask, func(ctx context.Context, ask lists) (beside, error) { return d.list(ctx, e, ask) })
	if err != nil {
		return b, err
	}
	b = all
	b.folders = map[string]filling{} // what it has besides is shared, and only read
	theirs := slices.DeleteFunc(slices.Clone(b.containers), func(c container.Summary) bool { return !b.foreign(c) })
	if !ask.volumes && len(theirs) == 0 {
		b.volumes = nil // somebody else asked for them
	}
	if b.returning, err = returning(ctx, e, a.App, theirs); err != nil {
		return b, err
	}
	if b.ownerHost = d.ownerHost(); bringsSubnets(a.Of) {
		if b.nets, err = d.nets(ctx, e); err != nil {
			return b, err
		}
	}
	for _, p := range dataPaths(a, d.opts.DataRoot) {
		if b.folders[p], err = glance(p); err != nil {
			return b, &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot look into data folder %s: %w", p, err)}
		}
	}
	return b, nil
}

// bringsSubnets reports whether an app has networks whose subnets it says itself.
func bringsSubnets(app *ring.App) bool {
	return slices.ContainsFunc(app.Networks, func(n ring.Network) bool { return n.External == "" && len(n.Pools) > 0 })
}

// list asks the engine for what is here.
func (d *Docker) list(ctx context.Context, e engine, ask lists) (b beside, err error) {
	b = beside{host: d.opts.Host, self: d.self(), api: e.ClientVersion(), podman: isPodman(e), sources: d.opts.Sources, root: d.opts.DataRoot, adopted: d.adopts()}
	b.containers, err = e.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", composeProject))})
	if err != nil {
		return b, fault("cannot list containers", "", err)
	}
	if ask.volumes || slices.ContainsFunc(b.containers, b.foreign) {
		list, err := e.VolumeList(ctx, volume.ListOptions{})
		if err != nil {
			return b, fault("cannot list volumes", "", err)
		}
		b.volumes = list.Volumes
	}
	if ask.networks {
		if b.networks, err = e.NetworkList(ctx, network.ListOptions{}); err != nil {
			return b, fault("cannot list networks", "", err)
		}
	}
	return b, nil
}

// returning are the stopped ones of a project that the engine will start by
// itself when it starts: "always" means so, also after a stop by hand.
func returning(ctx context.Context, e engine, project string, all []container.Summary) (map[string]bool, error) {
	out := map[string]bool{}
	for _, c := range all {
		if c.Labels[composeProject] != project || ring.State(c.State) == ring.StateRunning {
			continue
		}
		full, err := e.ContainerInspect(ctx, c.ID)
		if cerrdefs.IsNotFound(err) {
			continue // removed since
		}
		if err != nil {
			return nil, fault("cannot inspect container "+nameOf(c), "", err)
		}
		out[c.ID] = full.ContainerJSONBase != nil && full.HostConfig != nil && full.HostConfig.RestartPolicy.IsAlways()
	}
	return out, nil
}

// glance says what is in a data folder. One that is a file holds something, and
// so does one that its program closed to others, as databases do: a daemon that is
// not root cannot look inside.
func glance(folder string) (filling, error) {
	st, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	if err != nil || !st.IsDir() {
		return filled, err
	}
	f, err := os.Open(folder)
	if errors.Is(err, fs.ErrPermission) {
		return filled, nil
	}
	if err != nil {
		return absent, err
	}
	defer func() { _ = f.Close() }() // opened to look only
	_, err = f.ReadDir(1)
	switch {
	case errors.Is(err, io.EOF):
		return empty, nil
	case err != nil:
		return absent, err
	}
	return filled, nil
}

// HoldsData reports whether a data folder is there, and whether it holds anything. In
// doubt it is not there and holds something: then nothing begins beside it unasked.
func HoldsData(folder string) (there, holds bool) {
	f, err := glance(folder)
	if err != nil {
		return false, true
	}
	return f != absent, f == filled
}

// joined is the first refusal, with what else is wrong behind it.
func joined(all []*ring.Refusal) *ring.Refusal {
	r := *all[0]
	if len(all) == 1 {
		return &r
	}
	var more []string
	for _, x := range all[1:] {
		more = append(more, x.Says)
		if x.Owner != r.Owner {
			r.Owner = "" // it alone going mends nothing
		}
	}
	const within = 300 // a line that people still read
	r.Says += fmt.Sprintf(" (and %d more", len(more))
	if list := strings.Join(more, "; "); len(r.Says)+len(list) <= within {
		r.Says += ": " + list
	}
	r.Says += ")"
	return &r
}
