package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Kinds of forges.
const (
	GitHub      = "github"
	GitLab      = "gitlab"
	Gitea       = "gitea"
	Forgejo     = "forgejo"
	Bitbucket   = "bitbucket"    // Cloud
	BitbucketDC = "bitbucket-dc" // Data Center
)

// Forge is where the statuses of one source go. NewForge makes a complete one.
type Forge struct {
	Kind   string // one of Kinds
	APIURL string // the API's root, without a slash at the end
	Repo   string // owner/name
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
	// Client is nil for the package's own. Redirects are never followed.
	Client *http.Client

	doing string // what a call is for, in the sentence of a 403; "" is statuses
}

// NewForge completes what the configuration leaves out: apiURL and repo come
// from the source's URL. http:// is accepted only where it was written by
// hand, as apiURL. An error says which key to set.
func NewForge(kind, sourceURL, apiURL, repo, tokenFile string) (Forge, error) {
	f := Forge{Kind: kind, APIURL: apiURL, Repo: repo, TokenFile: tokenFile}
	if _, err := driverOf(kind); err != nil {
		return Forge{}, err
	}
	at, derivable := locate(kind, sourceURL)
	if f.APIURL == "" {
		if !derivable {
			return Forge{}, errors.New("cannot tell the API of the forge from the source's url: set status.api_url")
		}
		f.APIURL = at.api
	}
	if f.Repo == "" {
		if !derivable {
			return Forge{}, errors.New("cannot tell the repository from the source's url: set status.repo to owner/name")
		}
		f.Repo = at.repo
	}
	f.APIURL = strings.TrimRight(f.APIURL, "/")
	if err := checkAPI(f.APIURL); err != nil {
		return Forge{}, err
	}
	owner, name, ok := strings.Cut(f.Repo, "/")
	if !ok || !isSegment(owner) || !isSegment(name) {
		return Forge{}, errors.New("cannot use status.repo: it has the form owner/name")
	}
	return f, nil
}

// place is what a source's URL tells of its forge.
type place struct{ api, repo string }

// locate understands https and ssh URLs, and git@host:owner/name.
func locate(kind, raw string) (place, bool) {
	if !strings.Contains(raw, "://") {
		host, path, ok := strings.Cut(raw, ":")
		if !ok || strings.Contains(host, "/") {
			return place{}, false
		}
		raw = "ssh://" + host + "/" + path
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return place{}, false
	}
	host := u.Host
	switch u.Scheme {
	case "https":
	case "ssh":
		host = u.Hostname() // its port is no port of the API
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	default:
		return place{}, false
	}
	parts := strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), ".git"), "/"), "/")
	if len(parts) < 2 {
		return place{}, false
	}
	base, repo := parts[:len(parts)-2], strings.Join(parts[len(parts)-2:], "/")
	root := "https://" + strings.Join(append([]string{host}, base...), "/")
	if kind != GitHub {
		return place{root + "/api/v1", repo}, true
	}
	if len(base) > 0 {
		return place{}, false
	}
	switch strings.ToLower(u.Hostname()) {
	case "github.com", "www.github.com", "ssh.github.com":
		return place{"https://api.github.com", repo}, true
	}
	return place{root + "/api/v3", repo}, true
}

func checkAPI(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return errors.New("cannot use status.api_url: it has the form https://host/path")
	case u.User != nil:
		return errors.New("cannot use status.api_url: it holds a user or password, which belongs into token_file")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("cannot use status.api_url: it has a query")
	}
	return nil
}

func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/?#%\\ \t\r\n")
}

// token reads the token; neither it nor a part of it is ever in an error.
func (f Forge) token(context.Context) (string, error) {
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
func (f Forge) tokenKey() string { return "status.token_file" }

// projectAndSlug are the two parts of repo for Data Center.
func (f Forge) projectAndSlug() (string, string) {
	project, slug, _ := strings.Cut(f.Repo, "/")
	return project, slug
}

// ownClient is for forges that bring none.
var ownClient = &http.Client{
	Transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout:    timeout,
		ResponseHeaderTimeout:  timeout,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	},
}

// client never follows a redirect: the token is for this host alone.
func (f Forge) client() *http.Client {
	c := ownClient
	if f.Client != nil {
		c = f.Client
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
