package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneRepositoryHasOneNameHoweverItIsWritten(t *testing.T) {
	for _, tt := range []struct{ image, name, tag, digest string }{
		{"nginx", "docker.io/library/nginx", "", ""},
		{"nginx:1.27", "docker.io/library/nginx", "1.27", ""},
		{"docker.io/nginx", "docker.io/library/nginx", "", ""},
		{"index.docker.io/library/nginx", "docker.io/library/nginx", "", ""},
		{"registry-1.docker.io/library/nginx:1", "docker.io/library/nginx", "1", ""},
		{"registry.hub.docker.com/acme/web", "docker.io/acme/web", "", ""},
		{"DOCKER.IO/acme/web", "docker.io/acme/web", "", ""},
		{"acme/web", "docker.io/acme/web", "", ""},
		{"ghcr.io/acme/web:1@sha256:ab", "ghcr.io/acme/web", "1", "sha256:ab"},
		{"GHCR.io/acme/web", "ghcr.io/acme/web", "", ""},
		{"GHCR/acme/web", "ghcr/acme/web", "", ""}, // upper case is of a host: no part of a name has it
		{"ghcr.io:443/acme/web:1", "ghcr.io/acme/web", "1", ""},
		{"ghcr.io:0443/acme/web:1", "ghcr.io/acme/web", "1", ""},
		{"ghcr.io:5000/acme/web", "ghcr.io:5000/acme/web", "", ""},
		{"localhost/web", "localhost/web", "", ""},
		{"localhost:5000/web", "localhost:5000/web", "", ""},
		{"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", "", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
	} {
		require.Equal(t, ImageName{tt.name, tt.tag, tt.digest}, ParseImage(tt.image), tt.image)
	}
}

func TestAPatternOfImagesNamesWhatItSaysAndNoMore(t *testing.T) {
	for _, tt := range []struct {
		pattern, image string
		want           bool
	}{
		{"*", "nginx", true},
		{"**", "ghcr.io/a/b/c", true},
		{"*", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", true},
		{"docker.io/**", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", false},
		{"docker.io/library/**", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", false},
		{"docker.io", "nginx", true},
		{"docker.io", "docker.io.evil.org/nginx", false},
		{"docker.io/**", "nginx", true},
		{"docker.io/*", "nginx", false},
		{"docker.io/library/*", "nginx", true},
		{"ghcr.io/acme", "ghcr.io/acme/web", true},
		{"ghcr.io/acme", "ghcr.io/acme2/web", false},
		{"ghcr.io/acme", "ghcr.io/acme/a/b", true},
		{"ghcr.io/acme/*", "ghcr.io/acme/web", true},
		{"ghcr.io/acme/*", "ghcr.io/acme/a/b", false},
		{"ghcr.io/acme/**", "ghcr.io/acme/a/b", true},
		{"ghcr.io/acme/**", "ghcr.io/acme2/web", false},
		{"ghcr.io/**/web", "ghcr.io/a/b/web", true},
		{"ghcr.io/**/web", "ghcr.io/web", true},
		{"ghcr.io/**/web", "ghcr.io/a/web2", false},
		{"ghcr.io/acme/web-*", "ghcr.io/acme/web-api", true},
		{"ghcr.io/acme/web-*", "ghcr.io/acme/web", false},
		{"*.dkr.ecr.*.amazonaws.com/**", "1.dkr.ecr.eu-west-1.amazonaws.com/web", true},
		{"*.dkr.ecr.*.amazonaws.com/**", "evil.org/dkr.ecr.x.amazonaws.com/web", false},
		{"GHCR.io/acme/**", "ghcr.io/acme/web", true},
		{"ghcr.io/acme/**", "GHCR.IO/acme/web", true},
		{"ghcr.io/acme/**", "ghcr.io:443/acme/web", true},
		{"index.docker.io/**", "nginx", true},
		{"docker.io/**", "registry-1.docker.io/acme/web", true},
	} {
		require.Equal(t, tt.want, ImageMatches(tt.pattern, ParseImage(tt.image).Name), "%s %s", tt.pattern, tt.image)
	}
}

func TestAPatternOfImagesCoversAnotherOrNot(t *testing.T) {
	for _, tt := range []struct {
		pattern, other string
		covers         bool
	}{
		{"*", "ghcr.io/acme", true},
		{"**", "*", true},
		{"ghcr.io", "*", false},
		{"ghcr.io", "ghcr.io/acme/**", true},
		{"GHCR.io:443", "ghcr.io/acme/web", true},
		{"ghcr.io/**", "ghcr.io/acme", true},
		{"ghcr.io/acme/**", "ghcr.io/**", false},
		{"ghcr.io/acme/**", "ghcr.io/acme/*", true},
		{"ghcr.io/acme/*", "ghcr.io/acme/**", false},
		{"ghcr.io/acme/*", "ghcr.io/acme/web", false}, // which names what lies below it, too
		{"ghcr.io/acme", "ghcr.io/acme/web-*", true},
		{"ghcr.io/acme/web-*", "ghcr.io/acme/web-*-x", true},
		{"ghcr.io/acme/web-*-x", "ghcr.io/acme/web-*", false},
		{"ghcr.io/acme/web", "ghcr.io/acme/web2", false},
		{"ghcr.io/*/web", "ghcr.io/acme/web/**", false},
		{"ghcr.io/**/web", "ghcr.io/*/web", true},
		{"ghcr.io/acme", "quay.io/acme", false},
	} {
		require.Equal(t, tt.covers, ImagePatternCovers(tt.pattern, tt.other), "%s covers %s", tt.pattern, tt.other)
	}
}

func TestARegistryAtALinkLocalAddressIsKnownInEachSpelling(t *testing.T) {
	for _, image := range []string{
		"169.254.169.254/a", "169.254.169.254:80/a", "[fe80::1]:5000/a", "[::ffff:169.254.169.254]:80/a", "[fd00:ec2::254]/a",
		"2852039166:80/a", "0xa9fea9fe:80/a", "0xA9.254.169.254/a", "169.254.43518:80/a", "0251.0376.0251.0376:80/a",
		"[::ffff:a9fe:a9fe]/a", "[::169.254.169.254]/a", "[64:ff9b::a9fe:a9fe]:443/a", "[2002:a9fe:a9fe::]/a", "[::FFFF:169.254.169.254]:5000/a", "169.254.169.254./a", "169.16689662/a", "0xa9.0xfe.0xa9.0xfe/a", "[fe80::1%25eth0]/a",
	} {
		require.True(t, ParseImage(image).AtLinkLocal(), image)
	}
	for _, image := range []string{"nginx", "10.0.0.1:5000/a", "localhost:5000/a", "[::1]:5000/a", "ghcr.io/a/b", "r2:5000/a", "127.0.0.1:5000/a", "[64:ff9b::808:808]/a", "[2002:808:808::]/a", "[2001:db8::1]:5000/a"} {
		require.False(t, ParseImage(image).AtLinkLocal(), image)
	}
}

func TestTheFirstRuleThatMatchesCounts(t *testing.T) {
	rules := ImageRules{{"ghcr.io/acme/open", ""}, {"ghcr.io/acme/**", "a"}, {"**", "b"}}
	require.Empty(t, rules.For("ghcr.io/acme/open:1"))
	require.Equal(t, "a", rules.For("ghcr.io/acme/web:1"))
	require.Equal(t, "a", rules.For("GHCR.io:443/acme/web@sha256:ab"))
	require.Equal(t, "b", rules.For("nginx"))
	require.Empty(t, ImageRules{}.For("nginx"))
}
