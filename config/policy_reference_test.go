package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reference of the policy has each of its keys, in the table of lists or in that of
// keys with one value, and no other.
func TestThePolicysReferenceHasEachKey(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/policy.md")
	require.NoError(t, err)
	var named []string
	for _, heading := range []string{"## Lists\n", "## Keys with one value\n"} {
		_, section, found := strings.Cut(string(page), heading)
		require.True(t, found, heading)
		section, _, _ = strings.Cut(section, "\n#")
		for line := range strings.Lines(section) {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
				named = append(named, m[1])
			}
		}
	}
	want := append(slices.Collect(maps.Keys(PolicySettings)), "labels.routes")
	require.ElementsMatch(t, want, named)
}
