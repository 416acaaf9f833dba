package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func syncCmd(g *globals) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync [source]",
		Short: "Look at the remote now",
		Long: "sync asks the daemon to fetch a source, or all of them. With --wait it follows\n" +
			"what comes of it and exits by the outcome: 6 a rollout failed or was restored, 7\n" +
			"refused, 9 held, paused or awaiting approval, 0 converged. The first that applies\n" +
			"counts: while a failed version stands, a mend that awaits approval still exits 6.\n" +
			"8 is that it gave up after --timeout, and tells what it waited for; the daemon goes on.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			source := strings.Join(given, "")
			if timeout < 0 || cmd.Flags().Changed("timeout") && !wait {
				return usage(cmd, "--timeout is how long --wait may take")
			}
			if !wait {
				return g.sync(cmd.Context(), source)
			}
			return g.syncWait(cmd.Context(), source, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "follow the rollout and exit by its outcome")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Minute, "give up waiting after this long; 0 is never")
	return cmd
}

func (g *globals) sync(ctx context.Context, source string) error {
	if err := g.daemon().Sync(ctx, source); err != nil {
		return asked(err)
	}
	g.notice("asked; gitring status tells what comes of it")
	return nil
}

// syncWait shows progress as a notice and the end of it as the result.
func (g *globals) syncWait(ctx context.Context, source string, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	p := &progress{live: screen.NewLive(g.err, g.now), quiet: g.quiet, g: g, began: g.now(), timeout: timeout}
	var last *ring.Status
	err := g.daemon().SyncWait(ctx, source, func(st ring.Status) error {
		last = ofSource(st, source)
		return p.show(ctx, last)
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return timedOut(last, timeout)
	}
	if err != nil {
		return asked(err)
	}
	if last == nil {
		return fmt.Errorf("cannot follow the sync: the daemon told no status")
	}
	if err = p.clear(); err != nil {
		return err
	}
	if g.machine() {
		err = g.encode(last)
	} else {
		err = g.showOutcome(ctx, last, p.took())
	}
	if err != nil {
		return err
	}
	return exit.With(last.ExitCode())
}

// timedOut tells what was still waited for.
func timedOut(st *ring.Status, timeout time.Duration) error {
	waits := show.WaitsOf(st)
	const most = 3
	if n := len(waits); n > most {
		waits = append(waits[:most], fmt.Sprintf("%d more", n-most))
	}
	within := timeout.String()
	if timeout >= time.Second {
		within = show.Lasted(timeout)
	}
	hint := "the daemon goes on; gitring status tells how far it is, and --timeout gives it longer"
	if slices.ContainsFunc(st.Sources, func(s ring.SourceStatus) bool {
		return slices.ContainsFunc(s.Apps, func(a ring.AppStatus) bool { return a.Code == ring.WhyImagePending })
	}) {
		hint = "the daemon goes on, and --timeout gives it longer; where it cannot have the image, see that this host reaches the registry: docker pull says the same"
	}
	return &exit.Failure{
		Code: exit.Timeout, Says: strings.TrimSuffix("gave up after "+within+": "+strings.Join(waits, "; "), ": "),
		Hint: hint,
	}
}

// ofSource is the status of one source, or all of it for "".
func ofSource(st ring.Status, source string) *ring.Status {
	if source == "" {
		return &st
	}
	sources := st.Sources
	st.Sources = nil
	for _, src := range sources {
		if src.Name == source {
			st.Sources = append(st.Sources, src)
		}
	}
	return &st
}

// showOutcome is a line for each source, and what is not well.
func (g *globals) showOutcome(ctx context.Context, st *ring.Status, took string) error {
	s := g.screen()
	show.Synced(s, st, took, g.printed(ctx, st))
	_, err := io.WriteString(g.out, s.String())
	return err
}

// progress shows a status while it changes.
type progress struct {
	live  *screen.Live
	quiet bool
	g     *globals
	began time.Time
	// timeout is when it gives up; 0 is never.
	timeout time.Duration
	printed printedLines
}

func (p *progress) show(ctx context.Context, st *ring.Status) error {
	if p.quiet {
		return nil
	}
	printed := p.printed.of(ctx, p.g, st)
	if p.live.OnTerminal {
		now := p.g.now()
		return p.live.Redraw(show.Fitting(st, p.live.Height(), func(shown *show.Shown) string {
			return p.screenOf(st, now, shown, printed)
		}))
	}
	for _, src := range st.Sources {
		if err := show.SayProgress(p.live, src, printed, show.AtRest(src.Sync) && !src.Undoing(st.Overrides)); err != nil {
			return err
		}
	}
	return nil
}

// clear takes the progress away: the result stands in its place.
func (p *progress) clear() error {
	if p.quiet || !p.live.OnTerminal {
		return nil
	}
	return p.live.Redraw("")
}

// took is how long all of it took, for people at a terminal.
func (p *progress) took() string {
	return wording.When(p.g.width() > 0, "took "+show.Lasted(p.g.now().Sub(p.began)))
}

// screenOf is a source by its line and its counts, and the services that have room, the worst first.
func (p *progress) screenOf(st *ring.Status, now time.Time, shown *show.Shown, printed show.Printed) string {
	s := p.live.Screen(p.g.colors())
	took := show.Lasted(now.Sub(p.began)) + " so far" + wording.When(p.timeout > 0, ", this wait ends after "+show.Lasted(p.timeout))
	show.Progress(s, st, took, now, shown, printed)
	return s.String()
}
