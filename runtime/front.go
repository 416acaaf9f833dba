package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// FrontBuild is the program of fronts that this gitring brings along.
type FrontBuild struct {
	Sum  string                 // its SHA-256 in hex
	Open func() ([]byte, error) // all of it
}

// frontSite is what the payload of a front depends on besides the action.
type frontSite struct {
	image   string // the engine's name of its image; "" leaves the pin
	user    string // "" is the spec's
	seLinux bool   // the engine labels what is mounted
	files   int64  // descriptors that it can have on this host at most; 0 is any number
}

// frontsDir is where the folders of fronts lie, and frontDir where newer proxies do.
func frontsDir(contentDir string) string { return filepath.Join(filepath.Dir(contentDir), "fronts") }
func frontDir(contentDir string) string  { return filepath.Join(filepath.Dir(contentDir), "front") }

// FrontMounts are the three mounts of the front in the container of that name, and nothing
// else of the host: the policy lets them pass as they are, in no other payload.
func FrontMounts(contentDir, name string) []ring.HostMount {
	own := filepath.Join(frontsDir(contentDir), ring.FrontID(name))
	return []ring.HostMount{
		{Source: filepath.Join(own, "table"), Target: ring.FrontTables, ReadOnly: true},
		{Source: filepath.Join(own, "run"), Target: ring.FrontRun},
		{Source: frontDir(contentDir), Target: ring.FrontBuilds, ReadOnly: true},
	}
}

// front makes the payload that of a front: its image and mounts are ours, and from its
// creation on the engine starts it again by itself, with or without us.
func (p *payload) front(at site, a ring.Action) error {
	if a.Want.FrontOf == "" {
		return nil
	}
	p.Front = true
	if at.front.image != "" {
		p.Config.Image = at.front.image
	}
	if at.front.user != "" {
		p.Config.User = at.front.user
	}
	for _, u := range p.Host.Ulimits {
		if u.Name == "nofile" && at.front.files > 0 {
			u.Soft, u.Hard = min(u.Soft, at.front.files), min(u.Hard, at.front.files)
		}
	}
	p.Host.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyAlways}
	for _, m := range FrontMounts(at.content, p.Name) {
		e := mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
		if !at.front.seLinux {
			p.Host.Mounts = append(p.Host.Mounts, e)
			continue
		}
		label := "Z"
		if m.Target == ring.FrontBuilds {
			label = "z" // all fronts have it
		}
		if err := p.bind(e, ring.Mount{SELinux: label}); err != nil {
			return err
		}
	}
	return nil
}

// siteOf is site, with what only fronts depend on where a is about one.
func (d *Docker) siteOf(ctx context.Context, e engine, a ring.Action) (site, error) {
	at := d.site(e)
	if a.Want == nil || a.Want.FrontOf == "" {
		return at, nil
	}
	if d.opts.Front.Sum != "" {
		at.front.image = FrontTag(d.opts.Front.Sum)
	}
	if uid := os.Geteuid(); uid > 0 { // it could not give a folder to anybody else
		at.front.user = strconv.Itoa(uid) + ":" + strconv.Itoa(os.Getegid())
	}
	at.front.files = mostFiles()
	info, err := e.Info(ctx)
	if err != nil {
		return at, fault("cannot ask the engine about itself", "", err)
	}
	at.front.seLinux = slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return o == "selinux" || strings.HasPrefix(o, "name=selinux") })
	return at, nil
}

// haveFrontImage has the image of fronts on this host, from what gitring brings along. What
// is here under the name is never made anew: the name holds the program's hash.
func (d *Docker) haveFrontImage(ctx context.Context, e engine) (ring.Done, error) {
	const cannot = "cannot load the image of fronts"
	if d.opts.Front.Sum == "" || d.opts.Front.Open == nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Permanent: true, Err: errors.New(cannot + ": this build of gitring holds no front")}
	}
	d.loading.Lock() // of two fronts that come at once, one loads it
	defer d.loading.Unlock()
	tag := FrontTag(d.opts.Front.Sum)
	i, here, err := d.inspectImage(ctx, e, tag)
	if err != nil {
		return ring.Done{}, err
	}
	if here {
		return ring.Done{Image: saysOfItself(i), Note: "already present"}, nil
	}
	program, err := d.opts.Front.Open()
	if err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	archive, err := frontArchive(program, goruntime.GOARCH, tag)
	if err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	if err := load(ctx, e, archive); err != nil {
		return ring.Done{}, fault(cannot, ring.CauseImagePull, err)
	}
	if i, here, err = d.inspectImage(ctx, e, tag); err != nil {
		return ring.Done{}, err
	}
	if !here {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("%s: the engine ended without it", cannot)}
	}
	return ring.Done{Image: saysOfItself(i), Note: "loaded"}, nil
}

// load has the engine take an archive. It says only in the words of its answer that it could not.
func load(ctx context.Context, e engine, archive []byte) error {
	body, err := e.ImageLoad(ctx, bytes.NewReader(archive))
	if err != nil {
		return err
	}
	return errors.Join(loaded(body.Body), body.Body.Close())
}

func loaded(body io.Reader) error {
	answers := json.NewDecoder(body)
	for {
		var line struct {
			Error string `json:"error"`
		}
		switch err := answers.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}

// frontImageOf has the image here that a front is about to be made of, and a name it. The
// pin in plans names the format, the engine's name the build.
func (d *Docker) frontImageOf(ctx context.Context, e engine, a *ring.Action) error {
	done, err := d.haveFrontImage(ctx, e)
	if err != nil {
		return err
	}
	want := *a.Want
	want.Image, want.Pin.Image = done.Image, FrontTag(d.opts.Front.Sum)
	a.Want = &want
	return nil
}

// haveFront makes the folders of a front, before the engine mounts them. A table that is
// there stays: it may be of the same front before it was made anew.
func (d *Docker) haveFront(a ring.Action, p payload) error {
	mounts := FrontMounts(d.opts.ContentDir, p.Name)
	table, run := mounts[0].Source, mounts[1].Source
	user := ring.FrontUser
	if os.Geteuid() != 0 {
		user = -1 // the folders are ours, and so is the front
	}
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{{mounts[2].Source, 0o755}, {filepath.Dir(filepath.Dir(run)), 0o755}, {filepath.Dir(run), 0o755}, {table, 0o755}, {run, 0o700}} {
		if err := makeFolder(dir.path, dir.mode); err != nil {
			return err
		}
	}
	if err := os.Lchown(run, user, user); err != nil {
		return err
	}
	file := filepath.Join(table, ring.FrontTableFile)
	if _, err := os.Lstat(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	body, err := json.Marshal(firstTable(a, d.opts.Now()))
	if err != nil {
		return err
	}
	if err := disk.WriteWhole(file, "tmp-", body, 0o400); err != nil {
		return err
	}
	return os.Lchown(file, user, user)
}

// frontAgain makes the folders of a front that is about to start again, where they are gone:
// else the engine could not mount them.
func (d *Docker) frontAgain(a ring.Action) error {
	if a.Want == nil || a.Of == nil || a.Want.FrontOf == "" || d.opts.ContentDir == "" {
		return nil
	}
	if err := d.haveFront(a, payload{Name: ring.ContainerName(a.App, a.Service, a.Slot, a.Version)}); err != nil {
		return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot make the folders of a front: %w", err)}
	}
	return nil
}

// makeFolder makes a folder below the state directory, whatever the umask.
func makeFolder(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case st.Mode().Perm() == mode:
		return nil
	}
	return os.Chmod(dir, mode)
}

// firstTable names nobody: until the one who decides has told the front more, requests wait.
func firstTable(a ring.Action, now time.Time) ring.FrontTable {
	route := ring.DefaultRoute()
	if s, ok := a.Of.Service(a.Want.FrontOf); ok && s.Route != nil {
		route = *s.Route
	} else { // of a version that its service goes back to
		route.Ports = exposedPorts(a.Want.Spec.Expose)
	}
	t := ring.FrontTable{
		Generation: 1, Service: a.App + "/" + a.Want.FrontOf, Ports: route.Ports, Instances: []ring.FrontInstance{}, Forwarded: route.Forwarded,
		Trusted: route.Trusted, Sticky: route.Sticky, LogErrors: route.LogErrors, Connections: route.Connections,
	}
	if route.Queue > 0 {
		t.Queue, t.QueueUntil = route.Queue, now.Add(2*route.Queue).UTC()
	}
	return t
}

// exposedPorts are the ports of a front as its container exposes them: 80/tcp.
func exposedPorts(exposed []string) (out []ring.FrontPort) {
	for _, word := range exposed {
		number, protocol, _ := strings.Cut(word, "/")
		p := ring.FrontPort{Carry: ring.CarryAuto}
		if protocol == "udp" {
			p.Carry = ring.CarryUDP
		}
		if n, err := strconv.Atoi(number); err == nil {
			p.Port = n
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b ring.FrontPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol(), b.Protocol()))
	})
	return out
}

var frontFolder = regexp.MustCompile(`^[0-9a-f]{16}$`)

// frontFolders are the folders of fronts, by ring.FrontID, that mounts show: by whatever
// name the state directory had when the container was made.
func frontFolders(mounts []container.MountPoint) []string {
	var ids []string
	for _, m := range mounts {
		parts := strings.Split(filepath.Clean(m.Source), "/")
		for i, part := range parts {
			if i > 0 && parts[i-1] == "fronts" && frontFolder.MatchString(part) {
				ids = append(ids, part)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// dropFront removes the folders of a front that is gone. What stays behind, SweepFronts finds.
func (d *Docker) dropFront(c container.InspectResponse) {
	if c.ContainerJSONBase == nil || d.opts.ContentDir == "" {
		return
	}
	for _, id := range frontFolders(c.Mounts) { // the policy lets no other container mount one
		_ = os.RemoveAll(filepath.Join(frontsDir(d.opts.ContentDir), id))
	}
}

// SweepFronts removes what no front needs any more: folders that no container mounts, images
// of earlier builds, and the image of this one where there is no front. Containers that
// Compose made of what leave wrote count as well.
func (d *Docker) SweepFronts(ctx context.Context) error {
	d.making.Lock() // a folder is there before its container is
	defer d.making.Unlock()
	e, err := d.ready(ctx)
	if err != nil {
		return err
	}
	list, err := e.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return fault("cannot list containers", "", err)
	}
	used := map[string]bool{}
	for _, c := range list {
		mounts := c.Mounts
		if vague(mounts) {
			full, err := e.ContainerInspect(ctx, c.ID)
			if cerrdefs.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fault("cannot inspect container "+short(c.ID), "", err)
			}
			if mounts = full.Mounts; vague(mounts) {
				return fmt.Errorf("cannot tell what container %s mounts", short(c.ID))
			}
		}
		for _, id := range frontFolders(mounts) {
			used[id] = true
		}
	}
	return errors.Join(d.sweepFrontFolders(used), d.sweepFrontImages(ctx, e, len(used) > 0))
}

func (d *Docker) sweepFrontFolders(used map[string]bool) error {
	root := frontsDir(d.opts.ContentDir)
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the folders of fronts: %w", err)
	}
	for _, at := range entries {
		if used[at.Name()] || !frontFolder.MatchString(at.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(root, at.Name())); err != nil {
			return fmt.Errorf("cannot remove the folder of a front: %w", err)
		}
	}
	return nil
}

func (d *Docker) sweepFrontImages(ctx context.Context, e engine, fronts bool) error {
	images, err := e.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", frontRepository))})
	if err != nil {
		return fault("cannot list images", "", err)
	}
	for _, i := range images {
		for _, tag := range i.RepoTags {
			if !ofFront(tag) || fronts && d.opts.Front.Sum != "" && tag == FrontTag(d.opts.Front.Sum) {
				continue
			}
			if _, err := d.frontImageOff(ctx, e, tag); err != nil {
				return err
			}
		}
	}
	return nil
}

// frontImageOff removes an image of fronts unless a container uses it.
func (d *Docker) frontImageOff(ctx context.Context, e engine, tag string) (ring.Done, error) {
	_, err := e.ImageRemove(ctx, tag, image.RemoveOptions{PruneChildren: true})
	switch {
	case err == nil:
		return ring.Done{Note: "removed"}, nil
	case cerrdefs.IsNotFound(err):
		return ring.Done{Note: "already gone"}, nil
	case cerrdefs.IsConflict(err):
		return ring.Done{InUse: true}, nil
	}
	return ring.Done{}, fault("cannot remove image "+tag, "", err)
}

// SignalFront asks the front for a newer proxy, by SIGHUP to its supervisor.
func (d *Docker) SignalFront(ctx context.Context, id string) error {
	e, err := d.ready(ctx)
	if err != nil {
		return err
	}
	c, err := d.ours(ctx, e, "cannot signal front", id)
	if err != nil {
		return err
	}
	if len(frontFolders(c.Mounts)) == 0 {
		return fmt.Errorf("cannot signal front %s: it is none", short(id))
	}
	if err := e.ContainerKill(ctx, c.ID, "HUP"); err != nil {
		return fault("cannot signal front "+strings.TrimPrefix(c.Name, "/"), "", err)
	}
	return nil
}
