package manifest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitring/gitring/ring"
)

func TestTheWayBackIsComposes(t *testing.T) {
	defaults := ring.Back{MaxSurge: ring.Count{N: 1}, MaxParallel: 1, MinReadyTime: 10 * time.Second}
	with := func(change func(*ring.Back)) *ring.Back {
		b := defaults
		change(&b)
		return &b
	}
	for _, c := range []struct {
		says, deploy string
		want         *ring.Back
	}{
		{"nothing", "{}", nil},
		{"what the way there says too", "{rollback_config: {order: start-first, parallelism: 1}}", nil},
		{"an order", "{rollback_config: {order: stop-first}}", with(func(b *ring.Back) { b.MaxSurge, b.MaxUnavailable = ring.Count{}, ring.Count{N: 1} })},
		{"how many at once", "{rollback_config: {parallelism: 3}}", with(func(b *ring.Back) { b.MaxSurge, b.MaxParallel = ring.Count{N: 3}, 3 })},
		{"all at once", "{replicas: 4, rollback_config: {parallelism: 0, order: stop-first}}", with(func(b *ring.Back) {
			b.MaxSurge, b.MaxUnavailable, b.MaxParallel = ring.Count{}, ring.Count{N: 100, Percent: true}, 4
		})},
		{"a monitor", "{rollback_config: {monitor: 3s}}", with(func(b *ring.Back) { b.MinReadyTime = 3 * time.Second })},
		{"a longer delay", "{rollback_config: {monitor: 3s, delay: 20s}}", with(func(b *ring.Back) { b.MinReadyTime = 20 * time.Second })},
		{"half of it", "{update_config: {parallelism: 2}, rollback_config: {monitor: 1s}}", with(func(b *ring.Back) {
			b.MaxSurge, b.MaxParallel, b.MinReadyTime = ring.Count{N: 2}, 2, time.Second
		})},
	} {
		t.Run(c.says, func(t *testing.T) {
			s, _ := lone(t, "deploy: "+c.deploy)
			if d := cmp.Diff(c.want, s.Rollout.Back); d != "" {
				t.Error(d)
			}
		})
	}
	_, a := lone(t, "deploy: {rollback_config: {failure_action: pause, max_failure_ratio: 0.5}}")
	for _, key := range []string{"failure_action", "max_failure_ratio"} {
		if !slices.ContainsFunc(a, func(n string) bool { return strings.Contains(n, "rollback_config."+key+" is not used") }) {
			t.Errorf("%s is ignored in silence: %q", key, a)
		}
	}
}

func TestRestartsPauseAsComposeSays(t *testing.T) {
	for _, c := range []struct {
		policy        string
		delay, window time.Duration
		note          string
	}{
		{"{condition: any, delay: 5s, window: 120s}", 5 * time.Second, 2 * time.Minute, ""},
		{"{delay: 15s}", 15 * time.Second, 0, ""},
		{"{condition: any, delay: 0s}", time.Second, 0, "the shortest"},
		{"{condition: none, delay: 5s, window: 1m}", 0, 0, "restart_policy.delay is not used"},
	} {
		s, a := lone(t, "deploy: {restart_policy: "+c.policy+"}")
		if s.Restart.Delay != c.delay || s.Restart.Window != c.window || !strings.Contains(strings.Join(a, ";"), c.note) {
			t.Errorf("%s: %+v %q", c.policy, s.Restart, a)
		}
	}
}

func TestASecondSetAndAWatch(t *testing.T) {
	s, a := lone(t, "x-gitring: {rollout: {strategy: blue_green, warm_for: 5m, bake: 10m, max_surge: 1, max_unavailable: 0}}")
	if r := s.Rollout; r.Strategy != ring.BlueGreen || r.WarmFor != 5*time.Minute || r.Bake != 10*time.Minute {
		t.Errorf("%+v", s.Rollout)
	}
	if notes := strings.Join(a, ";"); !strings.Contains(notes, "max_surge and max_unavailable are not used") {
		t.Error(notes)
	}
	_, a = lone(t, "ports: ['80:80']", "x-gitring: {rollout: {strategy: blue_green}}")
	if notes := strings.Join(a, ";"); !strings.Contains(notes, "blue_green is carried out as recreate, because two instances cannot run at once: host port 80/tcp") {
		t.Error(notes)
	}
}
