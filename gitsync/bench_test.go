package gitsync

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// large makes a bare repository of 20,000 files and 5,000 commits, 1 or 2 s of
// git fast-import.
func large(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "large.git")
	out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", dir).CombinedOutput()
	require.NoError(b, err, "%s", out)
	fastImport(b, dir, func(w io.Writer) {
		for c := range 5000 {
			commitHead(w, c)
			if c > 0 {
				fileOf(w, c*7919%20000, c)
				continue
			}
			for i := range 20000 {
				fileOf(w, i, 0)
			}
		}
	})
	return dir
}

func commitHead(w io.Writer, c int) {
	text := fmt.Sprintf("commit %d", c)
	_, _ = fmt.Fprintf(w, "commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata %d\n%s\n", 1_700_000_000+c, len(text), text)
	if c >= 5000 {
		_, _ = io.WriteString(w, "from refs/heads/main^0\n")
	}
}

func fileOf(w io.Writer, i, c int) {
	text := fmt.Sprintf("file %d at %d\n", i, c)
	_, _ = fmt.Fprintf(w, "M 100644 inline d%03d/f%05d.yaml\ndata %d\n%s\n", i%200, i, len(text), text)
}

func fastImport(b *testing.B, dir string, feed func(io.Writer)) {
	b.Helper()
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	w := bufio.NewWriter(in)
	feed(w)
	require.NoError(b, w.Flush())
	require.NoError(b, in.Close())
	require.NoError(b, cmd.Wait())
}

func followLarge(b *testing.B, url string) *watch {
	b.Helper()
	f, err := New(Config{
		Name: "prod", URL: url, Branch: "main", Trust: TrustConfig{Mode: Disabled},
		Dir: filepath.Join(b.TempDir(), "mirror"),
	}, &ledger{}, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	b.Cleanup(f.mirror.rest)
	b.Cleanup(f.remote.rest)
	return &watch{Follower: f}
}

func (w *watch) mustLook(b *testing.B) {
	if r := w.look(b.Context()); r.Err != nil || r.Commit == nil || r.Commit.SHA != r.Tip {
		b.Fatalf("%+v", r)
	}
}

// BenchmarkLook is one look at a repository of 20,000 files and 5,000 commits:
// one that finds nothing new, one that finds a push of one file, and the first.
func BenchmarkLook(b *testing.B) {
	dir := large(b)
	for _, remote := range []struct{ name, url string }{
		{"file", "file://" + dir}, {"http", serve(b, httpBackend(b, filepath.Dir(dir))) + "/large.git"},
	} {
		b.Run(remote.name+"/nothing new", func(b *testing.B) {
			w := followLarge(b, remote.url)
			w.mustLook(b)
			b.ReportAllocs()
			for b.Loop() {
				w.mustLook(b)
			}
		})
		b.Run(remote.name+"/one push", func(b *testing.B) {
			w := followLarge(b, remote.url)
			w.mustLook(b)
			n := 5000
			for b.Loop() {
				b.StopTimer()
				n++
				fastImport(b, dir, func(out io.Writer) { commitHead(out, n); fileOf(out, n%20000, n) })
				b.StartTimer()
				w.mustLook(b)
				b.StopTimer()
				w.tidy(b.Context()) // Run does it after the report
				b.StartTimer()
			}
		})
		b.Run(remote.name+"/clone", func(b *testing.B) {
			for b.Loop() {
				followLarge(b, remote.url).mustLook(b)
			}
		})
	}
}
