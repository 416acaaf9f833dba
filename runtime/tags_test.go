package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/registrytest"
)

// tagsOf is a registry with tags of web, its host, and one who reads it.
func tagsOf(t *testing.T, n int, edit func(*registrytest.Registry, string)) (*registrytest.Registry, string, *TagReader) {
	t.Helper()
	g := registrytest.New()
	for i := range n {
		g.PutManifest("acme/web", fmt.Sprintf("1.%d", i), "application/vnd.oci.image.index.v1+json", []byte(fmt.Sprint(i)))
	}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	if edit != nil {
		edit(g, host)
	}
	return g, host, &TagReader{certs: t.TempDir()}
}

func TestTagsAreReadPageByPage(t *testing.T) {
	ctx := context.Background()
	g, host, r := tagsOf(t, 25, func(g *registrytest.Registry, _ string) { g.PageOfTags = 10 })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			tags, err := r.Tags(ctx, host+"/acme/web:1.2@sha256:"+strings.Repeat("a", 64))
			require.NoError(t, err)
			require.Len(t, tags, 25)
		})
	}
	wg.Wait()
	require.Len(t, slices.DeleteFunc(g.Requests(), func(s string) bool { return !strings.Contains(s, "/tags/list") }), 3, "asked once, in three pages")

	_, host, r = tagsOf(t, 25, func(g *registrytest.Registry, host string) { g.PageOfTags, g.LinkPrefix = 10, "http://"+host })
	tags, err := r.Tags(ctx, host+"/acme/web")
	require.NoError(t, err, "a registry may write its own address")
	require.Len(t, tags, 25)

	_, host, r = tagsOf(t, 25, func(g *registrytest.Registry, _ string) { g.PageOfTags, g.LinkPrefix = 10, "http://other.example.org" })
	_, err = r.Tags(ctx, host+"/acme/web")
	require.ErrorContains(t, err, "goes on elsewhere", "a part of a list is none")

	g, host, r = tagsOf(t, 25, func(g *registrytest.Registry, _ string) { g.PageOfTags = 1 })
	_, err = r.Tags(ctx, host+"/acme/web")
	require.ErrorContains(t, err, "more than 20 pages")
	require.LessOrEqual(t, len(g.Requests()), 21, "one more for the try by TLS at most")
}

func TestATagsDigestIsAskedForByItsHead(t *testing.T) {
	g, host, r := tagsOf(t, 2, nil)
	digest, err := r.Digest(context.Background(), host+"/acme/web:1.1")
	require.NoError(t, err)
	require.Equal(t, registrytest.Digest([]byte("1")), digest)
	require.Equal(t, []string{"HEAD /v2/acme/web/manifests/1.1"}, g.Requests())

	g, host, r = tagsOf(t, 2, func(g *registrytest.Registry, _ string) {
		g.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
			return r.Method == http.MethodHead
		}
	})
	digest, err = r.Digest(context.Background(), host+"/acme/web:1.1")
	require.NoError(t, err)
	require.Equal(t, registrytest.Digest([]byte("1")), digest)
	require.Len(t, g.Requests(), 2)
}

// The headers are those of Docker Hub.
func TestHowManyPullsARegistryHasLeftIsRead(t *testing.T) {
	digest := registrytest.Digest([]byte("1"))
	for name, c := range map[string]struct {
		limit, left string
		status      int
		pulls       Pulls
	}{
		"of somebody without an account": {limit: "100;w=21600", left: "76;w=21600", pulls: Pulls{Left: 76, Of: 100, Within: 6 * time.Hour}},
		"none is left":                   {limit: "100;w=21600", left: "0;w=21600", status: http.StatusTooManyRequests, pulls: Pulls{Of: 100, Within: 6 * time.Hour}},
		"without a window":               {limit: "200", left: "200", pulls: Pulls{Left: 200, Of: 200}},
		"a registry without a bound":     {},
		"words that are no numbers":      {limit: "many;w=1", left: "some;w=1"},
		"less than nothing":              {limit: "-1;w=1", left: "-1;w=1"},
		"a window that is no time":       {limit: "5;w=99999999999999", left: "5", pulls: Pulls{Left: 5, Of: 5, Within: (1<<31 - 1) * time.Second}},
	} {
		g, host, r := tagsOf(t, 2, func(g *registrytest.Registry, _ string) {
			g.Before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Ratelimit-Limit", c.limit)
				w.Header().Set("Ratelimit-Remaining", c.left)
				if c.status != 0 {
					w.WriteHeader(c.status)
				}
				return c.status != 0
			}
		})
		left, err := r.Pulls(context.Background(), host+"/acme/web@"+digest)
		require.NoError(t, err, name)
		require.Equal(t, c.pulls, left, name)
		require.Equal(t, []string{"HEAD /v2/acme/web/manifests/" + digest}, g.Requests(), "which counts as no pull")
	}
	_, host, r := tagsOf(t, 1, nil)
	_, err := r.Pulls(context.Background(), host+"/acme/other@"+digest)
	require.ErrorContains(t, err, "not found")
}

func TestARegistryThatLimitsIsAskedNoMore(t *testing.T) {
	g, host, r := tagsOf(t, 2, func(g *registrytest.Registry, _ string) {
		g.Before = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
	})
	for _, repo := range []string{"acme/web", "acme/db", "acme/worker"} {
		_, err := r.Tags(context.Background(), host+"/"+repo)
		require.ErrorContains(t, err, "limits requests (429)")
	}
	require.Len(t, g.Requests(), 1)
}

func TestWhatARegistryDeniesOrDoesNotHaveIsSaid(t *testing.T) {
	_, host, r := tagsOf(t, 1, func(g *registrytest.Registry, _ string) {
		g.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if user, password, _ := r.BasicAuth(); user == "me" && password == "secret" {
				return false
			}
			w.Header().Set("Www-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	})
	ctx := context.Background()
	_, err := r.Tags(ctx, host+"/acme/web")
	require.ErrorContains(t, err, "says denied; docker login "+host)
	missing := func(err error) bool {
		var m interface{ Missing() bool }
		return errors.As(err, &m) && m.Missing()
	}
	require.False(t, missing(err), "it may be there for others")
	require.True(t, missing(&saysNo{no: "not found", missing: true}))

	config := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"auths":{"`+host+`":{"auth":"bWU6c2VjcmV0"}}}`), 0o600))
	r = &TagReader{certs: t.TempDir(), DockerConfig: config}
	tags, err := r.Tags(ctx, host+"/acme/web")
	require.NoError(t, err, "the login of pulls is that of tags")
	require.Equal(t, []string{"1.0"}, tags)
	_, err = r.Tags(ctx, host+"/acme/none")
	require.ErrorContains(t, err, "says not found")
	require.False(t, missing(err), "who names a registry means it")
	_, err = r.Tags(ctx, "169.254.169.254/acme/web")
	require.ErrorContains(t, err, "link-local")
}

// Nobody ends the context of a command but a person.
func TestACredentialHelperThatHangsKeepsNoListOfTags(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	helper(t, dir, "slow", "exec cat "+fifo)
	r := &TagReader{certs: t.TempDir(), Helpers: map[string]string{"*": "slow"}, login: 50 * time.Millisecond}
	_, err := r.Tags(context.Background(), "slow.example.org/acme/web")
	require.ErrorContains(t, err, "the credential helper slow did not answer")
}
