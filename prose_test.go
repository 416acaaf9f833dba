package gitring_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What a page for people may have at most. A row of a table cannot go on in the next
// line, and code is as it is.
const (
	lineChars     = 120
	sentenceWords = 25
)

// plainPages are held to that. Others follow as they are mended.
var plainPages = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/how-to/*.md", "docs/tutorial/*.md", "docs/testing/*.md", "docs/design/*.md",
	"docs/contributing/*.md", "docs/reference/*.md", "docs/explanation/*.md",
	"docs/security/*.md", "docs/decisions/*.md", "deploy-examples/*.md", "SECURITY.md",
}

func TestPagesForPeopleAreReadable(t *testing.T) {
	seen := 0
	for _, pattern := range plainPages {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, v := range hardToRead(string(text)) {
				t.Errorf("%s: %s", page, v)
			}
			seen++
		}
	}
	require.Greater(t, seen, 25)
}

func TestWhatIsHardToReadIsFound(t *testing.T) {
	wide := strings.TrimSpace(strings.Repeat("word ", 25))
	for text, want := range map[string]int{
		wide + ".\n" + wide + ".":                            2, // 124 characters each
		"```\n" + wide + " " + wide + "\n```":                0,
		"| a | " + wide + " |":                               0,
		"| a | " + wide + " more |":                          1,
		"one\ntwo three " + wide[:60] + "\n" + wide[:60]:     1,
		"- " + wide[:100] + ".\n- " + wide[:100] + ".":       0,
		"See [" + wide[:60] + "](x.md) and `" + wide + "`\n": 1, // the line alone: code and links are one word each
		strings.Repeat("`a`, ", 30) + "`b`.\n":               1, // a list of names is one word: the line alone
		"First of `a. B` all.\n\nThen " + wide[:100] + ".":   0,
	} {
		require.Len(t, hardToRead(text), want, "%q", text)
	}
}

var (
	inlineCode  = regexp.MustCompile("`[^`]*`")
	codeList    = regexp.MustCompile(`code(?:,? (?:and |or )?code)+`)
	inlineLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	itemMark    = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)
	cellEnd     = regexp.MustCompile(`[^\\]\|`)
	sentenceEnd = regexp.MustCompile(`[.!?]["*)_]*(?:\s+|$)`)
	aLetter     = regexp.MustCompile(`\w`)
)

// hardToRead are the lines and sentences of a page that are too long.
func hardToRead(text string) (found []string) {
	var paragraph []string
	end := func() {
		for _, s := range sentenceEnd.Split(inlineLink.ReplaceAllString(codeList.ReplaceAllString(inlineCode.ReplaceAllString(strings.Join(paragraph, " "), "code"), "code"), "link"), -1) {
			n := 0
			for _, word := range strings.Fields(s) {
				if aLetter.MatchString(word) {
					n++
				}
			}
			if n > sentenceWords {
				found = append(found, fmt.Sprintf("a sentence of %d words: %s", n, s))
			}
		}
		paragraph = nil
	}
	code := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch row := strings.HasPrefix(trimmed, "|"); {
		case strings.HasPrefix(trimmed, "```"):
			end()
			code = !code
			continue
		case code:
			continue
		case trimmed == "", strings.HasPrefix(trimmed, "#"):
			end()
		case row:
			end()
			for _, cell := range cellEnd.Split(trimmed, -1) {
				paragraph = []string{cell}
				end()
			}
			continue
		case itemMark.MatchString(line):
			end()
			paragraph = []string{itemMark.ReplaceAllString(line, "")}
		default:
			paragraph = append(paragraph, trimmed)
		}
		if n := utf8.RuneCountInString(line); n > lineChars {
			found = append(found, fmt.Sprintf("line %d has %d characters", i+1, n))
		}
	}
	end()
	return found
}
