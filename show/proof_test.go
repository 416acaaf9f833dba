package show

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

func TestAProofSaysWhoWhatAndWhatNobodyCanCheckOnEveryTerminal(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	digest := "sha256:" + strings.Repeat("a", 64)
	c := proof.Checked{
		Holds: true, Host: "edge-1", Made: at, App: "shop", Service: "web", Slot: 1, Version: ring.Version("1:" + strings.Repeat("b", 64)),
		Container: proof.Container{ID: strings.Repeat("c", 64), Name: "shop-web-1", State: ring.StateRunning, Started: at},
		Commit:    &proof.Commit{SHA: ring.SHA(strings.Repeat("d", 40)), Signer: "alice@example.org", Fingerprint: "SHA256:" + strings.Repeat("e", 43), Subject: "Serve more", ClaimedAt: at},
		Chain:     &proof.ChainFound{From: ring.SHA(strings.Repeat("f", 40)), Commits: 1, Signers: map[string]int{"alice@example.org": 1}},
		Image:     &proof.ImageFound{Pin: "nginx:1.27@" + digest, Digest: digest},
		Files:     []string{"apps/shop/compose.yaml"}, Journal: &proof.Lines{From: 1, Head: 44, Hash: strings.Repeat("9", 64)},
		Steps: []proof.Step{{What: "chain", OK: true, Says: "1 commits are good by your keys"}, {What: "version", OK: true, Says: "as the label says"}},
		Word:  []string{"that container cccccccccccc runs with these labels, and what else it was started with"}, LeftOut: []string{"the journal's lines up to 40"},
	}
	for _, width := range []int{60, 80, 120} {
		s := screen.New(false, width)
		Proof(s, &c)
		for line := range strings.Lines(s.String()) {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), width, line)
		}
	}
	s := screen.New(false, 80)
	Proof(s, &c)
	for _, says := range []string{
		"shop/web on edge-1: the proof holds", "alice@example.org", "ddddddd of 2026-03-01 12:00:00", "digest " + digest + "\n",
		"the host looked the digest up", "since 2026-03-01 12:00:00", "1 commit after it", "ok chain:", "which nobody can check", "not in this proof",
	} {
		require.Contains(t, s.String(), says)
	}

	c.Holds, c.Faults = false, []proof.Fault{{Code: proof.ChainGap, Says: "the chain has a gap", Hint: "ask again"}}
	s = screen.New(false, 80)
	Proof(s, &c)
	require.Contains(t, s.String(), "does not hold\n  ChainGap: the chain has a gap\n    hint: ask again\n")
}
