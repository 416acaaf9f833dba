package notify

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// How often a commit's statuses are read: often while its hosts are most likely at it.
const (
	wordsOften  = 15 * time.Second
	wordsSeldom = time.Minute
	wordsEarly  = 10 * time.Minute
)

// Words reads what other hosts say of commits, as their statuses at the forges of sources.
// It asks for nothing that nobody wants.
type Words struct {
	poke  func()
	log   *slog.Logger
	hear  func(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error)
	lines map[string]*wordLine // by source

	mu   sync.Mutex // guards what follows, and want of every line
	seen map[ring.WordAt]ring.Word
}

// wordLine is the way to the forge of one source.
type wordLine struct {
	source string
	forge  Forge
	wake   chan struct{}
	want   map[ring.SHA][]string // hosts by commit; never changed, only replaced

	// What follows belongs to its goroutine.
	began, next map[ring.SHA]time.Time
	told        string // the last error, told once
}

// NewWords reads at the forges of sources; poke is called when a word changed. It starts nothing.
func NewWords(forges map[string]Forge, poke func(), log *slog.Logger) *Words {
	w := &Words{poke: poke, log: log, hear: hear, lines: map[string]*wordLine{}, seen: map[ring.WordAt]ring.Word{}}
	for source, f := range forges {
		w.lines[source] = &wordLine{source: source, forge: f, wake: make(chan struct{}, 1), began: map[ring.SHA]time.Time{}, next: map[ring.SHA]time.Time{}}
	}
	return w
}

// Watch replaces the whole set that is asked for. What is wanted no more is forgotten.
func (w *Words) Watch(at []ring.WordAt) {
	want, wanted := map[string]map[ring.SHA][]string{}, map[ring.WordAt]bool{}
	for _, a := range at {
		if want[a.Source] == nil {
			want[a.Source] = map[ring.SHA][]string{}
		}
		want[a.Source][a.Commit] = append(want[a.Source][a.Commit], a.Host)
		wanted[a] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.seen, func(a ring.WordAt, _ ring.Word) bool { return !wanted[a] })
	for source, l := range w.lines {
		if maps.EqualFunc(l.want, want[source], slices.Equal) {
			continue
		}
		l.want = want[source]
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Seen is what was read last. What the forge did not answer for has no state.
func (w *Words) Seen() map[ring.WordAt]ring.Word {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.seen)
}

// Run reads until ctx ends.
func (w *Words) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, l := range w.lines {
		all.Go(func() { w.run(ctx, l) })
	}
	all.Wait()
	return nil
}

func (w *Words) run(ctx context.Context, l *wordLine) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-t.C:
		}
		t.Stop()
		if wait := w.read(ctx, l); wait > 0 {
			t.Reset(wait)
		}
	}
}

// read reads what is due, and says how long until something is; 0 where nothing is wanted.
func (w *Words) read(ctx context.Context, l *wordLine) (wait time.Duration) {
	w.mu.Lock()
	want := l.want
	w.mu.Unlock()
	for _, of := range []map[ring.SHA]time.Time{l.began, l.next} {
		maps.DeleteFunc(of, func(sha ring.SHA, _ time.Time) bool { return want[sha] == nil })
	}
	for _, sha := range slices.Sorted(maps.Keys(want)) {
		if l.began[sha].IsZero() {
			l.began[sha] = time.Now()
		}
		if !time.Now().Before(l.next[sha]) && ctx.Err() == nil {
			after := w.readCommit(ctx, l, sha, want[sha])
			l.next[sha] = time.Now().Add(after)
		}
		if left := max(time.Until(l.next[sha]), time.Millisecond); wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}

// readCommit reads the statuses of one commit, and says when to do so again.
func (w *Words) readCommit(ctx context.Context, l *wordLine, sha ring.SHA, hosts []string) time.Duration {
	after := wordsOften
	if time.Since(l.began[sha]) >= wordsEarly {
		after = wordsSeldom
	}
	contexts := make([]string, len(hosts))
	for i, host := range hosts {
		contexts[i] = summaryOf(host)
	}
	said, err := w.hear(ctx, l.forge, sha, contexts)
	if ctx.Err() != nil {
		return after
	}
	says := ""
	if err != nil {
		o := asOutcome(err)
		says, after = o.says, max(after, o.wait)
	}
	if says != l.told && says != "" {
		w.log.Warn("could not read what other hosts say, will be tried again", "source", l.source, "err", says)
	}
	l.told = says
	w.keep(l.source, sha, hosts, func(host string) ring.Word {
		if says != "" {
			return ring.Word{Says: says}
		}
		return said[summaryOf(host)]
	})
	return after
}

// keep remembers words that are still wanted, and tells where one is another now.
func (w *Words) keep(source string, sha ring.SHA, hosts []string, word func(host string) ring.Word) {
	w.mu.Lock()
	changed := false
	for _, host := range hosts {
		at := ring.WordAt{Source: source, Commit: sha, Host: host}
		if !slices.Contains(w.lines[source].want[sha], host) {
			continue
		}
		now := word(host)
		was, known := w.seen[at]
		changed = changed || !known || was != now
		w.seen[at] = now
	}
	w.mu.Unlock()
	if changed {
		w.poke()
	}
}

// summaryOf is the context of all that a host says of a commit.
func summaryOf(host string) string { return "gitring/" + host }

// longestWord is how much of a description is kept: as much as a host writes.
const longestWord = 140

// wordIn is a forge's word for a state, as ours; one that is not known says nothing yet.
func wordIn(states map[string]string, state, says string) ring.Word {
	own, known := states[state]
	if !known {
		own = ring.PostPending
	}
	return ring.Word{State: own, Says: wording.CutRunes(wording.SafeLine(says), longestWord)}
}

// hear is what the statuses of a commit say in contexts. One that has none there is not in
// the answer.
func hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error) {
	d, err := driverOf(f.Kind)
	if err != nil {
		return nil, outcome{permanent: true, says: err.Error()}
	}
	f.doing = "read commit statuses"
	return d.hear(ctx, f, sha, contexts)
}
