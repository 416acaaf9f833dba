package notify

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func bitbucketCommentForm(c fakeComment) anyMap {
	who := strangerUUID
	if c.own {
		who = ownUUID
	}
	return anyMap{"id": c.id, "content": anyMap{"raw": c.text, "markup": "markdown"}, "user": anyMap{"uuid": who}, "deleted": false}
}

func fakeBitbucketPulls(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte) {
	parts := splitPath(path)
	var in struct {
		Content struct {
			Raw string `json:"raw"`
		} `json:"content"`
	}
	switch {
	case r.Method == http.MethodGet && path == "/user":
		f.say(w, http.StatusOK, anyMap{"uuid": ownUUID, "display_name": "gitring"})
	case len(parts) < 4 || strings.Join(parts[:3], "/") != "repositories/acme/infra":
		f.lost(w, r, path)
	case r.Method == http.MethodGet && len(parts) == 5 && parts[3] == "commit":
		for _, p := range f.pulls {
			if strings.HasPrefix(string(p.head), parts[4]) {
				f.say(w, http.StatusOK, anyMap{"hash": p.head, "type": "commit"})
				return
			}
		}
		f.say(w, http.StatusNotFound, anyMap{"type": "error"})
	case parts[3] != "pullrequests":
		f.lost(w, r, path)
	case r.Method == http.MethodGet && len(parts) == 4:
		f.query(r, url.Values{"q": {`state="OPEN" AND destination.branch.name="main"`}, "sort": {"-updated_on"}, "pagelen": {f.size(r, "pagelen", 50)}, "page": {r.URL.Query().Get("page")}})
		list := []anyMap{}
		repo := anyMap{"uuid": "{1}", "full_name": "acme/infra"}
		for _, p := range f.pulls {
			from := repo
			if p.fork {
				from = anyMap{"uuid": "{2}", "full_name": "mallory/infra"}
			}
			source := anyMap{"commit": anyMap{"hash": p.head[:12]}, "branch": anyMap{"name": p.branch}, "repository": from}
			if p.gone {
				source["repository"] = nil
			}
			if p.into == "main" {
				list = append(list, anyMap{"id": p.number, "state": "OPEN", "source": source, "destination": anyMap{"branch": anyMap{"name": p.into}, "repository": repo, "commit": anyMap{"hash": sha[:12]}}})
			}
		}
		f.say(w, http.StatusOK, f.bitbucketPage(r, list))
	case r.Method == http.MethodGet && len(parts) == 6 && parts[5] == "comments":
		f.query(r, url.Values{"pagelen": {f.size(r, "pagelen", 100)}, "page": {r.URL.Query().Get("page")}})
		list := []anyMap{}
		for _, c := range f.comments[number(parts, 4)] {
			list = append(list, bitbucketCommentForm(c))
		}
		f.say(w, http.StatusOK, f.bitbucketPage(r, list))
	case r.Method == http.MethodPost && len(parts) == 6 && parts[5] == "comments":
		f.into(body, &in)
		f.say(w, http.StatusCreated, bitbucketCommentForm(f.add(number(parts, 4), in.Content.Raw)))
	case r.Method == http.MethodPut && len(parts) == 7 && parts[5] == "comments":
		f.into(body, &in)
		c, ok := f.edit(int64(number(parts, 6)), in.Content.Raw)
		if !ok {
			f.say(w, http.StatusNotFound, anyMap{"type": "error"})
			return
		}
		f.say(w, http.StatusOK, bitbucketCommentForm(c))
	default:
		f.lost(w, r, path)
	}
}

func bitbucketDCCommentForm(c fakeComment) anyMap {
	who := strangerName
	if c.own {
		who = ownName
	}
	return anyMap{"id": c.id, "version": c.version, "text": c.text, "author": anyMap{"name": who, "slug": "x"}}
}

func fakeBitbucketDCPulls(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte) {
	w.Header().Set("X-Ausername", url.PathEscape(ownName))
	if r.Header.Get("X-Atlassian-Token") != "no-check" {
		f.bad("no X-Atlassian-Token")
	}
	parts := splitPath(path)
	var in struct {
		Text    string `json:"text"`
		Version *int   `json:"version"`
	}
	switch {
	case len(parts) < 5 || strings.Join(parts[:5], "/") != "projects/acme/repos/infra/pull-requests":
		f.lost(w, r, path)
	case r.Method == http.MethodGet && len(parts) == 5:
		if r.URL.RawQuery != "limit=1" {
			f.query(r, url.Values{"state": {"OPEN"}, "at": {"refs/heads/main"}, "direction": {"INCOMING"}, "order": {"NEWEST"}, "limit": {f.size(r, "limit", 50)}, "start": {r.URL.Query().Get("start")}})
		}
		list := []anyMap{}
		for _, p := range f.pulls {
			from := 1
			if p.fork {
				from = 2
			}
			if p.into == "main" {
				list = append(list, anyMap{
					"id": p.number, "version": 3,
					"fromRef": anyMap{"id": "refs/heads/" + p.branch, "latestCommit": p.head, "repository": anyMap{"id": from}},
					"toRef":   anyMap{"id": "refs/heads/" + p.into, "repository": anyMap{"id": 1}},
				})
			}
		}
		f.say(w, http.StatusOK, bitbucketDCPage(r, list))
	case r.Method == http.MethodGet && len(parts) == 7 && parts[6] == "activities":
		f.query(r, url.Values{"limit": {f.size(r, "limit", 100)}, "start": {r.URL.Query().Get("start")}})
		list := []anyMap{{"id": 1, "action": "OPENED"}}
		for _, c := range f.comments[number(parts, 5)] {
			list = append(list, anyMap{"id": 2, "action": "COMMENTED", "commentAction": "ADDED", "comment": bitbucketDCCommentForm(c)})
		}
		slices.Reverse(list) // the newest first
		f.say(w, http.StatusOK, bitbucketDCPage(r, list))
	case r.Method == http.MethodPost && len(parts) == 7 && parts[6] == "comments":
		f.into(body, &in)
		if in.Version != nil {
			f.bad("a new comment with a version")
		}
		f.say(w, http.StatusCreated, bitbucketDCCommentForm(f.add(number(parts, 5), in.Text)))
	case r.Method == http.MethodPut && len(parts) == 8 && parts[6] == "comments":
		f.into(body, &in)
		id := int64(number(parts, 7))
		for _, c := range f.comments[number(parts, 5)] {
			if c.id == id && (in.Version == nil || *in.Version != c.version) {
				f.say(w, http.StatusConflict, anyMap{"errors": []anyMap{{"message": "out of date"}}})
				return
			}
		}
		c, ok := f.edit(id, in.Text)
		if !ok {
			f.say(w, http.StatusNotFound, anyMap{"errors": []anyMap{{"message": "no such comment"}}})
			return
		}
		f.say(w, http.StatusOK, bitbucketDCCommentForm(c))
	default:
		f.lost(w, r, path)
	}
}

func (f *fakePulls) bitbucketPage(r *http.Request, list []anyMap) anyMap {
	out := anyMap{"values": pageOf(r, list, "pagelen")}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("pagelen"))
	if len(list) > size*page {
		out["next"] = f.URL + "/next"
	}
	return out
}

func bitbucketDCPage(r *http.Request, list []anyMap) anyMap {
	start, _ := strconv.Atoi(r.URL.Query().Get("start"))
	size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	return anyMap{"values": list[min(len(list), start):min(len(list), start+size)], "isLastPage": len(list) <= start+size}
}
