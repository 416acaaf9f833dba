package reconcile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// The runs of jobs in the model of a swarm: services that are made at rest, begin once, and never
// again. Their tasks are boxes as containers are.

// onRun is a step on the run of a job. It reports whether it is one.
func (e *engine) onRun(a ring.Action) (done ring.Done, err error, is bool) { //nolint:revive // as that of a map
	switch b := e.boxes[a.Instance]; a.Kind {
	case ring.DoCreate:
		if a.Run == nil || a.Start || !a.Want.Kind.Ends() {
			e.violate("I13: the swarm was asked to make %s, which is no run, or to start it", a.Target())
		}
		spec := swarmSpec{of: a.Of, want: a.Want}
		for _, f := range filesIn(&spec) {
			f.ID = "id-" + f.Name
			e.swarm.files[f.Name] = f
		}
		done, err = e.create(a)
		if b := e.boxes[done.Instance]; err == nil && b != nil {
			mark := *a.Run
			mark.Due = mark.Due.Truncate(time.Second) // as a label tells it
			b.Run, e.swarm.runs[b.ID] = &mark, spec
		}
		return done, err, true
	case ring.DoStart:
		if b == nil || b.Run == nil {
			return ring.Done{}, errors.New("no such service"), true
		}
		return ring.Done{}, e.startRun(b), true
	case ring.DoStop:
		if b != nil && b.Live() {
			e.exit(b, 143)
			b.Says = "stopped"
		}
		return ring.Done{}, nil, true
	case ring.DoRemove:
		if b == nil {
			return ring.Done{}, nil, true
		}
		if b.Run == nil {
			e.violate("I13: the swarm was asked to remove task %s", b.Name)
		}
		return ring.Done{}, e.change(a, b), true
	}
	return ring.Done{}, nil, false
}

// startRun begins a run, once.
func (e *engine) startRun(b *box) error {
	if b.State != ring.StateCreated {
		return nil // it was begun
	}
	if e.swarm.once != nil {
		if e.swarm.once[b.Name]++; e.swarm.once[b.Name] > 1 {
			e.violate("S2: %s begins a second time", b.Name)
		}
	}
	if b.Run.Due.IsZero() {
		e.swarm.record.Begun[ring.BegunKey(b.Name, *b.Run)] = b.ID
	}
	switch n := e.nature(b); {
	case n.noStart, n.rejected:
		e.exit(b, 125)
		b.Says = "starting container failed: no such file"
	case n.nowhere:
		b.State, b.Says = ring.StateRestarting, "no suitable node"
	default:
		e.run(b)
	}
	return nil
}

// endRuns has what ends by itself do so.
func (e *engine) endRuns() {
	for _, id := range slices.Clone(e.each()) {
		b := e.boxes[id]
		if at, ok := e.ends(b); (b.Run != nil || b.left) && ok && !e.now.Before(at) {
			if e.exit(b, e.nature(b).exit); b.left {
				e.drop(b)
			}
		}
	}
}

// letGo is a run that somebody removes. An engine before 24 has its task go on; any other stops it,
// which takes a while.
func (e *engine) letGo(b *box) {
	task := *b
	e.drop(b)
	if e.note("%s is removed by hand", b.Name); !b.running() {
		return
	}
	task.ID, task.Slot, task.Run, task.left, task.Node = "task-of-"+b.ID, 0, nil, true, "n1"
	e.boxes[task.ID], e.sorted = &task, nil
}

// beginAgain is a leader that begins the task of a run once more.
func (e *engine) beginAgain(b *box) {
	b.Restarts++
	b.State, b.since, b.Started, b.Says = ring.StateRunning, e.now, e.wall(), ""
	e.note("%s is begun again by the swarm", b.Name)
}

// runsSeen are what the services of runs name.
func (e *engine) runsSeen() (out []ring.ClusterRun) {
	for _, id := range e.each() {
		if b := e.boxes[id]; b.Run != nil {
			spec := e.swarm.runs[id]
			r := ring.ClusterRun{Name: b.Name, App: b.App, Service: b.Service}
			for _, f := range filesIn(&spec) {
				r.Files = append(r.Files, f.Name)
			}
			for name := range b.Addresses {
				r.Networks = append(r.Networks, name)
			}
			slices.Sort(r.Networks)
			out = append(out, r)
		}
	}
	return out
}

// notOnSwarm are the stories of jobs that a swarm has no place for, or where it goes another way,
// and why.
var notOnSwarm = map[string]string{
	"job-joins":           "namespaces of others are refused",
	"before-joined-asked": "namespaces of others are refused",
	"job-hangs":           "a run is called otherwise: swarm-job-hangs",
	"job-hangs-timeout":   "how a run ended that was stopped is not known: swarm-job-timeout",
	"before-timeout":      "how a run ended that was stopped is not known: swarm-job-timeout",
	"job-start-error":     "a task fails, and no create: swarm-job-rejected",
	"job":                 "the run of the wanted version stays: swarm-job",
	"cron":                "the newest run stays: swarm-cron",
	"job-store-lost":      "the run of the wanted version stays: swarm-job-store-lost",
	"before-added":        "it counts containers that were made",
	"cron-depends":        "no hand ends a single task",
	"before-depends":      "the swarm ends a task that is not healthy for so long",
	"before-last":         "the swarm ends a task that is not healthy for so long",
	"before-undo":         "an update takes longer than the story waits",
	"before-undo-fails":   "an update takes longer than the story waits",
}

// What stories tell of jobs and cron jobs holds on a swarm, too.
func TestStoriesOfJobsHoldOnASwarm(t *testing.T) {
	played := 0
	for _, kind := range []string{"job", "cron", "before"} {
		all, err := filepath.Glob("testdata/stories/" + kind + "*.txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			if why := notOnSwarm[name]; why != "" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played++
			t.Run(name, func(t *testing.T) {
				if err := play(newStory(), "engine swarm\n"+string(text), 0); err != nil {
					t.Fatal(fmt.Errorf("on a swarm, a line earlier: %w", err))
				}
			})
		}
	}
	if played < 60 {
		t.Errorf("%d stories of jobs were played on a swarm", played)
	}
}
