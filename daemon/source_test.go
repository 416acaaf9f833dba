package daemon

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/health"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/runtime/enginetest"
	"github.com/gitring/gitring/store"
)

// following is a source of a daemon whose loop runs on an engine in memory.
func following(t *testing.T) *follower {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	s, err := store.Open(t.Context(), state)
	require.NoError(t, err)
	cfg := &config.Config{Host: "edge-1", State: state, DataRoot: filepath.Join(state, "data")}
	d := &Daemon{log: slog.New(slog.DiscardHandler), store: s, cfg: cfg, judge: admission.For(cfg), env: &envFolder{}}
	fake := enginetest.New(nil)
	fake.AddImage(enginetest.Image{Name: "web:1"})
	engine := runtime.Over(fake.Client(), runtime.Options{Host: "edge-1", ContentDir: s.ContentDir(), DataRoot: filepath.Join(state, "data")})
	d.contentStore = newContentStore(s, engine.Mounted, d.env.open)
	f := &follower{
		d: d, cfg: &config.SourceConfig{Name: "prod"}, settings: manifest.Settings{Source: "prod", Host: "edge-1"},
		source: reconcile.Source{Name: "prod", FreshFor: time.Hour}, heard: make(chan struct{}),
	}
	d.loop = reconcile.New(reconcile.Options{
		Host: "edge-1", Engine: engine, Health: health.New(health.Options{}, nil), Memory: s, Log: d.log,
	}, []reconcile.Source{f.source})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	})
	return f
}

// broken is a tree of which one file cannot be read, as long as it is not mended.
type broken struct {
	fs.FS
	mended bool
}

func (b *broken) ReadFile(name string) ([]byte, error) {
	if !b.mended && filepath.Base(name) == "compose.yaml" {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return fs.ReadFile(b.FS, name)
}

func (b *broken) Open(name string) (fs.File, error) {
	if !b.mended && filepath.Base(name) == "compose.yaml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return b.FS.Open(name)
}

const compose = "services:\n  web:\n    image: web:1\n    pull_policy: never\n    volumes: [\"./conf:/conf:ro\"]\n"

func (f *follower) says(t *testing.T) ring.SourceStatus {
	t.Helper()
	require.NoError(t, f.d.loop.Looked(t.Context()))
	st, _ := f.d.loop.Status()
	return st.Sources[0]
}

func TestACommitThatTheMirrorCouldNotReadIsReadAgain(t *testing.T) {
	f := following(t)
	tree := &broken{FS: fstest.MapFS{
		"web/compose.yaml": {Data: []byte(compose)}, "web/conf/a": {Data: []byte("1")}, "web/conf/deep/b": {Data: []byte("2")},
	}}
	r := ring.Report{Source: "prod", At: time.Now(), Reached: true, Tip: older, Commit: &ring.Commit{SHA: older, Tree: tree}}
	f.report(t.Context(), r)
	src := f.says(t)
	require.Contains(t, src.Reason, "cannot read commit 1111111")
	require.Nil(t, src.Refusal, "it is not the author's fault")
	require.Zero(t, src.Checked, "nothing may be removed by what was read before")
	require.Nil(t, f.source.Next)

	tree.mended = true
	f.report(t.Context(), r)
	require.NotNil(t, f.source.Next)
	var in ring.InForce
	require.Eventually(t, func() bool {
		facts, err := f.d.store.Facts(t.Context())
		in = facts.Apps["web"]
		return err == nil && len(in.App.Services) == 1
	}, 10*time.Second, 5*time.Millisecond, "its image was resolved, and it is in force")
	dir := filepath.Join(f.d.store.ContentDir(), in.App.Services[0].Spec.Mounts[0].Source)
	require.FileExists(t, filepath.Join(dir, "deep/b"))

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "deep")))
	f.report(t.Context(), r)
	require.FileExists(t, filepath.Join(dir, "deep/b"), "what a hand took away comes back with the next report")
}

func TestAReportOfALookThatFailedSaysWhy(t *testing.T) {
	f := following(t)
	f.report(t.Context(), ring.Report{Source: "prod", At: time.Now(), Err: fs.ErrInvalid})
	require.Equal(t, "invalid argument", f.says(t).Reason)
}

// What another host says of a newer commit counts here only where that lacks nothing but people
// who answer for it: of a refused one nobody here knows that it holds the commit that waits.
func TestOnlyATipThatWaitsForPeopleIsAhead(t *testing.T) {
	f := following(t)
	tree := fstest.MapFS{"web/compose.yaml": {Data: []byte(compose)}, "web/conf/a": {Data: []byte("1")}}
	look := func(r ring.Report) ring.SHA {
		r.Source, r.At, r.Reached, r.Tip = "prod", time.Now(), true, nextSHA
		r.Commit = &ring.Commit{SHA: older, Tree: tree}
		f.report(t.Context(), r)
		return f.source.Ahead
	}
	require.Equal(t, nextSHA, look(ring.Report{Awaiting: "waits for 1 of 2 approvals"}))
	require.Empty(t, look(ring.Report{Refusal: &ring.Refusal{Code: ring.Unsigned, Commit: nextSHA, Says: "commit 2222222 is not signed"}}))
	require.Empty(t, look(ring.Report{}))
}
