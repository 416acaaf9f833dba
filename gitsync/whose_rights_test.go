package gitsync

import (
	"bytes"
	"crypto/elliptic"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

func onlyOpenPGP(c *TrustConfig) { c.AllowedSigners = "" }

// load is yard.trust with its error.
func (y *yard) load(change ...func(*TrustConfig)) (*Trust, error) {
	y.t.Helper()
	file := filepath.Join(y.t.TempDir(), "allowed_signers")
	require.NoError(y.t, os.WriteFile(file, []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
	cfg := TrustConfig{Mode: Strict, AllowedSigners: file}
	for _, c := range change {
		c(&cfg)
	}
	return LoadTrust(cfg, "prod", "main")
}

// pgpEdit commits files, signed by an OpenPGP key.
func (y *yard) pgpEdit(key string, fs map[string]string) ring.SHA {
	y.t.Helper()
	before, _ := runIn(y, "rev-parse", "-q", "--verify", "HEAD")
	y.edit("", "x", fs)
	if before == "" {
		y.git("update-ref", "-d", "HEAD")
	} else {
		y.git("reset", "-q", "--soft", "HEAD~1")
	}
	return y.pgpCommit(key, noon, "")
}

// The owner of a key writes its user id, and exports it with another one.
func TestV65cALimitedOpenPGPKeyStaysLimitedUnderAnotherUserID(t *testing.T) {
	y := newYard(t)
	y.gpg()
	alice, bob := y.pgpKey(noon.Add(-day), "alice", "ed25519", "sign", "never"), y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	anchor := y.pgpEdit(alice, map[string]string{"web/a": "1", "db/a": "1"})
	inside := y.pgpEdit(bob, map[string]string{"web/a": "2"})
	outside := y.pgpEdit(bob, map[string]string{"db/a": "2"})
	web := Binding{Signer: bob, Paths: []string{"web/**"}}
	judge := func(tip ring.SHA, change ...func(*TrustConfig)) *ring.Refusal {
		trust, err := y.load(append(change, onlyOpenPGP)...)
		require.NoError(t, err)
		_, refusal, err := trust.Range(y, anchor, tip, noon, nil)
		require.NoError(t, err)
		return refusal
	}
	before := y.keyring(alice, bob)
	require.Nil(t, judge(inside, before, bound(web)))
	require.Equal(t, ring.PathNotAllowed, judge(outside, before, bound(web)).Code)

	y.gpgAt(noon.Add(-2*time.Hour), "--quick-add-uid", bob, "Somebody else <eve@elsewhere.org>")
	y.gpgAt(noon.Add(-time.Hour), "--quick-set-primary-uid", bob, "Somebody else <eve@elsewhere.org>")
	after := y.keyring(alice, bob)
	require.Nil(t, judge(inside, after, bound(web)))
	require.Equal(t, ring.PathNotAllowed, judge(outside, after, bound(web)).Code)
}

func TestABindingByUserIDIsAMistakeThatNamesTheFingerprint(t *testing.T) {
	y := newYard(t)
	y.gpg()
	bob, bea := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never"), y.pgpKey(noon.Add(-day), "bea", "ed25519", "sign", "never")
	ring := y.keyring(bob, bea)
	for _, c := range []struct {
		name   string
		change func(*TrustConfig)
		says   []string
	}{
		{"an e-mail", bound(Binding{Signer: "bob@example.org", Paths: []string{"web/**"}}), []string{`signer "bob@example.org"`, "signer: " + bob}},
		{"a pattern", bound(Binding{Signer: "b*@example.org"}), []string{"signer: " + bob, "signer: " + bea}},
		{"of the introduction", func(c *TrustConfig) {
			c.Introduction, c.IntroductionSigner = ring40, "bob@example.org"
		}, []string{"introduction", "signer: " + bob}},
	} {
		_, err := y.load(ring, onlyOpenPGP, c.change)
		for _, says := range c.says {
			require.ErrorContains(t, err, says, c.name)
		}
	}
	for name, signer := range map[string]string{"a fingerprint": bob, "a name that no key has": "carol@example.org"} {
		_, err := y.load(ring, onlyOpenPGP, bound(Binding{Signer: signer}))
		require.NoError(t, err, name)
	}
}

// A name of allowed_signers stays one, whoever else writes it into an OpenPGP key.
func TestANameBindsTheSSHKeyAndNotTheOpenPGPKeyOfThatName(t *testing.T) {
	y := newYard(t)
	y.gpg()
	y.allow("bob", "")
	y.allow("alice", "")
	bob := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	anchor := y.edit("alice", "one", map[string]string{"web/a": "1", "db/a": "1"})
	bySSH := y.edit("bob", "two", map[string]string{"web/a": "2"})
	y.checkout(anchor, "main")
	byOpenPGP := y.pgpEdit(bob, map[string]string{"web/a": "2"})
	ids := y.keyring(bob)
	judge := func(tip ring.SHA, change ...func(*TrustConfig)) (*Trust, *ring.Refusal) {
		trust, err := y.load(append(change, ids)...)
		require.NoError(t, err)
		_, refusal, err := trust.Range(y, anchor, tip, noon, nil)
		require.NoError(t, err)
		return trust, refusal
	}
	for _, signer := range []string{"bob@example.org", "b*@example.org"} {
		named := bound(Binding{Signer: signer, Paths: []string{"web/**"}})
		_, refusal := judge(bySSH, named)
		require.Nil(t, refusal)
		trust, refusal := judge(byOpenPGP, named)
		require.Equal(t, ring.RoleNotAllowed, refusal.Code)
		require.Contains(t, refusal.Hint, "signer: "+bob)
		require.Contains(t, trust.Idle(), bob, "status tells before somebody signs")
	}
	both := bound(Binding{Signer: "bob@example.org"}, Binding{Signer: bob, Paths: []string{"web/**"}})
	trust, refusal := judge(byOpenPGP, both)
	require.Nil(t, refusal)
	require.Empty(t, trust.Idle())
	_, refusal = judge(byOpenPGP)
	require.Nil(t, refusal, "nobody is bound: the default")
	_, refusal = judge(byOpenPGP, bound(Binding{Signer: "alice@example.org", Sources: []string{"lab"}}))
	require.Nil(t, refusal, "nobody is bound at this source")
}

// What a designated revoker signs is not read, so the key may be revoked already.
func TestV65dAnOpenPGPKeyWithADesignatedRevokerIsRefused(t *testing.T) {
	y := newYard(t)
	y.gpg()
	alice := y.pgpKey(noon.Add(-day), "alice", "ed25519", "sign", "never")
	make := func(name, revoker string) string {
		file := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf("%%no-protection\nKey-Type: EDDSA\nKey-Curve: ed25519\nKey-Usage: sign\n"+
			"Name-Real: %s\nName-Email: %s@example.org\nExpire-Date: 0\n%s%%commit\n", name, name, revoker)), 0o600))
		y.gpgAt(noon.Add(-day), "--generate-key", file)
		for line := range strings.Lines(y.gpgAt(noon, "--with-colons", "--list-keys", name+"@example.org")) {
			if f := strings.Split(line, ":"); f[0] == "fpr" {
				return f[9]
			}
		}
		return ""
	}
	bob := make("bob", "Revoker: 22:"+alice+"\n")
	carol := make("carol", "")
	root := y.pgpCommit(alice, noon.Add(-day/2), "")
	byBob := y.pgpCommit(bob, noon, "")
	y.checkout(root, "main")
	byCarol := y.pgpCommit(carol, noon, "")
	require.True(t, pgpGood(y, byBob), "git verify-commit")

	trust := y.trust(y.keyring(alice, bob, carol), onlyOpenPGP)
	_, refusal, err := trust.Range(y, root, byBob, noon, nil)
	require.NoError(t, err)
	require.NotNil(t, refusal)
	require.Equal(t, ring.Revoker, refusal.Code)
	require.Contains(t, refusal.Says, alice)
	_, refusal, err = trust.Range(y, root, byCarol, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	for _, one := range trust.signers(noon) {
		want := map[string]ring.Code{bob: ring.Revoker}[one.Fingerprint]
		require.Equal(t, want, one.Refused, one.Fingerprint)
	}
	// Others may sign the key without a word about who revokes it.
	y.gpgAt(noon, "--local-user", bob, "--quick-sign-key", carol)
	_, refusal, err = y.trust(y.keyring(alice, carol), onlyOpenPGP).Range(y, root, byCarol, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
}

// mktree writes a tree of "mode type id name" lines, as they are.
func (y *yard) mktree(lines ...string) string {
	y.t.Helper()
	cmd := exec.Command("git", "mktree", "--missing")
	cmd.Dir, cmd.Stdin = y.dir, strings.NewReader(strings.Join(lines, "\n")+"\n")
	out, err := cmd.Output()
	require.NoError(y.t, err)
	return strings.TrimSpace(string(out))
}

// An empty folder is nothing that git shows, and a change of the tree all the same.
func TestV65eEmptyFoldersNeedRights(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	empty := y.git("hash-object", "-t", "tree", "-w", "/dev/null")
	blob := y.git("hash-object", "-w", "/dev/null")
	entry := func(id, name string) string { return "040000 tree " + id + "\t" + name }
	file := "100644 blob " + blob + "\tf"
	folder := y.mktree(file)
	web := y.mktree(file)
	base := []string{entry(web, "web"), entry(folder, "db")}
	commit := func(key string, parent ring.SHA, lines ...string) ring.SHA {
		d := plain(ring.SHA(y.mktree(lines...)), noon)
		if parent != "" {
			d = plain(ring.SHA(y.mktree(lines...)), noon, parent)
		}
		return y.put(d.signed(sshSign(t, y.signer(key), d.payload(), "git")))
	}
	full := commit("alice", "", append(base, entry(empty, "old"))...)
	nested := y.mktree(entry(y.mktree(entry(empty, "b")), "a"))
	old := entry(empty, "old")
	trust := y.trust(bound(Binding{Signer: "bob@example.org", Paths: []string{"web/**"}}))
	for _, c := range []struct {
		name  string
		lines []string
		file  string // "" is allowed
	}{
		{"an empty folder more", append([]string{old, entry(empty, "new")}, base...), "new"},
		{"an empty folder less", base, "old"},
		{"empty folders in each other", append([]string{old, entry(nested, "new")}, base...), "new/a/b"},
		{"an empty folder that holds one now", append([]string{entry(nested, "old")}, base...), "old/a/b"},
		{"an empty folder inside another's folder", []string{entry(web, "web"), entry(y.mktree(file, entry(empty, "x")), "db"), old}, "db/x"},
		{"a file that becomes an empty folder", []string{entry(web, "web"), entry(y.mktree(entry(empty, "f")), "db"), old}, "db/f"},
		{"a folder that loses its last file and stays", []string{entry(web, "web"), entry(empty, "db"), old}, "db/f"},
		{"a mode that means the same", []string{entry(web, "web"), entry(y.mktree("100664 blob "+blob+"\tf"), "db"), old}, "db/f"},
		{"an empty folder in the signer's own", []string{entry(y.mktree(file, entry(empty, "x")), "web"), entry(folder, "db"), old}, ""},
		{"empty folders in each other in the signer's own", []string{entry(y.mktree(file, entry(nested, "x")), "web"), entry(folder, "db"), old}, ""},
		{"nothing", append([]string{old}, base...), ""},
	} {
		_, refusal, err := trust.Range(y, full, commit("bob", full, c.lines...), noon, nil)
		require.NoError(t, err, c.name)
		if c.file == "" {
			require.Nil(t, refusal, c.name)
			continue
		}
		require.NotNil(t, refusal, c.name)
		require.Equal(t, ring.PathNotAllowed, refusal.Code, c.name)
		require.Equal(t, c.file, refusal.File, c.name)
	}
	bot := y.trust(bound(Binding{Signer: "bob@example.org", Roles: []Role{RoleImages}}))
	_, refusal, err := bot.Range(y, full, commit("bob", full, append([]string{old, entry(empty, "new")}, base...)...), noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.NotImagesOnly, refusal.Code)
}

// A folder whose entries are written in another way is one change: of the folder.
func TestAFolderThatIsWrittenInAnotherWayNeedsRights(t *testing.T) {
	s := &shelf{}
	blob := s.put("blob", "x")
	a, b := line("100644", "a", blob), line("100644", "b", blob)
	for name, trees := range map[string][2]ring.SHA{
		"the order of entries": {s.put("tree", a+b), s.put("tree", b+a)},
		"zeros before a mode":  {s.put("tree", a), s.put("tree", line("0100644", "a", blob))},
	} {
		for at, in := range map[string]func(ring.SHA) ring.SHA{
			".":  func(tree ring.SHA) ring.SHA { return tree },
			"db": func(tree ring.SHA) ring.SHA { return s.put("tree", line("40000", "db", tree)) },
		} {
			list, refusal, err := changed(s, ring40, in(trees[0]), in(trees[1]))
			require.NoError(t, err)
			require.Nil(t, refusal)
			require.Len(t, list, 1, name)
			require.Equal(t, at, list[0].path, name)
			require.NotNil(t, inPaths(ring40, identity{}, []Binding{{Paths: []string{"web/**"}}}, list))
			require.Nil(t, inPaths(ring40, identity{}, []Binding{{Paths: []string{"**"}}}, list))
		}
	}
}

// The form of a signature that nobody signed may change on its way, and real tools
// write each of these: none is refused, and what was signed is the same.
func TestEachFormOfASignatureThatToolsWriteCounts(t *testing.T) {
	y := newYard(t)
	y.gpg()
	y.allow("alice", "", "-t", "ecdsa", "-b", "256")
	bob := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	d := y.draft(noon)
	made := y.armourOf("ssh", "alice", d.payload())
	raw, err := unarmor([]byte(made), beginSSH, endSSH, false)
	require.NoError(t, err)
	pgp := y.armourOf("openpgp", bob, d.payload())
	packet, err := unarmor([]byte(pgp), beginPGP, endPGP, true)
	require.NoError(t, err)
	armoured := func(b []byte) string { return beginPGP + "\n\n" + base64Std(b) + "\n" + endPGP + "\n" }
	trust := y.trust(y.keyring(bob))
	ids, payloads := map[ring.SHA]bool{}, map[string]bool{}
	for name, armour := range map[string]string{
		"ECDSA as made":                   made,
		"ECDSA with n-s for s":            string(armourSSH(otherS(t, raw))),
		"OpenPGP as made":                 pgp,
		"OpenPGP without unhashed key id": armoured(unhashed(t, packet, nil)),
		"OpenPGP with another unhashed part beside it": armoured(unhashed(t, packet, func(area []byte) []byte {
			return append(area, 2, 101, 7) // private use
		})),
	} {
		sha := y.put(d.signed([]byte(armour)))
		require.True(t, y.gitSays(sha), "git verify-commit: %s", name)
		_, refusal, err := trust.One(y, sha, noon, nil)
		require.NoError(t, err)
		require.Nil(t, refusal, name)
		p, _, err := readCommit(y, sha)
		require.NoError(t, err)
		ids[sha], payloads[string(p.payload)] = true, true
	}
	require.Len(t, ids, 5)
	require.Len(t, payloads, 1)
}

// otherS is an ECDSA signature with the other of its two forms.
func otherS(t *testing.T, raw []byte) []byte {
	t.Helper()
	var blob sshBlob
	require.NoError(t, ssh.Unmarshal(raw, &blob))
	var sig struct {
		Format string
		Blob   []byte
	}
	require.NoError(t, ssh.Unmarshal([]byte(blob.Signature), &sig))
	var rs struct{ R, S *big.Int }
	require.NoError(t, ssh.Unmarshal(sig.Blob, &rs))
	rs.S.Sub(elliptic.P256().Params().N, rs.S)
	sig.Blob = ssh.Marshal(rs)
	blob.Signature = string(ssh.Marshal(sig))
	return ssh.Marshal(blob)
}

// unhashed changes the part of a signature that nobody signs; nil empties it.
func unhashed(t *testing.T, packet []byte, change func([]byte) []byte) []byte {
	t.Helper()
	require.Equal(t, byte(0x88), packet[0], "an old packet of one length byte")
	body := packet[2:]
	at := 6 + int(body[4])<<8 + int(body[5])
	n := int(body[at])<<8 + int(body[at+1])
	area := bytes.Clone(body[at+2 : at+2+n])
	if change == nil {
		area = nil
	} else {
		area = change(area)
	}
	out := append(bytes.Clone(body[:at]), byte(len(area)>>8), byte(len(area)))
	out = append(append(out, area...), body[at+2+n:]...)
	return append([]byte{0x88, byte(len(out))}, out...)
}
