package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// drain is how long requests under way may take when the daemon ends.
const drain = 3 * time.Second

// serve answers on l until ctx ends, then lets short requests finish. Every
// request's context ends with ctx, so streams end by themselves. It returns
// nil after an orderly end, and when it returns l is closed.
func serve(ctx context.Context, s *http.Server, l net.Listener) error {
	s.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if s.Shutdown(limited) != nil {
		_ = s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
