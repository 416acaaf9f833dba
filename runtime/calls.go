package runtime

import (
	"maps"
	"net/http"
	"regexp"
	"sync"
)

// calls counts requests to the engine by method and path, ids left out.
type calls struct {
	mu sync.Mutex
	n  map[string]int // guarded by mu
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
	return c.next.RoundTrip(r)
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
