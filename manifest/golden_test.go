package manifest

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write the golden files anew")

// pin is the same for every golden version: versions differ by specs only.
var pin = ring.Pin{Image: "example.org/app:1@sha256:" + strings.Repeat("0", 64)}

// archive reads a commit from a txtar file.
func archive(t testing.TB, file string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range a.Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

// golden is what a golden file holds: the plan, and the version of each service.
type golden struct {
	Plan     ring.Plan               `json:"plan"`
	Versions map[string]ring.Version `json:"versions"`
	Contents []string                `json:"contents,omitempty"`
}

func goldenOf(t *testing.T, files map[string]string) golden {
	t.Helper()
	plan, contents := Read(repo(files), settings())
	g := golden{Plan: plan, Versions: map[string]ring.Version{}}
	for _, a := range plan.Apps {
		for i, s := range a.Services {
			a.Services[i].Composed = nil // real Compose judges it: cmd/gitring
			g.Versions[string(ring.ID(a.Name, s.Name))] = ring.VersionOf(&a, &s, pin)
		}
	}
	g.Contents = sortedKeys(contents)
	return g
}

// The version of a service decides whether it is touched. These files freeze
// format 1: a change here would roll every service of every user, and needs
// format 2 instead.
func TestVersionsOfFormat1(t *testing.T) {
	if ring.Format != "1" {
		t.Fatal("these golden files are of format 1")
	}
	files, _ := filepath.Glob("testdata/versions/*.txtar")
	if len(files) < 5 {
		t.Fatal("the golden files are missing")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := dump(t, goldenOf(t, archive(t, file))) + "\n"
			want := strings.TrimSuffix(file, ".txtar") + ".golden"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(b), got); d != "" {
				t.Error(d)
			}
		})
	}
}

// corpus is every app of the test data.
func corpus(t testing.TB) []string {
	t.Helper()
	a, _ := filepath.Glob("testdata/versions/*.txtar")
	b, _ := filepath.Glob("testdata/apps/*.txtar")
	if len(b) < 15 {
		t.Fatalf("only %d apps in the test data", len(b))
	}
	return append(a, b...)
}

// Apps written after the idioms of well-known software pass as they are.
func TestKnownAppsPass(t *testing.T) {
	for _, file := range corpus(t) {
		plan, contents := Read(repo(archive(t, file)), settings())
		if plan.Refusal != nil || plan.Refused != nil || len(plan.Apps) == 0 {
			t.Errorf("%s: %v %s", file, plan.Refusal, dump(t, plan.Refused))
		}
		for _, a := range plan.Apps {
			checkApp(t, a, contents)
		}
	}
}

// checkApp holds for every app that was not refused.
func checkApp(t *testing.T, a ring.App, contents map[string]ring.Content) {
	t.Helper()
	if !sort.SliceIsSorted(a.Services, func(i, j int) bool { return a.Services[i].Name < a.Services[j].Name }) {
		t.Errorf("%s: services are not sorted", a.Name)
	}
	for _, s := range a.Services {
		if s.Written != ring.WrittenHash(s.Spec) || s.Line == 0 || s.File == "" || s.Pin != (ring.Pin{}) || s.Version != "" || s.Changed != "" {
			t.Errorf("%s/%s is not as a plan's service is: %s", a.Name, s.Name, dump(t, s))
		}
		for _, at := range s.Spec.Networks {
			if _, ok := a.Network(at.Network); !ok {
				t.Errorf("%s/%s joins network %s, which the app does not have", a.Name, s.Name, at.Network)
			}
		}
		for _, m := range s.Spec.Mounts {
			if m.Kind == ring.MountContent && (contents[m.Source].Hash != m.Source || !m.ReadOnly) {
				t.Errorf("%s/%s mounts content that is not there, or writable: %+v", a.Name, s.Name, m)
			}
		}
		if up, down := s.Rollout.Room(max(1, s.Replicas)); up+down == 0 {
			t.Errorf("%s/%s could never roll", a.Name, s.Name)
		}
	}
}

// What the store keeps of an app must be equal to what is read anew, or an
// unchanged commit would seem to change it.
func TestAPlanSurvivesTheStore(t *testing.T) {
	for _, file := range corpus(t) {
		plan, _ := Read(repo(archive(t, file)), settings())
		b, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		var back ring.Plan
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		for i := range plan.Apps {
			plan.Apps[i].Places, plan.Apps[i].Naming = nil, nil
			for j := range plan.Apps[i].Services {
				plan.Apps[i].Services[j].Places = nil // they live as long as the plan is read
			}
		}
		if !reflect.DeepEqual(plan, back) {
			t.Errorf("%s: %s", file, cmp.Diff(plan, back))
		}
	}
}

func TestEqualCommitsGiveEqualBytes(t *testing.T) {
	for _, file := range corpus(t) {
		files := archive(t, file)
		first := dump(t, goldenOf(t, files))
		for range 5 {
			if again := dump(t, goldenOf(t, files)); again != first {
				t.Fatalf("%s: %s", file, cmp.Diff(first, again))
			}
		}
	}
}

// The order of keys in a file means nothing.
func TestTheOrderOfKeysChangesNothing(t *testing.T) {
	for _, file := range corpus(t) {
		for seed := range uint64(4) {
			files, rng := archive(t, file), rand.New(rand.NewPCG(seed, 1))
			want := withoutLines(goldenOf(t, files))
			shuffled := map[string]string{}
			for name, text := range files {
				shuffled[name] = text
				if ext := filepath.Ext(name); (ext == ".yaml" || ext == ".yml") && manifestName(name) {
					shuffled[name] = shuffle(t, text, rng)
				}
			}
			if got := withoutLines(goldenOf(t, shuffled)); got != want {
				t.Fatalf("%s, seed %d: %s", file, seed, cmp.Diff(want, got))
			}
		}
	}
}

func manifestName(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, "compose.") || strings.HasPrefix(base, "docker-compose.") || base == gitringFile
}

func withoutLines(g golden) string {
	for i := range g.Plan.Apps {
		for j := range g.Plan.Apps[i].Services {
			g.Plan.Apps[i].Services[j].Line = 0
		}
	}
	b, _ := json.MarshalIndent(g, "", " ")
	return string(b)
}

// shuffle writes YAML with the keys of every mapping in another order.
func shuffle(t *testing.T, text string, rng *rand.Rand) string {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		for _, c := range n.Content {
			visit(c)
		}
		if n.ShortTag() == tagNull {
			n.Value = "null" // written as a text otherwise
		}
		if n.Kind == yaml.MappingNode && !anchored(n) {
			rng.Shuffle(len(n.Content)/2, func(i, j int) {
				n.Content[2*i], n.Content[2*j] = n.Content[2*j], n.Content[2*i]
				n.Content[2*i+1], n.Content[2*j+1] = n.Content[2*j+1], n.Content[2*i+1]
			})
		}
	}
	visit(&doc)
	b, err := yaml.Marshal(&doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anchored: an alias may not come before its anchor, so a mapping with one
// anywhere below keeps its order.
func anchored(n *yaml.Node) bool {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return true
	}
	for _, c := range n.Content {
		if anchored(c) {
			return true
		}
	}
	return false
}
