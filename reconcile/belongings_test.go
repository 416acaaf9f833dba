package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Each of two repositories has one Compose file at its root. Neither's authors
// know of the other's.
func TestTwoSourcesNeverKeepTheirDataInOnePlace(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	root := func(name string, edit func(*ring.App)) *ring.App {
		a := &ring.App{
			Name: name, Source: name, Commit: ring.SHA(name), Path: ".", Files: []string{"compose.yaml"}, Networks: []ring.Network{{Key: "default"}},
			Volumes: []ring.Volume{{Key: "db", Name: name + "_db"}},
			Services: []ring.Service{{
				Name: "web", Kind: ring.Worker, Replicas: 1, Version: "1:aa", Pin: ring.Pin{Image: "sha256:aa"}, Image: ring.Image{Known: true}, Rollout: ring.DefaultRollout(),
				File: "compose.yaml", Line: 2, Places: map[string]ring.Place{"volumes./data": {File: "compose.yaml", Line: 7}},
				Spec: ring.Spec{Image: "web:1", Mounts: []ring.Mount{
					{Kind: ring.MountData, Source: "data", Target: "/data"}, {Kind: ring.MountVolume, Source: "db", Target: "/db"},
				}},
			}},
		}
		edit(a)
		return a
	}
	elsewhere := func(a *ring.App) { a.DataRoot = "/mnt" }
	for _, tt := range []struct {
		name string
		edit func(*ring.App)
		says string
		hint string
	}{
		{"the same relative path", func(*ring.App) {}, "data folder <data_root>/data belongs to app blog of source blog on this host", "data_root of source shop"},
		{"a seeded folder is one too", func(a *ring.App) { a.Services[0].Spec.Mounts[0].Kind = ring.MountSeed }, "data folder <data_root>/data belongs to app blog of source blog on this host", ""},
		{"the same volume by name", func(a *ring.App) { elsewhere(a); a.Volumes[0].Name = "blog_db" }, "volume blog_db belongs to app blog of source blog on this host", "another name"},
		{"another data root", elsewhere, "", ""},
		{"an external volume is nobody's", func(a *ring.App) { elsewhere(a); a.Volumes[0] = ring.Volume{Key: "db", External: "blog_db"} }, "", ""},
		{"two apps of one source", func(a *ring.App) { a.Source = "blog" }, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			blog, shop := root("blog", func(*ring.App) {}), root("shop", tt.edit)
			w := World{
				Host: "h", Facts: ring.NewFacts(), Recent: NewRecent(), Seen: ring.Seen{At: now},
				Sources: []Source{{Name: shop.Source, FreshFor: time.Hour, Reached: now, Commit: &ring.Commit{SHA: shop.Commit}, Next: &ring.Plan{Source: shop.Source, Commit: shop.Commit, Apps: []ring.App{*shop}}}},
			}
			w.Facts.Set(ring.InForce{App: *blog, Since: now})
			d := Diff(w, now)
			var r *ring.Refusal
			for _, a := range d.Status.Sources[0].Apps {
				if a.Name == "shop" {
					r = a.Refusal
				}
			}
			if tt.says == "" {
				require.Nil(t, r)
				return
			}
			require.NotNil(t, r)
			require.Equal(t, ring.Conflict, r.Code)
			require.Equal(t, tt.says, r.Says)
			require.Contains(t, r.Hint, tt.hint)
			require.Equal(t, "compose.yaml", r.File)
			for _, a := range d.Actions {
				require.NotEqual(t, "shop", a.App, "%s: nothing is done for it", a.Kind)
			}
		})
	}
}

// The folder of an app that was called otherwise is its folder still.
func TestWhatAnAppWasGivenUnderAFormerNameIsKept(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := stopped(now, 1, theNetwork())
	w.Seen.Instances = nil
	w.Recent.Images[""] = ring.Image{Known: true}
	w.Facts.Set(ring.Kept{App: "former", Name: "data /srv/shop/data", At: now})
	for _, a := range Diff(w, now).Actions {
		if a.Kind == ring.DoCreate {
			require.Equal(t, []string{"data /srv/shop/data"}, a.Kept)
			return
		}
	}
	t.Fatal("nothing was made")
}
