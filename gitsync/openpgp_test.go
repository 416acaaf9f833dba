package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestOpenPGP is the rows of docs/testing/trust-table.md as OpenPGP has them, in one key
// ring of the real gpg.
func TestOpenPGP(t *testing.T) {
	y := newYard(t)
	y.gpg()
	january := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	alice := y.pgpKey(january, "alice", "ed25519", "sign", "never")
	bob := y.pgpKey(january, "bob", "ed25519", "cert", "never")
	y.gpgAt(january, "--quick-add-key", bob, "ed25519", "sign", "never")
	carol := y.pgpKey(january, "carol", "rsa2048", "sign", "never")
	dave := y.pgpKey(january, "dave", "ed25519", "sign", "30d")
	erin := y.pgpKey(january, "erin", "ed25519", "sign", "never")
	frank := y.pgpKey(january, "frank", "rsa1024", "sign", "never")
	grace := y.pgpKey(january, "grace", "ed25519", "sign", "60d")
	heidi := y.pgpKey(january, "heidi", "ed25519", "sign", "165d") // until 15 June, noon less twelve hours
	ivan := y.pgpKey(noon.Add(-time.Hour), "ivan", "ed25519", "sign", "never")
	judy := y.pgpKey(january, "judy", "ed25519", "cert", "never")
	y.gpgAt(january, "--quick-add-key", judy, "ed25519", "sign", "30d")
	mallory := y.pgpKey(january, "mallory", "ed25519", "sign", "never")

	root := y.pgpCommit(alice, noon.Add(-100*day), "")
	// Each commit stands on root alone, so that the rows do not touch each other.
	on := func(key string, when time.Time, more string) ring.SHA {
		y.checkout(root, "main")
		return y.pgpCommit(key, when, more)
	}
	byErin := on(erin, noon, "")
	byGrace := on(grace, january.Add(40*day), "")
	y.gpgAt(january.Add(50*day), "--quick-set-expire", grace, "1y")
	revoke(y, erin)

	all := y.keyring(alice, bob, carol, dave, erin, frank, grace, heidi, ivan, judy)
	trust := []func(*TrustConfig){all, func(c *TrustConfig) { c.AllowedSigners = "" }}

	rows := []struct {
		name string
		look look
	}{
		{"V03 a primary key", look{tip: on(alice, noon, ""), signer: "alice@example.org", git: &yes}},
		{"V03 a signing subkey", look{tip: on(bob, noon, ""), signer: "bob@example.org", git: &yes}},
		{"V03 RSA 2048", look{tip: on(carol, noon, ""), signer: "carol@example.org", git: &yes}},
		{"V03 a renewed key, for what it signed before", look{tip: byGrace, seen: january.Add(70 * day), signer: "grace@example.org", git: &yes}},
		{"V05 a key that is in no file", look{tip: on(mallory, noon, ""), want: ring.UnknownSigner, hint: mallory}},
		{"V08 RSA of 1024 bits", look{tip: on(frank, noon, ""), want: ring.WeakKey}},
		{"V08 a signature with SHA-1", look{tip: on(alice, noon, "--digest-algo SHA1"), want: ring.WeakKey}},
		{"V12 a key its owner revoked", look{tip: byErin, want: ring.Revoked}},
		{"V29 an expired key, commit backdated into its time", look{tip: on(dave, january.Add(10*day), ""), want: ring.KeyExpiredFirstSeen}},
		{"V29 an expired subkey, commit backdated into its time", look{tip: on(judy, january.Add(10*day), ""), want: ring.KeyExpiredFirstSeen}},
		{"V30 a key that expired while this host was away", look{tip: on(heidi, noon.Add(-2*day), ""), signer: "heidi@example.org", note: "inside expiry_grace"}},
		{"V31 a signature an hour ahead", look{tip: on(alice, noon.Add(time.Hour), ""), want: ring.FutureDated}},
		{"a text-mode signature", look{tip: on(alice, noon, "--textmode"), want: ring.BadSignature, says: "(type 0x1)"}},
		{"a signature that expired", look{tip: on(alice, noon.Add(-2*day), "--default-sig-expire 1d"), want: ring.BadSignature, says: "made to expire"}},
		{"an unknown critical notation", look{tip: on(alice, noon, "--sig-notation !strange@example.org=1"), want: ring.BadSignature, says: "critical notation"}},
		{"two signatures in one armour", look{tip: resigned(y, on(alice, noon, ""), func(raw []byte) []byte { return append(raw, raw...) }), want: ring.BadSignature, says: "more than one packet"}},
		{"a signature over another payload", look{tip: reworded(y, on(alice, noon, "")), want: ring.BadSignature, git: &no}},
		{"V32 a commit that claims to be older than its key", look{tip: older(y, ivan, root), want: ring.KeyNotYetValid}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			y := *y
			y.t = t
			row.look.trust = trust
			row.look.anchor = root
			if row.look.git != nil {
				require.Equal(t, *row.look.git, pgpGood(&y, row.look.tip), "git verify-commit")
				row.look.git = nil
			}
			y.ask(row.look)
		})
	}

	t.Run("V28 an expired key that signs now", func(t *testing.T) {
		y := *y
		y.t = t
		// gpg signs with an expired key only when it believes an older time.
		tip := y.amendDate(on(dave, january.Add(10*day), ""), dave, noon)
		y.ask(look{anchor: root, tip: tip, trust: trust, want: ring.KeyExpired})
	})
	t.Run("a listed fingerprint is revoked, primary or subkey", func(t *testing.T) {
		sub := ""
		for line := range strings.Lines(y.gpgAt(noon, "--with-colons", "--list-keys", bob)) {
			if f := strings.Split(line, ":"); f[0] == "fpr" {
				sub = f[9]
			}
		}
		require.NotEqual(t, bob, sub)
		tip := on(bob, noon, "")
		for _, fpr := range []string{bob, strings.ToLower(sub), sub[:20] + " " + sub[20:] + " # lost"} {
			y := *y
			y.t = t
			y.revoked = []string{fpr}
			y.ask(look{anchor: root, tip: tip, trust: trust, want: ring.Revoked})
		}
	})
	t.Run("the principal is the e-mail of the primary user id", func(t *testing.T) {
		y.gpgAt(noon.Add(-time.Hour), "--quick-add-uid", alice, "Alice <alice@new.example.org>")
		y.gpgAt(noon.Add(-time.Hour), "--quick-set-primary-uid", alice, "Alice <alice@example.org>")
		y := *y
		y.t = t
		y.ask(look{anchor: root, tip: on(alice, noon, ""), trust: []func(*TrustConfig){y.keyring(alice)}, signer: "alice@example.org"})
	})
	t.Run("the fingerprint is the primary key's", func(t *testing.T) {
		one, refusal, err := y.trust(trust...).One(y, on(bob, noon, ""), noon, nil)
		require.NoError(t, err)
		require.Nil(t, refusal)
		require.Equal(t, bob, one.Fingerprint)
	})
}

// V03 with rights: a person is known by the fingerprint of the primary key, however
// it is written, whichever subkey signs; and the first key of the first armour is
// the first signer.
func TestRightsOfOpenPGPSignersHangOnThePrimaryKey(t *testing.T) {
	y := newYard(t)
	y.gpg()
	january := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	bob := y.pgpKey(january, "bob", "ed25519", "cert", "never")
	y.gpgAt(january, "--quick-add-key", bob, "ed25519", "sign", "never")
	carol := y.pgpKey(january, "carol", "ed25519", "sign", "never")
	anchor := y.pgpCommit(bob, noon.Add(-day), "")
	web := y.edit("", "web", map[string]string{"web/a": "1"})
	commit := func(key string) ring.SHA {
		y.checkout(web, "main")
		y.run(append(y.at(noon), "GPG_MORE="), y.dir, "git", "-c", "gpg.format=openpgp", "-c", "gpg.program="+filepath.Join(y.gnupg, "gpg-at"),
			"commit", "-q", "--allow-empty", "-m", vouchFor(web), "-S"+key)
		return y.head()
	}
	byBob, byCarol := commit(bob), commit(carol)
	files := []func(*TrustConfig){y.keyring(bob, carol), func(c *TrustConfig) { c.AllowedSigners = "" }}
	with := func(more ...func(*TrustConfig)) []func(*TrustConfig) { return append(more, files...) }

	y.ask(look{anchor: anchor, tip: byBob, trust: with(), signer: "bob@example.org"})
	y.ask(look{anchor: anchor, tip: byCarol, trust: with(), want: ring.VouchNotAllowed})
	for _, name := range []string{carol, strings.ToLower(carol), "0x" + carol, carol[:20] + "  " + carol[20:]} {
		y.ask(look{anchor: anchor, tip: byCarol, trust: with(bound(Binding{Signer: name, Roles: []Role{RoleCommit, RoleVouch}}))})
		y.ask(look{anchor: anchor, tip: byCarol, trust: with(bound(Binding{Signer: name, Roles: []Role{RoleCommit, RoleVouch}, Paths: []string{"db/**"}})), want: ring.PathNotAllowed})
	}
	y.ask(look{anchor: anchor, tip: byBob, trust: with(bound(Binding{Signer: bob, Paths: []string{"web/**"}})), want: ring.VouchNotAllowed})
}

func TestOpenPGPFilesThatCannotBeUsedSayWhy(t *testing.T) {
	y := newYard(t)
	y.gpg()
	alice := y.pgpKey(noon, "alice", "ed25519", "sign", "never")
	public := y.gpgAt(noon, "--armor", "--export", alice)
	secret := y.gpgAt(noon, "--armor", "--export-secret-keys", alice)
	for _, c := range []struct{ name, text, want string }{
		{"no armour", "\x98\x33\x04", "no armoured public key"},
		{"a private key", secret, "private key"},
		{"a block that does not end", public[:200], "does not end"},
		{"a broken second block", public + "\n" + beginKeys + "\n\nAAAA\n" + endKeys + "\n", "key block 2"},
	} {
		_, err := parseOpenPGPKeys("keys.asc", []byte(c.text))
		require.ErrorContains(t, err, c.want, c.name)
		require.ErrorContains(t, err, "cannot read keys.asc", c.name)
	}
	keys, err := parseOpenPGPKeys("keys.asc", []byte("\n"))
	require.NoError(t, err)
	require.Empty(t, keys)
}

func pgpGood(y *yard, sha ring.SHA) bool {
	_, err := runIn(y, "-c", "gpg.program="+filepath.Join(y.gnupg, "gpg-at"), "verify-commit", string(sha))
	return err == nil
}

// revoke imports the certificate that gpg made with the key.
func revoke(y *yard, key string) {
	y.t.Helper()
	b, err := os.ReadFile(filepath.Join(y.gnupg, "openpgp-revocs.d", key+".rev"))
	require.NoError(y.t, err)
	file := filepath.Join(y.t.TempDir(), "rev")
	require.NoError(y.t, os.WriteFile(file, []byte(strings.Replace(string(b), ":-----BEGIN", "-----BEGIN", 1)), 0o600))
	y.gpgAt(noon, "--import", file)
}

// resigned changes the bytes inside the armour of a commit's signature.
func resigned(y *yard, sha ring.SHA, change func([]byte) []byte) ring.SHA {
	y.t.Helper()
	p, refusal, err := readCommit(y, sha)
	require.NoError(y.t, err)
	require.Nil(y.t, refusal)
	raw, err := unarmor(p.signature, beginPGP, endPGP, true)
	require.NoError(y.t, err)
	armour := beginPGP + "\n\n" + base64Std(change(raw)) + "\n" + endPGP + "\n"
	return y.put(insert(p, armour))
}

// insert puts a signature into a commit that has none.
func insert(p *parsed, armour string) string {
	top, text, _ := strings.Cut(string(p.payload), "\n\n")
	return top + "\ngpgsig " + fold([]byte(armour)) + "\n" + text
}

func reworded(y *yard, sha ring.SHA) ring.SHA {
	y.t.Helper()
	_, body, err := y.Raw(sha)
	require.NoError(y.t, err)
	return y.put(strings.Replace(string(body), "\n\nby ", "\n\nnot by ", 1))
}

// older is a commit signed now that claims to be of last year.
func older(y *yard, key string, parent ring.SHA) ring.SHA {
	y.t.Helper()
	return y.pgpSign(plain(ring.SHA(y.git("rev-parse", string(parent)+"^{tree}")), noon.Add(-30*day), parent), key, noon)
}

// amendDate makes a commit of that date signed at the earlier time of sha.
func (y *yard) amendDate(sha ring.SHA, key string, when time.Time) ring.SHA {
	y.t.Helper()
	p, refusal, err := readCommit(y, sha)
	require.NoError(y.t, err)
	require.Nil(y.t, refusal)
	return y.pgpSign(plain(p.tree, when, p.parents...), key, p.committer.when)
}

func (y *yard) pgpSign(d draft, key string, at time.Time) ring.SHA {
	y.t.Helper()
	file := filepath.Join(y.t.TempDir(), "payload")
	require.NoError(y.t, os.WriteFile(file, []byte(d.payload()), 0o600))
	armour := y.gpgAt(at, "--local-user", key, "--armor", "--detach-sign", "--output", "-", file)
	return y.put(d.signed([]byte(armour + "\n")))
}
