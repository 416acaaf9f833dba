package gitsync

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A branch that was updated by the forge, landed, and landed again repeats its
// story once for each: people need its two ends.
func TestLandingsUponLandingsAreToldAsOne(t *testing.T) {
	id := func(s string) ring.SHA { return ring.SHA(strings.Repeat(s, 40)) }
	why := unsigned(id("a"), false)
	for _, at := range []string{"b", "c", "d"} {
		why = unsignedHead(id(at), id("e"), why)
	}
	require.Equal(t, "commit ddddddd was landed by the forge from eeeeeee, and there: commit aaaaaaa is not signed", why.Says)
	require.Equal(t, id("a"), why.Commit)
}
