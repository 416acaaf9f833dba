package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// promise is what a service may count on, whatever happens to gitring.
type promise struct {
	replicas int
	surge    int  // how many more may be there meanwhile
	alone    bool // it holds what two may not hold: its slot is recreated
	still    bool // no commit of the test changes it
}

// settles is min_ready_time of the tests' services; unsure is how much longer one
// may run before gitring can have seen that it is ready.
const (
	settles = 500 * time.Millisecond
	unsure  = 2 * time.Second
)

// witness reads the engine's own journal, of everything and not only of what is
// labelled, and holds it to the invariants of the reconciler. It knows nothing of
// gitring but the labels on its containers.
type witness struct {
	t         *testing.T
	engine    *engine
	host, app string
	promises  map[string]promise
	strangers []string        // containers that are somebody else's
	byHand    map[string]bool // containers that the test itself stops

	mu    sync.Mutex // guards what follows
	list  []engineEvent
	ended chan struct{} // of the stream that is read now
}

// In the list where the engine was told to end, and where it began anew. What it
// does in between is its own.
const (
	downing = "the engine is told to end"
	reboot  = "the engine answers again"
)

func newWitness(h *host, app string, promises map[string]promise) *witness {
	h.t.Helper()
	w := &witness{t: h.t, engine: h.engine, host: h.name, app: app, promises: promises, byHand: map[string]bool{}}
	w.listen(strconv.FormatInt(time.Now().Unix(), 10))
	return w
}

// listen reads until the test ends, or the engine.
func (w *witness) listen(since string) {
	w.t.Helper()
	filters, err := json.Marshal(map[string][]string{
		"type":  {"container", "volume"},
		"event": {"create", "start", "restart", "kill", "die", "stop", "destroy", "rename", "update", "pause", "unpause", "oom"},
	})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	q := url.Values{"filters": {string(filters)}, "since": {since}}
	r, err := http.NewRequestWithContext(ctx, "GET", "http://engine/v1.41/events?"+q.Encode(), nil)
	require.NoError(w.t, err)
	res, err := w.engine.http.Do(r)
	require.NoError(w.t, err)
	ended := make(chan struct{})
	w.ended = ended
	go func() {
		defer close(ended)
		for d := json.NewDecoder(res.Body); ; {
			var e engineEvent
			if d.Decode(&e) != nil {
				return
			}
			if w.concerned(e) {
				w.add(e)
			}
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-ended
		_ = res.Body.Close()
	})
}

func (w *witness) add(e engineEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, e)
}

// concerned reports whether an event is about this host, or about what is not to be touched.
func (w *witness) concerned(e engineEvent) bool {
	if e.Type == "volume" {
		return strings.HasPrefix(e.Actor.ID, w.app)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.Actor.Attributes["gitring.host"] == w.host || slices.Contains(w.strangers, e.Actor.ID)
}

// engineEnds is said before somebody ends the engine.
func (w *witness) engineEnds() {
	w.add(engineEvent{Action: downing, TimeNano: time.Now().UnixNano()})
}

// engineIsBack goes on with an engine that began anew; what it did by itself
// before it answered is its own.
func (w *witness) engineIsBack() {
	w.t.Helper()
	<-w.ended
	w.add(engineEvent{Action: reboot, TimeNano: time.Now().UnixNano()})
	w.listen("1") // the engine remembers what it told since its start
}

// stranger runs a container that gitring has no business with.
func (w *witness) stranger(name string, labels map[string]string) {
	w.t.Helper()
	id, err := w.engine.start(name, "none", labels)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = w.engine.remove(id) })
	// What the test itself did to it is not held against anybody.
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strangers = append(w.strangers, id)
}

// bystanders are next to the app: one without labels, one of another Compose
// project, one of another host.
func (w *witness) bystanders() {
	w.t.Helper()
	w.stranger(w.app+"-web-9", nil)
	w.stranger(w.app+"-neighbour", map[string]string{"com.docker.compose.project": w.app + "x", "com.docker.compose.service": "web"})
	w.stranger(w.app+"-elsewhere", map[string]string{"gitring.host": w.host + "x", "gitring.app": w.app, "gitring.service": "web"})
}

// seen are all events until now, of which the engine told the last some time ago.
func (w *witness) seen() []engineEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// holds is the verdict. From live on the app was whole, and I1 counts.
func (w *witness) holds(live time.Time) {
	w.t.Helper()
	events := w.seen()
	faults := judge(slices.DeleteFunc(slices.Clone(events), func(e engineEvent) bool {
		return e.Action == "kill" && w.byHand[e.Actor.ID]
	}), w.promises, w.strangers, live)
	if len(faults) > 0 {
		w.t.Fatalf("%s\n\nthe engine told:\n%s", strings.Join(faults, "\n"), journalOf(events))
	}
	stops := 0
	for _, e := range events {
		if e.Action == "kill" && !e.at().Before(live) {
			stops++
		}
	}
	require.Positive(w.t, stops, "nothing was stopped: the test shows nothing")
	w.t.Logf("%d events of the engine read", len(events))
}

// box is a container as its events tell.
type box struct {
	id, name, service, slot, version string

	bad       bool // a version that never becomes ready
	ended     bool // created and running ones are live
	running   bool
	since     time.Time
	signalled bool // told to stop, in its present life
	starts    int  // since the engine began
}

// judge reads a journal and says what was broken:
//
//	I1  a stop signal never leaves fewer serving than there should be
//	I2  a create never makes more than there may be
//	I3  one slot of a service never has two instances of one version
//	I4  nobody else's container is touched
//	I13 no volume goes
//	I18 what must be alone never runs twice
//
// and that what no commit changed was not touched.
func judge(events []engineEvent, promises map[string]promise, strangers []string, live time.Time) (faults []string) {
	boxes := map[string]*box{}
	down := false // or on its way there
	booting := time.Time{}
	for _, e := range events {
		at := e.at()
		blame := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("%s %.12s %s: ", at.UTC().Format("15:04:05.000"), e.Actor.ID, e.Actor.Attributes["name"])+fmt.Sprintf(format, args...))
		}
		if e.Action == reboot {
			booting, down = at, false
			for _, b := range boxes {
				b.running, b.ended, b.starts = false, b.ended || b.running, 0
			}
			continue
		}
		if e.Action == downing {
			down = true
			continue
		}
		answered := !down && at.After(booting)
		if e.Type == "volume" {
			if e.Action == "destroy" {
				blame("I13: a volume is removed")
			}
			continue
		}
		if slices.Contains(strangers, e.Actor.ID) {
			if at.After(live) && answered && e.Action != "start" && e.Action != "create" {
				blame("I4: %s of a container that is not ours", e.Action)
			}
			continue
		}
		b := boxes[e.Actor.ID]
		if b == nil {
			l := e.Actor.Attributes
			b = &box{id: e.Actor.ID, name: l["name"], service: l["gitring.service"], slot: l["gitring.slot"], version: l["gitring.version"], bad: l["e2e.bad"] != ""}
			boxes[e.Actor.ID] = b
		}
		b.name = e.Actor.Attributes["name"] // a rename changes it
		p, known := promises[b.service]
		if !known {
			continue
		}
		others := func(is func(x *box) bool) (n int) {
			for _, x := range boxes {
				if x != b && x.service == b.service && is(x) {
					n++
				}
			}
			return n
		}
		if p.still && answered && at.After(live) && e.Action != "update" && (booting.IsZero() || e.Action != "start" || b.starts > 0) {
			blame("%s of an instance that no commit changed", e.Action)
		}
		switch e.Action {
		case "create":
			if !booting.IsZero() {
				// An engine that ended tells nobody what it removed last. It gives a name to one
				// container at a time: who had this one is gone.
				maps.DeleteFunc(boxes, func(_ string, x *box) bool { return x != b && b.name != "" && x.name == b.name })
			}
			if n := others(func(x *box) bool { return !x.ended }); !p.alone && n+1 > p.replicas+p.surge {
				blame("I2: a create with %d live", n)
			}
			if others(func(x *box) bool { return x.slot == b.slot && x.version == b.version }) > 0 {
				blame("I3: slot %s has an instance of this version", b.slot)
			}
		case "start":
			b.running, b.ended, b.since, b.signalled = true, false, at, false
			b.starts++
			running := others(func(x *box) bool { return x.running })
			if p.alone && running > 0 {
				blame("I18: it starts while another runs")
			}
			if answered && running+1 > p.replicas+p.surge {
				blame("I2: a start with %d running", running)
			}
		case "kill":
			if b.signalled || !answered {
				continue // the kill after the grace is the end of the same stop
			}
			b.signalled = true
			if served := b.running && !b.bad && !b.since.Add(settles+unsure).After(at); p.alone || !served || at.Before(live) {
				continue // who does not serve yet costs nothing
			}
			n := others(func(x *box) bool {
				return x.running && !x.signalled && !x.bad && !x.since.Add(settles).After(at)
			})
			if n < p.replicas {
				blame("I1: a stop signal with %d others that serve, of %d", n, p.replicas)
			}
		case "die":
			b.running, b.ended = false, true
		case "destroy":
			delete(boxes, e.Actor.ID)
		case "oom":
			blame("out of memory")
		}
	}
	return faults
}

// journalOf are events as people read them, the last hundred.
func journalOf(events []engineEvent) string {
	var b strings.Builder
	for _, e := range events[max(0, len(events)-100):] {
		fmt.Fprintf(&b, "  %s %-8s %.12s %s\n", e.at().UTC().Format("15:04:05.000"), e.Action, e.Actor.ID, e.Actor.Attributes["name"])
	}
	return b.String()
}

// --- the witness itself --------------------------------------------------------

func TestTheWitnessSeesEachBrokenPromise(t *testing.T) {
	promises := map[string]promise{
		"web": {replicas: 2, surge: 1}, "db": {replicas: 1, surge: 1, alone: true}, "still": {replicas: 1, still: true},
	}
	begin := time.Unix(1000, 0)
	// "1.5 start web1/v2": a second and a half after the start of the test, web's slot 1, version v2.
	read := func(lines string) (events []engineEvent) {
		for i, line := range strings.Split(lines, ",") {
			f := strings.Fields(line)
			after, err := strconv.ParseFloat(f[0], 64)
			require.NoError(t, err, line)
			e := engineEvent{Type: "container", Action: f[1], TimeNano: begin.Add(time.Duration(after*1e9) + time.Duration(i)).UnixNano()}
			if f[1] == "reboot" || f[1] == "downing" {
				e.Action = map[string]string{"reboot": reboot, "downing": downing}[f[1]]
				events = append(events, e)
				continue
			}
			e.Actor.ID = f[2]
			slot, version, _ := strings.Cut(strings.TrimRight(f[2], "'"), "/")
			name := strings.TrimRight(f[2], "'")
			if f[1] == "rename" {
				name = f[3]
			}
			e.Actor.Attributes = map[string]string{"name": name, "gitring.service": strings.TrimRight(slot, "123"), "gitring.slot": slot[len(slot)-1:], "gitring.version": version}
			if strings.HasSuffix(version, "bad") {
				e.Actor.Attributes["e2e.bad"] = "1"
			}
			if f[2] == "volume" {
				e.Type = "volume"
			}
			events = append(events, e)
		}
		return events
	}
	const up = "0 create web1/a,0 start web1/a,0 create web2/a,0 start web2/a,0 create db1/a,0 start db1/a,0 create still1/a,0 start still1/a,"
	for _, tt := range []struct{ name, lines, fault string }{
		{"a rolling update breaks nothing", "6 create web3/b,6 start web3/b,7 kill web1/a,7 die web1/a,7 destroy web1/a,7 create web1/b,7 start web1/b,8 kill web2/a,8 die web2/a,8 destroy web2/a", ""},
		{"a recreate breaks nothing", "6 create db1/b,6 kill db1/a,6 kill db1/a,7 die db1/a,7 start db1/b,8 destroy db1/a", ""},
		{"what never served may go", "6 create web3/bad,6 start web3/bad,9 kill web3/bad,9 die web3/bad,9 destroy web3/bad", ""},
		{"a superseded one that was not ready yet", "6 create web3/b,6 start web3/b,6.9 kill web3/b,6.9 die web3/b", ""},
		{"a floor that is not kept", "6 kill web1/a", "I1"},
		{"a replacement that does not serve yet", "6 create web3/b,6 start web3/b,6.3 kill web1/a", "I1"},
		{"a replacement that never serves", "6 create web3/bad,6 start web3/bad,8 kill web1/a", "I1"},
		{"two stopped for one", "6 create web3/b,6 start web3/b,7 kill web1/a,7 kill web2/a", "I1"},
		{"more than the surge", "6 create web3/b,6 create web2/b", "I2"},
		{"a dead one that starts beside its replacements", "6 die web1/a,6 create web1/b,6 start web1/b,7 create web3/b,7 start web3/b,8 start web1/a", "I2"},
		{"one slot twice", "6 die web1/a,6 create web1/a'", "I3"},
		{"a removal that the engine's end kept from being told", "6 die web1/a,6.5 reboot,7 create web1/a'", ""},
		{"one slot twice after the engine's start, under another name", "6 die web1/a,6.2 rename web1/a short,6.5 reboot,7 create web1/a'", "I3"},
		{"somebody else's container", "6 kill other1/x", "I4"},
		{"a volume", "6 destroy volume", "I13"},
		{"two writers", "6 create db1/b,6 start db1/b", "I18"},
		{"two writers for the time of a stop", "6 create db1/b,6 kill db1/a,6 start db1/b,7 die db1/a", "I18"},
		{"a restart of what no commit changed", "6 kill still1/a,6 die still1/a,6 start still1/a", "no commit changed"},
		{"the engine's own restart", "6 reboot,5.5 kill still1/a,5.6 die still1/a,5.9 start still1/a,6.1 start web1/a", ""},
		{"an engine that goes down", "6 downing,6.1 kill web1/a,6.1 kill web2/a,6.1 kill still1/a,6.2 die web1/a,6.2 die web2/a,6.2 die still1/a,9 reboot,8 start still1/a,8 start web1/a", ""},
		{"a restart after the engine's own", "6 reboot,6.2 start still1/a,7 kill still1/a", "no commit changed"},
		{"a second writer after the engine's start", "6 reboot,5.9 start db1/a,6.2 create db1/b,6.3 start db1/b", "I18"},
		{"a floor that is not kept after the engine's start", "6 reboot,5.9 start web1/a,5.9 start web2/a,9 kill web1/a", "I1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faults := judge(read(up+tt.lines), promises, []string{"other1/x"}, begin.Add(5*time.Second))
			if tt.fault == "" {
				require.Empty(t, faults)
				return
			}
			require.NotEmpty(t, faults)
			require.Contains(t, faults[0], tt.fault)
		})
	}
}
