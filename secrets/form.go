package secrets

import (
	"bytes"
	"encoding/json"
	"regexp"

	"gopkg.in/yaml.v3"
)

// Form is how an encrypted file is written.
type Form string

// The five forms of SOPS, and files of age itself.
const (
	YAML   Form = "yaml"
	JSON   Form = "json"
	Env    Form = "env"
	INI    Form = "ini"
	Binary Form = "binary"
	Age    Form = "age"
)

const (
	ageIntro  = "age-encryption.org/v1\n"
	ageArmor  = "-----BEGIN AGE ENCRYPTED FILE-----"
	metaName  = "sops"
	envPrefix = "sops_"
)

var (
	envMark   = regexp.MustCompile(`(?m)^sops_mac=`)
	iniMark   = regexp.MustCompile(`(?m)^[ \t]*\[sops\][ \t\r]*$`)
	metaMarks = []*regexp.Regexp{regexp.MustCompile(`\bsops["']?\s*:`), regexp.MustCompile(`\bmac["']?\s*:`), regexp.MustCompile(`\blastmodified["']?\s*:`)}
	// sealedText is in no file by chance.
	sealedText = []byte("ENC[AES256_GCM,data:")
)

// FormOf is the form of an encrypted file, and false when it is not encrypted. The content
// decides, whatever the file's name.
func FormOf(body []byte) (Form, bool) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case bytes.HasPrefix(body, []byte(ageIntro)), bytes.HasPrefix(trimmed, []byte(ageArmor)):
		return Age, true
	case bytes.HasPrefix(trimmed, []byte("{")) && hasMarks(body):
		return formOfJSON(body)
	case envMark.Match(body):
		return Env, true
	case iniMark.Match(body):
		return INI, true
	case hasMarks(body) && hasYAMLMetadata(body):
		return YAML, true
	}
	return "", false
}

// hasMarks reports whether all names of metadata stand in a text: cheap, and true of each
// file in yaml or json that SOPS wrote.
func hasMarks(body []byte) bool {
	for _, m := range metaMarks {
		if !m.Match(body) {
			return false
		}
	}
	return true
}

// formOfJSON tells the three that begin with a brace: yaml may, too.
func formOfJSON(body []byte) (Form, bool) {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		return JSON, bytes.Contains(body, sealedText)
	}
	var meta map[string]json.RawMessage
	if json.Unmarshal(top[metaName], &meta) != nil || meta["mac"] == nil || meta["lastmodified"] == nil {
		return "", false
	}
	if _, has := top["data"]; has && len(top) == 2 {
		return Binary, true
	}
	return JSON, true
}

// hasYAMLMetadata reports whether a text is yaml with metadata in it. A text that is no
// yaml, but holds an encrypted value, counts as one: it is refused then, and not mounted.
func hasYAMLMetadata(body []byte) bool {
	var doc yaml.Node
	if yaml.NewDecoder(bytes.NewReader(body)).Decode(&doc) != nil || len(doc.Content) != 1 {
		return bytes.Contains(body, sealedText)
	}
	top := doc.Content[0]
	for i := 0; top.Kind == yaml.MappingNode && i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == metaName && top.Content[i+1].Kind == yaml.MappingNode {
			names := map[string]bool{}
			for j := 0; j < len(top.Content[i+1].Content); j += 2 {
				names[top.Content[i+1].Content[j].Value] = true
			}
			if names["mac"] && names["lastmodified"] {
				return true
			}
		}
	}
	return false
}
