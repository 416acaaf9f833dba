package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// noteEmptied notes a content of the list whose folder is gone from where it is placed, before
// it is written anew. The folder will be another one: what mounts the old one has lost it.
func (s *contentStore) noteEmptied(hash string, at store.Place) {
	if s.places.list.isPlaced(hash, at == s.places.disk) && !at.Has(hash) {
		s.emptied.Store(hash, time.Now())
	}
}

// haveLost are the services in force that run since before a folder that they mount was
// written anew. A file that is mounted by itself stays with a container.
func (s *contentStore) haveLost(w *reconcile.World) (lost []ring.ServiceID) {
	since := map[ring.ServiceID]time.Time{}
	for name, in := range w.Facts.Apps {
		for i := range in.App.Services {
			of := &in.App.Services[i]
			for _, m := range of.Spec.Mounts {
				if at, ok := s.emptied.Load(m.Source); ok && of.Kind == ring.Worker && m.Kind == ring.MountContent && m.File == "" {
					since[ring.ID(name, of.Name)] = at.(time.Time)
				}
			}
		}
	}
	for i := range w.Seen.Instances {
		in := &w.Seen.Instances[i]
		id := ring.ID(in.App, in.Service)
		if at, ok := since[id]; ok && in.State == ring.StateRunning && in.Started.Before(at) {
			lost = append(lost, id)
			delete(since, id)
		}
	}
	return lost
}

// rollWhatLost has each service rolled whose folder of secrets somebody emptied.
func (d *Daemon) rollWhatLost(ctx context.Context) error {
	var hashes []any
	d.contentStore.emptied.Range(func(hash, _ any) bool { hashes = append(hashes, hash); return true })
	if len(hashes) == 0 {
		return nil
	}
	w, err := d.loop.World(ctx)
	if err != nil || w.Seen.At.IsZero() { // nothing was seen yet
		return err
	}
	var all []error
	for _, id := range d.contentStore.haveLost(&w) {
		app, service := id.Split()
		_, err := d.loop.Do(ctx, reconcile.Act{
			Verb: reconcile.Restart, App: app, Service: service, Actor: "gitring",
			Reason: "its folder of secrets was emptied: what runs has lost what was in it",
		})
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return err // it is tried again
	}
	for _, hash := range hashes {
		d.contentStore.emptied.Delete(hash)
	}
	return nil
}
