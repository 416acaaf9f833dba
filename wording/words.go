package wording

import "fmt"

// When is a text, or nothing.
func When(yes bool, text string) string {
	if !yes {
		return ""
	}
	return text
}

// Plural is such as "app" for one and "apps" for two.
func Plural(n int, what string) string { return what + When(n != 1, "s") }

// Counted is "1 app", "2 apps".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
