package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// hub is a GitHub with pull requests, of which it holds what it is asked to the form
// of the real one.
type hub struct {
	mu       sync.Mutex // guards what follows
	pulls    []obj
	comments map[string][]obj // by the number of the pull request
	told     []post
	edits    int
	faults   []string
}

func (f *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := func(code int, out any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(out)
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/repos/acme/infra/")
	if r.Header.Get("Authorization") != "Bearer "+forgeToken {
		f.faults = append(f.faults, "the token of "+r.URL.Path)
	}
	parts := strings.Split(path, "/")
	var in struct{ Body string }
	switch {
	case r.Method == "GET" && r.URL.Path == "/api/user":
		answer(200, obj{"id": 7})
	case !ok:
		f.faults = append(f.faults, r.Method+" "+r.URL.Path)
		answer(404, obj{})
	case r.Method == "POST" && parts[0] == "statuses":
		p := post{SHA: parts[1]}
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil || len(p.Description) > 140 {
			f.faults = append(f.faults, fmt.Sprint("a status: ", err))
		}
		f.told = append(f.told, p)
		answer(201, obj{"id": 1})
	case r.Method == "GET" && path == "pulls":
		if q := r.URL.Query(); q.Get("state") != "open" || q.Get("base") != "main" {
			f.faults = append(f.faults, "the list is asked for by "+r.URL.RawQuery)
		}
		answer(200, f.pulls)
	case r.Method == "GET" && parts[0] == "issues" && parts[2] == "comments":
		answer(200, append([]obj{}, f.comments[parts[1]]...))
	case r.Method == "POST" && parts[0] == "issues" && parts[2] == "comments":
		_ = json.NewDecoder(r.Body).Decode(&in)
		c := obj{"id": 100 + len(f.comments[parts[1]]), "body": in.Body, "user": obj{"id": 7}}
		f.comments[parts[1]] = append(f.comments[parts[1]], c)
		answer(201, c)
	case r.Method == "PATCH" && parts[0] == "issues" && parts[1] == "comments":
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.edits++
		for _, list := range f.comments {
			for _, c := range list {
				if fmt.Sprint(c["id"]) == parts[2] {
					c["body"] = in.Body
				}
			}
		}
		answer(200, obj{})
	default:
		f.faults = append(f.faults, r.Method+" "+r.URL.Path)
		answer(404, obj{})
	}
}

// open is a pull request whose head the remote has under the forge's ref.
func (f *hub) open(h *host, number int, head string, fork bool) {
	h.repo.git("push", "-q", "--force", "origin", fmt.Sprintf("%s:refs/pull/%d/head", head, number))
	from := obj{"id": 1}
	if fork {
		from = obj{"id": 2}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls = slices.DeleteFunc(f.pulls, func(p obj) bool { return p["number"] == number })
	f.pulls = append(f.pulls, obj{"number": number, "head": obj{"sha": head, "ref": "work", "repo": from}, "base": obj{"ref": "main", "repo": obj{"id": 1}}})
}

func (f *hub) said(number string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.comments[number] {
		out = append(out, c["body"].(string))
	}
	return out
}

// last is what a commit's status in a context says.
func (f *hub) last(sha, context string) (says string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.told {
		if p.SHA == sha && p.Context == context {
			says = p.State + ": " + p.Description
		}
	}
	return says
}

// stateOf are the files below the state folder but for the database, whose journal and
// outbox grow, with their sizes.
func stateOf(h *host) (out []string) {
	_ = filepath.WalkDir(filepath.Join(h.dir, "state"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(d.Name(), ".db") {
			return nil
		}
		if at, err := d.Info(); err == nil {
			out = append(out, fmt.Sprint(strings.TrimPrefix(file, h.dir), " ", at.Size()))
		}
		return nil
	})
	return out
}

// TestAPullRequestIsToldItsPlanAndNothingIsDone is the opt-in end to end: the status and
// the comment of a signed head, in place after a push and after main went on; what is
// refused of a branch, and nothing at all of a fork that nobody signed; and never a call
// that changes the engine.
func TestAPullRequestIsToldItsPlanAndNothingIsDone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, other := h.app("web"), h.app("other")
	f := &hub{comments: map[string][]obj{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	at := freePort(t)
	const hookSecret = "a secret of thirty-two bytes or so, for hooks"
	h.config["listen"].(obj)["http"] = at
	h.source()["webhook"] = obj{"forge": "github", "secret_file": h.secret("hook", hookSecret+"\n")}
	h.source()["status"] = obj{"forge": "github", "token_file": h.secret("token", forgeToken+"\n"), "api_url": s.URL + "/api", "repo": "acme/infra", "pull_requests": true}
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v, obj{"environment": obj{"SECRET_WORD": "hunter-" + v}})})}
	}
	first := h.repo.pushed("Version 1", version("1"))

	branch := func(name, at string, fs files, args ...string) string {
		h.repo.git("checkout", "-q", "-B", name, at)
		h.repo.write(fs)
		sha := h.repo.commit(name, args...)
		h.repo.git("checkout", "-q", "main")
		return sha
	}
	head := branch("work", first, files{
		app + "/compose.yaml": h.compose(app, obj{"web": web("2", obj{"environment": obj{"SECRET_WORD": "hunter-2"}, "volumes": []string{"./conf:/conf:ro"}})}),
		app + "/conf/a":       "for nobody but who lands it\n",
	})
	unsigned := branch("unsigned", first, version("3"), "--no-gpg-sign")
	stranger := branch("stranger", first, version("4"), "--no-gpg-sign")
	f.open(h, 7, head, false)
	f.open(h, 8, unsigned, false)
	f.open(h, 9, stranger, true)

	h.start()
	h.synced(first)
	settled(h)
	kept := stateOf(h)
	require.NotEmpty(t, kept)
	mark, before := h.events.mark(), identities(h.containers())
	context := "gitring/" + h.name + "/plan"
	h.until("the plan is a status and a comment", func() bool {
		return len(f.said("7")) == 1 && f.last(head, context) != "" && f.last(unsigned, context) != ""
	})
	require.Regexp(t, `^success: .*roll \d, in place \d, remove 0$`, f.last(head, context))
	require.Equal(t, "failure: rejected: Unsigned "+unsigned[:7], f.last(unsigned, context))
	comment := f.said("7")[0]
	require.True(t, strings.HasPrefix(comment, "<!-- gitring plan "+h.name+" -->\n"), comment)
	require.Contains(t, comment, "`"+app+"/web`")
	require.Contains(t, comment, "env SECRET_WORD")
	require.NotContains(t, comment, "hunter", "a value is shown")

	// A push, told by the forge: the same comment says something else.
	pushed := branch("work", head, files{other + "/compose.yaml": h.compose(other, obj{"new": web("1")})})
	f.open(h, 7, pushed, false)
	require.Equal(t, http.StatusAccepted, hook(t, at, hookSecret, "pull_request"))
	h.until("the comment is changed in place", func() bool { return strings.Contains(f.said("7")[0], pushed[:7]) })
	require.Len(t, f.said("7"), 1)
	require.Contains(t, f.said("7")[0], "`"+other+"/new` | new |")
	require.Empty(t, f.said("8"))
	require.Empty(t, f.said("9"), "something was said of a fork that nobody signed")
	require.Empty(t, f.last(stranger, context))

	// Nobody ran anything.
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))
	require.Equal(t, first, h.status().Sources[0].Commit)
	h.until("nothing stays of a head but what was told", func() bool { return slices.Equal(kept, stateOf(h)) })

	// Main goes on, and the branch is behind: the plan is of the merge.
	third := h.app("third")
	h.deployed("Another app", files{third + "/compose.yaml": h.compose(third, obj{"it": web("1")})})
	h.until("the plan is of the merge", func() bool { return strings.Contains(f.said("7")[0], "the two merged") })
	require.Contains(t, f.said("7")[0], "remove 0", "an app that main got meanwhile is not removed")
	require.Len(t, f.said("7"), 1)
	require.Positive(t, f.edits)
	f.mu.Lock()
	require.Empty(t, f.faults)
	f.mu.Unlock()
	noSecret(t, h, forgeToken)
}
