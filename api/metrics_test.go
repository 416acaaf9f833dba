package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// asSomebody makes a request that anyone may have sent by the socket.
func asSomebody(method, path string) *http.Request {
	r := httptest.NewRequest(method, path, http.NoBody)
	return r.WithContext(context.WithValue(r.Context(), peerKey{}, knownPeer{peer: Peer{UID: 1001, Name: "eve"}}))
}

func TestThePageOfMetricsIsServedAsPrometheusReadsIt(t *testing.T) {
	s := newSocket(t, newDaemon())
	out := httptest.NewRecorder()
	s.ServeHTTP(out, asSomebody("GET", "/metrics"))
	require.Equal(t, http.StatusOK, out.Code)
	require.Equal(t, "text/plain; version=0.0.4", out.Header().Get("Content-Type"))
	require.Equal(t, "gitring_engine_up 1\n", out.Body.String())
}

func TestAPageThatCannotBeMadeIsAnError(t *testing.T) {
	out := httptest.NewRecorder()
	Metrics(func(context.Context) (string, error) { return "", errors.New("cannot count the journal") }, "text/plain").
		ServeHTTP(out, httptest.NewRequest("GET", "/metrics", http.NoBody))
	require.Equal(t, http.StatusInternalServerError, out.Code)
	require.Contains(t, out.Body.String(), "cannot count the journal")
}

func TestEachRequestIsCountedByItsRoute(t *testing.T) {
	s := newSocket(t, newDaemon())
	got := map[string]int{}
	s.Count(func(route string, code int) {
		if code == http.StatusOK {
			route += " well"
		}
		got[route]++
	})
	for _, r := range []*http.Request{
		asSomebody("GET", "/v1/outbox"), asSomebody("GET", "/v1/outbox"), asSomebody("POST", "/v1/sync"),
		asSomebody("GET", "/v1/whatever/somebody/types"), asSomebody("DELETE", "/v1/outbox"),
	} {
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, map[string]int{"GET /v1/outbox well": 2, "POST /v1/sync": 1, "other": 2}, got)
}

func TestAStreamStillReachesItsReaderWhereRequestsAreCounted(t *testing.T) {
	s := newSocket(t, newDaemon())
	s.Count(func(string, int) {})
	out := httptest.NewRecorder()
	s.ServeHTTP(out, asSomebody("GET", "/v1/logs?app=web"))
	require.Equal(t, http.StatusOK, out.Code)
	// A flush goes through what counts.
	rc := http.NewResponseController(&counted{ResponseWriter: httptest.NewRecorder()})
	require.NoError(t, rc.Flush())
}

func TestWebhooksAreCountedByWhatIsMadeOfThem(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	w, err := NewWebhooks([]Hook{{Source: "prod", Forge: "gitlab", Secret: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}}, HookOptions{
		Poke: func(string) {}, Log: quiet, Limits: HookLimits{Body: 100},
		Count: func(source, result string) {
			mu.Lock()
			defer mu.Unlock()
			got[source+" "+result]++
		},
	})
	require.NoError(t, err)
	send := func(method, path, token string, length int64) {
		r := httptest.NewRequest(method, path, io.NopCloser(http.NoBody))
		r.Header.Set("X-Gitlab-Token", token)
		r.ContentLength = length
		w.ServeHTTP(httptest.NewRecorder(), r)
	}
	send("POST", "/v1/webhook/prod", "0123456789abcdef0123456789abcdef", 0)
	send("POST", "/v1/webhook/prod", "wrong", 0)
	send("GET", "/v1/webhook/prod", "wrong", 0)
	send("POST", "/v1/webhook/prod", "wrong", 1000)
	send("POST", "/v1/webhook/unknown", "wrong", 0)
	send("GET", "/healthz", "", 0)
	require.Equal(t, map[string]int{"prod taken": 1, "prod unauthorized": 1, "prod broken": 2}, got)
	for _, r := range HookResults {
		require.Contains(t, []string{"taken", "unauthorized", "too_many", "broken"}, r)
	}
}
