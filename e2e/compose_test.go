package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// obj is a mapping of a Compose file.
type obj = map[string]any

// web is a service of the tests' app, quick where a good version waits and patient
// where a slow machine would look like a bad version; each of more is laid over it, a nil value takes a key out.
func web(version string, more ...obj) obj {
	s := obj{
		"image": image, "pull_policy": "never",
		"environment": obj{"VERSION": version},
		"x-gitring": obj{
			"checks":  []any{obj{"name": "up", "for": "readiness", "http": obj{"port": 8080, "path": "/healthz"}, "interval": "200ms", "timeout": "10s"}},
			"rollout": obj{"min_ready_time": "500ms", "start_timeout": "80s", "failure_threshold": 1},
		},
	}
	for _, m := range more {
		s = merged(s, m)
	}
	return s
}

func merged(a, b obj) obj {
	out := maps.Clone(a)
	for k, v := range b {
		inner, ok := v.(obj)
		below, both := out[k].(obj)
		switch {
		case v == nil:
			delete(out, k)
		case ok && both:
			out[k] = merged(below, inner)
		default:
			out[k] = v
		}
	}
	return out
}

func replicas(n int) obj { return obj{"deploy": obj{"replicas": n}} }

func env(kv ...string) obj {
	e := obj{}
	for i := 0; i < len(kv); i += 2 {
		e[kv[i]] = kv[i+1]
	}
	return obj{"environment": e}
}

// broken is a version that never becomes ready, and is given up soon.
func broken() obj {
	return merged(env("BROKEN", "1"), rollout(obj{"start_timeout": "3s"}))
}

func rollout(knobs obj) obj { return obj{"x-gitring": obj{"rollout": knobs}} }

// compose is a Compose file of an app. Its network has a small subnet of its
// own: the engine's default pools end near 30 networks.
func (h *host) compose(app string, services obj, more ...obj) string {
	h.t.Helper()
	h.mu.Lock()
	if h.subnets[app] == "" {
		h.subnets[app] = subnet()
	}
	net := h.subnets[app]
	h.mu.Unlock()
	f := obj{
		"services": services,
		"networks": obj{"default": obj{"ipam": obj{"config": []any{obj{"subnet": net}}}}},
	}
	for _, m := range more {
		f = merged(f, m)
	}
	b, err := yaml.Marshal(f)
	require.NoError(h.t, err)
	return string(b)
}

var (
	subnetBase = rand.IntN(1 << 15)
	subnets    atomic.Int64
)

// subnet is a /28 that no other test of this process uses.
func subnet() string {
	n := (subnetBase + int(subnets.Add(1))) % (1 << 15)
	return fmt.Sprintf("10.%d.%d.%d/28", 240+n>>12, n>>4&255, n&15<<4)
}

func TestSubnetsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		s := subnet()
		require.Regexp(t, `^10\.24[0-7]\.\d+\.\d+/28$`, s)
		require.False(t, seen[s], s)
		seen[s] = true
	}
}
