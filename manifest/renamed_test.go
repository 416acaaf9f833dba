package manifest

import (
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
)

// An app that was renamed finds no values under its new name, and its author is told where
// this host has them.
func TestValuesOfAnAppsFormerNameAreNamed(t *testing.T) {
	const body = "services:\n  web: {image: 'a:${TAG}', volumes: ['data:/d'], env_file: [more.env]}\nvolumes:\n  data: {}\n"
	taken := strings.Replace(body, "data: {}", "data: {x-gitring: {from: shop}}", 1)
	shop := map[string][]byte{".env": []byte("TAG=1\n")}
	for _, tc := range []struct {
		name, body string
		data       []ring.DataAnswer
		env        map[string]map[string][]byte
		want       bool
	}{
		{"by its file", taken, nil, map[string]map[string][]byte{"shop": shop}, true},
		{"by a trailer", body, []ring.DataAnswer{{App: "store", From: "shop"}}, map[string]map[string][]byte{"shop": shop}, true},
		{"another app's trailer", body, []ring.DataAnswer{{App: "other", From: "shop"}}, map[string]map[string][]byte{"shop": shop}, false},
		{"it begins empty", body, []ring.DataAnswer{{App: "store", From: "none"}}, map[string]map[string][]byte{"none": shop}, false},
		{"nothing was renamed", body, nil, map[string]map[string][]byte{"shop": shop}, false},
		{"the host has none", taken, nil, nil, false},
		{"it has its own", taken, nil, map[string]map[string][]byte{"shop": shop, "store": {".env": []byte("B=1\n")}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := repo(map[string]string{"store/compose.yaml": tc.body})
			c.Data = tc.data
			_, all := Check(c, Settings{Source: "prod", Env: tc.env, EnvKey: []byte("k")})
			if len(all) != 2 {
				t.Fatalf("%v", all)
			}
			for _, r := range all {
				if got := strings.Contains(r.Hint, "mv <env.dir>/shop <env.dir>/store"); got != tc.want {
					t.Errorf("%s: %s", r.Says, r.Hint)
				}
			}
		})
	}
}

// An app that was moved with git mv, and has no volumes, is told of the folder of its old name,
// where that has what it lacks.
func TestValuesOfAnAppThatLeftWithTheCommitAreNamed(t *testing.T) {
	const compose = "services:\n  web: {image: 'a:${TAG}', env_file: [more.env]}\n"
	all := map[string][]byte{".env": []byte("TAG=1\n"), "more.env": []byte("A=1\n")}
	for _, tc := range []struct {
		name    string
		inForce []string
		env     map[string]map[string][]byte
		folder  string // another one in the commit
		want    int    // how many of the two refusals say so
	}{
		{"it was moved", []string{"shop"}, map[string]map[string][]byte{"shop": all}, "", 2},
		{"it is not in force", nil, map[string]map[string][]byte{"shop": all}, "", 0},
		{"it is still in the commit", []string{"shop"}, map[string]map[string][]byte{"shop": all}, "shop", 0},
		{"the host has no such folder", []string{"shop"}, nil, "", 0},
		{"it has the file alone", []string{"shop"}, map[string]map[string][]byte{"shop": {"more.env": []byte("A=1\n")}}, "", 1},
		{"it has other values", []string{"shop"}, map[string]map[string][]byte{"shop": {".env": []byte("B=1\n")}}, "", 0},
		{"the new name has its own", []string{"shop"}, map[string]map[string][]byte{"shop": all, "store": {".env": []byte("B=1\n")}}, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := map[string]string{"store/compose.yaml": compose}
			if tc.folder != "" {
				tree[tc.folder+"/compose.yaml"] = "services:\n  web: {image: 'a:${TAG}'}\n"
			}
			_, list := Check(repo(tree), Settings{Source: "prod", Env: tc.env, EnvKey: []byte("k"), InForce: tc.inForce})
			got := 0
			for _, r := range list {
				if strings.HasPrefix(r.Hint, "this host has values for shop, which is in force and not in this commit") && strings.Contains(r.Hint, ": mv <env.dir>/shop <env.dir>/store; else ") {
					got++
				}
			}
			if got != tc.want {
				t.Errorf("%d say so: %v", got, list)
			}
		})
	}
}
