package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func doctorCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with this host, or soon will be",
		Long: "doctor has the daemon look at its engine, disk, clock, keys, remotes, registries and\n" +
			"doors, and changes nothing. An answer is kept for a minute. Where no daemon answers,\n" +
			"it looks itself at what it can, and says so. Exit 1 when a check fails.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.doctor(cmd.Context()) },
	}
}

func (g *globals) doctor(ctx context.Context) error {
	report, err := g.daemon().Doctor(ctx)
	var away *api.ErrUnreachable
	if errors.As(err, &away) {
		report, err = g.doctorAlone(ctx, asked(err))
	}
	if err != nil {
		return asked(err)
	}
	if err := g.showReport(&report); err != nil {
		return err
	}
	if report.Failed() {
		return exit.Outcome(exit.Error)
	}
	return nil
}

// doctorAlone looks without a daemon. Without a configuration there is nothing to look at.
func (g *globals) doctorAlone(ctx context.Context, away error) (doctor.Report, error) {
	cfg, err := config.Load(g.configPath())
	if err != nil {
		return doctor.Report{}, away
	}
	s := daemon.Examine(ctx, cfg)
	answers := doctor.Check{About: "daemon", Name: "answers", Result: doctor.Fail, Says: away.Error(), Hint: "systemctl status gitring; what follows was found without it"}
	return doctor.Report{Host: cfg.Host, Gitring: ring.Release, At: s.Now, Checks: append([]doctor.Check{answers}, doctor.Judge(s)...)}, nil
}

var resultHues = map[doctor.Result]screen.Hue{doctor.OK: screen.Green, doctor.Warn: screen.Yellow, doctor.Fail: screen.Red, doctor.Skip: screen.Dim}

func (g *globals) showReport(r *doctor.Report) error {
	if g.machine() {
		return g.encode(r)
	}
	s := g.screen()
	for _, c := range r.Checks {
		s.Line(0, " ", screen.Painted(pad(string(c.Result)), resultHues[c.Result]), screen.Text(c.About+": "+c.Name+": "+c.Says))
		if c.Hint != "" && c.Result != doctor.OK {
			s.Line(5, " ", screen.Painted("hint: "+c.Hint, screen.Dim))
		}
	}
	s.Line(0, "", screen.Text(countedChecks(r)))
	_, err := io.WriteString(g.out, s.String())
	return err
}

// countedChecks is how many checks there were, and how many of them did not pass.
func countedChecks(r *doctor.Report) string {
	counts := map[doctor.Result]int{}
	for _, c := range r.Checks {
		counts[c.Result]++
	}
	says := wording.Counted(len(r.Checks), "check") + ": "
	if n := counts[doctor.Fail]; n > 0 {
		says += wording.Counted(n, "fault") + ", "
	}
	if n := counts[doctor.Warn]; n > 0 {
		says += wording.Counted(n, "warning") + ", "
	}
	if n := counts[doctor.Skip]; n > 0 {
		says += fmt.Sprintf("%d not to be found out, ", n)
	}
	return says + fmt.Sprintf("%d ok", counts[doctor.OK])
}

// pad makes the results one column.
func pad(word string) string { return (word + "    ")[:4] }
