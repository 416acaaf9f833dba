// Package frontprogram holds the program of fronts for the architecture that gitring was built
// for. scripts/front.sh puts it there; a build without it works, and has no fronts.
package frontprogram

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// nameOf is the file in blob, which is the folder of this architecture. Each has a placeholder
// too, so that a fresh clone builds.
const (
	nameOf  = "front.gz"
	maxSize = 64 << 20
)

var errNone = errors.New("this gitring was built without its front; build it with make build")

// Bytes is the program, whole.
func Bytes() ([]byte, error) {
	packed, err := blob.ReadFile(runtime.GOARCH + "/" + nameOf)
	if err != nil {
		return nil, errNone
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the front: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxSize))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the front: %w", err)
	}
	return out, nil
}

// Sum is the program's SHA-256 in hex, "" where there is no program.
var Sum = sync.OnceValue(func() string {
	program, err := Bytes()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:])
})
