package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
)

func TestMirrorsThatTellTwoRepositoriesAreNamed(t *testing.T) {
	at := func(api, repo string) notify.Forge { return notify.Forge{APIURL: api, Repo: repo} }
	const a, b = "https://a.example.org/api/v1", "https://b.example.org/api/v4"
	for _, tt := range []struct {
		name    string
		sources []ring.SourceStatus
		forges  map[string]notify.Forge
		named   []string
	}{
		{
			"mirrors at two forges",
			[]ring.SourceStatus{{Name: "x", Trusted: "c0ffee"}, {Name: "y", Trusted: "c0ffee"}},
			map[string]notify.Forge{"x": at(a, "acme/infra"), "y": at(b, "acme/infra")},
			[]string{"y"},
		},
		{
			"mirrors at one forge",
			[]ring.SourceStatus{{Name: "x", Trusted: "c0ffee"}, {Name: "y", Trusted: "c0ffee"}},
			map[string]notify.Forge{"x": at(a, "acme/infra"), "y": at(a, "copy/infra")},
			[]string{"y"},
		},
		{
			"only one of them tells",
			[]ring.SourceStatus{{Name: "x", Trusted: "c0ffee"}, {Name: "y", Trusted: "c0ffee"}},
			map[string]notify.Forge{"x": at(a, "acme/infra")},
			nil,
		},
		{
			"two folders of one repository",
			[]ring.SourceStatus{{Name: "x", Trusted: "c0ffee"}, {Name: "y", Trusted: "c0ffee"}},
			map[string]notify.Forge{"x": at(a, "acme/infra"), "y": at(a, "acme/infra")},
			nil,
		},
		{
			"two repositories",
			[]ring.SourceStatus{{Name: "x", Trusted: "c0ffee"}, {Name: "y", Trusted: "decade"}},
			map[string]notify.Forge{"x": at(a, "acme/infra"), "y": at(a, "acme/other")},
			nil,
		},
		{
			"nothing is trusted yet",
			[]ring.SourceStatus{{Name: "x"}, {Name: "y"}},
			map[string]notify.Forge{"x": at(a, "acme/infra"), "y": at(b, "acme/infra")},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := twins(tt.sources, tt.forges)
			var named []string
			for name, says := range said {
				named = append(named, name)
				require.Contains(t, says, "sources x and y are mirrors")
				require.Contains(t, says, "take status out of one of the two")
			}
			require.Equal(t, tt.named, named)
		})
	}
}
