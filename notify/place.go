package notify

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

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
			return Forge{}, fmt.Errorf("cannot tell the repository from the source's url: set status.repo to %s", repoForm(kind))
		}
		f.Repo = at.repo
	}
	f.APIURL = strings.TrimRight(f.APIURL, "/")
	if err := checkAPI(f.APIURL); err != nil {
		return Forge{}, err
	}
	if !isRepo(kind, f.Repo) {
		return Forge{}, fmt.Errorf("cannot use status.repo: it has the form %s", repoForm(kind))
	}
	return f, nil
}

func repoForm(kind string) string {
	switch kind {
	case GitLab:
		return "group/name, with every group, or the project's number"
	case Bitbucket:
		return "workspace/name"
	case BitbucketDC:
		return "KEY/name"
	}
	return "owner/name"
}

func isRepo(kind, repo string) bool {
	parts := strings.Split(repo, "/")
	for _, p := range parts {
		if !isSegment(p) {
			return false
		}
	}
	if kind == GitLab {
		return len(parts) > 1 || strings.Trim(repo, "0123456789") == ""
	}
	return len(parts) == 2
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
	// Forges that can be reached by ssh through a firewall have a host of their
	// own for it.
	named := strings.ToLower(u.Hostname())
	for _, p := range []string{"ssh.", "altssh.", "www."} {
		named = strings.TrimPrefix(named, p)
	}
	base, repo := parts[:len(parts)-2], strings.Join(parts[len(parts)-2:], "/")
	root := "https://" + strings.Join(append([]string{host}, base...), "/")
	switch kind {
	case GitHub:
		return placeGitHub(named, root, repo, len(base) == 0)
	case GitLab: // groups stand one in another; an API below a path is given by hand
		if named == "gitlab.com" {
			host = named
		}
		return place{"https://" + host + "/api/v4", strings.Join(parts, "/")}, true
	case Bitbucket:
		return place{"https://api.bitbucket.org/2.0", repo}, named == "bitbucket.org" && len(base) == 0
	case BitbucketDC: // https://host/scm/KEY/name.git, ssh://git@host:7999/KEY/name.git
		if u.Scheme == "ssh" {
			return place{root + "/rest/api/latest", repo}, len(base) == 0
		}
		root, ok := strings.CutSuffix(root, "/scm")
		return place{root + "/rest/api/latest", repo}, ok
	}
	return place{root + "/api/v1", repo}, true
}

func placeGitHub(named, root, repo string, whole bool) (place, bool) {
	switch {
	case named == "github.com":
		return place{"https://api.github.com", repo}, whole
	case strings.HasSuffix(named, ".ghe.com"): // GitHub Enterprise Cloud with data residency
		return place{"https://api." + named, repo}, whole
	}
	return place{root + "/api/v3", repo}, whole
}

// Page is the repository's page for people, for the forges that want every
// status to lead somewhere; "" for the others.
func (f Forge) Page() string {
	switch f.Kind {
	case Bitbucket:
		workspace, slug := f.projectAndSlug()
		return "https://bitbucket.org" + segments(workspace, slug)
	case BitbucketDC:
		root, _, _ := strings.Cut(f.APIURL, "/rest/")
		project, slug := f.projectAndSlug()
		return root + segments("projects", project, "repos", slug)
	}
	return ""
}

func checkAPI(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return errors.New("cannot use status.api_url: it has the form https://host/path")
	case u.User != nil:
		return errors.New("cannot use status.api_url: it holds a user or password, which belongs into token_file")
	case strings.ContainsAny(raw, "?#"): // a bare one too: it would swallow every path
		return errors.New("cannot use status.api_url: it has a query")
	}
	return nil
}

func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/?#%\\") && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}
