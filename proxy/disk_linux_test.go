package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// smallDisk has a folder lie on a file system of its own, of 64 KiB; fill leaves no byte of it.
func smallDisk(t *testing.T, at string) (fill, empty func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a file system of its own needs root")
	}
	if err := syscall.Mount("none", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a file system of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(at, syscall.MNT_DETACH)) })
	ballast := filepath.Join(at, "ballast")
	fill = func() {
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		defer f.Close()
		for {
			if _, err := f.Write(make([]byte, 4096)); err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				return
			}
		}
	}
	return fill, func() { require.NoError(t, os.Remove(ballast)) }
}

// Where the disk is full the old table serves on, on the disk as in the front, and nothing of
// the new one is left. With room again the same table is taken.
func TestAFullDiskLeavesTheOldTable(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one", "two")
	c, at := clientOf(t, b, nil)
	tables := filepath.Join(c.fronts, ring.FrontID(at.Name), "table")
	fill, empty := smallDisk(t, tables)
	table := b.table
	table.Generation, table.Instances = 1, []ring.FrontInstance{{Name: "one", State: ring.FrontActive}}
	_, err := c.Route(t.Context(), at, table)
	require.NoError(t, err)
	was, err := os.ReadFile(filepath.Join(tables, ring.FrontTableFile))
	require.NoError(t, err)

	fill()
	table.Generation, table.Instances = 2, []ring.FrontInstance{{Name: "two", State: ring.FrontActive}}
	_, err = c.Route(t.Context(), at, table)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.True(t, strings.HasPrefix(err.Error(), "cannot "), err)
	is, err := os.ReadFile(filepath.Join(tables, ring.FrontTableFile))
	require.NoError(t, err)
	require.Equal(t, string(was), string(is))
	left, err := os.ReadDir(tables)
	require.NoError(t, err)
	require.Len(t, left, 2, "the table and the ballast")
	status, who := b.get(b.client(false), "/")
	require.Equal(t, 200, status)
	require.Equal(t, "one", who)
	require.EqualValues(t, 1, b.f.seen().Generation)

	empty()
	s, err := c.Route(t.Context(), at, table)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Generation)
	_, who = b.get(b.client(false), "/")
	require.Equal(t, "two", who)
}

// A loss of power in the middle of a write leaves the table of before, and beside it a part of
// the new one that nobody reads.
func TestAPartOfATableBesideTheOldOneIsNotRead(t *testing.T) {
	c, at := clientOf(t, nil, nil)
	tables := filepath.Join(c.fronts, ring.FrontID(at.Name), "table")
	whole := `{"generation":3,"service":"app/web","ports":[{"port":80,"carry":"auto"}],"instances":[{"name":"one","state":"active"}]}`
	require.NoError(t, c.Write(at, []byte(whole)))
	for n := range len(whole) { // whatever part of it had come to the disk
		require.NoError(t, os.WriteFile(filepath.Join(tables, "tmp-1"), []byte(whole[:n]), 0o400))
		body, err := os.ReadFile(filepath.Join(tables, ring.FrontTableFile))
		require.NoError(t, err)
		got, err := readTable(body)
		require.NoError(t, err)
		require.EqualValues(t, 3, got.Generation)
		// A disk that lost the order of writes has a part where the whole was: it is no table.
		_, err = readTable([]byte(whole[:n]))
		require.Error(t, err)
		require.NoError(t, os.Remove(filepath.Join(tables, "tmp-1")))
	}
}
