package notify

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// speaks answers each connection with the same bytes, HTTP or not, and echoes the
// headers that it was sent in place of %s.
func speaks(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err == nil {
				_, _ = fmt.Fprintf(c, answer, r.Header.Get("Authorization")+r.Header.Get("Private-Token"))
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-ended
	})
	return "http://" + l.Addr().String()
}

// What is no HTTP, or leads to no address, may hold the token that it was sent.
func TestAnAnswerThatIsNoHTTPIsNotRepeated(t *testing.T) {
	for name, answer := range map[string]string{
		"another protocol":          "SSH-2.0-%s\r\n",
		"a code that is no number":  "HTTP/1.1 %s\r\n\r\n",
		"a header without a colon":  "HTTP/1.1 201 Created\r\n%s\r\n\r\n",
		"a length that is none":     "HTTP/1.1 201 Created\r\nContent-Length: %s\r\n\r\n",
		"an encoding that is none":  "HTTP/1.1 201 Created\r\nTransfer-Encoding: %s\r\n\r\n",
		"a redirect to no address":  "HTTP/1.1 302 Found\r\nLocation: http://%%zz/%s\r\nContent-Length: 0\r\n\r\n",
		"a redirect of no protocol": "HTTP/1.1 307 Found\r\nLocation: %s:\x01\r\nContent-Length: 0\r\n\r\n",
		"chunks that are none":      "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
	} {
		for _, kind := range []string{GitHub, GitLab} {
			t.Run(name+": "+kind, func(t *testing.T) {
				f := Forge{Kind: kind, APIURL: speaks(t, answer), Repo: "acme/infra", TokenFile: tokenFile(t, secret)}
				o := f.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
				require.False(t, o.done)
				require.NotContains(t, o.says, secret)
				require.NotContains(t, o.says, "SSH")
				require.NotContains(t, o.says, "zz")
			})
		}
	}
}

func TestAWrongProxyOfTheEnvironmentIsNotRepeated(t *testing.T) {
	f := Forge{Kind: GitHub, APIURL: "http://forge.example.org", Repo: "acme/infra", TokenFile: tokenFile(t, secret), Client: &http.Client{
		Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("invalid proxy address %q: no", "http://bot:hunter2@ proxy")
		}),
	}}
	require.NotContains(t, f.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).says, "hunter2")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A forge's word on time is kept between a second and a day, whatever it says.
func TestAForgesWordOnTimeIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		retry, reset string
		want         time.Duration
	}{
		{"0", "", time.Second},
		{"-1", "", time.Second},
		{"99999999999999999999", "", time.Minute},
		{"NaN", "", time.Minute},
		{"1e9", "", time.Minute},
		{"2147483647", "", giveUp},
		{now.Add(-time.Hour).Format(http.TimeFormat), "", time.Second},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", giveUp},
		{"", "-5", time.Minute},
		{"", "0", time.Minute},
		{"", fmt.Sprint(now.Add(-time.Hour).Unix()), time.Second},
		{"", "999999999", giveUp},
		{"", "9223372036854775807", giveUp},
		{"", "100000000000000", giveUp},
		{"", "99999999999", giveUp},
		{"", "99999999999999999999", time.Minute},
	} {
		h := http.Header{}
		h.Set("Retry-After", tc.retry)
		h.Set("X-Ratelimit-Reset", tc.reset)
		h.Set("Date", now.Format(http.TimeFormat))
		require.Equal(t, tc.want, comeBack(h), "%+v", tc)
	}
}

// A yes that is none of the forge's API is no yes.
func TestAYesOfAnotherShapeIsNotBelieved(t *testing.T) {
	for _, body := range []string{"", "null", "OK", "[]", "{}", `"yes"`, `{"status":"ok"}`, `{"message":"sign in"}`} {
		for _, kind := range []string{GitHub, Gitea, GitLab, Bitbucket} {
			f := newFake(t, kind)
			f.answer(fakeAnswer{200, nil, body})
			o := f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
			require.False(t, o.done || o.permanent, "%s took %q", kind, body)
			require.Contains(t, o.says, "status.api_url")
		}
	}
}

// GitLab's newest releases hand back no pipeline, and a pipeline that is no number
// may not be another one's.
func TestAStatusWithoutAPipelineKeepsTheOneThatIsKnown(t *testing.T) {
	f := newFakeGitLab(t)
	f.pipeline = 7
	r := ring.OutboxRow{Key: "x", Seq: 1, Remote: "7", Post: post("gitring/edge-1", ring.PostSuccess, "healthy")}
	f.answer(fakeAnswer{201, nil, `{"id":93,"name":"gitring/edge-1"}`})
	remote, o := f.forge(t).post(t.Context(), r)
	require.True(t, o.done)
	require.Equal(t, "7", remote)
}

// A list, and an answer, without numbers are no deployment with the number 0.
func TestADeploymentWithoutANumberIsNone(t *testing.T) {
	for _, kind := range []string{GitHub, GitLab} {
		for _, answers := range [][]fakeAnswer{{ok([]struct{}{{}})}, {ok([]int{}), created(struct{}{})}} {
			f := newFake(t, kind)
			f.answer(answers...)
			forge := f.forge(t)
			forge.Deployments = true
			p := post(ring.DeploymentContext("edge-1", "web"), ring.PostSuccess, "healthy")
			if answers[0].body != "[]" {
				var list []map[string]any
				require.NoError(t, json.Unmarshal([]byte(answers[0].body), &list))
				list[0]["sha"] = sha // GitLab's is found by it
				f.answers[0] = ok(list)
			}
			remote, o := forge.post(t.Context(), ring.OutboxRow{Key: "x", Seq: 1, Post: p})
			require.False(t, o.done || o.permanent, "%s: %+v", kind, o)
			require.Empty(t, remote)
			for _, asked := range f.requests() {
				require.NotContains(t, asked, "/0", kind)
			}
		}
	}
}

// The clock was a year ahead, as of a board without a battery, and is put right.
func TestAClockThatIsSetBackSilencesNoForge(t *testing.T) {
	token := tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		l := lineOf(newLedger(), Forge{Kind: GitHub, APIURL: "https://forge.example.org", Repo: "acme/infra", TokenFile: token, Client: &http.Client{Transport: w}})
		outbox := l.outbox.(*ledger)
		ahead := time.Now().Add(365 * 24 * time.Hour)
		l.hold, l.since = ahead.Add(time.Minute), ahead
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		outbox.put(p)
		require.NoError(t, l.say(t.Context(), []ring.OutboxRow{outbox.row(p).OutboxRow}))
		require.Equal(t, []string{"gitring/edge-1 success"}, w.taken(), "it was given up for the hold of another time")

		progress := post("gitring/edge-1/web", ring.PostPending, "1/4 ready")
		progress.At = ahead
		outbox.put(progress)
		require.NoError(t, l.say(t.Context(), []ring.OutboxRow{outbox.row(progress).OutboxRow}))
		require.Len(t, w.taken(), 2, "progress of a time to come is told")
	})
}

func lineOf(outbox Outbox, f Forge) *line {
	s := New(outbox, map[string]Forge{"prod": f}, slog.New(slog.DiscardHandler))
	return (&desk{Sender: s, lines: map[string]*line{}}).line("prod")
}

// What is wrong with deployments is shown though statuses are taken, and the other
// way about.
func TestATroubleWithDeploymentsIsNotHiddenByStatuses(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		forge := d.forges["prod"]
		forge.Deployments = true
		d.forges["prod"] = forge
		d.prod.behave(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "deployments") {
				return says(http.StatusForbidden, nil), nil
			}
			return nil, nil
		})
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		d.say(post(ring.DeploymentContext("edge-1", "web"), ring.PostSuccess, "healthy"))
		d.say(post("gitring/edge-1/web", ring.PostSuccess, "healthy"))
		require.Equal(t, map[string]string{"prod": "the forge answered 403: the token may not write deployments"}, d.Trouble())
		d.prod.behave(nil)
		d.say(post(ring.DeploymentContext("edge-1", "db"), ring.PostError, "gone"))
		require.Contains(t, d.Trouble()["prod"], "cannot be read", "the wire knows no deployments")
	})
}

func TestTheAddressOfAnAPIHasNoEndOfItsOwn(t *testing.T) {
	for _, api := range []string{"https://git.example.org/api/v1?", "https://git.example.org/api/v1#", "https://git.example.org/api/v1/?#", "https:git.example.org", "https:///api/v1"} {
		_, err := NewForge(Gitea, "", api, "a/b", "/token")
		require.ErrorContains(t, err, "status.api_url", api)
	}
	f, err := NewForge(Gitea, "", "https://example.org/git/api/v1///", "ünï.cödé/a.b-c_d", "/token")
	require.NoError(t, err)
	require.Equal(t, "https://example.org/git/api/v1", f.APIURL)
	require.Equal(t, "/repos/%C3%BCn%C3%AF.c%C3%B6d%C3%A9/a.b-c_d/x", f.repoPath("repos", "x"))
	for _, repo := range []string{"a%2Fb/c", "a/..", "./b", "a/b?x", "a/b#x", `a\b/c`, "a//b", "/a/b", "a/b/", "a/\x00", "a/b\u2028", "a/\x7f"} {
		_, err := NewForge(Gitea, "", "https://git.example.org/api/v1", repo, "/token")
		require.ErrorContains(t, err, "status.repo", "%q", repo)
	}
}

// The canary is in nothing that is kept, shown or logged.
func TestTheTokenIsNowhereInTheOutboxOrTheLog(t *testing.T) {
	var log strings.Builder
	outbox := newLedger()
	f := Forge{Kind: GitHub, APIURL: speaks(t, "HTTP/1.1 500 %[1]s\r\nX: %[1]s\r\nContent-Length: 0\r\n\r\n"), Repo: "acme/infra", TokenFile: tokenFile(t, secret)}
	l := lineOf(outbox, f)
	l.log = slog.New(slog.NewTextHandler(&log, nil))
	p := post("gitring/edge-1", ring.PostSuccess, "healthy")
	outbox.put(p)
	require.NoError(t, l.say(context.Background(), []ring.OutboxRow{outbox.row(p).OutboxRow}))
	kept, err := json.Marshal([]any{outbox.row(p).OutboxRow, outbox.row(p).errors, l.Trouble(), log.String()})
	require.NoError(t, err)
	require.Contains(t, string(kept), "the forge answered 500")
	require.NotContains(t, string(kept), secret)
}

// Between the send and the note the daemon ended: the same outcome again is no fault.
func TestAnOutcomeThatGitLabHasAlreadyIsSaid(t *testing.T) {
	for event, was := range map[string]string{"success": "success", "drop": "failed", "cancel": "canceled", "run": "running"} {
		f := newFake(t, GitLab)
		f.answer(fakeAnswer{400, nil, fmt.Sprintf(`{"message":"Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via \"%s\")"}`, event, was, event)})
		require.True(t, f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).done, event)
	}
	for event, was := range map[string]string{"success": "failed", "drop": "success", "cancel": "success"} {
		f := newFake(t, GitLab)
		f.answer(fakeAnswer{400, nil, fmt.Sprintf(`{"message":"Cannot transition status via :%s from :%s"}`, event, was)})
		require.True(t, f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).permanent, event)
	}
}

// The daemon ends after the forge took a post and before that is noted: it is said
// once more, word for word, and that is all.
func TestAnEndBetweenTheSendAndTheNoteSaysItOnceMore(t *testing.T) {
	token := tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w, outbox := &wire{}, newLedger()
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		outbox.put(p)
		f := Forge{Kind: GitHub, APIURL: "https://forge.example.org", Repo: "acme/infra", TokenFile: token, Client: &http.Client{Transport: w}}
		outbox.fail(nil, fmt.Errorf("disk full"))
		require.Error(t, lineOf(outbox, f).say(t.Context(), []ring.OutboxRow{outbox.row(p).OutboxRow}))
		outbox.fail(nil, nil)
		for range 3 { // each a daemon of its own
			rows, err := outbox.Due(t.Context(), time.Now(), 10)
			require.NoError(t, err)
			require.NoError(t, lineOf(outbox, f).say(t.Context(), rows))
		}
		require.Equal(t, []string{"gitring/edge-1 success", "gitring/edge-1 success"}, w.taken())
	})
}
