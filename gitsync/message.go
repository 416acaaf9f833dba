package gitsync

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// maxSubject is in characters; a longer first line is cut for people.
const maxSubject = 200

// commit fills everything but Tree from the bytes that were verified.
func (p *parsed) commit(v ring.Verified) ring.Commit {
	leave, waves, data := p.allowRemove(), p.allowWaves(), p.data()
	if v.Landed { // nobody signed this message
		leave, waves, data = v.AllowRemove, v.AllowWaves, v.Data
	}
	return ring.Commit{
		SHA:         p.sha,
		Parents:     append([]ring.SHA(nil), p.parents...),
		Signer:      v.Signer,
		Note:        noteworthy(v.Note),
		Subject:     p.subject(),
		ClaimedAt:   p.committer.when,
		FirstSeen:   v.FirstSeen.UTC(),
		AllowRemove: leave,
		AllowWaves:  waves,
		Data:        data,
	}
}

// noteworthy leaves out what status says in a line of its own.
func noteworthy(note string) string {
	return strings.TrimPrefix(strings.TrimPrefix(note, cameFirst), "; ")
}

// subject is the first line that is not empty, fit for a terminal: no control
// characters and none that turn the direction of writing.
func (p *parsed) subject() string {
	first, _, _ := strings.Cut(strings.TrimLeft(string(p.message), " \t\r\n"), "\n")
	clean := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if wording.IsSteering(r) && r != unicode.ReplacementChar { // bytes that are no text are seen to be there
			return -1
		}
		return r
	}, strings.ToValidUTF8(first, "\uFFFD")))
	return wording.CutRunes(clean, maxSubject)
}

// allowRemove is the n of the last "Gitring-Allow: remove=<n>"; 0 without one.
func (p *parsed) allowRemove() int {
	n := 0
	for _, v := range p.trailers("Gitring-Allow") {
		if digits, ok := strings.CutPrefix(v, "remove="); ok {
			if m, err := strconv.ParseUint(digits, 10, 31); err == nil {
				n = int(m)
			}
		}
	}
	return n
}

// allowWaves reports whether there is a "Gitring-Allow: waves".
func (p *parsed) allowWaves() bool { return slices.Contains(p.trailers("Gitring-Allow"), "waves") }

// data are the answers on what holds data.
func (p *parsed) data() []ring.DataAnswer {
	var all []ring.DataAnswer
	for _, v := range p.trailers(ring.DataTrailer) {
		all = append(all, ring.ReadDataAnswer(v))
	}
	return all
}

// trailers are the values of a key in the message's last paragraph. Only a
// paragraph of nothing but trailers counts, and never the subject's: a sentence
// that quotes a trailer must not allow anything.
func (p *parsed) trailers(key string) []string {
	text := strings.TrimRight(strings.ReplaceAll(string(p.message), "\r\n", "\n"), " \t\n")
	var last []string
	paragraphs := 0
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			inside = false
			continue
		}
		if !inside {
			paragraphs, inside, last = paragraphs+1, true, nil
		}
		last = append(last, line)
	}
	if paragraphs < 2 {
		return nil
	}
	var values []string
	for i, line := range last {
		if i > 0 && (line[0] == ' ' || line[0] == '\t') || strings.HasPrefix(line, "(cherry picked from commit ") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !trailerName(name) {
			return nil
		}
		if strings.EqualFold(name, key) {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

func trailerName(s string) bool {
	for _, r := range s {
		if r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}
