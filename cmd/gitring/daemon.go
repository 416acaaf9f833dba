package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/fleet"
)

// daemon is the client of the daemon on this host, or on the one of --host; nothing is
// dialled yet.
func (g *globals) daemon() *api.Client {
	if host := g.hostGiven(); host != "" {
		return g.far(host)
	}
	return api.NewClient(g.socketPath())
}

// socketPath is the first that is known: --socket, GITRING_SOCKET, listen.socket
// of a configuration that can be read, the default.
func (g *globals) socketPath() string {
	if g.socket != "" {
		return g.socket
	}
	if s := os.Getenv("GITRING_SOCKET"); s != "" {
		return s
	}
	if s := config.SocketOf(g.configPath()); s != "" {
		return s
	}
	return config.DefaultSocket
}

// configPath is --config, GITRING_CONFIG or the default.
func (g *globals) configPath() string {
	if g.config != "" {
		return g.config
	}
	if c := configFromEnv(); c != "" {
		return c
	}
	return config.DefaultFile
}

func configFromEnv() string { return os.Getenv("GITRING_CONFIG") }

// asked puts an error of the client into words and an exit code.
func asked(err error) error {
	var known *exit.Failure
	var away *api.ErrUnreachable
	var answer *api.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known): // of the host's name, before anything was dialled
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return &exit.Failure{Code: exit.Timeout, Says: "timed out", Hint: "the daemon goes on; gitring status tells how far it is"}
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &away):
		return &exit.Failure{Code: exit.Unreachable, Says: "cannot reach the daemon on " + away.Socket + ": " + cause(away.Err), Hint: unreachableHint(away)}
	case errors.As(err, &answer):
		return &exit.Failure{Code: codeOf(answer), Says: answer.Message, Hint: answer.Hint}
	}
	return err
}

// cause leaves out what the sentence before it says already.
func cause(err error) string {
	var call *os.SyscallError
	switch {
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "server closed idle connection"):
		return "it went away in the middle of its answer"
	}
	return err.Error()
}

func unreachableHint(e *api.ErrUnreachable) string {
	var ssh *fleet.SSHError
	if errors.As(e, &ssh) {
		return ssh.Hint
	}
	if errors.Is(e, fs.ErrPermission) {
		return "ask as root or as a member of the socket's group"
	}
	return "is gitring serve running here? --socket names another socket"
}

func codeOf(e *api.Error) int {
	for _, known := range []struct {
		kind error
		code int
	}{
		{api.ErrUsage, exit.Usage},
		{api.ErrNotFound, exit.NotFound},
		{api.ErrDenied, exit.Conflict},
		{api.ErrConflict, exit.Conflict},
		{api.ErrRefused, exit.Refused},
	} {
		if errors.Is(e, known.kind) {
			return known.code
		}
	}
	return exit.Error
}

// target is app[/service] as given.
func target(arg string) (app, service string, err error) {
	app, service, both := strings.Cut(arg, "/")
	if app == "" || both && service == "" || strings.Contains(service, "/") {
		return "", "", &exit.Failure{Code: exit.Usage, Says: "\"" + arg + "\" is not app or app/service", Hint: "gitring status lists what is here"}
	}
	return app, service, nil
}
