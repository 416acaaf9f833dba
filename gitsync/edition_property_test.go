package gitsync

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// people are the names of the random histories; alice is in the configuration.
var people = []string{"alice", "bob", "carol", "dave", "erin"}

// deed is one commit as the one who made it knows it. The oracle goes by this alone.
type deed struct {
	parents []ring.SHA
	files   map[string]string
	names   []string // in the file of signers
	signer  string   // "" is the forge
	head    ring.SHA // of a squash
}

// town is a repository in memory where people join, leave, and merge what is old.
type town struct {
	t       *testing.T
	r       *rand.Rand
	keys    map[string]ssh.Signer
	objects map[ring.SHA][2]string // kind and bytes
	told    map[ring.SHA]*deed
	before  map[ring.SHA]map[ring.SHA]bool // all ancestors of a commit, and itself
	n       int
}

func (w *town) Raw(sha ring.SHA) (string, []byte, error) {
	o, ok := w.objects[sha]
	if !ok {
		return "", nil, fmt.Errorf("cannot read %s: %w", sha, ErrMissing)
	}
	return o[0], []byte(o[1]), nil
}

func (w *town) put(kind, body string) ring.SHA {
	sha, _ := objectHash(kind, []byte(body))
	w.objects[sha] = [2]string{kind, body}
	return sha
}

func (w *town) tree(files map[string]string) ring.SHA {
	raw := func(sha ring.SHA) string { b, _ := hex.DecodeString(string(sha)); return string(b) }
	var body string
	for _, name := range slices.Sorted(maps.Keys(files)) { // .gitring sorts first
		blob := w.put("blob", files[name])
		if name == signersPath {
			body += "40000 .gitring\x00" + raw(w.put("tree", "100644 signers\x00"+raw(blob)))
			continue
		}
		body += "100644 " + name + "\x00" + raw(blob)
	}
	return w.put("tree", body)
}

// file is the file that names them. bob has the role trust, wherever he is named.
func (w *town) file(names []string) string {
	text := "version: 1\nsigners:\n"
	for _, name := range names {
		text += "  - signer: " + name + "@example.org\n"
		if name == "bob" {
			text += "    roles: [commit, merge, trust]\n"
		}
		text += "    keys: [" + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(w.keys[name].PublicKey()))) + "]\n"
	}
	return text
}

// commit makes one; the file of signers is in files.
func (w *town) commit(signer string, names []string, files map[string]string, message string, parents ...ring.SHA) ring.SHA {
	w.n++
	files = maps.Clone(files)
	files[signersPath] = w.file(names)
	d := plain(w.tree(files), noon.Add(time.Duration(w.n-10_000)*time.Second), parents...)
	d.text = message + "\n"
	body := d.payload()
	if signer != "" {
		body = d.signed(sshSign(w.t, w.keys[signer], d.payload(), "git"))
	}
	sha := w.put("commit", body)
	w.told[sha] = &deed{parents: parents, files: files, names: names, signer: signer}
	w.before[sha] = map[ring.SHA]bool{sha: true}
	for _, p := range parents {
		maps.Copy(w.before[sha], w.before[p])
	}
	return sha
}

func (w *town) some() []string {
	var names []string
	for _, name := range people[1:] {
		if w.r.IntN(2) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// merge is the three-way merge of two commits, file by file.
func (w *town) merge(a, b ring.SHA) (map[string]string, bool) {
	var base ring.SHA
	for _, c := range slices.Sorted(maps.Keys(w.before[a])) {
		if w.before[b][c] && (base == "" || len(w.before[c]) > len(w.before[base])) {
			base = c
		}
	}
	for c := range w.before[a] {
		if w.before[b][c] && !w.before[base][c] {
			return nil, false // several bases: nobody's case here
		}
	}
	x, y, from := w.told[a].files, w.told[b].files, w.told[base].files
	out := map[string]string{}
	for _, files := range []map[string]string{x, y} {
		for name := range files {
			switch {
			case x[name] == y[name], y[name] == from[name]:
				out[name] = x[name]
			case x[name] == from[name]:
				out[name] = y[name]
			default:
				return nil, false
			}
		}
	}
	return out, true
}

func (w *town) namesOf(file string, of ...ring.SHA) []string {
	for _, c := range of {
		if w.told[c].files[signersPath] == file {
			return w.told[c].names
		}
	}
	return nil
}

// brings joins two commits: as git would, or with the signers of one side, or with
// others; signed, or as the forge's buttons do.
func (w *town) brings(main, branch ring.SHA, forge bool) ring.SHA {
	files, clean := w.merge(main, branch)
	if forge {
		if !clean {
			return main
		}
		names := w.namesOf(files[signersPath], main, branch)
		if w.r.IntN(2) == 0 {
			return w.commit("", names, files, "merge", main, branch)
		}
		sha := w.commit("", names, files, "squash\n\nGitring-Head: "+string(branch), main)
		w.told[sha].head = branch
		return sha
	}
	parents := []ring.SHA{main, branch}
	if w.r.IntN(2) == 0 {
		slices.Reverse(parents)
	}
	if !clean {
		files = maps.Clone(w.told[main].files)
		maps.Copy(files, w.told[branch].files)
	}
	names := w.namesOf(files[signersPath], main, branch)
	switch w.r.IntN(6) {
	case 0:
		names = w.told[main].names
	case 1:
		names = w.told[branch].names
	case 2:
		names = w.some()
	}
	return w.commit(w.anybody(), names, files, "merge", parents...)
}

// anybody is alice often enough for histories to go on.
func (w *town) anybody() string { return people[max(0, w.r.IntN(len(people)+2)-2)] }

// change is a commit on top of another: of work, or of the signers.
func (w *town) change(on ring.SHA) ring.SHA {
	files, names := maps.Clone(w.told[on].files), w.told[on].names
	if w.r.IntN(3) == 0 {
		names = w.some()
	} else {
		files[fmt.Sprintf("f%d", w.n)] = "work"
	}
	return w.commit(w.anybody(), names, files, "change", on)
}

// onlooker is what the oracle knows of one host.
type onlooker struct {
	*town
	anchor  ring.SHA
	inForce []ring.SHA // who made the file what it is there, as far as can be told
}

// mayEdit reports whether a name has the role trust under an edition.
func mayEdit(name string, named []string) bool {
	return name == "alice" || name == "bob" && slices.Contains(named, "bob")
}

// changed are the commits of a range that changed the file with the role trust, and
// had the edition in force before them.
func (h *onlooker) changed(tip ring.SHA) (out []ring.SHA) {
	var fresh []ring.SHA
	for c := range h.before[tip] {
		if !h.before[h.anchor][c] {
			fresh = append(fresh, c)
		}
	}
	slices.SortFunc(fresh, func(a, b ring.SHA) int { return len(h.before[a]) - len(h.before[b]) })
	allowed := slices.Clone(h.told[h.anchor].names)
	for _, c := range fresh {
		in := h.told[c]
		same := in.head == "" && !slices.ContainsFunc(in.parents, func(p ring.SHA) bool { return !slices.Equal(in.names, h.told[p].names) })
		by := in.signer
		if in.head != "" { // a squash is as good as its head
			for of := range h.before[in.head] {
				if slices.Equal(h.told[of].names, in.names) && mayEdit(h.told[of].signer, allowed) && h.knew(of) {
					by = h.told[of].signer
				}
			}
		}
		if !same && mayEdit(by, allowed) && h.knew(c) {
			out = append(out, c)
			allowed = append(allowed, in.names...)
		}
	}
	return out
}

// knew reports whether a commit came after the edition in force.
func (h *onlooker) knew(c ring.SHA) bool {
	return slices.ContainsFunc(h.inForce, func(e ring.SHA) bool { return h.before[c][e] })
}

// wrong says why what a host accepted breaks the rules; "" is fine. In forge-merge
// there are others in the range, of which nothing is in the tip.
func (h *onlooker) wrong(tip ring.SHA, accepted []ring.Verified) string {
	changes := h.changed(tip)
	names := h.told[h.anchor].names
	for _, v := range accepted {
		of, changes := v.SHA, changes
		if head := h.told[of].head; head != "" && !h.before[h.anchor][head] {
			of, changes = head, h.changed(head)
		}
		button := v.Landed && (of == v.SHA || len(h.told[of].parents) > 1)
		if h.told[of].signer == "" || button { // what it brings is in the list by itself
			continue
		}
		if why := h.wrongSigner(of, names, changes); why != "" {
			return why
		}
	}
	if slices.Equal(h.told[tip].names, names) {
		return ""
	}
	for _, c := range changes {
		if slices.Equal(h.told[c].names, h.told[tip].names) {
			return ""
		}
	}
	return fmt.Sprintf("%s has the signers %v, which nobody made of those in force", tip.Short(), h.told[tip].names)
}

// wrongSigner holds one commit to the names in force and to what came before it.
func (h *onlooker) wrongSigner(c ring.SHA, names []string, changes []ring.SHA) string {
	signer := h.told[c].signer
	if signer == "alice" {
		return ""
	}
	in := slices.Contains(names, signer)
	var out bool
	for _, change := range changes {
		if change == c || !h.before[c][change] {
			continue
		}
		if slices.Contains(h.told[change].names, signer) {
			in = true
			continue
		}
		if slices.ContainsFunc(h.told[change].parents, func(p ring.SHA) bool { return !slices.Contains(h.told[p].names, signer) }) {
			continue // it took out nobody: the signer was not in before, on one side at least
		}
		again := slices.ContainsFunc(changes, func(later ring.SHA) bool {
			return later != c && h.before[c][later] && h.before[later][change] && slices.Contains(h.told[later].names, signer)
		})
		out = out || !again
	}
	switch {
	case !in:
		return fmt.Sprintf("%s is signed by %s, whom nobody let in", c.Short(), signer)
	case out:
		return fmt.Sprintf("%s is signed by %s, who was taken out before it", c.Short(), signer)
	}
	return ""
}

// picture are the commits of a range and those that they stand on.
func (h *onlooker) picture(tip ring.SHA) string {
	var text strings.Builder
	all := slices.SortedFunc(maps.Keys(h.before[tip]), func(a, b ring.SHA) int { return len(h.before[a]) - len(h.before[b]) })
	for _, c := range all {
		in := h.told[c]
		fmt.Fprintf(&text, "%s %v by %q names %v head %.7s behind %v\n", c.Short(), in.parents, in.signer, in.names, in.head, h.before[h.anchor][c])
	}
	return text.String() + fmt.Sprintln("in force", h.inForce)
}

// accept moves the host on. In force is what the newest changes made; where all of
// them made what was there already, they are merges of what is older.
func (h *onlooker) accept(tip ring.SHA) {
	changes, was, is := h.changed(tip), h.told[h.anchor].names, h.told[tip].names
	other := slices.ContainsFunc(changes, func(c ring.SHA) bool { return !slices.Equal(h.told[c].names, was) })
	if other {
		h.inForce = slices.DeleteFunc(changes, func(c ring.SHA) bool { return !slices.Equal(h.told[c].names, is) })
	}
	h.anchor = tip
}

func (w *town) rules() *Trust {
	dir := w.t.TempDir()
	file := filepath.Join(dir, "allowed_signers")
	line := "alice@example.org " + string(ssh.MarshalAuthorizedKey(w.keys["alice"].PublicKey()))
	require.NoError(w.t, os.WriteFile(file, []byte(line), 0o600))
	t, err := LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: file, SignersInRepo: signersPath}, "prod", "main")
	require.NoError(w.t, err)
	return t
}

// In random histories of people who join and leave, on branches that are merged and
// landed late and in any order, nobody outside of the signers in force gets a commit
// accepted, and no file comes back that was made without knowing the one in force.
// What a host accepts in two looks it accepts in one.
func TestNobodyOutsideTheEditionInForceIsEverAccepted(t *testing.T) {
	runs := 400
	if s := os.Getenv("GITRING_EDITIONS"); s != "" {
		var err error
		runs, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	keys := map[string]ssh.Signer{}
	for i, name := range people {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(i + 1)
		key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
		require.NoError(t, err)
		keys[name] = key
	}
	base := &town{t: t, keys: keys}
	trust, stale := base.rules(), map[ring.Code]int{}
	accepted, replaced := 0, 0
	for run := range runs {
		w := &town{t: t, r: rand.New(rand.NewPCG(13, uint64(run))), keys: keys, objects: map[ring.SHA][2]string{}, told: map[ring.SHA]*deed{}, before: map[ring.SHA]map[ring.SHA]bool{}}
		forge := run%2 == 1
		trust.cfg.Mode = Strict
		if forge {
			trust.cfg.Mode = ForgeMerge
		}
		aids := Aids{Merge: func(a, b ring.SHA) (ring.SHA, error) {
			files, clean := w.merge(a, b)
			if !clean {
				return "", ErrConflict
			}
			return w.tree(files), nil
		}}
		first := w.commit("alice", []string{"bob", "carol"}, map[string]string{"a": "1"}, "first")
		h := &onlooker{town: w, anchor: first, inForce: []ring.SHA{first}}
		main, previous := first, first
		all := []ring.SHA{first}
		for range 40 {
			var made ring.SHA
			switch w.r.IntN(5) {
			case 0, 1: // somewhere, of any age
				made = w.change(all[w.r.IntN(len(all))])
			case 2:
				made = w.change(main)
				main = made
			default:
				other := all[w.r.IntN(len(all))]
				if w.before[main][other] || w.before[other][main] {
					continue
				}
				made = w.brings(main, other, forge && w.r.IntN(4) > 0)
				main = made
			}
			all = append(all, made)
			if w.r.IntN(3) > 0 || main == h.anchor {
				continue
			}
			verified, refusal, err := trust.RangeWith(w, aids, h.anchor, main, noon, nil)
			require.NoError(t, err)
			if refusal != nil {
				stale[refusal.Code]++
				main = h.anchor // somebody pushes it back
				continue
			}
			why := h.wrong(main, verified)
			require.Empty(t, why, "run %d, %s..%s\n%s", run, h.anchor.Short(), main.Short(), h.picture(main))
			_, refusal, err = trust.RangeWith(w, aids, previous, main, noon, nil)
			require.NoError(t, err)
			if refusal != nil {
				// A commit counts by the signers at its parent: somebody who joined only after
				// it was made is known to a host that looked meanwhile.
				joined := slices.ContainsFunc(append(w.told[refusal.Commit].parents, previous), func(p ring.SHA) bool {
					return !slices.Contains(w.told[p].names, w.told[refusal.Commit].signer)
				})
				landing := forge && refusal.Code == ring.NotSignedContent // landed_test.go has a property of these
				require.True(t, joined || landing, "run %d: accepted by way of %s: %v\n%s", run, h.anchor.Short(), refusal, h.picture(main))
			}
			if !slices.Equal(w.told[main].names, w.told[h.anchor].names) {
				replaced++
			}
			accepted++
			previous = h.anchor
			h.accept(main)
		}
	}
	t.Log("accepted", accepted, "with other signers", replaced, "refused", stale)
	require.Greater(t, accepted, runs)
	require.Greater(t, replaced, runs/10)
	require.Positive(t, stale[ring.SignersStale])
	require.Positive(t, stale[ring.UnknownSigner])
}
