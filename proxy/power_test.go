package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var errPower = errors.New("the power is gone")

// inode is a file or a folder of a powerDisk: as it is, and as it is for sure after a loss.
type inode struct {
	body, synced   string
	names, durable map[string]*inode // nil for a file
}

func newFolder() *inode { return &inode{names: map[string]*inode{}, durable: map[string]*inode{}} }

// powerDisk is a disk whose power goes before its n-th step.
type powerDisk struct {
	root  *inode
	left  int
	temps int
}

func (d *powerDisk) step() error {
	if d.left--; d.left < 0 {
		return errPower
	}
	return nil
}

func (d *powerDisk) at(name string) *inode {
	in := d.root
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if in == nil || part == "" {
			return in
		}
		in = in.names[part]
	}
	return in
}

func (d *powerDisk) folder(name string) (map[string]*inode, string) {
	return d.at(filepath.Dir(name)).names, filepath.Base(name)
}

func (d *powerDisk) Mkdir(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	names, base := d.folder(name)
	if names[base] != nil {
		return os.ErrExist
	}
	names[base] = newFolder()
	return nil
}

func (d *powerDisk) Temp(dir string) (tableFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	d.temps++
	f := &powerFile{disk: d, name: filepath.Join(dir, fmt.Sprint("tmp-", d.temps)), in: &inode{}}
	names, base := d.folder(f.name)
	names[base] = f.in
	return f, nil
}

func (d *powerDisk) Rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	names, base := d.folder(from)
	into, as := d.folder(to)
	into[as] = names[base]
	delete(names, base)
	return nil
}

func (d *powerDisk) Remove(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	names, base := d.folder(name)
	delete(names, base)
	return nil
}

func (d *powerDisk) SyncFolder(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	in := d.at(name)
	in.durable = map[string]*inode{}
	for base, one := range in.names {
		in.durable[base] = one
	}
	return nil
}

type powerFile struct {
	disk *powerDisk
	name string
	in   *inode
}

func (f *powerFile) Name() string            { return f.name }
func (f *powerFile) Chmod(fs.FileMode) error { return f.disk.step() }
func (f *powerFile) Chown(int, int) error    { return f.disk.step() }
func (f *powerFile) Close() error            { return f.disk.step() }

func (f *powerFile) Write(b []byte) (int, error) {
	if err := f.disk.step(); err != nil {
		return 0, err
	}
	f.in.body += string(b)
	return len(b), nil
}

func (f *powerFile) Sync() error {
	if err := f.disk.step(); err != nil {
		return err
	}
	f.in.synced = f.in.body
	return nil
}

// leftOf is what a loss of power leaves of a file: whether the names and the bytes that were
// not synced came to the disk all the same is chance, each by itself.
func (d *powerDisk) leftOf(name string, names, bytes bool) (body string, there bool) {
	in := d.root
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if names {
			in = in.names[part]
		} else {
			in = in.durable[part]
		}
		if in == nil {
			return "", false
		}
	}
	if bytes {
		return in.body, true
	}
	return in.synced, true
}

// Whenever the power goes while a table is written, the front starts with the one of before or
// with the new one, whole; once the daemon has sent the new one, with that.
func TestALossOfPowerLeavesATableWhole(t *testing.T) {
	const fronts = "/state/fronts"
	at := ring.FrontAt{Name: "app-web-front-1-x"}
	name := filepath.Join(fronts, ring.FrontID(at.Name), "table", ring.FrontTableFile)
	for _, first := range []bool{true, false} {
		done := false
		for n := 0; !done; n++ {
			require.Less(t, n, 100)
			for _, names := range []bool{false, true} {
				for _, bytes := range []bool{false, true} {
					d := &powerDisk{root: newFolder(), left: 1000}
					require.NoError(t, d.Mkdir("/state"))
					require.NoError(t, d.SyncFolder("/"))
					if !first {
						require.NoError(t, writeTable(d, fronts, at, []byte("old"), 1))
					}
					d.left = n
					err := writeTable(d, fronts, at, []byte("new"), 1)
					body, there := d.leftOf(name, names, bytes)
					switch when := fmt.Sprintf("first %t, power gone before step %d, names %t, bytes %t", first, n, names, bytes); {
					case err == nil:
						require.Equal(t, "new", body, when)
						done = true
					case first && !there:
					case first:
						require.Equal(t, "new", body, when)
					default:
						require.Contains(t, []string{"old", "new"}, body, when)
					}
				}
			}
		}
	}
}
