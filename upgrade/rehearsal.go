package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Rehearsal is what a program says that it would do on a host: "rehearse -o json".
type Rehearsal struct {
	Gitring string `json:"gitring"` // its release
	Host    string `json:"host"`
	// Steps are those of one decision, and what the trusted commit would come to. Questions
	// are left out.
	Steps []ring.TrialStep `json:"steps,omitempty"`
	// Refused are apps and commits that it would not carry out, each with its reason.
	Refused []string `json:"refused,omitempty"`
	// Notes are what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Rolls are the steps of next that none of the others would take: what the running release
// does anyway is not the upgrade's doing.
func (next Rehearsal) Rolls(others ...Rehearsal) (out []ring.TrialStep) {
	for _, s := range next.Steps {
		if !slices.ContainsFunc(others, func(r Rehearsal) bool {
			return slices.ContainsFunc(r.Steps, func(o ring.TrialStep) bool { return s.Does == o.Does && s.On == o.On && s.Slot == o.Slot })
		}) {
			out = append(out, s)
		}
	}
	return out
}

// Refuses are what next would not carry out, and now would.
func (next Rehearsal) Refuses(now Rehearsal) (out []string) {
	for _, says := range next.Refused {
		if !slices.Contains(now.Refused, says) {
			out = append(out, says)
		}
	}
	return out
}

// Told are steps as a person reads them, each once.
func Told(steps []ring.TrialStep) string {
	var out []string
	for _, s := range steps {
		says := s.Does + " " + s.On
		if strings.HasPrefix(s.On, s.Does+" ") {
			says = s.On
		}
		if s.Slot > 0 {
			says += fmt.Sprintf(" slot %d", s.Slot)
		}
		if s.Reason != "" {
			says += " (" + s.Reason + ")"
		}
		if says = wording.SafeLine(says); !slices.Contains(out, says) {
			out = append(out, says)
		}
	}
	return strings.Join(out, "; ")
}

// mostSaid bounds what is read of a program that rehearses.
const mostSaid = 16 << 20

// Rehearse runs "<program> rehearse" as the daemon's user, with the daemon's arguments and
// environment, for at most within.
func Rehearse(ctx context.Context, program string, u Unit, within time.Duration) (r Rehearsal, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"rehearse", "-o", "json"}, u.Args...)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = u.Env, "/", time.Second
	if cmd.SysProcAttr, err = asUser(u); err != nil {
		return r, err
	}
	out, said := bounded{most: mostSaid}, bounded{most: 4096}
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return r, fmt.Errorf("it was not done within %s", within)
	case err != nil:
		return r, fmt.Errorf("%w: %s", err, wording.SafeLine(strings.TrimSpace(said.String())))
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Gitring == "" {
		return r, errors.New("what it says is no rehearsal")
	}
	return r, nil
}

// bounded keeps the first bytes.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if left := b.most - b.Len(); left > 0 {
		_, _ = b.Buffer.Write(p[:min(left, len(p))]) // never fails
	}
	return len(p), nil
}
