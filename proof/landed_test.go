package proof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
)

// landing is what a forge's button made of a branch, and what a person asks who knows that
// his forge does so.
func landing(t *testing.T, make func(s *sample) (tip ring.SHA, heads map[string]ring.SHA)) (*sample, proof.Asked) {
	s := newSample(t)
	tip, heads := make(s)
	s.tip = tip
	s.make(tip, s.intro)
	s.proof.Statement.Chain.Heads = heads
	s.journal()
	ask := s.asked()
	ask.Trust = s.trust("forge-merge", alice.line("")+bob.line(""), "")
	return s, ask
}

const pull7 = "refs/pull/7/head"

func TestLandingsAreJudgedByTheSignedContentThatTheyHold(t *testing.T) {
	files := func(conf, readme string) map[string]string {
		f := sampleFiles(conf)
		f["README.md"] = readme
		return f
	}
	for _, tt := range []struct {
		name string
		make func(s *sample) (ring.SHA, map[string]ring.SHA)
		code ring.Code // "" holds
		says string
	}{
		{name: "a merge of a branch that was up to date", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			head := s.commit(&bob, s.tree(files("four\n", "ours\n")), "On a branch", s.tip)
			return s.commit(nil, s.tree(files("four\n", "ours\n")), "Merge pull request #7", s.tip, head), nil
		}},
		{name: "a squash, by the ref of its pull request", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			head := s.commit(&bob, s.tree(files("four\n", "ours\n")), "On a branch", s.tip)
			return s.commit(nil, s.tree(files("four\n", "ours\n")), "Another file (#7)", s.tip), map[string]ring.SHA{pull7: head}
		}},
		{name: "a merge of a branch that was not up to date", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			head := s.commit(&bob, s.tree(files("two\n", "theirs\n")), "On an old branch", s.middle())
			return s.commit(nil, s.tree(files("three\n", "theirs\n")), "Merge pull request #7", s.tip, head), nil
		}},
		{name: "a merge with a file that nobody signed", code: ring.NotSignedContent, says: "the trees differ", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			head := s.commit(&bob, s.tree(files("four\n", "ours\n")), "On a branch", s.tip)
			return s.commit(nil, s.tree(files("evil\n", "ours\n")), "Merge pull request #7", s.tip, head), nil
		}},
		{name: "a squash with a file that nobody signed", code: ring.NotSignedContent, says: "the trees differ", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			head := s.commit(&bob, s.tree(files("four\n", "ours\n")), "On a branch", s.tip)
			return s.commit(nil, s.tree(files("evil\n", "ours\n")), "Another file (#7)", s.tip), map[string]ring.SHA{pull7: head}
		}},
		{name: "a squash of a head that nobody signed", code: ring.Unsigned, says: "was landed by the forge from", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			head := s.commit(nil, s.tree(files("evil\n", "ours\n")), "On a branch", s.tip)
			return s.commit(nil, s.tree(files("evil\n", "ours\n")), "Another file (#7)", s.tip), map[string]ring.SHA{pull7: head}
		}},
		{name: "a squash whose head is left out", code: ring.HeadUnavailable, says: "", make: func(s *sample) (ring.SHA, map[string]ring.SHA) {
			s.commit(&bob, s.tree(files("four\n", "ours\n")), "On a branch", s.tip)
			return s.commit(nil, s.tree(files("four\n", "ours\n")), "Another file (#7)", s.tip), nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, ask := landing(t, tt.make)
			found := proof.Check(s.file(), ask)
			if tt.code == "" {
				require.Empty(t, found.Faults)
				require.Equal(t, 1, found.Chain.Landed)
				require.Equal(t, "bob@example.org", found.Commit.Signer)
				require.Contains(t, found.Commit.Note, "landed by the forge")
				return
			}
			require.Len(t, found.Faults, 1, "%v", found.Faults)
			require.Equal(t, proof.Code(tt.code), found.Faults[0].Code, found.Faults[0].Says)
			require.Contains(t, found.Faults[0].Says, tt.says)
		})
	}
}

// Mode forge-merge is for whoever checks to choose: a proof cannot ask for it.
func TestALandingIsNoSignedCommitForWhoeverDoesNotSaySo(t *testing.T) {
	s, _ := landing(t, func(s *sample) (ring.SHA, map[string]ring.SHA) {
		head := s.commit(&bob, s.tree(sampleFiles("four\n")), "On a branch", s.tip)
		return s.commit(nil, s.tree(sampleFiles("four\n")), "Merge pull request #7", s.tip, head), nil
	})
	found := proof.Check(s.file(), s.asked())
	require.Len(t, found.Faults, 1)
	require.Equal(t, proof.Code(ring.Unsigned), found.Faults[0].Code)
}

// 5,000 commits of which every second one is a merge by the forge's button: one for each
// branch of one signed commit.
func TestAProofOfTwentyFiveHundredLandingsIsUnderAMebibyte(t *testing.T) {
	s := newSample(t)
	files := sampleFiles("three\n")
	tip := s.tip
	for i := range 2_500 - 1 {
		files["README.md"] = fmt.Sprintf("edition %d\n", i)
		root := s.tree(files)
		head := s.commit([]*person{&alice, &bob}[i%2], root, fmt.Sprintf("Change part %d", i), tip)
		tip = s.commit(nil, root, fmt.Sprintf("Merge pull request #%d", i), tip, head)
	}
	s.tip = tip
	keep := map[ring.SHA]bool{ring.SHA(s.objects[tip].Body[5:45]): true}
	for _, name := range []string{"apps/shop/compose.yaml", "apps/shop/web.conf"} {
		keep[s.blob(files[name])] = true
	}
	s.order = slices.DeleteFunc(s.order, func(id ring.SHA) bool {
		o := s.objects[id]
		return !keep[id] && o.Kind != "commit" && (o.Kind != "tree" || strings.Contains(string(o.Body), "README"))
	})
	s.make(tip, s.intro)
	file := s.file()
	t.Logf("%d bytes", len(file))
	require.Less(t, len(file), 1<<20)
	ask := s.asked()
	ask.Trust = s.trust("forge-merge", alice.line("")+bob.line(""), "")
	found := proof.Check(file, ask)
	require.Empty(t, found.Faults)
	require.Equal(t, 5_000, found.Chain.Commits)
	require.Equal(t, 2_499, found.Chain.Landed)
}
