package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gitring/gitring/ring"
)

// read takes a file that is written as gitring writes one, and nothing else: two readers
// may not see two things in it.
func read(file []byte) (*Proof, *Fault) {
	if len(file) > MostRead {
		return nil, &Fault{Code: TooLarge, Says: fmt.Sprintf("the file has %d bytes, and at most %d are read", len(file), MostRead)}
	}
	if f := oneValue(file); f != nil {
		return nil, f
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(file, &head); err != nil || head.Format != Format {
		return nil, &Fault{
			Code: UnknownFormat, Says: fmt.Sprintf("the format is %q, and this release reads %q", clip(head.Format), Format),
			Hint: "check it with the release that made it, or make it anew",
		}
	}
	var p Proof
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return nil, &Fault{Code: UnknownKey, Says: "the file has a key that no proof has: " + key}
		}
		return nil, &Fault{Code: BadForm, Says: "the file is no proof: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, file); err != nil {
		return nil, &Fault{Code: BadForm, Says: "the file is no JSON"}
	}
	again, err := json.Marshal(&p)
	if err != nil || !bytes.Equal(again, plain.Bytes()) {
		return nil, &Fault{Code: BadForm, Says: "the file is not written as gitring writes a proof: keys in another order or spelling, or values in another form"}
	}
	return &p, nil
}

// deepest is how deep a file may be nested.
const deepest = 16

// oneValue refuses a file that is no JSON, holds more than one value, or has a key twice in
// one object, which readers take in different ways.
func oneValue(file []byte) *Fault {
	dec := json.NewDecoder(bytes.NewReader(file))
	if f := oneKeys(dec, "", 0); f != nil {
		return f
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &Fault{Code: BadForm, Says: "something follows the proof in the file"}
	}
	return nil
}

func oneKeys(dec *json.Decoder, at string, depth int) *Fault {
	tok, err := dec.Token()
	if err != nil {
		return &Fault{Code: BadForm, Says: "the file is no JSON: it may be cut off"}
	}
	if depth > deepest {
		return &Fault{Code: BadForm, Says: fmt.Sprintf("the file is nested deeper than %d", deepest)}
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		below := at
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return &Fault{Code: BadForm, Says: "the file is no JSON: it may be cut off"}
			}
			name, _ := key.(string)
			below = strings.TrimPrefix(at+"."+name, ".")
			if seen[name] {
				return &Fault{Code: DuplicateKey, Says: fmt.Sprintf("the file has the key %q twice", clip(below))}
			}
			seen[name] = true
		}
		if f := oneKeys(dec, below, depth+1); f != nil {
			return f
		}
	}
	if _, err := dec.Token(); err != nil {
		return &Fault{Code: BadForm, Says: "the file is no JSON: it may be cut off"}
	}
	return nil
}

// clip keeps what strangers wrote short in a sentence.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// shortOf is an id, or as much as there is of one.
func shortOf(sha ring.SHA) string {
	if sha == "" {
		return "none"
	}
	return clip(sha.Short())
}
