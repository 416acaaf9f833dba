package daemon

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/notify"
)

// TestMain is also the two processes that a daemon starts of its own program.
func TestMain(m *testing.M) {
	children := map[string]func() error{
		gitsync.FetchVerb: func() error { return gitsync.ServeFetch(os.Stdin, os.Stdout) },
		notify.WorkerVerb: func() error { return notify.ServeWorker(io.Reader(os.Stdin), os.Stdout) },
	}
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		if err := children[os.Args[1]](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
