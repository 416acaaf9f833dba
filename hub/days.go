package hub

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// record is a line of a day's file: a line of the host's journal, as it came.
type record struct {
	At time.Time `json:"at"` // when it came, by the hub's clock
	// Gap is why the line before it is missing; "" where it is not.
	Gap   string          `json:"gap,omitempty"`
	Hash  string          `json:"hash"`
	Event json.RawMessage `json:"event"`
}

// days are the journal of a row: a file for each day on which lines came. Whoever appends, trims or
// sums up holds the lock of the row; reading needs none.
type days struct {
	dir   string
	names []string // sorted, such as 2026-11-27
	sizes map[string]int64
}

const dayEnd = ".ndjson"

// openDays cuts what was not written whole, and gives the last line that was.
func openDays(dir string) (*days, *record, error) {
	d := &days{dir: dir, sizes: map[string]int64{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), dayEnd)
		if _, err := time.Parse(time.DateOnly, name); !is || err != nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the journal: %w", err)
		}
		d.names, d.sizes[name] = append(d.names, name), info.Size()
	}
	slices.Sort(d.names)
	for len(d.names) > 0 {
		name := d.names[len(d.names)-1]
		last, whole, err := lastOf(d.file(name))
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the journal: %w", err)
		}
		if whole < d.sizes[name] {
			if err := cut(d.file(name), whole); err != nil {
				return nil, nil, fmt.Errorf("cannot mend the journal: %w", err)
			}
			d.sizes[name] = whole
		}
		if last != nil {
			return d, last, nil
		}
		if err := os.Remove(d.file(name)); err != nil {
			return nil, nil, fmt.Errorf("cannot mend the journal: %w", err)
		}
		d.names = d.names[:len(d.names)-1]
		delete(d.sizes, name)
	}
	return d, nil, nil
}

func (d *days) file(name string) string { return filepath.Join(d.dir, name+dayEnd) }

// lastOf is the last line of a file that can be read, and where it ends. What follows is not whole.
func lastOf(file string) (last *record, whole int64, err error) {
	err = each(file, func(line []byte, end int64) bool {
		r := &record{}
		if json.Unmarshal(line, r) != nil {
			return false
		}
		last, whole = r, end
		return true
	})
	return last, whole, err
}

// each gives the whole lines of a file, each with where it ends, until one is not wanted. A line is
// good until the next.
func each(file string, take func(line []byte, end int64) bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	return eachOf(f, take)
}

// eachOf gives the whole lines of what is read.
func eachOf(from io.Reader, take func(line []byte, end int64) bool) error {
	in := bufio.NewReaderSize(from, 64<<10)
	var end int64
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, line...)
			continue
		case errors.Is(err, io.EOF): // what is left has no end
			return nil
		case err != nil:
			return err
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = nil
		}
		end += int64(len(line))
		if !take(bytes.TrimSuffix(line, []byte("\n")), end) {
			return nil
		}
	}
}

// cut shortens a file for good.
func cut(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// today is the file that lines go to now. A clock that was set back makes no earlier file.
func (d *days) today(now time.Time) string {
	day := now.UTC().Format(time.DateOnly)
	if n := len(d.names); n > 0 && d.names[n-1] > day {
		return d.names[n-1]
	}
	return day
}

// append writes lines whole and to the disk, or none of them.
func (d *days) append(now time.Time, lines []byte) (undo func() error, err error) {
	name := d.today(now)
	before, there := d.sizes[name]
	f, err := os.OpenFile(d.file(name), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(lines, before)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Truncate(before), f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(err, cut(d.file(name), before))
	}
	if !there {
		if err := disk.Sync(d.dir); err != nil {
			return nil, errors.Join(err, os.Remove(d.file(name)))
		}
		d.names = append(d.names, name)
	}
	d.sizes[name] = before + int64(len(lines))
	return func() error {
		d.sizes[name] = before
		return cut(d.file(name), before)
	}, nil
}

// bytes is how much all files hold.
func (d *days) bytes() (sum int64) {
	for _, n := range d.sizes {
		sum += n
	}
	return sum
}

// trim removes days before one, and the oldest while there are more bytes than most. The newest
// stays: its last line is the cursor.
func (d *days) trim(before string, most int64) error {
	for len(d.names) > 1 && (d.names[0] < before || d.bytes() > most) {
		if err := os.Remove(d.file(d.names[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot trim the journal: %w", err)
		}
		delete(d.sizes, d.names[0])
		d.names = d.names[1:]
	}
	return nil
}

// pageBytes bounds how much of a journal is read for one page: about 20,000 of its newest lines.
const pageBytes = 8 << 20

// newest are the last n events of files that are wanted, the oldest first, as far as the newest
// pageBytes have them. A file that was trimmed meanwhile is left out.
func newest(dir string, names []string, n int, want func(*ring.Event) bool) ([]ring.Event, error) {
	var out []ring.Event
	left := int64(pageBytes)
	for _, name := range slices.Backward(names) {
		var of []ring.Event
		read, err := lastBytes(filepath.Join(dir, name+dayEnd), left, func(line []byte) bool {
			var r record
			var e ring.Event
			if json.Unmarshal(line, &r) != nil || json.Unmarshal(r.Event, &e) != nil {
				return true
			}
			if want(&e) {
				of = append(of, e)
			}
			if len(of) > 2*n { // what is before the last n is not wanted
				of = slices.Clone(of[len(of)-n:])
			}
			return true
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read the journal: %w", err)
		}
		out = append(of, out...)
		if len(out) >= n {
			return out[len(out)-n:], nil
		}
		if left -= read; left <= 0 {
			break
		}
	}
	return out, nil
}

// lastBytes gives the whole lines among the last bytes of a file, and says how many bytes it read.
func lastBytes(file string, most int64, take func(line []byte) bool) (read int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	from := max(0, info.Size()-most)
	half := from > 0 // what it begins with is the end of a line, or a whole one: it is left out either way
	err = eachOf(io.NewSectionReader(f, from, info.Size()-from), func(line []byte, _ int64) bool {
		if half {
			half = false
			return true
		}
		return take(line)
	})
	return info.Size() - from, err
}
