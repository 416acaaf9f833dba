package runtime

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func resolving(image string) ring.Action {
	return ring.Action{Kind: ring.DoResolve, App: "web", Service: "web", Image: image}
}

func pulling1(pin string) ring.Action {
	return ring.Action{Kind: ring.DoPull, App: "web", Service: "web", Image: pin}
}

// The life of a tag: what was pinned stays, whatever the tag means later, and
// what is here needs no registry.
func TestEngineTagsMoveAndPinsStay(t *testing.T) {
	t.Parallel()
	r, reg := realRig(t), newRegistry(t, "127.0.0.1", false, false)
	first, _ := reg.image("1", goruntime.GOARCH, "first")
	pin := r.Must(t, resolving(reg.name("1"))).Pin
	require.Equal(t, ring.Pin{Image: reg.name("1") + "@" + first}, pin)
	require.Equal(t, pin, r.Must(t, resolving(pin.Image)).Pin, "tag and digest is itself")
	byDigest := reg.at + "/app@" + first
	require.Equal(t, byDigest, r.Must(t, resolving(byDigest)).Pin.Image)

	done := r.Must(t, pulling1(pin.Image))
	require.Equal(t, "pulled", done.Note)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", done.Image.ID)
	require.Equal(t, ring.Image{Known: true, ID: done.Image.ID, Volumes: []string{"/data", "/var/lib/z"}, Exposes: true}, done.Image)

	second, _ := reg.image("1", goruntime.GOARCH, "second")
	r.ForgetImage(t, pin.Image)
	require.Equal(t, "pulled", r.Must(t, pulling1(pin.Image)).Note)
	i, err := engineOrSkip(t).ImageInspect(t.Context(), pin.Image)
	require.NoError(t, err)
	require.Equal(t, "first", i.Config.Labels["text"], "a heal does not move")
	require.Equal(t, reg.name("1")+"@"+second, r.Must(t, resolving(reg.name("1"))).Pin.Image)

	// The registry is away: what is here is had, and nothing takes the place of
	// an answer.
	reg.stop()
	done = r.Must(t, pulling1(pin.Image))
	require.Equal(t, "already present", done.Note)
	require.Equal(t, []string{"/data", "/var/lib/z"}, done.Image.Volumes)
	require.NoError(t, engineOrSkip(t).ImageTag(t.Context(), i.ID, reg.name("1")))
	for _, a := range []ring.Action{resolving(reg.name("1")), pulling1(reg.name("1") + "@" + second)} {
		e := r.MustFail(t, a)
		require.Nil(t, e.Refusal, "%v", e)
		require.False(t, e.Permanent)
		require.Equal(t, ring.CauseImagePull, e.Cause)
		require.Zero(t, e.Wait, "the loop's own backoff")
	}
	never := resolving(reg.name("1"))
	never.PullPolicy = "never"
	require.Equal(t, i.ID, r.Must(t, never).Pin.Image)

	// It is back, and the tag is gone.
	reg.start()
	reg.remove(second)
	own := r.Must(t, resolving(reg.name("1"))).Pin
	require.Equal(t, i.ID, own.Image)
	require.Contains(t, own.Note, "not found")
	kept := resolving(reg.name("1"))
	kept.Want = &ring.Service{Name: "web", Pin: pin}
	require.Equal(t, pin.Image, r.Must(t, kept).Pin.Image, "the same image is no other version")
	gone := r.MustFail(t, resolving(reg.name("2")))
	require.Equal(t, ring.ImageNotFound, gone.Refusal.Code)
	require.Contains(t, gone.Refusal.Says, reg.at+" says not found")
	lost := r.MustFail(t, pulling1(reg.at+"/app@sha256:"+strings.Repeat("a", 64)))
	require.Equal(t, ring.ImageNotFound, lost.Refusal.Code)
}

// One digest for many platforms, and images that are for another machine.
func TestEnginePlatforms(t *testing.T) {
	t.Parallel()
	r, reg := realRig(t), newRegistry(t, "127.0.0.1", false, false)
	c := engineOrSkip(t)
	index := reg.name("both") + "@" + reg.index("both", "both", goruntime.GOARCH, another())
	single, _ := reg.image("other", another(), "single")
	ask := func(a ring.Action, platform string) ring.Action {
		a.Platform = platform
		return a
	}
	arch := func(name string) string {
		i, err := c.ImageInspect(t.Context(), name)
		require.NoError(t, err)
		return i.Architecture
	}
	foreign := "linux/" + another()
	for _, platform := range []string{"", foreign, "linux/" + goruntime.GOARCH} {
		require.Equal(t, index, r.Must(t, ask(resolving(reg.name("both")), platform)).Pin.Image, platform)
	}
	for _, step := range []struct{ platform, arch, not string }{
		{"", goruntime.GOARCH, foreign},
		{foreign, another(), "linux/" + goruntime.GOARCH},
	} {
		for _, note := range []string{"pulled", "already present"} {
			require.Equal(t, note, r.Must(t, ask(pulling1(index), step.platform)).Note, "%+v", step)
			require.Equal(t, step.arch, arch(index), "%+v", step)
		}
		both := r.MustFail(t, ask(pulling1(index), step.not)).Refusal
		require.Equal(t, ring.Conflict, both.Code, "this engine has no room for both: %+v", step)
		require.Contains(t, both.Hint, "by its own digest")
		require.Equal(t, step.arch, arch(index), "what is here stays")
		r.ForgetImage(t, index)
	}

	no := r.MustFail(t, ask(resolving(reg.name("both")), "linux/s390x")).Refusal
	require.Equal(t, ring.ImageNotFound, no.Code)
	require.Contains(t, no.Says, "is not for platform linux/s390x but for ")
	require.NotEmpty(t, no.Hint)
	no = r.MustFail(t, ask(pulling1(index), "linux/s390x")).Refusal
	require.Equal(t, ring.ImageNotFound, no.Code)

	for _, a := range []ring.Action{resolving(reg.name("other")), pulling1(reg.at + "/app@" + single)} {
		no = r.MustFail(t, a).Refusal
		require.Equal(t, ring.ImageNotFound, no.Code)
		require.Contains(t, no.Says, fmt.Sprintf("is for %s, and this host is linux/%s", foreign, goruntime.GOARCH))
		require.Contains(t, no.Hint, "platform: "+foreign)
	}
	pin := r.Must(t, ask(resolving(reg.name("other")), foreign)).Pin.Image
	require.Equal(t, reg.name("other")+"@"+single, pin)
	r.Must(t, ask(pulling1(pin), foreign))
}

// who writes a docker config; each returns its path.
var whoLogsIn = map[string]func(t *testing.T, dir, registry string) obj{
	"a login in the file": func(_ *testing.T, _, registry string) obj {
		return obj{"auths": obj{registry: obj{"auth": base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))}}}
	},
	"a credential helper of the registry": func(t *testing.T, dir, registry string) obj {
		helper(t, dir, "one", fmt.Sprintf(`[ "$(cat)" = %q ] && [ "$1" = get ] && echo '{"ServerURL":%q,"Username":%q,"Secret":%q}'`, registry, registry, registryUser, registryPassword))
		return obj{"credHelpers": obj{registry: "one"}}
	},
	"a credential store": func(t *testing.T, dir, registry string) obj {
		helper(t, dir, "all", fmt.Sprintf(`[ "$(cat)" = %q ] && echo '{"ServerURL":%q,"Username":%q,"Secret":%q}'`, registry, registry, registryUser, registryPassword))
		return obj{"credsStore": "all"}
	},
}

type obj = map[string]any

// helper writes a credential helper and puts its folder first in PATH.
func helper(t *testing.T, dir, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func dockerConfig(t *testing.T, dir string, o obj) string {
	t.Helper()
	b, err := json.Marshal(o)
	require.NoError(t, err)
	path := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// A private registry: each way of docker login counts at once, and who has none
// is told what to do.
func TestEnginePrivateRegistry(t *testing.T) {
	r, reg := realRig(t), newRegistry(t, "127.0.0.1", true, false)
	digest, _ := reg.image("1", goruntime.GOARCH, "private")
	pin := reg.name("1") + "@" + digest
	denied := func(says string) {
		t.Helper()
		for _, a := range []ring.Action{resolving(reg.name("1")), pulling1(pin)} {
			e := r.MustFail(t, a)
			require.NotNil(t, e.Refusal, "%v", e)
			require.Equal(t, ring.ImageNotFound, e.Refusal.Code)
			require.Contains(t, e.Refusal.Says, reg.at+" says denied", says)
			require.Contains(t, e.Refusal.Hint, "docker login "+reg.at)
			require.Contains(t, e.Refusal.Hint, "registries.docker_config")
			require.Equal(t, deniedWait, e.Wait, "a login on the host counts soon")
			require.NotContains(t, e.Error()+e.Refusal.Hint, registryPassword)
		}
	}
	denied("no config at all")
	dir := t.TempDir()
	r.opts.DockerConfig = filepath.Join(dir, "config.json")
	denied("a config that is not there")
	dockerConfig(t, dir, obj{"auths": obj{reg.at: obj{"auth": base64.StdEncoding.EncodeToString([]byte("alice:wrong"))}}})
	denied("a wrong password")
	dockerConfig(t, dir, obj{"auths": obj{"elsewhere.example.org": obj{"auth": base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))}}})
	denied("credentials of another registry")
	for name, login := range whoLogsIn {
		dockerConfig(t, dir, login(t, dir, reg.at))
		require.Equal(t, pin, r.Must(t, resolving(reg.name("1"))).Pin.Image, name)
		require.Equal(t, "pulled", r.Must(t, pulling1(pin)).Note, name)
		r.ForgetImage(t, pin)
	}
}

// TLS by an authority of its own: the engine believes what its certs.d says, and
// whoever reads the error is told of it. Loopback would do without TLS, so this
// is another address of this machine.
func TestEngineSecureRegistry(t *testing.T) {
	t.Parallel()
	r := realRig(t)
	reg := newRegistry(t, ownAddress(t), true, true)
	digest, _ := reg.image("1", goruntime.GOARCH, "secure")
	r.opts.DockerConfig = dockerConfig(t, t.TempDir(), whoLogsIn["a login in the file"](t, "", reg.at))
	e := r.MustFail(t, resolving(reg.name("1")))
	require.Nil(t, e.Refusal, "a host's certificates are not the author's")
	require.Contains(t, e.Error(), "/etc/docker/certs.d/"+reg.at+"/ca.crt")

	certs := "/etc/docker/certs.d/" + reg.at
	if err := os.MkdirAll(certs, 0o755); err != nil {
		t.Skipf("cannot give the engine a certificate: %v", err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(certs)
		_ = os.Remove(filepath.Dir(certs)) // when it is empty
	})
	require.NoError(t, os.WriteFile(certs+"/ca.crt", reg.ca, 0o644))
	pin := r.Must(t, resolving(reg.name("1"))).Pin.Image
	require.Equal(t, reg.name("1")+"@"+digest, pin)
	require.Equal(t, "pulled", r.Must(t, pulling1(pin)).Note)
}

// ownAddress is one of this machine that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address besides loopback")
	return ""
}

// Who limits requests is left alone: no step asks it again before its time.
func TestEngineLimitedRegistry(t *testing.T) {
	t.Parallel()
	r := realRig(t)
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/v2/" {
			return
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your unauthenticated pull rate limit."}]}`))
	}))
	t.Cleanup(s.Close)
	now := time.Now()
	r.opts.Now = func() time.Time { return now }
	at := strings.TrimPrefix(s.URL, "http://")
	pull := pulling1(at + "/app@sha256:" + strings.Repeat("a", 64))
	e := r.MustFail(t, pull)
	require.Nil(t, e.Refusal, "%v", e)
	require.Equal(t, limitedWait, e.Wait)
	require.Contains(t, e.Error(), "429")
	before := asked.Load()
	require.Positive(t, before)
	now = now.Add(limitedWait - time.Second)
	for _, a := range []ring.Action{pull, resolving(at + "/app:1"), resolving(at + "/other:1")} {
		require.Equal(t, time.Second, r.MustFail(t, a).Wait)
	}
	require.Equal(t, e.Error(), r.MustFail(t, pull).Error(), "the same words are told once")
	require.Equal(t, before, asked.Load())
	now = now.Add(time.Second)
	e = r.MustFail(t, resolving(at+"/app:1"))
	require.Equal(t, limitedWait, e.Wait)
	require.Greater(t, asked.Load(), before)
}

// A pull says how far it is, and an Asker asks once for one name.
func TestEngineTellsOfPullsAndAsksOnce(t *testing.T) {
	t.Parallel()
	r, reg := realRig(t), newRegistry(t, "127.0.0.1", false, false)
	digest, _ := reg.image("1", goruntime.GOARCH, "told")
	var mu sync.Mutex
	var told []string
	now := time.Now()
	r.opts.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); now = now.Add(time.Second); return now }
	pull := pulling1(reg.name("1") + "@" + digest)
	r.opts.Progress = func(target, says string) {
		mu.Lock()
		defer mu.Unlock()
		if target != pull.Target() {
			says = "not the target: " + target
		}
		told = append(told, says)
	}
	r.Must(t, pull)
	require.NotEmpty(t, told)
	for _, says := range told {
		require.Regexp(t, `^([\d.]+k?M?B of [\d.]+k?M?B, )?[01] of 1 layers$`, says)
	}
	require.Contains(t, told[len(told)-1], "1 of 1 layers")

	asker := r.Asker()
	before := r.Calls()["GET /distribution/{id}/json"]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			pin, err := asker.Resolve(t.Context(), resolving(reg.name("1")))
			if err != nil || pin.Digest() != digest {
				t.Errorf("asked: %v %v", pin, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, before+1, r.Calls()["GET /distribution/{id}/json"])
}

// A name that leads to this link alone is not handed to the engine, in whichever form the
// address comes. One that nobody here knows is the engine's to know.
func TestTheEngineIsNotSentToALinkLocalAddressByAName(t *testing.T) {
	leads := map[string]string{"meta.example": "169.254.169.254", "mapped.example": "::ffff:169.254.169.254", "nat.example": "64:ff9b::a9fe:a9fe", "aws.example": "fd00:ec2::254", "fine.example": "203.0.113.1"}
	f := newFake(Options{Host: "edge-1", Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		at, ok := leads[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr(at)}, nil
	}})
	for _, host := range []string{"meta.example", "meta.example:8080", "META.example", "mapped.example", "nat.example:443", "aws.example"} {
		for _, a := range []ring.Action{resolving(strings.ToLower(host) + "/a:1"), pulling1(strings.ToLower(host) + "/a:1@sha256:" + strings.Repeat("a", 64))} {
			_, err := f.Do(t.Context(), a)
			require.ErrorContains(t, err, "leads to the link-local address", host)
		}
	}
	// Each request asks anew where the name leads: what was fine when it was resolved is not
	// when it is pulled.
	fine := resolving("fine.example/a:1")
	_, err := f.Do(t.Context(), fine)
	require.NotContains(t, fmt.Sprint(err), "link-local")
	leads["fine.example"] = "169.254.169.254"
	for range 3 {
		_, err = f.Do(t.Context(), pulling1("fine.example/a:1@sha256:"+strings.Repeat("a", 64)))
		require.ErrorContains(t, err, "leads to the link-local address")
	}
	leads["fine.example"] = "203.0.113.1"
	for _, host := range []string{"fine.example", "unknown.example"} {
		_, err := f.Do(t.Context(), pulling1(host+"/a:1@sha256:"+strings.Repeat("a", 64)))
		if err != nil {
			require.NotContains(t, err.Error(), "link-local")
		}
	}
}

// The digest of a pin is that of the index. So an image that this host had is another digest
// within an index that is new: nothing that was said of the old one, by a signature or by
// having run here, is taken for the new one.
func TestEngineAnOldImageInANewIndexIsAnotherDigest(t *testing.T) {
	t.Parallel()
	r, reg := realRig(t), newRegistry(t, "127.0.0.1", false, false)
	resolved := func(text string, archs ...string) ring.Pin {
		t.Helper()
		digest := reg.index("1", text, archs...)
		pin := r.Must(t, resolving(reg.name("1"))).Pin
		require.Equal(t, reg.name("1")+"@"+digest, pin.Image)
		return pin
	}
	old := resolved("old", goruntime.GOARCH)
	was := r.Must(t, pulling1(old.Image)).Image
	fresh := resolved("new", goruntime.GOARCH)
	require.NotEqual(t, was.ID, r.Must(t, pulling1(fresh.Image)).Image.ID)
	again := resolved("old", goruntime.GOARCH, another())
	require.Equal(t, was.ID, r.Must(t, pulling1(again.Image)).Image.ID, "the same image")
	require.NotEqual(t, old.Digest(), again.Digest(), "by another digest")
	require.Equal(t, old, resolved("old", goruntime.GOARCH), "and the old index is the old digest: it waits for a person")
}

// A registry that answers other bytes for a digest, now and then and while many ask, has no
// other image come to the host: each pull has the digest that was asked for, or has failed.
func TestEngineOtherBytesForADigestNeverRun(t *testing.T) {
	t.Parallel()
	r, reg := realRig(t), newRegistry(t, "127.0.0.1", false, false)
	good, _ := reg.image("good", goruntime.GOARCH, "good")
	reg.image("evil", goruntime.GOARCH, "evil")
	res, err := http.Get("http://" + reg.at + "/v2/app/manifests/evil")
	require.NoError(t, err)
	evil, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	var asked, swapped atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: reg.at})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasSuffix(q.URL.Path, "/manifests/"+good) || asked.Add(1)%3 == 0 {
			proxy.ServeHTTP(w, q)
			return
		}
		swapped.Add(1)
		w.Header().Set("Content-Type", kindImage)
		w.Header().Set("Docker-Content-Digest", good)
		w.Header().Set("Content-Length", fmt.Sprint(len(evil)))
		_, _ = w.Write(evil)
	}))
	t.Cleanup(s.Close)
	pin := strings.TrimPrefix(s.URL, "http://") + "/app@" + good
	c, err := client.NewClientWithOpts(client.WithHost(engineURL()), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	var pulls sync.WaitGroup
	var came atomic.Int64
	for range 12 {
		pulls.Go(func() {
			done, err := r.Do(t.Context(), pulling1(pin))
			if err != nil {
				return
			}
			came.Add(1)
			i, err := c.ImageInspect(t.Context(), pin)
			if err != nil || i.Config.Labels["text"] != "good" {
				t.Errorf("%v: %+v, %v", done, i.Config, err)
			}
		})
	}
	pulls.Wait()
	require.Positive(t, swapped.Load())
	t.Logf("%d answers were of another image, %d pulls of 12 came", swapped.Load(), came.Load())
	list, err := c.ImageList(t.Context(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "text=evil"))})
	require.NoError(t, err)
	require.Empty(t, list)
}
