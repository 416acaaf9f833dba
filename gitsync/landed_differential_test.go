package gitsync

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// TestNoMutatedLandingIsAcceptedThatHoldsUnsignedContent takes what the buttons of
// the forges make and changes it as an attacker would. What gitring accepts, an
// oracle must accept that knows only git: git merge-tree, git verify-commit's
// answer for each commit, and the shape of history.
// GITRING_LANDINGS asks for more than the usual 2,000, GITRING_SEED begins
// elsewhere; a failure names its seed.
func TestNoMutatedLandingIsAcceptedThatHoldsUnsignedContent(t *testing.T) {
	t.Parallel()
	n, seed := 2000, int64(1)
	for name, to := range map[string]func(int64){
		"GITRING_LANDINGS": func(v int64) { n = int(v) }, "GITRING_SEED": func(v int64) { seed = v },
	} {
		if v := os.Getenv(name); v != "" {
			i, err := strconv.ParseInt(v, 10, 64)
			require.NoError(t, err)
			to(i)
		}
	}
	codes, held := map[string]int{}, 0
	for from := 0; from < n; from += 5000 { // each with a repository of its own, so that none grows for ever
		t.Run(fmt.Sprintf("from seed %d", seed+int64(from)), func(t *testing.T) {
			f := newForgery(t)
			f.plain()
			held += f.attack(seed+int64(from), min(5000, n-from), codes)
		})
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		t.Logf("%6d %s", codes[code], code)
	}
	if n >= 1000 {
		require.Greater(t, held, n/50, "too few accepted to mean anything")
		require.Less(t, held, n/2, "too few refused to mean anything")
	}
}

// plain shows that what is not mutated is accepted, by both.
func (f *forgery) plain() {
	for _, s := range f.shapes() {
		b := f.build(s)
		_, refusal, err := f.judge(b)
		require.NoError(f.t, err, s.name)
		require.Nil(f.t, refusal, "%s: %v", s.name, refusal)
		require.Empty(f.t, f.oracle([]built{b})[0], s.name)
	}
}

// attack judges n mutated landings and says how many were accepted.
func (f *forgery) attack(seed int64, n int, codes map[string]int) int {
	var accepted []built
	held := 0
	for i := range n {
		r := rand.New(rand.NewSource(seed + int64(i)))
		shapes := f.shapes()
		s := shapes[r.Intn(len(shapes))]
		for range 1 + r.Intn(3) {
			s.mutate(r)
		}
		b := f.build(s)
		b.seed = seed + int64(i)
		_, refusal, err := f.judge(b)
		switch {
		case err != nil:
			require.ErrorIs(f.t, err, ErrMissing, "seed %d", b.seed)
			codes["(missing)"]++
		case refusal != nil:
			codes[string(refusal.Code)]++
		default:
			codes["(accepted)"]++
			accepted = append(accepted, b)
		}
		if len(accepted) < 500 && i+1 < n {
			continue
		}
		for i, why := range f.oracle(accepted) {
			require.Empty(f.t, why, "wrong accept: GITRING_SEED=%d GITRING_LANDINGS=1\n%s", accepted[i].seed, f.tell(accepted[i]))
		}
		held += len(accepted)
		accepted = accepted[:0]
		clear(f.objects)
	}
	return held
}

// planned is one commit to be: everything that is in it, not what it changes.
type planned struct {
	name    string
	parents []string
	files   map[string]string // path to mode, a space and content
	key     string            // who signs; "" is nobody
	message string            // {name} is the id of another one
	damaged bool              // changed after it was signed
}

// shape is a history: the first two are trusted, the last is the branch.
type shape struct {
	name    string
	commits []*planned
	pulls   map[int]string
}

func (s *shape) at(name string) *planned {
	for _, p := range s.commits {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (s *shape) add(p *planned) *planned { s.commits = append(s.commits, p); return p }

// with is the files of a commit with some changed; "" removes one.
func (p *planned) with(changes ...string) map[string]string {
	out := maps.Clone(p.files)
	for i := 0; i < len(changes); i += 2 {
		if out[changes[i]] = "100644 " + changes[i+1]; changes[i+1] == "" {
			delete(out, changes[i])
		}
	}
	return out
}

// forgery makes repositories in memory and knows the git that judges them.
type forgery struct {
	t       testing.TB
	y       *yard
	trust   *Trust
	keys    map[string]ssh.Signer
	objects map[ring.SHA]object
	written map[ring.SHA]bool
	merges  map[[2]ring.SHA]ring.SHA
	signed  map[ring.SHA]bool // what git verify-commit says
	bad     map[ring.SHA]bool // signed by somebody known, and changed since
	voucher map[ring.SHA]bool // by the one who may vouch
}

type object struct {
	kind string
	body []byte
}

func newForgery(t testing.TB) *forgery {
	y := newYard(t)
	y.allow("alice", `namespaces="git"`)
	y.allow("bob", `namespaces="git"`)
	f := &forgery{t: t, y: y, keys: map[string]ssh.Signer{}, objects: map[ring.SHA]object{}, written: map[ring.SHA]bool{}}
	f.merges, f.signed, f.bad, f.voucher = map[[2]ring.SHA]ring.SHA{}, map[ring.SHA]bool{}, map[ring.SHA]bool{}, map[ring.SHA]bool{}
	y.key("mallory")
	y.key("forge")
	for _, name := range []string{"alice", "bob", "mallory", "forge"} {
		f.keys[name] = y.signer(name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(y.dir, "..", "allowed"), []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
	f.trust = y.trust(forgeMerge)
	return f
}

// shapes are the buttons, of branches that were up to date and that were behind.
func (f *forgery) shapes() []*shape {
	var all []*shape
	for _, behind := range []bool{false, true} {
		for _, button := range []string{"merge", "squash", "rebase", "update", "update, squash", "squash under a merge"} {
			if button == "rebase" && behind {
				continue // the copies are other commits, the tree is the squash's
			}
			s := &shape{name: fmt.Sprintf("%s, behind %v", button, behind), pulls: map[int]string{}}
			s.button(button, behind)
			all = append(all, s)
		}
	}
	return all
}

func (s *shape) button(button string, behind bool) {
	old := s.add(&planned{name: "old", key: "alice", message: "old\n", files: map[string]string{"db/a": "100644 1", "web/a": "100644 1"}})
	anchor := s.add(&planned{name: "anchor", parents: []string{"old"}, key: "alice", message: "anchor\n", files: old.with("db/a", "2", "web/b", "1")})
	stale := s.add(&planned{name: "stale", parents: []string{"old"}, key: "bob", message: "stale\n", files: old.with("web/s", "1")})
	one := s.add(&planned{name: "one", parents: []string{"anchor"}, key: "bob", message: "one\n", files: anchor.with("web/c", "1", "web/a", "")})
	main := anchor
	if behind || strings.HasPrefix(button, "update") {
		main = s.add(&planned{name: "meanwhile", parents: []string{"anchor"}, key: "alice", message: "meanwhile\n", files: anchor.with("db/b", "1")})
	}
	branch := one
	if strings.HasPrefix(button, "update") {
		branch = s.add(&planned{name: "updated", parents: []string{"one", "meanwhile"}, message: "Merge branch 'main' into work\n", files: one.with("db/b", "1")})
		if behind {
			main = s.add(&planned{name: "later", parents: []string{"meanwhile"}, key: "bob", message: "later\n", files: main.with("db/c", "1")})
		}
	}
	two := s.add(&planned{name: "two", parents: []string{branch.name}, key: "alice", message: "two\n\nbody\n", files: branch.with("web/d", "1")})
	s.pulls[7], s.pulls[8] = "two", "stale"
	_ = stale
	merged := maps.Clone(main.files)
	for p, c := range two.files {
		if _, ok := anchor.files[p]; !ok {
			merged[p] = c
		}
	}
	delete(merged, "web/a")
	switch button {
	case "merge", "update":
		s.add(&planned{name: "landed", parents: []string{main.name, "two"}, key: "forge", message: "Merge pull request #7 from acme/work\n", files: merged})
	case "squash", "update, squash":
		s.add(&planned{name: "landed", parents: []string{main.name}, message: "Work (#7)\n\n* one\n\n* two\n", files: merged})
	case "rebase":
		s.add(&planned{name: "copied", parents: []string{main.name}, message: "one\n", files: one.files})
		s.add(&planned{name: "landed", parents: []string{"copied"}, message: "two (#7)\n", files: merged})
	case "squash under a merge":
		s.add(&planned{name: "squashed", parents: []string{"anchor"}, message: "Work\n", files: two.files})
		s.add(&planned{name: "landed", parents: []string{main.name, "squashed"}, message: "Merge branch 'work' into 'main'\n\nWork\n\nSee merge request acme/infra!7\n", files: merged})
	}
}

// mutate changes one thing that an attacker, or a forge, could change.
func (s *shape) mutate(r *rand.Rand) {
	pick := func() *planned { return s.commits[r.Intn(len(s.commits))] }
	fresh := 2 + r.Intn(len(s.commits)-2) // not of what is trusted
	p := s.commits[fresh]
	if r.Intn(2) == 0 {
		p = s.commits[len(s.commits)-1]
	}
	files := slices.Sorted(maps.Keys(p.files))
	later := []*planned{p}
	if r.Intn(2) == 0 { // carried along by what comes after
		later = s.commits[slices.Index(s.commits, p):]
	}
	switch r.Intn(22) {
	case 0:
		for _, q := range later {
			q.files = q.with("web/evil", "evil")
		}
	case 1:
		for _, q := range later {
			q.files = q.with(files[r.Intn(len(files))], "evil")
		}
	case 2:
		for _, q := range later {
			q.files = q.with(files[r.Intn(len(files))], "")
		}
	case 3:
		at := files[r.Intn(len(files))]
		_, content, _ := strings.Cut(p.files[at], " ")
		p.files = p.with()
		p.files[at] = []string{"100755 ", "120000 "}[r.Intn(2)] + content
	case 4:
		slices.Reverse(p.parents)
	case 5:
		if len(p.parents) > 0 {
			p.parents = slices.Delete(slices.Clone(p.parents), 0, 1)
		}
	case 6:
		if q := pick(); slices.Index(s.commits, q) < slices.Index(s.commits, p) {
			p.parents = append(slices.Clone(p.parents), q.name)
		}
	case 7:
		if q := pick(); len(p.parents) > 0 && slices.Index(s.commits, q) < slices.Index(s.commits, p) {
			p.parents = slices.Clone(p.parents)
			p.parents[r.Intn(len(p.parents))] = q.name
		}
	case 8:
		s.pulls[7] = pick().name
	case 9:
		p.message = []string{"Work (#8)\n", "Work (#9)\n", "Work\n", "Work (!7)\n", "Work (#7)\n", "Fix #7\n"}[r.Intn(6)]
	case 10:
		p.key = ""
	case 11:
		p.key = []string{"mallory", "forge", "alice", "bob"}[r.Intn(4)]
	case 12:
		p.damaged = true
	case 13:
		if q := pick(); slices.Index(s.commits, q) < slices.Index(s.commits, p) {
			p.message = "Work\n\n" + headTrailer + ": {" + q.name + "}\n"
		}
	case 14:
		if q := pick(); slices.Index(s.commits, q) < slices.Index(s.commits, p) {
			p.message = "Work\n\n" + vouchTrailer + ": {" + q.name + "}\n"
		}
	case 15, 16: // a commit in between that nobody signed
		if len(p.parents) > 0 {
			i := r.Intn(len(p.parents))
			of := s.at(p.parents[i])
			e := &planned{name: fmt.Sprintf("edit%d", len(s.commits)), parents: []string{of.name}, message: "Update file (#7)\n", files: of.with("web/evil", "evil")}
			p.parents = slices.Clone(p.parents)
			p.parents[i] = e.name
			s.commits = slices.Insert(s.commits, slices.Index(s.commits, p), e)
		}
	case 17: // a merge that nobody signed on an old commit, to come after the newest
		tip := s.commits[len(s.commits)-1]
		first := pick()
		if first == tip || len(tip.parents) == 0 {
			return
		}
		e := &planned{name: fmt.Sprintf("hinge%d", len(s.commits)), parents: []string{first.name, tip.parents[0]}, message: "Merge\n", files: first.with("web/evil", "evil")}
		if slices.Index(s.commits, first) > slices.Index(s.commits, s.at(tip.parents[0])) && slices.Contains(first.parents, tip.name) {
			return
		}
		tip.parents = slices.Clone(tip.parents)
		tip.parents[0] = e.name
		s.commits = slices.Insert(s.commits, len(s.commits)-1, e)
	case 18: // one more on top
		tip := s.commits[len(s.commits)-1]
		q := pick()
		s.add(&planned{
			name: fmt.Sprintf("top%d", len(s.commits)), parents: []string{tip.name}, key: []string{"", "alice", "mallory"}[r.Intn(3)],
			message: fmt.Sprintf("Top (#%d)\n", 7+r.Intn(2)), files: [](map[string]string){tip.files, q.files}[r.Intn(2)],
		})
	case 19: // a landing of another commit on top
		tip := s.commits[len(s.commits)-1]
		q := pick()
		files := maps.Clone(tip.files)
		if r.Intn(2) == 0 {
			files = q.files
		}
		s.add(&planned{name: fmt.Sprintf("more%d", len(s.commits)), parents: []string{tip.name, q.name}, message: "Merge\n", files: files})
	case 20: // the tree of another one
		p.files = pick().files
	case 21: // an old head, as if it were up to date
		tip := s.commits[len(s.commits)-1]
		tip.message, tip.files = "Stale (#8)\n", s.at("stale").files
	}
}

// built is a shape as objects.
type built struct {
	*shape
	ids  map[string]ring.SHA
	seed int64
}

func (b built) tip() ring.SHA { return b.ids[b.commits[len(b.commits)-1].name] }

func (f *forgery) put(kind string, body []byte) ring.SHA {
	sha, _ := objectHash(kind, body)
	f.objects[sha] = object{kind, body}
	return sha
}

func (f *forgery) build(s *shape) built {
	b := built{shape: s, ids: map[string]ring.SHA{}}
	for i, p := range s.commits {
		d := draft{text: p.message}
		for name, id := range b.ids {
			d.text = strings.ReplaceAll(d.text, "{"+name+"}", string(id))
		}
		var parents []ring.SHA
		for _, name := range p.parents {
			if id, ok := b.ids[name]; ok {
				parents = append(parents, id)
			}
		}
		d.top = plain(f.tree(p.files), noon.Add(-day).Add(timeOfCommit(i)), parents...).top
		raw := d.payload()
		if p.key != "" {
			raw = d.signed(sshSign(f.t, f.keys[p.key], d.payload(), "git"))
		}
		if p.damaged {
			raw += "and more\n"
		}
		b.ids[p.name] = f.put("commit", []byte(raw))
	}
	return b
}

// tree makes the trees of files at most one folder deep.
func (f *forgery) tree(files map[string]string) ring.SHA {
	folders := map[string][]string{}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		dir, name, _ := strings.Cut(p, "/")
		mode, content, _ := strings.Cut(files[p], " ")
		folders[dir] = append(folders[dir], mode+" "+name+"\x00"+raw20(f.put("blob", []byte(content))))
	}
	var top strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		top.WriteString("40000 " + dir + "\x00" + raw20(f.put("tree", []byte(strings.Join(folders[dir], "")))))
	}
	return f.put("tree", []byte(top.String()))
}

func raw20(sha ring.SHA) string {
	b, _ := hex.DecodeString(string(sha))
	return string(b)
}

func (f *forgery) Raw(sha ring.SHA) (string, []byte, error) {
	o, ok := f.objects[sha]
	if !ok {
		return "", nil, fmt.Errorf("%s: %w", sha, ErrMissing)
	}
	return o.kind, o.body, nil
}

func (f *forgery) judge(b built) ([]ring.Verified, *ring.Refusal, error) {
	aids := Aids{
		Head: func(p Pull) (ring.SHA, error) {
			if id, ok := b.ids[b.pulls[p.Number]]; ok {
				return id, nil
			}
			return "", ErrMissing
		},
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) {
			if tree := f.merge(b, ours, theirs); tree != "" {
				return tree, nil
			}
			return "", ErrConflict
		},
	}
	return f.trust.RangeWith(f, aids, b.ids["anchor"], b.tip(), noon, nil)
}

// merge is git merge-tree; "" is a conflict.
func (f *forgery) merge(b built, ours, theirs ring.SHA) ring.SHA {
	key := [2]ring.SHA{ours, theirs}
	if tree, ok := f.merges[key]; ok {
		return tree
	}
	f.write(b)
	cmd := exec.Command("git", "merge-tree", "--write-tree", string(ours), string(theirs))
	cmd.Dir, cmd.Env = f.y.dir, f.y.at(noon)
	out, err := cmd.Output()
	tree, _, _ := strings.Cut(string(out), "\n")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == 1 || bytes.Contains(exit.Stderr, []byte("unrelated histories"))) {
		tree = ""
	} else if err != nil {
		f.t.Fatalf("git merge-tree: %v: %s", err, exit.Stderr)
	}
	f.merges[key] = ring.SHA(tree)
	return ring.SHA(tree)
}

// write hands to git what it does not have yet.
func (f *forgery) write(b built) {
	todo := slices.Collect(maps.Values(b.ids))
	for len(todo) > 0 {
		sha := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		o, ok := f.objects[sha]
		if !ok || f.written[sha] {
			continue
		}
		f.written[sha] = true
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		fmt.Fprintf(w, "%s %d\x00%s", o.kind, len(o.body), o.body)
		require.NoError(f.t, w.Close())
		file := filepath.Join(f.y.dir, ".git", "objects", string(sha[:2]), string(sha[2:]))
		require.NoError(f.t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(f.t, os.WriteFile(file, z.Bytes(), 0o600))
		switch o.kind {
		case "commit":
			todo = append(todo, ring.SHA(o.body[5:45]))
		case "tree":
			entries, err := entriesOf(o.body)
			require.NoError(f.t, err)
			for _, e := range entries {
				todo = append(todo, ring.SHA(e.hash.String()))
			}
		}
	}
}

func (f *forgery) tell(b built) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, pulls %v\n", b.name, b.pulls)
	for _, p := range b.commits {
		fmt.Fprintf(&out, "%s %s parents %v key %q damaged %v files %v message %q\n", b.ids[p.name].Short(), p.name, p.parents, p.key, p.damaged, p.files, p.message)
	}
	return out.String()
}
