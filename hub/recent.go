package hub

import (
	"slices"
	"sync"

	"github.com/gitring/gitring/api"
)

// recentLines and recentBytes bound what a stream can go back to.
const (
	recentLines = 2000
	recentBytes = 2 << 20
)

// recent are the newest lines of all rows, with numbers of this process without gaps, from 1.
type recent struct {
	mu       sync.Mutex // guards what follows
	last     int64
	lines    []api.HostEvent // of which the row is Key
	bytes    int
	appended chan struct{}
}

func newRecent() *recent { return &recent{appended: make(chan struct{})} }

func (r *recent) add(lines []api.HostEvent) {
	if len(lines) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range lines {
		r.last++
		l.Number = r.last
		r.lines = append(r.lines, l)
		r.bytes += len(l.Event)
	}
	n := 0
	for n < len(r.lines) && (len(r.lines)-n > recentLines || r.bytes > recentBytes) {
		r.bytes -= len(r.lines[n].Event)
		n++
	}
	if n > 0 {
		r.lines = slices.Clone(r.lines[n:])
	}
	close(r.appended)
	r.appended = make(chan struct{})
}

// after are at most limit lines of a row, or of all for "", after a number; last is the newest
// number of all, and missing why some before it are not there any more.
func (r *recent) after(number int64, row string, limit int) (lines []api.HostEvent, last int64, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit == 0 {
		return nil, r.last, ""
	}
	first := r.last - int64(len(r.lines)) + 1
	if number+1 < first {
		return nil, r.last, "lines after it are not kept any more"
	}
	for i := max(0, number+1-first); i < int64(len(r.lines)) && len(lines) < limit; i++ {
		if l := r.lines[i]; row == "" || l.Key == row {
			lines = append(lines, l)
		}
	}
	return lines, r.last, ""
}

func (r *recent) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appended
}
