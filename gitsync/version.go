package gitsync

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// versionLine is how a file of signers counts itself: a comment, so that ssh-keygen
// and git read allowed_signers as before.
const versionLine = "trust_version:"

// number takes trust_version out of a file of signers. It stands in one of them or
// in the configuration: of two numbers that differ nobody could say which one rose.
func (t *Trust) number(path string, b []byte) error {
	if t.cfg.Version > 0 {
		t.numbered = "the configuration"
	}
	n := 0
	for text := range strings.Lines(string(b)) {
		n++
		comment, ok := strings.CutPrefix(strings.TrimSpace(text), "#")
		value, named := strings.CutPrefix(strings.TrimSpace(comment), versionLine)
		if !ok || !named {
			continue
		}
		v, err := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case err != nil || v < 1:
			return fmt.Errorf("cannot read %s:%d: %q is no trust_version; write # trust_version: 1, and one more with each change", path, n, clip(strings.TrimSpace(value)))
		case t.numbered != "":
			return fmt.Errorf("cannot read %s:%d: trust_version stands in %s already; keep one of the two", path, n, t.numbered)
		}
		t.version, t.numbered = v, path+":"+strconv.Itoa(n)
	}
	return nil
}

// print mixes what the trust set is read from into its epoch.
func (t *Trust) print(b []byte) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", t.epoch, len(b), b))
	t.epoch = hex.EncodeToString(sum[:6])
}

// Version is trust_version; 0 is none.
func (t *Trust) Version() int { return t.version }

// Epoch names the trust set: it changes when anything that it was read from does.
func (t *Trust) Epoch() string { return t.epoch }
