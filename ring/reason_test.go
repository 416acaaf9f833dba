package ring

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReasonCodesAreExplained holds the table of the docs to the codes that there are.
func TestReasonCodesAreExplained(t *testing.T) {
	code, err := os.ReadFile("reason.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/reference/reasons.md")
	require.NoError(t, err)
	made := firstGroups(`\bWhy\w+\s+ReasonCode = "(\w+)"`, code)
	told := firstGroups("(?m)^\\| `(\\w+)` \\|", page)
	require.NotEmpty(t, made)
	slices.Sort(made)
	slices.Sort(told)
	require.Equal(t, made, told)
}

func firstGroups(pattern string, text []byte) (out []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}
