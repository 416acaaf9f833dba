package api

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a page may ask for somebody is what that somebody may ask for: each route with each
// scope, as on listen.api.
func TestWithinTheProcessTheSameTableHolds(t *testing.T) {
	includes := map[Scope][]Scope{
		"metrics": {"metrics"}, "read": {"read"}, "logs": {"logs", "read"}, "operate": {"operate", "read"}, "approve": {"approve", "read"}, "admin": {"admin", "read"},
	}
	require.Len(t, includes, len(ScopeNames))
	d := newDaemon()
	s := newSocket(t, d)
	asked := 0
	for path, row := range everyRoute {
		for scope, has := range includes {
			ctx, cancel := context.WithCancel(t.Context())
			if path == "/v1/stream" { // it ends with who asked
				cancel()
			}
			r, err := http.NewRequestWithContext(ctx, row.method, "http://gitring"+row.target, strings.NewReader(row.body))
			require.NoError(t, err)
			d.takeCalled()
			res, err := s.Inside(Viewer{Actor: "token/x", Scopes: Scopes{scope}}).http.Transport.RoundTrip(r)
			cancel()
			called := len(d.takeCalled()) > 0
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, slices.Contains(has, row.scope), called, "%s by %s", path, scope)
				continue
			}
			want := http.StatusForbidden
			switch {
			case row.scope == "":
				want = http.StatusNotFound
			case slices.Contains(has, row.scope):
				want = http.StatusOK
			}
			require.Equal(t, want, res.StatusCode, "%s by %s", path, scope)
			require.Equal(t, want == http.StatusOK && path != "/v1/openapi.json", called, "%s by %s", path, scope)
			asked++
		}
	}
	require.Greater(t, asked, 100)

	_, err := s.Inside(Viewer{Scopes: Scopes{ScopeMetrics}}).Status(t.Context())
	require.ErrorIs(t, err, ErrDenied)
	st, err := s.Inside(Viewer{Scopes: Scopes{ScopeRead}}).Status(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, st.Host)
	var b bytes.Buffer
	require.ErrorIs(t, s.Inside(Viewer{Scopes: Scopes{ScopeRead}}).Logs(t.Context(), LogQuery{App: "web"}, &b), ErrDenied)
	require.Empty(t, b.String())
}
