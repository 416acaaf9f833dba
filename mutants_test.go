package gitring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutant is a bug that somebody could make, as a change of one place.
type mutant struct {
	name     string // what the bug is
	file     string
	old, new string
	// pkg and run are the tests that have to find it.
	pkg, run string
	// says is what the test that goes red has to say; "" for anything.
	says string
}

// mutants are the catalogue, testdata/mutants/*.txt. Each is
//
//	== what the bug is
//	file reconcile/rolling.go
//	test ./reconcile TestStories|TestSimulation
//	says I1:
//	- the text that is there once
//	+ what stands in its place
//
// with as many lines of - and of + as the change needs. The line "says", which most go
// without, is what has to be red: another check that catches the bug as well is not it.
func mutants(t *testing.T) []mutant {
	t.Helper()
	files, err := filepath.Glob("testdata/mutants/*.txt")
	require.NoError(t, err)
	var all []mutant
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for i, block := range strings.Split("\n"+string(text), "\n== ") {
			if i == 0 {
				continue // what the file says of itself
			}
			m, err := readMutant(block)
			require.NoError(t, err, "%s: %s", name, block)
			all = append(all, m)
		}
	}
	return all
}

func readMutant(block string) (mutant, error) {
	name, rest, _ := strings.Cut(block, "\n")
	m := mutant{name: name}
	var minus, plus []string
	for _, line := range strings.Split(strings.TrimRight(rest, "\n"), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "file":
			m.file = value
		case "test":
			m.pkg, m.run, _ = strings.Cut(value, " ")
		case "says":
			m.says = value
		case "-":
			minus = append(minus, value)
		case "+":
			plus = append(plus, value)
		case "":
		default:
			return m, fmt.Errorf("cannot read the line %q", line)
		}
	}
	m.old, m.new = strings.Join(minus, "\n"), strings.Join(plus, "\n")
	if m.file == "" || m.run == "" || m.old == "" || m.old == m.new {
		return m, errors.New("it lacks its file, its test or its change")
	}
	return m, nil
}

// mutated is the file of m with the bug in it. Leading tabs are as in the file:
// a line is found wherever it stands.
func (m *mutant) mutated() ([]byte, error) {
	b, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(b, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("cannot make the mutant %q: its text is %d times in %s, not once", m.name, n, m.file)
	}
	return bytes.Replace(b, []byte(m.old), []byte(m.new), 1), nil
}

// TestEveryMutantCanStillBeMade keeps the catalogue true to the code.
func TestEveryMutantCanStillBeMade(t *testing.T) {
	all := mutants(t)
	require.GreaterOrEqual(t, len(all), 40)
	names := map[string]bool{}
	for _, m := range all {
		require.False(t, names[m.name], "twice: %s", m.name)
		names[m.name] = true
		if _, err := m.mutated(); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryMutantIsCaught is "make mutants": it makes each bug of the catalogue,
// one at a time and never in the tree itself, and wants a test to go red.
// GITRING_MUTANTS is "all", or a part of the names to try.
func TestEveryMutantIsCaught(t *testing.T) {
	which := os.Getenv("GITRING_MUTANTS")
	if which == "" {
		t.Skip("make mutants runs this")
	}
	caught, tried := 0, 0
	green := map[string]error{} // the same tests without a bug, by package and names
	for _, m := range mutants(t) {
		if which != "all" && !strings.Contains(m.name, which) {
			continue
		}
		tried++
		err, known := green[m.pkg+" "+m.run]
		if !known {
			err = m.soundWithout(t)
			green[m.pkg+" "+m.run] = err
		}
		by := ""
		if err == nil {
			by, err = m.caught(t)
		}
		switch {
		case err != nil:
			t.Errorf("%s: %v", m.name, err)
		case by == "":
			t.Errorf("SURVIVED  %-70s %s", m.name, m.file)
		default:
			caught++
			fmt.Printf("caught    %-70s %-28s %s\n", m.name, m.file, by)
		}
	}
	require.NotZero(t, tried, "no mutant has %q in its name; testdata/mutants lists them", which)
	fmt.Printf("%d of %d mutants caught\n", caught, tried)
}

// soundWithout runs the tests on the tree as it is: a test that is red anyway
// catches nothing.
func (m *mutant) soundWithout(t *testing.T) error {
	as, err := os.ReadFile(m.file)
	if err != nil {
		return err
	}
	by, _, err := m.redWith(t, as)
	if err == nil && by != "" {
		err = fmt.Errorf("%s is red without any bug", by)
	}
	return err
}

// caught runs the tests on the mutant and is the first one that goes red.
func (m *mutant) caught(t *testing.T) (by string, err error) {
	bug, err := m.mutated()
	if err != nil {
		return "", err
	}
	by, out, err := m.redWith(t, bug)
	if err == nil && by != "" && !strings.Contains(out, m.says) {
		err = fmt.Errorf("%s is red, and nothing of it says %q", by, m.says)
	}
	return by, err
}

// redWith runs the tests with the mutant's file as given, and is the first that goes
// red, "" when none does, and what they said.
func (m *mutant) redWith(t *testing.T, bug []byte) (by, says string, err error) {
	dir := t.TempDir()
	file := filepath.Join(dir, filepath.Base(m.file))
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return "", "", err
	}
	if err := errors.Join(os.WriteFile(file, bug, 0o600), os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-timeout", "9m", "-overlay", filepath.Join(dir, "overlay.json"), "-run", m.run, m.pkg)
	cmd.Env = append(os.Environ(), "GITRING_SIM_N=4000")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", "", nil
	case !errors.As(err, &exit), bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return "", "", fmt.Errorf("the mutant does not build: %w\n%s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if by, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			return strings.Fields(by)[0], string(out), nil
		}
	}
	return "a panic or the time limit", string(out), nil
}
