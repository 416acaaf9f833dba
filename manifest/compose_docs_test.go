package manifest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
)

const composeReference = "../docs/reference/compose.md"

// parts are the tables of the reference: the keys below each prefix.
var parts = []struct{ title, prefix string }{
	{"The file", ""},
	{"A service", "services.*."},
	{"A network", "networks.*."},
	{"A volume", "volumes.*."},
	{"A config", "configs.*."},
	{"A secret", "secrets.*."},
	{"An entry of `include`", "include.*."},
}

// partOf is the index of the table that a key stands in.
func partOf(key string) int {
	for i, p := range parts[1:] {
		if strings.HasPrefix(key, p.prefix) {
			return i + 1
		}
	}
	return 0
}

// tables are the rows of the reference as class.go has them.
func tables() string {
	var out strings.Builder
	for i, p := range parts {
		var rows []string
		for _, key := range sortedKeys(classes) {
			if partOf(key) == i {
				rows = append(rows, row(strings.TrimPrefix(key, p.prefix), classes[key]))
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(&out, "\n### %s\n\n| key | | |\n|---|---|---|\n%s", p.title, strings.Join(rows, ""))
		}
	}
	return out.String()
}

func row(key string, c class) string {
	done, says := "yes", c.how
	switch {
	case c.ignored != "":
		done = "noted"
	case c.code == ring.PolicyDenied:
		done = "never"
	case c.code != "":
		done = "no"
	case c.power:
		done = "policy"
	}
	if c.code != "" {
		says = c.says + ". Instead: " + c.hint
		if c.spared != nil {
			says += ". Beside `image` it is noted, and that image is pulled"
		}
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", key, done, escaped(says))
}

// escaped is text that is no HTML and no column of its own; between backticks
// only the column counts.
func escaped(text string) string {
	parts := strings.Split(strings.ReplaceAll(text, "|", `\|`), "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

var generated = regexp.MustCompile(`(?s)(<!-- the tables [^\n]*-->\n).*(<!-- end of the tables -->)`)

// The reference is written from class.go: go test ./manifest -run Reference -update
func TestTheComposeReferenceSaysWhatIsDone(t *testing.T) {
	b, err := os.ReadFile(composeReference)
	if err != nil {
		t.Fatal(err)
	}
	m := generated.FindSubmatchIndex(b)
	if m == nil {
		t.Fatal("the reference has no place for the tables")
	}
	want := string(b[:m[3]]) + tables() + "\n" + string(b[m[4]:])
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatal("docs/reference/compose.md says something else than class.go; go test ./manifest -run Reference -update writes its tables anew")
	}
	if err := os.WriteFile(composeReference, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// referenced are the keys of the reference as a reader finds them, by what it
// says of each.
func referenced(t *testing.T) map[string]string {
	b, err := os.ReadFile(composeReference)
	if err != nil {
		t.Fatal(err)
	}
	out, prefix := map[string]string{}, ""
	heading, line := regexp.MustCompile("^### (.*)$"), regexp.MustCompile("^\\| `([^`]+)` \\| (yes|policy|no|never|noted) \\| (.*) \\|$")
	for l := range strings.Lines(string(b)) {
		l = strings.TrimSuffix(l, "\n")
		if m := heading.FindStringSubmatch(l); m != nil {
			i := slices.IndexFunc(parts, func(p struct{ title, prefix string }) bool { return p.title == m[1] })
			if i < 0 {
				t.Fatalf("table %q is of nothing", m[1])
			}
			prefix = parts[i].prefix
		}
		if m := line.FindStringSubmatch(l); m != nil {
			out[prefix+m[1]] = m[2]
			if m[2] == "no" && !strings.Contains(m[3], "Instead: ") {
				t.Errorf("%s is refused, and the reference does not say what to write instead", m[1])
			}
		}
	}
	return out
}

// unsaid reports whether the reference refuses a key, or one above it: what is below
// a refused key has no row of its own.
func unsaid(rows map[string]string, key string) bool {
	for {
		if did := rows[key]; did == "no" || did == "never" {
			return true
		}
		i := strings.LastIndex(key, ".")
		if i < 0 {
			return false
		}
		key = key[:i]
	}
}

// Every key that Compose's own schema knows is in the reference, whatever
// class.go says.
func TestTheComposeReferenceHasEveryKey(t *testing.T) {
	rows, met := referenced(t), 0
	var walk func(s *shape, pattern string, depth int)
	walk = func(s *shape, pattern string, depth int) {
		if depth > 12 {
			return
		}
		for _, key := range sortedKeys(s.known) {
			p := join(pattern, key)
			met++
			if unsaid(rows, p) {
				continue
			}
			if rows[p] == "noted" { // nothing below it is read
				continue
			}
			if rows[p] == "" {
				t.Errorf("%s is not in docs/reference/compose.md", p)
			}
			walk(s.known[key], p, depth+1)
		}
		for _, n := range s.named {
			walk(n.shape, join(pattern, "*"), depth+1)
		}
		if s.items != nil {
			walk(s.items, join(pattern, "*"), depth+1)
		}
	}
	walk(composeShape(), "", 0)
	if met < 200 || len(rows) < 200 {
		t.Errorf("%d keys were met, %d rows were read: this checks nothing", met, len(rows))
	}
}

// What the reference refuses is refused, and nothing else: each key of a
// service is tried with a value that asks for something.
func TestTheComposeReferenceIsTrue(t *testing.T) {
	rows := referenced(t)
	for key, value := range plainUse {
		p := "services.*." + key
		image := "image: nginx"
		if key == "build" {
			image = "user: x"
		}
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services:\n  web:\n    " + image + "\n    " + key + ": " + value + "\n"}), settings())
		r := plan.Refused["web"]
		said := r != nil && (r.Code == ring.Unsupported || r.Code == ring.PolicyDenied) && strings.Contains(r.Says, "services.web."+key+" "+classes[p].says)
		if unsaid(rows, p) != (said && classes[p].says != "") {
			t.Errorf("%s: the reference says %q, and gitring %v", key, rows[p], r)
		}
	}
}
