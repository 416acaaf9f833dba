package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func BenchmarkRecordOneFactTwoEvents(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "state"))
	require.NoError(b, err)
	defer s.Close()
	n := 0
	for b.Loop() {
		n++
		facts, events := record(n)
		if err := s.Record(b.Context(), facts[:1], events); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFactsOfThousandServices(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "state"))
	require.NoError(b, err)
	defer s.Close()
	for app := range 100 {
		in := ring.InForce{App: ring.App{Name: fmt.Sprintf("app%d", app)}}
		var facts []ring.Fact
		for n := range 10 {
			id, v := ring.ID(in.App.Name, fmt.Sprintf("s%d", n)), ring.Version(fmt.Sprintf("1:%064d", n))
			service := ring.Service{
				Name: fmt.Sprintf("s%d", n), Kind: ring.Worker, Replicas: 2, Version: v, Rollout: ring.DefaultRollout(),
				Spec: ring.Spec{Image: "nginx:1", Environment: map[string]string{"A": "1", "B": "2"}, Ports: []ring.Port{{Container: 80, Protocol: "tcp"}}},
			}
			in.App.Services = append(in.App.Services, service)
			facts = append(facts, ring.Good{AppName: in.App.Name, Service: service}, ring.Verdict{ID: id, Version: v, Good: true},
				ring.RolloutRow{ID: id, Version: v, Done: true}, ring.SlotRow{ID: id, Slot: 1}, ring.SlotRow{ID: id, Slot: 2}, ring.PinRow{ID: id, Written: "w"})
		}
		require.NoError(b, s.Record(b.Context(), append(facts, in), nil))
	}
	for b.Loop() {
		facts, err := s.Facts(b.Context())
		if err != nil || len(facts.Slots) != 2000 {
			b.Fatal(err, len(facts.Slots))
		}
	}
}
