package reconcile

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// A story is a rule of docs/design as text; testdata/stories/README
// teaches the language. It plays on the daemon and engine of the simulation,
// so every step of every story is also held to the invariants.
type story struct {
	*daemon
	decls   map[string]*declared // services as declared so far, by "app/service"
	apps    map[string]*ring.App // what apps say beside their services
	tree    map[string]declared  // of the newest commit
	commits map[string]chapter
	latest  string // the newest commit's name

	ledger []entry
	mark   int // of the last commit: where "since" begins
	low    map[string]int
	high   map[string]int

	looked func(Decision) // asked at each look, before what it decided is written down

	away, blind, gone bool // the remote, the engine's answers, the daemon

	copied *ring.Facts // the database as it was once
	behind *Source     // the source as it was then
	ahead  *Source     // the source as it is, while the daemon knows it as it was

	said map[ring.WordAt]ring.Word // what the forge has, while it is away

	asksForData bool              // plans that leave data behind are judged
	again       func() *ring.Plan // the newest commit, as it is read after a restart
}

// chapter is a commit and the tree that it leaves.
type chapter struct {
	asksForData bool
	plan        *ring.Plan
	tree        map[string]declared
	apps        map[string]ring.App
}

// entry is one thing that happened to a container, or was asked of the registry.
type entry struct {
	at           time.Time
	kind, detail string
	service      string
	slot         int
	version      string
}

func (e entry) name() string { return fmt.Sprintf("%s-%d@%s", e.service, e.slot, e.version) }

func newStory() *story {
	s := &story{
		daemon: newDaemon(rand.New(rand.NewSource(1))), tree: map[string]declared{}, apps: map[string]*ring.App{},
		decls: map[string]*declared{}, commits: map[string]chapter{}, low: map[string]int{}, high: map[string]int{},
	}
	s.told = func(kind, detail string, b *box) {
		s.watchHost(kind, detail, b)
		e := entry{at: s.now, kind: kind, detail: detail}
		if kind == "table" {
			e.detail = s.tableSays(s.front[b.ID].table)
		}
		if b != nil {
			e.service, e.slot, e.version = shortID(b.App, b.Service), b.Slot, b.image
		}
		s.ledger = append(s.ledger, e)
	}
	return s
}

// shortID is how stories name a service: "web" for web/web.
func shortID(app, service string) string {
	if app == service {
		return app
	}
	return app + "/" + service
}

// fullID is the inverse.
func fullID(name string) (app, service string) {
	if app, service, ok := strings.Cut(name, "/"); ok {
		return app, service
	}
	return name, name
}

// since is what happened since the last commit or mark.
func (s *story) since() []entry { return s.ledger[s.mark:] }

func (s *story) setMark() {
	s.mark = len(s.ledger)
	clear(s.low)
	clear(s.high)
}

// turn is one look of the daemon, if there is one and it sees.
func (s *story) turn() {
	if s.gone {
		return
	}
	if s.blind {
		s.mem.wake = s.now.Add(2 * time.Second)
		return
	}
	if !s.away && s.src.Next != nil {
		s.src.Reached = s.clock()
	}
	s.besideLooks()
	d := s.decide()
	if s.looked != nil {
		s.looked(d)
	}
	s.record(d.Facts, d.Events)
	s.launch(d.Actions)
}

// step is one look, and the time until something happens.
func (s *story) step(limit time.Time) {
	s.turn()
	s.advance(limit)
	s.measure()
}

// measure keeps the lowest count of ready and the highest of live instances.
func (s *story) measure() {
	ready, live := map[string]int{}, map[string]int{}
	for name := range s.tree {
		ready[name], live[name] = 0, 0
	}
	for _, b := range s.boxes {
		name := shortID(b.App, b.Service)
		if s.ready(b) {
			ready[name]++
		}
		if b.running() || b.State == ring.StateCreated {
			live[name]++
		}
	}
	for name, n := range ready {
		if was, ok := s.low[name]; !ok || n < was {
			s.low[name] = n
		}
	}
	for name, n := range live {
		s.high[name] = max(s.high[name], n)
	}
}

func (s *story) wait(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.step(end)
	}
	s.turn()
}

// rest plays until nothing is under way, decided or awaited.
func (s *story) rest() error {
	looks := 0
	for end := s.now.Add(24 * time.Hour); s.now.Before(end) && looks < 20_000; looks++ {
		s.turn()
		far := s.now.Add(12 * time.Hour)
		awaited := s.mem.wake.After(s.now) && s.mem.wake.Before(far)
		if s.idle() && !awaited && s.moment(far).Equal(far) && len(s.last.Facts) == 0 {
			return nil
		}
		s.advance(time.Time{})
		s.measure()
	}
	return fmt.Errorf("does not come to rest within a day and %d looks", looks)
}

// until plays until an expectation holds.
func (s *story) until(words []string) error {
	var err error
	looks := 0
	for end := s.now.Add(2 * time.Hour); s.now.Before(end) && looks < 20_000; looks++ {
		s.turn()
		if err = s.expect(words); err == nil {
			return nil
		}
		s.advance(time.Time{})
		s.measure()
	}
	return fmt.Errorf("not within 2 h: %w", err)
}

// tell carries out one line.
func (s *story) tell(line string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot read the sentence, or a panic: %v", p)
		}
	}()
	words, err := split(line)
	if err != nil || len(words) == 0 {
		return err
	}
	verb, rest := words[0], words[1:]
	switch verb {
	case "service":
		return s.declare(rest)
	case "app":
		return s.declareApp(rest)
	case "version":
		return s.version(rest)
	case "content": // content bad refused: by the command that reloads; unready, crash: by who reads it
		if s.contents == nil {
			s.contents = map[string]string{}
		}
		s.contents[rest[0]] = rest[1]
		return nil
	case "commit":
		return s.commit(rest)
	case "fault":
		return s.fault(strings.Join(rest, " "))
	case "approve":
		return s.approve(rest)
	case "refresh":
		return s.refresh(rest)
	case "pause", "resume", "promote", "abort", "restart", "undo", "hold", "release", "scale", "retry", "run", "adopt", "leave":
		return s.act(words)
	case "deny": // deny web db: by the policy, and nothing else; deny none
		return s.deny(rest)
	case "compose":
		return s.compose(rest)
	case "cannot":
		return s.cannot(rest)
	case "apply": // apply approve
		s.src.Apply = rest[0]
		return nil
	case "secret": // secret web awaited | known: a value of a provider
		return s.secret(rest)
	case "keep": // keep images 3
		s.keepImages, err = strconv.Atoi(rest[1])
		return err
	case "host": // host asks for data
		s.asksForData = true
		return nil
	case "engine": // engine swarm
		s.swarm = newSwarmModel()
		s.watchSwarm()
		return nil
	case "mark":
		s.setMark()
		return nil
	case "wait":
		d, err := time.ParseDuration(rest[0])
		if err == nil {
			s.wait(d)
		}
		return err
	case "pass": // pass 72h: as wait, with a look every five minutes where nothing happens
		d, err := time.ParseDuration(rest[0])
		if err == nil {
			s.stride = 5 * time.Minute
			s.wait(d)
			s.stride = 0
		}
		return err
	case "rest":
		return s.rest()
	case "until":
		return s.until(rest)
	case "expect":
		s.turn()
		return s.expect(rest)
	}
	return fmt.Errorf("no such verb: %s", verb)
}

// split cuts a line into words; "quoted words" are one, with the quote in front.
func split(line string) ([]string, error) {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] == '"' {
			text, rest, ok := strings.Cut(line[1:], `"`)
			if !ok {
				return nil, errors.New("a quote does not end")
			}
			out, line = append(out, `"`+text), rest
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		out, line = append(out, word), rest
	}
	return out, nil
}

// play tells a story line by line, with $N standing for n, and says how it does not come out as
// it should.
func play(s *story, text string, n int) error {
	for i, line := range strings.Split(text, "\n") {
		if cut := strings.Index(line, "#"); cut == 0 || cut > 0 && line[cut-1] == ' ' {
			line = line[:cut]
		}
		if strings.HasPrefix(line, "for N in ") {
			continue
		}
		line = numbers(line, n)
		err := s.tell(line)
		if err == nil {
			err = s.bad
		}
		if err != nil {
			return fmt.Errorf("line %d: %s\n  %w\n%s", i+1, strings.TrimSpace(line), err, s.read(60))
		}
	}
	if len(s.ledger) == 0 {
		return errors.New("the story moved nothing")
	}
	return nil
}

// storyFile is a story of testdata/stories, and the numbers that it is told with.
type storyFile struct {
	name, text string
	many       bool
	ns         []int
}

func storyFiles(t *testing.T) (out []storyFile) {
	t.Helper()
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no stories", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f := storyFile{name: strings.TrimSuffix(filepath.Base(file), ".txt"), text: string(raw), ns: []int{0}}
		var list string
		if _, list, f.many = strings.Cut(f.text, "\nfor N in "); f.many {
			f.ns = nil
			list, _, _ = strings.Cut(list, "\n")
			for _, word := range strings.Fields(list) {
				n, err := strconv.Atoi(word)
				if err != nil {
					t.Fatalf("%s: for N in %s", file, list)
				}
				f.ns = append(f.ns, n)
			}
		}
		out = append(out, f)
	}
	return out
}

// tale is a story that was played, with the first of its numbers.
type tale struct {
	fault     error
	explained explained
}

// tales are those that were played, by name: two tests ask for each.
var tales = map[string]*tale{}

// tale plays a story once, and has each state in it explained.
func (f storyFile) tale() *tale {
	if tales[f.name] == nil {
		s, p := newStory(), &tale{}
		s.looked = func(d Decision) { p.explained.look(s, d) }
		p.fault = play(s, f.text, f.ns[0])
		tales[f.name] = p
	}
	return tales[f.name]
}

func numbers(line string, n int) string {
	for _, d := range []int{2, 1} {
		line = strings.ReplaceAll(line, fmt.Sprintf("$N+%d", d), strconv.Itoa(n+d))
		line = strings.ReplaceAll(line, fmt.Sprintf("$N-%d", d), strconv.Itoa(n-d))
	}
	return strings.ReplaceAll(line, "$N", strconv.Itoa(n))
}

// TestStories plays testdata/stories.
func TestStories(t *testing.T) {
	for _, f := range storyFiles(t) {
		if !strings.Contains(f.text, "\nexpect ") {
			t.Errorf("%s expects nothing", f.name)
		}
		for i, n := range f.ns {
			name := f.name
			if f.many {
				name += "/" + strconv.Itoa(n)
			}
			t.Run(name, func(t *testing.T) {
				err := f.tale().fault
				if i > 0 {
					err = play(newStory(), f.text, n)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
