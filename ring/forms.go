package ring

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ShortestStruck is how long a value is at least that is looked for in texts. Anything shorter
// is in every sentence by chance.
const ShortestStruck = 4

// shortestInside is how long a value is at least that is looked for inside of base64 of more
// than itself: a piece of a shorter one is a word by chance.
const shortestInside = 8

// FormsOf are a value as programs repeat it, the longest first: as it is, quoted by Go or JSON,
// in an address, in base64 (also as a part of what was encoded), in hex, and line by line.
func FormsOf(v string) []string {
	if len(v) < ShortestStruck {
		return nil
	}
	quoted, ascii := strconv.Quote(v), strconv.QuoteToASCII(v)
	forms := []string{
		v, quoted[1 : len(quoted)-1], ascii[1 : len(ascii)-1], url.QueryEscape(v), url.PathEscape(v),
		hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
	}
	if quoted, err := json.Marshal(v); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		forms = append(forms, e.EncodeToString([]byte(v)))
	}
	if len(v) >= shortestInside {
		forms = append(forms, insideBase64(v)...)
	}
	if lines := strings.Split(v, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= ShortestStruck {
				forms = append(forms, line)
			}
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(forms)
}

// insideBase64 is what base64 of a text has of a value wherever it stands in that text: the
// user name before a password moves its letters by 0, 1 or 2 bytes.
func insideBase64(v string) (forms []string) {
	for before := range 3 {
		all := append(make([]byte, before), v...)
		first, last := (before*8+5)/6, len(all)*8/6 // those of nothing but the value
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, e.EncodeToString(all)[first:last])
		}
	}
	return forms
}

// Strike puts something in place of each form of a value in a text.
func Strike(text, value, with string) string {
	for _, form := range FormsOf(value) {
		text = strings.ReplaceAll(text, form, with)
	}
	return text
}

// StrikeCut puts something in place of the beginning of a value at the end of a text that was
// cut off there.
func StrikeCut(text, value, with string) string {
	for _, form := range FormsOf(value) {
		for n := min(len(form)-1, len(text)); n >= ShortestStruck; n-- {
			if strings.HasSuffix(text, form[:n]) {
				return text[:len(text)-n] + with
			}
		}
	}
	return text
}
