package gitsync

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// looks is a store over several looks: what was accepted, how, and up to where.
type looks struct {
	y        *yard
	trust    *Trust
	anchor   ring.SHA
	standing map[ring.SHA]ring.Standing
	carriers map[string][]ring.Carrier
	last     []ring.Verified
}

func remembers(y *yard, trust *Trust, anchor ring.SHA) *looks {
	return &looks{
		y: y, trust: trust, anchor: anchor,
		standing: map[ring.SHA]ring.Standing{anchor: ring.LetIn}, carriers: map[string][]ring.Carrier{},
	}
}

func (m *looks) aids() Aids {
	a := m.y.aids()
	a.Standing = func(sha ring.SHA) (ring.Standing, error) { return m.standing[sha], nil }
	a.Carriers = func(payload string) ([]ring.Carrier, error) { return m.carriers[payload], nil }
	return a
}

// look is one look at the tip; the anchor moves only when it is accepted.
func (m *looks) look(tip ring.SHA) *ring.Refusal {
	m.y.t.Helper()
	all, refusal, err := m.trust.RangeWith(m.y, m.aids(), m.anchor, tip, noon, nil)
	require.NoError(m.y.t, err)
	if refusal != nil {
		return refusal
	}
	for _, id := range strings.Fields(m.y.git("rev-list", string(m.anchor)+".."+string(tip))) {
		m.standing[ring.SHA(id)] = ring.SeenOnly
	}
	for _, v := range all {
		if m.standing[v.SHA] = ring.LetIn; v.Signed {
			m.standing[v.SHA] = ring.OwnSignature
		}
		for i, p := range v.Payloads {
			m.carriers[p] = append(m.carriers[p], ring.Carrier{By: v.SHA, AsHead: v.Landed && i == 0})
		}
	}
	m.anchor, m.last = tip, all
	return nil
}

func (m *looks) accepts(tip ring.SHA) {
	m.y.t.Helper()
	refusal := m.look(tip)
	require.Nil(m.y.t, refusal)
}

// forget is a database that was lost: only the anchor is left.
func (m *looks) forget() { *m = *remembers(m.y, m.trust, m.anchor) }

// landYard has alice and bob, who sign, and two commits of alice's: old and anchor.
func landYard(t *testing.T) (y *yard, old, anchor ring.SHA) {
	y = newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	y.key("forge")
	old = y.edit("alice", "old", texts("web/a", "1\n", "db/a", "old"))
	anchor = y.edit("alice", "anchor", texts("db/a", "new"))
	return y, old, anchor
}

// mergeInto is an unsigned merge commit with the tree of another commit.
func (y *yard) mergeLike(of, first, second ring.SHA) ring.SHA {
	return y.like(of, "Merge", first, second)
}

// clean is an unsigned merge with the tree that git makes.
func (y *yard) clean(first, second ring.SHA, message string) ring.SHA {
	y.t.Helper()
	y.git("checkout", "-q", "--detach", string(first))
	y.git("merge", "-q", "--no-ff", "--no-commit", string(second))
	return y.edit("", message, nil)
}

// TestWhatALandingLeftOutNeverComesBack is V26h: content that nobody signed is put
// behind the anchor by one push, and brought in by the next.
func TestWhatALandingLeftOutNeverComesBack(t *testing.T) {
	leave := func(y *yard, p ring.SHA) (evil, tip ring.SHA) { // an unsigned commit, left out by a merge
		evil = y.craft(p, "x", "web/evil", p)
		return evil, y.mergeLike(p, evil, p)
	}
	copied := func(y *yard, p ring.SHA) (evil, tip ring.SHA) { // by the copies of a rebase
		y.branch("work", p)
		head := y.edit("bob", "work", texts("web/b", "b"))
		y.pull(7, head)
		evil = y.craft(p, "copy", "web/evil", p)
		return evil, y.like(head, "work (#7)", evil)
	}
	rows := []struct {
		name  string
		leave func(y *yard, p ring.SHA) (evil, tip ring.SHA)
		back  func(y *yard, p, evil, tip ring.SHA) ring.SHA
		trust func(*TrustConfig)
	}{
		{name: "V26h by a Gitring-Head trailer", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge")
		}},
		{name: "V26h by a pull request's ref", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			y.pull(9, evil)
			return y.clean(tip, y.like(evil, "Work (#9)", p), "Merge")
		}},
		{name: "V26h by the second parent, and its merge landed", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			side := y.like(evil, "Merge", p, evil)
			y.pull(9, side)
			return y.clean(tip, y.like(evil, "Work (#9)", p), "Merge")
		}},
		{name: "V26h straight onto the trusted tip", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.like(evil, "Work\n\nGitring-Head: "+string(evil), tip)
		}},
		{name: "V26h left out by the copies of a rebase", leave: copied, back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge")
		}},
		{name: "V26h brought back by the copies of a rebase", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			mid := y.craft(p, "copy", "web/other", p)
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), mid), "Merge")
		}},
		{name: "V26h under a commit that somebody signed", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			y.checkout(evil, "work")
			head := y.edit("bob", "on top", texts("web/b", "b"))
			return y.clean(tip, y.like(head, "Work\n\nGitring-Head: "+string(head), p), "Merge")
		}},
		{name: "V26h months later, after many commits", back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			y.checkout(tip, "main")
			for i := range 5 {
				tip = y.edit("alice", "meanwhile", texts("db/b", fmt.Sprint(i)))
			}
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge")
		}},
		{name: "V26h with approvals", trust: func(c *TrustConfig) { c.Require.Approvals = 2 }, back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge")
		}},
		{name: "V26h with path limits", trust: bound(Binding{Signer: "bob@example.org", Paths: []string{"db/**"}}), back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge")
		}},
		{name: "V26h with hardware keys", trust: func(c *TrustConfig) { c.Require.HardwareKey = true }, back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge")
		}},
		{name: "V26h with a target", trust: func(c *TrustConfig) { c.RequireTarget = true }, back: func(y *yard, p, evil, tip ring.SHA) ring.SHA {
			return y.clean(tip, y.like(evil, "Work\n\nGitring-Head: "+string(evil), p), "Merge\n\nGitring-Target: prod")
		}},
	}
	for _, r := range rows {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, database lost %v", r.name, lost), func(t *testing.T) {
				t.Parallel()
				y, _, p := landYard(t)
				change := []func(*TrustConfig){forgeMerge}
				if r.trust != nil {
					change = append(change, r.trust)
				}
				m := remembers(y, y.trust(change...), p)
				left := r.leave
				if left == nil {
					left = leave
				}
				evil, tip := left(y, p)
				if refusal := m.look(tip); refusal != nil {
					// Refused at the first look already: the second has to hold all the
					// same, where a person accepted that one.
					m.anchor = tip
					m.standing[evil] = ring.SeenOnly
				}
				if lost {
					m.forget()
				}
				refusal := m.look(r.back(y, p, evil, tip))
				require.NotNil(t, refusal, "what nobody signed runs")
				require.Contains(t, []ring.Code{ring.Unsigned, ring.NotSignedContent}, refusal.Code, refusal.Says)
			})
		}
	}
}

// V26h where the unsigned commit is older than trust itself: one push is enough.
func TestAnUnsignedCommitFromBeforeTheIntroductionIsNoHead(t *testing.T) {
	for _, merged := range []bool{false, true} {
		for _, by := range []string{"Work\n\nGitring-Head: %s", "Work (#9)"} {
			t.Run(fmt.Sprintf("merged %v, %q", merged, by), func(t *testing.T) {
				t.Parallel()
				y, old, p := landYard(t)
				by, evil := by, y.craft(old, "x", "web/evil", old)
				intro := y.like(p, "Take it out", p, evil)
				if !merged { // a straight line, and taken out again
					intro = y.like(p, "Take it out", evil)
				}
				y.pull(9, evil)
				if strings.Contains(by, "%s") {
					by = fmt.Sprintf(by, evil)
				}
				side := y.like(evil, by, old)
				for _, tip := range []ring.SHA{y.clean(intro, side, "Merge"), y.like(evil, by, intro), y.clean(side, intro, "Merge")} {
					trust := y.trust(forgeMerge, func(c *TrustConfig) { c.Introduction = intro })
					_, refusal, err := trust.RangeWith(y, y.aids(), "", tip, noon, nil)
					require.NoError(t, err)
					require.NotNil(t, refusal, "what nobody signed runs")
					require.Contains(t, []ring.Code{ring.Unsigned, ring.NotSignedContent}, refusal.Code, refusal.Says)
				}
			})
		}
	}
}

// TestWhatMainTookBackStaysAway is V26i: main's own commits, signed once and reverted
// since, on an old base.
func TestWhatMainTookBackStaysAway(t *testing.T) {
	for name, named := range map[string]string{"V26i by its id": "Again\n\nGitring-Head: %s", "V26i by a pull request": "Again (#9)"} {
		for _, wrapped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, wrapped %v", name, wrapped), func(t *testing.T) {
				t.Parallel()
				y, _, p := landYard(t)
				m := remembers(y, y.trust(forgeMerge), p)
				y.checkout(p, "main")
				feature := y.edit("alice", "feature", texts("web/f", "f"))
				m.accepts(feature)
				y.git("rm", "-q", "web/f")
				revert := y.edit("alice", "Revert", nil)
				m.accepts(revert)
				named, head := named, feature
				if wrapped { // by an unsigned merge of it
					head = y.like(feature, "Merge", p, feature)
				}
				y.pull(9, head)
				if strings.Contains(named, "%s") {
					named = fmt.Sprintf(named, head)
				}
				refusal := m.look(y.clean(revert, y.like(feature, named, p), "Merge"))
				require.NotNil(t, refusal, "the reverted commit is back")
				require.Equal(t, ring.NotSignedContent, refusal.Code, refusal.Says)
				require.Contains(t, refusal.Says, "lies behind the trusted commit")
			})
		}
	}
}

// respell writes the same signed content with the signature's lines folded elsewhere.
func (y *yard) respell(sha ring.SHA) ring.SHA {
	y.t.Helper()
	top, rest, ok := strings.Cut(y.raw(sha), "\ngpgsig ")
	require.True(y.t, ok)
	armour, text, ok := strings.Cut(rest, "\n\n")
	require.True(y.t, ok)
	lines := strings.Split(armour, "\n ")
	body := strings.Join(lines[1:len(lines)-1], "")
	folded := []string{lines[0], body[:40], body[40:], lines[len(lines)-1]}
	again := y.put(top + "\ngpgsig " + strings.Join(folded, "\n ") + "\n\n" + text)
	require.NotEqual(y.t, sha, again)
	require.True(y.t, y.good(again), "git says that this spelling is bad")
	return again
}

// TestAHeadLandsOnce is V26j: what was landed and taken back since needs a new
// signature to land again.
func TestAHeadLandsOnce(t *testing.T) {
	squashed := func(y *yard, head, on ring.SHA, subject string) ring.SHA {
		y.git("checkout", "-q", "--detach", string(on))
		y.git("merge", "-q", "--squash", string(head))
		return y.edit("", subject+"\n\nGitring-Head: "+string(head), nil)
	}
	named := func(y *yard, head, on ring.SHA) ring.SHA { return squashed(y, head, on, "Again") }
	rows := []struct {
		name  string
		again func(y *yard, p, head, on ring.SHA) ring.SHA
		want  ring.Code
	}{
		{name: "V26j squashed again", want: ring.HeadLanded, again: func(y *yard, _, head, on ring.SHA) ring.SHA { return named(y, head, on) }},
		{name: "V26j merged after that", want: ring.HeadLanded, again: func(y *yard, _, head, on ring.SHA) ring.SHA { return y.clean(on, head, "Merge") }},
		{name: "V26j with its signature spelled in another way", want: ring.HeadLanded, again: func(y *yard, _, head, on ring.SHA) ring.SHA {
			return named(y, y.respell(head), on)
		}},
		{name: "V26j its first half alone", want: ring.HeadLanded, again: func(y *yard, _, head, on ring.SHA) ring.SHA {
			return named(y, ring.SHA(y.git("rev-parse", string(head)+"^")), on)
		}},
		{name: "V26j brought up to date by the forge first", want: ring.HeadLanded, again: func(y *yard, _, head, on ring.SHA) ring.SHA {
			return named(y, y.clean(head, on, "Merge branch main"), on)
		}},
		{name: "V26j merged with its parents turned", want: ring.HeadLanded, again: func(y *yard, _, head, on ring.SHA) ring.SHA {
			return y.clean(head, on, "Merge branch main")
		}},
		{name: "V26j landed on an old base, and that merged", want: ring.HeadLanded, again: func(y *yard, p, head, on ring.SHA) ring.SHA {
			return y.clean(on, named(y, head, p), "Merge")
		}},
		{name: "V26j the same with its parents turned", want: ring.HeadLanded, again: func(y *yard, p, head, on ring.SHA) ring.SHA {
			return y.clean(named(y, head, p), on, "Merge")
		}},
		{name: "V26j inside another head", want: ring.Unsigned, again: func(y *yard, _, head, on ring.SHA) ring.SHA {
			return named(y, named(y, head, on), on)
		}},
		{name: "with a new signed commit on top", again: func(y *yard, _, head, on ring.SHA) ring.SHA {
			y.checkout(head, "again")
			return named(y, y.edit("bob", "I mean it", nil), on)
		}},
		{name: "another head", again: func(y *yard, _, _, on ring.SHA) ring.SHA {
			y.checkout(on, "other")
			return named(y, y.edit("bob", "other", texts("web/o", "o")), on)
		}},
	}
	for _, r := range rows {
		for _, looks := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, looks %d", r.name, looks), func(t *testing.T) {
				t.Parallel()
				y, _, p := landYard(t)
				m := remembers(y, y.trust(forgeMerge), p)
				y.branch("work", p)
				y.edit("bob", "work 1", texts("web/b", "b"))
				head := y.edit("bob", "work 2", texts("web/c", "c"))
				landed := squashed(y, head, p, "Work")
				y.git("rm", "-q", "-r", "web/b", "web/c")
				revert := y.edit("alice", "Revert", nil)
				tip := r.again(y, p, head, revert)
				if looks > 1 {
					m.accepts(landed)
					m.accepts(revert)
				}
				refusal := m.look(tip)
				if r.want == "" {
					require.Nil(t, refusal)
					return
				}
				require.NotNil(t, refusal, "what was taken back is here again")
				require.Equal(t, r.want, refusal.Code, refusal.Says)
				if r.want == ring.HeadLanded {
					require.Contains(t, refusal.Hint, "git commit --allow-empty -S")
				}
			})
		}
	}
}

// A commit that was pushed to main itself comes back neither, under another id.
func TestAPushedCommitDoesNotComeBackInAnotherSpelling(t *testing.T) {
	t.Parallel()
	y, _, p := landYard(t)
	m := remembers(y, y.trust(forgeMerge), p)
	y.checkout(p, "main")
	feature := y.edit("alice", "feature", texts("web/f", "f"))
	m.accepts(feature)
	y.git("rm", "-q", "web/f")
	revert := y.edit("alice", "Revert", nil)
	m.accepts(revert)
	again := y.respell(feature)
	for _, tip := range []ring.SHA{
		y.clean(revert, again, "Merge"),
		y.clean(revert, y.like(feature, "Again\n\nGitring-Head: "+string(again), p), "Merge"),
	} {
		refusal := m.look(tip)
		require.NotNil(t, refusal, "the reverted commit is back")
		require.Equal(t, ring.HeadLanded, refusal.Code, refusal.Says)
	}
}

// The same commit judged twice, because the daemon ended before the anchor moved or a
// person set it back, is no second landing.
func TestALandingThatIsJudgedAgainIsTheSameLanding(t *testing.T) {
	t.Parallel()
	y, _, p := landYard(t)
	m := remembers(y, y.trust(forgeMerge), p)
	y.branch("work", p)
	head := y.edit("bob", "work", texts("web/b", "b"))
	tip := y.like(head, "Work\n\nGitring-Head: "+string(head), p)
	merged := y.clean(tip, y.branchWith(tip), "Merge")
	m.accepts(merged)
	m.anchor = p
	m.accepts(tip)
	m.accepts(merged)
}

func (y *yard) branchWith(at ring.SHA) ring.SHA {
	y.t.Helper()
	y.git("checkout", "-q", "--detach", string(at))
	return y.edit("bob", "more", texts("web/more", "m"))
}

// TestRequireUpToDate is V26k: nothing that a signer did not see is made by a merge.
func TestRequireUpToDate(t *testing.T) {
	for _, on := range []bool{false, true} {
		y, _, p := landYard(t)
		m := remembers(y, y.trust(forgeMerge, func(c *TrustConfig) { c.RequireUpToDate = on }), p)
		y.branch("work", p)
		head := y.edit("bob", "work", texts("web/b", "b"))
		fresh := y.clean(p, head, "Merge") // V26k up to date
		m.accepts(fresh)
		stale := y.clean(fresh, y.branchWith(p), "Merge")
		refusal := m.look(stale)
		if !on {
			require.Nil(t, refusal)
			continue
		}
		require.NotNil(t, refusal)
		require.Equal(t, ring.NotUpToDate, refusal.Code)
		require.Contains(t, refusal.Hint, "merge")
	}
}

// TestALongLivedBranchLandsAgainAndAgain is V26m, over one look and over many.
func TestALongLivedBranchLandsAgainAndAgain(t *testing.T) {
	for _, every := range []bool{true, false} {
		for _, button := range []string{"V26m squash", "V26m merge"} {
			t.Run(fmt.Sprintf("%s, each in a look of its own %v", button, every), func(t *testing.T) {
				t.Parallel()
				y, _, main := landYard(t)
				m := remembers(y, y.trust(forgeMerge), main)
				look := func() {
					if every {
						m.accepts(main)
					}
				}
				y.branch("work", main)
				for i := range 4 {
					head := y.edit("bob", "work", texts("web/b", strings.Repeat("line\n", i+1)))
					if button == "V26m merge" {
						main = y.clean(main, head, "Merge")
					} else {
						y.git("checkout", "-q", "--detach", string(main))
						y.git("merge", "-q", "--squash", string(head))
						main = y.edit("", "Work\n\nGitring-Head: "+string(head), nil)
					}
					look()
					// Somebody else's branch lands meanwhile, and "update branch" brings it in.
					other := y.branchAt(main, fmt.Sprintf("db/%d", i))
					main = y.like(other, "Other\n\nGitring-Head: "+string(other), main)
					look()
					update := y.clean(head, main, "Merge branch main into work")
					y.checkout(update, "work")
				}
				m.accepts(main)
			})
		}
	}
}

func (y *yard) branchAt(at ring.SHA, file string) ring.SHA {
	y.t.Helper()
	y.git("checkout", "-q", "--detach", string(at))
	return y.edit("alice", "other", texts(file, "x"))
}

// V26m with a branch that was brought up to date before the last few landings.
func TestABranchThatWasUpdatedLongAgoLands(t *testing.T) {
	t.Parallel()
	y, _, main := landYard(t)
	m := remembers(y, y.trust(forgeMerge), main)
	land := func(n int) {
		other := y.branchAt(main, fmt.Sprintf("db/%d", n))
		main = y.clean(main, other, "Merge")
		m.accepts(main)
	}
	y.branch("work", main)
	head := y.edit("bob", "work", texts("web/b", "b"))
	land(1)
	update := y.clean(head, main, "Merge branch main into work")
	land(2)
	land(3)
	y.pull(7, update)
	y.git("checkout", "-q", "--detach", string(main))
	m.accepts(y.squash("", update, "Work (#7)"))
}

// A branch that began before trust did lands like any other.
func TestABranchFromBeforeTheIntroductionLands(t *testing.T) {
	t.Parallel()
	y, old, p := landYard(t)
	m := remembers(y, y.trust(forgeMerge), p)
	y.branch("work", old)
	head := y.edit("bob", "work", texts("web/b", "b"))
	m.accepts(y.clean(p, head, "Merge"))
}

// Two branches that hold the same landing of a third one both land.
func TestTheSameHeadInTwoBranchesIsNoSecondLandingWhereTheyAddToIt(t *testing.T) {
	t.Parallel()
	y, _, p := landYard(t)
	m := remembers(y, y.trust(forgeMerge), p)
	shared := y.branchAt(p, "web/shared")
	left := y.like(shared, "Shared\n\nGitring-Head: "+string(shared), p)
	y.checkout(left, "left")
	left = y.edit("bob", "left", texts("web/left", "l"))
	y.checkout(shared, "right")
	right := y.edit("bob", "right", texts("web/right", "r"))
	one := y.clean(p, left, "Merge")
	m.accepts(one)
	m.accepts(y.clean(one, right, "Merge"))
}
