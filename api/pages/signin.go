package pages

import (
	"net/http"
	"net/url"

	"github.com/gitring/gitring/api"
)

const (
	signInPath  = api.SignInPath
	signOutPath = "/signout"
)

// formLimit is of what a form may send.
const formLimit = 8 << 10

type signInView struct {
	Then  string
	Error *failView
	// Issuer is the host that people sign in with, and With the address that begins it; "" is none.
	Issuer, With string
}

// signInView is the page of who wants to go somewhere.
func (h *Handler) signInView(then string) signInView {
	view := signInView{Then: then}
	if h.OIDC != nil {
		view.Issuer, view.With = h.OIDC.Issuer, api.OIDCPath+"?then="+url.QueryEscape(then)
	}
	return view
}

// signInWith sends the browser to the issuer. That answers with an address of its own, so no form can
// do it: the policy of content lets forms go nowhere else.
func (h *Handler) signInWith(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool) {
	then := localPath(r.FormValue("then"))
	address, err := h.OIDC.Begin(w, r, then)
	if err != nil {
		h.notSignedIn(w, r, v, known, then, err)
		return
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// signedInWith takes whom the issuer sent back to where they wanted to go.
func (h *Handler) signedInWith(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool) {
	then, err := h.OIDC.Finish(w, r)
	if err != nil {
		h.notSignedIn(w, r, v, known, "/", err)
		return
	}
	http.Redirect(w, r, localPath(then), http.StatusSeeOther)
}

// notSignedIn is the page of signing in again, with what was in the way.
func (h *Handler) notSignedIn(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool, then string, err error) {
	view, f := h.signInView(then), failOf(err)
	view.Error = &f
	h.plain(w, r, v, known, "signin", "Sign in", f.Code, view)
}

// signIn shows the form, or begins a session and goes on to where somebody wanted to go.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool) {
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	view := h.signInView(localPath(r.FormValue("then")))
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
