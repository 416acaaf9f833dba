package config

import (
	"strings"

	"github.com/gitring/gitring/gitsync"
)

// Owned says what is wrong with who can write the configuration, the file of its policy, and
// the keys by which images are trusted: they decide who is root on this host, as the files of trust do. nil is nothing.
func (c *Config) Owned() error {
	if c.Rules.File != "" {
		if err := gitsync.CheckTrustFile(c.Rules.File); err != nil {
			return notOwned(c.Rules.File, 1, "policy: ", err)
		}
	}
	for _, file := range c.Rules.SignatureFiles {
		if err := gitsync.CheckTrustFile(file); err != nil {
			return notOwned(file, 0, "policy."+signaturesKey+": ", err)
		}
	}
	if err := gitsync.CheckTrustFile(c.File); err != nil {
		return notOwned(c.File, 0, "", err)
	}
	return nil
}

func notOwned(file string, line int, of string, err error) error {
	says, hint, _ := strings.Cut(err.Error(), "; ")
	return Mistakes{{File: file, Line: line, Says: of + says, Hint: hint}}
}
