package runtime

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/stretchr/testify/require"
)

// The one user of a registry that wants one; the line is what htpasswd -B makes.
const (
	registryUser     = "alice"
	registryPassword = "let me in"
	registryHtpasswd = `alice:$2a$04$2opvboTxjgJGkW18zUGM3.C55jJRmVElkmYfpgQf4jvlfN3Mku2e.`
)

// dockerRegistry is Debian's docker-registry, with a folder of its own.
type dockerRegistry struct {
	t       *testing.T
	at      string // host:port
	dir     string
	ca      []byte // PEM, for TLS
	private bool
	label   string // on each image that is put into it
	client  *http.Client
	process *exec.Cmd
}

// newRegistry starts one at a host's address. private asks for the user; secure
// speaks TLS with a certificate of an authority that nobody knows.
func newRegistry(t *testing.T, host string, private, secure bool) *dockerRegistry {
	t.Helper()
	c := engineOrSkip(t)
	r := debianRegistry(t, host, private, secure)
	t.Cleanup(func() {
		ctx := context.Background()
		list, err := c.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", r.label))})
		require.NoError(t, err)
		for _, i := range list {
			_, _ = c.ImageRemove(ctx, i.ID, image.RemoveOptions{Force: true, PruneChildren: true})
		}
	})
	return r
}

// debianRegistry starts one that no engine asks.
func debianRegistry(t *testing.T, host string, private, secure bool) *dockerRegistry {
	t.Helper()
	if _, err := exec.LookPath("docker-registry"); err != nil && os.Getenv("GITRING_ENGINE_TESTS") != "1" {
		t.Skip("no docker-registry here; scripts/needs.sh installs it")
	}
	r := &dockerRegistry{t: t, at: net.JoinHostPort(host, freePort(t, host)), dir: t.TempDir(), private: private, label: "gitring.registry", client: &http.Client{}}
	r.label += "=" + filepath.Base(filepath.Dir(r.dir)) + r.at
	config := map[string]any{
		"version": "0.1", "log": map[string]any{"level": "error"},
		"storage": map[string]any{"filesystem": map[string]any{"rootdirectory": r.dir + "/data"}, "delete": map[string]any{"enabled": true}},
	}
	serve := map[string]any{"addr": r.at}
	config["http"] = serve
	if private {
		require.NoError(t, os.WriteFile(r.dir+"/htpasswd", []byte(registryHtpasswd+"\n"), 0o600))
		config["auth"] = map[string]any{"htpasswd": map[string]any{"realm": "test", "path": r.dir + "/htpasswd"}}
	}
	if secure {
		serve["tls"] = map[string]any{"certificate": r.dir + "/cert.pem", "key": r.dir + "/key.pem"}
		r.certify(host)
	}
	b, err := json.Marshal(config) // which is YAML too
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.dir+"/config.yml", b, 0o600))
	r.start()
	t.Cleanup(r.stop)
	return r
}

func freePort(t *testing.T, host string) string {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// start runs the registry and returns when it answers.
func (r *dockerRegistry) start() {
	r.t.Helper()
	r.process = exec.Command("docker-registry", "serve", r.dir+"/config.yml")
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(r.t, r.process.Start())
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := r.client.Get(r.url("/v2/"))
		if err == nil {
			_ = res.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			require.NoError(r.t, err, "the registry never answered")
		}
	}
}

func (r *dockerRegistry) stop() {
	if r.process != nil {
		_ = r.process.Process.Kill()
		_ = r.process.Wait()
		r.process = nil
	}
}

func (r *dockerRegistry) url(path string) string {
	if r.ca != nil {
		return "https://" + r.at + path
	}
	return "http://" + r.at + path
}

// certify makes an authority and a certificate for the host's address by it.
func (r *dockerRegistry) certify(host string) {
	r.t.Helper()
	sign := func(of *x509.Certificate, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, byKey)
		require.NoError(r.t, err)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(r.t, err)
		return key
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, key := newKey(), newKey()
	r.ca = sign(ca, ca, caKey, caKey)
	cert := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.ParseIP(host)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, key, caKey)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(r.dir+"/cert.pem", cert, 0o600))
	require.NoError(r.t, os.WriteFile(r.dir+"/key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	pool := x509.NewCertPool()
	require.True(r.t, pool.AppendCertsFromPEM(r.ca))
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func (r *dockerRegistry) send(method, at, kind string, body []byte, want int) *http.Response {
	r.t.Helper()
	req, err := http.NewRequest(method, at, bytes.NewReader(body))
	require.NoError(r.t, err)
	if r.private {
		req.SetBasicAuth(registryUser, registryPassword)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, want, res.StatusCode, "%s %s: %s", method, at, said)
	return res
}

func (r *dockerRegistry) blob(b []byte) (digest string) { return r.blobOf("app", b) }

// blobOf puts a blob into a repository.
func (r *dockerRegistry) blobOf(repo string, b []byte) (digest string) {
	r.t.Helper()
	res := r.send("POST", r.url("/v2/"+repo+"/blobs/uploads/"), "", nil, http.StatusAccepted)
	at, err := url.Parse(res.Header.Get("Location"))
	require.NoError(r.t, err)
	digest = digestOf(b)
	q := at.Query()
	q.Set("digest", digest)
	at.RawQuery = q.Encode()
	r.send("PUT", at.String(), "application/octet-stream", b, http.StatusCreated)
	return digest
}

// put makes a manifest known under a tag, or under its digest for "".
func (r *dockerRegistry) put(tag, kind string, manifest any) (digest string, size int) {
	r.t.Helper()
	b, err := json.Marshal(manifest)
	require.NoError(r.t, err)
	digest = digestOf(b)
	if tag == "" {
		tag = digest
	}
	r.send("PUT", r.url("/v2/app/manifests/"+tag), kind, b, http.StatusCreated)
	return digest, len(b)
}

const (
	kindImage = "application/vnd.docker.distribution.manifest.v2+json"
	kindIndex = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// image puts the tests' app into the registry, for an architecture. Images with
// another text are other images.
func (r *dockerRegistry) image(tag, arch, text string) (digest string, size int) {
	r.t.Helper()
	fs, err := layer()
	require.NoError(r.t, err)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err = z.Write(fs)
	require.NoError(r.t, err)
	require.NoError(r.t, z.Close())
	key, value, _ := strings.Cut(r.label, "=")
	config, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux",
		"config": map[string]any{"Labels": map[string]string{key: value, "text": text}, "Volumes": map[string]any{"/var/lib/z": struct{}{}, "/data": struct{}{}}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(fs)}},
	})
	require.NoError(r.t, err)
	return r.put(tag, kindImage, map[string]any{
		"schemaVersion": 2, "mediaType": kindImage,
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": r.blob(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": zipped.Len(), "digest": r.blob(zipped.Bytes())}},
	})
}

// index puts one name for an image of each architecture into the registry.
func (r *dockerRegistry) index(tag, text string, archs ...string) (digest string) {
	r.t.Helper()
	var entries []any
	for _, arch := range archs {
		d, size := r.image("", arch, text)
		entries = append(entries, map[string]any{
			"mediaType": kindImage, "size": size, "digest": d, "platform": map[string]string{"os": "linux", "architecture": arch},
		})
	}
	digest, _ = r.put(tag, kindIndex, map[string]any{"schemaVersion": 2, "mediaType": kindIndex, "manifests": entries})
	return digest
}

// remove deletes a manifest, with its tags.
func (r *dockerRegistry) remove(digest string) {
	r.t.Helper()
	r.send("DELETE", r.url("/v2/app/manifests/"+digest), "", nil, http.StatusAccepted)
}

// name is an image of it.
func (r *dockerRegistry) name(tag string) string { return fmt.Sprintf("%s/app:%s", r.at, tag) }

// another is an architecture that this machine does not have.
func another() string {
	if goruntime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}
