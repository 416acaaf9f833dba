package gitsync

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A pack as a hostile server writes it: by hand, and with whatever lengths.

const (
	packCommit, packTree, packBlob, packOfs = 1, 2, 3, 6
)

type packWriter struct {
	bytes.Buffer
	count int
}

// object appends one: length is what its head says.
func (p *packWriter) object(kind int, length int64, between, deflated []byte) (offset int64) {
	offset = int64(p.Len()) + 12
	b := byte(kind<<4) | byte(length&15)
	for length >>= 4; length > 0; length >>= 7 {
		p.WriteByte(b | 0x80)
		b = byte(length & 0x7f)
	}
	p.WriteByte(b)
	p.Write(between)
	p.Write(deflated)
	p.count++
	return offset
}

// delta appends one on the object at base.
func (p *packWriter) delta(base, source, target int64, instructions []byte) int64 {
	d := binary.AppendUvarint(nil, uint64(source))
	d = append(binary.AppendUvarint(d, uint64(target)), instructions...)
	back := int64(p.Len()) + 12 - base
	rev := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		rev = append([]byte{0x80 | byte(back&0x7f)}, rev...)
	}
	return p.object(packOfs, int64(len(d)), rev, deflate(d))
}

func (p *packWriter) pack() []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), uint32(p.count))
	all := append(head, p.Bytes()...)
	sum := sha1.Sum(all)
	return append(all, sum[:]...)
}

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(b) // to memory
	_ = w.Close()
	return out.Bytes()
}

// nulls is n MiB of zeros, deflated, without the work: the same block again and
// again.
func nulls(mib int) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestCompression) // the level is one
	block := make([]byte, 1<<20)
	_, _ = w.Write(block)
	_ = w.Flush()
	first := bytes.Clone(out.Bytes())
	_, _ = w.Write(block)
	_ = w.Flush()
	again := bytes.Clone(out.Bytes()[len(first):])
	all := append(first, bytes.Repeat(again, mib-1)...)
	all = append(all, 1, 0, 0, 0xff, 0xff) // the last block, empty
	sum := uint32((uint64(mib)<<20)%65521)<<16 | 1
	return binary.BigEndian.AppendUint32(all, sum)
}

func TestTheZerosOfThisTestAreZeros(t *testing.T) {
	r, err := zlib.NewReader(bytes.NewReader(nulls(3)))
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 3<<20), b)
	require.Equal(t, adler32.Checksum(b), binary.BigEndian.Uint32(nulls(3)[len(nulls(3))-4:]))
}

// hostile answers as a server that has one branch and sends what it likes.
func hostile(t *testing.T, tip string, send func(w io.Writer, r *http.Request)) string {
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			line := tip + " refs/heads/main\x00ofs-delta\n"
			_, _ = fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s0000", len(line)+4, line)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, "0008NAK\n")
		send(w, r)
	})) + "/x.git"
}

// resident is the anonymous memory of this process, in bytes.
func resident(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "RssAnon:")
	require.True(t, ok)
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return n << 10
}

// grows holds what the daemon's process needs more while do runs to most bytes.
// It looks twenty times a second.
func grows(t *testing.T, most int64, do func()) {
	t.Helper()
	before, peak := resident(t), int64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, resident(t))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	require.Less(t, max(peak, resident(t))-before, most, "the daemon grew")
}

// Not parallel: it measures the memory of this process.
func TestHostilePacksEndWithinTheirLimits(t *testing.T) {
	o := newOrigin(t)
	const tip = "0123456789012345678901234567890123456789"
	for name, tt := range map[string]struct {
		pack  func() []byte
		limit Limits
		want  string
	}{
		"a blob of 1 GiB": {func() []byte {
			var p packWriter
			p.object(packBlob, 1<<30, nil, nulls(1024))
			return p.pack()
		}, Limits{}, "an object has 1073741824 bytes, at most 268435456 are allowed"},
		"an object that is larger than it says": {func() []byte {
			var p packWriter
			p.object(packBlob, 1<<20, nil, nulls(1024))
			return p.pack()
		}, Limits{}, "cannot store pack"},
		"a commit of 100 MiB": {func() []byte {
			var p packWriter
			p.object(packCommit, 100<<20, nil, nulls(100))
			return p.pack()
		}, Limits{}, "to read one commit needs 104857600 bytes, at most 67108864 are allowed"},
		"a delta that makes 1 GiB": {func() []byte {
			var p packWriter
			base := p.object(packBlob, 1<<20, nil, nulls(1))
			p.delta(base, 1<<20, 1<<30, bytes.Repeat([]byte{0xf0, 0, 0, 0x10}, 1024))
			return p.pack()
		}, Limits{}, "an object has 1073741824 bytes"},
		"a tree by a chain of deltas on a large base": {func() []byte {
			var p packWriter
			base := p.object(packTree, 60<<20, nil, nulls(60))
			for range 40 {
				base = p.delta(base, 60<<20, 60<<20, bytes.Repeat([]byte{0xf0, 0, 0, 0x10}, 60))
			}
			p.delta(base, 60<<20, 10, []byte{0x90, 10})
			return p.pack()
		}, Limits{}, "to read one tree needs"},
		"a chain of long deltas": {func() []byte {
			var p packWriter
			base := p.object(packBlob, 6<<20, nil, nulls(6))
			for range 5 {
				base = p.delta(base, 6<<20, 6<<20, make([]byte, 5<<20))
			}
			return p.pack()
		}, Limits{Object: 8 << 20}, "to read one blob needs"},
		"a delta that is longer than what it makes": {func() []byte {
			var p packWriter
			base := p.object(packBlob, 1<<20, nil, nulls(1))
			p.delta(base, 1<<20, 5, make([]byte, 1<<20))
			return p.pack()
		}, Limits{}, "makes only 5"},
		"more objects than allowed": {func() []byte {
			var p packWriter
			p.count = 200_001
			return p.pack()
		}, Limits{}, "it holds 200001 objects, at most 200000 are allowed"},
		"objects that do not come": {func() []byte {
			var p packWriter
			p.count = 200_000
			return p.pack()
		}, Limits{}, "cannot store pack"},
		"a wrong sum at its end": {func() []byte {
			var p packWriter
			p.object(packBlob, 1, nil, deflate([]byte("x")))
			b := p.pack()
			b[len(b)-1] ^= 1
			return b
		}, Limits{}, "cannot store pack"},
		"a pack that is no pack": {func() []byte { return []byte("hello, I am not a pack at all") }, Limits{}, "cannot store pack"},
		"a blob that the process has no memory for": {func() []byte {
			var p packWriter
			base := p.object(packBlob, 250<<20, nil, nulls(250))
			p.delta(base, 250<<20, 250<<20, bytes.Repeat([]byte{0xf0, 0, 0, 0x10}, 250))
			return p.pack()
		}, Limits{Memory: 448 << 20}, "needed more than 448 MiB of memory (RLIMIT_DATA)"},
		"a file larger than the process may write": {func() []byte {
			var p packWriter
			p.object(packBlob, 1, nil, deflate([]byte("x")))
			return append(p.pack(), make([]byte, 3<<20)...)
		}, Limits{Received: 1 << 20}, "more than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			pack := tt.pack()
			url := hostile(t, tip, func(w io.Writer, _ *http.Request) { _, _ = w.Write(pack) })
			f := o.apart(&ledger{}, at(url), func(c *Config) { c.Limits = tt.limit })
			w := lookAt(t, f)
			began := time.Now()
			grows(t, 64<<20, func() {
				r := w.look(t.Context())
				require.ErrorContains(t, r.Err, "cannot fetch from "+url)
				require.ErrorContains(t, r.Err, tt.want)
			})
			require.Less(t, time.Since(began), 60*time.Second)
			require.False(t, f.mirror.has([20]byte{1}))
			left, err := os.ReadDir(f.mirror.packDir())
			require.NoError(t, err)
			require.Empty(t, left)
			left, err = os.ReadDir(f.child.begin.Stage)
			if err == nil {
				require.Empty(t, left, "a pack that was refused left something behind")
			}
		})
	}
}

func TestHostileServersEndWithinTheirLimits(t *testing.T) {
	o := newOrigin(t)
	const tip = "0123456789012345678901234567890123456789"
	endless := func(w io.Writer, r *http.Request, b []byte) {
		for r.Context().Err() == nil {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	refs := bytes.Repeat(fmt.Appendf(nil, "%04x%s refs/heads/a\n", 4+40+14, tip), 1000)
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("somebody asked elsewhere") }))
	for name, tt := range map[string]struct {
		url   string
		limit Limits
		want  string
	}{
		"a pack without end": {hostile(t, tip, func(w io.Writer, r *http.Request) {
			_, _ = w.Write([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xb0\x80\x80\x80\x08x\x9c"))
			endless(w, r, make([]byte, 64<<10))
		}), Limits{Received: 32 << 20}, "more than the limit"},
		"zeros instead of a pack": {hostile(t, tip, func(w io.Writer, r *http.Request) { endless(w, r, make([]byte, 64<<10)) }), Limits{Received: 32 << 20}, "more than the limit"},
		"refs without end": {serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			line := tip + " refs/heads/main\x00ofs-delta\n"
			_, _ = fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s", len(line)+4, line)
			endless(w, r, refs)
		})) + "/x.git", Limits{Adverts: 16 << 20}, "the remote sends too much"},
		"headers without end": {serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(c, "X-%d: %0512d\r\n", i, i); err != nil {
					return
				}
			}
		})) + "/x.git", Limits{}, "server response headers exceeded"},
		"silence":               {"http://" + deaf(t, "") + "/x.git", Limits{Idle: 300 * time.Millisecond}, "timeout"},
		"silence after a start": {"http://" + deaf(t, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n") + "/x.git", Limits{Idle: 300 * time.Millisecond}, "timeout"},
		"a way to another host": {serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.RequestURI(), http.StatusMovedPermanently)
		})) + "/x.git", Limits{}, "the remote sends us to another place, " + elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			f := o.apart(&ledger{}, at(tt.url), func(c *Config) { c.Limits = tt.limit })
			w := lookAt(t, f)
			began := time.Now()
			grows(t, 64<<20, func() {
				r := w.look(t.Context())
				require.ErrorContains(t, r.Err, tt.want)
			})
			require.Less(t, time.Since(began), 60*time.Second)
		})
	}
}

func TestAFetchOfItsOwnProcessStopsAtItsLimits(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for i := range 5 {
		o.write(fmt.Sprintf("f%d", i), fmt.Sprintf("file %d", i))
	}
	o.signed("one")
	url := serve(t, o.httpBackend()) + "/remote.git"
	for name, tt := range map[string]struct {
		url   string
		limit Limits
	}{
		"bytes over http":     {url, Limits{Received: 100}},
		"objects over http":   {url, Limits{Objects: 3}},
		"an object over http": {url, Limits{Object: 3}},
		"objects from a file": {o.url(), Limits{Received: 100, Objects: 3}},
		"refs over http":      {url, Limits{Adverts: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			r := lookAt(t, o.apart(&ledger{}, at(tt.url), func(c *Config) { c.Limits = tt.limit })).look(t.Context())
			require.ErrorIs(t, r.Err, errLimit)
		})
	}
}

func TestTheLimitsAreThoseOfTheSpecification(t *testing.T) {
	require.Equal(t, Limits{
		Received: 512 << 20, Objects: 200_000, Object: 256 << 20, Blob: 64 << 20, Adverts: 64 << 20,
		Memory: 1 << 30, Target: 768 << 20, File: 1 << 30, Descriptors: 256,
		Update: 2 * time.Minute, Clone: 30 * time.Minute, Idle: 30 * time.Second,
		Packs: 10, PokeEvery: time.Second, MaxBackoff: 15 * time.Minute,
	}, Limits{}.withDefaults())
	c := newChild(Config{Dir: "/x/git/prod", Limits: Limits{}.withDefaults()}, address{}, nil)
	require.EqualValues(t, 1<<30, c.begin.File)
	require.Equal(t, "/x/git/prod~incoming", c.begin.Stage)
}

func TestAPackThatLiesBesideABareRepositoryIsMeasuredAsOneThatIsSent(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	o.git(o.bare, "repack", "-qad")
	var p packWriter
	p.object(packBlob, 1<<30, nil, nulls(1024))
	b := p.pack()
	name := fmt.Sprintf("pack-%x", b[len(b)-20:])
	dir := filepath.Join(o.bare, "objects", "pack")
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pack"), b, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".idx"), []byte("x"), 0o600))
	r := lookAt(t, o.apart(&ledger{})).look(t.Context())
	require.ErrorContains(t, r.Err, "an object has 1073741824 bytes")
}

func TestALooseObjectOfAGibibyteIsNeitherReadNorInTheWay(t *testing.T) {
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	// As it lies in a repository: a head, then the content, all deflated.
	head := deflate([]byte("blob 1073741824\x00"))
	sum := strings.Repeat("b", 40)
	file := filepath.Join(o.bare, "objects", sum[:2], sum[2:])
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, append(head, nulls(1024)...), 0o600))
	f := o.apart(a)
	w := lookAt(t, f)
	grows(t, 64<<20, func() {
		require.NotNil(t, w.must().Commit)
		_, _, err := f.mirror.Raw(ring.SHA(sum))
		require.ErrorIs(t, err, errTooBig)
	})
}

func TestARangeOf10001CommitsIsRefusedInBoundedTimeAndMemory(t *testing.T) {
	o, a := newOrigin(t), &ledger{}
	base := o.signed("one")
	url := serve(t, o.httpBackend()) + "/remote.git"
	f := o.apart(a, at(url))
	w := lookAt(t, f)
	w.must()

	var in bytes.Buffer
	for i := range 10_001 {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata 1\nx\n", 1_700_000_000+i)
		if i == 0 {
			fmt.Fprintf(&in, "from %s\n", base)
		}
		fmt.Fprintf(&in, "M 100644 inline f\ndata %d\n%d\n", len(strconv.Itoa(i)), i)
	}
	cmd := exec.Command("git", "-C", o.bare, "fast-import", "--quiet", "--force")
	cmd.Env, cmd.Stdin = gitEnv(), &in
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	in = bytes.Buffer{}

	began := time.Now()
	grows(t, 96<<20, func() {
		r := w.must()
		require.Equal(t, ring.RangeTooLarge, r.Refusal.Code)
		require.Equal(t, base, r.Commit.SHA)
	})
	require.Less(t, time.Since(began), 60*time.Second)
	require.Equal(t, base, a.anchor.SHA)
}
