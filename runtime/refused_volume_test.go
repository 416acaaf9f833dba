package runtime

import (
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// An option that the driver of a volume does not know is the author's to change: it is
// told with the volume's name, is tried seldom, and no container stays for it.
func TestAVolumeThatTheEngineRefusesIsTheAuthorsToChange_Lesson19(t *testing.T) {
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage})
	f.Fail(failing("VolumeCreate", enginetest.Refuse(cerrdefs.ErrInvalidArgument, `create web_db: invalid option: "sync"`)))
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
	})
	a.Of.Volumes = []ring.Volume{{Key: "db", DriverOpts: map[string]string{"o": "sync"}}}
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseConfig, e.Cause)
	require.True(t, e.Permanent)
	require.Contains(t, e.Error(), `invalid option: "sync"`)
	require.Contains(t, e.Error(), "_db")
	require.Empty(t, r.Seen(t).Instances)
	f.Fail(nil)
	r.Must(t, a)
	require.Equal(t, ring.StateRunning, r.OnlyInstance(t).State)
}
