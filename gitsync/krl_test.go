package gitsync

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// krlOf has ssh-keygen -k make a list of the specification, or of key files.
func (y *yard) krlOf(specification string, args ...string) string {
	y.t.Helper()
	file := filepath.Join(y.t.TempDir(), "krl")
	all := append([]string{"-q", "-k", "-f", file}, args...)
	if specification != "" {
		spec := file + ".spec"
		require.NoError(y.t, os.WriteFile(spec, []byte(specification), 0o600))
		all = append(all, spec)
	}
	y.run(os.Environ(), y.keys, "ssh-keygen", all...)
	return file
}

// TestRevocationListsAreReadAsSSHKeygenReadsThem makes lists of every kind with the
// real ssh-keygen and asks it and gitring about the same keys and certificates.
func TestRevocationListsAreReadAsSSHKeygenReadsThem(t *testing.T) {
	y := newYard(t)
	for _, name := range []string{"ca", "other", "alice", "bob", "carol"} {
		y.key(name)
	}
	ask := map[string]ssh.PublicKey{}
	for _, name := range []string{"ca", "alice", "bob"} {
		ask[name+".pub"] = y.signer(name).PublicKey()
	}
	for name, of := range map[string][]string{
		"c0": {"ca"}, "c1": {"ca", "-z", "1"}, "c5": {"ca", "-z", "5"}, "c64": {"ca", "-z", "64"}, "c900": {"ca", "-z", "900"},
		"c901": {"ca", "-z", "901"}, "c1000000": {"ca", "-z", "1000000"}, "max": {"ca", "-z", "18446744073709551615"}, "o5": {"other", "-z", "5"},
	} {
		y.run(os.Environ(), y.keys, "cp", "carol.pub", name+".pub")
		ask[name+"-cert.pub"] = y.certify(of[0], name, append([]string{"-I", "id of " + name, "-n", "carol@example.org"}, of[1:]...)...)
	}
	var many strings.Builder // so many, so near, that ssh-keygen takes a bitmap
	for n := 1; n < 200; n += 2 {
		fmt.Fprintf(&many, "serial: %d\n", n)
	}
	sum := func(flag string) string {
		return strings.Fields(y.run(os.Environ(), y.keys, "ssh-keygen", "-l", "-E", flag, "-f", "alice.pub"))[1]
	}
	ca := []string{"-s", "ca.pub"}
	for _, c := range []struct {
		name, specification string
		args                []string
	}{
		{"nothing", "", nil},
		{"keys", "", []string{"alice.pub", "ca.pub"}},
		{"a certificate by file", "", []string{"-s", "ca.pub", "c5-cert.pub"}},
		{"a certificate without a serial by file", "", []string{"-s", "ca.pub", "c0-cert.pub"}},
		{"serials", "serial: 5\nserial: 900\nserial: 18446744073709551615\n", ca},
		{"a range of serials", "serial: 900-2000000\n", ca},
		{"a bitmap of serials", many.String(), ca},
		{"a bitmap far out", strings.ReplaceAll(many.String(), "serial: ", "serial: 9"), ca},
		{"key ids", "id: id of c64\nid: id of nobody\n", ca},
		{"key ids of every authority", "id: id of o5\n", []string{"-s", "none"}},
		{"a SHA1 fingerprint", "sha1: " + strings.Join(strings.Fields(y.publicLine("alice"))[:2], " ") + "\n", nil},
		{"a SHA256 fingerprint", "sha256: " + strings.Join(strings.Fields(y.publicLine("alice"))[:2], " ") + "\n", nil},
		{"a hash", "hash: " + sum("sha256") + "\n", nil},
		{"a key", "key: " + y.publicLine("alice") + "\n", nil},
		{"everything", "serial: 1\nserial: 5-10\nid: id of c900\nkey: " + y.publicLine("bob") + "\nsha1: " + y.publicLine("alice") + "\n", ca},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := *y
			y.t = t
			file := y.krlOf(c.specification, c.args...)
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			revoked, err := parseRevoked(file, b)
			require.NoError(t, err)
			for name, key := range ask {
				cmd := exec.Command("ssh-keygen", "-Q", "-f", file, name)
				cmd.Dir = y.keys
				want := cmd.Run() != nil
				by := sshSignerOf(key)
				_, got := revoked.hasKey(by.key)
				if by.cert != nil && !got {
					if _, got = revoked.hasKey(by.cert.SignatureKey); !got {
						_, got = revoked.hasCertificate(by.cert)
					}
				}
				require.Equal(t, want, got, name)
			}
		})
	}
}

func (y *yard) publicLine(name string) string {
	y.t.Helper()
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(y.signer(name).PublicKey())))
}

// The same list decides about commits: of a key Revoked, of a certificate
// Certificate.
func TestARevocationListRefusesCommits(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.authority("ca", "*", "")
	y.key("bob")
	y.certify("ca", "bob", "-I", "bob", "-n", "bob@example.org", "-z", "77")
	byAlice := y.commit("alice", noon, "one")
	byBob := y.certCommit("bob", noon)
	for _, c := range []struct {
		name, specification string
		args                []string
		tip                 ring.SHA
		want                ring.Code
	}{
		{"V12 the key", "", []string{"alice.pub"}, byAlice, ring.Revoked},
		{"V12 the key, not the certificate", "", []string{"alice.pub"}, byBob, ""},
		{"V57 the serial", "serial: 77\n", []string{"-s", "ca.pub"}, byBob, ring.Certificate},
		{"V57 the key id", "id: bob\n", []string{"-s", "ca.pub"}, byBob, ring.Certificate},
		{"V57 the authority", "", []string{"ca.pub"}, byBob, ring.Certificate},
		{"V57 the certified key", "", []string{"bob.pub"}, byBob, ring.Revoked},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := *y
			y.t = t
			file := y.krlOf(c.specification, c.args...)
			require.NoError(t, os.Chmod(file, 0o600))
			y.ask(look{tip: c.tip, want: c.want, trust: []func(*TrustConfig){func(t *TrustConfig) { t.RevokedKeys = file }}})
		})
	}
}

func TestADamagedRevocationListIsOneErrorWithItsPlace(t *testing.T) {
	y := newYard(t)
	y.key("ca")
	b, err := os.ReadFile(y.krlOf("serial: 1\nserial: 10-2000\nid: x\nkey: "+y.publicLine("ca")+"\n", "-s", "ca.pub"))
	require.NoError(t, err)
	for n := len(krlMagic); n < len(b); n++ { // cut anywhere: an error, or a whole number of sections
		_, err := parseRevoked("krl", b[:n])
		if err != nil {
			require.Regexp(t, `^cannot read krl at byte \d+: this key revocation list is damaged: .+; make it again with ssh-keygen -k$`, err.Error())
		}
	}
	head := append([]byte(krlMagic), 0, 0, 0, 1)
	head = append(head, make([]byte, 8+8+8+4+4)...)
	section := func(kind byte, body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body))), body...)
	}
	certs := func(kind byte, body ...byte) []byte {
		return section(krlCertificates, append(make([]byte, 8), section(kind, body...)...)...)
	}
	eight := bytes.Repeat([]byte{255}, 8)
	for _, c := range []struct {
		name string
		b    []byte
		says string
	}{
		{"another version", append([]byte(krlMagic), 0, 0, 0, 9), "byte 12: this key revocation list is damaged: its format is version 9"},
		{"an unknown section", append(head, section(9)...), "byte 44: this key revocation list is damaged: section 9 is not known"},
		{"a signature", append(head, section(4)...), "section 4 is not known"},
		{"a short fingerprint", append(head, section(krlSHA256, 0, 0, 0, 1, 7)...), "byte 49: this key revocation list is damaged: a fingerprint has 1 bytes, not 32"},
		{"an unknown section of certificates", append(head, certs(0x30)...), "byte 57: this key revocation list is damaged: section 0x30"},
		{"half a serial", append(head, certs(krlSerials, 1, 2)...), "ends 6 bytes too early"},
		{"a range that runs back", append(head, certs(krlSerialRange, append(eight, make([]byte, 8)...)...)...), "does not end where it has to"},
		{"serial 0 in a list", append(head, certs(krlSerials, make([]byte, 8)...)...), "serial number 0"},
		{"serial 0 in a range", append(head, certs(krlSerialRange, append(make([]byte, 8), eight...)...)...), "serial number 0"},
		{"serial 0 in a bitmap", append(head, certs(krlSerialBitmap, append(make([]byte, 8), 0, 0, 0, 1, 1)...)...), "serial number 0"},
		{"a negative bitmap", append(head, certs(krlSerialBitmap, append(make([]byte, 8), 0, 0, 0, 1, 0x80)...)...), "negative"},
		{"a bitmap that runs over", append(head, certs(krlSerialBitmap, append(eight, 0, 0, 0, 1, 2)...)...), "does not end where it has to"},
		{"a critical extension", append(head, section(krlExtension, 0, 0, 0, 1, 'x', 1, 0, 0, 0, 0)...), `critical extension "x"`},
		{"a length that runs over", append(head, 2, 255, 255, 255, 255), "bytes too early"},
	} {
		_, err := parseRevoked("krl", c.b)
		require.ErrorContains(t, err, c.says, c.name)
		// ssh-keygen takes none of them either; exit 255 is an error, 1 is revoked.
		file := filepath.Join(t.TempDir(), "krl")
		require.NoError(t, os.WriteFile(file, c.b, 0o600))
		cmd := exec.Command("ssh-keygen", "-Q", "-f", file, "ca.pub")
		cmd.Dir = y.keys
		out, _ := cmd.CombinedOutput()
		require.NotContains(t, string(out), "ca.pub (ca): ok", c.name)
	}
	_, err = parseRevoked("krl", append(head, section(krlExtension, 0, 0, 0, 1, 'x', 0, 0, 0, 0, 0)...))
	require.NoError(t, err)
}

// FuzzKRL: whatever the bytes, an answer with a place, and questions to what was
// read end.
func FuzzKRL(f *testing.F) {
	head := append([]byte(krlMagic), 0, 0, 0, 1)
	head = append(head, make([]byte, 32)...)
	f.Add(head)
	for _, name := range []string{"mixed", "bitmap"} {
		b, err := os.ReadFile("testdata/krl/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	c := &ssh.Certificate{Serial: 5, KeyId: "x", SignatureKey: ed25519Key(f), Key: ed25519Key(f)}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRevoked("krl", b)
		if err != nil {
			require.Regexp(t, `^cannot read krl(:| at byte )\d+: .`, err.Error())
			return
		}
		r.hasKey(c.Key)
		r.hasCertificate(c)
		for _, at := range r.keys {
			require.NotEmpty(t, at)
		}
	})
}

func ed25519Key(t testing.TB) ssh.PublicKey {
	t.Helper()
	k, _, _, _, err := ssh.ParseAuthorizedKey([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPIVXWdPxtIZNrWT764sJaLtR6C5nQAzZeoU+C5Fq8zU"))
	require.NoError(t, err)
	return k
}
