package api

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// TokenLife is how long a token may live whose line does not say never.
	TokenLife = 90 * 24 * time.Hour
	// Never is the until of a token that does not end.
	Never = "never"

	tokenPrefix = "grt_"
	// tokensLimit is far above any file of tokens and far below what would hurt.
	tokensLimit = 1 << 20
	// rereadEvery bounds for how long an unseen change of the file's owner or folder counts
	// for nothing; what stat shows counts at once.
	rereadEvery = 5 * time.Second
)

var (
	tokenText = regexp.MustCompile(`^grt_([a-z2-7]{8})_([A-Za-z0-9_-]{43})$`)
	tokenID   = regexp.MustCompile(`^[a-z2-7]{8}$`)
	tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	tokenSum  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Token is a line of the file: <id> <name> <scopes> [apps=web,db-*] [until=2027-02-20] sha256:<hex>. The
// token itself is nowhere but with whoever holds it.
type Token struct {
	ID     string
	Name   string
	Scopes Scopes
	Apps   Apps   // that it is limited to; none is no limit
	Until  string // a day, its first moment UTC; or Never
	sum    [sha256.Size]byte
}

// Line is the token as the file has it.
func (t *Token) Line() string {
	limit := ""
	if t.Apps.limited() {
		limit = " apps=" + t.Apps.String()
	}
	return fmt.Sprintf("%s %s %s%s until=%s sha256:%x", t.ID, t.Name, t.Scopes, limit, t.Until, t.sum)
}

// End is the moment at which it counts no more; zero is never.
func (t *Token) End() time.Time {
	at, err := time.Parse(time.DateOnly, t.Until)
	if err != nil { // Never
		return time.Time{}
	}
	return at
}

// IsTokenName reports whether a token can be called so.
func IsTokenName(name string) bool { return tokenName.MatchString(name) }

// NewToken makes a token of 256 random bits, and its line.
func NewToken(name string, scopes Scopes, until string) (text string, t Token) {
	secret, id := make([]byte, 32), rand.Text()
	_, _ = rand.Read(secret) // never fails
	t = Token{ID: strings.ToLower(id[:8]), Name: name, Scopes: scopes, Until: until}
	text = tokenPrefix + t.ID + "_" + base64.RawURLEncoding.EncodeToString(secret)
	t.sum = sha256.Sum256([]byte(text))
	return text, t
}

// ParseToken reads a line of the file. An error says why it grants nothing at that time.
func ParseToken(line string, now time.Time) (Token, error) {
	words := strings.Fields(line)
	if len(words) < 4 {
		return Token{}, fmt.Errorf("it is not <id> <name> <scopes> until=<day> sha256:<hex>")
	}
	t := Token{ID: words[0], Name: words[1]}
	sum := words[len(words)-1]
	switch {
	case !tokenID.MatchString(t.ID):
		return t, fmt.Errorf("%q is no id of a token", t.ID)
	case !tokenName.MatchString(t.Name):
		return t, fmt.Errorf("%q is no name of a token", t.Name)
	case !tokenSum.MatchString(sum):
		return t, fmt.Errorf("it does not end in sha256:<hex>")
	}
	_, _ = hex.Decode(t.sum[:], []byte(strings.TrimPrefix(sum, "sha256:")))
	var err error
	if t.Scopes, err = ParseScopes(words[2]); err != nil {
		return t, err
	}
	for _, word := range words[3 : len(words)-1] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "until" && t.Until == "" && value != "":
			t.Until = value
		case key == "apps" && !t.Apps.limited():
			if t.Apps, err = ParseApps(value); err != nil {
				return t, err
			}
		default:
			return t, fmt.Errorf("%q is not known, or is there twice", word)
		}
	}
	if err := t.Apps.Fit(t.Scopes); err != nil {
		return t, err
	}
	return t, t.counts(now)
}

// counts is why the token grants nothing at a time; nil where it does.
func (t *Token) counts(now time.Time) error {
	if t.Until == Never {
		return nil
	}
	if t.Until == "" {
		return fmt.Errorf("until= is missing: a day, or never")
	}
	until, err := time.Parse(time.DateOnly, t.Until)
	switch {
	case err != nil:
		return fmt.Errorf("until=%s is no day such as 2027-02-20", t.Until)
	case !now.Before(until):
		return fmt.Errorf("it ended on %s", t.Until)
	case until.Sub(now) > TokenLife:
		return fmt.Errorf("until=%s is more than 90 days away; write until=never where that is meant", t.Until)
	}
	return nil
}

// Tokens are those of a file, which is read again when it changed.
type Tokens struct {
	path string
	// check says who may write the file; an error lets nobody in by it.
	check func(path string) error
	now   func() time.Time

	mu    sync.Mutex // guards what follows
	read  time.Time
	seen  string
	lines map[string]Token
	wrong []string
}

// NewTokens reads nothing yet.
func NewTokens(path string, check func(path string) error, now func() time.Time) *Tokens {
	return &Tokens{path: path, check: check, now: now}
}

// Of is the line of a token that somebody shows; false where it grants nothing.
func (t *Tokens) Of(text string) (Token, bool) {
	parts := tokenText.FindStringSubmatch(text)
	if parts == nil {
		return Token{}, false
	}
	line, known := t.line(parts[1])
	sum := sha256.Sum256([]byte(text))
	// An unknown id is compared too, with a sum that no token has.
	right := subtle.ConstantTimeCompare(sum[:], line.sum[:]) == 1
	return line, right && known
}

// Now is the line of an id as the file has it now; false where it grants nothing any
// more, or is another token's by now.
func (t *Tokens) Now(was Token) (Token, bool) {
	line, known := t.line(was.ID)
	return line, known && subtle.ConstantTimeCompare(line.sum[:], was.sum[:]) == 1
}

func (t *Tokens) line(id string) (Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	line, ok := t.lines[id]
	return line, ok && line.counts(t.now()) == nil
}

// All are the tokens that let somebody in now, by name.
func (t *Tokens) All() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	all := slices.SortedFunc(maps.Values(t.lines), func(a, b Token) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return slices.DeleteFunc(all, func(l Token) bool { return l.counts(t.now()) != nil })
}

// Trouble is what is wrong with the file, or with lines of it; "" where all is well.
func (t *Tokens) Trouble() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	if len(t.wrong) == 0 {
		return ""
	}
	return "tokens: " + strings.Join(t.wrong, "; ")
}

// refresh reads the file again where it may have changed. Called with the lock held.
func (t *Tokens) refresh() {
	now := t.now()
	seen := "none"
	if info, err := os.Stat(t.path); err == nil {
		seen = fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	if since := now.Sub(t.read); seen == t.seen && since >= 0 && since < rereadEvery {
		return
	}
	t.seen, t.read = seen, now
	t.lines, t.wrong = map[string]Token{}, nil
	body, err := t.body()
	if err != nil {
		t.wrong = []string{err.Error()}
		return
	}
	lines, wrong := parseTokens(body, now)
	for _, w := range wrong {
		t.wrong = append(t.wrong, fmt.Sprintf("line %d grants nothing: %v", w.line, w.err))
	}
	for _, l := range lines {
		t.lines[l.ID] = l
	}
	if len(lines) == 0 && len(wrong) == 0 {
		t.wrong = []string{t.path + " has no token: nobody can sign in"}
	}
}

func (t *Tokens) body() (string, error) {
	if err := t.check(t.path); err != nil {
		return "", fmt.Errorf("nobody is let in by %s: %w", t.path, err)
	}
	f, err := os.Open(t.path)
	if err != nil {
		return "", fmt.Errorf("nobody is let in: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(f, tokensLimit+1))
	if err != nil {
		return "", fmt.Errorf("nobody is let in: %w", err)
	}
	if len(body) > tokensLimit {
		return "", fmt.Errorf("nobody is let in: %s is larger than 1 MiB", t.path)
	}
	return string(body), nil
}

type wrongToken struct {
	line int
	err  error
}

// parseTokens gives the lines that grant something, and why others do not. Of two lines
// with one id neither counts: nobody can say which was meant.
func parseTokens(body string, now time.Time) (lines []Token, wrong []wrongToken) {
	count := map[string]int{}
	at := map[string]int{}
	var all []Token
	n := 0
	for line := range strings.Lines(body) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		l, err := ParseToken(line, now)
		if tokenID.MatchString(l.ID) {
			count[l.ID]++
			at[l.ID] = n
		}
		if err != nil {
			wrong = append(wrong, wrongToken{n, err})
			continue
		}
		all = append(all, l)
	}
	for _, l := range all {
		if count[l.ID] > 1 {
			wrong = append(wrong, wrongToken{at[l.ID], fmt.Errorf("its id %s is there twice", l.ID)})
			continue
		}
		lines = append(lines, l)
	}
	return lines, wrong
}
