package runtime

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// hostNets is the network of the host that the engine runs on; the zero value where
// that may be another host than ours.
func (d *Docker) hostNets(ctx context.Context, e engine) (hostNets, error) {
	if !d.isHere(ctx, e) {
		return hostNets{}, nil
	}
	h, err := lookAtHost()
	if err != nil {
		return h, &ring.EngineError{Cause: ring.CauseNetwork, Err: fmt.Errorf("cannot look at the host's own network: %w", err)}
	}
	return h, nil
}

// hereServes is how long an engine counts as this host's once it said so: each app and each
// network asks for the host's addresses, and a commit may bring a hundred.
const hereServes = 10 * time.Second

// isHere reports whether the engine runs on this host, as it said a moment ago. What would
// touch a process asks anew.
func (d *Docker) isHere(ctx context.Context, e engine) bool {
	d.registries.mu.Lock()
	known := time.Now().Before(d.registries.here)
	d.registries.mu.Unlock()
	if known {
		return true
	}
	if d.elsewhere(ctx, e) != "" {
		return false
	}
	d.registries.mu.Lock()
	defer d.registries.mu.Unlock()
	d.registries.here = time.Now().Add(hereServes)
	return true
}

// Subnets are the notes of an app on what its subnets take of the host, for people who ask
// what it would do. An app that leaves its subnets to the engine costs no question.
func (d *Docker) Subnets(ctx context.Context, app *ring.App) (notes []string, err error) {
	if !bringsSubnets(app) {
		return nil, nil
	}
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	b := beside{ownerHost: d.ownerHost()}
	if b.networks, err = e.NetworkList(ctx, network.ListOptions{}); err != nil {
		return nil, fault("cannot list networks", "", err)
	}
	if b.nets, err = d.nets(ctx, e); err != nil {
		return nil, err
	}
	for _, n := range joinedNetworks(app) {
		told, refused := b.hostsOwn(ring.Action{App: app.Name, Of: app}, n)
		notes = append(notes, told...)
		for _, r := range refused {
			notes = append(notes, r.Says+"; the app will be refused on this host")
		}
	}
	return notes, nil
}

// Where the kernel and the resolver say what the host's network is.
const (
	routes4     = "/proc/net/route"
	routes6     = "/proc/net/ipv6_route"
	resolvConf  = "/etc/resolv.conf"
	resolvedRun = "/run/systemd/resolve/resolv.conf" // behind the stub on 127.0.0.53
)

func lookAtHost() (h hostNets, err error) {
	devices, err := net.Interfaces()
	if err != nil {
		return h, err
	}
	addresses, err := hostAddresses(devices)
	if err != nil {
		return h, err
	}
	for _, device := range devices {
		if device.Flags&net.FlagUp == 0 || device.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, p := range addresses[device.Index] {
			h.attached = append(h.attached, attachedNet{p.Masked(), p.Addr(), device.Name, device.Flags&net.FlagRunning == 0})
		}
	}
	for file, read := range map[string]func(string) (hostRoute, bool){routes4: route4, routes6: route6} {
		lines, err := linesOf(file)
		if err != nil {
			return h, err
		}
		for _, line := range lines {
			if r, ok := read(line); ok && !h.hasNetwork(r.prefix) {
				h.routes = append(h.routes, r)
			}
		}
	}
	for _, file := range []string{resolvConf, resolvedRun} {
		lines, err := linesOf(file)
		if err != nil {
			return h, err
		}
		for _, line := range lines {
			if s, ok := nameServer(line); ok {
				h.servers = append(h.servers, s)
			}
		}
	}
	return h, nil
}

// hasNetwork reports whether a route is that of a network to which the host is attached.
func (h hostNets) hasNetwork(p netip.Prefix) bool {
	for _, n := range h.attached {
		if n.prefix == p {
			return true
		}
	}
	return false
}

// linesOf are the lines of a file; none where there is no such file.
func linesOf(file string) ([]string, error) {
	body, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Split(string(body), "\n"), err
}

// route4 reads a line of /proc/net/route, whose numbers are hexadecimal in the host's
// order of bytes.
func route4(line string) (r hostRoute, ok bool) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return r, false
	}
	to, err1 := strconv.ParseUint(f[1], 16, 32)
	mask, err2 := strconv.ParseUint(f[7], 16, 32)
	if err1 != nil || err2 != nil {
		return r, false // the heading
	}
	var address, bits [4]byte
	binary.NativeEndian.PutUint32(address[:], uint32(to))
	binary.NativeEndian.PutUint32(bits[:], uint32(mask))
	ones, _ := net.IPMask(bits[:]).Size()
	return hostRoute{netip.PrefixFrom(netip.AddrFrom4(address), ones).Masked(), f[0]}, true
}

// route6 reads a line of /proc/net/ipv6_route.
func route6(line string) (r hostRoute, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 || f[9] == "lo" {
		return r, false
	}
	to, err1 := hex.DecodeString(f[0])
	ones, err2 := strconv.ParseUint(f[1], 16, 8)
	if err1 != nil || err2 != nil || len(to) != 16 {
		return r, false
	}
	return hostRoute{netip.PrefixFrom(netip.AddrFrom16([16]byte(to)), int(ones)).Masked(), f[9]}, true
}

// nameServer reads a line of resolv.conf. One on the host itself is no other's.
func nameServer(line string) (netip.Addr, bool) {
	f := strings.Fields(line)
	if len(f) < 2 || f[0] != "nameserver" {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(f[1])
	return a.WithZone("").Unmap(), err == nil && !a.IsLoopback()
}
