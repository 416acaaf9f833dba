package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// hostMounts are what one container is about to mount of the host, and what is
// known of everybody else on the engine who may write there.
type hostMounts struct {
	d      *Docker
	a      ring.Action
	mounts []ring.HostMount // without what gitring places itself
	// own are the folders that count as written by the app's containers, whether
	// one is there now or not: all of its data.
	own []string
	// shared are those that containers of any app may have written to before. Unlike own
	// they may be hidden from gitring, so one that is not seen is not taken for empty.
	shared []string
	all    []container.Summary
	// bound are folders of the host that volumes show, by the volume's name.
	bound map[string]string
	// self is the container that is started again, "" for one that is made.
	self string
}

// ofPayload are the mounts of a container that is about to be made.
func (d *Docker) ofPayload(ctx context.Context, e engine, a ring.Action, p payload) (*hostMounts, error) {
	var all []container.MountPoint
	for _, m := range p.Host.Mounts {
		all = append(all, container.MountPoint{Type: m.Type, Name: m.Source, Source: m.Source, Destination: m.Target, RW: !m.ReadOnly})
	}
	for _, b := range p.Host.Binds {
		source, rest, _ := strings.Cut(b, ":")
		target, options, _ := strings.Cut(rest, ":")
		all = append(all, container.MountPoint{Type: mount.TypeBind, Source: source, Destination: target, RW: !slices.Contains(strings.Split(options, ","), "ro")})
	}
	return d.hostMounts(ctx, e, a, "", all, p.Host.VolumesFrom)
}

// ofContainer are the mounts of a container that is about to be started again.
func (d *Docker) ofContainer(ctx context.Context, e engine, a ring.Action, c container.InspectResponse) (*hostMounts, error) {
	return d.hostMounts(ctx, e, a, c.ID, c.Mounts, nil) // what it takes from others is among them
}

func (d *Docker) hostMounts(ctx context.Context, e engine, a ring.Action, self string, points []container.MountPoint, from []string) (*hostMounts, error) {
	h := &hostMounts{d: d, a: a, self: self, bound: map[string]string{}}
	if len(from) == 0 && !slices.ContainsFunc(points, func(m container.MountPoint) bool {
		return m.Type == mount.TypeVolume || m.Type == mount.TypeBind && !d.placed(m.Source)
	}) {
		return h, nil // nothing of the host
	}
	list, err := e.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, fault("cannot list containers", "", err)
	}
	volumes, err := e.VolumeList(ctx, volume.ListOptions{})
	if err != nil {
		return nil, fault("cannot list volumes", "", err)
	}
	for _, v := range volumes.Volumes {
		if folder := boundFolder(v.Options); folder != "" {
			h.bound[v.Name] = folder
		}
	}
	for _, c := range list {
		if slices.ContainsFunc(from, func(f string) bool { return strings.HasPrefix(f+":", c.ID+":") }) {
			points = append(slices.Clip(points), c.Mounts...)
		}
	}
	h.all, h.mounts = list, h.seen(points)
	if a.Of != nil {
		h.own = append(h.own, filepath.Join(cmp.Or(a.Of.DataRoot, d.opts.DataRoot), a.Of.Path))
		if d.opts.Shared != nil {
			h.shared = d.opts.Shared(a.Of)
		}
	}
	return h, nil
}

// placed reports whether a path is where gitring itself lays out what containers mount.
func (d *Docker) placed(source string) bool {
	return d.opts.ContentDir != "" && slices.ContainsFunc(append([]string{d.opts.ContentDir, liveDir(d.opts.ContentDir), frontsDir(d.opts.ContentDir), frontDir(d.opts.ContentDir)}, d.opts.Placed...),
		func(dir string) bool { return lies(source, dir) })
}

// boundFolder is the folder of the host that a volume with these options shows, "" for none.
func boundFolder(opts map[string]string) string {
	words := strings.Split(opts["o"], ",")
	if device := opts["device"]; filepath.IsAbs(device) && (slices.Contains(words, "bind") || slices.Contains(words, "rbind")) {
		return filepath.Clean(device)
	}
	return ""
}

// seen are mounts of the engine as folders of the host.
func (h *hostMounts) seen(points []container.MountPoint) []ring.HostMount {
	var out []ring.HostMount
	for _, m := range points {
		source := ""
		switch m.Type {
		case mount.TypeBind:
			source = m.Source
		case mount.TypeVolume:
			source = h.bound[m.Name]
		}
		if filepath.IsAbs(source) && !h.d.placed(source) {
			out = append(out, ring.HostMount{Source: filepath.Clean(source), Target: filepath.Clean(m.Destination), ReadOnly: !m.RW})
		}
	}
	return out
}

// others are the containers of the engine that may write to the host's folders.
// Ourselves, and those who have the host already, win nothing by a link.
func (h *hostMounts) others() []container.Summary {
	us := h.d.self()
	return slices.DeleteFunc(slices.Clone(h.all), func(c container.Summary) bool {
		return c.ID == h.self || len(us) >= len(short(c.ID)) && strings.HasPrefix(c.ID, us) || slices.ContainsFunc(c.Mounts, givesHost)
	})
}

// givesHost reports whether a mount makes its container root on the host by itself.
func givesHost(m container.MountPoint) bool {
	return m.Type == mount.TypeBind && hasHost(ring.HostMount{Source: filepath.Clean(m.Source), ReadOnly: !m.RW})
}

// hasHost reports whether a folder or socket of the host makes who mounts it root there.
// A socket counts where only root can put one: a file of an app's own data may bear its name.
func hasHost(m ring.HostMount) bool {
	switch filepath.Base(m.Source) {
	case "docker.sock", "podman.sock", "containerd.sock":
		return lies(m.Source, "/run") || lies(m.Source, "/var/run")
	}
	return m.Source == "/" && !m.ReadOnly
}

// written are the folders that containers may write to, by their paths as
// written and without links.
func (h *hostMounts) written() []string {
	folders := slices.Concat(h.own, h.shared)
	for _, c := range h.others() {
		for _, m := range h.seen(c.Mounts) {
			if !m.ReadOnly {
				folders = append(folders, m.Source)
			}
		}
	}
	if !slices.ContainsFunc(h.mounts, hasHost) {
		for _, m := range h.mounts { // it may have run before
			if !m.ReadOnly {
				folders = append(folders, m.Source)
			}
		}
	}
	for _, folder := range slices.Clone(folders) {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folders = append(folders, real)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// walk looks at each path right before the engine mounts it, and returns where
// those lead that do not lead to themselves.
func (h *hostMounts) walk() (leads map[string]string, err error) {
	leads = map[string]string{}
	written := h.written()
	for _, m := range h.mounts {
		to, err := h.one(m.Source, written)
		if err != nil {
			return nil, h.denied(m, err)
		}
		if to = h.named(m.Source, to); to != m.Source {
			leads[m.Source] = to
		}
	}
	return leads, nil
}

// named is a place below the data root by its name there, where the path that led to it lies
// there too: the data root itself may be a link.
func (h *hostMounts) named(source, to string) string {
	root := h.d.opts.DataRoot
	if h.a.Of != nil {
		root = cmp.Or(h.a.Of.DataRoot, root)
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil || root == "" || !lies(source, root) || !lies(to, real) {
		return to
	}
	return filepath.Join(root, strings.TrimPrefix(to, real))
}

func (h *hostMounts) one(source string, written []string) (string, error) {
	due := holding(written, filepath.Dir(source)) != ""
	if !h.d.sees(source) {
		if due {
			return "", &unseenPath{source, "its container does not mount the path"}
		}
		return source, nil
	}
	to, err := walkPath(source, written)
	var planted *plantedLink
	switch {
	case err == nil, errors.As(err, &planted):
		return to, err
	case errors.Is(err, fs.ErrNotExist) && (!due || h.reached(source, written)):
		return to, nil // the engine says so, or makes it
	case due:
		return "", &unseenPath{source, err.Error()}
	}
	return source, nil
}

// reached reports whether the folder that a container may write to is there: then
// what is missing below it is missing, and not hidden from us.
func (h *hostMounts) reached(path string, written []string) bool {
	folder := holding(written, filepath.Dir(path))
	there, err := glance(folder)
	return folder != "" && err == nil && there != absent || slices.Contains(h.own, folder)
}

// sees reports whether a path of the host is the same one here.
func (d *Docker) sees(source string) bool {
	d.mu.Lock()
	seen := !d.inside
	d.mu.Unlock()
	return seen || holding(d.opts.SamePaths, source) != ""
}

// denied is the refusal of a path that may not be mounted as it lies there now.
// A person may take the link away at any moment.
func (h *hostMounts) denied(m ring.HostMount, err error) error {
	says := fmt.Sprintf("mounts.links: %s at %s: %s", m.Source, m.Target, err)
	hint := "remove the link, or mount the folder that it leads to"
	var planted *plantedLink
	if errors.As(err, &planted) && filepath.IsAbs(planted.to) {
		hint = fmt.Sprintf("remove the link %s, or mount %s itself", planted.link, planted.to)
	}
	var unseen *unseenPath
	if errors.As(err, &unseen) {
		hint = fmt.Sprintf("let gitring see %s at the same path, or mount a folder of the app's own", m.Source)
	}
	no := refused(h.a, ring.CauseFiles, ring.PolicyDenied, says, hint)
	if h.a.Want != nil {
		if at := h.a.Want.Place("volumes." + m.Target); at.File != "" {
			no.Refusal.File, no.Refusal.Line = at.File, at.Line
		}
	}
	no.Permanent, no.Wait = false, askAgain
	return no
}

// beside are all mounts of the engine that could turn one of h's into a link,
// those of h among them.
func (h *hostMounts) beside() []ring.HostMounts {
	out := []ring.HostMounts{{Who: "service " + h.a.Service, Mounts: h.mounts}}
	if h.self != "" {
		out = nil // what it mounts itself was judged when it was made
	}
	for _, c := range h.others() {
		mine := c.Labels[labelHost] == h.d.opts.Host && c.Labels[labelApp] == h.a.App && c.Labels[labelService] == h.a.Service
		if mine && (h.self != "" || !runs(c)) {
			continue // it is started by us alone, after a walk
		}
		out = append(out, ring.HostMounts{Who: "container " + nameOf(c), Mounts: h.seen(c.Mounts)})
	}
	for i := range out { // by both names of each folder
		for _, m := range out[i].Mounts {
			real, err := filepath.EvalSymlinks(m.Source)
			if err == nil && real != m.Source {
				m.Source = real
				out[i].Mounts = append(slices.Clip(out[i].Mounts), m)
			}
		}
	}
	return out
}

func runs(c container.Summary) bool {
	switch ring.State(c.State) {
	case ring.StateRunning, ring.StateRestarting, ring.StatePaused:
		return true
	}
	return false
}

// mayMount looks at all paths and asks the policy about what only this host knows:
// where links lead, and who else may write above a folder.
func (h *hostMounts) mayMount() error {
	if len(h.mounts) == 0 {
		return nil
	}
	leads, err := h.walk()
	if err != nil {
		return err
	}
	err = h.d.allow(h.a, Request{Key: "container", Mounts: withLeads(h.mounts, leads), Leads: leads, Beside: h.beside()})
	var no *ring.EngineError
	if errors.As(err, &no) { // another container may be gone soon
		no.Permanent, no.Wait, no.Cause = false, askAgain, ring.CauseFiles
	}
	return err
}

// withLeads are mounts by all names that their folders have.
func withLeads(mounts []ring.HostMount, leads map[string]string) []ring.HostMount {
	out := slices.Clone(mounts)
	for _, m := range mounts {
		if to, ok := leads[m.Source]; ok {
			m.Source = to
			out = append(out, m)
		}
	}
	return out
}
