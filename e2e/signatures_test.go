package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// seen is a registry in front of another one, that remembers what it was asked for.
type seen struct {
	at    string
	mu    sync.Mutex
	paths []string // guarded by mu
	away  bool     // guarded by mu
}

func newSeen(t *testing.T, reg *registry) *seen {
	t.Helper()
	s := &seen{}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: reg.at})
		p.Out.Host = p.In.Host
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.paths = append(s.paths, r.URL.Path)
		away := s.away
		s.mu.Unlock()
		if away {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s.at = strings.TrimPrefix(srv.URL, "http://")
	return s
}

func (s *seen) be(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *seen) has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.paths, path)
}

// layerOf is the path of the layer of an image.
func (r *registry) layerOf(digest string) string {
	r.t.Helper()
	res, err := http.Get("http://" + r.at + "/v2/web/manifests/" + digest)
	require.NoError(r.t, err)
	defer res.Body.Close()
	var m struct{ Layers []struct{ Digest string } }
	require.NoError(r.t, json.NewDecoder(res.Body).Decode(&m))
	require.Len(r.t, m.Layers, 1)
	return "/v2/web/blobs/" + m.Layers[0].Digest
}

// sign puts a signature of cosign's older form beside an image.
func (r *registry) sign(key *ecdsa.PrivateKey, digest string) {
	r.t.Helper()
	text := []byte(`{"critical":{"identity":{"docker-reference":"web"},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
	sum := sha256.Sum256(text)
	sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	require.NoError(r.t, err)
	const kind = "application/vnd.oci.image.manifest.v1+json"
	body, err := json.Marshal(obj{
		"schemaVersion": 2, "mediaType": kind,
		"config": merged(r.blob([]byte(`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]},"config":{}}`)), obj{"mediaType": "application/vnd.oci.image.config.v1+json"}),
		"layers": []any{merged(r.blob(text), obj{
			"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "annotations": obj{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig)},
		})},
	})
	require.NoError(r.t, err)
	r.send("PUT", "http://"+r.at+"/v2/web/manifests/"+strings.Replace(digest, ":", "-", 1)+".sig", kind, body, http.StatusCreated)
}

// An image runs once a listed key signed its digest. Before that no byte of it is fetched,
// and after it the registry may be gone.
func TestAnImageRunsOnceAListedKeySignedIt(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	front := newSeen(t, reg)
	h := newHost(t)
	app := h.app("web")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	pub := filepath.Join(h.dir, "cosign.pub")
	require.NoError(t, os.WriteFile(pub, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	h.config["policy"] = obj{"images": obj{"signatures": []any{obj{"match": front.at + "/**", "keys": []any{pub}}, obj{"match": "**", "none": "what the other tests load"}}}}
	of := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("", obj{"image": front.at + "/web:" + version, "pull_policy": nil, "environment": obj{"VERSION": nil}})})}
	}

	reg.unlike = true
	one := reg.push("one")
	h.start()
	first := h.repo.pushed("Not signed", of("one"))
	st := h.await("it is refused", func(st status) bool { return st.app(app).Refusal != nil })
	require.Equal(t, "ImageUnsigned", st.app(app).Refusal.Code)
	require.Empty(t, h.containers("web"))
	layer := reg.layerOf(one)
	require.False(t, front.has(layer), "no layer was asked for")

	reg.sign(key, one)
	code, out := h.run("retry", app, "--reason", "it is signed by now")
	require.Zero(t, code, out)
	h.synced(first)
	require.True(t, h.ranAs("web", "one"))
	require.True(t, front.has(layer))

	reg.sign(key, reg.push("two"))
	h.deployed("Signed", of("two"))
	require.True(t, h.ranAs("web", "two"))
	settled(h)
	front.be(true)
	running := h.of(app, "web").ID
	require.NoError(t, h.engine.remove(running))
	h.until("it is healed without its registry", func() bool {
		all := h.containers("web")
		return len(all) == 1 && all[0].ID != running && h.ranAs("web", "two")
	})
	for range 3 { // as after a reboot: the daemon begins anew, and what ran is gone
		h.kill()
		running = h.of(app, "web").ID
		require.NoError(t, h.engine.remove(running))
		h.start()
		h.until("it is back without its registry", func() bool {
			all := h.containers("web")
			return len(all) == 1 && all[0].ID != running && h.ranAs("web", "two")
		})
	}
	settled(h)
	code, out = h.run("rollout", "undo", app, "--reason", "go back")
	require.Zero(t, code, out)
	h.until("the older one is back without its registry", func() bool { return h.status().app(app).Commit == first && h.ranAs("web", "one") })
}
