// The figures of docs/testing/performance.md: it drives the real binary, real
// git and the engine on this machine, prints one table, and removes everything
// that it made.
//
//	make bench                                   all of it
//	make bench BENCH="-run push -pushes 20"      a part
//
// The parts are push, look, flood, large, hundred, traffic, gap, and, when named, alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// host is the name that the measured daemons have. There is one, so that what
// an earlier run left behind is found; gitring itself refuses a second daemon of
// the name on the engine.
const host = "bench"

// settings are what the flags say.
type settings struct {
	bin    string
	engine string
	parts  []string
	keep   bool // the folder, for a look at the logs
	pushes int
	apps   int
	idle   time.Duration
	rate   time.Duration
	calm   time.Duration
	subnet string
}

// part is one group of figures, measured in at most limit.
type part struct {
	name  string
	limit time.Duration
	run   func(b *bench, ctx context.Context) error
}

var parts = []part{
	{"push", 10 * time.Minute, (*bench).push},
	{"look", 10 * time.Minute, (*bench).look},
	{"flood", 5 * time.Minute, (*bench).flood},
	{"large", 10 * time.Minute, (*bench).large},
	{"hundred", 20 * time.Minute, (*bench).hundred},
	{"page", 20 * time.Minute, (*bench).page},
	{"traffic", 10 * time.Minute, (*bench).traffic},
	{"gap", 10 * time.Minute, (*bench).gap},
	{"alone", 20 * time.Minute, (*bench).alone},
}

func (f *settings) parse() error {
	var run string
	flag.StringVar(&f.bin, "bin", "bin/gitring", "the gitring to measure")
	flag.StringVar(&f.engine, "engine", engineURL(), "the engine's `url`")
	flag.StringVar(&run, "run", "push,look,flood,large,hundred,page,traffic,gap", "the `parts` to measure")
	flag.BoolVar(&f.keep, "keep", false, "leave the working folder, with the daemons' logs")
	flag.IntVar(&f.pushes, "pushes", 12, "pushes to take the median of")
	flag.IntVar(&f.apps, "apps", 100, "apps of the part hundred")
	flag.DurationVar(&f.idle, "idle", 65*time.Second, "how long an idle daemon is watched")
	flag.DurationVar(&f.rate, "rate", 20*time.Second, "how long each port is asked for new connections; the goal is of 1m")
	flag.DurationVar(&f.calm, "calm", 5*time.Second, "how long to wait, before each sample, for a machine with little else to do")
	flag.StringVar(&f.subnet, "subnet", "10.219", "first two `octets` of the apps' networks, /28 each")
	flag.Parse()
	f.parts = strings.Split(run, ",")
	for _, name := range f.parts {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("cannot measure %q: the parts are push, look, flood, large, hundred, page, traffic, gap and alone", name)
		}
	}
	if f.pushes < 1 || f.apps < 1 || f.apps > 200 {
		return errors.New("cannot measure that: at least one push, and 1 to 200 apps")
	}
	var err error
	f.bin, err = filepath.Abs(f.bin)
	return err
}

func engineURL() string {
	if u := os.Getenv("DOCKER_HOST"); u != "" {
		return u
	}
	return "unix:///var/run/docker.sock"
}

func main() {
	// The image of the measured apps holds this very program.
	if len(os.Args) > 1 && os.Args[1] == "app" {
		app()
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// app answers until it is told to end.
func app() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := answer(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var f settings
	if err := f.parse(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	b, err := newBench(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	before := load()
	for _, p := range parts {
		if !slices.Contains(f.parts, p.name) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, p.limit)
		err := p.run(b, limited)
		cancel()
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", p.name, err)
		}
		if err := b.clean(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	b.table.print(os.Stdout, b.machine(ctx, before))
	return nil
}
