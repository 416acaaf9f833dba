package api

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reference of the command line has each thing that may become of a commit.
func TestTheReferenceHasEachOutcome(t *testing.T) {
	code, err := os.ReadFile("outcome.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/reference/cli.md")
	require.NoError(t, err)
	words := regexp.MustCompile(`(?m)^\tOutcome\w+ += "([^"]+)"`).FindAllStringSubmatch(string(code), -1)
	require.NotEmpty(t, words)
	for _, word := range words {
		require.Contains(t, string(page), "\n| `"+word[1]+"` | ")
	}
}
