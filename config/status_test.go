package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/notify"
)

// withStatus is the small configuration with a status, of a source with a url.
func withStatus(url, status string) string {
	return strings.NewReplacer(
		"https://git.example.org/acme/infra.git\n", url+"\n",
		"    trust:", "    status: {"+status+"}\n    trust:",
	).Replace(smallConfig)
}

func TestEachForgeIsFoundByTheUrlOfTheSource(t *testing.T) {
	for _, tc := range []struct{ name, url, status, api, repo string }{
		{"github.com", "https://github.com/acme/infra.git", "forge: github", "https://api.github.com", "acme/infra"},
		{"an Enterprise Server", "https://ghe.example.org/acme/infra.git", "forge: github", "https://ghe.example.org/api/v3", "acme/infra"},
		{"an enterprise with data residency", "https://acme.ghe.com/ops/infra.git", "forge: github", "https://api.acme.ghe.com", "ops/infra"},
		{"gitlab.com", "https://gitlab.com/acme/team/infra.git", "forge: gitlab", "https://gitlab.com/api/v4", "acme/team/infra"},
		{"a GitLab of one's own", "https://git.example.org:8443/acme/infra.git", "forge: gitlab", "https://git.example.org:8443/api/v4", "acme/infra"},
		{"a project's number", "https://gitlab.com/acme/infra.git", "forge: gitlab, repo: 4711", "https://gitlab.com/api/v4", "4711"},
		{"gitea", "https://git.example.org/acme/infra.git", "forge: gitea", "https://git.example.org/api/v1", "acme/infra"},
		{"forgejo", "https://codeberg.org/acme/infra.git", "forge: forgejo", "https://codeberg.org/api/v1", "acme/infra"},
		{"bitbucket.org", "https://bitbucket.org/acme/infra.git", "forge: bitbucket", "https://api.bitbucket.org/2.0", "acme/infra"},
		{"Data Center", "https://git.example.org/scm/ops/infra.git", "forge: bitbucket-dc", "https://git.example.org/rest/api/latest", "ops/infra"},
		{"Data Center below a path", "https://example.org/bb/scm/ops/infra.git", "forge: bitbucket-dc", "https://example.org/bb/rest/api/latest", "ops/infra"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse("/etc/gitring/config.yaml", []byte(withStatus(tc.url, tc.status+", token_file: t")), env())
			require.NoError(t, err)
			require.Equal(t, tc.api, c.Sources[0].Status.APIURL)
			require.Equal(t, tc.repo, c.Sources[0].Status.Repo)
		})
	}
}

func TestBitbucketStatusesLeadSomewhere(t *testing.T) {
	for _, tc := range []struct{ url, status, listen, want string }{
		{"https://bitbucket.org/acme/infra.git", "forge: bitbucket", "", "https://bitbucket.org/acme/infra"},
		{"https://example.org/bb/scm/ops/infra.git", "forge: bitbucket-dc", "", "https://example.org/bb/projects/ops/repos/infra"},
		{"https://bitbucket.org/acme/infra.git", "forge: bitbucket", "listen: {url: \"https://edge-1.example.org\"}\n", "https://edge-1.example.org"},
		{"https://bitbucket.org/acme/infra.git", "forge: bitbucket, url: \"https://wiki.example.org/edge-1\"", "listen: {url: \"https://edge-1.example.org\"}\n", "https://wiki.example.org/edge-1"},
		{"https://github.com/acme/infra.git", "forge: github", "listen: {url: \"https://edge-1.example.org\"}\n", ""},
		{"https://github.com/acme/infra.git", "forge: github, url: \"https://wiki.example.org/edge-1\"", "", "https://wiki.example.org/edge-1"},
	} {
		c, err := Parse("c.yaml", []byte(tc.listen+withStatus(tc.url, tc.status+", token_file: t")), env())
		require.NoError(t, err)
		require.Equal(t, tc.want, c.Sources[0].Status.URL)
	}
}

func TestAMistakeInAStatusIsToldWithItsLine(t *testing.T) {
	const hub = "https://github.com/acme/infra.git"
	for _, tc := range []struct{ name, url, status, want, hint string }{
		{"an unknown forge", hub, "forge: gitlb, token_file: t", `c.yaml:5: status.forge: "gitlb" is not known`, `did you mean "gitlab"?`},
		{"no credential", hub, "forge: github", "c.yaml:5: status.token_file is missing", "docs/how-to"},
		{"two credentials", hub, "forge: github, token_file: t, app: {id: 1, installation: 2, private_key_file: k}", "c.yaml:5: status.app: there is a token_file too", "one of the two"},
		{"an App elsewhere", "https://gitlab.com/a/b.git", "forge: gitlab, app: {id: 1, installation: 2, private_key_file: k}", "c.yaml:5: status.app is for github alone", "token_file"},
		{"an App without its installation", hub, "forge: github, app: {id: 1, private_key_file: k}", "c.yaml:5: status.app.installation is missing", "forge-github.md"},
		{"an installation that is no number", hub, "forge: github, app: {id: 1, installation: acme, private_key_file: k}", `c.yaml:5: status.app.installation: "acme" is no number`, "the number"},
		{"an unknown key of an App", hub, "forge: github, app: {id: 1, instalation: 2, private_key_file: k}", `c.yaml:5: unknown key "instalation"`, `did you mean "installation"?`},
		{"a user name on GitHub", hub, "forge: github, token_file: t, username: bot", "c.yaml:5: status.username is for bitbucket alone", "take it out"},
		{"deployments where there are none", "https://git.example.org/a/b.git", "forge: forgejo, token_file: t, deployments: true", "c.yaml:5: status.deployments: forgejo keeps no list of deployments", "all the same"},
		{"an address with a password", hub, "forge: github, token_file: t, url: \"https://a:s3cret@h/\"", `c.yaml:5: status.url: `, "https://"},
		{"a Bitbucket elsewhere", "https://git.example.org/a/b.git", "forge: bitbucket, token_file: t", "c.yaml:5: cannot tell the API of the forge from the source's url: set status.api_url", ""},
		{"a Data Center without scm", "https://git.example.org/a/b.git", "forge: bitbucket-dc, token_file: t", "c.yaml:5: cannot tell the API of the forge from the source's url: set status.api_url", ""},
		{"a repo of GitLab", "https://gitlab.com/a/b.git", "forge: gitlab, token_file: t, repo: infra", "c.yaml:5: cannot use status.repo: it has the form group/name, with every group, or the project's number", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("c.yaml", []byte(withStatus(tc.url, tc.status)), env())
			var ms Mistakes
			require.ErrorAs(t, err, &ms)
			require.Contains(t, ms[0].Error(), tc.want)
			require.Contains(t, ms[0].Hint, tc.hint)
		})
	}
}

func TestAStatusReachesTheForgeAsItIsWritten(t *testing.T) {
	c, err := Parse("/etc/gitring/config.yaml", []byte(withStatus("https://github.com/acme/infra.git",
		"forge: github, app: {id: 123, installation: 456, private_key_file: app.pem}, deployments: true, pull_requests: true, url: \"https://wiki.example.org\"")), env())
	require.NoError(t, err)
	f, speaks := WayOut(&c.Sources[0])
	require.True(t, speaks)
	want := notify.Forge{
		Kind: notify.GitHub, APIURL: "https://api.github.com", Repo: "acme/infra", TargetURL: "https://wiki.example.org", Branch: "main",
		App: &notify.App{ID: "123", Installation: "456", KeyFile: "/etc/gitring/app.pem"}, Deployments: true, PullRequests: true,
	}
	require.Empty(t, cmp.Diff(want, f, cmpopts.IgnoreUnexported(notify.Forge{}, notify.App{})))
	_, speaks = WayOut(&SourceConfig{})
	require.False(t, speaks)
}

func TestATokenForGitAndStatusesIsNoticed(t *testing.T) {
	c, err := Parse("/etc/gitring/config.yaml", []byte(withStatus("https://github.com/acme/infra.git",
		"forge: github, token_file: ./token")+"    auth: {username: x, password_file: /etc/gitring/token}\n"), env())
	require.NoError(t, err)
	require.Equal(t, []string{"the token that writes statuses also reads Git; give status.token_file one of its own"}, c.Sources[0].Warnings())
	c.Sources[0].Auth.PasswordFile = "/etc/gitring/other"
	require.Empty(t, c.Sources[0].Warnings())
}

// Each forge has a page that says how its token is made.
func TestEachForgeHasItsPage(t *testing.T) {
	pages := map[string]string{notify.Bitbucket: "bitbucket-cloud", notify.BitbucketDC: "bitbucket-data-center"}
	for _, kind := range notify.Kinds() {
		name := kind
		if other := pages[kind]; other != "" {
			name = other
		}
		page, err := os.ReadFile("../docs/how-to/forge-" + name + ".md")
		require.NoError(t, err)
		for _, part := range []string{"forge: " + kind, "token_file", "webhooks.md", "gitring status", "## What each error means"} {
			require.Contains(t, string(page), part, name)
		}
	}
}
