package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// The commit that was built, in full, and its time (RFC 3339), as -ldflags "-X
// main.commit=…" sets them; without them, what Go says of the checkout counts.
var commit, date string

// versions is what "version -o json" prints.
type versions struct {
	Gitring string       `json:"gitring"`
	Commit  string       `json:"commit,omitempty"`
	Date    string       `json:"date,omitempty"` // of the commit
	Go      string       `json:"go"`
	OS      string       `json:"os"`
	Arch    string       `json:"arch"`
	Daemon  *api.Version `json:"daemon,omitempty"` // when one answers
}

// farWithin is how long a host far away may take for a short answer.
const farWithin = 10 * time.Second

func versionCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and of the daemon when it answers",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Gitring: ring.Release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			v.Commit, v.Date = builtFrom(debug.ReadBuildInfo)
			within := 2 * time.Second
			if g.hostGiven() != "" {
				within = farWithin
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), within)
			defer cancel()
			d, err := g.daemon().Version(ctx)
			switch {
			case err == nil:
				v.Daemon = &d
			case g.hostGiven() != "": // it was asked for
				return asked(err)
			}
			return g.showVersion(v)
		},
	}
}

// builtFrom is the commit that the program was built from, and its time.
func builtFrom(read func() (*debug.BuildInfo, bool)) (sha, at string) {
	if commit != "" {
		return commit, date
	}
	info, ok := read()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			sha = s.Value
		case "vcs.time":
			at = s.Value
		}
	}
	return sha, at
}

// fromCommit is the commit and its day in brackets, where they are known.
func fromCommit(sha, at string) string {
	if len(sha) < 7 || len(at) < len(time.DateOnly) {
		return ""
	}
	return " (" + sha[:7] + ", " + at[:len(time.DateOnly)] + ")"
}

func (g *globals) showVersion(v versions) error {
	if g.machine() {
		return g.encode(v)
	}
	s := g.screen()
	s.Line(0, " ", screen.Text("gitring "+v.Gitring+fromCommit(v.Commit, v.Date)))
	if d := v.Daemon; d != nil {
		s.Line(0, ", ", screen.Text("daemon "+d.Gitring), screen.Text(d.Engine), screen.Labelled("API ", d.EngineAPI))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
