package secrets

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

const escapedBreak = `\n`

// parseEnv reads lines NAME=value, as SOPS does: no quotes, and \n for a line break.
func parseEnv(body []byte) (branch, error) {
	out := branch{}
	seen := map[string]bool{}
	var g growing
	for i, line := range strings.Split(string(body), "\n") {
		at := i + 1
		if line == "" {
			continue
		}
		if line[0] == '#' {
			if err := sealedComments(at, line); err != nil {
				return nil, err
			}
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			return nil, faultOfForm(at, "a line has no =", "write NAME=value")
		}
		if err := faultOfName(seen, name, at); err != nil {
			return nil, err
		}
		if err := g.add(1, at); err != nil {
			return nil, err
		}
		out = append(out, entry{name: name, line: at, value: strings.ReplaceAll(value, escapedBreak, "\n")})
	}
	return out, nil
}

// writeEnv writes the lines that sops decrypt writes, less comments.
func writeEnv(b branch) ([]byte, error) {
	var out bytes.Buffer
	for _, e := range b {
		out.WriteString(e.name + "=" + strings.ReplaceAll(plainText(e.value), "\n", escapedBreak) + "\n")
	}
	return out.Bytes(), nil
}

// plainText is a value in a form that has only texts.
func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.Format(time.RFC3339)
	case float64:
		text := strconv.FormatFloat(v, 'G', -1, 64)
		if !strings.ContainsAny(text, ".E") {
			text = strconv.FormatFloat(v, 'f', 1, 64)
		}
		return text
	}
	return ""
}
