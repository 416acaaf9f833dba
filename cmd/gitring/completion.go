package main

import (
	"strings"

	"github.com/spf13/cobra"
)

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
