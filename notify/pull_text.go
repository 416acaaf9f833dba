package notify

import (
	"fmt"
	"strings"

	"github.com/gitring/gitring/ring"
)

// PullPlan is what landing a pull request would do on this host, or why it would not
// be trusted.
type PullPlan struct {
	Host, Source, Branch string
	Head                 ring.SHA // its full id
	// Untrusted is why the head is refused; there are no Changes then.
	Untrusted *ring.Refusal
	Changes   *ring.Changes
	// Behind is how many trusted commits the head does not have, -1 many. Merged says
	// that the plan is of the merge; Alone is why it is not.
	Behind int
	Merged bool
	Alone  string
}

// counted are the classes in the order in which they are counted; always are told at 0
// too.
var counted = []struct {
	class  ring.Class
	word   string
	always bool
}{
	{ring.ChangeCreate, "new", false},
	{ring.ChangeRoll, "roll", true},
	{ring.ChangeRecreate, "recreate", false},
	{ring.ChangeInPlace, "in place", true},
	{ring.ChangeRemove, "remove", true},
}

// sum is the plan in a few words.
func (p *PullPlan) sum() string {
	n := map[ring.Class]int{}
	for _, a := range p.Changes.Apps {
		for _, s := range a.Services {
			n[s.Class]++
		}
	}
	var parts []string
	for _, c := range counted {
		if n[c.class] > 0 || c.always {
			parts = append(parts, fmt.Sprintf("%s %d", c.word, n[c.class]))
		}
	}
	return strings.Join(parts, ", ")
}

// Post is the status of the head. Success says that the plan can be carried out, not
// that anything was.
func (p *PullPlan) Post() (state, description string) {
	if r := p.Untrusted; r != nil {
		return ring.PostFailure, describe(fmt.Sprintf("rejected: %s %s", r.Code, r.Commit.Short()))
	}
	if all := p.Changes.Refusals; len(all) > 0 {
		says := "rejected: " + refused(all[0])
		if len(all) > 1 {
			says += fmt.Sprintf(" and %d more", len(all)-1)
		}
		return ring.PostFailure, describe(says)
	}
	says := p.sum()
	if p.Changes.Awaiting != "" {
		says += "; will await approval"
	}
	if p.Alone != "" {
		says += "; behind " + p.Branch + ", and the merge may differ"
	}
	return ring.PostSuccess, describe(says)
}

// refused is a refusal by its code and place: its sentence may tell of the host.
func refused(r *ring.Refusal) string {
	if where := r.Where(); where != "" {
		return string(r.Code) + " " + where
	}
	if r.App != "" {
		return string(r.Code) + " app " + r.App
	}
	return string(r.Code)
}

// text is the comment. Whatever comes from the repository stands in code spans, in an
// alphabet in which nothing can be mentioned, linked or ended, and nothing else of it
// is shown.
func (p *PullPlan) text(marker string, longest int) string {
	var b strings.Builder
	b.WriteString(marker + "\n\n")
	if r := p.Untrusted; r != nil {
		fmt.Fprintf(&b, "%s is not trusted by source %s of host %s: %s at commit %s. Nothing of it is planned.\n",
			code(p.Head.Short()), code(p.Source), code(p.Host), code(string(r.Code)), code(r.Commit.Short()))
		return b.String()
	}
	fmt.Fprintf(&b, "What landing %s would do on host %s (source %s): **%s**\n", code(p.Head.Short()), code(p.Host), code(p.Source), p.sum())
	if p.Merged {
		fmt.Fprintf(&b, "\nIt is behind %s: this is the plan of the two merged.\n", code(p.Branch))
	} else if p.Alone != "" {
		fmt.Fprintf(&b, "\nIt is %s behind %s, and this is the plan of the branch as it stands: the merge may differ (%s).\n", commits(p.Behind), code(p.Branch), harmless(p.Alone))
	}
	if p.Changes.Awaiting != "" {
		b.WriteString("\nIt would wait for a person's approval on the host, because it removes much or because the source asks for one.\n")
	}
	const end = "\nNothing was run for this. Images by tag are resolved when it lands, not before.\n"
	room := longest - b.Len() - len(end) - len(moreRows(1<<30))
	rows, left := p.rows(room)
	b.WriteString(rows)
	if left > 0 {
		b.WriteString(moreRows(left))
	}
	b.WriteString(end)
	return b.String()
}

func moreRows(n int) string {
	return fmt.Sprintf("\n%d more are not shown; `gitring plan` on the host shows them.\n", n)
}

// rows are the refusals and the services that are touched, as far as they fit.
func (p *PullPlan) rows(room int) (string, int) {
	var b strings.Builder
	left := 0
	put := func(head *string, row string) {
		if left > 0 || b.Len()+len(*head)+len(row) > room {
			left++
			return
		}
		b.WriteString(*head + row)
		*head = ""
	}
	no := "\n| refused |\n|---|\n"
	for _, r := range p.Changes.Refusals {
		put(&no, "| "+code(refused(r))+" |\n")
	}
	table := "\n| service | change | gap | why |\n|---|---|---|---|\n"
	for _, a := range p.Changes.Apps {
		for _, s := range a.Services {
			if s.Class == ring.ChangeNone {
				continue
			}
			put(&table, fmt.Sprintf("| %s | %s | %s | %s |\n", code(a.App+"/"+s.Service), wordOf(s.Class), gapOf(s), code(s.Reason)))
		}
	}
	return b.String(), left
}

func wordOf(c ring.Class) string {
	for _, w := range counted {
		if w.class == c {
			return w.word
		}
	}
	return "other"
}

// gapOf is how long the service would not answer, as gitring plan shows it.
func gapOf(s ring.ServiceChange) string {
	switch {
	case s.GapSeconds > 0:
		return fmt.Sprintf("%ds", s.GapSeconds)
	case s.Gap != "":
		return "yes"
	case s.Class == ring.ChangeRoll:
		return "none"
	}
	return "-"
}

func commits(n int) string {
	switch {
	case n < 0:
		return "very many commits"
	case n == 1:
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

// longestCode is what of one value is shown.
const longestCode = 300

// code is a value of somebody else as a code span.
func code(s string) string {
	if s = harmless(s); s == "" {
		return "-"
	}
	return "`" + s + "`"
}

// harmless keeps to signs that mean nothing in Markdown, in HTML or to a forge. A @ or a #
// before a word would call for somebody, and :// would be a link.
func harmless(s string) string {
	s = strings.Join(strings.Fields(spelled.Replace(s)), " ")
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case strings.ContainsRune(" ._/-:;,+()%='>", r):
			return r
		}
		return '?'
	}, s)
	s = strings.ReplaceAll(s, "://", ":?/")
	if len(s) > longestCode {
		s = s[:longestCode-3] + "..."
	}
	return s
}

// hasLine reports whether a text has a line of its own.
func hasLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}

// sameText compares as forges keep text: with line ends of their own, and without
// blanks at its ends.
func sameText(a, b string) bool {
	clean := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return clean(a) == clean(b)
}
