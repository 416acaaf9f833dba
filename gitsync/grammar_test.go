package gitsync

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestGrammar(t *testing.T) {
	const (
		tree   = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
		parent = "parent 0123456789abcdef0123456789abcdef01234567\n"
		author = "author A <a@b> 1750000000 +0200\n"
		commit = "committer C <c@d> 1750000001 -0130\n"
		top    = tree + parent + author + commit
		end    = "\nsubject\n"
	)
	sig := "gpgsig -----BEGIN\n \n x\n -----END\n"
	for _, c := range []struct{ name, raw, want string }{
		{"the least there is", tree + author + commit + "\n", ""},
		{"eight parents", tree + strings.Repeat(parent, 8) + author + commit + end, ""},
		{"headers in any order, ended", top + "change-id x\n" + sig + "mergetag object\n x\nencoding latin1\n" + end, ""},
		{"sixteen unknown headers", top + strings.Repeat("x y\n", 16) + end, ""},
		{"a name without letters", tree + "author  <a@b> 0 +0000\n" + commit + end, ""},
		{"bytes that are no UTF-8", top + "\n\xff\xfe\n", ""},
		{"a carriage return in the message", top + "\nsubject\r\n", ""},

		{"nothing", "", "blank line"},
		{"no message and no blank line", tree + author + commit, "blank line"},
		{"no tree", author + commit + end, "not a tree"},
		{"a short tree", "tree 4b825d\n" + author + commit + end, "40 lower-case hex"},
		{"a tree in capitals", strings.ToUpper(tree[5:10]) + tree[5:] + author + commit + end, "not a tree"},
		{"a parent in capitals", tree + "parent " + strings.ToUpper(parent[7:]) + author + commit + end, "40 lower-case hex"},
		{"SHA-256", "tree " + strings.Repeat("ab", 32) + "\n" + author + commit + end, "SHA-256"},
		{"two trees", tree + tree + author + commit + end, "author line is missing"},
		{"a second tree later", top + tree + end, "misplaced tree"},
		{"a parent after the author", tree + author + parent + commit + end, "committer line is missing"},
		{"a parent at the end", top + parent + end, "misplaced parent"},
		{"two authors", tree + author + author + commit + end, "committer line is missing"},
		{"two committers", top + commit + end, "misplaced committer"},
		{"nine parents", tree + strings.Repeat(parent, 9) + author + commit + end, "more than 8 parents"},
		{"two encodings", top + "encoding a\nencoding b\n" + end, "encoding"},
		{"a folded encoding", top + "encoding a\n b\n" + end, "encoding"},
		{"nine mergetags", top + strings.Repeat("mergetag x\n", 9) + end, "mergetag"},
		{"two signatures", top + sig + sig + end, "two gpgsig"},
		{"gpgsig-sha256", top + "gpgsig-sha256 x\n" + end, "may not be there"},
		{"gpgsigx", top + "gpgsigx x\n" + end, "may not be there"},
		{"seventeen unknown headers", top + strings.Repeat("x y\n", 17) + end, "more than 16"},
		{"a header name with a capital", top + "Change-Id x\n" + end, "header name"},
		{"a header without a value", top + "gpgsig\n" + end, "no value"},
		{"a continuation of the committer", top + " more\n" + end, "header name"},
		{"a NUL in the message", top + "\nsub\x00ject\n", "NUL"},
		{"a carriage return in a header", top + "change-id x\r\n" + end, "carriage return"},
		{"no e-mail", tree + "author A 0 +0000\n" + commit + end, "e-mail"},
		{"no space before the e-mail", tree + "author A<a@b> 0 +0000\n" + commit + end, "e-mail"},
		{"no name", tree + "author <a@b> 0 +0000\n" + commit + end, "e-mail"},
		{"a bracket in the name", tree + "author A> <a@b> 0 +0000\n" + commit + end, "e-mail"},
		{"a bracket in the e-mail", tree + "author A <a<b> 0 +0000\n" + commit + end, "e-mail"},
		{"no date", tree + "author A <a@b>\n" + commit + end, "date"},
		{"no space before the date", tree + "author A <a@b>0 +0000\n" + commit + end, "date"},
		{"a date with a zero before it", tree + "author A <a@b> 01 +0000\n" + commit + end, "date"},
		{"a negative date", tree + "author A <a@b> -1 +0000\n" + commit + end, "date"},
		{"a date past 2^40", tree + "author A <a@b> 1099511627776 +0000\n" + commit + end, "2^40"},
		{"a date past 2^64", tree + "author A <a@b> 99999999999999999999 +0000\n" + commit + end, "date"},
		{"no zone", tree + "author A <a@b> 0\n" + commit + end, "date"},
		{"a zone of words", tree + "author A <a@b> 0 CEST\n" + commit + end, "date"},
		{"something after the zone", tree + "author A <a@b> 0 +0000 x\n" + commit + end, "date"},
		{"a header of more than 64 KiB", top + "x " + strings.Repeat("y", 64<<10) + "\n" + end, "header is"},
		{"a message of more than 256 KiB", top + "\n" + strings.Repeat("y", 256<<10+1), "message is"},
		{"more than 1 MiB", top + "\n" + strings.Repeat("y", 1<<20), "bytes long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, refusal := parseCommit(ring40, []byte(c.raw))
			if c.want == "" {
				require.Nil(t, refusal)
				require.NotNil(t, p)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, ring.Grammar, refusal.Code)
			require.Contains(t, refusal.Says, c.want)
		})
	}
}

func TestThePayloadIsTheRawBytesWithoutTheSignature(t *testing.T) {
	top := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1750000000 +0200\ncommitter C D <c@d> 1750000001 -0130\nchange-id x\n"
	rest := "encoding latin1\nmergetag y\n \n z\n\nsub\xe9ject\n\n"
	p, refusal := parseCommit(ring40, []byte(top+"gpgsig one\n two\n \n  three\n"+rest))
	require.Nil(t, refusal)
	require.Equal(t, top+rest, string(p.payload))
	require.Equal(t, "one\ntwo\n\n three\n", string(p.signature))
	require.Equal(t, "sub\xe9ject\n\n", string(p.message))
	require.Equal(t, ident{"C D", "c@d", time.Unix(1750000001, 0).UTC()}, p.committer)
	require.Equal(t, ident{"A", "a@b", time.Unix(1750000000, 0).UTC()}, p.author)
	require.Equal(t, ring.SHA("4b825dc642cb6eb9a060e54bf8d69288fbee4904"), p.tree)
}

func TestOnlyTheLastParagraphHoldsTrailers(t *testing.T) {
	for _, c := range []struct {
		name, message string
		want          int
	}{
		{"the usual", "subject\n\nbody\n\nGitring-Allow: remove=5\n", 5},
		{"right after the subject", "subject\n\nGitring-Allow: remove=5", 5},
		{"among others", "subject\n\nbody\n\nCo-authored-by: B <b@c>\nGitring-Allow: remove=5\nChange-Id: x\n", 5},
		{"in any case", "subject\n\ngitring-allow: remove=5\n", 5},
		{"with a continued neighbour", "subject\n\nNote: one\n two\nGitring-Allow: remove=5\n", 5},
		{"with a cherry-pick's line", "subject\n\nGitring-Allow: remove=5\n(cherry picked from commit abc)\n", 5},
		{"CRLF", "subject\r\n\r\nGitring-Allow: remove=5\r\n", 5},
		{"the last counts", "subject\n\nGitring-Allow: remove=5\nGitring-Allow: remove=2\n", 2},
		{"a wrong one takes nothing back", "subject\n\nGitring-Allow: remove=2\nGitring-Allow: everything\n", 2},

		{"in the subject", "Gitring-Allow: remove=5\n", 0},
		{"in an earlier paragraph", "subject\n\nGitring-Allow: remove=5\n\nbody\n", 0},
		{"inside a sentence's paragraph", "subject\n\nthis would need\nGitring-Allow: remove=5\nbut does not\n", 0},
		{"as a continuation", "subject\n\nNote: see\n Gitring-Allow: remove=5\n", 0},
		{"quoted", "subject\n\n> Gitring-Allow: remove=5\n", 0},
		{"negative", "subject\n\nGitring-Allow: remove=-5\n", 0},
		{"too large", "subject\n\nGitring-Allow: remove=99999999999\n", 0},
		{"no number", "subject\n\nGitring-Allow: remove=all\n", 0},
		{"another permission", "subject\n\nGitring-Allow: 5\n", 0},
		{"nothing at all", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, (&parsed{message: []byte(c.message)}).allowRemove())
		})
	}
}

func TestAnswersOnDataAreReadAsTheyStand(t *testing.T) {
	for message, want := range map[string][]ring.DataAnswer{
		"s\n\nGitring-Data: store from shop\n":                             {{App: "store", From: "shop"}},
		"s\n\nGitring-Data: store from none\nGitring-Data: b  from  c_1\n": {{App: "store", From: "none"}, {App: "b", From: "c_1"}},
		"s\n\nGitring-Data: store form shop\n":                             {{From: "store form shop"}},
		"s\n\nGitring-Data: store from \x1b[31mshop\n":                     {{From: "store from \x1b[31mshop"}},
		"s\n\nGitring-Data: store from shop cart\n":                        {{From: "store from shop cart"}},
		"s\n\nwe write\nGitring-Data: store from shop\nas the page says\n": nil,
		"s\n\nGitring-Data: store from shop\n\nbody\n":                     nil,
		"Gitring-Data: store from shop\n":                                  nil,
	} {
		require.Equal(t, want, (&parsed{message: []byte(message)}).data(), message)
	}
}

func TestASubjectIsFitForATerminal(t *testing.T) {
	for message, want := range map[string]string{
		"one\ntwo":                    "one",
		"\n\n  one  \n":               "one",
		"":                            "",
		"\x1b]0;title\x07red\x1b[31m": "]0;titlered[31m",
		"a\tb\u202egnp.\u200b":        "a bgnp.",
		"caf\xe9":                     "caf\uFFFD",
		strings.Repeat("ö", 300):      strings.Repeat("ö", 200) + "…",
		"one\r\ntwo":                  "one",
	} {
		require.Equal(t, want, (&parsed{message: []byte(message)}).subject())
	}
}
