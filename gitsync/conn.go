package gitsync

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// quiet is a connection that fails when nothing moves for idle: a server that
// died without a word must not hold its source up for ever.
type quiet struct {
	net.Conn
	idle time.Duration
}

func (c quiet) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	return n, c.said(err)
}

func (c quiet) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	return n, c.said(err)
}

// said names the deadline: some libraries keep nothing of an error but its text.
func (c quiet) said(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("nothing moved for %s: %w", c.idle, err)
	}
	return err
}

// dialer connects with an idle deadline; onlyLoopback checks where the name led.
type dialer struct {
	idle         time.Duration
	onlyLoopback bool
}

func (d dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := net.Dialer{Timeout: d.idle}
	c, err := plain.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if host, _, _ := net.SplitHostPort(c.RemoteAddr().String()); d.onlyLoopback && !loopback(host) {
		_ = c.Close()
		return nil, fmt.Errorf("cannot connect to %s: http is taken only from a loopback address", addr)
	}
	return quiet{c, d.idle}, nil
}
