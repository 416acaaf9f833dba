package daemon

import (
	"context"
	"path"
	"slices"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// signedPrint changes with what decides who signed what at a source, besides the commits;
// "" where no grant asks.
func (d *Daemon) signedPrint(source string) string {
	said, _ := d.policy.Said()
	f := d.follower(source)
	if f == nil || !slices.ContainsFunc(said.Grants, func(g policy.Grant) bool { return g.Source == source && len(g.Signers) > 0 }) {
		return ""
	}
	return f.git.TrustEpoch()
}

// signed is "" where one of the patterns names who answers for the newest change of a file
// up to the commit of an app, else why not.
func (d *Daemon) signed(ctx context.Context) func(a *ring.App, file string, patterns []string) string {
	return func(a *ring.App, file string, patterns []string) string {
		f := d.follower(a.Source)
		if f == nil || a.Commit == "" {
			return "no commit of a source asks for it"
		}
		why, err := f.git.SignedBy(ctx, a.Commit, path.Clean(file), patterns)
		if err != nil {
			return err.Error()
		}
		return why
	}
}
