package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func crashesCmd(g *globals) *cobra.Command {
	var q api.CrashQuery
	cmd := &cobra.Command{
		Use:   "crashes [app[/service]]",
		Short: "Show what crashed, alike crashes together",
		Long: "crashes lists what ended that should run, was not live, or never became ready in a\n" +
			"rollout. Crashes that are alike are one line: the same kind of exit, and the same\n" +
			"last words but for numbers, times and addresses. --logs writes the end of the log\n" +
			"of the newest of each; values of the env folder are struck out of it.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) > 0 {
				var err error
				if q.App, q.Service, err = target(given[0]); err != nil {
					return err
				}
			}
			return g.crashes(cmd.Context(), q)
		},
	}
	cmd.Flags().BoolVar(&q.Logs, "logs", false, "with the end of the log of the newest of each")
	return cmd
}

func (g *globals) crashes(ctx context.Context, q api.CrashQuery) error {
	all, err := g.daemon().Crashes(ctx, q)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(all)
	}
	if len(all) == 0 {
		g.notice("nothing crashed that is still remembered")
		return nil
	}
	s := g.screen()
	if q.Logs {
		for i := range all {
			if i > 0 {
				s.Gap()
			}
			g.showCrash(s, &all[i])
		}
	} else {
		rows := make([][]screen.Word, len(all))
		for i := range all {
			rows[i] = crashRow(&all[i])
		}
		s.Table(0, []string{"OF", "TIMES", "FIRST (UTC)", "LAST (UTC)", "CLASS", "SIGNATURE", "UPTIME", "LAST WORDS"}, rows)
	}
	_, err = io.WriteString(g.out, s.String())
	return err
}

func crashRow(c *api.CrashGroup) []screen.Word {
	return []screen.Word{
		screen.Text(c.App + "/" + c.Service), screen.Text(strconv.Itoa(c.Count)), screen.Text(screen.Stamp(c.First)), screen.Text(screen.Stamp(c.Last)),
		screen.Painted(c.Newest.Class, crashHue(c.Newest.Class)),
		screen.Text(c.Signature), screen.Text(uptime(c.Newest.Uptime)), screen.Text(wording.SafeLine(cmp.Or(c.Words, c.Newest.Reason))),
	}
}

// showCrash is a group with the log of its newest crash.
func (g *globals) showCrash(s *screen.Screen, c *api.CrashGroup) {
	n := &c.Newest
	times := "once"
	if c.Count > 1 {
		times = fmt.Sprintf("%d times since %s", c.Count, screen.Stamp(c.First))
	}
	s.Line(0, "  ", screen.Painted(c.App+"/"+c.Service, screen.Bold), screen.Painted(n.Class, crashHue(n.Class)), screen.Text(c.Signature), screen.Text(times))
	s.Line(2, "  ", screen.Text(screen.Stamp(c.Last)), screen.Text("slot "+strconv.Itoa(n.Slot)), screen.Text(n.Commit.Short()), screen.Text(n.Reason), screen.Text("up "+uptime(n.Uptime)))
	switch {
	case n.NotRead != "":
		s.Line(2, "  ", screen.Painted("log not read: "+wording.SafeLine(n.NotRead), screen.Yellow))
	case len(n.Log) == 0:
		s.Line(2, "  ", screen.Painted("nothing of its log was kept", screen.Dim))
	}
	for _, line := range n.Log {
		s.Line(4, "", screen.Text(wording.SafeLine(strings.ReplaceAll(line, "\t", "    "))))
	}
	show.CheckPrinted(s, 2, "", n.Checked)
}

func crashHue(class string) screen.Hue {
	if class == "transient" {
		return screen.Yellow
	}
	return screen.Red
}

// uptime is how long a run took; "-" where that is not known.
func uptime(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
