package proxy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of the one folder of the host that a front can write to. It holds sockets, a few for
// each proxy that runs. A limit of the container keeps every file there empty.
const (
	runMost   = 256   // names, of an honest front whose proxies end again and again
	runOthers = 16    // of them that no front makes
	runOnce   = 10000 // names that one look removes at most
	runEvery  = 10 * time.Second
)

// isRunName reports whether a front makes such a name: its own socket, and those of its processes.
func isRunName(name string) bool {
	process, kind, _ := strings.Cut(name, ".")
	return name == ring.FrontSocket || len(process) == 16 && isProcessName(process) && (kind == "sock" || kind == "new")
}

// tidyRun removes from the run folder of a front what no front makes, and reports whether the
// front has filled it: then it was taken over.
func tidyRun(dir string) (filled bool) {
	root, err := os.OpenRoot(dir) // nothing in it leads out
	if err != nil {
		return false // it is not there yet
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return false
	}
	defer d.Close()
	names, others := 0, 0
	for names < runOnce {
		entries, err := d.ReadDir(512)
		for _, e := range entries {
			names++
			made := isRunName(e.Name()) && e.Type() == fs.ModeSocket
			if !made {
				others++
			}
			filled = filled || e.IsDir() || names > runMost || others > runOthers
			if !made || names > runMost {
				_ = root.RemoveAll(e.Name()) // what stays is met again
			}
		}
		if err != nil || len(entries) == 0 {
			break
		}
	}
	return filled
}

// suspicion is what is held against one start of a front's container, for as long as that runs.
type suspicion struct {
	looked time.Time
	filled bool
}

// wrong is why nothing is believed of a front, "" where it is.
func (c *Client) wrong(at ring.FrontAt, s *suspicion) string {
	if now := time.Now(); now.Sub(s.looked) >= runEvery {
		s.looked = now
		s.filled = tidyRun(filepath.Join(c.fronts, ring.FrontID(at.Name), "run")) || s.filled
	}
	if s.filled {
		return "fills the folder of its socket"
	}
	c.mu.Lock()
	since := c.refused[at.Container].since
	c.mu.Unlock()
	if !since.IsZero() && time.Since(since) > refuseMost {
		return "has taken no table for " + refuseMost.String()
	}
	return ""
}

// refusal is since when a front takes no table, and the one that it was sent last.
type refusal struct {
	since      time.Time
	generation int64
}

// refuses remembers since when a front takes no table, until it takes one.
func (c *Client) refuses(at ring.FrontAt, generation int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.refused, at.Container)
		return
	}
	r := refusal{c.refused[at.Container].since, generation}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	c.refused[at.Container] = r
}

// took forgets a refusal where the front has the table all the same: its answer was lost, or
// said that an older proxy was slow. Nothing is sent again then.
func (c *Client) took(at ring.FrontAt, generation int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.refused[at.Container]; ok && r.generation == generation {
		delete(c.refused, at.Container)
	}
}

var errNoTable = errors.New("it has a table and does not say which")
