package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const (
	traceCommit = ring.SHA("442e0271b8f1c0a1442e0271b8f1c0a1442e0271")
	nextCommit  = ring.SHA("9190630aa8f1c0a1442e0271b8f1c0a1442e0271")
)

// rolledOut are the lines of a commit of two apps: one rolls out after a job, one is refused.
func rolledOut() []ring.Event {
	at := func(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }
	lines := []ring.Event{
		{At: at(0), Kind: ring.CommitAccepted, Actor: "alice@example.org", Fetched: at(0.8), Verified: at(1)},
		{At: at(2), Kind: ring.AppRefused, App: "db", Reason: "KeyRefused: build is not taken"},
		{At: at(5), Kind: ring.AppInForce, App: "shop", Version: "v1"},
		{At: at(6), Kind: ring.JobStarted, App: "shop", Service: "migrate", Version: "v2"},
		{At: at(8), Kind: ring.JobSucceeded, App: "shop", Service: "migrate", Version: "v2"},
		{At: at(9), Kind: ring.RolloutBegan, App: "shop", Service: "web", Version: "v3"},
		{At: at(11), Kind: ring.RolloutFailed, App: "shop", Service: "web", Version: "v3", Reason: "slot 1 exited with code 3"},
		{At: at(20), Kind: ring.RolloutRestored, App: "shop", Service: "web", Version: "v3"},
		{At: at(21), Kind: ring.ForgeTold, App: "shop", Began: at(20), Reason: "failure as gitring/edge-1/shop"},
		{At: at(22), Kind: ring.ForgeUntold, Began: at(20), Reason: "failure as gitring/edge-1: the forge answered 422"},
	}
	for i := range lines {
		lines[i].Seq, lines[i].Source, lines[i].Commit = int64(i)+7, "prod", traceCommit
	}
	return lines
}

// collector keeps what is posted.
func collector(t *testing.T) (url string, got *[]string) {
	t.Helper()
	got = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = append(*got, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Type"), string(body))
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

// The file is what tools/otlp holds to the code of OpenTelemetry's own collector.
func TestTheTraceOfACommitIsTheOneThatACollectorWasShown(t *testing.T) {
	was := ring.Release
	ring.Release = "1.2.3"
	t.Cleanup(func() { ring.Release = was })
	url, got := collector(t)
	s := newOTLPSpeaker("edge-1", OTLP{URLFile: written(t, url+"\n")})
	require.NoError(t, s.check())
	n := traceNote(trace{Lines: rolledOut()})
	require.Equal(t, reply{taken: true}, s.say(t.Context(), n))
	require.Equal(t, reply{taken: true}, s.say(t.Context(), n))
	require.Equal(t, "POST /v1/traces application/json", (*got)[0])
	require.Equal(t, (*got)[1], (*got)[3], "what is posted again has the same ids")
	const file = "testdata/trace.json"
	if os.Getenv("RECORD_TRACE") != "" {
		var pretty any
		require.NoError(t, json.Unmarshal([]byte((*got)[1]), &pretty))
		body, err := json.MarshalIndent(pretty, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(body, '\n'), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, string(want), (*got)[1])
	other, err := json.Marshal(traceOf("edge-2", n))
	require.NoError(t, err)
	trace := `"traceId":"442e0271b8f1c0a1442e0271b8f1c0a1"`
	require.Contains(t, string(other), trace, "one trace for all hosts")
	require.Contains(t, (*got)[1], trace)
	root := spansOf(n.Lines, n.Cut)[0]
	require.NotEqual(t, idBytes("edge-1", root.name, root.line)[:8], idBytes("edge-2", root.name, root.line)[:8], "and a root of each")
}

func TestATestTraceIsTakenAsAnyOther(t *testing.T) {
	url, got := collector(t)
	s := newOTLPSpeaker("edge-1", OTLP{URLFile: written(t, url+"/otlp/v1/traces?token=CANARY")})
	require.Equal(t, reply{taken: true}, s.say(t.Context(), Note{Kind: kindTest, Line: 42, At: noon, Reason: "asked for by root"}))
	require.Contains(t, (*got)[0], "/otlp/v1/traces?token=CANARY", "a path of its own is kept")
	require.Contains(t, (*got)[1], `"name":"test"`)
}

// What a collector answers is understood, and no part of its URL is told.
func TestWhatACollectorAnswersIsUnderstood(t *testing.T) {
	code := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://169.254.169.254/latest")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "CANARY")
	}))
	defer server.Close()
	withUser := strings.Replace(server.URL, "http://", "http://user:CANARY@", 1)
	s := newOTLPSpeaker("h", OTLP{URLFile: written(t, withUser+"/CANARY")})
	for c, want := range map[int]reply{200: {taken: true}, 400: {gone: true}, 401: {away: true}, 404: {}, 302: {}, 503: {away: true}} {
		code = c
		a := s.say(context.Background(), Note{Kind: kindTest, At: noon})
		require.NotContains(t, a.says, canary)
		a.says = ""
		require.Equal(t, want, a, c)
	}
	server.Close()
	require.Equal(t, "cannot reach it: connection refused", s.say(context.Background(), Note{Kind: kindTest, At: noon}).says)
	for _, wrong := range []string{"CANARY", "ftp://CANARY", "http://", "https://h/#CANARY", "http://a b CANARY"} {
		err := newOTLPSpeaker("h", OTLP{URLFile: written(t, wrong)}).check()
		require.ErrorContains(t, err, "cannot use the URL in")
		require.NotContains(t, err.Error(), canary)
	}
	metadata := newOTLPSpeaker("h", OTLP{URLFile: written(t, "http://169.254.169.254/CANARY")}).say(context.Background(), Note{Kind: kindTest, At: noon})
	require.Contains(t, metadata.says, "its address is")
	require.NotContains(t, metadata.says, canary)
}

// hears folds lines one after the other, and says of which commits a trace is told.
type traces struct {
	t      *testing.T
	choice Choice
	memory memory
	now    time.Time
	seq    int64
	at     map[string]ring.SHA // what each source settled at
}

func newTraces(t *testing.T, choice Choice) *traces {
	choice.Traces = true
	h := &traces{t: t, choice: choice, now: noon, at: map[string]ring.SHA{}}
	h.memory.settled = func(source string, c ring.SHA) bool { return h.at[source] == c }
	return h
}

func (h *traces) hear(after time.Duration, lines ...ring.Event) (told []Note) {
	h.t.Helper()
	h.now = h.now.Add(after)
	for i := range lines {
		h.seq++
		lines[i].Seq, lines[i].At, lines[i].Source = h.seq, h.now, "prod"
	}
	before, err := json.Marshal(h.memory)
	require.NoError(h.t, err)
	was := h.memory
	h.memory, told, _ = h.choice.fold(h.memory, lines, h.now)
	same, err := json.Marshal(was)
	require.NoError(h.t, err)
	require.Equal(h.t, string(before), string(same), "the fold changes nothing of what it was given")
	return told
}

func TestACommitIsTracedOnceItSettled(t *testing.T) {
	of := func(kind, app, service string) ring.Event {
		return ring.Event{Kind: kind, App: app, Service: service, Commit: traceCommit}
	}
	h := newTraces(t, Choice{})
	require.Empty(t, h.hear(0, of(ring.CommitAccepted, "", "")))
	require.Empty(t, h.hear(time.Hour, of(ring.AppInForce, "shop", "")), "it waited for an approval")
	require.Empty(t, h.hear(time.Minute), "the status does not say that it settled")
	require.Empty(t, h.hear(time.Second, of(ring.RolloutBegan, "shop", "web"), of(ring.DriftSeen, "shop", "web")))
	h.at["prod"] = traceCommit
	require.Empty(t, h.hear(time.Second, of(ring.RolloutCompleted, "shop", "web")), "a line of it may follow at once")
	told := h.hear(stillFor)
	require.Len(t, told, 1)
	require.Equal(t, traceCommit, told[0].Commit)
	require.Equal(t, kindTrace, told[0].Kind)
	kinds := []string{}
	for _, e := range told[0].Lines {
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, []string{ring.CommitAccepted, ring.AppInForce, ring.RolloutBegan, ring.RolloutCompleted}, kinds)
	require.Empty(t, h.hear(time.Hour, of(ring.JobStarted, "shop", "nightly"), of(ring.JobSucceeded, "shop", "nightly")), "a job of the clock, long after")
	require.Empty(t, h.memory.Traces)
}

func TestACommitThatANewerOneTookThePlaceOfIsTraced(t *testing.T) {
	h := newTraces(t, Choice{})
	require.Empty(t, h.hear(0, ring.Event{Kind: ring.CommitAccepted, Commit: traceCommit}, ring.Event{Kind: ring.RolloutBegan, App: "shop", Service: "web", Commit: traceCommit}))
	require.Empty(t, h.hear(time.Second, ring.Event{Kind: ring.CommitAccepted, Commit: nextCommit}, ring.Event{Kind: ring.RolloutSuperseded, App: "shop", Service: "web", Commit: traceCommit}))
	told := h.hear(stillFor)
	require.Len(t, told, 1)
	require.Equal(t, traceCommit, told[0].Commit)
	require.Len(t, told[0].Lines, 3)
	h.at["prod"] = nextCommit
	require.Equal(t, nextCommit, h.hear(time.Second)[0].Commit)
}

// No rollout runs, and a job does: what it comes to is a part of the trace, also where it is tried again.
func TestACommitWhoseJobRunsHasNotSettled(t *testing.T) {
	job := func(kind string) ring.Event {
		return ring.Event{Kind: kind, App: "shop", Service: "migrate", Commit: traceCommit, Reason: "exit code 1"}
	}
	h := newTraces(t, Choice{})
	h.at["prod"] = traceCommit
	require.Empty(t, h.hear(0, ring.Event{Kind: ring.CommitAccepted, Commit: traceCommit}, job(ring.JobStarted)))
	require.Empty(t, h.hear(time.Hour), "it runs")
	require.Empty(t, h.hear(0, job(ring.JobStarted), job(ring.JobFailed)))
	told := h.hear(stillFor)
	require.Len(t, told, 1)
	require.Equal(t, "run shop/migrate: exit code 1", spansOf(told[0].Lines, told[0].Cut)[0].failed)

	h = newTraces(t, Choice{})
	require.Empty(t, h.hear(0, ring.Event{Kind: ring.CommitAccepted, Commit: traceCommit}, job(ring.JobStarted)))
	require.Empty(t, h.hear(keepMatter, ring.Event{Kind: ring.CommitAccepted, Commit: nextCommit}), "a newer one ends no job")
	require.Len(t, h.hear(time.Second), 1, "of one that never ends it is told what is known")
}

// A trace that has as many lines as it may still says what failed, and that it was cut.
func TestATraceThatIsCutSaysWhatFailed(t *testing.T) {
	h := newTraces(t, Choice{})
	h.at["prod"] = traceCommit
	of := func(kind, app, service, reason string) ring.Event {
		return ring.Event{Kind: kind, App: app, Service: service, Commit: traceCommit, Reason: reason}
	}
	lines := []ring.Event{of(ring.CommitAccepted, "", "", ""), of(ring.RolloutBegan, "shop", "web", ""), of(ring.RolloutCompleted, "shop", "web", "")}
	lines = append(lines, slices.Repeat([]ring.Event{of(ring.AppInForce, "shop", "", "")}, mostSteps)...)
	lines = append(lines, of(ring.RolloutBegan, "shop", "web", ""), of(ring.RolloutFailed, "shop", "web", "exit code 3"), of(ring.AppRefused, "db", "", "KeyRefused"))
	require.Empty(t, h.hear(0, lines...))
	told := h.hear(stillFor)
	require.Len(t, told, 1)
	require.Equal(t, mostSteps+2, len(told[0].Lines))
	spans := spansOf(told[0].Lines, told[0].Cut)
	require.Equal(t, "rollout shop/web: exit code 3", spans[0].failed)
	require.Contains(t, spans[0].fields, [2]string{"gitring.lines_left_out", "4"})
	require.Empty(t, spans[1+slices.IndexFunc(spans[1:], func(s span) bool { return s.name == "rollout shop/web" })].failed, "the one that completed")
	require.Equal(t, "KeyRefused", spans[len(spans)-1].failed)

	h = newTraces(t, Choice{})
	h.at["prod"] = traceCommit
	h.hear(0, append(lines[:1:1], slices.Repeat([]ring.Event{of(ring.JobFailed, "shop", "migrate", "exit code 1")}, 3*mostSteps)...)...)
	require.Equal(t, 2*mostSteps, len(h.hear(stillFor)[0].Lines), "failures have their bound, too")
}

func TestACommitThatWaitsForLongerThanAWeekIsTraced(t *testing.T) {
	h := newTraces(t, Choice{})
	require.Empty(t, h.hear(0, ring.Event{Kind: ring.CommitAccepted, Commit: traceCommit}))
	require.Empty(t, h.hear(keepMatter), "it waits")
	told := h.hear(time.Second)
	require.Len(t, told, 1)
	require.Equal(t, traceCommit, told[0].Commit)
	require.Empty(t, h.memory.Traces)
}

func TestATraceIsOfTheChosenAppsAndBounded(t *testing.T) {
	h := newTraces(t, Choice{Apps: []string{"shop"}})
	h.at["prod"] = traceCommit
	lines := []ring.Event{{Kind: ring.CommitAccepted, Commit: traceCommit}, {Kind: ring.AppInForce, App: "other", Commit: traceCommit}}
	lines = append(lines, slices.Repeat([]ring.Event{{Kind: ring.AppInForce, App: "shop", Commit: traceCommit}}, 2*mostSteps)...)
	require.Empty(t, h.hear(0, lines...))
	told := h.hear(stillFor)
	require.Len(t, told[0].Lines, mostSteps)
	for _, e := range told[0].Lines {
		require.NotEqual(t, "other", e.App)
	}
	for range 3 * mostTraces {
		h.hear(0, ring.Event{Kind: ring.CommitAccepted, Commit: nextCommit})
	}
	require.LessOrEqual(t, len(h.memory.Traces), mostTraces)
	require.Empty(t, newTraces(t, Choice{}).hear(0, ring.Event{Kind: ring.AppInForce, App: "shop", Commit: traceCommit}), "one that was trusted before this receiver was there")
}
