package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// forge is a GitHub or a Gitea that remembers what it was told, tells it again, and
// complains about whatever the real one would.
type forge struct {
	kind string

	mu     sync.Mutex // guards what follows
	told   []post
	faults []string
}

type post struct{ SHA, State, Context, Description string }

const forgeToken = "ghs_neverinanylog0123456789"

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := func(says string) {
		f.faults = append(f.faults, r.Method+" "+r.URL.String()+": "+says)
		http.Error(w, says, http.StatusUnprocessableEntity)
	}
	sha, ok := strings.CutPrefix(r.URL.Path, "/api/repos/acme/infra/statuses/")
	of, asks := strings.CutPrefix(r.URL.Path, "/api/repos/acme/infra/commits/")
	of, whole := strings.CutSuffix(of, "/status")
	want := map[string]string{"github": "Bearer " + forgeToken, "gitea": "token " + forgeToken}[f.kind]
	switch {
	case r.Method == "GET" && r.URL.Path == "/api/user": // whose the token is: doctor asks
		_, _ = w.Write([]byte(`{"login":"gitring"}`))
		return
	case (!ok || r.Method != "POST") && (!asks || !whole || r.Method != "GET"):
		fault("no such call")
		return
	case r.Header.Get("Authorization") != want:
		fault("the token is not as this forge wants it")
		return
	case f.kind == "github" && r.Header.Get("X-GitHub-Api-Version") == "":
		fault("no version of the API")
		return
	case asks:
		_ = json.NewEncoder(w).Encode(obj{"sha": of, "statuses": f.newest(of)})
		return
	}
	p := post{SHA: sha}
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		fault(err.Error())
		return
	}
	if !slices.Contains([]string{"pending", "success", "failure", "error"}, p.State) || len(p.Description) > 140 {
		fault("not a status")
		return
	}
	f.told = append(f.told, p)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"id":1}`))
}

// newest is what each context of a commit was told last. The caller holds mu.
func (f *forge) newest(sha string) []obj {
	list, seen := []obj{}, map[string]bool{}
	for _, p := range slices.Backward(f.told) {
		if p.SHA == sha && !seen[p.Context] {
			seen[p.Context] = true
			list = append(list, obj{"context": p.Context, "state": p.State, "description": p.Description})
		}
	}
	return list
}

// of are the states that a commit's context was given, in order, and the last
// description.
func (f *forge) of(sha, context string) (states []string, last string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.told {
		if p.SHA == sha && p.Context == context {
			if len(states) == 0 || states[len(states)-1] != p.State {
				states = append(states, p.State)
			}
			last = p.Description
		}
	}
	return states, last
}

func (f *forge) check(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Empty(t, f.faults)
}

// tells sets the configuration up to tell a forge at an address.
func (h *host) tells(kind, at string) {
	h.source()["status"] = obj{"forge": kind, "token_file": h.secret("token", forgeToken+"\n"), "api_url": at + "/api", "repo": "acme/infra"}
}

func TestForgesHearHowEachCommitFared(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"github", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := &forge{kind: kind}
			s := httptest.NewServer(f)
			t.Cleanup(s.Close)
			fared(t, f, s.URL)
		})
	}
}

func fared(t *testing.T, f *forge, at string) {
	h := newHost(t)
	app := h.app("web")
	h.tells(f.kind, at)
	whole, one := "gitring/"+h.name, "gitring/"+h.name+"/"+app
	file := app + "/compose.yaml"
	closed := func(sha, state string, contexts ...string) (says string) {
		t.Helper()
		for _, c := range contexts {
			h.until("the forge hears "+state+" in "+c, func() bool {
				states, last := f.of(sha, c)
				says = last
				return len(states) > 0 && states[len(states)-1] == state
			})
		}
		return says
	}

	good := h.repo.pushed("Version 1", files{file: h.compose(app, obj{"web": web("1", replicas(2))})})
	h.start()
	h.synced(good)
	closed(good, "success", whole, one)
	states, says := f.of(good, one)
	require.Subset(t, []string{"pending", "success"}, states) // a slow sender leaves out what is true no more
	require.Regexp(t, `^healthy 2/2( in [0-9ms]+)?$`, says)

	bad := h.repo.pushed("Never ready", files{file: h.compose(app, obj{"web": web("2", replicas(2), broken())})})
	require.Contains(t, closed(bad, "failure", whole, one), "not ready within 3s")
	states, _ = f.of(bad, one)
	require.Equal(t, []string{"pending", "failure"}, states)

	refused := h.repo.pushed("Asks for the host", files{file: h.compose(app, obj{"web": web("3", obj{"privileged": true})})})
	require.Contains(t, closed(refused, "failure", whole, one), "rejected: PolicyDenied "+file+":")

	h.repo.write(files{file: h.compose(app, obj{"web": web("4", replicas(2))})})
	unsigned := h.repo.commit("Nobody signed this", "--no-gpg-sign")
	h.repo.push()
	require.Contains(t, closed(unsigned, "failure", whole), "rejected: Unsigned "+unsigned[:7]+": ")
	states, _ = f.of(unsigned, one)
	require.Empty(t, states, "what is not trusted is not read")

	h.repo.git("reset", "-q", "--hard", refused)
	fixed := h.repo.pushed("Version 5", files{file: h.compose(app, obj{"web": web("5", replicas(2))})})
	h.synced(fixed)
	closed(fixed, "success", whole, one)
	f.check(t)
	noSecret(t, h, forgeToken)
}

func TestAForgeThatIsAwayDelaysNobody(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	at := freePort(t)
	h.tells("github", "http://"+at)
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1")})})
	h.start()
	h.synced(first)
	h.await("status says that the forge is away", func(st status) bool { return st.Sources[0].Forge != "" })
	second := h.deployed("Version 2", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2")})})
	code, out := h.run("status")
	require.Equal(t, 0, code, out)

	// What it missed, it hears when it is back.
	f := &forge{kind: "github"}
	l, err := net.Listen("tcp", at)
	require.NoError(t, err)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	s.Start()
	t.Cleanup(s.Close)
	for _, sha := range []string{first, second} {
		h.until("the forge hears of "+sha, func() bool {
			states, _ := f.of(sha, "gitring/"+h.name)
			return slices.Contains(states, "success")
		})
	}
	h.await("status says that it is back", func(st status) bool { return st.Sources[0].Forge == "" })
	f.check(t)
}
