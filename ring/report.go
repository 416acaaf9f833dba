package ring

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cursor names a line of a journal: its number, and the beginning of its hash, of 8 hex digits.
// Another database has another line under the same number. The zero value is before the first.
type Cursor struct {
	Seq  int64
	Hash string
}

// noHash stands for the hash of no line.
const noHash = "00000000"

// CursorLimit is the most bytes that a cursor has as text.
const CursorLimit = 28

// String is the cursor as it is written: <seq>.<8 hex>.
func (c Cursor) String() string {
	if c.Seq == 0 {
		return "0." + noHash
	}
	return fmt.Sprintf("%d.%s", c.Seq, c.Hash)
}

// ParseCursor reads a cursor, and takes nothing beside it.
func ParseCursor(text string) (Cursor, bool) {
	number, hash, _ := strings.Cut(text, ".")
	seq, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || seq < 0 || strconv.FormatInt(seq, 10) != number: // as String writes it
		return Cursor{}, false
	case len(hash) != len(noHash) || strings.Trim(hash, "0123456789abcdef") != "":
		return Cursor{}, false
	case seq == 0:
		return Cursor{}, hash == noHash
	}
	return Cursor{seq, hash}, true
}

// Why lines of a report do not follow the line of its cursor.
const (
	GapTrimmed  = "trimmed"  // those between were removed at the host before they were told
	GapReplaced = "replaced" // the host has another database, which begins anew
)

// HostReport is what a host tells a hub. A hub keeps status and events as they are, so that an
// older one loses nothing of what a newer host says.
type HostReport struct {
	Host    string    `json:"host"`
	Gitring string    `json:"gitring"`
	At      time.Time `json:"at"` // the host's clock
	// After is the line that Lines follow, as the hub named it last; "" asks for it.
	After string `json:"after,omitempty"`
	// Gap is why Lines do not follow it; "" where they do.
	Gap    string          `json:"gap,omitempty"`
	Status json.RawMessage `json:"status"`
	Lines  []HostLine      `json:"lines,omitempty"`
}

// HostLine is a line of a journal with the beginning of its hash.
type HostLine struct {
	Hash  string          `json:"hash"`
	Event json.RawMessage `json:"event"`
}
