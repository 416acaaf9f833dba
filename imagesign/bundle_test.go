package imagesign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const (
	ours   = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	theirs = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
)

// signer signs as the formats say, by the standard library alone.
type signer struct{ key *ecdsa.PrivateKey }

func newSigner(t *testing.T) (signer, Key) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	keys, err := ParseKeys(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	require.NoError(t, err)
	require.Len(t, keys, 1)
	return signer{key}, keys[0]
}

func (s signer) sign(message string) string {
	sum := sha256.Sum256([]byte(message))
	sig, _ := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	return base64.StdEncoding.EncodeToString(sig)
}

func statement(predicate string, digests ...string) string {
	var subjects []string
	for _, d := range digests {
		subjects = append(subjects, `{"digest":{"sha256":"`+strings.TrimPrefix(d, "sha256:")+`"}}`)
	}
	return `{"_type":"https://in-toto.io/Statement/v1","subject":[` + strings.Join(subjects, ",") + `],"predicateType":"` + predicate + `","predicate":{}}`
}

const signs = "https://sigstore.dev/cosign/sign/v1"

// bundle is one over a statement; change rewrites its text.
func (s signer) bundle(body string, change ...string) []byte {
	const kind = "application/vnd.in-toto+json"
	sig := s.sign(fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(body), body))
	out := `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},` +
		`"dsseEnvelope":{"payload":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `","payloadType":"` + kind + `","signatures":[{"sig":"` + sig + `"}]}}`
	return []byte(strings.NewReplacer(change...).Replace(out))
}

func TestABundleSaysWhoSignedTheImage(t *testing.T) {
	s, key := newSigner(t)
	_, other := newSigner(t)
	for _, body := range []string{statement(signs, ours), statement(signs, theirs, ours)} {
		who, err := JudgeBundle(s.bundle(body), ours, []Key{other, key})
		require.NoError(t, err)
		require.Equal(t, []string{key.ID}, who)
		who, err = JudgeBundle(s.bundle(body), ours, []Key{other})
		require.NoError(t, err)
		require.Empty(t, who)
	}
}

func TestABundleThatIsAnythingElseCountsForNothing(t *testing.T) {
	s, key := newSigner(t)
	good := statement(signs, ours)
	for _, tt := range []struct {
		name string
		body []byte
	}{
		{"an attestation", s.bundle(statement("https://slsa.dev/provenance/v1", ours))},
		{"another digest", s.bundle(statement(signs, theirs))},
		{"two others", s.bundle(statement(signs, theirs, theirs))},
		{"no subject", s.bundle(statement(signs))},
		{"another statement", s.bundle(strings.Replace(good, "Statement/v1", "Statement/v0.1", 1))},
		{"a digest of another kind", s.bundle(strings.Replace(good, `"sha256"`, `"sha512"`, 1))},
		{"a digest in capitals", s.bundle(strings.Replace(good, "abcdef", "ABCDEF", 1))},
		{"the predicate in another spelling", s.bundle(strings.Replace(good, "predicateType", "PredicateType", 1))},
		{"the predicate twice", s.bundle(strings.Replace(good, `"predicate":`, `"predicateType":"x","predicate":`, 1))},
		{"something behind the statement", s.bundle(good + " {}")},
		{"another payload type", s.bundle(good, "vnd.in-toto+json", "json")},
		{"two signatures", s.bundle(good, `"signatures":[`, `"signatures":[{"sig":"AAAA"},`)},
		{"no signature", s.bundle(good, `"signatures":[{"sig"`, `"signatures":[],"x":[{"sig"`)},
		{"a certificate", s.bundle(good, `"publicKey":{"hint":"x"}`, `"certificate":{"rawBytes":"AAAA"}`)},
		{"a certificate beside the key", s.bundle(good, `"publicKey"`, `"certificate":{"rawBytes":"AAAA"},"publicKey"`)},
		{"a chain of certificates", s.bundle(good, `"publicKey":{"hint":"x"}`, `"x509CertificateChain":{}`)},
		{"a key with a name", s.bundle(good, `{"sig"`, `{"keyid":"x","sig"`)},
		{"no key", s.bundle(good, `"publicKey":{"hint":"x"}`, "")},
		{"a signed text", s.bundle(good, `"dsseEnvelope"`, `"messageSignature":{},"dsseEnvelope"`)},
		{"an older type", s.bundle(good, "bundle.v0.3+json", "bundle+json;version=0.1")},
		{"a newer type", s.bundle(good, "v0.3", "v0.4")},
		{"a member that is not known", s.bundle(good, `{"mediaType"`, `{"extra":1,"mediaType"`)},
		{"a member in another spelling", s.bundle(good, `"dsseEnvelope"`, `"DsseEnvelope"`)},
		{"a member twice", s.bundle(good, `{"mediaType"`, `{"mediaType":"x","mediaType"`)},
		{"cut", s.bundle(good)[:200]},
		{"a line in the payload", s.bundle(good, `"payload":"eyJf`, `"payload":"eyJf\n`)},
		{"too large", append(s.bundle(good), []byte(strings.Repeat(" ", MostBytes))...)},
		{"empty", nil},
		{"a list", []byte("[]")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			who, err := JudgeBundle(tt.body, ours, []Key{key})
			require.Error(t, err, "%v", who)
		})
	}
}

// No byte of a bundle can be changed so that it speaks for another image or key.
func TestEachChangedByteOfABundleIsRefusedOrSaysTheSame(t *testing.T) {
	s, key := newSigner(t)
	body := s.bundle(statement(signs, ours))
	for i := range body {
		for _, b := range []byte{body[i] ^ 1, body[i] ^ 0x20, 'A', '"', ' '} {
			changed := append([]byte{}, body...)
			changed[i] = b
			who, err := JudgeBundle(changed, theirs, []Key{key})
			require.Error(t, err, "%d %q: %v", i, b, who)
			if who, err := JudgeBundle(changed, ours, []Key{key}); err == nil && len(who) > 0 {
				require.Contains(t, string(changed), `"payload":"`+base64.StdEncoding.EncodeToString([]byte(statement(signs, ours))), "the statement is the signed one")
			}
		}
	}
}

func TestAnOlderSignatureSaysWhoSignedTheImage(t *testing.T) {
	s, key := newSigner(t)
	good := `{"critical":{"identity":{"docker-reference":"a/b"},"image":{"docker-manifest-digest":"` + ours + `"},"type":"cosign container image signature"},"optional":null}`
	who, err := JudgeSimple([]byte(good), s.sign(good), ours, []Key{key})
	require.NoError(t, err)
	require.Equal(t, []string{key.ID}, who)

	who, err = JudgeSimple([]byte(good+" "), s.sign(good), ours, []Key{key})
	require.NoError(t, err)
	require.Empty(t, who, "another text than was signed")
	for _, body := range []string{
		strings.Replace(good, ours, theirs, 1), strings.Replace(good, "cosign container image signature", "atomic container signature", 1),
		strings.Replace(good, `"critical"`, `"Critical"`, 1), strings.Replace(good, `"type"`, `"type":"x","type"`, 1), good + "{}", "", "[]",
	} {
		_, err := JudgeSimple([]byte(body), s.sign(body), ours, []Key{key})
		require.Error(t, err, body)
	}
	_, err = JudgeSimple([]byte(good), s.sign(good), "", []Key{key})
	require.Error(t, err)
	_, err = JudgeSimple([]byte(good), "no base64", ours, []Key{key})
	require.Error(t, err)
}

func TestATallyCountsDifferentKeys(t *testing.T) {
	rule := Rule{Match: "**", Keys: []Key{{ID: "a"}, {ID: "b"}}, Threshold: 2, At: "p.yaml:3"}
	tally := Tally{Rule: &rule}
	require.Equal(t, ring.ImageUnsigned, tally.Refusal("img", []string{"tag x"}).Code)
	tally.Add(Bundle, []string{"a"}, nil)
	tally.Add(Simple, []string{"a"}, nil)
	require.False(t, tally.Enough(), "one key twice is one")
	require.Equal(t, ring.ImageSignature, tally.Refusal("img", nil).Code)
	tally.Add(Simple, []string{"b"}, nil)
	require.True(t, tally.Enough())
	require.Nil(t, tally.Refusal("img", nil))
	require.Equal(t, Bundle, tally.Form)
	zero := Tally{Rule: &Rule{}}
	require.False(t, zero.Enough(), "no rule lets pass by saying nothing")
}

func TestKeysThatAreWeakOrUnknownAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"RSA of 1024 bits", "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC7JHoJfg6yNzLMOWet8Z49a4KD0dCspMAYvo2YAMB7/wdEycocujbhJ2n/seONi+5XqTqqFkM5VBl8rmkkFPZk/7x0xmdsTPECSWnHK+HhoaNDFPR3j8jQhVo1laxiqcEhAHegi5cwtFosuJAvSKAFKEvyD43si00DQnXWrYHAEQIDAQAB", "needs 2048"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseKeys([]byte("-----BEGIN PUBLIC KEY-----\n" + tt.body + "\n-----END PUBLIC KEY-----\n"))
			require.ErrorContains(t, err, tt.want)
		})
	}
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	_, err = ParseKeys(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	require.ErrorContains(t, err, "curve P-224")
}
