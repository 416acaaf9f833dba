package gitsync

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestNobodysContentRunsAfterSeveralLooks plays random histories of a branch in
// mode forge-merge, look by look, as a host sees them. Somebody without a key may
// push anything and press any button. Two things have to hold after each look:
//
//   - What runs was brought by a signature: see lookOracle. That is asked of the
//     newest look, and of the last few looks seen as one.
//   - What was accepted in several looks is accepted in one. A commit that landed
//     nothing may be judged otherwise there, which is rare, and counted.
//
// GITRING_LOOKS asks for more histories, GITRING_SEED begins elsewhere; a failure
// names its seed.
func TestNobodysContentRunsAfterSeveralLooks(t *testing.T) {
	t.Parallel()
	n, seed := numberOf(t, "GITRING_LOOKS", 400), numberOf(t, "GITRING_SEED", 1)
	y, keys := lookKeys(t)
	trust := y.trust(forgeMerge)
	var seen lookCounts
	for i := range n {
		playLooks(t, trust, newLooksWorld(t, keys, int64(seed+i)), seed+i, &seen)
	}
	t.Logf("%+v", seen)
	if n >= 100 {
		require.Greater(t, seen.Accepted, n, "too few accepted to mean anything")
		require.Greater(t, seen.Landed, n/4, "too few landings to mean anything")
		require.Greater(t, seen.Refused, n, "too few refused to mean anything")
		require.Less(t, seen.Apart*200, seen.Together, "accepted in several looks and refused in one")
	}
}

type lookCounts struct{ Looks, Accepted, Refused, Landed, Together, Apart int }

func numberOf(t testing.TB, name string, otherwise int) int {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	return n
}

// A lookState is what a host remembers between two looks.
type lookState struct {
	anchor   ring.SHA
	standing map[ring.SHA]ring.Standing
	carriers map[string][]ring.Carrier
}

// looksOfOneHistory bounds a history: how often the host looks at it.
const looksOfOneHistory = 7

func playLooks(t testing.TB, trust *Trust, w *looksWorld, seed int, seen *lookCounts) {
	host := lookState{anchor: w.begin(), standing: map[ring.SHA]ring.Standing{}}
	o := &lookOracle{w: w, spent: map[ring.SHA]bool{}}
	past, spent := []lookState{host}, []map[ring.SHA]bool{{}}
	for range looksOfOneHistory {
		for range 1 + w.r.Intn(4) {
			w.step(host.anchor)
		}
		tip := w.main
		if tip == host.anchor {
			continue
		}
		seen.Looks++
		next, refusal, err := w.look(trust, host, tip)
		require.NoError(t, err, "seed %d\n%s", seed, w.tell())
		if refusal != nil {
			seen.Refused++
			if w.r.Intn(2) == 0 { // somebody with the right to do so puts the branch back
				w.main = host.anchor
			}
			continue
		}
		seen.Accepted++
		if w.by[tip].signer == "" {
			seen.Landed++
		}
		why := o.wrong(host.anchor, tip)
		require.Empty(t, why, why+" wrong accept of c%d after c%d: GITRING_SEED=%d GITRING_LOOKS=1\n%s", w.by[tip].n, w.by[host.anchor].n, seed, w.tell())
		for i := max(0, len(past)-4); i < len(past)-1; i++ {
			then := lookOracle{w: w, spent: spent[i]}
			why := then.wrong(past[i].anchor, tip)
			require.Empty(t, why, "%s: wrong accept in several looks since c%d: GITRING_SEED=%d GITRING_LOOKS=1\n%s", why, w.by[past[i].anchor].n, seed, w.tell())
			_, refusal, err := w.look(trust, past[i], tip)
			require.NoError(t, err)
			if seen.Together++; refusal != nil {
				seen.Apart++
			}
		}
		o.land(host.anchor, tip)
		host = next
		past, spent = append(past, host), append(spent, maps.Clone(o.spent))
	}
}

// look is one look of a host at a tip, and what the host remembers after it.
func (w *looksWorld) look(trust *Trust, from lookState, tip ring.SHA) (lookState, *ring.Refusal, error) {
	aids := w.aids()
	aids.Standing = func(sha ring.SHA) (ring.Standing, error) { return from.standing[sha], nil }
	aids.Carriers = func(payload string) ([]ring.Carrier, error) { return from.carriers[payload], nil }
	verified, refusal, err := trust.RangeWith(w, aids, from.anchor, tip, noon, nil)
	if refusal != nil || err != nil {
		return from, refusal, err
	}
	next := lookState{anchor: tip, standing: maps.Clone(from.standing), carriers: map[string][]ring.Carrier{}}
	for payload, all := range from.carriers {
		next.carriers[payload] = slices.Clone(all)
	}
	for id := range w.below[tip] {
		if !w.below[from.anchor][id] {
			next.standing[id] = ring.SeenOnly
		}
	}
	for _, v := range verified {
		if next.standing[v.SHA] = ring.LetIn; v.Signed {
			next.standing[v.SHA] = ring.OwnSignature
		}
		for i, p := range v.Payloads {
			next.carriers[p] = append(next.carriers[p], ring.Carrier{By: v.SHA, AsHead: v.Landed && i == 0})
		}
	}
	return next, nil, nil
}

// A lookOracle says whether people asked for what runs. It knows who wrote and who
// removed each line, and which commits stand on which; it knows nothing of how
// landings are judged. A line comes or goes rightly only where
//
//   - somebody who may sign wrote or removed it in a commit of their own (or
//     answered for that commit), and
//   - a signed commit that stands on that one came with this look, did not run
//     before, and was in no head that was landed before.
type lookOracle struct {
	w     *looksWorld
	spent map[ring.SHA]bool // signed commits of heads that were landed
}

// signed reports whether somebody who may sign made the commit or answers for it.
func (o *lookOracle) signed(c *lookCommit) bool {
	if c.signer == "alice" || c.signer == "bob" {
		return true
	}
	for _, v := range o.w.all {
		if v.vouches == c.id && v.signer == "alice" {
			return true
		}
	}
	return false
}

// came are the commits that a look brought: what is new behind the tip, and what
// is behind the heads that somebody named there.
func (o *lookOracle) came(anchor, tip ring.SHA) map[ring.SHA]bool {
	out := map[ring.SHA]bool{}
	for id := range o.w.below[tip] {
		if o.w.below[anchor][id] {
			continue
		}
		out[id] = true
		if head := o.w.by[id].head; head != "" {
			for h := range o.w.below[head] {
				if !o.w.below[anchor][h] {
					out[h] = true
				}
			}
		}
	}
	return out
}

// wrong says what came or went by nobody's signature; "" where all is well.
func (o *lookOracle) wrong(anchor, tip ring.SHA) string {
	was, is := o.w.by[anchor].lines, o.w.by[tip].lines
	came := o.came(anchor, tip)
	for p, set := range is {
		for line := range set {
			if !was.has(p, line) && !o.asked(came, p, line, true) {
				return fmt.Sprintf("%s of %s came", line, p)
			}
		}
	}
	for p, set := range was {
		for line := range set {
			if !is.has(p, line) && !o.asked(came, p, line, false) {
				return fmt.Sprintf("%s of %s went", line, p)
			}
		}
	}
	return ""
}

// asked reports whether a signed commit that came with the look stands on one that
// wrote the line (or removed it), and has it so.
func (o *lookOracle) asked(came map[ring.SHA]bool, path, line string, there bool) bool {
	for id := range came {
		last := o.w.by[id]
		if o.spent[id] || !o.signed(last) || last.lines.has(path, line) != there {
			continue
		}
		for below := range o.w.below[id] {
			if c := o.w.by[below]; o.signed(c) && o.decided(c, path, line, there) {
				return true
			}
		}
	}
	return false
}

// decided reports whether a commit has a line that no parent has, or the other way
// round.
func (o *lookOracle) decided(c *lookCommit, path, line string, there bool) bool {
	if c.lines.has(path, line) != there {
		return false
	}
	for _, p := range c.parents {
		if o.w.by[p].lines.has(path, line) == there {
			return !there && o.anyHas(c, path, line) && c.signer != ""
		}
	}
	return there || len(c.parents) > 0
}

// anyHas reports whether some parent has the line: a signed merge that leaves it
// out took the side of the other parent.
func (o *lookOracle) anyHas(c *lookCommit, path, line string) bool {
	for _, p := range c.parents {
		if o.w.by[p].lines.has(path, line) {
			return true
		}
	}
	return false
}

// land remembers whose work the heads of a look were: what was landed once, and
// whose lines run now, is not landed again.
func (o *lookOracle) land(anchor, tip ring.SHA) {
	was, is := o.w.by[anchor].lines, o.w.by[tip].lines
	for id := tip; id != anchor && id != ""; {
		c := o.w.by[id]
		if o.w.below[anchor][id] {
			break
		}
		if c.head != "" {
			for h := range o.w.below[c.head] {
				if s := o.w.by[h]; !o.w.below[anchor][h] && o.signed(s) && o.runs(s, was, is) {
					o.spent[h] = true
				}
			}
		}
		id = ""
		if len(c.parents) > 0 {
			id = c.parents[0]
		}
	}
}

// runs reports whether lines that the commit wrote run since this look, all of them.
func (o *lookOracle) runs(c *lookCommit, was, is lines) bool {
	wrote := 0
	for p := range maps.Keys(c.lines) {
		for line := range c.lines[p] {
			if !o.decided(c, p, line, true) {
				continue
			}
			if wrote++; was.has(p, line) || !is.has(p, line) {
				return false
			}
		}
	}
	return wrote > 0
}
