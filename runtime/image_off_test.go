package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// A pin is removed by its digest alone, never by the tag that was written beside
// it, which may be somebody else's image by now.
func TestAnImageIsRemovedByItsDigest(t *testing.T) {
	f := newFake(Options{Host: "edge-1"})
	d := f.Docker
	const sum = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	f.AddImage(enginetest.Image{Name: "shop/web:1", Digest: sum})
	off := func(image string) (ring.Done, error) {
		return d.Do(context.Background(), ring.Action{Kind: ring.DoImageOff, Image: image})
	}
	here, err := d.ImageHere(context.Background(), "shop/web:1@"+sum)
	require.NoError(t, err)
	require.True(t, here)

	done, err := off("shop/web:1@" + sum)
	require.NoError(t, err)
	require.Equal(t, ring.Done{Note: "removed"}, done)
	here, err = d.ImageHere(context.Background(), "shop/web@"+sum)
	require.NoError(t, err)
	require.False(t, here)
	here, err = d.ImageHere(context.Background(), "shop/web:1")
	require.NoError(t, err)
	require.True(t, here, "the tag stays")

	done, err = off("shop/web:1@" + sum)
	require.NoError(t, err)
	require.Equal(t, ring.Done{Note: "already gone"}, done)

	for _, image := range []string{"shop/web:1", "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		_, err = off(image)
		require.ErrorContains(t, err, "it has no digest of a registry", "what nobody could give again is not removed")
	}
}
