package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// escapesDir has the vectors by class; its README says how a line is read.
const escapesDir = "../../admission/testdata/escapes"

// An escape is one line of a class: what a commit asks, and what is to become of it.
type escape struct {
	text, rule, owner string
	files, before     map[string]string // of the commit, and of the one before it
	at                ring.Place
}

var escapeFile = regexp.MustCompile(` ?@([a-z./]+)@ ?`)

// readEscape reads "rule | owner | body".
func readEscape(t *testing.T, line string) escape {
	t.Helper()
	parts := strings.SplitN(line, " | ", 3)
	require.Len(t, parts, 3, line)
	e := escape{text: parts[2], rule: parts[0], owner: parts[1], files: map[string]string{}, at: ring.Place{File: "web/compose.yaml", Line: 4}}
	into := e.files
	names := append([][]string{{"", "web/compose.yaml"}}, escapeFile.FindAllStringSubmatch(parts[2], -1)...)
	for i, body := range escapeFile.Split(parts[2], -1) {
		if names[i][1] == "first" {
			e.before = map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx\n"}
			into = e.before
			continue
		}
		body = strings.ReplaceAll(body, `\n`, "\n")
		if i == 0 {
			service, top, _ := strings.Cut(body, "@@")
			if !strings.HasPrefix(service, "image:") {
				service = "image: nginx\n" + service
			}
			body = "services:\n  web:\n    " + strings.ReplaceAll(strings.TrimSpace(service), "\n", "\n    ") + "\n" + topLevel(top)
		}
		into[names[i][1]] = body + "\n"
	}
	for name, body := range e.files {
		for i, text := range strings.Split(body, "\n") {
			if strings.Contains(text, "#<") {
				e.at = ring.Place{File: name, Line: i + 1}
			}
		}
	}
	return e
}

// topLevel are the lines below the service; two spaces before them begin another service.
func topLevel(s string) string {
	if strings.HasPrefix(s, "  ") {
		return s
	}
	return strings.TrimPrefix(s, " ")
}

func treeOf(files ...map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for _, some := range files {
		for name, body := range some {
			tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
		}
	}
	return tree
}

// askedOf is what becomes of a commit under a profile, and what the policy finds in the
// payloads that its apps would send.
func askedOf(profile policy.Profile, tree fstest.MapFS) (plan ring.Plan, refusals []*ring.Refusal, found []policy.Finding, apps []ring.App) {
	j := admission.Anywhere(profile)
	j.Rules.Host, j.Rules.EngineGroups, j.Rules.Listen = "edge-1", []string{"998"}, "127.0.0.1:9480"
	c := &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
	s := manifest.Settings{Source: "prod", Host: "edge-1"}
	apps = manifest.Look(c, s).Plan.Apps
	w := j.Beside("prod", apps)
	for i := range apps {
		if apps[i].Name == "web" {
			found, _ = j.Findings(&apps[i], w.Of(policy.HolderOf(&apps[i])))
		}
	}
	plan, refusals = j.Look(c, s)
	return plan, refusals, found, apps
}

// escapesByClass are all vectors, by class.
func escapesByClass(t *testing.T) map[string][]escape {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(escapesDir, "*.txt"))
	require.NoError(t, err)
	out := map[string][]escape{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		class := strings.TrimSuffix(filepath.Base(file), ".txt")
		for line := range strings.Lines(string(body)) {
			if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
				out[class] = append(out[class], readEscape(t, line))
			}
		}
	}
	return out
}

func TestEveryClassOfEscapesHasItsVectors(t *testing.T) {
	all := escapesByClass(t)
	for _, class := range []string{
		"host", "capabilities", "namespaces", "devices", "confinement", "annotations", "sysctls", "limits", "binds", "mount-targets", "start", "volumes",
		"networks", "ports", "logging", "files", "reserved-labels", "steering-labels", "names", "images", "own-keys", "chains",
	} {
		require.GreaterOrEqual(t, len(all[class]), 10, class)
	}
	total, texts := 0, map[string]bool{}
	for _, some := range all {
		for _, e := range some {
			require.False(t, texts[e.text], "twice: %s", e.text)
			texts[e.text] = true
			total++
		}
	}
	require.GreaterOrEqual(t, total, 500)
}

func TestNoEscapePassesUnderCompose(t *testing.T) {
	for class, some := range escapesByClass(t) {
		for _, e := range some {
			t.Run(class+"/"+e.text, func(t *testing.T) {
				if e.before != nil {
					plan, refusals, _, _ := askedOf(policy.Compose, treeOf(e.before))
					require.Empty(t, refusals, "the commit before passes")
					require.Len(t, plan.Apps, 1)
				}
				plan, refusals, found, apps := askedOf(policy.Compose, treeOf(e.before, e.files))
				_, there := plan.App("web")
				require.False(t, there, "it would be carried out")
				code, byManifest := strings.CutPrefix(e.rule, "!")
				if !byManifest {
					code = string(ring.PolicyDenied)
					require.True(t, deniedAt(apps, found, e), "%s at %s:%d, not %+v", e.rule, e.at.File, e.at.Line, found)
				}
				var places []string
				for _, r := range refusals {
					if string(r.Code) == code && r.File == e.at.File && r.Line == e.at.Line {
						require.NotEmpty(t, r.Hint)
						return
					}
					places = append(places, string(r.Code)+" "+r.Where()+": "+r.Says)
				}
				t.Fatalf("no %s at %s:%d but %q", code, e.at.File, e.at.Line, places)
			})
		}
	}
}

func deniedAt(apps []ring.App, found []policy.Finding, e escape) bool {
	for i := range apps {
		for _, f := range found {
			if apps[i].Name == "web" && f.Rule == e.rule && f.Verdict == policy.Deny && admission.SayingPlace(&apps[i], f) == e.at {
				return true
			}
		}
	}
	return false
}

func TestWhatOwnerDoesWithEachEscape(t *testing.T) {
	for class, some := range escapesByClass(t) {
		for _, e := range some {
			t.Run(class+"/"+e.text, func(t *testing.T) {
				plan, refusals, found, _ := askedOf(policy.Owner, treeOf(e.before, e.files))
				app, there := plan.App("web")
				verdicts := map[policy.Verdict]bool{}
				for _, f := range found {
					if f.Rule == e.rule {
						verdicts[f.Verdict] = true
					}
				}
				switch e.owner {
				case power:
					require.True(t, there, "%v", refusals)
					require.True(t, verdicts[policy.Power], "%v", found)
					require.NotEmpty(t, app.Powers)
				case carried:
					require.True(t, there, "%v", refusals)
					require.Empty(t, app.Powers)
				case denied:
					require.False(t, there)
					require.True(t, verdicts[policy.Deny], "%v", found)
				case refused:
					require.False(t, there)
					require.True(t, strings.HasPrefix(e.rule, "!"))
				default:
					t.Fatalf("owner does not know %q", e.owner)
				}
			})
		}
	}
}
