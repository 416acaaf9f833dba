package imagesign

import (
	"fmt"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Tally counts who signed an image, of the keys of one rule.
type Tally struct {
	Rule    *Rule
	Digest  string
	Signers []string // prints of listed keys, each once, in order
	Form    Form     // of the first signature that counted
	Found   int      // signatures that were read, whoever made them
	Wrong   []string // what was no signature of the image, a few of them
}

// mostWrong is how many things that count for nothing are told.
const mostWrong = 3

// Add counts what came of judging one thing that a registry has.
func (t *Tally) Add(f Form, signers []string, err error) {
	if err != nil {
		if len(t.Wrong) < mostWrong && !slices.Contains(t.Wrong, err.Error()) {
			t.Wrong = append(t.Wrong, err.Error())
		}
		return
	}
	t.Found++
	for _, id := range signers {
		if slices.Contains(t.Signers, id) {
			continue
		}
		if len(t.Signers) == 0 {
			t.Form = f
		}
		t.Signers = append(t.Signers, id)
	}
	slices.Sort(t.Signers)
}

// Enough reports whether the image may run.
func (t *Tally) Enough() bool { return t.Rule.Threshold > 0 && len(t.Signers) >= t.Rule.Threshold }

// Refusal is why it may not, with the places that were asked; nil where it may.
func (t *Tally) Refusal(image string, asked []string) *ring.Refusal {
	const hint = "sign the image by its digest, or change images.signatures of this host's policy"
	switch {
	case t.Enough():
		return nil
	case t.Found == 0:
		says := fmt.Sprintf("image %s is not signed, and %s asks for it: nothing at %s", image, t.Rule.At, listed(asked, "no place"))
		if len(t.Wrong) > 0 {
			says = fmt.Sprintf("image %s is not signed, and %s asks for it: at %s is only %s", image, t.Rule.At, listed(asked, "no place"), listed(t.Wrong, ""))
		}
		return &ring.Refusal{Code: ring.ImageUnsigned, Says: says, Hint: hint}
	}
	says := fmt.Sprintf("image %s has %s, and %d of the %d that %s asks for are by its keys", image, count(t.Found), len(t.Signers), t.Rule.Threshold, t.Rule.At)
	return &ring.Refusal{Code: ring.ImageSignature, Says: says, Hint: hint}
}

func count(n int) string {
	if n == 1 {
		return "1 signature"
	}
	return fmt.Sprintf("%d signatures", n)
}

func listed(all []string, none string) string {
	out := none
	for i, s := range all {
		switch {
		case i == 0:
			out = s
		case i == len(all)-1:
			out += " and " + s
		default:
			out += ", " + s
		}
	}
	return out
}
