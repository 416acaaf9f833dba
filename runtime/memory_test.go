package runtime

import (
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestALookAsksForTheHostsMemoryOnceInAWhile(t *testing.T) {
	_, f, clock := timed(t, 0)
	look := func() int64 {
		s, err := f.Look(t.Context())
		require.NoError(t, err)
		return s.Memory
	}
	require.EqualValues(t, 8<<30, look())
	f.Memory(16 << 30)
	clock.t = clock.t.Add(memoryEvery - time.Second)
	require.EqualValues(t, 8<<30, look())
	clock.t = clock.t.Add(time.Second)
	require.EqualValues(t, 16<<30, look())

	f.Fail(failing("Info", errors.New("no such page")))
	clock.t = clock.t.Add(memoryEvery)
	require.EqualValues(t, 16<<30, look(), "an engine that does not tell keeps no look from its answer")
}

func TestAnInstanceDeclaresWhatItReservesElseItsLimit(t *testing.T) {
	for _, c := range []struct {
		says string
		of   *ring.Resources
		want int64
	}{
		{"nothing", nil, 0},
		{"a limit", &ring.Resources{Memory: 512 << 20}, 512 << 20},
		{"a reservation", &ring.Resources{MemoryReservation: 64 << 20}, 64 << 20},
		{"both", &ring.Resources{Memory: 512 << 20, MemoryReservation: 64 << 20}, 64 << 20},
	} {
		t.Run(c.says, func(t *testing.T) {
			h := &container.HostConfig{Resources: bounds(c.of)}
			require.EqualValues(t, c.want, instance(container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: h}}).Memory)
		})
	}
}

func TestAnEngineThatStartedAgainHasAnotherName(t *testing.T) {
	r := newRig(t)
	f := newFake(r.options())
	look := func() string {
		s, err := f.Look(t.Context())
		require.NoError(t, err)
		return s.Engine
	}
	first := look()
	require.NotEmpty(t, first)
	require.Equal(t, first, look())
	f.Reboot()
	require.NotEqual(t, first, look())
}
