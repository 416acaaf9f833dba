package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// walk visits every verb with its flags.
func walk(cmd *cobra.Command, visit func(path string, flags []string)) {
	var flags []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			flags = append(flags, f.Name)
		}
	})
	visit(cmd.CommandPath(), flags)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}
