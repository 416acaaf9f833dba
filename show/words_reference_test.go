package show

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Each word that only people see is in the reference of the command line.
func TestTheReferenceHasTheWordsForPeople(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/cli.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| word, finer than in JSON | means |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, word := range append(slices.Collect(maps.Values(ring.HeldWords)), "Stopped", "Waiting", ring.RolloutIsRestored) {
		require.Contains(t, table, "\n| `"+word+"` | ")
	}
}
