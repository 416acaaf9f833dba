package screen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSpacesStayAndWordsStayWhole(t *testing.T) {
	require.Equal(t, []string{"prod  Synced  main"}, wrap("prod  Synced  main", 18, 2))
	require.Equal(t, []string{"prod  Synced", "  main"}, wrap("prod  Synced  main", 17, 2))
	require.Equal(t, []string{"  hint: a", "    long", "    one"}, wrap("  hint: a long one", 9, 4))
	require.Equal(t, []string{"\x1b[31mred and\x1b[0m", "\x1b[31mlong\x1b[0m"}, wrap("\x1b[31mred and long\x1b[0m", 8, 0))
	require.Equal(t, []string{"0123", "4567"}, wrap("01234567", 4, 0), "no line has room for the word")
}

func TestNoLineIsWiderThanTheTerminalAndNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`( {0,3}([a-zä大]{1,12}|\x1b\[31m[a-z ]{1,20}\x1b\[0m)){1,12}`).Draw(t, "line")
		width := rapid.IntRange(2, 60).Draw(t, "width")
		lines := wrap(line, width, rapid.IntRange(0, 6).Draw(t, "hang"))
		for _, l := range lines {
			if WidthOf(l) > width {
				t.Fatalf("%q is %d wide, not %d", l, WidthOf(l), width)
			}
		}
		letters := func(s string) string { return strings.ReplaceAll(paints.ReplaceAllString(s, ""), " ", "") }
		if got := letters(strings.Join(lines, "")); got != letters(line) {
			t.Fatalf("%q became %q", letters(line), got)
		}
	})
}
