package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The people of every fake: gitring's own account and somebody else.
const (
	ownNumber, strangerNumber = 7, 8
	ownUUID, strangerUUID     = "{aaaaaaaa-0000-0000-0000-000000000007}", "{aaaaaaaa-0000-0000-0000-000000000008}"
	ownName, strangerName     = "gitring bot", "mallory"
)

// fakePulls is a forge's pull requests and comments, as strict about what it is sent
// as the real one: each forge's form stands in its own file.
type fakePulls struct {
	*httptest.Server
	t     *testing.T
	forge Forge

	mu       sync.Mutex
	pulls    []fakePull
	comments map[int][]fakeComment
	etag     int // of the list; grows when a test changes it
	calls    []string
	wrong    []string
	fail     func(method, path string) int // a code to answer with; 0 is none
	lastID   int64
}

type fakePull struct {
	number int
	head   ring.SHA
	branch string
	fork   bool
	gone   bool // the repository of the head
	text   string
	into   string
}

type fakeComment struct {
	id      int64
	version int
	own     bool
	text    string
}

// fakeForms are how each forge speaks.
var fakeForms = map[string]func(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte){
	GitHub: fakeGitHubPulls, GitLab: fakeGitLabPulls, Gitea: fakeGiteaPulls, Forgejo: fakeGiteaPulls,
	Bitbucket: fakeBitbucketPulls, BitbucketDC: fakeBitbucketDCPulls,
}

func newFakePulls(t *testing.T, kind string) *fakePulls {
	t.Helper()
	f := &fakePulls{t: t, comments: map[int][]fakeComment{}, lastID: 100}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Close()
		require.Empty(t, f.wrong)
	})
	f.forge = Forge{Kind: kind, APIURL: f.URL + "/root", Repo: "acme/infra", Branch: "main", TokenFile: tokenFile(t, secret+"\n")}
	return f
}

func (f *fakePulls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/root")
	f.calls = append(f.calls, r.Method+" "+path)
	for name, want := range f.headers() {
		if got := r.Header.Get(name); got != want {
			f.bad("%s %s: %s is %q, not %q", r.Method, path, name, got, want)
		}
	}
	if (len(body) > 0) != (r.Header.Get("Content-Type") == "application/json") {
		f.bad("%s %s: a body of %d bytes as %q", r.Method, path, len(body), r.Header.Get("Content-Type"))
	}
	w.Header().Set("Content-Type", "application/json")
	if f.fail != nil {
		if code := f.fail(r.Method, path); code != 0 {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"message":"no"}`))
			return
		}
	}
	fakeForms[f.forge.Kind](f, w, r, path, body)
}

func (f *fakePulls) headers() map[string]string {
	switch f.forge.Kind {
	case GitHub:
		return map[string]string{"Accept": "application/vnd.github+json", "X-Github-Api-Version": "2022-11-28", "Authorization": "Bearer " + secret}
	case GitLab:
		return map[string]string{"Accept": "application/json", "Private-Token": secret}
	case Gitea, Forgejo:
		return map[string]string{"Accept": "application/json", "Authorization": "token " + secret}
	}
	return map[string]string{"Accept": "application/json", "Authorization": "Bearer " + secret}
}

func (f *fakePulls) bad(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// query holds a request to exactly these parameters.
func (f *fakePulls) query(r *http.Request, want url.Values) {
	if got := r.URL.Query().Encode(); got != want.Encode() {
		f.bad("%s?%s, not ?%s", r.URL.Path, got, want.Encode())
	}
}

// into decodes a body that may have nothing else in it.
func (f *fakePulls) into(body []byte, out any) {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		f.bad("the body %s: %v", body, err)
	}
}

func (f *fakePulls) say(w http.ResponseWriter, code int, out any) {
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(out); err != nil {
		f.bad("the test's own answer: %v", err)
	}
}

// unchanged answers a list that is as it was.
func (f *fakePulls) unchanged(w http.ResponseWriter, r *http.Request) bool {
	tag := fmt.Sprintf(`"list-%d"`, f.etag)
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") != tag {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

func (f *fakePulls) lost(w http.ResponseWriter, r *http.Request, path string) {
	f.bad("%s %s is nothing that this forge has", r.Method, path)
	f.say(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
}

// add and edit are what the forms do with comments.
func (f *fakePulls) add(number int, text string) fakeComment {
	f.lastID++
	c := fakeComment{id: f.lastID, own: true, text: text}
	f.comments[number] = append(f.comments[number], c)
	return c
}

func (f *fakePulls) edit(id int64, text string) (fakeComment, bool) {
	for _, list := range f.comments {
		for i := range list {
			if list[i].id == id {
				if !list[i].own {
					f.bad("comment %d is somebody else's", id)
				}
				list[i].text, list[i].version = text, list[i].version+1
				return list[i], true
			}
		}
	}
	return fakeComment{}, false
}

// set changes what the forge has.
func (f *fakePulls) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.etag++
	change()
}

// count is how many calls were made with a method; "" is all.
func (f *fakePulls) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if strings.HasPrefix(c, method) {
			n++
		}
	}
	return n
}

func (f *fakePulls) textsOf(number int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.comments[number] {
		out = append(out, c.text)
	}
	return out
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(parts[i])
	return n
}

func splitPath(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// size is what a list may be asked for at once: the usual page, or a short one.
func (f *fakePulls) size(r *http.Request, name string, usual int) string {
	got := r.URL.Query().Get(name)
	if got != "10" {
		return strconv.Itoa(usual)
	}
	return got
}

// pageOf is the page of a list that is asked for.
func pageOf(r *http.Request, list []anyMap, size string) []anyMap {
	n, _ := strconv.Atoi(r.URL.Query().Get(size))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	return list[min(len(list), n*(page-1)):min(len(list), n*page)]
}
