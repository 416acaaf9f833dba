package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lmittmann/tint"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/screen"
)

// A terminal would break the lines of a log within words; elsewhere a line is one of JSON.
func TestALogFoldsItsLinesOnATerminalAlone(t *testing.T) {
	width := 80
	var b strings.Builder
	log := slog.New(tint.NewTextHandler(foldedLog{&b, func() int { return width }}, &tint.Options{TimeFormat: time.TimeOnly}))
	log.Info("instance.step", "source", "prod", "app", "shop", "service", "web", "commit", "4fd8078", "reason", "set restart policy: as the Compose file says: restart always", "slot", 1)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Greater(t, len(lines), 1)
	for i, line := range lines {
		require.LessOrEqual(t, screen.WidthOf(line), width, line)
		require.Equal(t, i > 0, strings.HasPrefix(line, "         "), "what is folded stands under the message")
	}
	whole := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	b.Reset()
	width = 0 // nobody knows how wide it is
	log.Info("instance.step", "slot", 1)
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
	require.Contains(t, whole, "restart always")

	n, err := foldedLog{&b, func() int { return 20 }}.Write([]byte("one two three four five\n"))
	require.NoError(t, err)
	require.Equal(t, len("one two three four five\n"), n, "of what was given")

	b.Reset()
	newLog(&globals{err: &b}).Info("instance.step", "reason", strings.Repeat("a word ", 40))
	require.Equal(t, 1, strings.Count(b.String(), "\n"), fmt.Sprint("no terminal: ", b.String()))
	require.True(t, strings.HasPrefix(b.String(), "{"))
}
