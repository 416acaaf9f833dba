package enginetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// An Engine is what the suite asks of an engine, as what decides, checks and shows
// logs asks it.
type Engine interface {
	Look(ctx context.Context) (ring.Seen, error)
	Do(ctx context.Context, a ring.Action) (ring.Done, error)
	// Run follows the engine's events until ctx ends, and pokes.
	Run(ctx context.Context) error
	Exec(ctx context.Context, id string, argv []string) (exit int, output string, err error)
	Mounted(ctx context.Context) (map[string]bool, error)
	// ReadLogs writes what an instance said; with tail below 0 all of it.
	ReadLogs(ctx context.Context, id string, follow bool, tail int, to io.Writer) error
}

// Rig is an engine in a test: what gitring asks of it, and what only a test may do.
type Rig struct {
	Engine        Engine
	Host, App     string
	Content, Data string
	Image         string      // the pin of the test's app
	ImageName     string      // by which the engine has it, without a registry
	ImageLabel    string      // that the image has
	Poked         chan string // what the engine was told to poke with: an instance, or "" for all

	Lacks []Capability // what this engine cannot do
	needs []Capability // of the story that is told

	NotOurs   error // what a step ends with on a container that is not ours
	MaxOutput int   // of a command, in bytes
	// HearEvent does what an event of a container does, where none is listened for.
	HearEvent func()
	// RegistryCalls counts what registries were asked.
	RegistryCalls func() int64

	Exit      func(t *testing.T, id string, code int)
	SetHealth func(t *testing.T, id string, healthy bool)
	// AddForeign is a running container that is not ours, of the Compose project
	// of the test's app when it has volumes.
	AddForeign func(t *testing.T, name string, volumes ...string) (id string)
	Inspect    func(t *testing.T, id string) container.InspectResponse
	// VolumeLabels are those of a volume that has to be there.
	VolumeLabels func(t *testing.T, name string) map[string]string
	// AddVolume makes a volume that is not ours.
	AddVolume func(t *testing.T, name string)
	// AddRemote puts an image under a registry's name, with its digest.
	AddRemote   func(t *testing.T) (name, digest string)
	ForgetImage func(t *testing.T, image string) // removes an image from this host
	CallCount   func() int
	ExecCount   func() int // commands so far
}

// NewRig names a host and an app that no other test has.
func NewRig(t *testing.T) *Rig {
	b := make([]byte, 4)
	_, err := rand.Read(b)
	require.NoError(t, err)
	id := hex.EncodeToString(b)
	return &Rig{Host: "test-" + id, App: "t" + id, Content: t.TempDir(), Data: filepath.Join(t.TempDir(), "data"), Poked: make(chan string, 1000)}
}

// WaitFor looks until ok says yes.
func (r *Rig) WaitFor(t *testing.T, what string, ok func(ring.Seen) bool) ring.Seen {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := r.Engine.Look(t.Context())
		require.NoError(t, err)
		if ok(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			require.Failf(t, "never seen", "%s; last seen %+v", what, s.Instances)
		}
	}
}
