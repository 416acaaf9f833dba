package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// secret of the webhook; nothing but loopback ever sees it.
const secret = "0123456789abcdef0123456789abcdef"

// daemon is one gitring that serves, with its folder.
type daemon struct {
	dir, hook string
	cmd       *exec.Cmd
	log       *os.File
	ended     chan error
	client    *http.Client // of its socket
}

// serve starts a daemon that follows r on an engine, and waits until it answers.
// Its state is in dir, so that a second one goes on where the first ended.
func (b *bench) serve(ctx context.Context, dir, engine string, r *repo) (*daemon, error) {
	return b.serveWith(ctx, dir, engine, r, nil)
}

// peoplesDoor is listen.api: its address, and the file of its tokens.
type peoplesDoor struct{ address, tokens string }

// serveWith is serve, with listen.api where there is one.
func (b *bench) serveWith(ctx context.Context, dir, engine string, r *repo, api *peoplesDoor) (*daemon, error) {
	listen, more := "", ""
	if api != nil {
		listen, more = fmt.Sprintf(", api: {address: %q}", api.address), fmt.Sprintf("api: {tokens: %s}\n", api.tokens)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir, hook: fmt.Sprintf("http://127.0.0.1:%d/v1/webhook/bench", port), ended: make(chan error, 1)}
	config := fmt.Sprintf(`host: %s
state: %[2]s/state
data_root: %[2]s/data
engine: {kind: docker, url: "%[3]s"}
listen: {socket: %[2]s/s, http: "127.0.0.1:%[4]d"%[7]s}
%[8]ssources:
  - name: bench
    url: %[5]s
    trust: {mode: strict, allowed_signers: %[6]s}
    webhook: {forge: github, secret_file: %[2]s/secret}
`, host, dir, engine, port, r.url, r.signers, listen, more)
	if err := errors.Join(write(dir+"/config.yaml", config), os.WriteFile(dir+"/secret", []byte(secret), 0o600)); err != nil {
		return nil, err
	}
	if d.log, err = os.OpenFile(dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	d.cmd = exec.Command(b.bin, "serve", "--config", dir+"/config.yaml")
	d.cmd.Stderr = d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { d.ended <- d.cmd.Wait() }()
	var dialer net.Dialer
	d.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", filepath.Join(dir, "s"))
	}}}
	err = until(ctx, 10*time.Millisecond, func() (bool, error) {
		_, err := d.sync(ctx)
		return err == nil, d.alive()
	})
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (d *daemon) alive() error {
	select {
	case err := <-d.ended:
		d.ended <- err
		text, _ := os.ReadFile(d.dir + "/log")
		return fmt.Errorf("the daemon ended (%v): %s", err, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

func (d *daemon) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	var err error
	select {
	case err = <-d.ended:
	case <-time.After(30 * time.Second):
		err = errors.Join(errors.New("the daemon did not end within 30s"), d.cmd.Process.Kill(), <-d.ended)
	}
	return errors.Join(err, d.log.Close())
}

// sync is the word of the status.
func (d *daemon) sync(ctx context.Context) (string, error) {
	s, err := d.source(ctx)
	return s.Sync, err
}

// sourceStatus is what of a source's status is asked for here.
type sourceStatus struct{ Tip, Commit, Sync, Reason string }

func (d *daemon) source(ctx context.Context) (sourceStatus, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://gitring/v1/status", nil)
	if err != nil {
		return sourceStatus{}, err
	}
	res, err := d.client.Do(r)
	if err != nil {
		return sourceStatus{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var st struct{ Sources []sourceStatus }
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil || len(st.Sources) != 1 {
		return sourceStatus{}, fmt.Errorf("cannot read the status: %w", err)
	}
	return st.Sources[0], nil
}

// synced waits until the commit is in force and nothing of it is left to do.
func (d *daemon) synced(ctx context.Context, commit string) error {
	var last sourceStatus
	err := until(ctx, 20*time.Millisecond, func() (bool, error) {
		var err error
		if last, err = d.source(ctx); err != nil {
			return false, errors.Join(err, d.alive())
		}
		if last.Sync == "Degraded" || last.Sync == "Refused" {
			return false, fmt.Errorf("the status is %s: %s", last.Sync, last.Reason)
		}
		return last.Sync == "Synced" && last.Commit == commit, d.alive()
	})
	if err != nil {
		return fmt.Errorf("cannot see %s synced: %w (last %+v)", commit, err, last)
	}
	return nil
}

// webhook tells the daemon of a push as GitHub does.
func (d *daemon) webhook(ctx context.Context) error {
	body := []byte(`{"ref":"refs/heads/main"}`)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	r, err := http.NewRequestWithContext(ctx, "POST", d.hook, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-GitHub-Event", "push")
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("cannot tell of a push: the webhook answered %d", res.StatusCode)
	}
	return nil
}

// look has the daemon look at the remote and then at the engine, and returns
// when both looks have ended.
func (d *daemon) look(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://gitring/v1/sync?wait=1", nil)
	if err != nil {
		return err
	}
	res, err := d.client.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err == nil && !bytes.Contains(text, []byte(`"settled":true`)) {
		err = fmt.Errorf("cannot sync: %s", text)
	}
	return err
}

// usage is what a process has used: resident memory now and at most, and CPU
// time since its start.
type usage struct {
	resident, peak int64 // bytes
	cpu            time.Duration
}

func (d *daemon) usage() (u usage, err error) {
	dir := fmt.Sprintf("/proc/%d/", d.cmd.Process.Pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			u.resident = n << 10
		case "VmHWM:":
			u.peak = n << 10
		}
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, err
	}
	// What follows the name in brackets; utime and stime are fields 14 and 15 of
	// proc(5), in ticks of 10 ms.
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return u, fmt.Errorf("cannot read %sstat", dir)
	}
	for _, field := range f[11:13] {
		n, _ := strconv.ParseInt(field, 10, 64)
		u.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	return u, nil
}

// spare is the memory that the processes of a daemon have of their own, besides the
// daemon's: what their pages of the binary are, it has too.
func (d *daemon) spare() (own int64, n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.cmd.Process.Pid))
	for _, task := range tasks {
		list, _ := os.ReadFile(task) // "" where the kernel does not tell
		for _, child := range strings.Fields(string(list)) {
			text, err := os.ReadFile("/proc/" + child + "/smaps_rollup")
			if err != nil {
				continue // it is gone
			}
			n++
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "Private_") {
					kib, _ := strconv.ParseInt(f[1], 10, 64)
					own += kib << 10
				}
			}
		}
	}
	return own, n
}

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
