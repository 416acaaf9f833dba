package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// judgedBy has a profile judge what a rig mounts, as serve does.
func (r *rig) judgedBy(profile policy.Profile) {
	r.opts.Allow = func(app string, payload any) error {
		q := payload.(Request)
		req := policy.Request{App: app, Key: q.Key, Body: q.Body, DataRoot: r.Data, Path: "apps/" + app}
		if q.Service != nil {
			req.Service = q.Service.Name
		}
		rules := policy.Rules{Profile: profile, Host: r.Host}
		found := append(policy.Check(rules, req), policy.CheckMounted(rules, req, q.Mounts, q.Beside)...)
		for _, f := range append(found, policy.CheckLeads(rules, req, q.Mounts, q.Leads)...) {
			if f.Verdict == policy.Deny {
				return &ring.Refusal{Code: ring.PolicyDenied, App: app, Says: f.Rule + " " + f.Says(), Hint: f.Hint()}
			}
		}
		return nil
	}
}

// mounts is a service of the rig's app with these mounts.
func (r *rig) mounting(name string, mounts ...ring.Mount) ring.Action {
	a := r.CreateAction(func(s *ring.Service) { s.Name, s.Spec.Mounts = name, mounts })
	a.Service = name
	return a
}

func (r *rig) folder(sub string) string { return filepath.Join(r.Data, "apps", r.App, sub) }

func dataMount(r *rig, sub, target string) ring.Mount {
	return ring.Mount{Kind: ring.MountData, Source: filepath.Join("apps", r.App, sub), Target: target}
}

func bindMount(source, target string) ring.Mount {
	return ring.Mount{Kind: ring.MountBind, Source: source, Target: target, Create: true}
}

// A link in one's own data is not followed, by whichever path it is mounted.
func TestALinkPlantedInDataIsNeverMounted(t *testing.T) {
	for name, source := range map[string]func(*rig) ring.Mount{
		"by a relative path":        func(r *rig) ring.Mount { return dataMount(r, "data/x", "/x") },
		"by an absolute path":       func(r *rig) ring.Mount { return bindMount(r.folder("data/x"), "/x") },
		"what is behind it":         func(r *rig) ring.Mount { return bindMount(r.folder("data/x/sub"), "/x") },
		"by a path with detours":    func(r *rig) ring.Mount { return bindMount(r.folder("data")+"/./../data//x", "/x") },
		"by the long form":          func(r *rig) ring.Mount { m := bindMount(r.folder("data/x"), "/x"); m.Create = false; return m },
		"after who made it is gone": func(r *rig) ring.Mount { return bindMount(r.folder("data/x"), "/x") },
	} {
		t.Run(name, func(t *testing.T) {
			r := fakeRig(t)
			r.judgedBy(policy.Owner)
			first := r.Must(t, r.mounting("plant", dataMount(r, "data", "/data")))
			outside := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(outside, "sub"), 0o755))
			require.NoError(t, os.Symlink(outside, r.folder("data/x")))
			if strings.HasPrefix(name, "after") {
				in := r.OnlyInstance(t)
				r.Must(t, enginetest.ActionOn(ring.DoRemove, in))
				require.NotEmpty(t, first.Instance)
			}
			e := r.MustFail(t, r.mounting("reach", source(r)))
			require.NotNil(t, e.Refusal, "%v", e)
			require.Equal(t, ring.PolicyDenied, e.Refusal.Code)
			require.Contains(t, e.Refusal.Says, "mounts.links")
			require.False(t, e.Permanent, "a person may take the link away")
		})
	}
}

// A link in a folder that several apps may write to is not followed, also when whoever made
// it is gone, and wherever it leads.
func TestALinkPlantedInASharedFolderIsNeverMounted(t *testing.T) {
	r := fakeRig(t)
	media := t.TempDir()
	r.opts.Shared = func(*ring.App) []string { return []string{media} }
	r.judgedBy(policy.Owner)
	require.NoError(t, os.Mkdir(filepath.Join(media, "films"), 0o755))
	r.Must(t, r.mounting("fine", bindMount(filepath.Join(media, "films"), "/films")))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(media, "x")))
	e := r.MustFail(t, r.mounting("reach", bindMount(filepath.Join(media, "x"), "/x")))
	require.NotNil(t, e.Refusal, "%v", e)
	require.Contains(t, e.Refusal.Says, "mounts.links")
}

// A shared folder that gitring does not see may hold a link all the same.
func TestASharedFolderThatIsHiddenIsNotTakenForEmpty(t *testing.T) {
	r := fakeRig(t)
	hidden := filepath.Join(t.TempDir(), "hidden")
	r.opts.Shared = func(*ring.App) []string { return []string{hidden} }
	r.judgedBy(policy.Owner)
	e := r.MustFail(t, r.mounting("reach", bindMount(filepath.Join(hidden, "x"), "/x")))
	require.NotNil(t, e.Refusal, "%v", e)
	require.Contains(t, e.Refusal.Says, "mounts.links")
}

// A container that is started again mounts its paths anew.
func TestALinkPlantedBetweenTwoStartsIsNotFollowed(t *testing.T) {
	for _, kind := range []ring.ActionKind{ring.DoStart, ring.DoRestart} {
		r := fakeRig(t)
		r.judgedBy(policy.Compose)
		a := r.mounting("web", dataMount(r, "data", "/d"), dataMount(r, "data/x", "/d/x"))
		r.Must(t, a)
		in := r.OnlyInstance(t)
		if kind == ring.DoStart {
			r.Must(t, enginetest.ActionOn(ring.DoStop, in))
		}
		require.NoError(t, os.Remove(r.folder("data/x")))
		require.NoError(t, os.Symlink(t.TempDir(), r.folder("data/x")))
		again := a
		again.Kind, again.Instance = kind, in.ID
		e := r.MustFail(t, again)
		require.NotNil(t, e.Refusal, "%s: %v", kind, e)
		require.Contains(t, e.Refusal.Says, "mounts.links")

		require.NoError(t, os.Remove(r.folder("data/x")))
		require.NoError(t, os.Mkdir(r.folder("data/x"), 0o755))
		r.Must(t, again)
	}
}

// Links of the host's own are followed, and judged by where they lead.
func TestALinkOfTheHostIsJudgedByWhereItLeads(t *testing.T) {
	r := fakeRig(t)
	host, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(host, "pool/media"), 0o755))
	require.NoError(t, os.Symlink("pool", filepath.Join(host, "data")))
	require.NoError(t, os.Symlink("/var/lib/gitring", filepath.Join(host, "state")))
	r.judgedBy(policy.Owner)
	r.Must(t, r.mounting("media", bindMount(filepath.Join(host, "data/media"), "/media")))
	r.Must(t, r.mounting("films", bindMount(filepath.Join(host, "data/media"), "/films")))
	e := r.MustFail(t, r.mounting("thief", bindMount(filepath.Join(host, "state"), "/state")))
	require.Contains(t, e.Error(), "the daemon's own")
	require.Contains(t, e.Error(), "leads to /var/lib/gitring")
}

// A container that may write to all of the host wins nothing by a link: a
// management agent mounts / and, by a link of the host's own, the engine's socket.
func TestAContainerThatHasTheHostMayMountByTheHostsLinks(t *testing.T) {
	host, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(host, "run"), 0o755))
	require.NoError(t, os.Symlink("run", filepath.Join(host, "varrun")))
	link := bindMount(filepath.Join(host, "varrun"), "/varrun")

	r := fakeRig(t)
	r.judgedBy(policy.Owner)
	r.Must(t, r.mounting("agent", bindMount("/", "/host"), link))

	part := fakeRig(t)
	part.judgedBy(policy.Owner)
	e := part.MustFail(t, part.mounting("part", bindMount(host, "/host"), link))
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "mounts.links", "one that may write to the link's folder only, could")

	own := fakeRig(t)
	own.judgedBy(policy.Owner)
	require.NoError(t, os.MkdirAll(own.folder("data"), 0o755))
	require.NoError(t, os.Symlink(host, own.folder("data/x")))
	e = own.MustFail(t, own.mounting("own", bindMount("/", "/host"), bindMount(own.folder("data/x"), "/x")))
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "mounts.links", "the data of the app is written by its other services too")
}

// Where the data root itself is a link the apps' data is theirs all the same.
func TestADataRootBehindALinkIsTheAppsOwn(t *testing.T) {
	r := fakeRig(t)
	pool := t.TempDir()
	require.NoError(t, os.Symlink(pool, r.Data))
	r.judgedBy(policy.Compose)
	r.Must(t, r.mounting("web", dataMount(r, "data", "/d"), dataMount(r, "data/x", "/d/x")))
	r.Must(t, r.mounting("abs", bindMount(r.folder("more"), "/d")))
	require.DirExists(t, filepath.Join(pool, "apps", r.App, "data/x"))
}

// What gitring cannot see it cannot walk.
func TestAPathThatGitringCannotSeeIsNotMountedBelowAWrittenFolder(t *testing.T) {
	r := fakeRig(t)
	media := t.TempDir()
	r.judgedBy(policy.Owner)
	r.Must(t, r.mounting("all", bindMount(media, "/media")))
	films := bindMount(filepath.Join(media, "films"), "/films")
	r.Must(t, r.mounting("films", films)) // the engine makes it, as it does for Compose
	r.Docker.inside = true                // in a container of its own, which does not mount it
	e := r.MustFail(t, r.mounting("again", films))
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "cannot be seen by gitring")
	r.Must(t, r.mounting("beside", bindMount(media, "/media")))
}

// stranger runs a container that is not ours, with these binds.
func (r *rig) stranger(t *testing.T, name string, binds ...string) {
	t.Helper()
	e, err := r.ready(t.Context())
	require.NoError(t, err)
	made, err := e.ContainerCreate(t.Context(), &container.Config{Image: r.Image}, &container.HostConfig{NetworkMode: network.NetworkNone, Binds: binds}, nil, nil, name)
	require.NoError(t, err)
	require.NoError(t, e.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
}

// Who else is on the engine counts, whoever made it.
func TestAFolderInsideOneThatAStrangerMayWriteToIsNested(t *testing.T) {
	r := fakeRig(t)
	r.judgedBy(policy.Compose)
	require.NoError(t, os.MkdirAll(r.folder("data/x"), 0o755))
	r.stranger(t, "stranger", r.folder("data")+":/all")
	e := r.MustFail(t, r.mounting("web", dataMount(r, "data/x", "/x")))
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "mounts.nested")
	require.Contains(t, e.Refusal.Says, "of container stranger")
	require.False(t, e.Permanent, "the stranger may go")
	r.Must(t, r.mounting("beside", dataMount(r, "data2", "/x")))

	owner := fakeRig(t)
	owner.judgedBy(policy.Owner)
	require.NoError(t, os.MkdirAll(owner.folder("data/x"), 0o755))
	owner.stranger(t, "stranger", owner.folder("data")+":/all")
	owner.Must(t, owner.mounting("web", dataMount(owner, "data/x", "/x")))

	reader := fakeRig(t)
	reader.judgedBy(policy.Compose)
	require.NoError(t, os.MkdirAll(reader.folder("data/x"), 0o755))
	reader.stranger(t, "backup", reader.Data+":/all:ro")
	reader.stranger(t, "portainer", "/:/host", "/var/run/docker.sock:/var/run/docker.sock")
	reader.Must(t, reader.mounting("web", dataMount(reader, "data/x", "/x")))
}

// A container that mounts a file or folder of its own under the name of an engine's socket
// does not have the host: what it may write to still counts.
func TestADataFolderCalledDockerSockMakesNobodyTheHost(t *testing.T) {
	r := fakeRig(t)
	r.judgedBy(policy.Compose)
	require.NoError(t, os.MkdirAll(r.folder("data/x"), 0o755))
	r.stranger(t, "stranger", r.folder("data")+":/all", r.folder("docker.sock")+":/s")
	e := r.MustFail(t, r.mounting("web", dataMount(r, "data/x", "/x")))
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "mounts.nested")

	media := t.TempDir() // outside of the app's data, where only what is mounted tells
	linked := fakeRig(t)
	linked.judgedBy(policy.Owner)
	linked.stranger(t, "planter", media+":/all", linked.folder("podman.sock")+":/s")
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(media, "x")))
	e = linked.MustFail(t, linked.mounting("reach", bindMount(filepath.Join(media, "x"), "/x")))
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "mounts.links")
}

// chains is how often each chain is run.
func chains() int {
	if os.Getenv("GITRING_E2E_LONG") == "1" {
		return 100
	}
	return 3
}

// reached reports whether a container can change the canary of the host.
func (r *rig) reached(ctx context.Context, id, target, canary string) bool {
	_, _, _ = r.Exec(ctx, id, []string{"/app", "write", target + "/canary", "dead"})
	b, err := os.ReadFile(canary)
	return err == nil && string(b) != "alive"
}

// canaryOn is a folder of the host with a file in it that no container may change.
func canaryOn(t *testing.T) (dir, file string) {
	dir = t.TempDir()
	file = filepath.Join(dir, "canary")
	require.NoError(t, os.WriteFile(file, []byte("alive"), 0o666))
	return dir, file
}

// F1: the first commit's container plants a link in its data, the second commit
// mounts it by an absolute path.
func TestEngineNoPlantedLinkGivesTheHost(t *testing.T) {
	engineOrSkip(t)
	for i := range chains() {
		r := realRig(t)
		r.judgedBy(policy.Compose)
		host, canary := canaryOn(t)
		r.Must(t, r.mounting("plant", dataMount(r, "data", "/data")))
		_, _, err := r.Exec(t.Context(), r.OnlyInstance(t).ID, []string{"/app", "plant", "/data/x", host})
		require.NoError(t, err)
		at := []string{r.folder("data/x"), r.folder("data") + "/../data/x", r.folder("data") + "//x/"}[i%3]
		done, err := r.Do(t.Context(), r.mounting("reach", bindMount(at, "/x")))
		if err == nil {
			require.False(t, r.reached(t.Context(), done.Instance, "/x", canary), "the host was reached")
		}
		require.ErrorContains(t, err, "mounts.links")
		b, err := os.ReadFile(canary)
		require.NoError(t, err)
		require.Equal(t, "alive", string(b))
	}
}

// F2: a program replaces a folder that its container mounts by a link and ends;
// the engine starts the container again by itself.
func TestEngineNoRestartOfTheEngineGivesTheHost(t *testing.T) {
	c := engineOrSkip(t)
	for i := range chains() {
		r := realRig(t)
		r.judgedBy(policy.Compose)
		host, canary := canaryOn(t)
		inner := []ring.Mount{dataMount(r, "data/x", "/elsewhere"), dataMount(r, "data/a/x", "/data/a/x"), bindMount(r.folder("data/x"), "/elsewhere")}[i%3]
		_, err := r.Do(t.Context(), r.mounting("web", dataMount(r, "data", "/data"), inner))
		require.ErrorContains(t, err, "mounts.nested")

		r.Must(t, r.mounting("web", dataMount(r, "data", "/data"), dataMount(r, "data/x", "/data/x")))
		id := r.OnlyInstance(t).ID
		_, _, _ = r.Exec(t.Context(), id, []string{"/app", "plant", "/data/x", host})
		restartByEngine(t, c, r, id)
		require.False(t, r.reached(t.Context(), id, "/data/x", canary), "the host was reached")
	}
}

// The shape that is refused does give the host where nobody refuses it: what the
// tests above look for can be found.
func TestEngineARestartFollowsALinkWhereNobodyRefusesIt(t *testing.T) {
	c := engineOrSkip(t)
	r := realRig(t)
	host, canary := canaryOn(t)
	require.NoError(t, os.MkdirAll(r.folder("data/x"), 0o755))
	made, err := c.ContainerCreate(t.Context(), &container.Config{
		Image: r.Image, Cmd: []string{"/app", "serve"}, Labels: map[string]string{labelHost: r.Host},
	}, &container.HostConfig{NetworkMode: network.NetworkNone, Mounts: []mount.Mount{
		{Type: mount.TypeBind, Source: r.folder("data"), Target: "/data"}, {Type: mount.TypeBind, Source: r.folder("data/x"), Target: "/elsewhere"},
	}}, nil, nil, r.App+"-bare")
	require.NoError(t, err)
	require.NoError(t, c.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	_, _, err = r.Exec(t.Context(), made.ID, []string{"/app", "plant", "/data/x", host})
	require.NoError(t, err)
	restartByEngine(t, c, r, made.ID)
	require.True(t, r.reached(t.Context(), made.ID, "/elsewhere", canary))
}

// restartByEngine has a program end, and waits until the engine's own restart
// policy has started it again.
func restartByEngine(t *testing.T, c *client.Client, r *rig, id string) {
	t.Helper()
	_, err := c.ContainerUpdate(t.Context(), id, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyAlways}})
	require.NoError(t, err)
	r.Exit(t, id, 1)
	require.Eventually(t, func() bool {
		in, err := c.ContainerInspect(t.Context(), id)
		return err == nil && in.RestartCount > 0 && in.State.Running && !in.State.Restarting
	}, time.Minute, 50*time.Millisecond)
}
