package gitsync

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

const signedSeeds = "testdata/signed/"

// seedCommits are the commits of testdata/signed, by name.
func seedCommits(t testing.TB) map[string]*parsed {
	t.Helper()
	files, err := filepath.Glob(signedSeeds + "*.commit")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]*parsed{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		sha, _ := objectHash("commit", b)
		p, refusal := parseCommit(sha, b)
		require.Nil(t, refusal)
		all[strings.TrimSuffix(filepath.Base(f), ".commit")] = p
	}
	return all
}

// seedTrust trusts the keys of testdata/signed. The files are copied, because a
// checkout may be writable for others than its owner.
func seedTrust(t testing.TB) *Trust {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"allowed_signers", "keys.asc"} {
		b, err := os.ReadFile(signedSeeds + name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	trust, err := LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: filepath.Join(dir, "allowed_signers"), OpenPGPKeys: filepath.Join(dir, "keys.asc")}, "prod", "main")
	require.NoError(t, err)
	return trust
}

var seedMoments = moments{claimed: noon, seen: noon, now: noon}

func TestTheSeedsAreSigned(t *testing.T) {
	trust := seedTrust(t)
	for name, p := range seedCommits(t) {
		_, refusal := trust.signer(p, seedMoments)
		if name == "unsigned" {
			require.Equal(t, ring.Unsigned, refusal.Code)
			continue
		}
		require.Nil(t, refusal, name)
	}
}

// FuzzSignedCommit: however a signed commit is changed, what counts is what was
// signed: an accepted commit has the payload of a seed, to the byte.
func FuzzSignedCommit(f *testing.F) {
	trust := seedTrust(f)
	payloads := map[string]string{}
	for name, p := range seedCommits(f) {
		b, err := os.ReadFile(signedSeeds + name + ".commit")
		require.NoError(f, err)
		f.Add(b)
		if name != "unsigned" {
			id, refusal := trust.signer(p, seedMoments)
			require.Nil(f, refusal)
			payloads[string(p.payload)] = id.fingerprint
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sha, _ := objectHash("commit", raw)
		p, refusal := parseCommit(sha, raw)
		if refusal != nil {
			return
		}
		id, refusal := trust.signer(p, moments{claimed: p.committer.when, seen: noon, now: noon})
		if refusal != nil {
			require.NotEmpty(t, refusal.Says)
			require.NotEmpty(t, refusal.Hint)
			return
		}
		require.Equal(t, payloads[string(p.payload)], id.fingerprint, "nobody signed this")
	})
}

// FuzzSSHSignature: a signature that counts is by the key that made it, over the
// commit that it was made for, and one of ed25519 has only the bytes that it was
// made with.
func FuzzSSHSignature(f *testing.F) {
	fuzzSignature(f, beginSSH, func(text []byte) ([]byte, error) { return unarmor(text, beginSSH, endSSH, false) }, armourSSH)
}

// FuzzOpenPGPSignature: the same of the packets of OpenPGP, in which a part is
// signed by nobody.
func FuzzOpenPGPSignature(f *testing.F) {
	fuzzSignature(f, beginPGP, func(text []byte) ([]byte, error) { return unarmor(text, beginPGP, endPGP, true) }, func(raw []byte) []byte {
		return []byte(beginPGP + "\n\n" + base64Std(raw) + "\n" + endPGP + "\n")
	})
}

// fuzzSignature puts what becomes of the signatures of one kind on each commit.
func fuzzSignature(f *testing.F, begin string, unarmor func([]byte) ([]byte, error), armour func([]byte) []byte) {
	trust := seedTrust(f)
	seeds := seedCommits(f)
	made := map[string]string{} // signature to payload
	names := map[string]string{}
	for _, p := range seeds {
		if !bytes.HasPrefix(p.signature, []byte(begin)) {
			continue
		}
		raw, err := unarmor(p.signature)
		require.NoError(f, err)
		id, refusal := trust.signer(p, seedMoments)
		require.Nil(f, refusal)
		made[string(raw)], names[string(p.payload)] = string(p.payload), id.fingerprint
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, p := range seeds {
			q := *p
			q.signature = armour(raw)
			id, refusal := trust.signer(&q, seedMoments)
			if refusal != nil {
				require.NotEmpty(t, refusal.Says)
				continue
			}
			require.Equal(t, names[string(q.payload)], id.fingerprint, "by another key than signed %s", name)
			if name == "ssh-ed25519" {
				require.Equal(t, string(q.payload), made[string(raw)], "another form of the signature of %s", name)
			}
		}
	})
}

// FuzzKeyring: no file of OpenPGP keys makes the reader fail other than by an
// error, and every key that comes of it has a name that a terminal can show.
func FuzzKeyring(f *testing.F) {
	b, err := os.ReadFile(signedSeeds + "keys.asc")
	require.NoError(f, err)
	f.Add(b)
	const begin = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	for _, block := range strings.Split(string(b), begin)[1:] {
		f.Add([]byte("# a comment\n" + begin + block))
	}
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n=AAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseOpenPGPKeys("keys.asc", text)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "cannot "), err.Error())
			return
		}
		for _, k := range keys {
			require.Regexp(t, `^[0-9A-F]{40}([0-9A-F]{24})?$`, k.primary)
			require.NotNil(t, k.public)
			require.Equal(t, k.principal, wording.DropControls(k.principal, ""))
		}
	})
}

// FuzzSignersFile: no list of signers, in the configuration's folder or in the
// repository, makes the reader fail other than by a mistake with its line.
func FuzzSignersFile(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPIVXWdPxtIZNrWT764sJaLtR6C5nQAzZeoU+C5Fq8zU"
	f.Add("version: 1\nsigners:\n  - signer: alice@example.org\n    roles: [commit, trust]\n    paths: [apps/**]\n")
	f.Add("version: 1\nsigners:\n  - signer: carol@example.org\n    keys: [" + key + "]\n")
	f.Add("version: 1\nsigners:\n  - signer: carol@example.org\n    keys:\n      - {key: " + key + ", valid_after: 2026-01-01, valid_before: 2027-01-01}\n")
	f.Add("version: 1\nsigners: &a\n  - *a\n")
	f.Add("version: 2\nsigners: {}\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseBindings("signers.yaml", []byte(text)); err != nil {
			require.Regexp(t, `^cannot read signers\.yaml:[1-9]\d*: .`, err.Error())
		}
		s, mistake := parseRepoSigners("signers", []byte(text))
		if mistake != nil {
			require.Positive(t, mistake.Line)
			require.NotEmpty(t, mistake.Says)
			return
		}
		for fingerprint, grants := range s.grants {
			require.NotEmpty(t, fingerprint)
			require.NotEmpty(t, grants)
		}
	})
}
