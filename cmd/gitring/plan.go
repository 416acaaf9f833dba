package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/show"
)

func planCmd(g *globals) *cobra.Command {
	var source, profile string
	var detailed bool
	cmd := &cobra.Command{
		Use:   "plan [rev|dir]",
		Short: "Show what a commit or a folder would change here",
		Long: "plan asks the daemon what it would do: per service no-op, in place, create,\n" +
			"roll, recreate or remove, with the field that decided and the gap to expect.\n" +
			"A folder is the root of the repository, committed or not; a revision is one of\n" +
			"the clone around, or a full commit id. Without either it is the tip that the\n" +
			"daemon saw last. Nothing is changed. Exit 7 when anything is refused. Where\n" +
			"there is nothing to do it says so in a line; -o wide lists all, with notes.\n\n" +
			"Where no daemon runs, and with --profile, a folder is planned as for a host on\n" +
			"which nothing runs yet, by the path, values and policy of --config; without,\n" +
			"of the configuration that the clone's own setting gitring.config names.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			err := g.plan(cmd.Context(), planned{strings.Join(given, ""), source, profile}, detailed)
			if detailed {
				return detail(err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "the source to plan for, where there is more than one")
	profileFlag(cmd, &profile)
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 0 with nothing to do, 1 on errors and refusals, 2 with changes")
	return cmd
}

// planned is what to plan: nothing is the tip. A profile judges a folder without
// the daemon, which has its own.
type planned struct{ what, source, profile string }

func (g *globals) plan(ctx context.Context, p planned, detailed bool) error {
	changes, err := g.changes(ctx, p)
	if err != nil {
		return err
	}
	for _, says := range changes.NotRead {
		g.notice("%s", says)
	}
	if g.machine() {
		err = g.encode(changes)
	} else {
		s := g.screen()
		show.Plan(s, changes, g.output == "wide", g.now())
		_, err = fmt.Fprint(g.out, s)
	}
	switch {
	case err != nil:
		return err
	case len(changes.Refusals) > 0:
		return exit.Outcome(exit.Refused)
	case detailed && !changes.Empty():
		return exit.Outcome(changed)
	}
	return nil
}

// changed is what --detailed-exitcode says of a plan that does something.
const changed = 2

// detail keeps to the three codes of --detailed-exitcode: a script that asked
// for them takes every 2 for changes.
func detail(err error) error {
	var f *exit.Failure
	if errors.As(err, &f) {
		return &exit.Failure{Code: exit.Error, Says: f.Says, Hint: f.Hint}
	}
	if errors.Is(err, exit.Outcome(exit.Refused)) {
		return exit.Outcome(exit.Error)
	}
	return err
}

// changes asks the daemon: about a folder, about a commit that it knows, else
// about the tree of that commit in the clone around.
func (g *globals) changes(ctx context.Context, p planned) (*ring.Changes, error) {
	client, what, source := g.daemon(), p.what, p.source
	if info, err := os.Stat(what); what != "" && err == nil && info.IsDir() {
		return g.changesOf(ctx, p)
	}
	if p.profile != "" {
		return nil, &exit.Failure{Code: exit.Usage, Says: "--profile is for a folder", Hint: "gitring plan <dir> --profile " + p.profile}
	}
	if what == "" {
		tip, name, err := g.tip(ctx, source)
		if err != nil {
			return nil, err
		}
		return answered(client.Plan(ctx, api.PlanRequest{Source: name, Rev: string(tip)}))
	}
	local, sha := g.resolveLocally(what)
	changes, err := client.Plan(ctx, api.PlanRequest{Source: source, Rev: cmp.Or(string(sha), what)})
	if local == nil || !errors.Is(err, api.ErrNotFound) {
		return answered(changes, err)
	}
	commit, missing := local.Commit(sha)
	if missing != nil {
		return answered(changes, err)
	}
	changes, err = client.Plan(ctx, api.PlanRequest{Source: source, Tree: commit.Tree})
	changes.Commit = cmp.Or(changes.Commit, sha)
	return answered(changes, err)
}

// changesOf is of a folder, by the daemon if there is one.
func (g *globals) changesOf(ctx context.Context, p planned) (*ring.Changes, error) {
	if p.profile != "" {
		return g.planAlone(ctx, p.what, p.source, p.profile)
	}
	tree, err := openFolder(p.what)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	socket := g.socketFor(ctx, p.what)
	client := g.daemon()
	if g.hostGiven() == "" {
		client = api.NewClient(socket)
	}
	changes, err := client.Plan(ctx, api.PlanRequest{Source: p.source, Tree: tree})
	if g.nobodyThere(err) {
		g.notice("no daemon answers on %s: planned as for a host on which nothing runs yet", socket)
		return g.planAlone(ctx, p.what, p.source, "")
	}
	if errors.Is(err, api.ErrFolderTooLarge) {
		g.notice("%v; planned without the daemon, as for a host on which nothing runs yet", err)
		return g.planAlone(ctx, p.what, p.source, "")
	}
	return answered(changes, err)
}

// socketFor is the socket of the daemon that a clone's own setting leads to, where no other is said.
func (g *globals) socketFor(ctx context.Context, dir string) string {
	if g.socket == "" && os.Getenv("GITRING_SOCKET") == "" && configFromEnv() == "" {
		if s := config.SocketOf(g.configOfClone(ctx, dir)); s != "" {
			return s
		}
	}
	return g.socketPath()
}

func answered(c ring.Changes, err error) (*ring.Changes, error) {
	if err != nil {
		return nil, asked(err)
	}
	return &c, nil
}

// resolveLocally knows a revision where there is a clone around.
func (g *globals) resolveLocally(rev string) (*gitsync.Repo, ring.SHA) {
	repo, err := gitsync.OpenRepo(".")
	if err != nil {
		return nil, ""
	}
	sha, err := repo.Resolve(rev)
	if err != nil {
		return nil, ""
	}
	return repo, sha
}

// tip is the newest commit that the daemon knows of a source.
func (g *globals) tip(ctx context.Context, source string) (ring.SHA, string, error) {
	st, err := g.daemon().Status(ctx)
	if err != nil {
		return "", "", asked(err)
	}
	var names []string
	for _, src := range st.Sources {
		names = append(names, src.Name)
		if src.Name != source && (source != "" || len(st.Sources) > 1) {
			continue
		}
		tip := cmp.Or(src.Tip, src.Trusted, src.Commit)
		if tip == "" {
			return "", "", &exit.Failure{Code: exit.NotFound, Says: "source " + src.Name + " has no commit yet", Hint: "gitring status tells why"}
		}
		return tip, src.Name, nil
	}
	if source == "" && len(names) > 1 {
		return "", "", &exit.Failure{Code: exit.Usage, Says: "there is more than one source", Hint: "--source with one of " + strings.Join(names, ", ")}
	}
	return "", "", &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("no source %q on %s", source, st.Host), Hint: ring.Meant(source, names)}
}
