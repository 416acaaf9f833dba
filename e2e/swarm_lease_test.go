package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// beside is a second daemon for the same cluster and repository, on another manager.
func (s *swarmHost) beside() *swarmHost {
	s.t.Helper()
	h := hostOn(s.t, s.nodes[1])
	h.repo = s.repo
	for key, value := range s.config {
		switch key {
		case "host", "state", "data_root", "listen":
		default:
			h.config[key] = value
		}
	}
	h.config["engine"] = merged(s.config["engine"].(obj), obj{"url": s.nodes[1].url})
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	require.NoError(s.t, os.MkdirAll(filepath.Join(h.dir, "env"), 0o700))
	return &swarmHost{host: h, reg: s.reg, forge: s.forge, cluster: s.cluster, nodes: s.nodes}
}

// follows waits until a daemon says that another manager acts.
func (s *swarmHost) follows(holder *swarmHost) {
	s.t.Helper()
	s.await(s.name+" follows "+holder.name, func(st status) bool { return st.Cluster != nil && st.Cluster.Acts == holder.name })
}

// acts waits until a daemon acts, and has the newest commit in force.
func (s *swarmHost) acts(sha string) {
	s.t.Helper()
	s.await(s.name+" acts", func(st status) bool {
		return st.Cluster != nil && st.Cluster.Acts == "" && len(st.Sources) == 1 && st.Sources[0].Commit == sha
	})
}

// Two daemons on two managers: one acts. Whoever takes over finds what runs, and sends nothing of
// it again, neither what is good nor what failed. GITRING_SWARM_MOVES plays more moves, each
// takes a minute.
func TestTheLeaseMovesOnASwarm(t *testing.T) {
	s := newSwarmHost(t)
	if len(s.nodes) < 2 {
		t.Skip("one manager has nobody to hand the lease to")
	}
	const name = "shop_web"
	app := func(version string, more ...obj) files {
		return s.stack(obj{"web": s.quick(version, more...)})
	}
	s.start()
	good := s.deployed("The first", app("1"))
	s.closedAs(good, "success")
	other := s.beside()
	other.start()
	other.follows(s)

	bad := s.repo.pushed("A broken one", app("2", env("BROKEN", "1")))
	s.closedAs(bad, "failure")
	s.until("the good one is whole", func() bool { return strings.Contains(s.service(name).env(), "VERSION=1") && len(s.running(name)) == 3 })
	require.Equal(t, []string{"failure"}, closings(s.states(bad)))

	moves := 2
	if n, err := strconv.Atoi(os.Getenv("GITRING_SWARM_MOVES")); err == nil {
		moves = n
	}
	holder, next := s, other
	for move := range moves {
		was, tasks := s.service(name).Version.Index, s.running(name)
		holder.freeze() // it is stopped in the middle of whatever it does
		next.acts(bad)
		holder.thaw()
		holder.follows(next)
		next.until("it had the time to send what it should not", func() bool {
			app := next.status().app("shop")
			return len(app.Services) == 1 && app.Services[0].Rollout != nil
		})
		require.Equal(t, was, s.service(name).Version.Index, "move %d sent a spec", move)
		require.Equal(t, tasks, s.running(name), "move %d rolled the service", move)
		words := closings(s.states(bad))
		require.False(t, slices.ContainsFunc(words, func(w string) bool { return w != "failure" }), "move %d: %v", move, words)
		holder, next = next, holder
	}

	t.Run("whoever takes over brings back what was good", func(t *testing.T) {
		worse := s.repo.pushed("Another broken one", app("9", env("BROKEN", "1")))
		s.until("the swarm is at it", func() bool { return strings.Contains(s.service(name).env(), `VERSION=9"`) })
		holder.freeze() // it sent that, and no more
		next.acts(worse)
		s.closedAs(worse, "failure")
		s.until("the good one is whole", func() bool { return strings.Contains(s.service(name).env(), `VERSION=1"`) && len(s.running(name)) == 3 })
		holder.thaw()
		holder.follows(next)
		require.Equal(t, []string{"failure"}, slices.Compact(closings(s.states(worse))))
		require.Contains(t, s.service(name).env(), `VERSION=1"`)
		holder, next = next, holder
	})
	t.Run("whoever acts carries the next commit out", func(t *testing.T) {
		mended := s.repo.pushed("Mended", app("3"))
		s.closedAs(mended, "success")
		require.Contains(t, s.service(name).env(), "VERSION=3")
		require.Equal(t, []string{"success"}, closings(s.states(mended)))
		next.follows(holder)
		was := s.service(name).Version.Index
		holder.kill()
		next.acts(mended)
		require.Equal(t, was, s.service(name).Version.Index)
		require.Len(t, s.running(name), 3)
		last := s.repo.pushed("And one more", app("4"))
		s.closedAs(last, "success")
		require.Contains(t, s.service(name).env(), "VERSION=4")
	})
	t.Log(fmt.Sprint(moves, " moves"))
	require.NoError(t, next.stop())
}
