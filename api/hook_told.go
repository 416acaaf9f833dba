package api

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// toldEvery is how often the log tells of hints of one kind to a source. Whoever sets a
// webhook up wants to know what became of it; whoever sends a thousand shall not fill
// the disk.
const toldEvery = time.Minute

// toldMost is how many kinds are remembered. Sources are few, and strangers on the API may come
// from many addresses: beyond this, new ones have no line until older ones are a minute old.
const toldMost = 1024

// toldKind is what lines of the log are counted by: a source of the configuration, or a token
// and an address, and a constant message.
type toldKind struct{ source, message string }

// told remembers when each kind was told of last, and how many were left out since.
type told struct {
	mu    sync.Mutex // guards what follows
	kinds map[toldKind]toldLine
}

type toldLine struct {
	at   time.Time
	left int
}

// tell reports whether it is time for a line, and how many were left out before it.
func (r *told) tell(source, message string, now time.Time) (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := toldKind{source, message}
	l, known := r.kinds[k]
	if known && now.Sub(l.at) < toldEvery && !now.Before(l.at) {
		l.left++
		r.kinds[k] = l
		return 0, false
	}
	if r.kinds == nil {
		r.kinds = map[toldKind]toldLine{}
	}
	if !known && len(r.kinds) >= toldMost {
		maps.DeleteFunc(r.kinds, func(_ toldKind, l toldLine) bool { return now.Sub(l.at) >= toldEvery })
		if len(r.kinds) >= toldMost { // strangers with many addresses do not fill the log, nor the memory
			return 0, false
		}
	}
	r.kinds[k] = toldLine{at: now}
	return l.left, true
}

// leftOut is how many hints of a kind nobody was told of.
type leftOut struct {
	toldKind
	count int
}

// overdue are the kinds whose last line is a minute old and was followed by others.
// They count as told.
func (r *told) overdue(now time.Time) []leftOut {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []leftOut
	for k, l := range r.kinds {
		if l.left > 0 && now.Sub(l.at) >= toldEvery {
			list = append(list, leftOut{k, l.left})
			r.kinds[k] = toldLine{at: now}
		}
	}
	slices.SortFunc(list, func(a, b leftOut) int { return strings.Compare(a.source+" "+a.message, b.source+" "+b.message) })
	return list
}

// tellLeftOut logs what was left out, for as long as ctx lives: a storm that ended is
// told too.
func (w *Webhooks) tellLeftOut(ctx context.Context) {
	tick := time.NewTicker(toldEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, l := range w.told.overdue(w.Now()) {
			w.Log.InfoContext(ctx, l.message, "source", l.source, "left_out", l.count)
		}
	}
}
