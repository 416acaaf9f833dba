package secrets

import (
	"bytes"
	"strings"
	"unicode"
)

// iniDefault is the section of what stands before any other.
const iniDefault = "DEFAULT"

// parseINI reads sections of names and values. Only lines that every reader of ini
// understands in the same way are taken.
func parseINI(body []byte) (branch, error) {
	r := iniReader{sections: map[string]bool{iniDefault: true}, section: entry{name: iniDefault, line: 1}}
	for i, line := range strings.Split(string(body), "\n") {
		r.line = i + 1
		if err := r.read(strings.TrimSpace(line)); err != nil {
			return nil, err
		}
	}
	r.close()
	return r.out, nil
}

type iniReader struct {
	growing
	out      branch
	section  entry
	values   branch
	sections map[string]bool
	line     int
}

func (r *iniReader) read(line string) error {
	switch {
	case line == "":
		return nil
	case line[0] == '#' || line[0] == ';':
		return sealedComments(r.line, line)
	case line[0] == '[':
		return r.open(line)
	}
	return r.pair(line)
}

// open begins a section.
func (r *iniReader) open(line string) error {
	name, ended := strings.CutSuffix(line[1:], "]")
	switch {
	case !ended || name == "" || strings.ContainsAny(name, "[]"):
		return faultOfForm(r.line, "a section has no plain name", "call it as in [database]")
	case r.sections[name]:
		return faultOfFile(r.line, "has a section twice", "join both")
	}
	r.close()
	r.sections[name], r.section = true, entry{name: name, line: r.line}
	return r.add(1, r.line)
}

func (r *iniReader) close() {
	r.section.value = r.values
	if r.values == nil {
		r.section.value = branch{}
	}
	r.out, r.values = append(r.out, r.section), nil
}

func (r *iniReader) pair(line string) error {
	name, value, found := strings.Cut(line, "=")
	name = strings.TrimRightFunc(name, unicode.IsSpace)
	switch {
	case !found:
		return faultOfForm(r.line, "a line has no =", "write name = value")
	case name == "" || name == "-" || strings.ContainsAny(name, "\"`:"):
		return faultOfForm(r.line, "a name is none that every reader of ini takes", "leave quotes, colons and a lone dash out of names")
	}
	if _, twice := r.values.find(name); twice {
		return faultOfFile(r.line, "has a name twice in one section", "take one of both out")
	}
	value, ok := iniValue(strings.TrimSpace(value))
	if !ok {
		return faultOfForm(r.line, "a value is none that every reader of ini takes", "values of many lines, comments behind a value and lines that end with \\ go into yaml or json")
	}
	r.values = append(r.values, entry{name: name, line: r.line, value: value})
	return r.add(2, r.line)
}

// iniValue takes quotes off, as SOPS's reader does.
func iniValue(text string) (string, bool) {
	for _, quote := range []string{`"""`, "`"} {
		if in, has := strings.CutPrefix(text, quote); has {
			in, ended := strings.CutSuffix(in, quote)
			return in, ended && in != "" && !strings.Contains(in, quote)
		}
	}
	if strings.ContainsAny(text, "#;") || strings.HasSuffix(text, `\`) {
		return "", false
	}
	for _, quote := range []string{`"`, "'"} {
		if len(text) >= 2 && strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) && strings.Count(text, quote) == 2 {
			return text[1 : len(text)-1], true
		}
	}
	return text, true
}

// writeINI writes sections in their order. A value that no line of ini can hold is refused.
func writeINI(b branch) ([]byte, error) {
	var out bytes.Buffer
	for i, section := range b {
		values, _ := section.value.(branch)
		if section.name != iniDefault {
			if i > 0 && out.Len() > 0 {
				out.WriteByte('\n')
			}
			out.WriteString("[" + section.name + "]\n")
		}
		for _, e := range values {
			text, ok := iniQuoted(plainText(e.value))
			if !ok {
				return nil, faultOfForm(e.line, "a value cannot be written as ini", "use yaml or json for it")
			}
			out.WriteString(e.name + " = " + text + "\n")
		}
	}
	return out.Bytes(), nil
}

func iniQuoted(text string) (string, bool) {
	switch {
	case strings.Contains(text, `"""`):
		return "", false
	case strings.ContainsAny(text, "\n`"):
		return `"""` + text + `"""`, true
	case strings.ContainsAny(text, "#;\"'\\") || strings.TrimSpace(text) != text:
		return "`" + text + "`", true
	}
	return text, true
}
