package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// bench is what the parts share: a folder of their own, the engine, an image in
// it, and the table.
type bench struct {
	settings
	dir    string
	engine *engine
	table  table
}

// newBench makes sure of git and the engine, removes what an earlier run left,
// and makes the image.
func newBench(ctx context.Context, f settings) (*bench, error) {
	for _, tool := range []string{"git", "ssh-keygen", f.bin} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("cannot find %s: %w", tool, err)
		}
	}
	e, err := dialEngine(f.engine)
	if err != nil {
		return nil, err
	}
	b := &bench{settings: f, engine: e}
	if err := b.clean(ctx); err != nil {
		return nil, err
	}
	// Short, because sockets are below it.
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	if err := b.engine.makeImage(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// folder is a new folder for one daemon or repository.
func (b *bench) folder(name string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, name)
	if err != nil {
		return "", err
	}
	return dir, nil
}

func (b *bench) note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" "+format+"\n", args...)
}

// clean removes what this program made on the engine, but for the image.
func (b *bench) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, label := range []string{"gitring.host=" + host, floorLabel + "=" + host} {
		if err := b.engine.removeAll(ctx, label); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	err := errors.Join(b.clean(ctx), b.engine.call(ctx, "DELETE", "/images/"+imageName+"?force=1", nil, nil))
	if b.keep {
		b.note("left %s", b.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// machine says where the figures come from.
func (b *bench) machine(ctx context.Context, before string) string {
	version, err := exec.CommandContext(ctx, b.bin, "version").Output()
	if err != nil {
		version = []byte("gitring")
	}
	first, _, _ := strings.Cut(string(version), "\n")
	return fmt.Sprintf("%s; engine %s; %d cores; load %s before, %s after; %s",
		first, b.engine.version(ctx), runtime.NumCPU(), before, load(), time.Now().UTC().Format("2006-01-02 15:04 MST"))
}

// load is the load average over one minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// until asks ok every few milliseconds, until it says yes or ctx ends.
func until(ctx context.Context, every time.Duration, ok func() (bool, error)) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		yes, err := ok()
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
