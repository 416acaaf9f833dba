package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAStepThatFailedIsNamedOnce(t *testing.T) {
	require.Equal(t, "cannot resolve image db:2: connection refused", triedWords("resolving db:2", "cannot resolve image db:2: connection refused"))
	require.Equal(t, "pulling db:2 (40%): registry: no answer", triedWords("pulling db:2 (40%)", "registry: no answer"))
}
