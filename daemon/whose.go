package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// ledger is what belongs to whom on this host, over the apps of every source. It is the
// memory of the loop, so it knows what is in force as soon as that is on disk. nil knows
// nothing of the host.
type ledger struct {
	reconcile.Memory
	dataRoot string

	mu    sync.Mutex // guards what follows
	facts ring.Facts // Apps, Names, Kept, Left and Signed of them, owned
	next  map[string][]ring.App
	hands map[string]gitsync.Hands
	whole *policy.Whose // nil after a change
}

// newLedger reads what is in force before any source is read.
func newLedger(ctx context.Context, memory reconcile.Memory, dataRoot string) (*ledger, error) {
	l := &ledger{Memory: memory, dataRoot: dataRoot, facts: ring.NewFacts(), next: map[string][]ring.App{}, hands: map[string]gitsync.Hands{}}
	_, err := l.Facts(ctx)
	return l, err
}

// Facts are the memory's, and all that the ledger knows of what is accepted.
func (l *ledger) Facts(ctx context.Context) (ring.Facts, error) {
	f, err := l.Memory.Facts(ctx)
	if err == nil {
		l.mu.Lock()
		l.facts.Apps, l.facts.Names, l.facts.Kept, l.facts.Left = maps.Clone(f.Apps), maps.Clone(f.Names), maps.Clone(f.Kept), maps.Clone(f.Left)
		l.facts.Signed = maps.Clone(f.Signed)
		l.whole = nil
		l.mu.Unlock()
	}
	return f, err
}

// Record notes what is on disk.
func (l *ledger) Record(ctx context.Context, facts []ring.Fact, events []ring.Event) error {
	if err := l.Memory.Record(ctx, facts, events); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range facts {
		switch table, _ := f.Row(); table {
		case "app", "name", "kept", "left":
			l.facts.Set(f)
			l.whole = nil
		case "signed":
			l.facts.Set(f)
		}
	}
	return nil
}

// plan notes the apps of a source's newest plan.
func (l *ledger) plan(source string, apps []ring.App) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[source], l.whole = apps, nil
}

// planned are the apps of the newest plan of each source.
func (l *ledger) planned() (all []ring.App) {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, apps := range l.next {
		all = append(all, apps...)
	}
	return all
}

// signersOf is where the signers of a source may add files. Before that is known, no paths are
// in one hand.
func (l *ledger) signersOf(source string) signersOf {
	if l == nil {
		return signersOf{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h, known := l.hands[source]
	if !known {
		return signersOf{limited: true}
	}
	return signersOf{limited: h.LimitedFiles(), oneHand: h.OneHand, print: h.Print()}
}

// signers notes what the signers of a source may do where.
func (l *ledger) signers(source string, h gitsync.Hands) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hands[source], l.whole = h, nil
}

// nameOf is whose the name of an app is; false for nobody's.
func (l *ledger) nameOf(app string) (ring.Name, bool) {
	if l == nil {
		return ring.Name{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.facts.Names[app]
	return n, ok
}

// names are, by app, the folders inside the commit that have the names of a source.
func (l *ledger) names(source string) map[string]string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]string{}
	for app, n := range l.facts.Names {
		if n.Source == source {
			out[app] = n.Path
		}
	}
	return out
}

// held are the apps in force of a source by the names that they have on the engine.
func (l *ledger) held(source string) map[string]string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]string{}
	for name, f := range l.facts.Apps {
		if f.App.Source != source {
			continue
		}
		for _, taken := range manifest.EngineNames(&f.App) {
			out[taken] = name
		}
	}
	return out
}

// inForce are the names of the apps of a source that are in force, in order.
func (l *ledger) inForce(source string) (out []string) {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for app, f := range l.facts.Apps {
		if f.App.Source == source {
			out = append(out, app)
		}
	}
	slices.Sort(out)
	return out
}

// apps are all apps in force, by name, and those of the newest plans, by source.
func (l *ledger) apps() (inForce map[string]ring.InForce, next map[string][]ring.App) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.facts.Apps), maps.Clone(l.next)
}

// dataOf is what this host knows of data, for the plans of a source; nil where it knows
// nothing of the host.
func (l *ledger) dataOf(source string) *reconcile.DataHost {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	hands := l.hands[source]
	return &reconcile.DataHost{
		InForce: maps.Clone(l.facts.Apps), Names: maps.Clone(l.facts.Names), Kept: maps.Clone(l.facts.Kept), Left: maps.Clone(l.facts.Left),
		Root: l.dataRoot, Folder: runtime.HoldsData,
		OneHand: func(a, b *ring.App) bool { return hands.One(policy.HolderOf(a).File, policy.HolderOf(b).File) },
	}
}

// whose is what belongs to whom at this moment.
func (l *ledger) whose() policy.Whose {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole == nil {
		l.whole = l.look()
	}
	return *l.whole
}

func (l *ledger) look() *policy.Whose {
	hands := maps.Clone(l.hands)
	w := &policy.Whose{OneHand: func(source string, a, b policy.Holder) bool { return hands[source].One(a.File, b.File) }}
	for _, app := range slices.Sorted(maps.Keys(l.facts.Apps)) {
		f := l.facts.Apps[app]
		w.Holdings = append(w.Holdings, policy.HoldingOf(&f.App, cmp.Or(f.App.DataRoot, l.dataRoot), policy.InForce, l.since(app)))
	}
	for _, source := range slices.Sorted(maps.Keys(l.next)) {
		for i := range l.next[source] {
			a := &l.next[source][i]
			w.Holdings = append(w.Holdings, policy.HoldingOf(a, cmp.Or(a.DataRoot, l.dataRoot), policy.Next, l.since(a.Name)))
		}
	}
	w.Holdings = append(w.Holdings, l.left()...)
	w.Prepare()
	return w
}

func (l *ledger) since(app string) time.Time { return l.facts.Names[app].At }

// left is what apps were given once and still have, whether or not they are in force.
func (l *ledger) left() []policy.Holding {
	by := map[string]*policy.Holding{}
	for app, n := range l.facts.Names {
		by[app] = &policy.Holding{
			Holder: policy.Holder{App: app, Source: n.Source, Path: n.Path, File: n.Rule()}, State: policy.Left, Since: n.At,
			DataRoot: cmp.Or(n.DataRoot, l.dataRoot), Volumes: slices.Clone(n.Volumes),
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.facts.Kept)) {
		h := by[l.facts.Kept[name].App]
		if h == nil {
			continue
		}
		switch kind, what, _ := strings.Cut(name, " "); {
		case kind == "data":
			h.Data = append(h.Data, path.Clean(what))
		case kind == "volume" && strings.HasPrefix(what, h.App+"_"): // another one may be nobody's
			h.Volumes = append(h.Volumes, what)
		}
	}
	var out []policy.Holding
	for _, app := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[app])
	}
	return out
}

// seenBy is a print of all that a plan of a source is judged by besides the commit:
// what others have, and in whose hands its own apps are.
func (l *ledger) seenBy(source string) string {
	if l == nil {
		return ""
	}
	w := l.whose()
	l.mu.Lock()
	limited, print := l.hands[source].Limited(), l.hands[source].Print()
	l.mu.Unlock()
	var b strings.Builder
	b.WriteString(print)
	for i := range w.Holdings {
		if h := &w.Holdings[i]; h.Source != source || limited && h.State != policy.Next {
			fmt.Fprintf(&b, "%v\n", *h)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(l.names(source))) {
		n, _ := l.nameOf(app)
		fmt.Fprintf(&b, "%s %s\n", n.App, n.Path)
	}
	return b.String()
}
