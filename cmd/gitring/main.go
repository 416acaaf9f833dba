// Command gitring is the daemon and the command line of it, one binary.
//
// A verb has a file of its name (status.go, rollback.go), with its flags, its questions
// and its screen; what it does is in the package that it is about. Beside them:
//
//	daemon.go  the client of the daemon
//	host.go    and of one on another host
//	exit.go    how a verb ends
//	output.go  results for programs, and screens for people
//	ask.go     questions
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/screen"
)

func main() { os.Exit(Main()) }

// Main is main without the exit, so that testscript can be gitring.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { stop(); signal.Stop(terminated) }) // a second signal ends what drains
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, time.Now)
	if code == exit.Interrupted && len(terminated) > 0 {
		return exit.Terminated
	}
	return code
}

// run is one call of the command line; its result is the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer, now func() time.Time) int {
	g := &globals{in: in, out: out, err: errw, now: now}
	defer g.close()
	root := rootCmd(g)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = g.unknown
	}
	return g.exit(err)
}

// globals are what every verb has: the streams, the clock and the flags that
// all of them take.
type globals struct {
	in       io.Reader
	out, err io.Writer
	now      func() time.Time

	config  string // as given; "" is not given
	socket  string
	host    string
	output  string
	file    string // that -o names, of the one verb that writes one
	noColor bool
	quiet   bool

	client *api.Client // of another host, once it is asked

	unknown error // what --help was asked of, where that is no verb
}

// width is that of the terminal results go to; 0 when it is none.
func (g *globals) width() int { return screen.TerminalWidth(g.out) }

// colors reports whether a person wants colours on a terminal (no-color.org).
func (g *globals) colors() bool {
	return !g.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func rootCmd(g *globals) *cobra.Command {
	root := &cobra.Command{
		Use:   "gitring",
		Short: "Run what a signed commit asks for, and keep it running",
		Long: "gitring follows a branch of a Git repository, trusts only what allowed keys\n" +
			"signed, and keeps the containers of this host equal to it.",
		Args:          knownVerb,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.checkHost(cmd); err != nil {
				return err
			}
			return g.checkOutput(cmd)
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Use: "help [verb]", Short: "Show how a verb is used", RunE: func(cmd *cobra.Command, args []string) error {
		return help(root, args)
	}})
	root.SetFlagErrorFunc(wrongFlag)
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, given []string) {
		if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
			g.unknown = knownVerb(cmd, before)
			return
		}
		showNarrow(cmd, func() { show(cmd, given) })
	})
	flags := root.PersistentFlags()
	flags.StringVar(&g.config, "config", "", "the configuration (default $GITRING_CONFIG, else "+config.DefaultFile+")")
	flags.StringVar(&g.socket, "socket", "", "the daemon's socket (default $GITRING_SOCKET, else the configuration's)")
	flags.StringVar(&g.host, "host", "", "another host, by ssh, such as ssh://edge-1 (default $GITRING_HOST)")
	flags.StringVarP(&g.output, "output", "o", "table", "table, wide, json or yaml")
	flags.BoolVar(&g.noColor, "no-color", false, "no colours, as NO_COLOR=1 does")
	flags.BoolVarP(&g.quiet, "quiet", "q", false, "no notices, results only")
	root.AddCommand(
		serveCmd(g), statusCmd(g), planCmd(g), validateCmd(g), verifyCmd(g), syncCmd(g), historyCmd(g), eventsCmd(g),
		logsCmd(g), outdatedCmd(g), trafficCmd(g), jobsCmd(g), crashesCmd(g), inspectCmd(g), runCmd(g), adoptCmd(g), leaveCmd(g), refreshCmd(g), approveCmd(g), rolloutCmd(g), holdCmd(g), releaseCmd(g), scaleCmd(g), retryCmd(g), trustCmd(g), notifyCmd(g), outboxCmd(g), webhookCmd(g), initCmd(g), vouchCmd(g), rollbackCmd(g), imagesCmd(g), policyCmd(g), versionCmd(g), completionCmd(g),
	)
	root.AddCommand(undoCmd(g), pauseCmd(g), resumeCmd(g), restartCmd(g), configCmd(g), metricsCmd(g), backupCmd(g), restoreCmd(g), upgradeCmd(g), rehearseCmd(g), doctorCmd(g), fleetCmd(g), uiCmd(g))
	root.AddCommand(fetchCmd(g), workerCmd(g), manCmd(g), dialStdioCmd(g))
	root.AddCommand(hubCmd(g), tokenCmd(g), secretCmd(g), proveCmd(g))
	arrange(root)
	g.complete(root)
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	return root
}
