package reconcile

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// inFolder is an app with a database that writes a folder beside its Compose file.
func inFolder(app, folder, source, image string) ring.App {
	return ring.App{
		Name: app, Source: "s", Path: folder, Files: []string{folder + "/compose.yaml"},
		Services: []ring.Service{{Name: "db", Spec: ring.Spec{
			Image: image, Mounts: []ring.Mount{{Kind: ring.MountData, Source: source, Target: "/var/lib/postgresql/data"}},
		}}},
	}
}

// disk is what lies on the host: true where a folder holds something.
type disk map[string]bool

func (d disk) look(folder string) (there, holds bool) {
	holds, there = d[folder]
	return there, holds
}

// hostWith is a host on which apps are in force, and what they have lies on its disk.
func hostWith(apps ...ring.App) *DataHost {
	d := &DataHost{
		InForce: map[string]ring.InForce{}, Names: map[string]ring.Name{}, Kept: map[string]ring.Kept{}, Left: map[string]ring.Left{},
		Root: "/srv", OneHand: together,
	}
	on := disk{}
	d.Folder = on.look
	for _, a := range apps {
		d.InForce[a.Name] = ring.InForce{App: a}
		d.Names[a.Name] = ring.Name{App: a.Name, Source: a.Source, Path: a.Path}
		for _, m := range a.Services[0].Spec.Mounts {
			name := "volume " + a.Name + "_" + m.Source
			if m.Kind == ring.MountData {
				name = "data /srv/" + m.Source
				on["/srv/"+m.Source] = true
			}
			d.Kept[name] = ring.Kept{App: a.Name, Name: name}
		}
	}
	return d
}

// gone takes an app off a host, which remembers it.
func (d *DataHost) gone(app, commit string) *DataHost {
	d.Left[app] = ring.Left{App: d.InForce[app].App, Commit: shaOf(commit)}
	delete(d.InForce, app)
	return d
}

// judged is what a host makes of a commit: its refusals by app, and the plan.
func (d *DataHost) judged(answers []ring.DataAnswer, apps ...ring.App) (map[string]*ring.Refusal, *ring.Plan) {
	plan := &ring.Plan{Source: "s", Commit: shaOf("c2"), Apps: apps, Data: answers}
	d.TakeOver(plan)
	d.RefuseLeftBehind(plan)
	return plan.Refused, plan
}

// A folder of an app lies below the app's folder of the repository: who moves that moves it.
func TestNoFolderBeginsEmptyWhereItsDataStaysBehind(t *testing.T) {
	const pg = "postgres:16"
	shop := inFolder("shop", "shop", "shop/data", pg)
	on := func(more disk) func(*DataHost) {
		return func(d *DataHost) {
			was := d.Folder
			d.Folder = func(folder string) (bool, bool) {
				if _, said := more[folder]; said {
					return more.look(folder)
				}
				return was(folder)
			}
		}
	}
	for _, tt := range []struct {
		name    string
		next    []ring.App
		host    func(*DataHost)
		refused []string
		says    string
		hint    string
	}{
		{name: "the app in its folder", next: []ring.App{shop}},
		{name: "under another name in its folder", next: []ring.App{inFolder("store", "shop", "shop/data", pg)}},
		{
			name: "in another folder", next: []ring.App{inFolder("shop", "apps/shop", "apps/shop/data", pg)}, refused: []string{"shop"},
			says: "FOLDER /srv/apps/shop/data WOULD BEGIN EMPTY: app shop has the data in folder /srv/shop/data, which this commit gives up",
			hint: `to take the data over, sign "Gitring-Data: shop from shop" in a commit's message, or stop the app and move the folder; to begin empty: "Gitring-Data: shop from none"`,
		},
		{name: "renamed and moved", next: []ring.App{inFolder("store", "store", "store/data", pg)}, refused: []string{"shop", "store"}, hint: `sign "Gitring-Data: store from shop"`},
		{name: "moved, and it mounts the folder where it lies", next: []ring.App{inFolder("shop", "apps/shop", "shop/data", pg)}},
		{name: "renamed and moved, and it mounts the folder where it lies", next: []ring.App{inFolder("store", "store", "shop/data", pg)}},
		{name: "renamed and moved, and a hand moved the data before", next: []ring.App{inFolder("store", "store", "store/data", pg)}, host: on(disk{"/srv/store/data": true})},
		{name: "renamed and moved, and a hand made an empty one", next: []ring.App{inFolder("store", "store", "store/data", pg)}, host: on(disk{"/srv/store/data": false})},
		{name: "the folder never held anything", next: []ring.App{inFolder("store", "store", "store/data", pg)}, host: on(disk{"/srv/shop/data": false})},
		{name: "its disk is not mounted", next: []ring.App{inFolder("store", "store", "store/data", pg)}, host: func(d *DataHost) { d.Folder = disk{}.look }, refused: []string{"shop", "store"}},
		{name: "another folder at the same place of the service", next: []ring.App{inFolder("shop", "shop", "shop/pgdata", pg)}, refused: []string{"shop"}, hint: `sign "Gitring-Data: shop from shop"`},
		{
			name: "a volume instead of the folder", next: []ring.App{withData("shop", "db", "pgdata", pg)}, refused: []string{"shop"},
			says: "VOLUME shop_pgdata WOULD BEGIN EMPTY: app shop has the data in folder /srv/shop/data", hint: "mount folder /srv/shop/data again, or copy what it holds",
		},
		{name: "renamed and moved, with another image", next: []ring.App{inFolder("store", "store", "store/data", "pgvector/pgvector:pg16")}, refused: []string{"shop", "store"}, hint: `sign "Gitring-Data: store from shop"`},
		{name: "another image and another folder", next: []ring.App{inFolder("store", "store", "store/files", "mariadb:11")}},
		{name: "it is only removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := hostWith(shop)
			if tt.host != nil {
				tt.host(d)
			}
			refused, plan := d.judged(nil, tt.next...)
			require.ElementsMatch(t, tt.refused, sortedKeys(refused))
			if len(tt.refused) == 0 {
				require.Len(t, plan.Apps, len(tt.next))
			}
			for _, r := range refused {
				require.Equal(t, ring.VolumeLeftBehind, r.Code)
				require.Contains(t, r.Says, tt.says)
				require.Contains(t, r.Hint, tt.hint)
				require.Contains(t, r.Folders, "/srv/shop/data\n", "it is looked at again")
			}
		})
	}
}

// Compose begins anew what comes under another name, however long after it left.
func TestWhatLeftBeforeIsAskedForByWhoeverFollowsIt(t *testing.T) {
	const pg = "postgres:16"
	two := func(a ring.App, service, image string) ring.App {
		a.Services = append(a.Services, ring.Service{Name: service, Spec: ring.Spec{Image: image}})
		return a
	}
	shop := two(withData("shop", "db", "pgdata", pg), "web", "acme/shop:1")
	other := withData("other", "db", "pgdata", pg)
	other.Volumes[0].Name, other.Volumes[0].From = "shop_pgdata", "shop"
	for _, tt := range []struct {
		name string
		next ring.App
		host func(*DataHost)
		more []ring.App
		says string // "" passes
	}{
		{name: "the same app again", next: shop},
		{name: "the same services under another name", next: two(withData("store", "db", "pgdata", "postgres:17"), "web", "acme/shop:2"), says: "VOLUME store_pgdata WOULD BEGIN EMPTY: app shop had the data in volume shop_pgdata, and commit c1fffff gave it up"},
		{name: "one of the two services", next: withData("store", "db", "pgdata", pg), says: "app shop had the data"},
		{name: "its folder", next: func() ring.App { a := withData("store", "postgres", "data", pg); a.Path = "shop"; return a }(), says: "app shop had the data"},
		{name: "an app of its own that has the same database", next: two(two(withData("blog", "database", "pgdata", pg), "front", "acme/blog"), "cache", "redis")},
		{name: "of another source", next: func() ring.App { a := withData("store", "db", "pgdata", pg); a.Source = "lab"; return a }()},
		{name: "in other hands", next: withData("store", "db", "pgdata", pg), host: func(d *DataHost) { d.OneHand = func(a, b *ring.App) bool { return false } }},
		{name: "its data is another app's meanwhile", next: withData("store", "db", "pgdata", pg), more: []ring.App{other}, host: func(d *DataHost) {
			d.InForce["other"] = ring.InForce{App: other}
		}},
		{name: "it says none", next: func() ring.App {
			a := withData("store", "db", "pgdata", pg)
			a.Volumes[0].From = ring.FromNone
			return a
		}()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := hostWith(shop).gone("shop", "c1")
			if tt.host != nil {
				tt.host(d)
			}
			refused, _ := d.judged(nil, append(tt.more, tt.next)...)
			if tt.says == "" {
				require.Empty(t, refused)
				return
			}
			require.Len(t, refused, 1, "what left has nothing to keep")
			require.Contains(t, refused[tt.next.Name].Says, tt.says)
		})
	}
}

func TestASignedAnswerTakesTheDataOver(t *testing.T) {
	const pg = "postgres:16"
	answer := func(app, from string) []ring.DataAnswer { return []ring.DataAnswer{{App: app, From: from}} }
	t.Run("a volume", func(t *testing.T) {
		refused, plan := hostWith(withData("shop", "db", "pgdata", pg)).judged(answer("store", "shop"), withData("store", "db", "pgdata", pg))
		require.Empty(t, refused)
		require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("store"))
		require.Equal(t, "shop", plan.Apps[0].Volumes[0].From, "as the Compose file would have it")
	})
	t.Run("a volume under another key", func(t *testing.T) {
		refused, plan := hostWith(withData("shop", "db", "pgdata", pg)).judged(answer("store", "shop"), withData("store", "db", "database", pg))
		require.Empty(t, refused)
		require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("store"))
	})
	t.Run("a volume of another image, by its key", func(t *testing.T) {
		refused, plan := hostWith(withData("shop", "db", "pgdata", pg)).judged(answer("store", "shop"), withData("store", "db", "pgdata", "timescaledb:2"))
		require.Empty(t, refused)
		require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("store"))
	})
	t.Run("a folder", func(t *testing.T) {
		refused, plan := hostWith(inFolder("shop", "shop", "shop/data", pg)).judged(answer("store", "shop"), inFolder("store", "store", "store/data", pg))
		require.Empty(t, refused)
		require.Equal(t, "shop/data", plan.Apps[0].Services[0].Spec.Mounts[0].Source)
	})
	t.Run("the folder of an app that moved", func(t *testing.T) {
		refused, plan := hostWith(inFolder("shop", "shop", "shop/data", pg)).judged(answer("shop", "shop"), inFolder("shop", "apps/shop", "apps/shop/data", pg))
		require.Empty(t, refused)
		require.Equal(t, "shop/data", plan.Apps[0].Services[0].Spec.Mounts[0].Source)
	})
	t.Run("what left before", func(t *testing.T) {
		refused, plan := hostWith(withData("shop", "db", "pgdata", pg)).gone("shop", "c1").judged(answer("store", "shop"), withData("store", "db", "pgdata", pg))
		require.Empty(t, refused)
		require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("store"))
	})
	t.Run("and later commits need not say it again", func(t *testing.T) {
		d := hostWith(withData("shop", "db", "pgdata", pg))
		_, plan := d.judged(answer("store", "shop"), withData("store", "db", "pgdata", pg))
		d.gone("shop", "c2").InForce["store"] = ring.InForce{App: plan.Apps[0]}
		d.Names["store"] = ring.NameOf(&plan.Apps[0], ring.Name{}, d.Names["shop"].At)
		for _, again := range [][]ring.DataAnswer{nil, answer("store", "shop")} { // a restart reads the same commit once more
			refused, next := d.judged(again, withData("store", "db", "pgdata", "postgres:17"))
			require.Empty(t, refused)
			require.Equal(t, "shop_pgdata", next.Apps[0].Volumes[0].EngineName("store"))
		}
		said := withData("store", "db", "pgdata", pg)
		said.Volumes[0].Name = "other"
		_, next := d.judged(nil, said)
		require.Empty(t, next.Apps, "what the file says counts, and that would begin empty")
	})
	t.Run("once more, by the app's third name", func(t *testing.T) {
		store := withData("store", "db", "pgdata", pg)
		store.Volumes[0].Name, store.Volumes[0].From = "shop_pgdata", "shop"
		d := hostWith(store)
		d.Kept["volume shop_pgdata"] = ring.Kept{}
		refused, plan := d.judged(answer("bazaar", "store"), withData("bazaar", "db", "pgdata", pg))
		require.Empty(t, refused)
		require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("bazaar"))
		require.Equal(t, "shop", plan.Apps[0].Volumes[0].From, "whose name is on the volume: the host admits no other")
		refused, _ = d.judged(nil, withData("bazaar", "db", "pgdata", pg))
		require.Contains(t, refused["bazaar"].Hint, "volumes: {pgdata: {x-gitring: {from: shop}}}")
	})
	t.Run("it is to begin empty", func(t *testing.T) {
		for _, app := range []ring.App{withData("store", "db", "pgdata", pg), inFolder("store", "store", "store/data", pg)} {
			refused, plan := hostWith(withData("shop", "db", "pgdata", pg), inFolder("cart", "cart", "cart/data", pg)).judged(answer("store", ring.FromNone), app)
			require.Empty(t, refused)
			require.Len(t, plan.Apps[0].Empty, 1, "the host is told too")
		}
	})
}

func apart(d *DataHost) *DataHost {
	d.OneHand = func(a, b *ring.App) bool { return a.Name == b.Name }
	return d
}

// Whoever signed that data is taken over does not mean to begin empty, whatever slip of the
// hand is in it.
func TestAnAnswerThatCannotBeCarriedOutIsRefused(t *testing.T) {
	const pg = "postgres:16"
	shop := withData("shop", "db", "pgdata", pg)
	for _, tt := range []struct {
		name   string
		host   *DataHost
		answer ring.DataAnswer
		next   []ring.App
		app    string // that is refused; "" is none
		code   ring.Code
		says   string
		stays  bool
	}{
		{name: "a misspelt name", host: hostWith(shop), answer: ring.DataAnswer{App: "store", From: "shpo"}, next: []ring.App{withData("store", "db", "pgdata", pg)}, app: "store", code: ring.BadValue, says: "but app shpo has no volume and no data folder on this host", stays: true},
		{name: "a slip of the hand", host: hostWith(shop), answer: ring.DataAnswer{From: "store form shop"}, next: []ring.App{withData("store", "db", "pgdata", "other:1")}, app: "store", code: ring.BadValue, says: `the commit's message says "Gitring-Data: store form shop", but that names no two apps`},
		{name: "a slip of the hand where nothing begins empty", host: hostWith(shop), answer: ring.DataAnswer{From: "store form shop"}, next: []ring.App{shop}},
		{name: "a name that no app had, near to one that had", host: hostWith(shop), answer: ring.DataAnswer{App: "store", From: "shpo"}, next: []ring.App{withData("store", "db", "pgdata", "other:1")}, app: "store", code: ring.BadValue, says: `the commit's message says "Gitring-Data: store from shpo", but app shpo has no volume`},
		{name: "a host that never had any of it", host: hostWith(), answer: ring.DataAnswer{App: "store", From: "shop"}, next: []ring.App{withData("store", "db", "pgdata", pg)}},
		{name: "an app with nothing to take", host: hostWith(inFolder("shop", "shop", "shop/data", "other")), answer: ring.DataAnswer{App: "store", From: "shop"}, next: []ring.App{withData("store", "db", "pgdata", pg)}, app: "store", code: ring.BadValue, says: "nothing that app shop has or had on this host is what app store would begin empty"},
		{name: "an app in other hands", host: apart(hostWith(shop)), answer: ring.DataAnswer{App: "store", From: "shop"}, next: []ring.App{withData("store", "db", "pgdata", pg)}, app: "store", code: ring.BadValue, says: "app shop is in other hands"},
		{name: "an app that keeps it", host: hostWith(shop), answer: ring.DataAnswer{App: "store", From: "shop"}, next: []ring.App{shop, withData("store", "db", "pgdata", pg)}, app: "store", code: ring.Conflict, says: "volume shop_pgdata is taken over, and both app store and app shop have it in this commit"},
		{name: "an app that has data of its own", host: hostWith(shop, withData("store", "db", "pgdata", pg)), answer: ring.DataAnswer{App: "store", From: "shop"}, next: []ring.App{withData("store", "db", "pgdata", pg)}, app: "store", code: ring.BadValue, says: "nothing that app shop has"},
		{name: "an answer for another app", host: hostWith(shop), answer: ring.DataAnswer{App: "stroe", From: "shop"}, next: []ring.App{withData("store", "db", "pgdata", pg)}, app: "store", code: ring.VolumeLeftBehind, says: "app shop has the data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refused, _ := tt.host.judged([]ring.DataAnswer{tt.answer}, tt.next...)
			if tt.app == "" {
				require.Empty(t, refused)
				return
			}
			require.NotNil(t, refused[tt.app])
			if tt.stays {
				require.Contains(t, refused, "shop", "what has the data serves until it is mended")
			}
			require.Equal(t, tt.code, refused[tt.app].Code)
			require.Contains(t, refused[tt.app].Says, tt.says)
			require.NotEmpty(t, refused[tt.app].Hint)
		})
	}
}

// Two apps that take over one volume would write it both.
func TestOneVolumeIsTakenOverOnce(t *testing.T) {
	const pg = "postgres:16"
	shop := withData("shop", "db", "pgdata", pg)
	taking := func(app string) ring.App {
		a := withData(app, "db", "pgdata", pg)
		a.Volumes[0].Name, a.Volumes[0].From = "shop_pgdata", "shop"
		return a
	}
	refused, _ := hostWith(shop).judged(nil, taking("store"), taking("bazaar"))
	require.Equal(t, []string{"bazaar", "store"}, sortedKeys(refused), "nobody says which of the two")

	d := hostWith(shop)
	d.InForce["store"] = ring.InForce{App: taking("store")}
	refused, _ = d.judged(nil, taking("store"), taking("bazaar"))
	require.Equal(t, []string{"bazaar"}, sortedKeys(refused), "who has it keeps it")

	answers := []ring.DataAnswer{{App: "store", From: "shop"}, {App: "bazaar", From: "shop"}}
	refused, _ = hostWith(shop).judged(answers, withData("store", "db", "pgdata", pg), withData("bazaar", "db", "pgdata", pg))
	require.Equal(t, []string{"bazaar", "store"}, sortedKeys(refused))

	folder := inFolder("shop", "shop", "shop/data", pg)
	refused, _ = hostWith(folder).judged(answers, inFolder("store", "store", "store/data", pg), inFolder("bazaar", "bazaar", "bazaar/data", pg))
	require.Equal(t, []string{"bazaar", "store"}, sortedKeys(refused))
}

func TestAVolumeFromAMisspeltAppIsRefused(t *testing.T) {
	d := hostWith(withData("shop", "db", "pgdata", "postgres:16"))
	typo := withData("store", "db", "pgdata", "timescaledb:2") // not like the one that is given up
	typo.Volumes[0].Name, typo.Volumes[0].From = "shpo_pgdata", "shpo"
	refused, _ := d.judged(nil, typo)
	require.Contains(t, refused["store"].Says, "VOLUME shpo_pgdata WOULD BEGIN EMPTY: it is taken over from app shpo, which never was on this host")
	require.Contains(t, refused["store"].Hint, `did you mean "shop"?`)
	refused, _ = d.judged([]ring.DataAnswer{{App: "store", From: ring.FromNone}}, typo)
	require.Empty(t, refused, "another host may have had it, and this one begins anew")
	fresh := &DataHost{OneHand: together}
	refused, _ = fresh.judged(nil, typo)
	require.Empty(t, refused, "a new host begins anew")
}

// The app whose it was comes back while another one has it.
func TestWhatWasTakenOverIsNotGivenBackBesideWhoHasIt(t *testing.T) {
	const pg = "postgres:16"
	answer := []ring.DataAnswer{{App: "store", From: "shop"}}
	for _, apps := range [][2]ring.App{
		{withData("shop", "db", "pgdata", pg), withData("store", "db", "pgdata", pg)},
		{inFolder("shop", "shop", "shop/data", pg), inFolder("store", "store", "store/data", pg)},
	} {
		shop, store := apps[0], apps[1]
		shop.Volumes, store.Volumes = slices.Clone(shop.Volumes), slices.Clone(store.Volumes)
		d := hostWith(shop)
		_, plan := d.judged(answer, store)
		d.gone("shop", "c2").InForce["store"] = ring.InForce{App: plan.Apps[0]}
		d.Names["store"] = ring.NameOf(&plan.Apps[0], ring.Name{}, d.Names["shop"].At)
		refused, _ := d.judged(nil, shop, store)
		require.Equal(t, []string{"shop"}, sortedKeys(refused), "two would write it")
		require.Equal(t, ring.Conflict, refused["shop"].Code)
	}
}

func TestTwoAppsBecomeOneWithTheDataOfBoth(t *testing.T) {
	const pg = "postgres:16"
	two := withData("all", "db", "one", pg)
	two.Services = append(two.Services, withData("all", "db2", "two", pg).Services...)
	two.Volumes = append(two.Volumes, ring.Volume{Key: "two"})
	answers := []ring.DataAnswer{{App: "all", From: "shop"}, {App: "all", From: "cart"}}
	refused, plan := hostWith(withData("shop", "db", "pgdata", pg), withData("cart", "db", "pgdata", pg)).judged(answers, two)
	require.Empty(t, refused)
	require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("all"))
	require.Equal(t, "cart_pgdata", plan.Apps[0].Volumes[1].EngineName("all"), "each its own")
}

// databases is an app of services and their volumes, in turn, all of one image.
func databases(app string, parts ...string) ring.App {
	out := withData(app, parts[0], parts[1], "postgres:16")
	for i := 2; i < len(parts); i += 2 {
		out.Services = append(out.Services, withData(app, parts[i], parts[i+1], "postgres:16").Services...)
		out.Volumes = append(out.Volumes, ring.Volume{Key: parts[i+1]})
	}
	return out
}

// An answer names two apps and no volumes. Which data is for which service is told by key and
// service; where that leaves a choice, nobody guesses.
func TestAnAnswerGivesEachServiceItsOwnData(t *testing.T) {
	answer := []ring.DataAnswer{{App: "store", From: "shop"}}
	for _, tt := range []struct {
		name       string
		shop, next ring.App
		has        []string // by volume of next
		refused    bool
	}{
		{"a new service comes before the old one", databases("shop", "db", "pg"), databases("store", "cache", "second", "db", "pg"), []string{"store_second", "shop_pg"}, false},
		{"one of two has another name", databases("shop", "db", "pgdata", "stats", "stats"), databases("store", "analytics", "analytics", "db", "pgdata"), []string{"shop_stats", "shop_pgdata"}, false},
		{"the services tell them apart", databases("shop", "db", "a", "stats", "b"), databases("store", "stats", "x", "db", "y"), []string{"shop_b", "shop_a"}, false},
		{"two for one", databases("shop", "db", "a", "stats", "b"), databases("store", "one", "x"), nil, true},
		{"one for two", databases("shop", "db", "a"), databases("store", "one", "x", "two", "y"), nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refused, plan := hostWith(tt.shop).judged(answer, tt.next)
			if tt.refused {
				require.Contains(t, refused["store"].Says, "cannot be told")
				require.Contains(t, refused["store"].Says, "x-gitring: {from: shop}")
				return
			}
			require.Empty(t, refused)
			for i, want := range tt.has {
				require.Equal(t, want, plan.Apps[0].Volumes[i].EngineName("store"))
			}
		})
	}
}

func TestAnAnswerThatAnAppBeginsEmptyEndsAnEarlierOne(t *testing.T) {
	shop, store := databases("shop", "db", "pgdata"), databases("store", "db", "pgdata")
	d := hostWith(shop)
	_, plan := d.judged([]ring.DataAnswer{{App: "store", From: "shop"}}, store)
	require.Equal(t, "shop_pgdata", plan.Apps[0].Volumes[0].EngineName("store"))
	d.gone("shop", "c2").InForce["store"] = ring.InForce{App: plan.Apps[0]}
	first := ring.NameOf(&plan.Apps[0], ring.Name{}, d.Names["shop"].At)
	require.NotEmpty(t, first.Taken)
	d.Names["store"] = first
	refused, next := d.judged([]ring.DataAnswer{{App: "store", From: ring.FromNone}}, databases("store", "db", "pgdata"))
	require.Empty(t, refused)
	require.Equal(t, "store_pgdata", next.Apps[0].Volumes[0].EngineName("store"))
	require.Empty(t, ring.NameOf(&next.Apps[0], first, first.At).Taken, "the next commit says no word, and it stays so")
	_, again := d.judged(nil, databases("store", "db", "pgdata"))
	require.Equal(t, "shop_pgdata", again.Apps[0].Volumes[0].EngineName("store"), "without an answer the earlier one counts")
}

func TestAnotherKeyAndAnotherImageAtOnceBeginNothingEmpty(t *testing.T) {
	next := withData("shop", "db", "data", "timescale/timescaledb:2")
	refused, _ := hostWith(withData("shop", "db", "pgdata", "postgres:16")).judged(nil, next)
	require.Contains(t, refused["shop"].Says, "VOLUME shop_data WOULD BEGIN EMPTY")
}

// Whoever backs data up by what a plan says of it finds it there, in this commit and the next ones.
func TestTheNoteOfAFolderThatIsTakenOverSaysWhereItLies(t *testing.T) {
	d := hostWith(inFolder("worker", "worker", "worker/data", "app:1"))
	next := inFolder("worker", "apps/worker", "apps/worker/data", "app:1")
	next.Notes = []string{"web: ./data " + ring.FolderNote("apps/worker/data") + ", created on first use", "web: ./database " + ring.FolderNote("apps/worker/database") + ", created"}
	says := func(plan *ring.Plan) {
		t.Helper()
		require.Equal(t, []string{
			"web: ./data is the app's data: worker/data below the data root, taken over from app worker, created on first use",
			"web: ./database is the app's data: apps/worker/database below the data root, created",
		}, plan.Apps[0].Notes)
		require.Equal(t, "worker/data", plan.Apps[0].Services[0].Spec.Mounts[0].Source)
	}
	refused, plan := d.judged([]ring.DataAnswer{{App: "worker", From: "worker"}}, next)
	require.Empty(t, refused)
	says(plan)
	n := d.Names["worker"]
	n.Taken = plan.Apps[0].Taken
	d.Names["worker"] = n
	_, plan = d.judged(nil, next)
	says(plan)
	require.Contains(t, next.Notes[0], "apps/worker/data", "the reading stays as it is")
}
