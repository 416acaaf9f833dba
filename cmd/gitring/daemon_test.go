package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
)

// What net/http says of a connection that ended is no word for people.
func TestADaemonThatGoesAwayIsToldInWords(t *testing.T) {
	const middle = "it went away in the middle of its answer"
	for _, x := range []struct {
		err  error
		says string
	}{
		{err: io.EOF, says: middle},
		{err: io.ErrUnexpectedEOF, says: middle},
		{err: &url.Error{Op: "Get", URL: "http://gitring/v1/status", Err: fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", io.EOF)}, says: middle},
		{err: &url.Error{Op: "Get", URL: "http://gitring/v1/status", Err: errors.New("http: server closed idle connection")}, says: middle},
		{err: &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, says: "connection refused"},
	} {
		var f *exit.Failure
		require.ErrorAs(t, asked(&api.ErrUnreachable{Socket: "/run/x", Err: x.err}), &f)
		require.Equal(t, "cannot reach the daemon on /run/x: "+x.says, f.Says)
		require.Equal(t, exit.Unreachable, f.Code)
	}
}

// A configuration that cannot be read says nothing, and the default is taken. Nobody is asked there: a
// daemon of this machine may answer.
func TestTheDefaultSocketIsTheLastThatIsTried(t *testing.T) {
	t.Setenv("GITRING_SOCKET", "")
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("listen: [\n"), 0o600))
	for _, file := range []string{broken, broken + ".none"} {
		require.Equal(t, "/run/gitring/gitring.sock", (&globals{config: file}).socketPath())
	}
}

// Ctrl-D leaves the cursor behind the question: the error begins on a line of its own.
func TestAQuestionThatNobodyAnswersEndsItsLine(t *testing.T) {
	var told strings.Builder
	g := &globals{in: strings.NewReader(""), err: &told}
	_, err := g.ask("which key signs?", "")
	var f *exit.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, "which key signs? \n", told.String())
}
