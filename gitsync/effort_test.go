package gitsync

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// crate is objects in memory.
type crate map[ring.SHA]crated

type crated struct {
	kind string
	body []byte
}

func (s crate) Raw(sha ring.SHA) (string, []byte, error) {
	o, ok := s[sha]
	if !ok {
		return "", nil, ErrMissing
	}
	return o.kind, o.body, nil
}

func (s crate) put(kind, body string) ring.SHA {
	sha, _ := objectHash(kind, []byte(body))
	s[sha] = crated{kind, []byte(body)}
	return sha
}

// unsigned is a commit on top of another, as anybody with the right to push makes it.
func (s crate) unsigned(message string, parent ring.SHA) ring.SHA {
	text := "tree " + string(s.put("tree", "")) + "\n"
	if parent != "" {
		text += "parent " + string(parent) + "\n"
	}
	who := fmt.Sprintf("Eve <eve@example.org> %d +0000\n", noon.Unix())
	return s.put("commit", text+"author "+who+"committer "+who+"\n"+message+"\n")
}

// Whoever may push can make commits that each lead far away. Together they end
// within a bound, with a code.
func TestUnsignedCommitsDoNotKeepTheVerifierBusy(t *testing.T) {
	const n = 600
	for _, row := range []struct {
		name  string
		trust []func(*TrustConfig)
		push  func(s crate) (anchor, tip ring.SHA)
	}{
		{"each names a head that lies far behind", []func(*TrustConfig){forgeMerge}, func(s crate) (anchor, tip ring.SHA) {
			first := s.unsigned("first", "")
			anchor = first
			for range n {
				anchor = s.unsigned("history", anchor)
			}
			tip = anchor
			for range n {
				tip = s.unsigned("squash\n\nGitring-Head: "+string(first), tip)
			}
			return anchor, tip
		}},
		{"each vouches for the oldest", []func(*TrustConfig){inRepo}, func(s crate) (anchor, tip ring.SHA) {
			anchor = s.unsigned("trusted", "")
			first := s.unsigned("oldest", anchor)
			tip = first
			for range n {
				tip = s.unsigned("vouch\n\nGitring-Vouch: "+string(first), tip)
			}
			return anchor, tip
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			s := crate{}
			anchor, tip := row.push(s)
			_, refusal, err := y.trust(append(row.trust, func(c *TrustConfig) { c.MaxRange = n + 1 })...).Range(s, anchor, tip, noon, nil)
			require.NoError(t, err)
			require.NotNil(t, refusal)
			require.Equal(t, ring.RangeTooLarge, refusal.Code, refusal.Says)
			require.Equal(t, tip, refusal.Commit)
			require.Contains(t, refusal.Says, "takes too long")
		})
	}
}
