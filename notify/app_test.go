package notify

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// fakeApp adds an App's installation to a fake GitHub: it checks the App's own token
// as docs.github.com describes it, and gives tokens of its own.
type fakeApp struct {
	*fakeGitHub
	key   *rsa.PrivateKey
	file  string
	given int
	life  time.Duration
	asked string // the last body
	own   string // the last token of the App's own
}

func newFakeApp(t *testing.T) *fakeApp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	f := &fakeApp{fakeGitHub: newFakeGitHub(t), key: key, file: filepath.Join(t.TempDir(), "app.pem"), life: time.Hour}
	f.write(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	f.headers = map[string]string{"Accept": "application/vnd.github+json", "X-Github-Api-Version": "2022-11-28"}
	f.authorize = func(path, got string) {
		if strings.HasPrefix(path, "/api/v3/app/") {
			f.own = strings.TrimPrefix(got, "Bearer ")
			return
		}
		if want := fmt.Sprintf("Bearer ghs_%d", f.given); got != want {
			f.not("%s with %q, not %q", path, got, want)
		}
	}
	f.on("POST", "/app/installations/456/access_tokens", func(_ url.Values, body []byte) fakeAnswer {
		if says := f.judge(f.own); says != "" {
			return fakeAnswer{code: http.StatusUnauthorized, body: `{"message":"` + says + `"}`}
		}
		var b struct {
			Repositories []string          `json:"repositories"`
			Permissions  map[string]string `json:"permissions"`
		}
		f.read(body, &b)
		f.asked = string(body)
		f.given++
		return created(map[string]any{
			"token": fmt.Sprintf("ghs_%d", f.given), "expires_at": time.Now().Add(f.life).UTC().Format(time.RFC3339),
			"permissions": b.Permissions, "repository_selection": "selected",
		})
	})
	return f
}

func (f *fakeApp) write(t *testing.T, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// judge is GitHub's word on the App's own token; "" is none.
func (f *fakeApp) judge(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "A JSON web token could not be decoded"
	}
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			return "A JSON web token could not be decoded"
		}
		raw[i] = b
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Iss      string
		Iat, Exp int64
	}
	if json.Unmarshal(raw[0], &head) != nil || json.Unmarshal(raw[1], &claims) != nil || head.Alg != "RS256" {
		return "A JSON web token could not be decoded"
	}
	now := time.Now().Unix()
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch {
	case claims.Iss != "123":
		return "Integration not found"
	case claims.Iat > now-30:
		return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	case claims.Exp <= now, claims.Exp > now+600, claims.Exp-claims.Iat > 600:
		return "'Expiration time' claim ('exp') is too far in the future"
	case rsa.VerifyPKCS1v15(&f.key.PublicKey, crypto.SHA256, sum[:], raw[2]) != nil:
		return "A JSON web token could not be decoded"
	}
	return ""
}

func (f *fakeApp) forge(t *testing.T) Forge {
	t.Helper()
	forge := f.fakeGitHub.forge(t)
	forge.TokenFile, forge.App = "", &App{ID: "123", Installation: "456", KeyFile: f.file}
	return forge
}

func TestAnAppPostsWithATokenOfItsInstallation(t *testing.T) {
	f := newFakeApp(t)
	forge := f.forge(t)
	for _, says := range []string{"0/2 ready", "1/2 ready", "2/2 ready"} {
		require.Equal(t, outcome{done: true}, forge.say(t, post("gitring/edge-1", ring.PostPending, says)))
	}
	require.Equal(t, 1, f.given, "the token is kept")
	require.JSONEq(t, `{"repositories":["infra"],"permissions":{"statuses":"write"}}`, f.asked)
}

func TestAnAppAsksForNoMoreThanIsConfigured(t *testing.T) {
	f := newFakeApp(t)
	forge := f.forge(t)
	forge.Deployments, forge.PullRequests = true, true
	require.Equal(t, outcome{done: true}, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")))
	require.JSONEq(t, `{"repositories":["infra"],"permissions":{"statuses":"write","deployments":"write","pull_requests":"write"}}`, f.asked)
}

func TestATokenOfAnAppIsRenewedBeforeItsEnd(t *testing.T) {
	f := newFakeApp(t)
	forge := f.forge(t)
	f.life = renewBefore - time.Second
	for n := 1; n <= 2; n++ {
		require.Equal(t, outcome{done: true}, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")))
		require.Equal(t, n, f.given)
	}
	f.life = renewBefore + time.Minute
	for range 3 {
		require.Equal(t, outcome{done: true}, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")))
	}
	require.Equal(t, 3, f.given)
}

func TestATokenOfAnAppThatWasTakenBackIsRenewedOnce(t *testing.T) {
	f := newFakeApp(t)
	forge := f.forge(t)
	require.True(t, forge.say(t, post("gitring/edge-1", ring.PostPending, "queued")).done)
	f.answer(fakeAnswer{code: 401, body: `{"message":"Bad credentials"}`})
	require.Equal(t, outcome{done: true}, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")))
	require.Equal(t, 2, f.given)

	f.mu.Lock()
	f.routes["POST /api/v3/repos/acme/infra/statuses/"+string(sha)] = func(url.Values, []byte) fakeAnswer {
		return fakeAnswer{code: 401, body: `{"message":"Bad credentials"}`}
	}
	f.asked, f.fake.asked = "", nil
	f.mu.Unlock()
	o := forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
	require.Equal(t, outcome{permanent: true, says: "the forge answered 401: the token is not valid; see status.app"}, o)
	require.Len(t, f.requests(), 3, "one token, and one more try")
}

// The lists of pull requests are read with the same token.
func TestATokenOfAnAppIsRenewedForAList(t *testing.T) {
	f := newFakeApp(t)
	f.on("GET", "/repos/acme/infra/pulls", func(url.Values, []byte) fakeAnswer { return fakeAnswer{code: 200, body: `[]`} })
	forge := f.forge(t)
	_, _, _, err := forge.get(t.Context(), "/repos/acme/infra/pulls", "")
	require.NoError(t, err)
	f.answer(fakeAnswer{code: 401, body: `{"message":"Bad credentials"}`})
	raw, _, _, err := forge.get(t.Context(), "/repos/acme/infra/pulls", "")
	require.NoError(t, err)
	require.Equal(t, "[]", string(raw))
	require.Equal(t, 2, f.given)
}

func TestANewKeyOfAnAppNeedsNoRestart(t *testing.T) {
	f := newFakeApp(t)
	forge := f.forge(t)
	f.life = time.Minute
	require.True(t, forge.say(t, post("gitring/edge-1", ring.PostPending, "queued")).done)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	f.key = key
	require.Contains(t, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).says, "the App is not known by this key")
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	f.write(t, "PRIVATE KEY", der)
	require.True(t, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).done)
}

func TestWhatIsWrongWithAnAppIsToldWithoutItsKey(t *testing.T) {
	f := newFakeApp(t)
	raw, err := os.ReadFile(f.file)
	require.NoError(t, err)
	middle := string(raw[100:130])
	for _, tc := range []struct {
		name, file string
		answer     *fakeAnswer
		says       string
		permanent  bool
	}{
		{"no PEM", middle, nil, "holds no PEM", false},
		{"no key", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", nil, "holds no RSA private key without a passphrase", false},
		{"half a key", string(raw[:len(raw)/2]) + "\n-----END RSA PRIVATE KEY-----\n", nil, "cannot use the App's key", false},
		{"no such installation", string(raw), &fakeAnswer{code: 404, body: `{"message":"Not Found"}`}, "status.app.installation", true},
		{"suspended", string(raw), &fakeAnswer{code: 403, body: `{"message":"This installation has been suspended"}`}, "status.app.installation", true},
		{"a permission it was not given", string(raw), &fakeAnswer{code: 422, body: `{"message":"The permissions requested are not granted to this installation."}`}, "was not given the repository or a permission", true},
		{"its rate limit", string(raw), &fakeAnswer{code: 403, header: map[string]string{"Retry-After": "60"}, body: `{}`}, "rate limit", false},
		{"the forge is away", string(raw), &fakeAnswer{code: 503, body: `<html>`}, "the forge answered 503", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(f.file, []byte(tc.file), 0o600))
			if tc.answer != nil {
				f.answer(*tc.answer)
			}
			o := f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
			require.Contains(t, o.says, tc.says)
			require.Equal(t, tc.permanent, o.permanent)
			require.NotContains(t, o.says, middle)
		})
	}
	require.NoError(t, os.Remove(f.file))
	require.Contains(t, f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).says, "cannot read the App's key")
}
