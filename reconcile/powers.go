package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// tellPowers tells the journal what an app that comes into force may do on the
// host that it could not do before.
func (t *decider) tellPowers(before, app *ring.App) {
	fresh := slices.DeleteFunc(slices.Clone(app.Powers), func(p string) bool { return slices.Contains(before.Powers, p) })
	if len(fresh) == 0 {
		return
	}
	t.addEvent(ring.Event{
		Kind: ring.AppPowers, Source: app.Source, App: app.Name, Commit: app.Commit,
		Reason: "new powers: " + strings.Join(fresh, "; "),
	})
}
