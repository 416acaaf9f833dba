package runtime

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/enginetest"
)

func TestUsageIsWhatDockerStatsCounts(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	sample := func(after time.Duration, cpu uint64, memory container.MemoryStats) container.StatsResponse {
		s := container.StatsResponse{Read: at.Add(after), MemoryStats: memory}
		s.CPUStats.CPUUsage.TotalUsage = cpu
		return s
	}
	v2 := container.MemoryStats{Usage: 80 << 20, Stats: map[string]uint64{"inactive_file": 16 << 20}}
	v1 := container.MemoryStats{Usage: 80 << 20, Stats: map[string]uint64{"total_inactive_file": 8 << 20, "inactive_file": 1 << 20}}
	u := usage(sample(0, 1e9, v2), sample(500*time.Millisecond, 1e9+750e6, v2))
	require.InDelta(t, 1.5, u.CPU, 0.001)
	require.Equal(t, int64(64<<20), u.Memory)
	require.Equal(t, int64(72<<20), usage(sample(0, 0, v1), sample(time.Second, 0, v1)).Memory)
	require.Zero(t, usage(sample(0, 5e9, v2), sample(time.Second, 1e9, v2)).CPU, "it was started again between the two")
}

func TestUsageLeavesOutWhatIsGone(t *testing.T) {
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage})
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	got, err := f.Usage(t.Context(), []string{in.ID, "nobody"})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, int64(64<<20), got[in.ID].Memory)
}
