package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// aDaemonOf is a daemon that follows its first source, whose remote is away.
func aDaemonOf(t *testing.T, c *config.Config, dir string) (*Daemon, *gitsync.Follower) {
	t.Helper()
	d := &Daemon{cfg: c, log: slog.New(slog.DiscardHandler)}
	cfg := config.GitConfig(c, &c.Sources[0])
	cfg.URL, cfg.Isolated, cfg.Dir = "file://"+dir+"/none", false, dir+"/mirror"
	git, err := gitsync.New(cfg, trustsNothing{}, d.log)
	require.NoError(t, err)
	d.sources = []*follower{{d: d, cfg: &c.Sources[0], git: git}}
	return d, git
}

// listened is what serve wires between its listener and the follower of one source,
// whose remote is away: a look that fails is one too.
func listened(t *testing.T, dir string, during func(ask func(body, from string) int)) (looks []time.Time) {
	t.Helper()
	c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte(`host: edge-1
sources:
  - name: prod
    url: https://git.example.org/acme/infra.git
    branch: live
    poll: 24h
    webhook: {forge: github, secret_file: hook}
    trust: {mode: disabled}
`), environment())
	require.NoError(t, err)
	d, git := aDaemonOf(t, c, dir)
	hooks, err := d.webhooks()
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- git.Run(ctx, func(context.Context, ring.Report) { looks = append(looks, time.Now()) })
	}()
	time.Sleep(10 * time.Second)
	during(func(body, from string) int {
		r := pushSigned(body, strings.NewReader(body))
		r.Header.Set("X-GitHub-Event", "push")
		r.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, r)
		return w.Code
	})
	time.Sleep(10 * time.Second)
	cancel()
	require.NoError(t, <-ended)
	return looks
}

func hookFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hook"), append(slices.Clone(pushSecret), '\n'), 0o600))
	return dir
}

// From the request to the look at the remote, in a bubble of time. A thousand of the
// same come in four and a half seconds, from a hundred addresses.
func TestAThousandReplayedWebhooksAreOneLookASecondAndOneAfterTheLast(t *testing.T) {
	dir := hookFolder(t)
	synctest.Test(t, func(t *testing.T) {
		var began, last time.Time
		looks := listened(t, dir, func(ask func(body, from string) int) {
			began = time.Now()
			for i := range 1000 {
				last = time.Now()
				require.Equal(t, http.StatusAccepted, ask(`{"ref":"refs/heads/live"}`, fmt.Sprintf("192.0.2.%d:1", i%100)))
				time.Sleep(4500 * time.Microsecond)
			}
		})
		looks = slices.DeleteFunc(looks, func(at time.Time) bool { return at.Before(began) })
		require.Equal(t, began, looks[0], "the first is heeded at once")
		require.Len(t, looks, 6)
		for i := range looks[1:] {
			require.GreaterOrEqual(t, looks[i+1].Sub(looks[i]), time.Second)
		}
		require.False(t, looks[5].Before(last), "no look after the last one")
	})
}

func TestAWebhookOfAnotherBranchIsNoReasonToLook(t *testing.T) {
	dir := hookFolder(t)
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		looks := listened(t, dir, func(ask func(body, from string) int) {
			began = time.Now()
			for _, body := range []string{`{"ref":"refs/heads/main"}`, `{"ref":"refs/tags/live"}`, `{"ref":"refs/heads/live","deleted":true}`} {
				require.Equal(t, http.StatusAccepted, ask(body, "192.0.2.1:1"))
			}
		})
		require.NotEmpty(t, looks)
		require.False(t, slices.ContainsFunc(looks, began.Equal), "a webhook that counts is heeded at once")
	})
}

func TestTheDoctorSaysWhetherAWebhookWasTaken(t *testing.T) {
	dir := hookFolder(t)
	c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte(`host: edge-1
listen: {http: "127.0.0.1:9480"}
sources:
  - name: prod
    url: https://git.example.org/acme/infra.git
    webhook: {forge: github, secret_file: hook}
    trust: {mode: disabled}
  - {name: lab, url: "https://git.example.org/acme/lab.git", trust: {mode: disabled}}
`), environment())
	require.NoError(t, err)
	d, _ := aDaemonOf(t, c, dir)
	hooks, err := d.webhooks()
	require.NoError(t, err)
	send := func(signed string) {
		r := pushSigned(signed, strings.NewReader(`{"ref":"refs/heads/main"}`))
		r.Header.Set("X-GitHub-Event", "push")
		hooks.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, []doctor.Webhook{{Source: "prod"}}, d.hooks.of(c), "a source without a webhook is none")
	send("something else")
	require.Equal(t, []doctor.Webhook{{Source: "prod", Refused: 1}}, d.hooks.of(c))
	send(`{"ref":"refs/heads/main"}`)
	came := d.hooks.of(c)
	require.WithinDuration(t, time.Now(), came[0].Taken, time.Minute)
	require.Equal(t, 1, came[0].Refused)
}
