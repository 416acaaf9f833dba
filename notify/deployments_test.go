package notify

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// told says posts one after the other as the same row, as a line does.
func (f Forge) told(t *testing.T, remote string, posts ...ring.Post) (string, outcome) {
	t.Helper()
	r := ring.OutboxRow{Remote: remote}
	var o outcome
	for i, p := range posts {
		r.Key, r.Seq, r.Post = ring.PostKey(p.SHA, p.Context), int64(i+1), p
		r.Remote, o = f.post(t.Context(), r)
	}
	return r.Remote, o
}

func deployed(state, phase string) ring.Post {
	p := post(ring.DeploymentContext("edge-1", "web"), state, "2/4 ready")
	p.Phase = phase
	return p
}

func TestADeploymentOnGitHubGoesFromQueuedToSuccess(t *testing.T) {
	f := newFakeGitHub(t)
	id, o := f.forge(t).told(t, "", deployed(ring.PostPending, ""), deployed(ring.PostPending, ring.PostRunning), deployed(ring.PostSuccess, ""))
	require.Equal(t, outcome{done: true}, o)
	require.Equal(t, "1", id)
	require.Len(t, f.deployments, 1)
	require.Equal(t, "edge-1/web", f.deployments[0].Environment)
	require.Equal(t, string(sha), f.deployments[0].Ref)
	require.Equal(t, []string{"queued", "in_progress", "success"}, f.deployments[0].States)
}

func TestEachEndOfADeploymentHasItsWord(t *testing.T) {
	for _, tc := range []struct{ state, phase, github, gitlab string }{
		{ring.PostSuccess, "", "success: 2/4 ready", "success"},
		{ring.PostFailure, "", "failure: 2/4 ready", "failed"},
		{ring.PostError, ring.PostTrouble, "error: 2/4 ready", "failed"},
		{ring.PostError, ring.PostSuperseded, "inactive: 2/4 ready", "canceled"},
	} {
		hub, lab := newFakeGitHub(t), newFakeGitLab(t)
		_, o := hub.forge(t).told(t, "", deployed(ring.PostPending, ring.PostRunning), deployed(tc.state, tc.phase))
		require.Equal(t, outcome{done: true}, o)
		require.Equal(t, tc.github, hub.shows("edge-1/web"))
		_, o = lab.forge(t).told(t, "", deployed(ring.PostPending, ring.PostRunning), deployed(tc.state, tc.phase))
		require.Equal(t, outcome{done: true}, o)
		require.Equal(t, tc.gitlab, lab.shows("edge-1/web"))
	}
}

// The answer to the creation is lost, or the daemon ends before it is noted.
func TestADeploymentIsNotMadeTwice(t *testing.T) {
	hub, lab := newFakeGitHub(t), newFakeGitLab(t)
	for _, f := range []Forge{hub.forge(t), lab.forge(t)} {
		_, o := f.told(t, "", deployed(ring.PostPending, ""))
		require.Equal(t, outcome{done: true}, o)
		_, o = f.told(t, "", deployed(ring.PostSuccess, ""))
		require.Equal(t, outcome{done: true}, o)
	}
	require.Len(t, hub.deployments, 1)
	require.Equal(t, []string{"queued", "success"}, hub.deployments[0].States)
	require.Len(t, lab.deployments, 1)
	require.Equal(t, "success", lab.deployments[0].Status)
}

func TestADeploymentThatIsMadeIsKnownAlsoWhenItsStateIsNotTaken(t *testing.T) {
	f := newFakeGitHub(t)
	f.answer(fakeAnswer{code: 200, body: "[]"}, fakeAnswer{code: 201, body: `{"id":1}`}, fakeAnswer{code: 502})
	f.routes["POST "+f.root+"/repos/acme/infra/deployments/1/statuses"] = nil
	id, o := f.forge(t).told(t, "", deployed(ring.PostSuccess, ""))
	require.Equal(t, "1", id)
	require.Equal(t, outcome{says: "the forge answered 502"}, o)
}

func TestADeploymentThatIsGoneIsLookedForTheNextTime(t *testing.T) {
	f := newFakeGitHub(t)
	f.answer(fakeAnswer{code: 404})
	f.routes["POST "+f.root+"/repos/acme/infra/deployments/7/statuses"] = nil
	id, o := f.forge(t).told(t, "7", deployed(ring.PostSuccess, ""))
	require.Empty(t, id)
	require.True(t, o.permanent)
}

func TestADeploymentOfGitLabIsNotToldWhatItIsAlready(t *testing.T) {
	f := newFakeGitLab(t)
	_, o := f.forge(t).told(t, "", deployed(ring.PostPending, ""), deployed(ring.PostPending, ring.PostRunning))
	require.Equal(t, outcome{done: true}, o)
	require.Equal(t, []string{"GET", "POST", "GET"}, methods(f.requests()))
}

func TestATokenWithoutDeploymentsSaysSo(t *testing.T) {
	f := newFakeGitHub(t)
	f.answer(fakeAnswer{code: 403, body: `{"message":"Resource not accessible by personal access token"}`})
	_, o := f.forge(t).told(t, "", deployed(ring.PostSuccess, ""))
	require.Equal(t, "the forge answered 403: the token may not write deployments", o.says)
}

func TestAForgeWithoutDeploymentsIsNotAsked(t *testing.T) {
	for _, kind := range []string{Gitea, Forgejo, Bitbucket, BitbucketDC} {
		require.False(t, Deploys(kind))
		f := newFake(t, kind)
		_, o := f.forge(t).told(t, "", deployed(ring.PostSuccess, ""))
		require.True(t, o.permanent)
		require.Empty(t, f.requests())
	}
	require.True(t, Deploys(GitHub) && Deploys(GitLab))
}

// A commit has one pipeline, which every context and the closing status share.
func TestGitLabStatusesStayInOnePipeline(t *testing.T) {
	f := newFakeGitLab(t)
	forge := f.forge(t)
	running := post("gitring/edge-1", ring.PostPending, "rolling")
	running.Phase = ring.PostRunning
	id, o := forge.told(t, "", post("gitring/edge-1", ring.PostPending, "queued"), running, post("gitring/edge-1", ring.PostSuccess, "healthy"))
	require.Equal(t, outcome{done: true}, o)
	require.Equal(t, "1", id)
	require.EqualValues(t, 1, f.pipeline)
	require.Equal(t, "success: healthy", f.shows("gitring/edge-1"))
}

func TestAPipelineThatIsGoneIsReplaced(t *testing.T) {
	f := newFakeGitLab(t)
	id, o := f.forge(t).told(t, "999", post("gitring/edge-1", ring.PostSuccess, "healthy"))
	require.Equal(t, outcome{done: true}, o)
	require.Equal(t, "1", id)
	require.Len(t, f.requests(), 2)
}

func TestGitLabShowsWhatRunsOnceAndThenTheOutcome(t *testing.T) {
	f := newFakeGitLab(t)
	forge := f.forge(t)
	for _, says := range []string{"1/4 ready", "2/4 ready", "3/4 ready"} {
		p := post("gitring/edge-1", ring.PostPending, says)
		p.Phase = ring.PostRunning
		_, o := forge.told(t, "1", p)
		require.Equal(t, outcome{done: true}, o, says)
		f.pipeline = 1
	}
	_, o := forge.told(t, "1", post("gitring/edge-1", ring.PostSuccess, "healthy 4/4"))
	require.Equal(t, outcome{done: true}, o)
	require.Equal(t, "success: healthy 4/4", f.shows("gitring/edge-1"))
}

func TestTheLineKnowsThePipelineOfACommit(t *testing.T) {
	f, outbox := newFakeGitLab(t), newLedger()
	l := (&desk{Sender: New(outbox, map[string]Forge{"prod": f.forge(t)}, slog.New(slog.DiscardHandler)), lines: map[string]*line{}}).line("prod")
	for _, context := range []string{"gitring/edge-1", "gitring/edge-1/web", "gitring/edge-1/db"} {
		p := post(context, ring.PostSuccess, "healthy")
		outbox.put(p)
		require.NoError(t, l.one(t.Context(), outbox.row(p).OutboxRow))
		require.Equal(t, "1", outbox.row(p).Remote)
	}
	require.EqualValues(t, 1, f.pipeline)
}

func TestDeploymentsThatNobodyAsksForAreNotSaid(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.say(deployed(ring.PostSuccess, ""))
		after(time.Minute)
		require.Empty(t, d.prod.times())
		require.True(t, d.outbox.row(deployed("", "")).said)
		require.Empty(t, d.Trouble())
	})
}

func methods(requests []string) (out []string) {
	for _, r := range requests {
		for i, c := range r {
			if c == ' ' {
				out = append(out, r[:i])
				break
			}
		}
	}
	return out
}
