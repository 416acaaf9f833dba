package api

import (
	"errors"
	"io"
)

// bodies are the few buffers that wait for the next request, because a forger has as
// many requests as they like. Never more are in use than requests are read at one
// time; of those that come back, a few are kept and the collector takes the rest.
type bodies chan []byte

// keptBodies is how many buffers are kept, and keptBody how large one may be.
const (
	keptBodies = 4
	keptBody   = 512 << 10
)

func (s bodies) take() []byte {
	select {
	case b := <-s:
		return b[:0]
	default:
		return nil
	}
}

func (s bodies) give(b []byte) {
	if cap(b) > keptBody {
		return
	}
	select {
	case s <- b:
	default:
	}
}

// readInto appends all of r to b. r ends with an error of its own after most bytes. The
// buffer grows with what came, and not with what a header says will come.
func readInto(b []byte, r io.Reader, most int64) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			// One more than fits, for the end to show.
			grown := make([]byte, len(b), min(max(8<<10, 2*int64(cap(b))), most)+1)
			copy(grown, b)
			b = grown
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
