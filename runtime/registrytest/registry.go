// Package registrytest is a registry in memory, for tests: what one needs to be pushed to by
// cosign, and to be asked for signatures.
package registrytest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Content is a manifest or a blob.
type Content struct {
	Type string `json:"type,omitempty"`
	Body []byte `json:"body"`
}

// Kept is all that a registry has, by "repository@digest" and "repository:tag".
type Kept struct {
	Manifests map[string]Content `json:"manifests"`
	Blobs     map[string]Content `json:"blobs"`
	Tags      map[string]string  `json:"tags"`
}

// Registry is one. Its fields are set before it is asked.
type Registry struct {
	// Referrers reports whether it knows the API of referrers.
	Referrers bool
	// PageOfTags is how many tags it lists at once at most; 0 is all. LinkPrefix stands before
	// the path of a next page.
	PageOfTags int
	LinkPrefix string
	// Before, if set, may answer a request itself.
	Before func(w http.ResponseWriter, r *http.Request) (done bool)

	mu       sync.Mutex
	kept     Kept              // guarded by mu
	uploads  map[string][]byte // guarded by mu
	requests []string          // guarded by mu
}

// New is an empty registry.
func New() *Registry {
	return &Registry{kept: Kept{map[string]Content{}, map[string]Content{}, map[string]string{}}, uploads: map[string][]byte{}}
}

// Load puts in what another one had.
func (g *Registry) Load(body []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return json.Unmarshal(body, &g.kept)
}

// Kept is all that it has, as JSON.
func (g *Registry) Kept() ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return json.MarshalIndent(g.kept, "", "\t")
}

// Requests are those so far: method and path with its query.
func (g *Registry) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.requests)
}

// Digest is that of a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PutBlob puts a blob in.
func (g *Registry) PutBlob(repo string, body []byte) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := Digest(body)
	g.kept.Blobs[repo+"@"+d] = Content{Body: body}
	return d
}

// PutManifest puts a manifest in, under a tag unless that is "".
func (g *Registry) PutManifest(repo, tag, kind string, body []byte) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := Digest(body)
	g.kept.Manifests[repo+"@"+d] = Content{Type: kind, Body: body}
	if tag != "" {
		g.kept.Tags[repo+":"+tag] = d
	}
	return d
}

// Manifest is one by its tag or digest.
func (g *Registry) Manifest(repo, ref string) (Content, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tagged, ok := g.kept.Tags[repo+":"+ref]; ok {
		ref = tagged
	}
	c, ok := g.kept.Manifests[repo+"@"+ref]
	return c, ok
}

// Blob is one by its digest.
func (g *Registry) Blob(repo, digest string) ([]byte, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.kept.Blobs[repo+"@"+digest]
	return c.Body, ok
}

// Forget takes a tag or a manifest away.
func (g *Registry) Forget(repo, ref string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.kept.Tags, repo+":"+ref)
	delete(g.kept.Manifests, repo+"@"+ref)
}

var route = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs|referrers|tags)/(.*)$`)

// ServeHTTP answers as a registry does.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.requests = append(g.requests, r.Method+" "+r.URL.RequestURI())
	g.mu.Unlock()
	if g.Before != nil && g.Before(w, r) {
		return
	}
	m := route.FindStringSubmatch(r.URL.Path)
	switch {
	case r.URL.Path == "/v2/":
		w.WriteHeader(http.StatusOK)
	case m == nil:
		notFound(w, "NAME_UNKNOWN")
	case m[2] == "manifests" && r.Method == http.MethodPut:
		g.putManifest(w, r, m[1], m[3])
	case m[2] == "manifests":
		c, ok := g.Manifest(m[1], m[3])
		g.give(w, r, c, ok, "MANIFEST_UNKNOWN")
	case m[2] == "referrers" && g.Referrers:
		g.referrers(w, r, m[1], m[3])
	case m[2] == "blobs" && strings.HasPrefix(m[3], "uploads"):
		g.upload(w, r, m[1], m[3])
	case m[2] == "blobs":
		g.mu.Lock()
		c, ok := g.kept.Blobs[m[1]+"@"+m[3]]
		g.mu.Unlock()
		g.give(w, r, c, ok, "BLOB_UNKNOWN")
	case m[2] == "tags" && m[3] == "list":
		g.tags(w, r, m[1])
	default:
		notFound(w, "UNSUPPORTED")
	}
}

// tags lists those of a repository, at most as many as the one who asks wants at once.
func (g *Registry) tags(w http.ResponseWriter, r *http.Request, repo string) {
	list := []string{}
	g.mu.Lock()
	for name := range g.kept.Tags {
		if tag, ok := strings.CutPrefix(name, repo+":"); ok {
			list = append(list, tag)
		}
	}
	g.mu.Unlock()
	if len(list) == 0 {
		notFound(w, "NAME_UNKNOWN")
		return
	}
	slices.Sort(list)
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if last := r.URL.Query().Get("last"); last != "" {
		list = slices.DeleteFunc(list, func(tag string) bool { return tag <= last })
	}
	if g.PageOfTags > 0 && (err != nil || n > g.PageOfTags) {
		n, err = g.PageOfTags, nil
	}
	if err == nil && n < len(list) {
		list = list[:n]
		w.Header().Set("Link", fmt.Sprintf(`<%s/v2/%s/tags/list?last=%s&n=%d>; rel="next"`, g.LinkPrefix, repo, url.QueryEscape(list[n-1]), n))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": repo, "tags": list})
}

func (g *Registry) give(w http.ResponseWriter, r *http.Request, c Content, ok bool, code string) {
	if !ok {
		notFound(w, code)
		return
	}
	kind := c.Type
	if kind == "" {
		kind = "application/octet-stream"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", Digest(c.Body))
	w.Header().Set("Content-Length", fmt.Sprint(len(c.Body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(c.Body)
	}
}

func (g *Registry) putManifest(w http.ResponseWriter, r *http.Request, repo, ref string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	tag := ref
	if strings.HasPrefix(ref, "sha256:") {
		tag = ""
	}
	d := g.PutManifest(repo, tag, r.Header.Get("Content-Type"), body)
	var m struct {
		Subject *struct {
			Digest string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(body, &m) == nil && m.Subject != nil && g.Referrers {
		w.Header().Set("OCI-Subject", m.Subject.Digest)
	}
	w.Header().Set("Docker-Content-Digest", d)
	w.Header().Set("Location", "/v2/"+repo+"/manifests/"+d)
	w.WriteHeader(http.StatusCreated)
}

func (g *Registry) upload(w http.ResponseWriter, r *http.Request, repo, at string) {
	g.mu.Lock()
	id := strings.Trim(strings.TrimPrefix(at, "uploads"), "/")
	if id == "" {
		id = fmt.Sprintf("u%d", len(g.uploads)+1)
	}
	body, err := io.ReadAll(r.Body)
	g.uploads[id] = append(g.uploads[id], body...)
	whole := g.uploads[id]
	g.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if d := r.URL.Query().Get("digest"); d != "" {
		if Digest(whole) != d {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		g.PutBlob(repo, whole)
		w.Header().Set("Docker-Content-Digest", d)
		w.WriteHeader(http.StatusCreated)
		return
	}
	w.Header().Set("Location", "/v2/"+repo+"/blobs/uploads/"+id)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(0, len(whole)-1)))
	w.WriteHeader(http.StatusAccepted)
}

// referrers lists the manifests whose subject is a digest.
func (g *Registry) referrers(w http.ResponseWriter, r *http.Request, repo, digest string) {
	type descriptor struct {
		MediaType    string `json:"mediaType"`
		Digest       string `json:"digest"`
		Size         int    `json:"size"`
		ArtifactType string `json:"artifactType,omitempty"`
	}
	index := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}{2, "application/vnd.oci.image.index.v1+json", []descriptor{}}
	want := r.URL.Query().Get("artifactType")
	g.mu.Lock()
	for name, c := range g.kept.Manifests {
		var m struct {
			ArtifactType string `json:"artifactType"`
			Config       struct {
				MediaType string `json:"mediaType"`
			} `json:"config"`
			Subject *struct {
				Digest string `json:"digest"`
			} `json:"subject"`
		}
		if !strings.HasPrefix(name, repo+"@") || json.Unmarshal(c.Body, &m) != nil || m.Subject == nil || m.Subject.Digest != digest {
			continue
		}
		if m.ArtifactType == "" {
			m.ArtifactType = m.Config.MediaType
		}
		if want == "" || want == m.ArtifactType {
			index.Manifests = append(index.Manifests, descriptor{c.Type, Digest(c.Body), len(c.Body), m.ArtifactType})
		}
	}
	g.mu.Unlock()
	slices.SortFunc(index.Manifests, func(a, b descriptor) int { return strings.Compare(a.Digest, b.Digest) })
	w.Header().Set("Content-Type", index.MediaType)
	if want != "" {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	_ = json.NewEncoder(w).Encode(index)
}

func notFound(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"not here"}]}`, code)
}
