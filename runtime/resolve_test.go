package runtime

import (
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What is asked for, what this host has, and what a registry said: one answer
// each. "ask" is that the registry has to be asked, "no" a refusal.
func TestWhatAnImagesNameMeans(t *testing.T) {
	const (
		name  = "example.org/app:1"
		sha   = "sha256:0808080808080808080808080808080808080808080808080808080808080808"
		id    = "sha256:0101010101010101010101010101010101010101010101010101010101010101"
		older = "example.org/app:1@sha256:0707070707070707070707070707070707070707070707070707070707070707"
	)
	here := func(arch string, pulled bool) onHost {
		return onHost{id: id, pulled: pulled, has: []platform{{os: "linux", arch: arch}}}
	}
	inForce := func(h onHost) onHost { h.inForce = ring.Pin{Image: older}; return h }
	pushed := func(h onHost) onHost { h.digests = []string{sha}; return h }
	for _, x := range []struct {
		name             string
		image            string // "" is name
		policy, platform string
		have             onHost
		said             string   // "", "has", "not found", "denied"
		has              []string // architectures, of what it has
		want, note       string
	}{
		{name: "nothing is known", want: "ask"},
		{name: "the registry has it", said: "has", want: name + "@" + sha},
		{name: "an index has this machine's", said: "has", has: []string{"arm64", "amd64"}, want: name + "@" + sha},
		{name: "an index has what is asked for", platform: "linux/arm64/v8", said: "has", has: []string{"arm64", "amd64"}, want: name + "@" + sha},
		{name: "an index has it for others only", said: "has", has: []string{"arm64", "s390x"}, want: "no", note: "is for linux/arm64, linux/s390x, and this host is linux/amd64"},
		{name: "a 32-bit program runs here", said: "has", has: []string{"386"}, want: name + "@" + sha},
		{name: "what is asked for is not there", platform: "linux/s390x", said: "has", has: []string{"amd64"}, want: "no", note: "is not for platform linux/s390x but for linux/amd64"},
		{name: "another machine's, asked for by name", platform: "aarch64", said: "has", has: []string{"arm64"}, want: name + "@" + sha},
		{name: "pulled before: the tag may have moved", have: here("amd64", true), want: "ask"},
		{name: "this host's own", have: here("amd64", false), want: id, note: "no registry has it"},
		{name: "this host's own, always", policy: "always", have: here("amd64", false), want: "ask"},
		{name: "this host's own for another machine", have: here("arm64", false), want: "ask"},
		{name: "this host's own for another machine, and no other", have: here("arm64", false), said: "not found", want: "no", note: "is for linux/arm64"},
		{name: "this host's own for the platform asked for", platform: "linux/arm64", have: here("arm64", false), want: id, note: "no registry has it"},
		{name: "never, here", policy: "never", have: here("amd64", true), want: id, note: "pull_policy is never"},
		{name: "never, not here", policy: "never", want: "no", note: "is not on this host, and pull_policy is never"},
		{name: "never, for another machine", policy: "never", have: here("arm64", true), want: "no", note: "is for linux/arm64, and this host is linux/amd64"},
		{name: "never, for another platform than asked", policy: "never", platform: "linux/arm64", have: here("amd64", true), want: "no", note: "is not for platform linux/arm64"},
		{name: "a digest is itself", image: "example.org/app@" + sha, want: "example.org/app@" + sha},
		{name: "tag and digest is itself", image: name + "@" + sha, policy: "always", have: here("amd64", true), want: name + "@" + sha},
		{name: "a digest, never, not here", image: "example.org/app@" + sha, policy: "never", want: "no", note: "pull_policy is never"},
		{name: "a digest, never, here", image: "example.org/app@" + sha, policy: "never", have: here("amd64", true), want: "example.org/app@" + sha},
		{name: "an ID that is here", image: id, have: here("amd64", false), want: id},
		{name: "an ID that is not", image: id, want: "no", note: "is not on this host"},
		{name: "an ID for another machine", image: id, have: here("arm64", false), want: "no", note: "is for linux/arm64"},
		{name: "the tag is gone, the image is here", have: here("amd64", true), said: "not found", want: id, note: "the registry says not found; this host's own image is used"},
		{name: "the tag is gone, the image is in force", have: inForce(here("amd64", true)), said: "not found", want: older, note: "the image in force is kept"},
		{name: "denied, the image is in force", have: inForce(here("amd64", true)), said: "denied", want: older, note: "the registry says denied"},
		{name: "denied, and always", policy: "always", have: inForce(here("amd64", true)), said: "denied", want: older, note: "the registry says denied"},
		{name: "the tag moved, the image is in force", have: inForce(here("amd64", true)), said: "has", want: name + "@" + sha},
		{name: "built here, in force, and pushed since", have: pushed(inForce(here("amd64", true))), said: "has", want: older},
		{name: "built here, pushed, and not in force", have: pushed(here("amd64", true)), said: "has", want: name + "@" + sha},
		{name: "the tag is gone, and so is the image", said: "not found", want: "no", note: "registry example.org says not found, and it is not on this host"},
		{name: "denied", said: "denied", want: "no", note: "registry example.org says denied"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if x.image == "" {
				x.image = name
			}
			q := asking{
				Action:   ring.Action{Kind: ring.DoResolve, App: "web", Image: x.image, PullPolicy: x.policy, Platform: x.platform},
				platform: parsePlatform(x.platform), machine: platform{os: "linux", arch: "amd64"},
			}
			if x.image != id {
				ref, err := reference.ParseNormalizedNamed(x.image)
				require.NoError(t, err)
				q.name = reference.TagNameOnly(ref)
			}
			var said *answer
			switch x.said {
			case "":
			case "has":
				digest, err := reference.WithDigest(q.name, sha)
				require.NoError(t, err)
				said = &answer{digest: digest}
				for _, arch := range x.has {
					said.has = append(said.has, platform{os: "linux", arch: arch})
				}
			default:
				said = &answer{no: x.said}
			}
			pin, ask, err := decide(q, x.have, said)
			switch x.want {
			case "ask":
				require.True(t, ask)
				require.NoError(t, err)
				require.Zero(t, pin)
			case "no":
				var e *ring.EngineError
				require.ErrorAs(t, err, &e)
				require.NotNil(t, e.Refusal)
				require.Equal(t, ring.ImageNotFound, e.Refusal.Code)
				require.Contains(t, e.Refusal.Says, x.note)
				require.NotEmpty(t, e.Refusal.Hint)
				require.False(t, ask)
			default:
				require.NoError(t, err)
				require.False(t, ask)
				require.Equal(t, x.want, pin.Image)
				require.Contains(t, pin.Note, x.note)
				require.Equal(t, x.note == "", pin.Note == "")
			}
		})
	}
}

func TestPlatformsAsPeopleWriteThem(t *testing.T) {
	for written, want := range map[string]platform{
		"": {}, "linux": {os: "linux"}, "linux/amd64": {os: "linux", arch: "amd64"}, "amd64": {os: "linux", arch: "amd64"},
		"Linux/X86_64": {os: "linux", arch: "amd64"}, "linux/arm64/v8": {os: "linux", arch: "arm64", variant: "v8"},
		"linux/aarch64": {os: "linux", arch: "arm64"}, "armhf": {os: "linux", arch: "arm"}, "windows/amd64": {os: "windows", arch: "amd64"},
	} {
		require.Equal(t, want, parsePlatform(written), written)
	}
	amd, arm := platform{os: "linux", arch: "amd64"}, platform{os: "linux", arch: "arm64"}
	require.True(t, platform{os: "linux", arch: "386"}.runsOn(amd))
	require.True(t, platform{os: "linux", arch: "arm", variant: "v7"}.runsOn(arm))
	require.False(t, amd.runsOn(arm))
	require.False(t, platform{os: "windows", arch: "amd64"}.runsOn(amd))
	require.True(t, fits(nil, arm, amd), "an image that does not say")
}

// Sentences of registries, as the engines of two decades hand them on.
func TestWhatRegistriesSay(t *testing.T) {
	for says, want := range map[string]string{
		`manifest unknown: manifest unknown`:                                                                                                                                             "not found",
		`manifest for 127.0.0.1:5601/app:9 not found: manifest unknown: manifest unknown`:                                                                                                "not found",
		`Head "http://127.0.0.1:5601/v2/app/manifests/1": no basic auth credentials`:                                                                                                     "denied",
		`unauthorized: authentication required`:                                                                                                                                          "denied",
		`errors: denied: requested access to the resource is denied unauthorized: authentication required`:                                                                               "denied",
		`pull access denied for acme/app, repository does not exist or may require 'docker login'`:                                                                                       "denied",
		`Head "https://r.example.org/v2/acme/app/manifests/1": denied`:                                                                                                                   "denied",
		`Head "https://r.example.org/v2/acme/app/manifests/1": denied: denied`:                                                                                                           "denied",
		`Head "https://r.example.org/v2/acme/app/manifests/1": unauthorized`:                                                                                                             "denied",
		`failed to resolve reference "r.example.org/acme/app:1": unexpected status from HEAD request to https://r.example.org/v2/acme/app/manifests/1: 403 Forbidden`:                    "denied",
		`failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://r.example.org/token?scope=repository%3Aacme%2Fapp%3Apull: 401 Unauthorized`: "denied",
		`failed to resolve reference "r.example.org/acme/app:1": unexpected status from HEAD request to https://r.example.org/v2/acme/app/manifests/1: 404 Not Found`:                    "not found",
		`error parsing HTTP 404 response body: invalid character '<' looking for beginning of value: "<html>"`:                                                                           "not found",
		`error parsing HTTP 403 response body: invalid character '<' looking for beginning of value: "<html>"`:                                                                           "denied",
		`error parsing HTTP 502 response body: invalid character '<' looking for beginning of value: "<html>"`:                                                                           "",
		`unexpected status from HEAD request to https://r.example.org/v2/acme/app/manifests/1: 503 Service Unavailable`:                                                                  "",
		`Get "https://r.example.org/v2/": proxyconnect tcp: dial tcp 192.0.2.1:3128: connect: permission denied`:                                                                         "",
		`toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit`:                                                             "limits",
		`received unexpected HTTP status: 429 Too Many Requests`:                                                                                                                         "limits",
		`Get "https://registry.example.org/v2/": dial tcp 192.0.2.1:443: connect: connection refused`:                                                                                    "",
		`Get "https://registry.example.org/v2/": dial tcp: lookup registry.example.org: no such host`:                                                                                    "",
		`received unexpected HTTP status: 503 Service Unavailable`:                                                                                                                       "",
		`Get "https://10.0.0.1:5000/v2/": x509: certificate signed by unknown authority`:                                                                                                 "",
		`Get "https://10.0.0.1:5000/v2/": http: server gave HTTP response to HTTPS client`:                                                                                               "",
		`no matching manifest for linux/s390x in the manifest list entries`:                                                                                                              "no platform",
		`image with reference app was found but does not match the specified platform: wanted linux/arm64, actual: linux/amd64`:                                                          "no platform",
		`failed to register layer: Error processing tar file(exit status 1): write /usr/lib/libLLVM.so: no space left on device`:                                                         "",
	} {
		err := errorOf(says)
		switch want {
		case "limits":
			require.True(t, limits(err), says)
			require.Empty(t, registrySaysNo(err), says)
		case "no platform":
			require.True(t, noPlatform(err), says)
		default:
			require.Equal(t, want, registrySaysNo(err), says)
			require.False(t, limits(err) || noPlatform(err), says)
		}
	}
	require.Contains(t, hostHint(errorOf("x509: certificate signed by unknown authority"), "r.example.org:5000"), "/etc/docker/certs.d/r.example.org:5000/ca.crt")
	require.Contains(t, hostHint(errorOf("http: server gave HTTP response to HTTPS client"), "r.example.org"), "insecure-registries")
	require.Empty(t, hostHint(errorOf("connection refused"), "r.example.org"))
}

type errorOf string

func (e errorOf) Error() string { return string(e) }

// Docker's progress of three layers, one of which was here before.
func TestHowFarAPullIs(t *testing.T) {
	p := pulling{layers: map[string]*layerPull{}}
	for _, x := range []struct {
		id, status string
		now, total int64
		want       string
	}{
		{"latest", "Pulling from acme/app", 0, 0, "0 of 0 layers"},
		{"a", "Already exists", 0, 0, "1 of 1 layers"},
		{"b", "Pulling fs layer", 0, 0, "1 of 2 layers"},
		{"c", "Waiting", 0, 0, "1 of 3 layers"},
		{"b", "Downloading", 1_500_000, 4_000_000, "1.5MB of 4MB, 1 of 3 layers"},
		{"c", "Downloading", 1_000, 76_100_000, "1.5MB of 80.1MB, 1 of 3 layers"},
		{"b", "Verifying Checksum", 0, 0, "4MB of 80.1MB, 1 of 3 layers"},
		{"b", "Extracting", 32_768, 4_000_000, "4MB of 80.1MB, 1 of 3 layers"},
		{"b", "Pull complete", 0, 0, "4MB of 80.1MB, 2 of 3 layers"},
		{"c", "Retrying in 5 seconds", 0, 0, "4MB of 80.1MB, 2 of 3 layers"},
		{"c", "Download complete", 0, 0, "80.1MB of 80.1MB, 2 of 3 layers"},
		{"", "Digest: sha256:08", 0, 0, "80.1MB of 80.1MB, 2 of 3 layers"},
		{"c", "Pull complete", 0, 0, "80.1MB of 80.1MB, 3 of 3 layers"},
	} {
		l := line{ID: x.id, Status: x.status}
		l.Progress.Current, l.Progress.Total = x.now, x.total
		p.take(&l)
		require.Equal(t, x.want, p.String(), "%+v", x)
	}
}
