package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// wildcard answers for every name with an address that is the test's own, where a stranger answers
// on the port of the app. It returns that address, which only this machine and its containers reach, and how often it was
// asked for one.
func wildcard(t *testing.T) (at net.IP, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	n := rand.Uint32()
	name := fmt.Sprintf("gr%08x", n)
	at = net.IPv4(198, 18, byte(n>>8), byte(n)).To4() // for tests of networks: RFC 2544
	ip := func(args ...string) {
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %v: %s", args, out)
	}
	ip("link", "add", name, "type", "bridge")
	t.Cleanup(func() { ip("link", "del", name) })
	ip("addr", "add", at.String()+"/32", "dev", name)
	ip("link", "set", name, "up")
	dns, err := net.ListenUDP("udp4", &net.UDPAddr{IP: at, Port: 53})
	require.NoError(t, err)
	l, err := net.Listen("tcp4", at.String()+":8080")
	require.NoError(t, err)
	stranger := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Version", "whom the wildcard names")
		_, _ = io.WriteString(w, "wrong")
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = stranger.Serve(l) })
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := dns.ReadFromUDP(buf)
			if err != nil {
				return
			}
			if reply := anyName(buf[:n], at); reply != nil {
				asked.Add(int32(reply[7]))
				_, _ = dns.WriteToUDP(reply, from)
			}
		}
	})
	t.Cleanup(func() {
		_ = errors.Join(dns.Close(), stranger.Close())
		serving.Wait()
	})
	return at, asked
}

// anyName is the answer to a question of DNS, whatever its name: an A is at, and nothing else is
// there.
func anyName(question []byte, at net.IP) []byte {
	end := 12 // after the head is the name: labels, each with its length before it
	for end < len(question) && question[end] != 0 {
		end += 1 + int(question[end])
	}
	if end += 5; end > len(question) {
		return nil
	}
	reply := append([]byte{question[0], question[1], 0x84, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[12:end]...)
	if question[end-4] == 0 && question[end-3] == 1 {
		reply[7] = 1
		reply = append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), at...)
	}
	return reply
}

// However the containers of a host come up, a front sends nothing to others: not to those that
// have the addresses of its instances now, and not to whom a wildcard names. Nobody tells it
// anything meanwhile.
func TestAFrontAnswersRightWhateverStartsFirst(t *testing.T) {
	t.Parallel()
	boots := amount(t, "BOOTS", 3, 20)
	r := dice(t)
	at, asked := wildcard(t)
	e := newEngine(t, "--dns", at.String(), "--dns-search", "wild.example")
	h := hostOn(t, e.engine)
	app, port := h.app("web"), h.freePort()
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{
		"web": fronted("1", port, replicas(2)), "stranger": web("a stranger", replicas(3)),
	})})
	forwarded(t, h.subnets[app])
	h.start()
	h.synced(first)
	h.serves(port, "1")
	settled(h)
	h.kill()

	wrong, moved := map[string]int{}, 0
	was := addressesOf(h, "web")
	for boot := range boots {
		all := slices.Concat(h.containers("stranger"), h.containers("web-front"), h.containers("web"))
		load := ask(port)
		load.more(h, 3)
		var stops sync.WaitGroup
		for _, c := range all {
			stops.Go(func() {
				if err := e.stop(c.ID); err != nil {
					t.Error(err)
				}
			})
		}
		stops.Wait()
		if boot > 0 { // the first time strangers come first, and take what is free
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		for _, c := range all {
			require.NoError(t, e.call("POST", "/containers/"+c.ID+"/start", nil, nil, nil))
		}
		h.serves(port, "1")
		load.more(h, 5)
		load.stop(t)
		maps.DeleteFunc(load.by, func(version string, _ int) bool { return version == "" || version == "1" })
		for version, n := range load.by {
			wrong[fmt.Sprintf("boot %d: %s", boot, version)] = n
		}
		for _, a := range addressesOf(h, "stranger") {
			if slices.Contains(was, a) {
				moved++
			}
		}
		was = addressesOf(h, "web")
	}
	require.Empty(t, wrong)
	require.Positive(t, asked.Load(), "the wildcard was asked for an address")
	require.Positive(t, moved, "a stranger had the address of an instance")
	t.Logf("%d boots, %d times a stranger had the address of an instance, the wildcard gave %d", boots, moved, asked.Load())
}

func addressesOf(h *host, service string) (all []string) {
	for _, c := range h.containers(service) {
		all = append(all, c.address())
	}
	return all
}

// An engine that keeps what runs while it is away itself costs no request, though its DNS is
// silent then: a front goes on with the last addresses. Its ports of the host are the engine's
// own processes here, so it is asked at its own address.
func TestAFrontServesWhileItsEngineIsAway(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "--live-restore")
	h := hostOn(t, e.engine)
	app, port := h.app("web"), h.freePort()
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("1", port, replicas(2))})})
	forwarded(t, h.subnets[app])
	h.start()
	h.synced(first)
	settled(h)
	h.kill()
	before := identities(h.containers())
	load := askAt(net.JoinHostPort(h.one("web-front").address(), "8080"))
	load.more(h, 5)
	e.end(syscall.SIGTERM)
	load.more(h, 20)
	e.start()
	load.more(h, 20)
	all := load.lostNone(t, h)
	require.Equal(t, before, identities(h.containers()), "nothing was started anew")
	h.events = e.listen(t, h.name)
	mark := h.events.mark()
	h.start()
	h.synced(first)
	require.Empty(t, h.events.after(mark, "create", "start", "destroy"))
	t.Logf("%d requests, none lost", all)
}
