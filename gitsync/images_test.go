package gitsync

import (
	"math/rand"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	digestA = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// moved are pairs of texts that a signer with role images may make of each other, forwards.
var moved = []struct{ name, was, is string }{
	{"a patch", "services:\n  web:\n    image: nginx:1.27.1\n", "services:\n  web:\n    image: nginx:1.27.2\n"},
	{"a minor", "image: nginx:1.27", "image: nginx:1.28"},
	{"a major", "image: nginx:1.27", "image: nginx:2.0"},
	{"a digest", "image: nginx:1.27" + digestA, "image: nginx:1.27" + digestB},
	{"a digest that is added", "image: nginx:1.27", "image: nginx:1.27" + digestB},
	{"a digest without a tag", "image: nginx" + digestA, "image: nginx" + digestB},
	{"a tag and its digest", "image: nginx:1.27" + digestA, "image: nginx:1.28" + digestB},
	{"a variant", "image: nginx:1.27-alpine3.20", "image: nginx:1.28-alpine3.21"},
	{"linuxserver's", "image: lscr.io/linuxserver/sonarr:4.0.9-ls78", "image: lscr.io/linuxserver/sonarr:4.0.10-ls79"},
	{"linuxserver's with more", "image: lscr.io/linuxserver/radarr:5.14.0.9383-ls247", "image: lscr.io/linuxserver/radarr:5.15.1.9463-ls250"},
	{"a calendar", "image: ghcr.io/home-assistant/home-assistant:2024.12.1", "image: ghcr.io/home-assistant/home-assistant:2025.1.0"},
	{"a v", "image: traefik:v3.1.4", "image: traefik:v3.2.0"},
	{"a date", "image: minio/minio:RELEASE.2024-10-02T17-50-41Z", "image: minio/minio:RELEASE.2024-11-07T00-52-20Z"},
	{"two numbers of two lengths", "image: postgres:9", "image: postgres:10"},
	{"a port of a registry", "image: registry.example.org:5000/web:1", "image: registry.example.org:5000/web:2"},
	{"in quotes", `image: "nginx:1.27"`, `image: "nginx:1.28"`},
	{"in single quotes", `image: 'nginx:1.27'`, `image: 'nginx:1.28'`},
	{"with a comment that stays", "image: nginx:1.27 # the front", "image: nginx:1.28 # the front"},
	{"in one line", "services: {web: {image: nginx:1.27, ports: ['80:80']}, db: {image: \"postgres:16.1\"}}", "services: {web: {image: nginx:1.28, ports: ['80:80']}, db: {image: \"postgres:16.2\"}}"},
	{"behind signs of other alphabets", "services: {wéb: {labels: {a: \"ü\"}, image: nginx:1.27}}", "services: {wéb: {labels: {a: \"ü\"}, image: nginx:1.28}}"},
	{"with the line ends of Windows", "a:\r\n  image: nginx:1.27\r\nb: 1\r\n", "a:\r\n  image: nginx:1.28\r\nb: 1\r\n"},
	{"several, with one that stays", "a:\n  image: a/b:1.0\nb:\n  image: c/d:2.0\nc:\n  image: e/f:3\n", "a:\n  image: a/b:1.1\nb:\n  image: c/d:2.0\nc:\n  image: e/f:4\n"},
	{"in a second document", "a: 1\n---\nimage: nginx:1.27\n", "a: 1\n---\nimage: nginx:1.28\n"},
}

// beyond are pairs that they may not, with what is said.
var beyond = []struct{ name, was, is, why string }{
	{"down", "image: nginx:1.28", "image: nginx:1.27", "which is down"},
	{"a major down", "image: nginx:2.0", "image: nginx:1.27", "which is down"},
	{"a variant's version down", "image: nginx:1.27-alpine3.20", "image: nginx:1.27-alpine3.19", "which is down"},
	{"another repository", "image: nginx:1.27", "image: caddy:1.28", "of the same image"},
	{"another registry", "image: ghcr.io/a/b:1", "image: ghcr.example.org/a/b:2", "of the same image"},
	{"another port", "image: r.example.org:5000/a:1", "image: r.example.org:5001/a:2", "of the same image"},
	{"another shape", "image: nginx:1.27", "image: nginx:1.27-alpine", "another shape"},
	{"a word", "image: nginx:1.27", "image: nginx:latest", "another shape"},
	{"from a word", "image: nginx:stable", "image: nginx:1.28", "another shape"},
	{"no tag any more", "image: nginx:1.27", "image: nginx", "of the same image"},
	{"no tag any more, beside its digest", "image: nginx:1.27" + digestA, "image: nginx" + digestB, "another shape"},
	{"a tag beside a digest alone", "image: nginx" + digestA, "image: nginx:1.27" + digestB, "another shape"},
	{"no digest any more", "image: nginx:1.27" + digestA, "image: nginx:1.28", "takes a digest away"},
	{"a comment", "image: nginx:1.27 # a", "image: nginx:1.27 # b", "line 1"},
	{"a comment beside a move", "image: nginx:1.27 # a", "image: nginx:1.28 # b", "line 1"},
	{"a commented image", "# image: nginx:1.27\na: 1\n", "# image: nginx:1.28\na: 1\n", "line 1"},
	{"another key", "image: nginx:1.27\nuser: a\n", "image: nginx:1.28\nuser: b\n", "line 2"},
	{"another key in one line", "web: {image: nginx:1.27, user: a}", "web: {image: nginx:1.28, user: b}", "line 1"},
	{"a key that only ends like it", "myimage: nginx:1.27", "myimage: nginx:1.28", "line 1"},
	{"a line of a program", "command: |\n  image: nginx:1.27\n", "command: |\n  image: nginx:1.28\n", "line 2"},
	{"a text of a program", "command: \"{image: nginx:1.27}\"", "command: \"{image: nginx:1.28}\"", "line 1"},
	{"a new line", "image: nginx:1.27\n", "image: nginx:1.28\nprivileged: true\n", "lines"},
	{"other quotes", "image: \"nginx:1.27\"", "image: 'nginx:1.28'", "line 1"},
	{"more space", "image: nginx:1.27", "image:  nginx:1.28", "line 1"},
	{"other line ends", "image: nginx:1.27\r\n", "image: nginx:1.28\n", "line 1"},
	{"an anchor", "a: {image: &x nginx:1.27}\nb: {image: *x}", "a: {image: &x nginx:1.28}\nb: {image: *x}", "form that is not read"},
	{"no YAML", "image: nginx:1.27\n\t- {", "image: nginx:1.28\n\t- {", "is no YAML"},
	{"YAML no more", "a: {image: nginx:1.27}", "a: {image: nginx:1.28", "is no YAML"},
	{"an escape", `image: "nginx:1.27\x2d1"`, `image: "nginx:1.28\x2d1"`, "form that is not read"},
	{"an image that is gone", "a: {image: b:1}", "a: {imago: b:2}", "line 1"},
	{"a variable", "image: nginx:${TAG}", "image: nginx:1.28", "of the same image"},
}

func TestRoleImagesMovesTagsAndDigestsForwards(t *testing.T) {
	grants := []Binding{{Signer: "bot", Roles: []Role{RoleImages}}}
	for _, tt := range moved {
		require.Empty(t, imageMoves(tt.was, tt.is, grants), tt.name)
	}
	for _, tt := range beyond {
		require.Contains(t, imageMoves(tt.was, tt.is, grants), tt.why, tt.name)
	}
}

func TestABindingSaysHowFarAndWhichWayImagesMove(t *testing.T) {
	move := func(was, is string, b ...Binding) string { return imageMoves("image: a:"+was, "image: a:"+is, b) }
	patch := Binding{Moves: []string{"digest", "patch"}}
	require.Empty(t, move("1.2.3", "1.2.4", patch))
	require.Empty(t, move("1.2.3"+digestA, "1.2.3"+digestB, patch))
	require.Contains(t, move("1.2.3", "1.3.0", patch), "kind minor, which moves does not name")
	require.Contains(t, move("1.2.3", "2.0.0", patch), "kind major, which moves does not name")
	require.Contains(t, move("1.2.4", "1.2.3", patch), "which is down")
	require.Empty(t, move("1.2.4", "1.2.3", Binding{Direction: "any"}))
	require.Contains(t, move("1.2.4", "1.1", Binding{Direction: "any"}), "another shape")
	require.Empty(t, move("1.2.4", "latest", Binding{Moves: []string{"any"}}))
	require.Empty(t, move("1.2.4", "1.2.3", Binding{Moves: []string{"any"}}))
	require.Contains(t, move("1.2.3"+digestA, "1.2.3"+digestB, Binding{Moves: []string{"minor"}}), "kind digest")
	require.NotEmpty(t, move("1.2.3", "1.2.4"), "no binding covers the file")
	require.Empty(t, move("1.2.3", "1.3.0", patch, Binding{Moves: []string{"minor"}}), "one of several lets it pass")
}

// maskedImage is what the oracle takes out of a line: the tag and digest of what follows image.
var maskedImage = regexp.MustCompile(`((?:^|[\s{,\-'"])["']?image["']?:\s+["']?[^\s:@"'{},]+(?::[0-9]+/[^\s:@"'{},]+)?)((?::[\w.\-]+)?(?:@sha256:[0-9a-f]{64})?)`)

// Whatever passes differs by tags and digests behind image alone. The oracle knows no YAML.
func TestNothingPassesThatIsMoreThanAMove(t *testing.T) {
	n := imageMutations(t)
	r := rand.New(rand.NewSource(1))
	grants := []Binding{{Moves: []string{"any"}}}
	words := []string{":1.28", digestB, ":", "#", "\n", " ", "image: ", "{", "}", "\"", "'", ",", "nginx", "|", "&x ", "*x", "\t", "\r", "- ", "!!str ", "1", "a", "\\", "é"}
	passed := 0
	for range n {
		base := moved[r.Intn(len(moved))]
		is := base.is
		for range 1 + r.Intn(2) {
			at, word := r.Intn(len(is)+1), words[r.Intn(len(words))]
			if end := at + r.Intn(4); r.Intn(2) == 0 && end <= len(is) {
				is = is[:at] + word + is[end:]
				continue
			}
			is = is[:at] + word + is[at:]
		}
		if imageMoves(base.was, is, grants) != "" || is == base.was {
			continue
		}
		passed++
		require.Equal(t, maskedImage.ReplaceAllString(base.was, "$1"), maskedImage.ReplaceAllString(is, "$1"), "%q -> %q", base.was, is)
	}
	require.NotZero(t, passed, "some are moves all the same")
}

func FuzzImageMoves(f *testing.F) {
	for _, tt := range moved {
		f.Add(tt.was, tt.is)
	}
	for _, tt := range beyond {
		f.Add(tt.was, tt.is)
	}
	f.Fuzz(func(t *testing.T, was, is string) {
		if imageMoves(was, is, []Binding{{Moves: []string{"any"}}}) != "" || was == is {
			return
		}
		if strings.Count(was, "\n") != strings.Count(is, "\n") {
			t.Fatalf("%q -> %q: other lines", was, is)
		}
		if strip(was) != strip(is) {
			t.Fatalf("%q -> %q", was, is)
		}
	})
}

// strip takes out all that a tag or digest could be, anywhere.
func strip(s string) string {
	return regexp.MustCompile(`[:@][\w.\-]+(?:@?sha256)?(?::[0-9a-f]{64})?|@sha256:[0-9a-f]{64}`).ReplaceAllString(s, "")
}
