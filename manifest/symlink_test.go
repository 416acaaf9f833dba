package manifest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// linked is a commit with links, written as "file -> target".
func linked(files map[string]string) *ring.Commit {
	c := repo(map[string]string{})
	for name, body := range files {
		if target, is := strings.CutPrefix(body, "-> "); is {
			symlinkAt(c, name, target)
			continue
		}
		c.Tree.(fstest.MapFS)[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return c
}

// V42: what a link leads to is read as a checkout would open it, if the commit holds it
// under the source's path.
func TestALinkIsWhatItLeadsTo(t *testing.T) {
	const list = "version: 1\napps: [{path: hosts/one/dns, name: web}]\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		image string
	}{
		{"a Compose file", map[string]string{"web/compose.yaml": "-> ../all/c.yaml", "all/c.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
		{"an override file", map[string]string{
			"web/compose.yaml": "services: {web: {image: 'a:1'}}\n", "web/compose.override.yaml": "-> ../all/o.yaml", "all/o.yaml": "services: {web: {image: 'a:2'}}\n",
		}, "a:2"},
		{"a link to a link", map[string]string{"web/compose.yaml": "-> ../b", "b": "-> all/c.yaml", "all/c.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
		{"a link over a linked folder", map[string]string{"web/compose.yaml": "-> ../dir/c.yaml", "dir": "-> ./all/", "all/c.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
		{"up from a linked folder", map[string]string{"web/compose.yaml": "-> ../dir/../c.yaml", "dir": "-> all/deep", "all/deep/x": "", "all/c.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
		{"paths start where the link stands", map[string]string{
			"web/compose.yaml": "-> ../all/c.yaml", "all/c.yaml": "services: {web: {extends: {file: base.yaml, service: b}}}\n",
			"web/base.yaml": "services: {b: {image: 'a:1'}}\n", "all/base.yaml": "services: {b: {image: 'a:2'}}\n",
		}, "a:1"},
		{"what is included", map[string]string{"web/compose.yaml": "include: [x.yaml]\n", "web/x.yaml": "-> ../all/c.yaml", "all/c.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
		{"what is extended", map[string]string{"web/compose.yaml": "services: {web: {extends: {file: x.yaml, service: b}}}\n", "web/x.yaml": "-> ../all/c.yaml", "all/c.yaml": "services: {b: {image: 'a:1'}}\n"}, "a:1"},
		{"an app's folder", map[string]string{gitringFile: list, "hosts/one/dns": "-> ../../stacks/dns", "stacks/dns/compose.yaml": "services: {web: {image: 'a:$V'}}\n", "stacks/dns/.env": "V=1\n"}, "a:1"},
		{"a folder above an app's", map[string]string{gitringFile: list, "hosts/one": "-> ../stacks", "stacks/dns/compose.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
		{"gitring.yaml", map[string]string{gitringFile: "-> all/list.yaml", "all/list.yaml": list, "hosts/one/dns/compose.yaml": "services: {web: {image: 'a:1'}}\n"}, "a:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := Read(linked(tt.files), settings())
			require.Nil(t, plan.Refusal)
			require.Empty(t, plan.Refused)
			require.Len(t, plan.Apps, 1)
			require.Equal(t, tt.image, serviceOf(t, plan.Apps[0], "web").Spec.Image)
		})
	}
}

func TestALinkThatIsReadIsTold(t *testing.T) {
	plan, _ := Read(linked(map[string]string{"web/compose.yaml": "-> ../all/c.yaml", "all/c.yaml": "services: {web: {image: a}}\n"}), settings())
	require.Contains(t, plan.Apps[0].Notes, "web/compose.yaml is read from all/c.yaml: web/compose.yaml is a symlink")
	require.Subset(t, plan.Apps[0].Naming, []string{"web/compose.yaml", "all/c.yaml"}, "who writes the link chooses the file")
}

// A change of what a link leads to changes the app, and so does another target.
func TestAMountedLinkIsTheContentItLeadsTo(t *testing.T) {
	hash := func(files map[string]string) string {
		files["web/compose.yaml"] = "services: {web: {image: a, volumes: ['./conf:/conf:ro']}}\n"
		plan, contents := Read(linked(files), settings())
		require.Empty(t, plan.Refused)
		m := plan.Apps[0].Services[0].Spec.Mounts[0]
		require.Equal(t, ring.MountContent, m.Kind)
		require.Contains(t, contents, m.Source)
		return m.Source
	}
	plain := hash(map[string]string{"web/conf/a": "1"})
	require.Equal(t, plain, hash(map[string]string{"web/conf": "-> ../all", "all/a": "1"}))
	require.NotEqual(t, plain, hash(map[string]string{"web/conf": "-> ../all", "all/a": "2"}))
	file := hash(map[string]string{"web/conf": "1"})
	require.Equal(t, file, hash(map[string]string{"web/conf": "-> ../all/b", "all/b": "1"}), "by the name that it is mounted by")
	require.NotEqual(t, file, hash(map[string]string{"web/conf": "-> ../all/b", "all/b": "2"}))
}

func TestALinkOutOfTheCommitIsRefused(t *testing.T) {
	chain := map[string]string{}
	for i := range 9 {
		chain[fmt.Sprintf("l%d", i)] = fmt.Sprintf("-> l%d", i+1)
	}
	chain["l9"] = "services: {web: {image: a}}\n"
	for _, tt := range []struct {
		name, target, path string
		more               map[string]string
		says               string
	}{
		{name: "to an absolute path", target: "/etc/passwd", says: "leads to an absolute path"},
		{name: "above the commit", target: "../../all/c.yaml", says: "leads out of the source's path"},
		{name: "to nothing", target: "../all/none.yaml", says: "leads to all/none.yaml, which the commit does not hold"},
		{name: "over a folder to nothing", target: "../b/none.yaml", more: map[string]string{"b": "-> all"}, says: "leads to all/none.yaml, which the commit does not hold"},
		{name: "to what is below a file", target: "../all/c.yaml/x", says: "leads to all/c.yaml/x, which the commit does not hold"},
		{name: "nowhere", target: "", says: "leads nowhere"},
		{name: "further than a path can lead", target: strings.Repeat("./", 2048) + "x", says: "leads nowhere"},
		{name: "to itself", target: "compose.yaml", says: "leads in a circle"},
		{name: "in a circle of two", target: "../b", more: map[string]string{"b": "-> web/compose.yaml"}, says: "leads in a circle"},
		{name: "over too many links", target: "../l0", more: chain, says: "leads in a circle, or over more than 8 links"},
		{name: "out by another link", target: "../b/c.yaml", more: map[string]string{"b": "-> /srv"}, says: "leads to an absolute path"},
		{name: "out by a missing folder", target: "../none/../../../x", says: "leads out of the source's path"},
		{name: "out of the source's path", path: "web", target: "../all/c.yaml", says: "leads out of the source's path"},
		{name: "out of the source's path and back", path: "web", target: "../way/real.yaml", more: map[string]string{"way": "-> web", "web/real.yaml": "services: {web: {image: a}}\n"}, says: "leads out of the source's path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"web/compose.yaml": "-> " + tt.target, "all/c.yaml": "services: {web: {image: a}}\n"}
			for name, body := range tt.more {
				files[name] = body
			}
			s := settings()
			s.Path = tt.path
			_, all := Check(linked(files), s)
			require.Len(t, all, 1)
			require.Equal(t, ring.SymlinkInManifest, all[0].Code)
			require.Equal(t, "web/compose.yaml", all[0].File)
			require.Contains(t, all[0].Says, "symlink web/compose.yaml "+tt.says)
		})
	}
}

// A repository may link each app's .env to one that only the host has.
func TestALinkedEnvMayBeTheHosts(t *testing.T) {
	onHost := func(files map[string]string, app map[string]string) Settings {
		s := withShared(files)
		for name, text := range app {
			s.Env["web"] = map[string][]byte{name: []byte(text)}
		}
		return s
	}
	for _, tt := range []struct {
		name, target, service string
		host                  Settings
		v                     string // of the host; "" is refused
		says, hint            string
	}{
		{name: "the host has nothing", target: "../all/prod.env", host: onHost(nil, nil), says: "the commit does not hold all/prod.env, to which web/.env is a symlink", hint: "commit the file itself, or put it into the host's env folder as <env.dir>/_shared/prod/all/prod.env"},
		{name: "the host has what it leads to", target: "../all/prod.env", host: onHost(map[string]string{"all/prod.env": "V=secret\n"}, nil), v: "secret"},
		{name: "the host has that of all apps", target: "../.env", host: onHost(map[string]string{".env": "V=secret\n"}, nil), v: "secret"},
		{name: "the host has the app's", target: "../all/prod.env", host: onHost(nil, map[string]string{".env": "V=secret\n"}), v: "secret"},
		{name: "in the app's folder", target: "prod.env", host: onHost(nil, map[string]string{"prod.env": "V=secret\n"}), v: "secret"},
		{name: "an absolute path", target: "/srv/.env", host: onHost(nil, nil), says: "symlink web/.env leads to an absolute path", hint: "put it into the host's env folder as <env.dir>/web/.env"},
		{name: "an absolute path, and the host has the app's", target: "/srv/.env", host: onHost(nil, map[string]string{".env": "V=secret\n"}), v: "secret"},
		{name: "an env_file", target: "../all/prod.env", service: ", env_file: .env", host: onHost(map[string]string{"all/prod.env": "V=secret\n"}, nil), v: "secret"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := "services: {w: {image: a, environment: {V: '${V:-none}'}}}\n"
			if tt.service != "" {
				body = "services: {w: {image: a" + tt.service + "}}\n"
			}
			c := linked(map[string]string{"web/compose.yaml": body, "web/.env": "-> " + tt.target})
			if tt.v != "" {
				require.Equal(t, map[string]string{"V": tt.v}, environmentIn(t, c, tt.host, "web"))
				return
			}
			_, all := Check(c, tt.host)
			require.Len(t, all, 1)
			require.Equal(t, ring.SymlinkInManifest, all[0].Code)
			require.Equal(t, "web/.env", all[0].File)
			require.Equal(t, tt.says, all[0].Says)
			require.Contains(t, all[0].Hint, tt.hint)
		})
	}
}
