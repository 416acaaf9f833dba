package wording

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What becomes of a text from outside, where it goes: a line of a terminal, a line whose
// words stay apart, a stored reason, and a text that keeps its own line breaks.
func TestATextFromOutsideCannotSteer(t *testing.T) {
	for _, tt := range []struct{ given, safe, folded, printable, controls string }{
		{"plain", "plain", "plain", "plain", "plain"},
		{"", "", "", "", ""},
		{"two\nlines\tand a tab", "two lines and a tab", "two lines and a tab", "two lines and a tab", "two\nlinesand a tab"},
		{"cr\r\nlf", "cr lf", "cr lf", "cr  lf", "cr\nlf"},
		{"\x1b[31mred\x1b[0m", "[31mred[0m", "[31mred [0m", " [31mred [0m", "[31mred[0m"},
		{"\x1b]0;title\x07", "]0;title", "]0;title", " ]0;title ", "]0;title"},
		{"a\u009b2Jb", "a2Jb", "a 2Jb", "a 2Jb", "a\u009b2Jb"},
		{"\u202etxt.exe", "txt.exe", "txt.exe", " txt.exe", "\u202etxt.exe"},
		{"zero\u200bwidth\ufeff", "zerowidth", "zero width", "zero width ", "zero\u200bwidth\ufeff"},
		{"line\u2028sep\u2029", "line sep ", "line sep", "line sep ", "line\u2028sep\u2029"},
		{"\xff\xfebad utf-8", "bad utf-8", "bad utf-8", "\ufffd\ufffdbad utf-8", "\ufffd\ufffdbad utf-8"},
		{"said \ufffd", "said ", "said", "said \ufffd", "said \ufffd"},
		{"größe 大きさ ✓", "größe 大きさ ✓", "größe 大きさ ✓", "größe 大きさ ✓", "größe 大きさ ✓"},
		{"no\u00a0break", "no\u00a0break", "no break", "no break", "no\u00a0break"},
		{"private \ue000", "private \ue000", "private \ue000", "private  ", "private \ue000"},
		{"del\x7f and nul\x00", "del and nul", "del and nul", "del  and nul ", "del and nul"},
	} {
		require.Equal(t, tt.safe, SafeLine(tt.given), "%q", tt.given)
		require.Equal(t, tt.folded, FoldedLine(tt.given), "%q", tt.given)
		require.Equal(t, tt.printable, PrintableLine(tt.given, ' '), "%q", tt.given)
		require.Equal(t, tt.controls, DropControls(tt.given, "\n"), "%q", tt.given)
		require.Equal(t, strings.ReplaceAll(tt.controls, "\n", ""), DropControls(tt.given, ""), "%q", tt.given)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		for _, out := range []string{SafeLine(s), FoldedLine(s)} {
			for _, r := range out {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("%U came through", r)
				}
			}
		}
	})
}

func TestATextIsCutAtAWholeSign(t *testing.T) {
	for _, tt := range []struct {
		given        string
		most         int
		runes, bytes string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc…"},
		{"größe", 3, "grö…", "gr…"},
		{"größe", 5, "größe", "grö…"},
		{"大きさ", 1, "大…", "…"},
	} {
		require.Equal(t, tt.runes, CutRunes(tt.given, tt.most), tt.given)
		require.Equal(t, tt.bytes, CutBytes(tt.given, tt.most), tt.given)
	}
}
