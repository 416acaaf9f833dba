package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Of the part traffic: how many requests of each port are timed, and how many updates there
// are while both are asked.
const (
	timedRequests  = 2000
	trafficUpdates = 10
	askEvery       = 5 * time.Millisecond // about 200 requests a second
)

// answer serves requests until ctx ends.
func answer(ctx context.Context) error {
	s := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(s.Shutdown(last), ignoreClosed(<-ended))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// traffic measures what a front adds to a request, how many new connections it takes, what it
// costs while nobody asks, and what updates lose, beside the same program on a port that Docker
// publishes, in one run.
func (b *bench) traffic(ctx context.Context) (err error) {
	b.note("a front beside a direct port: %d requests each, then %d updates", timedRequests, trafficUpdates)
	r, err := b.newRepo(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	ports := map[string]int{}
	for _, name := range []string{"direct", "front"} {
		if ports[name], err = freePort(); err != nil {
			return err
		}
	}
	push := func(n int) (string, error) {
		if err := r.write(appName(0)+"/compose.yaml", b.fronted(n, ports)); err != nil {
			return "", err
		}
		return r.push(ctx, fmt.Sprintf("Say %d", n))
	}
	commit, err := push(0)
	if err != nil {
		return err
	}
	dir, err := b.folder("d")
	if err != nil {
		return err
	}
	d, err := b.serve(ctx, dir, b.settings.engine, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.synced(ctx, commit); err != nil {
		return err
	}
	for _, measure := range []func() error{
		func() error { return b.idleFront(ctx, "an idle front") },
		func() error { return b.timeRequests(ctx, ports) },
		func() error { return b.newConnections(ctx) },
		func() error { return b.idleFront(ctx, "one that was busy") },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	asked := map[string]*asking{}
	for name, port := range ports {
		asked[name] = startAsking(port)
	}
	for n := 1; n <= trafficUpdates && err == nil; n++ {
		// Pokes lead to at most one look a second.
		if err = pause(ctx, 1200*time.Millisecond); err == nil {
			commit, err = push(n)
		}
		if err == nil {
			err = d.webhook(ctx)
		}
		if err == nil {
			err = d.synced(ctx, commit)
		}
	}
	for _, name := range []string{"direct", "front"} {
		all, lost := asked[name].stop()
		target := ""
		if name == "front" {
			target = "0"
		}
		b.table.add(row{fmt.Sprintf("lost in %d updates, %s", trafficUpdates, name), fmt.Sprintf("%d of %d", lost, all), target, "", "one client that asks again and again, each request on a new connection"})
	}
	return err
}

// fronted is the Compose file: one program twice, behind a front and on a port of its own.
func (b *bench) fronted(version int, ports map[string]int) string {
	var out strings.Builder
	out.WriteString("services:\n")
	for _, name := range []string{"direct", "front"} {
		fmt.Fprintf(&out, `  %s:
    image: %s
    pull_policy: never
    environment: {VERSION: "%d"}
    stop_grace_period: 2s
    ports: ["127.0.0.1:%d:8080"]
    x-gitring:
      publish: %s
      rollout: {min_ready_time: 0s}
      checks: [{name: up, for: readiness, http: {port: 8080, path: /}, interval: 200ms, timeout: 5s}]
`, "by-"+name, imageName, version, ports[name], name)
	}
	fmt.Fprintf(&out, "networks:\n  default: {ipam: {config: [{subnet: %s}]}}\n", b.subnetOf(0))
	return out.String()
}

// timeRequests asks both ports in turn, so that whatever else the machine does meets both.
func (b *bench) timeRequests(ctx context.Context, ports map[string]int) error {
	took := map[string]spread{}
	c := &http.Client{Timeout: 30 * time.Second}
	defer c.CloseIdleConnections()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for range timedRequests {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, name := range []string{"direct", "front"} {
			began := time.Now()
			if err := askOnce(c, ports[name]); err != nil {
				return fmt.Errorf("cannot ask the port %s: %w", name, err)
			}
			took[name] = append(took[name], time.Since(began))
		}
	}
	p99 := func(s spread) time.Duration { return s.sorted()[len(s)*99/100] }
	for _, name := range []string{"direct", "front"} {
		s := took[name]
		b.table.add(row{"a request, " + name, fmt.Sprintf("p50 %s, p99 %s", millis(s.median()), millis(p99(s))), "", "", fmt.Sprintf("%d requests on kept connections, both ports in turn", timedRequests)})
	}
	added := took["front"].median() - took["direct"].median()
	b.table.add(row{"  what the front adds", millis(added), "0.6 ms", "", "the difference of the medians"})
	return nil
}

func askOnce(c *http.Client, port int) error {
	res, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err == nil && (res.StatusCode != http.StatusOK || string(body) != "hello") {
		err = errors.New(res.Status)
	}
	return err
}

// asking is a client that asks until it is stopped.
type asking struct {
	quit      chan struct{}
	ended     sync.WaitGroup
	all, lost int // of the one goroutine, until it has ended
}

func startAsking(port int) *asking {
	a := &asking{quit: make(chan struct{})}
	c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	a.ended.Go(func() {
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		for {
			select {
			case <-a.quit:
				return
			case <-tick.C:
			}
			a.all++
			if askOnce(c, port) != nil {
				a.lost++
			}
		}
	})
	return a
}

func (a *asking) stop() (all, lost int) {
	close(a.quit)
	a.ended.Wait()
	return a.all, a.lost
}
