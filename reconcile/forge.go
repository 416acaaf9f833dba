package reconcile

import "strings"

func (t *Pass) postContext(app string) string {
	if app == "" {
		return "gitring/" + t.Host
	}
	return "gitring/" + t.Host + "/" + app
}

// postText keeps a description inside what every forge takes: 140 characters
// of a safe alphabet.
func postText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" ._/:;,%+-~()", r):
			return r
		}
		return ' '
	}, s)
	if len(s) > 140 {
		s = s[:137] + "..."
	}
	return strings.TrimSpace(s)
}
