package gitring_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ruleTables are the pages that name the tests of a list of rules, how many rows each
// list has, and the ids of a list that has gaps.
var ruleTables = []struct {
	page string
	rows map[string]int // by the letter that the ids begin with
	gaps []string
}{
	{"docs/testing/lessons-table.md", map[string]int{"U": 28, "L": 60, "A": 18, "N": 15}, nil},
	{"docs/testing/evening-table.md", map[string]int{"E": 95}, nil},
	{"docs/testing/rollout-table.md", map[string]int{"S": 7, "K": 9, "R": 27, "X": 12, "D": 13, "P": 10, "C": 12, "J": 14, "I": 20, "F": 13}, nil},
	{"docs/testing/traffic-table.md", map[string]int{"T": 32, "F": 12, "S": 6, "W": 6, "N": 14, "Q": 5}, spans("I", 16, 16, 20, 26)},
	{"docs/testing/secrets-table.md", map[string]int{"S": 20, "N": 9}, nil},
	{"docs/testing/images-table.md", map[string]int{"I": 15, "H": 11, "N": 7}, nil},
	{"docs/testing/engines-table.md", map[string]int{"E": 3, "P": 10, "S": 11}, nil},
	{"docs/testing/operating-table.md", map[string]int{"F": 12, "N": 12}, spans("O", 1, 5, 10, 17, 20, 25, 30, 36, 40, 42, 45, 45, 50, 55, 60, 64)},
}

// spans are the ids of a letter, from one number to another, and so on.
func spans(letter string, fromTo ...int) (ids []string) {
	for i := 0; i < len(fromTo); i += 2 {
		for n := fromTo[i]; n <= fromTo[i+1]; n++ {
			ids = append(ids, fmt.Sprintf("%s%02d", letter, n))
		}
	}
	return ids
}

// withoutTest begin the last column of a row that names no test.
var withoutTest = regexp.MustCompile(`^(does not apply: |not carried out: |(not built yet|no test yet)(: |$))`)

var (
	ruleRow  = regexp.MustCompile(`(?m)^\| ([A-Z]\d\d) \|(.*)\|(.*)\|$`)
	ruleTest = regexp.MustCompile("`(?:([a-z0-9/-]+)\\.(Test\\w+)(?:/([^`]+))?|([a-z0-9-]+\\.txt)|([a-z_]+\\.txtar))`")
)

// Where the files of a story and of a script are.
const (
	storyFolder  = "reconcile/testdata/stories"
	scriptFolder = "cmd/gitring/testdata/script"
)

// TestEveryRuleOfTheTablesIsShownByATest holds the pages to the source: each test,
// story and script that a row names is there, and a row that names none says why.
func TestEveryRuleOfTheTablesIsShownByATest(t *testing.T) {
	packages := map[string]testSource{}
	for _, table := range ruleTables {
		t.Run(filepath.Base(table.page), func(t *testing.T) {
			page, err := os.ReadFile(table.page)
			require.NoError(t, err)
			seen := map[string]int{}
			for _, row := range ruleRow.FindAllStringSubmatch(string(page), -1) {
				id, shown := row[1], row[3]
				seen[id]++
				for _, fault := range unshown(t, packages, shown) {
					t.Errorf("%s: %s", id, fault)
				}
			}
			ids := table.gaps
			for letter, n := range table.rows {
				ids = append(ids, spans(letter, 1, n)...)
			}
			for _, id := range ids {
				if seen[id] != 1 {
					t.Errorf("%s stands in the table %d times", id, seen[id])
				}
				delete(seen, id)
			}
			require.Empty(t, seen, "no such rows")
		})
	}
}

// unshown is what is wrong with the last column of a row: a test that is not there, a
// name that cannot be read, or neither a test nor a reason.
func unshown(t *testing.T, packages map[string]testSource, shown string) (faults []string) {
	t.Helper()
	names := ruleTest.FindAllStringSubmatch(shown, -1)
	if len(names) != strings.Count(shown, "`")/2 {
		faults = append(faults, "a name that cannot be read:"+shown)
	}
	if len(names) == 0 && !withoutTest.MatchString(strings.TrimSpace(shown)) {
		faults = append(faults, "neither a test nor a reason:"+shown)
	}
	for _, name := range names {
		dir, function, sub, story, script := name[1], name[2], name[3], name[4], name[5]
		if dir == "gitring" {
			dir = "."
		}
		switch {
		case story != "":
			faults = append(faults, absent(filepath.Join(storyFolder, story))...)
			continue
		case script != "":
			faults = append(faults, absent(filepath.Join(scriptFolder, script))...)
			continue
		case packages[dir] == nil:
			packages[dir] = readTests(t, dir)
		}
		switch texts, ok := packages[dir][function]; {
		case !ok:
			faults = append(faults, fmt.Sprintf("package %s has no test %s", dir, function))
		case sub != "" && !texts.begins(sub):
			faults = append(faults, fmt.Sprintf("%s.%s has no case that begins with %q", dir, function, sub))
		}
	}
	return faults
}

var (
	redRow   = regexp.MustCompile("(?m)^\\| `(I\\d+)` \\|(.*)\\|(.*)\\|$")
	redCheck = regexp.MustCompile("`(\\w+)`")
	redBug   = regexp.MustCompile(`\*([^*]+)\*`)
)

// TestEachInvariantHasABugThatTurnsItsCheckRed holds the second table of the invariants
// to the oracle and to the catalogue: a check that is there, and a bug that is there
// and, where the simulation checks it, has to be told as just that.
func TestEachInvariantHasABugThatTurnsItsCheckRed(t *testing.T) {
	page, err := os.ReadFile("docs/testing/rollout-table.md")
	require.NoError(t, err)
	bugs := map[string]mutant{}
	for _, m := range mutants(t) {
		bugs[m.name] = m
	}
	files, err := filepath.Glob("reconcile/sim_*.go")
	require.NoError(t, err)
	var oracle strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		oracle.Write(b)
	}
	seen := map[string]int{}
	for _, row := range redRow.FindAllStringSubmatch(string(page), -1) {
		id, where, shown := row[1], row[2], row[3]
		seen[id]++
		if strings.HasPrefix(strings.TrimSpace(shown), "does not apply: ") {
			continue
		}
		checks, told := redCheck.FindAllStringSubmatch(where, -1), false
		for _, check := range checks {
			require.True(t, strings.Contains(oracle.String(), ") "+check[1]+"("), "%s: the oracle has no %s", id, check[1])
		}
		for _, name := range redBug.FindAllStringSubmatch(shown, -1) {
			m, ok := bugs[name[1]]
			require.True(t, ok, "%s: the catalogue has no %q", id, name[1])
			require.True(t, m.says == "" || strings.HasPrefix(m.says, id+":"), "%s: %q turns another check red", id, m.name)
			told = told || m.says != "" || len(checks) == 0
		}
		require.True(t, told, "%s: no bug has to be told as this", id)
	}
	for i := 1; i <= 20; i++ {
		require.Equal(t, 1, seen[fmt.Sprint("I", i)], "I%d", i)
	}
}

func absent(file string) []string {
	if _, err := os.Stat(file); err != nil {
		return []string{"there is no " + file}
	}
	return nil
}

// TestTheRuleTablesSeeWhatIsMissing: a row that rots is found.
func TestTheRuleTablesSeeWhatIsMissing(t *testing.T) {
	for shown, says := range map[string]string{
		" `scale.txt`, `exits.txtar`, `runtime.TestFakeConforms/a taken host port is transient` ": "",
		" does not apply: nothing is counted ":                                                    "",
		" not carried out: there is no proxy ":                                                    "",
		" not built yet ":                                                                         "",
		" no test yet: it is shown by hand ":                                                      "",
		" `scale.txt`; not: what happens at night ":                                               "",
		" not built yetis ":                                                                       "neither a test nor a reason",
		"  ":                                                                                      "neither a test nor a reason",
		" it is shown by nothing ":                                                                "neither a test nor a reason",
		" `no-such-story.txt` ":                                                                   "there is no",
		" `nosuch.txtar` ":                                                                        "there is no",
		" `runtime.TestNoSuch` ":                                                                  "has no test",
		" `runtime.TestFakeConforms/a takin` ":                                                    "has no case",
		" `scale.txt`, `what a name this is` ":                                                    "cannot be read",
	} {
		faults := strings.Join(unshown(t, map[string]testSource{}, shown), "; ")
		if says == "" {
			require.Empty(t, faults, shown)
			continue
		}
		require.Contains(t, faults, says, shown)
	}
}
