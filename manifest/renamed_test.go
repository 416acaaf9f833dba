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
