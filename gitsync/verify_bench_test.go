package gitsync

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// signedChain is that many commits signed with an SSH key, a second apart, on top
// of one more.
func (y *yard) signedChain(commits int) (m history, root, tip ring.SHA) {
	y.t.Helper()
	y.allow("alice", `namespaces="git"`)
	alice := y.signer("alice")
	m = history{}
	root = m.add(noon.Add(-day), "root\n")
	tip = root
	for i := range commits {
		d := plain(noTree, noon.Add(time.Duration(i-commits)*time.Second), tip)
		d.text = fmt.Sprintln("commit", i)
		body := []byte(d.signed(sshSign(y.t, alice, d.payload(), "git")))
		tip, _ = objectHash("commit", body)
		m[tip] = body
	}
	return m, root, tip
}

// BenchmarkVerify is a range of 1,000 SSH-signed commits: from memory, where
// reading costs nothing, and from a mirror that was just opened, where what it
// takes to read each commit once is not counted. cpu-ms/1000 is processor time,
// the garbage collector's included, and so the same on a busy machine.
func BenchmarkVerify(b *testing.B) {
	const commits = 1000
	y := newYard(b)
	m, root, tip := y.signedChain(commits)
	trust := y.trust()
	verify := func(b *testing.B, o Objects) {
		all, refusal, err := trust.Range(o, root, tip, noon, nil)
		require.NoError(b, err)
		require.Nil(b, refusal)
		require.Len(b, all, commits)
	}
	b.Run("memory", func(b *testing.B) {
		b.ReportAllocs()
		before := processorTime(b)
		for b.Loop() {
			verify(b, m)
		}
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/1000")
	})
	b.Run("mirror", func(b *testing.B) {
		store := y.mirrorOf(m, tip)
		var reading, whole time.Duration
		for b.Loop() {
			store.rest() // forgets what it holds
			before := processorTime(b)
			for sha := range m {
				_, _, err := store.Raw(sha)
				require.NoError(b, err)
			}
			store.rest()
			between := processorTime(b)
			verify(b, store)
			reading, whole = reading+between-before, whole+processorTime(b)-between
		}
		b.ReportMetric(float64((whole-reading).Microseconds())/1000/float64(b.N), "cpu-ms/1000")
		b.ReportMetric(float64(reading.Microseconds())/1000/float64(b.N), "reading-ms/1000")
	})
}

// mirrorOf is a mirror that holds these commits in one pack.
func (y *yard) mirrorOf(m history, tip ring.SHA) *mirror {
	y.t.Helper()
	y.git("hash-object", "-t", "tree", "-w", "/dev/null")
	objects := filepath.Join(y.dir, ".git", "objects")
	for sha, body := range m {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, err := fmt.Fprintf(w, "commit %d\x00%s", len(body), body)
		require.NoError(y.t, err)
		require.NoError(y.t, w.Close())
		require.NoError(y.t, os.MkdirAll(filepath.Join(objects, string(sha[:2])), 0o700))
		require.NoError(y.t, os.WriteFile(filepath.Join(objects, string(sha[:2]), string(sha[2:])), z.Bytes(), 0o600))
	}
	y.git("update-ref", "refs/heads/main", string(tip))
	y.git("repack", "-adq")
	store := newMirror(filepath.Join(y.dir, ".git"), "prod", Limits{}.withDefaults())
	y.t.Cleanup(store.rest)
	return store
}

// processorTime is what this process has used so far, all threads together.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
