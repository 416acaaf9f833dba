package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The table of a front is made whole, at each look, from what is seen, meant and known to be
// in force there. Replacing an instance is what comes of making it again and again: the new
// one active, the old one draining, the old one gone.

// gapDrain is how long what is in flight has where all requests wait for it.
const gapDrain = 5 * time.Second

// seat is what a table is to ask of one instance.
type seat struct {
	in  *instance
	was ring.FrontInstance // in the newest table that the front was told
	ring.FrontInstance
	stays   bool // it was active, and is neither ready nor on its way out
	reached bool
	ends    bool // a step that stops it is decided or in flight
	cut     int  // what was in flight to it at its deadline, where this table cuts that
}

// wantedTable is what a front is to be told, with the instances that it cuts. Its generation
// is not said yet.
func (t *Pass) wantedTable(v *service, f *toldFront) (ring.FrontTable, []seat) {
	r := v.route()
	table := ring.FrontTable{
		Service: string(v.id), Ports: t.portsOfFront(v, f), Queue: r.Queue, Forwarded: r.Forwarded, Trusted: r.Trusted,
		Sticky: r.Sticky, LogErrors: r.LogErrors, Connections: r.Connections, Gateways: f.in.Gateways,
		Leaving: f.isToldToLeave(),
	}
	seats := make([]seat, 0, len(v.instances))
	for _, in := range v.instances {
		name := ring.FrontName(in.ID)
		s := seat{in: in, was: f.lastTable().State(name)}
		seen, _ := f.reached(name)
		s.FrontInstance = ring.FrontInstance{Name: name, Version: in.Version.Short()}
		s.reached, s.ends = seen.Reached, t.stopsNow(v, in)
		t.seatInstance(v, f, &s)
		seats = append(seats, s)
	}
	t.limitDrains(v, f, seats)
	if !hasActive(seats) {
		table.QueueUntil = t.queueUntil(v, f, seats)
		if !table.QueueUntil.IsZero() {
			t.warmUp(seats)
		}
		t.seatSomebody(v, seats, !table.QueueUntil.IsZero())
	}
	if hasActive(seats) {
		table.QueueUntil = time.Time{}
	}
	v.weighCanary(&table, seats)
	var cuts []seat
	for i := range seats {
		s := &seats[i]
		if s.State == ring.FrontDraining && s.Until.IsZero() {
			s.Until = t.now.Add(t.drainTime(v, seats)).UTC()
		}
		if s.State == ring.FrontDraining {
			t.wakeBy(s.Until)
		}
		if s.State != "" {
			table.Instances = append(table.Instances, s.FrontInstance)
		} else if s.cut > 0 {
			cuts = append(cuts, *s)
		}
	}
	slices.SortFunc(table.Instances, func(a, b ring.FrontInstance) int { return cmp.Compare(a.Name, b.Name) })
	return table, cuts
}

// portsOfFront are the ports that a front listens on: it keeps those that it was made with.
func (t *Pass) portsOfFront(v *service, f *toldFront) []ring.FrontPort {
	front, last := t.views[frontID(v.id)], f.lastTable()
	switch {
	case front != nil && f.in.Version == front.want.Version && v.want.Route != nil:
		return v.want.Route.Ports
	case last != nil && len(last.Ports) > 0:
		return last.Ports
	}
	return v.route().Ports
}

// seatInstance says what one instance is to be by itself, whatever the others are.
func (t *Pass) seatInstance(v *service, f *toldFront, s *seat) {
	in, wasActive := s.in, s.was.State == ring.FrontActive
	switch {
	case in.intent == intentPark && in.Version == v.target.Version && s.was.State != "":
		s.State, s.Until = s.was.State, s.was.Until // it was kept, as its front was, and is wanted again
	case in.intent == intentReload && in.State == ring.StateRunning:
		if s.State = ring.FrontWarm; s.was.State == ring.FrontDraining {
			s.State, s.Until = s.was.State, s.was.Until
		}
	case in.isGoingOut(t.Facts.Intents[in.ID].At):
		if s.was.State == "" || !in.Live() && !t.startsNow(v, in) {
			return // nothing new may come to it
		}
		drains := s.was.State == ring.FrontDraining && f.table.State(s.was.Name).State == ring.FrontDraining
		if drains && t.isDrained(v, f, s) {
			return
		}
		if s.State = ring.FrontDraining; drains { // by a table that is in force
			s.Until = s.was.Until
		}
	case s.ends && s.was.State == "":
		// not named anew: what is named is stopped only after it went out
	case in.State != ring.StateRunning:
		if s.stays = wasActive; s.was.State != "" {
			s.State = ring.FrontWarm // it may run again by the time that the table is in force
		}
	case (in.fit || wasActive && !in.down) && (s.reached || wasActive) && !t.standsBy(v, in):
		s.State = ring.FrontActive
	case in.fit, in.young:
		s.State = ring.FrontWarm
	case s.was.State != "":
		s.State, s.stays = ring.FrontWarm, wasActive
	}
}

// isDrained reports whether an instance that drains has nothing in flight, as the front says
// of the table by which it drains, or had its time.
func (t *Pass) isDrained(v *service, f *toldFront, s *seat) bool {
	seen, tried := f.reached(s.was.Name)
	if !t.now.Before(s.was.Until) {
		s.cut = seen.InFlight
		return true
	}
	if !tried || !f.has() || seen.InFlight > 0 || f.seen.Old > 0 {
		return false
	}
	if !f.table.QueueUntil.IsZero() {
		return true
	}
	least := t.Facts.Intents[s.in.ID].At.Add(v.want.Rollout.DrainDelay)
	t.wakeBy(least)
	return !t.now.Before(least)
}

// limitDrains has at most as many drain as replicas are wanted: of more the oldest is cut,
// of those that drain by a table in force, and those that would begin to wait.
func (t *Pass) limitDrains(v *service, f *toldFront, seats []seat) {
	var drain []*seat
	for i := range seats {
		if seats[i].State == ring.FrontDraining && f.table.State(seats[i].Name).State == ring.FrontDraining {
			drain = append(drain, &seats[i])
		}
	}
	meant := func(s *seat) time.Time { return t.Facts.Intents[s.in.ID].At }
	slices.SortStableFunc(drain, func(a, b *seat) int { return meant(a).Compare(meant(b)) })
	all := 0
	for i := range seats {
		if seats[i].State == ring.FrontDraining {
			all++
		}
	}
	for ; all > max(1, v.want.Replicas) && len(drain) > 0; all-- {
		seen, _ := f.reached(drain[0].Name)
		drain[0].State, drain[0].cut = "", seen.InFlight
		drain = drain[1:]
	}
	for i := len(seats) - 1; i >= 0 && all > max(1, v.want.Replicas); i-- {
		if s := &seats[i]; s.State == ring.FrontDraining { // it begins once another one has drained
			s.State = s.was.State
			all--
		}
	}
}

func hasActive(seats []seat) bool {
	return slices.ContainsFunc(seats, func(s seat) bool { return s.State == ring.FrontActive })
}

// warmUp names what runs, while requests wait for it: it is tried before it is ready.
func (t *Pass) warmUp(seats []seat) {
	for i := range seats {
		if s := &seats[i]; s.State == "" && !s.ends && s.in.State == ring.StateRunning && !s.in.isGoingOut(t.Facts.Intents[s.in.ID].At) {
			s.State = ring.FrontWarm
		}
	}
}

// drainTime is how long what is in flight to an instance that begins to drain has: little
// where all requests wait for it.
func (t *Pass) drainTime(v *service, seats []seat) time.Duration {
	if hasActive(seats) || v.target.Replicas == 0 {
		return v.route().DrainTimeout
	}
	return min(gapDrain, v.route().DrainTimeout)
}

// queueUntil is how long requests may wait, where nothing gets any in a gap that gitring
// makes; zero is not at all. It is renewed for as long as the gap goes on.
func (t *Pass) queueUntil(v *service, f *toldFront, seats []seat) time.Time {
	queue := v.route().Queue
	leaves := slices.ContainsFunc(seats, func(s seat) bool {
		return s.was.State == ring.FrontActive && (s.State == ring.FrontDraining || s.in.intent == intentReload)
	})
	was := time.Time{}
	if last := f.lastTable(); last != nil {
		was = last.QueueUntil
	}
	if queue == 0 || v.target.Replicas == 0 || !leaves && (was.IsZero() && !(v.isExclusive() && len(t.publishersOf(v)) > 0) || !t.isInGap(v)) {
		return time.Time{}
	}
	if renew := was.Add(-queue); t.now.Before(renew) {
		t.wakeBy(renew)
		return was
	}
	until := t.now.Add(2 * queue).UTC()
	t.wakeBy(until.Add(-queue))
	return until
}

// isInGap reports whether gitring still is at what it took the last instance out for.
func (t *Pass) isInGap(v *service) bool {
	if t.isBusy(string(v.id)) {
		return true
	}
	for _, in := range v.instances {
		if in.Live() && in.isGoingOut(t.Facts.Intents[in.ID].At) { // one that was stopped and is kept went out
			return true
		}
		if in.State == ring.StateRunning && !in.rests {
			until := laterOf(in.Since, t.Awake).Add(patienceOf(v.target))
			t.wakeBy(until)
			if t.now.Before(until) {
				return true
			}
		}
	}
	switch stateOf(t, v) {
	case Starting:
		return v.failed == nil // what goes on though it failed is reached as it is
	case Restoring:
		return true
	}
	return false
}

// seatSomebody is for a table that names nothing active: the first green answer is enough.
// Where requests do not wait, nobody is taken out, and what is green or had its time gets
// them all the same, as Compose would have it.
func (t *Pass) seatSomebody(v *service, seats []seat, queues bool) {
	seatThose := func(may func(s *seat) bool) bool {
		any := false
		for i := range seats {
			s := &seats[i]
			if s.State == ring.FrontDraining || s.in.isGoingOut(t.Facts.Intents[s.in.ID].At) || s.ends && s.was.State == "" {
				continue
			}
			if may(s) {
				s.State, any = ring.FrontActive, true
			}
		}
		return any
	}
	runs := func(s *seat) bool { return s.in.State == ring.StateRunning }
	green := func(s *seat) bool { return runs(s) && (s.in.fit || s.in.young) }
	switch {
	case seatThose(func(s *seat) bool { return green(s) && s.reached && !t.standsBy(v, s.in) }): // what failed comes after it
	case seatThose(func(s *seat) bool { return green(s) && s.reached }), queues:
	case seatThose(func(s *seat) bool { return s.stays && !t.standsBy(v, s.in) }): // what is green is reached first
	case seatThose(func(s *seat) bool { return s.stays }):
	case seatThose(func(s *seat) bool { return green(s) && !t.standsBy(v, s.in) }), seatThose(green):
	case seatThose(func(s *seat) bool { return runs(s) && !s.in.down && s.in.Version != v.target.Version }): // nobody knows its checks
	default:
		seatThose(func(s *seat) bool {
			if !runs(s) {
				return false
			}
			until := laterOf(s.in.Since, t.Awake).Add(patienceOf(v.target))
			t.wakeBy(until)
			return !t.now.Before(until)
		})
	}
}

// tellFronts sends the fronts of a service their tables, one at a time, where they have
// other ones. What was sent and not heard of is followed by another one first.
func (t *decider) tellFronts(v *service) {
	if !v.hasFront() || t.handsOff(v.id) || !v.waits.None() && v.waits.Code == ring.WhyStateOlder {
		return
	}
	row := t.Facts.Fronts[v.id]
	fronts := t.frontsOf(v.id)
	t.readBack(v, row, fronts)
	row = t.Facts.Fronts[v.id]
	open := slices.ContainsFunc(fronts, func(f toldFront) bool { return f.sent != nil && f.seen != nil })
	for _, f := range inTurn(fronts) {
		if f.seen == nil && (f.wrong != "" || !t.lacksTable(f.in, row)) || open && f.sent == nil {
			continue
		}
		table, cuts := t.wantedTable(v, f)
		if f.has() && sameTable(f.table, &table) || f.seen == nil && f.sent != nil && sameTable(f.sent, &table) {
			continue
		}
		sends := t.sendTable(v, f, row, table)
		if !sends && f.seen == nil {
			continue // others do not wait for one that does not answer
		}
		if sends {
			for i := range cuts {
				t.addEvent(ring.Event{
					Kind: ring.DrainCut, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Slot: cuts[i].in.Slot,
					Version: cuts[i].in.Version, Commit: v.app.Commit, Reason: say("%d in flight to slot %d were cut", cuts[i].cut, cuts[i].in.Slot),
				})
			}
		}
		return
	}
}

// readBack remembers a table that a front has in force and nobody remembers: the database
// was lost, or the daemon ended before it could write it down.
func (t *decider) readBack(v *service, row ring.FrontRow, fronts []toldFront) {
	if slices.ContainsFunc(fronts, func(f toldFront) bool { return f.sent != nil || f.in.ID == row.Front && !f.has() }) {
		return
	}
	for i := range fronts {
		f := &fronts[i]
		if !f.has() || row.Front == f.in.ID && row.Table.Generation == f.table.Generation {
			continue
		}
		if row.Front == f.in.ID || !slices.ContainsFunc(fronts, func(x toldFront) bool { return x.in.ID == row.Front }) {
			t.setFact(ring.FrontRow{Service: v.id, Table: *f.table, Front: f.in.ID, Claims: f.claimsOf(row), Open: row.Open, Restarts: row.Restarts})
			if row.Front != "" && row.Front != f.in.ID {
				t.addEvent(ring.Event{
					Kind: ring.FrontReplaced, Source: v.app.Source, App: v.app.Name, Service: v.want.Name,
					Commit: v.app.Commit, Reason: say("%s goes on with %s", f.in.Name, tableSays(f.table)),
				})
			}
			return
		}
	}
}

// sendTable decides the step that tells a front its table. That it is on its way is written
// down first: it may come into force though nobody hears of it. It reports whether it was
// decided.
func (t *decider) sendTable(v *service, f *toldFront, row ring.FrontRow, table ring.FrontTable) bool {
	table.Generation = 1 + row.Table.Generation
	if f.seen != nil {
		table.Generation = max(table.Generation, 1+f.seen.Generation)
	}
	for _, told := range []*ring.FrontTable{row.Sent, f.table, f.sent, f.open} {
		if told != nil {
			table.Generation = max(table.Generation, told.Generation+1)
		}
	}
	if row.Sent != nil && row.SentTo != f.in.ID && t.isSeen(row.SentTo) { // it may still come into force there
		row.Open = maps.Clone(row.Open)
		put(&row.Open, row.SentTo, *row.Sent)
	}
	open := maps.Clone(row.Open)
	maps.DeleteFunc(open, func(id string, _ ring.FrontTable) bool { return id == f.in.ID || !t.isSeen(id) })
	a := ring.Action{
		Kind: ring.DoRoute, App: v.app.Name, Service: v.want.Name, Commit: v.app.Commit, Instance: f.in.ID, Name: f.in.madeName(),
		Version: f.in.Version, Table: &table, Reason: tableSays(&table),
		Then: []ring.Fact{ring.FrontRow{Service: v.id, Table: table, Front: f.in.ID, Claims: f.claimsOf(row), Open: open, Restarts: row.Restarts}},
	}
	switch {
	case f.table != nil:
	case row.Front == "":
		a.Told = ring.FrontTook
	default:
		a.Told = ring.FrontReplaced
	}
	if !t.addStep(a) {
		return false
	}
	row.Service, row.Sent, row.SentTo = v.id, &table, f.in.ID
	t.setFact(row)
	return true
}

// tableSays is a table in a few words.
func tableSays(table *ring.FrontTable) string {
	counts := map[ring.FrontState]int{}
	for _, in := range table.Instances {
		counts[in.State]++
	}
	out := []string{say("%d active", counts[ring.FrontActive])}
	for _, state := range []ring.FrontState{ring.FrontWarm, ring.FrontDraining} {
		if counts[state] > 0 {
			out = append(out, say("%d %s", counts[state], state))
		}
	}
	if !table.QueueUntil.IsZero() {
		out = append(out, "requests wait")
	}
	return say("table %d: %s", table.Generation, strings.Join(out, ", "))
}

// sameTable reports whether two tables ask the same.
func sameTable(a, b *ring.FrontTable) bool {
	return a.Service == b.Service && a.CanaryWeight == b.CanaryWeight && a.QueueUntil.Equal(b.QueueUntil) && a.Queue == b.Queue &&
		a.Forwarded == b.Forwarded && a.Sticky == b.Sticky && a.LogErrors == b.LogErrors && a.Leaving == b.Leaving && a.Connections == b.Connections &&
		slices.Equal(a.Ports, b.Ports) && slices.Equal(a.Trusted, b.Trusted) && slices.Equal(a.Gateways, b.Gateways) && equalValues(a.Match, b.Match) &&
		slices.EqualFunc(a.Instances, b.Instances, func(x, y ring.FrontInstance) bool {
			return x.Name == y.Name && x.Version == y.Version && x.State == y.State && x.Set == y.Set && x.Until.Equal(y.Until)
		})
}
