package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func metricsCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "Print the daemon's metrics, as Prometheus reads them",
		Long: "metrics prints the text format of Prometheus, for the textfile folder of a\n" +
			"node_exporter where nothing listens. docs/reference/metrics.md has what each means.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.metrics(cmd.Context()) },
	}
}

// metrics prints the page whatever -o says: there is one form of it.
func (g *globals) metrics(ctx context.Context) error {
	text, err := g.daemon().Metrics(ctx)
	if err != nil {
		return asked(err)
	}
	_, err = io.WriteString(g.out, text)
	return err
}
