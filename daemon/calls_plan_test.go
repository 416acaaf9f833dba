package daemon

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// What nobody reads is not deployed, whoever answers.
func TestThePlanOfAFolderTellsWhichComposeFilesNobodyReads(t *testing.T) {
	f := following(t)
	f.d.sources = []*follower{f}
	tree := fstest.MapFS{
		"web/compose.yaml":     {Data: []byte("services: {web: {image: web:1}}\n")},
		"a/b/c/d/compose.yaml": {Data: []byte("services: {deep: {image: web:1}}\n")},
	}
	p, err := f.d.plannedOf(t.Context(), f, api.PlanRequest{Tree: tree})
	require.NoError(t, err)
	require.Len(t, p.Apps, 1)
	require.Len(t, p.NotRead, 1)
	require.Contains(t, p.NotRead[0], "1 Compose file is not read, too deep below the source's path: a/b/c/d/compose.yaml; ")
}

func TestAPlanOfACommitKnowsWhatTheHostFoundOut(t *testing.T) {
	r := &ring.Refusal{Code: ring.ForeignProject, App: "shop", Commit: "c2", Says: "a Compose project shop runs here"}
	src := &ring.SourceStatus{
		Name: "prod", Next: &ring.Next{Commit: "c2", Reason: "app web: undone to c1"},
		Apps: []ring.AppStatus{{Name: "shop", Refusal: r}, {Name: "web"}, {Name: "old", Refusal: &ring.Refusal{App: "old", Commit: "c1"}}},
	}
	plan := func(commit ring.SHA, refusals ...*ring.Refusal) *ring.Changes {
		p := plannedHere{Changes: ring.Changes{Commit: commit, Refusals: refusals, Apps: []ring.AppChanges{{App: "shop"}, {App: "web"}, {App: "old"}}}}
		foundOut(&p, src)
		return &p.Changes
	}
	c := plan("c2")
	require.Equal(t, []*ring.Refusal{r}, c.Refusals, "of this commit alone")
	require.Equal(t, []ring.AppChanges{{App: "web"}, {App: "old"}}, c.Apps, "a refused app has no changes")
	require.Equal(t, "app web: undone to c1", c.Waits)

	mine := &ring.Refusal{App: "shop", Code: ring.UnknownKey, Commit: "c2"}
	require.Equal(t, []*ring.Refusal{mine}, plan("c2", mine).Refusals, "what reading it says is said once")

	c = plan("c3")
	require.Empty(t, c.Refusals)
	require.Empty(t, c.Waits)
	require.Len(t, c.Apps, 3)
}

// A plan that reads the commit and asks the host anew does not repeat what was refused before
// somebody mended the host. What it cannot ask again, such as a registry, is told with its time.
func TestAPlanDoesNotRepeatWhatItAskedAnew(t *testing.T) {
	tried := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	refused := func(code ring.Code) *ring.Refusal {
		return &ring.Refusal{Code: code, App: "shop", Commit: "c2", Says: "no"}
	}
	for _, tt := range []struct {
		name   string
		stored ring.Code
		read   *ring.Refusal // when the daemon read the commit
		tries  map[string]ring.Try
		says   string // "" tells nothing
	}{
		{"a variable that is set by now", ring.UndefinedVariable, refused(ring.UndefinedVariable), nil, ""},
		{"a volume that is free by now", ring.VolumeElsewhere, nil, map[string]ring.Try{"admit shop": {Refusal: refused(ring.VolumeElsewhere)}}, ""},
		{
			"an image that a registry did not have", ring.ImageNotFound, nil,
			map[string]ring.Try{"resolve web:1 shop/web": {At: tried, Refusal: refused(ring.ImageNotFound)}}, "no; tried last at 03:04:05 UTC",
		},
		{"something else", ring.AppTaken, nil, map[string]ring.Try{"admit shop": {Refusal: refused(ring.VolumeElsewhere)}}, "no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := &ring.SourceStatus{Name: "prod", Apps: []ring.AppStatus{{Name: "shop", Refusal: refused(tt.stored)}}}
			p := plannedHere{
				Changes: ring.Changes{Commit: "c2", Apps: []ring.AppChanges{{App: "shop"}}},
				next:    ring.Plan{Apps: []ring.App{{Name: "shop", Services: []ring.Service{{Name: "web", Spec: ring.Spec{Image: "web:1"}}}}}},
			}
			read := &ring.Plan{Source: "prod", Commit: "c2", Refused: map[string]*ring.Refusal{}}
			if tt.read != nil {
				read.Refused["shop"] = tt.read
			}
			p.world.Sources = []reconcile.Source{{Name: "prod", Next: read}}
			p.world.Recent.Tries = tt.tries
			foundOut(&p, src)
			if tt.says == "" {
				require.Empty(t, p.Refusals)
				require.Len(t, p.Apps, 1)
				return
			}
			require.Len(t, p.Refusals, 1)
			require.Equal(t, tt.says, p.Refusals[0].Says)
			require.Equal(t, "no", src.Apps[0].Refusal.Says, "the status keeps its own")
			require.Empty(t, p.Apps)
		})
	}
}

// Of a commit that waits the plan and the status know something each, and what both know is said once.
func TestAPlanSaysOnceWhyACommitWaits(t *testing.T) {
	for _, tt := range []struct {
		planned, status string
		code            ring.ReasonCode
		want            string
	}{
		{"", "app shop: pulling web:2", ring.WhyImagePending, "app shop: pulling web:2"},
		{"app blog: held by root: x", "app blog: held by root: x", ring.WhyHeldByPerson, "app blog: held by root: x"},
		{"app a: held by root: x; app b: held by root: y", "app b: held by root: y", ring.WhyHeldByPerson, "app a: held by root: x; app b: held by root: y"},
		{"app blog: held by root: x", "app api: pulling web:2", ring.WhyImagePending, "app api: pulling web:2; app blog: held by root: x"},
		{"would wait for edge-1", "waits for edge-1: pending", ring.WhyWaveWaiting, "waits for edge-1: pending"},
	} {
		require.Equal(t, tt.want, waitsBy(tt.planned, &ring.Next{Reason: tt.status, Code: tt.code}))
	}
}
