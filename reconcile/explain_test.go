package reconcile

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// acts are words that name something a reader can do, or that there is nothing.
var acts = []string{"gitring ", "push ", "wait", "nothing", "remove it", "mend it", "set apply", "look at", "docker ", "set ", "add ", "change ", "free ", "sign", "is its disk", "push it", "image", "build or load"}

// helped says what is wrong with an answer as something to act by; "" for nothing.
func helped(e ring.Explained) string {
	switch {
	case e.Says == "" || e.Rule == "" || e.Next == "" || e.Phase == "":
		return "a word is missing"
	case e.Phase == ring.PhaseReady && e.Rollout == nil && len(e.Conditions) == 0:
		return ""
	}
	for _, act := range acts {
		if strings.Contains(e.Next, act) {
			return ""
		}
	}
	return "it names nothing to do"
}

// explained are the states that services of a story come to, each explained once.
type explained struct {
	phases map[ring.Phase]bool
	faults []string
}

// statesSeen are those of all stories.
var statesSeen = map[string]bool{}

func (x *explained) look(s *story, d Decision) {
	for _, src := range d.Status.Sources {
		for _, a := range src.Apps {
			for _, st := range a.Services {
				key, err := json.Marshal([]any{st.Phase, st.Reason, st.Rollout, st.Conditions, len(st.Instances)})
				if err == nil && statesSeen[string(key)] {
					continue
				}
				statesSeen[string(key)] = true
				e, ok := Explain(s.saw, s.clock(), ring.ID(a.Name, st.Name), 0, false)
				switch wrong := helped(e); {
				case err != nil:
					x.faults = append(x.faults, err.Error())
				case !ok, e.Phase != st.Phase:
					x.faults = append(x.faults, fmt.Sprintf("%s/%s is %s, and explained as %q", a.Name, st.Name, st.Phase, e.Phase))
				case wrong != "":
					x.faults = append(x.faults, fmt.Sprintf("%s: %s/%s %s\n says %s\n rule %s\n next %s", wrong, a.Name, st.Name, e.Phase, e.Says, e.Rule, e.Next))
				}
				if x.phases == nil {
					x.phases = map[ring.Phase]bool{}
				}
				x.phases[st.Phase] = true
			}
		}
	}
}

// Whatever becomes of a service in any of the stories, whoever asks why is told
// what decides and what to do next. That they come out as they should is for TestStories.
func TestEveryStateOfTheStoriesIsExplained(t *testing.T) {
	phases := map[ring.Phase]bool{}
	for _, f := range storyFiles(t) {
		x := f.tale().explained
		require.Empty(t, x.faults, f.name)
		maps.Copy(phases, x.phases)
	}
	for _, p := range []ring.Phase{
		ring.PhasePending, ring.PhaseProgressing, ring.PhaseReady, ring.PhaseDegraded, ring.PhaseFailed, ring.PhaseHeld, ring.PhaseRemoving, ring.PhaseCompleted,
	} {
		require.True(t, phases[p], "no story comes to %s", p)
	}
}

// explainedAfter is a service after the lines of a story.
func explainedAfter(t *testing.T, lines, id string, slot int) ring.Explained {
	t.Helper()
	s := newStory()
	for _, line := range strings.Split(lines, "\n") {
		require.NoError(t, s.tell(line), line)
	}
	s.turn()
	app, service := fullID(id)
	e, ok := Explain(s.world(), s.clock(), ring.ID(app, service), slot, false)
	require.True(t, ok)
	return e
}

func TestWhyIsThisNotRunning(t *testing.T) {
	for _, c := range []struct {
		name, story, id  string
		phase            ring.Phase
		says, rule, next string
	}{
		{"it does", "service web\ncommit c1 web=v1\nrest", "web", ring.PhaseReady, "1/1 ready", "every slot runs the wanted version", "nothing to do"},
		{"it crashes", "service web min_ready 1s\ncommit c1 web=v1\nrest\nversion v1 exits 1 after 1s\nfault crash web-1 exit 1\nwait 3m", "web", ring.PhaseDegraded, "exited with code 1", "slot 1 exited with code 1", "gitring retry web/web --reason '…' tries now; gitring logs web/web and gitring crashes web/web"},
		{"it ends by itself", "service web min_ready 1s\ncommit c1 web=v1\nrest\nversion v1 exits 0 after 1s\nfault crash web-1 exit 0\nwait 3m", "web", ring.PhaseDegraded, "exited with code 0", "slot 1 exited with code 0", `write restart: "no" in its file`},
		{"its first version is never ready", "service web start_timeout 5s threshold 1\nversion v1 never ready\ncommit c1 web=v1\nrest", "web", ring.PhaseFailed, "not ready within", "the rollout failed and stopped where it is", "(git revert works)"},
		{"its check fails while it rolls", "service web start_timeout 5m threshold 1\nversion v1 never ready\ncommit c1 web=v1\nwait 20s", "web", ring.PhaseProgressing, "", "slot 1 is", "gitring inspect web/web shows what a check printed that fails; gitring logs web/web"},
		{"a newer version failed", "service web start_timeout 5s threshold 1\ncommit c1 web=v1\nrest\nversion v2 never ready\ncommit c2 web=v2\nrest", "web", ring.PhaseReady, "kept c1", "is kept: ", "gitring retry web/web"},
		{"its image is nowhere", "service web\nversion v1 not in the registry\ncommit c1 web=v1\nwait 5s", "web", ring.PhasePending, "is not in the registry", "the app is refused", "push it"},
		{"the registry is away", "service web\nfault the registry is away\ncommit c1 web=v1\nwait 5s", "web", ring.PhasePending, "no answer", "its plan is not in force yet", "wait"},
		{"an image it had before was nowhere", "service web\nversion v1 not in the registry\ncommit c1 web=v1\nwait 5s\ncommit c2 web=v2\nrest", "web", ring.PhaseReady, "1/1 ready", "every slot runs the wanted version", "nothing to do"},
		{"its app's next commit is refused", "service web\ncommit c1 web=v1\nrest\ncommit c2 refused web\nwait 5s", "web", ring.PhaseReady, "1/1 ready", "every slot runs the wanted version", "mend what is refused: "},
		{"it waits for another", "service shop/db\nservice shop/web depends_on db ready\nversion d1 never ready\ncommit c1 shop/db=d1 shop/web=v1\nwait 5s", "shop/web", ring.PhasePending, "db", "db", "gitring inspect shop/db"},
		{
			"it waits for one whose name begins as another's", "service shop/cache min_ready 1s\nservice shop/cache-db\n" +
				"service shop/web depends_on cache ready depends_on cache-db ready\nversion d1 never ready\n" +
				"commit c1 shop/cache=v1 shop/cache-db=d1 shop/web=v1\nwait 20s",
			"shop/web", ring.PhasePending, "waits for cache-db", "cache-db", "gitring inspect shop/cache-db",
		},
		{"a person holds it", "service web\ncommit c1 web=v1\nrest\nhold web\nfault remove web-1\nwait 1m", "web", ring.PhaseHeld, "held", "held by alice", "gitring release web"},
		{"a person paused what is reloaded", "service web live one\ncommit c1 web=v1\nrest\npause web\nservice web live two\ncommit c2 web=v1\nwait 20s", "web", ring.PhaseHeld, "paused", "paused", "gitring resume web"},
		{"a person paused it while it was at rest", "service web\ncommit c1 web=v1\nrest\npause web\nwait 1s", "web", ring.PhaseReady, "1/1 ready", "every slot runs the wanted version", "nothing to do"},
		{"its volume is gone", "service db volume data min_ready 1s\ncommit c1 db=v1\nrest\nfault remove db-1\nfault volume db_data is gone\nwait 1m", "db", ring.PhaseDegraded, "was there and is gone", "is its disk mounted?", "mend it on the host"},
		{"its files failed", "service web live a min_ready 1s\ncommit c1 web=v1\nrest\ncontent b refused\nservice web live b\ncommit c2 web=v1\nrest", "web", ring.PhaseReady, "kept the files of c1", "the newest files to reload failed", "gitring retry web/web"},
		{"it is a job that failed", "service shop/migrate job\nversion m1 exits 3 after 1s\ncommit c1 shop/migrate=m1\nrest", "shop/migrate", ring.PhaseFailed, "", "its run failed", "gitring retry shop/migrate"},
		{"a step of a canary lasts", "service web front 8080 min_ready 2s steps 25:1h\ncommit c1 web=v1\nrest\ncommit c2 web=v2\nuntil event canary.step web\nwait 20m", "web", ring.PhaseProgressing, "; step 1 of 1 at 25 % until ", "the rollout is under way: 2/1 ready; step 1 of 1", "gitring rollout promote web/web ends it now"},
		{"a step of a canary waits for a person", "service web front 8080 min_ready 2s steps 25:manual\ncommit c1 web=v1\nrest\ncommit c2 web=v2\nuntil event canary.step web\nwait 30m", "web", ring.PhaseHeld, "waits for a person", "step 1 at 25 % waits for a person", "gitring rollout promote web/web goes on, gitring rollout abort web/web --reason '…' goes back"},
		{"it left the plan", "service shop/a\nservice shop/b\ncommit c1 shop/a=v1 shop/b=v1\nrest\nfault the remote is away\nwait 1h\ncommit c2 -shop/b\nwait 1s", "shop/b", ring.PhaseRemoving, "not in plan", "it left the commit", "gitring status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := explainedAfter(t, c.story, c.id, 0)
			s := newStory()
			s.commits["c1"] = chapter{}
			for what, got := range map[string][2]string{"says": {e.Says, c.says}, "rule": {e.Rule, c.rule}, "next": {e.Next, c.next}} {
				require.Contains(t, s.plain(got[0]), got[1], "%s of %+v", what, e)
			}
			require.Equal(t, c.phase, e.Phase, "%s", e.Says)
		})
	}
}

// Files that failed are not tried again, and nobody is told to wait for that.
func TestFilesThatFailedAreNotWaitedFor(t *testing.T) {
	const failed = "service web live a min_ready 1s\ncommit c1 web=v1\nrest\ncontent b refused\nservice web live b\ncommit c2 web=v1\nrest"
	e := explainedAfter(t, failed, "web", 0)
	require.Empty(t, e.Tries)
	require.Zero(t, e.Until)
}

func TestAnExplanationNamesWhatItIsMadeOf(t *testing.T) {
	e := explainedAfter(t, "service web replicas 2 env TOKEN=hush live a\ncommit c1 web=v1\nrest\nfault crash web-2 exit 3\nscale web 3", "web", 0)
	require.Equal(t, 3, e.Wanted.Replicas)
	require.Equal(t, "v1@sha256:v1", e.Wanted.Pin)
	require.Contains(t, e.Wanted.Pinned, "asked for 2026-01-01")
	require.Len(t, e.Instances, 2)
	require.Equal(t, "wanted", e.Instances[0].Stands)
	require.Len(t, e.Overrides, 1)
	require.Equal(t, "scale", e.Overrides[0].Kind)
	require.NotNil(t, e.LastGood)
	b, err := json.Marshal(e)
	require.NoError(t, err)
	require.NotContains(t, string(b), "hush", "values of the environment are never told")
	names := ""
	for _, in := range e.Inputs {
		names += in.Name + ": " + in.Says + "\n"
	}
	for _, want := range []string{"image: sha256:v1\n", "env TOKEN: \n", "mount /etc/app: the files of conf\n", "network default: definition ", "files of conf: a, reloaded in place"} {
		require.Contains(t, names, want)
	}
	require.Empty(t, e.Ports)
	require.NotEmpty(t, e.Instances[0].Address)
	require.Equal(t, []string{"5432:80/tcp"}, explainedAfter(t, "service web port 5432\ncommit c1 web=v1\nrest", "web", 0).Ports)
	one := explainedAfter(t, "service web replicas 2\ncommit c1 web=v1\nrest", "web", 2)
	require.Len(t, one.Instances, 1)
	require.Equal(t, 2, one.Instances[0].Slot)
	none := explainedAfter(t, "service web replicas 2\ncommit c1 web=v1\nrest", "web", 7)
	require.Contains(t, none.Says, "slot 7 has no instance")
	_, ok := Explain(World{Facts: ring.NewFacts(), Recent: NewRecent()}, epoch, "no/such", 0, false)
	require.False(t, ok)
}

// Who has a front is reached at the ports of the front.
func TestAnExplanationHasThePortsOfTheFront(t *testing.T) {
	web := ring.ServiceStatus{Name: "web", Front: &ring.FrontStatus{}}
	pass := &Pass{overview: ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{
		web, {Name: "web-front", Ports: []string{"8080:80/tcp"}},
	}}}}}}}
	require.Equal(t, []string{"8080:80/tcp"}, pass.portsTold(&web, "shop"))
	require.Empty(t, pass.portsTold(&web, "other"))
}

// TestTheRulesThatWereAskedAreTold holds that the trace is of the lists that decide: what
// was asked, in which order, and which rule ended the pass.
func TestTheRulesThatWereAskedAreTold(t *testing.T) {
	told := func(lines ...string) []ring.AskedRule {
		s := newStory()
		for _, line := range lines {
			require.NoError(t, s.tell(line), line)
		}
		e, ok := Explain(s.world(), s.clock(), "web/web", 0, true)
		require.True(t, ok)
		none, _ := Explain(s.world(), s.clock(), "web/web", 0, false)
		require.Empty(t, none.Trace, "nobody asked")
		return e.Trace
	}
	names := func(all []ring.AskedRule) (out []string) {
		for _, r := range all {
			out = append(out, r.Rule)
		}
		return out
	}
	of := func(lists ...[]rule) (out []string) {
		for _, r := range listOf(lists...) {
			out = append(out, r.name)
		}
		return out
	}

	rest := told("service web replicas 2 min_ready 1s", "commit c1 web=v1", "rest")
	require.Equal(t, of(beginRules, doubleRules, strategies[ring.Rolling].rules), names(rest), "at rest each is asked")
	for _, r := range rest {
		require.Equal(t, ring.AskedRule{Rule: r.Rule, Then: "skip"}, r)
	}

	again := told("service web replicas 2 min_ready 1s", "commit c1 web=v1", "rest", "fault remove web-1")
	last := again[len(again)-1]
	require.Equal(t, ring.AskedRule{Rule: "create one more", Then: "try", Moved: true}, last)

	slots := told("service web strategy recreate min_ready 1s", "commit c1 web=v1", "rest")
	require.Contains(t, names(slots), "move slots one by one")
	require.NotContains(t, names(slots), "create one more")
}
