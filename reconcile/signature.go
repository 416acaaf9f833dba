package reconcile

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"unicode"

	"github.com/gitring/gitring/ring"
)

// lastWords is how many of the last lines that say something tell crashes apart.
const lastWords = 3

// signatureOf is equal for crashes that are alike: the same kind of exit, and the
// same last words but for what differs from run to run. It reads "exit 1 3f2a9c1d".
func signatureOf(c ring.Crash) string {
	kind := exitKind(c)
	h := fnv.New32a()
	h.Write([]byte(kind))
	for _, line := range logEndWords(c.Log) {
		h.Write([]byte("\n" + line))
	}
	return fmt.Sprintf("%s %08x", kind, h.Sum32())
}

// exitKind is the kind of an exit: out of memory, by a signal, or its code.
func exitKind(c ring.Crash) string {
	switch {
	case c.ExitCode == ring.NoExit:
		return "unhealthy"
	case c.OOM:
		return "oom"
	case c.ExitCode > 128 && c.ExitCode <= 128+64:
		return say("signal %d", c.ExitCode-128)
	}
	return say("exit %d", c.ExitCode)
}

// logEndWords are the last lines that say something, without what differs each time.
func logEndWords(log []string) []string {
	var out []string
	for i := len(log) - 1; i >= 0 && len(out) < lastWords; i-- {
		line := constantPart(log[i])
		if strings.ContainsFunc(line, unicode.IsLetter) {
			out = append(out, line)
		}
	}
	return out
}

// What differs from run to run, the longest forms first.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(mon|tue|wed|thu|fri|sat|sun),? `),
	regexp.MustCompile(`(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? +\d`),
	regexp.MustCompile(`\d{4}-\d\d-\d\d[ tT]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?[zZ]|[+-]\d\d:?\d\d)?`),
	regexp.MustCompile(`(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), // UUIDs
	regexp.MustCompile(`\[[0-9a-fA-F:.%a-z]*:[0-9a-fA-F:.%a-z]*\](?::\d+)?`),  // [::1]:80
	regexp.MustCompile(`(?i)\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}\b`),        // IPv6, MAC
	regexp.MustCompile(`(?i)\b0x[0-9a-f]+\b`),
	regexp.MustCompile(`(?i)\b[0-9a-f]*[0-9][0-9a-f]*[a-f][0-9a-f]{4,}\b|(?i)\b[0-9a-f]*[a-f][0-9a-f]*[0-9][0-9a-f]{4,}\b|(?i)\b[0-9a-f]{32,}\b`),
	regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h))+\b`), // 900ms, 1m2.5s
	regexp.MustCompile(`\d+`),
}

// constantPart is a line without times, addresses, hex and numbers.
func constantPart(line string) string {
	line = colours.ReplaceAllString(line, "")
	for _, r := range varying {
		line = r.ReplaceAllString(line, "#")
	}
	line = hashes.ReplaceAllString(line, "#")
	return strings.Join(strings.Fields(strings.ToLower(line)), " ")
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// hashes are runs of what was replaced, such as the parts of an address.
var hashes = regexp.MustCompile(`#(?:[#:.,/+-]*#)+`)
