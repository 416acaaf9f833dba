package health

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestRedirectsAreFollowedOnTheInstanceAloneWhenAsked_LessonU11(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(elsewhere.Close)
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/login", http.StatusFound)
		case "/named":
			http.Redirect(w, r, "http://shop.example.org/login", http.StatusMovedPermanently)
		case "/login":
			if r.Header.Get("X-Check") != "yes" {
				w.WriteHeader(http.StatusForbidden)
			}
			_, _ = w.Write([]byte("host " + r.Host))
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/tls":
			http.Redirect(w, r, "https://shop.example.org/login", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		}
	})
	for _, tc := range []struct{ path, says string }{
		{"/", ""},
		{"/named", ""},
		{"/away", "redirects to another place than the instance"},
		{"/tls", "redirects to another place than the instance"},
		{"/round", "redirects too often"},
	} {
		c := ring.HTTPCheck{
			Port: port, Path: tc.path, Host: "shop.example.org", Headers: map[string]string{"X-Check": "yes"},
			Match: "host shop.example.org", Redirects: true,
		}
		a := ask(ring.Check{HTTP: &c})
		require.Equal(t, tc.says == "", a.ok, "%s: %s", tc.path, a.says)
		require.Contains(t, a.says, tc.says)
		c.Redirects = false
		if a = ask(ring.Check{HTTP: &c}); tc.path != "/login" {
			require.Contains(t, a.says, "answered 30")
		}
	}
	require.False(t, reached, "somebody else was asked")
}

func TestACertificateIsChosenByTheHostHeader(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("sni=" + r.TLS.ServerName + ";"))
	}))
	s.StartTLS()
	t.Cleanup(s.Close)
	for host, want := range map[string]string{"": "sni=;", "shop.example.org": "sni=shop.example.org;", "shop.example.org:8443": "sni=shop.example.org;"} {
		a := ask(ring.Check{HTTP: &ring.HTTPCheck{Port: portOf(t, s.URL), Scheme: "https", Host: host, Match: want}})
		require.Equal(t, passed(), a, host)
	}
}
