package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// index finds what the holdings of a Whose have by what is asked for, so that judging all
// apps of a host takes no time that grows with their square. Entries stand in the order of
// the holdings.
type index struct {
	apps, places                                        map[string][]int // holdings, by name, and by source and folder
	volumes, networks, names, containers, routes, ports map[string][]entry
	folders, data, mounts                               map[string][]entry // by path
	folderPaths, dataPaths                              []string           // in order
	roots                                               []string           // of all data
	visited                                             *int               // entries that were asked; nil but in a test
}

// entry is one thing of one holding.
type entry struct{ holding, item, sub int }

func placeKey(o Holder) string { return o.Source + "\x00" + path.Clean(o.Path) }

// portKey is the number and protocol of a port: what clashes has the same.
func portKey(p ring.Port) string {
	at := p.Published()
	return at[strings.LastIndexByte(at, ':')+1:]
}

// indexed is the index of w, which is made once.
func (w *Whose) indexed() *index {
	if w.index != nil {
		return w.index
	}
	x := &index{
		apps: map[string][]int{}, places: map[string][]int{}, volumes: map[string][]entry{}, networks: map[string][]entry{}, names: map[string][]entry{},
		containers: map[string][]entry{}, routes: map[string][]entry{}, ports: map[string][]entry{},
		folders: map[string][]entry{}, data: map[string][]entry{}, mounts: map[string][]entry{},
	}
	for i := range w.Holdings {
		x.add(i, &w.Holdings[i])
	}
	x.folderPaths, x.dataPaths = sortedKeys(x.folders), sortedKeys(x.data)
	w.index = x
	return x
}

func (x *index) add(i int, h *Holding) {
	x.apps[h.App] = append(x.apps[h.App], i)
	x.places[placeKey(h.Holder)] = append(x.places[placeKey(h.Holder)], i)
	if h.DataRoot != "" {
		if !slices.Contains(x.roots, h.DataRoot) {
			x.roots = append(x.roots, h.DataRoot)
		}
		put(x.folders, plain(h.Folder()), entry{holding: i})
	}
	for n, v := range h.Volumes {
		put(x.volumes, v, entry{i, n, 0})
	}
	for n, d := range h.Data {
		put(x.data, plain(d), entry{i, n, 0})
	}
	for n := range h.Networks {
		put(x.networks, h.Networks[n].Name, entry{i, n, 0})
	}
	for n := range h.Names {
		put(x.names, h.Names[n].Network+" "+h.Names[n].Name, entry{i, n, 0})
	}
	for n, c := range h.Containers {
		put(x.containers, c, entry{i, n, 0})
	}
	for n := range h.Routes {
		put(x.routes, h.Routes[n].key(), entry{i, n, 0})
	}
	for n := range h.Ports {
		put(x.ports, portKey(h.Ports[n]), entry{i, n, 0})
	}
	for n := range h.Mounts {
		for k := range h.Mounts[n].Mounts {
			put(x.mounts, h.Mounts[n].Mounts[k].Source, entry{i, n, k})
		}
	}
}

func put(m map[string][]entry, key string, e entry) { m[key] = append(m[key], e) }

// held are the holdings of one app under any of its names and folders, in order.
func (x *index) held(me Holder) []int {
	out := slices.Concat(x.apps[me.App], x.places[placeKey(me)])
	slices.Sort(out)
	return slices.Compact(out)
}

// beginnings are the strings that begin a word and end in a dash, then the word itself.
func beginnings(word string) []string {
	var out []string
	for i := range len(word) - 1 {
		if word[i] == '-' {
			out = append(out, word[:i+1])
		}
	}
	return append(out, word)
}

// ancestors are a path and the folders above it, the uppermost first.
func ancestors(p string) []string {
	out := []string{p}
	for p != "/" && p != "." {
		p = path.Dir(p)
		out = append(out, p)
	}
	slices.Reverse(out)
	return out
}

// below are the paths of a list in order that are p or lie below it.
func below(sorted []string, p string) []string {
	if p == "/" {
		return sorted
	}
	var out []string
	if _, is := slices.BinarySearch(sorted, p); is {
		out = append(out, p)
	}
	from, _ := slices.BinarySearch(sorted, p+"/")
	to, _ := slices.BinarySearch(sorted, p+"0") // what comes after a slash
	return append(out, sorted[from:to]...)
}
