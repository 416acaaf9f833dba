package reconcile

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects once per 256 MiB: scenarios and stories leave behind nothing that lives,
// and collecting as usual is a third of their work.
func TestMain(m *testing.M) {
	debug.SetMemoryLimit(256 << 20)
	debug.SetGCPercent(-1)
	os.Exit(m.Run())
}
