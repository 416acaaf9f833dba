package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/exit"
)

// onDisk writes files below a folder and returns it.
func onDisk(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prod")
	for name, body := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	return dir
}

const twoAsks = "services:\n  web:\n    image: nginx\n    cap_add: [NET_ADMIN]\n    privileged: true\n    tmpfs: [/t]\n"

// Who reads decisions by a program has all of their keys, in each verb that prints them.
func TestDecisionsAreAsTheirSchemaSays(t *testing.T) {
	body, err := os.ReadFile("../../docs/reference/decision.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("decision.json", doc))
	schema, err := compiler.Compile("decision.json")
	require.NoError(t, err)

	dir := onDisk(t, map[string]string{"web/compose.yaml": twoAsks})
	for _, verb := range [][]string{{"validate", dir}, {"plan", dir, "--profile", "compose"}, {"policy", "check", dir}, {"policy", "check", dir, "--profile", "owner"}} {
		_, out, errs := callVerb(append(verb, "-o", "json")...)
		var said struct{ Decisions []any }
		require.NoError(t, json.Unmarshal([]byte(out), &said), "%s %s", out, errs)
		require.Len(t, said.Decisions, 3, "%v: %s", verb, out)
		for _, d := range said.Decisions {
			require.NoError(t, schema.Validate(d), "%v", d)
		}
	}
}

func TestCheckTellsWhatIsDeniedAndByWhichGrantItPasses(t *testing.T) {
	dir := onDisk(t, map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx\n    cap_add: [NET_ADMIN]\n    privileged: true\n"})
	code, out, _ := callVerb("policy", "check", dir)
	require.Equal(t, exit.Refused, code)
	require.Contains(t, out, "web/compose.yaml:4: deny capabilities.add NET_ADMIN of service web:")
	require.Contains(t, out, "gitring policy suggest --app web")

	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\n" +
		"apps: [{name: web, source: prod, path: web, grants: [\n  {feature: capabilities.add, value: NET_ADMIN, reason: vpn},\n  {feature: privileged, value: true, danger: root-equivalent, reason: lab}]}]\n"})
	code, out, errs := callVerb("policy", "check", dir, "--config", file)
	require.Equal(t, exit.OK, code, out+errs)
	require.Contains(t, out, "power capabilities.add NET_ADMIN")
	require.Contains(t, out, "grant: p.yaml:3")
	require.Contains(t, out, "the policy lets 1 app")

	code, _, _ = callVerb("policy", "check", dir, "--profile", "none")
	require.Equal(t, exit.Usage, code)
}

// What cannot be read is no app that the policy lets pass.
func TestCheckSaysWhichAppsItCouldNotJudge(t *testing.T) {
	broken := "services: {web: {image: nginx, imag: x}}\n"
	code, out, errs := callVerb("policy", "check", onDisk(t, map[string]string{"web/compose.yaml": broken}))
	require.Equal(t, exit.OK, code, out+errs)
	require.NotContains(t, out, "ok:")
	require.Contains(t, out, "not judged whole: web: 1 fault of the files, which gitring validate tells")
	_, out, _ = callVerb("policy", "check", onDisk(t, map[string]string{"web/compose.yaml": broken, "db/compose.yaml": "services: {db: {image: postgres}}\n"}))
	require.Contains(t, out, "ok: the policy lets 1 app of ")
	require.Contains(t, out, "not judged whole: web: 1 fault")
}

func TestCheckTellsWhatTheFilesThemselvesMayNotSay(t *testing.T) {
	dir := onDisk(t, map[string]string{"web/compose.yaml": "services: {web: {image: nginx, use_api_socket: true}}\n"})
	code, out, _ := callVerb("policy", "check", dir)
	require.Equal(t, exit.Refused, code)
	require.Contains(t, out, "use_api_socket")
}

func TestExplainTellsOfARuleAndOfAnApp(t *testing.T) {
	code, out, _ := callVerb("policy", "explain", "capabilities.add")
	require.Equal(t, exit.OK, code)
	require.Contains(t, out, "cap_add")
	require.Contains(t, out, "gitring policy suggest")
	code, out, _ = callVerb("policy", "explain", "labels.reserved")
	require.Equal(t, exit.OK, code)
	require.Contains(t, out, "no grant")

	dir := onDisk(t, map[string]string{"web/compose.yaml": "services: {web: {image: nginx, cap_add: [NET_ADMIN]}}\n"})
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\n" +
		"apps: [{name: web, source: prod, path: web, grants: [{feature: capabilities.add, value: NET_ADMIN, reason: vpn}, {feature: devices, value: gpus, reason: llm, expires: 2020-01-01}]}]\n"})
	code, out, errs := callVerb("policy", "explain", "web", "--dir", dir, "--config", file)
	require.Equal(t, exit.OK, code, errs)
	require.Contains(t, out, "capabilities.add NET_ADMIN: vpn (p.yaml:2)")
	require.Contains(t, out, "expired: it ended with 2020-01-01, not used here")
	code, _, errs = callVerb("policy", "explain", "capabilites.add", "--dir", dir)
	require.Equal(t, exit.NotFound, code)
	require.Contains(t, errs, "capabilities.add")
}

func TestAPolicyIsTriedWithVectorsOfOnesOwn(t *testing.T) {
	const good = `- name: a capability is denied
  files: {web/compose.yaml: "services: {web: {image: nginx, cap_add: [NET_ADMIN]}}"}
  expect: deny capabilities.add
- name: a site passes
  files: {web/compose.yaml: "services: {web: {image: nginx}}"}
  expect: pass
`
	file := filepath.Join(t.TempDir(), "v.yaml")
	try := func(body string, more ...string) (int, string) {
		require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
		code, out, errs := callVerb(append([]string{"policy", "test", file}, more...)...)
		return code, out + errs
	}
	code, says := try(good)
	require.Equal(t, exit.OK, code, says)
	require.Contains(t, says, "2 vectors, 0 failed")
	code, says = try(strings.Replace(good, "deny cap", "power cap", 1), "--profile", "owner")
	require.Equal(t, exit.OK, code, says)
	code, says = try(good, "--profile", "owner")
	require.Equal(t, exit.Refused, code)
	require.Contains(t, says, "a capability is denied: expected deny capabilities.add, got power capabilities.add")
	code, says = try(strings.Replace(good, "expect: pass", "expect: deny privileged", 1))
	require.Equal(t, exit.Refused, code, says)
	for body, want := range map[string]string{
		strings.Replace(good, "deny capabilities.add", "deny capabilites", 1): "expects",
		strings.Replace(good, "expect:", "expects:", 1):                       "expects",
		strings.Replace(good, "web/compose.yaml:", "../compose.yaml:", 1):     "no path in a commit",
		"a: b\n": "list",
	} {
		code, says = try(body)
		require.Equal(t, exit.Usage, code, says)
		require.Contains(t, says, want)
	}
	code, _, _ = callVerb("policy", "test")
	require.Equal(t, exit.Usage, code)
	code, _, _ = callVerb("policy", "test", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, exit.Usage, code)
}

// The shipped vectors are hundreds, and the policy of this program denies each.
func TestTheShippedVectorsHold(t *testing.T) {
	vectors, err := admission.ShippedVectors()
	require.NoError(t, err)
	require.Greater(t, len(vectors), 400)
	code, out, _ := callVerb("policy", "test", "--builtin")
	require.Equal(t, exit.OK, code, out)
}
