package checkout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// Verified is what "verify -o json" prints.
type Verified struct {
	Commits []VerifiedCommit `json:"commits"`
	Refusal *ring.Refusal    `json:"refusal,omitempty"`
	// Judged is what one commit alone was held to.
	Judged string `json:"judged,omitempty"`
	// Empty is why there was nothing to judge.
	Empty string `json:"-"`
}

type VerifiedCommit struct {
	Commit      ring.SHA  `json:"commit"`
	Signer      string    `json:"signer,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	ClaimedAt   time.Time `json:"claimed_at"`
	Note        string    `json:"note,omitempty"`
}

// A Judge holds commits of a clone to the rules that hosts hold them to.
type Judge struct {
	repo  *gitsync.Repo
	seen  gitsync.Objects // repo, until the verb ends
	trust *gitsync.Trust
	rules Rules
	aids  gitsync.Aids
	now   time.Time
}

// NewJudge judges what a repository has, which is that of a clone, until ctx ends.
func NewJudge(ctx context.Context, c *Clone, repo *gitsync.Repo, trust *gitsync.Trust, rules Rules) *Judge {
	return &Judge{repo: repo, seen: gitsync.Until(ctx, repo), trust: trust, rules: rules, aids: c.aids(ctx), now: c.Now()}
}

// JudgeRevision asks the rules for one commit, or for a range "from..to".
func (j *Judge) JudgeRevision(rev string) (Verified, error) {
	firstSeen := func(ring.SHA) time.Time { return j.now }
	from, to, isRange := strings.Cut(rev, "..")
	if !isRange {
		return j.judgeOne(rev)
	}
	v := Verified{Commits: []VerifiedCommit{}}
	tip, err := resolve(j.repo, to)
	if err != nil {
		return v, err
	}
	anchor, err := resolve(j.repo, from)
	if err != nil {
		return v, err
	}
	if anchor == tip {
		v.Empty = fmt.Sprintf("%s holds no commit, because both ends are %s", rev, tip.Short())
		return v, nil
	}
	commits, refusal, err := j.trust.RangeWith(j.seen, j.aids, anchor, tip, j.now, firstSeen)
	if err != nil {
		return v, incomplete(rev, err)
	}
	for _, c := range commits {
		v.Commits = append(v.Commits, verifiedOf(c))
	}
	v.Refusal = refusal
	return v, nil
}

// judgeOne is rev for one commit, which says what it was held to.
func (j *Judge) judgeOne(rev string) (Verified, error) {
	v := Verified{Commits: []VerifiedCommit{}}
	sha, err := resolve(j.repo, rev)
	if err != nil {
		return v, err
	}
	c, refusal, err := j.trust.OneOfHistory(j.seen, sha, j.now, nil)
	if err != nil {
		return v, incomplete(rev, err)
	}
	v.Judged = "its signature; no signer is bound to roles, branches or paths"
	switch {
	case j.rules.Config.Mode == gitsync.Disabled:
		v.Judged = "its form alone, because trust is disabled"
	case j.trust.Binds():
		v.Judged = fmt.Sprintf("its signature, and what its signer may change on branch %s of source %s", j.rules.branch, j.rules.Source)
	}
	if v.Refusal = refusal; refusal == nil {
		v.Commits = append(v.Commits, verifiedOf(c))
	}
	return v, nil
}

// incomplete is an error of a clone that may not have all that is asked of it.
func incomplete(rev string, err error) error {
	if errors.Is(err, gitsync.ErrMissing) {
		return &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("cannot verify %s: %v", rev, err),
			Hint: "commits are held against their parents, and a shallow clone does not have them: git fetch --unshallow, or fetch-depth: 0 in CI",
		}
	}
	return fmt.Errorf("cannot verify %s: %w", rev, err)
}

func verifiedOf(c ring.Verified) VerifiedCommit {
	return VerifiedCommit{Commit: c.SHA, Signer: c.Signer, Fingerprint: c.Fingerprint, ClaimedAt: c.ClaimedAt, Note: c.Note}
}

// resolve takes "" as HEAD, as Git does in "a..".
func resolve(repo *gitsync.Repo, rev string) (ring.SHA, error) {
	if rev == "" {
		rev = "HEAD"
	}
	sha, err := repo.Resolve(rev)
	if err != nil {
		return "", &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "git log --oneline lists commits; a shallow clone does not have them all"}
	}
	return sha, nil
}
