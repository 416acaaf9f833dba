package config

import (
	"fmt"
	"os"
	"testing"

	"github.com/gitring/gitring/gitsync"
)

// TestMain is also the process that fetches, which a follower starts of its own program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == gitsync.FetchVerb {
		if err := gitsync.ServeFetch(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
