package ring

import (
	"strings"
	"time"
)

// ImageVerdict is what was found of who signed an image. It stands with the pin: what is
// pinned needs no registry any more, and another rule needs another verdict.
type ImageVerdict struct {
	Image string `json:"image"` // VerdictKey
	Rule  string `json:"rule"`  // the print of the rule, ImageRule.Hash
	Good  bool   `json:"good"`
	// Keys are the prints of those that signed, and Form is how; "exec" is the word of a
	// program.
	Keys []string  `json:"keys,omitempty"`
	Form string    `json:"form,omitempty"`
	At   time.Time `json:"at"`
	// Code and Says are of the refusal, where it is not good.
	Code Code   `json:"code,omitempty"`
	Says string `json:"says,omitempty"`
}

// Row is by image.
func (v ImageVerdict) Row() (string, string) { return "signed", v.Image }

// SignedBy says by whom, for people.
func (v ImageVerdict) SignedBy() string {
	if len(v.Keys) == 0 {
		return "found good by the program of its rule"
	}
	short := make([]string, len(v.Keys))
	for i, k := range v.Keys {
		short[i] = k[:min(len(k), len("sha256:")+12)]
	}
	return "signed by key " + strings.Join(short, ", ") + " (" + v.Form + ")"
}

// VerdictKey is an image's repository with its digest: what a signature is of. Its tag says
// nothing, and another repository has other signatures.
func VerdictKey(image string) string {
	n := ParseImage(image)
	if n.Name == "" {
		return image
	}
	return n.Name + "@" + strings.TrimPrefix(n.Digest, "@")
}
