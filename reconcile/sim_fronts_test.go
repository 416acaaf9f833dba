package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The fronts of the model: each as simple as it can be. What one has in flight is what a
// story says, or ends a while after nothing new comes to an instance.
type fronts struct {
	front   map[string]*modelFront     // by container ID, those that run
	tables  map[string]ring.FrontTable // on disk, by container name
	silent  map[string]bool            // fronts that do not answer, by container ID
	deaf    map[string]bool            // instances that no front can reach, by container ID
	streams map[string]time.Duration   // how long what is in flight to an instance goes on, by name
	worlds  int                        // proxies that ever began
	cutAll  int                        // what was cut at a deadline
}

type modelFront struct {
	in      *box
	table   ring.FrontTable
	process string
	since   time.Time            // of process
	until   map[string]time.Time // by name, until when something is in flight to one that drains
}

func newFronts() fronts {
	return fronts{
		front: map[string]*modelFront{}, tables: map[string]ring.FrontTable{}, silent: map[string]bool{},
		deaf: map[string]bool{}, streams: map[string]time.Duration{},
	}
}

// frontBegins is a front that starts: with the table that lies on its disk.
func (e *engine) frontBegins(b *box) {
	if b.frontOf == "" {
		return
	}
	e.worlds++
	e.front[b.ID] = &modelFront{in: b, table: e.tables[b.Name], process: strconv.Itoa(e.worlds), since: e.now, until: map[string]time.Time{}}
}

func (e *engine) frontEnds(b *box) { delete(e.front, b.ID) }

// frontMoment is when what is in flight to one that drains ends, at most until.
func (e *engine) frontMoment(until time.Time) time.Time {
	for _, f := range e.front {
		for _, at := range f.until {
			if at.After(e.now) && at.Before(until) {
				until = at
			}
		}
	}
	return until
}

// boxOf is the container that a table names.
func (e *engine) boxOf(name string) *box { return e.boxes[name] } // the IDs of the model are short

// inFlight is how much is in flight to an instance.
func (e *engine) inFlight(f *modelFront, name string) int {
	b := e.boxOf(name)
	if b == nil || !b.running() {
		return 0
	}
	switch f.state(name) {
	case ring.FrontActive:
		return 1
	case ring.FrontDraining, ring.FrontWarm:
		if e.now.Before(f.until[name]) {
			return 1
		}
	}
	return 0
}

func (f *modelFront) state(name string) ring.FrontState {
	for _, in := range f.table.Instances {
		if in.Name == name {
			return in.State
		}
	}
	return ""
}

// frontsSeen is what the fronts that answer say.
func (e *engine) frontsSeen() map[string]ring.FrontSeen {
	if len(e.front) == 0 {
		return nil
	}
	out := map[string]ring.FrontSeen{}
	for id, f := range e.front {
		if !e.silent[id] {
			out[id] = e.seenOf(f)
		}
	}
	return out
}

func (e *engine) seenOf(f *modelFront) ring.FrontSeen {
	table := f.table
	seen := ring.FrontSeen{At: e.wall(), Generation: table.Generation, Process: f.process, Build: "sha256:1"}
	if table.Generation > 0 {
		seen.Table = &table
	}
	for _, in := range table.Instances {
		b := e.boxOf(in.Name)
		x := ring.FrontInstanceSeen{Name: in.Name, InFlight: e.inFlight(f, in.Name)}
		if x.Reached = b != nil && b.running() && !e.deaf[b.ID]; !x.Reached {
			x.Why = "connection refused"
		}
		seen.Connections += x.InFlight
		seen.Instances = append(seen.Instances, x)
	}
	return seen
}

// route is a front that is told a table: on disk first, then in force.
func (e *engine) route(a ring.Action) (ring.Done, error) {
	b := e.boxes[a.Instance]
	if b == nil || b.Name != a.Name {
		return ring.Done{}, errors.New("no such front")
	}
	if b.frontOf != a.Service || b.App != a.App {
		e.violate("a table of %s/%s is told to %s", a.App, a.Service, b.Name)
	}
	if lies := e.tables[b.Name]; a.Table.Generation > lies.Generation {
		e.tables[b.Name] = *a.Table
	}
	f := e.front[b.ID]
	if f == nil || e.silent[b.ID] {
		return ring.Done{}, errors.New("the front does not answer")
	}
	if a.Table.Generation <= f.table.Generation {
		return ring.Done{}, fmt.Errorf("table %d is not newer than %d", a.Table.Generation, f.table.Generation)
	}
	e.takeTable(f, *a.Table)
	seen := e.seenOf(f)
	return ring.Done{Front: &seen}, nil
}

// takeTable has a front carry by another table: what it names no more is cut.
func (e *engine) takeTable(f *modelFront, table ring.FrontTable) {
	was := f.table
	for _, in := range was.Instances {
		n := e.inFlight(f, in.Name)
		f.table = table
		switch now := f.state(in.Name); {
		case now == "" && n > 0:
			e.cutAll += n
			if in.State != ring.FrontDraining || e.now.Before(in.Until) {
				e.violate("I20: table %d cuts what is in flight to %s before its deadline", table.Generation, in.Name)
			}
		case now != ring.FrontActive && in.State == ring.FrontActive:
			f.until[in.Name] = e.now.Add(e.streams[in.Name])
		}
		f.table = was
	}
	f.table = table
	e.note("front %s takes %s", f.in.Name, describeTable(table))
	e.told("table", describeTable(table), f.in)
}

// describeTable is a table as stories write it: c001 active, c002 draining.
func describeTable(t ring.FrontTable) string {
	var out []string
	for _, in := range t.Instances {
		out = append(out, in.Name+" "+string(in.State))
	}
	if !t.QueueUntil.IsZero() {
		out = append(out, "queue")
	}
	return strings.Join(out, ", ")
}

// watchCut holds a stop of ours to I20: nothing that a front has in force sends requests to
// is stopped, and nothing that has something in flight before its deadline.
func (e *engine) watchCut(a ring.Action, b *box) {
	stops := []ring.ActionKind{ring.DoStop, ring.DoRemove, ring.DoRestart}
	if !slices.Contains(stops, a.Kind) || !b.running() {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(e.front)) {
		f := e.front[id]
		if f.in.App != b.App || f.in.frontOf != b.Service {
			continue
		}
		for _, in := range f.table.Instances {
			if in.Name != b.ID {
				continue
			}
			if in.State != ring.FrontDraining {
				e.violate("I20: %s of %s, which table %d of %s has %s", a.Kind, b.Name, f.table.Generation, f.in.Name, in.State)
			} else if e.inFlight(f, in.Name) > 0 && e.now.Before(in.Until) {
				e.violate("I20: %s of %s, which has something in flight until %s", a.Kind, b.Name, in.Until.Sub(epoch))
			}
		}
	}
}
