package secrets

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// commentOf is the line of a comment in a plain file, 0 where there is none.
func commentOf(form Form, body []byte) int {
	marks := ""
	switch form {
	case YAML:
		var doc yaml.Node
		if yaml.Unmarshal(body, &doc) != nil {
			return 0
		}
		return commentBelow(&doc)
	case Env:
		marks = "#"
	case INI:
		marks = "#;"
	}
	for i, line := range strings.Split(string(body), "\n") {
		if form == INI {
			line = strings.TrimSpace(line)
		}
		if line != "" && strings.Contains(marks, line[:1]) {
			return i + 1
		}
	}
	return 0
}

func commentBelow(n *yaml.Node) int {
	if n.HeadComment+n.LineComment+n.FootComment != "" {
		return max(n.Line, 1)
	}
	for _, c := range n.Content {
		if line := commentBelow(c); line > 0 {
			return line
		}
	}
	return 0
}
