package runtime

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// untar are the files of an archive, by name, with their headers.
func untar(t *testing.T, archive []byte) (bodies map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	bodies, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return bodies, headers
		}
		require.NoError(t, err)
		bodies[h.Name], err = io.ReadAll(r)
		require.NoError(t, err)
		headers[h.Name] = h
	}
}

func TestTheImageOfAFrontIsAFunctionOfItsProgram(t *testing.T) {
	program := []byte("a program")
	one, err := frontArchive(program, "amd64", "gitring/front:0123456789ab")
	require.NoError(t, err)
	two, err := frontArchive(program, "amd64", "gitring/front:0123456789ab")
	require.NoError(t, err)
	require.Equal(t, one, two)
	other, err := frontArchive([]byte("another"), "amd64", "gitring/front:0123456789ab")
	require.NoError(t, err)
	require.NotEqual(t, one, other)

	files, _ := untar(t, one)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"], &manifest))
	require.Len(t, manifest, 1)
	require.Equal(t, []string{"gitring/front:0123456789ab"}, manifest[0].RepoTags)
	require.Len(t, manifest[0].Layers, 1)
	var config struct {
		OS, Architecture string
		Config           container.Config
		RootFS           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(files[manifest[0].Config], &config))
	require.Equal(t, "linux amd64", config.OS+" "+config.Architecture)
	require.Equal(t, "65532:65532", config.Config.User)
	require.EqualValues(t, []string{"/bin/front"}, config.Config.Entrypoint)
	layer := files[manifest[0].Layers[0]]
	sum := sha256.Sum256(layer)
	require.Equal(t, []string{"sha256:" + hex.EncodeToString(sum[:])}, config.RootFS.DiffIDs)

	in, headers := untar(t, layer)
	require.Equal(t, program, in["bin/front"])
	require.EqualValues(t, 0o555, headers["bin/front"].Mode)
	for _, dir := range []string{"front/", "run/front/", "table/"} {
		require.Contains(t, headers, dir, "the engine has a place to mount on, in a file system that nothing writes to")
	}
}

// frontOf makes the front of service web, on an engine of a test.
func frontOf(r *rig, edit func(front, web *ring.Service)) ring.Action {
	route := ring.DefaultRoute()
	route.Ports = []ring.FrontPort{{Port: 8080, Carry: ring.CarryAuto}}
	web := ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Route: &route}
	a := r.CreateAction(func(s *ring.Service) {
		s.Name, s.FrontOf, s.Pin = "web-front", "web", ring.Pin{Image: ring.FrontImage}
		s.Spec = ring.Spec{Image: ring.FrontImage, User: "65532:65532", NoNetwork: true, ReadOnly: true, CapDrop: []string{"ALL"}, StopGrace: time.Second}
		if edit != nil {
			edit(s, &web)
		}
	})
	a.Of.Services = []ring.Service{web, *a.Want}
	return a
}

func frontBuild(program string) FrontBuild {
	sum := sha256.Sum256([]byte(program))
	return FrontBuild{Sum: hex.EncodeToString(sum[:]), Open: func() ([]byte, error) { return []byte(program), nil }}
}

func TestAFrontIsSeenWithTheGatewaysOfItsNetworks(t *testing.T) {
	at := map[string]*network.EndpointSettings{
		"b": {Gateway: "10.2.0.254", IPv6Gateway: "fd00::1"}, "a": {Gateway: "10.1.0.1"}, "internal": {}, "gone": nil, "c": {Gateway: "10.1.0.1"},
	}
	for service, want := range map[string][]string{"web-front": {"10.1.0.1", "10.2.0.254", "fd00::1"}, "web": nil} {
		in := instance(container.InspectResponse{
			Config: &container.Config{Labels: map[string]string{labelService: service}}, NetworkSettings: &container.NetworkSettings{Networks: at},
		})
		require.Equal(t, want, in.Gateways)
	}
}

func TestAFrontMountsItsThreeFoldersAndNothingElse(t *testing.T) {
	a := action(nil)
	a.Service, a.Slot = "web-front", 1
	a.Want.Name, a.Want.FrontOf, a.Want.Pin.Image = "web-front", "web", ring.FrontImage
	p := build(t, a)
	sum := sha256.Sum256([]byte("shop-web-front-1-01234567"))
	own := "/state/fronts/" + hex.EncodeToString(sum[:])[:16]
	require.Equal(t, []mount.Mount{
		{Type: mount.TypeBind, Source: own + "/table", Target: "/table", ReadOnly: true},
		{Type: mount.TypeBind, Source: own + "/run", Target: "/run/front"},
		{Type: mount.TypeBind, Source: "/state/front", Target: "/front", ReadOnly: true},
	}, p.Host.Mounts)
	require.Empty(t, p.Host.Binds)
	require.EqualValues(t, "always", p.Host.RestartPolicy.Name)
	require.Equal(t, ring.FrontImage, p.Config.Image, "a plan is judged without the build")

	at := testSite
	at.front = frontSite{image: "gitring/front:0123456789ab", user: "1000:1000", seLinux: true, files: 20000}
	a.Want.Spec.Ulimits = []ring.Ulimit{{Name: "nofile", Soft: 65536, Hard: 65536}, {Name: "nproc", Soft: 65536, Hard: 65536}}
	p, err := containerPayload(at, a)
	require.NoError(t, err)
	require.Equal(t, []string{own + "/table:/table:ro,Z", own + "/run:/run/front:Z", "/state/front:/front:ro,z"}, p.Host.Binds)
	require.Empty(t, p.Host.Mounts)
	require.Equal(t, "gitring/front:0123456789ab", p.Config.Image)
	require.Equal(t, "1000:1000", p.Config.User)
	require.Equal(t, "nofile=20000:20000 nproc=65536:65536", p.Host.Ulimits[0].String()+" "+p.Host.Ulimits[1].String(), "no more than the host has")

	a.Want.FrontOf = ""
	p, err = containerPayload(at, a)
	require.NoError(t, err)
	require.Empty(t, p.Host.Binds)
	require.Empty(t, p.Host.Mounts)
	require.EqualValues(t, "no", p.Host.RestartPolicy.Name)
}

func TestAFrontIsMadeOfWhatGitringBringsAndAsksNoRegistry(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.Front = frontBuild("first")
	f := newFake(o)
	a := frontOf(r, nil)
	resolved, err := f.Do(t.Context(), ring.Action{Kind: ring.DoResolve, App: a.App, Service: a.Service, Image: ring.FrontImage})
	require.NoError(t, err)
	require.Equal(t, ring.Pin{Image: ring.FrontImage}, resolved.Pin)
	pulled, err := f.Do(t.Context(), ring.Action{Kind: ring.DoPull, App: a.App, Service: a.Service, Image: ring.FrontImage})
	require.NoError(t, err)
	require.True(t, pulled.Image.Known)
	_, err = f.Do(t.Context(), a)
	require.NoError(t, err)
	require.Equal(t, 1, f.Ops()["ImageLoad"])
	require.Zero(t, f.Ops()["DistributionInspect"]+f.Ops()["ImagePull"])

	c := onlyContainer(t, f)
	require.Equal(t, "gitring/front:"+o.Front.Sum[:12], c.Config.Image)
	require.EqualValues(t, "always", c.HostConfig.RestartPolicy.Name)
	require.Equal(t, "web-front", c.Config.Labels["gitring.service"])
	require.Equal(t, "worker", c.Config.Labels["gitring.kind"])

	none := newFake(r.options())
	_, err = none.Do(t.Context(), a)
	require.ErrorContains(t, err, "cannot load the image of fronts: this build of gitring holds no front")
}

// onlyContainer is the one that the engine has, as it tells it.
func onlyContainer(t *testing.T, f *fake) container.InspectResponse {
	t.Helper()
	seen, err := f.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, seen.Instances, 1)
	c, err := f.Inspect(t.Context(), seen.Instances[0].ID)
	require.NoError(t, err)
	return c
}

func TestTheFoldersOfAFrontComeAndGoWithIt(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := newRig(t)
	o := r.options()
	o.Now, o.Front = func() time.Time { return now }, frontBuild("first")
	f := newFake(o)
	a := frontOf(r, func(_, web *ring.Service) { web.Route.Queue = 7 * time.Second })
	done, err := f.Do(t.Context(), a)
	require.NoError(t, err)
	mounts := FrontMounts(r.Content, onlyContainer(t, f).Name[1:])
	table, run := mounts[0].Source, mounts[1].Source
	uid := os.Geteuid()
	if uid == 0 {
		uid = ring.FrontUser
	}
	for path, want := range map[string]struct {
		mode  os.FileMode
		owner int
	}{table: {0o755, os.Geteuid()}, run: {0o700, uid}, filepath.Join(table, "table.json"): {0o400, uid}, mounts[2].Source: {0o755, os.Geteuid()}} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want.mode, st.Mode().Perm(), path)
		require.EqualValues(t, want.owner, st.Sys().(*syscall.Stat_t).Uid, path)
	}
	body, err := os.ReadFile(filepath.Join(table, "table.json"))
	require.NoError(t, err)
	var first ring.FrontTable
	require.NoError(t, json.Unmarshal(body, &first))
	require.Equal(t, ring.FrontTable{
		Generation: 1, Service: r.App + "/web", Ports: []ring.FrontPort{{Port: 8080, Carry: "auto"}}, Instances: []ring.FrontInstance{},
		QueueUntil: now.Add(14 * time.Second), Queue: 7 * time.Second, Forwarded: true, Trusted: []string{"networks"}, Sticky: "none", Connections: 10000,
	}, first)

	// Repeated, as after a crash, it keeps the table that the front was told meanwhile.
	require.NoError(t, os.Remove(filepath.Join(table, "table.json")))
	require.NoError(t, os.WriteFile(filepath.Join(table, "table.json"), []byte("told"), 0o400))
	_, err = f.Do(t.Context(), a)
	require.NoError(t, err)
	body, err = os.ReadFile(filepath.Join(table, "table.json"))
	require.NoError(t, err)
	require.Equal(t, "told", string(body))

	require.NoError(t, f.SweepFronts(t.Context()))
	require.DirExists(t, run, "a front that is there keeps its folders")
	remove := enginetest.ActionOn(ring.DoRemove, ring.Instance{App: a.App, Service: a.Service, Slot: 1, Version: a.Version, ID: done.Instance})
	_, err = f.Do(t.Context(), remove)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Dir(run))
}

func TestWhatNoFrontNeedsAnyMoreIsSwept(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.Front = frontBuild("first")
	f := newFake(o)
	a := frontOf(r, nil)
	_, err := f.Do(t.Context(), a)
	require.NoError(t, err)
	used := onlyContainer(t, f)
	f.AddImage(enginetest.Image{Name: "gitring/front:aaaaaaaaaaaa"})
	f.AddImage(enginetest.Image{Name: "gitring/frontier:1"})
	root := frontsDir(r.Content)
	stale := filepath.Join(root, strings.Repeat("0a", 8))
	require.NoError(t, os.MkdirAll(filepath.Join(stale, "run"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "somebody's"), 0o755))
	here := func(image string) bool {
		yes, err := f.ImageHere(t.Context(), image)
		require.NoError(t, err)
		return yes
	}

	f.Down(true)
	require.Error(t, f.SweepFronts(t.Context()))
	require.DirExists(t, stale, "what was not seen is not unused")
	f.Down(false)

	// A later build: its image is made with the next front, and the one in use stays.
	later := r.options()
	later.Front = frontBuild("second")
	newer := Over(f.Client(), later)
	require.NoError(t, newer.SweepFronts(t.Context()))
	require.NoDirExists(t, stale)
	require.DirExists(t, filepath.Join(root, "somebody's"), "not one of ours by its name")
	require.DirExists(t, filepath.Dir(FrontMounts(r.Content, used.Name[1:])[0].Source))
	require.False(t, here("gitring/front:aaaaaaaaaaaa"))
	require.True(t, here(used.Config.Image), "a container uses it")
	require.True(t, here("gitring/frontier:1"))

	f.TakeAway(used.ID)
	require.NoError(t, f.SweepFronts(t.Context()))
	require.False(t, here(used.Config.Image), "there is no front any more")
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestTwoFrontsAtOnceLoadTheImageOnce(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.Front = frontBuild("first")
	f := newFake(o)
	ended := make(chan error)
	for range 4 {
		go func() {
			_, err := f.Do(context.WithoutCancel(t.Context()), ring.Action{Kind: ring.DoPull, Image: ring.FrontImage})
			ended <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-ended)
	}
	require.Equal(t, 1, f.Ops()["ImageLoad"])
}

func TestOnlyAFrontIsSignalled(t *testing.T) {
	var signals []string
	r := newRig(t)
	o := r.options()
	o.Front = frontBuild("first")
	f := newFake(o)
	f.AddImage(enginetest.Image{Name: FrontTag(o.Front.Sum), Signal: func(_ *enginetest.Fake, _, signal string) { signals = append(signals, signal) }})
	r.Image = f.AddImage(enginetest.Image{Name: localImage})
	front, err := f.Do(t.Context(), frontOf(r, nil))
	require.NoError(t, err)
	web, err := f.Do(t.Context(), r.CreateAction(nil))
	require.NoError(t, err)
	_, err = f.Do(t.Context(), ring.Action{Kind: ring.DoSignal, Instance: front.Instance})
	require.NoError(t, err)
	require.ErrorContains(t, f.SignalFront(t.Context(), web.Instance), "it is none")
	require.ErrorIs(t, f.SignalFront(t.Context(), f.AddForeign("stranger", nil)), errNotOurs)
	require.Equal(t, []string{"HUP"}, signals)
}

// What only a real engine shows: that the image made in memory runs, as whom, and what it
// finds in its folders.
func TestEngineRunsAFront(t *testing.T) {
	c := engineOrSkip(t)
	r := realRig(t)
	program, err := testApp()
	require.NoError(t, err)
	o := r.options()
	o.URL, o.Front = engineURL(), frontBuild(string(program)+r.Host) // an image of its own
	o.Front.Open = func() ([]byte, error) { return append(bytes.Clone(program), r.Host...), nil }
	d, err := Dial(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r.Docker = d
	tag := FrontTag(o.Front.Sum)
	t.Cleanup(func() {
		ctx := context.Background()
		clean(t, c, r.Host)
		_, _ = c.ImageRemove(ctx, tag, image.RemoveOptions{PruneChildren: true})
	})
	done := r.Must(t, frontOf(r, func(front, _ *ring.Service) {
		front.Spec.Command = []string{"sleep"}
		front.Spec.SecurityOpt = []string{"no-new-privileges"}
		front.Spec.Ulimits = []ring.Ulimit{{Name: "fsize"}} // as manifest gives each front
	}))
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, in.State)
	require.Equal(t, "always", in.Policy)
	app := func(argv ...string) (int, string) {
		exit, out, err := d.Exec(t.Context(), done.Instance, append([]string{ring.FrontProgram}, argv...))
		require.NoError(t, err)
		return exit, out
	}
	_, out := app("tell", "NOTHING", "0")
	require.Contains(t, out, "uid=65532 ")
	_, out = app("read", ring.FrontTables+"/"+ring.FrontTableFile)
	require.Contains(t, out, `"generation":1`)
	exit, out := app("write", ring.FrontRun+"/note", "of the front")
	require.Equal(t, 1, exit)
	require.Contains(t, out, "file too large", "nothing that it writes takes room on the host")
	for _, path := range []string{ring.FrontTables + "/x", ring.FrontBuilds + "/x", "/x", ring.FrontProgram} {
		exit, out = app("write", path, "no")
		require.Equal(t, 1, exit, path)
		require.Regexp(t, "read-only file system|permission denied", out)
	}
	mounts := FrontMounts(r.Content, in.Name)
	body, err := os.ReadFile(filepath.Join(mounts[1].Source, "note"))
	require.NoError(t, err)
	require.Empty(t, body)

	r.Must(t, enginetest.ActionOn(ring.DoRemove, in))
	require.NoDirExists(t, filepath.Dir(mounts[1].Source))
	off := r.Must(t, ring.Action{Kind: ring.DoImageOff, Image: tag})
	require.Equal(t, "removed", off.Note)
}

func TestAFrontThatStartsAgainHasItsFolders(t *testing.T) {
	state := t.TempDir()
	d := &Docker{opts: Options{ContentDir: filepath.Join(state, "content"), Now: time.Now}}
	a := ring.Action{
		App: "shop", Service: "web-front", Slot: 1, Version: ring.Version(strings.Repeat("a", 64)), Of: &ring.App{Name: "shop"},
		Want: &ring.Service{Name: "web-front", FrontOf: "web", Spec: ring.Spec{Expose: []string{"8443/tcp", "53/udp"}}},
	}
	require.NoError(t, d.frontAgain(a))
	name := ring.ContainerName("shop", "web-front", 1, a.Version)
	file := filepath.Join(state, "fronts", ring.FrontID(name), "table", ring.FrontTableFile)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	var table ring.FrontTable
	require.NoError(t, json.Unmarshal(body, &table))
	require.Equal(t, []ring.FrontPort{{Port: 53, Carry: ring.CarryUDP}, {Port: 8443, Carry: ring.CarryAuto}}, table.Ports,
		"no plan says any more how its service is carried: it listens on what its container exposes")

	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.WriteFile(file, []byte(`{"generation":7}`), 0o600))
	require.NoError(t, d.frontAgain(a), "what is there stays")
	body, err = os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, `{"generation":7}`, string(body))

	a.Want.FrontOf = ""
	require.NoError(t, os.RemoveAll(filepath.Join(state, "fronts")))
	require.NoError(t, d.frontAgain(a))
	require.NoDirExists(t, filepath.Join(state, "fronts"), "it is no front")
}
