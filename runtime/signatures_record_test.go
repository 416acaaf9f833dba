package runtime

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/registrytest"
)

// The repositories of the recordings, and the kind of key that signed each.
var signedKinds = []string{"p256", "p384", "p521", "ed25519", "rsa"}

// A recording is what cosign pushed to a registry of ours.
type recording struct {
	// Images are the digests of images by what they are: "index", "platform", "other".
	Images map[string]string `json:"images"`
	Keys   map[string]string `json:"keys"` // public, by kind
	Stored json.RawMessage   `json:"kept"`
}

const recordings = "testdata/signatures"

// putImages puts an image for two platforms and another image into a repository.
func putImages(g *registrytest.Registry, repo string) map[string]string {
	const manifestType, indexType = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"
	one := func(arch string) string {
		config := []byte(`{"architecture":"` + arch + `","os":"linux","rootfs":{"type":"layers","diff_ids":[]},"config":{}}`)
		d := g.PutBlob(repo, config)
		body, _ := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": manifestType, "layers": []any{},
			"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": d, "size": len(config)},
		})
		return g.PutManifest(repo, "", manifestType, body)
	}
	describe := func(d, arch string) map[string]any {
		c, _ := g.Manifest(repo, d)
		return map[string]any{"mediaType": manifestType, "digest": d, "size": len(c.Body), "platform": map[string]string{"os": "linux", "architecture": arch}}
	}
	amd, arm := one("amd64"), one("arm64")
	body, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{describe(amd, "amd64"), describe(arm, "arm64")}})
	return map[string]string{"index": g.PutManifest(repo, "1", indexType, body), "platform": amd, "other": arm}
}

// TestRecordSignatures makes the recordings anew: RECORD_SIGNATURES=1, with bin/cosign2 and
// bin/cosign3 of scripts/cosign.sh. Keys are made for it and thrown away; only what cosign
// pushed and the public keys are kept.
func TestRecordSignatures(t *testing.T) {
	if os.Getenv("RECORD_SIGNATURES") == "" {
		t.Skip("made by hand: RECORD_SIGNATURES=1")
	}
	for _, program := range []string{"cosign2", "cosign3"} {
		for _, referrers := range []bool{true, false} {
			g := registrytest.New()
			g.Referrers = referrers
			srv := httptest.NewServer(g)
			at := strings.TrimPrefix(srv.URL, "http://")
			rec := recording{Keys: map[string]string{}}
			dir := t.TempDir()
			cosign := func(args ...string) {
				bin, err := filepath.Abs("../bin/" + program)
				require.NoError(t, err)
				cmd := exec.Command(bin, args...)
				cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=", "HOME="+dir, "COSIGN_YES=true")
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s %v: %s", program, args, out)
			}
			sign := []string{"sign", "--allow-http-registry", "--tlog-upload=false"}
			attest := []string{"attest", "--allow-http-registry", "--tlog-upload=false", "--type", "custom", "--predicate", filepath.Join(dir, "p.json")}
			if program == "cosign3" {
				cosign("signing-config", "create", "--out", filepath.Join(dir, "sc.json"))
				sign = []string{"sign", "--allow-http-registry", "--signing-config", filepath.Join(dir, "sc.json")}
				attest = []string{"attest", "--allow-http-registry", "--signing-config", filepath.Join(dir, "sc.json"), "--type", "custom", "--predicate", filepath.Join(dir, "p.json")}
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "p.json"), []byte(`{"a":"b"}`), 0o600))
			for _, kind := range append(signedKinds, "second") {
				rec.Keys[kind] = makeKey(t, dir, kind)
				cosign("import-key-pair", "--key", filepath.Join(dir, kind+".pem"), "--output-key-prefix", kind)
			}
			for _, kind := range signedKinds {
				rec.Images = putImages(g, "acme/"+kind)
				cosign(append(sign, "--key", kind+".key", at+"/acme/"+kind+"@"+rec.Images["index"])...)
			}
			putImages(g, "acme/two")
			for _, kind := range []string{"p256", "second"} {
				cosign(append(sign, "--key", kind+".key", at+"/acme/two@"+rec.Images["index"])...)
			}
			putImages(g, "acme/platform")
			cosign(append(sign, "--key", "p256.key", at+"/acme/platform@"+rec.Images["platform"])...)
			putImages(g, "acme/attested")
			cosign(append(attest, "--key", "p256.key", at+"/acme/attested@"+rec.Images["index"])...)
			var err error
			rec.Stored, err = g.Kept()
			require.NoError(t, err)
			body, err := json.MarshalIndent(rec, "", "\t")
			require.NoError(t, err)
			name := program + "-tags.json"
			if referrers {
				name = program + "-referrers.json"
			}
			require.NoError(t, os.MkdirAll(recordings, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(recordings, name), append(body, '\n'), 0o644))
			srv.Close()
		}
	}
}

// makeKey makes a private key in a folder and gives the public one.
func makeKey(t *testing.T, dir, kind string) string {
	t.Helper()
	var private, public any
	var err error
	switch kind {
	case "p384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "p521":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	require.NoError(t, err)
	switch k := private.(type) {
	case *ecdsa.PrivateKey:
		public = &k.PublicKey
	case *rsa.PrivateKey:
		public = &k.PublicKey
	case ed25519.PrivateKey:
		public = k.Public()
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, kind+".pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	der, err = x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
