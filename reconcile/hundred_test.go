// The engine's client is not compiled for scripts/race.sh.

//go:build !loop

package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/runtime/enginetest"
)

// What a call costs an engine in work of a core, in milliseconds, as it was measured
// on two cores that were busy throughout; what is not named costs nothing. A list
// costs more the more there is.
var engineWorks = map[string]int{
	"NetworkCreate": 110, "ContainerCreate": 60, "ContainerStart": 250, "ContainerUpdate": 22, "ContainerInspect": 1, "ImageInspect": 1,
	"ContainerList": 3, "NetworkList": 2,
}

// workshop is an engine's two cores, which all its calls share. It makes one network
// after the other, whoever asks.
type workshop struct {
	cores, networks chan struct{}
	containers      atomic.Int64
}

func newWorkshop() *workshop {
	return &workshop{cores: make(chan struct{}, 2), networks: make(chan struct{}, 1)}
}

func (w *workshop) call(op string, _ int) (before, after error) {
	work := engineWorks[op]
	switch op {
	case "NetworkCreate":
		w.networks <- struct{}{}
		defer func() { <-w.networks }()
	case "ContainerCreate":
		w.containers.Add(1)
	case "ContainerList":
		work += int(w.containers.Load()) / 10
	case "NetworkList":
		work += int(w.containers.Load()) / 25
	}
	for ; work > 0; work -= 5 {
		w.cores <- struct{}{}
		time.Sleep(time.Duration(min(work, 5)) * time.Millisecond)
		<-w.cores
		time.Sleep(time.Microsecond) // another one's turn
	}
	return nil, nil
}

// memory of a daemon that never fails to write.
type goodMemory struct{ records int }

func (m *goodMemory) Facts(context.Context) (ring.Facts, error) { return ring.NewFacts(), nil }

func (m *goodMemory) Record(context.Context, []ring.Fact, []ring.Event) error {
	m.records++
	return nil
}

type noHealth struct{}

func (noHealth) Watch([]ring.Probe)             {}
func (noHealth) Health() map[string]ring.Health { return nil }

// manyApps is a plan of apps with one service and a network of its own.
func manyApps(n int, image string) Source {
	plan := &ring.Plan{Source: "s", Commit: shaOf("c1")}
	for i := range n {
		app := newApp(fmt.Sprintf("app%03d", i))
		app.Commit, app.Written = plan.Commit, "c1"
		app.Networks[0].Pools = []ring.Pool{{Subnet: fmt.Sprintf("10.1.%d.0/24", i)}}
		k := ring.DefaultRollout()
		k.MinReadyTime = 0
		s := ring.Service{
			Name: "web", Kind: ring.Worker, Replicas: 1, Rollout: k, Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
			Spec: ring.Spec{Image: image, Networks: []ring.Attachment{{Network: "default"}}},
		}
		s.Written = ring.WrittenHash(s.Spec)
		app.Services = []ring.Service{s}
		plan.Apps = append(plan.Apps, *app)
	}
	return Source{Name: "s", Branch: "main", FreshFor: 5 * time.Minute, Tip: plan.Commit, Commit: &ring.Commit{SHA: plan.Commit}, Next: plan}
}

// The first hundred apps of a host: the loop and the engine's driver, on an
// engine whose work takes time. The engine's own need is its work for the
// networks, creates and starts alone, with both cores busy throughout.
func TestAHundredAppsCostTheEngineLittleMoreThanTheyMust(t *testing.T) {
	const apps, places = 100, 8
	synctest.Test(t, func(t *testing.T) {
		var l *Loop
		f := enginetest.New(nil)
		engine := runtime.Over(f.Client(), runtime.Options{Host: "h", Poke: func(string) { l.Poke() }, Allow: func(string, any) error { return nil }})
		f.Pools(2 * apps)
		f.AddImage(enginetest.Image{Name: "app:1"})
		f.Fail(newWorkshop().call)
		m := &goodMemory{}
		l = New(Options{Host: "h", Engine: engine, Health: noHealth{}, Memory: m, Log: slog.New(slog.DiscardHandler), Steps: places},
			[]Source{{Name: "s", Branch: "main", FreshFor: 5 * time.Minute}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- l.Run(ctx) }()
		go func() { _ = engine.Run(ctx); ended <- nil }()
		defer func() { cancel(); <-ended; <-ended }()
		time.Sleep(time.Second)

		before, began := f.Ops(), time.Now()
		offer(t, l, manyApps(apps, "app:1"))
		for f.Ops()["ContainerStart"] < apps {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(engineWorks["ContainerStart"]) * time.Millisecond) // of the last ones, as they share the cores
		running := time.Since(began)
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(time.Second) // restart policies
		calls, all := map[string]int{}, 0
		for op, n := range f.Ops() {
			calls[op] = n - before[op]
			all += calls[op]
		}
		alone := time.Duration(apps*(engineWorks["NetworkCreate"]+engineWorks["ContainerCreate"]+engineWorks["ContainerStart"])/2) * time.Millisecond
		t.Logf("%s, engine alone %s, ratio %.2f; %d calls: %v; %d transactions", running, alone, running.Seconds()/alone.Seconds(), all, calls, m.records)
		for op, n := range map[string]int{"NetworkCreate": 1, "ContainerCreate": 1, "ContainerStart": 1, "ContainerUpdate": 1, "ContainerInspect": 1, "ContainerRename": 1} {
			require.LessOrEqual(t, calls[op], n*apps+1, op)
		}
		require.LessOrEqual(t, calls["ImageInspect"], apps+10, "once before each create, and one answer for all who ask what a name means")
		require.LessOrEqual(t, all, 8*apps, "calls")
		require.Less(t, running, alone*110/100)
	})
}
