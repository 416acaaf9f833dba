package runtime

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"syscall"
	"testing"
)

// A database closes its folder to all others, the daemon's own user included.
func TestAFolderThatIsClosedToUsHoldsSomething(t *testing.T) {
	dir := t.TempDir()
	for p := dir; p != os.TempDir() && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	closed := filepath.Join(dir, "pgdata")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		goruntime.LockOSThread() // the user of files is one thread's
		defer goruntime.UnlockOSThread()
		if err := syscall.Setfsuid(12345); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setfsuid(0) }()
	} else if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(closed); err == nil {
		t.Skip("this machine closes no folder to us")
	}
	if got, err := glance(closed); err != nil || got != filled {
		t.Errorf("%v, %v", got, err)
	}
}
