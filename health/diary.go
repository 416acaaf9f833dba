package health

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// quietEvery is how often a line that only grew is written again: a check that
// has passed for a week is one line, and costs the disk next to nothing.
const quietEvery = 10 * time.Minute

// diary is what checks answered, for people: equal answers in a row are one line.
// The Watcher's lock guards it.
type diary struct {
	open    map[streakKey]ring.Result
	written map[streakKey]time.Time // when the open line was last handed out
	full    []ring.Result           // lines that ended and were not handed out
}

// fullCap bounds the lines that wait to be handed out.
const fullCap = 5000

func newDiary() diary {
	return diary{open: map[streakKey]ring.Result{}, written: map[streakKey]time.Time{}}
}

// add enters one answer.
func (d *diary) add(instance, check string, a answer, now time.Time) {
	k := streakKey{instance, check}
	r, ok := d.open[k]
	if ok && r.OK == a.ok && r.Says == a.says && !now.Before(r.Last) {
		r.Last, r.Took = now, a.took
		r.Count++
		d.open[k] = r
		return
	}
	if ok && len(d.full) < fullCap {
		d.full = append(d.full, r)
	}
	d.open[k] = ring.Result{Instance: instance, Check: check, OK: a.ok, Says: a.says, First: now, Last: now, Count: 1, Took: a.took}
	delete(d.written, k)
}

// forget ends the lines of instances that are no longer watched.
func (d *diary) forget(there func(instance string) bool) {
	for k, r := range d.open {
		if there(k.instance) {
			continue
		}
		if len(d.full) < fullCap {
			d.full = append(d.full, r)
		}
		delete(d.open, k)
		delete(d.written, k)
	}
}

// take hands out the lines that ended, those that began, and those that only grew
// once in quietEvery; all of them where all is asked.
func (d *diary) take(now time.Time, all bool) []ring.Result {
	out := d.full
	d.full = nil
	keys := slices.SortedFunc(maps.Keys(d.open), func(a, b streakKey) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.check, b.check))
	})
	for _, k := range keys {
		at, was := d.written[k]
		if !all && was && now.Sub(at) < quietEvery {
			continue
		}
		d.written[k] = now
		out = append(out, d.open[k])
	}
	return out
}
