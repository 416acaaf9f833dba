package policy

import (
	"cmp"
	"slices"
)

// RuleFacts are what can be said of one rule.
type RuleFacts struct {
	Rule   string   `json:"rule"`
	Keys   []string `json:"keys"`   // of Compose, below the service, network or volume
	Risks  []string `json:"risks"`  // what it would give
	Lets   []string `json:"lets"`   // what profile compose lets pass, by default
	Owner  string   `json:"owner"`  // what profile owner does: power, carried out or refused
	Fields []string `json:"fields"` // of what is sent to the engine
	Grants bool     `json:"grants"` // whether a grant can name it
}

// Explain gives the facts of a rule, false for one that there is not.
func Explain(name string) (RuleFacts, bool) {
	out := RuleFacts{Rule: name, Grants: slices.Contains(Features(), name)}
	worst := allowed
	add := func(r rule, field string) {
		if r.name != name {
			return
		}
		worst = max(worst, r.grade)
		out.Keys, out.Risks, out.Lets = append(out.Keys, r.key), append(out.Risks, r.risk), append(out.Lets, cmp.Or(r.lets, "nothing"))
		if field != "" {
			out.Fields = append(out.Fields, field)
		}
	}
	for field, r := range table {
		add(r, field)
	}
	for _, r := range append(slices.Clone(appRules), joinRule, aliasRule, routeRule, portRule) {
		add(r, "")
	}
	if out.Risks == nil {
		return out, false
	}
	out.Owner = map[grade]string{limit: "carried out", escape: "power", forbidden: "refused"}[worst]
	out.Keys, out.Risks, out.Lets = sortedWords(out.Keys), sortedWords(out.Risks), sortedWords(out.Lets)
	slices.Sort(out.Fields)
	return out, true
}

// RuleNames are the names of all rules, in order.
func RuleNames() []string {
	var out []string
	for _, r := range table {
		if r.name != "" {
			out = append(out, r.name)
		}
	}
	for _, r := range append(slices.Clone(appRules), joinRule, aliasRule, routeRule, portRule) {
		out = append(out, r.name)
	}
	return sortedWords(out)
}
