package gitsync

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A signature that no tool writes is refused, and one that any tool writes is not:
// TestSignaturesSpelledByForgesAndTools has these. Nothing rests on a signed commit
// having one SHA alone.
func TestSpellingsThatNoToolWritesAreRefused(t *testing.T) {
	y := newYard(t)
	y.gpg()
	y.allow("alice", "")
	bob := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	d := y.draft(noon)
	trust := y.trust(y.keyring(bob))
	ssh := string(sshSign(t, y.signer("alice"), d.payload(), "git"))
	p, refusal, err := readCommit(y, y.pgpSign(d, bob, noon))
	require.NoError(t, err)
	require.Nil(t, refusal)
	pgp := string(p.signature)

	sshRaw := func(change func([]byte) []byte) string {
		raw, err := unarmor([]byte(ssh), beginSSH, endSSH, false)
		require.NoError(t, err)
		return string(armourSSH(change(raw)))
	}
	pgpRaw := func(change func([]byte) []byte) string {
		raw, err := unarmor([]byte(pgp), beginPGP, endPGP, true)
		require.NoError(t, err)
		return beginPGP + "\n\n" + base64Std(change(raw)) + "\n" + endPGP + "\n"
	}
	same := func(b []byte) []byte { return b }

	judge := func(armour string) *ring.Refusal {
		sha := y.put(d.signed([]byte(armour)))
		_, refusal, err := trust.One(y, sha, noon, nil)
		require.NoError(t, err)
		return refusal
	}
	for name, armour := range map[string]string{
		"SSH as made": ssh, "SSH armoured anew": sshRaw(same), "OpenPGP as made": pgp, "OpenPGP without a checksum": pgpRaw(same),
		"OpenPGP with a comment": strings.Replace(pgp, "\n\n", "\nComment: hello\n\n", 1),
	} {
		require.Nil(t, judge(armour), name)
	}
	for name, armour := range map[string]string{
		"SSH, junk before":               "junk\n" + ssh,
		"SSH, a header":                  strings.Replace(ssh, "\n", "\nComment: x\n\n", 1),
		"SSH, an empty line inside":      strings.Replace(ssh, "\n", "\n\n", 1),
		"SSH, a space in the base64":     strings.Replace(ssh, "\nU1NI", "\nU1 NI", 1),
		"SSH, bytes after the blob":      sshRaw(func(b []byte) []byte { return append(b, 0) }),
		"SSH, bytes after the signature": sshRaw(lengthen),
		"SSH, version 2":                 sshRaw(func(b []byte) []byte { b[9] = 2; return b }),
		"SSH, another hash":              sshRaw(func(b []byte) []byte { return bytes.Replace(b, []byte("sha512"), []byte("sha256"), 1) }),
		"SSH, end of another kind":       strings.Replace(ssh, endSSH, endPGP, 1),
		"SSH, loose bits at the end":     loose(t, ssh, endSSH),
		"OpenPGP, junk before":           "junk\n" + pgp,
		"OpenPGP, twice":                 pgp + pgp,
		"OpenPGP, a wrong checksum":      wrongSum(pgp),
		"OpenPGP, a packet more":         pgpRaw(func(b []byte) []byte { return append(b, 0xca, 3, 'P', 'G', 'P') }),
		"OpenPGP, a packet before":       pgpRaw(func(b []byte) []byte { return append([]byte{0xca, 3, 'P', 'G', 'P'}, b...) }),
		"OpenPGP, another hash tag":      pgpRaw(hashTag),
		"OpenPGP, nothing":               beginPGP + "\n\n" + endPGP + "\n",
		"OpenPGP message":                strings.ReplaceAll(pgp, "PGP SIGNATURE", "PGP MESSAGE"),
		"neither":                        "hello\n",
	} {
		refusal := judge(armour)
		require.NotNil(t, refusal, name)
		require.Equal(t, ring.BadSignature, refusal.Code, name)
	}
}

// lengthen adds bytes to the inner signature, where its reader stops early.
func lengthen(b []byte) []byte {
	// The last string of the blob is string(algorithm) string(signature).
	const inner = 4 + 11 + 4 + 64
	cut := len(b) - inner
	out := append([]byte(nil), b[:cut]...)
	out[cut-1] += 3
	return append(append(out, b[cut:]...), 1, 2, 3)
}

// loose sets a bit of the last base64 character that stands for nothing.
func loose(t *testing.T, armour, end string) string {
	t.Helper()
	body, _, _ := strings.Cut(armour, "\n"+end)
	trimmed := strings.TrimRight(body, "=")
	require.NotEqual(t, body, trimmed, "this signature leaves no bit over")
	b := []byte(body)
	b[len(trimmed)-1]++
	return string(b) + "\n" + end + "\n"
}

func wrongSum(armour string) string {
	i := strings.Index(armour, "\n=") + 2
	b := []byte(armour)
	b[i] = map[bool]byte{true: 'B', false: 'A'}[b[i] == 'A']
	return string(b)
}

// hashTag changes the two bytes that no signature covers; they stand before the
// two numbers that end an ed25519 signature.
func hashTag(b []byte) []byte {
	p, err := packet.Read(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	sig := p.(*packet.Signature)
	at := len(b) - int(sig.EdDSASigR.EncodedLength()) - int(sig.EdDSASigS.EncodedLength()) - len(sig.HashTag)
	if !bytes.Equal(b[at:at+2], sig.HashTag[:]) {
		panic("not where the hash tag is")
	}
	b[at] ^= 0xff
	return b
}
