package e2e

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jobOf is a job, or what it is made.
func (s *swarmHost) jobOf(version string, more ...obj) obj {
	out := obj{"image": s.reg.at + "/web:1", "command": []string{"job"}, "restart": "no", "environment": obj{"VERSION": version}}
	for _, m := range more {
		out = merged(out, m)
	}
	return out
}

// runsOf are the services of the runs of a job.
func (s *swarmHost) runsOf(job string) (names []string) {
	for _, name := range s.names("services") {
		if strings.HasPrefix(name, "shop_"+job+"_") {
			names = append(names, name)
		}
	}
	return names
}

// begunOf is how many tasks began of the runs of a job that are of a version; "" is any. One that waits in the
// place of one that failed is ready.
func (s *swarmHost) begunOf(job, version string) (n int) {
	for _, name := range s.runsOf(job) {
		if !strings.Contains(s.service(name).env(), "VERSION="+version) {
			continue
		}
		for _, t := range s.tasks(name) {
			switch t.Status.State {
			case "new", "pending", "assigned", "accepted", "preparing", "ready":
			default:
				n++
			}
		}
	}
	return n
}

// migrates waits until the migration of a version runs, and says on which node.
func (s *swarmHost) migrates(version string) (node string) {
	s.t.Helper()
	s.await("the migration of "+version+" runs", func(st status) bool {
		in := st.service("shop", "migrate").Instances
		if len(in) == 1 {
			node = in[0].Node
		}
		return node != "" && s.begunOf("migrate", version) == 1
	})
	return node
}

// approved pushes a commit that removes most of the app, and says that it may.
func (s *swarmHost) approved(subject string, f files) {
	s.t.Helper()
	sha := s.repo.pushed(subject, f)
	s.until("it is in force, or waits for a person", func() bool {
		code, _ := s.run("approve", sha[:7], "--reason", "moving out")
		return code == 0 || s.status().Sources[0].Commit == sha
	})
	s.synced(sha)
}

// endRuns has the runs of the migration go by gitring: the waiting task of a failed one would hold its network.
func (s *swarmHost) endRuns() {
	s.t.Helper()
	s.approved("No migration", s.stack(obj{"web": s.quick("last")}))
	s.until("no run is left", func() bool { return len(s.runsOf("migrate")) == 0 })
}

func migrated() obj {
	return obj{"depends_on": obj{"migrate": obj{"condition": "service_completed_successfully"}}}
}

// A migration runs before the service that waits for it, once, though the daemon dies as it runs;
// one that fails leaves what serves; and a cron job has one run for each time it is due. That the swarm
// keeps no history of tasks loses no outcome.
func TestJobsOnASwarm(t *testing.T) {
	s := newSwarmHost(t)
	s.docker(0, "swarm", "update", "--task-history-limit", "0")
	t.Cleanup(func() { s.docker(0, "swarm", "update", "--task-history-limit", "5") })
	job, runs := s.jobOf, s.runsOf
	begun := func(of string) int { return s.begunOf(of, "") }
	app := func(web string, migrate obj) files {
		return s.stack(obj{
			"web":     s.quick(web, replicas(2), migrated()),
			"migrate": migrate,
			"nightly": job("n", env("TAKES", "2000"), obj{"x-gitring": obj{"kind": "cron", "cron": obj{"schedule": "* * * * *"}}}),
		})
	}
	s.start()
	first := s.repo.pushed("The first", app("1", job("1", env("TAKES", "8000"))))
	s.until("the migration runs", func() bool {
		return s.status().service("shop", "migrate").Reason == "is running" && begun("migrate") == 1
	})
	require.Empty(t, s.running("shop_web"), "it does not wait for the migration")
	s.kill()
	s.start()
	s.closedAs(first, "success")
	require.Len(t, s.running("shop_web"), 2)
	require.Equal(t, 1, begun("migrate"), "the migration ran again")
	require.Len(t, runs("migrate"), 1)
	kept := func(words string) {
		s.until("its log is kept: "+words, func() bool {
			_, out := s.run("jobs", "--logs", "shop/migrate")
			return strings.Contains(out, words)
		})
	}
	kept("job 1 runs")

	bad := s.repo.pushed("A migration that fails", app("2", job("2", env("CODE", "3"))))
	s.closedAs(bad, "failure")
	require.Contains(t, s.service("shop_web").env(), "VERSION=1")
	require.Len(t, s.running("shop_web"), 2)
	require.Contains(t, s.status().service("shop", "migrate").Reason, "exited with code 3")
	kept("job 2 runs")

	good := s.deployed("A migration that helps", app("2", job("3")))
	s.closedAs(good, "success")
	require.Contains(t, s.service("shop_web").env(), "VERSION=2")
	require.Len(t, runs("migrate"), 1, "what is no version any more is gone")
	require.Equal(t, 1, begun("migrate"))

	s.until("the cron job had its run", func() bool {
		_, out := s.run("jobs", "shop/nightly")
		return strings.Contains(out, "schedule") && strings.Contains(out, "succeeded")
	})
	s.until("a run that a person asked for succeeds", func() bool { // one that is due may be under way
		code, out := s.run("run", "shop/nightly", "--reason", "now", "--wait")
		return code == 0 && strings.Contains(out, "succeeded")
	})
	for _, name := range runs("nightly") {
		require.Regexp(t, `^shop_nightly_[0-9a-f]{8}_\d{8}T\d{6}$`, name)
		require.LessOrEqual(t, len(s.tasks(name)), 1, name)
	}
	s.approved("All of it goes", s.stack(obj{"web": s.quick("2", replicas(2))}))
	s.until("no run is left", func() bool { return len(runs("migrate"))+len(runs("nightly")) == 0 })
	require.NoError(t, s.stop())
}

// The manager that leads dies while a run is under way, on another node and on its own: no run begins a
// second time, and one whose node went down with it failed.
func TestLeadersOfASwarmDieWhileAJobRuns(t *testing.T) {
	s := newSwarmHost(t)
	nodes := []*swarmNode{s.node(0), s.node(1), s.node(2)}
	app := func(version, node string, takes int) files {
		return s.stack(obj{
			"web":     s.quick(version, migrated()),
			"migrate": s.jobOf(version, env("TAKES", strconv.Itoa(takes)), obj{"deploy": obj{"placement": obj{"constraints": []string{"node.hostname == " + node}}}}),
		})
	}
	s.start()
	s.closedAs(s.repo.pushed("The first", app("0", "node-1", 100)), "success")
	times := counted(t, "GITRING_SWARM_LEADERS", 2)
	for i := range times {
		own := i%2 == 1 // the run is on the node that dies
		at := -1
		s.until("somebody leads", func() bool { at = s.leader(); return at >= 0 })
		on, takes := (at+1)%3, 20000
		if own {
			on, takes = at, 600000
		}
		version := strconv.Itoa(i + 1)
		sha := s.repo.pushed("Update "+version, app(version, "node-"+strconv.Itoa(on+1), takes))
		s.migrates(version)
		nodes[at].die()
		s.until("another one leads", func() bool { now := s.leader(); return now >= 0 && now != at })
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
		nodes[at].live()
		s.until("all are back", s.allReady)
		s.until("the forge hears how it ended", func() bool { return len(closings(s.states(sha))) > 0 })
		word := "success"
		if own {
			word = "failure"
		}
		require.Equal(t, []string{word}, closings(s.states(sha)))
		require.Equal(t, 1, s.begunOf("migrate", version), "a run began twice")
		require.Equal(t, !own, strings.Contains(s.service("shop_web").env(), "VERSION="+version+`"`))
		s.until("the app is whole", func() bool { return len(s.running("shop_web")) == 3 })
		t.Logf("kill %d: node-%d led, the run was on node-%d: %s", i+1, at+1, on+1, word)
	}
	s.endRuns()
}

// A cron job whose runs take longer than its time: forbid has one, allow has two, replace ends the one before.
func TestCronJobsOverlapOnASwarm(t *testing.T) {
	s := newSwarmHost(t)
	cron := func(overlap string) obj {
		return s.jobOf(overlap, env("TAKES", "100000"), obj{"x-gitring": obj{"kind": "cron", "cron": obj{"schedule": "* * * * *", "overlap": overlap}}})
	}
	s.start()
	s.deployed("Three of them", s.stack(obj{"one": cron("forbid"), "both": cron("allow"), "newest": cron("replace")}))
	running := func(of string) (n int) {
		for _, t := range s.tasks("") {
			if l := t.Spec.ContainerSpec.Labels; l["gitring.host"] == s.cluster && l["gitring.service"] == of && t.Status.State == "running" {
				n++
			}
		}
		return n
	}
	told := func(of string) string {
		_, out := s.run("jobs", "shop/"+of)
		return out
	}
	most := map[string]int{}
	s.until("two runs are beside each other, one was replaced, and one was skipped", func() bool {
		for _, of := range []string{"one", "both"} {
			most[of] = max(most[of], running(of))
		}
		return most["both"] == 2 && strings.Contains(told("newest"), "a stop for the run") && strings.Contains(told("one"), "skipped")
	})
	require.Equal(t, 1, most["one"])
	for _, of := range []string{"one", "both", "newest"} {
		for _, name := range s.runsOf(of) {
			require.LessOrEqual(t, len(s.tasks(name)), 1, name)
		}
	}
	s.approved("All of it goes", s.stack(obj{"web": s.quick("1", replicas(1))}))
	s.until("no run is left, and no task runs on", func() bool {
		return len(s.runsOf("one"))+len(s.runsOf("both"))+len(s.runsOf("newest")) == 0 && running("one")+running("both")+running("newest") == 0
	})
	require.NoError(t, s.stop())
}

// Swarm begins the task of a run again, at once, where it failed on a node that is drained. That run is
// stopped, and failed.
func TestARunOnADrainedNodeOfASwarmIsNoSuccess(t *testing.T) {
	s := newSwarmHost(t)
	s.start()
	sha := s.repo.pushed("The first", s.stack(obj{"web": s.quick("1", migrated()), "migrate": s.jobOf("1", env("TAKES", "20000", "CODE", "3"))}))
	on := s.migrates("1")
	s.docker(0, "node", "update", "--availability", "drain", on)
	t.Cleanup(func() { s.docker(0, "node", "update", "--availability", "active", on) })
	s.closedAs(sha, "failure")
	require.Equal(t, []string{"failure"}, closings(s.states(sha)))
	require.Contains(t, s.status().service("shop", "migrate").Reason, "the swarm began it a second time")
	require.Empty(t, s.running("shop_web"))
	s.endRuns()
	require.NoError(t, s.stop())
}
