package gitsync

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// webStack is a Compose file of which one tag stands in .env.
const webStack = "services:\n  web:\n    image: ghcr.io/acme/web:${WEB_TAG}\n    ports: [\"${WEB_PORT}:80\"]\n"

// envCase is the .env of one folder before and after, among the files of a commit.
type envCase struct {
	name, was, is string
	files         map[string]string // besides it; ">x" is a link to x
	why           string            // "" where it may move
}

var envMoved = []envCase{
	{"a tag", "WEB_TAG=1.27\nWEB_PORT=80\n", "WEB_TAG=1.28\nWEB_PORT=80\n", map[string]string{"compose.yaml": webStack}, ""},
	{"a tag of two digits", "WEB_TAG=1.9", "WEB_TAG=1.10", map[string]string{"compose.yaml": webStack}, ""},
	{"a tag and its digest", "WEB_TAG=1.27" + digestA, "WEB_TAG=1.28" + digestB, map[string]string{"compose.yaml": webStack}, ""},
	{"linuxserver's", "T=4.0.9-ls78", "T=4.0.10-ls79", map[string]string{"compose.yml": "services: {a: {image: \"lscr.io/linuxserver/sonarr:${T}\"}}"}, ""},
	{"in quotes", "WEB_TAG=\"1.27\"\n", "WEB_TAG=\"1.28\"\n", map[string]string{"compose.yaml": webStack}, ""},
	{"in single quotes", "WEB_TAG='1.27'\n", "WEB_TAG='1.28'\n", map[string]string{"compose.yaml": webStack}, ""},
	{"with a comment that stays", "WEB_TAG=1.27 # the web\n", "WEB_TAG=1.28 # the web\n", map[string]string{"compose.yaml": webStack}, ""},
	{"with the line ends of Windows", "A=1\r\nWEB_TAG=1.27\r\n", "A=1\r\nWEB_TAG=1.28\r\n", map[string]string{"compose.yaml": webStack}, ""},
	{"with a default", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"nginx:${T:-1.20}\"}}"}, ""},
	{"with a message", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"nginx:${T:?say which}\"}}"}, ""},
	{"without braces", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"nginx:$T\"}}"}, ""},
	{"a part of a tag", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"nginx:v${T}-alpine\"}}"}, ""},
	{"behind a registry of the host", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"${REGISTRY:-ghcr.io}/a/b:${T}\"}}"}, ""},
	{"for two services", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"a/server:${T}\"}, b: {image: \"a/worker:${T}\"}}"}, ""},
	{"through a template", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "x-base: &b {image: \"a/b:${T}\"}\nservices: {a: {<<: *b}, c: {<<: [*b]}}"}, ""},
	{"in a folder of its own", "T=1.27", "T=1.28", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", volumes: [\"${DATA:-./data}:/data\", \"${HOST}/movies:/movies\", \"cache:/c\", \"/etc/x:/x\"]}}"}, ""},
	{"beside a file that names another variable", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", environment: {TZ: \"${TZ}\"}}}", "run.sh": "echo $TT $T2 T"}, ""},
	{"beside another app with an image of it", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "other/compose.yaml": "services: {a: {image: \"c/d:${T}\"}}"}, ""},
	{"beside an env file of the service", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", env_file: app.env}}", "app.env": "A=1\n"}, ""},
	{"beside a large file of other things", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.json": strings.Repeat(" ", 1<<20), "x.bin": "services" + strings.Repeat("\x00", 1<<20)}, ""},
	{"beside a folder of a variable of the host", "T=1\nD=/srv\n", "T=2\nD=/srv\n", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", volumes: [\"${D:?where}/x:/x\", \"${H:-/opt}/${D}:/y\"]}}", "b/.env": "D=./data", "b/compose.yaml": "services: {a: {image: c, volumes: [\"${D}:/x\"]}}"}, ""},
	{"beside a page about it", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "README.md": "# T\n\nT: the tag of all services, see [x](y): `T=2`\n"}, ""},
	{"two tags", "A=1.0\nB=2.0\n", "A=1.1\nB=2.1\n", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${A}\"}, c: {image: \"c/d:${B}\"}}"}, ""},
}

// wide is a text in UTF-16.
func wide(text string) string {
	out := "\xFE\xFF"
	for _, c := range []byte(text) {
		out += "\x00" + string(rune(c))
	}
	return out
}

func webWith(more string) map[string]string {
	return map[string]string{"compose.yaml": webStack + more}
}

func oneWith(more string) map[string]string {
	return map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"" + more + "}}"}
}

var envBeyond = []envCase{
	{"down", "WEB_TAG=1.28", "WEB_TAG=1.27", webWith(""), "which is down"},
	{"another shape", "WEB_TAG=1.28", "WEB_TAG=latest", webWith(""), "another shape"},
	{"a port", "WEB_TAG=1\nWEB_PORT=80", "WEB_TAG=1\nWEB_PORT=81", webWith(""), "line 4 of compose.yaml uses outside of an image"},
	{"a port in its place", "T=80", "T=81", map[string]string{"compose.yaml": "services: {a: {image: \"r:${T}/a\"}}"}, "in another way than as the tag"},
	{"a repository", "T=a", "T=b", map[string]string{"compose.yaml": "services: {a: {image: \"${T}:1\"}}"}, "in another way than as the tag"},
	{"a whole image", "T=nginx:1.27", "T=nginx:1.28", map[string]string{"compose.yaml": "services: {a: {image: \"${T}\"}}"}, "NAME=<tag>"},
	{"used in a command, too", "T=1", "T=2", oneWith(", command: [run, \"${T}\"]"), "outside of an image"},
	{"used in a default", "T=1", "T=2", oneWith(", hostname: \"${X:-${T}}\""), "outside of an image"},
	{"used as a default elsewhere", "T=1", "T=2", oneWith(", ports: [\"${T:-80}:80\"]"), "outside of an image"},
	{"used where it is set", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T:+3}\"}}"}, "in another way"},
	{"with a default of another variable", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T:-${X}}\"}}"}, "in another way"},
	{"two variables in one tag", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}.${M}\"}}"}, "in another way"},
	{"handed to a container by its name", "T=1", "T=2", oneWith(", environment: [T]"), "outside of an image"},
	{"handed to a container by its key", "T=1", "T=2", oneWith(", environment: {T: }"), "as a key"},
	{"part of a key", "T=1", "T=2", oneWith(", labels: {\"a.$T\": b}"), "as a key"},
	{"the env file of a service", "T=1", "T=2", oneWith(", env_file: .env"), "may hand .env"},
	{"an env file in the long form", "T=1", "T=2", oneWith(", env_file: [{path: ./x/../.env, required: false}]"), "may hand .env"},
	{"an env file of another folder's service", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "b/compose.yaml": "services: {a: {image: c, env_file: ../.env}}"}, "may hand .env"},
	{"a mounted folder", "T=1", "T=2", oneWith(", volumes: [\".:/app\"]"), "may hand .env"},
	{"a mounted folder in the long form", "T=1", "T=2", oneWith(", volumes: [{type: bind, source: ./, target: /app}]"), "may hand .env"},
	{"a mounted folder of a variable", "T=1\nD=.\n", "T=2\nD=.\n", oneWith(", volumes: [\"${D}:/app\"]"), "may hand .env"},
	{"a mounted folder of a variable that is not known", "T=1", "T=2", oneWith(", volumes: [\"${D}:/app\"]"), "may hand .env"},
	{"an env file where another variable is set", "T=1\nD=x\n", "T=2\nD=x\n", oneWith(", env_file: \"${D:+./.env}\""), "may hand .env"},
	{"an env file by a default of a default", "T=1", "T=2", oneWith(", env_file: \"${D:-${E:-./.env}}\""), "may hand .env"},
	{"a mounted folder of a variable that another one makes", "T=1\nX=.\nD=$X\n", "T=2\nX=.\nD=$X\n", oneWith(", volumes: [\"${D:-./data}:/app\"]"), "may hand .env"},
	{"a mounted folder of a variable that is empty", "T=1\nD=\n", "T=2\nD=\n", oneWith(", volumes: [\"./${D-data}:/app\"]"), "may hand .env"},
	{"a mounted folder of a variable of the file that includes", "T=1\nD=..\n", "T=2\nD=..\n", map[string]string{"compose.yaml": "include: [b/x.yaml]\nservices: {a: {image: \"a/b:${T}\"}}", "b/x.yaml": "services: {b: {image: c, volumes: [\"${D:-./data}:/app\"]}}"}, "may hand .env"},
	{"a mounted folder of a variable of a further env file", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", volumes: [\"${D:-./data}:/app\"]}}", "gitring.yaml": "apps: [{path: ., env_files: [prod]}]", "prod": "D=.\n"}, "may hand .env"},
	{"handed on by the name in another variable", "T=1\nN=T\n", "T=2\nN=T\n", oneWith(", environment: [\"${N}\"]"), "outside of an image"},
	{"handed on in a form that looks like nothing", "T=1", "T=2", oneWith(", environment: [!!binary VA==]"), "form that is not read"},
	{"in a Compose file of wide characters", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.yaml": wide("services: {b: {image: c, environment: [T]}}")}, "x.yaml uses outside"},
	{"in a second document of a Compose file of another ending", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.conf": "# nothing\n---\n---\nservices: {b: {image: c, environment: [T]}}"}, "x.conf uses outside"},
	{"a config", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}\nconfigs: {c: {file: .env}}"}, "may hand .env"},
	{"a link to it", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", env_file: e}}", "e": ">.env"}, "by another name"},
	{"a link to its folder", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "b/c": ">.."}, "by another name"},
	{"paths that begin elsewhere", "T=1", "T=2", map[string]string{"compose.yaml": "include: [{path: b/x.yaml, project_directory: .}]\nservices: {a: {image: \"a/b:${T}\"}}"}, "project_directory"},
	{"files of elsewhere", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "gitring.yaml": "apps: [{name: a, path: ., files: [compose.yaml, b/x.yaml]}]"}, "another folder"},
	{"files of elsewhere by Compose's variable", "T=1\nCOMPOSE_FILE=a.yaml:b/x.yaml\n", "T=2\nCOMPOSE_FILE=a.yaml:b/x.yaml\n", oneWith(""), "COMPOSE_FILE"},
	{"Compose's own variable", "COMPOSE_FILE=a", "COMPOSE_FILE=b", oneWith(""), "no variable of an image"},
	{"whose home it is", "HOME=1", "HOME=2", oneWith(""), "no variable of an image"},
	{"in another Compose file", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "more/x.yml": "services: {b: {image: c:1, user: \"${T}\"}}"}, "more/x.yml uses outside"},
	{"in an env file", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\", env_file: x.conf}}", "x.conf": "\nVERSION=${T}\n"}, "line 2 of x.conf"},
	{"inherited by an env file", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.conf": "export T\n"}, "line 1 of x.conf"},
	{"in a Compose file of another ending", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.txt": `user: "\x24{T}"`}, "line 1 of x.txt"},
	{"handed on in a Compose file of another ending", "T=1", "T=2", map[string]string{"compose.yaml": "include: [x.conf]\nservices: {a: {image: \"a/b:${T}\"}}", "x.conf": "services:\n  b:\n    image: c:1\n    environment:\n      - T\n"}, "line 5 of x.conf"},
	{"its file handed on in a Compose file of another ending", "T=1", "T=2", map[string]string{"compose.yaml": "include: [x.conf]\nservices: {a: {image: \"a/b:${T}\"}}", "x.conf": "services: {b: {image: c, env_file: .env}}"}, "may hand .env"},
	{"beside a Compose file that is too large", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.yaml": "services: {b: {image: c}}\n" + strings.Repeat("#", 1<<20)}, "too large"},
	{"in a file that cannot be read", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}", "x.yaml": "{ T"}, "no YAML"},
	{"by an anchor of the image", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: &i \"a/b:${T}\", command: *i}}"}, "in another way"},
	{"by an alias of a template", "T=1", "T=2", map[string]string{"compose.yaml": "x-a: &a {image: \"a/b:${T}\"}\nservices: {c: {image: d:1, labels: *a}}"}, "by an alias"},
	{"by an alias of an alias", "T=1", "T=2", map[string]string{"compose.yaml": "x-a: &a {image: \"a/b:${T}\"}\nx-b: &b {<<: *a}\nservices: {c: {image: d:1, labels: *b}}"}, "by an alias"},
	{"an image elsewhere", "T=1", "T=2", oneWith(", environment: {image: \"a/b:${T}\"}"), "outside of an image"},
	{"an image of gitring's own keys", "T=1", "T=2", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}\"}}\nx-gitring: {image: \"a/b:${T}\"}"}, "outside of an image"},
	{"in .env itself", "T=1\nU=$T\n", "T=2\nU=$T\n", oneWith(""), "line 2 of .env"},
	{"no image uses it", "T=1\n", "T=2\n", map[string]string{"compose.yaml": "services: {a: {image: \"a/b:1\"}}"}, "which no image"},
	{"no image beside it uses it", "T=1\n", "T=2\n", map[string]string{"b/compose.yaml": "services: {a: {image: \"a/b:${T}\"}}"}, "which no image"},
	{"a line more", "T=1\n", "T=2\nX=1\n", oneWith(""), "lines"},
	{"a line less", "T=1\nX=1\n", "T=2\n", oneWith(""), "lines"},
	{"another order", "A=1\nB=2\n", "B=2\nA=1\n", oneWith(""), "changes more"},
	{"another name", "T=1\n", "U=2\n", oneWith(""), "changes more"},
	{"other quotes", "T=\"1\"\n", "T='2'\n", oneWith(""), "changes more"},
	{"quotes that are added", "T=1\n", "T=\"2\"\n", oneWith(""), "changes more"},
	{"another comment", "T=1 # a\n", "T=2 # b\n", oneWith(""), "changes more"},
	{"only a comment", "# a\nT=1\n", "# b\nT=1\n", oneWith(""), "NAME=<tag>"},
	{"other line ends", "T=1\r\n", "T=2\n", oneWith(""), "changes more"},
	{"twice", "T=1\nT=1\n", "T=1\nT=2\n", oneWith(""), "another line names too"},
	{"twice, by export", "export T=1\nT=1\n", "export T=1\nT=2\n", oneWith(""), "another line names too"},
	{"twice, by a colon", "T: 1\nT=1\n", "T: 1\nT=2\n", oneWith(""), "another line names too"},
	{"an export", "export T=1\n", "export T=2\n", oneWith(""), "NAME=<tag>"},
	{"in the value of another", "X=\"a\nT=1\n\"\n", "X=\"a\nT=2\n\"\n", oneWith(""), "form that is not read"},
	{"behind an escape", "X=\"a\\\"\"\nT=1\n", "X=\"a\\\"\"\nT=2\n", oneWith(""), "form that is not read"},
	{"behind a lone carriage return", "X=1\rT=1\nT=1\n", "X=1\rT=1\nT=2\n", oneWith(""), "form that is not read"},
	{"a variable", "T=$X\n", "T=2\n", oneWith(""), "NAME=<tag>"},
	{"a text behind it", "T=1\n", "T=2 x\n", oneWith(""), "NAME=<tag>"},
	{"no digest any more", "T=1" + digestA, "T=2", oneWith(""), "takes a digest away"},
	{"a digest where the image has one", "T=1", "T=2" + digestB, map[string]string{"compose.yaml": "services: {a: {image: \"a/b:${T}" + digestA + "\"}}"}, "makes no tag"},
}

// filesOf are the files of a commit, .env among them.
func filesOf(c *envCase) (out []commitFile) {
	out = append(out, commitFile{path: ".env", text: c.is})
	for name, text := range c.files {
		to, link := strings.CutPrefix(text, ">")
		out = append(out, commitFile{path: name, text: to, link: link})
	}
	return out
}

// envJudged is what is said of a case.
func envJudged(c *envCase, grants ...Binding) string {
	moves, why := envMoves(c.was, c.is)
	if why != "" {
		return why
	}
	for _, m := range moves {
		if why := m.movesOnlyImages(".env", filesOf(c), grants); why != "" {
			return why
		}
	}
	return ""
}

func TestRoleImagesMovesTagsInEnvThatOnlyImagesUse(t *testing.T) {
	grants := Binding{Signer: "bot", Roles: []Role{RoleImages}}
	for _, tt := range envMoved {
		require.Empty(t, envJudged(&tt, grants), tt.name)
	}
	for _, tt := range envBeyond {
		require.Contains(t, envJudged(&tt, grants), tt.why, tt.name)
	}
	patch := Binding{Moves: []string{"patch"}}
	require.Contains(t, envJudged(&envMoved[0], patch), "compose.yaml:3 moves 1.27 to 1.28, a move of kind minor")
	require.Empty(t, envJudged(&envCase{was: "T=1.0.1", is: "T=1.0.2", files: oneWith("")}, patch))
	require.Contains(t, envJudged(&envCase{was: "T=1", is: "T=2", files: map[string]string{"compose.yaml": "services: {a: {image: \"a/b:1.0.${T}\"}, c: {image: \"a/c:${T}\"}}"}}, patch), "kind major",
		"each tag that it makes is a move of its own")
}

// A folder's own .env counts, and only there.
func TestTheEnvOfEachFolderIsItsOwn(t *testing.T) {
	files := []commitFile{
		{path: "apps/web/.env", text: "T=2"},
		{path: "apps/web/compose.yaml", text: "services: {a: {image: \"a/b:${T}\", env_file: [web.env]}}"},
		{path: "apps/db/.env", text: "T=7"},
		{path: "apps/db/compose.yaml", text: "services: {a: {image: \"a/b:${T}\", env_file: .env}}"},
		{path: "README.md", text: "T is the tag. Write `T=2`."},
	}
	grants := []Binding{{}}
	m := envMove{1, "T", "1", "2"}
	require.Empty(t, m.movesOnlyImages("apps/web/.env", files, grants))
	require.Contains(t, m.movesOnlyImages("apps/db/.env", files, grants), "may hand apps/db/.env")
	files[3].text = strings.Replace(files[3].text, ".env", "../web/.env", 1)
	require.Empty(t, m.movesOnlyImages("apps/db/.env", files, grants))
	require.Contains(t, m.movesOnlyImages("apps/web/.env", files, grants), "may hand apps/web/.env")
	for _, folder := range []string{"..", "../..", "../web", "../web/", "./../../apps"} {
		files[3].text = "services: {a: {image: \"a/b:${T}\", volumes: [\"" + folder + ":/x\"]}}"
		require.Contains(t, m.movesOnlyImages("apps/web/.env", files, grants), "may hand", folder)
	}
}

// TestFortyCommitsOfABot: twenty that role images may make, and twenty that it may not.
func TestFortyCommitsOfABot(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bot", "")
	stack := "services:\n"
	for i, tag := range []string{
		"nginx:1.27", "nginx:1.27.1-alpine3.20", "lscr.io/linuxserver/sonarr:4.0.9-ls78", "ghcr.io/home-assistant/home-assistant:2024.12.1", "traefik:v3.1.4",
		"minio/minio:RELEASE.2024-10-02T17-50-41Z", "postgres:16.4", "a/b:1.0" + digestA, "registry.example.org:5000/a/b:1", "a/c:stable" + digestA,
	} {
		stack += fmt.Sprintf("  s%d:\n    image: %s\n", i, tag)
	}
	flow := "services: {a: {image: \"redis:7.2\", user: \"1\"}, b: {image: 'redis:7.4'}}\r\n# end\r\n"
	env := "# tags\nA_TAG=1.2.3\nB_TAG=v4.5 # b\nPORT=80\n"
	envStack := "services:\n  a: {image: \"x/a:${A_TAG}\"}\n  b:\n    image: x/b:${B_TAG:-v1}\n    ports: [\"${PORT}:80\"]\n"
	files := map[string]string{"a/compose.yaml": stack, "b/compose.yaml": flow, "c/.env": env, "c/compose.yaml": envStack, "README.md": "hello"}
	anchor := y.edit("alice", "one", files)
	type edit struct{ file, from, to string }
	good := [][]edit{
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:1.28\n"}},
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:2.0\n"}},
		{{"a/compose.yaml", "1.27.1-alpine3.20", "1.27.2-alpine3.20"}},
		{{"a/compose.yaml", "1.27.1-alpine3.20", "1.28.0-alpine3.21"}},
		{{"a/compose.yaml", "4.0.9-ls78", "4.0.10-ls79"}},
		{{"a/compose.yaml", "4.0.9-ls78", "4.1.0-ls1"}},
		{{"a/compose.yaml", "2024.12.1", "2025.1.0"}},
		{{"a/compose.yaml", "v3.1.4", "v3.2.0"}},
		{{"a/compose.yaml", "2024-10-02T17-50-41Z", "2024-11-07T00-52-20Z"}},
		{{"a/compose.yaml", "16.4", "17.0"}},
		{{"a/compose.yaml", "a/b:1.0" + digestA, "a/b:1.1" + digestB}},
		{{"a/compose.yaml", "5000/a/b:1", "5000/a/b:2"}},
		{{"a/compose.yaml", "stable" + digestA, "stable" + digestB}},
		{{"a/compose.yaml", "postgres:16.4", "postgres:16.4" + digestB}},
		{{"b/compose.yaml", "7.2", "7.3"}},
		{{"b/compose.yaml", "redis:7.4", "redis:8.0" + digestB}},
		{{"c/.env", "1.2.3", "1.2.4"}},
		{{"c/.env", "v4.5", "v5.0"}},
		{{"c/.env", "1.2.3", "1.3.0" + digestA}},
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:1.29\n"}, {"b/compose.yaml", "7.2", "7.4"}, {"c/.env", "v4.5", "v4.6"}},
	}
	bad := [][]edit{
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:1.26\n"}},
		{{"a/compose.yaml", "4.0.9-ls78", "4.0.9-ls77"}},
		{{"a/compose.yaml", "2024.12.1", "2023.12.2"}},
		{{"a/compose.yaml", "nginx:1.27\n", "nginz:1.28\n"}},
		{{"a/compose.yaml", "lscr.io/linuxserver", "ghcr.io/linuxserver"}},
		{{"a/compose.yaml", "5000/a/b:1", "5001/a/b:2"}},
		{{"a/compose.yaml", "v3.1.4", "3.2.0"}},
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:latest\n"}},
		{{"a/compose.yaml", "postgres:16.4", "postgres:17.0-alpine"}},
		{{"a/compose.yaml", "a/b:1.0" + digestA, "a/b:1.1"}},
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:1.28 # new\n"}},
		{{"a/compose.yaml", "  s0:", "  s0x:"}},
		{{"b/compose.yaml", "7.2", "7.3"}, {"b/compose.yaml", "user: \"1\"", "user: \"0\""}},
		{{"b/compose.yaml", "# end\r\n", "# end\n"}},
		{{"b/compose.yaml", "# end", "# END"}},
		{{"c/.env", "1.2.3", "1.2.2"}},
		{{"c/.env", "80", "81"}},
		{{"c/.env", "# b", "# c"}},
		{{"c/.env", "PORT=80\n", "PORT=80\nX=1\n"}},
		{{"a/compose.yaml", "nginx:1.27\n", "nginx:1.28\n"}, {"README.md", "hello", "hullo"}},
	}
	trust := y.trust(bound(Binding{Signer: "alice@example.org"}, Binding{Signer: "bot@example.org", Roles: []Role{RoleImages}}))
	judged := func(edits []edit) *ring.Refusal {
		y.git("reset", "-q", "--hard", string(anchor))
		changed := map[string]string{}
		for _, e := range edits {
			text := changed[e.file]
			if text == "" {
				text = files[e.file]
			}
			require.Equal(t, 1, strings.Count(text, e.from), "%v", e)
			changed[e.file] = strings.Replace(text, e.from, e.to, 1)
		}
		_, refusal, err := trust.Range(y, anchor, y.edit("bot", "two", changed), noon, nil)
		require.NoError(t, err)
		return refusal
	}
	require.Len(t, good, 20)
	require.Len(t, bad, 20)
	for _, edits := range good {
		require.Nil(t, judged(edits), "%v", edits)
	}
	for _, edits := range bad {
		refusal := judged(edits)
		require.NotNil(t, refusal, "%v", edits)
		require.Equal(t, ring.NotImagesOnly, refusal.Code, "%v", edits)
	}
}

// What a file is moves with no tag: not whether it may be executed, and not whether it is a link.
func TestRoleImagesChangesNoModeOfAFile(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bot", "")
	const was, is = "image: nginx:1.27", "image: nginx:1.28"
	blob := func(text string) string {
		file := filepath.Join(t.TempDir(), "blob")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return y.git("hash-object", "-w", file)
	}
	staged := func(mode, text string) {
		y.git("update-index", "--add", "--cacheinfo", mode+","+blob(text)+",a/compose.yaml")
	}
	trust := y.trust(bound(Binding{Signer: "alice@example.org"}, Binding{Signer: "bot@example.org", Roles: []Role{RoleImages}}))
	for _, tt := range []struct {
		name, from, to, text string
		passes               bool
	}{
		{"a move", "100644", "100644", is, true},
		{"a move of what may be executed", "100755", "100755", is, true},
		{"may be executed", "100644", "100755", was, false},
		{"a move, and may be executed", "100644", "100755", is, false},
		{"a move, and may not be executed", "100755", "100644", is, false},
		{"a link that becomes a file", "120000", "100644", is, false},
		{"a file that becomes a link", "100644", "120000", is, false},
		{"where a link leads", "120000", "120000", is, false},
	} {
		staged(tt.from, was)
		anchor := y.commit("alice", noon, "one "+tt.name)
		staged(tt.to, tt.text)
		_, refusal, err := trust.Range(y, anchor, y.commit("bot", noon, "two "+tt.name), noon, nil)
		require.NoError(t, err)
		if tt.passes {
			require.Nil(t, refusal, tt.name)
			continue
		}
		require.NotNil(t, refusal, tt.name)
		require.Equal(t, ring.NotImagesOnly, refusal.Code, tt.name)
	}
}

// imageMutations is how many changed texts are tried; make fuzz asks for 10,000.
func imageMutations(t *testing.T) int {
	s := os.Getenv("GITRING_IMAGE_MUTATIONS")
	if s == "" {
		return 300
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

var (
	oracleTag   = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*=["']?)[A-Za-z0-9_][A-Za-z0-9_.-]*(?:@sha256:[0-9a-f]{64})?(["']?(?:[ \t]+#[^\r\n]*)?\r?)$`)
	oracleImage = regexp.MustCompile(`(?:^|[\s{,])image: *(?:"[^"\n]*"|[^\s,{}]*(?:\$\{[^}]*\}[^\s,{}]*)*)`)
)

// Whatever passes changes tags alone, of names that stand behind image alone. The oracle knows
// neither YAML nor variables.
func TestNothingInEnvPassesThatIsMoreThanATag(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	words := []string{"1", ".", "\n", "\r", "=", "#", " ", "\"", "'", "\\", "$T", "${T}", "export ", "T=1", "U", "@sha256:", "PORT", "-a", ":", "/", "é"}
	uses := []string{", user: \"${T}\"", ", command: $T", ", env_file: .env", ", environment: [T, WEB_TAG]", ", x: \"${WEB_TAG:-1}\"", "", "", ", labels: {a: b}", ", hostname: \"$A\""}
	passed := 0
	for range imageMutations(t) {
		c := envMoved[r.Intn(len(envMoved))]
		at, word := r.Intn(len(c.is)+1), words[r.Intn(len(words))]
		end := min(len(c.is), at+r.Intn(3))
		c.is = c.is[:at] + word + c.is[end:]
		files := map[string]string{}
		for name, text := range c.files {
			files[name] = text
		}
		if use := uses[r.Intn(len(uses))]; use != "" {
			files["more.yaml"] = "services: {z: {image: \"z:1\"" + use + "}}"
		}
		c.files = files
		if c.is == c.was || envJudged(&c, Binding{Moves: []string{"any"}}) != "" {
			continue
		}
		passed++
		a, b := strings.Split(c.was, "\n"), strings.Split(c.is, "\n")
		require.Len(t, b, len(a), "%q -> %q", c.was, c.is)
		for i := range a {
			if a[i] == b[i] {
				continue
			}
			x, y := oracleTag.FindStringSubmatch(a[i]), oracleTag.FindStringSubmatch(b[i])
			require.NotNil(t, x, "%q", a[i])
			require.NotNil(t, y, "%q -> %q", a[i], b[i])
			require.Equal(t, x[1:], y[1:], "%q -> %q", a[i], b[i])
			name := strings.TrimRight(x[1], "=\"'")
			for file, text := range c.files {
				rest := oracleImage.ReplaceAllString(text, "")
				require.NotRegexp(t, `\$\{?`+name+`\b|\[`+name+`\b|, `+name+`\b|env_file: \.env`, rest, file)
			}
		}
	}
	require.NotZero(t, passed, "some are tags all the same")
}
