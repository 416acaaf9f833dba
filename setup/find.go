package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// engineWithin is how long the engine may take to say what runs.
const engineWithin = 10 * time.Second

// history finds the tip and where trust in it can begin.
func (in *Setup) history(ctx context.Context) error {
	var err error
	if in.Tip, err = in.tipOf(ctx, in.Result.Branch); err != nil {
		return err
	}
	if in.before != nil && in.before.Trust.Introduced() != "" {
		in.Result.Introduction = in.before.Trust.Introduced()
		in.Result.Refusal, err = in.unsignedBeginning(in.Result.Introduction)
		return err
	}
	if in.Result.Refusal, err = in.refusalOf(in.Tip); err == nil && in.Result.Refusal == nil {
		in.Result.Introduction = in.Tip
	}
	return err
}

// unsignedBeginning is why nobody whom the configuration here trusts signed its introduction;
// nil where somebody did, and where this clone cannot tell.
func (in *Setup) unsignedBeginning(sha ring.SHA) (*ring.Refusal, error) {
	cfg := in.before.Trust.TrustConfig()
	trust, unread := gitsync.LoadTrust(cfg, in.before.Name, in.before.Branch)
	if unread != nil || cfg.SignersInRepo != "" { // serve tells of the first; the second may name more signers
		return nil, nil
	}
	repo, err := in.Repo()
	if err != nil {
		return nil, err
	}
	_, refusal, err := trust.Begins(repo, gitsync.Aids{
		Head:  func(gitsync.Pull) (ring.SHA, error) { return "", gitsync.ErrMissing },
		Merge: func(ring.SHA, ring.SHA) (ring.SHA, error) { return "", gitsync.ErrNoMergeTree },
	}, sha, in.Now(), nil)
	if errors.Is(err, gitsync.ErrMissing) {
		return nil, nil
	}
	if refusal != nil && !slices.Contains([]ring.Code{ring.Unsigned, ring.UnknownSigner, ring.BadSignature}, refusal.Code) {
		refusal = nil // of a key that was good in its time, or a landing whose head is not here
	}
	return refusal, err
}

// tipOf is the newest commit of a branch that this clone knows.
func (in *Setup) tipOf(ctx context.Context, branch string) (ring.SHA, error) {
	rev := "HEAD"
	if in.Branch(ctx) != branch {
		rev = "refs/remotes/" + in.Remote(ctx) + "/" + branch
		if _, err := in.CommitOf(ctx, rev); err != nil {
			rev = "refs/heads/" + branch
		}
	}
	tip, err := in.CommitOf(ctx, rev)
	if err != nil {
		return "", &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("branch %s has no commit in %s", branch, in.Dir),
			Hint: "commit the Compose files first, or name another branch with --branch",
		}
	}
	return tip, nil
}

// begun is an error where no answer would help: the branch that was named, or each one,
// has no commit.
func (in *Setup) begun(ctx context.Context) error {
	branch := in.options.Branch
	if branch == "" {
		if any, err := in.Git(ctx, "rev-list", "--all", "--max-count=1"); err != nil || any != "" {
			return err
		}
		branch = cmp.Or(in.Branch(ctx), config.DefaultBranch)
	}
	_, err := in.tipOf(ctx, branch)
	return err
}

// refusalOf is why a commit is not one to begin trust with; nil when it is.
func (in *Setup) refusalOf(sha ring.SHA) (*ring.Refusal, error) {
	trust, err := in.trustOf(in.Result.key)
	if err != nil {
		return nil, err
	}
	repo, err := in.Repo()
	if err != nil {
		return nil, err
	}
	_, refusal, err := trust.One(repo, sha, in.Now(), nil)
	return refusal, err
}

// look reads the apps, plans them as for a host without any, and asks the engine
// what of them runs there already.
func (in *Setup) look(ctx context.Context) error {
	repo, err := in.Repo()
	if err != nil {
		return err
	}
	c, err := repo.Commit(in.Tip)
	var refusal *ring.Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	if err != nil {
		return err
	}
	settings := manifest.Settings{Source: in.Result.Source, Path: path.Clean(in.Result.Path), Host: in.Result.Host, Traffic: in.traffic()}
	settings = daemon.ClosedSecrets(settings)
	r, notRead := manifest.LookFurther(c, settings)
	if err := in.search(&r, notRead, &settings); err != nil {
		return err
	}
	if in.there != nil && in.before != nil {
		values, key, err := daemon.ValuesOf(in.there)
		if err != nil {
			return err
		}
		settings = values.Settings(settings, key)
	}
	if settings, err = in.values(c, settings); err != nil {
		return err
	}
	if err := in.alternatives(ctx, c, &settings); err != nil {
		return err
	}
	judge, err := in.policy(c, settings)
	if err != nil {
		return err
	}
	plan, refusals, notRead := judge.LookFurther(c, settings)
	aside, notRead := partSetAside(notRead, settings.Path)
	in.Result.NotRead = append(manifest.SayNotRead(notRead), saysLeftOut(aside)...)
	in.Result.Apps = slices.Sorted(maps.Keys(manifest.Folders(c, settings)))
	foreign := in.foreign(ctx, &plan, c, settings)
	plan.Apps = slices.DeleteFunc(plan.Apps, func(a ring.App) bool {
		return slices.ContainsFunc(foreign, func(r *ring.Refusal) bool { return r.App == a.Name })
	})
	plan.Refused = nil // they are told one by one
	changes := reconcile.Plan(reconcile.World{Host: settings.Host}, &plan, in.Now())
	changes.Refusals = admission.NamingEnv(append(refusals, foreign...), in.Result.Env)
	in.Result.Plan = &changes
	return nil
}

// foreign asks the engine what of the apps runs that gitring did not start, and
// what else of a project would be in the way. It only looks.
func (in *Setup) foreign(ctx context.Context, plan *ring.Plan, c *ring.Commit, settings manifest.Settings) []*ring.Refusal {
	ctx, cancel := context.WithTimeout(ctx, engineWithin)
	defer cancel()
	e, err := runtime.Dial(ctx, runtime.Options{URL: in.engineURL(), Host: in.Result.Host, DataRoot: config.DefaultDataRoot})
	if err != nil {
		in.Result.Engine = err.Error()
		return nil
	}
	defer func() { _ = e.Close() }() // it was only asked
	folders := manifest.Folders(c, settings)
	var coming []string // the first look of a daemon makes them, and what joins them follows
	for i := range plan.Apps {
		coming = append(coming, reconcile.NetworksMadeBy(&plan.Apps[i])...)
	}
	var out []*ring.Refusal
	for _, name := range in.Result.Apps {
		app, ok := plan.App(name)
		if !ok { // refused, and it may run all the same
			app = ring.App{Name: name, Source: settings.Source, Path: folders[name]}
		}
		_, err := e.Do(ctx, ring.Action{Kind: ring.DoAdmit, Source: app.Source, App: app.Name, Of: &app, Coming: coming})
		var r *ring.Refusal
		switch {
		case errors.As(err, &r):
			r.App, r.Commit = name, ""
			out = append(out, r)
		case err != nil:
			in.Result.Engine = err.Error()
			return out
		}
	}
	return out
}

func (in *Setup) engineURL() string {
	if in.options.Engine != "" {
		return in.options.Engine
	}
	if in.there != nil {
		return in.there.Engine.URL
	}
	return cmp.Or(os.Getenv("DOCKER_HOST"), config.DefaultEngineURL)
}

// traffic is what the configuration says of fronts, with the answer of this run.
func (in *Setup) traffic() manifest.Traffic {
	var t manifest.Traffic
	if in.there != nil {
		t = in.there.Traffic.Settings()
	}
	t.Publish = in.Result.Publish
	return t
}
