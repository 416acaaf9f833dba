package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// hiddenWord is in all that a limited token may not see. The app that it may see is web.
const hiddenWord = "vault"

// fillWith puts the word into every text of a value, whatever fields it has, and one item into
// every list and map.
func fillWith(v reflect.Value, word string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(word)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillWith(v.Elem(), word)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillWith(v.Index(0), word)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillWith(key, word)
		fillWith(value, word)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fillWith(f, word)
			}
		}
	}
}

// hiding is a status in which all is hidden but the app web, its source and its commit.
func hiding() ring.Status {
	var st ring.Status
	fillWith(reflect.ValueOf(&st).Elem(), hiddenWord)
	st.Host, st.Gitring, st.Engine, st.Store, st.At = "edge-1", "0.1.0", "", "", time.Time{}
	src := &st.Sources[0]
	src.Name, src.Branch, src.Tip, src.Commit, src.Trusted = "prod", "main", "ab12cd3", "ab12cd3", "ab12cd3"
	src.Subject, src.Signer, src.Trust = "Say hello", "ann@example.org", ""
	src.Sync, src.Next.Commit, src.Refusal.Code, src.Refusal.Commit = ring.SyncDegraded, "cd34ef5", ring.Unsigned, "cd34ef5"
	src.Apps = append(src.Apps, ring.AppStatus{
		Name: "web", Health: ring.Healthy, Services: []ring.ServiceStatus{
			{
				Name: "api", Phase: ring.PhaseReady, Reason: "serves", Instances: []ring.InstanceStatus{}, On: "web/api",
				Rollout: &ring.RolloutStatus{Reason: "port 8080/tcp is published by vault/pg"}, Conditions: []ring.Condition{{Type: "Quarantined", Reason: "belongs to app vault of source lab"}},
			},
			{Name: "db", Phase: ring.PhasePending, Reason: "waits for vault/api", On: "vault/api", Instances: []ring.InstanceStatus{}},
		},
	})
	return st
}

// newLimited is a door to a host of the apps web and vault, and a token for web.
func newLimited(t *testing.T) (*webDoor, string) {
	w := newWebDoor(t)
	st := hiding()
	w.socket.calls.Status = func(context.Context) (ring.Status, error) { return st, w.d.note("status") }
	for i, e := range []ring.Event{
		{Kind: ring.CommitAccepted, Reason: hiddenWord},
		{Kind: ring.AppInForce, App: "web", Reason: "seen-1"},
		{Kind: ring.AppInForce, App: hiddenWord, Reason: hiddenWord},
		{Kind: ring.RolloutFailed, App: "web", Service: "db", On: "vault/api", Reason: "waits for vault/api"},
		{Kind: ring.AppInForce, App: "webs", Reason: hiddenWord},
		{Kind: ring.AppInForce, App: "web", On: "web/db", Reason: "app vault is in the way"},
		{Kind: ring.AppInForce, App: "web", Reason: "seen-2"},
		{Kind: ring.AppRefused, App: hiddenWord, Reason: hiddenWord},
	} {
		e.Seq = int64(i + 1)
		w.d.append(e)
	}
	w.socket.calls.History = func(_ context.Context, q HistoryQuery) (out []ring.Event, err error) {
		events, err := w.socket.calls.Events(context.Background(), EventQuery{App: q.App, Limit: page})
		for i := range events {
			out = append(out, events[len(events)-1-i])
		}
		return out, err
	}
	w.socket.calls.Crashes = func(context.Context, CrashQuery) ([]CrashGroup, error) {
		return []CrashGroup{{App: hiddenWord, Words: hiddenWord}, {App: "web", Words: "seen"}}, w.d.note("crashes")
	}
	w.socket.calls.Jobs = func(context.Context, JobQuery) ([]JobNow, error) {
		return []JobNow{{App: hiddenWord}, {App: "web", Reason: "seen"}, {App: "web", Reason: "app vault is not ready"}}, w.d.note("jobs")
	}
	w.socket.calls.Inspect = func(context.Context, InspectQuery) (ring.Explained, error) {
		var e ring.Explained
		fillWith(reflect.ValueOf(&e).Elem(), "waits for vault/pg")
		e.App, e.Service = "web", "db"
		return e, w.d.note("inspect")
	}
	w.socket.calls.Outdated = func(context.Context, OutdatedQuery) ([]ImageNow, error) {
		return []ImageNow{{App: "web", Service: "seen"}, {App: hiddenWord}}, w.d.note("outdated")
	}
	text, line := NewToken("team", Scopes{ScopeRead, ScopeLogs}, "2026-12-24")
	line.Apps = Apps{"web", "db-*"}
	w.write(line.Line())
	return w, text
}

// Every route there is: what is of no app, or of another one, is not there for a token that is
// limited, and nothing is asked for its sake.
func TestALimitedTokenHasTheRoutesThatLeaveOtherAppsOut(t *testing.T) {
	leaves := map[string]bool{}
	for _, path := range []string{"status", "events", "stream", "history", "logs", "crashes", "jobs", "inspect", "outdated"} {
		leaves["/v1/"+path] = true
	}
	w, token := newLimited(t)
	for path, row := range everyRoute {
		w.after(time.Minute)
		w.d.takeCalled()
		out := w.ask(row.method, row.target, token, row.body)
		if leaves[path] {
			require.Equal(t, http.StatusOK, out.Code, "%s: %s", path, out.Body)
			continue
		}
		require.Equal(t, http.StatusNotFound, out.Code, "%s: %s", path, out.Body)
		require.Empty(t, w.d.takeCalled(), path)
		if row.scope == "" { // not there for anybody
			continue
		}
		none := w.ask(row.method, "/v1/nothing", token, row.body)
		require.Equal(t, strings.ReplaceAll(none.Body.String(), "/v1/nothing", path), out.Body.String(), "as if it were not there")
	}
}

func TestALimitedTokenSeesNothingOfOtherApps(t *testing.T) {
	w, token := newLimited(t)
	all := w.token("all", "logs")
	w.socket.calls.Logs = func(_ context.Context, q LogQuery, out func(string) io.WriteCloser) error {
		_, err := io.WriteString(out(q.App), "seen "+q.App+"\n")
		return err
	}
	for target, seen := range map[string]string{
		"/v1/status":                           "Say hello",
		"/v1/status?phase=Ready":               "serves",
		"/v1/status?phase=Pending":             elsewhere,
		"/v1/events":                           "seen-1",
		"/v1/events?limit=2":                   elsewhere,
		"/v1/events?last=1":                    "seen-2",
		"/v1/events?last=2":                    elsewhere,
		"/v1/events?last=400":                  "seen-1",
		"/v1/events?app=web":                   "seen-1",
		"/v1/events?app=vault":                 "",
		"/v1/history":                          "seen-1",
		"/v1/history?limit=1":                  "seen-2",
		"/v1/history?app=web":                  "seen-1",
		"/v1/history?app=vault":                "[]",
		"/v1/crashes":                          "seen",
		"/v1/crashes?app=web":                  "seen",
		"/v1/jobs":                             "seen",
		"/v1/outdated":                         "seen",
		"/v1/logs?app=web":                     "seen web",
		"/v1/inspect?app=web&service=db":       "web",
		"/v1/inspect?app=web&service=zzzzzz":   "services of web: web/api, web/db",
		"/v1/inspect?app=webb&service=api":     `did you mean \"web\"?`,
		"/v1/logs?app=web&service=vault":       "services of web: web/api, web/db",
		"/v1/crashes?app=other":                "no app",
		"/v1/outdated?app=other":               "no app",
		"/v1/jobs?app=other&service=something": "no app",
	} {
		w.after(time.Minute)
		out := w.ask("GET", target, token, "")
		require.Contains(t, out.Body.String(), seen, target)
		require.NotContains(t, strings.ReplaceAll(out.Body.String(), `no service \"web/vault\"`, ""), hiddenWord, target) // but what was asked for
		if seen != "" && strings.Contains(target, "/v1/status") {
			require.Contains(t, w.ask("GET", "/v1/status", all, "").Body.String(), hiddenWord, "who is not limited sees it")
		}
	}
	// What is there and hidden is answered as what is not there.
	for _, path := range []string{"/v1/logs?app=%s", "/v1/inspect?app=%s&service=api", "/v1/crashes?app=%s", "/v1/jobs?app=%s", "/v1/outdated?app=%s"} {
		w.after(time.Minute)
		hidden := w.ask("GET", strings.ReplaceAll(path, "%s", hiddenWord), token, "")
		none := w.ask("GET", strings.ReplaceAll(path, "%s", "fault"), token, "")
		require.Equal(t, http.StatusNotFound, hidden.Code, path)
		require.Equal(t, strings.ReplaceAll(none.Body.String(), "fault", hiddenWord), hidden.Body.String(), path)
	}
}

// An app that left is told of where the token names it, and hidden where not: its lines are still
// there, and sentences of other apps name it.
func TestALimitedTokenSeesItsAppsThatLeftAndNoOthers(t *testing.T) {
	w, token := newLimited(t)
	for _, e := range []ring.Event{
		{App: "db-old", Kind: ring.AppRemoved, Reason: "db-old left the commit"},
		{App: "crypt", Kind: ring.AppRemoved, Reason: "crypt left the commit"},
		{App: "web", Kind: ring.RolloutFailed, Reason: "port 80 is of app crypt"},
		{App: "web", Kind: ring.AppInForce, Reason: "seen-3"},
	} {
		e.Seq = int64(len(w.d.events) + 1)
		w.d.append(e)
	}
	for target, sees := range map[string]string{
		"/v1/history": "db-old left", "/v1/events": "db-old left", "/v1/events?last=4": "db-old left", "/v1/events?last=1": "seen-3",
	} {
		w.after(time.Minute)
		out := w.ask("GET", target, token, "").Body.String()
		require.Contains(t, out, sees, target)
		require.NotContains(t, out, "crypt", target)
		require.NotContains(t, out, hiddenWord, target)
	}
	st := ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{Name: "web", Reason: "its port is of app crypt"}}}}}
	w.socket.calls.Status = func(context.Context) (ring.Status, error) { return st, nil }
	require.NotContains(t, w.ask("GET", "/v1/status", token, "").Body.String(), "crypt")
}

// Whoever follows and has no line yet begins with the next one, and not with the first there is.
func TestAFollowerOfAppsWithoutALineHearsOfTheNextOne(t *testing.T) {
	w := newWebDoor(t)
	for i := range 3 {
		w.d.append(ring.Event{Seq: int64(i + 1), App: hiddenWord, Kind: ring.AppInForce, Reason: hiddenWord})
	}
	text, line := NewToken("team", Scopes{ScopeRead}, "2026-12-24")
	line.Apps = Apps{"web"}
	w.write(line.Line())
	url := w.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/events?last=5&follow=1", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+text)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	w.d.takeCalled()
	for i := range 3 {
		w.d.append(ring.Event{Seq: int64(i + 4), App: map[bool]string{true: "web", false: hiddenWord}[i == 2], Kind: ring.AppInForce, Reason: "next"})
	}
	var e ring.Event
	require.NoError(t, json.NewDecoder(res.Body).Decode(&e))
	require.Equal(t, int64(6), e.Seq)
	for _, call := range w.d.takeCalled() {
		require.NotContains(t, call, "events after=0", "lines of before are read again")
	}
}

// What changes of another app alone is not told either: neither by its lines, nor by a status
// that is another one.
func TestAStreamOfALimitedTokenTellsNothingOfOtherApps(t *testing.T) {
	w := newWebDoor(t)
	web := ring.AppStatus{Name: "web", Health: ring.Healthy}
	w.d.set(func(st *ring.Status) {
		st.Sources = []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{web, {Name: hiddenWord}}}}
	})
	text, line := NewToken("team", Scopes{ScopeRead}, "2026-12-24")
	line.Apps = Apps{"web"}
	w.write(line.Line())
	url := w.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, _ := w.reads(ctx, url, text, "")
	require.Equal(t, "status", (<-events).kind)
	w.d.set(func(st *ring.Status) {
		st.Sources[0].Apps = []ring.AppStatus{web, {Name: hiddenWord, Health: ring.Degraded}}
	})
	w.d.append(ring.Event{Seq: 1, App: hiddenWord, Reason: hiddenWord})
	w.d.append(ring.Event{Seq: 2, Reason: hiddenWord})
	w.d.append(ring.Event{Seq: 3, App: "web", Reason: "seen"})
	e := <-events
	require.Equal(t, "journal", e.kind)
	var told ring.Event
	require.NoError(t, json.Unmarshal([]byte(e.data), &told))
	require.Equal(t, "seen", told.Reason)
	web.Health = ring.Degraded
	w.d.set(func(st *ring.Status) { st.Sources[0].Apps = []ring.AppStatus{web} })
	require.Equal(t, "status", (<-events).kind, "its own app's is told, and the first that is")
	cancel()
	for range events {
	}
}

// The state of a source is worked out of the apps that are shown: it may be another one's.
func TestTheSyncOfASourceIsThatOfTheAppsThatAreShown(t *testing.T) {
	p := Peer{apps: Apps{"web"}}
	for _, tt := range []struct {
		sync, want ring.Sync
		health     string
	}{
		{ring.SyncDegraded, ring.SyncSynced, ring.Healthy},
		{ring.SyncApplying, ring.SyncSynced, ring.Healthy},
		{ring.SyncApplying, ring.SyncApplying, ring.Progressing},
		{ring.SyncApplying, ring.SyncDegraded, ring.Degraded},
		{ring.SyncRefused, ring.SyncRefused, ring.Healthy},
		{ring.SyncHeld, ring.SyncSynced, ring.Healthy},
		{ring.SyncHeld, ring.SyncHeld, ring.Held},
		{ring.SyncUnknown, ring.SyncUnknown, ring.Unknown},
	} {
		out := p.part(&ring.Status{Sources: []ring.SourceStatus{
			{Name: "prod", Sync: tt.sync, Apps: []ring.AppStatus{{Name: "web", Health: tt.health}, {Name: hiddenWord}}},
			{Name: "other", Apps: []ring.AppStatus{{Name: hiddenWord}}},
		}})
		require.Len(t, out.Sources, 1, "a source without an app of theirs is not told of")
		require.Equal(t, tt.want, out.Sources[0].Sync, "%+v", tt)
	}
}

func TestALimitedTokenOpensNoPages(t *testing.T) {
	w, token := newLimited(t)
	asked := false
	w.Pages = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })
	for _, path := range []string{"/", "/app/web", "/plan", "/doctor"} {
		require.Equal(t, http.StatusNotFound, w.ask("GET", path, token, "").Code, path)
	}
	require.False(t, asked)
	out := w.ask("POST", "/v1/session", "", `{"token":"`+token+`"}`)
	require.Equal(t, http.StatusForbidden, out.Code)
	require.Contains(t, out.Body.String(), "opens no pages")
	require.Empty(t, out.Result().Cookies()) //nolint:bodyclose // a recorder's
}

// A limit that is taken away or changed ends what was opened under the other one.
func TestAStreamWhoseLimitChangedIsClosed(t *testing.T) {
	w, token := newLimited(t)
	w.every = 10 * time.Millisecond
	url := w.serve()
	events, _ := w.reads(t.Context(), url, token, "")
	require.Equal(t, "status", (<-events).kind)
	w.write(strings.ReplaceAll(w.read()[0], "apps=web,db-*", "apps=db-*"))
	for range events { // it ends, or the test does not
	}
}

func TestWhichAppsATokenHas(t *testing.T) {
	limit, err := ParseApps("web,db-*,*-job,web")
	require.NoError(t, err)
	require.Equal(t, Apps{"web", "db-*", "*-job"}, limit)
	for app, has := range map[string]bool{
		"web": true, "db-": true, "db-main": true, "a-job": true, "": false, "webs": false, "aweb": false, "db": false, "WEB": false, "x-db-main": false,
	} {
		require.Equal(t, has, limit.Has(app), app)
	}
	require.True(t, Apps(nil).Has(""), "no limit is no limit")
	for _, wrong := range []string{"", "web,", "a b", "web;db", "[a-z]", "w?b", "../web", "Web", `a\*`, "-x"} {
		_, err := ParseApps(wrong)
		require.Error(t, err, wrong)
	}
	for scope, ok := range map[Scope]bool{ScopeRead: true, ScopeLogs: true, ScopeMetrics: false, ScopeOperate: false, ScopeApprove: false, ScopeAdmin: false} {
		require.Equal(t, ok, limit.Fit(Scopes{ScopeRead, scope}) == nil, scope)
		require.NoError(t, Apps(nil).Fit(Scopes{scope}))
	}
}

// A sentence that names a hidden app is not told, whichever field it stands in. An app's own
// service may be called like another app.
func TestASentenceThatNamesAHiddenAppIsNotTold(t *testing.T) {
	for says, hides := range map[string]bool{
		"waits for vault/pg": true, "app vault: held by ann": true, "vault is refused": true, "belongs to app vault": true, `"vault" has it`: true,
		"vault": false, "web/vault": false, "waits for web/vault": false, "vaults are closed": false, "the old-vault is gone": false, "my_vault is gone": false, "serves": false, "": false,
		"waits for web/vault and vault": true,
	} {
		out, err := scrubbed([]string{"other", "vault"}, []ring.Event{{Reason: says, Seq: 1 << 60}})
		require.NoError(t, err)
		require.Equal(t, hides, out[0].Reason == elsewhere, says)
		require.Equal(t, int64(1<<60), out[0].Seq)
	}
	out, err := scrubbed([]string{"vault"}, []ring.Event{{On: "vault/pg"}, {On: "web/vault"}})
	require.NoError(t, err)
	require.Equal(t, []ring.Event{{}, {On: "web/vault"}}, out, "what is no sentence does not become one")
}
