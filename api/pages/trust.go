package pages

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

type trustView struct {
	Sources []trustOf
}

type trustOf struct {
	ring.TrustState
	SinceAt *moment
	BeganAt *moment
	Keys    []keyView
}

type keyView struct {
	ring.TrustedSigner
	Mark   Mark
	Until  *moment
	Rights []string
}

func trustPage(ctx context.Context, a *asking) (*drawn, error) {
	all, err := a.answers.Trust(ctx, "")
	if err != nil {
		return nil, err
	}
	v := &trustView{}
	for i := range all {
		t := trustOf{TrustState: all[i], SinceAt: a.clock.of(all[i].Since)}
		if b := all[i].Began; b != nil {
			t.BeganAt = a.clock.of(b.At)
		}
		for j := range all[i].Signers {
			t.Keys = append(t.Keys, a.key(&all[i].Signers[j]))
		}
		v.Sources = append(v.Sources, t)
	}
	return &drawn{template: "trust", title: "Trust · " + a.status.Host, live: "status", view: v}, nil
}

func (a *asking) key(s *ring.TrustedSigner) keyView {
	k := keyView{TrustedSigner: *s, Mark: Mark{Word: "counts", Shape: "dot", Tone: toneGood}, Until: a.clock.of(s.Until)}
	switch {
	case s.Revoked != "":
		k.Mark = Mark{Word: "revoked", Shape: "cross", Tone: toneBad}
	case s.Refused != "":
		k.Mark = Mark{Word: string(s.Refused), Shape: "square", Tone: toneBad}
	case !s.Until.IsZero() && s.Until.Before(a.clock.now):
		k.Mark = Mark{Word: "expired", Shape: "clock", Tone: toneWait}
	case s.From.After(a.clock.now):
		k.Mark = Mark{Word: "not yet", Shape: "clock", Tone: toneWait}
	case len(s.Grants) == 0:
		k.Mark = Mark{Word: "no rights here", Shape: "dash", Tone: toneOff}
	}
	for _, g := range s.Grants {
		k.Rights = append(k.Rights, strings.Join(g.Roles, ", ")+wording.When(len(g.Paths) > 0, fmt.Sprintf(" in %s", strings.Join(g.Paths, ", "))))
	}
	return k
}
