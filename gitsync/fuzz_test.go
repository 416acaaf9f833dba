package gitsync

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseCommit: whatever the bytes, the parser answers, and what it accepts
// can be put together again from its parts: nothing is lost between what was
// hashed and what was signed.
func FuzzParseCommit(f *testing.F) {
	d := plain(noTree, noon, ring40)
	d.rest = "change-id x\nmergetag object\n type\n"
	f.Add([]byte(d.payload()))
	f.Add([]byte(d.signed([]byte(beginSSH + "\nAAAA\n" + endSSH + "\n"))))
	f.Add([]byte(d.signed([]byte(beginPGP + "\n\nAAAA\n=AAAA\n" + endPGP + "\n"))))
	f.Add([]byte(d.top + "encoding x\n gpgsig y\n\n\n"))
	f.Add([]byte("tree \n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, refusal := parseCommit(ring40, raw)
		if refusal != nil {
			require.Nil(t, p)
			require.NotEmpty(t, refusal.Says)
			return
		}
		p.subject()
		p.allowRemove()
		if p.signature == nil {
			require.Equal(t, raw, p.payload)
			return
		}
		header := append([]byte("gpgsig "), bytes.ReplaceAll(bytes.TrimSuffix(p.signature, []byte("\n")), []byte("\n"), []byte("\n "))...)
		i := bytes.Index(raw, append([]byte("\n"), header...))
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, len(raw), len(p.payload)+len(header)+1)
		require.True(t, bytes.HasSuffix(p.payload, append([]byte("\n\n"), p.message...)))
	})
}

// FuzzAllowedSigners: no file makes the parser fail other than by an error that
// names a line, and every signer has a name and a key.
func FuzzAllowedSigners(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPIVXWdPxtIZNrWT764sJaLtR6C5nQAzZeoU+C5Fq8zU"
	f.Add("alice@example.org " + key)
	f.Add("# comment\n\n\"a,b\" namespaces=\"git\",valid-after=\"20250101Z\" " + key + " alice\r\n")
	f.Add("* cert-authority,valid-before=\"202501010000\" " + key)
	f.Add("a namespaces=\"")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseAllowedSigners("signers", []byte(text))
		if err != nil {
			require.Regexp(t, `^cannot read signers:\d+: .`, err.Error())
			return
		}
		for _, lines := range all {
			for _, s := range lines {
				require.NotNil(t, s.key)
				require.NotEmpty(t, s.place)
				require.NotPanics(t, func() { s.principal() })
				matchList(s.namespaces, gitNamespace)
			}
		}
	})
}

// FuzzUnarmor: an accepted armour has one spelling. Two that mean the same bytes
// would be two SHAs of one signed commit.
func FuzzUnarmor(f *testing.F) {
	f.Add([]byte(beginPGP + "\nVersion: 1\n\nAAAA\n=Ba4i\n" + endPGP + "\n"))
	f.Add([]byte(beginSSH + "\nAAAA\nAAA=\n" + endSSH + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := unarmor(text, beginSSH, endSSH, false)
		if err != nil {
			return
		}
		var b64 []byte
		for line := range bytes.Lines(text) {
			if !bytes.HasPrefix(line, []byte("-----")) {
				b64 = append(b64, bytes.TrimSuffix(line, []byte("\n"))...)
			}
		}
		require.Equal(t, base64Std(raw), string(b64))
	})
}
