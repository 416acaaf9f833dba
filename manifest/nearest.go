package manifest

import (
	"fmt"

	"github.com/gitring/gitring/ring"
)

// didYouMean is the hint for an unknown word.
func didYouMean(word string, known []string) string {
	if n := ring.Nearest(word, known); n != "" {
		return fmt.Sprintf("did you mean %s?", n)
	}
	return "see docs/reference/manifest.md for the keys there are"
}
