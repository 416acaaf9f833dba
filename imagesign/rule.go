package imagesign

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/gitring/gitring/ring"
)

// Rule is what a host asks of the images of some repositories. It has keys, a program, a
// reason to ask for nothing, or a no.
type Rule struct {
	Match     string
	Keys      []Key         `json:",omitempty"`
	Threshold int           `json:",omitempty"` // how many different keys
	Exec      []string      `json:",omitempty"` // a program and its arguments
	Timeout   time.Duration `json:",omitempty"` // of the program
	None      string        `json:",omitempty"` // why nothing is asked
	Deny      bool          `json:",omitempty"` // no image of these repositories
	At        string        `json:"-"`          // where it stands, file:line
}

// Image stands in Rule.Exec for the image, by its repository and digest.
const Image = "{image}"

// Asks reports whether an image needs a verdict.
func (r *Rule) Asks() bool { return len(r.Keys) > 0 || len(r.Exec) > 0 }

// Hash is a print of all that the rule says: with other keys it is another rule, and with
// another file of the same key it is not. "" is a rule that asks nothing.
func (r *Rule) Hash() string {
	if !r.Asks() {
		return ""
	}
	body, err := json.Marshal(r)
	if err != nil {
		return "" // none of these types can fail
	}
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// For is the rule that counts for an image: the first that matches; nil is none.
func For(rules []Rule, image string) *Rule {
	name := ring.ParseImage(image).Name
	for i := range rules {
		if ring.ImageMatches(rules[i].Match, name) {
			return &rules[i]
		}
	}
	return nil
}

// Prints are the rules as those need them who decide when to ask for a verdict.
func Prints(rules []Rule) ring.ImageRules {
	var out ring.ImageRules
	for i := range rules {
		out = append(out, ring.ImageRule{Match: rules[i].Match, Hash: rules[i].Hash()})
	}
	return out
}
