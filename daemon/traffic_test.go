package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

func TestAFrontIsToldWithWhatEachOfItsInstancesGets(t *testing.T) {
	const (
		front = "f0f0f0f0f0f0f0f0"
		old1  = "111111111111aaaa"
		old2  = "222222222222aaaa"
		young = "333333333333aaaa"
	)
	route := ring.DefaultRoute()
	route.Ports = []ring.FrontPort{{Port: 80, Carry: ring.CarryAuto}, {Port: 53, Carry: ring.CarryUDP}}
	web := ring.Service{Name: "web", Kind: ring.Worker, Route: &route}
	its := ring.Service{Name: "web-front", Kind: ring.Worker, FrontOf: "web", Spec: ring.Spec{Ports: []ring.Port{{HostPort: "8080", Container: 80, Protocol: "tcp"}}}}
	instance := func(id, service, name string) ring.Instance {
		return ring.Instance{ID: id, Name: name, App: "shop", Service: service, State: ring.StateRunning}
	}
	table := ring.FrontTable{Generation: 9, CanaryWeight: 20, Instances: []ring.FrontInstance{
		{Name: old1[:12], State: ring.FrontActive},
		{Name: old2[:12], State: ring.FrontActive, Set: ring.SetStable},
		{Name: young[:12], State: ring.FrontActive, Set: ring.SetCanary},
		{Name: "gone", State: ring.FrontDraining},
	}}
	w := reconcile.World{
		Facts: ring.Facts{
			Apps:   map[string]ring.InForce{"shop": {App: ring.App{Name: "shop", Services: []ring.Service{web, its, {Name: "db"}}}}},
			Fronts: map[ring.ServiceID]ring.FrontRow{"shop/web": {Service: "shop/web", Table: table, Front: front}},
		},
		Seen: ring.Seen{Instances: []ring.Instance{
			instance("e0e0e0e0e0e0e0e0", "web-front", "shop-web-front-1-old"), instance(front, "web-front", "shop-web-front-1-new"),
			instance(old1, "web", "shop-web-1-aaaa"), instance(old2, "web", "shop-web-2-aaaa"), instance(young, "web", "shop-web-1-bbbb"),
		}},
		Fronts: map[string]ring.FrontSeen{front: {
			Generation: 9, Build: "sha256:abc", Connections: 4, Queued: 1,
			Instances: []ring.FrontInstanceSeen{{Name: young[:12], Reached: true, InFlight: 2, Counts: ring.FrontCounts{Requests: 7, Answers5xx: 1, NoAnswer: 2}}},
			Ports:     []ring.FrontPortSeen{{Port: 80, Carry: ring.CarryTCP}, {Port: 53, Carry: ring.CarryUDP, Unheard: true}},
		}},
	}
	st := ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{
		{Name: "web", Phase: ring.PhaseProgressing, Rollout: &ring.RolloutStatus{Reason: "20 % for 5m"}}, {Name: "web-front", Phase: ring.PhaseReady},
	}}}}}}
	d := &Daemon{upgrades: &upgrader{}}
	all := frontsInForce(&w.Facts)
	require.Len(t, all, 1)
	got := d.frontNow(all[0], &w, &st)
	require.Equal(t, "shop-web-front-1-new", got.Container)
	require.Equal(t, ring.PhaseReady, got.Phase)
	require.EqualValues(t, 9, got.Generation)
	require.Equal(t, []int{4, 1}, []int{got.Connections, got.Queued})
	require.False(t, got.Newest)
	require.Equal(t, []api.PortNow{
		{Port: 80, Protocol: "tcp", Carry: "tcp", Published: []string{"8080/tcp"}}, {Port: 53, Protocol: "udp", Carry: "udp", Unheard: true},
	}, got.Ports)
	var shares []float64
	var names []string
	for _, in := range got.Instances {
		shares, names = append(shares, in.Weight), append(names, in.Instance)
	}
	require.Equal(t, []float64{40, 40, 20, 0}, shares)
	require.Equal(t, []string{"shop-web-1-aaaa", "shop-web-2-aaaa", "shop-web-1-bbbb", ""}, names)
	require.EqualValues(t, 3, got.Instances[2].Errors)
	require.Equal(t, &api.CanaryNow{Weight: 20, Canary: api.SetNow{Requests: 7, Errors: 3}, Says: "20 % for 5m"}, got.Canary)

	// Once the stable set has nobody active, the weight counts no more.
	table.Instances[0].State, table.Instances[1].State = ring.FrontWarm, ring.FrontDraining
	got = d.frontNow(all[0], &w, &st)
	require.Equal(t, []float64{0, 0, 100, 0}, []float64{got.Instances[0].Weight, got.Instances[1].Weight, got.Instances[2].Weight, got.Instances[3].Weight})
}

// The line of a canary says what the judge has of it, and not how its instances do.
func TestTheLineOfACanaryHasItsJudgement(t *testing.T) {
	since := ring.CanaryStatus{}.Since.AddDate(2026, 0, 0)
	for want, r := range map[string]*ring.RolloutStatus{
		"1/2 ready": {Reason: "1/2 ready"},
		"step 1 begins when all its instances serve":              {Reason: "x", Canary: &ring.CanaryStatus{Step: 1}},
		"step 1, not judged yet: 1 answer counted since it began": {Reason: "x", Canary: &ring.CanaryStatus{Step: 1, Since: since, Answers: 1}},
		"step 2, judged in 3 windows: 0.5 % errors, p99 50 ms":    {Reason: "x", Canary: &ring.CanaryStatus{Step: 2, Since: since, Answers: 200, Errors: 0.5, P99: 50, Judged: 3}},
		"step 1 at 10 % waits for a person; gitring rollout ...":  {Reason: "step 1 at 10 % waits for a person; gitring rollout ...", Code: ring.WhyAwaitingPromote, Canary: &ring.CanaryStatus{Step: 1, Since: since}},
	} {
		require.Equal(t, want, canarySays(r))
	}
}
