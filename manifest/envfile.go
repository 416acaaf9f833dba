package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gitring/gitring/ring"
)

// envFile reads NAME=value lines as Compose does: comments, export, single
// quotes (literal), double quotes (escapes and variables), and a bare NAME,
// which takes the value it already has, or none. Unlike the library's reader it is
// bounded (a few lines that repeat each other would name gigabytes), knows its
// lines, and refuses a variable that is not set. A later line wins. It goes on
// after a bad line, and what that would have set is lost.
func (v *variables) envFile(file string, body []byte) (all []*fault) {
	e := &envReader{file: file, rest: strings.TrimPrefix(string(body), "\uFEFF"), line: 1}
	for e.next() {
		at := place{file: file, line: e.line}
		line, _, _ := strings.Cut(e.rest, "\n")
		name, bare := e.name()
		if e.fault != nil {
			all = append(all, e.fault)
			v.loseLine(line, at)
			e.fault = nil
			e.skip(len(line))
			continue
		}
		if bare {
			all = append(all, v.inherit(name, at)...)
			continue
		}
		text, literal := e.value()
		if e.fault != nil { // where the value ends is not known: the rest may be part of it
			v.lose(name, at)
			v.unsure = true
			return append(all, e.fault)
		}
		faults := v.take(name, text, literal, at)
		all = append(all, faults...)
		if slices.ContainsFunc(faults, func(f *fault) bool { return f.code == ring.TooLarge }) {
			return all
		}
	}
	return all
}

// loseLine loses every name that a bad line may have been meant to set.
func (v *variables) loseLine(line string, at place) {
	before, _, _ := strings.Cut(line, "=")
	for _, name := range strings.FieldsFunc(before, notInName) {
		v.lose(name, at)
	}
}

// inherit is for a bare name, which takes the value that it already has.
func (v *variables) inherit(name string, at place) []*fault {
	if !v.known(name) && !v.lenient {
		v.lose(name, at)
		return []*fault{untold}
	}
	inherited, ok := v.value(name)
	if ok {
		v.set(name, inherited, at)
		return nil
	}
	v.bare = append(v.bare, bareName{name, at})
	return nil
}

// take sets a variable to the text behind its sign.
func (v *variables) take(name, text string, literal bool, at place) []*fault {
	if encrypted(text) {
		v.lose(name, at)
		return []*fault{{
			code: ring.Unsupported, place: at, says: fmt.Sprintf("%s is encrypted with SOPS, which this release does not decrypt", at.file),
			hint: "keep the value out of the file until a later release reads it",
		}}
	}
	val := said(text)
	if !literal {
		var faults []*fault
		if val, faults = v.replace(text, at); faults != nil {
			v.lose(name, at)
			return faults
		}
	}
	v.set(name, val, at)
	return nil
}

// encrypted knows a value that SOPS wrote.
func encrypted(value string) bool { return strings.HasPrefix(value, "ENC[AES256_GCM,") }

// envReader walks over an env file.
type envReader struct {
	file  string
	rest  string
	line  int
	fault *fault
}

// next moves to the start of the next statement.
func (e *envReader) next() bool {
	for e.rest != "" {
		line, _, _ := strings.Cut(e.rest, "\n")
		text := strings.TrimSpace(line)
		if text != "" && text[0] != '#' {
			e.rest = strings.TrimLeftFunc(e.rest, unicode.IsSpace)
			return true
		}
		e.skip(len(line))
	}
	return false
}

// skip passes n bytes without a line break, and the break behind them.
func (e *envReader) skip(n int) {
	e.rest = e.rest[n:]
	if strings.HasPrefix(e.rest, "\n") {
		e.rest = e.rest[1:]
		e.line++
	}
}

// name is the name before "=" or ":"; bare when the line holds nothing else.
func (e *envReader) name() (name string, bare bool) {
	line, _, _ := strings.Cut(e.rest, "\n")
	start := 0
	if after, ok := strings.CutPrefix(line, "export"); ok && strings.TrimLeft(after, " \t") != after {
		start = len(line) - len(strings.TrimLeft(after, " \t"))
	}
	end := strings.IndexAny(line[start:], "=:")
	bare = end < 0
	if bare {
		end = len(line) - start
	}
	name = strings.TrimSpace(line[start : start+end])
	if i := strings.IndexFunc(name, notInName); i >= 0 || name == "" {
		e.fault = &fault{
			code: ring.BadValue, place: place{file: e.file, line: e.line}, says: "the line is not NAME=value",
			hint: "write NAME=value, or start a comment with #",
		}
		return "", false
	}
	if bare {
		e.skip(len(line))
		return name, true
	}
	e.rest = strings.TrimLeft(e.rest[start+end+1:], " \t\v\f\r")
	return name, false
}

func notInName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.-[]", r)
}

// value is what follows the sign; literal when it stood in single quotes.
func (e *envReader) value() (value string, literal bool) {
	if e.rest == "" || e.rest[0] != '"' && e.rest[0] != '\'' {
		line, _, _ := strings.Cut(e.rest, "\n")
		value, _, _ = strings.Cut(line, " #")
		e.skip(len(line))
		return strings.TrimRightFunc(value, unicode.IsSpace), false
	}
	quote := e.rest[0]
	body, ok := e.quoted(quote)
	if !ok {
		e.fault = &fault{
			code: ring.BadValue, place: place{file: e.file, line: e.line}, says: "a quoted value does not end",
			hint: "close the quote; a literal quote inside is written with a backslash",
		}
		return "", false
	}
	if quote == '\'' {
		return body, true
	}
	return unescape(body), false
}

// quoted takes the text up to the closing quote. A backslash before the quote
// is dropped; any other stays.
func (e *envReader) quoted(quote byte) (string, bool) {
	var out strings.Builder
	for i := 1; i < len(e.rest); i++ {
		switch c := e.rest[i]; {
		case c == '\\' && i+1 < len(e.rest):
			i++
			if e.rest[i] != quote {
				out.WriteByte('\\')
			}
			out.WriteByte(e.rest[i])
		case c == quote:
			e.line += strings.Count(e.rest[:i], "\n")
			e.rest = e.rest[i+1:]
			return out.String(), true
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}

// escapes are those of a double-quoted value; \$ is a dollar that names nothing.
var escapes = map[byte]string{
	'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '$': "$$", '"': `"`, '\\': `\`,
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if to, ok := escapes[s[i+1]]; ok {
				out.WriteString(to)
				i++
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// rawEnvFile reads NAME=value lines literally: env_file's format: raw.
func (v *variables) rawEnvFile(file string, body []byte) (all []*fault) {
	for i, line := range strings.Split(string(body), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if t := strings.TrimSpace(line); t == "" || t[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(name) == "" {
			all = append(all, &fault{code: ring.BadValue, place: place{file: file, line: i + 1}, says: "the line is not NAME=value", hint: "write NAME=value, or start a comment with #"})
			v.loseLine(line, place{file: file, line: i + 1})
			continue
		}
		v.set(strings.TrimSpace(name), said(value), place{file: file, line: i + 1})
	}
	return all
}
