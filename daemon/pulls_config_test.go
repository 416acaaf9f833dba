package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
)

func sourceWithPulls(name, branch string) string {
	return `  - name: ` + name + `
    url: https://git.example.org/acme/infra.git
    branch: ` + branch + `
    trust: {mode: disabled}
    status: {forge: gitea, token_file: /etc/gitring/token, pull_requests: true}
`
}

func TestOnePullRequestIsToldByOneSource(t *testing.T) {
	_, err := config.Parse("c.yaml", []byte("host: edge-1\nsources:\n"+sourceWithPulls("prod", "main")+sourceWithPulls("lab", "lab")), environment())
	require.NoError(t, err)
	_, err = config.Parse("c.yaml", []byte("host: edge-1\nsources:\n"+sourceWithPulls("prod", "main")+sourceWithPulls("lab", "main")), environment())
	require.ErrorContains(t, err, `c.yaml:12: status.pull_requests: source "prod" tells the pull requests into main of acme/infra already`)
}

func TestNothingLooksAtPullRequestsUnlessASourceAsksForIt(t *testing.T) {
	cfg := lonely(t, "")
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	require.Nil(t, d.sources[0].pulls)
	d.sources[0].pokePulls() // by a webhook
	err = d.postPlan(t.Context(), ring.Post{Source: "prod", SHA: older, Context: notify.PlanContext("edge-1"), State: ring.PostSuccess})
	require.ErrorContains(t, err, "not the head of a pull request")
}

func TestAStatusOfAHeadGoesToItsOwnContextAlone(t *testing.T) {
	cfg := lonely(t, "")
	cfg.Sources[0].Status = &config.ForgeStatus{Forge: notify.Gitea, TokenFile: "/nonexistent", APIURL: "http://127.0.0.1:1", Repo: "acme/infra", PullRequests: true}
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	due := func() (all []string) {
		rows, err := d.store.Due(context.Background(), time.Now().Add(time.Hour), 10)
		require.NoError(t, err)
		for _, r := range rows {
			all = append(all, string(r.Post.SHA)+" "+r.Post.Context+" "+r.Post.Description)
		}
		return all
	}
	for _, bad := range []string{"gitring/edge-1", "gitring/edge-1/web", "gitring/other/plan"} {
		require.Error(t, d.postPlan(t.Context(), ring.Post{Source: "prod", SHA: older, Context: bad, State: ring.PostSuccess}), bad)
	}
	require.Error(t, d.postPlan(t.Context(), ring.Post{Source: "nobody", SHA: older, Context: notify.PlanContext("edge-1")}))
	require.Empty(t, due())
	p := ring.Post{Source: "prod", SHA: older, Context: notify.PlanContext("edge-1"), State: ring.PostSuccess, Description: "roll 1, in place 0, remove 0"}
	require.NoError(t, d.postPlan(t.Context(), p))
	require.Equal(t, []string{strings.Join([]string{string(older), p.Context, p.Description}, " ")}, due())
}
