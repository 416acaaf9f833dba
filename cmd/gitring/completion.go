package main

import (
	"context"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/wording"
)

// complete has the shell offer sources, commits and revisions where a command takes one.
func (g *globals) complete(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		switch nameOf(cmd) {
		case "plan", "verify", "vouch", "policy check", "policy suggest":
			cmd.ValidArgsFunction = g.completeRevisions
		case "approve":
			cmd.ValidArgsFunction = g.completeCommits(false)
		case "trust accept":
			cmd.ValidArgsFunction = g.completeCommits(true)
		case "sync", "trust show":
			cmd.ValidArgsFunction = g.completeSources
		case "rollback", "outdated", "refresh":
			cmd.ValidArgsFunction = g.completeApps
		}
	}
	flag := func(name string, offers func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)) {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
				return offers(cmd, nil, word)
			})
		}
	}
	flag("source", g.completeSources)
	switch nameOf(cmd) {
	case "undo", "rollout undo":
		flag("to", g.completeCommits(false))
	case "rollback":
		flag("to", g.completeRevisions)
	}
	for _, sub := range cmd.Commands() {
		g.complete(sub)
	}
}

// completeSources offers the sources of this host.
func (g *globals) completeSources(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
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
		names = append(names, wording.SafeLine(src.Name))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeCommits offers the commits that this host has seen, the newest first, each with
// its subject.
func (g *globals) completeCommits(whole bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return g.commitsSeen(cmd.Context(), whole), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func (g *globals) commitsSeen(ctx context.Context, whole bool) (offers []string) {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	commits, err := g.daemon().Commits(ctx, api.HistoryQuery{Limit: 20})
	if err != nil {
		return nil
	}
	for _, c := range commits {
		id := c.Commit.Short()
		if whole {
			id = string(c.Commit)
		}
		offers = append(offers, id+"\t"+wording.SafeLine(strings.TrimSpace(c.Outcome+" "+c.Subject)))
	}
	return offers
}

// completeRevisions offers branches and tags of the clone around, and what the host has seen.
func (g *globals) completeRevisions(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), watchEvery)
	defer cancel()
	offers := []string{}
	// Elsewhere than in a clone, or without git, there are none.
	out, err := exec.CommandContext(ctx, "git", "for-each-ref", "--count=100", "--sort=-committerdate", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes").Output()
	if err == nil {
		offers = append(offers, "HEAD")
		for line := range strings.Lines(string(out)) {
			offers = append(offers, wording.SafeLine(strings.TrimSpace(line)))
		}
	}
	return append(offers, g.commitsSeen(cmd.Context(), false)...), cobra.ShellCompDirectiveKeepOrder
}

func completionCmd(g *globals) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script for a shell",
		Long: "completion prints a script that makes a shell complete verbs, flags and apps:\n\n" +
			"  bash: source <(gitring completion bash)\n" +
			"  zsh:  gitring completion zsh > \"${fpath[1]}/_gitring\"\n" +
			"  fish: gitring completion fish | source",
		Args:      args(cobra.ExactArgs(1)),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, given []string) error {
			switch given[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(g.out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(g.out)
			case "fish":
				return cmd.Root().GenFishCompletion(g.out, true)
			}
			return usage(cmd, "\""+given[0]+"\" is none of "+strings.Join(shells, ", "))
		},
	}
}
