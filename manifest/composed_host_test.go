package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// However a value of the host comes into a service, by an alias, a file that is
// included or merged, or the name of a volume: nobody finds it by trying hashes.
func TestNoHashIsMadeOfAHostsValueThatComesByAnotherWay(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"an alias":              {"web/compose.yaml": "x-c: &c {user: \"${PORT}\"}\nservices:\n  web:\n    <<: *c\n    image: a\n"},
		"an alias of a list":    {"web/compose.yaml": "x-c: &c [\"${PORT}:80\"]\nservices:\n  web:\n    image: a\n    ports: *c\n"},
		"an alias of a service": {"web/compose.yaml": "services:\n  other: &o {image: a, user: \"${PORT}\"}\n  web: *o\n"},
		"an include":            {"web/compose.yaml": "include: [more.yaml]\n", "web/more.yaml": "services:\n  web: {image: a, user: \"${PORT}\"}\n"},
		"an override":           {"web/compose.yaml": "services:\n  web: {image: a}\n", "web/compose.override.yaml": "services:\n  web: {user: \"${PORT}\"}\n"},
		"a volume's name":       {"web/compose.yaml": "services:\n  web: {image: a, deploy: {replicas: 1}, volumes: [\"data:/d\"]}\nvolumes: {data: {name: \"v${PORT}\"}}\n"},
		"an env file's own":     {"web/compose.yaml": "services:\n  web: {image: a, env_file: c.env}\n", "web/c.env": "A=${PORT}\n"},
		"a default":             {"web/compose.yaml": "services:\n  web: {image: a, user: \"${NOT:-${PORT}}\"}\n"},
		"whether it is set":     {"web/compose.yaml": "services:\n  web: {image: a, user: \"${NOT-${PORT}}\"}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(port string) (hash string, ok bool) {
				s := settings()
				s.Env = map[string]map[string][]byte{"web": {".env": []byte("PORT=" + port + "\n")}}
				s.EnvKey = []byte("key")
				plan, _ := Read(repo(files), s)
				if len(plan.Apps) != 1 {
					t.Logf("%v", plan.Refused)
					return "", false
				}
				a := &plan.Apps[0]
				web, found := a.Service("web")
				require.True(t, found)
				hash, _ = a.ComposeHash(&web, ring.Composing{DataRoot: "/srv/data"})
				return hash, true
			}
			one, ok := read("4711")
			two, _ := read("4712")
			if ok {
				require.Equal(t, one, two, "the hash tells the value")
			}
		})
	}
}
