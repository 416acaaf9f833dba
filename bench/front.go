package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Of new connections: how many come at once, and for how long each port is asked.
const (
	connecting = 32
	rateTurns  = 4
	wantedRate = 5000
)

// standing is a container that runs: where it answers, and its first process.
type standing struct {
	addr string
	pid  int
}

// containerOf is the one container of a service of the first app.
func (b *bench) containerOf(ctx context.Context, service string) (s standing, err error) {
	list, err := b.engine.containers(ctx, "gitring.service="+service)
	if err != nil {
		return s, err
	}
	if len(list) != 1 {
		return s, fmt.Errorf("cannot choose: service %s has %d containers", service, len(list))
	}
	var is struct {
		State           struct{ Pid int }
		NetworkSettings struct {
			Networks map[string]struct{ IPAddress string }
		}
	}
	if err := b.engine.call(ctx, "GET", "/containers/"+list[0].ID+"/json", nil, &is); err != nil {
		return s, err
	}
	for _, n := range is.NetworkSettings.Networks {
		return standing{net.JoinHostPort(n.IPAddress, "8080"), is.State.Pid}, nil
	}
	return s, fmt.Errorf("service %s has no network", service)
}

// newConnections measures how many connections a second are opened, asked once and closed, by
// a front and by its like without one, in turns. It asks the containers' own addresses: what a
// published port adds is the engine's, and the same for both.
func (b *bench) newConnections(ctx context.Context) error {
	services := map[string]string{"direct": "by-direct", "front": "by-front-front"}
	got, failed := map[string]int64{}, map[string]int64{}
	took := map[string]time.Duration{}
	for range rateTurns {
		for _, name := range []string{"direct", "front"} {
			at, err := b.containerOf(ctx, services[name])
			if err != nil {
				return err
			}
			if err := b.calm(ctx); err != nil {
				return err
			}
			began := time.Now()
			n, lost := connectFor(ctx, at.addr, b.rate/rateTurns)
			took[name] += time.Since(began)
			got[name], failed[name] = got[name]+n, failed[name]+lost
		}
	}
	for _, name := range []string{"direct", "front"} {
		target := ""
		if name == "front" {
			target = "5,000 a second, 0 failed"
		}
		how := fmt.Sprintf("%d at once, each asks once; client, front and app share the machine", connecting)
		if float64(got["direct"])/took["direct"].Seconds() < wantedRate {
			how += ", which reaches the target without a front neither"
		}
		b.table.add(row{"new connections, " + name, fmt.Sprintf("%.0f a second, %d of %d failed", float64(got[name])/took[name].Seconds(), failed[name], got[name]+failed[name]), target, "", how})
	}
	return nil
}

// connectFor opens connections for so long, each for one request. A closed one leaves no
// TIME_WAIT behind, else the client would run out of ports.
func connectFor(ctx context.Context, addr string, most time.Duration) (got, failed int64) {
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	var good, bad atomic.Int64
	var all sync.WaitGroup
	for range connecting {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := connectOnce(addr); err != nil {
					bad.Add(1)
				} else {
					good.Add(1)
				}
			}
		})
	}
	all.Wait()
	return good.Load(), bad.Load()
}

func connectOnce(addr string) error {
	c, err := net.DialTimeout("tcp", addr, 30*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	text, err := io.ReadAll(c)
	if err == nil && (!strings.HasPrefix(string(text), "HTTP/1.1 200 ") || !strings.HasSuffix(string(text), "hello")) {
		err = errors.New(http.StatusText(http.StatusBadGateway))
	}
	return err
}

// idleFront measures what a front costs that nobody asks: its processes and the engine's shim.
func (b *bench) idleFront(ctx context.Context, name string) error {
	at, err := b.containerOf(ctx, "by-front-front")
	if err != nil {
		return err
	}
	if err := pause(ctx, 10*time.Second); err != nil { // until what requests left behind is collected
		return err
	}
	parts, err := familyOf(at.pid)
	if err != nil {
		return err
	}
	var memory int64
	var each []string
	before, began := time.Duration(0), time.Now()
	for _, p := range parts {
		n, err := shareOfMemory(p.pid)
		if err != nil {
			return err
		}
		cpu, err := cpuOf(p.pid)
		if err != nil {
			return err
		}
		memory, before = memory+n, before+cpu
		each = append(each, fmt.Sprintf("%s %.1f", p.name, float64(n)/(1<<20)))
	}
	if err := pause(ctx, b.idle); err != nil {
		return err
	}
	after := time.Duration(0)
	for _, p := range parts {
		cpu, err := cpuOf(p.pid)
		if err != nil {
			return err
		}
		after += cpu
	}
	watched := time.Since(began)
	b.table.add(row{name + ", memory", fmt.Sprintf("%.1f MiB", float64(memory)/(1<<20)), "14 MiB", "", "PSS of " + strings.Join(each, ", ")})
	b.table.add(row{"  CPU", fmt.Sprintf("%.2f %% of a core", 100*(after-before).Seconds()/watched.Seconds()), "0.25 %", "", fmt.Sprintf("watched for %s, asked by the daemon as ever", watched.Round(time.Second))})
	return nil
}

// process is one of a front's, by what it is.
type process struct {
	name string
	pid  int
}

// familyOf are the process of a container, its children, and the shim above it.
func familyOf(pid int) ([]process, error) {
	all := []process{{"supervisor", pid}}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, file := range stats {
		own, _ := strconv.Atoi(strings.Split(file, "/")[2])
		parent, err := parentOf(own)
		if err != nil { // it has ended
			continue
		}
		if own == pid {
			all = append(all, process{"shim", parent})
		} else if parent == pid {
			all = append(all, process{"proxy", own})
		}
	}
	return all, nil
}

// statOf are the fields of proc(5)'s stat that follow the name in brackets: the third and on.
func statOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return nil, fmt.Errorf("cannot read /proc/%d/stat", pid)
	}
	return f, nil
}

func parentOf(pid int) (int, error) {
	f, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(f[1])
}

// cpuOf is what a process has used of the CPU, in ticks of 10 ms.
func cpuOf(pid int) (sum time.Duration, err error) {
	f, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	for _, field := range f[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum, nil
}

// shareOfMemory is the memory of a process, with its share of what it has together with others.
func shareOfMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/smaps_rollup has no Pss", pid)
}
