package proxy

import (
	"net"
	"syscall"
)

// readDatagram waits for a datagram without a buffer, and gives it to use.
func readDatagram(c *net.UDPConn, use func([]byte)) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		b := datagrams.Get().(*[]byte)
		defer datagrams.Put(b)
		n, err := syscall.Read(int(fd), *b)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR:
			return false
		case err != nil:
			failed = err
		default:
			use((*b)[:n])
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}
