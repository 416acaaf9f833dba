package manifest

import (
	"crypto/sha256"
	"io/fs"
	"path"
	"reflect"
	"strconv"
	"sync"

	"github.com/gitring/gitring/ring"
)

// Memory is what the apps of one commit were read from, and what came of it: for the next commit, of which most
// apps are the same. An app is read anew where anything differs that it was read from. Zero remembers nothing. It
// is not for several goroutines at once.
type Memory struct {
	settings Settings // but Names, Held, InForce and Denied, which no app is read from, and Secrets, which has a print
	apps     map[string]remembered
}

// remembered is one app without a fault.
type remembered struct {
	from    candidate
	facts   []fact // in the order in which they were asked for
	made    []ring.Content
	nodes   int
	outcome outcome
}

// fact is one answer of the tree.
type fact struct {
	about factKind
	path  string
	says  string
	held  held // of mounted
}

type factKind int

const (
	entryIs   factKind = iota // the kind of an entry
	listed                    // the entries of a folder
	linkTo                    // the target of a link
	bodyIs                    // the hash of a manifest file
	mountedIs                 // what is mounted from a path
)

// facts are those of one app. A spoiled app is not remembered: a fault was met on the way, which may be told
// elsewhere or not at all.
type facts struct {
	list    []fact
	has     map[fact]bool
	made    []ring.Content // of no file of the commit
	spoiled bool
}

func (f *facts) add(one fact) {
	if !f.has[one] {
		f.has[one] = true
		f.list = append(f.list, one)
	}
}

// Look is Look, of which the apps that are as they were are not read again.
func (m *Memory) Look(c *ring.Commit, s Settings) Reading {
	known := s
	known.Names, known.Held, known.InForce, known.Denied, known.Secrets, known.ran = nil, nil, nil, nil, nil, nil
	if !reflect.DeepEqual(m.settings, known) {
		m.settings, m.apps = copied(known), nil
	}
	out, _ := look(c, s, m)
	return out
}

// readAppAnew is readApp, and remembers the app for the next commit.
func (r *reader) readAppAnew(c candidate) outcome {
	if r.memory == nil {
		return r.readApp(c)
	}
	told := &facts{has: map[fact]bool{}}
	r.tree.facts = told
	before := r.nodes
	o := r.readApp(c)
	r.tree.facts = nil
	if told.spoiled || !o.faults.none() || r.tree.fault() != nil {
		return o
	}
	kept := o
	kept.app, kept.project, kept.includes = copied(o.app), copied(o.project), copied(o.includes)
	r.fresh[memoryKey(c)] = remembered{from: c, facts: told.list, made: told.made, nodes: r.nodes - before, outcome: kept}
	return o
}

// memoryKey is what an app is remembered by.
func memoryKey(c candidate) string { return c.path + "\x00" + c.name }

// rememberedApp is an app as it was read of an earlier commit, where all that it was read from is the same.
func (r *reader) rememberedApp(c candidate) (outcome, bool) {
	if r.memory == nil {
		return outcome{}, false
	}
	was, ok := r.memory.apps[memoryKey(c)]
	if !ok || r.nodes > nodesOfApps*r.limits.Nodes || !reflect.DeepEqual(was.from, c) {
		return outcome{}, false
	}
	for _, f := range was.facts {
		if !r.holds(f) {
			return outcome{}, false
		}
	}
	o := was.outcome
	o.app, o.project, o.includes = copied(o.app), copied(o.project), copied(o.includes)
	o.app.Commit = r.commit.SHA
	for _, made := range was.made {
		r.contents[made.Hash] = made
	}
	r.nodes += was.nodes
	r.fresh[memoryKey(c)] = was
	return o, true
}

// holds reports whether the tree still gives an answer.
func (r *reader) holds(f fact) bool {
	switch f.about {
	case entryIs:
		return kindSaid(r.tree.entry(path.Dir(f.path), path.Base(f.path))) == f.says
	case listed:
		return listSaid(r.tree.list(f.path)) == f.says
	case linkTo:
		target, err := r.tree.leadsTo(f.path)
		return err == nil && target == f.says
	case bodyIs:
		body, ok, fault := r.tree.manifest(f.path, place{})
		return fault == nil && bodySaid(body, ok) == f.says
	case mountedIs:
		h, fault := r.hold(f.path, place{})
		return fault == nil && h == f.held
	}
	return false
}

func kindSaid(e fs.DirEntry) string {
	if e == nil {
		return ""
	}
	return strconv.Itoa(int(kindOf(e)))
}

func listSaid(entries []fs.DirEntry) string {
	all := sha256.New()
	for _, e := range entries {
		all.Write([]byte(e.Name() + "\x00" + kindSaid(e) + "\n"))
	}
	return string(all.Sum(nil))
}

func bodySaid(body []byte, ok bool) string {
	if !ok {
		return ""
	}
	sum := sha256.Sum256(body)
	return string(sum[:])
}

// copied is a value that shares nothing with v which could be written: slices, maps and what pointers lead to are
// made anew. Values of unexported fields are shared where they are not plain; nothing writes to those.
func copied[T any](v T) T {
	own(reflect.ValueOf(&v).Elem())
	return v
}

// own makes anew what v leads to; v can be set, and is nobody else's.
func own(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			own(to.Elem())
			v.Set(to)
		}
	case reflect.Slice:
		if !v.IsNil() {
			all := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(all, v)
			ownEach(all)
			v.Set(all)
		}
	case reflect.Array:
		ownEach(v)
	case reflect.Map:
		if !v.IsNil() {
			all := reflect.MakeMapWithSize(v.Type(), v.Len())
			one := reflect.New(v.Type().Elem()).Elem()
			for each := v.MapRange(); each.Next(); {
				one.SetIterValue(each)
				own(one)
				all.SetMapIndex(each.Key(), one)
			}
			v.Set(all)
		}
	case reflect.Struct:
		for _, i := range leading(v.Type()) {
			own(v.Field(i))
		}
	}
}

// ownEach is own for all elements of a slice or an array.
func ownEach(v reflect.Value) {
	if !leads(v.Type().Elem()) {
		return
	}
	for i := range v.Len() {
		own(v.Index(i))
	}
}

// leads reports whether values of a type lead to others that could be written.
func leads(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	case reflect.Array:
		return leads(t.Elem())
	case reflect.Struct:
		return len(leading(t)) > 0
	}
	return false
}

var leadingFields sync.Map // []int by reflect.Type

// leading are the exported fields of a struct that lead to other values.
func leading(t reflect.Type) []int {
	if known, ok := leadingFields.Load(t); ok {
		return known.([]int)
	}
	var out []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && leads(f.Type) {
			out = append(out, i)
		}
	}
	leadingFields.Store(t, out)
	return out
}
