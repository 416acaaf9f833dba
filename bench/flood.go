package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The flood: forged webhooks of the largest size that is read, from many addresses of
// loopback, so that the rate of one address holds none of them off.
const (
	floodEvery     = 20 * time.Millisecond
	floodFor       = 30 * time.Second
	floodAddresses = 50
	floodBody      = 256 << 10
)

// flood measures what forged webhooks do to a daemon that looks at 100 instances on
// an engine that answers from memory.
func (b *bench) flood(ctx context.Context) (err error) {
	rig, err := b.lookRig(ctx, 100)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	d := rig.daemon
	b.note("looks before the flood")
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	before, idle, err := b.watched(ctx, rig, floodFor)
	if err != nil {
		return err
	}
	b.note("%d forged webhooks a second for %s", time.Second/floodEvery, floodFor)
	began := time.Now()
	flooding, stop := context.WithTimeout(ctx, floodFor)
	defer stop()
	answers := make(chan map[string]int, 1)
	go func() { answers <- flood(flooding, d.hook) }()
	during, busy, err := b.watched(ctx, rig, floodFor)
	got := <-answers
	if err != nil {
		return err
	}
	asked := time.Since(began)
	if err := pause(ctx, 10*time.Second); err != nil {
		return err
	}
	after, err := d.usage()
	if err != nil {
		return err
	}
	b.table.add(row{"forged webhooks, 256 KiB each", fmt.Sprintf("%d in %s", total(got), seconds(asked)), "", "", fmt.Sprintf("from %d addresses, a right shape and a wrong signature; answered: %s", floodAddresses, counts(got))})
	b.table.add(row{"  no-op look, 100 instances, before", before.whole.String(), "", "", fmt.Sprintf("%d looks, engine from memory", len(before.whole))})
	b.table.add(row{"  the same, during", during.whole.String(), "as before", "", fmt.Sprintf("%d looks", len(during.whole))})
	b.table.add(row{"  resident before, at most before, at most during, 10 s after", fmt.Sprintf("%s, %s, %s, %s", mib(idle.begin.resident), mib(idle.most), mib(busy.most), mib(after.resident)), "flat", "", "sampled every 100 ms"})
	b.table.add(row{"  CPU before, during", fmt.Sprintf("%.1f %%, %.1f %% of a core", idle.share, busy.share), "", "", "of the daemon, looks included"})
	return nil
}

// watch is what a daemon used for a while.
type watch struct {
	begin usage
	most  int64   // resident, of all samples
	share float64 // of a core, in per cent
}

// watched asks for a look every 1.1 s for a while and watches the daemon's memory.
func (b *bench) watched(ctx context.Context, rig *lookRig, long time.Duration) (q quiet, w watch, err error) {
	q.calls = map[string]int{}
	if w.begin, err = rig.daemon.usage(); err != nil {
		return q, w, err
	}
	began := time.Now()
	sampling, stop := context.WithCancel(ctx)
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for pause(sampling, 100*time.Millisecond) == nil {
			if u, err := rig.daemon.usage(); err == nil {
				w.most = max(w.most, u.resident)
			}
		}
	})
	for time.Since(began) < long && err == nil {
		if err = pause(ctx, 1100*time.Millisecond); err == nil { // pokes lead to at most one look a second
			err = q.one(ctx, rig.daemon, rig.proxy)
		}
	}
	stop()
	sampler.Wait()
	if err != nil {
		return q, w, err
	}
	end, err := rig.daemon.usage()
	w.share = 100 * (end.cpu - w.begin.cpu).Seconds() / time.Since(began).Seconds()
	return q, w, err
}

// flood posts until ctx ends and counts the answers. Each request is of its own
// connection, as those of strangers are.
func flood(ctx context.Context, hook string) map[string]int {
	body := bytes.Repeat([]byte("x"), floodBody)
	var clients []*http.Client
	for i := range floodAddresses {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
		clients = append(clients, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}})
	}
	var (
		mu  sync.Mutex // guards what follows
		got = map[string]int{}
		all sync.WaitGroup
	)
	t := time.NewTicker(floodEvery)
	defer t.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			all.Wait()
			return got
		case <-t.C:
		}
		all.Go(func() {
			says := forge(clients[i%len(clients)], hook, body)
			mu.Lock()
			defer mu.Unlock()
			got[says]++
		})
	}
}

func forge(c *http.Client, hook string, body []byte) string {
	r, err := http.NewRequest(http.MethodPost, hook, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("X-GitHub-Event", "push")
	r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("00", 32))
	res, err := c.Do(r)
	if err != nil {
		return "no answer"
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.Status
}
