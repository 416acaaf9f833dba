package gitsync

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// lying has other bytes under the name of one object, as a pack whose index says
// so: git itself notices nothing.
type lying struct {
	Objects
	about ring.SHA
}

func (l lying) Raw(sha ring.SHA) (string, []byte, error) {
	kind, body, err := l.Objects.Raw(sha)
	if sha == l.about {
		body = append([]byte("evil\n"), body...)
	}
	return kind, body, err
}

func TestWhatGitMergesIsHashedBefore(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.edit("alice", "one", texts("a", strings.Repeat("line\n", 30), "dir/b", "1", "same", "unchanged"))
	y.git("checkout", "-q", "-b", "side")
	theirs := y.edit("alice", "theirs", texts("a", strings.Repeat("line\n", 30)+"end\n", "dir/c", "1"))
	y.back()
	ours := y.edit("alice", "ours", texts("a", "begin\n"+strings.Repeat("line\n", 30), "dir/b", "2"))
	require.NoError(t, rehash(y, ours, theirs, 100))
	for _, of := range []string{"main~1:a", "main:a", "side:a", "main:dir/b", "side:dir/c", "main:dir", "side^{tree}", "main~1"} {
		require.ErrorIs(t, rehash(lying{y, ring.SHA(y.git("rev-parse", of))}, ours, theirs, 100), errDamaged, of)
	}
	require.NoError(t, rehash(lying{y, ring.SHA(y.git("rev-parse", "main:same"))}, ours, theirs, 100), "which git does not read")
}

func TestTheFollowerLetsGitMergeNothingUnhashed(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.file("a", strings.Repeat("line\n", 30), "one", "-S")
	o.git(o.work, "checkout", "-q", "-b", "side")
	theirs := o.file("a", strings.Repeat("line\n", 30)+"end\n", "theirs", "-S")
	o.git(o.work, "checkout", "-q", "main")
	ours := o.file("a", "begin\n"+strings.Repeat("line\n", 30), "ours", "-S")
	f := o.follow(a, merging)
	lie := ring.SHA(o.git(o.work, "rev-parse", string(theirs)+":a"))
	for _, told := range []bool{true, false} {
		for sha := range strings.FieldsSeq(o.git(o.work, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")) {
			kind := o.git(o.work, "cat-file", "-t", sha)
			body := raw(t, o.work, kind, sha)
			if ring.SHA(sha) == lie && !told {
				body = append([]byte("evil\n"), body...)
			}
			storeLoose(t, f.mirror.dir, ring.SHA(sha), kind, body)
		}
		f.mirror.rest()
		_, err := f.newHeads().merge(t.Context(), ours, theirs)
		if told {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, errDamaged)
	}
}

// raw are the bytes of an object as git has them.
func raw(t *testing.T, dir, kind, sha string) []byte {
	cmd := exec.Command("git", "cat-file", kind, sha)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}
