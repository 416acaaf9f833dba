package secrets

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

var macMissing = ring.Refusal{Code: ring.SecretMAC, OfFile: true, Says: "has no MAC", Hint: "encrypt it anew: a MAC is what shows that nothing was taken out"}

var selectionNames = []string{
	"unencrypted_suffix", "encrypted_suffix", "unencrypted_regex", "encrypted_regex", "unencrypted_comment_regex", "encrypted_comment_regex",
}

// selection says which values of a file are encrypted, by the names on the way to them. The
// zero value leaves names that end with _unencrypted in clear.
type selection struct {
	name    string // of the metadata; "" is the default
	text    string
	pattern *regexp.Regexp
}

// take reads one of the names of selections; an empty text is none.
func (s *selection) take(e entry) error {
	text, err := metaText(e)
	switch {
	case err != nil || text == "":
		return err
	case strings.HasSuffix(e.name, "_comment_regex"):
		return faultOfForm(e.line, "its values are chosen by comments ("+e.name+")", "choose by names: encrypted_regex in .sops.yaml")
	case s.name != "":
		return faultOfFile(e.line, "says twice which values are encrypted", "leave one of "+s.name+" and "+e.name)
	}
	s.name, s.text = e.name, text
	return nil
}

// whole compiles what was read: SOPS takes a broken pattern for one that nothing matches.
func (s *selection) whole(b branch) error {
	if !strings.HasSuffix(s.name, "_regex") {
		return nil
	}
	pattern, err := regexp.Compile(s.text)
	if err != nil {
		return faultOfForm(lineOf(b, s.name), "its "+s.name+" is no pattern", "mend it in .sops.yaml, then encrypt anew")
	}
	s.pattern = pattern
	return nil
}

// encrypts reports whether the value at a path is encrypted.
func (s selection) encrypts(path []string) bool {
	switch s.name {
	case "encrypted_suffix":
		return slices.ContainsFunc(path, func(name string) bool { return strings.HasSuffix(name, s.text) })
	case "unencrypted_suffix":
		return !slices.ContainsFunc(path, func(name string) bool { return strings.HasSuffix(name, s.text) })
	case "encrypted_regex":
		return slices.ContainsFunc(path, s.pattern.MatchString)
	case "unencrypted_regex":
		return !slices.ContainsFunc(path, s.pattern.MatchString)
	}
	return !slices.ContainsFunc(path, func(name string) bool { return strings.HasSuffix(name, defaultSuffix) })
}
