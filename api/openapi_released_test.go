package api

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// releasedPage is the document of the last release; before the first one it is what /v1 was
// when this test came. A release copies its own here: cp docs/reference/openapi.json api/testdata/openapi-released.json
const releasedPage = "testdata/openapi-released.json"

func pageOf(t *testing.T, name string) map[string]any {
	t.Helper()
	body, err := os.ReadFile(name)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(body, &doc))
	return doc
}

// partOf is a value inside objects; nil where there is none.
func partOf(of any, keys ...string) any {
	for _, k := range keys {
		m, _ := of.(map[string]any)
		of = m[k]
	}
	return of
}

func objectOf(of any) map[string]any { m, _ := of.(map[string]any); return m }

func listOf(of any) []any { l, _ := of.([]any); return l }

// broken is what whoever was written for the one document would miss in the other: a path, a
// method, a field, a word, or an input that is newly wanted.
func broken(was, is map[string]any) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for path, methods := range objectOf(was["paths"]) {
		for method, call := range objectOf(methods) {
			now := partOf(is, "paths", path, method)
			if now == nil {
				say("%s %s is gone", method, path)
				continue
			}
			for _, p := range listOf(partOf(call, "parameters")) {
				if named(listOf(partOf(now, "parameters")), partOf(p, "name")) == nil {
					say("%s %s: parameter %v is gone", method, path, partOf(p, "name"))
				}
			}
			for _, p := range listOf(partOf(now, "parameters")) {
				before := named(listOf(partOf(call, "parameters")), partOf(p, "name"))
				if partOf(p, "required") == true && (before == nil || partOf(before, "required") != true) {
					say("%s %s: parameter %v is newly required", method, path, partOf(p, "name"))
				}
			}
			if partOf(now, "requestBody", "required") == true && partOf(call, "requestBody", "required") != true {
				say("%s %s: a body is newly required", method, path)
			}
			for code := range objectOf(partOf(call, "responses")) {
				if partOf(now, "responses", code) == nil {
					say("%s %s: answer %s is gone", method, path, code)
				}
			}
		}
	}
	inputs := inputsOf(was)
	for name, schema := range objectOf(partOf(was, "components", "schemas")) {
		now := partOf(is, "components", "schemas", name)
		if now == nil {
			say("schema %s is gone", name)
			continue
		}
		lost(name, schema, now, inputs[name], say)
	}
	slices.Sort(out)
	return out
}

func named(params []any, name any) any {
	i := slices.IndexFunc(params, func(p any) bool { return partOf(p, "name") == name })
	if i < 0 {
		return nil
	}
	return params[i]
}

// inputsOf are the schemas of bodies that are sent, and those inside them.
func inputsOf(doc map[string]any) map[string]bool {
	out := map[string]bool{}
	var walk func(of any)
	walk = func(of any) {
		switch v := of.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				name := ref[strings.LastIndex(ref, "/")+1:]
				if !out[name] {
					out[name] = true
					walk(partOf(doc, "components", "schemas", name))
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	for _, methods := range objectOf(doc["paths"]) {
		for _, call := range objectOf(methods) {
			walk(partOf(call, "requestBody"))
		}
	}
	return out
}

// lost compares two schemas of one place, and those inside.
func lost(place string, was, is any, input bool, say func(string, ...any)) {
	for field, schema := range objectOf(partOf(was, "properties")) {
		now := partOf(is, "properties", field)
		if now == nil {
			say("%s.%s is gone", place, field)
			continue
		}
		lost(place+"."+field, schema, now, input, say)
	}
	for _, word := range listOf(partOf(was, "enum")) {
		if !slices.Contains(listOf(partOf(is, "enum")), word) && partOf(is, "enum") != nil {
			say("%s: the word %v is gone", place, word)
		}
	}
	for _, field := range listOf(partOf(is, "required")) {
		if input && !slices.Contains(listOf(partOf(was, "required")), field) {
			say("%s.%v is newly required", place, field)
		}
	}
	for _, field := range listOf(partOf(was, "required")) {
		if !input && !slices.Contains(listOf(partOf(is, "required")), field) {
			say("%s.%v may be left out now", place, field)
		}
	}
	if a, b := fmt.Sprint(partOf(was, "type")), fmt.Sprint(partOf(is, "type")); a != b {
		say("%s is %s, and was %s", place, b, a)
	}
	if a, b := partOf(was, "$ref"), partOf(is, "$ref"); a != b {
		say("%s is %v, and was %v", place, b, a)
	}
	if items := partOf(was, "items"); items != nil {
		lost(place+"[]", items, partOf(is, "items"), input, say)
	}
	if values := partOf(was, "additionalProperties"); objectOf(values) != nil {
		lost(place+"{}", values, partOf(is, "additionalProperties"), input, say)
	}
}

// /v1 only grows: what worked with the last release works with this one.
func TestNothingOfTheLastReleaseIsGoneFromTheAPI(t *testing.T) {
	require.Empty(t, broken(pageOf(t, releasedPage), pageOf(t, openAPIPage)))
}

// Each is something that a change could take from those who call.
func TestEachRemovalFromTheAPIIsFound(t *testing.T) {
	was := pageOf(t, releasedPage)
	schema := func(d map[string]any, name string) map[string]any {
		return objectOf(partOf(d, "components", "schemas", name))
	}
	drop := func(name, field string) func(map[string]any) {
		return func(d map[string]any) { delete(objectOf(schema(d, name)["properties"]), field) }
	}
	require1 := func(name, field string) func(map[string]any) {
		return func(d map[string]any) { s := schema(d, name); s["required"] = append(listOf(s["required"]), field) }
	}
	path := func(p string) func(map[string]any) { return func(d map[string]any) { delete(objectOf(d["paths"]), p) } }
	word := func(name, field string) func(map[string]any) {
		return func(d map[string]any) {
			s := objectOf(partOf(d, "components", "schemas", name, "properties", field))
			s["enum"] = listOf(s["enum"])[1:]
		}
	}
	mutants := map[string]struct {
		change func(map[string]any)
		says   string
	}{
		"a path":       {path("/v1/status"), "get /v1/status is gone"},
		"another path": {path("/metrics"), "get /metrics is gone"},
		"a method":     {func(d map[string]any) { delete(objectOf(partOf(d, "paths", "/v1/act")), "post") }, "post /v1/act is gone"},
		"a parameter": {func(d map[string]any) {
			o := objectOf(partOf(d, "paths", "/v1/logs", "get"))
			o["parameters"] = listOf(o["parameters"])[1:]
		}, "parameter app is gone"},
		"a wanted parameter": {func(d map[string]any) {
			objectOf(listOf(partOf(d, "paths", "/v1/logs", "get", "parameters"))[1])["required"] = true
		}, "parameter service is newly required"},
		"a new parameter that is wanted": {func(d map[string]any) {
			o := objectOf(partOf(d, "paths", "/v1/status", "get"))
			o["parameters"] = append(listOf(o["parameters"]), map[string]any{"name": "tenant", "required": true})
		}, "parameter tenant is newly required"},
		"a body that is wanted": {func(d map[string]any) {
			objectOf(partOf(d, "paths", "/v1/sync", "post"))["requestBody"] = map[string]any{"required": true}
		}, "post /v1/sync: a body is newly required"},
		"an answer": {func(d map[string]any) {
			delete(objectOf(partOf(d, "paths", "/v1/act", "post", "responses")), "default")
		}, "answer default is gone"},
		"a schema":              {func(d map[string]any) { delete(objectOf(partOf(d, "components", "schemas")), "Acted") }, "schema Acted is gone"},
		"a field":               {drop("Acted", "says"), "Acted.says is gone"},
		"a field of an input":   {drop("ActRequest", "for"), "ActRequest.for is gone"},
		"a field of the status": {drop("Status", "host"), "Status.host is gone"},
		"a field deep inside":   {drop("InstanceStatus", "slot"), "InstanceStatus.slot is gone"},
		"a wanted input":        {require1("ActRequest", "for"), "ActRequest.for is newly required"},
		"a wanted input that is new": {func(d map[string]any) {
			objectOf(schema(d, "ApproveRequest")["properties"])["ticket"] = map[string]any{"type": "string"}
			require1("ApproveRequest", "ticket")(d)
		}, "ApproveRequest.ticket is newly required"},
		"a field that may be left out": {func(d map[string]any) { s := schema(d, "Status"); s["required"] = listOf(s["required"])[1:] }, "may be left out now"},
		"another type":                 {func(d map[string]any) { objectOf(partOf(schema(d, "Acted"), "properties", "says"))["type"] = "integer" }, "Acted.says is integer, and was string"},
		"another type inside a list": {func(d map[string]any) {
			objectOf(partOf(schema(d, "AppStatus"), "properties", "notes", "items"))["type"] = "integer"
		}, "AppStatus.notes[] is integer"},
		"another schema in its place": {func(d map[string]any) {
			objectOf(partOf(schema(d, "Status"), "properties", "sources", "items"))["$ref"] = "#/components/schemas/Error"
		}, "Status.sources[] is #/components/schemas/Error"},
		"a word of a phase": {word("ServiceStatus", "phase"), "the word"},
	}
	require.GreaterOrEqual(t, len(mutants), 20)
	require.Empty(t, broken(was, pageOf(t, releasedPage)))
	for name, m := range mutants {
		is := pageOf(t, releasedPage)
		m.change(is)
		require.Contains(t, strings.Join(broken(was, is), "\n"), m.says, name)
	}
	grown := pageOf(t, releasedPage)
	objectOf(grown["paths"])["/v1/new"] = map[string]any{"get": map[string]any{}}
	objectOf(schema(grown, "Acted")["properties"])["more"] = map[string]any{"type": "string"}
	require.Empty(t, broken(was, grown), "to grow is no removal")
}
