package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func statusCmd(g *globals) *cobra.Command {
	var watch, problems bool
	var q api.StatusQuery
	cmd := &cobra.Command{
		Use:   "status [app[/service]]",
		Short: "Show what runs here, which commit asked for it, and why it is as it is",
		Long: "status is one screen: the sources with their commits and signers, and the\n" +
			"services with what is wanted, ready and updated.\n\n" +
			"Exit: 3 unreachable, 6 a rollout failed or a service is degraded, 7 something is\n" +
			"refused, 9 held, paused or awaiting approval, 10 progressing, 0 converged; the\n" +
			"first that applies.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			only := ""
			if len(given) == 1 {
				only = given[0]
			}
			if problems && (watch || g.machine()) {
				return usage(cmd, "--problems is for people, and for one look")
			}
			if watch {
				return g.watchStatus(cmd.Context(), only, q)
			}
			if only == "" && g.machine() {
				return g.rawStatus(cmd.Context(), q)
			}
			st, err := g.statusOf(cmd.Context(), only, q)
			if err != nil {
				return err
			}
			if err := g.showStatus(cmd.Context(), st, problems); err != nil {
				return err
			}
			return exit.With(st.ExitCode())
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep showing it until interrupted")
	cmd.Flags().BoolVar(&problems, "problems", false, "only what is not well, with what to do")
	cmd.Flags().StringSliceVar(&q.Phases, "phase", nil, "only services in this phase, such as Degraded; may be given again")
	cmd.Flags().StringArrayVar(&q.Labels, "label", nil, "only services with this label of their Compose file, such as tier=web; of several, all")
	return cmd
}

// status asks for the truth about this host, or about an app of it.
func (g *globals) status(ctx context.Context, only string) (*ring.Status, error) {
	return g.statusOf(ctx, only, api.StatusQuery{})
}

// statusOf is status of those services that q chooses.
func (g *globals) statusOf(ctx context.Context, only string, q api.StatusQuery) (*ring.Status, error) {
	if only != "" {
		if _, _, err := target(only); err != nil {
			return nil, err
		}
	}
	st, err := g.daemon().StatusOf(ctx, q)
	if err != nil {
		return nil, asked(err)
	}
	if only == "" {
		return &st, nil
	}
	if part, ok := api.Narrow(&st, only); ok {
		return part, nil
	}
	if len(q.Phases)+len(q.Labels) > 0 { // it may be here, and not be chosen
		whole, err := g.status(ctx, only)
		if err != nil {
			return nil, err
		}
		whole.Sources = []ring.SourceStatus{}
		return whole, nil
	}
	return nil, noSuch(&st, only)
}

// rawStatus hands on what the daemon wrote, so that what a newer one says more
// is not lost.
func (g *globals) rawStatus(ctx context.Context, q api.StatusQuery) error {
	raw, err := g.daemon().StatusJSON(ctx, q)
	if err != nil {
		return asked(err)
	}
	var st ring.Status
	if err := json.Unmarshal(raw, &st); err != nil {
		return fmt.Errorf("cannot understand the daemon: %w", err)
	}
	if err := g.encode(raw); err != nil {
		return err
	}
	return exit.With(st.ExitCode())
}

func (g *globals) showStatus(ctx context.Context, st *ring.Status, problems bool) error {
	if g.machine() {
		return g.encode(st)
	}
	v := show.View{Wide: g.output == "wide", Now: g.now(), Problems: problems}
	v.Usage = g.usage(ctx, v.Wide)
	v.Printed, v.Signers = g.printed(ctx, st), g.signersBeside(ctx, st)
	s := g.screen()
	show.Status(s, st, v)
	_, err := fmt.Fprint(g.out, s)
	return err
}

// commitsBack is how far back a commit that still runs is looked for.
const commitsBack = 200

// signersBeside are those who signed what runs where another commit is wanted.
func (g *globals) signersBeside(ctx context.Context, st *ring.Status) map[ring.SHA]string {
	if !slices.ContainsFunc(st.Sources, func(src ring.SourceStatus) bool { return len(show.RunsBeside(&src)) > 0 }) {
		return nil
	}
	out := map[ring.SHA]string{}
	commits, _ := g.daemon().Commits(ctx, api.HistoryQuery{Limit: commitsBack}) // without them the commit is told alone
	for i := range commits {
		out[commits[i].Commit] = commits[i].Signer
	}
	return out
}

// printed is what the checks print that fail now, or by which rollouts failed; and of which
// others a log is kept. Who may not read logs, or asks an older daemon, has the rest of the screen.
func (g *globals) printed(ctx context.Context, st *ring.Status) show.Printed {
	failed := map[ring.ServiceID]ring.Version{}
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				if r := sv.Rollout; r != nil && r.Code == ring.WhyRolloutFailed {
					failed[ring.ID(a.Name, sv.Name)] = r.Version
				}
			}
		}
	}
	out := g.printedNow(ctx, st)
	if len(failed) == 0 {
		return out
	}
	groups, _ := g.daemon().Crashes(ctx, api.CrashQuery{Logs: true})
	for i := range slices.Backward(groups) { // the newest last, which stands
		id, c := ring.ID(groups[i].App, groups[i].Service), &groups[i].Newest
		if v, ok := failed[id]; ok && c.Version == v && len(c.Checked)+len(c.Log) > 0 {
			out[id] = show.Kept{Checked: c.Checked, Log: len(c.Checked) == 0}
		}
	}
	return out
}

// askedForChecks is of how many services a screen asks what their checks print now.
const askedForChecks = 5

// printedNow is what checks print that fail now, of instances that are on their way.
func (g *globals) printedNow(ctx context.Context, st *ring.Status) show.Printed {
	var on []ring.ServiceID
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				if ring.AwaitsChecks(&sv) {
					on = append(on, ring.ID(a.Name, sv.Name))
				}
			}
		}
	}
	out := show.Printed{}
	for _, id := range on[:min(len(on), askedForChecks)] {
		app, service := id.Split()
		e, _ := g.daemon().Inspect(ctx, api.InspectQuery{App: app, Service: service})
		for i := range e.Instances { // one stands for all slots, which mostly print the same
			for _, c := range e.Instances[i].Printed {
				out[id] = show.Kept{Checked: c.Lines}
			}
		}
	}
	return out
}

// usage is what instances take of the host; nil where nobody wants to know. An engine that
// is away, or an older daemon, does not say it: the screen has the rest.
func (g *globals) usage(ctx context.Context, wanted bool) map[string]ring.Usage {
	if !wanted {
		return nil
	}
	usage, _ := g.daemon().Usage(ctx)
	return usage
}

func (g *globals) statusScreen(st *ring.Status, printed show.Printed) string {
	s := g.screen()
	show.Status(s, st, show.View{Wide: g.output == "wide", Now: g.now(), Printed: printed})
	return s.String()
}

// printedEvery is how often a screen that goes on asks what checks print.
const printedEvery = 5 * time.Second

// printedLines are what checks printed, as asked last: a screen is drawn more often.
type printedLines struct {
	asked time.Time
	lines show.Printed
}

// of are the lines for a status, asked anew where they are old.
func (p *printedLines) of(ctx context.Context, g *globals, st *ring.Status) show.Printed {
	if now := g.now(); p.lines == nil || now.Sub(p.asked) >= printedEvery {
		p.asked, p.lines = now, g.printed(ctx, st)
	}
	return p.lines
}

// watchedScreen is the status with what is wrong first, and as much of the rest as has
// room in a terminal of that height.
func (g *globals) watchedScreen(ctx context.Context, st *ring.Status, height int, printed show.Printed) string {
	now := g.now()
	wide := g.output == "wide"
	usage := g.usage(ctx, wide)
	return show.Fitting(st, height, func(shown *show.Shown) string {
		s := g.screen()
		show.Status(s, st, show.View{Wide: wide, Now: now, Usage: usage, Printed: printed, Shown: shown})
		return s.String()
	})
}

// watchEvery is often enough for a person, and nothing for the daemon.
const watchEvery = time.Second

// watchStatus shows the status until ctx ends. On a terminal the screen stays
// in place and its ages run on; elsewhere it is written when something changed.
func (g *globals) watchStatus(ctx context.Context, only string, q api.StatusQuery) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	l := screen.NewLive(g.out, g.now)
	var last []byte
	var printed printedLines
	for {
		st, err := g.statusOf(ctx, only, q)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		face := faceOf(*st)
		changed := !bytes.Equal(face, last)
		last = face
		if err := g.showWatched(ctx, l, st, changed, &printed); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g *globals) showWatched(ctx context.Context, l *screen.Live, st *ring.Status, changed bool, printed *printedLines) error {
	switch {
	case g.machine() && changed:
		return g.encodeLine(st)
	case g.machine():
		return nil
	case l.OnTerminal:
		return l.Redraw(g.watchedScreen(ctx, st, l.Height(), printed.of(ctx, g, st)))
	case changed:
		_, err := fmt.Fprintln(g.out, g.statusScreen(st, printed.of(ctx, g, st)))
		return err
	}
	return nil
}

// faceOf is a status without the times that change while nothing does.
func faceOf(st ring.Status) []byte {
	st.At = time.Time{}
	sources := st.Sources
	st.Sources = nil
	for _, src := range sources {
		src.Checked, src.Checking = time.Time{}, false
		st.Sources = append(st.Sources, src)
	}
	face, err := json.Marshal(st)
	if err != nil {
		return nil
	}
	return face
}

// completeApps offers the apps and services of this host to the shell.
func (g *globals) completeApps(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), watchEvery)
	defer cancel()
	st, err := g.daemon().Status(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			names = append(names, wording.SafeLine(a.Name))
			for _, sv := range a.Services {
				names = append(names, wording.SafeLine(a.Name+"/"+sv.Name))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
