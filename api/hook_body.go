package api

import (
	"errors"
	"io"
	"sync"
)

// bodies are buffers for what is read of requests. They are shared, because a
// forger has as many requests as they like; there are never more than requests that
// are read at one time, and the collector takes those that lie idle.
var bodies = sync.Pool{New: func() any { return new(rawBody) }}

// keptBody is the largest buffer that is kept for the next request.
const keptBody = 1 << 20

type rawBody struct{ b []byte }

func (b *rawBody) free() {
	if cap(b.b) <= keptBody {
		b.b = b.b[:0]
		bodies.Put(b)
	}
}

// read takes all of r, which is bounded at most bytes by its own error. The buffer
// grows with what came and not with what a header says will come.
func (b *rawBody) read(r io.Reader, most int64) error {
	b.b = b.b[:0]
	for {
		if len(b.b) == cap(b.b) {
			// One more than fits, for the end to show.
			grown := make([]byte, len(b.b), min(max(8<<10, 2*int64(cap(b.b))), most)+1)
			copy(grown, b.b)
			b.b = grown
		}
		n, err := r.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
