package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
)

// uiFlags are those of "ui".
type uiFlags struct {
	listen   string
	readOnly bool
}

func uiCmd(g *globals) *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show this host, or that of --host, in your browser",
		Long: "ui serves the dashboard on this machine alone, and prints the address to open. The\n" +
			"address works once. ui asks the daemon's socket, also by ssh, as every verb does;\n" +
			"the host listens on nothing for it. It may look, read logs, act and approve, and\n" +
			"ends with Ctrl-C.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.ui(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "the address on this machine; port 0 is any that is free")
	cmd.Flags().BoolVar(&f.readOnly, "read-only", false, "look and read logs only")
	return cmd
}

// openedUI is what "ui -o json" prints.
type openedUI struct {
	URL string `json:"url"`
	// Forward is what makes the address that of another machine, where one came by ssh.
	Forward string `json:"forward,omitempty"`
}

func (g *globals) ui(ctx context.Context, f uiFlags) error {
	l, err := api.ListenLocal(f.listen)
	if err != nil {
		return asked(err)
	}
	defer l.Close() //nolint:errcheck // Run closes it, and tells
	client := g.daemon()
	if _, err := client.Version(ctx); err != nil {
		return asked(err)
	}
	local, err := api.NewLocal(l.Addr(), api.LocalOptions{
		Client: client, Actor: g.viewer(), ReadOnly: f.readOnly, Now: g.now, Log: newLog(g),
		Pages: func(asks *api.Client) http.Handler {
			return pages.New(pages.Options{
				Answers: func(api.Viewer) pages.Answers { return asks }, Now: g.now,
				Viewer: func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
			})
		},
	})
	if err != nil {
		return err
	}
	if err := g.showUI(openedUI{local.Address(l.Addr()), forwardOf(l.Addr(), os.Getenv("SSH_CONNECTION"), userName())}); err != nil {
		return err
	}
	return local.Run(ctx, l)
}

func (g *globals) showUI(o openedUI) error {
	if g.machine() {
		return g.encode(o)
	}
	g.notice("open this address; it works once. Ctrl-C ends the dashboard")
	if _, err := fmt.Fprintln(g.out, o.URL); err != nil {
		return err
	}
	if o.Forward != "" {
		g.notice("is your browser on the machine that you came from? then run this there first:")
		g.notice("  %s", o.Forward)
	}
	return nil
}

// viewer is who looks, as the far end names them.
func (g *globals) viewer() string {
	host := g.hostGiven()
	if host == "" {
		return userName()
	}
	a, err := g.address(host)
	if err != nil {
		return host
	}
	return cmp.Or(a.User, userName()) + "@" + a.Host
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// forwardOf is the ssh that makes a port here one of the machine that somebody came from; ""
// where nobody came by ssh. connection is what sshd says of it: the client's address and
// port, and ours.
func forwardOf(at net.Addr, connection, name string) string {
	parts := strings.Fields(connection)
	_, port, err := net.SplitHostPort(at.String())
	if err != nil || len(parts) != 4 {
		return ""
	}
	to, _, _ := strings.Cut(parts[2], "%") // a zone is of this machine
	if name != "" {
		to = name + "@" + to
	}
	more := ""
	if parts[3] != "22" {
		more = " -p " + parts[3]
	}
	return fmt.Sprintf("ssh -N -L %s:%s%s %s", port, at, more, to)
}
