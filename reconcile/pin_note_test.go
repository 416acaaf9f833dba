package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// An image that is not what a registry says is told of: once in the journal,
// and in the status for as long as it is in force.
func TestHowAnImageWasFoundIsTold(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const note = "image web:1 of web: the registry says not found; this host's own image is used"
	pin := ring.Pin{Image: "sha256:01", Note: "the registry says not found; this host's own image is used"}
	a := ring.Action{Kind: ring.DoResolve, App: "shop", Service: "web", Image: "web:1", Reason: "image web:1 is new to service web"}
	_, events := Settle(NewRecent(), map[string]ring.Kept{}, a, ring.Done{Pin: pin}, nil, now)
	require.Len(t, events, 1)
	require.Equal(t, "resolve: image web:1 is new to service web; "+note, events[0].Reason)
	_, events = Settle(NewRecent(), map[string]ring.Kept{}, a, ring.Done{Pin: ring.Pin{Image: "web:1@sha256:02"}}, nil, now)
	require.Equal(t, "resolve: image web:1 is new to service web", events[0].Reason)

	w := stopped(now, 1, theNetwork())
	f := w.Facts.Apps["shop"]
	f.App.Notes = []string{"read so"}
	f.App.Services[0].Spec.Image, f.App.Services[0].Pin = "web:1", pin
	w.Facts.Set(f)
	require.Equal(t, []string{"read so", note}, Diff(w, now).Status.Sources[0].Apps[0].Notes)
}

// A step that says how long it is of no use to try is left alone as long.
func TestAStepThatKnowsItsWaitHasIt(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, x := range []struct {
		name string
		err  ring.EngineError
		want time.Duration
	}{
		{"a registry that does not answer", ring.EngineError{Cause: ring.CauseImagePull}, time.Second},
		{"a registry that limits requests", ring.EngineError{Cause: ring.CauseImagePull, Wait: 5 * time.Minute}, 5 * time.Minute},
		{"no such image", ring.EngineError{Cause: ring.CauseImagePull, Permanent: true, Refusal: &ring.Refusal{}}, 10 * time.Minute},
		{"not logged in", ring.EngineError{Cause: ring.CauseImagePull, Permanent: true, Refusal: &ring.Refusal{}, Wait: time.Minute}, time.Minute},
	} {
		r := NewRecent()
		x.err.Err = errorString(x.name)
		a := ring.Action{Kind: ring.DoResolve, App: "shop", Service: "web", Image: "web:1"}
		Settle(r, map[string]ring.Kept{}, a, ring.Done{}, &x.err, now)
		require.Equal(t, x.want, r.Tries[a.Target()].Next.Sub(now), x.name)
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }
