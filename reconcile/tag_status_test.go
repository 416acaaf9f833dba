package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAStatusSaysWhenATagWasAskedAndWhyItIsNotFollowed(t *testing.T) {
	s := newStory()
	tell := func(lines ...string) *ring.TagStatus {
		for _, line := range lines {
			require.NoError(t, s.tell(line), line)
			require.NoError(t, s.bad)
		}
		s.turn()
		for _, app := range s.last.Status.Sources[0].Apps {
			if app.Name == "web" {
				return app.Services[0].Tag
			}
		}
		return nil
	}
	st := tell("service web updates 24h min_age 72h min_ready 1s", "service other min_ready 1s", "commit c1 web=nightly1 other=v1", "rest")
	require.Equal(t, "nightly1", st.Image)
	require.Equal(t, "every_24h", st.Policy)
	require.Empty(t, st.Waits)
	pinned := st.Asked
	require.WithinDuration(t, s.clock(), pinned, time.Minute, "it was resolved for the commit")

	st = tell("fault tag nightly1 means renewed1", "pass 30h")
	require.Equal(t, "sha256:renewed1", st.Digest)
	require.Equal(t, "is followed when this host has seen it for 72h0m0s", st.Waits)
	require.Equal(t, st.Seen.Add(72*time.Hour), st.Until)
	require.True(t, st.Asked.After(pinned))

	for _, digest := range []string{"nightly1", "renewed1"} { // as it runs, and another one
		before := st.Asked
		st = tell("wait 10m", "fault tag nightly1 means "+digest, "refresh web", "rest")
		require.True(t, st.Asked.After(before.Add(9*time.Minute)), "a refresh asks, too: %s, %s", before, st.Asked)
	}
	st = tell("fault tag nightly1 means renewed2", "pass 30h")
	require.Equal(t, "sha256:renewed2", st.Digest)
	require.Contains(t, tell("hold web/ 500h").Waits, "held by alice")
	require.Contains(t, tell("release web/", "fault the registry is away", "pass 60h").Error, "no answer")
	st = tell("fault the registry is back", "pass 60h")
	require.Empty(t, st.Waits)
	require.Empty(t, st.Error)
	require.Contains(t, tell("fault tag nightly1 means nightly1", "pass 30h").Waits, "gitring approve sha256:nightly1")
}
