package notify

import (
	"context"
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
	"os"
	"strings"
	"sync"
	"time"
)

// What GitHub asks of an App's own token, and gives for it (docs.github.com,
// "Generating a JSON Web Token (JWT) for a GitHub App"): it lives for ten minutes
// at most and begins a minute ago, for clocks that differ. An installation's
// token lives for an hour.
const (
	appTokenFor    = 10 * time.Minute
	appTokenBefore = time.Minute
	renewBefore    = 5 * time.Minute
)

// App is an installation of a GitHub App, whose tokens take the place of one in
// a file. It is shared by whoever speaks to the forge for one source.
type App struct {
	ID, Installation string
	// KeyFile holds the App's RSA key as PEM; it is read at each renewal.
	KeyFile string

	mu    sync.Mutex // guards what follows
	token string
	until time.Time
}

// appNeeds are the least permissions for what f does.
func (f Forge) appNeeds() map[string]string {
	needs := map[string]string{"statuses": "write"}
	if f.Deployments {
		needs["deployments"] = "write"
	}
	if f.PullRequests {
		needs["pull_requests"] = "write"
	}
	return needs
}

// Token is a token for f's repository alone that lives for some minutes more.
func (a *App) Token(ctx context.Context, f Forge) (string, error) {
	a.mu.Lock()
	token, until := a.token, a.until
	a.mu.Unlock()
	if token != "" && time.Now().Add(renewBefore).Before(until) {
		return token, nil
	}
	own, err := a.sign(time.Now())
	if err != nil {
		return "", err
	}
	_, name, _ := strings.Cut(f.Repo, "/")
	var got struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	path := segments("app", "installations", a.Installation, "access_tokens")
	body := map[string]any{"repositories": []string{name}, "permissions": f.appNeeds()}
	dress := func(h http.Header) { github{}.dress(h, f, own) }
	if _, err := f.request(ctx, http.MethodPost, path, body, &got, dress, judgeApp); err != nil {
		return "", err
	}
	if got.Token == "" {
		return "", outcome{says: "the forge answered without a token for the App"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token, a.until = got.Token, got.ExpiresAt
	return got.Token, nil
}

// forget drops a token that the forge did not take, unless it was renewed since.
func (a *App) forget(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == token {
		a.token = ""
	}
}

// judgeApp says what to look at when GitHub gives no token.
func judgeApp(a answer, body string) (outcome, bool) {
	if o, known := (github{}).judge(a, body); known {
		return o, true
	}
	says := ""
	switch a.code {
	case http.StatusUnauthorized:
		says = "the App is not known by this key: see status.app.id, status.app.private_key_file and the clock of this host"
	case http.StatusForbidden, http.StatusNotFound:
		says = "there is no such installation of the App, or it is suspended: see status.app.installation"
	case http.StatusUnprocessableEntity:
		says = "the App was not given the repository or a permission that is needed; see docs/how-to/forge-github.md"
	default:
		return outcome{}, false
	}
	return outcome{permanent: true, says: fmt.Sprintf("the forge answered %d: %s", a.code, says)}, true
}

// sign makes the App's own token. No error of it holds a part of the key.
func (a *App) sign(now time.Time) (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	began := now.Add(-appTokenBefore)
	claims, err := json.Marshal(map[string]any{"iss": a.ID, "iat": began.Unix(), "exp": began.Add(appTokenFor).Unix()})
	if err != nil {
		return "", fmt.Errorf("cannot write the App's token: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign with the key in %s: it is too short", a.KeyFile)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig), nil
}

func (a *App) key() (*rsa.PrivateKey, error) {
	raw, err := os.ReadFile(a.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the App's key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("cannot use the App's key: %s holds no PEM", a.KeyFile)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if any, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, ok := any.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("cannot use the App's key: %s holds no RSA private key without a passphrase", a.KeyFile)
}
