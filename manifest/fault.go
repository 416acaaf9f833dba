package manifest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
	"gopkg.in/yaml.v3"
)

// place is where in the commit something is written; line 0 is the whole file.
type place struct {
	file string
	line int
	// of is the key or value that is written there: what has a fault is found by
	// it, and taken out before the rest is read on. nil where there is none.
	of *yaml.Node
}

// fault is one thing that is wrong with a manifest.
type fault struct {
	code ring.Code
	place
	says, hint string
	variable   string    // that is not set
	answers    [2]string // files of the host's env folder that could say it
	beside     string    // the app that has a name on the engine, which this one would take
}

func (f *fault) refusal(sha ring.SHA, app string) *ring.Refusal {
	return &ring.Refusal{
		Code: f.code, Commit: sha, App: app,
		File: f.file, Line: f.line, Says: f.says, Hint: f.hint,
		Variable: f.variable, Answers: f.answers, Beside: f.beside,
	}
}

// untold is the fault of what cannot be judged because of another fault, which is
// told: a value with a variable whose own line is wrong. It refuses, and says nothing.
var untold = &fault{}

// faults is all that is wrong with one app.
type faults struct {
	list   []fault
	untold bool
	meant  map[*yaml.Node]string // keys with a letter wrong, by what they are read on as
}

func (f *faults) add(code ring.Code, at place, hint, says string, args ...any) {
	f.list = append(f.list, fault{code: code, place: at, says: fmt.Sprintf(says, args...), hint: hint})
}

func (f *faults) put(x *fault) {
	switch x {
	case nil:
	case untold:
		f.untold = true
	default:
		f.list = append(f.list, *x)
	}
}

func (f *faults) putAll(all []*fault) {
	for _, x := range all {
		f.put(x)
	}
}

func (f *faults) none() bool { return len(f.list) == 0 && !f.untold }

// beyond reports whether a limit was passed: to go on would cost what the limit is for.
func (f *faults) beyond() bool {
	return slices.ContainsFunc(f.list, func(x fault) bool { return x.code == ring.TooLarge || x.code == ring.Unreadable })
}

func (f *faults) first() fault { return f.sorted()[0] }

// sorted is by place, so that the same file is always refused with the same
// sentence; one place is told once for one reason, also where several services
// take it by an anchor.
func (f *faults) sorted() []fault {
	out := slices.Clone(f.list)
	slices.SortStableFunc(out, func(a, b fault) int {
		return cmp.Or(
			cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line),
			cmp.Compare(a.says, b.says), cmp.Compare(a.code, b.code),
		)
	})
	type reason struct {
		file string
		line int
		of   *yaml.Node
		says string
	}
	told := map[reason]bool{}
	return slices.DeleteFunc(out, func(f fault) bool {
		r := reason{f.file, f.line, nil, f.says}
		if f.of != nil {
			r.of, r.says = f.of, string(f.code)+serviceNames.ReplaceAllString(f.says, "services.*")
		}
		plain := reason{f.file, f.line, nil, f.says}
		twice := told[r] || told[plain]
		told[r], told[plain] = true, true
		return twice
	})
}

// serviceNames are the services that a sentence begins with.
var serviceNames = regexp.MustCompile(`\bservices\.[A-Za-z0-9_-]+`)

// refusals are one for each fault.
func (f *faults) refusals(sha ring.SHA, app string) []*ring.Refusal {
	var all []*ring.Refusal
	for _, x := range f.sorted() {
		all = append(all, x.refusal(sha, app))
	}
	return all
}

// moreWithin is how long a refusal's sentence may get by listing further faults.
const moreWithin = 300

// refusal is the first fault by place, with the others behind it where they are
// few and short, else with their number.
func (f *faults) refusal(sha ring.SHA, app string) *ring.Refusal {
	all := f.sorted()
	r := all[0].refusal(sha, app)
	if len(all) == 1 {
		return r
	}
	more := make([]string, 0, len(all)-1)
	for _, x := range all[1:] {
		other := x.refusal(sha, app)
		where := fmt.Sprintf("line %d", x.line)
		if x.file != r.File || x.line == 0 {
			where = other.Where()
		}
		more = append(more, where+": "+x.says)
	}
	count := fmt.Sprintf(" (and %d more", len(more))
	if list := strings.Join(more, "; "); len(r.Says)+len(list) <= moreWithin {
		r.Says += count + ": " + list + ")"
		return r
	}
	r.Says += count + ")"
	return r
}
