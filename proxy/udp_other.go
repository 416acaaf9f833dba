//go:build !linux

package proxy

import "net"

// readDatagram waits for a datagram and gives it to use. Fronts run on Linux; this is for
// tests elsewhere.
func readDatagram(c *net.UDPConn, use func([]byte)) error {
	b := datagrams.Get().(*[]byte)
	defer datagrams.Put(b)
	n, err := c.Read(*b)
	if err == nil {
		use((*b)[:n])
	}
	return err
}
