package notify

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

type anyMap = map[string]any

func githubPullForm(p fakePull) anyMap {
	repo := anyMap{"id": 1, "full_name": "acme/infra"}
	from := repo
	if p.fork {
		from = anyMap{"id": 2, "full_name": "mallory/infra"}
	}
	head := anyMap{"sha": p.head, "ref": p.branch, "repo": from, "label": "x"}
	if p.gone {
		head["repo"] = nil
	}
	return anyMap{"number": p.number, "title": "<b>@all", "body": p.text, "state": "open", "draft": false, "head": head, "base": anyMap{"sha": sha, "ref": p.into, "repo": repo}}
}

func githubCommentForm(c fakeComment) anyMap {
	who := strangerNumber
	if c.own {
		who = ownNumber
	}
	return anyMap{"id": c.id, "body": c.text, "user": anyMap{"id": who, "login": "x"}, "created_at": "2026-11-21T12:00:00Z"}
}

func fakeGitHubPulls(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte) {
	q := url.Values{"state": {"open"}, "base": {"main"}, "sort": {"updated"}, "direction": {"desc"}, "per_page": {f.size(r, "per_page", 50)}, "page": {r.URL.Query().Get("page")}}
	fakeLikeGitHub(f, w, r, path, body, func() bool {
		f.query(r, q)
		return f.unchanged(w, r)
	}, true)
}

func fakeGiteaPulls(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte) {
	fakeLikeGitHub(f, w, r, path, body, func() bool {
		f.query(r, url.Values{"state": {"open"}, "sort": {"recentupdate"}, "limit": {f.size(r, "limit", 50)}, "page": {r.URL.Query().Get("page")}})
		return false
	}, false)
}

func fakeLikeGitHub(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte, asked func() bool, isGitHub bool) {
	parts := splitPath(path)
	switch {
	case r.Method == http.MethodGet && path == "/user":
		f.say(w, http.StatusOK, anyMap{"id": ownNumber, "login": "gitring"})
	case r.Method == http.MethodGet && path == "/repos/acme/infra/pulls":
		if asked() {
			return
		}
		list := []anyMap{}
		for _, p := range f.pulls {
			if !isGitHub || p.into == "main" {
				list = append(list, githubPullForm(p))
			}
		}
		if page := r.URL.Query().Get("page"); !isGitHub { // pages of two
			n, _ := strconv.Atoi(page)
			list = list[min(len(list), 2*(n-1)):min(len(list), 2*n)]
		} else {
			list = pageOf(r, list, "per_page")
		}
		f.say(w, http.StatusOK, list)
	case r.Method == http.MethodGet && len(parts) == 6 && slices.Equal(parts[:4], []string{"repos", "acme", "infra", "issues"}) && parts[5] == "comments":
		list := []anyMap{}
		for _, c := range f.comments[number(parts, 4)] {
			list = append(list, githubCommentForm(c))
		}
		if isGitHub {
			f.query(r, url.Values{"per_page": {f.size(r, "per_page", 100)}, "page": {r.URL.Query().Get("page")}})
			list = pageOf(r, list, "per_page")
		} else {
			f.query(r, url.Values{})
		}
		f.say(w, http.StatusOK, list)
	case r.Method == http.MethodPost && len(parts) == 6 && parts[3] == "issues" && parts[5] == "comments":
		var in struct {
			Body string `json:"body"`
		}
		f.into(body, &in)
		f.say(w, http.StatusCreated, githubCommentForm(f.add(number(parts, 4), in.Body)))
	case r.Method == http.MethodPatch && len(parts) == 6 && parts[3] == "issues" && parts[4] == "comments":
		var in struct {
			Body string `json:"body"`
		}
		f.into(body, &in)
		c, ok := f.edit(int64(number(parts, 5)), in.Body)
		if !ok {
			f.say(w, http.StatusNotFound, anyMap{"message": "Not Found"})
			return
		}
		f.say(w, http.StatusOK, githubCommentForm(c))
	default:
		f.lost(w, r, path)
	}
}
