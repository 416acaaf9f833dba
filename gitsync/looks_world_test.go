package gitsync

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// A lines is a tree as people think of it: which lines each file has. Every line
// is unique, so that one can say who wrote it and when it left.
type lines map[string]map[string]bool

func (l lines) clone() lines {
	out := lines{}
	for p, set := range l {
		out[p] = maps.Clone(set)
	}
	return out
}

func (l lines) has(path, line string) bool { return l[path][line] }

// with is a copy with one line more.
func (l lines) with(path, line string) lines {
	out := l.clone()
	if out[path] == nil {
		out[path] = map[string]bool{}
	}
	out[path][line] = true
	return out
}

// without is a copy with one line less.
func (l lines) without(path, line string) lines {
	out := l.clone()
	delete(out[path], line)
	return out
}

// A lookCommit is a commit with what its maker meant by it.
type lookCommit struct {
	id      ring.SHA
	n       int // order of making
	parents []ring.SHA
	lines   lines
	signer  string   // whose key signed it; "" is nobody
	head    ring.SHA // what a button of the forge was pressed for; "" is none
	vouches ring.SHA // which commit its signer answers for; "" is none
	what    string
}

// A looksWorld is a repository of a forge, with people who sign, people who press
// buttons, and somebody who may push and has no key.
type looksWorld struct {
	t       testing.TB
	r       *rand.Rand
	keys    map[string]ssh.Signer
	objects map[ring.SHA]object
	trees   map[string]ring.SHA
	all     []*lookCommit
	by      map[ring.SHA]*lookCommit
	below   map[ring.SHA]map[ring.SHA]bool // ancestors, itself included
	pulls   map[int]ring.SHA               // a number keeps its head for ever
	main    ring.SHA
	work    [3]ring.SHA // branches of people; "" where there is none
	fresh   int         // of the next line
}

var lookPaths = []string{"db/a", "web/a", "web/b"}

func newLooksWorld(t testing.TB, keys map[string]ssh.Signer, seed int64) *looksWorld {
	w := &looksWorld{
		t: t, r: rand.New(rand.NewSource(seed)), keys: keys, objects: map[ring.SHA]object{}, trees: map[string]ring.SHA{},
		by: map[ring.SHA]*lookCommit{}, below: map[ring.SHA]map[ring.SHA]bool{}, pulls: map[int]ring.SHA{},
	}
	return w
}

func (w *looksWorld) Raw(sha ring.SHA) (string, []byte, error) {
	o, ok := w.objects[sha]
	if !ok {
		return "", nil, fmt.Errorf("%s: %w", sha, ErrMissing)
	}
	return o.kind, o.body, nil
}

func (w *looksWorld) store(kind string, body []byte) ring.SHA {
	sha, _ := objectHash(kind, body)
	w.objects[sha] = object{kind, body}
	return sha
}

func (w *looksWorld) treeOf(l lines) ring.SHA {
	folders := map[string]string{}
	var key strings.Builder
	for _, p := range slices.Sorted(maps.Keys(l)) {
		if len(l[p]) == 0 {
			continue
		}
		body := strings.Join(slices.Sorted(maps.Keys(l[p])), "\n") + "\n"
		fmt.Fprintf(&key, "%s\x00%s\x00", p, body)
		dir, name, _ := strings.Cut(p, "/")
		folders[dir] += "100644 " + name + "\x00" + raw20(w.store("blob", []byte(body)))
	}
	if id, ok := w.trees[key.String()]; ok {
		return id
	}
	var top strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		top.WriteString("40000 " + dir + "\x00" + raw20(w.store("tree", []byte(folders[dir]))))
	}
	id := w.store("tree", []byte(top.String()))
	w.trees[key.String()] = id
	return id
}

// make writes a commit, signed where c names a signer.
func (w *looksWorld) make(c lookCommit, message string) *lookCommit {
	c.n = len(w.all)
	d := plain(w.treeOf(c.lines), noon.Add(-30*day).Add(time.Duration(c.n)*time.Second), c.parents...)
	d.text = message + "\n"
	raw := d.payload()
	if c.signer != "" {
		raw = d.signed(sshSign(w.t, w.keys[c.signer], d.payload(), "git"))
	}
	c.id = w.store("commit", []byte(raw))
	if known := w.by[c.id]; known != nil {
		return known
	}
	below := map[ring.SHA]bool{c.id: true}
	for _, p := range c.parents {
		maps.Copy(below, w.below[p])
	}
	w.below[c.id] = below
	made := &c
	w.all, w.by[c.id] = append(w.all, made), made
	return made
}

func (w *looksWorld) any() *lookCommit { return w.all[w.r.Intn(len(w.all))] }

// recent is a commit of late, most of the time.
func (w *looksWorld) recent() *lookCommit {
	if w.r.Intn(3) == 0 {
		return w.any()
	}
	last := min(len(w.all), 8)
	return w.all[len(w.all)-1-w.r.Intn(last)]
}

func (w *looksWorld) newLine(of string) (path, line string) {
	w.fresh++
	return lookPaths[w.r.Intn(len(lookPaths))], fmt.Sprintf("%s-%03d", of, w.fresh)
}

// bases are the best common ancestors of two commits, newest first.
func (w *looksWorld) bases(a, b ring.SHA) []*lookCommit {
	var out []*lookCommit
	for _, c := range slices.Backward(w.all) {
		if !w.below[a][c.id] || !w.below[b][c.id] {
			continue
		}
		if !slices.ContainsFunc(out, func(o *lookCommit) bool { return w.below[o.id][c.id] }) {
			out = append(out, c)
		}
	}
	return out
}

// merged is what a merge without conflicts makes of two commits, line by line.
func (w *looksWorld) merged(a, b ring.SHA) lines {
	was := lines{}
	if all := w.bases(a, b); len(all) > 0 {
		was = all[0].lines
	}
	ours, theirs, out := w.by[a].lines, w.by[b].lines, lines{}
	for _, side := range []lines{ours, theirs} {
		for p, set := range side {
			for line := range set {
				if ours.has(p, line) && theirs.has(p, line) || !was.has(p, line) {
					out = out.with(p, line)
				}
			}
		}
	}
	return out
}

// press is a button of the forge: it brings a head onto the branch.
func (w *looksWorld) press(onto, head ring.SHA) *lookCommit {
	what := w.merged(onto, head)
	if w.below[head][onto] {
		what = w.by[head].lines
	}
	signer := []string{"", "forge"}[w.r.Intn(2)]
	n := len(w.pulls) + 1
	w.pulls[n] = head
	switch w.r.Intn(4) {
	case 0:
		return w.make(lookCommit{parents: []ring.SHA{onto, head}, lines: what, signer: signer, head: head, what: "merge button"}, "Merge branch work")
	case 1:
		return w.make(lookCommit{parents: []ring.SHA{onto}, lines: what, signer: signer, head: head, what: "squash by trailer"}, "Work\n\n"+headTrailer+": "+string(head))
	case 2: // rebase: copies of what is on the branch, the last one names the request
		last := onto
		for _, c := range w.all {
			if w.below[head][c.id] && !w.below[onto][c.id] && c.id != head && len(c.parents) == 1 {
				last = w.make(lookCommit{parents: []ring.SHA{last}, lines: w.merged(last, c.id), signer: signer, what: "copy of a rebase"}, "copy").id
			}
		}
		return w.make(lookCommit{parents: []ring.SHA{last}, lines: what, signer: signer, head: head, what: "rebase button"}, fmt.Sprintf("Work (#%d)", n))
	}
	return w.make(lookCommit{parents: []ring.SHA{onto}, lines: what, signer: signer, head: head, what: "squash button"}, fmt.Sprintf("Work (#%d)", n))
}

// step is one thing that somebody does. trusted is the anchor of the host.
func (w *looksWorld) step(trusted ring.SHA) {
	person := []string{"alice", "bob"}[w.r.Intn(2)]
	i := w.r.Intn(len(w.work))
	switch w.r.Intn(20) {
	case 0, 1: // a branch grows
		on := w.work[i]
		if on == "" {
			on = trusted
		}
		p, line := w.newLine(person)
		w.work[i] = w.make(lookCommit{parents: []ring.SHA{on}, lines: w.by[on].lines.with(p, line), signer: person, what: "signed on a branch"}, "work").id
	case 2: // a push to main
		p, line := w.newLine(person)
		w.main = w.make(lookCommit{parents: []ring.SHA{w.main}, lines: w.by[w.main].lines.with(p, line), signer: person, what: "signed push"}, "push").id
	case 3: // a signed revert of some line on main, with a line that says so
		on := w.by[w.main]
		p, line := w.newLine(person)
		next := on.lines
		for q, set := range on.lines {
			for l := range set {
				if w.r.Intn(4) == 0 {
					next = next.without(q, l)
				}
			}
		}
		w.main = w.make(lookCommit{parents: []ring.SHA{w.main}, lines: next.with(p, line), signer: person, what: "signed revert"}, "revert").id
	case 4: // people bring main into their branch
		if on := w.work[i]; on != "" {
			p, line := w.newLine(person)
			w.work[i] = w.make(lookCommit{parents: []ring.SHA{on, trusted}, lines: w.merged(on, trusted).with(p, line), signer: person, what: "signed merge of main"}, "merge main").id
		}
	case 5: // the forge's button for that
		if on := w.work[i]; on != "" {
			w.work[i] = w.make(lookCommit{parents: []ring.SHA{on, trusted}, lines: w.merged(on, trusted), head: trusted, what: "update branch"}, "Merge branch 'main' into work").id
		}
	case 6, 7, 8: // a button for a branch of people
		if on := w.work[i]; on != "" {
			w.main = w.press(w.main, on).id
			if w.r.Intn(3) == 0 {
				w.work[i] = ""
			}
		}
	case 9: // an edit in the browser, and somebody who answers for it
		p, line := w.newLine("web")
		e := w.make(lookCommit{parents: []ring.SHA{w.main}, lines: w.by[w.main].lines.with(p, line), what: "web edit"}, "Update file")
		w.main = w.make(lookCommit{parents: []ring.SHA{e.id}, lines: e.lines, signer: "alice", vouches: e.id, what: "vouch"}, "seen\n\n"+vouchTrailer+": "+string(e.id)).id
	case 10: // from here on: somebody who may push, and press, and has no key
		on := w.recent()
		p, line := w.newLine("evil")
		e := w.make(lookCommit{parents: []ring.SHA{on.id}, lines: on.lines.with(p, line), what: "evil edit"}, "edit")
		if on.id == w.main && w.r.Intn(2) == 0 {
			w.main = e.id
		}
	case 11: // a merge of any two, with the tree of one of them, or of a third
		a, b := w.recent(), w.recent()
		if w.r.Intn(2) == 0 {
			b = w.by[w.main]
		}
		tree := []*lookCommit{a, b, w.by[w.main], w.any()}[w.r.Intn(4)].lines
		w.move(w.make(lookCommit{parents: []ring.SHA{a.id, b.id}, lines: tree, head: b.id, what: "evil merge"}, "Merge"))
	case 12: // the tree of any, with a head named that is any
		on, of, head := w.by[w.main], w.recent(), w.any()
		if w.r.Intn(2) == 0 {
			head = of
		}
		w.move(w.make(lookCommit{parents: []ring.SHA{on.id}, lines: of.lines, head: head.id, what: "evil squash"}, "Work\n\n"+headTrailer+": "+string(head.id)))
	case 13, 14: // a button for any commit, not only for branches of people
		w.main = w.press(w.main, w.any().id).id
	case 15: // the same on an old base, and that merged in
		head := w.any()
		on := w.any()
		if len(head.parents) > 0 && w.r.Intn(2) == 0 {
			on = w.by[head.parents[0]]
		}
		l := w.press(on.id, head.id)
		if w.r.Intn(2) == 0 {
			w.move(l)
			return
		}
		tree := []lines{l.lines, w.merged(w.main, l.id)}[w.r.Intn(2)]
		w.main = w.make(lookCommit{parents: []ring.SHA{w.main, l.id}, lines: tree, head: l.id, what: "old squash merged in"}, "Merge").id
	case 16: // main brought into a branch, or into any commit, by nobody
		of := w.any()
		u := w.make(lookCommit{parents: []ring.SHA{of.id, trusted}, lines: w.merged(of.id, trusted), head: trusted, what: "evil update"}, "Merge branch 'main' into work")
		if w.r.Intn(2) == 0 {
			w.main = w.press(w.main, u.id).id
		}
	case 17: // the branch set to what is there already
		w.move(w.any())
	case 18: // a commit hidden behind main, with main's own tree
		e, on := w.recent(), w.by[w.main]
		parents := []ring.SHA{e.id, on.id}
		if w.r.Intn(2) == 0 {
			parents = []ring.SHA{on.id, e.id}
		}
		w.main = w.make(lookCommit{parents: parents, lines: on.lines, head: parents[1], what: "hidden in a merge"}, "Merge").id
	case 19: // what lies behind main, by its name
		on, of := w.by[w.main], w.recent()
		for range 5 {
			if !w.below[on.id][of.id] {
				of = w.any()
			}
		}
		w.main = w.make(lookCommit{parents: []ring.SHA{on.id}, lines: of.lines, head: of.id, what: "squash of old"}, "Work\n\n"+headTrailer+": "+string(of.id)).id
	}
}

// move sets the branch, most of the time only to what comes after it.
func (w *looksWorld) move(to *lookCommit) {
	if w.below[to.id][w.main] || w.r.Intn(6) == 0 {
		w.main = to.id
	}
}

// begin makes a history that was there before the host: some of it unsigned.
func (w *looksWorld) begin() ring.SHA {
	p, line := w.newLine("alice")
	c := w.make(lookCommit{lines: lines{}.with(p, line), signer: "alice", what: "root"}, "root")
	for range 1 + w.r.Intn(4) {
		who := []string{"alice", "bob", ""}[w.r.Intn(3)]
		of := who
		if of == "" {
			of = "old"
		}
		p, line := w.newLine(of)
		next := c.lines.with(p, line)
		if w.r.Intn(2) == 0 { // what came with the parent goes again
			for q, set := range c.lines {
				for l := range set {
					next = next.without(q, l)
				}
			}
		}
		c = w.make(lookCommit{parents: []ring.SHA{c.id}, lines: next, signer: who, what: "before the host"}, "before")
	}
	w.main = c.id
	return c.id
}

// aids are the forge's pull requests and its way to merge.
func (w *looksWorld) aids() Aids {
	return Aids{
		Head: func(p Pull) (ring.SHA, error) {
			if id, ok := w.pulls[p.Number]; ok {
				return id, nil
			}
			return "", ErrMissing
		},
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) {
			if len(w.bases(ours, theirs)) == 0 {
				return "", ErrConflict
			}
			return w.treeOf(w.merged(ours, theirs)), nil
		},
	}
}

func (w *looksWorld) tell() string {
	var out strings.Builder
	name := func(id ring.SHA) string {
		if c := w.by[id]; c != nil {
			return fmt.Sprintf("c%d", c.n)
		}
		return "-"
	}
	for _, c := range w.all {
		var parents, files []string
		for _, p := range c.parents {
			parents = append(parents, name(p))
		}
		for _, p := range slices.Sorted(maps.Keys(c.lines)) {
			files = append(files, p+":"+strings.Join(slices.Sorted(maps.Keys(c.lines[p])), ","))
		}
		fmt.Fprintf(&out, "c%-3d %s %-20s by %-6q parents %v head %s vouches %s files %v\n", c.n, c.id.Short(), c.what, c.signer, parents, name(c.head), name(c.vouches), files)
	}
	return out.String()
}

// lookKeys are the keys of the two who may sign and of the forge, which may not.
func lookKeys(t testing.TB) (*yard, map[string]ssh.Signer) {
	y := newYard(t)
	y.allow("alice", `namespaces="git"`)
	y.allow("bob", `namespaces="git"`)
	y.key("forge")
	keys := map[string]ssh.Signer{}
	for _, name := range []string{"alice", "bob", "forge"} {
		keys[name] = y.signer(name)
	}
	require.Len(t, keys, 3)
	return y, keys
}
