package main

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

const (
	statusSchema  = "../../docs/reference/status.schema.json"
	historySchema = "../../docs/reference/history.schema.json"
)

// schema is the published one of status; see schemaOf.
func schema(t *testing.T, closed bool) *jsonschema.Schema {
	t.Helper()
	return schemaOf(t, statusSchema, closed)
}

// schemaOf is a published schema; a closed one allows no key that it does not
// name, so that a field nobody documented is found.
func schemaOf(t *testing.T, file string, closed bool) *jsonschema.Schema {
	t.Helper()
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err)
	if closed {
		closeObjects(doc)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"]; ok {
			v["additionalProperties"] = false
		}
		for _, in := range v {
			closeObjects(in)
		}
	case []any:
		for _, in := range v {
			closeObjects(in)
		}
	}
}

// printed is what "gitring status -o json" prints of what a daemon answers.
func printed(t *testing.T, answer []byte, args ...string) any {
	t.Helper()
	return printedBy(t, answer, append([]string{"status"}, args...)...)
}

// printedBy is what a command prints with -o json of what a daemon answers.
func printedBy(t *testing.T, answer []byte, args ...string) any {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(answer)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		_ = server.Close()
		<-served
	}()
	var out, errs bytes.Buffer
	code := run(context.Background(), append(args, "-o", "json", "--socket", socket), nil, &out, &errs, time.Now)
	require.Empty(t, errs.String())
	require.NotEqual(t, exit.Error, code)
	doc, err := jsonschema.UnmarshalJSON(&out)
	require.NoError(t, err)
	return doc
}

func fullStatus() ring.Status {
	const sha, v = ring.SHA("a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"), ring.Version("1:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	at := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	refusal := &ring.Refusal{Code: ring.UnknownKey, Commit: sha, App: "web", File: "web/compose.yaml", Line: 3, Says: "no", Hint: "yes"}
	return ring.Status{
		Host: "edge-1", Gitring: "0.1.0", At: at, Engine: "away", Store: "full", Config: "config.yaml:4: no", Backup: "old", Hub: "took none", Doctor: "2 checks fail", ConfigDiffers: true, API: "tokens: line 2", Policy: "sha256:" + strings.Repeat("0a", 32),
		Trial:     &ring.Trial{From: "0.0.9", Looks: 1, Would: []ring.TrialStep{{Does: "stop", On: "web/web", Slot: 1, Ends: true, Reason: "r"}}},
		Receivers: []ring.ReceiverStatus{{Name: "team", Service: "slack", Waiting: 1, Dead: 2, Reason: "r"}},
		Overrides: []ring.Override{{Kind: "undo", Target: "web", Actor: "ops", Reason: "r", Since: at, Until: at, Replicas: new(2), Commit: sha}},
		Cluster:   &ring.ClusterStatus{Name: "prod", State: ring.ClusterQuorum, Acts: "node-3", Nodes: []ring.NodeStatus{{Name: "node-2", Manager: true, State: "ready", Tasks: 1}}},
		Sources: []ring.SourceStatus{{
			Name: "prod", Branch: "main", Tip: sha, Commit: sha, Subject: "s", Signer: "a@b", Note: "vouched by a@b: 1234567", Committed: at, Trusted: sha, Forge: "401", Unconfined: "ports (r)",
			Followed: &ring.Followed{Commit: sha, Subject: "s", Signer: "a@b", Committed: at, App: "web"},
			Trust:    "w", FirstUse: &ring.FirstUse{Commit: sha, At: at}, Checking: true, Checked: at, Sync: ring.SyncSynced, Reason: "r", Code: ring.WhyAppRefused, On: "web/web",
			Doubts: []string{"d"}, Next: &ring.Next{Commit: sha, Reason: "r", Code: ring.WhyImagePending, On: "web/web"}, Refusal: refusal,
			Conditions: []ring.Condition{{Type: ring.ConditionOld, Status: ring.ConditionTrue, Reason: "r", Since: at, Commit: sha, ExitCode: 1}},
			Apps: []ring.AppStatus{{
				Name: "web", Health: ring.Healthy, Commit: sha, Reason: "r", Code: ring.WhyAppRefused, On: "web/web", Refusal: refusal, Notes: []string{"n"}, Powers: []string{"p"},
				Services: []ring.ServiceStatus{{
					Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 2, Ready: 2, Updated: 2,
					Version: v, Commit: sha, LastGood: sha, Reason: "r", Code: ring.WhyDependencyNotReady, On: "web/db", Health: "inferred",
					NextRun: at, Timezone: "Europe/Berlin", DueSince: at, LastRun: &ring.RunOutcome{State: ring.RunFailed, Reason: "r", Ended: at},
					Rollout:   &ring.RolloutStatus{Phase: ring.RolloutIsRestored, Version: v, Commit: sha, Reason: "r", Code: ring.WhyRolloutFailed, Canary: &ring.CanaryStatus{Step: 1, Weight: 10, Since: at, Answers: 100, Errors: 0.5, P99: 12, Judged: 2}},
					Instances: []ring.InstanceStatus{{ID: "i", Name: "n", Slot: 1, State: ring.SlotReady, Version: v, Commit: sha, Restarts: 1, Reason: "r", Failing: true, InFlight: 3, Adopted: true, Started: at, Address: "172.18.0.2", Node: "node-2"}},
					Running:   sha, Image: "nginx:1.27", Digest: "sha256:1", Ports: []string{"8080:80/tcp"},
					Tag:        &ring.TagStatus{Image: "nginx:1.27", Policy: "daily", Asked: at, Digest: "sha256:2", Seen: at, Waits: "r", Until: at, Error: "r"},
					Front:      &ring.FrontStatus{Phase: ring.FrontServes, Ports: []string{"8080/tcp"}, Generation: 4, Build: "sha256:1", Connections: 5, Queued: 6, QueuedSince: at},
					Conditions: []ring.Condition{{Type: ring.ConditionCrashLooping, Status: ring.ConditionTrue, Reason: "r", Since: at, Commit: sha, ExitCode: 1}},
				}},
			}},
		}},
	}
}

// filled fails for a field that fullStatus leaves out: it would not have to be
// documented.
func filled(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	require.False(t, v.IsZero(), "%s is not in the test's status", path)
	switch v.Kind() {
	case reflect.Pointer:
		filled(t, path, v.Elem())
	case reflect.Slice:
		filled(t, path+"[0]", v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" {
				continue // nobody reads it
			}
			filled(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}

func TestStatusHoldsToItsSchema(t *testing.T) {
	full, err := json.Marshal(fullStatus())
	require.NoError(t, err)
	filled(t, "status", reflect.ValueOf(fullStatus()))
	doc := printed(t, full)
	require.NoError(t, schema(t, true).Validate(doc))
	require.NoError(t, schema(t, true).Validate(printed(t, full, "web/web")), "also a part of it")

	for name, least := range map[string]string{
		"a host that follows nothing":    `{"host":"a","gitring":"0.1.0","sources":[]}`,
		"a source before its first look": `{"host":"a","gitring":"0.1.0","sources":[{"name":"p","branch":"main","checking":true,"sync":"Unknown","reason":"","apps":[]}]}`,
		"an app never accepted": `{"host":"a","gitring":"0.1.0","sources":[{"name":"p","branch":"main","checking":false,"sync":"Degraded","reason":"","apps":[
			{"name":"w","health":"Unknown","refusal":{"code":"Yaml","says":"no"},"services":[]}]}]}`,
	} {
		require.NoError(t, schema(t, true).Validate(printed(t, []byte(least))), name)
	}
}

func TestTheSchemaRefusesWhatStatusNeverSays(t *testing.T) {
	s := schema(t, false)
	full, err := json.Marshal(fullStatus())
	require.NoError(t, err)
	for _, change := range [][2]string{
		{`"sync":"Synced"`, `"sync":"synced"`},
		{`"phase":"Ready"`, `"phase":"READY"`},
		{`"health":"Healthy"`, `"health":""`},
		{`"kind":"worker"`, `"kind":"daemon"`},
		{`"state":"Ready"`, `"state":""`},
		{`"phase":"Restored"`, `"phase":"Completed"`},
		{`"sources":[`, `"source":[`},
		{`"line":3`, `"line":0`},
		{`"slot":1`, `"slot":"1"`},
		{`"wanted":2`, `"wanted":-1`},
		{`"tip":"a1`, `"tip":"A1`},
		{`"version":"1:`, `"version":"2:`},
		{`00.0000005Z`, `00.0000005+01:00`},
		{`2026-11-21T`, `2026-13-21T`},
		{`"checking":true`, `"checking":null`},
	} {
		require.Contains(t, string(full), change[0])
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(full), change[0], change[1], 1)))
		require.NoError(t, err)
		require.Error(t, s.Validate(doc), change[1])
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(full), `"host"`, `"novel":1,"host"`, 1)))
	require.NoError(t, err)
	require.NoError(t, s.Validate(doc), "a key more is none of a reader's business")
}

func TestHistoryHoldsToItsSchema(t *testing.T) {
	const sha = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
	closed := schemaOf(t, historySchema, true)
	full := api.CommitNow{
		Commit: sha, Source: "prod", At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Subject: "Say hello", Signer: "alice@example.org", Outcome: api.OutcomeFailed, Says: "shop/web: exited with code 1",
	}
	filled(t, "history", reflect.ValueOf(full))
	answer, err := json.Marshal([]api.CommitNow{full, {Commit: sha, Source: "prod", At: full.At, Outcome: api.OutcomeLive}})
	require.NoError(t, err)
	doc := printedBy(t, answer, "history")
	require.NoError(t, closed.Validate(doc))
	want, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	require.NoError(t, err)
	require.Equal(t, want, doc, "each commit is there, with all that the screen shows of it")
	require.Equal(t, []any{}, printedBy(t, []byte("[]"), "history"), "a list, also where nothing happened yet")

	for _, change := range [][2]string{
		{`"outcome":"failed"`, `"outcome":"Failed"`},
		{`"commit":"a1`, `"commit":"A1`},
		{`"outcome":"live"`, `"kind":"live"`},
		{`"says":"shop/web: exited with code 1"`, `"says":""`},
		{`12:00:00Z`, `12:00:00+01:00`},
	} {
		require.Contains(t, string(answer), change[0])
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(answer), change[0], change[1], 1)))
		require.NoError(t, err)
		require.Error(t, schemaOf(t, historySchema, false).Validate(doc), change[1])
	}

	// Every outcome that there is has its word in the schema, and no other has.
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/outcome.go", nil, 0)
	require.NoError(t, err)
	var outcomes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Outcome") {
			word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			outcomes = append(outcomes, word)
		}
		return true
	})
	body, err := os.ReadFile(historySchema)
	require.NoError(t, err)
	var listed any
	require.NoError(t, json.Unmarshal(body, &listed))
	require.ElementsMatch(t, outcomes, enums(listed))
}

// Lesson L27: every word of ring/status.go is one of the schema's, and every
// word of the schema is one of ring's.
func TestTheSchemaKnowsEveryWord(t *testing.T) {
	body, err := os.ReadFile(statusSchema)
	require.NoError(t, err)
	var doc any
	require.NoError(t, json.Unmarshal(body, &doc))
	listed := enums(doc)
	file, err := parser.ParseFile(token.NewFileSet(), "../../ring/status.go", nil, 0)
	require.NoError(t, err)
	var words []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			for _, v := range spec.(*ast.ValueSpec).Values {
				word, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				require.NoError(t, err)
				words = append(words, word)
			}
		}
	}
	require.Greater(t, len(words), 25)
	for _, word := range words {
		require.Contains(t, listed, word)
	}
	for _, word := range listed {
		require.True(t, slices.Contains(append(words, "worker", "job", "cron", "inferred", ring.ClusterQuorum, ring.ClusterNoQuorum), word), word)
	}
}

func enums(v any) []string {
	var all []string
	switch v := v.(type) {
	case map[string]any:
		for key, in := range v {
			if list, ok := in.([]any); ok && key == "enum" {
				for _, word := range list {
					all = append(all, word.(string))
				}
				continue
			}
			all = append(all, enums(in)...)
		}
	case []any:
		for _, in := range v {
			all = append(all, enums(in)...)
		}
	}
	return all
}

// The documentation names every verb, and each flag of it in the part that is about the
// verb.
func TestTheReferenceOfTheCommandLineIsWhole(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	parts := regexp.MustCompile(`(?m)^#{2,3} `).Split(string(page), -1)
	root := rootCmd(&globals{})
	walk(root, func(path string, flags []string) {
		about := string(page) // of flags of every verb
		if path != root.Name() {
			about = ""
			for _, part := range parts {
				if regexp.MustCompile("(?:^|`)" + path + "[ `\n]").MatchString(part) {
					about += part
				}
			}
			require.NotEmpty(t, about, path)
		}
		for _, flag := range flags {
			require.Contains(t, about, "`--"+flag, "%s --%s", path, flag)
		}
	})
	for code := exit.OK; code <= exit.Progressing; code++ {
		require.Contains(t, string(page), "| "+strconv.Itoa(code)+" |")
	}
}
