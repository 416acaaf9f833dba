package manifest

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/gitring/gitring/ring"
)

// envFile reads NAME=value lines as Compose does: comments, export, single
// quotes (literal), double quotes (escapes and variables), and a bare NAME,
// which takes the value it already has. Unlike the library's reader it is
// bounded (a few lines that repeat each other would name gigabytes), knows its
// lines, and refuses a variable that is not set. A later line wins.
func (v *variables) envFile(file string, body []byte) *fault {
	e := &envReader{file: file, rest: strings.TrimPrefix(string(body), "\uFEFF"), line: 1}
	for e.next() {
		at := place{file, e.line}
		name, bare := e.name()
		if e.fault != nil {
			return e.fault
		}
		if bare {
			inherited, ok := v.value(name)
			if !ok && !v.lenient {
				f := undefined(name, at)
				f.hint = fmt.Sprintf("give it a value, as in %s=value, or %s", name, inEnv)
				return f
			}
			if ok {
				v.set(name, inherited, at)
			}
			continue
		}
		text, literal := e.value()
		if e.fault != nil {
			return e.fault
		}
		if encrypted(text) {
			return &fault{
				code: ring.Unsupported, place: at, says: fmt.Sprintf("%s is encrypted with SOPS, which this release does not decrypt", file),
				hint: "keep the value out of the file until a later release reads it",
			}
		}
		val := said(text)
		if !literal {
			var f *fault
			if val, f = v.replace(text, at); f != nil {
				return f
			}
		}
		v.set(name, val, at)
	}
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
			code: ring.BadValue, place: place{e.file, e.line}, says: "the line is not NAME=value",
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
			code: ring.BadValue, place: place{e.file, e.line}, says: "a quoted value does not end",
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
func (v *variables) rawEnvFile(file string, body []byte) *fault {
	for i, line := range strings.Split(string(body), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if t := strings.TrimSpace(line); t == "" || t[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return &fault{code: ring.BadValue, place: place{file, i + 1}, says: "the line is not NAME=value", hint: "write NAME=value, or start a comment with #"}
		}
		v.set(strings.TrimSpace(name), said(value), place{file, i + 1})
	}
	return nil
}
