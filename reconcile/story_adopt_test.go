package reconcile

import (
	"fmt"
	"testing"

	"github.com/gitring/gitring/ring"
)

// compose is "compose runs shop/web v1 [2]": what somebody started with docker
// compose up, so many times.
func (s *story) compose(words []string) error {
	d := s.decls[words[1]]
	if d == nil {
		return fmt.Errorf("no such service: %s", words[1])
	}
	n := 1
	if len(words) > 3 {
		if _, err := fmt.Sscan(words[3], &n); err != nil {
			return err
		}
	}
	for slot := 1; slot <= n; slot++ {
		b := s.composeRun(d.app, &d.Service, words[2], slot)
		if d.Kind == ring.JobK {
			s.exit(b, 0)
		}
	}
	s.foreign[d.app] = true
	return nil
}

// composeRun starts a container of a service as Compose does: it has none of our labels.
func (d *daemon) composeRun(app string, v *ring.Service, image string, slot int) *box {
	d.ids++
	network := app + "_default"
	b := &box{image: image, foreign: true, Instance: ring.Instance{
		ID: fmt.Sprintf("f%03d", d.ids), Name: fmt.Sprintf("%s-%s-%d", app, v.Name, slot), App: app, Service: v.Name, Slot: slot,
		Kind: v.Kind, Version: "compose", Created: d.wall(), State: ring.StateCreated, Policy: v.Restart.Engine, Addresses: map[string]string{network: "10.0.0.9"},
	}}
	for _, m := range v.Spec.Mounts {
		if name, made := mountName(app, m); name != "" {
			b.holds = append(b.holds, name)
			d.volumes[name] = d.volumes[name] || made
		}
	}
	d.boxes[b.ID], d.sorted = b, nil
	d.nets[network] = ring.SeenNetwork{ID: network, Name: network}
	d.engine.run(b)
	return b
}

// takes is what the engine tells a person's adoption.
func (d *daemon) takes(app string) (rows []ring.Adopted, kept []ring.Kept) {
	for _, id := range d.each() {
		b := d.boxes[id]
		if !b.foreign || b.App != app || d.adopted(id) {
			continue
		}
		rows = append(rows, ring.Adopted{
			Instance: id, App: app, Service: b.Service, Slot: b.Slot, Kind: b.Kind, Policy: ring.EnginePolicy{Name: b.Policy, MaxRetries: b.MaxRetries},
		})
		for _, name := range b.holds {
			kept = append(kept, ring.Kept{App: app, Name: name})
		}
	}
	return rows, kept
}

// adopted reports whether a container is one of those that a person gave into our hands.
func (d *daemon) adopted(id string) bool {
	_, ok := d.disk.Adopted[id]
	return ok
}

// stands reports whether an adopted container is what the plan asks for: until that changes.
func (d *daemon) stands(b *box, s *ring.Service) bool {
	return b.foreign && d.disk.Adopted[b.ID].For == s.Version
}

// strangers reports whether Compose runs, or would run again, something of an app that is
// not adopted.
func (d *daemon) strangers(app string) bool {
	ran := false
	for _, b := range d.boxes {
		if b.foreign && b.App == app {
			ran = true
			if (b.lives() || b.Policy == "always") && !d.adopted(b.ID) { // or it comes back with the engine
				return true
			}
		}
	}
	return d.foreign[app] && !ran
}

// asSeen is a container as a look tells it: one of Compose's has none of our labels.
func (b *box) asSeen() ring.Instance {
	in := b.Instance
	if b.foreign {
		in.App, in.Source, in.Service, in.Slot, in.Version, in.Commit, in.Kind = "", "", "", 0, "", "", ""
	}
	if b.left {
		in.State = ring.StateRemoving
	}
	return in
}

// expectAdopted is "adopted 2 of shop": so many of its instances are told as such.
func (s *story) expectAdopted(want, app string) error {
	n := 0
	for _, src := range s.last.Status.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				for _, in := range sv.Instances {
					if a.Name == app && in.Adopted {
						n++
					}
				}
			}
		}
	}
	return count("adopted", n, want)
}

func TestRowsOfAdoptedContainersGoWithThem(t *testing.T) {
	s := newStory()
	for _, line := range []string{
		"service shop/db", "compose runs shop/db v1", "commit c1 shop/db=v1", "until refusal shop ForeignProject", "adopt shop/", "rest",
	} {
		if err := s.tell(line); err != nil {
			t.Fatal(line, err)
		}
	}
	if len(s.disk.Adopted) != 1 {
		t.Fatalf("adopted are %v", s.disk.Adopted)
	}
	for _, line := range []string{"fault remove shop/db-1", "rest"} {
		if err := s.tell(line); err != nil {
			t.Fatal(line, err)
		}
	}
	if len(s.disk.Adopted) != 0 {
		t.Fatalf("of a container that is gone it is remembered: %v", s.disk.Adopted)
	}
}
