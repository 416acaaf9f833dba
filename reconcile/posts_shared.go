package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// part is what one of several sources makes of a commit that they share.
type part struct {
	src   *Source
	state string
	why   ring.Reason
}

// sharingSources are the sources that tell of one commit, in their order: two of one
// repository, for two branches or by two sets of signers. A commit has one summary
// of a host, so what they make of it is told together.
func (t *Pass) sharingSources(sha ring.SHA) []string {
	var names []string
	for i := range t.Sources {
		if src := &t.Sources[i]; !src.Silent && src.Next != nil && src.Next.Commit == sha {
			names = append(names, src.Name)
		}
	}
	return names
}

// summarizeCommit decides what the host says of a commit as a whole, unless others have
// a word in it: then tellTogether does, when all have spoken.
func (t *decider) summarizeCommit(src *Source, sha ring.SHA, state string, why ring.Reason) {
	names := t.sharingSources(sha)
	switch {
	case !slices.Contains(names, src.Name) && len(names) > 0:
		return // nobody hears of it what this one makes of it
	case len(names) < 2:
		t.decidePost(src, sha, "", state, why)
		return
	}
	if t.parts == nil {
		t.parts = map[ring.SHA][]part{}
	}
	t.parts[sha] = append(t.parts[sha], part{src, state, why})
}

// tellTogether tells the worst of what sources make of a commit: a failure as soon
// as there is one, success when all are done.
func (t *decider) tellTogether() {
	for _, sha := range sortedKeys(t.parts) {
		parts := t.parts[sha]
		if len(parts) < len(t.sharingSources(sha)) {
			continue // one has nothing to say yet, and it is no success without it
		}
		worst := slices.MaxFunc(parts, func(a, b part) int { return postWeight(a.state) - postWeight(b.state) })
		var says []string
		for _, p := range parts {
			if postWeight(p.state) == postWeight(worst.state) {
				says = append(says, p.src.Name+": "+p.why.Says)
			}
		}
		t.decidePost(worst.src, sha, "", worst.state, ring.Reason{Code: worst.why.Code, On: worst.why.On, Says: strings.Join(says, "; ")})
	}
}

func postWeight(state string) int {
	return slices.Index([]string{ring.PostSuccess, ring.PostPending, ring.PostRunning, ring.PostError, ring.PostFailure}, state)
}
