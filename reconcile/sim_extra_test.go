package reconcile

import (
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// An extra is one thing more that a wide scenario may have, with dice of its own, so
// that the others stay what they are.
type extra struct {
	kind string
	r    *rand.Rand
	past *ring.Facts // an earlier state of the database, which comes back
	dies time.Time   // when a damaged database is moved aside; zero is not damaged
	port bool        // a host port moves from service to service
}

// The extras. GITRING_SIM_WIDE names one to have all scenarios with it.
const (
	extraPerson  = "person"  // who acts by hand, and approves in some
	extraDamage  = "damage"  // a database that takes nothing down and is then lost, or that is an earlier one
	extraRefused = "refused" // containers that the engine refuses, for once or for ever
	extraPorts   = "ports"   // a host port that moves between services
	// extraFronts is named only: it has dice of its own, and comes on top of others.
	extraFronts = "fronts"
	// extraCanaries is the same, with steps and answers that are counted.
	extraCanaries = "canaries"
	// extraTags is named only, too: tags move by themselves.
	extraTags = "tags"
)

var extras = []string{extraPerson, extraDamage, extraRefused, extraPorts}

// extend gives half of the wide scenarios an extra; all of them, where one is named.
func (s *scenario) extend(named string) {
	x := &extra{kind: named, r: rand.New(rand.NewSource(s.seed*104729 + 31))}
	if named == extraTags {
		s.tagsToo(rand.New(rand.NewSource(s.seed*65537 + 101)))
		return
	}
	if named == extraFronts || named == extraCanaries {
		s.frontsToo(true)
		if named == extraCanaries {
			s.canariesToo()
		}
		return
	}
	if !slices.Contains(extras, named) {
		n := x.r.Intn(2 * len(extras))
		if n >= len(extras) {
			return
		}
		x.kind = extras[n]
	}
	s.extra = x
	switch x.kind {
	case extraPerson:
		s.person = &hands{r: x.r, made: map[Verb]int{}, wide: true}
		if x.r.Intn(3) == 0 {
			s.src.Apply = ApplyApprove
		}
	case extraRefused:
		for _, key := range sortedIDs(s.natures) {
			if x.r.Intn(4) == 0 {
				n := s.natures[key]
				n.breaks = 1 + x.r.Intn(2)
				s.natures[key] = n
			}
		}
	case extraPorts:
		s.portMoves()
	}
}

// portMoves has each commit give one host port to a service or to none. Ties by slot
// and volumes that move are left out: what moves two things two ways is not for one
// commit, and is told.
func (s *scenario) portMoves() {
	if s.tied != "" && s.tied != "follows" || s.common || s.wide != nil && s.wide.compose {
		return
	}
	s.extra.port = true
	for _, c := range s.commits {
		name := []string{"a", "b", "z", ""}[s.extra.r.Intn(4)]
		for i := range c.plan.Apps {
			for j := range c.plan.Apps[i].Services {
				v := &c.plan.Apps[i].Services[j]
				if v.Name != name || v.Kind.Ends() {
					continue
				}
				v.Replicas = 1
				v.Spec.Ports = []ring.Port{{HostPort: "8080", Container: 80, Protocol: "tcp"}}
				v.Written = ring.WrittenHash(v.Spec)
			}
		}
	}
}

// extraFault is one fault of the extra, or none.
func (s *scenario) extraFault() {
	x := s.extra
	if x == nil {
		return
	}
	switch x.kind {
	case extraDamage:
		s.damage(x)
	case extraRefused:
		s.refusals(x)
	}
}

// damage has the database take nothing down any more, until a restart moves it aside
// and begins an empty one; or has it be what it was a while ago, as after a log of it
// that was cut off. A database of which one row cannot be read is the first of these: the
// store believes no single row then and moves the whole aside (store.checkRows), so what
// the daemon finds is what moveAside leaves it.
func (s *scenario) damage(x *extra) {
	if !x.dies.IsZero() {
		if s.mute = true; !s.now.Before(x.dies) {
			s.moveAside()
		}
		return
	}
	if x.past != nil {
		if x.r.Intn(8) == 0 {
			s.fallBack(*x.past)
			x.past = nil
		}
		return
	}
	switch x.r.Intn(60) {
	case 0:
		s.note("the database is damaged: nothing can be written")
		s.mute, x.dies = true, s.now.Add([]time.Duration{0, 20 * time.Second, 2 * time.Minute}[x.r.Intn(3)])
	case 1, 2:
		s.note("this state of the database will come back")
		f := copyFacts(s.disk)
		x.past = &f
	}
}

func (s *scenario) moveAside() {
	s.mute, s.extra.dies = false, time.Time{}
	s.loseDatabase()
}

// fallBack is a daemon that finds an earlier state of its database; the marks of jobs
// are files.
func (d *daemon) fallBack(past ring.Facts) {
	d.kill("with its database, of which an earlier state is back")
	runs := d.disk.Jobs
	d.disk = past
	for _, run := range runs {
		d.disk.Set(run)
	}
	d.disk = calmFacts(d.disk, d.clock())
	d.forgetBooks()
}

// refusals has the engine refuse a container that does not run, for once or for ever,
// as what an engine does that was killed while it started it.
func (s *scenario) refusals(x *extra) {
	if x.r.Intn(25) > 0 || len(s.boxes) == 0 {
		return
	}
	ids := s.each()
	b := s.boxes[ids[x.r.Intn(len(ids))]]
	switch {
	case b.foreign || b.hiccup || b.broken:
	case !b.lives() && x.r.Intn(2) == 0:
		s.note("the engine will refuse the next start of %s", b.Name)
		b.hiccup = true
	case !b.lives():
		s.note("the engine will never start %s again", b.Name)
		b.broken = true
	case x.r.Intn(3) == 0:
		s.note("the engine is killed, and will never start %s again", b.Name)
		b.broken = true
		s.reboot()
	}
}

// mendExtra ends what lasts.
func (s *scenario) mendExtra() {
	if s.extra != nil && !s.extra.dies.IsZero() {
		s.moveAside()
	}
}

// publishes reports whether v wants the host port that moves.
func (s *scenario) publishes(v *ring.Service) bool {
	return s.extra != nil && s.extra.port && slices.ContainsFunc(v.Spec.Ports, func(p ring.Port) bool { return p.HostPort == "8080" })
}

// onPort reports whether a container has it.
func (b *box) onPort() bool {
	return slices.ContainsFunc(b.holds, func(h string) bool { return strings.HasPrefix(h, "port 8080") })
}
