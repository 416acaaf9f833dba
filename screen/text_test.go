package screen

import (
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestATextFromOutsideCannotSteerATerminal(t *testing.T) {
	for given, want := range map[string]string{
		"plain":                          "plain",
		"two\nlines\tand a tab":          "two lines and a tab",
		"\x1b[31mred\x1b[0m":             "[31mred[0m",
		"\x1b]0;title\x07":               "]0;title",
		"a\u009b2Jb":                     "a2Jb",
		"\u202etxt.exe":                  "txt.exe",
		"zero\u200bwidth\ufeff":          "zerowidth",
		"line\u2028sep":                  "line sep",
		"\xff\xfebad utf-8":              "bad utf-8",
		"größe 大きさ ✓":                    "größe 大きさ ✓",
		"del\x7f and nul\x00 and cr\r\n": "del and nul and cr ",
	} {
		require.Equal(t, want, Clean(given), "%q", given)
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range Clean(rapid.String().Draw(t, "s")) {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%U came through", r)
			}
		}
	})
}

func TestALogLineKeepsItsColoursOnly(t *testing.T) {
	require.Equal(t, "plain", CleanLogLine("plain"))
	require.Equal(t, "\x1b[31mred\x1b[0m\x1b[0m", CleanLogLine("\x1b[31mred\x1b[0m"))
	require.Equal(t, "[2J[Hgone", CleanLogLine("\x1b[2J\x1b[Hgone"))
	require.Equal(t, "]8;;http://x\\link \x1b[1;32mok\x1b[0m", CleanLogLine("\x1b]8;;http://x\x1b\\link\t\x1b[1;32mok"), "a colour left on ends with its line")
}

func TestAnAgeHasOneUnit(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Hour: "0s ago", 0: "0s ago", 1500 * time.Millisecond: "1s ago", 119 * time.Second: "119s ago",
		2 * time.Minute: "2m ago", 119 * time.Minute: "119m ago", 2 * time.Hour: "2h ago",
		47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago", 2400 * time.Hour: "100d ago",
	} {
		require.Equal(t, want, Age(now.Add(-ago), now), ago)
	}
	require.Equal(t, "", Stamp(time.Time{}))
	require.Equal(t, "2026-11-21 11:00:00", Stamp(now.In(time.FixedZone("", 3600)).Add(-time.Hour)))
}
