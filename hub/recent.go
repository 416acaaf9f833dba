package hub

import (
	"cmp"
	"slices"
	"sync"

	"github.com/gitring/gitring/api"
)

// recentLines and recentBytes bound what a stream can go back to, of all rows together.
const (
	recentLines = 2000
	recentBytes = 2 << 20
)

// recent are the newest lines of all rows, with numbers of this process without gaps, from 1.
type recent struct {
	mu       sync.Mutex // guards what follows
	last     int64
	rows     map[string]*recentRow // by the id of a token
	appended chan struct{}
}

// recentRow are the newest lines of a row.
type recentRow struct {
	lines   []api.HostEvent // of which the row is Key
	bytes   int
	dropped int64 // the number of the newest that is not there any more
}

func newRecent() *recent {
	return &recent{rows: map[string]*recentRow{}, appended: make(chan struct{})}
}

func (r *recent) add(lines []api.HostEvent) {
	if len(lines) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range lines {
		r.last++
		l.Number = r.last
		of := r.rows[l.Key]
		if of == nil {
			of = &recentRow{}
			r.rows[l.Key] = of
		}
		of.lines = append(of.lines, l)
		of.bytes += len(l.Event)
	}
	r.trim()
	close(r.appended)
	r.appended = make(chan struct{})
}

// trim drops the oldest of the row that has most, so that one that tells much costs the others
// nothing.
func (r *recent) trim() {
	lines, bytes := 0, 0
	for _, of := range r.rows {
		lines, bytes = lines+len(of.lines), bytes+of.bytes
	}
	drop := func(most *recentRow) {
		gone := most.lines[0]
		most.lines[0] = api.HostEvent{}
		most.lines = most.lines[1:]
		most.bytes -= len(gone.Event)
		most.dropped = gone.Number
		lines, bytes = lines-1, bytes-len(gone.Event)
	}
	for bytes > recentBytes {
		drop(r.largest(func(of *recentRow) int { return of.bytes }))
	}
	for lines > recentLines {
		drop(r.largest(func(of *recentRow) int { return len(of.lines) }))
	}
}

// largest is a row of which there is most.
func (r *recent) largest(size func(of *recentRow) int) (most *recentRow) {
	for _, of := range r.rows {
		if most == nil || size(of) > size(most) {
			most = of
		}
	}
	return most
}

// forget drops all of a row.
func (r *recent) forget(row string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, row)
}

// after are at most limit lines of a row, or of all for "", after a number; last is the newest
// number of all, and missing why some before it are not there any more.
func (r *recent) after(number int64, row string, limit int) (lines []api.HostEvent, last int64, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit == 0 {
		return nil, r.last, ""
	}
	for id, of := range r.rows {
		if row != "" && row != id {
			continue
		}
		if of.dropped > number {
			return nil, r.last, "lines after it are not kept any more"
		}
		i, _ := slices.BinarySearchFunc(of.lines, number+1, func(l api.HostEvent, n int64) int { return cmp.Compare(l.Number, n) })
		lines = append(lines, of.lines[i:min(len(of.lines), i+limit)]...)
	}
	slices.SortFunc(lines, func(a, b api.HostEvent) int { return cmp.Compare(a.Number, b.Number) })
	return lines[:min(len(lines), limit)], r.last, ""
}

func (r *recent) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appended
}
