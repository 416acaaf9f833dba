package gitsync

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What a push vouches for is mostly on the branch already: a web edit, or a commit
// that waits for a second person.
func TestAPushIsJudgedWithWhatItVouchesFor(t *testing.T) {
	for _, row := range []struct {
		name string
		push func(y *yard) (at ring.SHA)
		want ring.Code // "" is accept
	}{
		{"a web edit that is there", func(y *yard) ring.SHA {
			at := y.edit("", "web", texts("a", "2"))
			y.edit("alice", vouchFor(at), nil)
			return at
		}, ""},
		{"a web edit with a signed commit on top", func(y *yard) ring.SHA {
			c := y.edit("", "web", texts("a", "2"))
			at := y.edit("alice", "two", texts("b", "2"))
			y.edit("alice", vouchFor(c), nil)
			return at
		}, ""},
		{"two web edits, one of which it names", func(y *yard) ring.SHA {
			c := y.edit("", "web", texts("a", "2"))
			at := y.edit("", "web", texts("a", "3"))
			y.edit("alice", vouchFor(c), nil)
			return at
		}, ring.Unsigned},
		{"a web edit that a merge brought", func(y *yard) ring.SHA {
			y.git("checkout", "-q", "-b", "side")
			c := y.edit("", "web", texts("b", "2"))
			y.back()
			y.edit("alice", "two", texts("a", "2"))
			at := y.merge("alice", string(c))
			y.edit("alice", vouchFor(c), nil)
			return at
		}, ""},
		{"by one without the role", func(y *yard) ring.SHA {
			at := y.edit("", "web", texts("a", "2"))
			y.edit("bob", vouchFor(at), nil)
			return at
		}, ring.VouchNotAllowed},
		{"a commit that is nowhere", func(y *yard) ring.SHA {
			at := y.head()
			y.edit("alice", vouchFor("0123456789012345678901234567890123456789"), nil)
			return at
		}, ring.VouchOutside},
		{"an unsigned commit that is there, signed now", func(y *yard) ring.SHA {
			good := y.head()
			at := y.edit("", "web", texts("a", "2"))
			y.git("reset", "-q", "--hard", string(good))
			y.edit("alice", "web", texts("a", "2"))
			return at
		}, ""},
		{"an unsigned commit below a signed one, both signed anew", func(y *yard) ring.SHA {
			good := y.head()
			y.edit("", "web", texts("a", "2"))
			at := y.edit("alice", "two", texts("b", "2"))
			y.git("reset", "-q", "--hard", string(good))
			y.edit("alice", "web", texts("a", "2"))
			y.edit("alice", "two", texts("b", "2"))
			return at
		}, ""},
		{"an unsigned commit that is there, taken away", func(y *yard) ring.SHA {
			good := y.head()
			at := y.edit("", "web", texts("a", "2"))
			y.git("reset", "-q", "--hard", string(good))
			return at
		}, ""},
		{"a signed commit below an unsigned one, both signed anew", func(y *yard) ring.SHA {
			good := y.head()
			y.edit("alice", "two", texts("b", "2")) // hosts may trust it
			at := y.edit("", "web", texts("a", "2"))
			y.git("reset", "-q", "--hard", string(good))
			y.edit("alice", "two", texts("b", "3"))
			return at
		}, ring.NonFastForward},
		{"a signed commit below an unsigned one that goes alone", func(y *yard) ring.SHA {
			y.edit("alice", "two", texts("b", "2"))
			good := y.head()
			at := y.edit("", "web", texts("a", "2"))
			y.git("reset", "-q", "--hard", string(good))
			y.edit("alice", "web", texts("a", "2"))
			return at
		}, ""},
		{"an unsigned commit that somebody vouched for", func(y *yard) ring.SHA {
			good := y.head()
			c := y.edit("", "web", texts("a", "2"))
			at := y.edit("alice", vouchFor(c), nil)
			y.git("reset", "-q", "--hard", string(good))
			y.edit("alice", "web", texts("a", "2"))
			return at
		}, ring.NonFastForward},
		{"a commit of a key that hosts may have known", func(y *yard) ring.SHA {
			good := y.head()
			y.key("mallory")
			at := y.edit("mallory", "web", texts("a", "2"))
			y.git("reset", "-q", "--hard", string(good))
			y.edit("alice", "web", texts("a", "2"))
			return at
		}, ring.NonFastForward},
		{"unsigned again in the place of an unsigned one", func(y *yard) ring.SHA {
			good := y.head()
			at := y.edit("", "web", texts("a", "2"))
			y.git("reset", "-q", "--hard", string(good))
			y.edit("", "web", texts("a", "3"))
			return at
		}, ring.Unsigned},
		{"the first commit of all", func(y *yard) ring.SHA {
			at := y.head()
			y.edit("alice", vouchFor(at), nil)
			return at
		}, ring.VouchOutside},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			y.edit("alice", "one", texts("a", "1"))
			at := row.push(y)
			_, refusal, err := y.trust().Pushed(y, y.aids(), at, y.head(), noon)
			require.NoError(t, err)
			if row.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, row.want, refusal.Code, refusal.Says)
		})
	}
}
