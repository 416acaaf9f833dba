package fleet

import (
	"context"
	"sync"
)

// AtOnce is how many hosts are asked at one time.
const AtOnce = 16

// Each asks every host, AtOnce of them at a time, and returns when all have answered. The
// answers stand in the order of the hosts.
func Each[T any](ctx context.Context, hosts []Host, ask func(ctx context.Context, h Host) T) []T {
	answers := make([]T, len(hosts))
	slots := make(chan struct{}, AtOnce)
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i] = ask(ctx, h)
		})
	}
	wg.Wait()
	return answers
}
