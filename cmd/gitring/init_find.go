package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// engineWithin is how long the engine may take to say what runs.
const engineWithin = 10 * time.Second

// history finds the tip and where trust in it can begin.
func (in *initial) history(ctx context.Context) error {
	rev := "HEAD"
	if in.Branch(ctx) != in.out.Branch {
		rev = "refs/remotes/" + in.Remote(ctx) + "/" + in.out.Branch
		if _, err := in.CommitOf(ctx, rev); err != nil {
			rev = "refs/heads/" + in.out.Branch
		}
	}
	var err error
	if in.tip, err = in.CommitOf(ctx, rev); err != nil {
		return &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("branch %s has no commit in %s", in.out.Branch, in.Dir),
			Hint: "commit the Compose files first, or name another branch with --branch",
		}
	}
	if in.before != nil && in.before.Trust.Introduced() != "" {
		in.out.Introduction = in.before.Trust.Introduced()
		return nil
	}
	if in.out.Refusal, err = in.refusalOf(in.tip); err == nil && in.out.Refusal == nil {
		in.out.Introduction = in.tip
	}
	return err
}

// refusalOf is why a commit is not one to begin trust with; nil when it is.
func (in *initial) refusalOf(sha ring.SHA) (*ring.Refusal, error) {
	trust, err := in.trustOf(in.out.key)
	if err != nil {
		return nil, err
	}
	repo, err := in.Repo()
	if err != nil {
		return nil, err
	}
	_, refusal, err := trust.One(repo, sha, in.g.now(), nil)
	return refusal, err
}

// look reads the apps, plans them as for a host without any, and asks the engine
// what of them runs there already.
func (in *initial) look(ctx context.Context) error {
	repo, err := in.Repo()
	if err != nil {
		return err
	}
	c, err := repo.Commit(in.tip)
	var refusal *ring.Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	if err != nil {
		return err
	}
	settings := manifest.Settings{Source: in.out.Source, Path: path.Clean(in.out.Path), Host: in.out.Host}
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
	judge, err := in.policy(c, settings)
	if err != nil {
		return err
	}
	plan, refusals, notRead := judge.LookFurther(c, settings)
	in.out.NotRead = append(manifest.SayNotRead(notRead), saysLeftOut(notRead)...)
	in.out.Apps = slices.Sorted(maps.Keys(manifest.Folders(c, settings)))
	foreign := in.foreign(ctx, &plan, c, settings)
	plan.Apps = slices.DeleteFunc(plan.Apps, func(a ring.App) bool {
		return slices.ContainsFunc(foreign, func(r *ring.Refusal) bool { return r.App == a.Name })
	})
	plan.Refused = nil // they are told one by one
	changes := reconcile.Plan(reconcile.World{Host: settings.Host}, &plan, in.g.now())
	changes.Refusals = placed(append(refusals, foreign...), in.out.Env)
	in.out.Plan = &changes
	return nil
}

// foreign asks the engine what of the apps runs that gitring did not start, and
// what else of a project would be in the way. It only looks.
func (in *initial) foreign(ctx context.Context, plan *ring.Plan, c *ring.Commit, settings manifest.Settings) []*ring.Refusal {
	ctx, cancel := context.WithTimeout(ctx, engineWithin)
	defer cancel()
	e, err := runtime.Dial(ctx, runtime.Options{URL: in.engineURL(), Host: in.out.Host, DataRoot: config.DefaultDataRoot})
	if err != nil {
		in.out.Engine = err.Error()
		return nil
	}
	defer func() { _ = e.Close() }() // it was only asked
	folders := manifest.Folders(c, settings)
	var out []*ring.Refusal
	for _, name := range in.out.Apps {
		app, ok := plan.App(name)
		if !ok { // refused, and it may run all the same
			app = ring.App{Name: name, Source: settings.Source, Path: folders[name]}
		}
		_, err := e.Do(ctx, ring.Action{Kind: ring.DoAdmit, Source: app.Source, App: app.Name, Of: &app})
		var r *ring.Refusal
		switch {
		case errors.As(err, &r):
			r.App, r.Commit = name, ""
			out = append(out, r)
		case err != nil:
			in.out.Engine = err.Error()
			return out
		}
	}
	return out
}

func (in *initial) engineURL() string {
	if in.f.engine != "" {
		return in.f.engine
	}
	if in.there != nil {
		return in.there.Engine.URL
	}
	return cmp.Or(os.Getenv("DOCKER_HOST"), config.DefaultEngineURL)
}

// showFound shows all that was found, before anything is done about it.
func (in *initial) showFound() error {
	s, o := in.g.screen(), &in.out
	row := func(key string, words ...screen.Word) {
		s.Line(0, " ", append([]screen.Word{screen.Painted(fmt.Sprintf("%-11s", key), screen.Dim)}, words...)...)
	}
	row("repository", screen.Text(o.Repository))
	row("follows", screen.Painted(o.URL, screen.Bold), screen.Text("branch "+o.Branch), screen.Text(wording.When(o.Path != ".", "folder "+o.Path)), screen.Text("at "+in.tip.Short()))
	row("host", screen.Painted(o.Host, screen.Bold), screen.Text("source "+o.Source))
	row("signer", screen.Painted(o.Signer, screen.Bold), screen.Text(o.Fingerprint), screen.Text("("+o.key.where+")"))
	row("trust", screen.Painted(o.Mode, screen.Bold), screen.Text("- "+modeSays(o.Mode)))
	switch {
	case o.Introduction == in.tip:
		row("history", screen.Text("begins at "+o.Introduction.Short()+", which that key signed"))
	case o.Introduction != "":
		row("history", screen.Text("begins at "+o.Introduction.Short()))
	default:
		row("history", screen.Painted(string(o.Refusal.Code), screen.Yellow), screen.Text(o.Refusal.Says))
	}
	row("policy", screen.Painted(o.Profile, screen.Bold), screen.Text("- "+profileSays(o.Profile)))
	if len(o.Folders) > 0 {
		row("folders", screen.Text(strings.Join(o.Folders, ", ")))
	}
	if o.Grants > 0 {
		row("grants", screen.Text(fmt.Sprintf("%d, each with the line that asks for it, in %s", o.Grants, policyName)))
	}
	row("apps", screen.Text(cmp.Or(strings.Join(o.Apps, ", "), "none")))
	for _, says := range o.NotRead {
		row("not read", screen.Text(says))
	}
	s.Gap()
	if o.Engine != "" {
		s.Line(0, " ", screen.Painted("note:", screen.Yellow), screen.Text("no engine says what runs here already: "+o.Engine))
	}
	s.Line(0, "", screen.Painted("The first plan, for a host on which nothing of gitring runs yet:", screen.Bold))
	in.showFirstPlan(s)
	s.Gap()
	_, err := fmt.Fprint(in.g.out, s)
	return err
}

// profileSays is what a profile means for the host.
func profileSays(profile string) string {
	switch policy.Profile(profile) {
	case policy.Owner:
		return "who signs owns this host"
	case policy.Compose:
		return "who signs changes apps, and gets nothing of the host that is not granted"
	}
	return "as compose, and every service has to confine itself"
}

// modeSays is what a trust mode means for those who work with it.
func modeSays(mode string) string {
	switch mode {
	case "strict":
		return "every commit and merge is signed by a person"
	case "forge-merge":
		return "people sign what they write, and the forge's buttons land it"
	}
	return "as the configuration says"
}
