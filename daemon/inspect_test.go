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

func TestWhatAnInstanceWasMadeFromIsThePlansOrTheLastGood(t *testing.T) {
	spec := func(v ring.Version) ring.Service { return ring.Service{Name: "web", Version: v} }
	f := ring.Facts{
		Apps: map[string]ring.InForce{"shop": {App: ring.App{Name: "shop", Services: []ring.Service{{Name: "db", Version: "2"}, spec("2")}}}},
		Good: map[ring.ServiceID]*ring.Good{"shop/web": {Service: spec("1")}},
	}
	for _, v := range []ring.Version{"1", "2"} {
		require.Equal(t, spec(v), *madeFrom(&f, "shop/web", v))
	}
	require.Nil(t, madeFrom(&f, "shop/web", "3"))
	require.Nil(t, madeFrom(&f, "other/web", "1"))
}
