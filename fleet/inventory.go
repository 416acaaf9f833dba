package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/wording"
)

// Where an inventory lies: below the user's home, else in a clone.
const (
	HomeFile  = ".config/gitring/fleet.yaml"
	CloneFile = ".gitring/fleet.yaml"
)

// inventoryLimit is far above any inventory and far below what would hurt.
const inventoryLimit = 1 << 20

// Inventory is the hosts by name.
type Inventory struct {
	File  string
	hosts map[string]written
	// foreign reports whether a repository wrote it: it may not choose where ssh goes.
	foreign bool
}

// written is one host as the file has it.
type written struct {
	At    string            `yaml:"at"`
	Facts map[string]string `yaml:"facts"`
}

// Host is one of an inventory.
type Host struct {
	Name  string
	At    Address
	Facts map[string]string
}

// hostName is what a host is called in labels and commit statuses.
var hostName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Find reads the inventory of the user's home, or else that of the clone around dir.
// The error is fs.ErrNotExist where there is none.
func Find(home, dir string) (*Inventory, error) {
	if home != "" {
		inv, err := read(filepath.Join(home, HomeFile), false)
		if !errors.Is(err, fs.ErrNotExist) {
			return inv, err
		}
	}
	root, err := rootOf(dir)
	if err != nil {
		return nil, err
	}
	return read(filepath.Join(root, CloneFile), true)
}

// rootOf is the folder of a clone that a folder lies in.
func rootOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("cannot find a clone: %w", fs.ErrNotExist)
		}
		dir = filepath.Dir(dir)
	}
}

func read(path string, foreign bool) (*Inventory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the inventory: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(f, inventoryLimit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the inventory: %w", err)
	}
	inv, err := Parse(path, body)
	if err != nil {
		return nil, err
	}
	inv.foreign = foreign
	return inv, nil
}

// Parse reads an inventory: hosts: {edge-1: {at: ssh://edge-1, facts: {tier: edge}}}.
func Parse(path string, body []byte) (*Inventory, error) {
	wrong := func(format string, args ...any) error {
		return &exit.Failure{
			Code: exit.Error, Says: "cannot read the inventory " + path + ": " + fmt.Sprintf(format, args...),
			Hint: "hosts: {edge-1: {at: ssh://edge-1, facts: {tier: edge}}}",
		}
	}
	if len(body) > inventoryLimit {
		return nil, wrong("it is larger than 1 MiB")
	}
	var doc struct {
		Hosts map[string]written `yaml:"hosts"`
		Waves yaml.Node          `yaml:"waves"`
	}
	d := yaml.NewDecoder(bytes.NewReader(body))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrong("%s", strings.Join(strings.Fields(wording.SafeLine(err.Error())), " "))
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Hosts)) {
		if !hostName.MatchString(name) {
			return nil, wrong("%q is no name of a host", name)
		}
		if at := doc.Hosts[name].At; at != "" {
			if _, err := ParseAddress(at); err != nil {
				return nil, wrong("host %s: %v", name, err)
			}
		}
	}
	return &Inventory{File: path, hosts: doc.Hosts}, nil
}

// Host is the one of a name; false where there is none.
func (inv *Inventory) Host(name string) (Host, bool) {
	w, ok := inv.hosts[name]
	if !ok {
		return Host{}, false
	}
	at := w.At
	if at == "" {
		at = Scheme + name
	}
	a, _ := ParseAddress(at) // judged when it was read
	a.Foreign = inv.foreign
	return Host{Name: name, At: a, Facts: w.Facts}, true
}

// Names are those of all hosts, sorted.
func (inv *Inventory) Names() []string { return slices.Sorted(maps.Keys(inv.hosts)) }

// Match is every host that a pattern names: words between commas, with * for any run of
// characters. A word that names no host is an error.
func (inv *Inventory) Match(pattern string) ([]Host, error) {
	chosen := map[string]bool{}
	for word := range strings.SplitSeq(pattern, ",") {
		found := false
		for name := range inv.hosts {
			if matches(strings.TrimSpace(word), name) {
				chosen[name], found = true, true
			}
		}
		if !found {
			return nil, &exit.Failure{
				Code: exit.NotFound, Says: fmt.Sprintf("no host %q in %s", word, inv.File),
				Hint: "it has " + strings.Join(inv.Names(), ", "),
			}
		}
	}
	var hosts []Host
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		h, _ := inv.Host(name)
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// matches reports whether a name is what a pattern asks for; * is any run of characters.
func matches(pattern, name string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for i := range len(rest) + 1 {
		if matches(tail, rest[i:]) {
			return true
		}
	}
	return false
}
