package notify

import (
	"context"
	"time"

	"github.com/gitring/gitring/ring"
)

// An Outbox keeps what is to be said. When a method returns nil the fact is on
// disk. Each may be called from several goroutines and repeated. An answer
// about a seq that was replaced by a newer post changes nothing about the newer.
type Outbox interface {
	// Due is at most max rows whose Next is not after now, the longest waiting
	// first. Rows that were posted or are dead are not due.
	Due(ctx context.Context, now time.Time, max int) ([]ring.OutboxRow, error)
	// Posted says that nothing remains to be said of seq. The post is from then
	// on the row's SaidState and SaidDescription.
	Posted(ctx context.Context, key string, seq int64, now time.Time) error
	// Told is Posted of what the forge took just now, and the journal has it.
	Told(ctx context.Context, key string, seq int64, now time.Time) error
	// Retry makes the row due again at next, also when a newer post took its
	// place: the forge is not there sooner for that. says is why, and ""
	// for a row that was only put off while its forge is left alone.
	Retry(ctx context.Context, key string, seq int64, says string, next time.Time) error
	// Remember keeps what the forge calls the row, for Remote of later ones.
	Remember(ctx context.Context, key, remote string) error
	// Dead says that seq will never be said, and why.
	Dead(ctx context.Context, key string, seq int64, says string) error
}
