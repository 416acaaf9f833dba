package ring

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACursorIsTakenAsItIsWrittenAndNothingElse(t *testing.T) {
	for text, want := range map[string]Cursor{
		"0.00000000": {}, "1.0a1b2c3d": {1, "0a1b2c3d"}, "9223372036854775807.ffffffff": {9223372036854775807, "ffffffff"}, "7.00000000": {7, "00000000"},
	} {
		got, ok := ParseCursor(text)
		require.True(t, ok, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
		require.LessOrEqual(t, len(text), CursorLimit)
	}
	for _, text := range []string{
		"", "0", ".", "0.", "1.0A1B2C3D", "01.0a1b2c3d", "-1.0a1b2c3d", "+1.0a1b2c3d", "1.0a1b2c3", "1.0a1b2c3d4", " 1.0a1b2c3d", "1.0a1b2c3d\n", "1.0a1b2c3d ",
		"0.0a1b2c3d", "9223372036854775808.ffffffff", "99999999999999999999.ffffffff", "1.0a1b2c3g", "<html>", "1.0a1b2c3d\x00", strings.Repeat("1", 1<<16) + ".0a1b2c3d",
	} {
		_, ok := ParseCursor(text)
		require.False(t, ok, "%.40q", text)
	}
}
