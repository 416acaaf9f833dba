package reconcile

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workEnv asks TestWork, in a process of its own, for a host of so many services.
const workEnv = "GITRING_RECONCILE_WORK"

// TestWork is what TestADecisionGrowsNoFasterThanTheHost counts.
func TestWork(t *testing.T) {
	size, what, ok := strings.Cut(os.Getenv(workEnv), " ")
	if !ok {
		t.Skip("asked for by TestADecisionGrowsNoFasterThanTheHost")
	}
	n, err := strconv.Atoi(size)
	require.NoError(t, err)
	h := newBigHost(n)
	h.converge(t, nil)
	switch what {
	case "roll":
		h.push("c2", n)
	case "leave":
		h.leave("c2", n/5)
	default:
		return
	}
	h.converge(t, nil)
}
