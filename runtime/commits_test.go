package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestCommitsAreThoseOfTheSourceOnThisHostOrAnError(t *testing.T) {
	r, f, _ := timed(t, 1)
	one := r.CreateAction(nil)
	one.Slot, one.Commit = 2, "1111111111111111111111111111111111111111"
	r.Must(t, one)
	two := r.CreateAction(nil)
	two.Slot, two.Commit = 3, "2222222222222222222222222222222222222222"
	stopped := r.Must(t, two)
	r.Must(t, ring.Action{Kind: ring.DoStop, App: r.App, Service: "web", Instance: stopped.Instance})
	source := one.Of.Source

	got, err := r.Commits(t.Context(), source)
	require.NoError(t, err)
	require.Contains(t, got, one.Commit)
	require.Contains(t, got, two.Commit, "one that is stopped was made from its commit all the same")
	got, err = r.Commits(t.Context(), source+"2")
	require.NoError(t, err)
	require.Empty(t, got, "another source's say nothing")

	host := r.Docker.opts.Host
	r.Docker.opts.Host = "another"
	got, err = r.Commits(t.Context(), source)
	require.NoError(t, err)
	require.Empty(t, got, "another host's say nothing")
	r.Docker.opts.Host = host

	broken := errors.New("the engine stumbled")
	f.Fail(failing("ContainerList", broken))
	got, err = r.Commits(t.Context(), source)
	require.ErrorIs(t, err, broken)
	require.Nil(t, got, "what was not seen is not empty")
}

// TestAnImageNamesNoTrustedCommit is a container that somebody else started, of an image
// that was built with gitring's labels: the engine gives them to the container.
func TestAnImageNamesNoTrustedCommit(t *testing.T) {
	r, f, _ := timed(t, 1)
	one := r.CreateAction(nil)
	one.Slot, one.Commit = 2, "1111111111111111111111111111111111111111"
	r.Must(t, one)
	const evil = "2222222222222222222222222222222222222222"
	labels := map[string]string{labelHost: r.Docker.opts.Host, labelSource: one.Of.Source, labelCommit: evil}
	f.AddImage(enginetest.Image{Name: "foreign", Labels: labels})
	f.AddForeign("theirs", labels)

	got, err := r.Commits(t.Context(), one.Of.Source)
	require.NoError(t, err)
	require.Contains(t, got, one.Commit)
	require.NotContains(t, got, ring.SHA(evil))
}
