package runtime

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// testLabel is on the image that these tests make.
const testLabel = "gitring.test"

// localImage has the pid in it: of one name the next run of these tests would take
// it, and leave an image that nobody removes.
var localImage = fmt.Sprintf("gitring-test/local-%d:1", os.Getpid())

// rig is Docker in a test, with what the suite of all engines asks of it.
type rig struct {
	*enginetest.Rig
	*Docker
}

// engineOf is the Docker that a rig has by now: tests put another one there.
type engineOf struct{ rig *rig }

func (e engineOf) docker() *Docker { return e.rig.Docker }

func (e engineOf) Look(ctx context.Context) (ring.Seen, error) { return e.docker().Look(ctx) }
func (e engineOf) Run(ctx context.Context) error               { return e.docker().Run(ctx) }
func (e engineOf) Do(ctx context.Context, a ring.Action) (ring.Done, error) {
	return e.docker().Do(ctx, a)
}

func (e engineOf) Exec(ctx context.Context, id string, argv []string) (int, string, error) {
	return e.docker().Exec(ctx, id, argv)
}

func (e engineOf) Mounted(ctx context.Context) (map[string]bool, error) {
	return e.docker().Mounted(ctx)
}

func (e engineOf) ReadLogs(ctx context.Context, id string, follow bool, tail int, to io.Writer) error {
	return e.docker().Logs(ctx, id, LogOptions{Follow: follow, Tail: tail}, to)
}

func (r *rig) options() Options {
	return Options{Host: r.Host, ContentDir: r.Content, DataRoot: r.Data, Lookup: noNames, Poke: func(id string) {
		select {
		case r.Poked <- id:
		default:
		}
	}}
}

func newRig(t *testing.T) *rig {
	r := &rig{Rig: enginetest.NewRig(t)}
	r.Engine = engineOf{r}
	r.ImageName, r.ImageLabel = localImage, testLabel
	r.NotOurs, r.MaxOutput = errNotOurs, MaxOutput
	r.HearEvent = func() { r.cache.mark("") }
	r.RegistryCalls = registryRequests.Load
	return r
}

func fakeRig(t *testing.T) *rig {
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{
		Name: localImage, Programs: []string{"/app"}, Logs: "hello out\nhello err\n", Command: fakeApp,
	})
	r.Exit = func(_ *testing.T, id string, code int) { f.Exit(id, code, false) }
	r.SetHealth = func(_ *testing.T, id string, ok bool) {
		f.SetHealth(id, map[bool]string{true: "healthy", false: "unhealthy"}[ok])
	}
	r.AddForeign = func(_ *testing.T, name string, volumes ...string) string {
		return f.AddForeign(name, r.project(volumes), volumes...)
	}
	r.Inspect = func(t *testing.T, id string) container.InspectResponse {
		c, err := f.Inspect(t.Context(), id)
		require.NoError(t, err)
		return c
	}
	r.VolumeLabels = func(t *testing.T, name string) map[string]string {
		require.Contains(t, f.Volumes(), name)
		return f.Volumes()[name]
	}
	r.AddVolume = func(_ *testing.T, name string) { f.AddVolume(name, nil) }
	r.AddRemote = func(*testing.T) (string, string) {
		digest := "sha256:" + hex.EncodeToString(bytes.Repeat([]byte{7}, 32))
		f.AddRemote(enginetest.Image{Name: "127.0.0.1:5000/app:1", Digest: digest, Programs: []string{"/app"}})
		return "127.0.0.1:5000/app:1", digest
	}
	r.ForgetImage = func(_ *testing.T, image string) { f.DropImage(image) }
	r.CallCount = func() int { return total(f.Ops()) }
	r.ExecCount = func() int { return f.Ops()["ContainerExecCreate"] }
	return r
}

// fakeApp says what testdata/app would.
func fakeApp(f *enginetest.Fake, id string, c enginetest.Command) (int, string) {
	argv := c.Argv
	switch argv[1] {
	case "tell":
		var n int
		_, _ = fmt.Sscan(argv[3], &n)
		in, err := f.Inspect(context.Background(), id)
		if err != nil {
			return 1, err.Error()
		}
		value := ""
		for _, kv := range append(slices.Clone(in.Config.Env), c.Env...) {
			if v, ok := strings.CutPrefix(kv, argv[2]+"="); ok {
				value = v
			}
		}
		return n, fmt.Sprintf("uid=%s cwd=%s %s=%s", cmp.Or(c.User, "0"), cmp.Or(c.WorkingDir, "/"), argv[2], value)
	case "say":
		var n int
		_, _ = fmt.Sscan(argv[3], &n)
		return 7, string(bytes.Repeat([]byte(argv[2]), n))
	}
	return 1, "unknown word"
}

func total(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// testEngine is the engine on this machine and an image in it, made once.
var testEngine = sync.OnceValues(func() (*client.Client, error) {
	c, err := client.NewClientWithOpts(client.WithHost(engineURL()), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = c.Ping(ctx)
	return c, err
})

// onPodman reports whether these tests run beside scripts/podman.sh.
func onPodman() bool { return os.Getenv("GITRING_PODMAN") != "" }

func engineURL() string {
	return cmp.Or(os.Getenv("GITRING_PODMAN"), os.Getenv("DOCKER_HOST"), DefaultURL)
}

// engineOrSkip skips only where no engine answers and none was promised.
func engineOrSkip(t *testing.T) *client.Client {
	c, err := testEngine()
	if err != nil && os.Getenv("GITRING_ENGINE_TESTS") != "1" {
		t.Skipf("no engine answers at %s: %v", engineURL(), err)
	}
	require.NoError(t, err, "no engine answers, and GITRING_ENGINE_TESTS=1 promises one")
	return c
}

// testApp is the test's program, built once.
var testApp = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gitring-app")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/app", "./testdata/app")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(dir + "/app")
})

// layer is a file system with the program in it.
func layer() ([]byte, error) {
	bin, err := testApp()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "app", Mode: 0o755, Size: int64(len(bin)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := w.Write(bin); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

// localID is the ID of the image made on the real engine.
var localID = sync.OnceValues(func() (string, error) {
	c, err := testEngine()
	if err != nil {
		return "", err
	}
	fs, err := layer()
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	body, err := c.ImageImport(ctx, image.ImportSource{Source: bytes.NewReader(fs), SourceName: "-"}, localImage,
		image.ImportOptions{Changes: []string{"LABEL " + testLabel + "=1"}})
	if err != nil {
		return "", err
	}
	if err := pulled(body, nil); err != nil {
		return "", err
	}
	i, err := c.ImageInspect(ctx, localImage)
	return i.ID, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if c, err := testEngine(); err == nil {
		// All containers are gone by now: each test cleans its own.
		_, _ = c.ImageRemove(context.Background(), localImage, image.RemoveOptions{PruneChildren: true})
	}
	os.Exit(code)
}

func realRig(t *testing.T) *rig {
	c := engineOrSkip(t)
	r := newRig(t)
	id, err := localID()
	require.NoError(t, err)
	r.Image = id
	o := r.options()
	o.URL = engineURL()
	r.Docker, err = Dial(t.Context(), o)
	require.NoError(t, err)
	if onPodman() {
		r.Lacks = enginetest.Capabilities
	}
	var volumes []string // without the host's label
	t.Cleanup(func() { clean(t, c, r.Host, volumes...) })
	tell := func(t *testing.T, id string, argv ...string) {
		_, _, err := r.Exec(t.Context(), id, append([]string{"/app"}, argv...))
		require.NoError(t, err)
	}
	r.Exit = func(t *testing.T, id string, code int) {
		_, _, err := r.Exec(t.Context(), id, []string{"/app", "exit", fmt.Sprint(code)})
		if !errors.Is(err, errEndedWith) { // the command is what ends it
			require.NoError(t, err)
		}
	}
	r.SetHealth = func(t *testing.T, id string, ok bool) {
		tell(t, id, "health", map[bool]string{true: "on", false: "off"}[ok])
	}
	r.AddForeign = func(t *testing.T, name string, volumes ...string) string { return foreign(t, c, r, name, volumes) }
	r.Inspect = func(t *testing.T, id string) container.InspectResponse {
		ask := c.ContainerInspect
		if e, err := r.ready(t.Context()); onPodman() {
			require.NoError(t, err)
			ask = e.ContainerInspect
		}
		i, err := ask(t.Context(), id)
		require.NoError(t, err)
		return i
	}
	r.VolumeLabels = func(t *testing.T, name string) map[string]string {
		v, err := c.VolumeInspect(t.Context(), name)
		require.NoError(t, err)
		return v.Labels
	}
	r.AddVolume = func(t *testing.T, name string) {
		_, err := c.VolumeCreate(t.Context(), volume.CreateOptions{Name: name})
		require.NoError(t, err)
		volumes = append(volumes, name) // a cleanup of its own would come before its containers are gone
	}
	r.AddRemote = func(t *testing.T) (string, string) { return startRegistry(t) }
	r.ForgetImage = func(t *testing.T, name string) {
		_, err := c.ImageRemove(t.Context(), name, image.RemoveOptions{Force: true, PruneChildren: true})
		require.NoError(t, err)
	}
	r.CallCount = func() int { return total(r.Calls()) }
	r.ExecCount = func() int { return r.Calls()["POST /containers/{id}/exec"] }
	return r
}

// foreign runs a container without our labels; the test's end removes it.
func foreign(t *testing.T, c *client.Client, r *rig, name string, volumes []string) string {
	made, err := c.ContainerCreate(t.Context(), &container.Config{Image: r.Image, Cmd: []string{"/app", "serve"}, Labels: r.project(volumes)},
		&container.HostConfig{NetworkMode: network.NetworkNone, Binds: volumes}, nil, nil, name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true})
	})
	require.NoError(t, c.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	return made.ID
}

// project is what Compose labels a container of the test's app with.
func (r *rig) project(volumes []string) map[string]string {
	if len(volumes) == 0 {
		return nil
	}
	return map[string]string{composeProject: r.App, composeWorkingDir: "/home/me/" + r.App}
}

func joinsAnother(h *container.HostConfig) bool {
	return h.NetworkMode.IsContainer() || h.PidMode.IsContainer() || h.IpcMode.IsContainer() || len(h.VolumesFrom) > 0
}

// clean removes all that a test's host made, volumes included, and those volumes that
// the test made. What cannot be removed is told, and keeps nothing else here.
func clean(t *testing.T, c *client.Client, host string, volumes ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mine := filters.NewArgs(filters.Arg("label", labelHost+"="+host))
	list, err := c.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	errs := []error{err}
	for _, x := range list { // those that join others first, as Podman wants it
		if full, err := c.ContainerInspect(ctx, x.ID); err == nil && full.HostConfig != nil && joinsAnother(full.HostConfig) {
			errs = append(errs, c.ContainerRemove(ctx, x.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
		}
	}
	list, err = c.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	errs = append(errs, err)
	for _, x := range list {
		errs = append(errs, c.ContainerRemove(ctx, x.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	}
	nets, err := c.NetworkList(ctx, network.ListOptions{Filters: mine})
	errs = append(errs, err)
	for _, n := range nets {
		errs = append(errs, c.NetworkRemove(ctx, n.ID))
	}
	vols, err := c.VolumeList(ctx, volume.ListOptions{Filters: mine})
	errs = append(errs, err)
	for _, v := range vols.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, name := range volumes {
		errs = append(errs, c.VolumeRemove(ctx, name, true))
	}
	require.NoError(t, errors.Join(errs...))
}

// BenchmarkVerifyImage is one verdict about an image, from a registry on loopback: its
// questions, their answers over HTTP, and the cryptography. Each form begins with no connection.
func BenchmarkVerifyImage(b *testing.B) {
	for _, name := range recorded {
		for _, kind := range []string{"p256", "rsa"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				s := signedRegistry(b, name)
				for b.Loop() {
					v, err := s.verify(b, kind, s.Images["index"], 1, kind)
					if err != nil || !v.Good {
						b.Fatal(v, err)
					}
				}
			})
		}
	}
}
