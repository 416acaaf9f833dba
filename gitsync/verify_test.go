package gitsync

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

func base64Std(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// look is one question to Range, with what the answer has to be.
type look struct {
	objects     Objects // nil is the yard
	trust       []func(*TrustConfig)
	anchor, tip ring.SHA
	seen        time.Time // first_seen of everything; zero is noon

	want ring.Code // "" is accept
	at   ring.SHA  // the commit refused; "" is the tip
	hint string    // part of the hint
	says string    // part of the sentence
	// of an accepted tip
	signer, note string
	count        int
	// git is what git verify-commit has to say of the tip, where the difference
	// is the point of the row.
	git *bool
}

var yes, no = true, false

// TestTable is docs/testing/trust-table.md, row by row.
func TestTable(t *testing.T) {
	rows := []struct {
		id, name string
		look     func(y *yard) look
	}{
		{"V01", "a commit signed by an allowed ed25519 key, one further", func(y *yard) look {
			y.allow("alice", `namespaces="git"`)
			a := y.commit("alice", noon.Add(-2*time.Hour), "one")
			b := y.commit("alice", noon.Add(-time.Hour), "two")
			return look{anchor: a, tip: b, signer: "alice@example.org", count: 1, git: &yes}
		}},
		{"V02", "RSA 2048", signedBySSH("-t", "rsa", "-b", "2048")},
		{"V02", "ECDSA P-256", signedBySSH("-t", "ecdsa", "-b", "256")},
		{"V02", "ECDSA P-384", signedBySSH("-t", "ecdsa", "-b", "384")},
		{"V02", "ECDSA P-521", signedBySSH("-t", "ecdsa", "-b", "521")},
		{"V02", "a security key that was touched", func(y *yard) look {
			k := newTouched(y.t)
			y.signers = append(y.signers, "alice@example.org "+k.line())
			d := y.draft(noon)
			return look{tip: y.put(d.signed(k.sign(y.t, d.payload(), 1))), signer: "alice@example.org", git: &yes}
		}},
		{"V04", "a tip without a signature", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			return look{anchor: a, tip: y.commit("", noon, "two"), want: ring.Unsigned, hint: "git push --force-with-lease"}
		}},
		{"V05", "a key that no signer has", func(y *yard) look {
			y.allow("alice", "")
			mallory := y.key("mallory")
			a := y.commit("alice", noon, "one")
			tip := y.commit("mallory", noon, "two")
			return look{anchor: a, tip: tip, want: ring.UnknownSigner, hint: strings.Fields(mallory)[1]}
		}},
		{"V06", "a signature over another payload", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			sig := sshSign(y.t, y.signer("alice"), d.payload(), "git")
			d.text = "another change\n"
			return look{tip: y.put(d.signed(sig)), want: ring.BadSignature, git: &no}
		}},
		{"V07", "a signature of namespace file", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			return look{tip: y.put(d.signed(sshSign(y.t, y.signer("alice"), d.payload(), "file"))), want: ring.Namespace}
		}},
		{"V08", "RSA of 1024 bits", func(y *yard) look {
			s := rsaSigner(y.t, 1024)
			y.signers = append(y.signers, "alice@example.org "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey()))))
			d := y.draft(noon)
			return look{tip: y.put(d.signed(sshSign(y.t, s, d.payload(), "git"))), want: ring.WeakKey}
		}},
		{"V08", "RSA with SHA-1", func(y *yard) look {
			s := rsaSigner(y.t, 2048)
			y.signers = append(y.signers, "alice@example.org "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey()))))
			d := y.draft(noon)
			return look{tip: y.put(d.signed(blobOver(y.t, s.PublicKey().Marshal(), d.payload(), func(data []byte) []byte {
				sig, err := s.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSA)
				require.NoError(y.t, err)
				return ssh.Marshal(sig)
			}))), want: ring.WeakKey}
		}},
		{"V08", "DSA", func(y *yard) look {
			y.allow("alice", "")
			key := ssh.Marshal(struct{ Type, P, Q, G, Y string }{"ssh-dss", "\x05", "\x05", "\x05", "\x05"})
			d := y.draft(noon)
			return look{tip: y.put(d.signed(blobOver(y.t, key, d.payload(), func([]byte) []byte {
				return ssh.Marshal(struct{ Type, Blob string }{"ssh-dss", strings.Repeat("x", 40)})
			}))), want: ring.WeakKey}
		}},
		{"V09", "a security key that nobody touched", func(y *yard) look {
			k := newTouched(y.t)
			y.signers = append(y.signers, "alice@example.org "+k.line())
			d := y.draft(noon)
			return look{tip: y.put(d.signed(k.sign(y.t, d.payload(), 0))), want: ring.NoUserPresence}
		}},
		{"V10", "a line that permits the key for files only", func(y *yard) look {
			y.allow("alice", `namespaces="file"`)
			return look{tip: y.commit("alice", noon, "one"), want: ring.Namespace, git: &no}
		}},
		{"V11", "an unsigned commit in the middle, with a signed tip (laundering)", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			b := y.commit("", noon, "two")
			return look{anchor: a, tip: y.commit("alice", noon, "three"), want: ring.Unsigned, at: b, git: &yes}
		}},
		{"V12", "a revoked key in the middle", func(y *yard) look {
			y.allow("alice", "")
			y.allow("bob", "")
			y.revoked = []string{"# left in May", strings.Join(strings.Fields(y.signers[1])[1:], " ")}
			a := y.commit("alice", noon, "one")
			b := y.commit("bob", noon.Add(-60*day), "two")
			return look{anchor: a, tip: y.commit("alice", noon, "three"), want: ring.Revoked, at: b}
		}},
		{"V12", "a revoked fingerprint, also of a key that is no signer's any more", func(y *yard) look {
			y.allow("alice", "")
			bob, _, _, _, err := ssh.ParseAuthorizedKey([]byte(y.key("bob")))
			require.NoError(y.t, err)
			y.revoked = []string{ssh.FingerprintSHA256(bob) + " lost with the laptop"}
			return look{tip: y.commit("bob", noon, "one"), want: ring.Revoked}
		}},
		{"V13", "a force-push to an older, validly signed commit", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon.Add(-3*time.Hour), "one")
			y.commit("alice", noon.Add(-2*time.Hour), "two")
			return look{anchor: y.commit("alice", noon, "three"), tip: a, want: ring.Rollback, hint: "gitring rollback"}
		}},
		{"V13", "the same with a clock that ran backwards", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.commit("alice", noon.Add(-2*time.Hour), "two")
			return look{anchor: y.commit("alice", noon.Add(-3*time.Hour), "three"), tip: a, want: ring.Rollback}
		}},
		{"V14", "a force-push to a sibling", func(y *yard) look {
			y.allow("alice", "")
			root := y.commit("alice", noon, "one")
			a := y.commit("alice", noon, "two")
			y.checkout(root, "other")
			return look{anchor: a, tip: y.commit("alice", noon, "other two"), want: ring.NonFastForward, hint: "trust accept"}
		}},
		{"V14", "a force-push to another history", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.git("checkout", "-q", "--orphan", "other")
			return look{anchor: a, tip: y.commit("alice", noon, "other one"), want: ring.NonFastForward}
		}},
		{"V16", "a signed revert", func(y *yard) look {
			y.allow("alice", "")
			y.commit("alice", noon, "zero")
			write(y, "app.yaml", "v1")
			y.git("add", "-A")
			one := y.commit("alice", noon, "one")
			write(y, "app.yaml", "v2")
			y.git("add", "-A")
			a := y.commit("alice", noon, "two")
			y.run(y.at(noon), y.dir, "git", "-c", "gpg.format=ssh", "-c", "user.signingkey="+y.keys+"/alice", "revert", "--no-edit", "-S", "HEAD")
			require.Equal(y.t, y.git("rev-parse", string(one)+"^{tree}"), y.git("rev-parse", "HEAD^{tree}"))
			return look{anchor: a, tip: y.head(), signer: "alice@example.org", count: 1}
		}},
		{"V18", "a tip without the trailer that is required", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			return look{anchor: a, tip: y.commit("alice", noon, "two"), trust: []func(*TrustConfig){target}, want: ring.TargetMissing, hint: "Gitring-Target: prod"}
		}},
		{"V18", "the trailer in the tip is enough", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.commit("alice", noon, "two")
			return look{anchor: a, tip: y.commit("alice", noon, "three\n\nGitring-Target: prod"), trust: []func(*TrustConfig){target}, count: 2}
		}},
		{"V18", "first use asks for the trailer too", func(y *yard) look {
			y.allow("alice", "")
			return look{tip: y.commit("alice", noon, "one"), trust: []func(*TrustConfig){target}, want: ring.TargetMissing}
		}},
		{"V19", "a trailer that names another source", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			return look{anchor: a, tip: y.commit("alice", noon, "two\n\nGitring-Target: dev"), trust: []func(*TrustConfig){target}, want: ring.TargetMismatch}
		}},
		{"V20", "a signed merge that brings in an unsigned commit", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.checkout(a, "side")
			b := y.commit("", noon, "side")
			y.checkout(a, "main")
			return look{anchor: a, tip: y.merge("alice", string(b)), want: ring.Unsigned, at: b, git: &yes}
		}},
		{"V22", "an unsigned merge of two signed parents", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.checkout(a, "side")
			b := y.commit("alice", noon, "side")
			y.checkout(a, "main")
			return look{anchor: a, tip: y.merge("", string(b)), want: ring.Unsigned}
		}},
		{"V23", "a merge that the forge made and signed", func(y *yard) look {
			y.allow("alice", "")
			y.key("forge")
			a := y.commit("alice", noon, "one")
			d := y.draft(noon, a)
			d.top = strings.ReplaceAll(d.top, "committer Alice <alice@example.org>", "committer GitHub <noreply@github.com>")
			return look{anchor: a, tip: y.put(d.signed(sshSign(y.t, y.signer("forge"), d.payload(), "git"))), want: ring.UnknownSigner, hint: "forge-merge"}
		}},
		{"V27", "an octopus merge of signed commits", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			var sides []string
			for i := range 3 {
				y.checkout(a, "main")
				sides = append(sides, string(y.commit("alice", noon, fmt.Sprint("side ", i))))
			}
			y.checkout(a, "main")
			return look{anchor: a, tip: y.merge("alice", sides...), count: 4}
		}},
		{"V27", "nine parents", func(y *yard) look {
			y.allow("alice", "")
			var parents []ring.SHA
			for i := range 9 {
				y.git("checkout", "-q", "--orphan", fmt.Sprint("p", i))
				parents = append(parents, y.commit("alice", noon, fmt.Sprint(i)))
			}
			d := y.draft(noon, parents...)
			return look{anchor: parents[0], tip: y.put(d.signed(sshSign(y.t, y.signer("alice"), d.payload(), "git"))), want: ring.Grammar}
		}},
		{"V28", "an expired key, commit of now", func(y *yard) look {
			y.allow("alice", `valid-before="20250501Z"`)
			return look{tip: y.commit("alice", noon, "one"), want: ring.KeyExpired, git: &no}
		}},
		{"V29", "an expired key, commit backdated into its time", func(y *yard) look {
			y.allow("alice", `valid-before="20250501Z"`)
			return look{tip: y.commit("alice", noon.Add(-60*day), "one"), want: ring.KeyExpiredFirstSeen, git: &yes}
		}},
		{"V30", "a key that expired while this host was away", func(y *yard) look {
			y.allow("alice", `valid-before="20250614120000Z"`)
			return look{tip: y.commit("alice", noon.Add(-2*day), "one"), signer: "alice@example.org", note: "inside expiry_grace of 72h"}
		}},
		{"V30", "the same without a grace", func(y *yard) look {
			y.allow("alice", `valid-before="20250614120000Z"`)
			return look{tip: y.commit("alice", noon.Add(-2*day), "one"), trust: []func(*TrustConfig){func(c *TrustConfig) { c.ExpiryGrace = 0 }}, want: ring.KeyExpiredFirstSeen}
		}},
		{"V30", "a key that expired after the commit was first seen", func(y *yard) look {
			y.allow("alice", `valid-before="20250501Z"`)
			return look{tip: y.commit("alice", noon.Add(-60*day), "one"), seen: noon.Add(-59 * day), signer: "alice@example.org", note: "first use"}
		}},
		{"V31", "a commit an hour ahead", func(y *yard) look {
			y.allow("alice", "")
			return look{tip: y.commit("alice", noon.Add(time.Hour), "one"), want: ring.FutureDated}
		}},
		{"V31", "a commit five minutes ahead", func(y *yard) look {
			y.allow("alice", "")
			return look{tip: y.commit("alice", noon.Add(5*time.Minute), "one"), count: 1}
		}},
		{"V32", "a key that is not valid yet", func(y *yard) look {
			y.allow("alice", `valid-after="20250616Z"`)
			return look{tip: y.commit("alice", noon, "one"), want: ring.KeyNotYetValid, git: &no}
		}},
		{"V33", "two trees", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			d := y.draft(noon, a)
			d.top = strings.SplitAfter(d.top, "\n")[0] + d.top
			return look{anchor: a, tip: y.put(d.signed(sshSign(y.t, y.signer("alice"), d.payload(), "git"))), want: ring.Grammar, git: &yes}
		}},
		{"V34", "a gpgsigx header beside the signature", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			sig := sshSign(y.t, y.signer("alice"), d.payload(), "git")
			d.rest = "gpgsigx anything\n"
			return look{tip: y.put(d.signed(sig)), want: ring.Grammar, git: &yes}
		}},
		{"V34", "a gpgsig-sha256 header beside the signature", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			sig := sshSign(y.t, y.signer("alice"), d.payload(), "git")
			d.rest = "gpgsig-sha256 " + fold(sig)
			return look{tip: y.put(d.signed(sig)), want: ring.Grammar, git: &yes}
		}},
		{"V34a", "a signed change-id header", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			d.rest = "change-id qpvuntsmwlqt\nmultiline first\n second\n \n fourth\n"
			return look{tip: y.put(d.signed(sshSign(y.t, y.signer("alice"), d.payload(), "git"))), count: 1, git: &yes}
		}},
		{"V34b", "a signed merge of a signed tag", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.checkout(a, "side")
			y.commit("alice", noon, "side")
			y.git("-c", "gpg.format=ssh", "tag", "-s", "-u", y.keys+"/alice", "-m", "release", "v1")
			y.checkout(a, "main")
			tip := y.merge("alice", "v1")
			require.Contains(y.t, y.git("cat-file", "commit", string(tip)), "\nmergetag object ")
			return look{anchor: a, tip: tip, count: 2, git: &yes}
		}},
		{"V35", "two gpgsig headers", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			sig := sshSign(y.t, y.signer("alice"), d.payload(), "git")
			d.rest = "gpgsig " + fold(sig)
			return look{tip: y.put(d.signed(sig)), want: ring.Grammar}
		}},
		{"V36", "the signature in the message", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			d.text += "\n" + string(sshSign(y.t, y.signer("alice"), d.payload(), "git"))
			return look{tip: y.put(d.payload()), want: ring.Unsigned}
		}},
		{"V37", "NUL in a header", oddTop(func(top string) string { return strings.Replace(top, "Alice", "Al\x00ice", 1) })},
		{"V37", "CRLF headers", oddTop(func(top string) string { return strings.ReplaceAll(top, "\n", "\r\n") })},
		{"V37", "author after committer", oddTop(func(top string) string {
			l := strings.SplitAfter(top, "\n")
			return l[0] + l[2] + l[1]
		})},
		{"V38", "a store that serves another commit's bytes", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			b := y.commit("alice", noon, "two")
			c := y.commit("alice", noon, "three")
			return look{objects: swapped{y, c, b}, anchor: a, tip: c, want: ring.HashMismatch}
		}},
		{"V47", "an annotated tag", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.git("tag", "-a", "-m", "release", "v1")
			return look{anchor: a, tip: ring.SHA(y.git("rev-parse", "v1")), want: ring.NotACommit, hint: "^{commit}"}
		}},
		{"V49", "an anchor that is gone", func(y *yard) look {
			y.allow("alice", "")
			gone := ring.SHA(strings.Repeat("ab", 20))
			return look{anchor: gone, tip: y.commit("alice", noon, "one"), want: ring.AnchorUnavailable, at: gone}
		}},
		{"V52", "an introduction that nobody signed, and what came after it", func(y *yard) look {
			y.allow("alice", "")
			y.commit("", noon.Add(-time.Hour), "long ago")
			intro := y.commit("", noon.Add(-time.Hour), "introduction")
			y.commit("alice", noon, "one")
			return look{tip: y.commit("alice", noon, "two"), trust: introducedBy(intro), signer: "alice@example.org", count: 3}
		}},
		{"V52", "an unsigned commit after the introduction", func(y *yard) look {
			y.allow("alice", "")
			intro := y.commit("alice", noon, "introduction")
			b := y.commit("", noon, "one")
			return look{tip: y.commit("alice", noon, "two"), trust: introducedBy(intro), want: ring.Unsigned, at: b}
		}},
		{"V52", "a tip that is the introduction", func(y *yard) look {
			intro := y.commit("", noon, "introduction")
			return look{tip: intro, trust: introducedBy(intro), count: 1, note: "introduction"}
		}},
		{"V52", "a tip that does not descend from the introduction", func(y *yard) look {
			y.allow("alice", "")
			intro := y.commit("alice", noon, "introduction")
			y.git("checkout", "-q", "--orphan", "other")
			return look{tip: y.commit("alice", noon, "one"), trust: introducedBy(intro), want: ring.NonFastForward}
		}},
		{"V52", "an introduction that the repository does not have", func(y *yard) look {
			y.allow("alice", "")
			gone := ring.SHA(strings.Repeat("ab", 20))
			return look{tip: y.commit("alice", noon, "one"), trust: introducedBy(gone), want: ring.AnchorUnavailable, at: gone}
		}},
		{"", "the key of a certificate authority signs no commit itself", func(y *yard) look {
			y.signers = append(y.signers, "*@example.org cert-authority "+y.key("ca"))
			return look{tip: y.commit("ca", noon, "one"), want: ring.UnknownSigner, git: &no}
		}},
		{"", "the second line of the same key may permit it", func(y *yard) look {
			y.allow("alice", `valid-before="20250101Z"`)
			y.signers = append(y.signers, "alice@new.example.org valid-after=\"20250101Z\" "+strings.Join(strings.Fields(y.signers[0])[2:], " "))
			return look{tip: y.commit("alice", noon, "one"), signer: "alice@new.example.org"}
		}},
		{"", "an X.509 signature", func(y *yard) look {
			y.allow("alice", "")
			d := y.draft(noon)
			return look{tip: y.put(d.signed([]byte("-----BEGIN SIGNED MESSAGE-----\nAAAA\n-----END SIGNED MESSAGE-----\n"))), want: ring.UnknownSigner, hint: "gitring vouch"}
		}},
		{"", "a grammar break in the range is told as such even when the branch also turned away", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			y.git("checkout", "-q", "--orphan", "other")
			d := y.draft(noon, y.commit("alice", noon, "other"))
			bad := y.put(d.top + "tree again\n\nbroken\n")
			d = y.draft(noon, bad)
			return look{anchor: a, tip: y.put(d.signed(sshSign(y.t, y.signer("alice"), d.payload(), "git"))), want: ring.Grammar, at: bad}
		}},
		{"", "a tip that does not descend from min_commit", func(y *yard) look {
			y.allow("alice", "")
			floor := y.commit("alice", noon, "floor")
			y.git("checkout", "-q", "--orphan", "other")
			return look{tip: y.commit("alice", noon, "one"), trust: flooredBy(floor), want: ring.Rollback, hint: "min_commit"}
		}},
		{"", "an anchor below min_commit, and a tip too", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			b := y.commit("alice", noon, "two")
			return look{anchor: a, tip: b, trust: flooredBy(y.commit("alice", noon, "floor")), want: ring.Rollback, hint: "min_commit"}
		}},
		{"", "an anchor below min_commit, and a tip that reaches it", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			floor := y.commit("alice", noon, "floor")
			return look{anchor: a, tip: y.commit("alice", noon, "two"), trust: flooredBy(floor), count: 2}
		}},
		{"", "an anchor above min_commit", func(y *yard) look {
			y.allow("alice", "")
			floor := y.commit("alice", noon, "floor")
			a := y.commit("alice", noon, "one")
			return look{anchor: a, tip: y.commit("alice", noon, "two"), trust: flooredBy(floor), count: 1}
		}},
		{"", "a tip that is the anchor is nothing to do", func(y *yard) look {
			a := y.commit("", noon, "one")
			return look{anchor: a, tip: a}
		}},
		{"", "no signers at all", func(y *yard) look {
			y.key("alice")
			return look{tip: y.commit("alice", noon, "one"), trust: []func(*TrustConfig){func(c *TrustConfig) { c.AllowedSigners = "" }}, want: ring.UnknownSigner, hint: "allowed_signers"}
		}},
		{"", "disabled: unsigned commits pass", func(y *yard) look {
			a := y.commit("", noon, "one")
			y.commit("", noon, "two")
			return look{anchor: a, tip: y.commit("", noon, "three"), trust: []func(*TrustConfig){disabled}, count: 2}
		}},
		{"", "disabled: the first tip is taken", func(y *yard) look {
			return look{tip: y.commit("", noon, "one"), trust: []func(*TrustConfig){disabled}, count: 1, note: "first use"}
		}},
		{"", "disabled: the branch still only moves forward", func(y *yard) look {
			a := y.commit("", noon.Add(-time.Hour), "one")
			return look{anchor: y.commit("", noon, "two"), tip: a, trust: []func(*TrustConfig){disabled}, want: ring.Rollback}
		}},
		{"", "disabled: the grammar still holds", func(y *yard) look {
			d := y.draft(noon)
			d.rest = "gpgsigx anything\n"
			return look{tip: y.put(d.payload()), trust: []func(*TrustConfig){disabled}, want: ring.Grammar}
		}},
		{"", "disabled: the hash still holds", func(y *yard) look {
			a := y.commit("", noon, "one")
			b := y.commit("", noon, "two")
			return look{objects: swapped{y, b, a}, anchor: a, tip: b, trust: []func(*TrustConfig){disabled}, want: ring.HashMismatch}
		}},
	}
	for _, row := range rows {
		t.Run(strings.TrimSpace(row.id+" "+row.name), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.ask(row.look(y))
		})
	}
}

// ask puts the question and holds the answer to what is wanted.
func (y *yard) ask(l look) {
	t := y.t
	t.Helper()
	var o Objects = y
	if l.objects != nil {
		o = l.objects
	}
	firstSeen := func(ring.SHA) time.Time { return l.seen }
	all, refusal, err := y.trust(l.trust...).Range(o, l.anchor, l.tip, noon, firstSeen)
	require.NoError(t, err)
	if l.git != nil {
		require.Equal(t, *l.git, y.good(l.tip), "git verify-commit")
	}
	if l.want != "" {
		require.NotNil(t, refusal, "accepted: %v", all)
		require.Equal(t, l.want, refusal.Code, refusal.Error())
		at := l.at
		if at == "" {
			at = l.tip
		}
		require.Equal(t, at, refusal.Commit)
		require.Contains(t, refusal.Hint, l.hint)
		require.Contains(t, refusal.Says, l.says)
		require.NotEmpty(t, refusal.Hint)
		require.NotContains(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", refusal.Says[:1])
		require.False(t, strings.HasSuffix(refusal.Says, "."), refusal.Says)
		require.Empty(t, all)
		return
	}
	require.Nil(t, refusal)
	if l.anchor == l.tip {
		require.Empty(t, all)
		return
	}
	last := all[len(all)-1]
	require.Equal(t, l.tip, last.SHA)
	if l.count != 0 {
		require.Len(t, all, l.count)
	}
	if l.signer != "" {
		require.Equal(t, l.signer, last.Signer)
		require.NotEmpty(t, last.Fingerprint)
	}
	require.Contains(t, last.Note, l.note)
}

func signedBySSH(keygen ...string) func(*yard) look {
	return func(y *yard) look {
		y.allow("alice", "", keygen...)
		return look{tip: y.commit("alice", noon, "one"), signer: "alice@example.org", git: &yes}
	}
}

// oddTop signs a commit whose first headers were changed.
func oddTop(change func(string) string) func(*yard) look {
	return func(y *yard) look {
		y.allow("alice", "")
		d := y.draft(noon)
		d.top = change(d.top)
		return look{tip: y.put(d.signed(sshSign(y.t, y.signer("alice"), d.payload(), "git"))), want: ring.Grammar}
	}
}

func target(c *TrustConfig)   { c.RequireTarget = true }
func disabled(c *TrustConfig) { c.Mode = Disabled }

func introducedBy(sha ring.SHA) []func(*TrustConfig) {
	return []func(*TrustConfig){func(c *TrustConfig) { c.Introduction = sha }}
}

func flooredBy(sha ring.SHA) []func(*TrustConfig) {
	return []func(*TrustConfig){func(c *TrustConfig) { c.MinCommit = sha }}
}

// swapped serves the bytes of one commit under the name of another.
type swapped struct {
	Objects
	name, bytes ring.SHA
}

func (s swapped) Raw(sha ring.SHA) (string, []byte, error) {
	if sha == s.name {
		sha = s.bytes
	}
	return s.Objects.Raw(sha)
}

func write(y *yard, name, content string) {
	y.t.Helper()
	require.NoError(y.t, os.WriteFile(y.dir+"/"+name, []byte(content), 0o644))
}

// V15: what NonFastForward refused, a person may accept: One checks its
// signature, and from then on it is the anchor.
func TestV15ARefusedForcePushCanBeAcceptedByItself(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	root := y.commit("alice", noon, "one")
	anchor := y.commit("alice", noon, "two")
	y.checkout(root, "other")
	tip := y.commit("alice", noon, "other two")
	trust := y.trust()
	_, refusal, err := trust.Range(y, anchor, tip, noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.NonFastForward, refusal.Code)

	one, refusal, err := trust.One(y, tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, "alice@example.org", one.Signer)
	next := y.commit("alice", noon, "three")
	all, refusal, err := trust.Range(y, tip, next, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Len(t, all, 1)
}

func TestOneRefusesWhatItCannotVerify(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	_, refusal, err := y.trust().One(y, y.commit("", noon, "one"), noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.Unsigned, refusal.Code)
	_, _, err = y.trust().One(y, "HEAD", noon, nil)
	require.ErrorContains(t, err, "full commit id")
	_, _, err = y.trust().One(y, ring.SHA(strings.Repeat("0", 40)), noon, nil)
	require.ErrorIs(t, err, ErrMissing)
}

func TestWhatTheWorldDoesWrongIsNoRefusal(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	a := y.commit("alice", noon, "one")
	_, refusal, err := y.trust().Range(y, a, ring.SHA(strings.Repeat("0", 40)), noon, nil)
	require.ErrorIs(t, err, ErrMissing)
	require.Nil(t, refusal)
	for _, bad := range [][2]ring.SHA{{"", ""}, {a, ""}, {"main", a}, {a, "main"}} {
		_, refusal, err = y.trust().Range(y, bad[0], bad[1], noon, nil)
		require.ErrorContains(t, err, "full commit ids")
		require.Nil(t, refusal)
	}
}

// V39: a commit that collides is not known to exist; the file of a known attack
// shows that the hash notices, and named what is made of that.
func TestV39ACollisionIsNoticedAndRefused(t *testing.T) {
	shambles, err := os.ReadFile("testdata/verify/sha-mbles-1.bin")
	require.NoError(t, err)
	sum, collides := detectingSum(shambles)
	require.True(t, collides)
	require.Equal(t, ring.Sha1Collision, named(sum, sum, collides).Code)
	sum, collides = detectingSum(bytes.Repeat([]byte("x"), 640))
	require.False(t, collides)
	require.Nil(t, named(sum, sum, collides))
}

func TestACommitCarriesWhatWasVerified(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	a := y.commit("alice", noon.Add(-time.Hour), "one")
	tip := y.commit("alice", noon, "two\x1b[31m of \u202eit\n\nbody\n\nGitring-Allow: remove=3")
	seen := noon.Add(time.Minute)
	all, refusal, err := y.trust().Range(y, a, tip, noon, func(ring.SHA) time.Time { return seen })
	require.NoError(t, err)
	require.Nil(t, refusal)
	p, refusal, err := readCommit(y, tip)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, ring.Commit{
		SHA: tip, Parents: []ring.SHA{a}, Signer: "alice@example.org", Subject: "two[31m of it",
		ClaimedAt: noon, FirstSeen: seen, AllowRemove: 3,
	}, p.commit(all[0]))
	require.Equal(t, y.git("rev-parse", string(tip)+"^{tree}"), string(p.tree))
}
