package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/gitring/gitring/ring"
)

// frontsSeen is what each front said of itself last: when it was asked, or with the
// acknowledgement of a table, whichever is newer.
func (l *Loop) frontsSeen() map[string]ring.FrontSeen {
	if l.Fronts == nil {
		return nil
	}
	out := l.Fronts.Seen()
	if len(l.acknowledged) == 0 {
		return out
	}
	out = maps.Clone(out)
	for id, seen := range l.acknowledged {
		last, answers := out[id]
		if !answers || !last.At.Before(seen.At) {
			delete(l.acknowledged, id)
			continue
		}
		out[id] = seen
	}
	return out
}

// tellTable sends a front its table. A front that answers with another one has not taken it.
func (l *Loop) tellTable(ctx context.Context, a ring.Action) (ring.Done, error) {
	if l.Fronts == nil || a.Table == nil {
		return ring.Done{}, errors.New("cannot tell a front its table: this daemon speaks with none")
	}
	at := ring.FrontAt{Container: a.Instance, Name: a.Name, Service: ring.ID(a.App, a.Service)}
	seen, err := l.Fronts.Route(ctx, at, *a.Table)
	if err != nil {
		return ring.Done{}, err
	}
	if seen.Generation != a.Table.Generation {
		return ring.Done{}, fmt.Errorf("cannot tell %s table %d: it has table %d in force", a.Name, a.Table.Generation, seen.Generation)
	}
	return ring.Done{Front: &seen}, nil
}
