package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

const sha = "442e0271b8f1c0a1442e0271b8f1c0a1442e0271"

// told is a place with a host that told something of everything.
func told(t *testing.T) (p *place, token, reader string) {
	p = newPlace(t)
	token, reader = p.token("edge-1", "report:edge-1"), p.token("ann", "read,logs,operate,approve,admin,metrics")
	st := status("edge-1", ring.SyncDegraded, ring.Degraded)
	st.Doctor = "1 check fails"
	app := &st.Sources[0].Apps[0]
	app.Reason = "<script>alert(1)</script> is not ready"
	app.Services = append(app.Services, ring.ServiceStatus{Name: "nightly", Kind: ring.CronK, Phase: ring.PhaseReady, NextRun: noon.Add(15 * time.Hour), Instances: []ring.InstanceStatus{}})
	st.Sources[0].Next = &ring.Next{Commit: sha, Reason: "waits", Code: ring.WhyAwaitingApproval}
	j := &journal{}
	j.append(ring.Event{Kind: ring.CommitAccepted, Source: "prod", Commit: sha, Actor: "alice"})
	j.append(ring.Event{Kind: ring.RolloutBegan, Source: "prod", App: "shop", Service: "web", Commit: sha})
	j.append(ring.Event{Kind: ring.RolloutCompleted, Source: "prod", App: "shop", Service: "web", Commit: sha})
	j.append(ring.Event{Kind: ring.InstanceCrashed, Source: "prod", App: "shop", Service: "web", Slot: 1, Commit: sha, Reason: "exited with code 3"})
	j.append(ring.Event{Kind: ring.InstanceCrashed, Source: "prod", App: "shop", Service: "web", Slot: 1, Commit: sha, Reason: "exited with code 3"})
	j.append(ring.Event{Kind: ring.JobStarted, Source: "prod", App: "shop", Service: "nightly", Commit: sha})
	j.append(ring.Event{Kind: ring.JobFailed, Source: "prod", App: "shop", Service: "nightly", Commit: sha, Reason: "exited with code 7"})
	p.tell(token, reportOf("edge-1", p.now(), st, "0.00000000", "", j.lines...))
	return p, token, reader
}

// What a hub keeps is on the pages; what it does not keep is on none, and nothing acts, whatever the
// token may do on a host.
func TestThePagesOfAHostAreOfWhatIsStored(t *testing.T) {
	p, _, reader := told(t)
	for path, has := range map[string][]string{
		"":                 {"Degraded", "shop", "&lt;script&gt;", `href="/hosts/edge-1/app/shop"`, "1 check fails"},
		"/app/shop":        {"shop", "nightly", `href="/hosts/edge-1/svc/shop/web"`},
		"/svc/shop/web":    {"1/1 ready", "exited with code 3", `href="/hosts/edge-1/crashes?app=shop&amp;service=web"`},
		"/history":         {"api: fix the typo", "signed by alice", "live", `href="/hosts/edge-1/commit/` + sha + `"`},
		"/commit/" + sha:   {"rollout.completed", "alice", "git revert"},
		"/jobs":            {"shop/nightly", "exited with code 7", "failed"},
		"/crashes":         {"2 crashes", "exited with code 3", `href="/hosts/edge-1/svc/shop/web"`},
		"/commit/442e0271": {"api: fix the typo"},
	} {
		p.after(time.Second)
		out := p.ask("GET", "/hosts/edge-1"+path, reader, nil)
		require.Equal(t, http.StatusOK, out.Code, path)
		body := out.Body.String()
		for _, text := range has {
			require.Contains(t, body, text, path)
		}
		require.Contains(t, body, `data-stream="/v1/stream?host=edge-1"`, path)
		for _, none := range []string{"<form", `class="act"`, "/plan", "/trust", "/doctor", "/logs/", "/approve", "exit 0", "Checks", "not in the mirror", "<script>alert"} {
			require.NotContains(t, body, none, path)
		}
		for _, link := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			require.Regexp(t, `^(/assets/|/hosts|#|/signout)`, link[1], path)
			if at, _, _ := strings.Cut(link[1], "?"); strings.HasPrefix(at, "/hosts") {
				p.after(time.Second)
				require.Equal(t, http.StatusOK, p.ask("GET", at, reader, nil).Code, "%s leads to %s", path, at)
			}
		}
	}
	for _, path := range []string{"/plan", "/doctor", "/trust", "/logs/shop/web", "/act/shop", "/sync/prod", "/approve/" + sha, "/none", "/svc/shop/none"} {
		p.after(time.Second)
		require.Equal(t, http.StatusNotFound, p.ask("GET", "/hosts/edge-1"+path, reader, nil).Code, path)
	}
	for _, path := range []string{"/hosts/none", "/hosts/", "/hosts/edge-1~aaaaaaaa", "/hosts/../hosts", "/x"} {
		p.after(time.Second)
		require.Equal(t, http.StatusNotFound, p.ask("GET", path, reader, nil).Code, path)
	}
	out := p.ask("GET", "/", reader, nil)
	require.Equal(t, http.StatusSeeOther, out.Code)
	require.Equal(t, "/hosts", out.Header().Get("Location"))
	out = p.ask("GET", "/hosts/edge-1/history", "", nil)
	require.Equal(t, "/signin?then=%2Fhosts%2Fedge-1%2Fhistory", out.Header().Get("Location"))
}

// A stream has the lines of all hosts or of one, goes on where it was cut, and says where it cannot.
func TestTheStreamOfAHubTellsLinesOfAllOrOfOne(t *testing.T) {
	p := newPlace(t)
	one, two, reader := p.token("edge-1", "report:edge-1"), p.token("edge-2", "report:edge-2"), p.token("ann", "read")
	server := httptest.NewServer(p.web)
	t.Cleanup(server.Close)
	lines := map[string]*journal{one: {}, two: {}}
	tell := func(token, host string) {
		j := lines[token]
		at := j.cursor()
		j.append(ring.Event{Kind: ring.RolloutBegan, App: host, Reason: fmt.Sprint("line ", len(j.lines))})
		p.tell(token, reportOf(host, p.now(), status(host, ring.SyncSynced, ring.Healthy), at, "", j.lines[len(j.lines)-1]))
	}
	tell(one, "edge-1")
	tell(two, "edge-2")
	type event struct{ kind, id, data string }
	open := func(path, after string) (next func() event, end func()) {
		p.after(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+reader)
		if after != "" {
			req.Header.Set("Last-Event-ID", after)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(cancel)
		require.Equal(t, http.StatusOK, res.StatusCode)
		in := bufio.NewScanner(res.Body)
		next = func() (e event) {
			for in.Scan() {
				key, value, _ := strings.Cut(in.Text(), ": ")
				switch key {
				case "event":
					e.kind = value
				case "id":
					e.id = value
				case "data":
					e.data = value
					return e
				}
			}
			return e
		}
		return next, func() { cancel(); _ = res.Body.Close() }
	}
	journalOnly := func(next func() event) event {
		for {
			if e := next(); e.kind != "status" {
				return e
			}
		}
	}
	next, end := open("/v1/stream", "")
	first := next()
	require.Equal(t, "status", first.kind)
	tell(one, "edge-1")
	tell(two, "edge-2")
	seen := []string{}
	var ids []string
	for range 2 {
		e := journalOnly(next)
		var of struct {
			Host, Key string
			Event     ring.Event
		}
		require.NoError(t, json.Unmarshal([]byte(e.data), &of))
		seen, ids = append(seen, of.Key+" "+of.Event.Reason), append(ids, e.id)
	}
	end()
	require.Equal(t, []string{"edge-1 line 1", "edge-2 line 1"}, seen)

	next, end = open("/v1/stream", ids[0]) // cut after the first
	e := journalOnly(next)
	require.Equal(t, ids[1], e.id)
	require.Equal(t, "journal", e.kind)
	end()

	next, end = open("/v1/stream?host=edge-2", first.id)
	e = journalOnly(next)
	require.Contains(t, e.data, `"host":"edge-2"`, "of one host alone")
	end()
	next, end = open("/v1/stream?host=none", "")
	require.Equal(t, "status", next().kind)
	end()

	for _, id := range []string{"7.ffffffff", "x", "99." + p.hub.process} {
		next, end = open("/v1/stream", id)
		require.Equal(t, "reset", next().kind, id)
		end()
	}
	for range recentLines { // all of one host
		p.hub.recent.add([]api.HostEvent{{Host: "edge-1", Key: idOf(one), Event: json.RawMessage(`{}`)}})
	}
	next, end = open("/v1/stream", first.id)
	require.Equal(t, "reset", next().kind, "lines after it are not kept any more")
	end()
	next, end = open("/v1/stream?host=edge-2", first.id)
	require.Contains(t, journalOnly(next).data, `"host":"edge-2"`, "what one host tells pushes out no line of another")
	end()
	http.DefaultClient.CloseIdleConnections()
}

func TestTheMetricsOfAHubHaveTheLabelHost(t *testing.T) {
	p, _, reader := told(t)
	text := p.ask("GET", "/metrics", reader, nil).Body.String()
	for _, line := range []string{
		`gitring_hub_host_silent{host="edge-1"} 0`, `gitring_source_sync{host="edge-1",source="prod",sync="Degraded"} 1`,
		`gitring_build_info{version="1.0.0",host="edge-1"} 1`, `gitring_service_instances_ready{host="edge-1",source="prod",app="shop",service="web",kind="worker"} 1`,
		`gitring_api_requests_total{route="POST /v1/report",code="200"} 1`, `gitring_hub_reports_total{host="edge-1",result="taken"} 1`,
		`gitring_hub_reports_total{host="edge-1",result="refused"} 0`, `gitring_hub_host_series_left_out{host="edge-1"} 0`, "gitring_hub_host_last_report_timestamp_seconds{host=\"edge-1\"} ",
	} {
		require.Contains(t, text, line)
	}
	for _, none := range []string{"gitring_outbox", "gitring_events_total", "gitring_engine_requests"} {
		require.NotContains(t, text, none, "nobody reports it")
	}
	series := map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, _, _ := strings.Cut(line, "} ")
		require.False(t, series[name], "twice: %s", name)
		series[name] = true
	}
	p.after(4 * time.Minute)
	text = p.ask("GET", "/metrics", reader, nil).Body.String()
	require.Contains(t, text, `gitring_hub_host_silent{host="edge-1"} 1`)
	require.NotContains(t, text, "gitring_source_sync", "nobody knows it any more")
}

// What the hub answers of all hosts is as its document says.
func TestTheFleetIsAsTheDocumentSays(t *testing.T) {
	p, _, reader := told(t)
	file, err := os.Open("../docs/reference/openapi-hub.json")
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // only read
	doc, err := jsonschema.UnmarshalJSON(file)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	s, err := c.Compile("openapi.json#/paths/~1v1~1fleet/get/responses/200/content/application~1json/schema")
	require.NoError(t, err)
	answer, err := jsonschema.UnmarshalJSON(p.ask("GET", "/v1/fleet", reader, nil).Body)
	require.NoError(t, err)
	require.NoError(t, s.Validate(answer))
	wrong, err := jsonschema.UnmarshalJSON(strings.NewReader(`[{"key":"edge-1"}]`))
	require.NoError(t, err)
	require.Error(t, s.Validate(wrong), "the test sees what is missing")
}
