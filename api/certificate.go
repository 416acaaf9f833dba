package api

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
)

// certificate is one of two files, which are read again when they change. A pair that
// cannot be used leaves the one before in its place.
type certificate struct {
	cert, key string

	mu   sync.Mutex // guards what follows
	seen string
	pair *tls.Certificate
}

// newCertificate fails where the files cannot be used.
func newCertificate(cert, key string) (*certificate, error) {
	c := &certificate{cert: cert, key: key}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.load(c.print())
}

func (c *certificate) load(seen string) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("cannot use the certificate of listen.api: %w", err)
	}
	c.pair, c.seen = &pair, seen
	return nil
}

func (c *certificate) print() (print string) {
	for _, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			print += fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
		}
	}
	return print
}

func (c *certificate) now(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen := c.print(); seen != c.seen {
		_ = c.load(seen) // half of a renewal is not used
	}
	return c.pair, nil
}
