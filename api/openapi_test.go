package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

const openAPIPage = "../docs/reference/openapi.json"

// described is what the document says of a route besides its method, path and scope.
type described struct {
	says   string
	params []string // name: type: what it is
	in     any      // the body; nil is none
	out    any      // the answer; nil is one of its own media
	media  string   // of the answer; "" is JSON
}

var (
	ofApp    = "app: string: of this app alone"
	ofSource = "source: string: of this source; all where it is left out"
)

// descriptions are by method and path. A route without one fails the test.
var descriptions = map[string]described{
	"GET /v1/version":  {says: "The version of the daemon, and of its engine as it answered last", out: Version{}},
	"GET /v1/status":   {says: "The truth about the host", params: []string{"phase: string: services in this phase; may be given again", "label: string: services with this label, such as tier=web; may be given again"}, out: ring.Status{}},
	"GET /v1/events":   {says: "Lines of the journal, one JSON object a line", params: []string{ofApp, "after: integer: lines with a greater seq", "limit: integer: at most so many", "last: integer: the newest so many", "follow: boolean: go on with what comes"}, out: ring.Event{}, media: "application/x-ndjson"},
	"GET /v1/history":  {says: "Lines of the journal that say what became of commits, the newest first", params: []string{ofApp, "limit: integer: at most so many"}, out: []ring.Event{}},
	"GET /v1/commits":  {says: "What became of each commit, the newest first", params: []string{ofApp, "limit: integer: at most so many"}, out: []CommitNow{}},
	"GET /v1/logs":     {says: "What instances print, each line after the name of its instance", params: []string{"app: string!: the app", "service: string: one service", "follow: boolean: go on with what comes", "tail: integer: the last so many lines of each", "since: string: RFC 3339", "timestamps: boolean: the engine's time before each line", "q: string: lines that hold this text, of the last 10,000 of each instance"}, media: "text/plain"},
	"GET /v1/outdated": {says: "What the names of images mean now", params: []string{ofApp, "tags: boolean: with newer tags of the same shape"}, out: []ImageNow{}},
	"GET /v1/jobs":     {says: "Jobs, cron jobs and their runs", params: []string{ofApp, "service: string: one job", "run: string: one run", "limit: integer: runs of each", "logs: boolean: with the lines that were kept; needs the scope logs"}, out: []JobNow{}},
	"GET /v1/acts":     {says: "What a person can do by hand now, and why not the rest", params: []string{"app: string!: the app", "service: string: one service", "to: string: the commit that an undo would go back to"}, out: []ActNow{}},
	"GET /v1/crashes":  {says: "What crashed, like ones together, the newest first", params: []string{ofApp, "service: string: one service", "logs: boolean: with the log of the newest of each; needs the scope logs"}, out: []CrashGroup{}},
	"GET /v1/inspect":  {says: "Why a service is as it is", params: []string{"app: string!: the app", "service: string!: the service", "slot: integer: one slot", "trace: boolean: with the rules that were asked"}, out: ring.Explained{}},
	"GET /v1/usage":    {says: "What instances take of the host now, by container ID", out: map[string]ring.Usage{}},
	"GET /v1/outbox":   {says: "What has not arrived at forges and receivers", out: []ring.Unsaid{}},
	"GET /v1/trust":    {says: "Whom sources trust, and up to where", params: []string{ofSource}, out: []ring.TrustState{}},
	"GET /v1/stream":   {says: "Server-sent events: journal, status and reset", params: []string{ofApp}, media: "text/event-stream"},

	"GET /v1/traffic":          {says: "What the fronts before services do", params: []string{ofApp, "service: string: one service"}, out: []FrontNow{}},
	"POST /v1/traffic/upgrade": {says: "Have the fronts take the newest proxy, one after the other", in: UpgradeRequest{}, out: Upgrading{}},
	"GET /v1/doctor":           {says: "What is wrong with the host, or soon will be", out: doctor.Report{}},
	"GET /v1/openapi.json":     {says: "This document", out: map[string]any{}},
	"GET /metrics":             {says: "Metrics in the text format of Prometheus", media: "text/plain"},
	"POST /v1/plan":            {says: "What a commit would change", params: []string{ofSource, "rev: string: a commit id; on the socket alone the body may be a zipped folder instead"}, out: ring.Changes{}},
	"POST /v1/sync":            {says: "Look at the remote now. With wait, one JSON object a line", params: []string{ofSource, "wait: boolean: follow what comes of it"}, out: struct{}{}},
	"POST /v1/act":             {says: "What a person does by hand", in: ActRequest{}, out: Acted{}},
	"POST /v1/secrets/refresh": {says: "Ask the providers of an app's values again", in: SecretRefreshRequest{}, out: []SecretNow{}},
	"POST /v1/refresh":         {says: "Look image names up anew", in: RefreshRequest{}, out: []ImageNow{}},
	"POST /v1/approve":         {says: "Say yes to a plan that waits", in: ApproveRequest{}, out: struct{}{}},
	"POST /v1/adopt":           {says: "Take over what Compose runs", in: AdoptRequest{}, out: Adoption{}},
	"POST /v1/leave":           {says: "Hand an app back to Compose", in: LeaveRequest{}, out: Left{}},
	"POST /v1/outbox/retry":    {says: "Try again what has not arrived", in: OutboxRetryRequest{}, out: OutboxRetried{}},
	"POST /v1/notify/test":     {says: "Send a message for a test", in: NotifyTestRequest{}, out: []NotifyTested{}},
	"POST /v1/trust/accept":    {says: "Move an anchor by a person's decision; on the socket alone", in: AcceptRequest{}, out: struct{}{}},
	"POST /v1/proof":           {says: "A proof of who authorised what a container runs; on the socket alone", in: ProofRequest{}, out: ProofMade{}},
	"POST /v1/trust/reverify":  {says: "Hold the history against the keys of now; on the socket alone", in: ReverifyRequest{}, out: ring.Reverified{}},
}

// words are the types whose values are of a closed list. It may grow.
var words = map[reflect.Type][]string{
	reflect.TypeFor[ring.Phase](): phases,
	reflect.TypeFor[ring.Sync](): {
		string(ring.SyncUnknown), string(ring.SyncRefused), string(ring.SyncHeld), string(ring.SyncStaging), string(ring.SyncApplying), string(ring.SyncDegraded), string(ring.SyncSynced),
	},
	reflect.TypeFor[Scope](): ScopeNames,
}

// schemas makes JSON schemas of Go types, those of structs by name.
type schemas map[string]any

func (s schemas) of(t reflect.Type) any {
	type m = map[string]any
	if all, closed := words[t]; closed {
		return m{"type": "string", "enum": all}
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return m{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return m{}
	case t.Implements(reflect.TypeFor[json.Marshaler]()), reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		return m{} // it writes itself
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return m{"type": "string"}
	case reflect.Bool:
		return m{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return m{"type": "number"}
	case reflect.Interface:
		return m{}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return m{"type": "string"}
		}
		return m{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return m{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.ofStruct(t)
	}
	return m{"type": "integer"}
}

func (s schemas) ofStruct(t reflect.Type) any {
	name := t.Name()
	if name == "" {
		return map[string]any{"type": "object"}
	}
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if _, made := s[name]; made {
		return ref
	}
	s[name] = nil // a type may hold itself
	properties, required := map[string]any{}, []string{}
	var fields func(t reflect.Type)
	fields = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case key == "-" || !f.IsExported() && !f.Anonymous:
			case f.Anonymous && key == "":
				fields(f.Type)
			default:
				if key == "" {
					key = f.Name
				}
				properties[key] = s.of(f.Type)
				if !strings.Contains(options, "omit") {
					required = append(required, key)
				}
			}
		}
	}
	fields(t)
	one := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		one["required"] = required
	}
	s[name] = one
	return ref
}

// document is the OpenAPI document of the routes.
func document(t *testing.T, title string, routes []route, descriptions map[string]described) []byte {
	t.Helper()
	type m = map[string]any
	made := schemas{}
	paths := map[string]m{}
	operation := func(method, path string, d described) m {
		media := d.media
		if media == "" {
			media = "application/json"
		}
		content := m{}
		if d.out != nil {
			content["schema"] = made.of(reflect.TypeOf(d.out))
		} else {
			content["schema"] = m{"type": "string"}
		}
		o := m{
			"summary": d.says, "operationId": strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(strings.ToLower(method+path), "-"), "-"),
			"responses": m{
				"200":     m{"description": "done", "content": m{media: content}},
				"default": m{"description": "refused, or failed", "content": m{"application/json": m{"schema": made.of(reflect.TypeFor[Error]())}}},
			},
		}
		params := []m{}
		for _, p := range d.params {
			name, rest, _ := strings.Cut(p, ": ")
			kind, says, _ := strings.Cut(rest, ": ")
			params = append(params, m{"name": name, "in": "query", "required": strings.HasSuffix(kind, "!"), "description": says, "schema": m{"type": strings.TrimSuffix(kind, "!")}})
		}
		if len(params) > 0 {
			o["parameters"] = params
		}
		if d.in != nil {
			o["requestBody"] = m{"required": true, "content": m{"application/json": m{"schema": made.of(reflect.TypeOf(d.in))}}}
		}
		if paths[path] == nil {
			paths[path] = m{}
		}
		paths[path][strings.ToLower(method)] = o
		return o
	}
	for _, rt := range routes {
		d, ok := descriptions[rt.method+" "+rt.path]
		require.True(t, ok, "%s %s has no description", rt.method, rt.path)
		o := operation(rt.method, rt.path, d)
		if rt.scope != "" {
			o["security"] = []m{{"token": []string{string(rt.scope)}}, {"session": []string{string(rt.scope)}}}
		}
	}
	require.Len(t, descriptions, len(routes))
	operation("POST", sessionPath, described{says: "Sign in; on listen.api alone", in: SignInRequest{}, out: SignedIn{}})
	operation("GET", sessionPath, described{says: "Who asks; on listen.api alone", out: SignedIn{}})
	operation("DELETE", sessionPath, described{says: "Sign out; on listen.api alone", out: struct{}{}})
	made.of(reflect.TypeFor[StreamStatus]())
	made.of(reflect.TypeFor[StreamReset]())
	if descriptions["POST /v1/sync"].says != "" {
		made.of(reflect.TypeFor[SyncLine]())
	}
	b, err := json.MarshalIndent(m{
		"openapi": "3.1.0", "info": m{"title": title, "version": "v1", "license": m{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths": paths,
		"components": m{"schemas": made, "securitySchemes": m{
			"token": m{"type": "http", "scheme": "bearer"}, "session": m{"type": "apiKey", "in": "cookie", "name": "__Host-gitring"},
		}},
	}, "", " ")
	require.NoError(t, err)
	return append(b, '\n')
}

// The document is made from the routes and the types: UPDATE_OPENAPI=1 writes it.
func TestTheOpenAPIDocumentIsThatOfTheRoutes(t *testing.T) {
	made := document(t, "gitring", newSocket(t, newDaemon()).routes, descriptions)
	if os.Getenv("UPDATE_OPENAPI") != "" {
		openAPIDocument = packInto(t, "openapi.json.gz", made)
		require.NoError(t, os.WriteFile(openAPIPage, made, 0o644))
	}
	page, err := os.ReadFile(openAPIPage)
	require.NoError(t, err)
	require.True(t, bytes.Equal(made, page), "UPDATE_OPENAPI=1 go test -run OpenAPI ./api, and look at what changed")
	require.True(t, bytes.Equal(page, ownPage(t, openAPIDocument)))
	require.Less(t, len(page), 160<<10)
}

// packInto writes a document as the program holds it, and returns it for the one that runs.
func packInto(t *testing.T, file string, made []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(made)
	require.NoError(t, errors.Join(err, z.Close(), os.WriteFile(file, b.Bytes(), 0o644)))
	return b.Bytes()
}

// ownPage is a document that the program holds.
func ownPage(t *testing.T, packed []byte) []byte {
	t.Helper()
	is, err := unpacked(packed)
	require.NoError(t, err)
	return is
}

// hubDescriptions are of the routes of a hub.
var hubDescriptions = map[string]described{
	"POST /v1/report":      {says: "What a host tells of itself; the answer is the line of its journal that the hub has last, <seq>.<8 hex>", in: ring.HostReport{}, media: "text/plain"},
	"GET /v1/fleet":        {says: "All hosts, what is wrong first", out: []HostNow{}},
	"GET /v1/stream":       {says: "Server-sent events: journal, status and reset", params: []string{"host: string: of this host alone, by its key"}, media: "text/event-stream"},
	"GET /v1/openapi.json": {says: "This document", out: map[string]any{}},
	"GET /metrics":         {says: "Metrics of all hosts in the text format of Prometheus", media: "text/plain"},
}

// The document of a hub, as the one of a daemon.
func TestTheOpenAPIDocumentOfAHubIsThatOfItsRoutes(t *testing.T) {
	const page = "../docs/reference/openapi-hub.json"
	made := document(t, "gitring hub", NewHub(HubCalls{}).routes, hubDescriptions)
	if os.Getenv("UPDATE_OPENAPI") != "" {
		hubDocument = packInto(t, "openapi-hub.json.gz", made)
		require.NoError(t, os.WriteFile(page, made, 0o644))
	}
	is, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, is := range [][]byte{is, ownPage(t, hubDocument)} {
		require.True(t, bytes.Equal(made, is), "UPDATE_OPENAPI=1 go test -run OpenAPI ./api, and look at what changed")
	}
}

// lookup walks a document.
func lookup(doc any, path ...string) any {
	for _, key := range path {
		of, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = of[key]
	}
	return doc
}

// Every answer that the routes give is of the schema that the document has for it.
func TestEveryAnswerIsAsTheDocumentSays(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ownPage(t, openAPIDocument)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	valid := func(method, path, code, media string, body []byte) {
		t.Helper()
		at := "#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + strings.ToLower(method) + "/responses/" + code + "/content/" + strings.ReplaceAll(media, "/", "~1") + "/schema"
		s, err := c.Compile("openapi.json" + at)
		require.NoError(t, err, "%s %s", method, path)
		answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		require.NoError(t, err, "%s", body)
		require.NoError(t, s.Validate(answer), "%s %s: %s", method, path, body)
	}
	w := newWebDoor(t)
	w.d.append(ring.Event{Seq: 1, At: noon, Kind: "daemon.started"})
	w.d.set(func(st *ring.Status) {
		st.Sources = twoApps()
		for i := range st.Sources {
			st.Sources[i].Sync = ring.SyncSynced
		}
	})
	all := w.token("all", strings.Join(ScopeNames, ","))
	seen := 0
	for path, row := range everyRoute {
		w.after(time.Minute)
		out := w.ask(row.method, row.target, all, row.body)
		if row.scope == "" {
			valid(row.method, path, "default", "application/json", out.Body.Bytes())
			continue
		}
		require.Equal(t, http.StatusOK, out.Code, path)
		media, _, _ := strings.Cut(out.Header().Get("Content-Type"), ";")
		switch media {
		case "application/json":
			valid(row.method, path, "200", media, out.Body.Bytes())
		case "application/x-ndjson":
			valid(row.method, path, "200", media, bytes.TrimSpace(out.Body.Bytes()))
		default:
			require.NotNil(t, lookup(doc, "paths", path, strings.ToLower(row.method), "responses", "200", "content", media), "%s answers %s", path, media)
		}
		valid(row.method, path, "default", "application/json", w.ask(row.method, row.target, "", row.body).Body.Bytes())
		seen++
	}
	require.Equal(t, len(everyRoute)-3, seen)
	valid("POST", sessionPath, "200", "application/json", w.ask("POST", sessionPath, "", `{"token":"`+all+`"}`).Body.Bytes())
	valid("GET", sessionPath, "200", "application/json", w.ask("GET", sessionPath, all, "").Body.Bytes())
}
