package config

import (
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/gitsync"
)

// Require is what every signature has to have besides being good.
type Require struct {
	HardwareKey  bool `yaml:"hardware_key"`
	UserVerified bool `yaml:"user_verified"`
	Approvals    int  `yaml:"approvals"` // 0 and 1 are the signer alone
}

// Signers are what signers may do: a list in the configuration, or a file.
type Signers struct {
	Bindings []gitsync.Binding
	File     string // "" where they are in the configuration
	node     yaml.Node
}

// UnmarshalYAML keeps the node: which mistakes are in it is said with its lines.
func (s *Signers) UnmarshalYAML(n *yaml.Node) error {
	s.node = *n
	return nil
}

// signers reads trust.signers, and holds what signers have to meet to the mode.
func (k *checker) signers(at string, t *TrustRules) {
	switch n := resolved(&t.Signers.node); {
	case n.IsZero():
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value != "":
		t.Signers.File = n.Value
		k.path(at+".signers", &t.Signers.File)
	case n.Kind != yaml.SequenceNode:
		k.wrong(at+".signers", "write signers: [{signer: alice@example.org, roles: [commit]}], or the name of a file with version: 1 and that list",
			"trust.signers: neither a list nor the name of a file")
	default:
		var wrong []gitsync.Mistake
		t.Signers.Bindings, wrong = gitsync.Bindings(n)
		for _, m := range wrong {
			k.mistakes = append(k.mistakes, Mistake{File: k.file, Line: m.Line, Says: "trust.signers: " + m.Says, Hint: m.Hint})
		}
	}
	if t.ExpiryGrace == nil {
		return // wrong already
	}
	if key, err := t.TrustConfig().Unfit(); err != nil {
		k.wrong(at+"."+key, "docs/reference/signers.md tells what goes together", "trust.%v", err)
	}
}
