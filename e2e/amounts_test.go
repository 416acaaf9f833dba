package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// amount is how much of something a test does: a little in make test, much in
// make e2e, which sets GITRING_E2E_LONG=1; GITRING_E2E_<NAME> is any other number.
func amount(t *testing.T, name string, little, much int) int {
	t.Helper()
	if s := os.Getenv("GITRING_E2E_" + name); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err, "GITRING_E2E_%s", name)
		return n
	}
	if os.Getenv("GITRING_E2E_LONG") == "1" {
		return much
	}
	return little
}

// dice are the moments of a test. GITRING_E2E_SEED throws them again, as far as the
// world allows.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("GITRING_E2E_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("GITRING_E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
