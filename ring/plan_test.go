package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestWhatIsTakenByVolumesFromCoversAVolumeOfTheImage(t *testing.T) {
	base := ring.Service{Name: "base", Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/data"}}}}
	middle := ring.Service{Name: "middle", Spec: ring.Spec{VolumesFrom: []ring.VolumesFrom{{Service: "base"}}}}
	app := ring.App{Name: "shop", Services: []ring.Service{base, middle}}
	backup := ring.Service{
		Name: "backup", Image: ring.Image{Volumes: []string{"/data", "/cache"}},
		Spec: ring.Spec{VolumesFrom: []ring.VolumesFrom{{Service: "middle"}}},
	}

	targets := func(s *ring.Service) (out []string) {
		for _, m := range app.Mounts(s) {
			out = append(out, m.Target)
		}
		return out
	}
	require.Equal(t, []string{"/cache"}, targets(&backup), "at whatever distance")

	backup.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "own", Target: "/data"}}
	require.Equal(t, []string{"/data", "/cache"}, targets(&backup), "what it mounts itself is its own")

	backup.Spec.VolumesFrom, backup.Spec.Mounts = nil, nil
	require.Equal(t, []string{"/data", "/cache"}, targets(&backup), "a volume that is covered by nothing is its own")
	require.Contains(t, app.Alone(&backup), "/data")
}
