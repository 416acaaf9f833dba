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
	"regexp"
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
	key, pub := h.cosignKey(t)
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
	// With GITRING_E2E_LONG twenty in all, with what is healed above and what is undone below.
	for range amount(t, "REBOOTS", 3, 18) { // as after a reboot: the daemon begins anew, and what ran is gone
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

// While clients ask a service without end, a commit names an image that no listed key signed, then
// one that another key signed, then a tag whose digest is another one than the one that was
// signed. No request is lost, no layer is asked for, the container that runs goes on, and the
// commit says why.
func TestABadDigestUnderLoadLosesNoRequest(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	front := newSeen(t, reg)
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	key, pub := h.cosignKey(t)
	stranger, _ := h.cosignKey(t)
	h.config["policy"] = obj{"images": obj{"signatures": []any{obj{"match": front.at + "/**", "keys": []any{pub}}, obj{"match": "**", "none": "what the other tests load"}}}}
	of := func(name string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("", obj{"image": front.at + "/web" + name, "pull_policy": nil, "environment": obj{"VERSION": nil}, "ports": []any{port + ":8080"}, "x-gitring": obj{"publish": "front"}})})}
	}
	reg.unlike = true
	good := reg.push("one")
	reg.sign(key, good)
	first := h.repo.pushed("Signed", of(":one"))
	h.start()
	h.synced(first)
	h.serves(port, "one")
	settled(h)
	running := h.of(app, "web").ID

	unsigned, foreign := reg.push("two"), reg.push("three")
	reg.sign(stranger, foreign)
	reg.sign(key, reg.pushAs("five", "five"))
	moved := reg.pushAs("six", "five") // the tag that was signed, at a digest that was not
	bad := []struct{ name, digest, code string }{
		{":two", unsigned, "ImageUnsigned"},
		{"@" + foreign, foreign, "ImageSignature"},
		{":five", moved, "ImageUnsigned"},
	}
	load := ask(port)
	for _, b := range bad {
		sha := h.repo.pushed("Bad "+b.name, of(b.name))
		st := h.await("it is refused", func(st status) bool {
			a := st.app(app)
			return a.Refusal != nil && a.Refusal.Commit == sha
		})
		require.Equal(t, b.code, st.app(app).Refusal.Code)
		require.Contains(t, st.app(app).Refusal.Says, b.digest)
		load.more(h, 3)
		require.False(t, front.has(reg.layerOf(b.digest)), "no layer of %s was asked for", b.name)
		require.Equal(t, running, h.of(app, "web").ID)
	}
	t.Logf("%d requests, none lost", load.lostNone(t, h))
	_, history := h.run("history", app)
	for _, b := range bad {
		require.Regexp(t, "partly refused .*"+regexp.QuoteMeta("Bad "+b.name+"; "+app+": "+b.code+" "+app+"/compose.yaml:"), history, "its commit says why")
	}
	require.Len(t, h.containers("web"), 1)
	require.True(t, h.ranAs("web", "one"))

	// The test sees a layer that is fetched, and a good digest is served.
	reg.sign(key, unsigned)
	require.Contains(t, h.done("retry", app, "--reason", "two is signed by now"), app)
	h.live("Good again", of("@"+unsigned))
	h.serves(port, "two")
	require.True(t, front.has(reg.layerOf(unsigned)))
}

// cosignKey makes a key of cosign's, and the file of its public half.
func (h *host) cosignKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	pub := filepath.Join(h.dir, rand.Text()+".pub")
	require.NoError(t, os.WriteFile(pub, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	return key, pub
}
