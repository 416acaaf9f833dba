package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// wordShapes are the answers of each forge as its documentation has them, with what is of no
// interest: other people's statuses, other hosts, apps.
var wordShapes = map[string]struct{ path, body string }{
	GitHub: {"/repos/acme/infra/commits/" + string(sha) + "/status", `{"state":"failure","sha":"` + string(sha) + `","total_count":5,"commit_url":"https://x","url":"https://x","repository":{"id":1},"statuses":[
		{"url":"https://x","avatar_url":"https://x","id":1,"node_id":"a","state":"success","description":"healthy 2/2","target_url":null,"context":"gitring/good","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"},
		{"id":2,"state":"failure","description":"web unhealthy\u001b[31m","target_url":"https://x","context":"GitRing/bad"},
		{"id":3,"state":"error","description":"superseded by 1a2b3c4","context":"gitring/away"},
		{"id":4,"state":"pending","description":null,"context":"gitring/slow"},
		{"id":5,"state":"success","description":"","context":"gitring/none/web"},
		{"id":6,"state":"failure","description":"","context":"ci/none"}]}`},
	Gitea: {"/repos/acme/infra/commits/" + string(sha) + "/status", `{"state":"failure","sha":"` + string(sha) + `","total_count":6,"statuses":[
		{"id":1,"status":"success","target_url":"","description":"healthy 2/2","url":"https://x","context":"gitring/good","creator":{"id":1,"login":"bot"},"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"},
		{"id":2,"status":"failure","description":"web unhealthy\u001b[31m","context":"gitring/bad"},
		{"id":3,"status":"warning","description":"superseded by 1a2b3c4","context":"gitring/away"},
		{"id":4,"status":"pending","description":"","context":"gitring/slow"},
		{"id":5,"status":"success","description":"","context":"gitring/none/web"}],"repository":{"id":1},"commit_url":"","url":""}`},
	GitLab: {"/projects/acme%2Fteam%2Finfra/repository/commits/" + string(sha) + "/statuses", `[
		{"id":91,"sha":"` + string(sha) + `","ref":"main","status":"failed","name":"gitring/good","target_url":null,"description":"of an older pipeline","created_at":"2026-01-01T00:00:00Z","started_at":null,"finished_at":null,"allow_failure":false,"coverage":null,"pipeline_id":1,"author":{"id":1}},
		{"id":93,"sha":"` + string(sha) + `","ref":"main","status":"success","name":"gitring/good","description":"healthy 2/2"},
		{"id":92,"ref":"main","status":"failed","name":"gitring/bad","description":"web unhealthy\u001b[31m"},
		{"id":94,"ref":"main","status":"canceled","name":"gitring/away","description":"superseded by 1a2b3c4"},
		{"id":95,"ref":"main","status":"running","name":"gitring/slow","description":null},
		{"id":96,"ref":"main","status":"success","name":"gitring/none/web","description":""}]`},
	Bitbucket: {"/repositories/acme/infra/commit/" + string(sha) + "/statuses", `{"pagelen":100,"size":5,"page":1,"values":[
		{"type":"build","links":{"self":{"href":"https://x"}},"uuid":"{1}","key":"` + shortKey("gitring/good") + `","refname":"main","url":"https://x","state":"SUCCESSFUL","name":"gitring/good","description":"healthy 2/2","created_on":"2026-01-01T00:00:00Z","updated_on":"2026-01-01T00:00:00Z"},
		{"type":"build","key":"` + shortKey("gitring/bad") + `","state":"FAILED","name":"gitring/bad","description":"web unhealthy\u001b[31m"},
		{"type":"build","key":"` + shortKey("gitring/away") + `","state":"STOPPED","name":"gitring/away","description":"superseded by 1a2b3c4"},
		{"type":"build","key":"` + shortKey("gitring/slow") + `","state":"INPROGRESS","name":"gitring/slow","description":null},
		{"type":"build","key":"other","state":"SUCCESSFUL","name":"gitring/none","description":""}]}`},
}

// dcBuilds are those of Data Center, which is asked for one key at a time.
var dcBuilds = map[string]string{
	"gitring/good": `{"key":"gitring/good","state":"SUCCESSFUL","name":"gitring/good","url":"https://x","description":"healthy 2/2","createdDate":1,"updatedDate":2,"ref":"refs/heads/main"}`,
	"gitring/bad":  `{"key":"gitring/bad","state":"FAILED","url":"https://x","description":"web unhealthy\u001b[31m"}`,
	"gitring/away": `{"key":"gitring/away","state":"CANCELLED","url":"https://x","description":"superseded by 1a2b3c4"}`,
	"gitring/slow": `{"key":"gitring/slow","state":"INPROGRESS","url":"https://x"}`,
}

// serveWords has the fake of a forge tell its statuses.
func serveWords(f *fake) {
	if f.kind == BitbucketDC {
		f.on("GET", "/projects/OPS/repos/infra/commits/"+string(sha)+"/builds", func(q url.Values, _ []byte) fakeAnswer {
			if body, known := dcBuilds[q.Get("key")]; known {
				return fakeAnswer{code: http.StatusOK, body: body}
			}
			return fakeAnswer{code: http.StatusNotFound, body: `{"errors":[{"context":null,"message":"No build status","exceptionName":"com.atlassian.bitbucket.NoSuchEntityException"}]}`}
		})
		return
	}
	kind := f.kind
	if kind == Forgejo {
		kind = Gitea
	}
	f.on("GET", wordShapes[kind].path, func(q url.Values, _ []byte) fakeAnswer {
		if q.Get("page") != "1" {
			f.not("page %q of a list that is not full", q.Get("page"))
		}
		return fakeAnswer{code: http.StatusOK, body: wordShapes[kind].body}
	})
}

func TestEachForgeTellsWhatOtherHostsSay(t *testing.T) {
	contexts := []string{"gitring/good", "gitring/bad", "gitring/away", "gitring/slow", "gitring/none"}
	for _, kind := range Kinds() {
		f := newFake(t, kind)
		serveWords(f)
		said, err := hear(t.Context(), f.forge(t), sha, contexts)
		require.NoError(t, err, kind)
		require.Equal(t, map[string]ring.Word{
			"gitring/good": {State: ring.PostSuccess, Says: "healthy 2/2"},
			"gitring/bad":  {State: ring.PostFailure, Says: "web unhealthy[31m"},
			"gitring/away": {State: ring.PostError, Says: "superseded by 1a2b3c4"},
			"gitring/slow": {State: ring.PostPending},
		}, said, kind)
		for _, no := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError, http.StatusFound} {
			f.answer(fakeAnswer{code: no})
			_, err = hear(t.Context(), f.forge(t), sha, contexts[:1])
			require.Error(t, err, "%s %d", kind, no)
		}
		f.answer(fakeAnswer{code: http.StatusOK, header: map[string]string{"Content-Type": "text/html"}, body: "<html>sign in</html>"})
		_, err = hear(t.Context(), f.forge(t), sha, contexts[:1])
		require.ErrorContains(t, err, "web page", kind)
	}
}

// Where one word stands for error and for failure, it is read as failure, and what we write
// for the others is read as what it was.
func TestWhatAHostWritesIsReadAsItWasMeant(t *testing.T) {
	for kind, words := range map[string]struct {
		written words
		read    map[string]string
	}{
		GitHub: {plainStates, plainWords}, GitLab: {gitlabStates, gitlabWords},
		Bitbucket: {bitbucketStates, bitbucketWords}, BitbucketDC: {bitbucketDCStates, bitbucketWords},
	} {
		say := func(state, phase string) string { return wordIn(words.read, words.written.of(state, phase), "").State }
		require.Equal(t, ring.PostSuccess, say(ring.PostSuccess, ""), kind)
		require.Equal(t, ring.PostFailure, say(ring.PostFailure, ""), kind)
		require.Equal(t, ring.PostPending, say(ring.PostPending, ""), kind)
		require.Equal(t, ring.PostPending, say(ring.PostPending, ring.PostRunning), kind)
		require.Equal(t, ring.PostError, say(ring.PostError, ring.PostSuperseded), kind)
		require.Contains(t, []string{ring.PostError, ring.PostFailure}, say(ring.PostError, ""), kind)
	}
	require.Equal(t, ring.PostPending, wordIn(gitlabWords, "waiting_for_resource", "").State, "a word that is not known says nothing")
}

func TestALongListOfStatusesIsReadToItsEnd(t *testing.T) {
	f := newFake(t, GitHub)
	f.on("GET", wordShapes[GitHub].path, func(q url.Values, _ []byte) fakeAnswer {
		var all []string
		for i := range 100 {
			all = append(all, fmt.Sprintf(`{"context":"ci/%s-%d","state":"success"}`, q.Get("page"), i))
		}
		if q.Get("page") == "3" {
			all = []string{`{"context":"gitring/good","state":"success","description":"at the end"}`}
		}
		return fakeAnswer{code: http.StatusOK, body: `{"statuses":[` + strings.Join(all, ",") + `]}`}
	})
	said, err := hear(t.Context(), f.forge(t), sha, []string{"gitring/good"})
	require.NoError(t, err)
	require.Equal(t, "at the end", said["gitring/good"].Says)
	require.Len(t, f.requests(), 3)
}

func TestWordsAreReadOftenAtFirstAndOnlyWhereTheyAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pokes, asked := 0, 0
		var answer map[string]ring.Word
		var fails error
		w := NewWords(map[string]Forge{"prod": {Kind: GitHub}}, func() { pokes++ }, slog.New(slog.DiscardHandler))
		w.hear = func(_ context.Context, _ Forge, at ring.SHA, contexts []string) (map[string]ring.Word, error) {
			asked++
			require.Equal(t, sha, at)
			require.Equal(t, []string{"gitring/canary-1"}, contexts)
			return answer, fails
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		during := func(d time.Duration) int {
			before := asked
			time.Sleep(d)
			synctest.Wait()
			return asked - before
		}
		require.Zero(t, during(time.Hour), "nobody wants a word")

		at := ring.WordAt{Source: "prod", Commit: sha, Host: "canary-1"}
		w.Watch([]ring.WordAt{at})
		require.Equal(t, 1, during(time.Second))
		require.Equal(t, map[ring.WordAt]ring.Word{at: {}}, w.Seen())
		require.Equal(t, 1, pokes)
		w.Watch([]ring.WordAt{at})
		require.Equal(t, 4, during(time.Minute))
		require.Equal(t, 1, pokes, "it says the same")

		answer = map[string]ring.Word{"gitring/canary-1": {State: ring.PostSuccess}}
		during(15 * time.Second)
		require.Equal(t, ring.PostSuccess, w.Seen()[at].State)
		require.Equal(t, 2, pokes)
		fails = outcome{says: "the forge answered 429", wait: 5 * time.Minute}
		during(15 * time.Second)
		require.Equal(t, ring.Word{Says: "the forge answered 429"}, w.Seen()[at], "no answer is no success")
		require.Equal(t, 3, pokes)
		require.Zero(t, during(4*time.Minute+44*time.Second), "it said when to come back")
		fails = errors.New("cannot reach the forge")
		require.NotZero(t, during(5*time.Minute))
		require.LessOrEqual(t, during(10*time.Minute), 11, "after ten minutes once a minute")

		w.Watch(nil)
		require.Zero(t, during(time.Hour))
		require.Empty(t, w.Seen())
		stop()
		require.NoError(t, <-done)
	})
}
