package reconcile

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// tagged is a scenario whose tags move by themselves, with dice of its own. What it remembers is
// of the registry and of what came into force, and nothing that the heart says of itself.
type tagged struct {
	r      *rand.Rand
	meant  map[string][]meaning               // what each image meant, and from when on
	ran    map[ring.ServiceID]map[string]bool // digests that came into force, by service
	moves  int                                // that were followed
	minAge time.Duration
}

type meaning struct {
	digest string
	from   time.Time
}

// tagsToo has services follow their tags, asked for every few seconds to minutes. What a tag may
// move to is as good or bad as a version of a commit.
func (s *scenario) tagsToo(r *rand.Rand) {
	t := &tagged{r: r, meant: map[string][]meaning{}, ran: map[ring.ServiceID]map[string]bool{}}
	s.tags = t
	t.minAge = []time.Duration{0, 0, 20 * time.Second, 2 * time.Minute}[r.Intn(4)]
	s.tagRules.MinAge = t.minAge
	s.until = s.until.Add(time.Duration(r.Intn(20)) * time.Minute) // a tag is followed by who is at rest
	updates := map[string]*ring.Updates{}
	for _, name := range []string{"a", "b"} {
		for v := 1; v <= 4; v++ {
			for n := 1; n <= 2; n++ {
				s.natures[renewed(image(name, v), n)] = s.randomLifeBy(r)
			}
		}
		if r.Intn(4) > 0 {
			updates[name] = &ring.Updates{Word: "every", Every: time.Duration(20+r.Intn(100)) * time.Second, MinAge: []time.Duration{0, 0, 30 * time.Second}[r.Intn(3)]}
		}
	}
	for _, c := range s.commits {
		for i := range c.plan.Apps {
			for j := range c.plan.Apps[i].Services {
				if v := &c.plan.Apps[i].Services[j]; !v.Kind.Ends() {
					v.Updates = updates[v.Name]
				}
			}
		}
	}
}

func renewed(image string, n int) string { return fmt.Sprintf("%s-%d", image, n) }

// moveTag is one move of a tag at the registry, or none.
func (s *scenario) moveTag() {
	t := s.tags
	if t == nil || t.r.Intn(25) > 0 {
		return
	}
	of := image([]string{"a", "b"}[t.r.Intn(2)], 1+t.r.Intn(4))
	to := of
	if n := t.r.Intn(3); n > 0 {
		to = renewed(of, n)
	}
	if s.moved == nil {
		s.moved = map[string]string{}
	}
	if s.moved[of] == to || s.moved[of] == "" && to == of {
		return
	}
	t.meant[of] = append(t.meant[of], meaning{"sha256:" + to, s.now})
	s.moved[of] = to
	s.note("the tag of %s means %s", of, to)
}

// watchMoved holds an app that comes into force of the same commit, with another image, to what
// a person is promised of moves.
func (d *daemon) watchMoved(f ring.InForce) {
	t := d.tags
	if t == nil {
		return
	}
	was := d.disk.Apps[f.App.Name]
	for _, v := range f.App.Services {
		id, digest := ring.ID(f.App.Name, v.Name), v.Pin.Digest()
		old, known := was.App.Service(v.Name)
		if known && was.App.Commit == f.App.Commit && old.Written == v.Written && old.Pin.Digest() != digest && v.Pin.Moved {
			t.moves++
			d.heldToPromises(id, &v, &old, digest)
		}
		if t.ran[id] == nil {
			t.ran[id] = map[string]bool{}
		}
		t.ran[id][digest] = true
	}
}

func (d *daemon) heldToPromises(id ring.ServiceID, v, old *ring.Service, digest string) {
	t := d.tags
	if v.Updates == nil {
		d.violate("I11: %s moved to %s, and follows no tag", id, digest)
		return
	}
	longest := max(t.minAge, v.Updates.MinAge)
	if d.skew == 0 && longest > 0 && !t.stood(v.Spec.Image, digest, longest, d.now) {
		d.violate("I11: %s followed %s, which its tag had not meant for %s", id, digest, longest)
	}
	good, had := d.disk.Good[id]
	goesBack := had && good.Service.Pin.Digest() == digest
	if d.skew == 0 && t.ran[id][digest] && !goesBack && digest != old.Pin.Digest() {
		d.violate("I8: %s went back to %s by itself", id, digest)
	}
	if row, ok := d.disk.Verdicts[ring.VersionKey(id, v.Version)]; ok && !row.Good && !goesBack {
		d.violate("H9: %s has %s again, which failed: %s", id, digest, row.Reason)
	}
}

// stood reports whether a tag meant a digest for so long without a break, until now at the latest.
func (t *tagged) stood(image, digest string, d time.Duration, now time.Time) bool {
	all := t.meant[image]
	if len(all) == 0 {
		return true
	}
	if digest == "sha256:"+image && all[0].from.Sub(epoch) >= d { // what it meant from the beginning
		return true
	}
	for i, m := range all {
		end := now
		if i+1 < len(all) {
			end = all[i+1].from
		}
		if m.digest == digest && end.Sub(m.from) >= d {
			return true
		}
	}
	return false
}

// restOfTags holds what is in force at rest to what the tags mean by then: who follows one
// comes to it, unless it failed there, ran here before, or nobody can pull it.
func (s *scenario) restOfTags(app *ring.App, v *ring.Service) {
	t := s.tags
	if t == nil || v.Updates == nil || s.aside(v.Name) {
		return
	}
	id, means := ring.ID(app.Name, v.Name), v.Spec.Image
	if m, ok := s.moved[v.Spec.Image]; ok {
		means = m
	}
	digest := "sha256:" + means
	if v.Pin.Digest() == digest || t.ran[id][digest] || s.natures[v.Spec.Image].noImage {
		return
	}
	for key, row := range s.disk.Verdicts {
		if strings.HasPrefix(key, string(id)+"@") && !row.Good {
			return // something failed, and may have been this
		}
	}
	if row, done := s.disk.Rollouts[id]; !done || row.Version != v.Version || !row.Done {
		return // it is not at rest itself
	}
	if s.standsStill(app, v.Name) || s.looping() {
		return
	}
	s.violate("I11: %s runs %s at rest, and its tag means %s", id, v.Pin.Digest(), digest)
}

// TestSimulationOfTags plays scenarios whose tags move by themselves.
func TestSimulationOfTags(t *testing.T) {
	t.Setenv("GITRING_SIM_WIDE", extraTags)
	followed := 0
	for seed := int64(1); seed <= 100; seed++ {
		s := newScenarioOf(seed)
		if err := s.run(); err != nil {
			t.Fatalf("seed %d: %v\n%s\nreplay: make sim N=1 SEED=%d WIDE=%s", seed, err, s.read(400), seed, extraTags)
		}
		followed += s.tags.moves
	}
	if followed < 30 {
		t.Errorf("%d moves were followed: this shows little", followed)
	}
}
