package secrets

import (
	"fmt"
	"strconv"
	"time"
)

// Limits of a file. Each is far above what people encrypt, and low enough that a crafted
// file costs nothing.
const (
	maxFile   = 1 << 20
	maxValues = 10_000
	maxDepth  = 64
)

// branch is a mapping in the order of the file. SOPS hashes values in that order.
type branch []entry

// list is a sequence. Its values have the path of the list itself.
type list []entry

// entry is one value: string, int, float64, bool, time.Time, nil, branch or list. In a list
// it has no name.
type entry struct {
	name  string
	line  int // counts from 1; 0 is unknown
	value any
}

func (b branch) find(name string) (entry, bool) {
	for _, e := range b {
		if e.name == name {
			return e, true
		}
	}
	return entry{}, false
}

// without is the mapping less one name.
func (b branch) without(name string) branch {
	out := make(branch, 0, len(b))
	for _, e := range b {
		if e.name != name {
			out = append(out, e)
		}
	}
	return out
}

// growing counts the values of a file while it is read.
type growing struct{ values int }

// add has one more value at a depth, and refuses what is beyond the limits.
func (g *growing) add(depth, line int) error {
	g.values++
	switch {
	case g.values > maxValues:
		return faultOfFile(line, fmt.Sprintf("holds more than %d values", maxValues), "split it")
	case depth > maxDepth:
		return faultOfFile(line, fmt.Sprintf("is more than %d levels deep", maxDepth), "make it flatter")
	}
	return nil
}

// textOf is a value as SOPS hashes and encrypts it; false for what holds other values, and
// for null, which is neither hashed nor encrypted.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	case time.Time:
		text, err := v.MarshalText()
		return string(text), err == nil
	}
	return "", false
}
