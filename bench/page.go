package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// page measures what an open page of the dashboard costs the daemon of a host at rest: the same
// daemon is started twice, without and with listen.api, and only the second has a reader.
func (b *bench) page(ctx context.Context) (err error) {
	r, err := b.newRepo(ctx)
	if err != nil {
		return err
	}
	dir, err := b.folder("d")
	if err != nil {
		return err
	}
	p, err := newProxy(dir+"/p", b.engine)
	if err != nil {
		return err
	}
	defer p.close()
	d, err := b.serve(ctx, dir, p.url(), r)
	if err != nil {
		return err
	}
	_, err = b.first(ctx, d, p, r)
	if err := errors.Join(err, d.stop()); err != nil {
		return err
	}
	alone, err := b.atRest(ctx, dir, p.url(), r, nil, nil)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/tokens", nil, 0o600); err != nil {
		return err
	}
	door := &peoplesDoor{address: fmt.Sprintf("127.0.0.1:%d", port), tokens: dir + "/tokens"}
	v := &reader{url: "http://" + door.address}
	read, err := b.atRest(ctx, dir, p.url(), r, door, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, b.bin, "token", "new", "reader", "--scope", "read", "--add", "-o", "json", "--config", dir+"/config.yaml").Output()
		if err != nil {
			return fmt.Errorf("cannot make a token: %w", err)
		}
		var made struct{ Token string }
		if err := json.Unmarshal(out, &made); err != nil {
			return err
		}
		v.token = made.Token
		return v.open(ctx)
	})
	if err != nil {
		return err
	}
	pages, size, err := v.close()
	if err != nil {
		return err
	}
	b.table.add(row{fmt.Sprintf("at rest with %d apps, nobody looks", b.apps), fmt.Sprintf("%s, %.2f %% of a core", mib(alone.resident), alone.share), "", "", "started anew"})
	b.table.add(row{"  one page is open", fmt.Sprintf("%s, %.2f %% of a core", mib(read.resident), read.share), "10 % of a core", "", fmt.Sprintf("%d pages of %d KiB in %s, as the host says that it looked", pages, size>>10, seconds(b.idle))})
	b.table.add(row{"  more than without", mib(read.resident - alone.resident), "6 MiB", "", ""})
	return nil
}

// rest is what a daemon takes while nothing happens.
type rest struct {
	resident int64
	share    float64 // of a core, in percent
}

// atRest starts the daemon of a host that is deployed and watches it.
func (b *bench) atRest(ctx context.Context, dir, engine string, r *repo, api *peoplesDoor, opened func(context.Context) error) (at rest, err error) {
	d, err := b.serveWith(ctx, dir, engine, r, api)
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if opened != nil {
		if err := opened(ctx); err != nil {
			return at, err
		}
	}
	if err := pause(ctx, 15*time.Second); err != nil { // until garbage is collected
		return at, err
	}
	before, err := d.usage()
	if err != nil {
		return at, err
	}
	began := time.Now()
	if err := pause(ctx, b.idle); err != nil {
		return at, err
	}
	after, err := d.usage()
	if err != nil {
		return at, err
	}
	return rest{after.resident, 100 * (after.cpu - before.cpu).Seconds() / time.Since(began).Seconds()}, nil
}

// reader asks for a page as a browser does that has one open: anew at each event of the stream,
// and no sooner than 400 ms after the last time.
type reader struct {
	url, token string
	stop       context.CancelFunc
	done       chan error
	pages      int
	size       int64 // of one page, compressed
}

func (v *reader) open(ctx context.Context) error {
	ctx, v.stop = context.WithCancel(ctx)
	res, err := v.ask(ctx, "/v1/stream")
	if err != nil {
		v.stop()
		return err
	}
	v.done = make(chan error, 1)
	go func() {
		defer res.Body.Close() //nolint:errcheck // only read
		v.done <- v.follow(ctx, res.Body)
	}()
	return nil
}

func (v *reader) follow(ctx context.Context, stream io.Reader) error {
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "event: ") {
			continue
		}
		res, err := v.ask(ctx, "/")
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return err
		}
		v.pages, v.size = v.pages+1, n
		if err := pause(ctx, 400*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// ask answers what the daemon said, still compressed.
func (v *reader) ask(ctx context.Context, path string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+path, nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+v.token)
	q.Header.Set("Accept-Encoding", "gzip")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("cannot read %s: %s", path, res.Status)
	}
	return res, nil
}

// close ends the reading. How it ended is no matter: the daemon went first.
func (v *reader) close() (pages int, size int64, err error) {
	v.stop()
	<-v.done //nolint:errcheck // see above
	if v.pages == 0 {
		return 0, 0, errors.New("no page was read")
	}
	return v.pages, v.size, nil
}
