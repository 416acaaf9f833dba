package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// slot is one line of a good file, and what it may say instead: with what is
// told of it then, each a code and a word of the sentence.
type slot struct{ good, bad, told string }

// slots are independent of each other: no fault of one explains another's. Those
// of keys, values, variables, references, files, x-gitring and policy are mixed.
var slots = []slot{
	{good: "services:"},
	{good: "  web:"},
	{"    image: nginx:1", "    image: 'nginx:${TAG}'", "UndefinedVariable TAG"},
	{"    command: [serve]", "    command: serve && wait", "BadValue shell operator"},
	{"    environment: {A: b}", "    environment: {A: '${NO}'}", "UndefinedVariable NO"},
	{"    env_file: []", "    env_file: [no.env]", "BadValue web/no.env"},
	{"    depends_on: [db]", "    depends_on: [db, dbb]", "BadValue depends on dbb"},
	{"    networks: [front]", "    networks: [front, back]", "BadValue network back"},
	{"    privileged: false", "    privileged: true", "PolicyDenied services.web.privileged"},
	{"    cap_add: []", "    cap_add: [NET_ADMIN]", "PolicyDenied cap_add NET_ADMIN"},
	{"    volumes:", "    volumes: # /etc", ""},
	{"      - data:/data", "      - date:/data", "BadValue volume date"},
	{"      - ./conf:/conf:ro", "      - ../../conf:/conf:ro", "OutsideCommit conf"},
	{"      - ./logs:/logs", "      - /etc:/logs", "PolicyDenied volumes /etc"},
	{"    ports:", "    ports: #", ""},
	{"      - '8080:80'", "      - '8080:http'", "BadValue \"http\" is no port"},
	{"      - '8081:81'", "      - '${PORT}:81'", "UndefinedVariable PORT"},
	{"    labels: {a: b}", "    labels: {gitring.app: b}", "PolicyDenied reserved"},
	{"    tmpfs: ['/run:size=1m']", "    tmpfs: ['/run:size=much']", "BadValue \"much\" is no size"},
	{"    restart: always", "    restart: sometimes", "BadValue restart \"sometimes\""},
	{"    x-gitring:", "    x-gitring: #", ""},
	{"      kind: worker", "      kind: wrker", "BadValue kind: \"wrker\""},
	{"      share: false", "      shar: false", "UnknownKey shar"},
	{"      checks: [{tcp: {port: 80}}]", "      checks: [{tcp: {port: 0}}]", "BadValue \"0\" is not a number"},
	{"      rollout: {drain_delay: 5s}", "      rollout: {drain_delay: soon}", "BadValue \"soon\""},
	{good: "  db:"},
	{"    image: postgres:17", "    build: .", "Unsupported services.db.build"},
	{"    hostname: db", "    hostnam: db", "UnknownKey services.db.hostnam"},
	{"    healthcheck: {test: x, interval: 5s}", "    healthcheck: {test: x, interval: 5}", "BadValue healthcheck.interval"},
	{"    pid: ''", "    pid: host", "PolicyDenied services.db.pid host"},
	{"    deploy: {replicas: 1}", "    deploy: {replicas: one}", "BadValue \"one\""},
	{"    secrets: [token]", "    secrets: [token, tokens]", "BadValue secret tokens"},
	{"    mem_limit: 1g", "    mem_limit: lots", "BadValue mem_limit"},
	{"    extra_hosts: ['a:10.0.0.1']", "    extra_hosts: ['a']", "BadValue extra_hosts"},
	{"    logging: {driver: local, options: {max-size: 1m}}", "    logging: {driver: local, options: {max-sise: 1m}}", "UnknownKey max-sise"},
	{"volumes: {data: {}, more: {}}", "volumes: {data: {}, more: {driver_op: {}}}", "UnknownKey volumes.more.driver_op"},
	{"networks: {front: {driver: bridge}}", "networks: {front: {driver: overlay}}", "Unsupported overlay"},
	{"secrets: {token: {file: ./token}}", "secrets: {token: {file: ./tokn}}", "BadValue web/tokn"},
	{"x-own: {a: b}", "x-gitring: {a: b}", "UnknownKey where only secrets is read"},
}

// spoiledSlots is the file with some slots bad, and what is to be told of it.
func spoiledSlots(bad func(i int) bool) (text string, want []string) {
	var b strings.Builder
	for i, s := range slots {
		line := s.good
		if s.bad != "" && bad(i) {
			line = s.bad
			if s.told != "" {
				want = append(want, fmt.Sprintf("web/compose.yaml:%d: %s", i+1, s.told))
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String(), want
}

func lookAt(files map[string]string) (ring.Plan, []*ring.Refusal) {
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return admission.Anywhere(policy.Compose).Look(&ring.Commit{Tree: tree}, manifest.Settings{Source: "prod", Path: ".", Host: "edge-1"})
}

// differs is "" where refusals are what is wanted: one for each, in order.
func differs(want []string, got []*ring.Refusal) string {
	var told []string
	for _, r := range got {
		told = append(told, fmt.Sprintf("%s: %s %s", r.Where(), r.Code, r.Says))
	}
	if len(want) != len(told) {
		return fmt.Sprintf("want %d\n%s\ngot %d\n%s", len(want), strings.Join(want, "\n"), len(told), strings.Join(told, "\n"))
	}
	for i, w := range want {
		place, rest, _ := strings.Cut(w, ": ")
		code, word, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(told[i], place+": "+code+" ") || !strings.Contains(told[i], word) {
			return fmt.Sprintf("want %s\ngot  %s", w, told[i])
		}
	}
	return ""
}

// Whichever faults a file has, validate tells exactly these: all of them, each
// once, and nothing that is only their consequence.
func TestValidateTellsExactlyTheFaultsThatThereAre(t *testing.T) {
	beside := func(text string) map[string]string {
		return map[string]string{"web/compose.yaml": text, "web/token": "x", "web/conf/a": "b"}
	}
	good, _ := spoiledSlots(func(int) bool { return false })
	plan, refusals := lookAt(beside(good))
	require.Empty(t, refusals)
	require.Len(t, plan.Apps, 1)
	all, want := spoiledSlots(func(int) bool { return true })
	_, refusals = lookAt(beside(all))
	require.Empty(t, differs(want, refusals), all)
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.SliceOfNDistinct(rapid.IntRange(0, len(slots)-1), 0, len(slots), rapid.ID[int]).Draw(t, "bad")
		text, want := spoiledSlots(func(i int) bool { return slices.Contains(bad, i) })
		plan, refusals := lookAt(beside(text))
		if d := differs(want, refusals); d != "" {
			t.Fatalf("%s\n%s", d, text)
		}
		if (len(plan.Apps) == 1) != (len(want) == 0) || (plan.Refused["web"] != nil) != (len(want) > 0) {
			t.Fatalf("%d faults, and the plan has %d apps", len(want), len(plan.Apps))
		}
	})
}

// A plan has one refusal for each app. Its code is that of the first thing that
// manifest refuses; the policy's come behind it.
func TestThePlanCountsWhatThePolicyRefusesToo(t *testing.T) {
	text := "services:\n  web:\n    image: a\n    privileged: true\n    restart: never\n    cap_add: [NET_ADMIN]\n"
	plan, refusals := lookAt(map[string]string{"web/compose.yaml": text})
	require.Len(t, refusals, 3)
	r := plan.Refused["web"]
	require.Equal(t, ring.BadValue, r.Code)
	require.Equal(t, "web/compose.yaml:5", r.Where())
	require.Contains(t, r.Says, "(and 2 more: line 4: services.web.privileged: ")
	require.Equal(t, "web", r.App)
}

// An app without a name is judged too: by the policy nothing hangs on it.
func TestAnAppWithoutANameIsHeldToThePolicyToo(t *testing.T) {
	_, refusals := lookAt(map[string]string{"+/compose.yaml": "services:\n  web:\n    image: a\n    privileged: true\n    volumes: ['./d:/d', 'data:/e']\nvolumes: {data: {}}\n"})
	require.Empty(t, differs([]string{"+/compose.yaml:1: BadName +", "+/compose.yaml:4: PolicyDenied privileged"}, refusals))
}

// What a later file says and cannot be read is not what an earlier one said.
func TestAnEarlierWordIsNotJudgedForALaterOne(t *testing.T) {
	_, refusals := lookAt(map[string]string{
		"web/compose.yaml":          "services:\n  web:\n    image: a\n    privileged: true\n",
		"web/compose.override.yaml": "services:\n  web:\n    privileged: ${P}\n",
	})
	require.Empty(t, differs([]string{"web/compose.override.yaml:3: UndefinedVariable P"}, refusals))
}

// A first evening in one run: the list of apps, their files and the policy.
func TestMistakesOfTheListHideNothingOfTheApps(t *testing.T) {
	plan, refusals := lookAt(map[string]string{
		"gitring.yaml":      "apps: [{path: a}, {path: b, hold: {}}]\n",
		"a/compose.yaml":    "services:\n  web:\n    image: a\n    privileged: true\n",
		"b/compose.yaml":    "services:\n  web:\n    image: a\n    restart: nevr\n    pid: host\n",
		"b/not-read.yaml":   "services: {}\n",
		"left/compose.yaml": "services:\n  web:\n    privileged: true\n",
	})
	require.Empty(t, differs([]string{
		"a/compose.yaml:4: PolicyDenied privileged",
		"b/compose.yaml:4: BadValue nevr",
		"b/compose.yaml:5: PolicyDenied pid",
		"gitring.yaml:1: BadValue a hold has no reason",
		"gitring.yaml:1: BadValue version",
	}, refusals))
	require.NotNil(t, plan.Refusal, "none of it is carried out")
	require.Empty(t, plan.Apps)
	require.Empty(t, plan.Refused)
}
