package wording

import (
	"fmt"
	"strings"
)

// When is a text, or nothing.
func When(yes bool, text string) string {
	if !yes {
		return ""
	}
	return text
}

// Plural is such as "app" for one and "apps" for two.
func Plural(n int, what string) string {
	switch {
	case n == 1:
		return what
	case strings.HasSuffix(what, "sh"), strings.HasSuffix(what, "ch"), strings.HasSuffix(what, "s"), strings.HasSuffix(what, "x"):
		return what + "es"
	}
	return what + "s"
}

// Counted is "1 app", "2 apps".
func Counted(n int, what string) string { return fmt.Sprintf("%d %s", n, Plural(n, what)) }
