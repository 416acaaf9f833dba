package notify

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gitring/gitring/ring"
)

// driver is what tells one forge from another: a small file for each.
type driver interface {
	// dress sets the headers that every call carries.
	dress(h http.Header, f Forge, token string)
	// say makes one attempt to show a row as a commit status. remote is what the
	// forge calls it, "" where that is of no use for the next time. The error is
	// one of call's.
	say(ctx context.Context, f Forge, r ring.OutboxRow) (remote string, err error)
	// hear is what the statuses of a commit say in contexts.
	hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error)
	// judge says what an answer means where it is not what it means everywhere;
	// false leaves it to that. body is only looked at, never repeated.
	judge(a answer, body string) (outcome, bool)
}

// A deployer is a driver of a forge that keeps a list of deployments.
type deployer interface {
	// deploy is say, for the row of a deployment. It makes none that is there.
	deploy(ctx context.Context, f Forge, r ring.OutboxRow) (remote string, err error)
}

// drivers are by kind.
var drivers = map[string]driver{
	GitHub: github{}, GitLab: gitlab{}, Gitea: gitea{}, Forgejo: gitea{},
	Bitbucket: bitbucket{}, BitbucketDC: bitbucketDC{},
}

// Kinds are the forges that statuses can go to.
func Kinds() []string {
	return []string{GitHub, GitLab, Gitea, Forgejo, Bitbucket, BitbucketDC}
}

func driverOf(kind string) (driver, error) {
	if d, ok := drivers[kind]; ok {
		return d, nil
	}
	return nil, fmt.Errorf("cannot post statuses to %q: status.forge is one of %s", kind, strings.Join(Kinds(), ", "))
}

// Deploys reports whether a kind of forge keeps a list of deployments.
func Deploys(kind string) bool {
	_, ok := drivers[kind].(deployer)
	return ok
}

// words are a forge's, by our state or phase; a phase without one is its state.
type words map[string]string

func (w words) of(state, phase string) string {
	if own, ok := w[phase]; ok {
		return own
	}
	return w[state]
}
