package policy

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// oldOthers are all things of other apps, one by one, as they were gathered before there
// was an index: the oracle of it.
type oldOthers struct {
	Volumes, Folders, Data, Networks, Containers, Apps map[string]Other
	DataRoots                                          []string
	Names                                              map[string]map[string]Other
	Routes                                             []oldRoute
	Ports                                              []TakenPort
	Mounts                                             []ring.HostMounts
}

type oldRoute struct {
	Route
	By Other
}

func (w *Whose) oldOf(me Holder) oldOthers {
	o := oldOthers{
		Volumes: map[string]Other{}, Folders: map[string]Other{}, Data: map[string]Other{},
		Networks: map[string]Other{}, Names: map[string]map[string]Other{}, Containers: map[string]Other{}, Apps: map[string]Other{},
	}
	mine := w.mine(me)
	for i := range w.Holdings {
		h := &w.Holdings[i]
		if h.DataRoot != "" && !slices.Contains(o.DataRoots, h.DataRoot) {
			o.DataRoots = append(o.DataRoots, h.DataRoot)
		}
		if h.same(me) || !w.counts(me, h) {
			continue
		}
		by := Other{Holder: h.Holder, OneHand: w.oneHand(me, h.Holder)}
		w.oldTake(&o, h, by, mine)
	}
	return o
}

// oldTake notes what one other app has.
func (w *Whose) oldTake(o *oldOthers, h *Holding, by Other, mine *held) {
	if !by.OneHand {
		oldFirst(o.Apps, h.App, by)
	}
	for _, m := range h.Mounts {
		m.Who += " of " + by.called()
		o.Mounts = append(o.Mounts, m)
	}
	if h.DataRoot != "" && (by.OneHand || !mine.lives(h)) {
		oldFirst(o.Folders, h.Folder(), by)
	}
	for _, v := range h.Volumes {
		if by.OneHand || !mine.first(mine.volumes, v, h) {
			oldFirst(o.Volumes, v, by)
		}
	}
	for _, d := range h.Data {
		if !by.OneHand && !mine.first(mine.data, d, h) && !mine.holds(d, h) {
			oldFirst(o.Data, d, by)
		}
	}
	for _, n := range h.Networks {
		if !mine.first(mine.networks, n.Name, h) {
			joined := by
			joined.Shared = n.Shared
			oldFirst(o.Networks, n.Name, joined)
		}
	}
	for _, n := range h.Names {
		if mine.makes[n.Network] && h.State == Next && !h.makes(n.Network) {
			continue // on a network of my own nobody comes before me who is not there yet
		}
		if o.Names[n.Network] == nil {
			o.Names[n.Network] = map[string]Other{}
		}
		if !mine.first(mine.names, n.Network+" "+n.Name, h) {
			oldFirst(o.Names[n.Network], n.Name, by)
		}
	}
	for _, c := range h.Containers {
		if !mine.first(mine.containers, c, h) {
			oldFirst(o.Containers, c, by)
		}
	}
	for _, r := range h.Routes {
		if !mine.first(mine.routes, r.key(), h) {
			o.Routes = append(o.Routes, oldRoute{r, by})
		}
	}
	for _, p := range h.Ports {
		if !mine.published(p, h) {
			o.Ports = append(o.Ports, TakenPort{p, by})
		}
	}
}

// oldFirst keeps the one that came first.
func oldFirst(m map[string]Other, what string, by Other) {
	if _, taken := m[what]; !taken {
		m[what] = by
	}
}

// world is a random host: names from a small stock, so that much of it clashes.
func world(r *rand.Rand) Whose {
	pick := func(stock ...string) string { return stock[r.IntN(len(stock))] }
	some := func(prefix string) (out []string) {
		for i := range 4 {
			if r.IntN(3) == 0 {
				out = append(out, fmt.Sprintf("%s%d", prefix, i))
			}
		}
		return out
	}
	var w Whose
	hands := r.IntN(3)
	w.OneHand = func(_ string, a, b Holder) bool { return hands == 0 || hands == 1 && a.App[0] == b.App[0] }
	for range 2 + r.IntN(8) {
		app := pick("a", "ab", "b", "c", "a-x")
		h := Holding{
			Holder: Holder{App: app, Source: pick("prod", "lab"), Path: pick(app, "apps/"+app, "apps", ".", "a/b")}, State: State(r.IntN(3)),
			Since: time.Unix(int64(r.IntN(4)), 0), DataRoot: pick("/srv", "/srv/lab", "/var/run/x", ""),
			Volumes: some("v"), Containers: []string{instanceMark(app, "web"), pick("web", "a-web-1-0123abcd", "x-")},
		}
		for _, d := range some("d") {
			h.Data = append(h.Data, path.Join(pick("/srv", "/srv/a", "/srv/lab", "/mnt"), d))
		}
		for _, n := range some("n") {
			h.Networks = append(h.Networks, Network{Name: n, Shared: r.IntN(2) == 0})
		}
		for range r.IntN(4) {
			h.Names = append(h.Names, Name{Network: pick("n0", "n1"), Name: pick("web", "db", "a-web-", "web-"), Written: true})
			h.Routes = append(h.Routes, Route{Kind: "http", Host: pick("x.example.org", "y.example.org")})
			h.Ports = append(h.Ports, ring.Port{HostPort: pick("80", "080", "81", "82"), HostIP: pick("", "127.0.0.1", "::1"), Protocol: pick("tcp", "udp", "")})
			h.Mounts = append(h.Mounts, ring.HostMounts{Who: "service s", Mounts: []ring.HostMount{
				{Source: pick("/srv", "/srv/a", "/mnt", "/srv/a/d1"), Target: pick("/t", "/u"), ReadOnly: r.IntN(3) == 0},
				{Source: pick("/srv/a", "/srv/a/d1", "/mnt/x"), Target: pick("/t/a", "/t/d1", "/t/x", "/v")},
			}})
		}
		w.Holdings = append(w.Holdings, h)
	}
	w.sort()
	return w
}

func TestAnIndexFindsWhatLookingAtAllThingsFinds(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := world(r)
		me := w.Holdings[r.IntN(len(w.Holdings))].Holder
		if r.IntN(4) == 0 {
			me = Holder{App: "new", Source: "prod", Path: "new"}
		}
		all, o := w.oldOf(me), w.Of(me)
		at := fmt.Sprintf("seed %d, %v", seed, me)
		same := func(want Other, has bool, got Other, ok bool, what string) {
			require.Equal(t, has, ok, "%s: %s", at, what)
			require.Equal(t, want, got, "%s: %s", at, what)
		}
		for i := range 4 {
			v, n := fmt.Sprintf("v%d", i), fmt.Sprintf("n%d", i)
			want, has := all.Volumes[v]
			got, ok := o.volume(v)
			same(want, has, got, ok, v)
			want, has = all.Networks[n]
			got, ok = o.network(n)
			same(want, has, got, ok, n)
		}
		for _, app := range []string{"a", "ab", "b", "c", "a-x"} {
			want, has := all.Apps[app]
			got, ok := o.app(app)
			same(want, has, got, ok, app)
		}
		for _, name := range []string{"web", "db", "a-web-1", "a-web-", "web-2-x", "cache"} {
			want, has := oldName(all.Names["n0"], name)
			got, ok := o.name("n0", name)
			same(want, has, got, ok, "name "+name)
		}
		for _, name := range []string{"web", "a-web-1-0123abcd", "a-x-web-2-0123abcd", "x-1-0123abcd", "x-", "a-web-1", ""} {
			want, has := oldContainer(all.Containers, name)
			got, ok := o.container(name, ofInstance.MatchString)
			same(want, has, got, ok, "container "+name)
		}
		for _, host := range []string{"x.example.org", "y.example.org"} {
			key := Route{Kind: "http", Host: host}.key()
			i := slices.IndexFunc(all.Routes, func(r oldRoute) bool { return r.key() == key })
			want := Other{}
			if i >= 0 {
				want = all.Routes[i].By
			}
			got, ok := o.route(key)
			same(want, i >= 0, got, ok, host)
		}
		for _, p := range []ring.Port{{HostPort: "80"}, {HostPort: "81", HostIP: "127.0.0.1"}, {HostPort: "82", Protocol: "udp"}, {}} {
			i := slices.IndexFunc(all.Ports, func(t TakenPort) bool { return !t.By.OneHand && p.Clashes(t.Port) })
			want := TakenPort{}
			if i >= 0 {
				want = all.Ports[i]
			}
			got, ok := o.port(p)
			require.Equal(t, i >= 0, ok, at)
			require.Equal(t, want, got, at)
		}
		for _, p := range []string{"/srv", "/srv/a", "/srv/a/d1", "/srv/a/d1/x", "/srv/lab", "/srv/lab/apps/a", "/mnt", "/mnt/d2", "/run/x/a", "/", "/srv/apps", "/srv/ab", "/srv/new/x"} {
			outer, who := writableAbove(p, all.Mounts)
			gotOuter, gotWho := o.writableAbove(p)
			require.Equal(t, []string{outer, who}, []string{gotOuter, gotWho}, "%s: %s", at, p)
			l := &look{walker: &walker{req: &Request{DataRoot: "/srv", Path: me.Path, Others: o}, r: &Rules{}}}
			mine := oldIsMine(all, "/srv", l.req.root(), p)
			require.Equal(t, mine, l.isMine(p), "%s: %s is mine", at, p)
			want, got := oldDataOf(all, "/srv", l.req.root(), p, mine), ""
			if f := l.dataOfOthers(p, mine); f != nil {
				got = f.risk
			}
			require.Equal(t, want, got, "%s: %s", at, p)
			require.Equal(t, slices.ContainsFunc(sortedKeys(all.Folders), func(other string) bool { return within(plain(other), p) }), o.holdsFolder(p), "%s: %s", at, p)
		}
	}
}

func oldName(names map[string]Other, wanted string) (Other, bool) {
	for _, name := range sortedKeys(names) {
		if name == wanted || strings.HasSuffix(name, "-") && strings.HasPrefix(wanted, name) {
			return names[name], true
		}
	}
	return Other{}, false
}

func oldContainer(containers map[string]Other, name string) (Other, bool) {
	for _, taken := range sortedKeys(containers) {
		rest, begins := strings.CutPrefix(name, taken)
		if name != "" && (name == taken || begins && strings.HasSuffix(taken, "-") && ofInstance.MatchString(rest)) {
			return containers[taken], true
		}
	}
	return Other{}, false
}

func oldIsMine(o oldOthers, dataRoot, root, p string) bool {
	root = plain(root)
	return dataRoot != "" && within(p, root) && !slices.ContainsFunc(sortedKeys(o.Folders), func(other string) bool {
		return plain(other) != root && within(plain(other), root) && within(p, plain(other))
	})
}

func oldDataOf(o oldOthers, dataRoot, root, p string, mine bool) string {
	for _, folder := range sortedKeys(o.Folders) {
		if !mine && within(p, plain(folder)) && plain(folder) != plain(root) {
			return "is the data of " + o.Folders[folder].called()
		}
	}
	for _, folder := range sortedKeys(o.Data) {
		if within(p, plain(folder)) {
			return "is the data of " + o.Data[folder].called()
		}
	}
	if !slices.ContainsFunc(append(o.DataRoots, dataRoot), func(root string) bool { return root != "" && within(p, plain(root)) }) {
		return ""
	}
	for _, all := range []map[string]Other{o.Folders, o.Data} {
		for _, folder := range sortedKeys(all) {
			if by := all[folder]; !by.OneHand && within(plain(folder), p) && (plain(folder) != plain(root) || path.Clean(p) != plain(folder)) {
				return "holds the data of " + by.called()
			}
		}
	}
	return ""
}

// Twice the apps ask twice the entries, not four times as many.
func TestJudgingAllAppsAsksForAboutAsManyThingsAsTheyHave(t *testing.T) {
	asked := func(n int) int {
		var w Whose
		var apps []ring.App
		for i := range n {
			name := fmt.Sprintf("s%d", i)
			apps = append(apps, ring.App{Name: name, Source: "prod", Path: name, Volumes: []ring.Volume{{Key: "v"}}, Networks: []ring.Network{{Key: "default"}}, Services: []ring.Service{{
				Name: "web", Replicas: 1, Spec: ring.Spec{
					Image: "a", ContainerName: name, Networks: []ring.Attachment{{Network: "default", Aliases: []string{"x"}}},
					Ports:  []ring.Port{{HostPort: fmt.Sprint(10000 + i)}},
					Mounts: []ring.Mount{{Kind: ring.MountVolume, Source: "v", Target: "/v"}, {Kind: ring.MountData, Source: name + "/d", Target: "/d"}},
				},
			}}})
		}
		var plan []Holding
		for i := range apps {
			plan = append(plan, HoldingOf(&apps[i], "/srv", Next, time.Time{}))
		}
		w = w.With("prod", plan)
		visited := 0
		w.indexed().visited = &visited
		for i := range apps {
			o := w.Of(HolderOf(&apps[i]))
			require.Empty(t, CheckApp(Rules{}, &apps[i], "/srv", o))
			require.Empty(t, CheckBeside(Rules{}, &apps[i], "/srv", o))
		}
		return visited
	}
	few, many := asked(100), asked(400)
	require.Positive(t, few)
	require.LessOrEqual(t, many, 5*few, "%d entries for 100 apps, %d for 400", few, many)
}
