package gitsync

import (
	"fmt"
	"os"
	"testing"
)

// TestMain is the process that fetches when it is started as that, and the one
// that tries to break out when it is started as that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == FetchVerb {
		if err := ServeFetch(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == breakOutVerb {
		breakOut()
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == reachOutVerb {
		reachOut()
		os.Exit(0)
	}
	os.Exit(m.Run())
}
