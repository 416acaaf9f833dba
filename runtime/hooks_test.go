package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// hooked is a service whose hooks leave marks in a volume.
func hooked(r *rig, start, stop []ring.Hook) ring.Action {
	return r.CreateAction(func(s *ring.Service) {
		s.Spec.PostStart, s.Spec.PreStop = start, stop
		s.Spec.Environment = map[string]string{"OF": "service"}
	})
}

// say is a hook that tells who it is, and ends with a code.
func say(name string, exit string) ring.Hook {
	return ring.Hook{Command: []string{"/app", "tell", name, exit}}
}

// stopped is an action that leaves hooks a minute: the grace of a stop bounds them, and a
// busy machine needs more than a second to begin one.
func stopped(kind ring.ActionKind, in ring.Instance) ring.Action {
	a := enginetest.ActionOn(kind, in)
	a.Grace = time.Minute
	return a
}

func hooksRun(t *testing.T, r *rig) {
	a := hooked(r, []ring.Hook{say("A", "0"), say("B", "0")}, []ring.Hook{say("C", "0")})
	r.Must(t, a)
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, in.State)
	require.Equal(t, 2, r.ExecCount())
	r.Must(t, a)
	require.Equal(t, 2, r.ExecCount(), "what runs is not started again")
	r.Must(t, stopped(ring.DoRestart, in))
	require.Equal(t, 5, r.ExecCount())
	require.Empty(t, r.Must(t, stopped(ring.DoStop, in)).Told)
	require.Equal(t, 6, r.ExecCount())
	r.Must(t, stopped(ring.DoStop, in))
	require.Equal(t, 6, r.ExecCount(), "what is stopped is not stopped again")
	r.Must(t, stopped(ring.DoStart, in)) // knows nothing of the spec
	require.Equal(t, 8, r.ExecCount())
	r.Must(t, stopped(ring.DoRemove, in))
	require.Equal(t, 9, r.ExecCount())
	require.Empty(t, r.Seen(t).Instances)
}

func postStartFails(t *testing.T, r *rig) {
	hook := say("WHO", "3")
	hook.User, hook.WorkingDir, hook.Environment = "1000", "/proc", map[string]string{"WHO": "hook"}
	a := hooked(r, []ring.Hook{hook, say("A", "0")}, []ring.Hook{say("B", "0")})
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseCreate, e.Cause)
	require.False(t, e.Permanent)
	require.Contains(t, e.Error(), "post_start hook 1 failed with exit code 3: uid=1000 cwd=/proc WHO=hook")
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateExited, in.State)
	require.Equal(t, 1, r.ExecCount(), "neither the next hook nor pre_stop")
	require.False(t, in.Started.IsZero())
	require.NotNil(t, r.MustFail(t, enginetest.ActionOn(ring.DoStart, in)), "started anew, it is run anew")
	require.Equal(t, 2, r.ExecCount())
	r.Must(t, enginetest.ActionOn(ring.DoRemove, in))

	long := hooked(r, []ring.Hook{{Command: []string{"/app", "say", "abcdefgh", "10000"}}}, nil)
	text := r.MustFail(t, long).Error()
	_, said, _ := strings.Cut(text, "exit code 7: ")
	require.Len(t, strings.TrimSuffix(said, "…"), 400)
	r.Must(t, enginetest.ActionOn(ring.DoRemove, r.OnlyInstance(t)))

	if r.opts.URL == "memory" {
		return // nothing takes time there
	}
	// An end of the step is a failure too: nobody would know what was run.
	hang := hooked(r, []ring.Hook{{Command: []string{"/app", "sleep"}}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	begun := r.ExecCount()
	go func() {
		_, err := r.Do(ctx, hang)
		ended <- err
	}()
	require.Eventually(t, func() bool { return r.ExecCount() > begun }, time.Minute, 10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Equal(t, ring.StateExited, r.OnlyInstance(t).State)
}

func preStopFails(t *testing.T, r *rig) {
	a := hooked(r, nil, []ring.Hook{say("OF", "5"), say("A", "0")})
	r.Must(t, a)
	in := r.OnlyInstance(t)
	done := r.Must(t, stopped(ring.DoStop, in))
	require.Len(t, done.Told, 1)
	require.Contains(t, done.Told[0], in.Name)
	require.Contains(t, done.Told[0], "pre_stop hook 1 failed with exit code 5: uid=0 cwd=/ OF=service")
	require.Equal(t, ring.StateExited, r.OnlyInstance(t).State)
	r.Must(t, enginetest.ActionOn(ring.DoRemove, in))

	if r.opts.URL == "memory" {
		return // nothing takes time there
	}
	hang := hooked(r, nil, []ring.Hook{{Command: []string{"/app", "sleep"}}})
	r.Must(t, hang)
	done = r.Must(t, enginetest.ActionOn(ring.DoRemove, r.OnlyInstance(t))) // with a grace of one second
	require.Len(t, done.Told, 1)
	require.Empty(t, r.Seen(t).Instances)
}

// foreignHooks gives a service the label that hooks travel in, as an image or a
// manifest might.
func foreignHooks(t *testing.T, r *rig) {
	label, err := json.Marshal(hooks{Version: "1:0", PostStart: []ring.Hook{say("A", "9")}, PreStop: []ring.Hook{say("A", "9")}})
	require.NoError(t, err)
	a := r.CreateAction(func(s *ring.Service) { s.Spec.Labels = map[string]string{labelHooks: string(label)} })
	r.Must(t, a)
	require.NotContains(t, r.Inspect(t, r.OnlyInstance(t).ID).Config.Labels, labelHooks)
	require.Empty(t, hooksOf(map[string]string{labelHooks: string(label), labelVersion: "1:1"}).PreStop)
	require.Len(t, hooksOf(map[string]string{labelHooks: string(label), labelVersion: "1:0"}).PreStop, 1)
}
