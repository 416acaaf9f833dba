package runtime

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/registry"

	"github.com/gitring/gitring/imagesign"
)

// registryClient asks one registry about one repository, and reads only. Credentials go to
// the registry, and to the server of tokens that it names. They go nowhere else.
type registryClient struct {
	base  string // https://host:port
	repo  string
	creds registry.AuthConfig
	road  *registryRoad
	auth  string // the header that the registry took last, "" for none
}

// registryAnswer is what a registry said.
type registryAnswer struct {
	status int
	kind   string // the type of the content
	body   []byte
	next   string // the path of the next page, "" for none
	link   string // what it says of a next page, wherever that is; "" for nothing
	digest string // which the registry says the content has, unproven
	pulls  Pulls
}

// Pulls are how many a registry still answers, by its own words. Of is 0 where it names no bound.
type Pulls struct {
	Left, Of int
	Within   time.Duration // 0 where it does not say
}

// pullsOf reads the headers that Docker Hub sends with a manifest, such as "100;w=21600", where w
// are seconds (https://docs.docker.com/docker-hub/usage/pulls/).
func pullsOf(h http.Header) Pulls {
	most, window, _ := strings.Cut(h.Get("Ratelimit-Limit"), ";w=")
	left, _, _ := strings.Cut(h.Get("Ratelimit-Remaining"), ";")
	of, err := strconv.Atoi(most)
	n, errLeft := strconv.Atoi(left)
	if err != nil || errLeft != nil || of <= 0 || n < 0 {
		return Pulls{}
	}
	seconds, _ := strconv.ParseUint(window, 10, 31)
	return Pulls{Left: n, Of: of, Within: time.Duration(seconds) * time.Second}
}

// errTooLarge is of what a registry has and nobody reads.
var errTooLarge = fmt.Errorf("more than %d bytes", imagesign.MostBytes)

// get asks for a path of the registry. Content of another status than 200 is not read.
func (c *registryClient) get(ctx context.Context, path, accept string) (registryAnswer, error) {
	return c.ask(ctx, http.MethodGet, path, accept)
}

// ask is get with another method.
func (c *registryClient) ask(ctx context.Context, method, path, accept string) (registryAnswer, error) {
	res, err := c.send(ctx, method, path, accept)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		challenge := res.Header.Values("Www-Authenticate")
		_ = res.Body.Close()
		if err = c.signIn(ctx, challenge); err != nil {
			return registryAnswer{}, err
		}
		res, err = c.send(ctx, method, path, accept)
	}
	if err != nil {
		return registryAnswer{}, err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	a := registryAnswer{status: res.StatusCode, kind: plainType(res.Header.Get("Content-Type")), pulls: pullsOf(res.Header)}
	if a.status != http.StatusOK {
		return a, nil
	}
	if a.body, err = readBounded(res.Body); err != nil {
		return a, err
	}
	a.digest = res.Header.Get("Docker-Content-Digest")
	if a.link = res.Header.Get("Link"); !strings.Contains(a.link, `rel="next"`) {
		a.link = ""
	}
	a.next = nextPage(a.link)
	return a, nil
}

func (c *registryClient) send(ctx context.Context, method, path, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.auth != "" {
		req.Header.Set("Authorization", c.auth)
	}
	return c.road.registry(req)
}

// manifest is one by its tag or digest; nil where there is none. By a digest it is that.
func (c *registryClient) manifest(ctx context.Context, ref, accept string) (*registryAnswer, error) {
	a, err := c.get(ctx, "/v2/"+c.repo+"/manifests/"+ref, accept)
	return c.checked(a, err, ref)
}

// blob is one by its digest; nil where there is none.
func (c *registryClient) blob(ctx context.Context, digest string) (*registryAnswer, error) {
	if !imageID.MatchString(digest) { // it is a word of the registry, and becomes part of a path
		return nil, errors.New("a digest that is none")
	}
	a, err := c.get(ctx, "/v2/"+c.repo+"/blobs/"+digest, "")
	return c.checked(a, err, digest)
}

func (c *registryClient) checked(a registryAnswer, err error, ref string) (*registryAnswer, error) {
	switch {
	case err != nil:
		return nil, err
	case a.status == http.StatusNotFound:
		return nil, nil
	case a.status != http.StatusOK:
		return nil, &statusError{a.status}
	}
	if sum := sha256.Sum256(a.body); strings.Contains(ref, ":") && ref != "sha256:"+hex.EncodeToString(sum[:]) {
		return nil, errors.New("content that is not what its digest says")
	}
	return &a, nil
}

// statusError is an answer that is neither a yes nor a no.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
}

// signIn gets what the registry wants to see.
func (c *registryClient) signIn(ctx context.Context, challenges []string) error {
	for _, said := range challenges {
		scheme, params := parseChallenge(said)
		switch {
		case scheme == "basic" && c.creds.Username != "":
			c.auth = "Basic " + basic(c.creds.Username, c.creds.Password)
			return nil
		case scheme == "bearer" && c.creds.RegistryToken != "":
			c.auth = "Bearer " + c.creds.RegistryToken
			return nil
		case scheme == "bearer":
			token, err := c.token(ctx, params["realm"], params["service"])
			if err != nil {
				return err
			}
			c.auth = "Bearer " + token
			return nil
		}
	}
	return &statusError{http.StatusUnauthorized}
}

// token asks the server that the registry names for leave to read this repository, and for
// nothing else whatever the registry asks for.
func (c *registryClient) token(ctx context.Context, realm, service string) (string, error) {
	at, err := url.Parse(realm)
	if err != nil || at.Host == "" || at.User != nil {
		return "", errors.New("its server of tokens has no address")
	}
	if plain := at.Scheme == "http" && strings.HasPrefix(c.base, "http://"); !plain && at.Scheme != "https" {
		return "", errors.New("its server of tokens is to be asked in clear")
	}
	scope := "repository:" + c.repo + ":pull"
	q := at.Query()
	var req *http.Request
	if c.creds.IdentityToken != "" {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.creds.IdentityToken}, "service": {service}, "scope": {scope}, "client_id": {"gitring"}}
		if req, err = http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(form.Encode())); err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	} else {
		q.Set("service", service)
		q.Set("scope", scope)
		at.RawQuery = q.Encode()
		if req, err = http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil); err == nil && c.creds.Username != "" {
			req.SetBasicAuth(c.creds.Username, c.creds.Password)
		}
	}
	if err != nil {
		return "", errors.New("its server of tokens has no address")
	}
	res, err := c.road.tokens(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("its server of tokens says %w", &statusError{res.StatusCode})
	}
	body, err := readBounded(res.Body)
	if err != nil {
		return "", err
	}
	var said struct {
		Token  string `json:"token"`
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Token == "" && said.Access == "" {
		return "", errors.New("its server of tokens gives none")
	}
	if said.Token == "" {
		said.Token = said.Access
	}
	if strings.ContainsAny(said.Token, "\r\n") {
		return "", errors.New("its server of tokens gives none")
	}
	return said.Token, nil
}

func readBounded(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, imagesign.MostBytes+1))
	if err != nil {
		return nil, err
	}
	if n > imagesign.MostBytes {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

// plainType is a content type without its parameters.
func plainType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.TrimSpace(s)
}

// nextPage is the path of a Link header to the next page, "" where there is none of this
// registry.
func nextPage(link string) string {
	at, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
	if !ok || !strings.Contains(rest, `rel="next"`) {
		return ""
	}
	u, err := url.Parse(at)
	if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, "/v2/") {
		return ""
	}
	return u.RequestURI()
}

// parseChallenge reads a WWW-Authenticate header: its scheme in lower case, and its
// parameters.
func parseChallenge(s string) (scheme string, params map[string]string) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	params = map[string]string{}
	for rest = strings.TrimLeft(rest, " ,"); rest != ""; rest = strings.TrimLeft(rest, " ,") {
		key, after, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		value := after
		if quoted, is := strings.CutPrefix(after, `"`); is {
			value, rest, _ = strings.Cut(quoted, `"`)
		} else if i := strings.IndexAny(after, ", "); i >= 0 {
			value, rest = after[:i], after[i:]
		} else {
			rest = ""
		}
		params[strings.ToLower(strings.TrimSpace(key))] = value
	}
	return strings.ToLower(scheme), params
}
