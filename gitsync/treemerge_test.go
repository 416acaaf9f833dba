package gitsync

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What folders alone say of a merge is what git makes of it, over branches that change, add,
// remove and move files and folders.
func TestMergeByFoldersSaysWhatGitSays(t *testing.T) {
	y := newYard(t)
	start := map[string]string{}
	for _, dir := range []string{"a", "b", "b/c", "d"} {
		for i := range 3 {
			start[fmt.Sprintf("%s/f%d", dir, i)] = fmt.Sprintf("%s %d\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", dir, i)
		}
	}
	base := y.edit("", "base", start)
	answered, unknown := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test is the same each time
		var sides [2]ring.SHA
		for i := range sides {
			y.checkout(base, fmt.Sprintf("side-%d-%d", seed, i))
			for range 1 + r.IntN(2) {
				at := fmt.Sprintf("%s/f%d", []string{"a", "b", "b/c", "d"}[r.IntN(4)], r.IntN(3))
				switch r.IntN(12) {
				case 0:
					y.git("rm", "-q", "--ignore-unmatch", at)
				case 1:
					y.git("mv", "-k", at, at+"-moved")
				case 2:
					y.git("mv", "-k", "d", "e")
				case 3, 4, 5:
					y.edit("", "add", map[string]string{fmt.Sprintf("%s-new%d", at, r.IntN(2)): fmt.Sprint(i, seed)})
				default:
					y.edit("", "change", map[string]string{at: fmt.Sprintf("changed by %d\n", i)})
				}
			}
			sides[i] = y.edit("", "side", nil)
		}
		want, conflict := mergeTree(t.Context(), sides[0], sides[1], filepath.Join(y.dir, ".git", "objects"))
		got, err := MergeByFolders(y, sides[0], sides[1])
		if errors.Is(err, ErrNoMergeTree) {
			unknown++
			continue
		}
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, conflict, "seed %d: git has a conflict", seed)
		require.Equal(t, want, got, "seed %d", seed)
		answered++
	}
	t.Logf("%d answered, %d left to git", answered, unknown)
	require.Greater(t, answered, 8)
	require.Greater(t, unknown, 8)
}

// Where two histories have several commits in common, or one behind the other, git's own
// rules say which counts.
func TestMergeByFoldersFindsWhereTwoParted(t *testing.T) {
	y := newYard(t)
	base := y.edit("", "base", map[string]string{"a/x": "1", "b/x": "1"})
	ours := y.edit("", "ours", map[string]string{"a/x": "2"})
	y.branch("theirs", base)
	theirs := y.edit("", "theirs", map[string]string{"b/x": "2"})
	y.back()
	got, err := mergeBase(y, ours, theirs)
	require.NoError(t, err)
	require.Equal(t, base, got)
	got, err = mergeBase(y, ours, base)
	require.NoError(t, err)
	require.Equal(t, base, got)

	// Each took the other in: there are two.
	mergeOf(y, "", theirs)
	y.git("checkout", "-q", "theirs")
	two := mergeOf(y, "", ours)
	y.back()
	one := y.edit("", "on top", map[string]string{"a/y": "1"})
	_, err = mergeBase(y, one, two)
	require.ErrorIs(t, err, ErrNoMergeTree)
}
