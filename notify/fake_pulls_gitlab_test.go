package notify

import (
	"net/http"
	"net/url"
)

func gitlabNoteForm(c fakeComment) anyMap {
	who := strangerNumber
	if c.own {
		who = ownNumber
	}
	return anyMap{"id": c.id, "body": c.text, "system": false, "author": anyMap{"id": who, "username": "x"}}
}

func fakeGitLabPulls(f *fakePulls, w http.ResponseWriter, r *http.Request, path string, body []byte) {
	parts := splitPath(path)
	var in struct {
		Body string `json:"body"`
	}
	switch {
	case r.Method == http.MethodGet && path == "/user":
		f.say(w, http.StatusOK, anyMap{"id": ownNumber, "username": "gitring"})
	case len(parts) < 3 || parts[0] != "projects" || parts[1] != "acme%2Finfra" || parts[2] != "merge_requests":
		f.lost(w, r, path)
	case r.Method == http.MethodGet && len(parts) == 3:
		f.query(r, url.Values{"state": {"opened"}, "target_branch": {"main"}, "order_by": {"updated_at"}, "sort": {"desc"}, "per_page": {f.size(r, "per_page", 50)}, "page": {r.URL.Query().Get("page")}})
		if f.unchanged(w, r) {
			return
		}
		list := []anyMap{}
		for _, p := range f.pulls {
			from := 1
			if p.fork {
				from = 2
			}
			m := anyMap{"id": 900 + p.number, "iid": p.number, "sha": p.head, "target_branch": p.into, "source_branch": p.branch, "source_project_id": from, "target_project_id": 1}
			if p.gone {
				m["source_project_id"] = nil
			}
			if p.into == "main" {
				list = append(list, m)
			}
		}
		f.say(w, http.StatusOK, pageOf(r, list, "per_page"))
	case r.Method == http.MethodGet && len(parts) == 5 && parts[4] == "notes":
		f.query(r, url.Values{"sort": {"asc"}, "order_by": {"created_at"}, "per_page": {f.size(r, "per_page", 100)}, "page": {r.URL.Query().Get("page")}})
		list := []anyMap{}
		for _, c := range f.comments[number(parts, 3)] {
			list = append(list, gitlabNoteForm(c))
		}
		f.say(w, http.StatusOK, pageOf(r, list, "per_page"))
	case r.Method == http.MethodPost && len(parts) == 5 && parts[4] == "notes":
		f.into(body, &in)
		f.say(w, http.StatusCreated, gitlabNoteForm(f.add(number(parts, 3), in.Body)))
	case r.Method == http.MethodPut && len(parts) == 6 && parts[4] == "notes":
		f.into(body, &in)
		c, ok := f.edit(int64(number(parts, 5)), in.Body)
		if !ok {
			f.say(w, http.StatusNotFound, anyMap{"message": "404 Not found"})
			return
		}
		f.say(w, http.StatusOK, gitlabNoteForm(c))
	default:
		f.lost(w, r, path)
	}
}
