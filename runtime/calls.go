package runtime

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// calls counts requests to the engine by method and path, ids left out.
type calls struct {
	mu sync.Mutex
	n  map[string]int // guarded by mu
	// told hears of each answer, as Options.Asked.
	told func(call, code string)
}

// counted is one client's transport.
type counted struct {
	next http.RoundTripper
	all  *calls
}

var (
	apiVersion = regexp.MustCompile(`^/v\d+\.\d+`)
	pathID     = regexp.MustCompile(`^(/(?:containers|networks|exec|volumes|images|distribution))/(.+)/(\w+)$`)
	lastID     = regexp.MustCompile(`^(/(?:containers|networks|volumes|images))/([^/]+)$`)
)

// RoundTrip counts the request and hands it on.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.count(r.Method + " " + route(r.URL.Path))
	res, err := c.next.RoundTrip(r)
	if c.all.told == nil {
		return res, err
	}
	code := "error"
	if err == nil {
		code = strconv.Itoa(res.StatusCode)
	}
	c.all.told(r.Method+" "+boundedRoute(r.URL.Path), code)
	return res, err
}

func (c *calls) count(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
}

func (c *calls) counted() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// route is a request's path without version and ids: /containers/{id}/json.
func route(path string) string {
	p := apiVersion.ReplaceAllString(path, "")
	if m := lastID.FindStringSubmatch(p); m != nil && (m[2] == "json" || m[2] == "create") {
		return p
	}
	if lastID.MatchString(p) {
		return lastID.ReplaceAllString(p, "$1/{id}")
	}
	return pathID.ReplaceAllString(p, "$1/{id}/$3")
}

// Last parts of a path of the engine's API that are no name.
var engineVerbs = []string{
	"archive", "attach", "changes", "connect", "create", "disconnect", "exec", "export", "get", "history", "info", "json", "kill",
	"load", "logs", "pause", "prune", "push", "rename", "resize", "restart", "search", "start", "stats", "stop", "tag", "top",
	"unpause", "update", "wait",
}

// boundedRoute is a path without version and names, of which there are few whatever an image
// is called: /images/{id}, /distribution/{id}/json.
func boundedRoute(path string) string {
	parts := strings.Split(strings.Trim(apiVersion.ReplaceAllString(path, ""), "/"), "/")
	first, last := "/"+parts[0], parts[len(parts)-1]
	switch verb := slices.Contains(engineVerbs, last); {
	case len(parts) == 1:
		return first
	case verb && len(parts) == 2:
		return first + "/" + last
	case verb:
		return first + "/{id}/" + last
	}
	return first + "/{id}"
}
