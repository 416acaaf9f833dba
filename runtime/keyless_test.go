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
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
	return &authority{cert, key}
}

// pem is a certificate as programs read it.
func pemOf(cert []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
}

// issue is a certificate for a key that whoever proved to be somebody made for one signature.
func (a *authority) issue(t *testing.T, who, issuer string, key *ecdsa.PublicKey) []byte {
	t.Helper()
	body, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), EmailAddresses: []string{who},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}},
	}, a.cert, key, a.key)
	require.NoError(t, err)
	return body
}

// signs puts a keyless signature of cosign's older form beside an image.
func (a *authority) signs(t *testing.T, reg *registrytest.Registry, repo, digest, who, issuer string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text := []byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	require.NoError(t, err)
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
			Annotations: map[string]string{
				"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
				"dev.sigstore.cosign/certificate":    string(pemOf(a.issue(t, who, issuer, &key.PublicKey))),
				"dev.sigstore.cosign/chain":          string(pemOf(a.cert.Raw)),
			},
		}},
	})
	require.NoError(t, err)
	reg.PutManifest(repo, strings.Replace(digest, ":", "-", 1)+".sig", "application/vnd.oci.image.manifest.v1+json", manifest)
}

// A signature without a key of one's own, judged by the real cosign as a rule's program: by an
// authority of the host's own, with no log and no network but the registry. make cosign builds
// it.
func TestCosignJudgesAKeylessSignatureAsTheProgramOfARule(t *testing.T) {
	built, err := filepath.Abs("../bin/cosign2")
	require.NoError(t, err)
	if _, err := os.Stat(built); err != nil {
		t.Skip("no bin/cosign2; make cosign builds it")
	}
	dir := t.TempDir() // of nobody else's
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "cosign")
	out, err := exec.Command("cp", built, program).CombinedOutput()
	require.NoError(t, err, "%s", out)

	ours, theirs := newAuthority(t), newAuthority(t)
	roots := filepath.Join(dir, "roots.pem")
	require.NoError(t, os.WriteFile(roots, pemOf(ours.cert.Raw), 0o644))
	reg := registrytest.New()
	srv := httptest.NewServer(reg)
	t.Cleanup(srv.Close)
	at := strings.TrimPrefix(srv.URL, "http://")
	const who, issuer = "ci@acme.example", "https://token.acme.example"
	image := func(repo string, by *authority, who, issuer string) string {
		body := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,"digest":"` + reg.PutBlob(repo, []byte("{}")) + `"},"layers":[],"annotations":{"of":"` + repo + `"}}`)
		digest := reg.PutManifest(repo, "1", "application/vnd.oci.image.manifest.v1+json", body)
		if by != nil {
			by.signs(t, reg, repo, digest, who, issuer)
		}
		return at + "/" + repo + ":1@" + digest
	}
	rule := imagesign.Rule{Match: "**", Timeout: 2 * time.Minute, At: "policy.yaml:4", Exec: []string{
		program, "verify", "--certificate-identity=" + who, "--certificate-oidc-issuer=" + issuer, "--ca-roots=" + roots,
		"--insecure-ignore-tlog", "--insecure-ignore-sct", "--allow-http-registry", "{image}",
	}}
	d := newDocker(Options{ImageRules: func() ([]imagesign.Rule, error) { return []imagesign.Rule{rule}, nil }}, &calls{}, nil)
	judged := func(image string) (*ring.ImageVerdict, error) {
		done, err := d.verify(t.Context(), loopbackInClear(), ring.Action{
			Kind: ring.DoVerify, App: "web", Service: "web", Image: image, Asks: &ring.ImageAsk{Written: image, Rule: rule.Hash()},
		})
		return done.Verdict, err
	}
	v, err := judged(image("acme/good", ours, who, issuer))
	require.NoError(t, err)
	require.True(t, v.Good)
	for name, at := range map[string]string{
		"nobody signed it":              image("acme/unsigned", nil, "", ""),
		"somebody else signed it":       image("acme/other", ours, "mallory@acme.example", issuer),
		"somebody else vouched for him": image("acme/issuer", ours, who, "https://token.example"),
		"another authority":             image("acme/theirs", theirs, who, issuer),
	} {
		v, err := judged(at)
		require.Nil(t, v, name)
		require.Equal(t, ring.ImageSignature, codeOf(err), "%s: %v", name, err)
	}
}
