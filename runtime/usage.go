package runtime

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/gitring/gitring/ring"
)

// What a container takes of the processor is told by two samples.
const (
	usageApart  = 500 * time.Millisecond
	usageAtOnce = 16
)

// Usage is what each of some containers takes of the host now. One that the engine cannot
// say it of, such as one that ended meanwhile, is left out.
func (d *Docker) Usage(ctx context.Context, ids []string) (map[string]ring.Usage, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	before := samples(ctx, e, ids)
	if len(before) == 0 {
		return map[string]ring.Usage{}, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(usageApart):
	}
	out := map[string]ring.Usage{}
	for id, now := range samples(ctx, e, ids) {
		if was, ok := before[id]; ok {
			out[id] = usage(was, now)
		}
	}
	return out, nil
}

func samples(ctx context.Context, e engine, ids []string) map[string]container.StatsResponse {
	var mu sync.Mutex
	out := map[string]container.StatsResponse{}
	var g errgroup.Group
	g.SetLimit(usageAtOnce)
	for _, id := range ids {
		g.Go(func() error {
			answer, err := e.ContainerStatsOneShot(ctx, id)
			if err != nil {
				return nil // it is gone, or the engine does not say
			}
			defer func() { _ = answer.Body.Close() }()
			var s container.StatsResponse
			if json.NewDecoder(answer.Body).Decode(&s) == nil && !s.Read.IsZero() {
				mu.Lock()
				out[id] = s
				mu.Unlock()
			}
			return nil
		})
	}
	_ = g.Wait()
	return out
}

// usage is what was taken between two samples. Memory is without the cache of files that
// the kernel may drop, as "docker stats" counts it.
func usage(was, now container.StatsResponse) ring.Usage {
	var u ring.Usage
	if span := now.Read.Sub(was.Read); span > 0 && now.CPUStats.CPUUsage.TotalUsage >= was.CPUStats.CPUUsage.TotalUsage {
		u.CPU = float64(now.CPUStats.CPUUsage.TotalUsage-was.CPUStats.CPUUsage.TotalUsage) / float64(span)
	}
	memory, cache := now.MemoryStats.Usage, now.MemoryStats.Stats["total_inactive_file"]
	if cache == 0 {
		cache = now.MemoryStats.Stats["inactive_file"]
	}
	if cache < memory {
		memory -= cache
	}
	u.Memory = int64(memory) //nolint:gosec // of a real host
	return u
}
