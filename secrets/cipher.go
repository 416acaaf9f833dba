package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What SOPS uses for every value: a key of 32 bytes, a nonce of 32, a tag of 16. Another
// size is of no SOPS, and a tag that is cut short is easier to guess.
const (
	keySize   = 32
	nonceSize = 32
	tagSize   = 16
)

// sealMark begins every value that SOPS encrypted.
const sealMark = "ENC["

// sealGrammar is stricter than SOPS's own, which reads over whatever stands behind.
var sealGrammar = regexp.MustCompile(`^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]+),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]$`)

// sealed is one encrypted value.
type sealed struct {
	data, nonce, tag []byte
	label            string // the type that the value is written back as
}

// parseSealed reads an encrypted value; false when the text is none.
func parseSealed(text string) (sealed, bool) {
	m := sealGrammar.FindStringSubmatch(text)
	if m == nil {
		return sealed{}, false
	}
	var parts [3][]byte
	for i := range parts {
		b, err := base64.StdEncoding.Strict().DecodeString(m[i+1])
		if err != nil {
			return sealed{}, false
		}
		parts[i] = b
	}
	return sealed{data: parts[0], nonce: parts[1], tag: parts[2], label: m[4]}, true
}

// formFault says what of an encrypted value is not carried out; "" is nothing.
func (s sealed) formFault() string {
	switch {
	case len(s.nonce) != nonceSize:
		return fmt.Sprintf("has a nonce of %d bytes, and SOPS writes %d", len(s.nonce), nonceSize)
	case len(s.tag) != tagSize:
		return fmt.Sprintf("has a tag of %d bytes, and SOPS writes %d", len(s.tag), tagSize)
	}
	switch s.label {
	case "str", "int", "float", "bool", "time":
		return ""
	case "comment":
		return "is a comment in place of a value"
	}
	return fmt.Sprintf("has the type %s, which gitring does not read", s.label)
}

// open is the text of a value, held to the place that it was encrypted for.
func (s sealed) open(key []byte, place string) (string, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, nonceSize)
	if err != nil {
		return "", err
	}
	clear, err := gcm.Open(nil, s.nonce, append(append([]byte{}, s.data...), s.tag...), []byte(place))
	return string(clear), err
}

// typed is a text as the value that its label says.
func typed(text, label string) (any, error) {
	switch label {
	case "int":
		return strconv.Atoi(text)
	case "float":
		return strconv.ParseFloat(text, 64)
	case "bool":
		return strconv.ParseBool(text)
	case "time":
		var t time.Time
		err := t.UnmarshalText([]byte(text))
		return t, err
	}
	return text, nil
}

// seal encrypts a text with a nonce that was never used with this key.
func seal(key, nonce []byte, text, label, place string) (string, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(nonce))
	if err != nil {
		return "", err
	}
	out := gcm.Seal(nil, nonce, []byte(text), []byte(place))
	at := len(out) - tagSize
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", b64(out[:at]), b64(nonce), b64(out[at:]), label), nil
}

// placeOf is what a value is bound to: the names on the way to it.
func placeOf(path []string) string { return strings.Join(path, ":") + ":" }
