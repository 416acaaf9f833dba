package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func syncCmd(g *globals) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync [source]",
		Short: "Look at the remote now",
		Long: "sync asks the daemon to fetch a source, or all of them. With --wait it follows\n" +
			"what comes of it and exits by the outcome: 0 converged, 6 a rollout failed or was\n" +
			"restored, 7 refused, 8 timed out, 9 held, paused or awaiting approval. It gives up\n" +
			"after --timeout, and tells what it still waited for; the daemon goes on.",
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
		return p.show(last)
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
		err = g.showOutcome(last, p.took())
	}
	if err != nil {
		return err
	}
	return exit.With(last.ExitCode())
}

// timedOut tells what was still waited for.
func timedOut(st *ring.Status, timeout time.Duration) error {
	waits := waitsOf(st)
	const most = 3
	if n := len(waits); n > most {
		waits = append(waits[:most], fmt.Sprintf("%d more", n-most))
	}
	within := timeout.String()
	if timeout >= time.Second {
		within = lasted(timeout)
	}
	return &exit.Failure{
		Code: exit.Timeout, Says: strings.TrimSuffix("gave up after "+within+": "+strings.Join(waits, "; "), ": "),
		Hint: "the daemon goes on; gitring status tells how far it is, and --timeout gives it longer",
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
func (g *globals) showOutcome(st *ring.Status, took string) error {
	s := g.screen()
	showSynced(s, st, took)
	_, err := io.WriteString(g.out, s.String())
	return err
}

// showSynced shows each source and what is not well of it, in the end.
func showSynced(s *screen.Screen, st *ring.Status, took string) {
	for _, src := range st.Sources {
		ahead := src.Trusted != "" && src.Trusted != src.Commit // the subject is that of the trusted commit
		s.Line(0, "  ", screen.Painted(src.Name, screen.Bold), screen.Painted(syncWord(&src), syncHue(src.Sync)), screen.Text(src.Commit.Short()), screen.Text(wording.When(!ahead, src.Subject)), screen.Text(restOf(src)))
		if took != "" {
			s.Line(2, ", ", append(countsOf(src), screen.Text(took))...)
		}
		showRefusal(s, 2, "", src.Refusal)
		for _, a := range src.Apps {
			showRefusal(s, 2, a.Name, a.Refusal)
			for _, sv := range a.Services {
				showUnwell(s, a.Name, sv)
			}
		}
	}
}

func showUnwell(s *screen.Screen, app string, sv ring.ServiceStatus) {
	if r := sv.Rollout; r != nil {
		why := r.Reason
		if strings.Contains(sv.Reason, why) {
			why = sv.Reason // says what was done about it too
		}
		s.Line(2, " ", screen.Text(app+"/"+sv.Name+" rollout of "+r.Commit.Short()), screen.Painted(rolloutWord(&sv)+":", rolloutHue(r.Phase)), screen.Text(why))
		return
	}
	if !atEnd(sv) {
		s.Line(2, " ", screen.Text(app+"/"+sv.Name), screen.Painted(phaseWord(&sv)+":", phaseHue(sv.Phase)), screen.Text(sv.Reason))
	}
}

// atEnd reports whether a service is where its plan wants it.
func atEnd(sv ring.ServiceStatus) bool {
	return sv.Rollout == nil && (sv.Phase == ring.PhaseReady || sv.Phase == ring.PhaseCompleted)
}

// progress shows a status while it changes.
type progress struct {
	live  *screen.Live
	quiet bool
	g     *globals
	began time.Time
	// timeout is when it gives up; 0 is never.
	timeout time.Duration
}

func (p *progress) show(st *ring.Status) error {
	switch {
	case p.quiet:
		return nil
	case p.live.OnTerminal:
		now := p.g.now()
		return p.live.Redraw(screen.FittingRows(len(api.ServicesOf(st)), p.live.Height(), func(most int) string {
			return p.screenOf(st, now, worst(st, most))
		}))
	}
	for _, src := range st.Sources {
		if err := sayProgress(p.live, src, resting(src.Sync) && !src.Undoing(st.Overrides)); err != nil {
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
	return wording.When(p.g.width() > 0, "took "+lasted(p.g.now().Sub(p.began)))
}

// screenOf is a source by its line and its counts, and the picked services, the worst first.
func (p *progress) screenOf(st *ring.Status, now time.Time, picked map[*ring.ServiceStatus]bool) string {
	s := p.live.Screen(p.g.colors())
	took := lasted(now.Sub(p.began)) + " so far" + wording.When(p.timeout > 0, ", gives up after "+lasted(p.timeout))
	showProgress(s, st, took, now, picked)
	return s.String()
}

// showProgress shows how far each source is, with the services that are picked.
func showProgress(s *screen.Screen, st *ring.Status, took string, now time.Time, picked map[*ring.ServiceStatus]bool) {
	for _, src := range st.Sources {
		rest := restOf(src)
		if src.Next != nil && nextToldBelow(src) {
			rest = "next " + src.Next.Commit.Short()
		}
		s.Line(0, "  ", screen.Painted(src.Name, screen.Bold), screen.Painted(syncWord(&src), syncHue(src.Sync)), screen.Text(src.Commit.Short()), screen.Text(rest))
		s.Line(2, ", ", append(countsOf(src), screen.Text(took))...)
		for _, a := range src.Apps {
			showRefusal(s, 2, a.Name, a.Refusal)
			if a.Refusal == nil && src.Sync == ring.SyncStaging && pullWords.MatchString(a.Reason) {
				s.Line(2, "  ", screen.Text(a.Name), screen.Text(barred(a.Reason)))
			} else {
				appProgress(s, src, a)
			}
		}
		shown, hidden := split(placesOf(src.Apps), picked)
		if len(shown) > 0 {
			s.Table(2, []string{"SERVICE", "PHASE", "READY", "FOR", "REASON"}, progressRows(shown, now))
		}
		if len(hidden) > 0 {
			s.Line(2, "", screen.Painted("… "+moreOf(hidden), screen.Dim))
		}
	}
}

func progressRows(places []place, now time.Time) [][]screen.Word {
	rows := make([][]screen.Word, len(places))
	for i, p := range places {
		sv := p.service
		moves := ""
		if began := movesSince(sv); !began.IsZero() {
			moves = lasted(now.Sub(began))
		}
		rows[i] = []screen.Word{screen.Text(p.id()), screen.Painted(phaseWord(sv), wordHue(sv)), screen.Text(readyOf(sv)), screen.Text(moves), screen.Text(reasonOf(sv, true))}
	}
	return rows
}

// sayProgress writes the lines that changed. What is at rest is told by the result in
// the end; before it, it is no progress.
func sayProgress(l *screen.Live, src ring.SourceStatus, rests bool) error {
	if !rests {
		s := screen.New(false, 0)
		sourceProgress(s, src)
		if err := l.Say(src.Name, strings.TrimSuffix(s.String(), "\n")); err != nil {
			return err
		}
	}
	for _, a := range src.Apps {
		s := screen.New(false, 0)
		appProgress(s, src, a)
		if line := strings.TrimSuffix(s.String(), "\n"); line != "" {
			if err := l.Say(a.Name, line); err != nil {
				return err
			}
		}
		for _, sv := range a.Services {
			id := a.Name + "/" + sv.Name
			before := l.HasSaid(id)
			if atEnd(sv) && !before || !atEnd(sv) && rests {
				continue
			}
			s := screen.New(false, 0)
			serviceProgress(s, a.Name, sv)
			if err := l.Say(id, strings.TrimSuffix(s.String(), "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

func resting(x ring.Sync) bool { return x != ring.SyncStaging && x != ring.SyncApplying }

func sourceProgress(s *screen.Screen, src ring.SourceStatus) {
	s.Line(0, "  ", screen.Text(src.Name), screen.Painted(syncWord(&src), syncHue(src.Sync)), screen.Text(src.Commit.Short()), screen.Text(restOf(src)))
}

// appProgress says what an app that is staged waits for, such as a pull, unless
// the line of the source does.
func appProgress(s *screen.Screen, src ring.SourceStatus, a ring.AppStatus) {
	if src.Sync != ring.SyncStaging || a.Refusal != nil || a.Reason == "" || src.Next != nil && src.Next.Reason == "app "+a.Name+": "+a.Reason {
		return
	}
	for _, sv := range a.Services {
		if sv.Reason == a.Reason {
			return
		}
	}
	s.Line(2, "  ", screen.Text(a.Name), screen.Text(a.Reason))
}

// serviceProgress counts what is updated while that is not all; the reason says
// what is ready.
func serviceProgress(s *screen.Screen, app string, sv ring.ServiceStatus) {
	s.Line(2, "  ", screen.Text(app+"/"+sv.Name), screen.Painted(phaseWord(&sv), wordHue(&sv)), screen.Text(updatedOf(&sv)), screen.Text(sv.Reason))
}

// restOf is what a line about a source says that no line below it does.
func restOf(src ring.SourceStatus) string {
	if src.Next != nil {
		return "next " + src.Next.Commit.Short() + ": " + src.Next.Reason
	}
	return wording.When(!toldBelow(src), src.Reason)
}

// waitsOf is what is waited for, each with why.
func waitsOf(st *ring.Status) []string {
	var waits []string
	for _, src := range st.Sources {
		for _, p := range placesOf(src.Apps) {
			if rank(p.service) == moving {
				waits = append(waits, strings.TrimSuffix(p.id()+" is "+phaseWord(p.service)+": "+p.service.Reason, ": "))
			}
		}
		if len(waits) == 0 && !resting(src.Sync) {
			waits = append(waits, strings.TrimSuffix(src.Name+" is "+string(src.Sync)+": "+restOf(src), ": "))
		}
	}
	return waits
}
