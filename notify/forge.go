package notify

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Kinds of forges.
const (
	GitHub      = ring.GitHub
	GitLab      = ring.GitLab
	Gitea       = ring.Gitea
	Forgejo     = ring.Forgejo
	Bitbucket   = ring.Bitbucket   // Cloud
	BitbucketDC = ring.BitbucketDC // Data Center
)

// Forge is where the statuses of one source go. NewForge makes a complete one.
type Forge struct {
	Kind   string // one of Kinds
	APIURL string // the API's root, without a slash at the end
	Repo   string // as the forge writes it: owner/name, a path of groups, KEY/name
	// TokenFile is read at every use, so a new token needs no restart.
	TokenFile string
	// TargetURL is where a status leads a reader; from the configuration only,
	// "" is nowhere.
	TargetURL string
	// Branch is the source's, for the forges that ask what a status is about.
	Branch string
	// Username makes it basic authentication, for Bitbucket Cloud; "" is a
	// bearer token.
	Username string
	// App takes the place of TokenFile, on GitHub alone; nil is none.
	App *App
	// Deployments and PullRequests say what is done besides statuses.
	Deployments, PullRequests bool
	// Client is nil for the package's own. Redirects are never followed.
	Client *http.Client

	few   bool   // lists are asked for in short pages
	doing string // what a call is for, in the sentence of a 403; "" is statuses
}

// token reads the token; neither it nor a part of it is ever in an error.
func (f Forge) token(ctx context.Context) (string, error) {
	if f.App != nil {
		return f.App.Token(ctx, f)
	}
	raw, err := os.ReadFile(f.TokenFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	t := strings.TrimSpace(string(raw))
	if t == "" {
		return "", fmt.Errorf("cannot use the token: %s is empty", f.TokenFile)
	}
	for _, r := range t {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("cannot use the token: %s holds more than one word", f.TokenFile)
		}
	}
	return t, nil
}

// tokenKey is the key of the configuration that a person looks at when the
// token is not taken.
func (f Forge) tokenKey() string {
	if f.App != nil {
		return "status.app"
	}
	return "status.token_file"
}

// projectAndSlug are the two parts of repo for Data Center.
func (f Forge) projectAndSlug() (string, string) {
	project, slug, _ := strings.Cut(f.Repo, "/")
	return project, slug
}

// ownTransport is for forges that bring none.
var ownTransport = transportBy((&net.Dialer{Timeout: timeout}).DialContext)

// idleConn is how long a connection is kept for the next post: shorter than a server
// or a proxy of any forge keeps one. A post on one that was closed meanwhile is lost,
// and nothing below repeats a POST.
const idleConn = 2 * time.Second

func transportBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSHandshakeTimeout:    timeout,
		ResponseHeaderTimeout:  timeout,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        idleConn,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// transport makes one request and follows no redirect: the token is for this
// host alone.
func (f Forge) transport() http.RoundTripper {
	switch {
	case f.Client == nil:
		return ownTransport
	case f.Client.Transport == nil:
		return http.DefaultTransport
	}
	return f.Client.Transport
}
