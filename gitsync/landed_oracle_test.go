package gitsync

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func timeOfCommit(i int) time.Duration { return time.Duration(i) * time.Minute }

// oracle says of each history why its tip may not run; "" where it may.
func (f *forgery) oracle(all []built) []string {
	var commits []ring.SHA
	for _, b := range all {
		f.write(b)
		for _, p := range b.commits {
			f.bad[b.ids[p.name]] = p.damaged && (p.key == "alice" || p.key == "bob")
		}
		for _, id := range b.ids {
			if _, ok := f.signed[id]; !ok {
				f.signed[id] = false
				commits = append(commits, id)
			}
		}
	}
	slices.Sort(commits)
	f.ask(commits)
	why := make([]string, len(all))
	for i, b := range all {
		o := &oracle{f: f, b: b, known: map[ring.SHA]bool{}, from: map[ring.SHA][2]ring.SHA{}}
		o.old = o.reach(b.ids["anchor"])
		switch {
		case !o.reach(b.tip())[b.ids["anchor"]]:
			why[i] = "the tip does not come after the anchor"
		case !o.good(b.tip()):
			why[i] = "not signed content"
		}
	}
	return why
}

// ask lets git verify-commit's code judge the signatures, one process for all.
func (f *forgery) ask(commits []ring.SHA) {
	if len(commits) == 0 {
		return
	}
	cmd := exec.Command("git", "-c", "gpg.ssh.allowedSignersFile="+filepath.Join(f.y.dir, "..", "allowed"),
		"log", "--no-walk", "--stdin", "--format=%H %G? %GS")
	lines := make([]string, len(commits))
	for i, c := range commits {
		lines[i] = string(c)
	}
	cmd.Dir, cmd.Env, cmd.Stdin = f.y.dir, f.y.at(noon), strings.NewReader(strings.Join(lines, "\n")+"\n")
	out, err := cmd.Output()
	require.NoError(f.t, err)
	for line := range strings.Lines(string(out)) {
		w := strings.Fields(line)
		f.signed[ring.SHA(w[0])] = len(w) > 1 && w[1] == "G"
		f.voucher[ring.SHA(w[0])] = len(w) > 2 && w[1] == "G" && w[2] == "alice@example.org"
	}
}

// oracle judges one history by its graph, trees and signatures as git has them.
type oracle struct {
	f     *forgery
	b     built
	old   map[ring.SHA]bool
	known map[ring.SHA]bool        // good or not; false too while it is being asked
	from  map[ring.SHA][2]ring.SHA // base and head of a landing
}

// read takes a commit apart as git cat-file shows it.
func (o *oracle) read(id ring.SHA) (tree ring.SHA, parents []ring.SHA, message string) {
	kind, body, err := o.f.y.Raw(id)
	require.NoError(o.f.t, err)
	require.Equal(o.f.t, "commit", kind)
	top, message, _ := strings.Cut(string(body), "\n\n")
	for line := range strings.SplitSeq(top, "\n") {
		if v, ok := strings.CutPrefix(line, "tree "); ok {
			tree = ring.SHA(v)
		}
		if v, ok := strings.CutPrefix(line, "parent "); ok {
			parents = append(parents, ring.SHA(v))
		}
	}
	return tree, parents, message
}

// reach is a commit and all its ancestors.
func (o *oracle) reach(id ring.SHA) map[ring.SHA]bool {
	out, todo := map[ring.SHA]bool{}, []ring.SHA{id}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !out[id] {
			out[id] = true
			_, parents, _ := o.read(id)
			todo = append(todo, parents...)
		}
	}
	return out
}

func (o *oracle) good(id ring.SHA) bool {
	if o.old[id] {
		return true
	}
	if ok, known := o.known[id]; known {
		return ok
	}
	o.known[id] = false
	o.known[id] = o.weigh(id)
	return o.known[id]
}

func (o *oracle) weigh(id ring.SHA) bool {
	tree, parents, _ := o.read(id)
	all := !slices.ContainsFunc(parents, func(p ring.SHA) bool { return !o.good(p) })
	if o.f.signed[id] && !o.mayVouch(id) {
		return false
	}
	if all && (o.f.signed[id] || o.vouchedFor(id)) {
		return true
	}
	if o.f.signed[id] || o.f.bad[id] {
		return false // what a person signed is no landing
	}
	if len(parents) == 0 || len(parents) > 2 {
		return false
	}
	base := parents[0]
	for !o.good(base) {
		_, up, _ := o.read(base)
		if len(up) == 0 {
			return false
		}
		base = up[0]
	}
	for _, head := range o.heads(id) {
		if head == "" || o.reach(head)[id] || !o.good(head) {
			continue
		}
		if o.expected(base, head) == tree && o.whole(id, base, head) {
			o.from[id] = [2]ring.SHA{base, head}
			return true
		}
	}
	return false
}

func (o *oracle) expected(base, head ring.SHA) ring.SHA {
	switch {
	case o.reach(base)[head]:
		tree, _, _ := o.read(base)
		return tree
	case o.reach(head)[base]:
		tree, _, _ := o.read(head)
		return tree
	}
	return o.f.merge(o.b, base, head)
}

// whole reports whether what was trusted in the history of a landing is in its base or
// its head: itself, or what it was landed from.
func (o *oracle) whole(id, base, head ring.SHA) bool {
	b, h := o.reach(base), o.reach(head)
	var in func(c ring.SHA) bool
	in = func(c ring.SHA) bool {
		of, landed := o.from[c]
		return b[c] || h[c] || landed && in(of[0]) && in(of[1])
	}
	for c := range o.reach(id) {
		if c != id && o.good(c) && !in(c) {
			return false
		}
	}
	return true
}

// heads are what a landing may have been made from, as docs/design/trust.md#landings has it.
func (o *oracle) heads(id ring.SHA) []ring.SHA {
	_, parents, message := o.read(id)
	if len(parents) == 2 && o.good(parents[1]) {
		return parents[1:]
	}
	if i := strings.Index(message, headTrailer+": "); i >= 0 {
		return []ring.SHA{ring.SHA(message[i+len(headTrailer)+2:][:40])}
	}
	first, rest, _ := strings.Cut(message, "\n")
	if i := strings.Index(message, "See merge request "); i >= 0 {
		first = message[i:]
	}
	for _, text := range []string{first, rest} {
		for _, w := range slices.Backward(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ()\n", r) })) {
			if i := strings.LastIndexAny(w, "#!"); i >= 0 {
				n, err := strconv.Atoi(w[i+1:])
				require.NoError(o.f.t, err)
				return []ring.SHA{o.b.ids[o.b.pulls[n]]}
			}
		}
	}
	return nil
}

// mayVouch reports whether a commit vouches for nothing that it may not.
func (o *oracle) mayVouch(id ring.SHA) bool {
	_, _, message := o.read(id)
	_, named, vouches := strings.Cut(message, vouchTrailer+": ")
	if !vouches {
		return true
	}
	v := ring.SHA(strings.TrimSpace(named))
	return o.f.voucher[id] && v != id && o.reach(id)[v] && !o.old[v]
}

// vouchedFor reports whether somebody who may named the commit in one that is signed.
func (o *oracle) vouchedFor(id ring.SHA) bool {
	for _, v := range o.b.ids {
		if o.f.voucher[v] {
			if _, _, message := o.read(v); strings.Contains(message, vouchTrailer+": "+string(id)) {
				return true
			}
		}
	}
	return false
}
