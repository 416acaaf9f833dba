package gitsync

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// whoSigned asks for the signer of a file as a follower does, without a store.
func whoSigned(t *testing.T, y *yard, trust *Trust, tip ring.SHA, file string, patterns ...string) string {
	t.Helper()
	q := &fileSigner{t: trust, o: y, now: noon, row: func(ring.SHA) (ring.Verified, bool, error) { return ring.Verified{}, false, nil }}
	changer, err := q.changer(tip, file, walked{})
	require.NoError(t, err)
	why, err := q.says(tip, changer, file, patterns)
	require.NoError(t, err)
	return why
}

// The oracle is told by hand in each row: whether alice answers for the file.
func TestWhoSignedTheNewestChangeOfAFile(t *testing.T) {
	const file, alice = "web/over.yaml", "alice@example.org"
	edit := func(y *yard, key, text string) ring.SHA { return y.edit(key, "x", map[string]string{file: text}) }
	other := func(y *yard, key, text string) ring.SHA {
		return y.edit(key, "x", map[string]string{"web/compose.yaml": text})
	}
	for _, tt := range []struct {
		name   string
		make   func(y *yard)
		counts bool
		says   string
	}{
		{"alice signed it", func(y *yard) { edit(y, "alice", "1") }, true, ""},
		{"bob signed it", func(y *yard) { edit(y, "bob", "1") }, false, "was signed by bob@example.org"},
		{"bob changed other files since", func(y *yard) { edit(y, "alice", "1"); other(y, "bob", "1"); other(y, "bob", "2") }, true, ""},
		{"bob changed it later", func(y *yard) { edit(y, "alice", "1"); edit(y, "bob", "2") }, false, "bob@example.org"},
		{"and alice after him", func(y *yard) { edit(y, "alice", "1"); edit(y, "bob", "2"); edit(y, "alice", "3") }, true, ""},
		{"bob brought back what alice took out", func(y *yard) { edit(y, "alice", "1"); edit(y, "alice", ""); edit(y, "bob", "1") }, false, "bob@example.org"},
		{"bob moved it there", func(y *yard) {
			y.edit("alice", "x", map[string]string{"old/over.yaml": "1"})
			y.edit("bob", "x", map[string]string{"old/over.yaml": "", file: "1"})
		}, false, "bob@example.org"},
		{"bob made it executable", func(y *yard) {
			edit(y, "alice", "1")
			y.git("update-index", "--chmod=+x", file)
			y.commit("bob", noon, "x")
			y.git("reset", "-q", "--hard")
		}, false, "bob@example.org"},
		{"bob merged the branch of alice", func(y *yard) {
			start := other(y, "bob", "1")
			y.checkout(start, "side")
			edit(y, "alice", "1")
			y.checkout(start, "main")
			y.edit("bob", "x", map[string]string{"db": "1"})
			y.merge("bob", "side")
		}, true, ""},
		{"alice merged the branch of bob", func(y *yard) {
			start := other(y, "alice", "1")
			y.checkout(start, "side")
			edit(y, "bob", "1")
			y.checkout(start, "main")
			y.edit("alice", "x", map[string]string{"db": "1"})
			y.merge("alice", "side")
		}, false, "bob@example.org"},
		{"bob merged back what alice took out since", func(y *yard) {
			had := edit(y, "alice", "1")
			y.checkout(had, "side")
			other(y, "bob", "1")
			y.checkout(had, "main")
			edit(y, "alice", "")
			y.git("merge", "-q", "--no-ff", "--no-commit", "side")
			y.git("checkout", "side", "--", file)
			y.commit("bob", noon, "merge")
		}, false, "bob@example.org"},
		{"bob merged both changes into one", func(y *yard) {
			const long = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
			start := edit(y, "alice", long)
			y.checkout(start, "side")
			edit(y, "alice", "0\n"+long)
			y.checkout(start, "main")
			edit(y, "alice", long+"10\n")
			y.merge("bob", "side")
		}, false, "bob@example.org"},
		{"bob merged the history of another repository", func(y *yard) {
			other(y, "bob", "1")
			y.git("checkout", "-q", "--orphan", "elsewhere")
			y.git("rm", "-rfq", ".")
			edit(y, "alice", "1")
			y.git("checkout", "-q", "main")
			y.git("-c", "gpg.format=ssh", "merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "x", "-S"+y.keys+"/bob", "elsewhere")
		}, false, "bob@example.org"},
		{"nobody signed it", func(y *yard) { edit(y, "", "1"); other(y, "alice", "1") }, false, "no signature of one signer"},
		{"alice vouched for what bob signed", func(y *yard) {
			sha := edit(y, "bob", "1")
			y.commit("alice", noon, "fine\n\nGitring-Vouch: "+string(sha))
			other(y, "bob", "1")
		}, true, ""},
		{"bob says that he vouches", func(y *yard) {
			sha := edit(y, "bob", "1")
			y.commit("bob", noon, "fine\n\nGitring-Vouch: "+string(sha))
		}, false, "bob@example.org"},
		{"alice vouched for the change before", func(y *yard) {
			sha := edit(y, "bob", "1")
			y.commit("alice", noon, "fine\n\nGitring-Vouch: "+string(sha))
			edit(y, "bob", "2")
		}, false, "bob@example.org"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			y.edit("alice", "first", map[string]string{"readme": "1"})
			tt.make(y)
			why := whoSigned(t, y, y.trust(), y.head(), file, alice)
			require.Equal(t, tt.counts, why == "", why)
			require.Contains(t, why, tt.says)
			if !tt.counts {
				require.Contains(t, why, file)
			}
		})
	}
}

func TestASignerOfAGrantIsNamedAsABindingNamesOne(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	y.gpg()
	carol := y.pgpKey(noon.Add(-day), "carol", "ed25519", "sign", "never")
	y.edit("alice", "x", map[string]string{"a": "1"})
	y.pgpEdit(carol, map[string]string{"c": "1"})
	tip := y.head()
	trust, err := y.load(y.keyring(carol))
	require.NoError(t, err)
	for _, tt := range []struct {
		file, pattern string
		counts        bool
	}{
		{"a", "alice@example.org", true},
		{"a", "*@example.org", true},
		{"a", "*@example.com", false},
		{"a", "alice", false},
		{"c", carol, true},
		{"c", "carol@example.org", false},
		{"c", "*", false},
	} {
		why := whoSigned(t, y, trust, tip, tt.file, tt.pattern)
		require.Equal(t, tt.counts, why == "", "%s %s: %s", tt.file, tt.pattern, why)
	}
	require.Contains(t, whoSigned(t, y, trust, tip, "c", "alice@example.org"), carol, "the user id is what its owner writes")
}

// What a key signed counts as long as the key does.
func TestARevokedOrRemovedSignerAnswersForNoFile(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	tip := y.edit("alice", "x", map[string]string{"a": "1"})
	require.Empty(t, whoSigned(t, y, y.trust(), tip, "a", "alice@example.org"))
	all := y.signers
	y.signers = all[1:]
	require.Contains(t, whoSigned(t, y, y.trust(), tip, "a", "alice@example.org"), "no signature")
	y.signers = all
	y.revoked = append(y.revoked, y.publicLine("alice"))
	require.Contains(t, whoSigned(t, y, y.trust(), tip, "a", "alice@example.org"), "revoked")
}

// A landing has no signature of its own: what counts is what the host accepted it for.
func TestALandingIsItsOneSigners(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	tip := y.edit("", "x", map[string]string{"a": "1"})
	trust := y.trust()
	id := identity{}
	for _, lines := range trust.ssh {
		id.fingerprint = ssh.FingerprintSHA256(lines[0].key)
	}
	for _, tt := range []struct {
		name   string
		row    ring.Verified
		counts bool
	}{
		{"alice's alone", ring.Verified{Signer: "alice@example.org", Fingerprint: id.fingerprint, Note: "content by alice@example.org, landed by the forge"}, true},
		{"somebody else's too", ring.Verified{Signer: "alice@example.org", Fingerprint: id.fingerprint, Note: "content by alice@example.org, bob@example.org, landed by the forge"}, false},
		{"of a key that no list has", ring.Verified{Signer: "alice@example.org", Fingerprint: "SHA256:gone", Note: "content by alice@example.org, landed by the forge"}, false},
	} {
		q := &fileSigner{t: trust, o: y, now: noon, row: func(ring.SHA) (ring.Verified, bool, error) { return tt.row, true, nil }}
		why, err := q.says(tip, tip, "a", []string{"alice@example.org"})
		require.NoError(t, err)
		require.Equal(t, tt.counts, why == "", "%s: %s", tt.name, why)
	}
}

// A walk that goes on from an earlier one finds what a whole one does.
func TestAnEarlierWalkSavesReadingAndChangesNothing(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	changed := y.edit("alice", "x", map[string]string{"web/a": "1"})
	for range 20 {
		y.commit("alice", noon, "x")
	}
	before := y.head()
	y.commit("alice", noon, "x")
	counting := &countedObjects{Objects: y}
	q := &fileSigner{t: y.trust(), o: counting, now: noon}
	var c changers
	got, err := c.of(q, before, "web/a")
	require.NoError(t, err)
	require.Equal(t, changed, got)
	counting.n = 0
	got, err = c.of(q, y.head(), "web/a")
	require.NoError(t, err)
	require.Equal(t, changed, got)
	require.Less(t, counting.n, 10)
	again := y.edit("alice", "x", map[string]string{"web/a": "2"})
	got, err = c.of(q, again, "web/a")
	require.NoError(t, err)
	require.Equal(t, again, got)
	got, err = c.of(q, before, "web/a")
	require.NoError(t, err)
	require.Equal(t, changed, got, "of an earlier commit, after a person went back")
}

type countedObjects struct {
	Objects
	n int
}

func (c *countedObjects) Raw(sha ring.SHA) (string, []byte, error) {
	c.n++
	return c.Objects.Raw(sha)
}

// Whoever may not vouch for a file answers for none of others.
func TestAVouchCountsWhereItsSignerMayVouch(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	sha := y.edit("alice", "x", map[string]string{"web/a": "1"})
	tip := y.commit("bob", noon, "fine\n\nGitring-Vouch: "+string(sha))
	const bob = "bob@example.org"
	require.NotEmpty(t, whoSigned(t, y, y.trust(), tip, "web/a", bob), "he has no role vouch")
	may := func(paths ...string) *Trust {
		return y.trust(bound(Binding{Signer: bob, Roles: []Role{RoleCommit, RoleVouch}, Paths: paths}))
	}
	require.Empty(t, whoSigned(t, y, may(), tip, "web/a", bob))
	require.Empty(t, whoSigned(t, y, may("web/**"), tip, "web/a", bob))
	require.NotEmpty(t, whoSigned(t, y, may("db/**"), tip, "web/a", bob), "not for this path")
}
