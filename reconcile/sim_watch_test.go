package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// watched is what the oracle remembers of runs and admissions.
type watched struct {
	begun  map[string]int  // starts, by what they are a run of
	passed map[string]bool // by what is written and its pin: what this host was asked about, and had nothing against
	before map[string]bool // versions whose job before succeeded, or that had none
	acted  bool            // a person did something: a run may be begun again
	// meantToGo is since when, in true time, an instance is meant to be removed.
	meantToGo map[string]time.Time
}

func newWatched() watched {
	return watched{begun: map[string]int{}, passed: map[string]bool{}, before: map[string]bool{}, meantToGo: map[string]time.Time{}}
}

// watchBegun holds the start of a run to what is on disk, to one run for one
// reason, and to its overlap.
func (d *daemon) watchBegun(b *box) {
	i := slices.IndexFunc(sortedIDs(d.disk.Jobs), func(key string) bool { return d.disk.Jobs[key].Instance == b.ID })
	if i < 0 {
		d.violate("%s begins to run, and no run of it is on disk", b.Name)
		return
	}
	run := d.disk.Jobs[sortedIDs(d.disk.Jobs)[i]]
	_, key := run.Row()
	key += string(run.Version) + run.Due.String()
	if run.Job.Run == "always" {
		key += string(run.Commit)
	}
	if d.begun[key]++; d.begun[key] > 1+run.Job.Retries+run.Cut && !d.acted {
		d.violate("lesson L51: %s runs %d times for one reason: %s", b.Name, d.begun[key], key)
	}
	want := d.wantOf(b.App, b.Service)
	if want == nil || want.Cron == nil || want.Cron.Overlap == ring.OverlapAllow {
		return
	}
	for _, x := range d.boxes {
		if x != b && x.App == b.App && x.Service == b.Service && x.lives() {
			d.violate("overlap: %s begins beside %s", b.Name, x.Name)
		}
	}
}

// watchJob holds what is written about a run that comes before a rollout to how
// its container ended.
// watchSigned: no image is pulled and no instance made of one before its verdict is on disk,
// by the rule of now and of this digest.
func (d *daemon) watchSigned(a ring.Action) {
	image := a.Image
	switch {
	case len(d.signing.Rules) == 0 || a.Kind != ring.DoPull && a.Kind != ring.DoCreate:
		return
	case a.Kind == ring.DoCreate && d.signing.Reports:
		return
	case a.Kind == ring.DoCreate:
		image = a.Want.Pin.Image
	}
	_, digest, _ := strings.Cut(image, "@")
	for key, v := range d.disk.Signed {
		if _, of, _ := strings.Cut(key, "@"); of == digest && digest != "" && v.Good && v.Rule == d.signing.Rules[0].Hash {
			return
		}
	}
	if a.Kind == ring.DoPull && d.signing.Reports { // of what is in force
		for _, f := range d.disk.Apps {
			for i := range f.App.Services {
				if f.App.Services[i].Pin.Image == image {
					return
				}
			}
		}
	}
	d.violate("signed: %s of %s, which no verdict found good", a.Kind, image)
}

func (d *daemon) watchJob(run ring.JobRun) {
	if run.Trigger != ring.Before || run.State != "succeeded" || run.Over { // which is written once more
		return
	}
	if b := d.boxes[run.Instance]; b == nil || b.State != ring.StateExited || b.ExitCode != 0 {
		d.violate("before: the run for %s succeeded, and its container did not", run.For)
	}
	d.watched.before[run.For] = true
}

// watchFirst holds a create to what has to come first: the host was asked (I11),
// the job before it succeeded, and there is memory for what comes on top.
func (d *daemon) watchFirst(a ring.Action, want *ring.Service) {
	if !d.passed[a.Want.Written+a.Want.Pin.Image] {
		d.violate("I11: create %s, which this host was not asked about", a.Name)
	}
	if a.Version != want.Version || want.Kind.Ends() {
		return
	}
	what := ring.ForVersion(a.Service, a.Version)
	if want.Before == "" {
		d.watched.before[what] = true
	}
	if !d.watched.before[what] && !d.acted {
		d.violate("before: create %s, and %s did not succeed", a.Name, want.Before)
	}
}

// watchMemory holds what runs beside the old instances to the memory that what
// is declared leaves.
func (d *daemon) watchMemory(a ring.Action, want *ring.Service, live, replicas int) {
	r := want.Spec.Resources
	if r == nil || d.memory == 0 || a.Version != want.Version || live < replicas {
		return
	}
	if row := d.disk.Rollouts[ring.ID(a.App, a.Service)]; row.Done && row.Version == a.Version {
		return // a slot that others emptied is filled as it was, while a surplus one still goes (seed 7998)
	}
	used, room := d.declaredMemory(), d.memory-d.memory/16
	for _, f := range d.mem.flights { // one that failed is under way until somebody hears of it (seed 432847)
		made := slices.ContainsFunc(d.each(), func(id string) bool { return d.boxes[id].Name == f.a.Name })
		if f.a.Kind == ring.DoCreate && !made && f.a.Want.Spec.Resources != nil {
			used += f.a.Want.Spec.Resources.Memory
		}
	}
	if used <= room && used+r.Memory > room {
		d.violate("memory: create %s with %d of %d bytes declared", a.Name, used, room)
	}
}
