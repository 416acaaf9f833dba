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
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func trafficCmd(g *globals) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "traffic [app[/service]]",
		Short: "Show what fronts carry, and to which instances",
		Long: "traffic shows each front of this host: its ports, its table's generation, and how\n" +
			"many connections it has and how many requests wait. Of each instance it shows the\n" +
			"share of new requests, what is in flight, what came of requests since the front's\n" +
			"proxy began, and the times until an answer began. While a canary runs, both sets\n" +
			"stand side by side.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeFronted,
		RunE: func(cmd *cobra.Command, given []string) error {
			var q api.TrafficQuery
			if len(given) > 0 {
				var err error
				if q.App, q.Service, err = target(given[0]); err != nil {
					return err
				}
			}
			if watch {
				return g.watchTraffic(cmd.Context(), q)
			}
			return g.traffic(cmd.Context(), q)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep showing it until interrupted")
	cmd.AddCommand(trafficUpgradeCmd(g))
	return cmd
}

func trafficUpgradeCmd(g *globals) *cobra.Command {
	var r api.UpgradeRequest
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Have every front take this release's proxy now",
		Long: "upgrade has the fronts whose proxy is of another release start the one that this\n" +
			"daemon brings, one front after the other, 10 s apart. The new proxy takes the open\n" +
			"ports over; the old one ends what it carries. The daemon does the same by itself\n" +
			"once nothing moves on the host.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.trafficUpgrade(cmd.Context(), r) },
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal")
	return cmd
}

// completeFronted offers what has a front.
func (g *globals) completeFronted(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), watchEvery)
	defer cancel()
	all, _ := g.daemon().Traffic(ctx, api.TrafficQuery{})
	var names []string
	for i := range all {
		names = append(names, wording.SafeLine(all[i].App+"/"+all[i].Service))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (g *globals) traffic(ctx context.Context, q api.TrafficQuery) error {
	all, err := g.daemon().Traffic(ctx, q)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(all)
	}
	if len(all) == 0 {
		g.notice("no service here has a front")
		return nil
	}
	s := g.screen()
	showTraffic(s, all, g.now())
	_, err = io.WriteString(g.out, s.String())
	return err
}

// watchTraffic shows it until ctx ends: in place on a terminal, elsewhere once a second.
func (g *globals) watchTraffic(ctx context.Context, q api.TrafficQuery) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	l := screen.NewLive(g.out, g.now)
	for {
		all, err := g.daemon().Traffic(ctx, q)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return asked(err)
		}
		if err := g.showTrafficAgain(l, all); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g *globals) showTrafficAgain(l *screen.Live, all []api.FrontNow) error {
	if g.machine() {
		return g.encodeLine(all)
	}
	s := g.screen()
	showTraffic(s, all, g.now())
	if len(all) == 0 {
		s.Line(0, "", screen.Text("no service here has a front"))
	}
	if !l.OnTerminal {
		_, err := fmt.Fprintln(g.out, s)
		return err
	}
	lines := strings.SplitAfter(s.String(), "\n")
	return l.Redraw(strings.Join(lines[:min(len(lines), max(1, l.Height()-1))], ""))
}

func (g *globals) trafficUpgrade(ctx context.Context, r api.UpgradeRequest) error {
	done, err := g.daemon().TrafficUpgrade(ctx, r)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(done)
	}
	if len(done.Fronts) == 0 {
		_, err = fmt.Fprintln(g.out, "every front has the newest proxy")
		return err
	}
	for _, id := range done.Fronts {
		if _, err := fmt.Fprintln(g.out, wording.SafeLine(string(id))); err != nil {
			return err
		}
	}
	g.notice("%d %s to upgrade, 10 s apart; gitring events says whether each took it", len(done.Fronts), wording.Plural(len(done.Fronts), "front"))
	return nil
}

// showTraffic is a head for each front, its instances, and its canary.
func showTraffic(s *screen.Screen, all []api.FrontNow, now time.Time) {
	for i := range all {
		if i > 0 {
			s.Gap()
		}
		showFront(s, &all[i], now)
	}
}

func showFront(s *screen.Screen, f *api.FrontNow, now time.Time) {
	s.Line(0, "  ", screen.Painted(f.App+"/"+f.Service, screen.Bold), screen.Painted(string(f.Phase), show.PhaseHue(f.Phase)), screen.Text(portWords(f.Ports)))
	switch {
	case f.Container == "":
		s.Line(2, "", screen.Painted("its front does not run"+wording.When(f.Reason != "", ": "+f.Reason), screen.Yellow))
	case f.At.IsZero():
		s.Line(2, "", screen.Painted("the front does not answer; it serves by the last table that it was told", screen.Yellow))
	default:
		s.Line(2, ", ", frontWords(f, now)...)
	}
	if f.Full {
		s.Line(2, "", screen.Painted("its connections are used up: new ones wait", screen.Red))
	}
	for _, p := range f.Ports {
		if p.Unheard {
			s.Line(2, "", screen.Painted(fmt.Sprintf("no instance listens on %d/%s", p.Port, p.Protocol), screen.Yellow))
		}
	}
	rows := make([][]screen.Word, len(f.Instances))
	for i := range f.Instances {
		rows[i] = trafficRow(&f.Instances[i])
	}
	if len(rows) > 0 {
		s.Table(2, []string{"INSTANCE", "STATE", "SHARE", "FLIGHT", "REQUESTS", "ERRORS", "P50", "P99", ""}, rows)
	}
	for _, in := range f.Instances {
		if in.Why != "" && !in.Reached {
			s.Line(2, " ", screen.Text(cmp.Or(in.Instance, in.Name)), screen.Painted("not reached:", screen.Yellow), screen.Text(in.Why))
		}
	}
	showCanary(s, f.Canary)
}

// portWords are such as "8080/tcp -> 80/tcp http".
func portWords(ports []api.PortNow) string {
	var words []string
	for _, p := range ports {
		w := fmt.Sprintf("%d/%s", p.Port, p.Protocol) + wording.When(p.Carry != p.Protocol, " "+p.Carry)
		if len(p.Published) > 0 {
			w = strings.Join(p.Published, " ") + " -> " + w
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

func frontWords(f *api.FrontNow, now time.Time) []screen.Word {
	words := []screen.Word{
		screen.Text(fmt.Sprintf("table %d", f.Generation)),
		screen.Text("proxy " + shortBuild(f.Build) + wording.When(!f.Newest, " of another release")),
		screen.Text(wording.Counted(f.Connections, "connection")),
	}
	if f.Queued > 0 {
		words = append(words, screen.Painted(fmt.Sprintf("%d waiting%s", f.Queued, screen.Lasting(f.QueuedSince, now)), screen.Yellow))
	}
	if f.Old > 0 {
		words = append(words, screen.Text(fmt.Sprintf("%d older still carrying", f.Old)))
	}
	if f.Cut > 0 {
		words = append(words, screen.Text(fmt.Sprintf("%d cut at a deadline", f.Cut)))
	}
	return words
}

// shortBuild is 8 digits of a program's hash.
func shortBuild(build string) string {
	build = strings.TrimPrefix(build, "sha256:")
	return cmp.Or(build[:min(8, len(build))], "unknown")
}

func trafficRow(in *api.InstanceNow) []screen.Word {
	hue := screen.NoHue
	if in.Errors > 0 {
		hue = screen.Red
	}
	share := "-"
	if in.State == ring.FrontActive {
		share = percent(in.Weight)
	}
	return []screen.Word{
		screen.Text(cmp.Or(in.Instance, in.Name)), screen.Painted(stateWord(in), stateHue(in)), screen.Text(share), screen.Text(strconv.Itoa(in.InFlight)),
		screen.Text(strconv.FormatInt(in.Counts.Requests, 10)), screen.Painted(strconv.FormatInt(in.Errors, 10), hue), screen.Text(millis(in.P50)), screen.Text(millis(in.P99)),
		{}, // a table tells its last column without a name where it has no room
	}
}

func stateWord(in *api.InstanceNow) string {
	return string(in.State) + wording.When(in.Set == ring.SetCanary, " canary")
}

func stateHue(in *api.InstanceNow) screen.Hue {
	switch in.State {
	case ring.FrontActive:
		return screen.Green
	case ring.FrontDraining:
		return screen.Yellow
	}
	return screen.NoHue
}

// percent is a share with one digit after the point at most.
func percent(p float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + "%"
}

// millis is a time in milliseconds as people read it; "-" for none.
func millis(ms float64) string {
	switch {
	case ms <= 0:
		return "-"
	case ms >= 1000:
		return fmt.Sprintf("%.1fs", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0fms", ms)
	}
	return fmt.Sprintf("%.1fms", ms)
}

// showCanary has both sets side by side.
func showCanary(s *screen.Screen, c *api.CanaryNow) {
	if c == nil {
		return
	}
	s.Line(2, " ", screen.Text("canary"), screen.Text(show.Bar(float64(c.Weight)/100)), screen.Text(fmt.Sprintf("%d%%", c.Weight)), screen.Text(c.Says))
	s.Line(4, "", screen.Painted("since the front's proxy began, which may be longer than the step:", screen.Dim))
	s.Table(4, []string{"SET", "REQUESTS", "ERRORS", "P50", "P99", ""}, [][]screen.Word{setRow(ring.SetStable, c.Stable), setRow(ring.SetCanary, c.Canary)})
}

func setRow(name string, set api.SetNow) []screen.Word {
	rate := "-"
	if set.Requests > 0 {
		part := float64(set.Errors) / float64(set.Requests)
		rate = show.Bar(part) + " " + strconv.FormatFloat(100*part, 'f', 1, 64) + "%"
	}
	return []screen.Word{screen.Text(name), screen.Text(strconv.FormatInt(set.Requests, 10)), screen.Text(rate), screen.Text(millis(set.P50)), screen.Text(millis(set.P99)), {}}
}
