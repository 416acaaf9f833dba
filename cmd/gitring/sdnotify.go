package main

import (
	"context"
	"fmt"
	"net"
	"os"
)

// notifySocket is where systemd waits for a word of a service of Type=notify; "" where nobody
// does. It is taken out of the environment, so that no child of this process speaks for it.
func notifySocket() string {
	at := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET") // fails for a wrong name alone
	return at
}

// sdNotify says a state such as READY=1 to systemd (sd_notify(3)).
func sdNotify(ctx context.Context, at, state string) error {
	if at == "" {
		return nil
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixgram", at) // an @ begins an abstract name
	if err != nil {
		return fmt.Errorf("cannot tell systemd %s: %w", state, err)
	}
	defer c.Close() //nolint:errcheck // a datagram is sent or not
	if _, err := c.Write([]byte(state)); err != nil {
		return fmt.Errorf("cannot tell systemd %s: %w", state, err)
	}
	return nil
}
