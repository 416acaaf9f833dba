package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/mattn/go-shellwords"

	"github.com/gitring/gitring/ring"
)

// opener opens sealed values, and remembers what it opened, so that no error
// tells any of it.
type opener struct {
	reveal func(ring.Sealed) (string, error)
	opened map[string]string // value -> name of its variable
	err    error             // the first; after it nothing is opened
}

func (d *Docker) opener() *opener {
	o := &opener{reveal: d.opts.Open, opened: map[string]string{}}
	if o.reveal == nil {
		o.reveal = func(s ring.Sealed) (string, error) {
			return "", fmt.Errorf("cannot open the sealed value of %s: no env folder is configured", s.Name)
		}
	}
	return o
}

// text is s with its sealed values open.
func (o *opener) text(s string) string {
	if o.err != nil || !ring.HasSealed(s) {
		return s
	}
	open, err := ring.Open(s, func(v ring.Sealed) (string, error) {
		value, err := o.reveal(v)
		if err == nil {
			o.opened[value] = v.Name
		}
		return value, err
	})
	if err != nil {
		o.err = err
		return s
	}
	return open
}

// texts opens each of list, in place.
func (o *opener) texts(list []string) {
	for i := range list {
		list[i] = o.text(list[i])
	}
}

func (o *opener) values(m map[string]string) {
	for k, v := range m {
		m[k] = o.text(v)
	}
}

// payload opens all of p that can be sealed, in place. The hooks' label stays
// as it is: it is opened when a hook runs.
func (o *opener) payload(p payload) {
	o.texts(p.Config.Env)
	p.Config.Cmd = o.words(p.Config.Cmd, p.CmdText)
	p.Config.Entrypoint = o.words(p.Config.Entrypoint, p.EntrypointText)
	o.values(p.Config.Labels)
	if p.Config.Healthcheck != nil {
		o.texts(p.Config.Healthcheck.Test)
	}
	o.values(p.Host.Annotations)
	o.values(p.Host.LogConfig.Config)
}

// words opens the words of a command. A text is split as Compose splits it: after its
// values were put in.
func (o *opener) words(words []string, text string) []string {
	if text == "" {
		o.texts(words)
		return words
	}
	text = o.text(text)
	if o.err != nil {
		return words
	}
	split, err := shellwords.Parse(text)
	o.knowWords()
	if err != nil { // the reader looked, at the same values
		o.err = errors.New("cannot split a command with values of the host into words")
	}
	return split
}

// knowWords has redact look for the words of values too: split, they are arguments that a
// program may tell one by one.
func (o *opener) knowWords() {
	for value, name := range maps.Clone(o.opened) {
		if split, err := shellwords.Parse(value); err == nil && len(split) > 1 {
			for _, w := range split {
				o.opened[w] = name
			}
		}
	}
}

func (o *opener) exec(x *container.ExecOptions) {
	o.texts(x.Cmd)
	o.texts(x.Env)
}

// redact puts <NAME> for each opened value in text, in each form of ring.FormsOf.
func (o *opener) redact(text string) string {
	values := make([]string, 0, len(o.opened))
	for v := range o.opened {
		values = append(values, v)
	}
	// The longest first: one value can be part of another.
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for _, v := range values {
		text = ring.Strike(text, v, "<"+o.opened[v]+">")
	}
	return text
}

// redactCut strikes out what a text that was cut off at its end has of a value there.
func (o *opener) redactCut(text string) string {
	for value, name := range o.opened {
		text = ring.StrikeCut(text, value, "<"+name+">")
	}
	return text
}

// know opens what can be opened of texts, for redact alone. It reports whether
// that was all.
func (o *opener) know(texts []string) (all bool) {
	all = true
	for _, text := range texts {
		if o.text(text); o.err != nil {
			all, o.err = false, nil
		}
	}
	return all
}

// sealedIn are the texts of a spec that have sealed values in them, sorted.
func sealedIn(s ring.Spec) []string {
	texts := slices.Concat(s.Command, s.Entrypoint, []string{s.CommandText, s.EntrypointText})
	if s.Healthcheck != nil {
		texts = append(texts, s.Healthcheck.Test...)
	}
	maps := []map[string]string{s.Environment, s.Labels, s.Annotations}
	if s.Logging != nil {
		maps = append(maps, s.Logging.Options)
	}
	for _, h := range slices.Concat(s.PostStart, s.PreStop) {
		texts, maps = append(texts, h.Command...), append(maps, h.Environment)
	}
	for _, m := range maps {
		for _, v := range m {
			texts = append(texts, v)
		}
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return !ring.HasSealed(text) })
	slices.Sort(texts)
	return slices.Compact(texts)
}

// withoutSecrets is err of a step without the values that its service has
// sealed: an engine repeats the name of a program that it cannot find.
func (d *Docker) withoutSecrets(a ring.Action, err error) error {
	if err == nil || a.Want == nil {
		return err
	}
	o := d.opener()
	o.know(sealedIn(a.Want.Spec))
	return o.error(err)
}

// error is err without what was opened. It keeps its class and what it means.
func (o *opener) error(err error) error {
	if err == nil {
		return nil
	}
	text := o.redact(err.Error())
	if text == err.Error() {
		return err
	}
	var e *ring.EngineError
	if !errors.As(err, &e) {
		return redacted{text, err}
	}
	clean := *e
	clean.Err = redacted{text, e.Err}
	if e.Refusal != nil {
		r := *e.Refusal
		r.Says, r.Hint = o.redact(r.Says), o.redact(r.Hint)
		clean.Refusal = &r
	}
	return &clean
}

// redacted reads as text and is of err's class. There is no way to err itself.
type redacted struct {
	text string
	err  error
}

func (r redacted) Error() string        { return r.text }
func (r redacted) Is(target error) bool { return errors.Is(r.err, target) }
