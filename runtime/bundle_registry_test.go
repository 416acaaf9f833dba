package runtime

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/registrytest"
)

// repository is one of Debian's registry, which has no API of referrers: what refers to an
// image is listed under a tag.
type repository struct {
	*dockerRegistry
	repo string
}

func (r *repository) manifest(ref, kind string, body []byte) string {
	r.t.Helper()
	if ref == "" {
		ref = registrytest.Digest(body)
	}
	r.send("PUT", r.url("/v2/"+r.repo+"/manifests/"+ref), kind, body, http.StatusCreated)
	return registrytest.Digest(body)
}

// read is a manifest or a blob, by tag or digest.
func (r *repository) read(path, kind string) []byte {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.url("/v2/"+r.repo+"/"+path), nil)
	require.NoError(r.t, err)
	req.Header.Set("Accept", kind)
	res, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	require.Equal(r.t, http.StatusOK, res.StatusCode, path)
	body, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	return body
}

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
)

// listTag is where what refers to a digest is listed.
func listTag(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// bundle is the one that the list of a digest names: its manifest, and itself.
func (r *repository) bundle(digest string) (manifest, body []byte) {
	r.t.Helper()
	var list struct{ Manifests []struct{ Digest string } }
	require.NoError(r.t, json.Unmarshal(r.read("manifests/"+listTag(digest), ociIndex), &list))
	require.Len(r.t, list.Manifests, 1)
	manifest = r.read("manifests/"+list.Manifests[0].Digest, ociManifest)
	return manifest, r.read("blobs/"+digestIn(r.t, manifest), "*/*")
}

// says lists one bundle about a digest, in the manifest that cosign made for another.
func (r *repository) says(digest string, manifest, was, body []byte, from string) {
	r.t.Helper()
	text := strings.ReplaceAll(string(manifest), from, digest)
	var m map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(text), &m))
	layer := m["layers"].([]any)[0].(map[string]any)
	require.EqualValues(r.t, len(was), layer["size"])
	layer["digest"], layer["size"] = r.blobOf(r.repo, body), len(body)
	changed, err := json.Marshal(m)
	require.NoError(r.t, err)
	d := r.manifest("", ociManifest, changed)
	list, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []any{map[string]any{
		"mediaType": ociManifest, "digest": d, "size": len(changed), "artifactType": imagesign.BundleType,
	}}})
	require.NoError(r.t, err)
	r.manifest(listTag(digest), ociIndex, list)
}

// load pushes what a recording has of the repository.
func (r *repository) load(kept *registrytest.Kept) {
	r.t.Helper()
	for name, b := range kept.Blobs {
		if strings.HasPrefix(name, r.repo+"@") {
			r.blobOf(r.repo, b.Body)
		}
	}
	for _, kind := range []string{ociManifest, ociIndex} { // a list comes after what it lists
		for name, m := range kept.Manifests {
			if strings.HasPrefix(name, r.repo+"@") && m.Type == kind {
				r.manifest("", kind, m.Body)
			}
		}
	}
	for name, d := range kept.Tags {
		if tag, ok := strings.CutPrefix(name, r.repo+":"); ok {
			m := kept.Manifests[r.repo+"@"+d]
			r.manifest(tag, m.Type, m.Body)
		}
	}
}

// judged is what a rule with one key makes of an image of the repository.
func (r *repository) judged(key, digest string) (*ring.ImageVerdict, error) {
	r.t.Helper()
	keys, err := imagesign.ParseKeys([]byte(key))
	require.NoError(r.t, err)
	rule := imagesign.Rule{Match: "**", Keys: keys, Threshold: 1, At: "policy.yaml:4"}
	d := newDocker(Options{ImageRules: func() ([]imagesign.Rule, error) { return []imagesign.Rule{rule}, nil }}, &calls{}, nil)
	d.certs = r.t.TempDir()
	image := r.at + "/" + r.repo + ":1@" + digest
	done, err := d.verify(r.t.Context(), loopbackInClear(), ring.Action{Kind: ring.DoVerify, App: "web", Service: "web", Image: image, Asks: &ring.ImageAsk{Written: image, Rule: rule.Hash()}})
	return done.Verdict, err
}

// onlyItsOwn holds the judge to a registry in which a key signed one image with a bundle, and
// another image not.
func (r *repository) onlyItsOwn(key, wrong, signed, other string) {
	t := r.t
	t.Helper()
	manifest, bundle := r.bundle(signed)
	good := func(why string) {
		t.Helper()
		v, err := r.judged(key, signed)
		require.NoError(t, err, why)
		require.True(t, v.Good, why)
		require.Equal(t, string(imagesign.Bundle), v.Form)
	}
	refused := func(key, digest string, code ring.Code, says string) {
		t.Helper()
		v, err := r.judged(key, digest)
		require.Nil(t, v)
		require.Equal(t, code, codeOf(err), "%v", err)
		require.ErrorContains(t, err, says)
	}
	good("as cosign left it")
	refused(wrong, signed, ring.ImageSignature, "1 signature, and 0 of the 1")
	refused(key, other, ring.ImageUnsigned, "nothing at")

	r.says(other, manifest, bundle, bundle, signed)
	refused(key, other, ring.ImageUnsigned, "a signature of another digest")
	good("beside an image that borrowed its bundle")

	// The statement names the other image, under the signature of the first.
	r.says(other, manifest, bundle, inStatement(t, bundle, signed, other), signed)
	refused(key, other, ring.ImageSignature, "1 signature, and 0 of the 1")

	for _, cut := range []int{len(bundle) - 1, len(bundle) / 2, 1, 0} {
		r.says(signed, manifest, bundle, bundle[:cut], signed)
		refused(key, signed, ring.ImageUnsigned, "a bundle with")
	}
	r.says(signed, manifest, bundle, bundle, signed)
	good("whole again")

	// On the registry's own disk, under the digest of what it was.
	hex := strings.TrimPrefix(registrytest.Digest(bundle), "sha256:")
	at := filepath.Join(r.dir, "data/docker/registry/v2/blobs/sha256", hex[:2], hex, "data")
	require.FileExists(t, at)
	require.NoError(t, os.WriteFile(at, bundle[:len(bundle)-9], 0o600))
	_, err := r.judged(key, signed)
	require.Error(t, err, "a bundle that was cut on the disk of its registry")
	require.NoError(t, os.WriteFile(at, []byte(strings.Replace(string(bundle), "{", " ", 1)), 0o600))
	_, err = r.judged(key, signed)
	require.Error(t, err, "a bundle of other bytes than its digest says")
	require.NoError(t, os.WriteFile(at, bundle, 0o600))
	good("put back")
}

// inStatement is a bundle whose statement says another digest.
func inStatement(t *testing.T, bundle []byte, from, to string) []byte {
	t.Helper()
	var b map[string]any
	require.NoError(t, json.Unmarshal(bundle, &b))
	envelope := b["dsseEnvelope"].(map[string]any)
	payload, err := base64.StdEncoding.DecodeString(envelope["payload"].(string))
	require.NoError(t, err)
	text := strings.Replace(string(payload), strings.TrimPrefix(from, "sha256:"), strings.TrimPrefix(to, "sha256:"), 1)
	require.NotEqual(t, string(payload), text)
	envelope["payload"] = []byte(text) // as JSON has bytes, in base64
	out, err := json.Marshal(b)
	require.NoError(t, err)
	return out
}

// TestABundleInARealRegistryCountsForItsImageAlone pushes what cosign 3 made once.
func TestABundleInARealRegistryCountsForItsImageAlone(t *testing.T) {
	t.Parallel()
	var rec recording
	body, err := os.ReadFile(filepath.Join(recordings, "cosign3-tags.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &rec))
	var kept registrytest.Kept
	require.NoError(t, json.Unmarshal(rec.Stored, &kept))
	r := &repository{debianRegistry(t, "127.0.0.1", false, false), "acme/p256"}
	r.load(&kept)
	r.onlyItsOwn(rec.Keys["p256"], rec.Keys["second"], rec.Images["index"], rec.Images["other"])
}

// TestCosign3SignsInARealRegistryAndItsKeyIsBelieved has the real program sign, with each kind
// of key, against the same registry. make cosign builds it.
func TestCosign3SignsInARealRegistryAndItsKeyIsBelieved(t *testing.T) {
	t.Parallel()
	program, dir := realProgram(t, "cosign3")
	cosign := func(args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "COSIGN_PASSWORD=", "HOME=" + dir, "COSIGN_YES=true"}
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
	}
	config := filepath.Join(dir, "signing.json")
	cosign("signing-config", "create", "--out", config) // names no log and no authority: by the key alone
	wrong := makeKey(t, dir, "second")
	reg := debianRegistry(t, "127.0.0.1", false, false)
	for _, kind := range signedKinds {
		r := &repository{reg, "acme/" + kind}
		memory := registrytest.New()
		images := putImages(memory, r.repo)
		all, err := memory.Kept()
		require.NoError(t, err)
		var kept registrytest.Kept
		require.NoError(t, json.Unmarshal(all, &kept))
		r.load(&kept)
		key := makeKey(t, dir, kind)
		cosign("import-key-pair", "--key", kind+".pem", "--output-key-prefix", kind)
		cosign("sign", "--allow-http-registry", "--signing-config", config, "--key", kind+".key", r.at+"/"+r.repo+"@"+images["index"])
		r.onlyItsOwn(key, wrong, images["index"], images["other"])
	}
}
