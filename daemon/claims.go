package daemon

import (
	"context"
	"path"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// claimed is one folder that goes by one name.
type claimed struct{ folder, app string }

// claimsMade remembers, by commit, whose commit gave a folder its name: a claim that stays
// refused is not searched for again at each commit.
type claimsMade map[claimed]struct{ at, by ring.SHA }

// maxClaimWalk is how many commits are read to find the one that made a claim. Behind it
// nobody is known to have made it.
const maxClaimWalk = 200

// signers asks in whose hands the apps of the source are. It reports whether that cannot
// be told now, which is said in next.
func (f *follower) signers(ctx context.Context, next *reconcile.Source, reached *bool) bool {
	if f.git == nil { // whoever only reads a commit asks nobody who signs
		return false
	}
	h, err := f.git.Hands(ctx)
	if err != nil {
		next.Reason, *reached = err.Error(), false
		return true
	}
	f.hands = h
	f.d.ledger.signers(f.cfg.Name, h)
	return false
}

// limit notes in a plan to which paths whoever named an app is limited, for each app that
// would take a name which is not its own yet.
func (f *follower) limit(ctx context.Context, c *ring.Commit, plan *ring.Plan) error {
	if !f.hands.Limited() {
		return nil
	}
	for i := range plan.Apps {
		a := &plan.Apps[i]
		folder := path.Clean(a.Path)
		if n, ok := f.d.ledger.nameOf(a.Name); ok && n.Source == f.cfg.Name && n.Path == folder {
			continue
		}
		by, err := f.claimant(ctx, c, claimed{folder, a.Name})
		if err != nil {
			return err
		}
		paths, limited := []string{}, true
		if by != "" {
			if paths, limited, err = f.git.Paths(ctx, f.hands, by); err != nil {
				return err
			}
		}
		if limited {
			if plan.Limits == nil {
				plan.Limits = map[string][]string{}
			}
			plan.Limits[a.Name] = paths
		}
	}
	return nil
}

// claimant is the commit that gave a folder its name: walking back from c, the last one
// before which the folder was not called so. "" where that lies too far back.
func (f *follower) claimant(ctx context.Context, c *ring.Commit, what claimed) (ring.SHA, error) {
	if f.claims == nil {
		f.claims = claimsMade{}
	}
	if manifest.Named(c, f.settings)[what.folder] != what.app {
		return "", nil // called so by what is not in the commit
	}
	known := f.claims[what]
	at := c
	for range maxClaimWalk {
		if at.SHA == known.at {
			f.claims[what] = struct{ at, by ring.SHA }{c.SHA, known.by}
			return known.by, nil
		}
		var before *ring.Commit
		for _, id := range at.Parents {
			p, err := f.git.Commit(ctx, id)
			if err != nil {
				return "", err
			}
			if manifest.Named(p, f.settings)[what.folder] == what.app {
				before = p
				break
			}
		}
		if before == nil {
			f.claims[what] = struct{ at, by ring.SHA }{c.SHA, at.SHA}
			return at.SHA, nil
		}
		at = before
	}
	return "", nil
}
