package gitsync

import (
	"bytes"
	"strings"
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
	f.Add([]byte(d.signed([]byte(beginPGP + "\r\n\r\nAAAA\r\n" + endPGP + "\r\n\r\n"))))
	for _, s := range forgeSpellings() {
		f.Add([]byte(s.signed(d, beginPGP+"\n\niQ4FAAAA\n"+endPGP+"\n")))
	}
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
		n := len(raw) - len(p.payload)
		require.Positive(t, n)
		i := commonPrefix(raw, p.payload)
		for i > 0 && !bytes.HasPrefix(raw[i:], []byte("gpgsig ")) {
			i-- // what follows the header may begin as it does
		}
		require.Equal(t, byte('\n'), raw[i-1])
		require.Equal(t, p.payload[i:], raw[i+n:])
		header := strings.TrimSuffix(strings.TrimPrefix(string(raw[i:i+n]), "gpgsig "), "\n")
		require.Equal(t, string(p.signature), strings.ReplaceAll(header, "\n ", "\n")+"\n")
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

// FuzzUnarmor: the base64 of an accepted armour has one spelling, and nothing
// after the armour counts.
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
			if string(bytes.TrimSuffix(line, []byte("\n"))) == endSSH {
				break
			}
			if !bytes.HasPrefix(line, []byte("-----")) {
				b64 = append(b64, bytes.TrimSuffix(line, []byte("\n"))...)
			}
		}
		require.Equal(t, base64Std(raw), string(b64))
	})
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
