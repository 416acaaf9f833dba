package gitsync

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestTwoAppsAreInOneHandWhereNobodyHasOneOfThemAlone(t *testing.T) {
	const shop, blog, root = "apps/shop/compose.yaml", "apps/blog/compose.yaml", "compose.yaml"
	for _, tt := range []struct {
		name     string
		bindings []Binding
		a, b     string
		one      bool
	}{
		{"nobody is bound", nil, shop, blog, true},
		{"bound to roles", []Binding{{Signer: "a", Roles: []Role{RoleImages}}}, shop, blog, true},
		{"bound to both", []Binding{{Signer: "a", Paths: []string{"apps/**"}}}, shop, blog, true},
		{"bound to neither", []Binding{{Signer: "a", Paths: []string{"docs/**"}}}, shop, blog, true},
		{"bound to both by two lines", []Binding{{Signer: "a", Paths: []string{"apps/shop/**"}}, {Signer: "a", Paths: []string{"apps/blog/*"}}}, shop, blog, true},
		{"the same file of both", []Binding{{Signer: "a", Paths: []string{"apps/*/config.json"}}}, shop, blog, true},
		{"bound to one", []Binding{{Signer: "a", Paths: []string{"apps/shop/**"}}}, shop, blog, false},
		{"bound to a file of one", []Binding{{Signer: "a", Paths: []string{"apps/shop/data/x"}}}, shop, blog, false},
		{"bound to all of one and a file of the other", []Binding{{Signer: "a", Paths: []string{"apps/shop/**", "apps/blog/x"}}}, shop, blog, false},
		{"below the root", []Binding{{Signer: "a", Paths: []string{"apps/shop/**"}}}, shop, root, false},
		{"by the middle of a pattern", []Binding{{Signer: "a", Paths: []string{"**/shop/*"}}}, shop, blog, false},
		{"bound at another source", []Binding{{Signer: "a", Paths: []string{"apps/shop/**"}, Sources: []string{"lab"}}}, shop, blog, true},
		{"somebody else is bound to both", []Binding{{Signer: "a", Paths: []string{"apps/**"}}, {Signer: "b", Paths: []string{"apps/blog/**"}}}, shop, blog, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trust := &Trust{source: "prod", branch: "main", cfg: TrustConfig{Mode: Strict, Bindings: tt.bindings}}
			require.Equal(t, tt.one, trust.hands().One(tt.a, tt.b))
			require.Equal(t, tt.one, trust.hands().One(tt.b, tt.a))
			trust.cfg.Bindings, trust.repo = nil, &repoSigners{grants: map[string][]Binding{"key": tt.bindings}}
			if tt.name != "somebody else is bound to both" {
				require.Equal(t, tt.one, trust.hands().One(tt.a, tt.b), "the repository's bindings count as the configuration's")
			}
		})
	}
	require.True(t, Hands{}.One(shop, blog))
}

func TestANewBindingIsANewPrint(t *testing.T) {
	trust := &Trust{source: "prod", branch: "main", cfg: TrustConfig{Mode: Strict}}
	before := trust.hands().Print()
	trust.cfg.Bindings = []Binding{{Signer: "a", Paths: []string{"apps/shop/**"}}}
	require.NotEqual(t, before, trust.hands().Print())
}

// What is said of patterns is held to all files of a small world, matched one by one.
func TestPatternsHoldAndMeetAsTheirFilesDo(t *testing.T) {
	var all func(parts []string, upTo int) [][]string
	all = func(parts []string, upTo int) (out [][]string) {
		for _, p := range parts {
			out = append(out, []string{p})
			if upTo > 1 {
				for _, rest := range all(parts, upTo-1) {
					out = append(out, append([]string{p}, rest...))
				}
			}
		}
		return out
	}
	patterns, files := all([]string{"a", "a*", "*", "**"}, 3), all([]string{"a", "ab", "c"}, 4)
	matches := make([][]bool, len(patterns))
	for i, p := range patterns {
		for _, f := range files {
			matches[i] = append(matches[i], ring.MatchPath(strings.Join(p, "/"), strings.Join(f, "/")))
		}
	}
	held, apart := 0, 0
	for i, w := range patterns {
		for j, n := range patterns {
			holds, meet := patternHolds(w, n), patternsMeet(w, n)
			for k, f := range files {
				if byW, byN := matches[i][k], matches[j][k]; holds && byN && !byW {
					t.Fatalf("%v is said to hold %v, and %v is of the other alone", w, n, f)
				} else if !meet && byN && byW {
					t.Fatalf("%v and %v are said not to meet, and %v is of both", w, n, f)
				}
			}
			if holds {
				held++
			}
			if !meet {
				apart++
			}
		}
	}
	require.Greater(t, held, 500)
	require.Greater(t, apart, 500)
	for _, same := range []string{"apps/shop/**", "**", "a/*/b", "a[b]/x"} {
		require.True(t, patternHolds(strings.Split(same, "/"), strings.Split(same, "/")))
	}
}
