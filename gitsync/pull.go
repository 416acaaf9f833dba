package gitsync

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Pull is a pull or merge request as a message names it. The number is a hint of
// strangers: it only says where to look for signatures.
type Pull struct {
	Sign   byte // '#' as GitHub, Gitea and Forgejo write it, '!' as GitLab
	Number int
}

func (p Pull) String() string { return fmt.Sprintf("%c%d", p.Sign, p.Number) }

// Ref is where a forge that writes that sign keeps the head.
func (p Pull) Ref() string {
	if p.Sign == '!' {
		return fmt.Sprintf("refs/merge-requests/%d/head", p.Number)
	}
	return fmt.Sprintf("refs/pull/%d/head", p.Number)
}

var (
	pullNumber = regexp.MustCompile(`([#!])([1-9][0-9]{0,8})\b`)
	// seeRequest is the line that GitLab ends its messages with: a reference, or an
	// address where the project's template asks for that. It counts more than a
	// title, which often names an issue.
	seeRequest = regexp.MustCompile(`(?m)^See merge request \S*(!|/-/merge_requests/)([1-9][0-9]{0,8})\s*$`)
)

// pullOf is the request that a message names: in GitLab's own line, else the last
// of its first line, as squash and merge buttons write it, else the last of the
// rest.
func pullOf(p *parsed) (Pull, bool) {
	message := strings.TrimLeft(string(p.message), "\n")
	first, rest, _ := strings.Cut(message, "\n")
	for _, found := range [][][]string{
		seeRequest.FindAllStringSubmatch(message, -1),
		pullNumber.FindAllStringSubmatch(first, -1),
		pullNumber.FindAllStringSubmatch(rest, -1),
	} {
		if len(found) > 0 {
			last := found[len(found)-1]
			n, err := strconv.Atoi(last[2])
			sign := byte('!')
			if last[1] == "#" {
				sign = '#'
			}
			return Pull{sign, n}, err == nil
		}
	}
	return Pull{}, false
}
