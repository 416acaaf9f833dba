package proxy

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A front that was taken over may write to one folder of the host.
func TestTheFolderOfAFrontIsKeptSmall(t *testing.T) {
	outside := shortDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	sockets := func(t *testing.T, dir string, n int) {
		for i := range n {
			l, err := net.Listen("unix", filepath.Join(dir, fmt.Sprintf("%016x.sock", i)))
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}
	}
	for name, c := range map[string]struct {
		make   func(t *testing.T, dir string)
		filled bool
		left   int
	}{
		"its sockets": {make: func(t *testing.T, dir string) { sockets(t, dir, 3) }, left: 3},
		"a file": {make: func(t *testing.T, dir string) {
			sockets(t, dir, 1)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600))
		}, left: 1},
		"a file with a socket's name": {make: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "0123456789abcdef.sock"), []byte("x"), 0o600))
		}},
		"a link": {make: func(t *testing.T, dir string) { require.NoError(t, os.Symlink(outside, filepath.Join(dir, "x"))) }},
		"a folder": {make: func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "x", "y", "z"), 0o700))
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "x", "y", "link")))
		}, filled: true},
		"many files": {make: func(t *testing.T, dir string) {
			for i := range runOthers + 1 {
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}
		}, filled: true},
		"many sockets": {make: func(t *testing.T, dir string) { sockets(t, dir, runMost+5) }, filled: true, left: runMost},
		"nothing":      {make: func(t *testing.T, dir string) { require.NoError(t, os.Remove(dir)) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(shortDir(t), "run")
			require.NoError(t, os.Mkdir(dir, 0o700))
			c.make(t, dir)
			require.Equal(t, c.filled, tidyRun(dir))
			left, _ := os.ReadDir(dir)
			require.Len(t, left, c.left)
			require.FileExists(t, filepath.Join(outside, "kept"), "nothing outside is touched")
		})
	}
}

// What was held against a front is, until its container is started anew.
func TestAFrontThatFillsItsFolderIsNotBelieved(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	c, at := clientOf(t, b, nil)
	go func() { _ = c.Run(t.Context()) }()
	require.NoError(t, os.Mkdir(filepath.Join(c.fronts, ring.FrontID(at.Name), "run", "x"), 0o700))
	c.Watch([]ring.FrontAt{at})
	b.eventually("not believed", func() bool { return c.Seen()["id1"].Wrong == "fills the folder of its socket" })
	at.Since = time.Now()
	c.Watch([]ring.FrontAt{at})
	b.eventually("believed", func() bool { s, ok := c.Seen()["id1"]; return ok && s.Wrong == "" })
}

func TestAFrontThatTakesNoTableIsNotBelieved(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	c, at := clientOf(t, b, nil)
	table := b.table
	table.Generation = 7
	_, err := c.Route(t.Context(), at, table)
	require.NoError(t, err)
	var held suspicion
	for range 2 {
		_, err = c.Route(t.Context(), at, table) // as one that says no, again and again
		require.Error(t, err)
		require.Empty(t, c.wrong(at, &held))
	}
	age := func() {
		r := c.refused[at.Container]
		r.since = r.since.Add(-refuseMost)
		c.refused[at.Container] = r
	}
	age()
	require.Equal(t, "has taken no table for 5m0s", c.wrong(at, &held))
	table.Generation = 8
	_, err = c.Route(t.Context(), at, table)
	require.NoError(t, err)
	require.Empty(t, c.wrong(at, &held))
}

// A front that took a table, and of which only the answer was lost, is sent no other. It is not
// started anew for that, with all that is in flight.
func TestAFrontOfWhichAnAnswerWasLostIsBelieved(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	c, at := clientOf(t, b, nil)
	table := b.table
	table.Generation = 7
	_, err := c.Route(t.Context(), at, table)
	require.NoError(t, err)
	go func() { _ = c.Run(t.Context()) }()
	c.Watch([]ring.FrontAt{at})
	b.eventually("seen", func() bool { return c.Seen()["id1"].Generation == 7 })
	_, err = c.Route(t.Context(), at, table) // of which an answer was lost; the front has it
	require.Error(t, err)
	b.eventually("believed", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.refused) == 0
	})
}
