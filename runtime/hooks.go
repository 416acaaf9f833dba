package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// hooks are the commands that gitring runs in an instance by itself. They travel
// in a label of the container, sealed values sealed: what stops an instance may
// be a commit, or a daemon, that knows nothing of the spec it was made from.
type hooks struct {
	// Version is the instance's. An image cannot know it, because its digest
	// enters it: hooks that an image's own label brings are not run.
	Version   ring.Version `json:"version"`
	PostStart []ring.Hook  `json:"post_start,omitempty"`
	PreStop   []ring.Hook  `json:"pre_stop,omitempty"`
	// Sealed are the texts of the spec with sealed values in them: a hook may print
	// what is in the instance's environment.
	Sealed []string `json:"sealed,omitempty"`
}

func hooksFor(v ring.Version, s ring.Spec) hooks {
	return hooks{Version: v, PostStart: s.PostStart, PreStop: s.PreStop, Sealed: sealedIn(s)}
}

// label is the text of the hooks, "" for none.
func (h hooks) label() string {
	if len(h.PostStart) == 0 && len(h.PreStop) == 0 {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil { // strings, bools and maps of strings only
		panic("cannot encode hooks: " + err.Error())
	}
	return string(b)
}

// hooksOf are those of a container of ours, by its labels.
func hooksOf(labels map[string]string) hooks {
	var h hooks
	text := labels[labelHooks]
	if text == "" || json.Unmarshal([]byte(text), &h) != nil || string(h.Version) != labels[labelVersion] {
		return hooks{}
	}
	return h
}

// hookOptions is what is sent to run a hook.
func hookOptions(h ring.Hook) container.ExecOptions {
	return container.ExecOptions{
		Cmd: slices.Clone(h.Command), User: h.User, WorkingDir: h.WorkingDir, Privileged: h.Privileged,
		Env: environment(h.Environment, nil), AttachStdout: true, AttachStderr: true,
	}
}

// contained is a container of ours as its hooks need it.
type contained struct {
	ID, Name, App string
	Hooks         hooks
}

func instanceOf(p payload, id string) contained {
	return contained{id, p.Name, p.Config.Labels[labelApp], p.Hooks}
}

// inspected is a container whose owner was checked. The hooks of an adopted one
// are those of the service that it stands for, where the action carries that.
func inspected(c container.InspectResponse, a ring.Action) contained {
	in := contained{c.ID, strings.TrimPrefix(c.Name, "/"), c.Config.Labels[labelApp], hooksOf(c.Config.Labels)}
	if c.Config.Labels[labelHost] == "" && a.Want != nil {
		in.App, in.Hooks = a.App, hooksFor(a.Version, a.Want.Spec)
	}
	return in
}

// stopAfter is how long the stop after a failed hook may take beyond the grace.
const stopAfter = 10 * time.Second

// afterStart runs the post_start hooks of a container that we just started, one
// after the other. When one fails the container is stopped: also when it is ctx
// that ended, because nobody would know later which of them were run.
func (d *Docker) afterStart(ctx context.Context, e engine, c contained, a ring.Action) error {
	for i, h := range c.Hooks.PostStart {
		err := d.hook(ctx, e, c, fmt.Sprintf("post_start hook %d", i+1), h)
		if err == nil {
			continue
		}
		stop := grace(a)
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(*stop.Timeout)*time.Second+stopAfter)
		defer cancel()
		if serr := e.ContainerStop(late, c.ID, stop); serr != nil {
			err = fmt.Errorf("%w; and it cannot be stopped: %w", err, serr)
		}
		return &ring.EngineError{Cause: ring.CauseCreate, Err: fmt.Errorf("cannot start container %s: %w", c.Name, err)}
	}
	return nil
}

// beforeStop runs the pre_stop hooks of a running container that is about to be
// stopped by us, within the grace of its stop. Whatever they say, the stop goes
// on: it is told.
func (d *Docker) beforeStop(ctx context.Context, e engine, c container.InspectResponse, a ring.Action) (told []string) {
	if c.State == nil || !c.State.Running || c.State.Paused || c.State.Restarting {
		return nil
	}
	in := inspected(c, a)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*grace(a).Timeout)*time.Second)
	defer cancel()
	for i, h := range in.Hooks.PreStop {
		if err := d.hook(ctx, e, in, fmt.Sprintf("pre_stop hook %d", i+1), h); err != nil {
			told = append(told, fmt.Sprintf("container %s was stopped all the same: %v", in.Name, err))
			break // as after a failed line of a script
		}
	}
	return told
}

// maxSaid is how much of a hook's output an error repeats, in bytes.
const maxSaid = 400

// hook runs one hook and waits for its end; anything but exit code 0 is an error.
func (d *Docker) hook(ctx context.Context, e engine, c contained, which string, h ring.Hook) error {
	x, o := hookOptions(h), d.opener()
	if o.exec(&x); o.err != nil {
		return fmt.Errorf("%s: %w", which, o.err)
	}
	known := o.know(c.Hooks.Sealed)
	_, exit, out, err := d.command(ctx, e, c.ID, x)
	if err != nil {
		return o.error(fmt.Errorf("%s did not run to its end: %w", which, err))
	}
	if exit == 0 {
		return nil
	}
	known = d.knowFiles(o, c.App) && known // it may print a file
	said := strings.TrimSpace(o.redactAll(out))
	if len(out) == MaxOutput {
		said = o.redactCut(said)
	}
	if !known {
		said = "what it said is not told, as it may hold a value that the host's env folder has no more"
	}
	said = wording.CutBytes(said, maxSaid)
	if said == "" {
		said = "it said nothing"
	}
	return &exited{fmt.Sprintf("%s failed with exit code %d: %s", which, exit, said)}
}

// exited is a command that ran to its end and did not succeed.
type exited struct{ says string }

func (e *exited) Error() string { return e.says }
