package manifest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// spoiled is a YAML file with some of its values and keys spoiled at random.
func spoiled(r *rand.Rand, text string, times int) string {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
		return text
	}
	var all []*yaml.Node
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		all = append(all, n)
		for _, sub := range n.Content {
			walk(sub)
		}
	}
	walk(doc.Content[0])
	for range times {
		n := all[r.IntN(len(all))]
		switch r.IntN(6) {
		case 0:
			*n = yaml.Node{Kind: yaml.ScalarNode, Value: []string{"${NOT_SET}", "", "-1", "a b", "x:y:z", "/", "../../..", "99999"}[r.IntN(8)]}
		case 1:
			*n = yaml.Node{Kind: yaml.SequenceNode}
		case 2:
			*n = yaml.Node{Kind: yaml.MappingNode}
		case 3:
			n.Value += "x"
		case 4:
			if len(n.Content) > 1 {
				n.Content = n.Content[:len(n.Content)/4*2]
			}
		case 5:
			*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		}
	}
	out, err := yaml.Marshal(&doc)
	if err != nil {
		return text
	}
	return string(out)
}

// Whatever is wrong with a file it is read to its end: nothing panics, what is
// refused has a place and a hint, and an app of which anything is told, or not
// read, is in no plan.
func TestASpoiledFileIsReadToItsEnd(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range spoiledRuns() {
		commit := archive(t, files[i%len(files)])
		for _, name := range sortedKeys(commit) {
			if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
				commit[name] = spoiled(r, commit[name], 1+r.IntN(5))
			}
		}
		first, again := Look(repo(commit), settings()), Look(repo(commit), settings())
		if d := cmp.Diff(first.Refusals, again.Refusals); d != "" {
			t.Fatalf("not the same twice: %s\n%s", d, dump(t, commit))
		}
		for _, x := range first.Refusals {
			if x.File == "" || x.Hint == "" || x.Says == "" {
				t.Fatalf("%+v\n%s", x, dump(t, commit))
			}
			if _, carried := first.Plan.App(x.App); carried {
				t.Fatalf("carried out with %v\n%s", x, dump(t, commit))
			}
			if strings.Contains(x.Says, "cannot be read whole") {
				t.Fatalf("refused without a reason\n%s", dump(t, commit))
			}
		}
	}
}

func spoiledRuns() int {
	if os.Getenv("SPOILED") != "" {
		return 20_000
	}
	return 300
}
