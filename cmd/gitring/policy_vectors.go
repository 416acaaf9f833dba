package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func policyTestCmd(g *globals) *cobra.Command {
	var by policyFlags
	var shipped bool
	cmd := &cobra.Command{
		Use:   "test [file]",
		Short: "Try the policy with vectors of your own",
		Long: "test reads a YAML file with a list of vectors and tries the policy of --config\n" +
			"with each: {name: …, files: {web/compose.yaml: …}, expect: deny <rule>}. expect is\n" +
			"deny <rule>, power <rule> or pass. With --builtin it tries the vectors that this\n" +
			"program was shipped with, by profile compose: each is denied.\n" +
			"Exit 7 when one does not hold.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if shipped == (len(given) > 0) {
				return usage(cmd, "name a file of vectors, or say --builtin")
			}
			return g.policyTest(strings.Join(given, ""), by)
		},
	}
	by.add(cmd)
	cmd.Flags().BoolVar(&shipped, "builtin", false, "try the vectors of this program")
	return cmd
}

func (g *globals) policyTest(file string, by policyFlags) error {
	held, err := g.heldTo(".", by.source, by.profile)
	if err != nil {
		return err
	}
	vectors, err := admission.ReadVectors(file)
	if err != nil {
		return err
	}
	if file == "" {
		held.judge = admission.JudgeOfVectors()
	}
	var out []admission.VectorResult
	for _, v := range vectors {
		out = append(out, admission.TryVector(held.judge, v, held.settings))
	}
	failed := 0
	s := g.screen()
	for _, r := range out {
		if !r.Pass {
			failed++
			s.Line(0, " ", screen.Painted("failed:", screen.Red), screen.Text(r.Name+": expected "+r.Expect+", got "+r.Got))
		}
	}
	s.Line(0, " ", screen.Text(fmt.Sprintf("%s, %d failed", wording.Counted(len(out), "vector"), failed)))
	if g.machine() {
		err = g.encode(out)
	} else {
		_, err = fmt.Fprint(g.out, s)
	}
	if err == nil && failed > 0 {
		return exit.Outcome(exit.Refused)
	}
	return err
}
