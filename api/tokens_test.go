package api

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func TestATokenIs256RandomBitsAndItsLineIsNot(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		text, line := NewToken("ci", Scopes{ScopeRead, ScopeLogs}, "2027-02-20")
		require.Regexp(t, `^grt_[a-z2-7]{8}_[A-Za-z0-9_-]{43}$`, text)
		require.False(t, seen[text])
		seen[text] = true
		secret := text[len(text)-43:]
		require.NotContains(t, line.Line(), secret)
		require.Equal(t, fmt.Sprintf("%s ci read,logs until=2027-02-20 sha256:%x", text[4:12], sha256.Sum256([]byte(text))), line.Line())
		back, err := ParseToken(line.Line(), noon)
		require.NoError(t, err)
		require.Equal(t, line, back)
	}
}

func TestWhichLinesGrantSomething(t *testing.T) {
	sum := "sha256:" + strings.Repeat("0a", 32)
	for line, says := range map[string]string{
		"aaaaaaaa ci read until=2027-02-20 " + sum:                      "",
		"aaaaaaaa ci read until=never " + sum:                           "",
		"aaaaaaaa ci read,operate,admin until=2026-11-27 " + sum:        "",
		"aaaaaaaa ci read " + sum:                                       "until= is missing",
		"aaaaaaaa ci read until= " + sum:                                "is not known",
		"aaaaaaaa ci read until=2026-11-26 " + sum:                      "it ended on 2026-11-26",
		"aaaaaaaa ci read until=2027-02-25 " + sum:                      "more than 90 days away",
		"aaaaaaaa ci read until=2099-01-01 " + sum:                      "more than 90 days away",
		"aaaaaaaa ci read until=tomorrow " + sum:                        "is no day",
		"aaaaaaaa ci read until=never until=2026-12-01 " + sum:          "is there twice",
		"aaaaaaaa ci read until=never apps=web,db-* " + sum:             "",
		"aaaaaaaa ci logs apps=web until=never " + sum:                  "",
		"aaaaaaaa ci read until=never apps= " + sum:                     "is no name of an app",
		"aaaaaaaa ci read apps=web apps=db until=never " + sum:          "is there twice",
		"aaaaaaaa ci read,operate until=never apps=web " + sum:          "operate is about the whole host",
		"aaaaaaaa ci metrics until=never apps=web " + sum:               "metrics is about the whole host",
		"aaaaaaaa ci read until=never from=10.0.0.1 " + sum:             "is not known",
		"aaaaaaaa ci root until=never " + sum:                           `"root" is no scope`,
		"aaaaaaaa ci read, until=never " + sum:                          `"" is no scope`,
		"aaaaaaaa ci report:edge-1 until=never " + sum:                  "",
		"aaaaaaaa ci report:edge-1,read until=never " + sum:             "stands alone",
		"aaaaaaaa ci read,report:edge-1 until=never " + sum:             "stands alone",
		"aaaaaaaa ci report:Edge until=never " + sum:                    "is no name of a host",
		"aaaaaaaa ci report until=never " + sum:                         `"report" is no scope`,
		"aaaaaaaa ci report:edge-1 until=never apps=web " + sum:         "report:edge-1 is about the whole host",
		"aaaaaaaa CI read until=never " + sum:                           "is no name",
		"aaaaaaaa a/b read until=never " + sum:                          "is no name",
		"aaaaaaa ci read until=never " + sum:                            "is no id",
		"aaaaaaaa ci read until=never sha256:0a":                        "does not end in sha256",
		"aaaaaaaa ci read until=never":                                  "does not end in sha256",
		"aaaaaaaa ci read until=never sha1:" + strings.Repeat("0a", 20): "does not end in sha256",
		"aaaaaaaa ci": "it is not <id>",
	} {
		_, err := ParseToken(line, noon)
		if says == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, says, line)
	}
}

func TestTheFileOfTokensIsReadAgainAndToldAbout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	now, owned := noon, error(nil)
	tokens := NewTokens(path, func(string) error { return owned }, func() time.Time { return now })
	text, line := NewToken("ci", Scopes{ScopeRead}, "2026-12-01")
	is := func(in bool, trouble string) {
		t.Helper()
		now = now.Add(rereadEvery)
		_, ok := tokens.Of(text)
		require.Equal(t, in, ok)
		require.Regexp(t, trouble, tokens.Trouble())
	}
	write := func(body string) { require.NoError(t, os.WriteFile(path, []byte(body), 0o600)) }
	is(false, "nobody is let in: open ")
	write("# tokens\n\n" + line.Line() + "\n")
	is(true, "^$")
	write("")
	is(false, "has no token: nobody can sign in")
	write("nonsense\n" + line.Line() + "\n")
	is(true, "line 1 grants nothing: it is not <id>")
	write(line.Line() + "\n" + line.Line() + "\n")
	is(false, "its id "+line.ID+" is there twice")
	write(line.Line() + "\n" + line.ID + " other admin until=never x\n")
	is(false, "is there twice")
	write(line.Line())
	is(true, "^$")
	owned = errors.New("others can write it")
	is(false, "nobody is let in by .*others can write it")
	owned = nil
	is(true, "^$")
	write(strings.Repeat("#", tokensLimit+1))
	is(false, "larger than 1 MiB")
	write(line.Line())
	is(true, "^$")

	for _, wrong := range []string{"", "grt_", text[:len(text)-1], text + "A", text[:len(text)-1] + "!", strings.ToUpper(text), " " + text, strings.Replace(text, "grt_"+line.ID, "grt_aaaaaaaa", 1), regexp.MustCompile(`.$`).ReplaceAllString(text, "_")} {
		if wrong == text {
			continue
		}
		_, ok := tokens.Of(wrong)
		require.False(t, ok, wrong)
	}
	now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	_, ok := tokens.Of(text)
	require.False(t, ok, "until is the first moment of that day")
	require.Contains(t, tokens.Trouble(), "it ended on 2026-12-01")
}

func TestTheKeyOfSessionsIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.key")
	one, err := LoadSessionKey(path)
	require.NoError(t, err)
	require.Len(t, one, 32)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	two, err := LoadSessionKey(path)
	require.NoError(t, err)
	require.Equal(t, one, two)
	require.NoError(t, os.Remove(path))
	three, err := LoadSessionKey(path)
	require.NoError(t, err)
	require.NotEqual(t, one, three)
}
