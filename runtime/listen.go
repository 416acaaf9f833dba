package runtime

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// Whether anything listens on what a container publishes is read off the kernel's own
// tables: a connection would reach programs that count, log or end with each one, and
// behind the port of the host the engine takes every connection anyway. A port that was
// heard once is not looked at again in that start; others are, after listenAgain, so
// many of them at a look: the kernel walks through the connections of the whole host.
const (
	listenAgain  = 5 * time.Second
	listenAtOnce = 16
)

// ears are the ports of one start of a container that nobody was heard on yet.
type ears struct {
	started time.Time
	pid     int
	open    []ring.Port
	read    time.Time // zero: never
	unheard []ring.Unheard
}

// earsOf are those of a container as it was inspected just now.
func earsOf(c container.InspectResponse, before known) ears {
	if c.ContainerJSONBase == nil || c.State == nil || c.State.Pid <= 1 || !c.State.Running || c.NetworkSettings == nil {
		return ears{}
	}
	started := moment(c.State.StartedAt)
	if b := before.ears; b.pid == c.State.Pid && b.started.Equal(started) {
		return b
	}
	return ears{started: started, pid: c.State.Pid, open: passedOn(c.NetworkSettings)}
}

// passedOn are the ports that the engine passes on to a container: none on the host's
// network. Of three and more side by side none is: programs open those of such a range
// as they need them.
func passedOn(n *container.NetworkSettings) (out []ring.Port) {
	var all []ring.Port
	for port, bindings := range n.Ports {
		if len(bindings) > 0 {
			all = append(all, ring.Port{Container: port.Int(), Protocol: port.Proto()})
		}
	}
	slices.SortFunc(all, func(a, b ring.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Container, b.Container))
	})
	for len(all) > 0 {
		row := 1
		for row < len(all) && all[row].Protocol == all[0].Protocol && all[row].Container == all[0].Container+row {
			row++
		}
		if row < 3 {
			out = append(out, all[:row]...)
		}
		all = all[row:]
	}
	return out
}

// listen looks which ports of containers nobody listens on, at those first that were
// not looked at for longest.
func listen(proc string, all map[string]known, now time.Time) {
	var due []string
	for id, k := range all {
		if len(k.ears.open) > 0 && (k.ears.read.IsZero() || now.Sub(k.ears.read) >= listenAgain) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		return cmp.Or(all[a].ears.read.Compare(all[b].ears.read), cmp.Compare(a, b))
	})
	for _, id := range due[:min(len(due), listenAtOnce)] {
		k := all[id]
		k.ears = k.ears.hear(proc, id, now)
		all[id] = k
	}
	for id, k := range all {
		k.in.Unheard = k.ears.unheard
		all[id] = k
	}
}

// hear looks once. What cannot be seen is not known, which is not nothing.
func (e ears) hear(proc, id string, now time.Time) ears {
	e.read, e.unheard = now, nil
	dir := filepath.Join(proc, strconv.Itoa(e.pid))
	if !inGroup(dir, id) {
		return e
	}
	heard := map[ring.Port]bool{} // false: by the instance itself alone
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		if err := hearTable(filepath.Join(dir, "net", table), strings.TrimSuffix(table, "6"), heard); err != nil {
			return e
		}
	}
	var left []ring.Port
	for _, p := range e.open {
		outside, inside := heard[p]
		switch {
		case outside:
			continue
		case p.Protocol == "tcp" || p.Protocol == "udp":
			e.unheard = append(e.unheard, ring.Unheard{Port: strconv.Itoa(p.Container) + "/" + p.Protocol, Loopback: inside})
			left = append(left, p)
		}
	}
	e.open = left
	return e
}

// The kernel's words for a socket that waits for others, and how much of a table is read:
// the ones that wait stand first in that of tcp.
const (
	tcpListens = "0A"
	udpWaits   = "07"
	tableCap   = 1 << 20
)

// hearTable adds what one of the kernel's tables of a network namespace has. A kernel
// without IPv6 has no table of it.
func hearTable(file, protocol string, heard map[ring.Port]bool) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened to read only
	capped := &io.LimitedReader{R: f, N: tableCap}
	lines := bufio.NewScanner(capped)
	lines.Scan() // the heads of its columns
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || protocol == "tcp" && fields[3] != tcpListens {
			return nil
		}
		at, ok := socketAddr(fields[1])
		if !ok || protocol == "udp" && fields[3] != udpWaits {
			continue
		}
		p := ring.Port{Container: int(at.Port()), Protocol: protocol}
		heard[p] = heard[p] || !at.Addr().IsLoopback()
	}
	if capped.N == 0 {
		return errors.New("more sockets than are read")
	}
	return lines.Err()
}

// socketAddr is an address as the kernel writes it, "0100007F:1F90" for 127.0.0.1:8080: its
// words are numbers of this machine.
func socketAddr(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	var raw []byte
	for ; len(host) >= 8; host = host[8:] {
		word, err := strconv.ParseUint(host[:8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		raw = binary.NativeEndian.AppendUint32(raw, uint32(word))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}

// inGroup reports whether the process of a folder of /proc stands in a container's control
// group. The engine may count processes in another namespace, or on another host: then
// the number is anybody's.
func inGroup(dir, id string) bool {
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	return err == nil && id != "" && strings.Contains(string(groups), id)
}
