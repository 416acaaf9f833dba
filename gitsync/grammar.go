package gitsync

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Limits of one commit object (docs/design/trust.md#the-bytes-of-a-commit). Git itself has none; these
// are far above what people and tools write.
const (
	maxCommit   = 1 << 20
	maxHeader   = 64 << 10
	maxMessage  = 256 << 10
	maxParents  = 8
	maxMergetag = 8
	maxOther    = 16
	maxTime     = 1 << 40 // seconds; above it time.Time and git disagree
)

// parsed is a commit that keeps the grammar. All of it comes from the bytes
// that were hashed; nothing is ever encoded again.
type parsed struct {
	sha       ring.SHA
	tree      ring.SHA
	parents   []ring.SHA
	author    ident
	committer ident
	// signature is the value of gpgsig with the continuation spaces removed;
	// empty for an unsigned commit.
	signature []byte
	// payload is what was signed: the raw bytes minus the gpgsig header.
	payload []byte
	message []byte
}

// ident is who and when, of an author or committer line.
type ident struct {
	name, email string
	when        time.Time // UTC, seconds
}

// otherHeader also matches the names that hg-git writes, such as HG:extra.
var otherHeader = regexp.MustCompile(`^(HG:)?[a-z][a-z0-9-]*$`)

// parseCommit reads the strict grammar: tree, parents, author, committer in this
// order, then encoding, mergetag, gpgsig and unknown headers in any order. It
// does not check that raw hashes to sha; readCommit does.
func parseCommit(sha ring.SHA, raw []byte) (*parsed, *ring.Refusal) {
	g := &grammar{p: &parsed{sha: sha}}
	if err := g.parse(raw); err != nil {
		return nil, badGrammar(sha, err)
	}
	return g.p, nil
}

// grammar is the state of one parse; rest is what is left of the header block.
type grammar struct {
	p    *parsed
	rest []byte

	encodings, mergetags, gpgsigs, others int
}

func (g *grammar) parse(raw []byte) error {
	if len(raw) > maxCommit {
		return fmt.Errorf("it is %d bytes long, more than %d", len(raw), maxCommit)
	}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		return fmt.Errorf("it holds a NUL at byte %d", i)
	}
	end := bytes.Index(raw, []byte("\n\n"))
	if end < 0 {
		return fmt.Errorf("no blank line ends its header")
	}
	header, message := raw[:end+1], raw[end+2:]
	if len(header) > maxHeader {
		return fmt.Errorf("its header is %d bytes long, more than %d", len(header), maxHeader)
	}
	if len(message) > maxMessage {
		return fmt.Errorf("its message is %d bytes long, more than %d", len(message), maxMessage)
	}
	g.rest, g.p.message = header, message
	if err := g.fixed(); err != nil {
		return err
	}
	if err := plainLines(header[:len(header)-len(g.rest)]); err != nil {
		return err
	}
	// From here only headers that may come in any order are left.
	g.p.payload = append(make([]byte, 0, len(raw)), header[:len(header)-len(g.rest)]...)
	for len(g.rest) > 0 {
		if err := g.free(); err != nil {
			return err
		}
	}
	g.p.payload = append(append(g.p.payload, '\n'), message...)
	return nil
}

// fixed reads the headers whose order git gives.
func (g *grammar) fixed() (err error) {
	v, ok := g.value("tree")
	if !ok {
		return fmt.Errorf("its first line is not a tree")
	}
	if g.p.tree, err = objectID("tree", v); err != nil {
		return err
	}
	for {
		v, ok := g.value("parent")
		if !ok {
			break
		}
		id, err := objectID("parent", v)
		if err != nil {
			return err
		}
		if len(g.p.parents) == maxParents {
			return fmt.Errorf("it has more than %d parents", maxParents)
		}
		g.p.parents = append(g.p.parents, id)
	}
	if g.p.author, err = g.ident("author"); err != nil {
		return err
	}
	g.p.committer, err = g.ident("committer")
	return err
}

// free reads one header with its continuation lines.
func (g *grammar) free() error {
	start := g.rest
	first := g.line()
	for len(g.rest) > 0 && g.rest[0] == ' ' {
		g.line()
	}
	block := start[:len(start)-len(g.rest)]
	name, _, ok := strings.Cut(string(first), " ")
	if !ok {
		return fmt.Errorf("header line %q has no value", clip(string(first)))
	}
	folded := len(block) > len(first)+1
	switch {
	case name == "gpgsig":
		if g.gpgsigs++; g.gpgsigs > 1 {
			return fmt.Errorf("it has two gpgsig headers")
		}
		g.p.signature = bytes.ReplaceAll(block[len("gpgsig "):], []byte("\n "), []byte("\n"))
		// GnuPG on Windows ends its lines with CR LF, and not all tools take that out.
		if err := plainLines(bytes.ReplaceAll(block, []byte("\r\n"), []byte("\n"))); err != nil {
			return err
		}
		return nil // the one header that is not part of the payload
	case name == "encoding":
		if g.encodings++; g.encodings > 1 || folded {
			return fmt.Errorf("its encoding header is not one line")
		}
	case name == "mergetag":
		if g.mergetags++; g.mergetags > maxMergetag {
			return fmt.Errorf("it has more than %d mergetag headers", maxMergetag)
		}
	case name == "tree" || name == "parent" || name == "author" || name == "committer":
		return fmt.Errorf("a second or misplaced %s header", name)
	case strings.HasPrefix(name, "gpgsig"):
		// Not signed and ignored by git: whoever adds one makes a new SHA that
		// git still calls good.
		return fmt.Errorf("header %s may not be there", clip(name))
	case !otherHeader.MatchString(name):
		return fmt.Errorf("header name %q is not of a-z, 0-9 and -", clip(name))
	default:
		if g.others++; g.others > maxOther {
			return fmt.Errorf("it has more than %d unknown headers", maxOther)
		}
	}
	g.p.payload = append(g.p.payload, block...)
	return plainLines(block)
}

// plainLines refuses header lines with a carriage return, which a terminal or an
// editor shows as another line.
func plainLines(header []byte) error {
	if bytes.IndexByte(header, '\r') >= 0 {
		return fmt.Errorf("a header line holds a carriage return")
	}
	return nil
}

// line takes one line, without its newline; the header block always ends in one.
func (g *grammar) line() []byte {
	line, rest, _ := bytes.Cut(g.rest, []byte("\n"))
	g.rest = rest
	return line
}

// value takes the next line when it is the named header.
func (g *grammar) value(name string) (string, bool) {
	if !bytes.HasPrefix(g.rest, []byte(name+" ")) {
		return "", false
	}
	return string(g.line()[len(name)+1:]), true
}

// ident takes an author or committer line, as strict as "git fsck --strict".
func (g *grammar) ident(name string) (ident, error) {
	v, ok := g.value(name)
	if !ok {
		return ident{}, fmt.Errorf("its %s line is missing or misplaced", name)
	}
	who, rest, ok := strings.Cut(v, "<")
	if !ok || !strings.HasSuffix(who, " ") || strings.Contains(who, ">") {
		return ident{}, fmt.Errorf("its %s has no name before an e-mail in <>", name)
	}
	email, rest, ok := strings.Cut(rest, ">")
	if !ok || strings.Contains(email, "<") {
		return ident{}, fmt.Errorf("its %s has no e-mail in <>", name)
	}
	sec, zone, ok := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	if !ok || !strings.HasPrefix(rest, " ") || !zoneForm.MatchString(zone) || !secForm.MatchString(sec) {
		return ident{}, fmt.Errorf("its %s has no date of seconds and zone", name)
	}
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || n >= maxTime {
		return ident{}, fmt.Errorf("its %s date is not below 2^40 seconds", name)
	}
	return ident{name: strings.TrimSuffix(who, " "), email: email, when: time.Unix(n, 0).UTC()}, nil
}

var (
	secForm  = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})$`)
	zoneForm = regexp.MustCompile(`^[+-][0-9]{4}$`)
	idForm   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	id256    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func objectID(name, v string) (ring.SHA, error) {
	switch {
	case idForm.MatchString(v):
		return ring.SHA(v), nil
	case id256.MatchString(v):
		return "", fmt.Errorf("it is of a SHA-256 repository, which gitring cannot read yet")
	}
	return "", fmt.Errorf("its %s is not 40 lower-case hex digits", name)
}

// clip keeps what strangers wrote short in a sentence.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
