package imagesign

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// object are the members of a JSON object. Names count letter by letter, and one that is
// there twice is a fault: two readers of it could take two values.
type object map[string]json.RawMessage

// strictly reads an object that has no other members than those that are known. Nothing may
// follow it.
func strictly(body []byte, known ...string) (object, error) {
	o, err := readObject(body)
	if err != nil {
		return nil, err
	}
	for name := range o {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("a member %q that is not known", name)
		}
	}
	return o, nil
}

func readObject(body []byte) (object, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("no text")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("no object")
	}
	o := object{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, errors.New("no object")
		}
		key, ok := name.(string)
		if _, twice := o[key]; !ok || twice {
			return nil, fmt.Errorf("a member %q that is there twice", key)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errors.New("no object")
		}
		o[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("no object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something behind the object")
	}
	return o, nil
}

// text is a member that is a string; "" where it is none or is not there.
func (o object) text(name string) string {
	var s *string
	if err := json.Unmarshal(o[name], &s); err != nil || s == nil {
		return ""
	}
	return *s
}

// list are the items of a member that is an array; nil where it is none.
func (o object) list(name string) []json.RawMessage {
	var all []json.RawMessage
	if err := json.Unmarshal(o[name], &all); err != nil {
		return nil
	}
	return all
}

// bytes are those that a member holds in base64, in its one plain form.
func (o object) bytes(name string) ([]byte, error) {
	return plainBase64(o.text(name))
}

func plainBase64(s string) ([]byte, error) {
	if s == "" {
		return nil, errors.New("nothing")
	}
	for _, r := range s {
		if r == '\n' || r == '\r' { // which the decoder passes over
			return nil, errors.New("no base64")
		}
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}
