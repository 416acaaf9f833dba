package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		path string
		code int
		body string
	}{
		{name: "it tells its version", env: map[string]string{"VERSION": "7"}, path: "/", code: 200, body: "hello from version 7\n"},
		{name: "it greets as it is told", env: map[string]string{"VERSION": "7", "GREETING": "good day"}, path: "/", code: 200, body: "good day from version 7\n"},
		{name: "it is ready", env: map[string]string{"BROKEN": "0"}, path: "/healthz", code: 200, body: "ok\n"},
		{name: "a broken version is never ready", env: map[string]string{"BROKEN": "1"}, path: "/healthz", code: 503, body: "this version is broken on purpose\n"},
		{name: "nothing else is there", path: "/else", code: 404, body: "404 page not found\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			routes(func(k string) string { return tt.env[k] }, nil).ServeHTTP(w, httptest.NewRequest("GET", tt.path, nil))
			require.Equal(t, tt.code, w.Code)
			require.Equal(t, tt.body, w.Body.String())
		})
	}
}

func TestAFingerprintTellsThatTheSecretChangedAndNothingOfIt(t *testing.T) {
	told := func(secret string) string {
		w := httptest.NewRecorder()
		routes(func(string) string { return "" }, []byte(secret)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Body.String()
	}
	// printf 'gitring demo' | openssl dgst -sha256 -hmac first
	require.Equal(t, "hello from version , secret's fingerprint 7f45e1\n", told("first"))
	require.NotEqual(t, told("first"), told("second"))
	require.Equal(t, "hello from version \n", told(""))
}

func TestErrorsAreSpreadEvenly(t *testing.T) {
	h := routes(func(k string) string { return map[string]string{"VERSION": "7", "ERRORS": "40"}[k] }, nil)
	var failed []int
	for n := 1; n <= 10; n++ {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code == 500 {
			failed = append(failed, n)
			require.Equal(t, "version 7 fails on purpose\n", w.Body.String())
		}
	}
	require.Equal(t, []int{3, 5, 8, 10}, failed)
}

// A request in flight when the stop comes is answered; the server then ends
// without an error.
func TestServeFinishesWhatIsInFlight(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	require.NoError(t, l.Close())

	arrived, finish := make(chan struct{}), make(chan struct{})
	s := &http.Server{Addr: at, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/up" {
			return
		}
		close(arrived)
		<-finish
		fmt.Fprint(w, "finished")
	})}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, s) }()
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + at + "/up")
		if err != nil {
			return false
		}
		return r.Body.Close() == nil
	}, 5*time.Second, 10*time.Millisecond)

	body := make(chan string, 1)
	go func() {
		r, err := http.Get("http://" + at + "/")
		if err != nil {
			body <- err.Error()
			return
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		body <- string(b)
	}()
	<-arrived
	stop()
	require.Eventually(t, func() bool { // the door is closed before the request is done
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, 5*time.Second, 10*time.Millisecond)
	close(finish)
	require.Equal(t, "finished", <-body)
	require.NoError(t, <-served)
}
