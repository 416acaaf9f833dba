package secrets

import (
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// The refusals of this package are *ring.Refusal without commit, app and file, which the
// caller knows. None of them holds a value.

func faultOfForm(line int, says, hint string) error {
	return &ring.Refusal{Code: ring.SecretForm, Line: line, Says: says, Hint: hint}
}

// faultOfFile is of the file itself, which is the subject of what it says.
func faultOfFile(line int, says, hint string) error {
	return &ring.Refusal{Code: ring.SecretForm, OfFile: true, Line: line, Says: says, Hint: hint}
}

// faultOfValue names the key path of what does not hold, and never the value.
func faultOfValue(path []string, line int, says string) error {
	if len(path) > 0 {
		says = shownPath(path) + " " + says
	}
	return &ring.Refusal{
		Code: ring.SecretMAC, Line: line, Says: says,
		Hint: "change encrypted files with sops edit only, and take the last good version back with git",
	}
}

// changedFile is of a file of age, which has no key paths.
func changedFile(says string) error {
	r := *faultOfValue(nil, 0, says).(*ring.Refusal)
	r.OfFile = true
	return &r
}

// closedFile is of a file that no key opens.
func closedFile(says, hint string) error {
	return &ring.Refusal{Code: ring.SecretKey, OfFile: true, Says: says, Hint: hint}
}

func faultOfKey(says, hint string) error {
	return &ring.Refusal{Code: ring.SecretKey, Says: says, Hint: hint}
}

// shownPath is a key path as people write it, on one line.
func shownPath(path []string) string { return oneLine(strings.Join(path, ".")) }

// oneLine has no control characters of a name that a file brings.
func oneLine(text string) string { return wording.PrintableLine(text, '?') }

// faultOfName refuses a name that is empty, or that stands twice in one mapping: whoever
// reads the file later would take one of both.
func faultOfName(seen map[string]bool, name string, line int) error {
	switch {
	case name == "":
		return faultOfFile(line, "has a name that is empty", "give the value a name")
	case seen[name]:
		return faultOfFile(line, "has a name twice", "take one of both out")
	}
	seen[name] = true
	return nil
}
