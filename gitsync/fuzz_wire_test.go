package gitsync

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// bareGit is an environment in which git has no settings of anybody.
func bareGit() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
}

// gitIn runs git in a folder; ok is false where it refuses.
func gitIn(t testing.TB, dir string, stdin []byte, args ...string) (out []byte, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, bareGit(), bytes.NewReader(stdin)
	out, err := cmd.Output()
	require.NoError(t, ctx.Err())
	return out, err == nil
}

// FuzzPack: the child takes a pack in whole, within its limits, or not at all; the
// parent reads each object of it under its own hash; and git finds the same ones.
func FuzzPack(f *testing.F) {
	y := newYard(f)
	y.edit("", "one", map[string]string{"a": strings.Repeat("text\n", 400), "b/c": "c"})
	y.edit("", "two", map[string]string{"a": strings.Repeat("text\n", 400) + "more", "b/d": "d"})
	y.git("tag", "-a", "-m", "v1", "v1")
	all := []byte(y.git("rev-list", "--objects", "--all", "--no-object-names") + "\n")
	for _, args := range [][]string{{"--window=0"}, {"--depth=5"}, {"--delta-base-offset"}} {
		pack, ok := gitIn(f, y.dir, all, append([]string{"pack-objects", "--stdout", "-q"}, args...)...)
		require.True(f, ok)
		f.Add(pack)
		f.Add(pack[:len(pack)/2])
	}
	empty, ok := gitIn(f, y.dir, nil, "pack-objects", "--stdout", "-q")
	require.True(f, ok)
	f.Add(empty)
	bomb := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xb0\xff\xff\xff\x7f")
	f.Add(append(bomb, deflated(make([]byte, 1<<20))...))
	lim := Limits{Object: 64 << 10, Objects: 64, Received: 1 << 20}.withDefaults()
	f.Fuzz(func(t *testing.T, pack []byte) {
		m := newMirror(filepath.Join(t.TempDir(), "mirror"), "", lim)
		defer m.rest()
		before := allocated()
		err := m.addPack(t.Context(), func(w io.Writer) error {
			_, err := w.Write(pack)
			return err
		})
		require.Less(t, allocated()-before, uint64(512<<20), "memory for %d bytes", len(pack))
		packs, _ := filepath.Glob(filepath.Join(m.packDir(), "pack-*.pack"))
		indexes, _ := filepath.Glob(filepath.Join(m.packDir(), "pack-*.idx"))
		require.Len(t, indexes, len(packs))
		if err != nil {
			require.Empty(t, packs, "refused, and there: %v", err)
			return
		}
		for i, name := range packs {
			index, err := os.ReadFile(indexes[i])
			require.NoError(t, err)
			ours, ok := gitIn(t, y.dir, index, "show-index")
			require.True(t, ok, "git cannot read our index")
			for line := range strings.Lines(string(ours)) {
				sha := ring.SHA(strings.Fields(line)[1])
				kind, body, err := m.Raw(sha)
				require.NoError(t, err)
				sum, _ := objectHash(kind, body)
				require.Equal(t, sha, sum)
			}
			theirs := filepath.Join(t.TempDir(), "git.idx")
			if _, ok := gitIn(t, y.dir, nil, "index-pack", "-o", theirs, name); !ok {
				continue // git is the stricter one: nothing is believed for being in a pack
			}
			index, err = os.ReadFile(theirs)
			require.NoError(t, err)
			again, ok := gitIn(t, y.dir, index, "show-index")
			require.True(t, ok)
			require.Equal(t, string(again), string(ours))
		}
	})
}

func deflated(b []byte) []byte {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

// allocated are all bytes that this process ever asked for.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// FuzzTree: a tree that can be read has the entries that git prints of it, and no
// name in it leads out of its folder.
func FuzzTree(f *testing.F) {
	dir := f.TempDir()
	_, ok := gitIn(f, dir, nil, "init", "-q", ".")
	require.True(f, ok)
	f.Add([]byte{})
	for _, mode := range []string{"100644", "100755", "100664", "120000", "160000", "40000", "040000", "100600", "0"} {
		f.Add([]byte(line(mode, "name", ring40)))
	}
	f.Add([]byte(line("100644", "a", ring40) + line("40000", "a-b", ring40) + line("40000", "a", noTree)))
	f.Add([]byte(line("40000", ".GIT", noTree) + line("100644", "..", ring40)))
	f.Add([]byte(line("100644", "a", ring40)[:15]))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := parseFolder(body)
		if err != nil {
			require.Empty(t, list)
			return
		}
		ours := []string{}
		for _, n := range list {
			require.True(t, fs.ValidPath(n.name) && n.name != "." && !strings.Contains(n.name, "/"), "%q", n.name)
			ours = append(ours, fmt.Sprintf("%s %s\t%s", shownMode(n.mode), n.sha, n.name))
		}
		sha, _ := objectHash("tree", body)
		file := filepath.Join(dir, ".git", "objects", string(sha[:2]), string(sha[2:]))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, deflated(fmt.Appendf(nil, "tree %d\x00%s", len(body), body)), 0o600))
		defer func() { _ = os.Remove(file) }()
		out, ok := gitIn(t, dir, nil, "ls-tree", "-z", string(sha))
		require.True(t, ok, "git cannot read it: %q", body)
		theirs := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
		byName := func(a, b string) int {
			_, a, _ = strings.Cut(a, "\t")
			_, b, _ = strings.Cut(b, "\t")
			return strings.Compare(a, b)
		}
		slices.SortFunc(theirs, byName)
		require.Equal(t, ours, theirs)
	})
}

func shownMode(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "040000 tree"
	case mode&fs.ModeSymlink != 0:
		return "120000 blob"
	case mode&fs.ModeIrregular != 0:
		return "160000 commit"
	case mode&0o100 != 0:
		return "100755 blob"
	}
	return "100644 blob"
}

// advertising is a server that says what it is told to say.
type advertising struct{ says []byte }

func (a advertising) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	return refs, refs.Decode(bytes.NewReader(a.says))
}

func (a advertising) UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	return nil, io.EOF
}

func (a advertising) Close() error { return nil }

// pkt are lines of Git's protocol, and a flush.
func pkt(lines ...string) []byte {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%04x%s", len(l)+4, l)
	}
	return []byte(b.String() + "0000")
}

// FuzzRefList: whatever a server says of its refs, the child sees the branch where
// git ls-remote sees it, or nothing.
func FuzzRefList(f *testing.F) {
	const main = "refs/heads/main"
	a, b := strings.Repeat("a1", 20), strings.Repeat("b2", 20)
	caps := "\x00multi_ack side-band-64k ofs-delta no-progress symref=HEAD:" + main + " agent=git/2.39\n"
	f.Add(pkt(a+" HEAD"+caps, a+" "+main+"\n"))
	f.Add(pkt(a+" "+main+caps, b+" refs/pull/1/head\n", b+" refs/tags/v1\n", a+" refs/tags/v1^{}\n"))
	f.Add(pkt(a+" "+main+caps, b+" "+main+"\n"))
	f.Add(pkt(a+" "+main+caps, "shallow "+b+"\n"))
	f.Add(pkt(strings.Repeat("0", 40) + " capabilities^{}" + caps))
	f.Add(append(pkt("# service=git-upload-pack\n"), pkt(a+" "+main+caps)...))
	f.Add(pkt("version 2\n", "ls-refs\n"))
	f.Add(pkt("ERR no such repository\n"))
	f.Add([]byte("0000"))
	dir := f.TempDir()
	file := filepath.Join(dir, "says")
	f.Fuzz(func(t *testing.T, says []byte) {
		before := allocated()
		w := &wire{branch: main, idle: func() {}, open: func(context.Context) (session, error) { return advertising{says}, nil }}
		v, err := w.look(t.Context())
		require.Less(t, allocated()-before, uint64(64<<20)+uint64(len(says))*100)
		if err != nil {
			require.NotContains(t, said{err}.Error(), "\n")
			return
		}
		require.Equal(t, v.tip.IsZero(), v.missing != "")
		if v.tip.IsZero() {
			return
		}
		require.NoError(t, os.WriteFile(file, says, 0o600))
		out, ok := gitIn(t, dir, nil, "ls-remote", "--upload-pack=cat "+file+" #", ".", main)
		if !ok {
			return // git is the stricter one: a tip is a claim, and what it leads to is verified
		}
		var theirs []string
		for line := range strings.Lines(string(out)) {
			if sha, name, _ := strings.Cut(strings.TrimSpace(line), "\t"); name == main {
				theirs = append(theirs, sha)
			}
		}
		require.Contains(t, theirs, v.tip.String())
	})
}

// FuzzToldByChild: whatever the child writes into its pipe, the parent takes ids
// that are ids, in memory that it bounds.
func FuzzToldByChild(f *testing.F) {
	for _, said := range []any{told{}, told{Tip: string(ring40)}, told{Tip: strings.Repeat("0A", 20)}, told{Tip: "main"}, told{Fault: &fault{Says: "no"}}} {
		var b bytes.Buffer
		require.NoError(f, writeMessage(&b, said, maxAnswer))
		f.Add(b.Bytes())
	}
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<31))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocated()
		var one told
		err := readMessage(bytes.NewReader(b), &one, maxAnswer)
		require.Less(t, allocated()-before, uint64(64<<20)+uint64(len(b))*100)
		if err != nil {
			return
		}
		if list, err := hashes([]string{one.Tip}); err == nil {
			require.Len(t, list, 1)
			require.True(t, plumbing.IsHash(list[0].String()))
			require.True(t, strings.EqualFold(one.Tip, list[0].String()), "another id: %q", one.Tip)
		}
		if one.Fault != nil {
			require.NotContains(t, one.Fault.err(oneLineOf).Error(), "\x1b")
		}
	})
}

func oneLineOf(s string) string { return oneLine([]byte(s)) }

// FuzzTrailers: a trailer that gitring reads git reads too; the converse need not
// hold, because a sentence that quotes a trailer must not allow anything.
func FuzzTrailers(f *testing.F) {
	id := strings.Repeat("ab", 20)
	for _, text := range []string{
		"subject\n\nbody\n\n" + vouchTrailer + ": " + id + "\nGitring-Allow: remove=2\n",
		"subject\n\n" + vouchTrailer + ": " + id,
		"Merge branch 'work' into 'main'\n\nSee merge request acme/infra!7\n\nMerged-by: A <a@example.org>\n" + headTrailer + ": " + id + "\n",
		"s\r\n\r\nGitring-Target: prod\r\n",
		"s\n\nGitring-Target: prod\n (cherry picked from commit " + id + ")\n",
		"s\n\nSigned-off-by: A\nGitring-Target: a\n b\n\tc\n",
		"s\n\n# Gitring-Target: a\nGitring-Target: b\n",
		"s\n\n---\n\nGitring-Target: a\n",
		"s\n\nGitring-Target: a\n\nConflicts:\n\tweb/a\n",
		"Gitring-Target: a\n",
		"s\n\ntext\nGitring-Target : a\nGitring-Target: b\n",
	} {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") {
			t.Skip("no commit has one")
		}
		p := &parsed{message: []byte(text)}
		require.GreaterOrEqual(t, p.allowRemove(), 0)
		p.subject()
		var theirs []string
		asked := false
		for _, key := range []string{vouchTrailer, headTrailer, "Gitring-Target", "Gitring-Allow"} {
			for _, value := range p.trailers(key) {
				if !asked {
					out, ok := gitIn(t, dir, []byte(text), "-c", "core.commentChar=;", "interpret-trailers", "--only-trailers", "--only-input", "--no-divider")
					require.True(t, ok)
					for line := range strings.Lines(string(out)) {
						if name, v, ok := strings.Cut(line, ":"); ok {
							theirs = append(theirs, strings.ToLower(strings.TrimSpace(name))+"="+strings.TrimSpace(v))
						}
					}
					asked = true
				}
				require.Contains(t, theirs, strings.ToLower(key)+"="+value, "%q", text)
			}
		}
	})
}

// chance is a source of random numbers that a fuzzer chooses.
type chance struct {
	b    []byte
	rest rand.Source
}

func (c *chance) Int63() int64 {
	if len(c.b) < 2 {
		return c.rest.Int63()
	}
	n := int64(binary.BigEndian.Uint16(c.b))
	c.b = c.b[2:]
	return n << 47 // Intn of a small number looks at the high bits
}

func (c *chance) Seed(int64) {}

// FuzzLandings: however what a forge's button made is changed, what is accepted the
// oracle accepts, which knows only git: its merges, its word on each signature, and
// the shape of history.
func FuzzLandings(f *testing.F) {
	fake := newForgery(f)
	_, _, _ = fake.y.Raw(noTree) // its git lives as long as f, and not as one input
	shapes := len(fake.shapes())
	for i := range shapes {
		f.Add(byte(i), byte(0), []byte{})
		for n := range 3 {
			f.Add(byte(i), byte(n+1), []byte(strings.Repeat(string(rune('a'+i*3+n)), 24)))
		}
	}
	f.Fuzz(func(t *testing.T, shape, changes byte, choices []byte) {
		fake.t = t
		fake.y.t = t
		clear(fake.objects)
		s := fake.shapes()[int(shape)%shapes]
		r := rand.New(&chance{b: choices, rest: rand.NewSource(int64(len(choices)))})
		for range changes % 4 {
			s.mutate(r)
		}
		b := fake.build(s)
		_, refusal, err := fake.judge(b)
		switch {
		case err != nil:
			require.ErrorIs(t, err, ErrMissing)
		case refusal != nil:
			require.NotEmpty(t, refusal.Says)
			require.NotEmpty(t, refusal.Hint)
		default:
			require.Empty(t, fake.oracle([]built{b})[0], "wrong accept\n%s", fake.tell(b))
		}
	})
}
