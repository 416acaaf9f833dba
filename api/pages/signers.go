package pages

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

const (
	// keptSigned bounds what is kept. More than that, and all are asked for anew.
	keptSigned = 500
	// unsignedFor is how long nobody asks again who signed a commit that nobody knew.
	unsignedFor = time.Minute
)

// signed is who signed a commit, and what it says.
type signed struct {
	subject, signer string
	until           time.Time // zero is for ever
}

// signers keeps who signed commits: of a commit that was accepted, that never changes.
type signers struct {
	mu sync.Mutex // guards what follows
	of map[ring.SHA]signed
}

func (s *signers) known(c ring.SHA, now time.Time) (signed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, ok := s.of[c]
	return of, ok && (of.until.IsZero() || now.Before(of.until))
}

func (s *signers) keep(c ring.SHA, of signed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil || len(s.of) > keptSigned {
		s.of = map[ring.SHA]signed{}
	}
	s.of[c] = of
}

// signedBy is who signed a commit, which may be shortened, and what it says; "" where the
// journal does not say so any more.
func (a *asking) signedBy(ctx context.Context, c ring.SHA) signed {
	if of, ok := a.h.signers.known(c, a.clock.now); ok {
		return of
	}
	commits, err := a.answers.Commits(ctx, api.HistoryQuery{Limit: commitsBack})
	if err != nil {
		return signed{} // the page of history says what is in the way
	}
	for i := range commits {
		of := signed{subject: commits[i].Subject, signer: commits[i].Signer}
		if of.signer == "" || of.subject == "" {
			of.until = a.clock.now.Add(unsignedFor)
		}
		a.h.signers.keep(commits[i].Commit, of)
	}
	of := signed{until: a.clock.now.Add(unsignedFor)}
	if i := slices.IndexFunc(commits, func(x api.CommitNow) bool { return strings.HasPrefix(string(x.Commit), string(c)) }); i >= 0 {
		of, _ = a.h.signers.known(commits[i].Commit, a.clock.now)
	}
	a.h.signers.keep(c, of)
	return of
}
