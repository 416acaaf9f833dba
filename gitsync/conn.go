package gitsync

import (
	"cmp"
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
	known        hosts // nil looks names up
}

func (d dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if host, _, _ := net.SplitHostPort(c.RemoteAddr().String()); d.onlyLoopback && !loopback(host) {
		_ = c.Close()
		return nil, fmt.Errorf("cannot connect to %s: http is taken only from a loopback address", addr)
	}
	return quiet{c, d.idle}, nil
}

func (d dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.idle)
	defer cancel()
	if d.known == nil {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, a := range d.known[host] {
		list = append(list, net.JoinHostPort(a, port))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cannot connect to %s: it is not the host of this remote, nor of its proxy", host)
	}
	return firstToAnswer(ctx, network, list)
}

// headStart is how long an address has before the next one is tried beside it, as
// in Go's own dialer: a network whose IPv6 leads nowhere is common.
const headStart = 300 * time.Millisecond

// firstToAnswer connects to the first of several addresses that takes a connection,
// or says why the first of them did not.
func firstToAnswer(ctx context.Context, network string, list []string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(list))
	begun, ended := 0, 0
	begin := func() {
		addr := list[begun]
		begun++
		go func() {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			results <- result{c, err}
		}()
	}
	begin()
	next := time.NewTicker(headStart)
	defer next.Stop()
	var failed error
	for {
		select {
		case r := <-results:
			ended++
			if r.err == nil {
				cancel() // the others end at once
				for ; ended < begun; ended++ {
					if late := <-results; late.err == nil {
						_ = late.conn.Close()
					}
				}
				return r.conn, nil
			}
			failed = cmp.Or(failed, r.err)
			if begun == len(list) && ended == begun {
				return nil, failed
			}
			if ended < begun {
				continue // another one is under way
			}
		case <-next.C:
		}
		if begun < len(list) {
			begin()
			next.Reset(headStart)
		}
	}
}
