package show

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// Proof is what came of checking one.
func Proof(s *screen.Screen, c *proof.Checked) {
	what := "the file"
	if c.App != "" {
		what = fmt.Sprintf("%s/%s on %s", c.App, c.Service, c.Host)
	}
	verdict := screen.Painted("the proof holds", screen.Green)
	if !c.Holds {
		verdict = screen.Painted("the proof does not hold", screen.Red)
	}
	s.Line(0, ": ", screen.Painted(what, screen.Bold), verdict)
	for _, f := range c.Faults {
		s.Line(2, " ", screen.Painted(string(f.Code)+":", screen.Red), screen.Text(f.Says))
		if f.Hint != "" {
			s.Line(4, " ", screen.Painted("hint:", screen.Dim), screen.Text(f.Hint))
		}
	}
	proofOf(s, c)
	if len(c.Steps) > 0 {
		s.Gap()
		s.Line(0, "", screen.Text("checked, of the file and your keys alone:"))
	}
	for _, step := range c.Steps {
		mark := screen.Painted("ok", screen.Green)
		if !step.OK {
			mark = screen.Painted("no", screen.Red)
		}
		s.Line(2, " ", mark, screen.Text(step.What+":"), screen.Text(step.Says))
	}
	listOf(s, "the host's word, which nobody can check:", c.Word)
	listOf(s, "not in this proof:", c.LeftOut)
}

// proofOf is what was found: who, what, which image, since when.
func proofOf(s *screen.Screen, c *proof.Checked) {
	row := func(what string, words ...string) {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
		if len(words) > 0 {
			s.Line(2, " ", screen.Painted(fmt.Sprintf("%-10s", what), screen.Dim), screen.Text(strings.Join(words, ", ")))
		}
	}
	if c.App == "" {
		return
	}
	if m := c.Commit; m != nil {
		who := m.Signer
		if who == "" {
			who = "nobody whom you named"
		}
		row("signed by", who+wording.When(m.Fingerprint != "", " ("+m.Fingerprint+")"), m.Note)
		row("commit", m.SHA.Short()+" of "+screen.Stamp(m.ClaimedAt), m.Subject)
	}
	if n := c.Chain; n != nil {
		begins := "from " + n.From.Short() + ", which you did not name"
		if n.Known {
			begins = "from " + n.From.Short() + ", which you named"
		}
		var who []string
		for _, name := range slices.Sorted(maps.Keys(n.Signers)) {
			who = append(who, fmt.Sprintf("%s %d", name, n.Signers[name]))
		}
		row("chain", begins, wording.Counted(n.Commits, "commit")+" after it"+wording.When(len(who) > 0, " ("+strings.Join(who, ", ")+")"))
	}
	if i := c.Image; i != nil {
		by := "the host looked the digest up"
		if i.Signed {
			by = "the commit names the digest"
		}
		name, _, _ := strings.Cut(i.Pin, "@")
		row("image", name, by)
		s.Line(2, " ", screen.Painted("digest", screen.Dim), screen.Text(i.Digest)) // as wide as a terminal
	}
	row("version", string(c.Version))
	row("files", c.Files...)
	row("container", fmt.Sprintf("%s (%.12s)", c.Container.Name, c.Container.ID), string(c.Container.State),
		wording.When(!c.Container.Started.IsZero(), "since "+screen.Stamp(c.Container.Started)))
	if j := c.Journal; j != nil {
		row("journal", fmt.Sprintf("line %d, %.16s", j.Head, j.Hash))
	}
	row("made", screen.Stamp(c.Made)+wording.When(!c.Made.IsZero(), " by the host's clock"))
}

func listOf(s *screen.Screen, title string, all []string) {
	if len(all) == 0 {
		return
	}
	s.Gap()
	s.Line(0, "", screen.Text(title))
	for _, says := range all {
		s.Line(2, " ", screen.Text("-"), screen.Text(says))
	}
}

// ProofMade is a proof that was made, before anybody checked it.
func ProofMade(s *screen.Screen, p *proof.Proof, size int, doubts []*ring.Refusal) {
	st := &p.Statement
	s.Line(0, ": ", screen.Painted(fmt.Sprintf("%s/%s on %s", st.App, st.Service, st.Host), screen.Bold), screen.Text("container "+st.Container.Name+" of "+st.Commit.Short()))
	s.Line(2, ", ", screen.Text(wording.RoundSize(int64(size))), screen.Text(wording.Counted(st.Chain.Commits, "commit")+" after "+st.Chain.From.Short()),
		screen.Labelled("which rests on ", st.Chain.How))
	if st.Chain.LeftOut != "" {
		s.Line(2, " ", screen.Painted("left out:", screen.Yellow), screen.Text("the commits before "+st.Chain.From.Short()+", because "+st.Chain.LeftOut))
	}
	for _, r := range doubts {
		s.Line(2, " ", screen.Painted("doubt:", screen.Yellow), screen.Text(r.Commit.Short()+" would not pass now: "+r.Says))
	}
}
