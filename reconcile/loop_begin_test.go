package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// endedMemory reads nothing once it is ended, as a database.
type endedMemory struct{ Memory }

func (endedMemory) Facts(ctx context.Context) (ring.Facts, error) { return ring.Facts{}, ctx.Err() }

func TestLoopThatIsEndedBeforeItBeginsEndsWithoutAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := New(Options{Memory: endedMemory{}}, nil)
	require.NoError(t, l.Run(ctx))
}
