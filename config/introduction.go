package config

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

// Introduction is the commit where trust in a source begins: an id, or a mapping
// that also says who signed it. The zero value is the first tip that verifies.
type Introduction struct {
	Commit string `yaml:"commit"`
	Signer string `yaml:"signer"` // a principal or a whole fingerprint; "" asks for none
}

// UnmarshalYAML takes both forms.
func (i *Introduction) UnmarshalYAML(n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	wrong := func(line int, says string, args ...any) error {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: ", line) + fmt.Sprintf(says, args...)}}
	}
	if n.Kind == yaml.ScalarNode {
		i.Commit = n.Value
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return wrong(n.Line, "a list where a commit id or {commit, signer} belongs")
	}
	seen := map[string]int{}
	for at := 0; at+1 < len(n.Content); at += 2 {
		key, value := n.Content[at], n.Content[at+1]
		if first, twice := seen[key.Value]; twice {
			return wrong(key.Line, "mapping key %q already defined at line %d", key.Value, first)
		}
		seen[key.Value] = key.Line
		if value.Kind != yaml.ScalarNode {
			return wrong(value.Line, "introduction.%s is no text", key.Value)
		}
		switch key.Value {
		case "commit":
			i.Commit = value.Value
		case "signer":
			i.Signer = value.Value
		default:
			return wrong(key.Line, "field %s not found in type config.Introduction", key.Value)
		}
	}
	return nil
}

// Introduced is where trust begins; "" when the file does not say.
func (t *TrustRules) Introduced() ring.SHA { return ring.SHA(t.Introduction.Commit) }

// introduction judges where trust begins, and how the trust set counts itself.
func (k *checker) introduction(at string, t *TrustRules) {
	i := t.Introduction
	at += ".introduction"
	switch {
	case i.Commit != "":
		k.sha(at, "trust.introduction", i.Commit)
	case i.Signer != "":
		k.wrong(at, "introduction: {commit: <all 40 digits>, signer: "+i.Signer+"}", "trust.introduction has no commit")
	}
	if i.Signer != "" && t.Mode == "disabled" {
		k.wrong(at, "take the signer out, or set another mode", "trust.introduction names a signer, and mode disabled looks at no signature")
	}
}
