package runtime

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/enginetest"
)

// fake is Docker over an engine in memory, with the engine's controls.
type fake struct {
	*Docker
	*enginetest.Fake
}

// newFake is an empty engine. Of o it needs Host, and the folders where mounts of
// content or data are used. o.Now is also the engine's clock.
func newFake(o Options) *fake {
	if o.Lookup == nil {
		o.Lookup = noNames
	}
	f := enginetest.New(o.Now)
	return &fake{Docker: Over(f.Client(), o), Fake: f}
}

// noNames knows none: what a test calls a registry is no name of the world.
func noNames(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }

func TestTheEngineInMemorySpeaksTheOldestAPI(t *testing.T) {
	require.Equal(t, MinAPI, enginetest.API)
}
