package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/ring"
)

const (
	// statusFile is what a row was told last. It is written when the host says something else, and
	// rewriteAfter so long, so that a hub that was started anew knows when a host was heard.
	statusFile   = "status.json"
	rewriteAfter = 30 * time.Second
	// subjectsKept is of how many commits a row remembers the subject.
	subjectsKept = 100
)

// kept is the file of a row's status.
type kept struct {
	Host    string        `json:"host"`
	Gitring string        `json:"gitring"`
	Seen    time.Time     `json:"seen"`  // the hub's clock
	Ahead   time.Duration `json:"ahead"` // the host's clock against it
	Since   time.Time     `json:"since"` // of the word
	// Gap is when lines were last found missing, and why; zero is never.
	Gap    time.Time `json:"gap,omitzero"`
	GapWhy string    `json:"gap_why,omitempty"`
	// Subjects are of commits that the host was at.
	Subjects map[ring.SHA]string `json:"subjects,omitempty"`
	Status   json.RawMessage     `json:"status"`
}

// row is what one token told of its host.
type row struct {
	id  string // of the token
	dir string

	mu     sync.Mutex // guards what follows
	days   *days
	cursor ring.Cursor
	last   int64  // the seq of the newest event; 0 before the first
	now    kept   // without its status
	tag    string // of what it said last
	said   summary
	wrote  time.Time // when the file of the status was written
	whole  string    // the tag of that file, when its remotes were asked last among it
	full   bool      // there was no room for what it told last
	behind bool      // the file is of an older status: the disk was full
	change int64     // grows with each change that people see
}

// summary is what the page of all hosts shows of a status.
type summary struct {
	word, says string
	commit     ring.SHA
	subject    string
	sources    []api.HostSource
}

var commitName = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// cutWords is the beginning of what a host says, as far as it is kept in memory.
func cutWords(text string) string {
	if len(text) <= mostWords {
		return text
	}
	return strings.ToValidUTF8(text[:mostWords], "") + "…"
}

// summed is the summary of a status.
func summed(st *ring.Status) summary {
	var s summary
	at := 0
	s.word, s.says, at = pages.HostWord(st)
	s.says = cutWords(s.says)
	for i := range st.Sources {
		src := &st.Sources[i]
		commit := src.Commit
		if commit == "" {
			commit = src.Trusted
		}
		if !commitName.MatchString(string(commit)) {
			commit = "" // pages link to it
		}
		s.sources = append(s.sources, api.HostSource{
			Name: cutWords(src.Name), Branch: cutWords(src.Branch), Sync: src.Sync, Commit: commit, Subject: cutWords(src.Subject), Reason: cutWords(src.Reason),
		})
	}
	if len(s.sources) > 0 {
		s.commit, s.subject = s.sources[at].Commit, s.sources[at].Subject
	}
	return s
}

// errNoLine is of a journal that was read, and whose last line is no line of a journal.
var errNoLine = errors.New("its last line is none of a journal")

// loadRow reads what is kept of a token's host. What cannot be read of its status is as if it was
// never told; its journal stays, and so does its cursor.
func loadRow(dir, id string) (*row, error, error) {
	r := &row{id: id, dir: dir}
	d, last, err := openDays(dir)
	if err != nil {
		return nil, nil, err
	}
	r.days = d
	if last != nil {
		var e ring.Event
		if err := json.Unmarshal(last.Event, &e); err != nil {
			return nil, nil, fmt.Errorf("cannot read the journal in %s: %w: %w", dir, errNoLine, err)
		}
		r.cursor, r.last = ring.Cursor{Seq: e.Seq, Hash: last.Hash}, e.Seq
	}
	k, st, err := readKept(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil, nil
	}
	if err != nil {
		return r, err, nil
	}
	r.now, r.said, r.tag, r.whole, r.wrote = *k, summed(st), api.ReportTag(st), api.StatusTag(st), k.Seen
	r.now.Status = nil
	return r, nil, nil
}

// readKept reads the file of a status.
func readKept(dir string) (*kept, *ring.Status, error) {
	raw, err := os.ReadFile(filepath.Join(dir, statusFile))
	if err != nil {
		return nil, nil, err
	}
	k, st := &kept{}, &ring.Status{}
	if err := json.Unmarshal(raw, k); err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", filepath.Join(dir, statusFile), err)
	}
	if err := json.Unmarshal(k.Status, st); err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", filepath.Join(dir, statusFile), err)
	}
	return k, st, nil
}
