package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

func TestLoopRefreshesAServiceOrAWholeApp(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "shop/web=v1", "shop/db=d1", "other=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		asked := func(app, service string) int {
			t.Helper()
			before := h.made(ring.DoResolve)
			if err := l.Refresh(t.Context(), app, service, "alice", "a test"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			return h.made(ring.DoResolve) - before
		}
		if n := asked("shop", "web"); n != 1 {
			t.Errorf("the registry is asked %d times for one service", n)
		}
		if n := asked("shop", ""); n != 2 {
			t.Errorf("the registry is asked %d times for an app of two services", n)
		}
		creates := h.made(ring.DoCreate)
		h.with(func() { h.engine.moved["v1"] = "newer" })
		asked("shop", "web")
		await(t, l, ring.SyncSynced, time.Minute)
		if n := h.made(ring.DoCreate) - creates; n != 1 {
			t.Errorf("%d creates for one tag that moved", n)
		}
		h.with(func() {
			if len(h.facts.Refreshes) != 0 {
				t.Errorf("wishes that were carried out stay: %v", h.facts.Refreshes)
			}
		})
	})
}

func TestLoopRefreshesNothingUnknown(t *testing.T) {
	playLoop(t, func(t *testing.T, _ *host, l *Loop) {
		offer(t, l, tree("c1", "shop/web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		for _, of := range [][2]string{{"shop", "wbe"}, {"shp", ""}, {"shp", "web"}} {
			if err := l.Refresh(t.Context(), of[0], of[1], "alice", "a test"); !errors.Is(err, ErrNotFound) {
				t.Errorf("refresh %v: %v", of, err)
			}
		}
	})
}
