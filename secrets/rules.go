package secrets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Rule is what .sops.yaml says of a file: for whom it is encrypted, and what of it.
type Rule struct {
	// For are the apps that the file is to serve. No .sops.yaml says them.
	For     []string
	Age     []string // recipients of age and ssh
	OpenPGP []string // fingerprints
	choice  selection
	// onlySealed has the MAC cover what is encrypted alone.
	onlySealed bool
}

// RuleFor is the first creation rule of a .sops.yaml that matches a path, which is relative
// to the folder of that file. What a rule says and gitring does not carry out is refused by
// name and line; rules that do not match may say anything.
func RuleFor(config []byte, path string) (Rule, error) {
	var top struct {
		Rules []yaml.Node `yaml:"creation_rules"`
	}
	if err := yaml.Unmarshal(config, &top); err != nil {
		return Rule{}, faultOfFile(0, "is no .sops.yaml", "https://getsops.io/docs has its form")
	}
	for i := range top.Rules {
		n := &top.Rules[i]
		matches, err := ruleMatches(n, path)
		if err != nil {
			return Rule{}, err
		}
		if matches {
			return readRule(n)
		}
	}
	return Rule{}, faultOfForm(0, "no rule of it is for "+oneLine(path), "add one to creation_rules")
}

// ruleMatches reports whether a rule is for a path; one without a pattern is for all.
func ruleMatches(n *yaml.Node, path string) (bool, error) {
	pattern, _ := scalarOf(n, "path_regex")
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false, faultOfForm(n.Line, "its path_regex is no pattern", "mend the pattern")
	}
	return re.MatchString(path), nil
}

func scalarOf(n *yaml.Node, name string) (string, bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1].Value, true
		}
	}
	return "", false
}

// readRule reads one rule strictly.
func readRule(n *yaml.Node) (Rule, error) {
	var r Rule
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := r.take(n.Content[i], n.Content[i+1]); err != nil {
			return r, err
		}
	}
	if len(r.Age)+len(r.OpenPGP) == 0 {
		return r, faultOfForm(n.Line, "the rule names no recipient", "add age: with what gitring secret keys prints on the host")
	}
	return r, r.choice.whole(nil)
}

func (r *Rule) take(name, value *yaml.Node) error {
	var err error
	switch {
	case name.Value == "path_regex":
	case name.Value == "age":
		r.Age, err = namesOf(name, value)
	case name.Value == "pgp":
		r.OpenPGP, err = namesOf(name, value)
	case name.Value == "mac_only_encrypted":
		err = value.Decode(&r.onlySealed)
		if err != nil {
			err = faultOfForm(name.Line, "its mac_only_encrypted is neither true nor false", "mend it")
		}
	case slices.Contains(selectionNames, name.Value):
		err = r.choice.take(entry{name: name.Value, line: name.Line, value: value.Value})
	case name.Value == "key_groups":
		err = r.oneGroup(name, value)
	default:
		err = faultOfForm(name.Line, "the rule has "+oneLine(name.Value)+", which gitring does not carry out", "encrypt this file with sops")
	}
	return err
}

// oneGroup takes a single group of keys: it is a list of recipients like any other.
func (r *Rule) oneGroup(name, value *yaml.Node) error {
	if value.Kind != yaml.SequenceNode || len(value.Content) != 1 || value.Content[0].Kind != yaml.MappingNode {
		return faultOfForm(name.Line, "the rule has several key_groups (Shamir)", "give one list of keys")
	}
	group := value.Content[0]
	for i := 0; i+1 < len(group.Content); i += 2 {
		if key := group.Content[i]; key.Value != "age" && key.Value != "pgp" {
			return faultOfForm(key.Line, "the rule has "+oneLine(key.Value)+", which gitring does not carry out", "encrypt this file with sops")
		}
		if err := r.take(group.Content[i], group.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// namesOf are recipients: a list, or one text with commas.
func namesOf(name, value *yaml.Node) (out []string, err error) {
	texts := []string{value.Value}
	if value.Kind != yaml.ScalarNode {
		texts = nil
		if value.Kind != yaml.SequenceNode || value.Decode(&texts) != nil {
			return nil, faultOfForm(name.Line, "its "+name.Value+" is no list of recipients", "give texts")
		}
	}
	for _, text := range texts {
		for one := range strings.SplitSeq(text, ",") {
			if one = strings.TrimSpace(one); one != "" && !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// FormOfName is the form that sops takes for a file of this name.
func FormOfName(name string) Form {
	for end, form := range map[string]Form{".yaml": YAML, ".yml": YAML, ".json": JSON, ".env": Env, ".ini": INI} {
		if strings.HasSuffix(name, end) {
			return form
		}
	}
	return Binary
}

// ParseForm reads the name of a form of SOPS.
func ParseForm(text string) (Form, error) {
	switch f := Form(text); f {
	case YAML, JSON, Env, INI, Binary:
		return f, nil
	}
	return "", fmt.Errorf("%q is no form: yaml, json, env, ini, binary", text)
}
