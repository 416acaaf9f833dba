package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// withData is an app with a database that writes a volume.
func withData(app, service, key, image string) ring.App {
	return ring.App{
		Name: app, Source: "s", Path: app, Files: []string{app + "/compose.yaml"}, Volumes: []ring.Volume{{Key: key}},
		Services: []ring.Service{{Name: service, Spec: ring.Spec{
			Image: image, Mounts: []ring.Mount{{Kind: ring.MountVolume, Source: key, Target: "/var/lib/postgresql/data"}},
		}}},
	}
}

// Whoever renames an app, a service or a volume does not mean to begin with an empty
// database. What is meant is said in the commit.
func TestNoVolumeBeginsEmptyWhereItsDataStaysBehind(t *testing.T) {
	from := func(a ring.App, from, name string) ring.App {
		a.Volumes[0].From, a.Volumes[0].Name = from, name
		return a
	}
	external := func(a ring.App, name string) ring.App {
		a.Volumes[0].External = name
		return a
	}
	shop := withData("shop", "db", "pgdata", "postgres:16")
	for _, tt := range []struct {
		name    string
		next    []ring.App
		were    string
		refused []string // apps
		hint    string
	}{
		{name: "the same app", next: []ring.App{shop}},
		{name: "the app under another name", next: []ring.App{withData("store", "db", "pgdata", "postgres:16")}, refused: []string{"shop", "store"}, hint: "{pgdata: {x-gitring: {from: shop}}}"},
		{name: "and a newer image", next: []ring.App{withData("store", "db", "pgdata", "docker.io/library/postgres:17")}, refused: []string{"shop", "store"}, hint: "from: shop"},
		{name: "its service under another name", next: []ring.App{withData("shop", "postgres", "pgdata", "postgres:16")}},
		{name: "its volume under another key", next: []ring.App{withData("shop", "db", "data", "postgres:16")}, refused: []string{"shop"}, hint: "{data: {name: shop_pgdata}}"},
		{name: "its database in an app of its own", next: []ring.App{{Name: "shop", Source: "s"}, withData("base", "db", "pgdata", "postgres:16")}, refused: []string{"base", "shop"}, hint: "from: shop"},
		{name: "the data is taken over", next: []ring.App{from(withData("store", "db", "pgdata", "postgres:16"), "shop", "shop_pgdata")}},
		{name: "by the volume's own name", next: []ring.App{from(withData("store", "db", "pgdata", "postgres:16"), "", "shop_pgdata")}},
		{name: "as an external volume", next: []ring.App{external(withData("store", "db", "pgdata", "postgres:16"), "shop_pgdata")}},
		{name: "it is meant to begin empty", next: []ring.App{from(withData("store", "db", "pgdata", "postgres:16"), ring.FromNone, "")}},
		{name: "the new volume has data from before", next: []ring.App{withData("store", "db", "pgdata", "postgres:16")}, were: "store_pgdata"},
		{name: "taken over from an app that there is not", next: []ring.App{from(withData("store", "db", "pgdata", "postgres:16"), "shpo", "shpo_pgdata")}, refused: []string{"shop", "store"}, hint: "from: shop"},
		{name: "another name and another key", next: []ring.App{withData("store", "db", "data", "postgres:16")}, refused: []string{"shop", "store"}, hint: "{data: {name: shop_pgdata, x-gitring: {from: shop}}}"},
		{name: "one more app of the same kind", next: []ring.App{shop, withData("store", "db", "pgdata", "postgres:16")}},
		{name: "and another image", next: []ring.App{withData("store", "db", "pgdata", "pgvector/pgvector:pg16")}, refused: []string{"shop", "store"}, hint: "from: shop"},
		{name: "another image and another key", next: []ring.App{withData("store", "db", "data", "mariadb:11")}},
		{name: "another image and another service", next: []ring.App{withData("store", "maria", "pgdata", "mariadb:11")}},
		{name: "the app is only removed", next: nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := &ring.Plan{Source: "s", Commit: "c2", Apps: tt.next}
			had := len(tt.next)
			d := &DataHost{InForce: map[string]ring.InForce{"shop": {App: shop}}, Kept: map[string]ring.Kept{"volume " + tt.were: {}, "volume shop_pgdata": {}}, OneHand: together}
			refusals := d.RefuseLeftBehind(plan)
			require.ElementsMatch(t, tt.refused, keysThat(plan.Refused, func(string) bool { return true }))
			if len(tt.refused) == 0 {
				require.Empty(t, refusals)
				require.Len(t, plan.Apps, had)
				return
			}
			for _, r := range plan.Refused {
				require.Equal(t, ring.VolumeLeftBehind, r.Code)
				require.Contains(t, r.Says, "WOULD BEGIN EMPTY: app shop has the data in volume shop_pgdata")
				require.Contains(t, r.Hint, tt.hint)
			}
		})
	}
}

// A hint that named the database of another app would hand it over to a stranger.
func TestTheDataThatIsMostLikeItIsNamed(t *testing.T) {
	in := func(folder string, a ring.App) ring.App { a.Path = folder; return a }
	wiki, shop := withData("wiki", "store", "pgdata", "postgres:16"), withData("shop", "db", "pgdata", "postgres:16")
	for _, tt := range []struct {
		name string
		next []ring.App
		from map[string]string // by the app that is refused
	}{
		{"two that are renamed in their folders", []ring.App{in("shop", withData("bazaar", "x", "y", "postgres:16")), in("wiki", withData("pages", "x", "y", "postgres:16"))}, map[string]string{"bazaar": "shop", "pages": "wiki"}},
		{"two that move, by their services", []ring.App{withData("bazaar", "store", "y", "postgres:16"), withData("pages", "db", "y", "postgres:16")}, map[string]string{"bazaar": "wiki", "pages": "shop"}},
		{"a key of the app itself before all others", []ring.App{withData("wiki", "store", "data", "postgres:16")}, map[string]string{"wiki": "wiki"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := &ring.Plan{Source: "s", Commit: "c2", Apps: tt.next}
			d := &DataHost{InForce: map[string]ring.InForce{"shop": {App: shop}, "wiki": {App: wiki}}, OneHand: together}
			d.RefuseLeftBehind(plan)
			for app, from := range tt.from {
				require.Contains(t, plan.Refused[app].Says, "app "+from+" has the data in volume "+from+"_pgdata")
			}
		})
	}
}

func TestAnotherSourcesAppGivesUpNothingHere(t *testing.T) {
	shop := withData("shop", "db", "pgdata", "postgres:16")
	shop.Source = "lab"
	plan := &ring.Plan{Source: "s", Commit: "c2", Apps: []ring.App{withData("store", "db", "pgdata", "postgres:16")}}
	d := &DataHost{InForce: map[string]ring.InForce{"shop": {App: shop}}, OneHand: together}
	require.Empty(t, d.RefuseLeftBehind(plan))
}

func together(*ring.App, *ring.App) bool { return true }

// Else whoever may write one folder keeps an app of others from being updated or removed.
func TestNobodyHoldsAnAppOfOthersByAVolume(t *testing.T) {
	shop := withData("shop", "db", "pgdata", "postgres:16")
	plan := &ring.Plan{Source: "s", Commit: "c2", Apps: []ring.App{withData("evil", "db", "pgdata", "postgres:16")}}
	d := &DataHost{InForce: map[string]ring.InForce{"shop": {App: shop}}, OneHand: func(a, b *ring.App) bool { return a.Name == b.Name }}
	require.Empty(t, d.RefuseLeftBehind(plan))
	require.Empty(t, plan.Refused)
}

// Two that have one volume would write it both.
func TestAVolumeIsNotTakenOverFromAnAppThatKeepsIt(t *testing.T) {
	shop, store := withData("shop", "db", "pgdata", "postgres:16"), withData("store", "db", "pgdata", "postgres:16")
	store.Volumes[0].From, store.Volumes[0].Name = "shop", "shop_pgdata"
	plan := &ring.Plan{Source: "s", Commit: "c2", Apps: []ring.App{shop, store}}
	refusals := (&DataHost{InForce: map[string]ring.InForce{"shop": {App: shop}}, OneHand: together}).RefuseLeftBehind(plan)
	require.Len(t, refusals, 1)
	require.Equal(t, ring.Conflict, plan.Refused["store"].Code)
	require.Contains(t, plan.Refused["store"].Says, "volume shop_pgdata is taken over, and both app store and app shop have it in this commit")
	require.Len(t, plan.Apps, 1)
}
