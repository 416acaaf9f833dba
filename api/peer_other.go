//go:build !linux

package api

import (
	"errors"
	"net"
)

// peerOf has no answer here: the daemon runs on Linux, the client anywhere.
func peerOf(net.Conn) (Peer, error) {
	return Peer{}, errors.New("cannot tell who asks on this operating system")
}
