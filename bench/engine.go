package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// imageName is the image that the measured apps run.
const imageName = "gitring-bench:1"

// floorLabel marks what this program makes on the engine without gitring.
const floorLabel = "gitring.bench"

// engine speaks to a Docker Engine with as little in between as can be: what is
// measured with it is the engine.
type engine struct {
	network, address string
	client           *http.Client
}

func dialEngine(at string) (*engine, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("cannot use the engine: %w", err)
	}
	e := &engine{network: "unix", address: u.Path}
	if u.Scheme == "tcp" {
		e.network, e.address = "tcp", u.Host
	}
	e.client = &http.Client{Transport: e.transport()}
	return e, nil
}

func (e *engine) transport() *http.Transport {
	var d net.Dialer
	return &http.Transport{
		MaxIdleConnsPerHost: 32, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, e.network, e.address)
		},
	}
}

func (e *engine) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	kind := "application/json"
	switch in := in.(type) {
	case nil:
	case io.Reader:
		body, kind = in, "application/x-tar"
	default:
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://engine/v1.41"+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	res, err := e.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the engine: %w", err)
	}
	if res.StatusCode < 400 {
		return res, nil
	}
	says, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	_ = res.Body.Close()
	return nil, &engineError{res.StatusCode, fmt.Sprintf("cannot %s %s: %s", method, path, strings.TrimSpace(string(says)))}
}

type engineError struct {
	code int
	says string
}

func (e *engineError) Error() string { return e.says }

func gone(err error) bool {
	e, ok := errors.AsType[*engineError](err)
	return ok && (e.code == http.StatusNotFound || e.code == http.StatusConflict && strings.Contains(e.says, "already in progress"))
}

func (e *engine) call(ctx context.Context, method, path string, in, out any) error {
	res, err := e.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if out != nil {
		return json.NewDecoder(res.Body).Decode(out)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

func (e *engine) version(ctx context.Context) string {
	var v struct{ Version string }
	if err := e.call(ctx, "GET", "/version", nil, &v); err != nil {
		return "unknown"
	}
	return v.Version
}

// makeImage puts this program into an image from scratch.
func (e *engine) makeImage(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "bench", Mode: 0o755, Size: int64(len(bin)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := w.Write(bin); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	name, tag, _ := strings.Cut(imageName, ":")
	q := url.Values{"fromSrc": {"-"}, "repo": {name}, "tag": {tag}, "changes": {`ENTRYPOINT ["/bench","app"]`}}
	return e.call(ctx, "POST", "/images/create?"+q.Encode(), &layer, nil)
}

func filter(kv map[string][]string) string {
	b, _ := json.Marshal(kv)
	return "filters=" + url.QueryEscape(string(b))
}

type summary struct {
	ID string `json:"Id"`
}

func (e *engine) containers(ctx context.Context, label string) ([]summary, error) {
	var list []summary
	err := e.call(ctx, "GET", "/containers/json?all=1&"+filter(map[string][]string{"label": {label}}), nil, &list)
	return list, err
}

// removeAll removes the containers and networks with a label.
func (e *engine) removeAll(ctx context.Context, label string) error {
	list, err := e.containers(ctx, label)
	if err != nil {
		return err
	}
	err = parallel(8, len(list), func(i int) error { return e.remove(ctx, list[i].ID) })
	if err != nil {
		return err
	}
	var nets []summary
	if err := e.call(ctx, "GET", "/networks?"+filter(map[string][]string{"label": {label}}), nil, &nets); err != nil {
		return err
	}
	for _, n := range nets {
		if err := e.call(ctx, "DELETE", "/networks/"+n.ID, nil, nil); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

func (e *engine) remove(ctx context.Context, id string) error {
	err := e.call(ctx, "DELETE", "/containers/"+id+"?force=1", nil, nil)
	if gone(err) {
		return nil
	}
	return err
}

// makeNetwork makes a network as gitring would.
func (e *engine) makeNetwork(ctx context.Context, name, subnet string) error {
	return e.call(ctx, "POST", "/networks/create", map[string]any{
		"Name": name, "CheckDuplicate": true, "Driver": "bridge", "Labels": map[string]string{floorLabel: host},
		"IPAM": map[string]any{"Driver": "default", "Config": []map[string]string{{"Subnet": subnet}}},
	}, nil)
}

// create makes a container like those of the measured apps.
func (e *engine) create(ctx context.Context, name, network string) (string, error) {
	var made summary
	err := e.call(ctx, "POST", "/containers/create?name="+name, map[string]any{
		"Image": imageName, "Env": []string{"VERSION=1"}, "Labels": map[string]string{floorLabel: host},
		"HostConfig":       map[string]any{"NetworkMode": network},
		"NetworkingConfig": map[string]any{"EndpointsConfig": map[string]any{network: map[string]any{"Aliases": []string{"app"}}}},
	}, &made)
	return made.ID, err
}

func (e *engine) start(ctx context.Context, id string) error {
	return e.call(ctx, "POST", "/containers/"+id+"/start", nil, nil)
}

func (e *engine) stop(ctx context.Context, id string) error {
	return e.call(ctx, "POST", "/containers/"+id+"/stop", nil, nil)
}

// running reports whether the container's state is running.
func (e *engine) running(ctx context.Context, id string) (bool, error) {
	var c struct{ State struct{ Running bool } }
	err := e.call(ctx, "GET", "/containers/"+id+"/json", nil, &c)
	return c.State.Running, err
}

// started is a container that the engine told of as started.
type started struct {
	id string
	at time.Time // when it was heard here
}

// starts hears of containers with a label as they start, until ctx ends; it
// returns when the engine listens.
func (e *engine) starts(ctx context.Context, label string) (<-chan started, error) {
	res, err := e.send(ctx, "GET", "/events?"+filter(map[string][]string{
		"type": {"container"}, "event": {"start"}, "label": {label},
	}), nil)
	if err != nil {
		return nil, err
	}
	out := make(chan started, 2000)
	go func() {
		defer close(out)
		defer func() { _ = res.Body.Close() }()
		dec := json.NewDecoder(res.Body)
		for {
			var m struct{ Actor struct{ ID string } }
			if dec.Decode(&m) != nil {
				return
			}
			out <- started{m.Actor.ID, time.Now()}
		}
	}()
	return out, nil
}

// next is the next container that starts.
func next(ctx context.Context, heard <-chan started) (started, error) {
	select {
	case s, ok := <-heard:
		if !ok {
			return s, errors.New("the engine ended its events")
		}
		return s, nil
	case <-ctx.Done():
		return started{}, ctx.Err()
	}
}
