package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// shaOf is a full id that begins with a digit of its own.
func shaOf(n int) ring.SHA { return ring.SHA(fmt.Sprintf("%07x%033x", 0xabc0000+n, n)) }

// teller is one source's pull requests against a fake forge, round by round.
type teller struct {
	*board
	t       *testing.T
	forge   *fakePulls
	now     time.Time
	edition string
	asked   []Pull // that were judged
	posts   []ring.Post
	says    func(Pull) (*PullPlan, error)
}

func newTeller(t *testing.T, kind string) *teller {
	t.Helper()
	w := &teller{t: t, forge: newFakePulls(t, kind), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), edition: "1"}
	w.says = func(p Pull) (*PullPlan, error) { return planned(p.Head, "web"), nil }
	w.board = newBoard(NewPulls(PullOptions{
		Source: "prod", Host: "edge-1", Forge: w.forge.forge, Log: slog.New(slog.DiscardHandler),
		Edition: func(context.Context) (string, error) { return w.edition, nil },
		Judge: func(_ context.Context, p Pull) (*PullPlan, error) {
			w.asked = append(w.asked, p)
			return w.says(p)
		},
		Post: func(_ context.Context, p ring.Post) error {
			w.posts = append(w.posts, p)
			return nil
		},
	}))
	return w
}

// planned is a plan that rolls one service of an app.
func planned(head ring.SHA, app string) *PullPlan {
	return &PullPlan{
		Host: "edge-1", Source: "prod", Branch: "main", Head: head,
		Changes: &ring.Changes{Apps: []ring.AppChanges{{App: app, Services: []ring.ServiceChange{
			{Service: "web", Class: ring.ChangeRoll, Reason: "env LOG_LEVEL"},
			{Service: "db", Class: ring.ChangeNone},
		}}}},
	}
}

// after lets time pass and has a round.
func (w *teller) after(d time.Duration) time.Time {
	w.t.Helper()
	w.now = w.now.Add(d)
	return w.round(w.t.Context(), w.now)
}

func (w *teller) opens(pulls ...fakePull) {
	w.forge.set(func() { w.forge.pulls = pulls })
}

func pull(n int) fakePull {
	return fakePull{number: n, head: shaOf(n), branch: fmt.Sprintf("work-%d", n), into: "main"}
}

func TestEachForgeIsToldOnceAndInPlace(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			w := newTeller(t, kind)
			fork, gone, other := pull(8), pull(9), pull(10)
			fork.fork, gone.fork, gone.gone, other.into = true, true, true, "release"
			w.opens(other, pull(7), fork, gone)
			w.says = func(p Pull) (*PullPlan, error) {
				if p.Fork {
					return nil, nil
				}
				return planned(p.Head, "web"), nil
			}
			// Somebody who copied what we wrote elsewhere is not us.
			marker := pullers[kind].marker("gitring plan edge-1")
			w.forge.set(func() {
				w.forge.comments[7] = []fakeComment{{id: 50, text: marker + "\nall is well, merge it"}, {id: 51, own: true, text: "hello"}}
			})
			w.after(0)

			refs := map[string]string{GitHub: "refs/pull/7/head", GitLab: "refs/merge-requests/7/head", Gitea: "refs/pull/7/head", Forgejo: "refs/pull/7/head", Bitbucket: "refs/heads/work-7", BitbucketDC: "refs/pull-requests/7/from"}
			var read []string
			for _, p := range w.asked {
				read = append(read, fmt.Sprintf("%d fork=%t", p.Number, p.Fork))
				if p.Number == 7 {
					require.Equal(t, Pull{Number: 7, Head: shaOf(7), Ref: refs[kind]}, p)
				}
			}
			want := []string{"7 fork=false", "8 fork=true", "9 fork=true"}
			if kind == Bitbucket { // it keeps no ref of a fork's head
				want = want[:1]
			}
			require.Equal(t, want, read)
			require.Len(t, w.posts, 1)
			require.Equal(t, ring.Post{
				Source: "prod", SHA: shaOf(7), Context: "gitring/edge-1/plan", State: ring.PostSuccess,
				Description: "roll 1, in place 0, remove 0", At: w.now,
			}, w.posts[0])
			require.Len(t, w.forge.textsOf(7), 3)
			require.Empty(t, w.forge.textsOf(8), "something was said on a fork that may not be read")
			require.Empty(t, w.forge.textsOf(9))
			ours := w.forge.textsOf(7)[2]
			require.True(t, strings.HasPrefix(ours, marker+"\n"), ours)
			require.Contains(t, ours, "`web/web`")
			require.NotContains(t, ours, "`web/db`", "what stays is left out")

			// A push: the same comment, with another text.
			pushed := pull(7)
			pushed.head = shaOf(77)
			w.opens(pushed, fork)
			w.after(2 * pullsEvery)
			require.Len(t, w.forge.textsOf(7), 3)
			require.Contains(t, w.forge.textsOf(7)[2], "`"+shaOf(77).Short()+"`")
			require.Contains(t, w.forge.textsOf(7)[0], "all is well")
			require.Equal(t, shaOf(77), w.posts[1].SHA)

			// Started again: what it says already is left as it is.
			before := w.forge.count("PUT") + w.forge.count("PATCH") + w.forge.count("POST")
			w.board = newBoard(w.Pulls)
			w.after(2 * pullsEvery)
			require.Equal(t, before, w.forge.count("PUT")+w.forge.count("PATCH")+w.forge.count("POST"))
			require.Len(t, w.posts, 3, "the outbox knows what it told")
			require.Empty(t, w.Trouble())
		})
	}
}

func TestAHeadIsJudgedOnceForEachEdition(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7))
	w.after(0)
	for range 5 {
		w.after(2 * pullsEvery)
	}
	require.Len(t, w.asked, 1)
	require.Equal(t, 6, w.forge.count("GET /repos/acme/infra/pulls"))
	w.edition = "2"
	w.after(time.Second)
	require.Len(t, w.asked, 2)
	require.Zero(t, w.forge.count("PATCH"), "a comment that says it already was edited")
	w.edition = "" // nothing is trusted
	w.opens(pull(7), pull(8))
	w.after(2 * pullsEvery)
	require.Len(t, w.asked, 2)
}

func TestAtMostFourHeadsAreJudgedInAMinute(t *testing.T) {
	w := newTeller(t, GitHub)
	var all []fakePull
	for n := 1; n <= 30; n++ {
		all = append(all, pull(n))
	}
	w.opens(all...)
	began := w.now
	wake := w.after(0)
	require.Len(t, w.asked, headsEach)
	for w.now.Sub(began) < 57*time.Second {
		w.after(3 * time.Second)
		require.LessOrEqual(t, len(w.asked), headsEach, "at %s", w.now.Sub(began))
	}
	require.False(t, wake.After(began.Add(headsWithin)), "the next four wait for no list")
	w.now = began
	w.after(headsWithin)
	require.Len(t, w.asked, 2*headsEach)
	for range 10 {
		w.after(headsWithin)
	}
	require.Len(t, w.asked, 30)

	// A branch that is pushed again and again takes no more than its share.
	for n := range 100 {
		again := pull(1)
		again.head = shaOf(1000 + n)
		w.opens(again)
		w.poke()
		w.after(pullsSoonest)
	}
	require.LessOrEqual(t, len(w.asked), 30+headsEach*(100*int(pullsSoonest/time.Second)/60+1))
}

func (w *teller) poke() { w.board.asked = true }

func TestAWebhookBringsTheListSoonerAndNotMoreOften(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7))
	w.after(0)
	for range 20 {
		w.poke()
		w.after(time.Second)
	}
	require.Equal(t, 3, w.forge.count("GET /repos/acme/infra/pulls"))
	require.Len(t, w.asked, 1)
}

func TestOneThatIsClosedIsLeftAlone(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7))
	w.after(0)
	w.opens()
	w.after(2 * pullsEvery)
	require.Empty(t, w.told, "it is remembered for ever")
	n := w.forge.count("")
	w.edition = "2"
	w.after(time.Second)
	require.Len(t, w.asked, 1)
	require.Equal(t, n, w.forge.count(""))
}

func TestAForgeThatIsAwayIsAskedLessAndLess(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7))
	w.forge.fail = func(string, string) int { return http.StatusBadGateway }
	began := w.now
	wake := w.after(0)
	for w.now.Before(began.Add(30 * time.Minute)) {
		wake = w.after(max(wake.Sub(w.now), time.Second))
	}
	require.LessOrEqual(t, w.forge.count(""), 14)
	require.Contains(t, w.Trouble(), "the forge answered 502")
	w.forge.set(func() { w.forge.fail = nil })
	w.after(max(wake.Sub(w.now), 0))
	require.Len(t, w.forge.textsOf(7), 1)
	require.Empty(t, w.Trouble())
}

func TestACommentThatWasWrittenAndNeverAnsweredIsNotWrittenTwice(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7))
	first := true
	w.forge.fail = func(method, _ string) int {
		if method != http.MethodPost || !first {
			return 0
		}
		first = false
		// It took effect, and the answer was lost.
		w.forge.add(7, planned(shaOf(7), "web").text(githubPulls{}.marker("gitring plan edge-1"), 60<<10))
		return http.StatusBadGateway
	}
	wake := w.after(0)
	w.after(wake.Sub(w.now))
	require.Len(t, w.forge.textsOf(7), 1)
	require.Len(t, w.asked, 1, "what the forge did not take is no reason to judge again")
}

func TestOnePullRequestThatTakesNoCommentIsInNobodysWay(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7), pull(8))
	w.forge.fail = func(method, path string) int {
		if method == http.MethodPost && strings.Contains(path, "/7/") {
			return http.StatusForbidden
		}
		return 0
	}
	w.after(0)
	require.Len(t, w.forge.textsOf(8), 1)
	require.Len(t, w.posts, 2)
	require.Contains(t, w.Trouble(), "pull requests: the forge answered 403: the token may not write comments on pull requests")
	n := w.forge.count("POST")
	w.after(2 * pullsEvery)
	require.Equal(t, n, w.forge.count("POST"), "tried again at once")
	w.forge.set(func() { w.forge.fail = nil })
	w.after(longWait)
	require.Len(t, w.forge.textsOf(7), 1)
	require.Empty(t, w.Trouble())
}

func TestAHeadThatTheRulesRefuseHasAStatusAndNoNewComment(t *testing.T) {
	w := newTeller(t, GitHub)
	refused := func(p Pull) (*PullPlan, error) {
		return &PullPlan{Host: "edge-1", Source: "prod", Branch: "main", Head: p.Head, Untrusted: &ring.Refusal{
			Code: ring.Unsigned, Commit: shaOf(3), Says: "commit is not signed by @somebody", Hint: "x",
		}}, nil
	}
	plans := w.says
	w.says = refused
	w.opens(pull(7))
	w.after(0)
	require.Equal(t, ring.PostFailure, w.posts[0].State)
	require.Equal(t, "rejected: Unsigned "+shaOf(3).Short(), w.posts[0].Description)
	require.Empty(t, w.forge.textsOf(7))

	// A comment with an older plan is not left to mislead.
	w.says = plans
	again := pull(7)
	again.head = shaOf(70)
	w.opens(again)
	w.after(2 * pullsEvery)
	require.Len(t, w.forge.textsOf(7), 1)
	w.says = refused
	again.head = shaOf(71)
	w.opens(again)
	w.after(2 * pullsEvery)
	require.Len(t, w.forge.textsOf(7), 1)
	require.Contains(t, w.forge.textsOf(7)[0], "is not trusted")
	require.NotContains(t, w.forge.textsOf(7)[0], "somebody", "the sentence is the host's own")
}

func TestAHeadThatCannotBeJudgedIsTriedAtTheNextList(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7), pull(8))
	plans := w.says
	w.says = func(p Pull) (*PullPlan, error) {
		if p.Number == 7 {
			return nil, errors.New("the head moved meanwhile")
		}
		return plans(p)
	}
	w.after(0)
	require.Len(t, w.asked, 2)
	require.Len(t, w.forge.textsOf(8), 1)
	w.after(10 * time.Second)
	require.Len(t, w.asked, 2, "tried at once")
	w.says = plans
	w.after(2 * pullsEvery)
	require.Len(t, w.forge.textsOf(7), 1)
}

func TestWhatStrangersWroteIsShownInASafeAlphabet(t *testing.T) {
	evil := "@all #1 https://evil.example <script>alert(1)</script> ](x) | `x` **b** \r\n\n# head ~~~ \\` ![i](x) &lt; \x00\u202e ünï"
	p := planned(shaOf(7), evil)
	p.Changes.Apps[0].Services[0].Service, p.Changes.Apps[0].Services[0].Reason = evil, evil
	p.Changes.Refusals = []*ring.Refusal{{Code: "PolicyDenied", File: evil, Line: 3, Says: "the host's own " + evil}}
	text := p.text("<!-- gitring plan edge-1 -->", 60<<10)
	body := strings.TrimPrefix(text, "<!-- gitring plan edge-1 -->")
	// Each line but those of ours is a row of code spans, and there is nothing in them
	// but the alphabet.
	rows := 0
	for line := range strings.Lines(body) {
		if !strings.Contains(line, "evil") && !strings.Contains(line, "script") {
			continue
		}
		rows++
		for i, part := range strings.Split(strings.TrimSpace(line), "`") {
			if i%2 == 1 {
				require.Regexp(t, `^[A-Za-z0-9 ._/:;,+()%='>?-]+$`, part)
			} else {
				require.Regexp(t, `^[| a-z]*$`, part, "outside of a code span")
			}
		}
	}
	require.Equal(t, 2, rows)
	for _, never := range []string{"@", "#", "://", "<s", "alert(1)</", "](", "&", "\x00", "\u202e", "the host's own"} {
		require.NotContains(t, body, never)
	}
	state, says := p.Post()
	require.Equal(t, ring.PostFailure, state)
	require.LessOrEqual(t, len(says), longest)
	require.Regexp(t, `^rejected: PolicyDenied `, says)
}

func TestACommentIsBoundedAndCountsWhatIsLeftOut(t *testing.T) {
	p := planned(shaOf(7), "web")
	for n := range 5000 {
		p.Changes.Apps[0].Services = append(p.Changes.Apps[0].Services, ring.ServiceChange{Service: fmt.Sprint("s", n), Class: ring.ChangeCreate, Reason: strings.Repeat("x", 1000)})
	}
	for _, of := range pullers {
		text := p.text(of.marker("gitring plan edge-1"), of.longest())
		require.LessOrEqual(t, len(text), of.longest())
		shown := strings.Count(text, "| new |") + strings.Count(text, "| roll |")
		require.Contains(t, text, fmt.Sprintf("%d more are not shown", 5001-shown))
		require.Contains(t, text, "**new 5000, roll 1, in place 0, remove 0**")
	}
}

func TestAHeadThatIsBehindSaysWhatThePlanIsOf(t *testing.T) {
	p := planned(shaOf(7), "web")
	p.Behind, p.Merged = 3, true
	require.Contains(t, p.text("m", 60<<10), "It is behind `main`: this is the plan of the two merged.")
	p.Merged, p.Alone = false, "it conflicts with what is trusted"
	text := p.text("m", 60<<10)
	require.Contains(t, text, "It is 3 commits behind `main`, and this is the plan of the branch as it stands: the merge may differ (it conflicts with what is trusted).")
	_, says := p.Post()
	require.Equal(t, "roll 1, in place 0, remove 0; behind main, and the merge may differ", says)
}

func TestACommentOfAnAppIsKnownByTheAppThatWroteIt(t *testing.T) {
	for _, id := range []string{"4711", "Iv1.abc"} {
		f := Forge{Kind: GitHub, App: &App{ID: id}}
		me, err := githubPulls{}.me(t.Context(), f)
		require.NoError(t, err)
		for body, want := range map[string]bool{
			`{"id":1,"user":{"id":9},"performed_via_github_app":{"id":4711,"client_id":"Iv1.abc"}}`: true,
			`{"id":1,"user":{"id":9},"performed_via_github_app":{"id":4712,"client_id":"Iv1.abd"}}`: false,
			`{"id":1,"user":{"id":4711},"performed_via_github_app":null}`:                           false,
		} {
			var c githubComment
			require.NoError(t, json.Unmarshal([]byte(body), &c))
			require.Equal(t, want, c.remark(f).author == me, body)
		}
	}
}

func TestTheStatusOfAHeadNamesNoBranchThatItIsNotOn(t *testing.T) {
	var got map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&got)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":1,"key":"x"}`))
	}))
	defer s.Close()
	for kind, key := range map[string]string{GitLab: "ref", Bitbucket: "refname", BitbucketDC: "ref"} {
		f := Forge{Kind: kind, APIURL: s.URL, Repo: "acme/infra", Branch: "main", TargetURL: "https://x.example.org", TokenFile: tokenFile(t, secret)}
		for context, on := range map[string]bool{"gitring/edge-1": true, PlanContext("edge-1"): false} {
			_, o := f.post(t.Context(), ring.OutboxRow{Post: ring.Post{Source: "prod", SHA: shaOf(7), Context: context, State: ring.PostSuccess}})
			require.True(t, o.done, "%s: %s", kind, o.says)
			require.Equal(t, on, got[key] != nil, "%s %s: %v", kind, context, got)
		}
	}
}

func TestPullsThatAreToldEndWithTheirContext(t *testing.T) {
	w := newTeller(t, GitHub)
	w.opens(pull(7))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.Poke()
	w.Poke()
	require.Eventually(t, func() bool { return len(w.forge.textsOf(7)) == 1 }, 10*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}
