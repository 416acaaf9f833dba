package gitsync

import (
	"context"

	"github.com/gitring/gitring/ring"
)

// past answers what a verification asks of earlier looks, from the store.
type past struct {
	*Follower
	ctx   context.Context
	o     Objects
	began ring.SHA // "" where that was never written down
	known map[ring.SHA]ring.Standing
}

// past is of one look.
func (f *Follower) past(ctx context.Context, o Objects, began ring.SHA) *past {
	return &past{f, ctx, o, began, map[ring.SHA]ring.Standing{}}
}

// standing is the store's, but for a commit that was seen and lies behind the commit
// where trust began: a person accepted what came after it, so it was not left out.
func (p *past) standing(sha ring.SHA) (ring.Standing, error) {
	if s, ok := p.known[sha]; ok {
		return s, nil
	}
	s, err := p.anchors.Standing(p.ctx, p.cfg.Name, sha)
	if err != nil {
		return s, err
	}
	if s == ring.SeenOnly && p.began != "" {
		missed, err := unreached(Until(p.ctx, p.o), p.began, []ring.SHA{sha})
		if err != nil {
			return s, err
		}
		if len(missed) == 0 {
			s = ring.NeverSeen
		}
	}
	p.known[sha] = s
	return s, nil
}

func (p *past) carriers(payload string) ([]ring.Carrier, error) {
	return p.anchors.Carriers(p.ctx, p.cfg.Name, payload)
}
