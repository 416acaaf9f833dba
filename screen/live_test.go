package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A log is told how far a pull is, but not twice a second.
func TestProgressIsToldNowAndThen(t *testing.T) {
	now := time.Unix(1000, 0)
	var b strings.Builder
	l := NewLive(&b, func() time.Time { return now })
	for _, x := range []struct {
		after time.Duration
		line  string
	}{
		{0, "prod  Staging  next b2c3d4e: app web: pulling web:1"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (1MB of 9MB, 0 of 3 layers)"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (2MB of 9MB, 0 of 3 layers)"},
		{4 * time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (5MB of 9MB, 1 of 3 layers)"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (6MB of 9MB, 1 of 3 layers)"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: resolving db:1"},
	} {
		now = now.Add(x.after)
		require.NoError(t, l.Say("prod", x.line))
	}
	require.Equal(t, `prod  Staging  next b2c3d4e: app web: pulling web:1
prod  Staging  next b2c3d4e: app web: pulling web:1 (5MB of 9MB, 1 of 3 layers)
prod  Staging  next b2c3d4e: app web: resolving db:1
`, b.String())
}

func TestATerminalIsRedrawnInPlace(t *testing.T) {
	var b bytes.Buffer
	l := &Live{w: &b, OnTerminal: true, size: func() (int, int) { return 5, 4 }}
	require.NoError(t, l.Redraw("one\ntwo\n"))
	require.NoError(t, l.Redraw("\x1b[31mthree and\x1b[0m\n"))
	require.NoError(t, l.Redraw("1\n2\n3\n4\n5\n"))
	require.NoError(t, l.Redraw("end\n"))
	shown := strings.ReplaceAll(b.String(), "\x1b[0m", "")
	require.Equal(t, "\r\x1b[Jone\ntwo\n"+
		"\x1b[2A\r\x1b[J\x1b[31mthree\n  \x1b[31mand\n"+
		"\x1b[2A\r\x1b[J1\n2\n… 3\n"+
		"\x1b[3A\r\x1b[Jend\n", shown)
}

func TestElsewhereALineIsSaidWhenItChanged(t *testing.T) {
	var b bytes.Buffer
	l := NewLive(&b, time.Now)
	for _, x := range [][2]string{{"a", "1"}, {"b", "1"}, {"a", "1"}, {"a", "2"}, {"a", "1"}} {
		require.NoError(t, l.Say(x[0], x[0]+x[1]))
	}
	require.Equal(t, "a1\nb1\na2\na1\n", b.String())
}
