package runtime

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// Pull policy, what is here, and what the registry says: each has one answer.
func TestResolveMatrix(t *testing.T) {
	const name, digest = "example.org/team/app:1", "sha256:0808080808080808080808080808080808080808080808080808080808080808"
	const pinned, own, no, later = name + "@" + digest, "own", "refused", "later"
	down := errors.New("dial tcp 192.0.2.1:443: i/o timeout")
	for _, x := range []struct {
		name   string
		policy string
		local  string // "", "pulled" (a registry knows it), "built"
		says   error  // of the registry
		want   string
		asks   int
	}{
		{name: "never seen", want: pinned, asks: 1},
		{name: "pulled before, the tag may have moved", local: "pulled", want: pinned, asks: 1},
		{name: "built here", local: "built", want: own},
		{name: "policy always, built here, and the registry has it", policy: "always", local: "built", want: pinned, asks: 1},
		{name: "policy always, built here, and the registry does not know it", policy: "always", local: "built", says: cerrdefs.ErrNotFound, want: own, asks: 1},
		{name: "policy always, pulled before, no answer", policy: "always", local: "pulled", says: down, want: later, asks: 1},
		{name: "policy missing, pulled before", policy: "missing", local: "pulled", want: pinned, asks: 1},
		{name: "policy never, pulled before", policy: "never", local: "pulled", want: own},
		{name: "policy never, not here", policy: "never", want: no},
		{name: "not found, pulled before", local: "pulled", says: cerrdefs.ErrNotFound, want: own, asks: 1},
		{name: "denied, pulled before", local: "pulled", says: cerrdefs.ErrUnauthenticated, want: own, asks: 1},
		{name: "not found", says: cerrdefs.ErrNotFound, want: no, asks: 1},
		{name: "denied", says: cerrdefs.ErrPermissionDenied, want: no, asks: 1},
		{name: "no answer is never replaced by what is here", local: "pulled", says: down, want: later, asks: 1},
		{name: "no answer", says: down, want: later, asks: 1},
		{name: "an engine's odd answer is the registry's, not the author's", says: cerrdefs.ErrInvalidArgument, want: later, asks: 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFake(Options{Host: "edge"})
			remote := enginetest.Image{Name: name, Digest: digest, Refuse: x.says}
			f.AddRemote(remote)
			var id string
			switch x.local {
			case "pulled":
				id = f.AddImage(remote)
			case "built":
				id = f.AddImage(enginetest.Image{Name: name})
			}
			done, err := f.Do(t.Context(), ring.Action{Kind: ring.DoResolve, App: "a", Image: name, PullPolicy: x.policy})
			require.Equal(t, x.asks, f.Ops()["DistributionInspect"])
			var e *ring.EngineError
			switch x.want {
			case own:
				require.NoError(t, err)
				require.Equal(t, id, done.Pin.Image)
				require.NotEmpty(t, done.Pin.Note)
			case no:
				require.ErrorAs(t, err, &e)
				require.Equal(t, ring.ImageNotFound, e.Refusal.Code)
			case later:
				require.ErrorAs(t, err, &e)
				require.Nil(t, e.Refusal)
				require.False(t, e.Permanent)
				require.Equal(t, ring.CauseImagePull, e.Cause)
			default:
				require.NoError(t, err)
				require.Equal(t, x.want, done.Pin.Image)
			}
		})
	}
}

// A service that only changes otherwise does not wait for a registry that is away; who
// asks for what is newest, or for another image, does.
func TestAnImageInForceIsKeptWhileTheRegistryIsAway(t *testing.T) {
	const name, digest = "example.org/team/app:1", "sha256:0808080808080808080808080808080808080808080808080808080808080808"
	const pin = name + "@" + digest
	for _, x := range []struct {
		name    string
		a       ring.Action
		pruned  bool
		waits   bool
		written string
		has     string // the platform of the image that is here
	}{
		{name: "its environment changed", written: "old"},
		{name: "the one that is here is for another machine", a: ring.Action{Platform: "linux/arm64"}, written: "old", has: "linux/s390x", waits: true},
		{name: "a refresh", written: "new", waits: true},
		{name: "pull_policy always", a: ring.Action{PullPolicy: "always"}, written: "old", waits: true},
		{name: "another platform", a: ring.Action{Platform: "linux/arm64"}, written: "old", waits: true},
		{name: "the image was pruned", written: "old", pruned: true, waits: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFake(Options{Host: "edge"})
			f.AddRemote(enginetest.Image{Name: name, Digest: digest, Refuse: errors.New("dial tcp 192.0.2.1:443: i/o timeout")})
			if !x.pruned {
				f.AddImage(enginetest.Image{Name: name, Digest: digest, Platform: x.has})
			}
			a := x.a
			a.Kind, a.App, a.Image, a.Version = ring.DoResolve, "web", name, "new"
			a.Want = &ring.Service{Name: "web", Pin: ring.Pin{Image: pin}, Written: x.written}
			if x.has != "" {
				a.Want.Spec.Platform = a.Platform
			}
			done, err := f.Do(t.Context(), a)
			if x.waits {
				require.ErrorContains(t, err, "i/o timeout")
				return
			}
			require.NoError(t, err)
			require.Equal(t, pin, done.Pin.Image)
			require.Contains(t, done.Pin.Note, "registry example.org does not answer")
		})
	}
}

func TestResolveSaysNameAndTag(t *testing.T) {
	const digest = "sha256:0808080808080808080808080808080808080808080808080808080808080808"
	f := newFake(Options{Host: "edge"})
	for written, pin := range map[string]string{
		"web":                    "web:latest@" + digest,
		"docker.io/library/db:1": "db:1@" + digest,
		"localhost:5000/x/y:2":   "localhost:5000/x/y:2@" + digest,
	} {
		f.AddRemote(enginetest.Image{Name: written, Digest: digest})
		done, err := f.Do(t.Context(), ring.Action{Kind: ring.DoResolve, Image: written})
		require.NoError(t, err)
		require.Equal(t, pin, done.Pin.Image)
		require.Equal(t, digest, done.Pin.Digest())
		_, err = f.Do(t.Context(), ring.Action{Kind: ring.DoPull, Image: pin})
		require.NoError(t, err)
		before := f.Ops()["ImagePull"]
		_, err = f.Do(t.Context(), ring.Action{Kind: ring.DoPull, Image: pin})
		require.NoError(t, err)
		require.Equal(t, before, f.Ops()["ImagePull"], "what is present is not pulled")
	}
}

func TestPulledReadsToTheEnd(t *testing.T) {
	for body, says := range map[string]string{
		``:                                      "",
		`{"status":"Pulling"}{"status":"Done"}`: "",
		`{"status":"Pulling"}{"errorDetail":{"message":"manifest unknown"},"error":"manifest unknown"}`: "manifest unknown",
		`{"error":"toomanyrequests"}`: "toomanyrequests",
		`{"status":"Pulling"}{"sta`:   "unexpected EOF",
	} {
		err := pulled(io.NopCloser(strings.NewReader(body)), nil)
		if says == "" {
			require.NoError(t, err, body)
			continue
		}
		require.ErrorContains(t, err, says, body)
	}
}

// I13: there is no way to ask the engine for it.
func TestEngineCannotRemoveVolumes(t *testing.T) {
	e := reflect.TypeFor[engine]()
	for i := range e.NumMethod() {
		name := e.Method(i).Name
		harmless := slices.Contains([]string{"VolumeCreate", "VolumeInspect", "VolumeList"}, name)
		require.False(t, strings.Contains(name, "Prune") || strings.HasPrefix(name, "Volume") && !harmless, name)
	}
}
