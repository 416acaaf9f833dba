package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"
)

// leaseWorld is a cluster as a person sees it: one clock, one written lease, and managers that
// may act or not. It knows nothing of how a manager decides.
type leaseWorld struct {
	now   time.Duration
	index uint64
	owner int
	by    []*leaseMember
}

// leaseMember is one manager of it. Its clock began some time, and may run a little wrong.
type leaseMember struct {
	lease
	offset, wall time.Duration
	down, deaf   time.Duration // until then it does not run, or hears no answer
}

func (w *leaseWorld) clock(i int) instant {
	m := w.by[i]
	return instant{up: w.now + m.offset, wall: w.now + m.wall}
}

// look is one look of a manager; the cluster may take long to answer, and meanwhile others go on.
func (w *leaseWorld) look(r *rand.Rand, i int) {
	m := w.by[i]
	if w.now < m.down || m.isFresh(w.clock(i)) {
		return
	}
	index, owner := w.index, w.owner
	w.pass(r, i, time.Duration(r.IntN(3))*time.Second) // the answer is on its way
	step := m.see(index, index > 0 && owner == i, w.clock(i))
	if step == leaseFollow {
		return
	}
	sent := w.clock(i)
	w.pass(r, i, time.Duration(r.IntN(4))*time.Second) // the request is on its way
	if w.index != index {
		m.held = false
		return // it was written meanwhile
	}
	w.index, w.owner = w.index+1, i
	if w.now < m.deaf {
		return // the answer was lost
	}
	m.wrote(sent)
}

// pass has time go by while manager i waits; sometimes that one is stopped, for a minute or two.
func (w *leaseWorld) pass(r *rand.Rand, i int, by time.Duration) {
	if r.IntN(40) == 0 {
		by += time.Duration(r.IntN(120)) * time.Second
	}
	for end := w.now + by; w.now < end; {
		w.now += time.Second
		for j := range w.by {
			if j != i && r.IntN(25) == 0 {
				w.quickLook(j)
			}
		}
	}
}

// quickLook is a look that is answered at once.
func (w *leaseWorld) quickLook(i int) {
	m := w.by[i]
	if w.now < m.down || m.isFresh(w.clock(i)) {
		return
	}
	if m.see(w.index, w.index > 0 && w.owner == i, w.clock(i)) != leaseFollow {
		w.index, w.owner = w.index+1, i
		m.wrote(w.clock(i))
	}
}

func (w *leaseWorld) acting() (all []int) {
	for i, m := range w.by {
		if m.acts(w.clock(i)) {
			all = append(all, i)
		}
	}
	return all
}

// Two that act at once would send two specs in turn, for ever.
func TestNeverTwoManagersActAtOnce(t *testing.T) {
	moves := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &leaseWorld{owner: -1}
		for range 2 + r.IntN(3) {
			w.by = append(w.by, &leaseMember{offset: time.Duration(r.IntN(1e6)) * time.Second, wall: time.Duration(r.IntN(1e9)) * time.Second})
		}
		last := -1
		for range 400 {
			w.now += time.Second
			i := r.IntN(len(w.by))
			switch r.IntN(60) {
			case 0:
				w.by[i].down = w.now + time.Duration(r.IntN(180))*time.Second
			case 1:
				w.by[i].deaf = w.now + time.Duration(r.IntN(90))*time.Second
			case 2:
				w.by[i].lease = lease{} // the daemon starts anew
			case 3:
				w.by[i].wall += time.Duration(r.IntN(7200)-3600) * time.Second // somebody sets the clock
			}
			w.look(r, i)
			act := w.acting()
			require.LessOrEqual(t, len(act), 1, "seed %d at %s: managers %v act", seed, w.now, act)
			if len(act) == 1 && act[0] != last {
				last = act[0]
				moves++
			}
		}
		// Whoever lives takes over.
		for i := range w.by {
			w.by[i].down, w.by[i].deaf = 0, 0
		}
		dead := max(last, 0)
		w.by[dead].down = w.now + time.Hour
		for end := w.now + leaseDead + 10*time.Second; w.now < end; w.now += 5 * time.Second {
			for i := range w.by {
				w.quickLook(i)
			}
		}
		act := w.acting()
		require.Len(t, act, 1, "seed %d: nobody took over", seed)
		require.NotEqual(t, dead, act[0])
	}
	require.Greater(t, moves, 400, "the lease did move")
}

// A machine that stood still, and whose clock of its own stood still with it, is told by the
// other one.
func TestAnOldLeaseIsOldByEitherClock(t *testing.T) {
	for name, later := range map[string]instant{
		"the machine ran":         {up: 31 * time.Second, wall: 31 * time.Second},
		"the machine stood still": {up: time.Second, wall: 31 * time.Second},
		"a clock was set back":    {up: 31 * time.Second, wall: -time.Hour},
	} {
		var l lease
		l.see(3, true, instant{})
		l.wrote(instant{})
		require.True(t, l.acts(instant{up: 29 * time.Second, wall: 29 * time.Second}))
		require.False(t, l.acts(later), name)
	}
	var l lease
	require.Equal(t, leaseFollow, l.see(3, false, instant{}))
	require.Equal(t, leaseFollow, l.see(3, false, instant{up: 44 * time.Second, wall: time.Hour}), "a clock set forward ends no wait")
	require.Equal(t, leaseWrite, l.see(3, false, instant{up: 45 * time.Second}))
}

// oneConfig is a manager with one config, which may not be changed: a call would panic.
type oneConfig struct {
	manager
	is *swarm.Config
}

func (o oneConfig) ConfigInspectWithRaw(context.Context, string) (swarm.Config, []byte, error) {
	return *o.is, nil, nil
}

// What a person named like the lease is theirs: it is not written over, and nobody is told to
// remove it.
func TestAConfigThatOnlyHasTheNameOfTheLeaseStays(t *testing.T) {
	is := swarm.Config{ID: "c1", Spec: swarm.ConfigSpec{Annotations: swarm.Annotations{Name: "gitring.prod.lease", Labels: map[string]string{"team": "x"}}}}
	_, err := newSwarmLease("prod", LeaseOptions{ID: "a", Key: "k"}).renew(t.Context(), oneConfig{is: &is})
	var unfit *UnfitError
	require.ErrorAs(t, err, &unfit)
	require.Contains(t, unfit.Says, "gitring did not make it")
	require.NotContains(t, unfit.Hint, "rm")
}

// A copy of a machine's disk has the same ID, and joins the swarm as another node.
func TestACopyOfAManagerIsAnotherHolder(t *testing.T) {
	first, twin := newSwarmLease("prod", LeaseOptions{ID: "a", Manager: "edge-1", Key: "k"}), newSwarmLease("prod", LeaseOptions{ID: "a", Key: "k"})
	first.onNode("n1")
	twin.onNode("n2")
	is := swarm.Config{ID: "c1", Meta: swarm.Meta{Version: swarm.Version{Index: 3}}, Spec: swarm.ConfigSpec{Annotations: swarm.Annotations{Name: "gitring.prod.lease", Labels: first.labels(nil)}}}
	says, err := twin.renew(t.Context(), oneConfig{is: &is})
	require.NoError(t, err)
	require.False(t, says.Mine)
	require.Equal(t, "edge-1", says.Holder)
}

func TestALeaseIsNotWrittenAtEachLook(t *testing.T) {
	var l lease
	require.False(t, l.isFresh(instant{}), "nobody has it")
	l.see(3, true, instant{})
	l.wrote(instant{})
	require.True(t, l.isFresh(instant{up: 4 * time.Second, wall: 4 * time.Second}))
	require.False(t, l.isFresh(instant{up: 5 * time.Second, wall: 5 * time.Second}))
	require.False(t, l.isFresh(instant{up: time.Second, wall: time.Hour}), "the machine stood still meanwhile")
}

// silent is a manager of which no method may be called: each would panic.
type silent struct{ manager }

// A call that forgets to ask would be made by a holder that was stopped for an hour.
func TestEveryCallThatChangesTheClusterAsksTheLease(t *testing.T) {
	l := newSwarmLease("prod", LeaseOptions{ID: "a"})
	m := reflect.ValueOf(leased{silent{}, l})
	changes := regexp.MustCompile(`^(Service|Config|Secret|Network|Node|Swarm)(Create|Update|Remove|Connect|Disconnect|Init|Join|Leave|Unlock|sPrune)$`)
	asked := 0
	kind := reflect.TypeOf((*manager)(nil)).Elem()
	for i := range kind.NumMethod() {
		name := kind.Method(i).Name
		// Of one node alone, and not asked for on a swarm.
		if !changes.MatchString(name) || name == "NetworkConnect" || name == "NetworkDisconnect" {
			continue
		}
		asked++
		f := m.MethodByName(name)
		args := []reflect.Value{reflect.ValueOf(context.Background())}
		for j := 1; j < f.Type().NumIn(); j++ {
			args = append(args, reflect.Zero(f.Type().In(j)))
		}
		out := f.Call(args)
		err, _ := out[len(out)-1].Interface().(error)
		require.ErrorIs(t, err, errNotHolder, name)
	}
	require.GreaterOrEqual(t, asked, 10, fmt.Sprint(asked))
	require.NoError(t, (*swarmLease)(nil).mayAct(), "an engine without a lease acts")
	require.False(t, errors.Is((*swarmLease)(nil).mayAct(), errNotHolder))
}
