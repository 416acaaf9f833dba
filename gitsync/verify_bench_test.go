package gitsync

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// BenchmarkVerify is a range of 1,000 SSH-signed commits, from a store in memory.
func BenchmarkVerify(b *testing.B) {
	const commits = 1000
	y := newYard(b)
	y.allow("alice", `namespaces="git"`)
	alice := y.signer("alice")
	m := history{}
	root := m.add(noon.Add(-day), "root\n")
	tip := root
	for i := range commits {
		d := plain(noTree, noon.Add(time.Duration(i-commits)*time.Second), tip)
		d.text = fmt.Sprintln("commit", i)
		body := []byte(d.signed(sshSign(b, alice, d.payload(), "git")))
		tip, _ = objectHash("commit", body)
		m[tip] = body
	}
	trust := y.trust()
	b.ReportAllocs()
	for b.Loop() {
		all, refusal, err := trust.Range(m, root, tip, noon, nil)
		require.NoError(b, err)
		require.Nil(b, refusal)
		require.Len(b, all, commits)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*commits), "ns/commit")
}

// BenchmarkVerifyOpenPGP is one commit, signed by gpg.
func BenchmarkVerifyOpenPGP(b *testing.B) {
	y := newYard(b)
	y.gpg()
	bob := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	tip := y.pgpCommit(bob, noon, "")
	_, body, err := y.Raw(tip)
	require.NoError(b, err)
	m := history{tip: body}
	trust := y.trust(y.keyring(bob), func(c *TrustConfig) { c.AllowedSigners = "" })
	for b.Loop() {
		_, refusal, err := trust.One(m, tip, noon, func(ring.SHA) time.Time { return noon })
		require.NoError(b, err)
		require.Nil(b, refusal)
	}
}
