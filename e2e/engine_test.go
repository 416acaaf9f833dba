package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// engine is a Docker Engine, asked in its own words (Engine API 1.41).
type engine struct {
	url  string
	http *http.Client
}

// local is the engine that the tests share; noEngine is why there is none.
var (
	local    *engine
	noEngine error
)

func engineURL() string {
	if url := os.Getenv("GITRING_PODMAN"); url != "" { // beside scripts/podman.sh
		return url
	}
	if url := os.Getenv("GITRING_SWARM"); url != "" { // beside scripts/swarm.sh
		return url
	}
	if url := os.Getenv("DOCKER_HOST"); url != "" {
		return url
	}
	return "unix:///var/run/docker.sock"
}

// dial connects at the first call.
func dial(at string) *engine {
	scheme, address, _ := strings.Cut(at, "://")
	var d net.Dialer
	return &engine{url: at, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, scheme, address) },
	}}}
}

// errGone is the engine's 404.
var errGone = errors.New("not found")

// call is one request; into may be nil.
func (e *engine) call(method, path string, q url.Values, body io.Reader, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://engine/v1.41"+path+"?"+q.Encode(), body)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := e.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s %s: %w", method, path, errGone)
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, bytes.TrimSpace(b))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

func (e *engine) ping() error { return e.call("GET", "/version", nil, nil, nil) }

// container is what the tests ask of one.
type container struct {
	ID, Name     string
	Image        string // its ID
	Created      time.Time
	RestartCount int
	State        struct {
		Status, Error         string
		Running               bool
		ExitCode              int
		StartedAt, FinishedAt time.Time
	}
	Config struct {
		Labels map[string]string
		Env    []string
		Image  string
	}
	HostConfig struct {
		RestartPolicy struct{ Name string }
		Memory        int64
	}
	Mounts          []mount
	NetworkSettings struct {
		Networks map[string]struct {
			IPAddress string
			Aliases   []string
		}
	}
}

// mount is what the engine mounted, and where.
type mount struct {
	Name, Source, Destination string
	RW                        bool
}

func (c *container) service() string { return c.Config.Labels["gitring.service"] }
func (c *container) slot() string    { return c.Config.Labels["gitring.slot"] }
func (c *container) version() string { return c.Config.Labels["gitring.version"] }

// env is a variable of the container.
func (c *container) env(name string) string {
	for _, v := range c.Config.Env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// address is its address on the one network it has.
func (c *container) address() string {
	for _, n := range c.NetworkSettings.Networks {
		return n.IPAddress
	}
	return ""
}

func (e *engine) inspect(id string) (*container, error) {
	var c container
	err := e.call("GET", "/containers/"+id+"/json", nil, nil, &c)
	return &c, err
}

func labelled(label string) url.Values {
	b, _ := json.Marshal(map[string][]string{"label": {label}})
	return url.Values{"filters": {string(b)}, "all": {"1"}}
}

// containers are all with a label, in whatever state.
func (e *engine) containers(label string) ([]*container, error) {
	var rows []struct{ ID string }
	if err := e.call("GET", "/containers/json", labelled(label), nil, &rows); err != nil {
		return nil, err
	}
	var cs []*container
	for _, r := range rows {
		c, err := e.inspect(r.ID)
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// networks are the names of those with a label.
func (e *engine) networks(label string) ([]string, error) {
	var rows []struct{ Name string }
	err := e.call("GET", "/networks", labelled(label), nil, &rows)
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names, err
}

// volumes are the names of those with a label.
func (e *engine) volumes(label string) ([]string, error) {
	var list struct{ Volumes []struct{ Name string } }
	err := e.call("GET", "/volumes", labelled(label), nil, &list)
	var names []string
	for _, r := range list.Volumes {
		names = append(names, r.Name)
	}
	return names, err
}

func (e *engine) remove(id string) error {
	return e.call("DELETE", "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
}

func (e *engine) stop(id string) error {
	return e.call("POST", "/containers/"+id+"/stop", url.Values{"t": {"10"}}, nil, nil)
}

func (e *engine) kill(id string) error {
	return e.call("POST", "/containers/"+id+"/kill", nil, nil, nil)
}

// start runs a container of the tests' own, on a network.
func (e *engine) start(name, network string, labels map[string]string, command ...string) (string, error) {
	b, err := json.Marshal(map[string]any{
		"Image": image, "Cmd": command, "Labels": labels, "HostConfig": map[string]any{"NetworkMode": network},
	})
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	if err := e.call("POST", "/containers/create", url.Values{"name": {name}}, bytes.NewReader(b), &made); err != nil {
		return "", err
	}
	return made.ID, e.call("POST", "/containers/"+made.ID+"/start", nil, nil, nil)
}

// load makes an image from scratch with the tests' app as its program.
func (e *engine) load(name string) error {
	return e.loadProgram(name, program, []string{"app"}, `ENTRYPOINT ["/app"]`, `CMD ["serve"]`)
}

// loadProgram makes an image from scratch with one program under several paths.
func (e *engine) loadProgram(name string, program []byte, paths []string, changes ...string) error {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, dir := range []string{"tmp/", "etc/", "bin/"} {
		if err := w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
			return err
		}
	}
	const users = "root:x:0:0:root:/:/bin/sh\n"
	if err := w.WriteHeader(&tar.Header{Name: "etc/passwd", Mode: 0o644, Size: int64(len(users))}); err != nil {
		return err
	}
	if _, err := w.Write([]byte(users)); err != nil {
		return err
	}
	for i, path := range paths {
		if i > 0 {
			if err := w.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeLink, Linkname: paths[0], Mode: 0o755}); err != nil {
				return err
			}
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(program))}); err != nil {
			return err
		}
		if _, err := w.Write(program); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	repo, tag, _ := strings.Cut(name, ":")
	return e.call("POST", "/images/create", url.Values{
		"fromSrc": {"-"}, "repo": {repo}, "tag": {tag}, "changes": changes,
	}, &layer, nil)
}

func (e *engine) unload(name string) {
	_ = e.call("DELETE", "/images/"+name, url.Values{"force": {"1"}}, nil, nil)
}

// clear removes everything with a label. What a daemon had asked for when it was killed comes
// later, and the engine may hold on to a network for a moment, so it is tried again.
func (e *engine) clear(label string) error {
	over := time.Now().Add(30 * time.Second)
	for {
		err := e.clearNow(label)
		if err == nil || time.Now().After(over) {
			return err
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (e *engine) clearNow(label string) error {
	cs, err := e.containers(label)
	errs := []error{err}
	for _, c := range cs {
		if err := e.remove(c.ID); !errors.Is(err, errGone) {
			errs = append(errs, err)
		}
	}
	nets, err := e.networks(label)
	errs = append(errs, err)
	for _, n := range nets {
		errs = append(errs, e.call("DELETE", "/networks/"+n, nil, nil, nil))
	}
	vols, err := e.volumes(label)
	errs = append(errs, err)
	for _, v := range vols {
		errs = append(errs, e.call("DELETE", "/volumes/"+v, nil, nil, nil))
	}
	return errors.Join(errs...)
}

// hostName has the pid in it, so that what a killed test process left behind
// can be told from what another one is using.
func hostName(n int64) string { return fmt.Sprintf("e2e-%d-%d", os.Getpid(), n) }

// sweep removes what test processes left that are no more. A pid that is not
// here may live in another machine or container that uses the engine too, so
// nothing is swept that is less than an hour old.
func sweep() {
	cs, _ := local.containers("gitring.host")
	hosts := map[string]bool{}
	for _, c := range cs {
		if time.Since(c.Created) > time.Hour {
			hosts[c.Config.Labels["gitring.host"]] = true
		}
	}
	for host := range hosts {
		rest, ours := strings.CutPrefix(host, "e2e-")
		pid, _, _ := strings.Cut(rest, "-")
		if ours && over(pid) {
			_ = local.clear("gitring.host=" + host)
		}
	}
	var images []struct {
		RepoTags []string
		Created  int64
	}
	_ = local.call("GET", "/images/json", nil, nil, &images)
	for _, i := range images {
		for _, name := range i.RepoTags {
			if pid, ours := strings.CutPrefix(name, imageName); ours && over(pid) && time.Since(time.Unix(i.Created, 0)) > time.Hour {
				local.unload(name)
			}
		}
	}
}

// over reports whether no process has the pid.
func over(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

// needEngine skips only where no engine answers and none was promised.
func needEngine(t *testing.T) {
	t.Helper()
	if noEngine == nil {
		return
	}
	if os.Getenv("GITRING_ENGINE_TESTS") == "1" {
		t.Fatalf("%v, and GITRING_ENGINE_TESTS=1 promises one", noEngine)
	}
	t.Skip(noEngine)
}
