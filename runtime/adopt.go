package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/gitring/gitring/ring"
)

// Adoption is what taking over a running Compose project comes to, beside a plan.
type Adoption struct {
	// Containers are those that would be adopted, by service and slot.
	Containers []Adoptee
	// Kept is what they hold that outlives them.
	Kept []ring.Kept
	// Starts are the services of the plan that gitring would start at once, because
	// Compose runs nothing of them, or less than the plan wants.
	Starts []string
	// Refusals are why it cannot be, each with what to do.
	Refusals []*ring.Refusal
}

// Adoptee is a container that would be adopted, and what of it differs from what
// gitring would make in its place, in Compose's words.
type Adoptee struct {
	Name    string
	Row     ring.Adopted
	Differs []string
}

// Adoption looks what the app of an action would take over, and changes nothing.
// With compare each container says what differs.
func (d *Docker) Adoption(ctx context.Context, a ring.Action, compare bool) (Adoption, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return Adoption{}, err
	}
	b, err := d.survey(ctx, e, a)
	if err != nil {
		return Adoption{}, err
	}
	var out Adoption
	p := b.project(a.App)
	out.Refusals = b.coming(a, p)
	free := b.freeSlots(a.Of, p)
	for _, c := range b.candidates(a.Of, p) {
		s, r := b.place(a, c)
		if r != nil {
			out.Refusals = append(out.Refusals, r)
			continue
		}
		slot := take(free, s.Name, c.Labels[composeNumber])
		if slot == 0 {
			out.Refusals = append(out.Refusals, tooMany(a, s, c))
			continue
		}
		full, err := e.ContainerInspect(ctx, c.ID)
		if cerrdefs.IsNotFound(err) {
			continue // it went meanwhile
		}
		if err != nil {
			return Adoption{}, fault("cannot inspect container "+nameOf(c), "", err)
		}
		row := ring.Adopted{Instance: c.ID, App: a.App, Service: s.Name, Slot: slot, Kind: s.Kind, Policy: policyOf(full)}
		out.Refusals = append(out.Refusals, d.loses(a, s, c, slot)...)
		out.Kept = append(out.Kept, d.keeps(a, s, slot)...)
		in := Adoptee{Name: nameOf(c), Row: row}
		if compare {
			if in.Differs, err = d.differs(ctx, e, a, s, slot, full); err != nil {
				return Adoption{}, err
			}
		}
		out.Containers = append(out.Containers, in)
	}
	for _, s := range a.Of.Services {
		if n := len(free[s.Name]); n > 0 && s.Kind != ring.CronK {
			out.Starts = append(out.Starts, s.Name)
		}
	}
	slices.SortFunc(out.Containers, func(x, y Adoptee) int {
		return cmp.Or(cmp.Compare(x.Row.Service, y.Row.Service), cmp.Compare(x.Row.Slot, y.Row.Slot))
	})
	return out, nil
}

// policyOf is the engine's restart policy of a container.
func policyOf(c container.InspectResponse) ring.EnginePolicy {
	in := instance(c)
	return ring.EnginePolicy{Name: in.Policy, MaxRetries: in.MaxRetries}
}

// candidates are the containers of a project to be adopted: what runs, and what a
// job left that succeeded, which is then not run a second time.
func (b beside) candidates(app *ring.App, p project) []container.Summary {
	var out []container.Summary
	for _, c := range p.all() {
		s, _ := app.Service(c.Labels[composeService])
		done := ring.State(c.State) == ring.StateExited && s.Kind == ring.JobK && exitedWell(c.Status)
		if b.foreign(c) && (slices.ContainsFunc(p.running, func(x container.Summary) bool { return x.ID == c.ID }) || done) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y container.Summary) int {
		return cmp.Or(cmp.Compare(number(x), number(y)), cmp.Compare(x.Created, y.Created), cmp.Compare(x.ID, y.ID))
	})
	return out
}

// exitedWell reads the code out of a status such as "Exited (0) 3 minutes ago".
func exitedWell(status string) bool {
	var code int
	_, err := fmt.Sscanf(status, "Exited (%d)", &code)
	return err == nil && code == 0
}

func number(c container.Summary) int {
	n, _ := strconv.Atoi(c.Labels[composeNumber]) // one without comes first
	return n
}

// place is the service of the plan that a container of Compose's is of.
func (b beside) place(a ring.Action, c container.Summary) (*ring.Service, *ring.Refusal) {
	name := c.Labels[composeService]
	refuse := func(hint, format string, args ...any) (*ring.Service, *ring.Refusal) {
		return nil, no(a, ring.ForeignProject, nil, fmt.Sprintf("container %s of Compose project %s ", nameOf(c), a.App)+fmt.Sprintf(format, args...), hint)
	}
	if b.isSelf(c) {
		return nil, b.ofSelf(a, c)
	}
	if host, ours := c.Labels[labelHost]; ours {
		return refuse("give the app another name on one of the two hosts", "belongs to gitring of host %s", host)
	}
	if c.Labels[composeOneOff] == "True" {
		return refuse("wait until it has ended, or docker stop "+nameOf(c), "was started by docker compose run and is no instance of a service")
	}
	for i := range a.Of.Services {
		s := &a.Of.Services[i]
		switch {
		case s.Name != name:
		case s.Reload != nil:
			return refuse("adopt it by a commit without reload:, and add that in the next one", "cannot reload files in place, as service %s does: it does not mount gitring's folders", name)
		case s.Kind == ring.CronK:
			return refuse("docker rm -f "+nameOf(c)+": it begins when it is due", "runs service %s, which is a cron job", name)
		default:
			return s, nil
		}
	}
	return refuse(fmt.Sprintf("put the service into the Compose file, or docker rm -f %s", nameOf(c)), "runs service %s, which the plan does not have", name)
}

// coming are the stopped containers of a project that would run again beside ours
// after the next restart of the engine.
func (b beside) coming(a ring.Action, p project) (out []*ring.Refusal) {
	for _, c := range p.stopped {
		if b.foreign(c) && b.returning[c.ID] {
			out = append(out, no(a, ring.ForeignProject, nil, fmt.Sprintf("container %s is stopped, and the engine starts it again when it starts (restart: always)", nameOf(c)),
				fmt.Sprintf("docker start %s, to have it adopted too, or docker rm %s", nameOf(c), nameOf(c))))
		}
	}
	return out
}

// freeSlots are, by service, the slots that no container of ours fills.
func (b beside) freeSlots(app *ring.App, p project) map[string][]int {
	free := map[string][]int{}
	for _, s := range app.Services {
		for slot := 1; slot <= s.Replicas; slot++ {
			free[s.Name] = append(free[s.Name], slot)
		}
	}
	for _, c := range p.all() {
		if b.foreign(c) {
			continue
		}
		service := cmp.Or(c.Labels[labelService], c.Labels[composeService])
		slot, _ := strconv.Atoi(cmp.Or(c.Labels[labelSlot], c.Labels[composeNumber]))
		free[service] = slices.DeleteFunc(free[service], func(n int) bool { return n == slot })
	}
	return free
}

// take gives a container its own number for a slot, or else the first that is
// free; 0 when none is.
func take(free map[string][]int, service, number string) int {
	slots := free[service]
	if len(slots) == 0 {
		return 0
	}
	i := slices.IndexFunc(slots, func(n int) bool { return strconv.Itoa(n) == number })
	slot := slots[max(0, i)]
	free[service] = slices.DeleteFunc(slots, func(n int) bool { return n == slot })
	return slot
}

func tooMany(a ring.Action, s *ring.Service, c container.Summary) *ring.Refusal {
	at := s.Place("replicas")
	return no(a, ring.ForeignProject, &at, fmt.Sprintf("container %s is one more of service %s than the plan has (replicas %d), or its place is taken by one of gitring's", nameOf(c), s.Name, s.Replicas),
		fmt.Sprintf("write deploy: {replicas: …} as many as run, or docker rm -f %s", nameOf(c)))
}

// adoptable looks again, right before an app comes into force, whether what was
// adopted of it fits the plan.
func (d *Docker) adoptable(a ring.Action, b beside) (out []*ring.Refusal) {
	for _, row := range a.Adopted {
		i := slices.IndexFunc(b.containers, func(c container.Summary) bool { return c.ID == row.Instance })
		if i < 0 {
			continue // gone: the next look forgets it
		}
		s, r := b.place(a, b.containers[i])
		if r != nil {
			out = append(out, r)
			continue
		}
		if row.Slot > s.Replicas {
			out = append(out, tooMany(a, s, b.containers[i]))
		}
		out = append(out, d.loses(a, s, b.containers[i], row.Slot)...)
	}
	return out
}

// loses is what a container writes that the next instance of its service would not
// find: a volume or a folder that comes up empty looks like a loss to the program.
func (d *Docker) loses(a ring.Action, s *ring.Service, c container.Summary, slot int) (out []*ring.Refusal) {
	a.Slot = slot
	mounts := a.Of.Mounts(s)
	for _, at := range c.Mounts {
		if !at.RW || at.Type != mount.TypeVolume && at.Type != mount.TypeBind {
			continue
		}
		place := s.Place("volumes." + at.Destination)
		i := slices.IndexFunc(mounts, func(m ring.Mount) bool { return path.Clean(m.Target) == path.Clean(at.Destination) })
		if i < 0 {
			out = append(out, no(a, ring.VolumeElsewhere, &place, fmt.Sprintf("container %s writes to %s, in %s, and the plan mounts nothing there", nameOf(c), at.Destination, held(at)), d.keepIt(a, s, at)))
			continue
		}
		if says, hint := d.loss(a, s, mounts[i], at); says != "" {
			out = append(out, no(a, ring.VolumeElsewhere, &place, fmt.Sprintf("container %s has %s at %s; %s", nameOf(c), held(at), at.Destination, says), hint))
		}
	}
	return out
}

// held is what a mount is of, as people know it.
func held(at container.MountPoint) string {
	switch {
	case at.Type == mount.TypeBind:
		return "folder " + at.Source
	case anonymousName.MatchString(at.Name):
		return "an anonymous volume"
	}
	return "volume " + at.Name
}

// keepIt is how the plan gets to mount what a container writes.
func (d *Docker) keepIt(a ring.Action, s *ring.Service, at container.MountPoint) string {
	if at.Type == mount.TypeBind {
		return fmt.Sprintf("write volumes: [%s:%s]", at.Source, at.Destination)
	}
	return volumePair{service: s.Name, target: at.Destination, theirs: at.Name}.declare()
}

// loss is why what the plan mounts at a place is not what is there now; "" when it is.
func (d *Docker) loss(a ring.Action, s *ring.Service, m ring.Mount, at container.MountPoint) (says, hint string) {
	switch m.Kind {
	case ring.MountVolume:
		ours := volumeOf(d.opts.Host, a, m.Source).Name
		if at.Type == mount.TypeVolume && at.Name == ours {
			return "", ""
		}
		return "the next one would have volume " + ours, d.keepIt(a, s, at)
	case ring.MountBind:
		if at.Type == mount.TypeBind && sameFile(at.Source, m.Source) {
			return "", ""
		}
		return "the next one would have " + m.Source, d.keepIt(a, s, at)
	case ring.MountData, ring.MountSeed:
		ours := dataPath(a.Of, d.opts.DataRoot, m.Source)
		if at.Type == mount.TypeBind && sameFile(at.Source, ours) && !linked(ours) {
			return "", ""
		}
		return "the next one would have " + ours, dataHint(a, m, at, ours)
	case ring.MountContent:
		if at.Type == mount.TypeBind && !m.ReadOnly && m.File == "" {
			if file := d.uncommitted(m, at.Source); file != "" {
				return fmt.Sprintf("the next one would have the commit's files there, read-only, and not %s", file),
					"commit the file or take it away; or say x-gitring: {mounts: {…: data}} and move the folder below data_root"
			}
		}
		return "", ""
	}
	return "the next one would have nothing of it", d.keepIt(a, s, at)
}

// dataHint is how a data folder comes to lie where gitring looks for it.
func dataHint(a ring.Action, m ring.Mount, at container.MountPoint, ours string) string {
	if at.Type != mount.TypeBind {
		return fmt.Sprintf("mount the volume: write volumes: {data: {external: true, name: %s}}", at.Name)
	}
	bound := fmt.Sprintf("mkdir -p %s && mount --bind %s %s, and the same in /etc/fstab", ours, at.Source, ours)
	if root, ok := cutPath(at.Source, m.Source); ok {
		return fmt.Sprintf("set data_root: %s for the source or the app in the configuration; or %s", root, bound)
	}
	return bound
}

// cutPath is the folder below which full is rel.
func cutPath(full, rel string) (root string, ok bool) {
	for dir := filepath.Dir(full); ; dir = filepath.Dir(dir) {
		if filepath.Join(dir, rel) == filepath.Clean(full) {
			return dir, true
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
	}
}

// sameFile reports whether two paths of the host are one folder, whatever names led there.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// linked reports whether a data folder is a symlink, which no instance is given.
func linked(folder string) bool {
	st, err := os.Lstat(folder)
	return err == nil && st.Mode()&fs.ModeSymlink != 0
}

// uncommitted is a file of a folder of the host that the commit's content does not
// have; "" when there is none that can be seen.
func (d *Docker) uncommitted(m ring.Mount, folder string) string {
	found := ""
	_ = filepath.WalkDir(folder, func(p string, e fs.DirEntry, err error) error { // a folder that is closed to us tells nothing
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(folder, p)
		if err != nil {
			return nil
		}
		if _, err := os.Lstat(filepath.Join(d.contentAt(m.Source), rel)); errors.Is(err, fs.ErrNotExist) {
			found = rel
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// keeps are the volumes and data folders that an adopted container has and the
// plan mounts too: from now on none of them is made anew.
func (d *Docker) keeps(a ring.Action, s *ring.Service, slot int) (out []ring.Kept) {
	a.Slot = slot
	for _, m := range a.Of.Mounts(s) {
		switch m.Kind {
		case ring.MountVolume:
			if v := volumeOf(d.opts.Host, a, m.Source); !v.External {
				out = append(out, ring.Kept{App: a.App, Name: keptVolume(v.Name)})
			}
		case ring.MountData, ring.MountSeed:
			out = append(out, ring.Kept{App: a.App, Name: keptData(dataPath(a.Of, d.opts.DataRoot, m.Source))})
		}
	}
	return out
}
