package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// registry is Debian's docker-registry on the loopback, with a folder of its own.
type registry struct {
	t       *testing.T
	at, dir string
	env     []string // what its images set besides their version
	unlike  bool     // no layer of it is one that the engine may have already
	process *exec.Cmd
}

// newRegistry makes one before the host that uses it, so that its images are
// removed after the host's containers.
func newRegistry(t *testing.T) *registry {
	t.Helper()
	return newRegistryAt(t, freePort(t))
}

func newRegistryAt(t *testing.T, at string) *registry {
	t.Helper()
	needEngine(t)
	if _, err := exec.LookPath("docker-registry"); err != nil && os.Getenv("GITRING_ENGINE_TESTS") != "1" {
		t.Skip("no docker-registry here; scripts/needs.sh installs it")
	}
	r := &registry{t: t, at: at, dir: t.TempDir()}
	config := obj{
		"version": "0.1", "log": obj{"level": "error"}, "http": obj{"addr": r.at},
		"storage": obj{"filesystem": obj{"rootdirectory": filepath.Join(r.dir, "data")}},
	}
	b, err := json.Marshal(config) // which is YAML too
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "config.yml"), b, 0o600))
	t.Cleanup(r.clear)
	t.Cleanup(r.stop)
	r.start()
	return r
}

func (r *registry) start() {
	r.t.Helper()
	r.process = exec.Command("docker-registry", "serve", filepath.Join(r.dir, "config.yml"))
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(r.t, r.process.Start())
	over := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := http.Get("http://" + r.at + "/v2/")
		if err == nil {
			_ = res.Body.Close()
			return
		}
		require.True(r.t, time.Now().Before(over), "the registry never answered: %v", err)
		<-tick.C
	}
}

func (r *registry) stop() {
	if r.process != nil {
		_ = r.process.Process.Kill()
		_ = r.process.Wait()
		r.process = nil
	}
}

// clear removes what the engine pulled from it.
func (r *registry) clear() {
	f, err := json.Marshal(map[string][]string{"label": {"gitring.e2e.registry=" + r.at}})
	require.NoError(r.t, err)
	var images []struct{ ID string }
	require.NoError(r.t, local.call("GET", "/images/json", url.Values{"filters": {string(f)}}, nil, &images))
	for _, i := range images {
		local.unload(i.ID)
	}
}

func (r *registry) send(method, at, kind string, body []byte, want int) *http.Response {
	r.t.Helper()
	req, err := http.NewRequest(method, at, bytes.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, want, res.StatusCode, "%s %s: %s", method, at, said)
	return res
}

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (r *registry) blob(b []byte) obj {
	r.t.Helper()
	res := r.send("POST", "http://"+r.at+"/v2/web/blobs/uploads/", "", nil, http.StatusAccepted)
	at, err := url.Parse(res.Header.Get("Location"))
	require.NoError(r.t, err)
	q := at.Query()
	q.Set("digest", sha256Of(b))
	at.RawQuery = q.Encode()
	r.send("PUT", at.String(), "application/octet-stream", b, http.StatusCreated)
	return obj{"size": len(b), "digest": sha256Of(b)}
}

// push makes the tests' app known as web:1 and as web:<version>, saying that it is
// version; a second time it moves the first tag.
func (r *registry) push(version string) (digest string) {
	r.t.Helper()
	return r.pushAs(version, "1", version)
}

// pushAs is push under other tags.
func (r *registry) pushAs(version string, tags ...string) (digest string) {
	r.t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	require.NoError(r.t, w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}))
	require.NoError(r.t, w.WriteHeader(&tar.Header{Name: "app", Mode: 0o755, Size: int64(len(program))}))
	_, err := w.Write(program)
	require.NoError(r.t, err)
	if r.unlike {
		name := []byte(r.at + " " + version)
		require.NoError(r.t, w.WriteHeader(&tar.Header{Name: "name", Mode: 0o644, Size: int64(len(name))}))
		_, err := w.Write(name)
		require.NoError(r.t, err)
	}
	require.NoError(r.t, w.Close())
	config, err := json.Marshal(obj{
		"architecture": goEnv("GOARCH"), "os": "linux", "rootfs": obj{"type": "layers", "diff_ids": []string{sha256Of(layer.Bytes())}},
		"config": obj{
			"Entrypoint": []string{"/app"}, "Cmd": []string{"serve"}, "Env": append([]string{"VERSION=" + version}, r.env...),
			"Labels": obj{"gitring.e2e.registry": r.at},
		},
	})
	require.NoError(r.t, err)
	const kind = "application/vnd.docker.distribution.manifest.v2+json"
	b, err := json.Marshal(obj{
		"schemaVersion": 2, "mediaType": kind,
		"config": merged(r.blob(config), obj{"mediaType": "application/vnd.docker.container.image.v1+json"}),
		"layers": []any{merged(r.blob(layer.Bytes()), obj{"mediaType": "application/vnd.docker.image.rootfs.diff.tar"})},
	})
	require.NoError(r.t, err)
	for _, tag := range tags {
		r.send("PUT", "http://"+r.at+"/v2/web/manifests/"+tag, kind, b, http.StatusCreated)
	}
	return sha256Of(b)
}
