// Package e2e holds the whole of gitring to what it promises: the real binary,
// real git and ssh-keygen, a real engine. It imports nothing of the project.
// Every host, app and image has a name of its own, so tests run side by side
// and beside whatever else the engine runs.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// atOnce is how many tests run side by side at least.
const atOnce = 6

// imageName is what the pid of the test process follows in the name of image.
const imageName = "gitring-e2e:"

// What TestMain makes once for all tests.
var (
	binary  string // gitring
	image   string // of testdata/app
	program []byte // testdata/app
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for others most of the time.
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < atOnce {
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	local = dial(engineURL())
	if err := local.ping(); err != nil {
		noEngine = fmt.Errorf("no engine answers at %s: %w", engineURL(), err)
		return m.Run() // the tests say so, or skip
	}
	dir, err := os.MkdirTemp("", "gitring-e2e-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	sweep()
	if err := build(dir); err != nil {
		return failed(err)
	}
	image = imageName + strconv.Itoa(os.Getpid())
	if err := local.load(image); err != nil {
		return failed(err)
	}
	defer local.unload(image)
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "cannot begin:", err)
	return 1
}

// build makes the binary under test, as a release is made, and the tests' app.
// GITRING_E2E_BINARY names another binary to test.
func build(dir string) error {
	app := filepath.Join(dir, "app")
	if err := goBuild(app, "./testdata/app"); err != nil {
		return err
	}
	var err error
	if program, err = os.ReadFile(app); err != nil {
		return err
	}
	if binary = os.Getenv("GITRING_E2E_BINARY"); binary != "" {
		return nil
	}
	if b, err := exec.Command("../scripts/front.sh").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the front: %w: %s", err, b)
	}
	binary = filepath.Join(dir, "gitring")
	return goBuild(binary, "github.com/gitring/gitring/cmd/gitring")
}

func goBuild(out, what string, more ...string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+strings.Join(append([]string{"-s -w"}, more...), " "), "-o", out, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w: %s", what, err, b)
	}
	return nil
}
