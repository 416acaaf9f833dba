package notify

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gitring/gitring/ring"
)

// driver is what tells one forge from another: a small file for each.
type driver interface {
	// dress sets the headers that every call carries.
	dress(h http.Header, f Forge, token string)
	// status is how the forge is told p: a path below the API's root, with
	// every part of it escaped, and the body.
	status(f Forge, p ring.Post) (path string, body any)
	// judge says what an answer means where it is not what it means everywhere;
	// false leaves it to that. body is only looked at, never repeated.
	judge(a answer, body string) (outcome, bool)
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

// stated is the forge's word for a state of ours.
func stated(words map[string]string, state string) string {
	if w, ok := words[state]; ok {
		return w
	}
	return words[ring.PostError]
}
