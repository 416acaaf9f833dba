package checkout

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// Pushed is one ref of a push, as git tells a pre-push hook.
type Pushed struct {
	Local  ring.SHA // "" deletes
	branch string   // there; "" is no branch
	remote ring.SHA // what is there now; "" is nothing
}

const noCommit = "0000000000000000000000000000000000000000"

// readPushed reads "<local ref> <local id> <remote ref> <remote id>" lines.
func readPushed(r io.Reader) ([]Pushed, error) {
	var all []Pushed
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) != 4 || !config.FullSHA.MatchString(f[1]) || !config.FullSHA.MatchString(f[3]) {
			return nil, &exit.Failure{
				Code: exit.Usage, Says: fmt.Sprintf("%q is no line that git gives a pre-push hook", lines.Text()),
				Hint: "let git run it: gitring init --hook writes the hook",
			}
		}
		p := Pushed{Local: known(f[1]), remote: known(f[3])}
		p.branch, _ = strings.CutPrefix(f[2], "refs/heads/")
		if p.branch == f[2] {
			p.branch = ""
		}
		all = append(all, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read what is pushed: %w", err)
	}
	return all, nil
}

func known(sha string) ring.SHA {
	if sha == noCommit {
		return ""
	}
	return ring.SHA(sha)
}

// PushedTo are the pushes to a branch that bring something.
func PushedTo(branch string, in io.Reader) ([]Pushed, error) {
	all, err := readPushed(in)
	if err != nil {
		return nil, err
	}
	var out []Pushed
	for _, p := range all {
		if p.branch == branch && p.Local != "" {
			out = append(out, p)
		}
	}
	return out, nil
}

// JudgePushes judges what is pushed to the branch that is followed: since what
// is there now, with what of that it vouches for, or, for a branch that is new
// there, as a first trust.
func (j *Judge) JudgePushes(in io.Reader) (Verified, error) {
	v, branch := Verified{Commits: []VerifiedCommit{}}, j.rules.branch
	list, err := PushedTo(branch, in)
	if err != nil {
		return v, err
	}
	for _, p := range list {
		if p.remote != "" {
			if _, _, err := j.repo.Raw(p.remote); errors.Is(err, gitsync.ErrMissing) {
				return v, &exit.Failure{
					Code: exit.Conflict, Says: fmt.Sprintf("the remote's %s is at %s, which is not in this clone", branch, p.remote.Short()),
					Hint: "git fetch, build on what is there, and push again",
				}
			}
		}
		commits, refusal, err := j.trust.Pushed(j.seen, j.aids, p.remote, p.Local, j.now)
		if err != nil {
			return v, fmt.Errorf("cannot verify what is pushed to %s: %w", branch, err)
		}
		for _, c := range commits {
			v.Commits = append(v.Commits, verifiedOf(c))
		}
		if v.Refusal = refusal; refusal != nil {
			return v, nil
		}
	}
	return v, nil
}
