package notify

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func (w *teller) strangersWrite(number, n int, text string) {
	w.forge.set(func() {
		for range n {
			w.forge.lastID++
			w.forge.comments[number] = append(w.forge.comments[number], fakeComment{id: w.forge.lastID, text: text})
		}
	})
}

// ours are our comments of a pull request.
func (w *teller) ours(number int) (out []string) {
	w.forge.mu.Lock()
	defer w.forge.mu.Unlock()
	for _, c := range w.forge.comments[number] {
		if c.own {
			out = append(out, c.text)
		}
	}
	return out
}

// another makes every plan a new one.
func (w *teller) another(edition string) {
	w.edition = edition
	w.says = func(p Pull) (*PullPlan, error) { return planned(p.Head, "app-"+edition), nil }
}

func TestThousandsOfCommentsMakeNoSecondOneOfOurs(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			w := newTeller(t, kind)
			w.opens(pull(7), pull(8))
			w.strangersWrite(7, 1500, "me too")
			w.after(0)
			if kind == Gitea || kind == Forgejo { // their list has no pages
				require.Len(t, w.ours(7), 1)
				return
			}
			require.Empty(t, w.ours(7), "it is not known whether there is one")
			require.Contains(t, w.Trouble(), "number 7 has more comments than are looked through")
			require.Len(t, w.ours(8), 1, "the next one waits for it")

			w.strangersWrite(8, 1500, "me too")
			for _, edition := range []string{"2", "3"} {
				w.another(edition)
				w.after(2 * pullsEvery)
				require.Len(t, w.ours(8), 1, "a second comment was written")
				require.Contains(t, w.ours(8)[0], "app-"+edition)
			}
		})
	}
}

func TestLongCommentsOfStrangersAreInNobodysWay(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			w := newTeller(t, kind)
			w.opens(pull(7), pull(8))
			w.strangersWrite(7, 80, strings.Repeat("x", 64<<10))
			w.after(0)
			require.Len(t, w.ours(8), 1, "the next one waits for it: %s", w.Trouble())
			if kind == Gitea || kind == Forgejo { // their list has no pages
				require.Empty(t, w.ours(7))
				require.Contains(t, w.Trouble(), "longer than 4 MiB")
				require.Len(t, w.posts, 2, "the status says it all the same")
				return
			}
			require.Len(t, w.ours(7), 1)
			require.Empty(t, w.Trouble())
		})
	}
}

func TestLongTextsOfPullRequestsHideNone(t *testing.T) {
	w := newTeller(t, GitHub)
	var all []fakePull
	for n := 1; n <= 45; n++ {
		p := pull(n)
		p.fork, p.text = true, strings.Repeat("x", 128<<10)
		all = append(all, p)
	}
	w.opens(append(all, pull(77))...)
	w.after(0)
	require.Empty(t, w.Trouble())
	require.Len(t, w.ours(77), 1)
}

// Whoever has an account opens as many from a fork as they like, and pushes each
// second.
func TestForksOfStrangersTakeNoTurnOfTheRepositorysOwn(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			w := newTeller(t, kind)
			w.says = func(p Pull) (*PullPlan, error) {
				if p.Fork {
					return nil, nil
				}
				return planned(p.Head, "web"), nil
			}
			forks := func(round int) (all []fakePull) {
				n := 300
				if kind == Gitea || kind == Forgejo { // the fake's pages are of two
					n = 12
				}
				for i := range n {
					p := pull(1000 + i)
					p.head, p.fork = shaOf(10_000+round*1000+i), true
					all = append(all, p)
				}
				return all
			}
			own := pull(7)
			w.opens(append(forks(0), own)...)
			w.after(0)
			require.Len(t, w.ours(7), 1, "a branch of the repository waits for strangers")
			began := len(w.asked)
			for round := 1; round <= 20; round++ {
				own.head = shaOf(700 + round)
				w.opens(append(forks(round), own)...)
				w.after(headsWithin + pullsEvery/5)
				require.Contains(t, w.ours(7)[0], own.head.Short(), "round %d", round)
			}
			require.LessOrEqual(t, len(w.asked)-began, 20*headsEach*2)
			require.LessOrEqual(t, len(w.told), maxPulls, "strangers fill the memory")
		})
	}
}

func TestABranchThatIsPushedEachSecondTakesNoTurnOfOthers(t *testing.T) {
	w := newTeller(t, GitHub)
	var quiet []fakePull
	for n := 1; n <= 8; n++ {
		quiet = append(quiet, pull(n))
	}
	for round := range 8 {
		var loud []fakePull
		for n := range 10 { // the last updated come first
			p := pull(100 + n)
			p.head = shaOf(5000 + 100*round + n)
			loud = append(loud, p)
		}
		w.opens(append(loud, quiet...)...)
		w.after(headsWithin + pullsEvery/5)
	}
	for n := 1; n <= 8; n++ {
		require.Len(t, w.ours(n), 1, "number %d", n)
	}
}

func TestOneThatTheForgeFailsForIsInNobodysWay(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7), pull(8))
	w.forge.fail = func(_, path string) int {
		if strings.Contains(path, "/7/") {
			return http.StatusInternalServerError
		}
		return 0
	}
	wake := w.after(0)
	require.Contains(t, w.Trouble(), "500")
	w.after(wake.Sub(w.now))
	require.Len(t, w.ours(8), 1)
	w.forge.set(func() { w.forge.fail = nil })
	w.after(pullsEvery)
	require.Len(t, w.ours(7), 1)
	require.Empty(t, w.Trouble())
}

func TestACommentThatSomebodyDeletedIsWrittenAnew(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			w := newTeller(t, kind)
			w.opens(pull(7))
			w.after(0)
			w.forge.set(func() { w.forge.comments[7] = []fakeComment{{id: 50, text: w.forge.comments[7][0].text}} })
			w.after(2 * pullsEvery)
			require.Empty(t, w.ours(7), "nothing new is to be told")
			w.another("2")
			w.after(time.Second)
			require.Len(t, w.ours(7), 1)
			require.Len(t, w.forge.textsOf(7), 2, "a copy by somebody else was taken for ours")
			require.Empty(t, w.Trouble())
		})
	}
}

func TestAForgeThatSaysTooManyIsLeftAloneForAll(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7), pull(8))
	w.forge.fail = func(method, _ string) int {
		if method == http.MethodPost {
			return http.StatusTooManyRequests
		}
		return 0
	}
	w.after(0)
	n := w.forge.count("")
	for range 50 {
		w.after(time.Second)
	}
	require.Equal(t, n, w.forge.count(""), "it was asked again within the minute")
	require.Contains(t, w.Trouble(), limitReached)
	w.forge.set(func() { w.forge.fail = nil })
	w.after(11 * time.Second)
	require.Len(t, w.ours(7), 1)
	require.Len(t, w.ours(8), 1)
}

// A list that is longer than a page is asked for whole: what its first page says does
// not tell what left the next one.
func TestOneThatIsClosedOnALaterPageIsLeftAlone(t *testing.T) {
	w := newTeller(t, GitHub)
	var all []fakePull
	for n := 1; n <= 50; n++ {
		p := pull(n)
		p.fork = true
		all = append(all, p)
	}
	w.says = func(p Pull) (*PullPlan, error) {
		if p.Fork {
			return nil, nil
		}
		return planned(p.Head, "web"), nil
	}
	w.opens(append(all, pull(77))...)
	w.after(0)
	require.Len(t, w.ours(77), 1)
	w.forge.set(func() { w.forge.etag--; w.forge.pulls = all }) // the first page is as it was
	w.after(2 * pullsEvery)
	require.NotContains(t, w.told, 77)
}

// Two entries of one number, as only a forge that lies has them, are one pull request.
func TestAForgeThatLiesAboutNumbersCostsNoMoreThanItsShare(t *testing.T) {
	w := newTeller(t, GitHub)
	for round := range 10 {
		a, b := pull(7), pull(7)
		a.head, b.head = shaOf(100+round), shaOf(200+round)
		w.opens(a, b)
		w.after(headsWithin)
	}
	require.LessOrEqual(t, len(w.asked), 10*headsEach)
	require.Len(t, w.ours(7), 1)
	for _, p := range w.posts {
		require.Equal(t, fmt.Sprintf("gitring/%s/plan", "edge-1"), p.Context)
		require.Equal(t, ring.PostSuccess, p.State)
	}
}
