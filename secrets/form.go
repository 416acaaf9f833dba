package secrets

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"unicode/utf16"

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
	// sealedText is in no file by chance, and a whole value in none that is not SOPS's. The
	// MAC is such a value, so each file that SOPS wrote has one.
	sealedText  = []byte("ENC[AES256_GCM,data:")
	wholeSealed = regexp.MustCompile(`ENC\[AES256_GCM,data:[A-Za-z0-9+/=]*,iv:[A-Za-z0-9+/=]{43,44},tag:[A-Za-z0-9+/=]{22,24},type:[a-z]+\]`)
	sealedLine  = regexp.MustCompile(`(?m)^[A-Za-z_][A-Za-z0-9_]*=ENC\[AES256_GCM,data:`)
)

// FormOf is the form of an encrypted file, and false when it is not encrypted. The content
// decides, whatever the file's name. One that lost its metadata counts as encrypted: taken
// for a plain one, its ciphertext would be handed to a container.
func FormOf(body []byte) (Form, bool) {
	body = asUTF8(body)
	if form, is := markedForm(body); is {
		return form, true
	}
	switch {
	case !bytes.Contains(body, sealedText) || !wholeSealed.Match(body):
		return "", false
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		return JSON, true
	case sealedLine.Match(body):
		return Env, true
	}
	return YAML, true
}

// markedForm is the form that the marks of a file tell.
func markedForm(body []byte) (Form, bool) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case bytes.HasPrefix(body, []byte(ageIntro)), bytes.HasPrefix(bytes.TrimPrefix(trimmed, []byte("\ufeff")), []byte(ageArmor)):
		return Age, true
	case !bytes.Contains(body, []byte(metaName)):
		return "", false // what follows has it, and most files have not
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

// isMarked reports whether a file has what tells its form, its metadata included.
func isMarked(body []byte) bool {
	_, is := markedForm(asUTF8(body))
	return is
}

// isUTF8 reports whether a file does not say of itself that it has two bytes a letter.
func isUTF8(body []byte) bool {
	_, is := byteOrder(body)
	return !is
}

// asUTF8 is a text of two bytes a letter as one that can be searched: the shell of Windows
// writes such files, of what sops and age print. Anything else is as it was.
func asUTF8(body []byte) []byte {
	order, is := byteOrder(body)
	if !is {
		return body
	}
	units := make([]uint16, 0, len(body)/2)
	for i := 2; i+1 < len(body); i += 2 {
		units = append(units, order.Uint16(body[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}

// byteOrder is that of a text of two bytes a letter, by the mark at its beginning.
func byteOrder(body []byte) (binary.ByteOrder, bool) {
	switch {
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		return binary.LittleEndian, true
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return binary.BigEndian, true
	}
	return nil, false
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
	for docs := yaml.NewDecoder(bytes.NewReader(body)); ; {
		var doc yaml.Node
		switch err := docs.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil || len(doc.Content) != 1:
			return bytes.Contains(body, sealedText)
		case isMetadata(doc.Content[0]):
			return true
		}
	}
}

// isMetadata reports whether a mapping has SOPS's metadata in it.
func isMetadata(top *yaml.Node) bool {
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
