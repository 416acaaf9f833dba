package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// answersWithin is how long an engine may take to answer on a new connection.
const answersWithin = 2 * time.Second

// going says that the engine is about to end. Then it still answers those who are
// connected, while it ends one container after the other: what is seen of it
// looks like crashes, and what is asked of it is lost or worse. It takes no new
// connection from the moment it begins to. Asked where a container that ran has
// ended since the look before, which is seldom.
func (d *Docker) going(ctx context.Context, before snapshot, after map[string]known) error {
	for id, k := range after {
		was, ok := before.known[id]
		if !ok || was.in.State != ring.StateRunning || !k.in.Ended() {
			continue
		}
		if err := d.answersAnew(ctx); err != nil && ctx.Err() == nil {
			return &ring.EngineError{Err: fmt.Errorf("cannot believe what the engine shows: it takes no new connection, so it is about to end: %w", err)}
		}
		return nil
	}
	return nil
}

func (d *Docker) answersAnew(ctx context.Context) error {
	e, err := d.connect()
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }() // nothing is left to send
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	_, err = e.Ping(ctx)
	return err
}
