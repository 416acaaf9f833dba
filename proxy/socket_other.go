//go:build !linux

package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
)

// dialFront connects to the socket of a front. Fronts run on Linux; elsewhere there is none.
func dialFront(ctx context.Context, folder, path string, _ int) (net.Conn, error) {
	name := filepath.Join(folder, path)
	if st, err := os.Lstat(name); err != nil {
		return nil, err
	} else if st.Mode()&os.ModeSocket == 0 {
		return nil, errors.New("cannot use the front's socket: it is none")
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", name)
}
