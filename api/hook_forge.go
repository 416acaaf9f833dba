package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Forges whose webhooks are understood.
const (
	GitHub      = ring.GitHub
	GitLab      = ring.GitLab
	Gitea       = ring.Gitea
	Forgejo     = ring.Forgejo
	Bitbucket   = ring.Bitbucket   // Cloud
	BitbucketDC = ring.BitbucketDC // Data Center
	Generic     = "generic"        // whatever can compute an HMAC
)

// Forges are all of them, in the order in which they are told.
func Forges() []string {
	return []string{GitHub, GitLab, Gitea, Forgejo, Bitbucket, BitbucketDC, Generic}
}

// A forge is the way in which one kind of sender signs and tells. Names of headers are
// in the canonical spelling of net/http.
type forge struct {
	proof  func(secrets [][]byte) (proof, error)
	events []string // headers that name the event; the first that is there counts
	ids    []string // headers that name the delivery
	news   reader
}

// A proof judges who sent a request: first by its headers, so that most forgeries end
// before a byte of their body is read, and then by the raw body. A nil check is a
// refusal, and why says what of.
type proof func(h http.Header, now time.Time) (check func(body []byte) bool, why string)

func forgeOf(name string) (forge, error) {
	switch name {
	case GitHub:
		return forge{signed("X-Hub-Signature-256", "sha256="), []string{"X-Github-Event"}, []string{"X-Github-Delivery"}, gitHubNews}, nil
	case GitLab:
		return forge{gitLabProof, []string{"X-Gitlab-Event"}, []string{"Webhook-Id", "Idempotency-Key", "X-Gitlab-Event-Uuid"}, gitLabNews}, nil
	case Gitea:
		return forge{signed("X-Gitea-Signature", ""), []string{"X-Gitea-Event"}, []string{"X-Gitea-Delivery"}, gitHubNews}, nil
	case Forgejo:
		return forge{
			signed("X-Forgejo-Signature", ""),
			[]string{"X-Forgejo-Event", "X-Gitea-Event"},
			[]string{"X-Forgejo-Delivery", "X-Gitea-Delivery"},
			gitHubNews,
		}, nil
	case Bitbucket:
		return forge{signed("X-Hub-Signature", "sha256="), []string{"X-Event-Key"}, []string{"X-Request-Uuid"}, bitbucketNews}, nil
	case BitbucketDC:
		return forge{signed("X-Hub-Signature", "sha256="), []string{"X-Event-Key"}, []string{"X-Request-Id"}, bitbucketDCNews}, nil
	case Generic:
		return forge{timedProof, nil, nil, genericNews}, nil
	}
	known := Forges()
	return forge{}, fmt.Errorf("webhook.forge is %q; known are %s and %s", name, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}

// event is what a request says it is about; "" when it does not say.
func (f forge) event(h http.Header) string { return first(h, f.events) }

// delivery is the forge's number of a request when it looks like one, quoted for the
// log; "" otherwise.
func (f forge) delivery(h http.Header) string {
	if id := first(h, f.ids); id != "" && len(id) <= 64 {
		return strconv.QuoteToASCII(id)
	}
	return ""
}

func first(h http.Header, names []string) string {
	i := slices.IndexFunc(names, func(name string) bool { return h.Get(name) != "" })
	if i < 0 {
		return ""
	}
	return h.Get(names[i])
}
