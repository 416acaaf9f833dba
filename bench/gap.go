package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Of the part gap: how often each way makes one, how long a request waits for its answer, and
// how long a way may take.
const (
	gapRounds   = 8
	gapPatience = 2 * time.Second
	gapLimit    = time.Minute
)

// A gapWay is one way to put another container, or the same one anew, behind a published port.
type gapWay struct {
	name string
	port int
	once func(ctx context.Context, n int) error // returns when the new one runs
	gaps spread
	lost int
	all  int
}

// gap measures how long a published port answers nobody while its container is made anew, and
// how many of 200 requests a second fail: by gitring, by docker compose up and by the engine's
// own stop and start of one container. They take turns, so that whatever else the machine does
// meets all of them. Then the first two once more for a service with a container_name, which two
// containers cannot have.
func (b *bench) gap(ctx context.Context) error {
	if err := b.gapsOf(ctx, "", b.gapOfGitring, b.gapOfCompose, b.gapOfEngine); err != nil {
		return err
	}
	return b.gapsOf(ctx, "container_name: "+host+"-named", b.gapOfGitring, b.gapOfCompose)
}

// A gapBegin makes a way, of a service with a key more, and says how it is taken away again.
type gapBegin = func(ctx context.Context, more string) (*gapWay, func() error, error)

func (b *bench) gapsOf(ctx context.Context, more string, begins ...gapBegin) (err error) {
	b.note("a published port whose container is made anew, %d times each way", gapRounds)
	var ways []*gapWay
	for _, begin := range begins {
		w, end, err := begin(ctx, more)
		if end != nil {
			defer func() { err = errors.Join(err, end()) }()
		}
		if err != nil {
			return err
		}
		if w != nil {
			ways = append(ways, w)
		}
	}
	for n := 1; n <= gapRounds; n++ {
		for _, w := range ways {
			if err := b.makeGap(ctx, w, n); err != nil {
				return fmt.Errorf("cannot make a gap by %s: %w", w.name, err)
			}
		}
	}
	for _, w := range ways {
		name := w.name
		if more != "" {
			name += ", with a container_name"
		}
		b.table.add(row{"gap of a published port, " + name, w.gaps.String(), "", "", fmt.Sprintf("%d times; at 200 requests a second %.1f failed each time, of %d in all", gapRounds, float64(w.lost)/gapRounds, w.all)})
	}
	return nil
}

// makeGap makes one gap under requests, which go on for a while after it.
func (b *bench) makeGap(ctx context.Context, w *gapWay, n int) error {
	ctx, cancel := context.WithTimeout(ctx, gapLimit)
	defer cancel()
	if err := until(ctx, 20*time.Millisecond, func() (bool, error) { return askOnce(gapClient(), w.port) == nil, nil }); err != nil {
		return err
	}
	if err := pause(ctx, 1200*time.Millisecond); err != nil { // pokes lead to at most one look a second
		return err
	}
	if err := b.calm(ctx); err != nil {
		return err
	}
	s := startBarrage(w.port)
	err := pause(ctx, 300*time.Millisecond)
	if err == nil {
		err = w.once(ctx, n)
	}
	if err == nil {
		err = until(ctx, 20*time.Millisecond, func() (bool, error) { return askOnce(gapClient(), w.port) == nil, nil })
	}
	if err == nil {
		err = pause(ctx, 300*time.Millisecond)
	}
	gap, all, lost := s.stop()
	w.gaps, w.all, w.lost = append(w.gaps, gap), w.all+all, w.lost+lost
	if err == nil && lost == 0 {
		return errors.New("no request failed, so it made none")
	}
	return err
}

func gapClient() *http.Client {
	return &http.Client{Timeout: gapPatience, Transport: &http.Transport{DisableKeepAlives: true}}
}

// A barrage asks a port every 5 ms, whether it answers or not, each on a new connection.
type barrage struct {
	quit  chan struct{}
	ended sync.WaitGroup

	mu   sync.Mutex // guards what follows
	sent []time.Time
	good []bool // by when it was sent
}

func startBarrage(port int) *barrage {
	s := &barrage{quit: make(chan struct{})}
	c := gapClient()
	s.ended.Go(func() {
		t := time.NewTicker(askEvery)
		defer t.Stop()
		var all sync.WaitGroup
		defer all.Wait()
		for {
			select {
			case <-s.quit:
				return
			case at := <-t.C:
				s.mu.Lock()
				i := len(s.sent)
				s.sent, s.good = append(s.sent, at), append(s.good, false)
				s.mu.Unlock()
				all.Go(func() {
					ok := askOnce(c, port) == nil
					s.mu.Lock()
					defer s.mu.Unlock()
					s.good[i] = ok
				})
			}
		}
	})
	return s
}

// stop gives the longest time between two requests that were sent one after the other and
// answered, beside those that failed.
func (s *barrage) stop() (gap time.Duration, all, lost int) {
	close(s.quit)
	s.ended.Wait()
	var last time.Time
	failed := false
	for i, at := range s.sent {
		if !s.good[i] {
			lost++
			failed = true
			continue
		}
		if failed && !last.IsZero() {
			gap = max(gap, at.Sub(last))
		}
		last, failed = at, false
	}
	return gap, len(s.sent), lost
}

// gapOfGitring is a service that is made anew by a push, the old container ended first.
func (b *bench) gapOfGitring(ctx context.Context, more string) (*gapWay, func() error, error) {
	r, err := b.newRepo(ctx)
	if err != nil {
		return nil, nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	push := func(n int) (string, error) {
		err := r.write(appName(0)+"/compose.yaml", b.gapped(n, port, 0, "x-gitring: {rollout: {strategy: recreate, min_ready_time: 0s}}", more))
		if err != nil {
			return "", err
		}
		return r.push(ctx, fmt.Sprintf("Say %d", n))
	}
	commit, err := push(0)
	if err != nil {
		return nil, nil, err
	}
	dir, err := b.folder("d")
	if err != nil {
		return nil, nil, err
	}
	d, err := b.serve(ctx, dir, b.settings.engine, r)
	if err != nil {
		return nil, nil, err
	}
	end := func() error { r.close(); return d.stop() }
	return &gapWay{name: "gitring", port: port, once: func(ctx context.Context, n int) error {
		commit, err := push(n)
		if err != nil {
			return err
		}
		if err := d.webhook(ctx); err != nil {
			return err
		}
		return d.synced(ctx, commit)
	}}, end, d.synced(ctx, commit)
}

// gapped is a Compose file of one service, with keys more.
func (b *bench) gapped(version, port, subnet int, more ...string) string {
	return fmt.Sprintf(`networks:
  default: {ipam: {config: [{subnet: %s}]}}
services:
  app:
    image: %s
    pull_policy: never
    environment: {VERSION: "%d"}
    stop_grace_period: 2s
    restart: unless-stopped
    ports: ["127.0.0.1:%d:8080"]
    %s
`, b.subnetOf(subnet), imageName, version, port, strings.Join(more, "\n    "))
}

// composedName makes the name of Compose's container another than that of gitring's.
func composedName(more string) string {
	if more == "" {
		return ""
	}
	return "-composed"
}

// gapOfCompose is the same service by docker compose up; nil where there is none.
func (b *bench) gapOfCompose(ctx context.Context, more string) (*gapWay, func() error, error) {
	program := []string{"docker", "compose"}
	if built, err := filepath.Abs("bin/docker-compose"); err == nil && exec.CommandContext(ctx, built, "version").Run() == nil {
		program = []string{built}
	} else if exec.CommandContext(ctx, "docker", "compose", "version").Run() != nil {
		b.note("docker compose is not here, nor bin/docker-compose (make compose): it is left out")
		return nil, nil, nil
	}
	dir, err := b.folder("compose")
	if err != nil {
		return nil, nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	compose := func(ctx context.Context, args ...string) error {
		c := exec.CommandContext(ctx, program[0], append(program[1:len(program):len(program)], append([]string{"-p", host + "-compose"}, args...)...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "DOCKER_HOST="+b.settings.engine)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run docker compose %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	up := func(ctx context.Context, n int) error {
		if err := write(dir+"/compose.yaml", b.gapped(n, port, 1, fmt.Sprintf("labels: {%s: %s}", floorLabel, host), more+composedName(more))); err != nil {
			return err
		}
		return compose(ctx, "up", "-d")
	}
	end := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gapLimit)
		defer cancel()
		return compose(ctx, "down", "-t", "0")
	}
	return &gapWay{name: "docker compose up", port: port, once: up}, end, up(ctx, 0)
}

// gapOfEngine is one container that the engine stops and starts.
func (b *bench) gapOfEngine(ctx context.Context, _ string) (*gapWay, func() error, error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	var made struct{ ID string }
	err = b.engine.call(ctx, "POST", "/containers/create?name="+host+"-gap", map[string]any{
		"Image": imageName, "Labels": map[string]string{floorLabel: host}, "ExposedPorts": map[string]any{"8080/tcp": map[string]any{}},
		"HostConfig": map[string]any{"PortBindings": map[string]any{"8080/tcp": []any{map[string]string{"HostIp": "127.0.0.1", "HostPort": fmt.Sprint(port)}}}},
	}, &made)
	if err != nil {
		return nil, nil, err
	}
	start := func(ctx context.Context) error {
		return b.engine.call(ctx, "POST", "/containers/"+made.ID+"/start", nil, nil)
	}
	once := func(ctx context.Context, _ int) error {
		if err := b.engine.call(ctx, "POST", "/containers/"+made.ID+"/stop?t=2", nil, nil); err != nil {
			return err
		}
		return start(ctx)
	}
	return &gapWay{name: "the engine's own stop and start", port: port, once: once}, nil, start(ctx)
}
