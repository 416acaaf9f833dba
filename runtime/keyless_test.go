package runtime

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/registrytest"
)

// authority issues certificates for an hour, as Fulcio does for who signs without a key of
// his own: they name who that was, and who vouched for him.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	told *transparencyLog // of certificates; nil where none is told of them
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority of the tests"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	body, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(body)
	require.NoError(t, err)
	return &authority{cert: cert, key: key}
}

// pem is a certificate as programs read it.
func pemOf(cert []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
}

// issue is a certificate for a key that whoever proved to be somebody made for one signature.
func (a *authority) issue(t *testing.T, who, issuer string, key *ecdsa.PublicKey) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), EmailAddresses: []string{who},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}},
	}
	body, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	require.NoError(t, err)
	if a.told == nil {
		return body
	}
	bare, err := x509.ParseCertificate(body)
	require.NoError(t, err)
	template.ExtraExtensions = append(template.ExtraExtensions, a.told.timestamps(t, a.cert, bare.RawTBSCertificate))
	body, err = x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	require.NoError(t, err)
	return body
}

// timestamps are what a log of certificates promises of one that is about to be issued (RFC
// 6962, section 3): the extension that is put into it.
func (l *transparencyLog) timestamps(t *testing.T, issuer *x509.Certificate, tbs []byte) pkix.Extension {
	t.Helper()
	_, id := l.public(t)
	at := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	by := sha256.Sum256(issuer.RawSubjectPublicKeyInfo)
	said := slices.Concat([]byte{0, 0}, at, []byte{0, 1}, by[:], []byte{byte(len(tbs) >> 16), byte(len(tbs) >> 8), byte(len(tbs))}, tbs, []byte{0, 0})
	sum := sha256.Sum256(said)
	word, err := ecdsa.SignASN1(rand.Reader, l.key, sum[:])
	require.NoError(t, err)
	short := func(b []byte) []byte { return append([]byte{byte(len(b) >> 8), byte(len(b))}, b...) }
	const sha256AndECDSA = "\x04\x03"
	one := slices.Concat([]byte{0}, id, at, []byte{0, 0}, []byte(sha256AndECDSA), short(word))
	list, err := asn1.Marshal(short(short(one)))
	require.NoError(t, err)
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: list}
}

// transparencyLog promises that it has an entry, as Rekor does with what is signed without a key.
type transparencyLog struct{ key *ecdsa.PrivateKey }

func newTransparencyLog(t *testing.T) *transparencyLog {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return &transparencyLog{key}
}

// public is its key, and the name that is made of it.
func (l *transparencyLog) public(t *testing.T) (der, id []byte) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&l.key.PublicKey)
	require.NoError(t, err)
	sum := sha256.Sum256(der)
	return der, sum[:]
}

// promise is what cosign keeps beside a signature: the entry, and the log's word for it.
func (l *transparencyLog) promise(t *testing.T, text, signature, cert []byte) string {
	t.Helper()
	sum := sha256.Sum256(text)
	entry, err := json.Marshal(map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
		"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
		"signature": map[string]any{"content": signature, "publicKey": map[string]any{"content": cert}},
	}})
	require.NoError(t, err)
	_, id := l.public(t)
	payload := map[string]any{"body": entry, "integratedTime": time.Now().Unix(), "logID": hex.EncodeToString(id), "logIndex": 7}
	canonical, err := json.Marshal(payload) // keys are sorted, and nothing in it needs another form
	require.NoError(t, err)
	sum = sha256.Sum256(canonical)
	word, err := ecdsa.SignASN1(rand.Reader, l.key, sum[:])
	require.NoError(t, err)
	out, err := json.Marshal(map[string]any{"SignedEntryTimestamp": word, "Payload": payload})
	require.NoError(t, err)
	return string(out)
}

// trustedRoot is the file by which a host trusts an authority and a log, as cosign reads it.
func trustedRoot(t *testing.T, a *authority, l *transparencyLog) []byte {
	t.Helper()
	der, id := l.public(t)
	since := map[string]any{"start": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}
	log := []any{map[string]any{
		"baseUrl": "https://log.example", "hashAlgorithm": "SHA2_256", "logId": map[string]any{"keyId": id},
		"publicKey": map[string]any{"rawBytes": der, "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": since},
	}}
	out, err := json.Marshal(map[string]any{
		"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
		"tlogs":     log, "ctlogs": log,
		"certificateAuthorities": []any{map[string]any{
			"subject": map[string]any{"organization": "tests", "commonName": "an authority of the tests"}, "uri": "https://authority.example",
			"certChain": map[string]any{"certificates": []any{map[string]any{"rawBytes": a.cert.Raw}}}, "validFor": since,
		}},
	})
	require.NoError(t, err)
	return out
}

// signs puts a keyless signature of cosign's older form beside an image, with the word of a log
// where there is one.
func (a *authority) signs(t *testing.T, reg *registrytest.Registry, repo, digest, who, issuer string, log *transparencyLog) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text := []byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	require.NoError(t, err)
	cert := pemOf(a.issue(t, who, issuer, &key.PublicKey))
	beside := map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
		"dev.sigstore.cosign/certificate":    string(cert),
		"dev.sigstore.cosign/chain":          string(pemOf(a.cert.Raw)),
	}
	if log != nil {
		beside["dev.sigstore.cosign/bundle"] = log.promise(t, text, signature, cert)
	}
	config := []byte(`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":["sha256:` + strings.Repeat("0", 64) + `"]},"config":{}}`)
	type descriptor struct {
		Type        string            `json:"mediaType"`
		Size        int               `json:"size"`
		Digest      string            `json:"digest"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor{Type: "application/vnd.oci.image.config.v1+json", Size: len(config), Digest: reg.PutBlob(repo, config)},
		"layers": []descriptor{{
			Type: "application/vnd.dev.cosign.simplesigning.v1+json", Size: len(text), Digest: reg.PutBlob(repo, text),
			Annotations: beside,
		}},
	})
	require.NoError(t, err)
	reg.PutManifest(repo, strings.Replace(digest, ":", "-", 1)+".sig", "application/vnd.oci.image.manifest.v1+json", manifest)
}

// realProgram is a program that make cosign builds, in a folder that is of nobody else's.
func realProgram(t *testing.T, name string) (program, dir string) {
	t.Helper()
	built, err := filepath.Abs("../bin/" + name)
	require.NoError(t, err)
	if _, err := os.Stat(built); err != nil {
		t.Skipf("no bin/%s; make cosign builds it", name)
	}
	dir = t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	program = filepath.Join(dir, name)
	out, err := exec.Command("cp", built, program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program, dir
}

// byProgram is a registry, and a host whose rule has a program judge its images.
type byProgram struct {
	*registrytest.Registry
	at   string
	rule imagesign.Rule
}

func newByProgram(t *testing.T) *byProgram {
	t.Helper()
	p := &byProgram{Registry: registrytest.New()}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	p.at = strings.TrimPrefix(srv.URL, "http://")
	return p
}

// image puts one of its own into a repository.
func (p *byProgram) image(repo string) (digest string) {
	body := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,"digest":"` + p.PutBlob(repo, []byte("{}")) + `"},"layers":[],"annotations":{"of":"` + repo + `"}}`)
	return p.PutManifest(repo, "1", "application/vnd.oci.image.manifest.v1+json", body)
}

func (p *byProgram) judged(t *testing.T, repo, digest string, argv ...string) (*ring.ImageVerdict, error) {
	t.Helper()
	p.rule = imagesign.Rule{Match: "**", Timeout: 2 * time.Minute, At: "policy.yaml:4", Exec: argv}
	d := newDocker(Options{ImageRules: func() ([]imagesign.Rule, error) { return []imagesign.Rule{p.rule}, nil }}, &calls{}, nil)
	image := p.at + "/" + repo + ":1@" + digest
	done, err := d.verify(t.Context(), loopbackInClear(), ring.Action{
		Kind: ring.DoVerify, App: "web", Service: "web", Image: image, Asks: &ring.ImageAsk{Written: image, Rule: p.rule.Hash()},
	})
	return done.Verdict, err
}

// A signature without a key of one's own, judged by the real cosign as a rule's program, with no
// network but the registry: by an authority of the host's own, by one with a transparency log,
// and by one that tells a log of its certificates, too, as the public one has. make cosign
// builds it.
func TestCosignJudgesAKeylessSignatureAsTheProgramOfARule(t *testing.T) {
	program, dir := realProgram(t, "cosign2")
	ours, theirs := newAuthority(t), newAuthority(t)
	log, another := newTransparencyLog(t), newTransparencyLog(t)
	roots, root := filepath.Join(dir, "roots.pem"), filepath.Join(dir, "root.json")
	require.NoError(t, os.WriteFile(roots, pemOf(ours.cert.Raw), 0o644))
	require.NoError(t, os.WriteFile(root, trustedRoot(t, ours, log), 0o644))
	const who, issuer = "ci@acme.example", "https://token.acme.example"
	for name, how := range map[string]struct {
		argv []string
		log  *transparencyLog
		told bool
	}{
		"no log":       {argv: []string{"--ca-roots=" + roots, "--insecure-ignore-tlog", "--insecure-ignore-sct"}},
		"a log":        {argv: []string{"--trusted-root=" + root, "--offline", "--insecure-ignore-sct"}, log: log},
		"logs of both": {argv: []string{"--trusted-root=" + root, "--offline"}, log: log, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newByProgram(t)
			if ours.told, theirs.told = nil, nil; how.told {
				ours.told, theirs.told = log, log
			}
			argv := append([]string{program, "verify", "--certificate-identity=" + who, "--certificate-oidc-issuer=" + issuer, "--allow-http-registry", imagesign.Image}, how.argv...)
			signed := func(repo string, by *authority, who, issuer string, log *transparencyLog) (*ring.ImageVerdict, error) {
				digest := p.image(repo)
				if by != nil {
					by.signs(t, p.Registry, repo, digest, who, issuer, log)
				}
				return p.judged(t, repo, digest, argv...)
			}
			v, err := signed("acme/good", ours, who, issuer, how.log)
			require.NoError(t, err)
			require.True(t, v.Good)
			refused := func(why string, v *ring.ImageVerdict, err error) {
				t.Helper()
				require.Nil(t, v, why)
				require.Equal(t, ring.ImageSignature, codeOf(err), "%s: %v", why, err)
			}
			v, err = signed("acme/unsigned", nil, "", "", nil)
			refused("nobody signed it", v, err)
			v, err = signed("acme/other", ours, "mallory@acme.example", issuer, how.log)
			refused("somebody else signed it", v, err)
			v, err = signed("acme/issuer", ours, who, "https://token.example", how.log)
			refused("somebody else vouched for him", v, err)
			v, err = signed("acme/theirs", theirs, who, issuer, how.log)
			refused("another authority", v, err)
			if how.log != nil {
				v, err = signed("acme/log", ours, who, issuer, another)
				refused("another log promised it", v, err)
				v, err = signed("acme/unlogged", ours, who, issuer, nil)
				refused("no log promised it", v, err)
			}
			if how.told {
				ours.told = nil
				v, err = signed("acme/untold", ours, who, issuer, how.log)
				refused("no log was told of the certificate", v, err)
				ours.told = another
				v, err = signed("acme/told", ours, who, issuer, how.log)
				refused("another log was told of the certificate", v, err)
			}
		})
	}
}
