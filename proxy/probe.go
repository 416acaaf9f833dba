package proxy

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// How instances are tried: those not reached soon, ports that nobody listens on now and then.
const (
	probeEvery  = time.Second
	probeQuiet  = 5 * time.Second
	probeAnswer = 600 * time.Millisecond // the answer to a table waits for it
)

// probeLoop tries whom it cannot reach, until it can.
func (f *Front) probeLoop(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		f.mu.Lock()
		ports := tcpPorts(f.table)
		var due []*member
		for _, m := range f.members {
			if m.at.State == ring.FrontDraining {
				continue
			}
			if !m.reached || len(m.open) < len(ports) && now.Sub(m.probed) >= probeQuiet {
				due = append(due, m)
			}
		}
		f.mu.Unlock()
		f.probe(ctx, due)
	}
}

// probe connects once to each port of some instances: every one of those not reached, and
// ports of the others that nobody listened on.
func (f *Front) probe(ctx context.Context, some []*member) {
	if len(some) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeAnswer)
	defer cancel()
	f.mu.Lock()
	ports := tcpPorts(f.table)
	f.mu.Unlock()
	var all sync.WaitGroup
	atOnce := make(chan struct{}, 64)
	for _, m := range some {
		all.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			f.probeOne(ctx, m, ports)
		})
	}
	all.Wait()
}

func (f *Front) probeOne(ctx context.Context, m *member, ports []int) {
	f.mu.Lock()
	was := m.reached
	known := map[int]bool{}
	if was {
		for p := range m.open {
			known[p] = true
		}
	}
	f.mu.Unlock()
	opened, last := map[int]bool{}, error(nil)
	if len(ports) == 0 {
		_, last = f.names.resolve(ctx, m.name)
	}
	for _, p := range ports {
		if known[p] {
			opened[p] = true
			continue
		}
		c, err := f.connect(ctx, m.name, strconv.Itoa(p), probeAnswer)
		if err != nil {
			last = err
			continue
		}
		_ = c.Close() // it was opened, and that is all
		opened[p] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if was && !m.reached {
		return // lost meanwhile: the next look tells
	}
	m.probed, m.open = time.Now(), opened
	f.judgeReached(m, ports, last)
	if m.reached != was {
		f.tell()
	}
}

// judgeReached: at least one port, and every port that an instance of this version took
// connections on before.
func (f *Front) judgeReached(m *member, ports []int, last error) {
	before := f.accepted[m.at.Version]
	m.reached, m.why = len(ports) == 0 && last == nil || len(m.open) > 0, ""
	for _, p := range ports {
		if before[p] && !m.open[p] {
			m.reached = false
		}
	}
	if !m.reached {
		if last != nil {
			m.why = short(last.Error())
		}
		return
	}
	m.failed, m.passed = 0, time.Time{}
	if before == nil {
		before = map[int]bool{}
		f.accepted[m.at.Version] = before
	}
	for p := range m.open {
		before[p] = true
	}
}

// unheard reports whether no instance listens on a port; with f.mu held.
func (f *Front) unheard(number int) bool {
	for _, m := range f.members {
		if m.open[number] {
			return false
		}
	}
	return true
}
