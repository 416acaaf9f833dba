package notify

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Answers as forges give them, by what each is asked.
func TestAForgeSaysWhatItThinksOfAToken(t *testing.T) {
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		kind, path string
		code       int
		header     map[string]string
		body       string
		want       TokenState
		fails      bool
	}{
		{kind: "github", path: "/rate_limit", code: 200, body: `{"rate":{}}`, header: map[string]string{
			"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "12", "github-authentication-token-expiration": "2026-12-01 00:00:00 UTC",
		}, want: TokenState{Expires: end, Left: 12, Limit: 5000}},
		{kind: "github", path: "/rate_limit", code: 200, body: `{}`, header: map[string]string{"github-authentication-token-expiration": "2026-12-01 02:00:00 +0200"}, want: TokenState{Expires: end}},
		{kind: "github", path: "/rate_limit", code: 401, body: `{"message":"Bad credentials"}`, want: TokenState{Refused: true, Says: "the forge answered 401: the token is not valid; see status.token_file"}},
		{kind: "gitlab", path: "/personal_access_tokens/self", code: 200, body: `{"id":1,"expires_at":"2026-12-01","scopes":["api"]}`, header: map[string]string{
			"RateLimit-Limit": "600", "RateLimit-Remaining": "599",
		}, want: TokenState{Expires: end, Left: 599, Limit: 600}},
		{kind: "gitlab", path: "/personal_access_tokens/self", code: 200, body: `{"expires_at":null}`, want: TokenState{}},
		{kind: "forgejo", path: "/user", code: 403, body: `{"message":"token does not have at least one of required scope(s)"}`, want: TokenState{}},
		{kind: "gitea", path: "/user", code: 200, body: `{"login":"bot"}`, want: TokenState{}},
		{kind: "gitea", path: "/user", code: 401, body: `{}`, want: TokenState{Refused: true, Says: "the forge answered 401: the token is not valid; see status.token_file"}},
		{kind: "gitea", path: "/user", code: 502, fails: true},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != tt.path {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.code)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			token := filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
			got, known, err := Forge{Kind: tt.kind, APIURL: server.URL, Repo: "a/b", TokenFile: token, Client: server.Client()}.CheckToken(t.Context())
			require.True(t, known)
			if tt.fails {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	_, known, err := Forge{Kind: "bitbucket-dc"}.CheckToken(t.Context())
	require.False(t, known)
	require.NoError(t, err)
}
