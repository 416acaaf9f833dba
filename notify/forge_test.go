package notify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestPostWordForWord(t *testing.T) {
	for kind, want := range map[string]string{
		GitHub: "failure", GitLab: "failed", Gitea: "failure", Forgejo: "failure", Bitbucket: "FAILED", BitbucketDC: "FAILED",
	} {
		t.Run(kind, func(t *testing.T) {
			f := newFake(t, kind)
			require.Equal(t, outcome{done: true}, f.forge(t).say(t, post("gitring/edge-1/web", ring.PostFailure, "web unhealthy; kept 1a2b3c4")))
			require.Equal(t, want+": web unhealthy; kept 1a2b3c4", f.shows("gitring/edge-1/web"))
		})
	}
}

func TestBodyIsExact(t *testing.T) {
	for kind, want := range map[string]string{
		GitHub:      `{"state":"success","target_url":"https://edge-1.example.org","description":"healthy 4/4","context":"gitring/edge-1"}`,
		Forgejo:     `{"state":"success","target_url":"https://edge-1.example.org","description":"healthy 4/4","context":"gitring/edge-1"}`,
		GitLab:      `{"state":"success","ref":"main","name":"gitring/edge-1","target_url":"https://edge-1.example.org","description":"healthy 4/4"}`,
		Bitbucket:   `{"key":"cc772349656a7dfbffc0d17c8967da68a51de9b3","state":"SUCCESSFUL","name":"gitring/edge-1","url":"https://edge-1.example.org","description":"healthy 4/4","refname":"main"}`,
		BitbucketDC: `{"key":"gitring/edge-1","state":"SUCCESSFUL","name":"gitring/edge-1","url":"https://edge-1.example.org","description":"healthy 4/4","ref":"refs/heads/main"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			var body []byte
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ = io.ReadAll(r.Body)
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte(`{"id":1,"key":"x"}`))
			}))
			t.Cleanup(s.Close)
			f := Forge{Kind: kind, APIURL: s.URL, Repo: "acme/infra", TokenFile: tokenFile(t, secret), TargetURL: "https://edge-1.example.org", Branch: "main"}
			require.Equal(t, outcome{done: true}, f.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy 4/4")))
			require.Equal(t, want, string(body))
		})
	}
}

// The words of docs/design/forges.md#words-of-a-status, row by row.
func TestEachPhaseInTheWordsOfEachForge(t *testing.T) {
	for _, row := range []struct {
		name, state, phase                   string
		github, gitlab, gitea, cloud, center string
	}{
		{"verified, queued", ring.PostPending, "", "pending", "pending", "pending", "INPROGRESS", "INPROGRESS"},
		{"rolling", ring.PostPending, ring.PostRunning, "pending", "running", "pending", "INPROGRESS", "INPROGRESS"},
		{"done", ring.PostSuccess, "", "success", "success", "success", "SUCCESSFUL", "SUCCESSFUL"},
		{"failed, reverted or rejected", ring.PostFailure, "", "failure", "failed", "failure", "FAILED", "FAILED"},
		{"infra error", ring.PostError, ring.PostTrouble, "error", "failed", "error", "FAILED", "FAILED"},
		{"superseded before apply", ring.PostError, ring.PostSuperseded, "error", "canceled", "error", "STOPPED", "CANCELLED"},
	} {
		for kind, want := range map[string]string{
			GitHub: row.github, GitLab: row.gitlab, Gitea: row.gitea, Forgejo: row.gitea, Bitbucket: row.cloud, BitbucketDC: row.center,
		} {
			t.Run(kind+": "+row.name, func(t *testing.T) {
				f := newFake(t, kind)
				p := post("gitring/edge-1/web", row.state, "web 2/4 ready")
				p.Phase = row.phase
				require.Equal(t, outcome{done: true}, f.forge(t).say(t, p))
				require.Equal(t, want+": web 2/4 ready", f.shows("gitring/edge-1/web"))
			})
		}
	}
}

// What the forges really answer, by their documentation.
func TestAnswers(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const limit = `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","message":"This SHA and context has reached the maximum number of statuses."}],"documentation_url":"https://docs.github.com/rest/commits/statuses#create-a-commit-status","status":"422"}`
	reset := map[string]string{
		"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": fmt.Sprint(now.Add(100 * time.Second).Unix()),
		"Date": now.Format(http.TimeFormat),
	}
	for _, tc := range []struct {
		name   string
		kind   string
		answer fakeAnswer
		want   outcome
	}{
		{"created", GitHub, fakeAnswer{201, nil, `{"id":1}`}, outcome{done: true}},
		{"a limit of 1000 statuses is done", GitHub, fakeAnswer{422, nil, limit}, outcome{done: true}},
		{"another 422 is permanent", GitHub, fakeAnswer{422, nil, `{"message":"No commit found for SHA: ` + string(sha) + `"}`}, outcome{permanent: true, says: "the forge answered 422"}},
		{"a wrong token", GitHub, fakeAnswer{401, nil, `{"message":"Bad credentials"}`}, outcome{permanent: true, says: "the forge answered 401: the token is not valid; see status.token_file"}},
		{"a token without the permission", GitHub, fakeAnswer{403, nil, `{"message":"Resource not accessible by personal access token"}`}, outcome{permanent: true, says: "the forge answered 403: the token may not write commit statuses"}},
		{"no such repository", GitHub, fakeAnswer{404, nil, `{"message":"Not Found"}`}, outcome{permanent: true, says: "the forge answered 404: no such repository or commit, or the token may not see it"}},
		{"a redirect", GitHub, fakeAnswer{301, map[string]string{"Location": "https://api.github.com/repositories/1/statuses/x"}, `{"message":"Moved Permanently"}`}, outcome{permanent: true, says: "the forge answered 301, a redirect, which is not followed: has the repository moved? see status.repo and status.api_url"}},
		{"429 with Retry-After", GitHub, fakeAnswer{429, map[string]string{"Retry-After": "17"}, `{"message":"slow down"}`}, outcome{wait: 17 * time.Second, says: "the forge's rate limit is reached"}},
		{"429 without a word", GitHub, fakeAnswer{429, nil, ``}, outcome{wait: time.Minute, says: "the forge's rate limit is reached"}},
		{"403 is a rate limit with Retry-After", GitHub, fakeAnswer{403, map[string]string{"Retry-After": "60"}, `{"message":"You have exceeded a secondary rate limit."}`}, outcome{wait: time.Minute, says: "the forge's rate limit is reached"}},
		{"403 is a rate limit with a used up budget", GitHub, fakeAnswer{403, reset, `{"message":"API rate limit exceeded for user ID 1."}`}, outcome{wait: 101 * time.Second, says: "the forge's rate limit is reached"}},
		{"403 is a rate limit by its words", GitHub, fakeAnswer{403, nil, `{"message":"You have exceeded a secondary rate limit."}`}, outcome{wait: time.Minute, says: "the forge's rate limit is reached"}},
		{"500", GitHub, fakeAnswer{500, nil, `oops`}, outcome{says: "the forge answered 500"}},
		{"503 with a date", GitHub, fakeAnswer{503, map[string]string{"Retry-After": now.Add(30 * time.Second).Format(http.TimeFormat), "Date": now.Format(http.TimeFormat)}, ``}, outcome{wait: 30 * time.Second, says: "the forge answered 503"}},
		{"a wish for a year is a wish for a day", GitHub, fakeAnswer{503, map[string]string{"Retry-After": "31536000"}, ``}, outcome{wait: giveUp, says: "the forge answered 503"}},
		{"nonsense for Retry-After", GitHub, fakeAnswer{503, map[string]string{"Retry-After": "soon"}, ``}, outcome{says: "the forge answered 503"}},
		{"gitea: created", Gitea, fakeAnswer{201, nil, `{"id":1}`}, outcome{done: true}},
		{"gitea: a wrong token", Gitea, fakeAnswer{401, nil, `{"message":"invalid username, password or token","url":"https://gitea.example.org/api/swagger"}`}, outcome{permanent: true, says: "the forge answered 401: the token is not valid; see status.token_file"}},
		{"gitea: a token without the scope", Forgejo, fakeAnswer{403, nil, `{"message":"token does not have at least one of required scope(s): [write:repository]"}`}, outcome{permanent: true, says: "the forge answered 403: the token may not write commit statuses"}},
		{"gitea: 422", Gitea, fakeAnswer{422, nil, `{"message":"maximum number of statuses"}`}, outcome{permanent: true, says: "the forge answered 422"}},
		{"gitea: 429", Forgejo, fakeAnswer{429, map[string]string{"Retry-After": "5"}, ``}, outcome{wait: 5 * time.Second, says: "the forge's rate limit is reached"}},
		{"a login page in the API's place", GitHub, fakeAnswer{200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, `<!DOCTYPE html><title>ghp_</title>`}, outcome{says: "the forge answered 200 with a web page, which is not its API; see status.api_url"}},
		{"an error page", GitLab, fakeAnswer{502, map[string]string{"Content-Type": "text/html"}, `<html>` + secret}, outcome{says: "the forge answered 502"}},
		{"gitlab: the same state again", GitLab, fakeAnswer{400, nil, `{"message":"Cannot transition status via :run from :running (Reason(s): Status cannot transition via \"run\")"}`}, outcome{done: true}},
		{"gitlab: queued what is queued", GitLab, fakeAnswer{400, nil, `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`}, outcome{done: true}},
		{"gitlab: an outcome is not lost in silence", GitLab, fakeAnswer{400, nil, `{"message":"Cannot transition status via :drop from :created"}`}, outcome{permanent: true, says: "the forge answered 400"}},
		{"gitlab: two posts at once", GitLab, fakeAnswer{409, nil, `{"message":"Another update to this commit status is in progress"}`}, outcome{says: "the forge answered 409: it is busy with another status of the commit"}},
		{"gitlab: 429 with a time", GitLab, fakeAnswer{429, map[string]string{"RateLimit-Reset": fmt.Sprint(now.Add(40 * time.Second).Unix()), "Date": now.Format(http.TimeFormat)}, "Retry later\n"}, outcome{wait: 41 * time.Second, says: "the forge's rate limit is reached"}},
		{"gitlab: Retry-After counts first", GitLab, fakeAnswer{429, map[string]string{"Retry-After": "7", "RateLimit-Reset": fmt.Sprint(now.Add(time.Hour).Unix())}, "Retry later\n"}, outcome{wait: 7 * time.Second, says: "the forge's rate limit is reached"}},
		{"gitlab: a wrong token", GitLab, fakeAnswer{401, nil, `{"message":"401 Unauthorized"}`}, outcome{permanent: true, says: "the forge answered 401: the token is not valid; see status.token_file"}},
		{"gitlab: a protected branch", GitLab, fakeAnswer{403, nil, `{"message":"403 Forbidden"}`}, outcome{permanent: true, says: "the forge answered 403: the token may not write commit statuses"}},
		{"bitbucket: 429 without a word", Bitbucket, fakeAnswer{429, nil, `{"type":"error","error":{"message":"Rate limit for this resource has been exceeded"}}`}, outcome{wait: time.Minute, says: "the forge's rate limit is reached"}},
		{"bitbucket: no such repository", Bitbucket, fakeAnswer{404, nil, `{"type":"error","error":{"message":"Repository acme/infra not found"}}`}, outcome{permanent: true, says: "the forge answered 404: no such repository or commit, or the token may not see it"}},
		{"bitbucket-dc: no content", BitbucketDC, fakeAnswer{204, nil, ``}, outcome{done: true}},
		{"bitbucket-dc: a token that may only read", BitbucketDC, fakeAnswer{401, nil, `{"errors":[{"message":"You are not permitted to access this resource"}]}`}, outcome{permanent: true, says: "the forge answered 401: the token is not valid; see status.token_file"}},
		{"gitea: 502", Gitea, fakeAnswer{502, nil, `<html>`}, outcome{says: "the forge answered 502"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, tc.kind)
			f.answer(tc.answer)
			require.Equal(t, tc.want, f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")))
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(other.Close)
	for _, code := range []int{301, 302, 307, 308} {
		f := newFake(t, GitHub)
		f.answer(fakeAnswer{code: code, header: map[string]string{"Location": other.URL}})
		forge := f.forge(t)
		forge.Client = other.Client() // a client that would follow
		require.True(t, forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).permanent)
	}
	require.False(t, reached.Load())
}

func TestAForgeThatIsNotThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	f := Forge{Kind: GitHub, APIURL: s.URL, Repo: "acme/infra", TokenFile: tokenFile(t, secret)}
	s.Close()
	o := f.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
	require.False(t, o.done || o.permanent)
	require.Contains(t, o.says, "cannot reach the forge: dial tcp")
	require.NotContains(t, o.says, "/repos/")
}

func TestTokenIsReadAtEachUseAndNeverTold(t *testing.T) {
	f := newFake(t, Gitea)
	forge := f.forge(t)
	p := post("gitring/edge-1", ring.PostSuccess, "healthy")
	for _, tc := range []struct{ content, says string }{
		{"", "is empty"},
		{" \n", "is empty"},
		{secret + "\n" + secret, "holds more than one word"},
		{secret + "\x00", "holds more than one word"},
	} {
		require.NoError(t, os.WriteFile(forge.TokenFile, []byte(tc.content), 0o600))
		o := forge.say(t, p)
		require.False(t, o.done || o.permanent, "a person may put it right")
		require.Contains(t, o.says, tc.says)
		require.NotContains(t, o.says, "ghp_")
	}
	require.NoError(t, os.Remove(forge.TokenFile))
	require.Contains(t, forge.say(t, p).says, "cannot read the token")
	require.NoError(t, os.WriteFile(forge.TokenFile, []byte(secret), 0o600))
	require.True(t, forge.say(t, p).done)
}

func TestOnlyCommitsArePostedTo(t *testing.T) {
	f := newFake(t, Gitea)
	for _, bad := range []ring.SHA{"", "ab12cd3", "../../../user", sha + "0", ring.SHA(strings.ToUpper(string(sha)))} {
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		p.SHA = bad
		require.True(t, f.forge(t).say(t, p).permanent)
	}
	require.Empty(t, f.requests())
}

func TestNewForge(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		kind, source, api, repo string
		wantAPI, wantRepo, err  string
	}{
		{name: "github.com", kind: GitHub, source: "https://github.com/acme/infra.git", wantAPI: "https://api.github.com", wantRepo: "acme/infra"},
		{name: "github.com over ssh", kind: GitHub, source: "ssh://git@github.com/acme/infra.git", wantAPI: "https://api.github.com", wantRepo: "acme/infra"},
		{name: "github.com over ssh on 443", kind: GitHub, source: "ssh://git@ssh.github.com:443/acme/infra.git", wantAPI: "https://api.github.com", wantRepo: "acme/infra"},
		{name: "the short form of ssh", kind: GitHub, source: "git@github.com:acme/infra.git", wantAPI: "https://api.github.com", wantRepo: "acme/infra"},
		{name: "an Enterprise Server", kind: GitHub, source: "https://ghe.example.org:8443/acme/infra", wantAPI: "https://ghe.example.org:8443/api/v3", wantRepo: "acme/infra"},
		{name: "gitea", kind: Gitea, source: "https://git.example.org/acme/infra.git", wantAPI: "https://git.example.org/api/v1", wantRepo: "acme/infra"},
		{name: "an ssh port is no port of the API", kind: Forgejo, source: "ssh://git@git.example.org:2222/acme/infra.git/", wantAPI: "https://git.example.org/api/v1", wantRepo: "acme/infra"},
		{name: "gitea below a path", kind: Gitea, source: "https://example.org/git/acme/infra.git", wantAPI: "https://example.org/git/api/v1", wantRepo: "acme/infra"},
		{name: "user and password are not taken over", kind: Gitea, source: "https://bot:pw@git.example.org/acme/infra", wantAPI: "https://git.example.org/api/v1", wantRepo: "acme/infra"},
		{name: "given by hand", kind: Gitea, source: "file:///srv/infra.git", api: "http://127.0.0.1:3000/api/v1/", repo: "acme/infra", wantAPI: "http://127.0.0.1:3000/api/v1", wantRepo: "acme/infra"},
		{name: "http is never derived", kind: Gitea, source: "http://127.0.0.1:3000/acme/infra.git", err: "status.api_url"},
		{name: "http with the API by hand and no repo", kind: Gitea, source: "http://127.0.0.1:3000/acme/infra.git", api: "http://127.0.0.1:3000/api/v1", err: "status.repo"},
		{name: "a file has no forge", kind: GitHub, source: "file:///srv/acme/infra.git", err: "status.api_url"},
		{name: "GitHub has no groups", kind: GitHub, source: "https://github.com/a/b/c.git", err: "status.api_url"},
		{name: "too short", kind: GitHub, source: "https://github.com/infra.git", err: "status.api_url"},
		{name: "no such forge", kind: "gitlub", source: "https://gitlab.com/a/b.git", err: "status.forge"},
		{name: "a password in the API's address", kind: Gitea, api: "https://bot:s3cret@git.example.org/api/v1", repo: "a/b", err: "token_file"},
		{name: "a query in the API's address", kind: Gitea, api: "https://git.example.org/api/v1?x=1", repo: "a/b", err: "query"},
		{name: "another scheme", kind: Gitea, api: "ftp://git.example.org", repo: "a/b", err: "https://host/path"},
		{name: "a repo of three", kind: Gitea, api: "https://git.example.org/api/v1", repo: "a/b/c", err: "owner/name"},
		{name: "a repo that climbs", kind: Gitea, api: "https://git.example.org/api/v1", repo: "../b", err: "owner/name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, err := NewForge(tc.kind, tc.source, tc.api, tc.repo, "/token")
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.NotContains(t, err.Error(), "s3cret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.wantAPI, f.APIURL)
			require.Equal(t, tc.wantRepo, f.Repo)
		})
	}
}

func TestDescribe(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"our own sentences stay", "rejected: Unsigned ab12cd3; web 2/4 ready, healthy in 38s (plan 3~ 1+ 0-)", "rejected: Unsigned ab12cd3; web 2/4 ready, healthy in 38s (plan 3~ 1+ 0-)"},
		{"arrows are spelled", "image sha256:a… → sha256:b…", "image sha256:a... -> sha256:b..."},
		{"one line", "a\n\tb\r\nc", "a b c"},
		{"no tags, no escapes", "<img src=x>\x1b[31m`rm`", "?img src=x>?31m'rm'"},
		{"no other alphabets", "café 日本", "caf? ??"},
		{"no more than 140", strings.Repeat("abcd ", 50), strings.Repeat("abcd ", 27) + "ab..."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := describe(tc.in)
			require.Equal(t, tc.want, got)
			require.LessOrEqual(t, len(got), 140)
		})
	}
}
