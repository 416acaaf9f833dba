package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/screen"
)

func trustCompareCmd(g *globals) *cobra.Command {
	var source, repo string
	cmd := &cobra.Command{
		Use:   "compare <host|file>...",
		Short: "Tell in a clone whether several hosts trust the same history",
		Long: "compare takes what several hosts trust and tells whether each commit is an ancestor\n" +
			"of the next. A forge that shows two hosts two histories is found out so; one host\n" +
			"alone cannot see it. Sources are compared by name.\n\n" +
			"A host is asked over ssh for \"gitring trust show -o json\". A file holds what that\n" +
			"printed: its name has a slash in it, or ends in .json. - is stdin.\n\n" +
			"Exit 0 for one history, 5 for several, 4 when the clone lacks a commit.",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return g.trustCompare(cmd, given, source, repo)
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "compare this source alone")
	cmd.Flags().StringVar(&repo, "repo", ".", "the clone")
	return cmd
}

func (g *globals) trustCompare(cmd *cobra.Command, given []string, source, repo string) error {
	if n := slices.Index(given, "-"); n >= 0 && slices.Contains(given[n+1:], "-") {
		return usage(cmd, "stdin is named twice")
	}
	for _, of := range given { // before anybody is asked for a password
		if !checkout.NamesHost(of) {
			return usage(cmd, fmt.Sprintf("%q is neither a host for ssh nor the name of a file", of))
		}
	}
	var all []checkout.TrustAnchor
	for _, of := range given {
		states, err := checkout.TrustOf(cmd.Context(), cmd.InOrStdin(), of)
		if err != nil {
			return err
		}
		found, err := checkout.AnchorsOf(of, states, source)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	all = checkout.NameHosts(all)
	sources, err := checkout.SharedSources(all)
	if err != nil {
		return err
	}
	out, err := checkout.CompareIn(repo, sources, all)
	if err != nil {
		return err
	}
	return g.showCompared(out, sources)
}

func (g *globals) showCompared(out checkout.ComparedTrust, sources []string) error {
	if g.machine() {
		if err := g.encode(out); err != nil {
			return err
		}
	} else {
		s := g.screen()
		var rows [][]screen.Word
		for _, a := range out.Anchors {
			where := "newest"
			switch {
			case a.Commit == "":
				where = "trusts nothing yet"
			case a.Behind > 0:
				where = fmt.Sprintf("%d behind", a.Behind)
			}
			rows = append(rows, []screen.Word{screen.Text(a.Host), screen.Text(a.Source), screen.Text(a.Branch), screen.Text(a.Commit.Short()), screen.Text(where)})
		}
		s.Table(0, []string{"HOST", "SOURCE", "BRANCH", "TRUSTED", ""}, rows)
		for _, split := range out.Splits {
			s.Gap()
			from := "which have no commit in common"
			if split.Base != "" {
				from = "which parted after " + split.Base.Short()
			}
			s.Line(0, " ", screen.Painted("apart:", screen.Red), screen.Text("two histories of "+split.Source+" are trusted,"), screen.Text(from))
			for _, side := range split.Sides {
				of := fmt.Sprintf("%s to %s (commits: %d)", side.First.Short(), side.Commit.Short(), side.Commits)
				s.Line(2, " ", screen.Text(strings.Join(side.Hosts, ", ")+":"), screen.Text(of))
			}
		}
		if len(out.Splits) == 0 {
			s.Gap()
			says := "one history: each trusted commit is an ancestor of the next"
			if len(sources) > 1 {
				says = fmt.Sprintf("one history each of %s: each trusted commit is an ancestor of the next", strings.Join(sources, ", "))
			}
			s.Line(0, " ", screen.Text(says))
		}
		if others := checkout.NotCompared(out.Anchors, sources); len(others) > 0 {
			s.Line(0, " ", screen.Painted("not compared:", screen.Yellow), screen.Text(strings.Join(others, ", ")))
		}
		if _, err := fmt.Fprint(g.out, s); err != nil {
			return err
		}
	}
	if len(out.Splits) > 0 {
		return exit.Outcome(exit.Conflict)
	}
	return nil
}
