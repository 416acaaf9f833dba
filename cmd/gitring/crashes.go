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
				s.gap()
			}
			g.showCrash(s, &all[i])
		}
	} else {
		rows := make([][]word, len(all))
		for i := range all {
			rows[i] = crashRow(&all[i])
		}
		s.table(0, []string{"OF", "TIMES", "FIRST (UTC)", "LAST (UTC)", "CLASS", "SIGNATURE", "UPTIME", "LAST WORDS"}, rows)
	}
	_, err = io.WriteString(g.out, s.String())
	return err
}

func crashRow(c *api.CrashGroup) []word {
	return []word{
		w(c.App + "/" + c.Service), w(strconv.Itoa(c.Count)), w(stamp(c.First)), w(stamp(c.Last)),
		painted(c.Newest.Class, crashHue(c.Newest.Class)),
		w(c.Signature), w(uptime(c.Newest.Uptime)), w(clean(cmp.Or(c.Words, c.Newest.Reason))),
	}
}

// showCrash is a group with the log of its newest crash.
func (g *globals) showCrash(s *screen, c *api.CrashGroup) {
	n := &c.Newest
	times := "once"
	if c.Count > 1 {
		times = fmt.Sprintf("%d times since %s", c.Count, stamp(c.First))
	}
	s.line(0, "  ", painted(c.App+"/"+c.Service, bold), painted(n.Class, crashHue(n.Class)), w(c.Signature), w(times))
	s.line(2, "  ", w(stamp(c.Last)), w("slot "+strconv.Itoa(n.Slot)), w(n.Commit.Short()), w(n.Reason), w("up "+uptime(n.Uptime)))
	switch {
	case n.NotRead != "":
		s.line(2, "  ", painted("log not read: "+clean(n.NotRead), yellow))
	case len(n.Log) == 0:
		s.line(2, "  ", painted("nothing of its log was kept", dim))
	}
	for _, line := range n.Log {
		s.line(4, "", w(clean(strings.ReplaceAll(line, "\t", "    "))))
	}
}

func crashHue(class string) hue {
	if class == "transient" {
		return yellow
	}
	return red
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
