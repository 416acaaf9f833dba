package reconcile

import "github.com/gitring/gitring/ring"

// takeAdopted gives the containers with a row what their labels do not say, and
// leaves those out whose app is not in force yet.
func (t *Pass) takeAdopted() {
	if len(t.Facts.Adopted) == 0 {
		return
	}
	if t.raw == nil {
		t.raw = t.World.Seen.Instances
	}
	t.Seen.Instances = make([]ring.Instance, 0, len(t.raw))
	for _, in := range t.raw {
		row, ok := t.Facts.Adopted[in.ID]
		if ok && row.For == "" {
			continue
		}
		if ok {
			in.App, in.Source, in.Service, in.Slot = row.App, row.Source, row.Service, row.Slot
			in.Version, in.Commit, in.Kind = row.For, row.Commit, row.Kind
		}
		t.Seen.Instances = append(t.Seen.Instances, in)
	}
}

// adoptedRow is the row of an instance that Compose made; nil for one of ours.
func (t *Pass) adoptedRow(in *instance) *ring.Adopted {
	if len(t.Facts.Adopted) == 0 {
		return nil
	}
	if row, ok := t.Facts.Adopted[in.ID]; ok {
		return &row
	}
	return nil
}

// adoptedUnplaced are the containers of an app that were adopted and do not stand for
// anything yet.
func (t *Pass) adoptedUnplaced(app string) []ring.Adopted {
	var out []ring.Adopted
	for _, id := range sortedKeys(t.Facts.Adopted) {
		if row := t.Facts.Adopted[id]; row.App == app && row.For == "" {
			out = append(out, row)
		}
	}
	return out
}

// enginePolicy is the restart policy that an instance of the target is to have:
// an adopted one keeps the one that it came with.
func (t *Pass) enginePolicy(v *service, in *instance) ring.EnginePolicy {
	if row := t.adoptedRow(in); row != nil {
		return row.Policy
	}
	return ring.EnginePolicy{Name: v.target.Restart.Engine, MaxRetries: v.target.Restart.MaxRetries}
}
