package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var claimNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// appNamed is an app without anything that the host has to be asked for.
func appNamed(name, source, folder string) ring.App {
	return ring.App{
		Name: name, Source: source, Commit: ring.SHA(source + folder), Path: folder, Files: []string{folder + "/compose.yaml"}, Written: source + folder,
		Services: []ring.Service{{
			Name: "web", Kind: ring.Worker, Replicas: 1, Version: "1:aa", Pin: ring.Pin{Image: "sha256:aa"}, Image: ring.Image{Known: true},
			Rollout: ring.DefaultRollout(), Spec: ring.Spec{Image: "web:1"},
		}},
	}
}

// claiming is a world in which sources ask for apps.
func claiming(facts ring.Facts, apps ...ring.App) World {
	w := World{Host: "h", Facts: facts, Recent: NewRecent(), Seen: ring.Seen{At: claimNow}}
	w.Recent.Images["sha256:aa"] = ring.Image{Known: true}
	for i := range apps {
		a := apps[i]
		w.Recent.Admitted[a.Name] = admissionOf(&a, nil)
		w.Sources = append(w.Sources, Source{
			Name: a.Source, FreshFor: time.Hour, Reached: claimNow, Commit: &ring.Commit{SHA: a.Commit},
			Next: &ring.Plan{Source: a.Source, Commit: a.Commit, Apps: []ring.App{a}},
		})
	}
	return w
}

// refusedIn is why a source's app is refused; nil when it is not.
func refusedIn(d Decision, source, app string) *ring.Refusal {
	for _, s := range d.Status.Sources {
		for _, a := range s.Apps {
			if s.Name == source && a.Name == app && a.Refusal != nil {
				return a.Refusal
			}
		}
	}
	return nil
}

func nameIn(d Decision) (n ring.Name, set bool) {
	for _, f := range d.Facts {
		if row, ok := f.(ring.Name); ok {
			n, set = row, true
		}
	}
	return n, set
}

func TestANameIsTakenOnlyByWhoMayHaveIt(t *testing.T) {
	const first = "apps/shop"
	for _, tt := range []struct {
		name           string
		source, folder string
		limits         []string // of who claims; nil is none
		policy         string   // the folder that the policy gives the name to
		left           bool
		says           string
	}{
		{name: "its own folder", source: "prod", folder: first, limits: []string{"apps/shop/**"}},
		{name: "another folder by somebody without limits", source: "prod", folder: "apps/store"},
		{name: "another folder by somebody who may change both", source: "prod", folder: "apps/store", limits: []string{"apps/shop/**", "apps/store/**"}},
		{name: "another folder by somebody who may change that alone", source: "prod", folder: "apps/evil", limits: []string{"apps/evil/**"}, says: "app shop belongs to folder apps/shop of source prod on this host, and whoever signed this may not change both folders"},
		{name: "after it left", source: "prod", folder: "apps/evil", limits: []string{"apps/evil/**"}, left: true, says: "app shop belongs to folder apps/shop"},
		{name: "by nobody who is known", source: "prod", folder: "apps/evil", limits: []string{}, says: "app shop belongs to folder apps/shop"},
		{name: "by another source", source: "lab", folder: first, says: "app shop belongs to folder apps/shop of source prod on this host"},
		{name: "by another source after it left", source: "lab", folder: first, left: true, says: "app shop belongs to folder apps/shop of source prod on this host"},
		{name: "by another source whom the policy names", source: "lab", folder: "shop", policy: "shop", left: true},
		{name: "by another folder of it", source: "lab", folder: "evil", policy: "shop", left: true, says: "app shop belongs to folder apps/shop of source prod on this host"},
		{name: "by the policy inside one source", source: "prod", folder: "apps/evil", limits: []string{"apps/evil/**"}, policy: "apps/evil"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			have, next := appNamed("shop", "prod", first), appNamed("shop", tt.source, tt.folder)
			next.Commit, next.Written = "new", "new"
			facts := ring.NewFacts()
			facts.Set(ring.NameOf(&have, ring.Name{}, claimNow))
			if !tt.left {
				facts.Set(ring.InForce{App: have, Since: claimNow})
			}
			w := claiming(facts, next)
			if tt.limits != nil {
				w.Sources[0].Next.Limits = map[string][]string{"shop": tt.limits}
			}
			if tt.policy != "" {
				w.Sources[0].Names = map[string]string{"shop": tt.policy}
			}
			d := Diff(w, claimNow)
			r := refusedIn(d, tt.source, "shop")
			if tt.says == "" {
				require.Nil(t, r)
				tu := newDecider(w, claimNow)
				tu.putInForce(&w.Sources[0], next, facts.Apps["shop"], !tt.left)
				n := tu.Facts.Names["shop"]
				require.Equal(t, tt.source+" "+tt.folder, n.Source+" "+n.Path, "the name goes along")
				return
			}
			require.NotNil(t, r)
			require.Equal(t, ring.AppTaken, r.Code)
			require.Contains(t, r.Says, tt.says)
			require.Contains(t, r.Hint, "policy: {apps: [{name: shop, source: "+tt.source+", path: "+tt.folder+"}]}")
			for _, f := range d.Facts {
				switch f := f.(type) {
				case ring.InForce:
					require.NotEqual(t, next.Commit, f.App.Commit, "it never comes into force")
				case ring.Name:
					t.Fatalf("the name went to %s %s", f.Source, f.Path)
				}
			}
			for _, a := range d.Actions {
				require.NotEqual(t, next.Commit, a.Commit, "%s: nothing is done for it", a.Kind)
			}
		})
	}
}

// A source that claims another's name is refused, and the source that has it hears
// nothing of it.
func TestAClaimRefusesTheClaimantAlone(t *testing.T) {
	facts := ring.NewFacts()
	have := appNamed("shop", "prod", "apps/shop")
	facts.Set(ring.InForce{App: have, Since: claimNow})
	facts.Set(ring.NameOf(&have, ring.Name{}, claimNow))
	d := Diff(claiming(facts, have, appNamed("shop", "lab", "evil")), claimNow)
	require.Equal(t, ring.AppTaken, refusedIn(d, "lab", "shop").Code)
	require.Nil(t, refusedIn(d, "prod", "shop"), "the app that has the name")
	for _, e := range d.Events {
		require.False(t, e.Source == "prod" && e.Kind == ring.AppRefused, "%+v", e)
	}
}

// The one that is refused takes nothing from the other, in the same look too.
func TestOfTwoSourcesThatClaimANameInOneLookOneHasIt(t *testing.T) {
	w := claiming(ring.NewFacts(), appNamed("shop", "prod", "a"), appNamed("shop", "lab", "b"))
	tu := newDecider(w, claimNow)
	prod, lab := &w.Sources[0], &w.Sources[1]
	require.Nil(t, tu.nameRefusal(prod, &prod.Next.Apps[0]))
	tu.putInForce(prod, prod.Next.Apps[0], ring.InForce{}, false)
	require.Equal(t, ring.AppTaken, tu.nameRefusal(lab, &lab.Next.Apps[0]).Code)
	require.Nil(t, tu.nameRefusal(prod, &prod.Next.Apps[0]))
}

func TestNamesOfAnEarlierReleaseAreNoted(t *testing.T) {
	facts := ring.NewFacts()
	have := appNamed("shop", "prod", "apps/shop")
	facts.Set(ring.InForce{App: have, Since: claimNow.Add(-time.Hour)})
	w := claiming(facts, have)
	d := Diff(w, claimNow)
	n, set := nameIn(d)
	require.True(t, set)
	require.Equal(t, ring.Name{App: "shop", Source: "prod", Path: "apps/shop", File: "apps/shop/compose.yaml", At: claimNow.Add(-time.Hour)}, n)
	for _, e := range d.Events {
		require.NotEqual(t, ring.AppInForce, e.Kind, "nothing changes by it")
	}
}

// A store that was lost is told by what runs whose the names are.
func TestNamesOfALostStoreComeFromWhatRuns(t *testing.T) {
	w := claiming(ring.NewFacts(), appNamed("shop", "lab", "evil"))
	w.Sources = append(w.Sources, Source{Name: "prod"})
	w.Seen.Instances = []ring.Instance{{
		ID: "c1", Name: "shop-web-1-aa", App: "shop", Source: "prod", Path: "apps/shop", Service: "web", Slot: 1, Version: "1:aa", State: ring.StateRunning, Created: claimNow.Add(-time.Hour),
	}}
	d := Diff(w, claimNow)
	require.Equal(t, ring.AppTaken, refusedIn(d, "lab", "shop").Code)
	n, _ := nameIn(d)
	require.Equal(t, ring.Name{App: "shop", Source: "prod", Path: "apps/shop", At: claimNow.Add(-time.Hour)}, n)
}

// A plan of a folder or a commit says that a name is another app's, before the push.
func TestAPlanSaysThatANameIsTaken(t *testing.T) {
	have := ring.Name{App: "shop", Source: "prod", Path: "shop"}
	w := World{Facts: ring.Facts{Names: map[string]ring.Name{"shop": have}}}
	next := &ring.Plan{Source: "lab", Commit: "c2", Apps: []ring.App{{Name: "shop", Source: "lab", Path: "shop"}, {Name: "web", Source: "lab", Path: "web"}}}
	c := Plan(w, next, time.Unix(0, 0))
	require.Len(t, c.Refusals, 1)
	require.Equal(t, ring.AppTaken, c.Refusals[0].Code)
	require.Contains(t, c.Refusals[0].Hint, "policy: {apps: [{name: shop, source: lab, path: shop}]}")
	require.Len(t, c.Apps, 1, "the others are planned")

	next.Source, next.Apps[0].Source = "prod", "prod"
	require.Empty(t, Plan(w, next, time.Unix(0, 0)).Refusals, "its own name")
}
