package proof_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
)

func TestAProofThatNobodyTouchedHolds(t *testing.T) {
	s := newSample(t)
	ask := s.asked()
	ask.Host, ask.ID, ask.Head, ask.Oldest = "edge-1", "shop/web", s.proof.Journal.Head[:12], s.clock
	found := proof.Check(s.file(), ask)
	require.Empty(t, found.Faults)
	require.True(t, found.Holds)
	require.Equal(t, s.tip, found.Commit.SHA)
	require.Equal(t, "alice@example.org", found.Commit.Signer)
	require.Equal(t, "And another", found.Commit.Subject)
	require.Equal(t, map[string]int{"alice@example.org": 1, "bob@example.org": 1}, found.Chain.Signers)
	require.Equal(t, s.intro, found.Chain.From)
	require.True(t, found.Chain.Known)
	require.Equal(t, digestA, found.Image.Digest)
	require.False(t, found.Image.Signed)
	word := strings.Join(found.Word, "\n")
	for _, says := range []string{"PASSWORD of .env", "LEVEL=info", "nginx:1.27 meant sha256:aaaa"} {
		require.Contains(t, word, says)
	}
	for _, step := range found.Steps {
		require.True(t, step.OK, step)
	}
}

func TestACommitThatNamesTheDigestIsSaidToDoSo(t *testing.T) {
	s := newSample(t)
	files := sampleFiles("three\n")
	files["apps/shop/compose.yaml"] = strings.Replace(composeFile, "nginx:1.27", "nginx:1.27@"+digestA, 1)
	s.another(&alice, s.clock, files)
	found := proof.Check(s.file(), s.asked())
	require.Empty(t, found.Faults)
	require.True(t, found.Image.Signed)

	// A host that ran another image cannot have it look so, whatever it writes.
	s.proof.Statement.Pins["web"] = proof.Pin{Image: "nginx:1.27@" + digestB}
	s.proof.Statement.Container.Image = "nginx:1.27@" + digestB
	c, err := proof.Compute(s.commitOf(s.tip), &s.proof.Statement)
	require.NoError(t, err)
	s.proof.Statement.Version = c.Service.Version
	s.label("gitring.version", string(c.Service.Version))
	s.journal()
	found = proof.Check(s.file(), s.asked())
	require.Len(t, found.Faults, 1, "%v", found.Faults)
	require.Equal(t, proof.PinDiffers, found.Faults[0].Code)
	require.Contains(t, found.Faults[0].Says, "the commit asks for "+digestA)
}

// The verdict on signatures is the host's word, about the very image that runs.
func TestAVerdictOnTheImageIsTold(t *testing.T) {
	s := newSample(t)
	found := map[string]ring.ImageVerdict{}
	for _, v := range []ring.ImageVerdict{
		{Image: "docker.io/library/nginx@" + digestA, Good: true, Rule: "r", Keys: []string{"sha256:0011223344556677"}, Form: "bundle", At: s.clock},
		{Image: "docker.io/library/nginx@" + digestB, Rule: "r", At: s.clock},
	} {
		found[v.Image] = v
	}
	require.Nil(t, proof.VerdictOf(found, "nginx:1.27@"+digestB), "it was not good")
	s.proof.Statement.Verdict = proof.VerdictOf(found, "nginx:1.27@"+digestA)
	require.NotNil(t, s.proof.Statement.Verdict)
	s.journal()
	checked := proof.Check(s.file(), s.asked())
	require.Empty(t, checked.Faults)
	require.Contains(t, strings.Join(checked.Word, "\n"), "signed by key sha256:001122334455 (bundle)")
	require.Equal(t, s.proof.Statement.Verdict, checked.Image.Verdict)
}

// Whoever names no commit is told that he took the beginning on its own signature.
func TestABeginningThatNobodyNamedIsToldOf(t *testing.T) {
	s := newSample(t)
	ask := s.asked()
	ask.From = nil
	found := proof.Check(s.file(), ask)
	require.Empty(t, found.Faults)
	require.False(t, found.Chain.Known)
	require.Contains(t, strings.Join(found.LeftOut, "\n"), "name a commit that you know with --from")
}

// A key that expired since still counts for what others built on in time.
func TestAKeyThatExpiredSinceCountsForWhatWasBuiltOnInTime(t *testing.T) {
	s := newSample(t)
	ask := s.asked()
	ask.Trust, ask.Now = s.trust("strict", alice.line("")+bob.line(`,valid-before="20260302"`), ""), s.clock.AddDate(1, 0, 0)
	require.Empty(t, proof.Check(s.file(), ask).Faults)

	// It is the last one that nobody built on: who knows when it was there, says so.
	s.another(&bob, s.clock, sampleFiles("four\n"))
	found := proof.Check(s.file(), ask)
	require.Len(t, found.Faults, 1)
	require.Contains(t, found.Faults[0].Hint, "--at")
	ask.Now, ask.Wall = s.clock.Add(time.Minute), ask.Now
	require.Empty(t, proof.Check(s.file(), ask).Faults)
}

// Nothing between the key's expiry and now stands on what a thief makes: that somebody who
// still counts builds on it later does not make it older.
func TestBuildingOnItLaterDoesNotMakeABackdatedCommitOlder(t *testing.T) {
	s := newSample(t)
	stolen := s.commitAt(&bob, s.clock, s.tree(sampleFiles("evil\n")), "Backdated", s.tip)
	s.clock = s.clock.AddDate(0, 1, 0)
	s.tip = s.commit(&alice, s.tree(sampleFiles("five\n")), "On top", stolen)
	s.make(s.tip, s.intro)
	ask := s.asked()
	ask.Trust = s.trust("strict", alice.line("")+bob.line(`,valid-before="20260302"`), "")
	found := proof.Check(s.file(), ask)
	require.Len(t, found.Faults, 1)
	require.Equal(t, proof.Code(ring.KeyExpiredFirstSeen), found.Faults[0].Code)
}

func TestANewerProofContinuesAnEarlierOne(t *testing.T) {
	s := newSample(t)
	older := s.file()
	s.lines = append(s.lines, strings.Replace(s.lines[3], `"seq":44`, `"seq":45`, 1))
	s.proof.Journal = chainOf(40, s.lines)
	ask := s.asked()
	ask.Older = older
	require.Empty(t, proof.Check(s.file(), ask).Faults)
	line, err := proof.LastLine(older)
	require.NoError(t, err)
	require.EqualValues(t, 44, line)
}

// The proof of one service in a repository of 5,000 commits is under 1 MiB, and is judged
// while somebody waits.
func TestAProofOfFiveThousandCommitsIsUnderAMebibyte(t *testing.T) {
	s := newSample(t)
	files := sampleFiles("three\n")
	tip := s.tip
	for i := range 5_000 - 3 {
		who := []*person{&alice, &bob}[i%2]
		files["README.md"] = fmt.Sprintf("edition %d\n", i)
		tip = s.commit(who, s.tree(files), fmt.Sprintf("Change what people read of part %d, as it was asked for", i), tip)
	}
	s.tip = tip
	// As a host does: folders and files of the last commit alone.
	keep := map[ring.SHA]bool{}
	for _, name := range []string{"apps/shop/compose.yaml", "apps/shop/web.conf"} {
		keep[s.blob(files[name])] = true
	}
	last := s.objects[tip]
	root := ring.SHA(last.Body[5:45])
	keep[root] = true
	for _, id := range s.order {
		if o := s.objects[id]; o.Kind == "commit" || o.Kind == "tree" && !strings.Contains(string(o.Body), "README") {
			keep[id] = true
		}
	}
	order := s.order
	s.order = nil
	for _, id := range order {
		if keep[id] {
			s.order = append(s.order, id)
		}
	}
	s.make(tip, s.intro)
	s.proof.Statement.Chain.Commits = 4_999
	s.journal()
	file := s.file()
	t.Logf("%d bytes, %d of them packed objects", len(file), len(s.proof.Objects))
	require.Less(t, len(file), 1<<20)
	began := time.Now()
	found := proof.Check(file, s.asked())
	t.Logf("judged in %s", time.Since(began).Round(time.Millisecond))
	require.Empty(t, found.Faults)
	require.Equal(t, 4_999, found.Chain.Commits)
}
