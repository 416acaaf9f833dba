package issuer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gitring/gitring/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Canaries: what no error may repeat.
const (
	theCode   = "code-canary"
	theSecret = "secret-canary"
	theAccess = "access-canary"
	verifier  = "verifier-canary-verifier-canary-verifier-canary"
	nonce     = "nonce-canary"
)

type claimsOf map[string]any

// liar is an issuer that says what a test has it say.
type liar struct {
	t   *testing.T
	url string
	key *rsa.PrivateKey
	// claims are of the id token, and info of what it tells besides; nil is that it has no such address.
	claims, info claimsOf
	// discovery and token change what it says of itself and of a code.
	discovery func(claimsOf)
	token     func(claimsOf)
	sign      func(head, claims claimsOf) string
	// serve answers in its place; false leaves the answer to it.
	serve func(w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex // guards what follows
	asked []string
	form  url.Values
	basic string
	kept  bool // a connection was to be kept
}

// itsKey takes a while to make.
var itsKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newLiar(t *testing.T) *liar {
	t.Helper()
	key, err := itsKey()
	require.NoError(t, err)
	l := &liar{t: t, key: key}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.url = server.URL
	l.claims = claimsOf{
		"iss": l.url, "aud": "gitring", "sub": "u1", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "nonce": nonce,
		"email": "Alice@Example.org", "email_verified": true, "groups": []string{"ops"},
	}
	l.sign = l.rs256
	return l
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked = append(l.asked, r.URL.Path)
	l.kept = l.kept || !r.Close
	l.mu.Unlock()
	if l.serve != nil && l.serve(w, r) {
		return
	}
	var answer claimsOf
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = claimsOf{"issuer": l.url, "authorization_endpoint": l.url + "/auth", "token_endpoint": l.url + "/token", "jwks_uri": l.url + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}}
		if l.info != nil {
			answer["userinfo_endpoint"] = l.url + "/info"
		}
		if l.discovery != nil {
			l.discovery(answer)
		}
	case "/keys":
		answer = claimsOf{"keys": []claimsOf{{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": b64(l.key.N.Bytes()), "e": b64(big.NewInt(int64(l.key.E)).Bytes())}}}
	case "/token":
		_ = r.ParseForm()
		_, pass, _ := r.BasicAuth()
		l.mu.Lock()
		l.form, l.basic = r.PostForm, pass
		l.mu.Unlock()
		answer = claimsOf{"access_token": theAccess, "token_type": "Bearer", "expires_in": 60, "id_token": l.sign(claimsOf{"alg": "RS256", "kid": "k", "typ": "JWT"}, l.claims)}
		if l.token != nil {
			l.token(answer)
		}
	case "/info":
		answer = l.info
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (l *liar) times(path string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.asked {
		if p == path {
			n++
		}
	}
	return n
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func signed(head, claims claimsOf, sign func(text []byte) []byte) string {
	h, _ := json.Marshal(head)
	c, _ := json.Marshal(claims)
	text := b64(h) + "." + b64(c)
	return text + "." + b64(sign([]byte(text)))
}

func (l *liar) rs256(head, claims claimsOf) string {
	return signed(head, claims, func(text []byte) []byte {
		sum := sha256.Sum256(text)
		sig, err := rsa.SignPKCS1v15(rand.Reader, l.key, crypto.SHA256, sum[:])
		require.NoError(l.t, err)
		return sig
	})
}

func (l *liar) issuer(change ...func(*Options)) *Issuer {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "secret")
	require.NoError(l.t, os.WriteFile(file, []byte(theSecret+"\n"), 0o600))
	o := Options{
		URL: l.url, ClientID: "gitring", SecretFile: file, Scopes: []string{"email"}, GroupsClaim: "groups",
		Redirect: "https://edge-1.example.org/signin/oidc/back", Now: time.Now,
	}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

func (l *liar) finish(change ...func(*Options)) (api.Person, error) {
	l.t.Helper()
	p, err := l.issuer(change...).Finish(l.t.Context(), theCode, nonce, verifier)
	if err != nil {
		for _, canary := range []string{theCode, theSecret, theAccess, "verifier-canary", nonce, "eyJ"} {
			require.NotContains(l.t, err.Error(), canary)
		}
		require.NotContains(l.t, err.Error(), "\n")
		require.Less(l.t, len(err.Error()), 400)
	}
	return p, err
}

func TestAnIssuerIsAskedAsTheStandardSays(t *testing.T) {
	l := newLiar(t)
	i := l.issuer(func(o *Options) { o.Scopes = []string{"email", "groups"} })
	require.Empty(t, l.asked, "nobody is asked before somebody signs in")
	at, err := i.Begin(t.Context(), "the state", nonce, verifier)
	require.NoError(t, err)
	u, err := url.Parse(at)
	require.NoError(t, err)
	require.Equal(t, l.url+"/auth", u.Scheme+"://"+u.Host+u.Path)
	challenge := sha256.Sum256([]byte(verifier))
	require.Equal(t, url.Values{
		"response_type": {"code"}, "client_id": {"gitring"}, "scope": {"openid email groups"}, "state": {"the state"}, "nonce": {nonce},
		"redirect_uri": {"https://edge-1.example.org/signin/oidc/back"}, "code_challenge": {b64(challenge[:])}, "code_challenge_method": {"S256"},
	}, u.Query())
	p, err := i.Finish(t.Context(), theCode, nonce, verifier)
	require.NoError(t, err)
	require.Equal(t, api.Person{Subject: "u1", Email: "alice@example.org", Groups: []string{"ops"}}, p)
	require.Equal(t, url.Values{"grant_type": {"authorization_code"}, "code": {theCode}, "redirect_uri": {"https://edge-1.example.org/signin/oidc/back"}, "code_verifier": {verifier}}, l.form)
	require.Equal(t, theSecret, l.basic)
	require.Equal(t, 1, l.times("/.well-known/openid-configuration"), "what it says of itself is asked once")
	require.Zero(t, l.times("/info"))
	require.False(t, l.kept, "nothing of a sign-in stays open")
}

func TestAClientWithoutASecretIsKeptByPKCEAlone(t *testing.T) {
	l := newLiar(t)
	_, err := l.finish(func(o *Options) { o.SecretFile = "" })
	require.NoError(t, err)
	require.Equal(t, "gitring", l.form.Get("client_id"))
	require.Equal(t, verifier, l.form.Get("code_verifier"))
	require.NotContains(t, l.form, "client_secret")
	l.discovery = func(c claimsOf) { c["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"} }
	_, err = l.finish()
	require.NoError(t, err)
	require.Equal(t, theSecret, l.form.Get("client_secret"))
	require.Empty(t, l.basic)
}

// Each is a way in which somebody else would be let in.
func TestWhatAnIssuerSaysWronglyCountsForNothing(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	claim := func(name string, value any) func(*liar) {
		return func(l *liar) {
			if l.claims[name] = value; value == nil {
				delete(l.claims, name)
			}
		}
	}
	for name, lie := range map[string]struct {
		of   func(*liar)
		says string
	}{
		"another audience":              {claim("aud", "grafana"), "expected audience"},
		"no audience":                   {claim("aud", nil), "expected audience"},
		"several, and another asked":    {func(l *liar) { l.claims["aud"], l.claims["azp"] = []string{"gitring", "grafana"}, "grafana" }, "made for another client"},
		"several, and nobody says who":  {claim("aud", []string{"gitring", "grafana"}), "made for another client"},
		"another client asked":          {claim("azp", "grafana"), "made for another client"},
		"another issuer":                {claim("iss", "https://evil.example.org"), "issued by a different provider"},
		"it is over":                    {claim("exp", time.Now().Add(-time.Minute).Unix()), "token is expired"},
		"it never ends":                 {claim("exp", nil), "token is expired"},
		"it is not yet":                 {claim("nbf", time.Now().Add(time.Hour).Unix()), "not before"},
		"another sign-in":               {claim("nonce", "another"), "made for another sign-in"},
		"no nonce":                      {claim("nonce", nil), "made for another sign-in"},
		"no subject":                    {claim("sub", nil), "names no subject"},
		"a subject of another alphabet": {claim("sub", "аlice"), "names no subject"},
		"a subject of two lines":        {claim("sub", "a\nb"), "names no subject"},
		"another access token":          {claim("at_hash", b64(make([]byte, 16))), "another access token"},
		"no id token":                   {func(l *liar) { l.token = func(c claimsOf) { delete(c, "id_token") } }, "gave no id token"},
		"no text":                       {func(l *liar) { l.token = func(c claimsOf) { c["id_token"] = 7 } }, "gave no id token"},
		"another key":                   {func(l *liar) { l.sign = func(h, c claimsOf) string { return (&liar{t: t, key: other}).rs256(h, c) } }, "verify signature"},
		"an unknown key": {func(l *liar) {
			l.sign = func(h, c claimsOf) string { h["kid"] = "x"; return (&liar{t: t, key: other}).rs256(h, c) }
		}, "verify signature"},
		"no signature": {func(l *liar) {
			l.sign = func(h, c claimsOf) string { h["alg"] = "none"; return signed(h, c, func([]byte) []byte { return nil }) }
		}, "malformed jwt"},
		"its public key taken as secret": {func(l *liar) { l.sign = func(h, c claimsOf) string { h["alg"] = "HS256"; return signed(h, c, l.hmac) } }, "malformed jwt"},
		"the client's secret as key": {func(l *liar) {
			l.discovery = func(c claimsOf) { c["id_token_signing_alg_values_supported"] = []string{"HS256", "none"} }
			l.sign = func(h, c claimsOf) string {
				h["alg"] = "HS256"
				return signed(h, c, func(text []byte) []byte {
					m := hmac.New(sha256.New, []byte(theSecret))
					m.Write(text)
					return m.Sum(nil)
				})
			}
		}, "malformed jwt"},
		"a curve that it does not have": {func(l *liar) {
			l.sign = func(h, c claimsOf) string {
				h["alg"] = "ES256"
				return signed(h, c, func(text []byte) []byte {
					sum := sha256.Sum256(text)
					r, s, err := ecdsa.Sign(rand.Reader, curve, sum[:])
					require.NoError(t, err)
					return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
				})
			}
		}, "malformed jwt"},
		"another person besides": {func(l *liar) {
			delete(l.claims, "email")
			l.info = claimsOf{"sub": "u2", "email": "root@example.org", "email_verified": true}
		}, "tells of another person"},
		"it calls itself another": {func(l *liar) { l.discovery = func(c claimsOf) { c["issuer"] = "https://evil.example.org" } }, "issuer"},
		"it sends secrets in clear": {func(l *liar) {
			l.discovery = func(c claimsOf) { c["token_endpoint"] = "http://192.0.2.1/token" }
		}, `it names an address that is not https: "http://192.0.2.1/token"`},
		"it sends elsewhere": {func(l *liar) {
			l.serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					http.Redirect(w, r, "/stolen", http.StatusTemporaryRedirect)
				}
				return r.URL.Path == "/token"
			}
		}, "refused the code with status 307"},
		"it repeats what it was sent": {func(l *liar) {
			l.serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					_ = r.ParseForm()
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(claimsOf{"error": "no " + r.PostForm.Encode() + theSecret, "error_description": r.PostForm.Encode()})
				}
				return r.URL.Path == "/token"
			}
		}, "refused the code with status 400"},
		"it refuses by a word": {func(l *liar) {
			l.serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					_, _ = fmt.Fprint(w, `{"error":"invalid_grant"}`)
				}
				return r.URL.Path == "/token"
			}
		}, "it refused the code: invalid_grant"},
		"it repeats the access token": {func(l *liar) {
			delete(l.claims, "email")
			l.info = claimsOf{}
			l.serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/info" {
					http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
				}
				return r.URL.Path == "/info"
			}
		}, "it answered with status 401"},
		"its answer never ends": {func(l *liar) {
			l.serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/token" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, `{"access_token":"`)
				for r.Context().Err() == nil {
					if _, err := w.Write([]byte(strings.Repeat("x", 64<<10))); err != nil {
						break
					}
				}
				return true
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiar(t)
			lie.of(l)
			_, err := l.finish()
			require.ErrorContains(t, err, lie.says)
			require.Zero(t, l.times("/stolen"))
		})
	}
}

// hmac signs with the public key as a secret, which everybody has.
func (l *liar) hmac(text []byte) []byte {
	m := hmac.New(sha256.New, x509.MarshalPKCS1PublicKey(&l.key.PublicKey))
	m.Write(text)
	return m.Sum(nil)
}

func TestWhichEMailsAndGroupsCount(t *testing.T) {
	for name, of := range map[string]struct {
		change claimsOf
		want   api.Person
	}{
		"as they are":            {nil, api.Person{Subject: "u1", Email: "alice@example.org", Groups: []string{"ops"}}},
		"not verified":           {claimsOf{"email_verified": false}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"nobody says verified":   {claimsOf{"email_verified": nil}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"verified by a text":     {claimsOf{"email_verified": "true"}, api.Person{Subject: "u1", Email: "alice@example.org", Groups: []string{"ops"}}},
		"a number":               {claimsOf{"email_verified": 1}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"another alphabet":       {claimsOf{"email": "alice@eхample.org"}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"a sign that folds to k": {claimsOf{"email": "\u212Aate@example.org"}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"that of a row":          {claimsOf{"email": "group:ops@example.org"}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"two addresses":          {claimsOf{"email": "a@b@c"}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"a line more":            {claimsOf{"email": "alice@example.org\nx"}, api.Person{Subject: "u1", Groups: []string{"ops"}}},
		"one group":              {claimsOf{"groups": "ops"}, api.Person{Subject: "u1", Email: "alice@example.org", Groups: []string{"ops"}}},
		"groups of no text":      {claimsOf{"groups": []any{"ops", 7}}, api.Person{Subject: "u1", Email: "alice@example.org"}},
		"no groups":              {claimsOf{"groups": nil}, api.Person{Subject: "u1", Email: "alice@example.org"}},
	} {
		l := newLiar(t)
		maps.Copy(l.claims, of.change)
		p, err := l.finish()
		require.NoError(t, err, name)
		require.Equal(t, of.want, p, name)
	}

	// What the id token lacks is asked for, and what it says stays. No part of an e-mail is of one
	// place and the rest of another.
	l := newLiar(t)
	delete(l.claims, "email")
	l.claims["email_verified"] = true
	l.info = claimsOf{"sub": "u1", "email": "bob@example.org", "groups": []string{"root"}}
	p, err := l.finish()
	require.NoError(t, err)
	require.Equal(t, api.Person{Subject: "u1", Groups: []string{"ops"}}, p)
	l.info["email_verified"] = true
	p, err = l.finish()
	require.NoError(t, err)
	require.Equal(t, "bob@example.org", p.Email)
	require.Positive(t, l.times("/info"))
}

// A caller that lost its nonce gets nobody, whatever the token says.
func TestWithoutANonceNobodyIsKnown(t *testing.T) {
	l := newLiar(t)
	l.claims["nonce"] = ""
	_, err := l.issuer().Finish(t.Context(), theCode, "", verifier)
	require.ErrorContains(t, err, "made for another sign-in")
}

func TestADeadIssuerIsNotAskedAgainAtOnceAndIsBackLater(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	l := newLiar(t)
	now := time.Now()
	i := l.issuer(func(o *Options) { o.Now = func() time.Time { return now } })
	down := true
	l.serve = func(w http.ResponseWriter, _ *http.Request) bool {
		if down {
			http.Error(w, "<h1>down</h1>", http.StatusServiceUnavailable)
		}
		return down
	}
	for range 5 {
		_, err := i.Begin(t.Context(), "s", nonce, verifier)
		require.EqualError(t, err, "it answered with status 503")
	}
	require.Len(t, l.asked, 1)
	down = false
	now = now.Add(awayFor)
	_, err = i.Begin(t.Context(), "s", nonce, verifier)
	require.NoError(t, err)
	now = now.Add(knownFor)
	_, err = i.Begin(t.Context(), "s", nonce, verifier)
	require.NoError(t, err)
	require.Len(t, l.asked, 3, "after an hour it is asked anew")

	gone := New(Options{URL: "http://" + closed.Addr().String(), ClientID: "gitring", Now: time.Now})
	_, err = gone.Begin(t.Context(), "s", nonce, verifier)
	require.ErrorContains(t, err, "connection refused")

	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	mute := New(Options{URL: "http://" + silent.Addr().String(), ClientID: "gitring", Now: time.Now})
	mute.client.Timeout = 50 * time.Millisecond
	_, err = mute.Begin(t.Context(), "s", nonce, verifier)
	require.ErrorContains(t, err, "it did not answer within 5s")
	require.Equal(t, within, newClient().Timeout)
}

// Whoever leaves while the issuer is asked about itself says nothing of the issuer to those who stay.
func TestWhoLeavesWhileAnIssuerIsAskedKeepsNobodyOut(t *testing.T) {
	l := newLiar(t)
	i := l.issuer()
	ctx, leave := context.WithCancel(t.Context())
	l.serve = func(_ http.ResponseWriter, r *http.Request) bool {
		leave()
		select { // where the question ended with who asked, it is answered to nobody
		case <-r.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
		return false
	}
	_, _ = i.Begin(ctx, "s", nonce, verifier)
	_, err := i.Begin(t.Context(), "s", nonce, verifier)
	require.NoError(t, err)
	require.Equal(t, 1, l.times("/.well-known/openid-configuration"), "and its answer counts")
}

func TestAnAddressThatIsNotHTTPSIsForThisMachineAlone(t *testing.T) {
	for at, want := range map[string]bool{
		"https://id.example.org https://id.example.org/token": true, "https://id.example.org https://other.example.org/token": true,
		"https://id.example.org http://id.example.org/token": false, "https://id.example.org http://127.0.0.1/token": false,
		"http://127.0.0.1:1 http://127.0.0.1:1/token": true, "http://localhost http://[::1]/token": true, "http://127.0.0.1 http://192.0.2.1/t": false,
		"https://id.example.org file:///etc/passwd": false, "https://id.example.org ://": false, "https://id.example.org /token": false,
	} {
		issuer, address, _ := strings.Cut(at, " ")
		require.Equal(t, want, safe(issuer, address), at)
	}
}

func TestASecretIsOneWordOfAFile(t *testing.T) {
	l := newLiar(t)
	for text, says := range map[string]string{"": "holds no secret", "two words": "more than one word", strings.Repeat("x", longestSecret+1): "is larger than 4096 bytes"} {
		file := filepath.Join(t.TempDir(), "s")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := l.finish(func(o *Options) { o.SecretFile = file })
		require.ErrorContains(t, err, says)
		if len(text) > 0 {
			require.NotContains(t, err.Error(), text)
		}
	}
	_, err := l.finish(func(o *Options) { o.SecretFile = "/none" })
	require.ErrorContains(t, err, "cannot use api.oidc.client_secret_file: cannot read /none: no such file")

	file := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.WriteFile(file, []byte(theSecret), 0o600))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		require.NoError(t, os.Chmod(file, mode))
		_, err = l.finish(func(o *Options) { o.SecretFile = file })
		require.ErrorContains(t, err, "cannot use api.oidc.client_secret_file: cannot trust "+file)
		require.ErrorContains(t, err, "by others")
	}
	require.Zero(t, l.times("/token"), "no code is sent without it")
}
