package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// shopGrants are what an app of a commit lacks.
func shopGrants() *Suggestion {
	return &Suggestion{Apps: []SuggestedApp{{Name: "shop", Source: "prod", Path: "apps/shop", Grants: []SuggestedGrant{
		{Feature: "capabilities.add", Value: "NET_ADMIN", Service: "vpn", File: "apps/shop/compose.yaml", Line: 4, Risk: "routes"},
		{Feature: "ports.host", Value: "53/udp", File: "apps/shop/compose.yaml", Line: 6, Risk: "a port"},
	}}}}
}

func because(*SuggestedGrant) string { return "it is what it is for" }

const (
	newNet  = `{feature: capabilities.add, value: "NET_ADMIN", service: "vpn", reason: "it is what it is for"}`
	newPort = `{feature: ports.host, value: "53/udp", reason: "it is what it is for"}`
)

func TestGrantsAreMergedIntoAPolicyThatIsThere(t *testing.T) {
	const fresh = "- name: \"shop\"\n    source: \"prod\"\n    path: \"apps/shop\"\n    grants:\n" +
		"      # apps/shop/compose.yaml:4: routes\n      - " + newNet + "\n      # apps/shop/compose.yaml:6: a port\n      - " + newPort + "\n"
	for _, tt := range []struct {
		name, before, want string
		roots              []string
	}{
		{name: "without apps", before: "# ours\nversion: 1\nprofile: compose # the default\n", want: "# ours\nversion: 1\nprofile: compose # the default\napps:\n  " + fresh},
		{
			name: "beside another app", before: "version: 1\napps:\n  # the proxy\n  - {name: proxy, source: prod, path: proxy} # one line\n\n# the end\nprofile: compose\n",
			want: "version: 1\napps:\n  # the proxy\n  - {name: proxy, source: prod, path: proxy} # one line\n  " + fresh + "\n# the end\nprofile: compose\n",
		},
		{
			name:   "into the app, behind its grants",
			before: "apps:\n- path: apps/shop # moved\n  name: shop\n  source: prod\n  grants:\n  - feature: devices\n    value: /dev/dri\n    reason: films\n  # last\n- {name: x, source: prod, path: x}\nversion: 1\n",
			want: "apps:\n- path: apps/shop # moved\n  name: shop\n  source: prod\n  grants:\n  - feature: devices\n    value: /dev/dri\n    reason: films\n" +
				"  # apps/shop/compose.yaml:4: routes\n  - " + newNet + "\n  # apps/shop/compose.yaml:6: a port\n  - " + newPort + "\n  # last\n- {name: x, source: prod, path: x}\nversion: 1\n",
		},
		{
			name:   "into an app without grants",
			before: "version: 1\napps:\n    - name: shop\n      source: prod\n      path: apps/shop\n",
			want: "version: 1\napps:\n    - name: shop\n      source: prod\n      path: apps/shop\n      grants:\n" +
				"        # apps/shop/compose.yaml:4: routes\n        - " + newNet + "\n        # apps/shop/compose.yaml:6: a port\n        - " + newPort + "\n",
		},
		{
			name:   "what is granted already is not granted again",
			before: "version: 1\napps:\n  - name: shop\n    source: prod\n    path: apps/shop\n    grants:\n      - {feature: ports.host, value: 53/udp, reason: DNS}\n",
			want: "version: 1\napps:\n  - name: shop\n    source: prod\n    path: apps/shop\n    grants:\n      - {feature: ports.host, value: 53/udp, reason: DNS}\n" +
				"      # apps/shop/compose.yaml:4: routes\n      - " + newNet + "\n",
		},
		{
			name: "empty lists get entries", before: "version: 1\napps: [] # none yet\nmounts:\n  bind_roots: []\n", roots: []string{"/mnt/media"},
			want: "version: 1\napps: # none yet\n  " + fresh + "mounts:\n  bind_roots:\n    - \"+/mnt/media\"\n",
		},
		{
			name: "folders go to those that are there", before: "version: 1\nmounts:\n  never: [-/var/lib/docker]\n  bind_roots:\n    - +/srv/a\n    - +/srv/b\nprofile: compose\n", roots: []string{"/srv/a", "/srv/c"},
			want: "version: 1\nmounts:\n  never: [-/var/lib/docker]\n  bind_roots:\n    - +/srv/a\n    - +/srv/b\n    - \"+/srv/c\"\nprofile: compose\napps:\n  " + fresh,
		},
		{
			name: "a list that is written whole stays one", before: "version: 1\nmounts:\n  bind_roots:\n    - /srv/a\n", roots: []string{"/srv/c"},
			want: "version: 1\nmounts:\n  bind_roots:\n    - /srv/a\n    - \"/srv/c\"\napps:\n  " + fresh,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			merged, added, err := shopGrants().Merge([]byte(tt.before), tt.roots, because)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(merged))
			require.Positive(t, added)
			var v any
			require.NoError(t, yaml.Unmarshal(merged, &v))
			again, added, err := shopGrants().Merge(merged, tt.roots, because)
			require.NoError(t, err)
			require.Zero(t, added)
			require.Equal(t, string(merged), string(again), "the second time nothing is new")
		})
	}
}

func TestAPolicyWithoutAPlaceForGrantsStaysAsItIs(t *testing.T) {
	for name, before := range map[string]string{
		"apps on one line":     "version: 1\napps: [{name: proxy, source: prod, path: proxy}]\n",
		"an app on one line":   "version: 1\napps:\n  - {name: shop, source: prod, path: apps/shop}\n",
		"grants on one line":   "version: 1\napps:\n  - name: shop\n    source: prod\n    path: apps/shop\n    grants: [{feature: devices, value: /dev/dri, reason: films}]\n",
		"all of it on one":     "{version: 1}\n",
		"no YAML":              "version: [\n",
		"nothing":              "# only words\n",
		"an alias":             "version: 1\nx: &a\n  - {name: proxy}\napps: *a\n",
		"a text with comments": "version: 1\nx: |\n  a\n  # b\n",
	} {
		_, _, err := shopGrants().Merge([]byte(before), nil, because)
		if name == "a text with comments" && err == nil {
			continue // or a place is found and the text is whole
		}
		require.Error(t, err, name)
	}
}
