package ring

import (
	"slices"
	"strings"
)

// The kinds of moves from one version of an image to another, by the shape of their tags.
const (
	MoveDigest = "digest" // another digest under the same tag, or one that is added
	MovePatch  = "patch"
	MoveMinor  = "minor"
	MoveMajor  = "major"
)

// TagMove says what a move from one tag to another is. Each run of digits is a number, and
// the rest has to be equal. The first number that differs decides: of the first it is major,
// of the second minor, of any later one patch; up is that it grows. ok is false where the
// shapes differ, or where no number does.
func TagMove(from, to string) (kind string, up, ok bool) {
	a, b := tagParts(from), tagParts(to)
	if len(a) != len(b) {
		return "", false, false
	}
	n := 0
	for i := range a {
		x, y := a[i], b[i]
		isNumber := x != "" && isDigit(x[0])
		if isNumber != (y != "" && isDigit(y[0])) || !isNumber && x != y {
			return "", false, false
		}
		if !isNumber {
			continue
		}
		n++
		if kind != "" {
			continue // what follows the number that decides may be any
		}
		if c := compareNumbers(x, y); c != 0 {
			kind, up = [...]string{MoveMajor, MoveMinor, MovePatch}[min(n, 3)-1], c < 0
		}
	}
	return kind, up, kind != ""
}

// NewerTags are those of a repository that are a move up from a tag, the newest first.
func NewerTags(tag string, of []string) (out []string) {
	for _, t := range of {
		if _, up, ok := TagMove(tag, t); ok && up {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		switch _, up, ok := TagMove(a, b); {
		case !ok:
			return strings.Compare(a, b) // other texts of the same numbers
		case up:
			return 1
		}
		return -1
	})
	return slices.Compact(out)
}

// tagParts are the runs of digits of a tag and what stands between them, in order.
func tagParts(tag string) (out []string) {
	for tag != "" {
		digits := isDigit(tag[0])
		end := strings.IndexFunc(tag, func(r rune) bool { return (r >= '0' && r <= '9') != digits })
		if end < 0 {
			end = len(tag)
		}
		out, tag = append(out, tag[:end]), tag[end:]
	}
	return out
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// compareNumbers compares two runs of digits as numbers, of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		if len(a) < len(b) {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}
