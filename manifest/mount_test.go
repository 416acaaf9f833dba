package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// accepted reads a commit with the one app web, which is not refused.
func accepted(t *testing.T, files map[string]string) ring.App {
	t.Helper()
	plan, _ := Read(repo(files), settings())
	if len(plan.Apps) != 1 || plan.Refused != nil {
		t.Fatal(dump(t, plan))
	}
	return plan.Apps[0]
}

func notes(a ring.App) string { return strings.Join(a.Notes, "\n") }

func TestFormsOfMounts(t *testing.T) {
	for _, c := range []struct {
		name string
		line string // an entry of volumes; conf/a is held by the commit, data is not
		want ring.Mount
		note string
	}{
		{name: "an absolute path is the host's, made as the short form has it", line: "/srv/x:/d", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x", Create: true}},
		{name: "it is clean", line: "/srv//x/:/d:ro", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x", Create: true, ReadOnly: true}},
		{name: "the long form makes it too", line: "{type: bind, source: /srv/x, target: /d}", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x", Create: true}},
		{name: "but not when it says so", line: "{type: bind, source: /srv/x, target: /d, bind: {create_host_path: false}}", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x"}},
		{name: "SELinux labels", line: "/srv/x:/d:ro,Z", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x", Create: true, ReadOnly: true, SELinux: "Z"}},
		{name: "SELinux labels in long form", line: "{type: bind, source: ./data, target: /d, bind: {selinux: z}}", want: ring.Mount{Kind: ring.MountData, Source: "web/data", SELinux: "z"}},
		{name: "content is labelled for all that mount it", line: "./conf:/d:ro,Z", want: ring.Mount{Kind: ring.MountContent, ReadOnly: true, SELinux: "z"}},
		{name: "propagation is for policy", line: "/srv/x:/d:rshared", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x", Create: true, Propagation: "rshared"}},
		{name: "the engine's own propagation is none", line: "{type: bind, source: /srv/x, target: /d, bind: {propagation: rprivate, recursive: enabled}}", want: ring.Mount{Kind: ring.MountBind, Source: "/srv/x", Create: true}},
		{name: "words of a Mac are noted", line: "./data:/d:rw,cached", want: ring.Mount{Kind: ring.MountData, Source: "web/data"}, note: "cached of a mount means nothing"},
		{name: "words of a Mac in long form", line: "{type: bind, source: ./data, target: /d, consistency: delegated}", want: ring.Mount{Kind: ring.MountData, Source: "web/data"}, note: "delegated of a mount means nothing"},
		{name: "a volume that is not filled", line: "vol:/d:nocopy", want: ring.Mount{Kind: ring.MountVolume, Source: "vol", NoCopy: true}},
		{name: "a volume is labelled by the engine", line: "vol:/d:z", want: ring.Mount{Kind: ring.MountVolume, Source: "vol"}, note: "labels a volume by itself"},
		{name: "a tmpfs", line: "{type: tmpfs, target: /d, tmpfs: {size: 1m, mode: 0o700}}", want: ring.Mount{Kind: ring.MountTmpfs, Size: 1 << 20, Mode: 0o700}},
		{name: "a file of the commit is read-only and noted", line: "./conf/a:/d", want: ring.Mount{Kind: ring.MountContent, File: "a", ReadOnly: true}, note: "web/conf/a is mounted read-only from the commit"},
		{name: "the engine's socket is for policy", line: "/var/run/docker.sock:/d:ro", want: ring.Mount{Kind: ring.MountBind, Source: "/var/run/docker.sock", Create: true, ReadOnly: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := with(web("image: a", "volumes:", "  - "+c.line), "web/conf/a", "x")
			files["web/compose.yaml"] += "volumes: {vol: }\n"
			a := accepted(t, files)
			got := a.Services[0].Spec.Mounts
			c.want.Target = "/d"
			if len(got) == 1 && c.want.Kind == ring.MountContent && len(got[0].Source) == 64 {
				c.want.Source = got[0].Source
			}
			if d := cmp.Diff([]ring.Mount{c.want}, got); d != "" {
				t.Error(d)
			}
			if !strings.Contains(notes(a), c.note) {
				t.Errorf("%q is not in %q", c.note, notes(a))
			}
		})
	}
}

// docs/reference/manifest.md#mounts, sentence by sentence.
func TestModesOfAFolder(t *testing.T) {
	for _, c := range []struct {
		name, line, mode string
		kind             ring.MountKind
		readOnly, seed   bool
		note             string
	}{
		{name: "a held folder is content", line: "./conf:/d", kind: ring.MountContent, readOnly: true, note: "makes it writable data"},
		{name: "and when said so it is no news", line: "./conf:/d", mode: "./conf: content", kind: ring.MountContent, readOnly: true},
		{name: "marked read-only it is content", line: "./conf:/d:ro", kind: ring.MountContent, readOnly: true},
		{name: "seed is data with the commit's files", line: "./conf:/d", mode: "conf: seed", kind: ring.MountSeed, seed: true},
		{name: "data is not the commit's", line: "./conf:/d", mode: "./conf/: data", kind: ring.MountData, note: "is not written there"},
		{name: "another service reads the data of one", line: "./conf:/d:ro", mode: "./conf: data", kind: ring.MountData, readOnly: true, note: "although it is marked read-only"},
		{name: "a placeholder holds nothing", line: "./kept:/d", kind: ring.MountData, note: "created on first use"},
		{name: "nothing is held", line: "./none:/d", mode: "./none: data", kind: ring.MountData},
		{name: "the app's own folder", line: ".:/d", kind: ring.MountContent, readOnly: true, note: "holds the Compose files and .env too"},
		{name: "the app's own folder, seeded", line: ".:/d", mode: ".: seed", kind: ring.MountSeed, seed: true, note: "holds the Compose files and .env too"},
		{name: "a folder around the app's own", line: "../:/d", kind: ring.MountContent, readOnly: true, note: "holds the Compose files and .env too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := []string{"image: a", "volumes: ['" + c.line + "']"}
			if c.mode != "" {
				lines = append(lines, "x-gitring: {mounts: {"+c.mode+"}}")
			}
			files := with(with(web(lines...), "web/conf/a", "x"), "web/kept/README.md", "x")
			plan, contents := Read(repo(files), settings())
			if len(plan.Apps) != 1 {
				t.Fatal(dump(t, plan))
			}
			m := plan.Apps[0].Services[0].Spec.Mounts[0]
			if m.Kind != c.kind || m.ReadOnly != c.readOnly || (m.Seed != "") != c.seed || !strings.Contains(notes(plan.Apps[0]), c.note) {
				t.Errorf("%+v\n%s", m, notes(plan.Apps[0]))
			}
			if c.seed && contents[m.Seed].Hash != m.Seed {
				t.Error("the content to seed is not given")
			}
			if m.Outlives() == c.readOnly {
				t.Error("who may write it is not told")
			}
		})
	}
}

// A seeded file that changes is a new version, one of a data folder is none.
func TestASeedIsPartOfTheVersion(t *testing.T) {
	version := func(mode, text string) ring.Version {
		a := accepted(t, with(web("image: a", "volumes: ['./conf:/d']", "x-gitring: {mounts: {./conf: "+mode+"}}"), "web/conf/a", text))
		return ring.VersionOf(&a, &a.Services[0], pin)
	}
	if version("seed", "1") == version("seed", "2") {
		t.Error("a new file is not seeded")
	}
	if version("data", "1") != version("data", "2") {
		t.Error("what is not written changes the version")
	}
}

// The engine makes what it mounts upon, which it cannot in a read-only folder.
func TestContentHasWhatIsMountedUponIt(t *testing.T) {
	files := with(web("image: a", "volumes: ['.:/app', '/app/node_modules', './conf:/app/conf', './b:/app/x/b', './data:/app/conf/deep']"), "web/conf/a", "x")
	plan, contents := Read(repo(with(files, "web/b", "y")), settings())
	if len(plan.Apps) != 1 {
		t.Fatal(dump(t, plan))
	}
	held := map[string]string{}
	for _, m := range plan.Apps[0].Services[0].Spec.Mounts {
		if m.Kind == ring.MountContent && m.File == "" {
			for _, f := range contents[m.Source].Files {
				held[m.Target] += f.Path + " "
			}
		}
	}
	want := map[string]string{"/app": "b compose.yaml conf/a node_modules/.gitkeep x/b ", "/app/conf": "a deep/.gitkeep "}
	if d := cmp.Diff(want, held); d != "" {
		t.Error(d)
	}
}

func TestDataRootsOfApps(t *testing.T) {
	for _, c := range []struct {
		roots map[string]string
		want  string
	}{
		{nil, ""},
		{map[string]string{"": "/srv/a", "db": "/srv/b"}, "/srv/a"},
		{map[string]string{"": "/srv/a", "web": "/srv/c"}, "/srv/c"},
	} {
		s := settings()
		s.DataRoots = c.roots
		plan, _ := Read(repo(web("image: a", "volumes: ['./data:/d']")), s)
		if got := plan.Apps[0].DataRoot; got != c.want {
			t.Errorf("%v: data root %q, not %q", c.roots, got, c.want)
		}
	}
}

func TestRefusedMounts(t *testing.T) {
	long := func(rest string) []string {
		return []string{"image: a", "volumes:", "  - {source: ./x, target: /d, " + rest + "}"}
	}
	areRefused(t, []refused{
		{name: "a home", files: web("image: a", "volumes: ['~/x:/d']"), code: ring.UndefinedVariable, line: 4, says: "HOME", hint: "absolute path"},
		{name: "a path of Windows", files: web("image: a", `volumes: ['C:\x:/d']`), code: ring.BadValue, line: 4},
		{name: "an option with a letter wrong", files: web("image: a", "volumes:", "  - ./x:/d:r0"), code: ring.BadValue, line: 5, hint: "did you mean ro?"},
		{name: "a path that is not filled", files: web("image: a", "volumes:", "  - ./x:/d:nocopy"), code: ring.BadValue, line: 5, hint: "remove nocopy"},
		{name: "propagation of a volume", files: web("image: a", "volumes:", "  - vol:/d:rslave"), code: ring.BadValue, line: 5, says: "rslave is of paths"},
		{name: "propagation that is none", files: web(long("type: bind, bind: {propagation: up}")...), code: ring.BadValue, line: 5, hint: "rslave"},
		{name: "not all below", files: web(long("type: bind, bind: {recursive: readonly}")...), code: ring.Unsupported, line: 5, says: "API (1.44)"},
		{name: "a part that is none of the volume", files: web(long("type: volume, volume: {subpath: ../a}")...), code: ring.BadValue, line: 5, says: "no path inside of a volume"},
		{name: "a part by an absolute path", files: web(long("type: volume, volume: {subpath: /a}")...), code: ring.BadValue, line: 5, says: "no path inside of a volume"},
		{name: "a part of a volume without a name", files: web("image: a", "volumes:", "  - {type: volume, target: /d, volume: {subpath: a}}"), code: ring.BadValue, line: 5, says: "a part of a volume without a name"},
		{name: "an image", files: web(long("type: image")...), code: ring.Unsupported, line: 5, says: "type image"},
		{name: "a pipe", files: web(long("type: npipe")...), code: ring.Unsupported, line: 5, says: "Windows"},
		{name: "a volume of Swarm", files: web(long("type: cluster")...), code: ring.Unsupported, line: 5, says: "Swarm"},
		{name: "a colon in a path of the host", files: web("image: a", "volumes:", "  - {type: bind, source: '/srv/a:b', target: /d}"), code: ring.BadValue, line: 5, hint: "create_host_path: false"},
		{name: "a mode that is none", files: web("image: a", "volumes: ['./c:/c']", "x-gitring:", "  mounts: {./c: copy}"), code: ring.BadValue, line: 6, says: "copy"},
		{name: "a seed that is not held", files: web("image: a", "volumes: ['./c:/c']", "x-gitring:", "  mounts: {./c: seed}"), code: ring.BadValue, line: 6, says: "does not hold web/c"},
		{name: "a seed of one file", files: with(web("image: a", "volumes: ['./c:/c']", "x-gitring:", "  mounts: {./c: seed}"), "web/c", "x"), code: ring.BadValue, line: 6, hint: "mount the folder"},
		{name: "a path of the host upon what is not there", files: with(web("image: a", "volumes:", "  - ./c:/c", "  - /etc/localtime:/c/time"), "web/c/a", "x"), code: ring.BadValue, line: 6, hint: "commit an empty file"},
		{name: "replicas that would write a path of the host", files: web("image: a", "scale: 2", "volumes: ['/srv/x:/d']"), code: ring.BadValue, line: 2, says: "2 replicas"},
		{name: "replicas that would write a seeded folder", files: with(web("image: a", "scale: 2", "volumes: ['./c:/c']", "x-gitring: {mounts: {./c: seed}}"), "web/c/a", "x"), code: ring.BadValue, line: 2, says: "2 replicas"},
	})
}

// What the engine does with a part of a volume is the engine's; one that is too old
// refuses the app at admission.
func TestAPartOfAVolumeIsPlanned(t *testing.T) {
	a := app(t, "services:\n  web: {image: a, volumes: [{type: volume, source: data, target: /d, volume: {subpath: ./a/b, nocopy: true}}]}\nvolumes: {data: }\n")
	require.Equal(t, []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/d", NoCopy: true, Subpath: "./a/b"}}, a.Services[0].Spec.Mounts)
	require.Contains(t, a.Notes, "web: ./a/b of the volume at /d needs Docker 26 (API 1.45); the folder has to be in the volume")
}
