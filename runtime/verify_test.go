package runtime

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/registrytest"
)

// saysOfRegistries is an engine that knows which registries may be asked in clear.
type saysOfRegistries struct {
	engine
	conf registry.ServiceConfig
}

func (e *saysOfRegistries) Info(context.Context) (system.Info, error) {
	return system.Info{RegistryConfig: &e.conf}, nil
}

func loopbackInClear() *saysOfRegistries {
	_, n, _ := net.ParseCIDR("127.0.0.0/8")
	return &saysOfRegistries{conf: registry.ServiceConfig{InsecureRegistryCIDRs: []*registry.NetIPNet{(*registry.NetIPNet)(n)}}}
}

// signedAt is a registry that has what cosign pushed once, and a host that asks it.
type signedAt struct {
	*registrytest.Registry
	recording
	d    *Docker
	e    engine
	at   string
	rule imagesign.Rule
}

// recorded are the recordings, by name.
var recorded = []string{"cosign3-referrers", "cosign3-tags", "cosign2-referrers", "cosign2-tags"}

func signedRegistry(t testing.TB, name string) *signedAt {
	t.Helper()
	s := &signedAt{Registry: registrytest.New(), e: loopbackInClear()}
	body, err := os.ReadFile(filepath.Join(recordings, name+".json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &s.recording))
	require.NoError(t, s.Load(s.Stored))
	s.Referrers = strings.HasSuffix(name, "-referrers")
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.at = strings.TrimPrefix(srv.URL, "http://")
	s.d = newDocker(Options{ImageRules: func() ([]imagesign.Rule, error) { return []imagesign.Rule{s.rule}, nil }}, &calls{}, nil)
	s.d.certs = t.TempDir()
	return s
}

// keys are those of some kinds.
func (s *signedAt) keys(t testing.TB, kinds ...string) []imagesign.Key {
	t.Helper()
	var out []imagesign.Key
	for _, kind := range kinds {
		keys, err := imagesign.ParseKeys([]byte(s.Keys[kind]))
		require.NoError(t, err)
		out = append(out, keys...)
	}
	return out
}

// verify asks about the image of a repository, by a rule with keys of some kinds.
func (s *signedAt) verify(t testing.TB, repo, digest string, threshold int, kinds ...string) (*ring.ImageVerdict, error) {
	t.Helper()
	s.rule = imagesign.Rule{Match: "**", Keys: s.keys(t, kinds...), Threshold: threshold, At: "policy.yaml:4"}
	image := s.at + "/acme/" + repo + ":1@" + digest
	done, err := s.d.verify(t.Context(), s.e, ring.Action{Kind: ring.DoVerify, App: "web", Service: "web", Image: image, Asks: &ring.ImageAsk{Written: s.at + "/acme/" + repo + ":1", Rule: s.rule.Hash()}})
	return done.Verdict, err
}

// code is that of a refusal, "" for another error.
func codeOf(err error) ring.Code {
	var r *ring.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

func TestWhatCosignSignedIsAcceptedByItsKeyInBothForms(t *testing.T) {
	for _, name := range recorded {
		for _, kind := range signedKinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := signedRegistry(t, name)
				v, err := s.verify(t, kind, s.Images["index"], 1, kind)
				require.NoError(t, err)
				require.True(t, v.Good)
				require.Equal(t, []string{s.keys(t, kind)[0].ID}, v.Keys)
				require.Equal(t, s.rule.Hash(), v.Rule)
				require.Equal(t, s.at+"/acme/"+kind+"@"+s.Images["index"], v.Image, "of the digest, whatever the tag")
				want := imagesign.Bundle
				if strings.HasPrefix(name, "cosign2") {
					want = imagesign.Simple
				}
				require.Equal(t, string(want), v.Form)
				for _, r := range s.Requests() {
					require.NotContains(t, r, "/blobs/"+s.Images["platform"])
				}
			})
		}
	}
}

func TestTwoKeysAreTwoWhereTheRuleAsksForTwo(t *testing.T) {
	for _, name := range recorded {
		s := signedRegistry(t, name)
		v, err := s.verify(t, "two", s.Images["index"], 2, "p256", "second")
		require.NoError(t, err, name)
		require.Len(t, v.Keys, 2)
		_, err = s.verify(t, "two", s.Images["index"], 2, "p256", "ed25519")
		require.Equal(t, ring.ImageSignature, codeOf(err), "%s: one listed key, twice or not", name)
		require.ErrorContains(t, err, "2 signatures, and 1 of the 2")
		_, err = s.verify(t, "p256", s.Images["index"], 2, "p256", "second")
		require.Equal(t, ring.ImageSignature, codeOf(err), name)
	}
}

func TestNoOtherSignatureCountsForAnImage(t *testing.T) {
	for _, name := range recorded {
		for _, tt := range []struct {
			name, repo, digest string
			keys               []string
			change             func(s *signedAt)
			code               ring.Code
		}{
			{name: "another key", repo: "p256", digest: "index", keys: []string{"second"}, code: ring.ImageSignature},
			{name: "nothing", repo: "p256", digest: "other", keys: []string{"p256"}, code: ring.ImageUnsigned},
			{name: "an attestation", repo: "attested", digest: "index", keys: []string{"p256"}, code: ring.ImageUnsigned},
			{name: "one platform instead of all", repo: "platform", digest: "index", keys: []string{"p256"}, code: ring.ImageUnsigned},
			{name: "the signature of another digest", repo: "p256", digest: "other", keys: []string{"p256"}, code: ring.ImageUnsigned, change: func(s *signedAt) {
				s.replay("acme/p256", s.Images["index"], s.Images["other"])
			}},
			{name: "the image of another repository", repo: "platform", digest: "index", keys: []string{"p256"}, code: ring.ImageUnsigned},
		} {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				s := signedRegistry(t, name)
				if tt.change != nil {
					tt.change(s)
				}
				_, err := s.verify(t, tt.repo, s.Images[tt.digest], 1, tt.keys...)
				require.Equal(t, tt.code, codeOf(err), "%v", err)
				require.ErrorContains(t, err, "policy.yaml:4")
			})
		}
	}
}

// replay has what was said of one digest said of another: the tags made of it, and the
// subjects of the manifests that refer to it.
func (s *signedAt) replay(repo, from, to string) {
	for _, suffix := range []string{"", ".sig"} {
		if c, ok := s.Manifest(repo, strings.Replace(from, ":", "-", 1)+suffix); ok {
			s.PutManifest(repo, strings.Replace(to, ":", "-", 1)+suffix, c.Type, c.Body)
		}
	}
	for _, d := range s.referring(repo, from) {
		c, _ := s.Manifest(repo, d)
		s.PutManifest(repo, "", c.Type, []byte(strings.ReplaceAll(string(c.Body), from, to)))
	}
}

// referring are the manifests of a repository whose subject is a digest.
func (s *signedAt) referring(repo, digest string) (out []string) {
	body, err := s.Kept()
	if err != nil {
		return nil
	}
	var kept registrytest.Kept
	if json.Unmarshal(body, &kept) != nil {
		return nil
	}
	for name, c := range kept.Manifests {
		if at, d, _ := strings.Cut(name, "@"); at == repo && strings.Contains(string(c.Body), `"subject"`) && strings.Contains(string(c.Body), digest) {
			out = append(out, d)
		}
	}
	return out
}

// What a registry has in great number or size is not read, and counts for nothing.
func TestWhatIsTooMuchCountsForNothing(t *testing.T) {
	const sigType = imagesign.SimpleType
	layers := func(s *signedAt, n int, size int64) {
		tag := strings.Replace(s.Images["index"], ":", "-", 1) + ".sig"
		c, _ := s.Manifest("acme/p256", tag)
		var m map[string]any
		if json.Unmarshal(c.Body, &m) != nil {
			return
		}
		good := m["layers"].([]any)[0].(map[string]any)
		if size > 0 {
			good["size"] = size
		}
		all := []any{}
		for range n {
			all = append(all, good)
		}
		m["layers"] = all
		body, _ := json.Marshal(m)
		s.PutManifest("acme/p256", tag, c.Type, body)
	}
	for _, tt := range []struct {
		name   string
		change func(s *signedAt)
		good   bool
	}{
		{"64 layers", func(s *signedAt) { layers(s, 64, 0) }, true},
		{"65 layers", func(s *signedAt) { layers(s, 65, 0) }, false},
		{"a signature that says it is of 2 MiB", func(s *signedAt) { layers(s, 1, 2<<20) }, false},
		{"a signature that is of 2 MiB", func(s *signedAt) {
			s.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/blobs/") {
					_, _ = w.Write(make([]byte, 2<<20))
					return true
				}
				return false
			}
		}, false},
		{"a manifest of 2 MiB", func(s *signedAt) {
			s.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, ".sig") {
					_, _ = w.Write(make([]byte, 2<<20))
					return true
				}
				return false
			}
		}, false},
		{"another media type", func(s *signedAt) {
			tag := strings.Replace(s.Images["index"], ":", "-", 1) + ".sig"
			c, _ := s.Manifest("acme/p256", tag)
			s.PutManifest("acme/p256", tag, c.Type, []byte(strings.ReplaceAll(string(c.Body), sigType, "text/plain")))
		}, false},
		{"cut", func(s *signedAt) {
			tag := strings.Replace(s.Images["index"], ":", "-", 1) + ".sig"
			c, _ := s.Manifest("acme/p256", tag)
			s.PutManifest("acme/p256", tag, c.Type, c.Body[:len(c.Body)-2])
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := signedRegistry(t, "cosign2-tags")
			tt.change(s)
			v, err := s.verify(t, "p256", s.Images["index"], 1, "p256")
			if tt.good {
				require.NoError(t, err)
				require.True(t, v.Good)
				return
			}
			require.Equal(t, ring.ImageUnsigned, codeOf(err), "%v", err)
		})
	}
}

// Whoever may push beside an image can have its good signature not count, by many others. That
// keeps the image out, and the refusal says what it was.
func TestMoreThan64BundlesCountForNothingAndSaySo(t *testing.T) {
	for _, name := range []string{"cosign3-referrers", "cosign3-tags"} {
		for more, good := range map[int]bool{63: true, 64: false} {
			s := signedRegistry(t, name)
			tag := strings.Replace(s.Images["index"], ":", "-", 1)
			var index map[string]any
			list := []any{}
			if c, ok := s.Manifest("acme/p256", tag); ok {
				require.NoError(t, json.Unmarshal(c.Body, &index))
				list = index["manifests"].([]any)
			}
			for i := range more {
				body := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json","layers":[],"subject":{"digest":%q},"annotations":{"n":"%d"}}`, s.Images["index"], i)
				d := s.PutManifest("acme/p256", "", "application/vnd.oci.image.manifest.v1+json", body)
				list = append(list, map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": d, "size": len(body), "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json"})
			}
			if index != nil {
				index["manifests"] = list
				body, err := json.Marshal(index)
				require.NoError(t, err)
				s.PutManifest("acme/p256", tag, "application/vnd.oci.image.index.v1+json", body)
			}
			_, err := s.verify(t, "p256", s.Images["index"], 1, "p256")
			if good {
				require.NoError(t, err, "%s with %d more", name, more)
				continue
			}
			require.Equal(t, ring.ImageUnsigned, codeOf(err), "%v", err)
			require.ErrorContains(t, err, "65 bundles or more, and above 64 none counts")
		}
	}
}

// One manifest may have many layers, and so may many: they are counted together.
func TestMoreThan64LayersOfBundlesCountForNothing(t *testing.T) {
	for _, tt := range []struct {
		first, before int // layers of a manifest before the good one's, and in that before the bundle
		good          bool
	}{{0, 63, true}, {0, 64, false}, {32, 31, true}, {32, 32, false}} {
		s := signedRegistry(t, "cosign3-tags")
		tag := strings.Replace(s.Images["index"], ":", "-", 1)
		listed, ok := s.Manifest("acme/p256", tag)
		require.True(t, ok)
		var index, m map[string]any
		require.NoError(t, json.Unmarshal(listed.Body, &index))
		c, _ := s.Manifest("acme/p256", index["manifests"].([]any)[0].(map[string]any)["digest"].(string))
		require.NoError(t, json.Unmarshal(c.Body, &m))
		good := m["layers"].([]any)
		other := map[string]any{"mediaType": "text/plain", "digest": s.Images["index"], "size": 1}
		var list []any
		put := func(n int, more []any) {
			m["layers"] = append(slices.Repeat([]any{other}, n), more...)
			body, err := json.Marshal(m)
			require.NoError(t, err)
			list = append(list, map[string]any{"mediaType": c.Type, "digest": s.PutManifest("acme/p256", "", c.Type, body), "size": len(body), "artifactType": imagesign.BundleType})
		}
		put(tt.first, nil)
		put(tt.before, good)
		index["manifests"] = list
		body, err := json.Marshal(index)
		require.NoError(t, err)
		s.PutManifest("acme/p256", tag, listed.Type, body)
		_, err = s.verify(t, "p256", s.Images["index"], 1, "p256")
		if tt.good {
			require.NoError(t, err, "%v", tt)
			continue
		}
		require.Equal(t, ring.ImageUnsigned, codeOf(err), "%v: %v", tt, err)
		require.ErrorContains(t, err, "more than 64 layers")
	}
}

// A registry's silence is neither a yes nor a no.
func TestWithoutAnAnswerThereIsNoVerdict(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"an error of the server", func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}},
		{"an error at the last question", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".sig") {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}},
		{"an error at the list of referrers", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		}},
		{"a blob that is another", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = w.Write([]byte("{}"))
				return true
			}
			return false
		}},
		{"it wants to know who asks", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := signedRegistry(t, "cosign2-tags")
			s.Before = tt.before
			v, err := s.verify(t, "p256", s.Images["index"], 1, "p256")
			require.Error(t, err)
			require.Nil(t, v)
			require.Empty(t, codeOf(err), "%v", err)
		})
	}
	s := signedRegistry(t, "cosign2-tags")
	s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	_, err := s.verify(t, "p256", s.Images["index"], 1, "p256")
	require.ErrorContains(t, err, "limits requests (429)")
	n := len(s.Requests())
	_, err = s.verify(t, "p256", s.Images["index"], 1, "p256")
	require.ErrorContains(t, err, "limits requests (429)")
	require.Len(t, s.Requests(), n, "it is left alone")
}

func TestWhatHasNoDigestOfARegistryIsRefused(t *testing.T) {
	s := signedRegistry(t, "cosign2-tags")
	s.rule = imagesign.Rule{Match: "**", Keys: s.keys(t, "p256"), Threshold: 1, At: "policy.yaml:4"}
	for _, image := range []string{"sha256:" + strings.Repeat("ab", 32), s.at + "/acme/p256:1"} {
		_, err := s.d.verify(t.Context(), s.e, ring.Action{Kind: ring.DoVerify, Image: image, Asks: &ring.ImageAsk{Written: s.at + "/acme/p256:1", Rule: s.rule.Hash()}})
		require.Equal(t, ring.ImageUnsigned, codeOf(err), image)
	}
	require.Empty(t, s.Requests())
	_, err := s.d.verify(t.Context(), s.e, ring.Action{Kind: ring.DoVerify, Image: s.at + "/acme/p256@" + s.Images["index"], Asks: &ring.ImageAsk{Written: s.at + "/acme/p256:1", Rule: "sha256:other"}})
	require.Error(t, err)
	require.Empty(t, codeOf(err), "the policy changed meanwhile: asked again by the new one")
}

// keepsImage is an engine that has one image, and knows by which digests.
type keepsImage struct {
	*saysOfRegistries
	id    string
	known []string
}

func (e *keepsImage) ImageInspect(_ context.Context, name string, _ ...client.ImageInspectOption) (image.InspectResponse, error) {
	return image.InspectResponse{ID: e.id, RepoDigests: e.known, Os: "linux", Architecture: "amd64"}, nil
}

func (e *keepsImage) ServerVersion(context.Context) (types.Version, error) {
	return types.Version{Os: "linux", Arch: "amd64"}, nil
}

// What is never pulled is asked about all the same, where the engine knows by which digest its
// registry has it. The digest of another repository says nothing of this one.
func TestWhatIsNeverPulledIsVerifiedByTheDigestThatTheEngineKnows(t *testing.T) {
	s := signedRegistry(t, "cosign2-tags")
	s.rule = imagesign.Rule{Match: "**", Keys: s.keys(t, "p256"), Threshold: 1, At: "policy.yaml:4"}
	id, written := "sha256:"+strings.Repeat("ab", 32), s.at+"/acme/p256:1"
	judged := func(written string, asks *ring.ImageAsk, known ...string) (string, *ring.ImageVerdict, error) {
		e := &keepsImage{loopbackInClear(), id, known}
		a := ring.Action{Kind: ring.DoResolve, App: "web", Service: "web", Image: written, PullPolicy: neverPull, Asks: asks}
		asked := len(s.Requests())
		done, err := s.d.resolve(t.Context(), e, a, nil)
		require.NoError(t, err)
		require.Len(t, s.Requests(), asked, "no registry is asked what the name means")
		a.Kind, a.Image, a.Asks = ring.DoVerify, done.Pin.Image, &ring.ImageAsk{Written: written, Rule: s.rule.Hash()}
		verified, err := s.d.verify(t.Context(), e, a)
		return done.Pin.Image, verified.Verdict, err
	}
	asks := &ring.ImageAsk{Written: written, Rule: s.rule.Hash()}
	pin, v, err := judged(written, asks, "example.org/other@"+s.Images["other"], s.at+"/acme/p256@"+s.Images["index"])
	require.NoError(t, err)
	require.Equal(t, written+"@"+s.Images["index"], pin)
	require.True(t, v.Good)

	pin, _, err = judged(written, asks, s.at+"/acme/p256@"+s.Images["other"])
	require.Equal(t, written+"@"+s.Images["other"], pin)
	require.Equal(t, ring.ImageUnsigned, codeOf(err), "nobody signed that one: %v", err)
	for _, known := range [][]string{nil, {s.at + "/acme/two@" + s.Images["index"]}, {"example.org/p256@" + s.Images["index"]}} {
		pin, _, err = judged(written, asks, known...)
		require.Equal(t, id, pin)
		require.Equal(t, ring.ImageUnsigned, codeOf(err), "%v: %v", known, err)
	}
	// Where nothing is asked, and so of before a rule was there, the pin is the ID.
	pin, _, err = judged(written, nil, s.at+"/acme/p256@"+s.Images["index"])
	require.Equal(t, id, pin)
	var r *ring.Refusal
	require.ErrorAs(t, err, &r)
	require.Contains(t, r.Hint, "gitring refresh web")
}

// withLogin gives the host a login for the registry.
func (s *signedAt) withLogin(t *testing.T, fields string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`{"auths":{%q:{%s}}}`, s.at, fields)), 0o600))
	s.d.opts.DockerConfig = file
}

// Credentials go to the registry and to the server of tokens that it names.
func TestARegistryIsAskedWithTheLoginOfPulls(t *testing.T) {
	login := base64.StdEncoding.EncodeToString([]byte("alice:let me in"))
	s := signedRegistry(t, "cosign2-tags")
	s.withLogin(t, `"auth":"`+login+`"`)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Basic "+login {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	v, err := s.verify(t, "p256", s.Images["index"], 1, "p256")
	require.NoError(t, err)
	require.True(t, v.Good)

	var scope string
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope = r.URL.Query().Get("scope")
		if user, password, _ := r.BasicAuth(); user != "alice" || password != "let me in" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"token":"t1"}`))
	}))
	defer tokens.Close()
	s = signedRegistry(t, "cosign2-tags")
	s.withLogin(t, `"auth":"`+login+`"`)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer t1" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token",service="here",scope="repository:everything:push"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	v, err = s.verify(t, "p256", s.Images["index"], 1, "p256")
	require.NoError(t, err)
	require.True(t, v.Good)
	require.Equal(t, "repository:acme/p256:pull", scope, "no more than is needed, whatever it asks for")
}
