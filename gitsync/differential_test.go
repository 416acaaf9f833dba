package gitsync

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestNothingIsAcceptedThatGitRefuses changes valid signed commits the way an
// attacker or an odd tool would, before and after they are signed. What gitring
// accepts git verify-commit must call good, git fsck --strict clean, and both must
// see the same tree. The converse does not hold: gitring is stricter.
// GITRING_MUTATIONS asks for more than the usual 500.
func TestNothingIsAcceptedThatGitRefuses(t *testing.T) {
	n := 500
	if v := os.Getenv("GITRING_MUTATIONS"); v != "" {
		var err error
		n, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	y := newYard(t)
	y.gpg()
	y.allow("alice", `namespaces="git"`)
	bob := y.pgpKey(noon.Add(-day), "bob", "ed25519", "sign", "never")
	root := y.commit("alice", noon.Add(-day), "root")
	side := y.commit("alice", noon.Add(-day/2), "side")
	write(y, "file", "text")
	y.git("add", "-A")
	full := ring.SHA(y.git("write-tree"))

	alice := y.signer("alice")
	seeds := make([]draft, 0, 4)
	for i, tree := range []ring.SHA{noTree, full, full, noTree} {
		d := plain(tree, noon, []ring.SHA{root, side}[:1+i%2]...)
		d.text = fmt.Sprintf("seed %d\n\nbody\n\nGitring-Target: prod\n", i)
		d.rest = []string{"", "change-id abc\n", "encoding UTF-8\n", "encoding latin1\nx first\n second\n"}[i]
		seeds = append(seeds, d)
	}
	signedSeeds := make([]string, 0, 2*len(seeds))
	for _, d := range seeds {
		signedSeeds = append(signedSeeds, d.signed(sshSign(t, alice, d.payload(), "git")))
		_, body, err := y.Raw(y.pgpSign(d, bob, noon))
		require.NoError(t, err)
		signedSeeds = append(signedSeeds, string(body))
	}

	m := mutator{Rand: rand.New(rand.NewSource(20250615)), trees: []ring.SHA{noTree, full}, parents: []ring.SHA{root, side}}
	trust := y.trust(y.keyring(bob))
	accepted, codes := map[ring.SHA]ring.SHA{}, map[ring.Code]int{}
	for i := range n {
		var raw string
		if i%2 == 0 {
			raw = m.change(signedSeeds[m.Intn(len(signedSeeds))], m.anywhere)
		} else {
			odd := m.change(seeds[m.Intn(len(seeds))].payload(), m.structure)
			raw = signOdd(t, odd, sshSign(t, alice, odd, "git"))
		}
		sha, _ := objectHash("commit", []byte(raw))
		all, refusal, err := trust.Range(overlay{y, sha, []byte(raw)}, root, sha, noon, nil)
		switch {
		case err != nil:
			codes["(parent missing)"]++
		case refusal != nil:
			codes[refusal.Code]++
		default:
			require.Equal(t, sha, all[len(all)-1].SHA)
			require.Equal(t, sha, y.put(raw))
			p, _ := parseCommit(sha, []byte(raw))
			accepted[sha] = p.tree
			codes["(accepted)"]++
		}
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		t.Logf("%5d %s", codes[code], code)
	}
	require.Greater(t, len(accepted), n/20, "too few accepted to mean anything")
	require.Less(t, len(accepted), n*3/4, "too few refused to mean anything")

	ids := slices.Sorted(maps.Keys(accepted))
	for chunk := range slices.Chunk(ids, 200) {
		if !pgpAndSSHGood(y, chunk...) {
			for _, id := range chunk {
				require.True(t, pgpAndSSHGood(y, id), "accepted, and git verify-commit refuses:\n%s", y.git("cat-file", "commit", string(id)))
			}
		}
		args := []string{"log", "--no-walk", "--format=%H %T"}
		for _, id := range chunk {
			args = append(args, string(id))
		}
		for line := range strings.Lines(y.git(args...)) {
			sha, tree, _ := strings.Cut(strings.TrimSpace(line), " ")
			require.Equal(t, string(accepted[ring.SHA(sha)]), tree, "another tree than git sees in %s", sha)
		}
	}
	out, err := runIn(y, "fsck", "--strict", "--no-dangling", "--no-progress")
	require.NoError(t, err, "git fsck --strict: %s", out)
}

func pgpAndSSHGood(y *yard, ids ...ring.SHA) bool {
	args := []string{"-c", "gpg.ssh.allowedSignersFile=" + y.dir + "/../allowed", "-c", "gpg.program=" + y.gnupg + "/gpg-at", "verify-commit"}
	if err := os.WriteFile(y.dir+"/../allowed", []byte(strings.Join(y.signers, "\n")+"\n"), 0o600); err != nil {
		return false
	}
	for _, id := range ids {
		args = append(args, string(id))
	}
	_, err := runIn(y, args...)
	return err == nil
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
	switch m.Intn(13) {
	case 0:
		return slices.Insert(lines, begin+1, []string{" Comment: x\n", " Version: 1\n", " \n", " Hash: SHA1\n"}[m.Intn(4)])
	case 1:
		return slices.Insert(lines, i+1, []string{" \n", " AAAA\n", " =AAAA\n", " junk!\n", "  \n"}[m.Intn(5)])
	case 2:
		return slices.Insert(lines, end+1, []string{" \n", " junk\n", lines[begin][len("gpgsig"):], "gpgsig again\n"}[m.Intn(4)])
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
