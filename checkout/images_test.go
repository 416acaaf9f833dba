package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// fakeRegistries have, for each tag that is written somewhere, the next of its second number,
// or of its first where it has one alone, and an older one, and one of another shape.
type fakeRegistries struct {
	tags map[string][]string // by repository
	away map[string]error    // by repository

	mu    sync.Mutex
	asked map[string]int
}

func (r *fakeRegistries) Tags(_ context.Context, image string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	r.asked[image]++
	if err := r.away[image]; err != nil {
		return nil, err
	}
	return r.tags[image], nil
}

const newDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

func (r *fakeRegistries) Digest(_ context.Context, image string) (string, error) {
	for name, err := range r.away {
		if strings.HasPrefix(image, name+":") {
			return "", err
		}
	}
	return newDigest, nil
}

var digits = regexp.MustCompile(`[0-9]+`)

// withNext adds what a repository has beside a tag.
func (r *fakeRegistries) withNext(repo, tag string) {
	at := digits.FindAllStringIndex(tag, -1)
	if len(at) == 0 {
		return
	}
	which := at[min(1, len(at)-1)]
	n, _ := strconv.Atoi(tag[which[0]:which[1]])
	older, next := max(0, n-1), n+1
	r.tags[repo] = append(r.tags[repo], tag, tag[:which[0]]+strconv.Itoa(older)+tag[which[1]:], tag+"-rc1", "latest", tag[:which[0]]+strconv.Itoa(next)+tag[which[1]:])
}

// cloneOf is a clone with one commit of files, and a key that signs.
func cloneOf(t *testing.T, files map[string]string) *Clone {
	t.Helper()
	for _, needs := range []string{"git", "ssh-keygen"} {
		if _, err := exec.LookPath(needs); err != nil {
			t.Skip("there is no " + needs)
		}
	}
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	c := At(dir, Person{Errs: io.Discard, Now: time.Now, Notice: func(string, ...any) {}})
	git := func(args ...string) {
		_, err := c.Git(t.Context(), args...)
		require.NoError(t, err, args)
	}
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	git("init", "-q", "-b", "main")
	for _, set := range [][2]string{{"user.name", "Bot"}, {"user.email", "bot@example.org"}, {"gpg.format", "ssh"}, {"user.signingkey", key + ".pub"}, {"core.autocrlf", "false"}} {
		git("config", set[0], set[1])
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	return c
}

// updated is an update made whole.
func updated(t *testing.T, c *Clone, app string, ask ImageOptions, reg Registries) (*ImagesUpdate, error) {
	t.Helper()
	if ask.To == "" {
		ask.To = ring.MoveMinor
	}
	u := NewImagesUpdate(c, app, ask, reg)
	if err := u.CheckReady(t.Context()); err != nil {
		return u, err
	}
	if err := u.FindUpdates(t.Context()); err != nil {
		return u, err
	}
	tree, err := u.PrepareTree(t.Context())
	if err != nil || tree == "" || ask.DryRun {
		return u, err
	}
	return u, u.MakeCommit(t.Context(), tree)
}

func committed(t *testing.T, c *Clone, rev, name string) string {
	t.Helper()
	cmd := exec.Command("git", "-C", c.Dir, "cat-file", "blob", rev+":"+name)
	out, err := cmd.Output()
	require.NoError(t, err, name)
	return string(out)
}

var (
	// These know no YAML: what stands behind image, up to its tag, and what a tag and digest are.
	oracleImage = regexp.MustCompile(`(["']?image["']?:[ \t]*["']?)([a-zA-Z0-9][a-zA-Z0-9._/-]*(?::[0-9]+/[a-zA-Z0-9._/-]+)?)((?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]{64})?)`)
	oracleEnv   = regexp.MustCompile(`(?m)^([A-Za-z_][A-Za-z0-9_]*=["']?)([\w][\w.-]*(?:@sha256:[0-9a-f]{64})?)`)
	oracleUses  = regexp.MustCompile(`["']?image["']?:[ \t]*["']?([a-zA-Z0-9._/-]+):([\w.-]*)\$\{(\w+)(?::-[^}]*)?\}([\w.-]*)`)
)

func TestImagesUpdateLeavesEachOtherByte(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/images.txtar")
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range archive.Files {
		text := string(f.Data)
		if strings.Contains(f.Name, ".crlf/") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		if strings.HasPrefix(f.Name, "no-last-newline/") {
			text = strings.TrimSuffix(text, "\n")
		}
		files[f.Name] = text
	}
	compose := slices.DeleteFunc(sortedKeys(files), func(name string) bool { return filepath.Base(name) != "compose.yaml" })
	require.GreaterOrEqual(t, len(compose), 40)
	u := updateAll(t, files, "")

	moved := map[string]int{} // updates of a folder
	for _, x := range u.Result.Updates {
		moved[filepath.Dir(x.File)]++
	}
	stays := []string{"anchored-image 1", "digest-alone", "env-missing 1", "env-of-name", "env-used-twice", "hash 1", "not-yaml", "null-image 1", "words 1", "built 1", "built-flow 1", "local 1"}
	want := map[string]int{
		"block-two": 2, "flow": 2, "long-list": 12, "template-of-logs": 2, "pinned": 2, "two-documents": 2, "other-alphabets": 2, "profiles": 2,
	}
	for _, s := range stays {
		folder, n, _ := strings.Cut(s, " ")
		want[folder], _ = strconv.Atoi(n)
	}
	for _, name := range compose {
		folder := filepath.Dir(name)
		n, said := want[folder]
		if !said {
			n = 1
		}
		require.Equal(t, n, moved[folder], "updates of %s", folder)
	}
	require.Contains(t, committed(t, u.Clone, "HEAD", "block-two/compose.yaml"), "image: nginx:1.28\n")
	require.Contains(t, committed(t, u.Clone, "HEAD", "env-crlf.crlf/.env"), "A=1\r\nENV_CRLF=3.20\r\nB=2\r\n")
	require.Contains(t, committed(t, u.Clone, "HEAD", "env-pinned/.env"), "ENV_PINNED=1.1@"+newDigest)
	require.Contains(t, committed(t, u.Clone, "HEAD", "pinned-word/compose.yaml"), "acme/a:stable@"+newDigest)
}

// Real files: GITRING_COMPOSE_FILES names a folder of them.
func TestImagesUpdateLeavesEachOtherByteOfRealFiles(t *testing.T) {
	root := os.Getenv("GITRING_COMPOSE_FILES")
	if root == "" {
		t.Skip("GITRING_COMPOSE_FILES names no folder")
	}
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(at)
		name, _ := filepath.Rel(root, at)
		files[name] = string(body)
		return err
	}))
	for _, to := range []string{"", "pin"} {
		u := updateAll(t, files, to)
		t.Logf("%d files, %d updates, %d left", len(files), len(u.Result.Updates), len(u.Result.Left))
		for _, l := range u.Result.Left {
			t.Logf("left %s:%d %s: %s", l.File, l.Line, l.Image, l.Reason)
		}
	}
}

// updateAll updates what files name, and holds the commit to the oracle: taken out what are
// tags and digests, it has the same bytes.
func updateAll(t *testing.T, files map[string]string, how string) *ImagesUpdate {
	t.Helper()
	reg := &fakeRegistries{tags: map[string][]string{}}
	for name, text := range files {
		for _, m := range oracleImage.FindAllStringSubmatch(text, -1) {
			tag, _, _ := strings.Cut(strings.TrimPrefix(m[3], ":"), "@")
			reg.withNext(m[2], tag)
		}
		for _, m := range oracleUses.FindAllStringSubmatch(text, -1) {
			for _, e := range oracleEnv.FindAllStringSubmatch(files[filepath.Join(filepath.Dir(name), ".env")], -1) {
				if strings.Trim(e[1], `="'`) == m[3] {
					tag, _, _ := strings.Cut(e[2], "@")
					reg.withNext(m[1], m[2]+tag+m[4])
				}
			}
		}
	}
	u, err := updated(t, cloneOf(t, files), "", ImageOptions{Pin: how == "pin", To: ring.MoveMajor}, reg)
	require.NoError(t, err)
	require.Zero(t, u.Failed())
	require.NotEmpty(t, u.Result.Commit)
	changed := map[string]bool{}
	for _, x := range u.Result.Updates {
		changed[x.File] = true
	}
	for name, was := range files {
		is := committed(t, u.Clone, "HEAD", name)
		on, err := os.ReadFile(filepath.Join(u.Dir, name))
		require.NoError(t, err)
		require.Equal(t, is, string(on), "the clone has what was committed: %s", name)
		require.Equal(t, changed[name], was != is, name)
		mask := oracleImage
		if filepath.Base(name) == ".env" {
			mask = oracleEnv
		}
		without := func(s string) string {
			if mask == oracleEnv {
				return mask.ReplaceAllString(s, "$1")
			}
			return mask.ReplaceAllString(s, "$1$2")
		}
		require.Equal(t, without(was), without(is), name)
	}
	for _, x := range u.Result.Updates {
		if filepath.Base(x.File) == ".env" {
			continue // it has a part of the tag
		}
		lines := strings.Split(committed(t, u.Clone, "HEAD", x.File), "\n")
		require.Contains(t, lines[x.Line-1], strings.TrimPrefix(x.To, "@"), "%s:%d", x.File, x.Line)
	}
	said, err := u.Git(t.Context(), "status", "--porcelain")
	require.NoError(t, err)
	require.Empty(t, said)
	raw, err := u.Git(t.Context(), "cat-file", "commit", "HEAD")
	require.NoError(t, err)
	require.Contains(t, raw, "gpgsig -----BEGIN SSH SIGNATURE-----")
	return u
}

func sortedKeys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestImagesMoveAsFarAsIsAsked(t *testing.T) {
	for _, tt := range []struct{ to, want string }{{"patch", "1.2.9"}, {"minor", "1.10.0"}, {"major", "3.0.0"}} {
		reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.2.3", "1.2.9", "1.2.4", "1.9.1", "1.10.0", "3.0.0", "2.9.9", "1.2.10-rc1", "0.9.0", "4", "latest"}}}
		u, err := updated(t, cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:1.2.3\"}}\n"}), "", ImageOptions{To: tt.to}, reg)
		require.NoError(t, err)
		require.Equal(t, "services: {a: {image: \"acme/a:"+tt.want+"\"}}\n", committed(t, u.Clone, "HEAD", "compose.yaml"))
	}
}

func TestImagesUpdateOfOneAppLeavesTheOthers(t *testing.T) {
	reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.0", "1.1"}}}
	one := "services: {a: {image: \"acme/a:1.0\"}}\n"
	c := cloneOf(t, map[string]string{"apps/web/compose.yaml": one, "apps/db/compose.yaml": one})
	u, err := updated(t, c, "web", ImageOptions{}, reg)
	require.NoError(t, err)
	require.Contains(t, committed(t, u.Clone, "HEAD", "apps/web/compose.yaml"), "1.1")
	require.Equal(t, one, committed(t, u.Clone, "HEAD", "apps/db/compose.yaml"))
	_, err = updated(t, c, "wob", ImageOptions{}, reg)
	var said *exit.Failure
	require.ErrorAs(t, err, &said)
	require.Equal(t, exit.NotFound, said.Code)
	u, err = updated(t, c, "web", ImageOptions{}, reg)
	require.NoError(t, err)
	require.Empty(t, u.Result.Commit, "nothing is newer any more")
}

// A registry that does not say keeps no other image where it is.
func TestARegistryThatIsAwayKeepsNoOtherImage(t *testing.T) {
	reg := &fakeRegistries{
		tags: map[string][]string{"acme/a": {"1.0", "1.1"}, "acme/c": {"1.0", "1.1"}},
		away: map[string]error{"acme/b": errors.New("registry docker.io limits requests (429)")},
	}
	c := cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:1.0\"}, b: {image: \"acme/b:1.0\"}, c: {image: \"acme/c:${V}\"}, d: {image: \"acme/b:${V}\"}}\n", ".env": "V=1.0\n"})
	u, err := updated(t, c, "", ImageOptions{}, reg)
	require.NoError(t, err)
	require.Equal(t, 2, u.Failed())
	require.Len(t, u.Result.Updates, 1)
	require.Equal(t, "V=1.0\n", committed(t, c, "HEAD", ".env"), "it would move an image that nobody asked for")
	require.Contains(t, committed(t, c, "HEAD", "compose.yaml"), "acme/a:1.1")
	for _, l := range u.Result.Left {
		require.Regexp(t, "429|could not be asked", l.Reason)
	}
}

type noSuchImage struct{ error }

func (noSuchImage) Missing() bool { return true }

// What was only built on this host is no fault of the run, and keeps no other image.
func TestAnImageThatNoRegistryHasIsLeftWithoutAFailure(t *testing.T) {
	reg := &fakeRegistries{
		tags: map[string][]string{"acme/a": {"1.0", "1.1"}},
		away: map[string]error{"acme/own": noSuchImage{errors.New("cannot list the tags of acme/own: registry docker.io says denied")}},
	}
	c := cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:1.0\"}, own: {image: \"acme/own:1.0\"}}\n"})
	u, err := updated(t, c, "", ImageOptions{}, reg)
	require.NoError(t, err)
	require.Zero(t, u.Failed())
	require.Contains(t, committed(t, c, "HEAD", "compose.yaml"), "acme/a:1.1")
	require.Len(t, u.Result.Left, 1)
	require.Contains(t, u.Result.Left[0].Reason, "pull_policy: never says that an image is this host's own")
}

func TestAVariableMovesToWhatAllItsImagesHave(t *testing.T) {
	reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.0", "1.1", "1.2", "1.3"}, "acme/b": {"v1.0", "v1.1", "v1.2"}}}
	c := cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:${V}\"}, b: {image: \"acme/b:v${V}\"}}\n", ".env": "V=1.0\n"})
	u, err := updated(t, c, "", ImageOptions{Pin: true}, reg)
	require.NoError(t, err)
	require.Len(t, u.Result.Updates, 1)
	require.Equal(t, "V=1.2\n", committed(t, c, "HEAD", ".env"), "and no digest, which is of one image alone")
}

// What cannot end in a commit changes nothing.
func TestAnUpdateThatFailsLeavesNothing(t *testing.T) {
	reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.0", "1.1"}}}
	text := "services: {a: {image: \"acme/a:1.0\"}}\n"
	files := map[string]string{"compose.yaml": text, "other.txt": "o\n"}
	for _, tt := range []struct {
		name  string
		edit  func(t *testing.T, c *Clone)
		ask   ImageOptions
		says  string
		asked bool
	}{
		{"no key", func(t *testing.T, c *Clone) { git(t, c, "config", "--unset", "user.signingkey") }, ImageOptions{}, "with which key", false},
		{"a key that is gone", func(t *testing.T, c *Clone) { git(t, c, "config", "user.signingkey", "/nowhere/key.pub") }, ImageOptions{}, "cannot make a signed commit", true},
		{"no name", func(t *testing.T, c *Clone) {
			git(t, c, "config", "user.useConfigOnly", "true")
			git(t, c, "config", "--unset", "user.email")
		}, ImageOptions{}, "does not know your name", false},
		{"a changed file", func(t *testing.T, c *Clone) {
			require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "compose.yaml"), []byte("# mine\n"+text), 0o644))
		}, ImageOptions{}, "compose.yaml has changes", true},
		{"a staged file", func(t *testing.T, c *Clone) {
			require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "compose.yaml"), []byte("# mine\n"+text), 0o644))
			git(t, c, "add", "-A")
		}, ImageOptions{}, "compose.yaml has changes", true},
		{"no branch", func(t *testing.T, c *Clone) { git(t, c, "checkout", "-q", "--detach") }, ImageOptions{}, "on no branch", false},
		{"no upstream", func(*testing.T, *Clone) {}, ImageOptions{Push: true}, "no upstream", false},
		{"a remote that is gone", func(t *testing.T, c *Clone) {
			git(t, c, "remote", "add", "origin", "/nowhere/at/all")
			git(t, c, "config", "branch.main.remote", "origin")
			git(t, c, "config", "branch.main.merge", "refs/heads/main")
		}, ImageOptions{Push: true}, "cannot push", true},
		{"a branch whose remote is gone", func(*testing.T, *Clone) {}, ImageOptions{Branch: "updates"}, "cannot push", true},
		{"no name of a branch", func(*testing.T, *Clone) {}, ImageOptions{Branch: "a..b"}, "no name of a branch", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cloneOf(t, files)
			tt.edit(t, c)
			before := stateOf(t, c)
			reg.asked = nil
			_, err := updated(t, c, "", tt.ask, reg)
			var said *exit.Failure
			require.ErrorAs(t, err, &said)
			require.Contains(t, said.Says, tt.says)
			require.NotEmpty(t, said.Hint)
			require.Equal(t, before, stateOf(t, c))
			require.Equal(t, tt.asked, len(reg.asked) > 0, "no registry is asked for a commit that cannot be made")
		})
	}
}

func git(t *testing.T, c *Clone, args ...string) string {
	t.Helper()
	out, err := c.Git(t.Context(), args...)
	require.NoError(t, err, args)
	return out
}

// stateOf is all of a clone that a person sees.
func stateOf(t *testing.T, c *Clone) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(c.Dir, "compose.yaml"))
	require.NoError(t, err)
	return fmt.Sprint(string(body), git(t, c, "rev-parse", "HEAD"), git(t, c, "status", "--porcelain"), git(t, c, "for-each-ref"), git(t, c, "diff", "--cached"))
}

// What is staged here stays staged, and out of the commit.
func TestWhatIsStagedStaysOutOfTheCommit(t *testing.T) {
	reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.0", "1.1"}}}
	c := cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:1.0\"}}\n", "other.txt": "o\n"})
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "other.txt"), []byte("mine\n"), 0o644))
	git(t, c, "add", "other.txt")
	u, err := updated(t, c, "", ImageOptions{}, reg)
	require.NoError(t, err)
	require.NotEmpty(t, u.Result.Commit)
	require.Equal(t, "compose.yaml", git(t, c, "diff", "--name-only", "HEAD~1", "HEAD"))
	require.Equal(t, "M  other.txt", git(t, c, "status", "--porcelain"))
	require.Contains(t, git(t, c, "log", "-1", "--format=%B"), "Update acme/a to 1.1\n\ncompose.yaml: acme/a 1.0 -> 1.1")
}

func TestAnUpdateIsPushedToTheBranchOrToOneOfItsOwn(t *testing.T) {
	reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.0", "1.1"}}}
	c := cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:1.0\"}}\n"})
	remote := t.TempDir()
	git(t, c, "init", "-q", "--bare", remote)
	git(t, c, "remote", "add", "origin", remote)
	git(t, c, "push", "-q", "-u", "origin", "main")
	before := stateOf(t, c)
	u, err := updated(t, c, "", ImageOptions{Branch: "image-updates"}, reg)
	require.NoError(t, err)
	require.True(t, u.Result.Pushed)
	require.Equal(t, string(u.Result.Commit), git(t, c, "ls-remote", remote, "refs/heads/image-updates")[:40])
	git(t, c, "update-ref", "-d", "refs/remotes/origin/image-updates") // which git keeps of each push
	require.Equal(t, before, stateOf(t, c), "the clone stays as it is")
	made := u.Result.Commit
	u, err = updated(t, c, "", ImageOptions{Branch: "image-updates"}, reg)
	require.NoError(t, err, "the branch of the last run holds the same change")
	require.Equal(t, made, u.Result.Already)
	require.Empty(t, u.Result.Commit)
	require.False(t, u.Result.Pushed)
	require.Equal(t, before, stateOf(t, c))
	reg.tags["acme/a"] = append(reg.tags["acme/a"], "1.2")
	_, err = updated(t, c, "", ImageOptions{Branch: "image-updates"}, reg)
	var said *exit.Failure
	require.ErrorAs(t, err, &said, "never with force")
	require.Contains(t, said.Hint, "merge or delete it first")

	u, err = updated(t, c, "", ImageOptions{Push: true}, reg)
	require.NoError(t, err)
	require.Equal(t, string(u.Result.Commit), git(t, c, "ls-remote", remote, "refs/heads/main")[:40])
	require.Equal(t, string(u.Result.Commit), git(t, c, "rev-parse", "HEAD"))
}

func TestADryRunMakesNoCommit(t *testing.T) {
	reg := &fakeRegistries{tags: map[string][]string{"acme/a": {"1.0", "1.1"}}}
	c := cloneOf(t, map[string]string{"compose.yaml": "services: {a: {image: \"acme/a:1.0\"}}\n"})
	before := stateOf(t, c)
	u, err := updated(t, c, "", ImageOptions{DryRun: true}, reg)
	require.NoError(t, err)
	require.Contains(t, u.Result.Diff, "-services: {a: {image: \"acme/a:1.0\"}}\n+services: {a: {image: \"acme/a:1.1\"}}")
	require.Equal(t, before, stateOf(t, c))
}
