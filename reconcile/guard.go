package reconcile

import (
	"path"

	"github.com/gitring/gitring/ring"
)

// guardReason says what a plan must be approved for, "" when nothing: an empty tree,
// or the removal of more than half of the services of a source, or of an app,
// that has more than two (docs/design/host.md#the-guard). A newer commit, a person's
// approval or the commit's own signed leave settles it.
func (t *Pass) guardReason(src *Source, present map[string][]string) string {
	plan := src.Next
	if _, ok := t.Facts.Approvals[plan.Commit]; ok {
		return ""
	}
	if src.Apply == ApplyApprove {
		if would := t.wouldChange(src, present); would != "" {
			return say("every plan of this source is approved by a person: would %s", would)
		}
	}
	var total, gone int
	var why string
	for _, name := range sortedKeys(present) {
		if t.appRefusal(src, name) != nil || !t.withheldReason(name).None() {
			continue
		}
		have := present[name]
		next := t.nextApp(src, name)
		n := 0
		for _, s := range have {
			if next == nil {
				n++
			} else if _, ok := next.Service(s); !ok {
				n++
			}
		}
		total, gone = total+len(have), gone+n
		if why == "" && len(have) > 2 && n*2 > len(have) {
			why = say("removes %d of %d services of app %s", n, len(have), name)
		}
	}
	switch {
	case gone == 0 || gone <= plan.AllowRemove:
		return ""
	case len(plan.Apps) == 0 && len(plan.Refused) == 0:
		return say("the tree is empty: removes %s", allOf(gone))
	case total > 2 && gone*2 > total:
		return say("removes %d of %d services", gone, total)
	}
	return why
}

func allOf(services int) string {
	if services == 1 {
		return "its only service"
	}
	return say("all %d services", services)
}

// appRefusal is why an app of a source cannot be carried out as its next plan has
// it. A file that could not be read has no name to give its app, so an app in
// force is refused too when the file lies in its folder: it has not left.
func (t *Pass) appRefusal(src *Source, app string) *ring.Refusal {
	if r := t.hostRefusal(src, app); r != nil {
		return r
	}
	if src.Next == nil {
		return nil
	}
	if r := src.Next.Refused[app]; r != nil {
		return r
	}
	f, ok := t.Facts.Apps[app]
	if !ok || f.App.Source != src.Name {
		return nil
	}
	if t.nextApp(src, app) != nil {
		return nil
	}
	for _, key := range sortedKeys(src.Next.Refused) {
		if r := src.Next.Refused[key]; r.File != "" && path.Dir(r.File) == path.Clean(f.App.Path) {
			return r
		}
	}
	return nil
}

// servicesPresent is, by app of a source, the services that are in force there, or,
// where the store knows nothing, that run.
func (t *Pass) servicesPresent(source string) map[string][]string {
	out := map[string][]string{}
	for name, f := range t.Facts.Apps {
		if f.App.Source != source || f.Leaving {
			continue
		}
		for i := range f.App.Services {
			if f.App.Services[i].FrontOf != "" {
				continue // it goes with the service that it stands before
			}
			out[name] = append(out[name], f.App.Services[i].Name)
		}
	}
	for _, id := range t.seenIDs() {
		app, service := id.Split()
		if _, ok := t.Facts.Apps[app]; !ok && t.seen[id][0].Source == source {
			out[app] = append(out[app], service)
		}
	}
	return out
}

// awaitingSays is the sentence people read while a guard waits.
func awaitingSays(c ring.SHA, why string) string {
	return say("awaiting approval: %s; gitring approve %s", why, c.Short())
}
