package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestPlanSaysWhichPortIsWaitedForAndWhoHasIt(t *testing.T) {
	const begin = `service shop/a port 192.168.1.5:8080
service shop/c port 7070
service shop/d port 6060
service shop/w volume data
service edge/b
service shop/e
commit c1 shop/a=a1 shop/c=c1 shop/d=d1 shop/w=w1 edge/b=b1 shop/e=e1
rest`
	for _, c := range []struct {
		name, next string
		order      map[string]string
	}{
		{
			"a port that another service gives up", "service shop/a port 9090\nservice shop/e port 8080\ncommit c2 shop/a=a1 shop/e=e2",
			map[string]string{"shop/e": "after a let go of port 8080/tcp", "shop/a": ""},
		},
		{
			"a port that a service of another app gives up", "service shop/a port 9090\nservice edge/b port 8080\ncommit c2 shop/a=a1 edge/b=b2",
			map[string]string{"edge/b": "after shop/a let go of port 8080/tcp"},
		},
		{
			"a port of a service that leaves", "service shop/new port 8080\ncommit c2 shop/new=n1 -shop/a",
			map[string]string{"shop/new": "after a is gone, which publishes port 8080/tcp"},
		},
		{
			"a port of an app that leaves", "service edge/b port 8080\ncommit c2 edge/b=b1 -shop",
			map[string]string{"edge/b": "after shop/a is gone, which publishes port 8080/tcp"},
		},
		{
			"a port that stays with another", "service edge/b port 8080\ncommit c2 edge/b=b1",
			map[string]string{"edge/b": "waits for shop/a, which publishes port 8080/tcp and keeps it: publish one of them on another port"},
		},
		{
			"two services that swap", "service shop/a port 7070\nservice shop/c port 8080\ncommit c2 shop/a=a1 shop/c=c1",
			map[string]string{
				"shop/a": "waits for c to let go of port 7070/tcp, and c waits for it: move it in a commit of its own",
				"shop/c": "waits for a to let go of port 8080/tcp, and a waits for it: move it in a commit of its own",
			},
		},
		{
			"three services in a ring", "service shop/a port 7070\nservice shop/c port 6060\nservice shop/d port 8080\ncommit c2 shop/a=a1 shop/c=c1 shop/d=d1",
			map[string]string{"shop/d": "waits for a to let go of port 8080/tcp, and a waits for it: move it in a commit of its own"},
		},
		{
			"a chain, which is no ring", "service shop/a port 7070\nservice shop/c port 5050\nservice shop/d port 8080\ncommit c2 shop/a=a1 shop/c=c1 shop/d=d1",
			map[string]string{"shop/a": "after c let go of port 7070/tcp", "shop/d": "after a let go of port 8080/tcp", "shop/c": ""},
		},
		{
			"a volume that moves", "service shop/new volume data\ncommit c2 shop/new=n1 -shop/w",
			map[string]string{"shop/new": "after w is gone, which writes volume shop_data"},
		},
		{"a port of its own in another version", "commit c2 shop/a=a2", map[string]string{"shop/a": ""}},
		{"another family of addresses", "service edge/b port [fd00::5]:8080\ncommit c2 edge/b=b1", map[string]string{"edge/b": ""}},
		{
			"what depends on it, too", "service shop/a port 9090\nservice shop/e port 8080 depends_on a ready\ncommit c2 shop/a=a1 shop/e=e2",
			map[string]string{"shop/e": "after a is ready, after a let go of port 8080/tcp"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := planned(t, begin, c.next)
			for id, order := range c.order {
				require.Contains(t, got, id)
				require.Equal(t, order, got[id].Order, id)
			}
		})
	}
}

// Two apps that publish one port are told before either of them is tried, whoever has it now.
func TestPlanDoubtsThatTwoAppsPublishOnePort(t *testing.T) {
	const both = "and both do here: publish port"
	for _, c := range []struct {
		name, next string
		doubt      string
	}{
		{"one has it", "service edge/b port 127.0.0.1:8080\ncommit c2 edge/b=b1", "edge/b cannot start while shop/a publishes port 8080/tcp, " + both + " 127.0.0.1:8080/tcp on another one"},
		{"nobody has it yet", "service edge/b port 9090\nservice other/d port 0.0.0.0:9090\ncommit c2 edge/b=b1 other/d=d1", "other/d cannot start while edge/b publishes port 9090/tcp, " + both + " 0.0.0.0:9090/tcp on another one"},
		{"who has it gives it up", "service shop/a port 9090\nservice edge/b port 8080\ncommit c2 shop/a=a1 edge/b=b2", ""},
		{"another port", "service edge/b port 9090\ncommit c2 edge/b=b1", ""},
		{"nothing changes", "commit c2 shop/a=a2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			for _, line := range strings.Split("service shop/a port 8080\nservice edge/b\ncommit c1 shop/a=a1 edge/b=b1\nrest\n"+c.next, "\n") {
				require.NoError(t, s.tell(line), line)
			}
			w := s.world()
			doubts := Plan(w, w.Sources[0].Next, s.clock()).Doubts
			if c.doubt == "" {
				require.Empty(t, doubts)
				return
			}
			require.Equal(t, []string{c.doubt}, doubts)
		})
	}
}

// The engine says that a port is taken, and not by whom.
func TestStatusAndInspectSayWhoHasAPortThatTheEngineFoundTaken(t *testing.T) {
	s := newStory()
	for _, line := range []string{"service shop/a port 8080", "service edge/b", "commit c1 shop/a=a1 edge/b=b1", "rest", "service edge/b port 127.0.0.1:8080"} {
		require.NoError(t, s.tell(line), line)
	}
	w := s.world()
	v := newDecider(w, s.clock())
	v.decide()
	b := v.views["edge/b"]
	b.want.Spec.Ports = []ring.Port{{HostIP: "127.0.0.1", HostPort: "8080", Container: 80, Protocol: "tcp"}}
	w.Tries = map[string]ring.Try{"edge/b": {
		Kind: ring.DoCreate, Version: b.want.Version, Cause: ring.CauseCreate, N: 3, At: s.clock(), Next: s.clock().Add(time.Minute),
		Err: "driver failed programming external connectivity: Bind for 127.0.0.1:8080 failed: port is already allocated",
	}}
	v.Tries = w.Tries
	require.Contains(t, v.slowestSays(b), "port 127.0.0.1:8080/tcp is published by shop/a")
	e := &explainer{decider: v, id: b.id, v: b, out: &ring.Explained{}}
	rule, next := e.seenSo("edge/b")
	require.Contains(t, rule, "port 127.0.0.1:8080/tcp is published by shop/a")
	require.Contains(t, next, "gitring inspect shop/a")
}
