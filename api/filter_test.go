package api

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func twoApps() []ring.SourceStatus {
	service := func(name string, p ring.Phase) ring.ServiceStatus { return ring.ServiceStatus{Name: name, Phase: p} }
	return []ring.SourceStatus{
		{Name: "prod", Apps: []ring.AppStatus{{Name: "web", Services: []ring.ServiceStatus{service("api", ring.PhaseReady), service("db", ring.PhaseDegraded)}}}},
		{Name: "lab", Apps: []ring.AppStatus{{Name: "toy", Services: []ring.ServiceStatus{service("api", ring.PhaseDegraded)}}}},
	}
}

func TestStatusIsNarrowedByPhaseAndLabel(t *testing.T) {
	d := newDaemon()
	d.set(func(st *ring.Status) { st.Sources = twoApps() })
	c, _ := serveSocket(t, d)
	for _, tt := range []struct {
		q    StatusQuery
		want string
	}{
		{StatusQuery{}, "web/api web/db toy/api"},
		{StatusQuery{Phases: []string{"Degraded"}}, "web/db toy/api"},
		{StatusQuery{Phases: []string{"Degraded", "Ready"}}, "web/api web/db toy/api"},
		{StatusQuery{Phases: []string{"Held"}}, ""},
		{StatusQuery{Labels: []string{"tier=web"}}, "web/api"},
		{StatusQuery{Labels: []string{"tier"}}, "web/api web/db"},
		{StatusQuery{Labels: []string{"tier=web", "team=b"}}, ""},
		{StatusQuery{Labels: []string{"tier=web", "team=a"}}, "web/api"},
		{StatusQuery{Labels: []string{"tier="}}, ""},
		{StatusQuery{Labels: []string{"tier"}, Phases: []string{"Degraded"}}, "web/db"},
	} {
		st, err := c.StatusOf(t.Context(), tt.q)
		require.NoError(t, err)
		require.Equal(t, tt.want, strings.Join(ServicesOf(&st), " "), "%+v", tt.q)
		require.NotNil(t, st.Sources)
	}
	_, err := c.StatusOf(t.Context(), StatusQuery{Phases: []string{"degraded"}})
	require.ErrorIs(t, err, ErrUsage)
	require.ErrorContains(t, err, `"degraded" is no phase`)
	_, err = c.StatusOf(t.Context(), StatusQuery{Labels: []string{"=x"}})
	require.ErrorIs(t, err, ErrUsage)
	d.takeCalled()
	_, err = c.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"status"}, d.takeCalled(), "who wants everything asks for no labels")
}

func TestLogsAreSearchedForAText(t *testing.T) {
	d := newDaemon()
	d.logs = func(_ context.Context, _ LogQuery, out func(string) io.WriteCloser) error {
		w := out("web-1")
		for _, part := range []string{"a needle here\n", "nothing\nneed", "le\n", strings.Repeat("x", lineCap), "\nthe last needle"} {
			if _, err := io.WriteString(w, part); err != nil {
				return err
			}
		}
		return w.Close()
	}
	c, _ := serveSocket(t, d)
	var b strings.Builder
	require.NoError(t, c.Logs(t.Context(), LogQuery{App: "web", Tail: -1, Text: "needle"}, &b))
	require.Equal(t, "web-1 | a needle here\nweb-1 | needle\nweb-1 | the last needle\n", b.String())
	require.Contains(t, d.takeCalled()[0], "Tail:10000 ")
	for tail, want := range map[int]string{50: "Tail:50 ", 20_000: "Tail:10000 "} {
		require.NoError(t, c.Logs(t.Context(), LogQuery{App: "web", Tail: tail, Text: "needle"}, io.Discard))
		require.Contains(t, d.takeCalled()[0], want)
	}
	require.NoError(t, c.Logs(t.Context(), LogQuery{App: "web", Tail: -1}, io.Discard))
	require.Contains(t, d.takeCalled()[0], "Tail:-1 ")
}
