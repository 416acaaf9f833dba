package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const (
	sha    = ring.SHA("ab12cd3ab12cd3ab12cd3ab12cd3ab12cd3ab12c")
	older  = ring.SHA("1a2b3c41a2b3c41a2b3c41a2b3c41a2b3c41a2b3")
	secret = "ghp_averysecrettokenthatnobodymaysee"
)

// fake is what the fakes of all forges share: it takes only what was announced,
// word for word, and answers what a test tells it to.
type fake struct {
	*httptest.Server
	kind      string
	root      string                 // of the API
	repo      string                 // as status.repo
	headers   map[string]string      // of every request
	authorize func(path, got string) // looks at the authorization; nil is what headers say

	mu      sync.Mutex
	routes  map[string]func(q url.Values, body []byte) fakeAnswer
	answers []fakeAnswer      // for the next requests, whatever they ask
	asked   []string          // "<method> <path>"
	wrong   []string          // what a real forge would not have taken
	shown   map[string]string // "<context>" -> "<state>: <description>"
}

type fakeAnswer struct {
	code   int
	header map[string]string
	body   string
}

func newFakeOf(t *testing.T, kind, root, repo string, headers map[string]string) *fake {
	t.Helper()
	f := &fake{
		kind: kind, root: root, repo: repo, headers: headers, shown: map[string]string{},
		routes: map[string]func(url.Values, []byte) fakeAnswer{},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Close()
		require.Empty(t, f.wrong)
	})
	return f
}

// newFake is the fake of a kind of forge.
func newFake(t *testing.T, kind string) *fake {
	t.Helper()
	switch kind {
	case GitHub:
		return newFakeGitHub(t).fake
	case GitLab:
		return newFakeGitLab(t).fake
	case Bitbucket:
		return newFakeBitbucket(t).fake
	case BitbucketDC:
		return newFakeBitbucketDC(t).fake
	}
	return newFakeGitea(t, kind).fake
}

// on announces a request. path is below the API's root, as it must be on the
// wire; do is called with the lock held.
func (f *fake) on(method, path string, do func(q url.Values, body []byte) fakeAnswer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routes[method+" "+f.root+path] = do
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.URL.EscapedPath()
	f.asked = append(f.asked, r.Method+" "+path)
	for name, want := range f.headers {
		if got := r.Header.Get(name); got != want {
			f.not("%s is %q, not %q", name, got, want)
		}
	}
	if f.authorize != nil {
		f.authorize(path, r.Header.Get("Authorization"))
	}
	body, _ := io.ReadAll(r.Body)
	if kind := r.Header.Get("Content-Type"); len(body) > 0 && kind != "application/json" {
		f.not("the body is %q", kind)
	}
	do, known := f.routes[r.Method+" "+path]
	if !known {
		f.not("asked %s %s", r.Method, path)
		do = func(url.Values, []byte) fakeAnswer { return fakeAnswer{code: http.StatusNotFound} }
	}
	a := fakeAnswer{}
	if len(f.answers) > 0 {
		a, f.answers = f.answers[0], f.answers[1:]
	} else {
		a = do(r.URL.Query(), body)
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.code)
	_, _ = w.Write([]byte(a.body))
}

// not notes what a real forge would not have taken.
func (f *fake) not(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// read takes a body that holds the fields of into and no other.
func (f *fake) read(body []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		f.not("the body %s: %v", body, err)
	}
}

func (f *fake) oneOf(what, got string, known ...string) {
	if !slices.Contains(known, got) {
		f.not("%s is %q", what, got)
	}
}

func (f *fake) atMost(what, got string, n int) {
	if got == "" || len(got) > n {
		f.not("%s is %q", what, got)
	}
}

func (f *fake) answer(a ...fakeAnswer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, a...)
}

func (f *fake) shows(context string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown[context]
}

func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fake) forge(t *testing.T) Forge {
	t.Helper()
	forge, err := NewForge(f.kind, "https://forge.example.org/other/repo.git", f.URL+f.root+"/", f.repo, tokenFile(t, secret+"\n"))
	require.NoError(t, err)
	forge.Branch, forge.TargetURL = "main", "https://edge-1.example.org/"
	return forge
}

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func post(context, state, says string) ring.Post {
	return ring.Post{Source: "prod", SHA: sha, Context: context, State: state, Description: says, At: time.Now()}
}

// say posts p as a row that was never said.
func (f Forge) say(t *testing.T, p ring.Post) outcome {
	t.Helper()
	_, o := f.post(t.Context(), ring.OutboxRow{Key: ring.PostKey(p.SHA, p.Context), Seq: 1, Post: p})
	return o
}

func created(v any) fakeAnswer {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return fakeAnswer{code: http.StatusCreated, header: map[string]string{"Content-Type": "application/json"}, body: string(body)}
}

func ok(v any) fakeAnswer {
	a := created(v)
	a.code = http.StatusOK
	return a
}
