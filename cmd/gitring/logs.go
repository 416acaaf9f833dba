package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
)

func logsCmd(g *globals) *cobra.Command {
	var q api.LogQuery
	var since time.Duration
	cmd := &cobra.Command{
		Use:               "logs <app[/service]>",
		Short:             "Show what the instances of an app or a service print",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			var err error
			if q.App, q.Service, err = target(given[0]); err != nil {
				return err
			}
			if q.Tail < -1 || since < 0 {
				return usage(cmd, "--tail is a count or -1, and --since no time to come")
			}
			if since > 0 {
				q.Since = g.now().Add(-since).UTC()
			}
			return g.logs(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&q.Follow, "follow", "f", false, "go on with what comes")
	flags.IntVarP(&q.Tail, "tail", "n", -1, "how many lines of each instance to begin with; -1 is all")
	flags.DurationVar(&since, "since", 0, "only what is younger, such as 10m")
	flags.StringVar(&q.Text, "grep", "", "only lines that hold this text, of the last 10,000 of each instance")
	flags.BoolVarP(&q.Timestamps, "timestamps", "t", false, "the engine's time before each line")
	return cmd
}

func (g *globals) logs(ctx context.Context, q api.LogQuery) error {
	out := &logWriter{g: g, terminal: g.width() > 0}
	err := g.daemon().Logs(ctx, q, out)
	if err == nil || ctx.Err() != nil {
		err = out.flush()
	}
	if q.Follow && ctx.Err() != nil {
		return nil // the way to end it
	}
	return asked(err)
}

// logWriter hands lines on: as they are to a pipe, without what would move a
// terminal's cursor to a terminal, as objects to a program.
type logWriter struct {
	g        *globals
	terminal bool
	rest     []byte
}

func (l *logWriter) Write(b []byte) (int, error) {
	if !l.terminal && !l.g.machine() {
		return l.g.out.Write(b)
	}
	l.rest = append(l.rest, b...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		if err := l.put(string(line)); err != nil {
			return 0, err
		}
		l.rest = rest
	}
}

func (l *logWriter) flush() error {
	if len(l.rest) == 0 {
		return nil
	}
	return l.put(string(l.rest))
}

// logLine is one line of "logs -o json".
type logLine struct {
	Instance string `json:"instance"`
	Line     string `json:"line"`
}

func (l *logWriter) put(line string) error {
	if l.g.machine() {
		instance, text, _ := strings.Cut(line, " | ")
		return l.g.encodeLine(logLine{instance, strings.TrimSuffix(text, "\r")})
	}
	_, err := fmt.Fprintln(l.g.out, screen.CleanLogLine(line))
	return err
}
