package pages

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestAHostOnTrialSaysSoAndWhatToDo(t *testing.T) {
	f := rich()
	require.NotContains(t, get(t, f.handler(everything), "/").Body.String(), "on trial")
	f.status.Trial = &ring.Trial{From: "0.1.0", Looks: 3}
	page := get(t, f.handler(everything), "/").Body.String()
	require.Regexp(t, `<p class="trouble wait" role="alert"><strong>on trial</strong> upgraded from 0\.1\.0;[^<]*gitring upgrade --resume</p>`, page)
}

func TestThePageOfNowSaysWhatIsWrongFirst(t *testing.T) {
	f := &fake{status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Branch: "main", Sync: ring.SyncSynced, Apps: []ring.AppStatus{
		{Name: "api", Health: ring.Healthy, Services: []ring.ServiceStatus{{Name: "api", Kind: ring.Worker, Phase: ring.PhaseReady, Ready: 1, Wanted: 1}}},
		{Name: "web", Health: ring.Degraded, Services: []ring.ServiceStatus{{Name: "web", Kind: ring.Worker, Phase: ring.PhaseDegraded, Reason: "slot 1 exited", Wanted: 2}}},
	}}}}}
	h := f.handler(api.Viewer{Actor: "token/ci", Scopes: api.Scopes{api.ScopeRead}})
	page := get(t, h, "/")
	require.Equal(t, http.StatusOK, page.Code, page.Body)
	text := page.Body.String()
	require.Regexp(t, `(?s)Degraded.*slot 1 exited.*Healthy`, text)

	// The same, packed.
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip, br")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	z, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	packed, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, text, string(packed))
	require.Equal(t, 1, f.asked["status"], "a status was asked for more than once within a moment")
}
