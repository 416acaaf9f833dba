package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestExcludedFoldersHoldNoApps(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml": one, "archive/old/compose.yaml": one, "apps/_template/compose.yaml": one, "apps/db/compose.yaml": one,
		"stacks/old-1/compose.yaml": one, "stacks/new/compose.yaml": one, "a/b/c/compose.yaml": one, "archive/compose.yaml": one,
	}
	for _, c := range []struct {
		says string
		want []string
	}{
		{"exclude: [archive, _template/, stacks/old*]", []string{"db at apps/db", "new at stacks/new", "web at web"}},
		{"exclude: apps", []string{"archive at archive", "new at stacks/new", "old at archive/old", "old-1 at stacks/old-1", "web at web"}},
		{"exclude: [./archive, ./old, './apps/_template/', stacks/*-1]", []string{"db at apps/db", "new at stacks/new", "web at web"}},
		{"exclude: [./_template, ./new]", []string{"archive at archive", "db at apps/db", "new at stacks/new", "old at archive/old", "old-1 at stacks/old-1", "template at apps/_template", "web at web"}},
		{"depth: 1", []string{"archive at archive", "web at web"}},
		{"depth: 3\nexclude: [archive, apps, stacks]", []string{"c at a/b/c", "web at web"}},
	} {
		files[gitringFile] = "version: 1\n" + c.says + "\n"
		plan, _ := Read(repo(files), settings())
		require.Nil(t, plan.Refusal, c.says)
		if d := cmp.Diff(c.want, names(plan)); d != "" || plan.Refused != nil {
			t.Error(c.says, d, plan.Refused)
		}
	}
}

func TestASearchThatCannotBeMeantIsRefused(t *testing.T) {
	for says, want := range map[string]string{
		"exclude: ['a**']":            `exclude: "a**" is no pattern of folders`,
		"exclude: [../x]":             `is no pattern of folders`,
		"exclude: ['[']":              `is no pattern of folders`,
		"exclude: {a: b}":             "exclude is not a list",
		"depth: 17":                   `depth: "17" is not a number from 0 to 16`,
		"depth: 3\napps: [{path: a}]": "lists apps, and says how folders are searched",
		"exclud: [a]":                 "unknown key exclud",
		"version: 2\nexclude: [a]":    "",
	} {
		plan, all := Check(repo(map[string]string{gitringFile: "version: 1\n" + says + "\n", "a/compose.yaml": one}), settings())
		require.NotNil(t, plan.Refusal, says)
		require.Contains(t, all[0].Says, want, says)
		require.NotZero(t, all[0].Line, says)
	}
}

// Compose files that nothing reads are told, with the reason, and what an app reads is not.
func TestComposeFilesThatNothingReadsAreTold(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml":                "include: [parts/extra.yml]\n" + one,
		"web/parts/extra.yml":             "services: {x: {image: a}}\n",
		"web/docker-compose.prod.yml":     one,
		"web/config.yml":                  "services_list: []\n",
		"stack/stack.yml":                 "services:\n  a: {image: a}\n",
		"many/plex.compose.yaml":          "services:\n  a: {image: a}\n",
		"many/radarr.compose.yaml":        "services:\n  a: {image: a}\n",
		"a/b/c/compose.yaml":              one,
		"a/b/c/d/docker-compose.yml":      one,
		".github/workflows/ci.yml":        "services:\n  a: {image: a}\n",
		"old/compose.yaml":                one,
		"db/.env":                         "COMPOSE_FILE=prod.yaml\n",
		"db/compose.yaml":                 one,
		"db/prod.yaml":                    "services:\n  a: {image: a}\n",
		"two/compose.yaml":                one,
		"two/docker-compose.yml":          one,
		"two/compose.override.yaml":       one,
		"two/docker-compose.override.yml": one,
	}
	files["web/docker-compose.prod.yml"] = "services:\n  a: {image: a}\n"
	look := func() []NotRead {
		_, all := LookFurther(repo(files), settings())
		return all
	}
	want := []NotRead{
		{"a/b/c/compose.yaml", TooDeep, false, ""},
		{"a/b/c/d/docker-compose.yml", TooDeep, false, ""},
		{"many/plex.compose.yaml", OtherName, false, "{path: many, name: many-plex, files: [plex.compose.yaml]}"},
		{"many/radarr.compose.yaml", OtherName, false, "{path: many, name: many-radarr, files: [radarr.compose.yaml]}"},
		{"stack/stack.yml", OtherName, true, "{path: stack, files: [stack.yml]}"},
		{"web/docker-compose.prod.yml", OtherName, false, "{path: web, name: web-prod, files: [docker-compose.prod.yml]}"},
	}
	require.Empty(t, cmp.Diff(want, look()))
	require.Equal(t, []string{
		"2 Compose files are not read, too deep below the source's path, the first a/b/c/compose.yaml; say depth: in gitring.yaml, or give the source a path",
		"4 Compose files are not read, another name than Compose looks for, the first many/plex.compose.yaml; list the apps in gitring.yaml, this one as {path: many, name: many-plex, files: [plex.compose.yaml]}",
	}, SayNotRead(want))

	files[gitringFile] = "version: 1\ndepth: 4\nexclude: [old, web, many]\n"
	want = []NotRead{
		{"many/plex.compose.yaml", Excluded, false, ""},
		{"many/radarr.compose.yaml", Excluded, false, ""},
		{"old/compose.yaml", Excluded, false, ""},
		{"stack/stack.yml", OtherName, true, "{path: stack, files: [stack.yml]}"},
	}
	require.Subset(t, look(), want)
	require.Len(t, SayNotRead(look()), 1)

	files[gitringFile] = "version: 1\napps: [{path: web, targets: {site: b}}, {path: db}, {path: two}, {path: old}, {path: stack, files: [stack.yml]}]\n"
	for _, f := range look() {
		require.Equal(t, NotListed, f.Why)
		require.NotContains(t, f.File, "stack/")
		require.NotContains(t, f.File, "web/", "an app of another host is listed")
	}
	require.Len(t, look(), 4)

	// What is proposed is taken.
	entries := []string{}
	for _, n := range want {
		if n.Entry != "" {
			entries = append(entries, n.Entry)
		}
	}
	files[gitringFile] = "version: 1\napps: [{path: db}, " + strings.Join(entries, ", ") + ", {path: web}, {path: web, name: web-prod, files: [docker-compose.prod.yml]}]\n"
	plan, _ := Read(repo(files), settings())
	require.Nil(t, plan.Refusal, "%v", plan.Refusal)
	_, there := plan.App("web-prod")
	require.True(t, there, dump(t, plan.Refused))
}

// Deeper folders are searched only where gitring.yaml says so: nothing starts by an upgrade.
func TestAnUpgradeFindsNoNewApps(t *testing.T) {
	plan, _ := Read(repo(map[string]string{"a/b/c/compose.yaml": one, "a/b/compose.yaml": one}), settings())
	require.Equal(t, []string{"b at a/b"}, names(plan))
}
