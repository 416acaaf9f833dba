package manifest

import (
	"maps"
	"testing"

	"github.com/gitring/gitring/ring"
)

// Lessons L17 and L58: what a service mounts of the commit is part of what it
// is. An edit of it, with no word of the Compose file changed, is a new version of
// the services that mount it and of no other.
func TestAnEditedFileIsANewVersionOfWhoMountsItAndOfNobodyElse(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml": `
services:
  web:
    image: a
    configs: [settings]
    volumes: ["./conf:/conf:ro", "./motd:/etc/motd"]
  db:
    image: b
    secrets: [key]
    env_file: [db.env]
  other: {image: c}
configs: {settings: {file: ./settings.ini}}
secrets: {key: {file: ./key.pem}}
`,
		"web/settings.ini": "a=1", "web/conf/deep/x": "x", "web/motd": "hello", "web/key.pem": "key", "web/db.env": "LEVEL=1", "web/README.md": "r",
	}
	versions := func(files map[string]string) map[string]ring.Version {
		app := accepted(t, files)
		out := map[string]ring.Version{}
		for i := range app.Services {
			s := &app.Services[i]
			out[s.Name] = ring.VersionOf(&app, s, ring.Pin{Image: "x@sha256:1"})
		}
		return out
	}
	before := versions(files)
	for file, who := range map[string]string{
		"web/settings.ini": "web", "web/conf/deep/x": "web", "web/conf/new": "web", "web/motd": "web", "web/key.pem": "db", "web/db.env": "db", "web/README.md": "",
	} {
		after := versions(with(maps.Clone(files), file, "LEVEL=2"))
		for name := range before {
			if (before[name] != after[name]) != (name == who) {
				t.Errorf("%s: the version of %s: %s -> %s", file, name, before[name].Short(), after[name].Short())
			}
		}
	}
}
