package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

const someDigest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func judged(profile Profile, l func(*Lists), image, pull string) []Finding {
	lists := ListsOf(profile)
	l(&lists)
	app := &ring.App{Name: "web", Source: "prod", Path: "web", Services: []ring.Service{{Name: "web", Replicas: 1, Spec: ring.Spec{Image: image, PullPolicy: pull}}}}
	return CheckApp(Rules{Profile: profile, Lists: &lists}, app, "/srv/gitring", Others{})
}

func signedBy(rules ...imagesign.Rule) func(*Lists) {
	return func(l *Lists) { l.Signatures = rules }
}

var oneKey = []imagesign.Key{{ID: "sha256:aa"}}

// The owner of a host wrote these rules for this host: no profile lets more pass.
func TestWhatTheRulesOfSignaturesDenyNoProfileLetsPass(t *testing.T) {
	deny := imagesign.Rule{Match: "**", Deny: true, At: "p.yaml:4"}
	asks := imagesign.Rule{Match: "ghcr.io/acme/**", Keys: oneKey, Threshold: 1, At: "p.yaml:3"}
	for _, tt := range []struct {
		name, image, pull string
		rules             []imagesign.Rule
		denied            bool
	}{
		{"no rule", "quay.io/a/b", "", nil, false},
		{"denied", "quay.io/a/b", "", []imagesign.Rule{asks, deny}, true},
		{"asked for a signature", "ghcr.io/acme/web:1", "", []imagesign.Rule{asks, deny}, false},
		{"the same registry in capitals", "GHCR.IO/acme/web:1", "", []imagesign.Rule{asks, deny}, false},
		{"the first rule counts", "ghcr.io/acme/web:1", "", []imagesign.Rule{deny, asks}, true},
		{"a reason to ask for nothing", "nginx", "", []imagesign.Rule{{Match: "docker.io/library/**", None: "official"}, deny}, false},
		{"an image by its ID", someDigest[1:], "", []imagesign.Rule{{Match: "docker.io/library/**", None: "official"}, deny}, true},
		{"an image by its ID where all are asked", someDigest[1:], "", []imagesign.Rule{{Match: "**", Keys: oneKey}}, true},
		{"what this host has of a name, of which the engine knows the digest", "ghcr.io/acme/web:1", "never", []imagesign.Rule{asks}, false},
		{"this host's own image by digest", "ghcr.io/acme/web:1" + someDigest, "never", []imagesign.Rule{asks}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, profile := range []Profile{Compose, Owner, Hardened} {
				found := judged(profile, func(l *Lists) {
					signedBy(tt.rules...)(l)
					l.Registries, l.RequireDigest, l.DenyMoving = []string{"*"}, false, false
				}, tt.image, tt.pull)
				if !tt.denied {
					require.Empty(t, found)
					continue
				}
				require.Len(t, found, 1)
				require.Equal(t, "images.signatures", found[0].Rule)
				require.Equal(t, Deny, found[0].Verdict)
				require.Equal(t, "services.web.image", found[0].Key)
				require.Empty(t, found[0].Asks, "no grant")
			}
		})
	}
}

func TestNoProfileAsksARegistryAtALinkLocalAddress(t *testing.T) {
	for _, image := range []string{"169.254.169.254/a:1", "2852039166:80/a:1", "[fe80::1]:5000/a:1"} {
		for _, profile := range []Profile{Compose, Owner} {
			found := judged(profile, func(*Lists) {}, image, "")
			require.Len(t, found, 1, image)
			require.Equal(t, "images.registries", found[0].Rule)
			require.Equal(t, Deny, found[0].Verdict)
			require.Empty(t, found[0].Asks, "no grant")
		}
	}
}

func TestARuleOfSignaturesIsPartOfThePolicysHash(t *testing.T) {
	hash := func(rules ...imagesign.Rule) string {
		lists := ListsOf(Compose)
		lists.Signatures = rules
		r := Rules{Lists: &lists}
		return r.Hash()
	}
	plain := Rules{}
	require.Equal(t, plain.Hash(), hash(), "nobody's hash changes by the key's coming")
	one := imagesign.Rule{Match: "a.b/**", Keys: oneKey, Threshold: 1, At: "p.yaml:3"}
	first := hash(one)
	moved := one
	moved.At = "p.yaml:9"
	moved.Keys = []imagesign.Key{{ID: "sha256:aa", File: "/elsewhere"}}
	require.Equal(t, first, hash(moved), "a line and a file's name say nothing")
	for _, other := range []imagesign.Rule{
		{Match: "a.c/**", Keys: oneKey, Threshold: 1},
		{Match: "a.b/**", Keys: []imagesign.Key{{ID: "sha256:bb"}}, Threshold: 1},
		{Match: "a.b/**", Keys: oneKey, Threshold: 2},
		{Match: "a.b/**", None: "x"},
		{Match: "a.b/**", Deny: true},
	} {
		require.NotEqual(t, first, hash(other))
		require.NotEqual(t, one.Hash(), other.Hash())
	}
	require.NotEqual(t, hash(one, imagesign.Rule{Match: "**", Deny: true}), hash(imagesign.Rule{Match: "**", Deny: true}, one), "their order counts")
}

func TestATagThatMovesByTheClockIsDeniedWhereMovingIs(t *testing.T) {
	for _, denied := range []bool{false, true} {
		lists := ListsOf(Compose)
		lists.DenyMoving = denied
		service := ring.Service{Name: "web", Replicas: 1, Spec: ring.Spec{Image: "nginx:1"}, Updates: &ring.Updates{Word: "every_12h", Every: 12 * time.Hour}}
		app := &ring.App{Name: "web", Source: "prod", Path: "web", Services: []ring.Service{service}}
		found := CheckApp(Rules{Profile: Compose, Lists: &lists}, app, "/srv/gitring", Others{})
		if !denied {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		require.Equal(t, "images.moving", found[0].Rule)
		require.Equal(t, "every_12h", found[0].Value)
	}
}
