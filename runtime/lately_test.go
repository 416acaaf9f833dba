package runtime

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// A hundred services of one image are asked about at once, and most of these steps wait for
// their turn. Whoever asks later, or what changed by our own hand, is asked anew.
func TestOneAnswerServesAllWhoAskedBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Options{Host: "edge-1"})
		first := f.AddImage(enginetest.Image{Name: "app:1", Programs: []string{"one"}})
		asked := time.Now()
		resolve := func(since *time.Time) string {
			t.Helper()
			done, err := f.Do(t.Context(), ring.Action{Kind: ring.DoResolve, App: "shop", Service: "web", Image: "app:1", Asked: since})
			require.NoError(t, err)
			return done.Pin.Image
		}
		for range 100 {
			require.Equal(t, first, resolve(&asked))
		}
		require.Equal(t, 1, f.Ops()["ImageInspect"], "it was said after all of them asked")

		time.Sleep(time.Millisecond)
		f.DropImage("app:1")
		second := f.AddImage(enginetest.Image{Name: "app:1", Programs: []string{"two"}})
		require.NotEqual(t, first, second)
		require.Equal(t, second, resolve(new(time.Now())), "who asks after that learns of it")
		require.Equal(t, second, resolve(nil))
		require.Equal(t, 3, f.Ops()["ImageInspect"])

		time.Sleep(time.Millisecond)
		asked = time.Now()
		resolve(&asked)
		time.Sleep(latelyServes + time.Millisecond)
		resolve(&asked)
		require.Equal(t, 5, f.Ops()["ImageInspect"], "an answer serves for a moment only")
		_, _ = f.Do(t.Context(), ring.Action{Kind: ring.DoImageOff, Image: "nobody:1"}) // whatever came of it
		before := f.Ops()["ImageInspect"]
		resolve(&asked)
		require.Equal(t, before+1, f.Ops()["ImageInspect"], "an image may be gone by our own hand")
	})
}

// What is not there yet may come at any time: a build ends.
func TestThatAnImageIsNotHereIsAskedAgain(t *testing.T) {
	f := newFake(Options{Host: "edge-1"})
	asked := time.Now()
	a := ring.Action{Kind: ring.DoResolve, App: "shop", Service: "web", Image: "app:1", PullPolicy: "never", Asked: &asked}
	_, err := f.Do(t.Context(), a)
	require.Error(t, err)
	f.AddImage(enginetest.Image{Name: "app:1"})
	_, err = f.Do(t.Context(), a)
	require.NoError(t, err)
}

// The pin of an image that only this host has is its ID, and what has that ID is that image.
func TestAnImageInForceByItsIDIsNotAskedAbout(t *testing.T) {
	f := newFake(Options{Host: "edge-1"})
	id := f.AddImage(enginetest.Image{Name: "app:1"})
	_, err := f.Do(t.Context(), ring.Action{Kind: ring.DoResolve, App: "shop", Service: "web", Image: "app:1", Want: &ring.Service{Pin: ring.Pin{Image: id}}})
	require.NoError(t, err)
	require.Equal(t, 1, f.Ops()["ImageInspect"])
}

// The events of a step that makes a container bring no look: the end of the step does. Those of
// a hand that starts it do, and so does its end.
func TestWhatAStepMakesItselfBringsNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var poked atomic.Int32
		f := newFake(Options{Host: "edge-1", Poke: func(id string) {
			if id != "" {
				poked.Add(1)
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		time.Sleep(time.Second)

		id := f.AddImage(enginetest.Image{Name: "app:1"})
		s := &ring.Service{Name: "web", Kind: ring.Worker, Pin: ring.Pin{Image: id}, Image: ring.Image{Known: true, ID: id}, Spec: ring.Spec{Image: "app:1", NoNetwork: true}}
		app := &ring.App{Name: "shop", Path: "shop"}
		s.Version = ring.VersionOf(app, s, s.Pin)
		f.Fail(func(string, int) (before, after error) { synctest.Wait(); return nil, nil }) // events are heard in the middle of calls
		done, err := f.Do(t.Context(), ring.Action{Kind: ring.DoCreate, App: "shop", Service: "web", Slot: 1, Version: s.Version, Of: app, Want: s, Start: true})
		require.NoError(t, err)
		synctest.Wait()
		seen, err := f.Look(t.Context())
		require.NoError(t, err)
		require.Equal(t, ring.StateRunning, seen.Instances[0].State, "the look after the step sees what it made")
		during := poked.Load()

		f.Exit(done.Instance, 0, false)
		synctest.Wait()
		require.Equal(t, during+1, poked.Load(), "its end is not of the step")
		require.NoError(t, f.Client().ContainerStart(t.Context(), done.Instance, container.StartOptions{}))
		synctest.Wait()
		require.Equal(t, during+2, poked.Load(), "a hand started it")
		require.LessOrEqual(t, during, int32(1), "at most the one that is heard after the step has ended")
	})
}
