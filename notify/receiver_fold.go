package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The measure of what people are told.
const (
	// tooOld is what nobody wants to hear any more: a daemon that was down says
	// what it missed, but no older news.
	tooOld = 24 * time.Hour
	// remindAfter is when a trouble that lasts, and repeats, is told again.
	remindAfter = 24 * time.Hour
	// together is how long a message waits for the one that says more: a rollout
	// that failed is restored, a drift is healed.
	together = time.Minute
	// calm is how long it has to be well before that is told of what came and went
	// more than flaps times with less than that in between.
	calm  = time.Hour
	flaps = 2
	// alone is how many messages at once are told one by one; more are one.
	alone = 3
	// perMinute is how many messages a chat gets in a minute.
	perMinute = 6
	// Bounds of the memory.
	mostHeld    = 200
	mostMatters = 500
	keepMatter  = 7 * 24 * time.Hour
	reasonLimit = 500
)

// memory is what the fold knows besides the events it is given. It is written
// down with the cursor; the zero value is that of a new receiver.
type memory struct {
	Open map[string]incident `json:"open,omitempty"`
	// Held are messages that wait for another one, or for their turn; Lost are
	// those that were too many to keep.
	Held []Note `json:"held,omitempty"`
	Lost int    `json:"lost,omitempty"`
	// Said counts the messages since Minute.
	Minute time.Time `json:"minute,omitzero"`
	Said   int       `json:"said,omitempty"`

	// Traces are commits that have not settled.
	Traces []trace `json:"traces,omitempty"`

	// settled reports whether a source is as a commit asks, as far as it will be; nil is always.
	settled func(source string, commit ring.SHA) bool
	// fresh is the first line that was journalled while this process ran: it is news
	// whatever clock its time is by. 0 is when nobody knows.
	fresh int64
	// away is until when nobody is there to be told: what waits is then one message.
	away time.Time
}

// isNews reports whether a line is not of a time that nobody asks about any more.
func (m *memory) isNews(e ring.Event, now time.Time) bool {
	return m.since(e) || now.Sub(e.At) <= tooOld
}

func (m *memory) since(e ring.Event) bool { return m.fresh > 0 && e.Seq >= m.fresh }

// when is the time of an event for the fold. The journal goes by a clock that nobody
// sets, the fold by one that somebody may: of what happens now it is now.
func (m *memory) when(e ring.Event, now time.Time) time.Time {
	if m.since(e) {
		return now
	}
	return e.At
}

// incident is one that was told, and lasts.
type incident struct {
	Kinds  []string  `json:"kinds"` // told of this commit
	Commit ring.SHA  `json:"commit,omitempty"`
	Since  time.Time `json:"since"`
	Told   time.Time `json:"told"`
	More   int       `json:"more,omitempty"` // times that were not told since
	// Over is when it ended; zero while it lasts. Ends is how often it did, each
	// time for less than calm.
	Over time.Time `json:"over,omitzero"`
	Ends int       `json:"ends,omitempty"`
}

// Note is one message before it is put into words. Its JSON form is stored.
type Note struct {
	Line    int64     `json:"line"` // of the journal
	Kind    string    `json:"kind"`
	Source  string    `json:"source,omitempty"`
	App     string    `json:"app,omitempty"`
	Service string    `json:"service,omitempty"`
	Commit  ring.SHA  `json:"commit,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
	// Count is how often it was repeated since Since, and not told.
	Count int       `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Also are messages that this one takes the place of, and Total their number.
	Also  []Note `json:"also,omitempty"`
	Total int    `json:"total,omitempty"`
	// Event is the journal's line itself, for machines.
	Event *ring.Event `json:"event,omitempty"`
	// Lines are those about a commit, of a trace; Cut is how many more there were.
	Lines []ring.Event `json:"lines,omitempty"`
	Cut   int          `json:"cut,omitempty"`

	Matter string    `json:"matter,omitempty"`
	Until  time.Time `json:"until,omitzero"` // it waits for another one
}

// kindSummary is of a note that stands for many, kindTest of one that a person asked for, and
// kindTrace of a commit that settled.
const (
	kindSummary = "summary"
	kindTest    = "notify.test"
	kindTrace   = "trace"
)

func noteOf(e ring.Event) Note {
	n := Note{Line: e.Seq, Kind: e.Kind, Source: e.Source, App: e.App, Service: e.Service, Commit: e.Commit, Reason: e.Reason, At: e.At}
	if len(n.Reason) > reasonLimit {
		n.Reason = n.Reason[:reasonLimit-3] + "..."
	}
	return n
}

// fold takes the next lines of the journal, and gives what is to be said now and
// when to ask again; zero is when there are more lines. It is a pure function: m
// is not changed.
func (c Choice) fold(m memory, events []ring.Event, now time.Time) (memory, []Note, time.Time) {
	if c.Traces {
		return c.traces(m, events, now)
	}
	if !c.Fold {
		return m, c.each(&m, events, now), time.Time{}
	}
	m = m.clone()
	for _, e := range events {
		c.take(&m, e, now)
	}
	m.forget(now)
	say, wake := m.release(now)
	return m, say, wake
}

// each is every event that is chosen: machines fold for themselves.
func (c Choice) each(m *memory, events []ring.Event, now time.Time) (say []Note) {
	for _, e := range events {
		if c.wants(e) && m.isNews(e, now) {
			n := noteOf(e)
			n.Event = &e
			say = append(say, n)
		}
	}
	return say
}

func (m memory) clone() memory {
	open := make(map[string]incident, len(m.Open))
	for k, o := range m.Open {
		o.Kinds = slices.Clone(o.Kinds)
		open[k] = o
	}
	m.Open, m.Held = open, slices.Clone(m.Held)
	return m
}

// take is one event.
func (c Choice) take(m *memory, e ring.Event, now time.Time) {
	if e.App != "" && (e.Kind == ring.AppRemoved || e.Kind == ring.AppLeft) {
		m.drop(e.App) // nobody will tell its end
	}
	i, p := incidentOf(e)
	if i < 0 {
		c.takeOnce(m, e, now)
		return
	}
	key := incidents[i].name + " " + subjectOf(e)
	if p == ends {
		c.takeEnd(m, key, i, e, now)
		return
	}
	c.takeBegin(m, key, i, e, now)
}

// takeOnce tells each thing once, however often it is journalled.
func (c Choice) takeOnce(m *memory, e ring.Event, now time.Time) {
	if !c.wants(e) || !m.isNews(e, now) {
		return
	}
	at := m.when(e, now)
	key := fmt.Sprintf("%s %s %s", e.Kind, subjectOf(e), e.Commit)
	if e.Kind == ring.OverrideExpiring { // a service can have several, and each says so once
		key += " " + noteOf(e).Reason
	}
	if o, told := m.Open[key]; told && at.Sub(o.Told) < remindAfter {
		return
	}
	m.Open[key] = incident{Since: at, Told: at}
	m.hold(noteOf(e))
}

func (c Choice) takeBegin(m *memory, key string, i int, e ring.Event, now time.Time) {
	if !c.wants(e) || !m.isNews(e, now) {
		return
	}
	at := m.when(e, now)
	o, known := m.Open[key]
	anew := incidents[i].byCommit && o.Commit != e.Commit
	if known && !o.Over.IsZero() { // it is back
		if anew || at.Sub(o.Over) > calm {
			o, known = incident{}, false
		} else {
			m.inPlaceOf(key, func(h Note) bool { return h.Until.After(now) }) // its end was not said, and is none
			o.Over = time.Time{}
		}
		if o.Ends <= flaps {
			o.Kinds, o.Since = nil, at
		}
	}
	if known && anew {
		o.Kinds = nil
	}
	if known && slices.Contains(o.Kinds, e.Kind) && at.Sub(o.Told) < remindAfter {
		o.More++
		m.Open[key] = o
		return
	}
	n := noteOf(e)
	n.Matter = key
	if next := follows[e.Kind]; next != "" && c.kind(next) && !slices.Contains(o.Kinds, e.Kind) {
		n.Until = at.Add(together)
	}
	if !known {
		o.Since = at
	}
	if slices.Contains(o.Kinds, e.Kind) { // a reminder
		n.Count, n.Since, o.More = o.More, o.Since, 0
	} else {
		o.Kinds = append(o.Kinds, e.Kind)
	}
	o.Commit, o.Told = e.Commit, at
	m.Open[key] = o
	m.inPlaceOf(key, func(h Note) bool { return follows[h.Kind] == e.Kind && h.Commit == e.Commit })
	m.hold(n)
}

// takeEnd tells an end to whom was told the beginning. One whose receiver hears
// no beginnings is told every end. Of what comes and goes it is told when it lasts.
func (c Choice) takeEnd(m *memory, key string, i int, e ring.Event, now time.Time) {
	o, known := m.Open[key]
	if known && !o.Over.IsZero() {
		return // its end was told, or waits to be
	}
	m.inPlaceOf(key, func(Note) bool { return true }) // over before it was said: once is enough
	if !c.wants(e) || !m.isNews(e, now) || !known && slices.ContainsFunc(incidents[i].begins, c.kind) {
		delete(m.Open, key)
		return
	}
	n := noteOf(e)
	n.Matter, n.Count, n.Since = key, o.More, o.Since
	if known {
		at := m.when(e, now)
		o.Over = at
		if o.Ends++; o.Ends > flaps {
			n.Until = at.Add(calm)
		} else {
			o.More = 0
		}
		m.Open[key] = o
	}
	m.hold(n)
}

// inPlaceOf takes out what is held of an incident, because what comes says it too.
func (m *memory) inPlaceOf(key string, gone func(Note) bool) {
	m.Held = slices.DeleteFunc(m.Held, func(h Note) bool { return h.Matter == key && gone(h) })
}

func (m *memory) hold(n Note) {
	m.Held = append(m.Held, n)
	if over := len(m.Held) - mostHeld; over > 0 {
		m.Held = slices.Delete(m.Held, 0, over)
		m.Lost += over
	}
}

// drop ends all incidents of an app without a word.
func (m *memory) drop(app string) {
	for key := range m.Open {
		_, subject, _ := strings.Cut(key, " ")
		if subject == app || strings.HasPrefix(subject, app+"/") {
			delete(m.Open, key)
			m.inPlaceOf(key, func(Note) bool { return true })
		}
	}
}

// forget lets go what was told longest ago.
func (m *memory) forget(now time.Time) {
	var keys []string
	for key, o := range m.Open {
		if now.Sub(o.Told) > keepMatter || !o.Over.IsZero() && now.Sub(o.Over) > calm || o.Kinds == nil && now.Sub(o.Told) > remindAfter {
			delete(m.Open, key)
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) <= mostMatters {
		return
	}
	slices.SortFunc(keys, func(a, b string) int { return m.Open[a].Told.Compare(m.Open[b].Told) })
	for _, key := range keys[:len(keys)-mostMatters] {
		delete(m.Open, key)
	}
}

// release is what is said now of what is held: few messages one by one, many as
// one, and no more than a person can read in a minute.
func (m *memory) release(now time.Time) (say []Note, wake time.Time) {
	var ready, waits []Note
	for _, n := range m.Held {
		if n.Until.Sub(now) > calm {
			n.Until = now.Add(calm) // the clock was set back
		}
		if n.Until.After(now) {
			waits = append(waits, n)
			wake = soonest(wake, n.Until)
			continue
		}
		ready = append(ready, n)
	}
	if len(ready) == 0 {
		return nil, wake
	}
	if m.away.After(now) {
		return nil, soonest(wake, m.away)
	}
	if now.Sub(m.Minute) >= time.Minute || now.Before(m.Minute) {
		m.Minute, m.Said = now, 0
	}
	if m.Said >= perMinute {
		return nil, soonest(wake, m.Minute.Add(time.Minute))
	}
	m.Held = waits
	if len(ready) > alone || m.Said+len(ready) > perMinute || m.Lost > 0 {
		ready = []Note{summed(ready, m.Lost)}
		m.Lost = 0
	}
	m.Said += len(ready)
	for i := range ready {
		ready[i].Until, ready[i].Matter = time.Time{}, ""
	}
	return ready, wake
}

// namedInSum is how many messages a summary names.
const namedInSum = 10

func summed(notes []Note, lost int) Note {
	last := notes[len(notes)-1]
	s := Note{Line: last.Line, Kind: kindSummary, At: last.At, Since: notes[0].At, Total: len(notes) + lost, Also: slices.Clone(notes[:min(len(notes), namedInSum)])}
	for i := range s.Also {
		s.Also[i].Matter, s.Also[i].Until = "", time.Time{}
	}
	return s
}

func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
