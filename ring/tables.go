package ring

import (
	"encoding/json"
	"maps"
	"slices"
)

// A table is what can be done with one map of Facts, whatever its rows are.
type table struct {
	clear  func(*Facts) // makes it, empty
	own    func(*Facts) // copies it
	set    func(*Facts, string, Fact)
	forget func(*Facts, string)
	read   func([]byte) (Fact, error)
}

// tables are those of Facts, by name: each is said here and nowhere else.
var tables = map[string]table{
	"app":      rows(func(f *Facts) *map[string]InForce { return &f.Apps }),
	"good":     pointers(func(f *Facts) *map[ServiceID]*Good { return &f.Good }),
	"verdict":  rows(func(f *Facts) *map[string]Verdict { return &f.Verdicts }),
	"rollout":  rows(func(f *Facts) *map[ServiceID]RolloutRow { return &f.Rollouts }),
	"slot":     rows(func(f *Facts) *map[string]SlotRow { return &f.Slots }),
	"job":      rows(func(f *Facts) *map[string]JobRun { return &f.Jobs }),
	"intent":   rows(func(f *Facts) *map[string]Intent { return &f.Intents }),
	"pin":      pointers(func(f *Facts) *map[string]*PinRow { return &f.Pins }),
	"approval": rows(func(f *Facts) *map[SHA]Approval { return &f.Approvals }),
	"post":     rows(func(f *Facts) *map[string]Post { return &f.Posts }),
	"kept":     rows(func(f *Facts) *map[string]Kept { return &f.Kept }),
	"refresh":  rows(func(f *Facts) *map[ServiceID]Refresh { return &f.Refreshes }),
	"override": rows(func(f *Facts) *map[string]OverrideRow { return &f.Overrides }),
	"mark":     rows(func(f *Facts) *map[ServiceID]Mark { return &f.Marks }),
	"past":     rows(func(f *Facts) *map[string]Past { return &f.Past }),
	"cron":     rows(func(f *Facts) *map[ServiceID]CronRow { return &f.Cron }),
	"ask":      rows(func(f *Facts) *map[ServiceID]Ask { return &f.Asks }),
	"hands":    rows(func(f *Facts) *map[ServiceID]Hands { return &f.Hands }),
	"adopted":  rows(func(f *Facts) *map[string]Adopted { return &f.Adopted }),
	"loaded":   rows(func(f *Facts) *map[string]Loaded { return &f.Loads }),
	"drift":    rows(func(f *Facts) *map[ServiceID]Drift { return &f.Drift }),
	"trouble":  rows(func(f *Facts) *map[string]Trouble { return &f.Troubles }),
	"unread":   rows(func(f *Facts) *map[string]Unread { return &f.Unread }),
	"name":     rows(func(f *Facts) *map[string]Name { return &f.Names }),
	"left":     rows(func(f *Facts) *map[string]Left { return &f.Left }),
	"front":    rows(func(f *Facts) *map[ServiceID]FrontRow { return &f.Fronts }),
	"signed":   rows(func(f *Facts) *map[string]ImageVerdict { return &f.Signed }),
	"tag":      rows(func(f *Facts) *map[string]TagRow { return &f.Tags }),
	"ran":      rows(func(f *Facts) *map[string]RanRow { return &f.Ran }),
	"wave":     rows(func(f *Facts) *map[string]WaveRow { return &f.Waves }),
	"awaited":  rows(func(f *Facts) *map[string]AwaitedRow { return &f.Awaited }),
}

// rows is the table of a map that holds its rows by value.
func rows[K ~string, R Fact](of func(*Facts) *map[K]R) table {
	return tableOf(of, func(r R) R { return r })
}

// pointers is the table of a map that points at its rows, which are too large to be
// copied at each look.
func pointers[K ~string, R Fact](of func(*Facts) *map[K]*R) table {
	return tableOf(of, func(r R) *R { return &r })
}

func tableOf[K ~string, R Fact, V any](of func(*Facts) *map[K]V, as func(R) V) table {
	return table{
		clear:  func(f *Facts) { *of(f) = map[K]V{} },
		own:    func(f *Facts) { m := of(f); *m = maps.Clone(*m) },
		set:    func(f *Facts, key string, row Fact) { (*of(f))[K(key)] = as(row.(R)) },
		forget: func(f *Facts, key string) { delete(*of(f), K(key)) },
		read: func(b []byte) (Fact, error) {
			var r R
			err := json.Unmarshal(b, &r)
			return r, err
		},
	}
}

func named(name string) table {
	t, ok := tables[name]
	if !ok {
		panic("there is no table " + name)
	}
	return t
}

// Tables are the names of the tables of Facts, sorted.
func Tables() []string { return slices.Sorted(maps.Keys(tables)) }

// IsTable reports whether Facts have a table of that name.
func IsTable(name string) bool { _, ok := tables[name]; return ok }

// NewFacts has every map made.
func NewFacts() (f Facts) {
	for _, t := range tables {
		t.clear(&f)
	}
	return f
}

// Own makes one map of f its own, so that those of the Facts that f was copied from
// are not changed with it. What is recorded for people alone has none.
func (f *Facts) Own(name string) {
	if t, ok := tables[name]; ok {
		t.own(f)
	}
}

// Set replaces one row; the maps must have been made. It panics on a table
// that it does not know, which is a bug.
func (f *Facts) Set(fact Fact) {
	name, key := fact.Row()
	f.Put(name, key, fact)
}

// Put is Set for one who knows the row's place already: that of the fact, and no other.
func (f *Facts) Put(name, key string, fact Fact) {
	switch fact.(type) {
	case Crash, Run: // for people; no decision reads them
	case Forget:
		named(name).forget(f, key)
	default:
		named(name).set(f, key, fact)
	}
}

// ReadFact reads a row of a table from JSON; known is false where no table has that
// name.
func ReadFact(name string, value []byte) (fact Fact, known bool, err error) {
	t, known := tables[name]
	if !known {
		return nil, false, nil
	}
	fact, err = t.read(value)
	return fact, true, err
}
