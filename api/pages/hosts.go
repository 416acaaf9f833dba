package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

const (
	// hostsPath is the page of all hosts. The pages of one are under it.
	hostsPath = "/hosts"
	// hostSilent is the word of a host that has not reported for too long.
	hostSilent = "silent"
	// hostsKept is of how many hosts the pages are ready, and hostBytes how much of them is kept.
	hostsKept = 8
	hostBytes = 256 << 10
)

// FleetOptions are what pages of many hosts need of the one who serves them.
type FleetOptions struct {
	// Hosts are all rows, what is wrong first.
	Hosts func(ctx context.Context) ([]api.HostNow, error)
	// Answers are what is stored of a host, by its key; false where there is none.
	Answers func(key string) (Answers, bool)

	Viewer  func(r *http.Request) (api.Viewer, bool)
	SignIn  func(w http.ResponseWriter, r *http.Request, token string) error
	OIDC    *SignInWith
	SignOut func(w http.ResponseWriter)
	Now     func() time.Time
}

// Fleet serves the page of all hosts, and below it the pages of each, as far as they are stored.
type Fleet struct {
	FleetOptions
	own *Handler

	mu     sync.Mutex // guards what follows
	of     map[string]*Handler
	recent []string // keys of of, the one that was asked last at the end
}

// NewFleet starts nothing.
func NewFleet(o FleetOptions) *Fleet {
	f := &Fleet{FleetOptions: o, of: map[string]*Handler{}}
	f.own = New(Options{Viewer: o.Viewer, SignIn: o.SignIn, OIDC: o.OIDC, SignOut: o.SignOut, Now: o.Now, Under: hostsPath, Stored: true})
	return f
}

// ServeHTTP leaves to the handler of no host who may come in, and what is the same for all.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	v, known := f.Viewer(r)
	path := r.URL.Path
	own := path == signInPath || path == api.OIDCPath || path == api.OIDCBackPath || path == signOutPath || strings.HasPrefix(path, "/assets/")
	switch {
	case own || !known:
		f.own.ServeHTTP(w, r)
	case !v.Scopes.Has(api.ScopeRead):
		f.own.fail(w, r, v, true, nil, api.Denied("sign in with a token that has the scope "+string(api.ScopeRead), "you may not see this page"))
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		f.own.fail(w, r, v, true, nil, &api.Error{Message: "nothing is changed here", Hint: "on the host itself, or with gitring --host", Status: http.StatusMethodNotAllowed})
	case path == "/":
		http.Redirect(w, r, hostsPath, http.StatusSeeOther)
	case path == hostsPath:
		f.hosts(w, r, v)
	default:
		f.host(w, r, v)
	}
}

// host is a page of one host.
func (f *Fleet) host(w http.ResponseWriter, r *http.Request, v api.Viewer) {
	rest, under := strings.CutPrefix(r.URL.Path, hostsPath+"/")
	key, page, _ := strings.Cut(rest, "/")
	if under {
		if h, ok := f.handler(key); ok {
			on := r.Clone(r.Context())
			on.URL.Path, on.URL.RawPath = "/"+page, ""
			if _, raw, ok := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), hostsPath+"/"), "/"); ok {
				on.URL.RawPath = "/" + raw
			}
			h.ServeHTTP(w, on)
			return
		}
	}
	f.own.fail(w, r, v, true, nil, api.NotFound("begin at the page of all hosts", "there is no such page"))
}

// handler is that of one host. Those of the hosts that were looked at last stay.
func (f *Fleet) handler(key string) (*Handler, bool) {
	answers, ok := f.Answers(key)
	if !ok {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent = append(slices.DeleteFunc(f.recent, func(k string) bool { return k == key }), key)
	if h := f.of[key]; h != nil {
		return h, true
	}
	if len(f.recent) > hostsKept {
		delete(f.of, f.recent[0])
		f.recent = f.recent[1:]
	}
	h := New(Options{
		Answers: func(api.Viewer) Answers { // by now the key may be of a host's newer token
			if now, ok := f.Answers(key); ok {
				return now
			}
			return answers
		}, Viewer: f.looker, SignOut: f.SignOut, Now: f.Now,
		Under: hostsPath + "/" + url.PathEscape(key), Stored: true, Stream: "/v1/stream?host=" + url.QueryEscape(key), KeptBytes: hostBytes,
		Notice: func() string { return f.notice(key) },
	})
	f.of[key] = h
	return h, true
}

// looker is the viewer of a host's pages, who may read and nothing else: nothing here acts, and no
// log is stored.
func (f *Fleet) looker(r *http.Request) (api.Viewer, bool) {
	v, known := f.Viewer(r)
	v.Scopes = api.Scopes{api.ScopeRead}
	return v, known
}

// notice is what every page of a host says that is silent.
func (f *Fleet) notice(key string) string {
	all, err := f.Hosts(context.Background())
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(all, func(h api.HostNow) bool { return h.Key == key })
	if i < 0 || !all[i].Silent {
		return ""
	}
	return fmt.Sprintf("for %s: this is what it said last, at %s", lasted(f.Now().Sub(all[i].Seen)), clock{f.Now()}.of(all[i].Seen).UTC)
}

type hostsView struct {
	Counts []hostCount
	Hosts  []hostView
}

type hostCount struct {
	Mark Mark
	N    int
}

type hostView struct {
	Mark          Mark
	Key, Name     string
	Path          string
	Was           string // the word that a silent host said last
	Commit        ring.SHA
	Subject, Says string
	Since, Seen   *moment
	Lasts         string // how long it is silent
	Told          []string
}

// hosts is a line for each host, what is wrong first.
func (f *Fleet) hosts(w http.ResponseWriter, r *http.Request, v api.Viewer) {
	all, err := f.Hosts(r.Context())
	if err != nil {
		f.own.fail(w, r, v, true, nil, err)
		return
	}
	now := clock{f.Now()}
	view := hostsView{}
	marks := []Mark{}
	for i := range all {
		h := hostRow(&all[i], now)
		view.Hosts = append(view.Hosts, h)
		marks = append(marks, h.Mark)
		at := slices.IndexFunc(view.Counts, func(c hostCount) bool { return c.Mark == h.Mark })
		if at < 0 {
			view.Counts, at = append(view.Counts, hostCount{Mark: h.Mark}), len(view.Counts)
		}
		view.Counts[at].N++
	}
	slices.SortStableFunc(view.Counts, func(x, y hostCount) int { return cmp.Compare(y.N, x.N) })
	main, err := f.own.main("hosts", view)
	if err != nil {
		f.own.fail(w, r, v, true, nil, err)
		return
	}
	bad := 0
	for _, m := range marks {
		if m.Tone == toneBad {
			bad++
		}
	}
	title := wording.When(bad > 0, fmt.Sprintf("(%d) ", bad)) + "Hosts"
	tone := toneOff
	if len(marks) > 0 {
		tone = worst(marks...).Tone
	}
	f.own.send(w, r, &keptPage{page: &made{title: title, live: "status", tone: tone, nav: hostsPath, code: http.StatusOK, main: main}}, v, true)
}

// hostRow is how a host looks. One that is silent has neither the colour nor the shape of what it
// said last.
func hostRow(h *api.HostNow, now clock) hostView {
	v := hostView{
		Mark: markOf(h.Word), Key: h.Key, Name: h.Key, Path: hostsPath + "/" + url.PathEscape(h.Key), Commit: h.Commit, Subject: h.Subject, Says: h.Says,
		Since: now.of(h.Since), Told: h.Told,
	}
	if h.Silent {
		v.Mark, v.Was, v.Says = markOf(hostSilent), h.Word, ""
		v.Since, v.Seen, v.Lasts = nil, now.of(h.Seen), lasted(now.now.Sub(h.Seen))
	}
	return v
}

// HostRank orders hosts: the lowest is the most wrong. One that is silent comes before all.
func HostRank(h *api.HostNow) int {
	if h.Silent {
		return -1
	}
	return markOf(h.Word).Rank
}
