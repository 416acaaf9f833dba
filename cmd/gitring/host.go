package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/fleet"
	"github.com/gitring/gitring/ring"
)

// alone are the verbs that ask no daemon, or choose their hosts themselves: --host is
// not for them.
var alone = []string{
	"serve", "hub", "dial-stdio", "validate", "verify", "webhook url", "init", "trust compare", "completion", "config check",
	"policy suggest", "policy check", "policy explain", "policy test", "token new", "token list", "token revoke", "backup", "restore", "upgrade", "rehearse",
	"secret keys", "secret encrypt", "secret check", "secret place", "images update",
}

// checkHost judges --host before anything is done.
func (g *globals) checkHost(cmd *cobra.Command) error {
	switch {
	case g.host == "":
		return nil
	case g.socket != "":
		return usage(cmd, "--socket is of this host, and --host another one; ssh://name/path names the socket there")
	case slices.Contains(alone, nameOf(cmd)), strings.HasPrefix(nameOf(cmd), "fleet "):
		return usage(cmd, cmd.CommandPath()+" asks no daemon of another host")
	}
	_, err := g.address(g.host)
	return err
}

// hostGiven is the host to ask, --host before GITRING_HOST; "" is this one. A socket that
// was named on the command line is of this host.
func (g *globals) hostGiven() string {
	if g.host != "" || g.socket != "" {
		return g.host
	}
	return os.Getenv("GITRING_HOST")
}

// address is a host as ssh://… or by its name in the inventory.
func (g *globals) address(given string) (fleet.Address, error) {
	if strings.Contains(given, "://") {
		return fleet.ParseAddress(given)
	}
	inv, err := g.inventory()
	if errors.Is(err, fs.ErrNotExist) {
		return fleet.Address{}, &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("%q is no address, and there is no inventory of hosts", given),
			Hint: "write ssh://name, or list the host in ~/" + fleet.HomeFile,
		}
	}
	if err != nil {
		return fleet.Address{}, err
	}
	h, ok := inv.Host(given)
	if !ok {
		return fleet.Address{}, &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("no host %q in %s", given, inv.File), Hint: ring.Meant(given, inv.Names()),
		}
	}
	return h.At, nil
}

// inventory is the user's own, or else that of the clone around.
func (g *globals) inventory() (*fleet.Inventory, error) {
	return fleet.Find(os.Getenv("HOME"), ".")
}

// far is the client of a daemon on another host. It is one for all that a verb asks, and so
// is its connection.
func (g *globals) far(given string) *api.Client {
	if g.client == nil {
		g.client = api.NewClientBy(given, func(ctx context.Context) (net.Conn, error) {
			a, err := g.address(given)
			if err != nil {
				return nil, err
			}
			return fleet.Dial(ctx, a)
		})
	}
	return g.client
}

// close ends what the verb held open.
func (g *globals) close() {
	if g.client != nil {
		g.client.Close()
	}
}

func dialStdioCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "dial-stdio", Hidden: true, Args: args(cobra.NoArgs),
		Short: "Join stdin and stdout with the daemon's socket, for --host over ssh",
		RunE:  func(cmd *cobra.Command, _ []string) error { return g.dialStdio(cmd.Context()) },
	}
}

// dialStdio copies between the one who asks and the socket until the daemon has said all.
// The kernel tells the daemon whose process this is.
func (g *globals) dialStdio(ctx context.Context) error {
	path := g.socketPath()
	var d net.Dialer
	dialled, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return asked(&api.ErrUnreachable{Socket: path, Err: err})
	}
	c, ok := dialled.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("cannot use the socket %s: it is no unix socket", path)
	}
	defer c.Close() //nolint:errcheck // both ends know by then
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := fmt.Fprintln(g.out, fleet.Greeting); err != nil {
		return fmt.Errorf("cannot answer: %w", err)
	}
	go func() { // it ends with stdin, or with the process
		_, _ = io.Copy(c, g.in)
		_ = c.CloseWrite()
	}()
	if _, err := io.Copy(g.out, c); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot pass on what the daemon says: %w", err)
	}
	return nil
}
