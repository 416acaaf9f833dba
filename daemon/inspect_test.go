package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func TestASlotThatNobodyWantsIsNotFound(t *testing.T) {
	two := ring.Explained{Wanted: &ring.ExplainedWant{Replicas: 2}}
	for _, slot := range []int{0, 1, 2} {
		require.NoError(t, hasSlot(&two, "web/web", slot))
	}
	err := hasSlot(&two, "web/web", 9)
	require.ErrorIs(t, err, api.ErrNotFound)
	require.EqualError(t, err, "web/web has no slot 9: 2 wanted")
	going := two
	going.Instances = []ring.ExplainedInstance{{}}
	require.NoError(t, hasSlot(&going, "web/web", 9), "it goes, and is there")
	require.NoError(t, hasSlot(&ring.Explained{}, "web/web", 9), "what no plan wants is explained by that")
}
