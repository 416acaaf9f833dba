package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
)

// version is the release; -ldflags "-X main.version=…" sets another.
var version = "0.1.0"

// versions is what "version -o json" prints.
type versions struct {
	Gitring string       `json:"gitring"`
	Go      string       `json:"go"`
	OS      string       `json:"os"`
	Arch    string       `json:"arch"`
	Daemon  *api.Version `json:"daemon,omitempty"` // when one answers
}

func versionCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and of the daemon when it answers",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Gitring: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
			defer cancel()
			if d, err := g.daemon().Version(ctx); err == nil {
				v.Daemon = &d
			}
			return g.showVersion(v)
		},
	}
}

func (g *globals) showVersion(v versions) error {
	if g.machine() {
		return g.encode(v)
	}
	s := g.screen()
	s.line(0, " ", w("gitring "+v.Gitring))
	if d := v.Daemon; d != nil {
		s.line(0, ", ", w("daemon "+d.Gitring), w(d.Engine), said("API ", d.EngineAPI))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
