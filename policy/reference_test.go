package policy

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of docs/reference/policy.md")

const (
	page  = "../docs/reference/policy.md"
	begin = "<!-- rules: from policy/table.go -->\n"
	end   = "<!-- end of rules -->"
)

// The published table of rules is that of the code.
func TestTheReferenceIsTheTable(t *testing.T) {
	body, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(body), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + reference() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(body), "go test ./policy -run Reference -update")
	for _, r := range []rule{servicesRule, replicasRule, nestedRule, steeringRule} {
		require.Contains(t, before, "| `"+r.name+"` |")
	}
}

// reference has one row for all fields that one rule treats alike.
func reference() string {
	type row struct{ rule, key, lets, owner, risk string }
	rows := map[row][]string{}
	passing, parts := map[string][]string{}, map[string][]string{}
	for field, r := range table {
		if strings.HasPrefix(field, "Service") {
			continue // serve runs no swarm yet, so the page says nothing of one
		}
		if r.with != "" {
			parts[r.with] = append(parts[r.with], "`"+field+"`")
			continue
		}
		if r.name == "" {
			passing[r.key] = append(passing[r.key], "`"+field+"`")
			continue
		}
		k := row{r.name, r.key, r.lets, "", r.risk}
		if k.lets == "" {
			k.lets = "nothing"
		}
		k.owner = map[grade]string{allowed: "power", limit: "carried out", escape: "power", forbidden: "refused"}[r.grade]
		rows[k] = append(rows[k], "`"+field+"`")
	}
	var lines []string
	for k, fields := range rows {
		slices.Sort(fields)
		key := "`" + k.key + "`"
		if k.key == "" {
			key = "–"
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", k.rule, key, k.lets, k.owner, k.risk, strings.Join(fields, ", ")))
	}
	slices.Sort(lines)
	var out strings.Builder
	out.WriteString("| rule | Compose key | `compose` lets pass | `owner` | beyond that it | field |\n|---|---|---|---|---|---|\n")
	out.WriteString(strings.Join(lines, ""))
	out.WriteString("\nThese fields say more of what a rule above judges whole:\n\n| rule | field |\n|---|---|\n")
	for _, name := range sortedKeys(parts) {
		slices.Sort(parts[name])
		fmt.Fprintf(&out, "| `%s` | %s |\n", name, strings.Join(parts[name], ", "))
	}
	out.WriteString("\nThese fields may have any value under every profile:\n\n| Compose key | field |\n|---|---|\n")
	for _, key := range sortedKeys(passing) {
		slices.Sort(passing[key])
		name := "`" + key + "`"
		if key == "" {
			name = "set by gitring"
		}
		fmt.Fprintf(&out, "| %s | %s |\n", name, strings.Join(passing[key], ", "))
	}
	return out.String()
}
