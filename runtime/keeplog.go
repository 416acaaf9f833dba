package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Bounds of what is kept of an instance's log.
const (
	tailBytes = 256 << 10 // of what is read, the end
	keepBytes = 64 << 10  // of what is kept, the end
	lineBytes = 2 << 10   // of a line
	// tailMore is how many lines more are read than kept: the engine counts them
	// before it looks at their times, and a later run may have written some.
	tailMore = 5
)

// withheld stands for a log that may hold what nobody may read.
const withheld = "(the log is not kept: a value of the env folder that this version used cannot be read any more, so it could not be struck out)"

// keepLog reads the end of an instance's log, between the step's From and To, with
// the values of the host's env folder that its service uses struck out. It
// changes nothing.
func (d *Docker) keepLog(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	c, err := d.ours(ctx, e, "cannot read the log of container", target(a))
	if err != nil {
		return ring.Done{}, err
	}
	done := ring.Done{Instance: c.ID}
	o, all := d.secretsOf(a, c)
	if !d.knowFiles(o, c.Config.Labels[labelApp]) || !all {
		done.Log = []string{withheld}
		return done, nil
	}
	text, err := tail(ctx, e, c, a)
	if err != nil && a.Timeout > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the engine did not hand it over within %s", a.Timeout)
	}
	if err != nil {
		return done, fault("cannot read the log of container "+strings.TrimPrefix(c.Name, "/"), "", err)
	}
	done.Log = lastLines(o.redactAll(text), a.Lines)
	printed := d.printed(c)
	for _, check := range slices.Sorted(maps.Keys(printed)) {
		done.Checked = append(done.Checked, o.checkLines(printed[check])...)
	}
	return done, nil
}

// knowFiles has o strike out all values of an app: files that an instance mounts may hold
// others than its spec. It reports whether these are all.
func (d *Docker) knowFiles(o *opener, app string) bool {
	if d.opts.Values == nil {
		return true
	}
	values, err := d.opts.Values(app)
	maps.Copy(o.opened, values)
	return err == nil
}

// secretsOf knows the values that an instance was given sealed: as they are now,
// or, in its environment, as they were when it was made. It reports whether these
// are all.
func (d *Docker) secretsOf(a ring.Action, c container.InspectResponse) (o *opener, all bool) {
	o = d.opener()
	if a.Want == nil {
		return o, false
	}
	spec := a.Want.Spec
	if o.know(sealedIn(spec)) {
		if spec.CommandText+spec.EntrypointText != "" {
			o.knowWords()
		}
		return o, true
	}
	given := map[string]string{}
	for _, kv := range c.Config.Env {
		name, value, _ := strings.Cut(kv, "=")
		given[name] = value
	}
	for name, text := range spec.Environment {
		value, ok := given[name]
		if !ring.HasSealed(text) || o.know([]string{text}) {
			continue
		}
		old := ring.Inside(text, value)
		if !ok || old == nil {
			return o, false
		}
		for _, v := range old {
			o.opened[v] = name
		}
	}
	spec.Environment = nil
	return o, o.know(sealedIn(spec))
}

// redactAll strikes out values also where they stand line by line.
func (o *opener) redactAll(text string) string {
	more := map[string]string{}
	for value, name := range o.opened {
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); len(line) >= 2*ring.ShortestStruck {
				more[line] = name
			}
		}
	}
	for value, name := range more {
		if _, ok := o.opened[value]; !ok {
			o.opened[value] = name
		}
	}
	return o.redact(text)
}

// tail reads the end of a log.
func tail(ctx context.Context, e engine, c container.InspectResponse, a ring.Action) (string, error) {
	opts := container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: fmt.Sprint(tailMore * max(a.Lines, 1))}
	if !a.From.IsZero() {
		opts.Since = stamp(a.From)
	}
	if !a.To.IsZero() {
		opts.Until = stamp(a.To)
	}
	body, err := e.ContainerLogs(ctx, c.ID, opts)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	out := &ending{max: tailBytes}
	err = copyLog(out, body, c.Config.Tty)
	return string(out.b), err
}

// copyLog copies both streams as they came. An instance with a terminal has one.
func copyLog(w io.Writer, body io.Reader, tty bool) error {
	var err error
	if tty {
		_, err = io.Copy(w, body)
	} else {
		_, err = stdcopy.StdCopy(w, w, body)
	}
	return err
}

// lastLines are at most n lines from the end of text, each as it may be shown
// anywhere: what moves a cursor or rings a bell goes.
func lastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	size := 0
	for i := len(lines) - 1; i >= 0; i-- {
		lines[i] = plain(lines[i])
		if size += len(lines[i]) + 1; len(lines)-i > n || size > keepBytes {
			return lines[i+1:]
		}
	}
	return lines
}

// plain is a line without escapes and control characters, and not too long.
func plain(line string) string {
	line = escapes.ReplaceAllString(line, "")
	line = wording.Replace(line, func(r rune) bool { // a tab stays, as it parts columns
		return r != '\t' && (r == unicode.ReplacementChar || !unicode.IsPrint(r))
	}, -1)
	if len(line) > lineBytes {
		line = wording.CutBytes(line, lineBytes-len("…"))
	}
	return line
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")

// ending keeps the last max bytes that were written.
type ending struct {
	b   []byte
	max int
}

func (t *ending) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > t.max { // seldom, so that it costs little
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}
