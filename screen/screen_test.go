package screen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColoursSurroundWhatWasCleaned(t *testing.T) {
	s := New(true, 0)
	s.Line(2, " ", Painted("re\x1bd", Red), Painted("", Green), Text("plain"))
	require.Equal(t, "  \x1b[31mred\x1b[0m plain\n", s.String())
	s = New(false, 0)
	s.Line(2, " ", Painted("red", Red), Text("plain"))
	require.Equal(t, "  red plain\n", s.String())
}

func TestARowEndsAtTheEdgeOfATerminalOnly(t *testing.T) {
	rows := [][]Word{{Text("web/web"), Painted("Ready", Green), Text(strings.Repeat("long ", 30))}}
	for _, color := range []bool{false, true} {
		for _, width := range []int{12, 20, 40, 80, 200} {
			s := New(color, width)
			s.Table(2, []string{"SERVICE", "PHASE", "REASON"}, rows)
			for _, line := range strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n") {
				shown := len([]rune(paints.ReplaceAllString(line, "")))
				require.LessOrEqual(t, shown, width, line)
			}
			require.Equal(t, 30, strings.Count(s.String(), "long"), "%d columns: %s", width, s)
		}
	}
	whole := New(false, 0)
	whole.Table(2, []string{"SERVICE", "PHASE", "REASON"}, rows)
	require.Contains(t, whole.String(), strings.TrimSpace(strings.Repeat("long ", 30)))
}
