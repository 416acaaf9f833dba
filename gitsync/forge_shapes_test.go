package gitsync

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// spelling is how a forge or tool writes a signature into a commit. All of these
// were found in objects of public repositories; the keys here are our own.
type spelling struct {
	name   string
	by     string // who writes it
	format string // openpgp or ssh
	rest   string // headers before gpgsig
	text   string // the message
	spell  func(armour string) string
	want   ring.Code // "" is accepted
	// stricter says why gitring refuses what git calls good; "" where both agree.
	stricter string
}

// signed is the whole commit: the armour is spelled, and each line of it but the
// first begins with a space.
func (s spelling) signed(d draft, armour string) string {
	d.rest, d.text = s.rest, s.text
	value := s.spell(armour)
	return d.top + d.rest + "gpgsig " + strings.ReplaceAll(strings.TrimSuffix(value, "\n"), "\n", "\n ") + "\n\n" + d.text
}

func (s spelling) payload(d draft) string {
	d.rest, d.text = s.rest, s.text
	return d.payload()
}

func asMade(a string) string    { return a }
func emptyLine(a string) string { return a + "\n" } // one line of one space

func crlf(a string) string { return strings.ReplaceAll(a, "\n", "\r\n") }

// headed puts headers into OpenPGP armour.
func headed(lines string) func(string) string {
	return func(a string) string { return strings.Replace(a, "-----\n", "-----\n"+lines, 1) }
}

const timestamped = "-----BEGIN OPENTIMESTAMPS GIT TIMESTAMP-----\n\nAQHwIPp8JubcFXVc8R3L\n-----END OPENTIMESTAMPS GIT TIMESTAMP-----\n\n"

// forgeSpellings are those of forges and of the tools that people sign with.
func forgeSpellings() []spelling {
	const (
		merged = "Merge pull request #7 from acme/work\n\nAdd b"
		gitlab = "Merge branch 'work' into 'main'\n\nAdd b\n\nSee merge request acme/infra!7"
		tea    = "Merge pull request 'Add b' (#7) from work into main\n\nReviewed-on: https://git.acme.org/acme/infra/pulls/7\n"
		bucket = "Merged in work (pull request #7)\n\nAdd b\n\nApproved-by: Carol\n"
	)
	return []spelling{
		{name: "web-flow", by: "GitHub", format: "openpgp", text: merged, spell: func(a string) string { return emptyLine(newPacket(a)) }},
		{name: "web-flow of old", by: "GitHub", format: "openpgp", text: merged, spell: newPacket},
		{name: "merge", by: "gitlab.com", format: "ssh", text: gitlab, spell: emptyLine},
		{name: "merge", by: "GitLab with a key of its own", format: "openpgp", text: gitlab, spell: emptyLine},
		{name: "merge", by: "Gitea", format: "openpgp", text: tea, spell: asMade},
		{name: "merge", by: "Forgejo", format: "ssh", text: tea, spell: asMade},
		{name: "merge", by: "Bitbucket", format: "openpgp", text: bucket, spell: asMade},
		{name: "merge", by: "Bitbucket", format: "ssh", text: bucket, spell: asMade},
		{name: "change ids", by: "jj", format: "ssh", rest: "change-id lnzlxlxyyysmosoxqyxvmmrsxlwzonxm\n", text: "Add b\n", spell: emptyLine},
		{name: "change ids", by: "jj", format: "openpgp", rest: "change-id lnzlxlxyyysmosoxqyxvmmrsxlwzonxm\n", text: "Add b\n", spell: emptyLine},
		{name: "change ids on Windows", by: "jj", format: "openpgp", rest: "change-id lnzlxlxyyysmosoxqyxvmmrsxlwzonxm\n", text: "Add b\n", spell: func(a string) string { return crlf(emptyLine(a)) }},
		{name: "headers of its own", by: "GitButler", format: "openpgp", rest: "gitbutler-headers-version 2\ngitbutler-change-id b4aff5d9-face-40ed-90d0-af0cf20370f8\n", text: "Add b\n", spell: emptyLine},
		{name: "headers of its own", by: "GitButler", format: "ssh", rest: "gitbutler-headers-version 2\ngitbutler-change-id b4aff5d9-face-40ed-90d0-af0cf20370f8\n", text: "Add b\n", spell: emptyLine},
		{name: "GnuPG's lines as they are", by: "Git clients on Windows", format: "openpgp", text: "Add b\n", spell: crlf},
		{name: "a version line", by: "GnuPG 1 and 2.0", format: "openpgp", text: "Add b\n", spell: headed("Version: GnuPG v2\n")},
		{name: "a comment", by: "GPG Suite", format: "openpgp", text: "Add b\n", spell: headed("Comment: GPGTools - https://gpgtools.org\n")},
		{name: "headers that end in CR LF", by: "OpenPGP.js", format: "openpgp", text: "Add b", spell: func(a string) string {
			return emptyLine(headed("Version: OpenPGP.js v2.6.0\r\nComment: https://openpgpjs.org\r\n")(a))
		}},
		{name: "a timestamp after the armour", by: "opentimestamps-client", format: "openpgp", text: "Add b\n", spell: func(a string) string { return a + timestamped }},
		{name: "two empty lines", by: "people's scripts", format: "openpgp", text: "Add b\n", spell: func(a string) string { return a + "\n\n" }},
		{name: "an encoding, and a merged tag", by: "git", format: "openpgp", rest: "encoding ISO-8859-1\nmergetag object " + string(ring40) + "\n type commit\n tag v1\n tagger A <a@example.org> 1749900000 +0530\n \n v1\n", text: "Merge tag 'v1'\n", spell: asMade},
		{name: "what Mercurial knew of it", by: "hg-git", format: "openpgp", rest: "HG:extra amend_source:abc\nHG:rename-source hg\n", text: "Add b\n", spell: asMade},
		{name: "no line break at the end", by: "libraries", format: "ssh", text: "Add b", spell: asMade},
		{name: "no message", by: "git commit --allow-empty-message", format: "ssh", text: "", spell: asMade},
	}
}

// strangeSpellings are written by nobody we know of.
func strangeSpellings() []spelling {
	const text = "Add b\n"
	return []spelling{
		{name: "text after the armour", format: "openpgp", text: text, spell: func(a string) string { return a + "hello\n" }},
		{name: "text after the armour", format: "ssh", text: text, spell: func(a string) string { return a + "hello\n" }},
		{name: "two empty lines", format: "ssh", text: text, spell: func(a string) string { return a + "\n\n" }},
		{name: "the armour twice", format: "ssh", text: text, spell: func(a string) string { return a + a }},
		{name: "the armour twice", format: "openpgp", text: text, spell: func(a string) string { return a + a }, want: ring.BadSignature},
		{name: "the armour twice, apart", format: "openpgp", text: text, spell: func(a string) string { return a + "\n" + a }, want: ring.BadSignature},
		{name: "lines that end in CR LF", format: "ssh", text: text, spell: crlf, want: ring.BadSignature},
		{name: "junk before the armour", format: "openpgp", text: text, spell: func(a string) string { return "junk\n" + a }, want: ring.BadSignature},
		{name: "junk before the armour", format: "ssh", text: text, spell: func(a string) string { return "junk\n" + a }, want: ring.BadSignature},
		{name: "an empty line before the armour", format: "openpgp", text: text, spell: func(a string) string { return "\n" + a }, want: ring.BadSignature},
		{name: "a wrong checksum", format: "openpgp", text: text, spell: wrongSum, want: ring.BadSignature},
		{name: "a header without a colon", format: "openpgp", text: text, spell: headed("hello\n"), want: ring.BadSignature},
		{name: "a header", format: "ssh", text: text, spell: headed("Comment: x\n"), want: ring.BadSignature},
		{name: "junk in the line that ends it", format: "openpgp", text: text, spell: func(a string) string { return strings.TrimSuffix(a, "\n") + "junk\n" }, want: ring.BadSignature, stricter: "no tool writes it"},
		{name: "carriage returns inside lines", format: "openpgp", text: text, spell: func(a string) string { return strings.Replace(a, "\n\n", "\n\n\r", 1) }, want: ring.Grammar, stricter: "no tool writes it"},
	}
}

// newPacket writes an OpenPGP signature as GitHub's library does: a packet of the
// new format, in lines of 64 characters.
func newPacket(armour string) string {
	raw, err := unarmor([]byte(armour), beginPGP, endPGP, true)
	if err != nil {
		panic(err)
	}
	body := raw[2:] // 0x88 and one byte of length
	if raw[0] == 0x89 {
		body = raw[3:]
	}
	packet := []byte{0xc2}
	if n := len(body); n < 192 {
		packet = append(packet, byte(n))
	} else {
		packet = append(packet, byte((n-192)>>8)+192, byte(n-192))
	}
	packet = append(packet, body...)
	var out strings.Builder
	out.WriteString(beginPGP + "\n\n")
	for text := base64Std(packet); text != ""; {
		n := min(64, len(text))
		out.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	out.WriteString("=" + base64Std(crc24(packet)) + "\n" + endPGP + "\n")
	return out.String()
}

// armourOf signs a payload with gpg or ssh-keygen.
func (y *yard) armourOf(format, key, payload string) string {
	y.t.Helper()
	file := filepath.Join(y.t.TempDir(), "payload")
	require.NoError(y.t, os.WriteFile(file, []byte(payload), 0o600))
	if format == "openpgp" {
		return y.gpgAt(noon, "--local-user", key, "--armor", "--detach-sign", "--output", "-", file) + "\n"
	}
	y.run(os.Environ(), y.dir, "ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", filepath.Join(y.keys, key), file)
	b, err := os.ReadFile(file + ".sig")
	require.NoError(y.t, err)
	return string(b)
}

// gitSays is git verify-commit of one commit, with this yard's keys of both kinds.
func (y *yard) gitSays(sha ring.SHA) bool {
	y.t.Helper()
	file := filepath.Join(y.t.TempDir(), "allowed_signers")
	require.NoError(y.t, os.WriteFile(file, []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
	_, err := runIn(y, "-c", "gpg.program="+filepath.Join(y.gnupg, "gpg-at"), "-c", "gpg.ssh.allowedSignersFile="+file, "verify-commit", string(sha))
	return err == nil
}

// TestSignaturesSpelledByForgesAndTools takes git's verdict on each spelling. On
// those that forges and tools write there is no divergence.
func TestSignaturesSpelledByForgesAndTools(t *testing.T) {
	y := newYard(t)
	y.gpg()
	y.allow("alice", "")
	bob := y.pgpKey(noon.Add(-day), "bob", "rsa2048", "sign", "never")
	trust := y.trust(y.keyring(bob))
	// The parent is anything: one commit is verified on its own.
	d := y.draft(noon, y.commit("alice", noon.Add(-day), "root"))
	judge := func(t *testing.T, s spelling) {
		y := *y
		y.t = t
		key := map[string]string{"openpgp": bob, "ssh": "alice"}[s.format]
		sha := y.put(s.signed(d, y.armourOf(s.format, key, s.payload(d))))
		require.Equal(t, s.want == "" || s.stricter != "", y.gitSays(sha), "git verify-commit")
		out, _ := runIn(&y, "fsck", "--strict", "--no-dangling", "--no-progress")
		require.NotContains(t, out, string(sha), "git fsck --strict")
		_, refusal, err := trust.One(&y, sha, noon, nil)
		require.NoError(t, err)
		if s.want == "" {
			require.Nil(t, refusal)
			p, _, err := readCommit(&y, sha)
			require.NoError(t, err)
			require.Equal(t, s.payload(d), string(p.payload), "what was signed")
			return
		}
		require.NotNil(t, refusal)
		require.Equal(t, s.want, refusal.Code, refusal.Says)
	}
	for _, s := range forgeSpellings() {
		t.Run(fmt.Sprintf("%s, %s, %s", s.by, s.name, s.format), func(t *testing.T) {
			require.Empty(t, s.want)
			require.Empty(t, s.stricter)
			judge(t, s)
		})
	}
	for _, s := range strangeSpellings() {
		t.Run(s.name+", "+s.format, func(t *testing.T) { judge(t, s) })
	}
}

// TestV26lForgesOwnMergesLand is V24 with the very bytes that the forges' keys
// leave: keys that nobody here knows, or that may only move images.
func TestV26lForgesOwnMergesLand(t *testing.T) {
	y := newYard(t)
	y.gpg()
	y.allow("alice", "")
	y.key("gitlab")
	bot := y.pgpKey(noon.Add(-day), "forge", "rsa2048", "sign", "never")
	anchor := y.edit("alice", "one", map[string]string{"a": "1", "compose.yaml": "services:\n  web:\n    image: ghcr.io/acme/web:1.0\n"})
	y.branch("work", anchor)
	head := y.edit("alice", "two", map[string]string{"b": "1"})
	y.branch("bump", anchor)
	bumped := plain(ring.SHA(y.git("rev-parse", string(y.edit("", "x", map[string]string{"compose.yaml": "services:\n  web:\n    image: ghcr.io/acme/web:1.1\n"})+"^{tree}"))), noon, anchor)
	evil := ring.SHA(y.git("rev-parse", string(y.edit("", "x", map[string]string{"evil": "1"})+"^{tree}")))
	tree := ring.SHA(y.git("rev-parse", string(head)+"^{tree}"))

	images := []func(*TrustConfig){forgeMerge, y.keyring(bot), bound(Binding{Signer: bot, Roles: []Role{RoleImages}}, Binding{Signer: "alice@example.org"})}
	for _, s := range forgeSpellings() {
		key := map[string]string{"openpgp": bot, "ssh": "gitlab"}[s.format]
		land := func(tree ring.SHA) ring.SHA {
			d := plain(tree, noon, anchor, head)
			d.top = strings.Replace(d.top, "committer Alice <alice@example.org>", "committer GitHub <noreply@github.com>", 1)
			return y.put(s.signed(d, y.armourOf(s.format, key, s.payload(d))))
		}
		good, bad := land(tree), land(evil)
		for name, trust := range map[string]*Trust{"an unknown key": y.trust(forgeMerge), "a key for images": y.trust(images...)} {
			t.Run(fmt.Sprintf("%s, %s, %s, %s", s.by, s.name, s.format, name), func(t *testing.T) {
				all, refusal, err := trust.RangeWith(y, y.aids(), anchor, good, noon, nil)
				require.NoError(t, err)
				require.Nil(t, refusal)
				require.Contains(t, all[len(all)-1].Note, "landed by the forge")
				_, refusal, err = trust.RangeWith(y, y.aids(), anchor, bad, noon, nil)
				require.NoError(t, err)
				require.Equal(t, ring.NotSignedContent, refusal.Code, refusal.Says)
			})
		}
		if s.format != "openpgp" {
			continue
		}
		t.Run(fmt.Sprintf("%s, %s, the bot's own commit", s.by, s.name), func(t *testing.T) {
			sha := y.put(s.signed(bumped, y.armourOf(s.format, bot, s.payload(bumped))))
			all, refusal, err := y.trust(images...).RangeWith(y, y.aids(), anchor, sha, noon, nil)
			require.NoError(t, err)
			require.Nil(t, refusal)
			require.Equal(t, bot, all[len(all)-1].Fingerprint)
		})
	}
}
