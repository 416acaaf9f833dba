package config

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The rule as a pattern, which costs too much memory to be kept in a process.
var rolePattern = regexp.MustCompile(`^(group|sub):[^\s*][^*\p{C}]{0,254}$`)

func TestARowOfAGroupIsWhatItsPatternSays(t *testing.T) {
	for _, row := range []string{
		"", "group", "group:", "sub:", "groups:a", "Group:a", "group:a", "sub:a b", "group: a", "group:\ta", "group:\va", "group:*", "group:a*", "group:a\n", "group:\na",
		"group:a\x00", "group:\x00", "sub:\xff", "sub:a\xff", "sub:a\u200b", "sub:a\ufffd", "sub::", "sub:a:b", "x group:a",
		"group:" + strings.Repeat("a", roleName), "group:" + strings.Repeat("a", roleName+1), "group:" + strings.Repeat("é", roleName), "group:" + strings.Repeat("é", roleName+1),
	} {
		require.Equal(t, rolePattern.MatchString(row), isRoleOf(row), "%q", row)
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		for _, row := range []string{"sub:" + string(r), "sub:a" + string(r)} {
			if rolePattern.MatchString(row) != isRoleOf(row) {
				t.Fatalf("%q", row)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.StringMatching(`(group|sub)?:?.{0,260}`).Draw(t, "row")
		require.Equal(t, rolePattern.MatchString(row), isRoleOf(row), "%q", row)
	})
}
