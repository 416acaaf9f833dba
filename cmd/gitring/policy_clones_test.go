package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// Real Compose files under profile compose: what is refused passes with what suggest prints,
// and fails without any one of it. GITRING_CLONES is a folder of clones; it logs the counts.
func TestRealFilesPassWithWhatSuggestPrints(t *testing.T) {
	clones := os.Getenv("GITRING_CLONES")
	if clones == "" {
		t.Skip("GITRING_CLONES names no folder of clones")
	}
	names := []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}
	repos, folders, refused, passed, grants, needless := map[string]bool{}, 0, 0, 0, 0, 0
	left, rules := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(clones, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if d.IsDir() || !slices.Contains(names, d.Name()) {
			return nil
		}
		tree, err := gitsync.OpenFolder(filepath.Dir(p))
		if err != nil {
			return nil
		}
		defer tree.Close()
		c := &ring.Commit{Tree: tree}
		folders++
		policyRefusals := func(j admission.Judge) (out []*ring.Refusal) {
			_, all := j.Look(c, onProd)
			for _, r := range all {
				if r.Code == ring.PolicyDenied || r.Code == ring.RouteTaken {
					out = append(out, r)
				}
			}
			return out
		}
		plain := judgeOfPolicy(t, "")
		before := policyRefusals(plain)
		if len(before) == 0 {
			return nil
		}
		repo, _, _ := strings.Cut(strings.TrimPrefix(p, clones+"/"), "/")
		repos[repo] = true
		refused++
		s := plain.Suggest(c, onProd)
		grants += s.Grants()
		after := policyRefusals(judgeOfPolicy(t, reasoned(&s)))
		if len(after) == 0 {
			passed++
		}
		for _, r := range after {
			_, why, _ := strings.Cut(r.Hint, "; ")
			left[why]++
			t.Logf("left: %s: %s (%s)", p, r.Says, r.Hint)
		}
		for i := range s.Apps {
			for k, g := range s.Apps[i].Grants {
				rules[g.Feature]++
				less := policyRefusals(judgeOfPolicy(t, reasoned(without(&s, i, k))))
				if len(less) <= len(after) && firstSays(less) == firstSays(after) {
					needless++
					t.Errorf("%s: passes without %s %s", p, g.Feature, g.Value)
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	t.Logf("%d folders; refused by the policy %d of %d repositories; passing with the suggestion %d; grants %d, needless %d", folders, refused, len(repos), passed, grants, needless)
	for _, why := range slices.Sorted(maps.Keys(left)) {
		t.Logf("left %4d: %s", left[why], why)
	}
	for _, feature := range slices.Sorted(maps.Keys(rules)) {
		t.Logf("grants %4d: %s", rules[feature], feature)
	}
}

func firstSays(all []*ring.Refusal) string {
	var says []string
	for _, r := range all {
		says = append(says, r.Where()+r.Says)
	}
	return strings.Join(says, "\n")
}
