package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var errJSON = errors.New("no valid json")

// parseJSON reads one object, in its order, and refuses a name that stands twice: whoever
// reads it later would take one of both.
func parseJSON(body []byte) (branch, error) {
	invalid := faultOfFile(0, "is no valid json", "mend it as text; sops --decrypt says where it is")
	if !json.Valid(body) {
		return nil, invalid
	}
	r := jsonReader{d: json.NewDecoder(bytes.NewReader(body)), body: body}
	r.d.UseNumber()
	v, err := r.value(0)
	if errors.Is(err, errJSON) {
		return nil, invalid
	}
	if err != nil {
		return nil, err
	}
	b, ok := v.(branch)
	if !ok {
		return nil, faultOfFile(1, "is no object at the top", "give its values names")
	}
	return b, nil
}

type jsonReader struct {
	growing
	d    *json.Decoder
	body []byte
	// line counts the line breaks of what lies before read.
	line, read int
}

// at is the line of the token that was read last.
func (r *jsonReader) at() int {
	end := int(r.d.InputOffset())
	r.line += bytes.Count(r.body[r.read:end], []byte("\n"))
	r.read = end
	return r.line + 1
}

func (r *jsonReader) value(depth int) (any, error) {
	token, err := r.d.Token()
	if err != nil {
		return nil, errJSON
	}
	line := r.at()
	if err := r.add(depth, line); err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return r.branch(depth)
		}
		return r.list(depth)
	case json.Number:
		return jsonNumber(t, line)
	}
	return token, nil
}

// jsonNumber is an int where it fits, as SOPS has it: a float64 would lose digits.
func jsonNumber(n json.Number, line int) (any, error) {
	if i, err := n.Int64(); err == nil {
		return int(i), nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, faultOfFile(line, "has a number that is too large", "put the number in quotes, then encrypt")
	}
	return f, nil
}

func (r *jsonReader) branch(depth int) (any, error) {
	out := branch{}
	seen := map[string]bool{}
	for r.d.More() {
		token, err := r.d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errJSON
		}
		line := r.at()
		if err := faultOfName(seen, name, line); err != nil {
			return nil, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: name, line: line, value: v})
	}
	return out, r.end()
}

func (r *jsonReader) list(depth int) (any, error) {
	out := list{}
	for r.d.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{line: r.at(), value: v})
	}
	return out, r.end()
}

func (r *jsonReader) end() error {
	if _, err := r.d.Token(); err != nil {
		return errJSON
	}
	return nil
}

// writeJSON writes a tree in its order.
func writeJSON(b branch) ([]byte, error) {
	var flat, out bytes.Buffer
	if err := jsonValue(&flat, b); err != nil {
		return nil, err
	}
	if err := json.Indent(&out, flat.Bytes(), "", "\t"); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func jsonValue(out *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case branch:
		return jsonEntries(out, v, '{', '}')
	case list:
		return jsonEntries(out, v, '[', ']')
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write a value as json: %w", err)
	}
	out.Write(text)
	return nil
}

func jsonEntries(out *bytes.Buffer, entries []entry, begin, end byte) error {
	out.WriteByte(begin)
	for i, e := range entries {
		if i > 0 {
			out.WriteByte(',')
		}
		if begin == '{' {
			if err := jsonValue(out, e.name); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := jsonValue(out, e.value); err != nil {
			return err
		}
	}
	out.WriteByte(end)
	return nil
}
