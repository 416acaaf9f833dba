package manifest

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/mattn/go-shellwords"
)

// splitApart looks at a text of a command with values of the host. Compose puts values
// in and splits then: where that makes other words than the text with its values as one
// word each, the text is kept, to be split when it is opened. A value that no shell could
// split stays one word.
func (a *appReader) splitApart(chain []string, val value) {
	plain, ok := words(val.plain)
	if !ok {
		if _, ok := words(val.sealed); ok { // else that is told
			a.noted("%s.%s: a value of the host holds a quote or an operator of a shell, and is one word here; Compose would cut the rest off", chain[1], chain[2])
		}
		return
	}
	sealed, ok := words(val.sealed)
	if ok && !slices.Equal(plain, a.openedWords(sealed)) {
		a.apart[val.sealed] = true
	}
}

// openedWords are words with the values of the host in them.
func (a *appReader) openedWords(sealed []string) []string {
	out := slices.Clone(sealed)
	for i := range out {
		if text, err := ring.Open(out[i], func(s ring.Sealed) (string, error) { return a.plain[s], nil }); err == nil {
			out[i] = text
		}
	}
	return out
}

// words are those of a text; false where Compose would refuse it or cut it off.
func words(text string) ([]string, bool) {
	p := shellwords.NewParser()
	out, err := p.Parse(text)
	return out, err == nil && p.Position < 0
}

// textToSplit is the text of a command that is split when it is opened, "" for none.
func (b *builderOf) textToSplit(service, key string) string {
	for _, f := range slices.Backward(b.files) {
		n, took, _ := f.root.at([]string{"services", service, key})
		if took < 3 || n.null() {
			continue
		}
		if n.kind == scalar && b.apart[n.text] && strings.TrimSpace(n.text) != "" {
			return n.text
		}
		return ""
	}
	return ""
}
