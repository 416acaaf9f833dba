package gitsync

import (
	"bytes"
	"fmt"
	"io"
)

// capped fails, rather than ends, when more is read than allowed.
type capped struct {
	r    io.Reader
	left int64
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, fmt.Errorf("the remote sends too much: %w", errLimit)
	}
	return n, err
}

// sniffer remembers the beginning of what passes: go-git cannot read the refs of
// a SHA-256 repository and would only say that a hash is malformed.
type sniffer struct {
	r    io.Reader
	head []byte
}

func (s *sniffer) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if room := 2048 - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, n)]...)
	}
	return n, err
}

func (s *sniffer) sha256() bool {
	return bytes.Contains(s.head, []byte("object-format=sha256"))
}
