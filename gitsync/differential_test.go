package gitsync

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// mutations is how many are made by default, and how many of them gitring refuses
// are shown to git too: that takes most of the time, and GITRING_MUTATIONS, which
// asks for another number, shows it all of them.
const (
	mutations     = 2000
	shownToGit    = 200
	mutationBatch = 2500 // they lie in one repository at a time
)

// TestNothingIsAcceptedThatGitRefuses changes valid signed commits the way an
// attacker or an odd tool would, before and after they are signed. What gitring
// accepts git fsck --strict must call clean, git verify-commit good and
// ssh-keygen -Y verify too, and git must see the same tree. The converse does not
// hold: gitring is stricter, and how often with which code is printed.
// GITRING_SEED begins elsewhere; a failure names its own.
func TestNothingIsAcceptedThatGitRefuses(t *testing.T) {
	t.Parallel()
	n, seed, shown := mutations, int64(1), shownToGit
	if v := os.Getenv("GITRING_MUTATIONS"); v != "" {
		var err error
		n, err = strconv.Atoi(v)
		require.NoError(t, err)
		shown = n
	}
	if v := os.Getenv("GITRING_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseInt(v, 10, 64)
		require.NoError(t, err)
	}
	d := newDifferential(t)
	for from := 0; from < n; from += mutationBatch {
		d.batch(seed+int64(from), min(mutationBatch, n-from), min(mutationBatch, shown-from))
	}
	d.tell()
	if n >= 1000 {
		require.Greater(t, d.codes["(accepted)"], n/20, "too few accepted to mean anything")
		require.Less(t, d.codes["(accepted)"], n*3/4, "too few refused to mean anything")
	}
}

// differential is gitring on one side, and git, gpg and ssh-keygen on the other.
type differential struct {
	t     *testing.T
	y     *yard
	trust *Trust
	root  ring.SHA
	m     mutator // without its source of chance
	seeds []seeding

	codes          map[string]int // all verdicts
	shown, diverge map[string]int // of those that git was shown, and that it calls good
}

// seeding is a commit to be changed, before or after it is signed.
type seeding struct {
	draft draft
	by    ssh.Signer // nil is OpenPGP
	whole string     // signed
}

// mutant is one that was changed. The seed makes it again.
type mutant struct {
	seed int64
	raw  string
	tree ring.SHA // as gitring has it, of an accepted one
	code string
}

func newDifferential(t *testing.T) *differential {
	y := newYard(t)
	y.gpg()
	y.allow("alice", `namespaces="git"`)
	y.allow("carol", `namespaces="git"`, "-t", "ecdsa")
	bob := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	touch := newTouched(t)
	y.signers = append(y.signers, "dave@example.org "+touch.line())
	d := &differential{t: t, y: y, codes: map[string]int{}, shown: map[string]int{}, diverge: map[string]int{}}
	d.root = y.commit("alice", noon.Add(-day), "root")
	side := y.commit("alice", noon.Add(-day/2), "side")
	write(y, "file", "text")
	y.git("add", "-A")
	full := ring.SHA(y.git("write-tree"))
	d.m = mutator{trees: []ring.SHA{noTree, full}, parents: []ring.SHA{d.root, side}}
	d.trust = y.trust(y.keyring(bob))

	alice, carol := y.signer("alice"), y.signer("carol")
	for i, tree := range []ring.SHA{noTree, full, full, noTree} {
		c := plain(tree, noon, d.m.parents[:1+i%2]...)
		c.text = fmt.Sprintf("seed %d\n\nbody\n\nGitring-Target: prod\n", i)
		c.rest = []string{"", "change-id abc\n", "encoding UTF-8\n", "encoding latin1\nx first\n second\n"}[i]
		_, byBob, err := y.Raw(y.pgpSign(c, bob, noon))
		require.NoError(t, err)
		d.seeds = append(d.seeds,
			seeding{c, alice, c.signed(sshSign(t, alice, c.payload(), "git"))},
			seeding{c, carol, c.signed(sshSign(t, carol, c.payload(), "git"))},
			seeding{c, alice, c.signed(touch.sign(t, c.payload(), userPresent))},
			seeding{c, alice, string(byBob)},
		)
	}
	for _, s := range forgeSpellings() {
		c := plain(full, noon, d.root)
		key := map[string]string{"openpgp": bob, "ssh": "alice"}[s.format]
		whole := s.signed(c, y.armourOf(s.format, key, s.payload(c)))
		c.rest, c.text = s.rest, s.text
		d.seeds = append(d.seeds, seeding{c, alice, whole})
	}
	return d
}

// batch makes n mutants and holds the verdicts against each other; of the refused
// ones git sees as many as shown.
func (d *differential) batch(seed int64, n, shown int) {
	accepted, refused := map[ring.SHA]mutant{}, map[ring.SHA]mutant{}
	for i := range n {
		m := d.mutant(seed + int64(i))
		sha, _ := objectHash("commit", []byte(m.raw))
		all, refusal, err := d.trust.Range(overlay{d.y, sha, []byte(m.raw)}, d.root, sha, noon, nil)
		switch {
		case err != nil:
			m.code = "(parent missing)"
		case refusal != nil:
			m.code = string(refusal.Code)
		default:
			m.code = "(accepted)"
			require.Equal(d.t, sha, all[len(all)-1].SHA)
			p, _ := parseCommit(sha, []byte(m.raw))
			m.tree = p.tree
			accepted[sha] = m
		}
		if d.codes[m.code]++; m.tree == "" && i < shown {
			refused[sha] = m
		}
	}
	d.hold(accepted)
	d.compare(refused)
}

// mutant makes the one of a seed.
func (d *differential) mutant(seed int64) mutant {
	m := d.m
	m.Rand = rand.New(rand.NewSource(seed))
	s := d.seeds[m.Intn(len(d.seeds))]
	if seed%2 == 0 {
		return mutant{seed: seed, raw: m.change(s.whole, m.anywhere)}
	}
	odd := m.change(s.draft.payload(), m.structure)
	return mutant{seed: seed, raw: signOdd(d.t, odd, sshSign(d.t, s.by, odd, "git"))}
}

// hold asks of all accepted ones what the others say.
func (d *differential) hold(accepted map[ring.SHA]mutant) {
	defer d.write(accepted)()
	out, err := runIn(d.y, "fsck", "--strict", "--no-dangling", "--no-progress")
	require.NoError(d.t, err, "accepted, and git fsck --strict: %s", out)
	said := d.ask(slices.Sorted(maps.Keys(accepted)))
	require.Len(d.t, said, len(accepted))
	for sha, m := range accepted {
		require.Equal(d.t, "G "+string(m.tree), said[sha], "accepted, and git says otherwise: %s", m.again())
	}
	d.keygen(accepted)
}

// compare counts which of the refused ones all the others call good.
func (d *differential) compare(refused map[ring.SHA]mutant) {
	if len(refused) == 0 {
		return
	}
	defer d.write(refused)()
	out, _ := runIn(d.y, "fsck", "--strict", "--no-dangling", "--no-progress") // it fails, and names what for
	clean := slices.DeleteFunc(slices.Sorted(maps.Keys(refused)), func(sha ring.SHA) bool {
		return strings.Contains(out, string(sha))
	})
	said := d.ask(clean)
	for sha, m := range refused {
		if d.shown[m.code]++; strings.HasPrefix(said[sha], "G ") {
			d.diverge[m.code]++
		}
	}
}

// write gives commits to git; what comes back takes them away again.
func (d *differential) write(all map[ring.SHA]mutant) (remove func()) {
	d.t.Helper()
	var files []string
	for sha, m := range all {
		file := filepath.Join(d.y.dir, ".git", "objects", string(sha[:2]), string(sha[2:]))
		if _, err := os.Stat(file); err == nil {
			continue // one of the seeds
		}
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		fmt.Fprintf(w, "commit %d\x00%s", len(m.raw), m.raw)
		require.NoError(d.t, w.Close())
		require.NoError(d.t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(d.t, os.WriteFile(file, z.Bytes(), 0o600))
		files = append(files, file)
	}
	return func() {
		for _, f := range files {
			require.NoError(d.t, os.Remove(f))
		}
	}
}

// ask is git's verdict of each commit (G is good) and its tree, by the code of git
// verify-commit, with few processes for all of them. What git does not live
// through has no verdict.
func (d *differential) ask(ids []ring.SHA) map[ring.SHA]string {
	file := filepath.Join(d.y.dir, "..", "allowed")
	require.NoError(d.t, os.WriteFile(file, []byte(strings.Join(d.y.signers, "\n")+"\n"), 0o600))
	var mu sync.Mutex
	said := map[ring.SHA]string{}
	var both sync.WaitGroup
	for half := range slices.Chunk(ids, len(ids)/2+1) {
		both.Go(func() {
			for len(half) > 0 {
				var in strings.Builder
				for _, id := range half {
					fmt.Fprintln(&in, id)
				}
				cmd := exec.Command("git", "-c", "gpg.ssh.allowedSignersFile="+file, "-c", "gpg.program="+d.y.gnupg+"/gpg-at",
					"log", "--no-walk=unsorted", "--stdin", "--format=%H %G? %T")
				cmd.Dir, cmd.Env, cmd.Stdin = d.y.dir, d.y.at(noon), strings.NewReader(in.String())
				out, err := cmd.Output()
				mu.Lock()
				n := 0
				for line := range strings.Lines(string(out)) {
					sha, what, _ := strings.Cut(strings.TrimSpace(line), " ")
					// An unknown trust in a key is good: the key ring holds only allowed ones.
					said[ring.SHA(sha)] = strings.Replace(what, "U ", "G ", 1)
					n++
				}
				mu.Unlock()
				if err == nil {
					return
				}
				half = half[min(n+1, len(half)):] // git ended at the one after the last that it answered for
			}
		})
	}
	both.Wait()
	return said
}

// keygen holds ssh-keygen -Y verify to the payload as git has it: all but the
// lines of gpgsig. Whose key it is git was asked for.
func (d *differential) keygen(accepted map[ring.SHA]mutant) {
	dir := d.t.TempDir()
	signers := filepath.Join(dir, "signers")
	var lines strings.Builder
	for _, line := range d.y.signers {
		_, rest, _ := strings.Cut(line, " ")
		fmt.Fprintln(&lines, "*", rest)
	}
	require.NoError(d.t, os.WriteFile(signers, []byte(lines.String()), 0o600))
	var both sync.WaitGroup
	for half := range slices.Chunk(slices.Sorted(maps.Keys(accepted)), len(accepted)/2+1) {
		both.Go(func() {
			for _, sha := range half {
				payload, sig := splitSigned(accepted[sha].raw)
				if !strings.HasPrefix(sig, beginSSH) {
					continue
				}
				file := filepath.Join(dir, string(sha))
				if err := os.WriteFile(file, []byte(sig), 0o600); err != nil {
					d.t.Error(err)
					continue
				}
				cmd := exec.Command("ssh-keygen", "-Y", "verify", "-n", "git", "-f", signers, "-I", "anybody", "-s", file)
				cmd.Stdin = strings.NewReader(payload)
				if out, err := cmd.CombinedOutput(); err != nil {
					d.t.Errorf("accepted, and ssh-keygen -Y verify: %s: %s", out, accepted[sha].again())
				}
			}
		})
	}
	both.Wait()
}

// splitSigned takes a commit and its signature apart, line by line.
func splitSigned(raw string) (payload, sig string) {
	head, text, _ := strings.Cut(raw, "\n\n")
	var kept, armour strings.Builder
	inside := false
	for line := range strings.SplitSeq(head, "\n") {
		rest, first := strings.CutPrefix(line, "gpgsig ")
		switch inside = first || inside && strings.HasPrefix(line, " "); {
		case first:
			fmt.Fprintln(&armour, rest)
		case inside:
			fmt.Fprintln(&armour, line[1:])
		default:
			fmt.Fprintln(&kept, line)
		}
	}
	return kept.String() + "\n" + text, armour.String()
}

// again is how to see a mutant once more, and all of it.
func (m mutant) again() string {
	return fmt.Sprintf("GITRING_SEED=%d GITRING_MUTATIONS=1\n%q", m.seed, m.raw)
}

// tell prints the verdicts, and where gitring is stricter than all others.
func (d *differential) tell() {
	for _, code := range slices.Sorted(maps.Keys(d.codes)) {
		line := fmt.Sprintf("%6d %s", d.codes[code], code)
		if n := d.shown[code]; n > 0 {
			line += fmt.Sprintf("; of %d shown to git, it calls %d good", n, d.diverge[code])
		}
		d.t.Log(line)
	}
}

// overlay is a store with one more commit.
type overlay struct {
	Objects
	sha  ring.SHA
	body []byte
}

func (o overlay) Raw(sha ring.SHA) (string, []byte, error) {
	if sha == o.sha {
		return "commit", o.body, nil
	}
	return o.Objects.Raw(sha)
}

// signOdd puts the signature before the blank line, wherever that now is.
func signOdd(t *testing.T, payload string, armour []byte) string {
	t.Helper()
	top, text, ok := strings.Cut(payload, "\n\n")
	if !ok {
		return payload
	}
	return top + "\ngpgsig " + fold(armour) + "\n" + text
}

// mutator changes commits; one seed gives the same changes every time.
type mutator struct {
	*rand.Rand
	trees, parents []ring.SHA
}

// change applies one to three changes.
func (m mutator) change(raw string, one func(lines []string) []string) string {
	lines := strings.SplitAfter(raw, "\n")
	for range 1 + m.Intn(3) {
		lines = one(lines)
		lines = strings.SplitAfter(strings.Join(lines, ""), "\n")
	}
	return strings.Join(lines, "")
}

// structure changes the order, number and form of lines, never an id to one that
// does not exist.
func (m mutator) structure(lines []string) []string {
	i := m.Intn(len(lines))
	j := m.Intn(len(lines))
	switch m.Intn(16) {
	case 0: // twice
		return slices.Insert(lines, i, lines[i])
	case 1: // away
		return slices.Delete(lines, i, i+1)
	case 2: // exchanged
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		return slices.Insert(lines, i, []string{
			"x-odd value\n", "X-Odd value\n", "gpgsigx value\n", "gpgsig-sha256 value\n", "encoding koi8-r\n", "mergetag x\n y\n", " continued\n",
			"novalue\n", "empty \n", "tree " + string(m.trees[0]) + "\n", "parent " + string(m.parents[0]) + "\n", "gpgsig x\n",
		}[m.Intn(12)])
	case 4: // another tree
		lines[0] = "tree " + string(m.trees[m.Intn(len(m.trees))]) + "\n"
	case 5: // one parent more
		return slices.Insert(lines, 1, "parent "+string(m.parents[m.Intn(len(m.parents))])+"\n")
	case 6:
		lines[i] = strings.TrimSuffix(lines[i], "\n") + []string{" \n", "\r\n", "\t\n", "\x00\n", "", "\n\n"}[m.Intn(6)]
	case 7:
		lines[i] = strings.ToUpper(lines[i])
	case 8: // odd people and dates
		lines[i] = strings.NewReplacer("Alice", []string{"", "A<", "A>", "Älice", "\xff", "A\tB", " "}[m.Intn(7)]).Replace(lines[i])
	case 9:
		lines[i] = strings.NewReplacer("+0000", []string{"+2460", "-0000", "+00", "+00000", "UTC", "", "+9999"}[m.Intn(7)]).Replace(lines[i])
	case 10:
		lines[i] = strings.NewReplacer("1749", []string{"01749", "-1749", "+1749", "1e49", "99991749", " 1749", "0"}[m.Intn(7)]).Replace(lines[i])
	case 11:
		lines[i] = strings.NewReplacer("alice@", []string{"", "<", ">", "a b@", "\xfe@"}[m.Intn(5)]).Replace(lines[i])
	case 12:
		lines[i] = strings.Replace(lines[i], " ", []string{"", "  ", "\t"}[m.Intn(3)], 1)
	case 13: // longer or shorter messages
		return append(lines, []string{"more\n", "no newline", "\n\n\n", "-----BEGIN SSH SIGNATURE-----\n", "caf\xe9\n"}[m.Intn(5)])
	case 14:
		return lines[:max(1, len(lines)-1)]
	case 15: // nothing: some stay as they were
	}
	return lines
}

// anywhere also touches bytes, and the armour above all.
func (m mutator) anywhere(lines []string) []string {
	begin := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "gpgsig -----") })
	end := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, " -----END") })
	if begin < 0 || end <= begin || m.Intn(3) == 0 {
		return m.structure(lines)
	}
	i := begin + m.Intn(end-begin+1)
	switch m.Intn(14) {
	case 13: // as on Windows
		for k := begin; k <= end; k++ {
			lines[k] = strings.TrimSuffix(lines[k], "\n") + "\r\n"
		}
	case 0:
		return slices.Insert(lines, begin+1, []string{" Comment: x\n", " Version: 1\n", " \n", " Hash: SHA1\n"}[m.Intn(4)])
	case 1:
		return slices.Insert(lines, i+1, []string{" \n", " AAAA\n", " =AAAA\n", " junk!\n", "  \n"}[m.Intn(5)])
	case 2:
		return slices.Insert(lines, end+1, []string{
			" \n", " junk\n", " \r\n", " -----BEGIN PGP MESSAGE-----\n", " -----BEGIN SSH SIGNATURE-----\n", lines[begin][len("gpgsig"):], "gpgsig again\n",
		}[m.Intn(7)])
	case 3: // junk before the armour
		lines[begin] = "gpgsig junk\n " + strings.TrimPrefix(lines[begin], "gpgsig ")
	case 4:
		return slices.Delete(lines, i, i+1)
	case 5: // the lines of the armour joined
		lines[i] = strings.TrimSuffix(lines[i], "\n")
		if i+1 < len(lines) {
			lines[i+1] = strings.TrimPrefix(lines[i+1], " ")
		}
	case 6: // a character of the armour
		b := []byte(lines[i])
		b[m.Intn(len(b))] = "ABCabc019+/= -"[m.Intn(14)]
		lines[i] = string(b)
	case 7: // the last sextet, whose low bits decoders forget
		b := []byte(lines[end-1])
		if k := bytes.LastIndexByte(bytes.TrimRight(b, "=\n"), b[max(0, len(bytes.TrimRight(b, "=\n"))-1)]); k > 0 {
			b[k]++
		}
		lines[end-1] = string(b)
	case 8: // the whole block behind everything else, or first
		block := slices.Clone(lines[begin : end+1])
		rest := slices.Delete(slices.Clone(lines), begin, end+1)
		return slices.Insert(rest, []int{0, 1, 3}[m.Intn(3)], block...)
	case 9: // twice
		return slices.Insert(lines, end+1, slices.Clone(lines[begin:end+1])...)
	case 10:
		lines[i] = strings.TrimSuffix(lines[i], "\n") + []string{" \n", "\r\n", "\t\n"}[m.Intn(3)]
	case 11: // a byte anywhere
		k := m.Intn(len(lines))
		if b := []byte(lines[k]); len(b) > 0 {
			b[m.Intn(len(b))] ^= byte(1 << m.Intn(8))
			lines[k] = string(b)
		}
	case 12:
		lines[begin] = strings.Replace(lines[begin], "BEGIN", []string{"begin", " BEGIN", "END"}[m.Intn(3)], 1)
	}
	return lines
}
