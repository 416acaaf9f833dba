package notify

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
)

// A template is run by the daemon itself, which has no means to stop one. So one
// that is taken costs about what its length says: it goes over .Also and nothing
// else, goes over nothing twice, calls no other template, and no text that it makes
// grows beyond what a message can hold.

// functions are those of a template besides the language's own, and those of the
// language's that make texts, held to a bound. None reads anything.
var functions = template.FuncMap{
	"less":     func(a, b int) int { return a - b },
	"print":    bounded1(fmt.Sprint),
	"println":  bounded1(fmt.Sprintln),
	"html":     bounded1(template.HTMLEscaper),
	"js":       bounded1(template.JSEscaper),
	"urlquery": bounded1(template.URLQueryEscaper),
	"printf": func(format string, args ...any) (string, error) {
		if wide.MatchString(format) {
			return "", errors.New("a width has at most 3 digits")
		}
		return bounded1(func(...any) string { return fmt.Sprintf(format, args...) })()
	},
}

// wide is a verb of printf that makes a long text of nothing.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*(\*|[0-9]{4})`)

func bounded1(f func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		s := f(args...)
		if len(s) > 8*messageLimit {
			return "", errors.New("a text is longer than a message")
		}
		return s, nil
	}
}

// tame says what of a template could run for ever.
func tame(t *template.Template) error {
	if len(t.Templates()) > 1 {
		return errors.New("define and block are not for messages")
	}
	return tameNode(t.Root, false)
}

func tameNode(n parse.Node, within bool) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, one := range n.Nodes {
			if err := tameNode(one, within); err != nil {
				return err
			}
		}
	case *parse.TemplateNode:
		return errors.New("template is not for messages")
	case *parse.IfNode:
		return errors.Join(tameNode(n.List, within), tameNode(n.ElseList, within))
	case *parse.WithNode:
		return errors.Join(tameNode(n.List, within), tameNode(n.ElseList, within))
	case *parse.RangeNode:
		if within {
			return errors.New("a range in a range is not for messages")
		}
		if over := n.Pipe.Cmds; len(over) != 1 || len(over[0].Args) != 1 || !isAlso(over[0].Args[0]) {
			return errors.New("range goes over .Also and nothing else")
		}
		return errors.Join(tameNode(n.List, true), tameNode(n.ElseList, within))
	}
	return nil
}

func isAlso(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.FieldNode:
		return strings.Join(n.Ident, ".") == "Also"
	case *parse.VariableNode:
		return strings.Join(n.Ident, ".") == "$.Also"
	}
	return false
}
