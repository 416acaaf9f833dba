package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/fleet"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

// everyHost is the pattern that names all hosts.
const everyHost = "*"

// fleetRow is what one host answered. One that does not answer is a row too.
type fleetRow struct {
	Host   string `json:"host"`
	At     string `json:"at"`
	Exit   int    `json:"exit"`
	Error  string `json:"error,omitempty"`
	Hint   string `json:"hint,omitempty"`
	Answer any    `json:"answer,omitempty"`

	words []screen.Word
}

// fleetAnswer is what to make of a host's answer.
type fleetAnswer struct {
	value any
	words []screen.Word
	exit  int
}

func fleetCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Ask many hosts at once, one row each",
		Long: "fleet asks the daemons of the hosts in ~/.config/gitring/fleet.yaml, or else in\n" +
			".gitring/fleet.yaml of the clone around, over ssh: 16 at once, 10 s each. A host\n" +
			"that does not answer is a row too. Where the clone's file names the hosts, only\n" +
			"those are reached that your ssh knows and enters without a question.\n\n" +
			"Exit: the worst of all hosts, 3 before 6, 7, 9, 10 and 0.",
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(fleetStatusCmd(g), fleetVersionCmd(g), fleetPlanCmd(g), fleetSyncCmd(g), fleetEventsCmd(g), fleetDoctorCmd(g))
	for _, verb := range fleetActs {
		cmd.AddCommand(fleetActCmd(g, verb))
	}
	return cmd
}

// onFlag is --on of a verb that changes nothing: all hosts, where nobody says otherwise.
func onFlag(cmd *cobra.Command, on *string) {
	cmd.Flags().StringVar(on, "on", everyHost, "which hosts: names between commas, * for any run of characters")
}

func fleetStatusCmd(g *globals) *cobra.Command {
	var on string
	var q api.StatusQuery
	cmd := &cobra.Command{
		Use: "status", Short: "Show every host in one row", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.askFleet(cmd.Context(), on, show.HostColumns, func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
				st, err := c.StatusOf(ctx, q)
				return fleetAnswer{value: st, words: show.HostRow(&st), exit: st.ExitCode()}, err
			})
		},
	}
	onFlag(cmd, &on)
	cmd.Flags().StringSliceVar(&q.Phases, "phase", nil, "only services in this phase, such as Degraded; may be given again")
	cmd.Flags().StringArrayVar(&q.Labels, "label", nil, "only services with this label of their Compose file; of several, all")
	return cmd
}

func fleetVersionCmd(g *globals) *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use: "version", Short: "Show the version of every daemon and engine", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.askFleet(cmd.Context(), on, []string{"GITRING", "ENGINE", "API"}, func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
				v, err := c.Version(ctx)
				return fleetAnswer{value: v, words: []screen.Word{screen.Text(v.Gitring), screen.Text(v.Engine), screen.Text(v.EngineAPI)}}, err
			})
		},
	}
	onFlag(cmd, &on)
	return cmd
}

func fleetPlanCmd(g *globals) *cobra.Command {
	var on, source string
	cmd := &cobra.Command{
		Use: "plan <rev>", Short: "Show what a commit would change on every host", Args: args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeRevisions,
		RunE: func(cmd *cobra.Command, given []string) error {
			local, sha := g.resolveLocally(given[0])
			return g.askFleet(cmd.Context(), on, []string{"CHANGES"}, func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
				p, err := c.Plan(ctx, api.PlanRequest{Source: source, Rev: cmp.Or(string(sha), given[0])})
				if local != nil && errors.Is(err, api.ErrNotFound) {
					if commit, missing := local.Commit(sha); missing == nil { // it was not pushed yet
						p, err = c.Plan(ctx, api.PlanRequest{Source: source, Tree: commit.Tree})
						p.Commit = cmp.Or(p.Commit, sha)
					}
				}
				a := fleetAnswer{value: p, words: []screen.Word{screen.Text(show.ChangesSum(&p))}}
				if len(p.Refusals) > 0 {
					a.exit = exit.Refused
					a.words = append(a.words, screen.Text(p.Refusals[0].Error()))
				}
				return a, err
			})
		},
	}
	onFlag(cmd, &on)
	cmd.Flags().StringVar(&source, "source", "", "the source to plan for, where a host has more than one")
	return cmd
}

func fleetDoctorCmd(g *globals) *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with every host", Args: args(cobra.NoArgs),
		Long: "doctor has every host look for what is wrong with it, one row each: how many checks\n" +
			"are well and not, and the first that is not. gitring doctor --host <name> shows all\n" +
			"of one. Exit 1 when a check of any host fails.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.askFleet(cmd.Context(), on, show.DoctorColumns, func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
				r, err := c.Doctor(ctx)
				a := fleetAnswer{value: r, words: show.DoctorRow(&r)}
				if r.Failed() {
					a.exit = exit.Error
				}
				return a, err
			})
		},
	}
	onFlag(cmd, &on)
	return cmd
}

func fleetSyncCmd(g *globals) *cobra.Command {
	var on, source string
	cmd := &cobra.Command{
		Use: "sync", Short: "Have every host look at its remote now", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.askFleet(cmd.Context(), on, []string{"ANSWER"}, func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
				return fleetAnswer{words: []screen.Word{screen.Text("asked")}}, c.Sync(ctx, source)
			})
		},
	}
	onFlag(cmd, &on)
	cmd.Flags().StringVar(&source, "source", "", "the source; \"\" is all of a host")
	return cmd
}

// fleetActs are what a person does by hand, as on one host.
var fleetActs = []string{"hold", "release", "pause", "resume", "promote", "abort", "restart", "undo", "scale", "retry", "run", "refresh", "approve"}

// fleetActCmd is one act on many hosts. It names its hosts, and says why.
func fleetActCmd(g *globals, verb string) *cobra.Command {
	var on, reason, lasts string
	var yes bool
	use, short := verb+" <app[/service]>", "On many hosts: gitring "+onOneHost(verb)
	if verb == "approve" {
		use = verb + " <sha>"
	}
	if verb == "scale" {
		use = verb + " <app/service>=<n>"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args(cobra.ExactArgs(1)),
		Long: short + ".\n\nEvery host that it will reach is listed, and asked about once; --yes answers.",
		RunE: func(cmd *cobra.Command, given []string) error {
			if on == "" {
				return usage(cmd, "--on is required: which hosts, '*' for all")
			}
			if strings.TrimSpace(reason) == "" {
				return usage(cmd, "--reason is required")
			}
			act, err := fleetAct(cmd, verb, given[0], reason, lasts)
			if err != nil {
				return err
			}
			if err := g.confirmFleet(cmd, on, verb+" "+given[0], yes); err != nil {
				return err
			}
			return g.askFleet(cmd.Context(), on, []string{"ANSWER"}, act)
		},
	}
	cmd.Flags().StringVar(&on, "on", "", "which hosts: names between commas, * for any run of characters (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the journal and for all who look (required)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	if slices.Contains([]string{"hold", "pause", "undo", "scale"}, verb) {
		cmd.Flags().StringVar(&lasts, "for", "", "how long it stands, 720h at most (default as on one host)")
	}
	return cmd
}

// onOneHost is how an act is called for a single host.
func onOneHost(verb string) string {
	if verb == "promote" || verb == "abort" {
		return "rollout " + verb
	}
	return verb
}

// fleetAct is what each host is asked to do.
func fleetAct(cmd *cobra.Command, verb, what, reason, lasts string) (func(context.Context, *api.Client) (fleetAnswer, error), error) {
	if verb == "approve" {
		sha, err := commitID(what)
		return func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
			return fleetAnswer{words: []screen.Word{screen.Text("approved " + sha.Short())}}, c.Approve(ctx, api.ApproveRequest{Commit: sha, Reason: reason})
		}, err
	}
	if verb == "refresh" {
		r := api.RefreshRequest{Reason: reason}
		var err error
		r.App, r.Service, err = target(what)
		return func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
			found, err := c.Refresh(ctx, r)
			return fleetAnswer{value: found, words: []screen.Word{screen.Text("looked up " + wording.Counted(len(found), "image"))}}, err
		}, err
	}
	r := api.ActRequest{Verb: verb, Reason: reason, For: lasts}
	if verb == "scale" {
		name, count, ok := strings.Cut(what, "=")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 0 {
			return nil, usage(cmd, fmt.Sprintf("%q is not app/service=number", what))
		}
		what, r.Replicas = name, n
	}
	var err error
	if r.App, r.Service, err = target(what); err != nil {
		return nil, err
	}
	if _, err := r.Lasts(); err != nil {
		return nil, asked(err)
	}
	return func(ctx context.Context, c *api.Client) (fleetAnswer, error) {
		done, err := c.Act(ctx, r)
		return fleetAnswer{value: done, words: []screen.Word{screen.Text(done.Says)}}, err
	}, nil
}

// confirmFleet lists the hosts that an act will reach, and asks once.
func (g *globals) confirmFleet(cmd *cobra.Command, on, what string, yes bool) error {
	hosts, err := g.hostsOn(on)
	if err != nil {
		return err
	}
	g.notice("gitring %s, on %s:", what, wording.Counted(len(hosts), "host"))
	for _, h := range hosts {
		g.notice("  %s (%s)", h.Name, h.At)
	}
	if yes {
		return nil
	}
	if !g.asks() {
		return usage(cmd, "nobody can be asked here: --yes says that these hosts are meant")
	}
	ok, err := g.yes("Do it?")
	if err == nil && !ok {
		err = &exit.Failure{Code: exit.Error, Says: "nothing was done"}
	}
	return err
}

// hostsOn are those that a pattern names. GITRING_HOST does not count here: it names one
// host, and the inventory names them all.
func (g *globals) hostsOn(on string) ([]fleet.Host, error) {
	inv, err := g.inventory()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &exit.Failure{
			Code: exit.NotFound, Says: "there is no inventory of hosts",
			Hint: "write ~/" + fleet.HomeFile + ", or " + fleet.CloneFile + " in the clone: hosts: {edge-1: {at: ssh://edge-1}}",
		}
	}
	if err != nil {
		return nil, err
	}
	if len(inv.Names()) == 0 {
		return nil, &exit.Failure{Code: exit.NotFound, Says: "no host in " + inv.File, Hint: "hosts: {edge-1: {at: ssh://edge-1}}"}
	}
	return inv.Match(on)
}

// dialHost reaches the daemon of a host of the inventory. Nobody can be asked for 16
// passwords at once, so none is asked for.
func dialHost(ctx context.Context, h fleet.Host) (*api.Client, error) {
	a := h.At
	a.Foreign = true
	first, err := fleet.Dial(ctx, a)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = &fleet.SSHError{Says: "no answer within " + farWithin.String()}
		}
		return nil, &api.ErrUnreachable{Socket: a.String(), Err: err}
	}
	var mu sync.Mutex
	c := api.NewClientBy(a.String(), func(ctx context.Context) (net.Conn, error) {
		mu.Lock()
		dialled := first
		first = nil
		mu.Unlock()
		if dialled != nil {
			return dialled, nil
		}
		return fleet.Dial(ctx, a)
	})
	return c, nil
}

// askFleet asks the hosts of a pattern, and shows a row for each.
func (g *globals) askFleet(ctx context.Context, on string, columns []string, ask func(context.Context, *api.Client) (fleetAnswer, error)) error {
	hosts, err := g.hostsOn(on)
	if err != nil {
		return err
	}
	rows := fleet.Each(ctx, hosts, func(ctx context.Context, h fleet.Host) fleetRow {
		ctx, cancel := context.WithTimeout(ctx, farWithin)
		defer cancel()
		row := fleetRow{Host: h.Name, At: h.At.String()}
		c, err := dialHost(ctx, h)
		var a fleetAnswer
		if err == nil {
			a, err = ask(ctx, c)
			c.Close()
		}
		if err != nil {
			row.failed(err)
			return row
		}
		row.Answer, row.words, row.Exit = a.value, a.words, a.exit
		return row
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := g.showFleet(columns, rows); err != nil {
		return err
	}
	return exit.With(worstOf(rows))
}

// failed has a row say why there is no answer.
func (r *fleetRow) failed(err error) {
	var f *exit.Failure
	var away *api.ErrUnreachable
	switch err := asked(err); {
	case errors.As(err, &f):
		r.Exit, r.Error, r.Hint = f.Code, f.Says, f.Hint
	default:
		r.Exit, r.Error = exit.Error, err.Error()
	}
	if errors.As(err, &away) { // the row says which host
		r.Error = cause(away.Err)
	}
	if r.Exit == exit.Timeout {
		r.Error = "no answer within " + farWithin.String()
	}
}

// gravest is the order in which exit codes count: status's own, after what kept a host
// from answering at all.
var gravest = []int{exit.Unreachable, exit.Error, exit.Usage, exit.Timeout, exit.NotFound, exit.Conflict, exit.Failed, exit.Refused, exit.Held, exit.Progressing, exit.OK}

func worstOf(rows []fleetRow) int {
	worst := len(gravest) - 1
	for _, r := range rows {
		if i := slices.Index(gravest, r.Exit); i < worst {
			worst = max(i, 0)
		}
	}
	return gravest[worst]
}

func (g *globals) showFleet(columns []string, rows []fleetRow) error {
	if g.machine() {
		return g.encode(rows)
	}
	s := g.screen()
	var table [][]screen.Word
	for _, r := range rows {
		row := append([]screen.Word{screen.Text(r.Host)}, r.words...)
		if r.Error != "" {
			row = []screen.Word{screen.Text(r.Host), screen.Painted(r.Error, screen.Red)}
		}
		table = append(table, row)
	}
	answered, silent := split(table, rows)
	if len(answered) > 0 {
		s.Table(0, append([]string{"HOST"}, columns...), answered)
	}
	if len(answered) > 0 && len(silent) > 0 {
		s.Gap()
	}
	for i, row := range silent {
		s.Line(0, "  ", row...)
		if hint := hintsOfSilent(rows)[i]; hint != "" {
			s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text(hint))
		}
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}

// split has the rows of a table, and those of the hosts that have none: their words would
// widen a column that holds a state.
func split(table [][]screen.Word, rows []fleetRow) (answered, silent [][]screen.Word) {
	for i, r := range rows {
		if r.Error == "" {
			answered = append(answered, table[i])
		} else {
			silent = append(silent, table[i])
		}
	}
	return answered, silent
}

func hintsOfSilent(rows []fleetRow) (hints []string) {
	for _, r := range rows {
		if r.Error != "" {
			hints = append(hints, r.Hint)
		}
	}
	return hints
}

func fleetEventsCmd(g *globals) *cobra.Command {
	var on string
	var q api.EventQuery
	cmd := &cobra.Command{
		Use: "events", Short: "Show the journals of all hosts, by time", Args: args(cobra.NoArgs),
		Long: "events shows the newest lines of every journal, oldest first, each after its host.\n" +
			"With --follow it goes on with what happens; a host that went away is asked again\n" +
			"every 10 s, and no line of it is missed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Last < 1 {
				return usage(cmd, "--tail is a number of lines from 1")
			}
			if q.Follow {
				return g.followFleet(cmd.Context(), on, q)
			}
			return g.fleetEvents(cmd.Context(), on, q)
		},
	}
	onFlag(cmd, &on)
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on with what happens")
	cmd.Flags().StringVar(&q.App, "app", "", "of one app only")
	cmd.Flags().IntVarP(&q.Last, "tail", "n", 20, "how many lines of each host to begin with")
	return cmd
}

// hostEvent is a line of one host's journal.
type hostEvent struct {
	Host  string     `json:"host"`
	Event ring.Event `json:"event"`
}

func (g *globals) fleetEvents(ctx context.Context, on string, q api.EventQuery) error {
	hosts, err := g.hostsOn(on)
	if err != nil {
		return err
	}
	type told struct {
		events []hostEvent
		row    fleetRow
	}
	all := fleet.Each(ctx, hosts, func(ctx context.Context, h fleet.Host) (t told) {
		ctx, cancel := context.WithTimeout(ctx, farWithin)
		defer cancel()
		t.row = fleetRow{Host: h.Name, At: h.At.String()}
		c, err := dialHost(ctx, h)
		if err == nil {
			err = c.Events(ctx, q, func(e ring.Event) error {
				t.events = append(t.events, hostEvent{h.Name, e})
				return nil
			})
			c.Close()
		}
		if err != nil {
			t.row.failed(err)
		}
		return t
	})
	var events []hostEvent
	var rows []fleetRow
	for _, t := range all {
		events, rows = append(events, t.events...), append(rows, t.row)
	}
	slices.SortStableFunc(events, func(a, b hostEvent) int { return a.Event.At.Compare(b.Event.At) })
	for _, e := range events {
		if err := g.showHostEvent(e); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if r.Error != "" {
			g.notice("%s: %s", r.Host, r.Error)
		}
	}
	return exit.With(worstOf(rows))
}

// followFleet goes on until ctx ends. Each host has a stream of its own, and begins again
// where it ended.
func (g *globals) followFleet(ctx context.Context, on string, q api.EventQuery) error {
	hosts, err := g.hostsOn(on)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards the output, and wrong
	var wrong error
	var wg sync.WaitGroup
	for _, h := range hosts {
		wg.Go(func() {
			q := q
			for ctx.Err() == nil {
				err := followHost(ctx, h, &q, func(e ring.Event) error {
					mu.Lock()
					defer mu.Unlock()
					wrong = cmp.Or(wrong, g.showHostEvent(hostEvent{h.Name, e}))
					if wrong != nil {
						cancel()
					}
					return wrong
				})
				if err != nil && ctx.Err() == nil {
					row := fleetRow{}
					row.failed(err)
					mu.Lock()
					g.notice("%s: %s; asked again in %s", h.Name, row.Error, farWithin)
					mu.Unlock()
				}
				select {
				case <-ctx.Done():
				case <-time.After(farWithin):
				}
			}
		})
	}
	wg.Wait()
	return wrong
}

func followHost(ctx context.Context, h fleet.Host, q *api.EventQuery, each func(ring.Event) error) error {
	dialling, cancel := context.WithTimeout(ctx, farWithin)
	c, err := dialHost(dialling, h)
	cancel()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Events(ctx, *q, func(e ring.Event) error {
		q.After, q.Last = e.Seq, 0
		return each(e)
	})
}

func (g *globals) showHostEvent(e hostEvent) error {
	if g.machine() {
		return g.encodeLine(e)
	}
	s := g.screen()
	s.Line(0, "  ", screen.Painted(screen.Stamp(e.Event.At), screen.Dim), screen.Text(fmt.Sprintf("%-12s", e.Host)), screen.Text(fmt.Sprintf("%-18s", e.Event.Kind)),
		screen.Text(fmt.Sprintf("%-16s", show.PlaceOf(e.Event))), screen.Text(e.Event.Reason), screen.Text(wording.When(e.Event.Actor != "", "by "+e.Event.Actor)))
	_, err := fmt.Fprint(g.out, s)
	return err
}
