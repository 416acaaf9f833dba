package runtime

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/stretchr/testify/require"
)

func digestOf(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

// registryRequests counts what the test registry was asked.
var registryRequests atomic.Int64

// startRegistry is a registry on the loopback that has one image, with the
// test's app and a label of its own, so that no two have one ID.
func startRegistry(t *testing.T) (name, digest string) {
	fs, err := layer()
	require.NoError(t, err)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err = z.Write(fs)
	require.NoError(t, err)
	require.NoError(t, z.Close())

	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Labels": map[string]string{testLabel: t.Name()}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(fs)}},
	})
	require.NoError(t, err)
	const kind = "application/vnd.docker.distribution.manifest.v2+json"
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": kind,
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": digestOf(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": zipped.Len(), "digest": digestOf(zipped.Bytes())}},
	})
	require.NoError(t, err)
	digest = digestOf(manifest)
	files := map[string][]byte{
		"/v2/app/manifests/1": manifest, "/v2/app/manifests/" + digest: manifest,
		"/v2/app/blobs/" + digestOf(config): config, "/v2/app/blobs/" + digestOf(zipped.Bytes()): zipped.Bytes(),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		registryRequests.Add(1)
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		body, ok := files[r.URL.Path]
		switch {
		case r.URL.Path == "/v2/":
			return
		case strings.HasPrefix(r.URL.Path, "/v2/private/"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}`))
			return
		case strings.HasPrefix(r.URL.Path, "/v2/broken/"):
			w.WriteHeader(http.StatusInternalServerError)
			return
		case !ok:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`))
			return
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Docker-Content-Digest", digest)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	name = strings.TrimPrefix(s.URL, "http://") + "/app:1"
	t.Cleanup(func() {
		if c, err := testEngine(); err == nil {
			repo := strings.TrimSuffix(name, ":1")
			// Whatever of it the test left.
			_, _ = c.ImageRemove(context.Background(), repo+"@"+digest, image.RemoveOptions{Force: true, PruneChildren: true})
			_, _ = c.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true, PruneChildren: true})
		}
	})
	return name, digest
}
