package setup

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Keys of a configuration that stay as a person wrote them, where they are there: the files
// may lie elsewhere, and are not asked for.
var keptKeys = []string{"auth", "allowed_signers", "openpgp_keys"}

// merged is the configuration that is here with the answers of this run in it. What init does
// not ask about stays, as do comments; a source of another name is added.
func merged(here []byte, answers string) (string, error) {
	var have, want yaml.Node
	if err := yaml.Unmarshal(here, &have); err != nil {
		return "", fmt.Errorf("cannot read what is there: %w", err)
	}
	if err := yaml.Unmarshal([]byte(answers), &want); err != nil {
		return "", fmt.Errorf("cannot read the answers: %w", err)
	}
	if len(have.Content) == 0 || have.Content[0].Kind != yaml.MappingNode {
		return answers, nil
	}
	mergeMapping(have.Content[0], want.Content[0])
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&have); err != nil {
		return "", fmt.Errorf("cannot write the configuration: %w", err)
	}
	return b.String(), nil
}

// mergeMapping puts the keys of want into have.
func mergeMapping(have, want *yaml.Node) {
	for i := 0; i < len(want.Content); i += 2 {
		key, value := want.Content[i], want.Content[i+1]
		is := valueOf(have, key.Value)
		switch {
		case is == nil:
			key.HeadComment, key.FootComment = "", ""
			have.Content = append(have.Content, key, value)
		case slices.Contains(keptKeys, key.Value):
		case key.Value == "sources" && is.Kind == yaml.SequenceNode:
			mergeSources(is, value)
		case is.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			mergeMapping(is, value)
		case is.Kind == yaml.ScalarNode && value.Kind == yaml.ScalarNode && is.Value == value.Value:
		default:
			value.HeadComment, value.LineComment, value.FootComment = is.HeadComment, is.LineComment, is.FootComment
			*is = *value
		}
	}
}

// mergeSources merges the source of the answers into the one of its name.
func mergeSources(have, want *yaml.Node) {
	for _, source := range want.Content {
		name := valueOf(source, "name")
		at := slices.IndexFunc(have.Content, func(s *yaml.Node) bool {
			is := valueOf(s, "name")
			return is != nil && name != nil && is.Value == name.Value
		})
		if at < 0 && len(have.Content) == 1 && valueOf(have.Content[0], "name") == nil {
			at = 0 // it is named after its url
		}
		if at < 0 {
			have.Content = append(have.Content, source)
			continue
		}
		mergeMapping(have.Content[at], source)
	}
}

// valueOf is the value of a key; nil where a mapping has none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// added is a file of signers with one more; what is in it stays.
func added(here []byte, signer string) string {
	if len(here) > 0 && !bytes.HasSuffix(here, []byte("\n")) {
		here = append(slices.Clone(here), '\n')
	}
	return string(here) + strings.TrimPrefix(signer, "\n")
}

// signersPath is the file of signers: the one that the configuration here names, else the one
// that init writes.
func (in *Setup) signersPath() string {
	if in.before != nil {
		file := in.before.Trust.AllowedSigners
		if in.Result.key.openPGP {
			file = in.before.Trust.OpenPGPKeys
		}
		if file != "" {
			return file
		}
	}
	return filepath.Join(filepath.Dir(in.Result.Config), in.signersName())
}
