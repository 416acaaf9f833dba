package pages

import (
	"net/http"

	"github.com/gitring/gitring/api"
)

const (
	signInPath  = "/signin"
	signOutPath = "/signout"
)

// formLimit is of what a form may send.
const formLimit = 8 << 10

type signInView struct {
	Then  string
	Error *failView
}

// signIn shows the form, or begins a session and goes on to where somebody wanted to go.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool) {
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	view := signInView{Then: localPath(r.FormValue("then"))}
	code := http.StatusOK
	if r.Method == http.MethodPost {
		err := h.SignIn(w, r, r.PostFormValue("token"))
		if err == nil {
			http.Redirect(w, r, localPath(r.PostFormValue("then")), http.StatusSeeOther)
			return
		}
		f := failOf(err)
		if f.Code == http.StatusUnauthorized {
			f.Message, f.Hint = "this token grants nothing", "gitring token list on the host shows those there are, and until when they count"
		}
		view.Error, code = &f, f.Code
	}
	h.plain(w, r, v, known, "signin", "Sign in", code, view)
}

// signOut shows the form, or ends the session.
func (h *Handler) signOut(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool) {
	if r.Method == http.MethodPost {
		h.SignOut(w)
		http.Redirect(w, r, signInPath, http.StatusSeeOther)
		return
	}
	h.plain(w, r, v, known, "signout", "Sign out", http.StatusOK, nil)
}

// plain is a page that needs no answer of the API.
func (h *Handler) plain(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool, name, title string, code int, view any) {
	main, err := h.main(name, view)
	if err != nil {
		h.fail(w, r, v, known, nil, err)
		return
	}
	h.send(w, r, &keptPage{page: &made{title: title, tone: toneOff, code: code, main: main}}, v, known)
}
