package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bin is a gitring built from this tree.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gitring-corpus-test-")
	if err != nil {
		panic(err)
	}
	bin = filepath.Join(dir, "gitring")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/gitring").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// measured runs the program on the clones of testdata, with a Compose that
// refuses files in which imagee stands.
func measured(t *testing.T, flags ...string) result {
	t.Helper()
	dir := t.TempDir()
	compose := filepath.Join(dir, "docker-compose")
	require.NoError(t, os.WriteFile(compose, []byte("#!/bin/sh\n! grep -q imagee ./*compose.y*ml || { echo unknown key imagee >&2; exit 1; }\n"), 0o755))
	var text bytes.Buffer
	args := append([]string{"-bin", bin, "-compose", compose, "-clones", "testdata/clones", "-o", "json"}, flags...)
	require.NoError(t, run(t.Context(), args, &text, &bytes.Buffer{}))
	var r result
	require.NoError(t, json.Unmarshal(text.Bytes(), &r))
	return r
}

// appOf is one file of a result.
func appOf(t *testing.T, r result, repo, folder string) app {
	t.Helper()
	for _, have := range r.Repos {
		for _, a := range have.Apps {
			if have.Name == repo && a.Folder == folder {
				return a
			}
		}
	}
	require.Failf(t, "not measured", "%s %s", repo, folder)
	return app{}
}

func TestTheCorpusIsMeasuredAsANewUserWouldFindIt(t *testing.T) {
	r := measured(t)
	require.Len(t, r.Repos, 2)
	require.Len(t, r.Repos[0].Apps, 4, "what lies in a hidden folder is no app")
	require.Equal(t, 1, r.Repos[0].Elsewhere, "stack.yml has services and another name")

	for _, tt := range []struct {
		repo, folder   string
		compose, owner string // the code of the only refusal, "" where it passes
	}{
		{repo: "attic", folder: "web"},
		{repo: "attic", folder: "media", compose: "PolicyDenied"},
		{repo: "attic", folder: "hosts/nas/files", compose: notSeen, owner: notSeen},
		{repo: "attic", folder: "typo", compose: "UnknownKey", owner: "UnknownKey"},
		{repo: "basement", folder: "db"},
		{repo: "basement", folder: "wiki"},
	} {
		a := appOf(t, r, tt.repo, tt.folder)
		for profile, code := range map[string]string{"compose": tt.compose, "owner": tt.owner} {
			o := a.Profiles[profile]
			require.Equal(t, code == "", o.Passes, "%s %s: %v", tt.folder, profile, o.Refusals)
			if code != "" {
				require.Len(t, o.Refusals, 1)
				require.Equal(t, code, o.Refusals[0].Code, tt.folder)
			}
		}
		require.Equal(t, tt.folder != "typo", *a.Compose, tt.folder)
	}
	require.Equal(t, "unknown key imagee", appOf(t, r, "attic", "typo").ComposeSays)
	require.Equal(t, 5, appOf(t, r, "attic", "media").Profiles["compose"].Refusals[0].Line)

	reached, of := r.ninety("owner")
	require.Equal(t, []int{1, 2}, []int{reached, of}, "two of three that Compose takes pass in the attic, all in the basement")
}

func TestAListedFolderIsFoundHoweverDeepItLies(t *testing.T) {
	a := appOf(t, measured(t, "-listed", "-profile", "owner"), "attic", "hosts/nas/files")
	require.True(t, a.Profiles["owner"].Passes, "%v", a.Profiles["owner"].Refusals)
}

func TestWorkingFoldersStayWhereAFolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	measured(t, "-profile", "owner", "-work", dir)
	text, err := os.ReadFile(filepath.Join(dir, "basement", "env", "db", "db.env"))
	require.NoError(t, err)
	require.Equal(t, "POSTGRES_PASSWORD=changeme\n", string(text))
	require.FileExists(t, filepath.Join(dir, "attic", "attic", "web", "compose.yaml"))
}

func TestACloneIsNotEdited(t *testing.T) {
	before := textOf(t, "testdata/clones")
	measured(t, "-listed")
	require.Equal(t, before, textOf(t, "testdata/clones"))
}

func textOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	c, err := readClone(t.Context(), dir)
	require.NoError(t, err)
	require.NotEmpty(t, c.files)
	texts := map[string]string{}
	for _, f := range c.files {
		text, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		texts[f] = string(text)
	}
	return texts
}

func TestAnswers(t *testing.T) {
	a := answers{
		clone: "testdata/clones/basement", apps: map[string]string{"wiki": "wiki/compose.yaml"},
		files: map[string]map[string]string{}, stands: map[string]string{},
	}
	asked := []refusal{
		{App: "wiki", File: "wiki/compose.yaml", Line: 5, Says: "variable WIKI_PASSWORD is required and not set: set it"},
		{App: "wiki", File: "wiki/compose.yaml", Line: 6, Says: "variable WIKI_DB_HOST is not set and has no default"},
		{App: "db", File: "db/compose.yaml", Line: 4, Says: "the commit does not hold db/db.env", Hint: "put it as <env.dir>/db/db.env"},
	}
	require.True(t, a.answerRefusals(asked))
	require.False(t, a.answerRefusals(asked), "what was answered is not asked again")
	require.Equal(t, map[string]map[string]string{
		"wiki/.env": {"WIKI_PASSWORD": `"a b"`, "WIKI_DB_HOST": "example.org"}, // the example says the one, the name the other
		"db/db.env": {"POSTGRES_PASSWORD": "changeme"},
	}, a.files)
	require.Equal(t, map[string]string{"wiki/.env": "wiki/.env", "db/db.env": "db/db.env"}, a.stands)
}

func TestAValueOfAnExampleMayReferToThoseBeforeIt(t *testing.T) {
	a := answers{clone: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(a.clone, ".env.example"), []byte("STACK='wiki'\nAPP=\"${STACK}-app\"\nDB=$STACK-db\nODD=${NOWHERE}\n"), 0o600))
	require.Equal(t, map[string]string{"STACK": "'wiki'", "APP": `"wiki-app"`, "DB": "wiki-db"}, a.exampleOf(".", ".env"))
}

func TestAPlaceholderIsNoAnswer(t *testing.T) {
	for value, is := range map[string]bool{"<DNS1>": true, `"<your name>"`: true, "a<b>": false, "": false} {
		require.Equal(t, is, placeholder.MatchString(value), value)
	}
	require.Equal(t, "/srv/pwd", guessed("web", "PWD", "      - $PWD/conf:/conf"))
	require.Equal(t, "/srv/pwd", guessed("web", "PWD", "      - ${PWD}/conf:/conf"))
}

// Of variants of one stack Compose runs one.
func TestAlternativesAreCountedApart(t *testing.T) {
	clash := refusal{Code: "Conflict", Says: "service a of app x and service a of app y would both be called container_name db on the engine"}
	of := func(refusals ...refusal) app {
		return app{Profiles: map[string]outcome{"owner": {Passes: len(refusals) == 0, Refusals: refusals}}}
	}
	res := result{Repos: []repo{{Name: "a", Apps: []app{of(), of(clash)}}, {Name: "b", Apps: []app{of(), of(clash, refusal{Code: "Unsupported"})}}}}
	reached, all := res.ninety("owner")
	require.Equal(t, []int{0, 2}, []int{reached, all})
	reached, all = res.ninetyBut("owner", outcome.alternative)
	require.Equal(t, []int{1, 2}, []int{reached, all})
}

func TestAllAppsOfOneNameAreRenamed(t *testing.T) {
	m := &measurement{settings: settings{listed: true}, names: map[string]string{}, apps: map[string]string{"a/latest": "a/latest/compose.yaml", "b/Latest": "b/Latest/compose.yaml", "c": "c/compose.yaml"}}
	require.True(t, m.renameRefused([]refusal{{Code: "AppTaken", File: "a/latest/compose.yaml", Says: "two apps are called latest: a/latest and b/Latest"}}))
	require.Equal(t, map[string]string{"a/latest": "a-latest", "b/Latest": "b-latest"}, m.names)
}

func TestReasonsOfSeveralFilesAreOne(t *testing.T) {
	for _, two := range [][2]refusal{
		{{Code: "UndefinedVariable", Says: "variable A is not set and has no default"}, {Code: "UndefinedVariable", Says: "variable B is not set and has no default"}},
		{
			{Code: "PolicyDenied", Says: "services.web.volumes /mnt/a: is a path of the host outside the app's own data"},
			{Code: "PolicyDenied", Says: "services.db.volumes /mnt/b: is a path of the host outside the app's own data"},
		},
		{{Code: "PolicyDenied", Rule: "mounts.nested", Says: "one"}, {Code: "PolicyDenied", Rule: "mounts.nested", Says: "other"}},
	} {
		require.Equal(t, two[0].reason(), two[1].reason())
	}
	require.NotEqual(t, refusal{Code: "PolicyDenied", Rule: "mounts.links"}.reason(), refusal{Code: "PolicyDenied", Rule: "mounts.nested"}.reason())
}

func TestCompareNamesWhatIsNewlyRefused(t *testing.T) {
	one := func(refusals ...refusal) map[string]outcome {
		return map[string]outcome{"owner": {Passes: len(refusals) == 0, Refusals: refusals}}
	}
	subnet := refusal{Code: "PolicyDenied", File: "a/compose.yaml", Line: 9, Says: "networks.n: the subnet is public"}
	build := refusal{Code: "Unsupported", File: "b/compose.yaml", Line: 3, Says: "services.b.build would build"}
	before := result{Profiles: []string{"owner"}, Repos: []repo{{Name: "r", Apps: []app{
		{File: "a/compose.yaml", Profiles: one()},
		{File: "b/compose.yaml", Profiles: one(build)},
		{File: "c/compose.yaml", Profiles: one(build)},
		{File: "d/compose.yaml", Profiles: one(build)},
		{File: "e/compose.yaml", Profiles: one()},
	}}}}
	after := result{Profiles: []string{"owner"}, Repos: []repo{{Name: "r", Apps: []app{
		{File: "a/compose.yaml", Profiles: one(subnet)},
		{File: "b/compose.yaml", Profiles: one(build, subnet)},
		{File: "c/compose.yaml", Profiles: one()},
		{File: "d/compose.yaml", Profiles: one(build)},
	}}}}
	c := compare(before, after).Profiles[0]
	require.Equal(t, 4, c.Files)
	require.Equal(t, []change{{"r", "a/compose.yaml", []refusal{subnet}}}, c.Refused)
	require.Equal(t, []change{{"r", "b/compose.yaml", []refusal{subnet}}}, c.Reasons)
	require.Equal(t, []change{{"r", "c/compose.yaml", []refusal{build}}}, c.Passing)
	require.Equal(t, []string{"only before: r/e/compose.yaml"}, c.Gone)

	var b strings.Builder
	compare(before, after).print(&b)
	require.Contains(t, b.String(), "of 4 files 1 newly refused (25.0 in 100), 1 more with a new reason, 1 newly pass")
	require.Contains(t, b.String(), "    a/compose.yaml:9 PolicyDenied networks.n: the subnet is public\n")
}

func TestFlagsThatDoNotFitAreToldApart(t *testing.T) {
	for _, args := range [][]string{{}, {"-before", "x"}, {"-clones", "testdata/clones", "-o", "xml"}} {
		require.ErrorContains(t, run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}), "cannot")
	}
}

func TestAGuessFitsTheLineItIsFor(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"MAIN_DNS", "      - ${MAIN_DNS}", "192.168.1.10"},
		{"APP_IMAGE_TAG", "    image: redis:${APP_IMAGE_TAG}", "1"},
		{"APP_IMAGE", "    image: ${APP_IMAGE}", "alpine:3"},
		{"NETWORK", "        - subnet: ${NETWORK}", "/24"},
		{"NAME_DB", "    container_name: ${NAME_DB}", "web-name_db"},
	} {
		if got := guessed("web", c.name, c.line); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s in %q: %s", c.name, c.line, got)
		}
	}
}

func TestAnIncludedFolderIsPartOfWhatIncludesIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"compose.yaml":      "# all of it\r\ninclude:\r\n  - web/compose.yaml\n  # - off/compose.yaml # not now\n  - path: ./db/compose.yaml\n\nservices: {}\n",
		"web/compose.yaml":  "services: {web: {image: a}}\n",
		"db/compose.yaml":   "services: {db: {image: a}}\n",
		"off/compose.yaml":  "services: {off: {image: a}}\n",
		"wiki/compose.yaml": "services: {wiki: {image: a, env_file: [include.yaml]}}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	c, err := readClone(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{".", "off", "wiki"}, sortedKeys(c.withoutIncluded(c.apps())))
}

func TestLongFoldersHaveNamesOfTheirOwn(t *testing.T) {
	long := strings.Repeat("roles-backup-files-docker-", 3)
	a, b := plainName(long+"app_ok_1"), plainName(long+"app_ok_2")
	require.NotEqual(t, a, b)
	require.LessOrEqual(t, len(a), 60)
}
