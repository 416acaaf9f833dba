package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Where the front has a service's name, an instance has the name of its container alone.
func TestAnInstanceBehindAFrontGivesUpTheNameOfItsService(t *testing.T) {
	aliases := func(at ring.Attachment) []string {
		t.Helper()
		joins, err := attachments(ring.Action{
			App: "shop", Service: "web", Slot: 2, Networks: map[string]string{"default": "shop_default"},
			Want: &ring.Service{Name: "web", Spec: ring.Spec{Networks: []ring.Attachment{at}}},
		})
		require.NoError(t, err)
		require.Len(t, joins, 1)
		return joins[0].Settings.Aliases
	}
	require.Equal(t, []string{"web", "shop-web-2", "store"}, aliases(ring.Attachment{Network: "default", Aliases: []string{"store"}}))
	require.Equal(t, []string{"shop-web-2"}, aliases(ring.Attachment{Network: "default", Unnamed: true}))
}
