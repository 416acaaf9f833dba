package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// difference is one that is known and wanted: what of a request is another under gitring
// than under Compose, and why. Each must occur, or it is no longer one.
type difference struct {
	field            string // a pattern of "<what> <field>"
	compose, gitring string // patterns of the values; "" is nothing
	why              string
}

var knownDifferences = []difference{
	{`^container Image$`, `.*`, `.*`, "an image is named by its digest or ID, which no tag can move"},
	{`^container Labels\.gitring\..*`, ``, `.*`, "gitring knows what is its own by its labels"},
	{`^container Labels\.com\.docker\.compose\..*`, `.*`, `.*`, "Compose's own labels are held to its filters by TestComposeFindsTheAppByItsLabels"},
	{`^(network|volume) Labels\.(gitring|com\.docker\.compose)\..*`, `.*`, `.*`, "as for containers"},
	{`^container AttachStd(out|err)$`, `true`, ``, "nobody attaches to the create call; the log is read"},
	{`^container HostConfig\.RestartPolicy\..*`, `.*`, `.*`, "the engine restarts nothing before the instance is ready; the policy is set then"},
	{`^container HostConfig\.Annotations\..*`, `.+`, ``, "an engine before API 1.43 drops them; the plan notes it"},
	{`^container Mount .*\.Source$`, `/.*/work/.*`, `<content>.*`, "a file of the commit is mounted from where it was checked and hashed, not from a clone that anybody may change"},
	{`^container Mount .*\.(Source|Type|ReadOnly)$`, ``, `<content>/value|bind|true`, "a config or secret of a text or a variable is a file that is mounted; Compose copies it into the made container"},
	{`^container Mount .*\.Source$`, ``, `.*_[0-9]+_[0-9a-f]{8}`, "an anonymous volume, the image's too, is made named: the next instance gets the same data"},
	{`^container Mount .*\.Type$`, ``, `volume`, "the volume of an image's VOLUME, as above"},
	{`^container HostConfig\.NetworkMode$`, `container:.*-db`, `container .*/db/1`, "a container of the app is joined by its ID: a name may come to mean another one"},
	{`^container HostConfig\.VolumesFrom$`, `"container .* "`, `"container .* ro"`, "Compose drops the :ro of a service in volumes_from"},
	{`^container (HostConfig\.Links|Network .*\.Links)$`, `.+`, ``, "the names of links are aliases on the network: the engine's links break when the other container is replaced"},
	{`^container Network .*\.Aliases$`, `.*`, `.*"(database|redis)".*`, "as above, on the other side"},
	{`^container Network .*\.IPAddress$`, `.+`, ``, "an address is asked for once, in IPAMConfig"},
	{`^network Attachable$`, ``, `true`, "people may join with docker run, as before Compose 2.24"},
	{`^network Driver$`, ``, `bridge`, "the engine's default, said"},
	{`^network IPAM\.Driver$`, `default`, ``, "the engine's default, not said"},
}

// An asked is a request that makes something, as far as the two can be compared:
// fields by name.
type asked map[string]string

// A recorder stands between a client and the engine, and keeps what is asked for.
type recorder struct {
	at     string
	engine *engine
	proxy  *httputil.ReverseProxy

	mu  sync.Mutex
	all map[string]asked  // by what it is of: "container shop/web/1", "network shop_default"
	of  map[string]string // a container's ID -> what it is of
}

func newRecorder(t *testing.T, dir string, e *engine) *recorder {
	t.Helper()
	_, socket, _ := strings.Cut(e.url, "://")
	r := &recorder{at: "unix://" + filepath.Join(dir, "recorder"), engine: e, all: map[string]asked{}, of: map[string]string{}}
	var d net.Dialer
	r.proxy = &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport:      &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }},
		FlushInterval:  -1,
		ModifyResponse: r.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	l, err := net.Listen("unix", filepath.Join(dir, "recorder"))
	require.NoError(t, err)
	s := &http.Server{Handler: r}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return r
}

type requestBody struct{}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodPost && making.MatchString(q.URL.Path) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		q = q.WithContext(context.WithValue(q.Context(), requestBody{}, body))
	}
	r.proxy.ServeHTTP(w, q)
}

var making = regexp.MustCompile(`^/v[0-9.]+/(containers|networks|volumes)/(create|[^/]+/connect)$`)

// answered keeps a request that the engine carried out.
func (r *recorder) answered(res *http.Response) error {
	raw, ok := res.Request.Context().Value(requestBody{}).([]byte)
	if !ok || res.StatusCode >= 300 {
		return nil
	}
	var body map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return err
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	m := making.FindStringSubmatch(res.Request.URL.Path)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch what, end := m[1], m[2]; {
	case strings.HasSuffix(end, "/connect"):
		of := r.of[fmt.Sprint(body["Container"])]
		r.network(r.all[of], strings.TrimSuffix(end, "/connect"), body["EndpointConfig"])
	case what == "containers":
		var made struct{ ID string }
		if err := json.Unmarshal(answer, &made); err != nil {
			return err
		}
		labels, _ := body["Labels"].(map[string]any)
		of := fmt.Sprintf("container %s/%s/%s", labels["com.docker.compose.project"], labels["com.docker.compose.service"], labels["com.docker.compose.container-number"])
		r.of[made.ID] = of
		r.all[of] = r.container(body)
	default:
		a := asked{}
		a.flatten("", body)
		name, _ := body["Name"].(string)
		delete(a, "Name")
		r.all[strings.TrimSuffix(what, "s")+" "+name] = a
	}
	return nil
}

// container is a create request, with each mount and network by its name, in whichever of
// the engine's forms it was asked for.
func (r *recorder) container(body map[string]any) asked {
	a := asked{}
	host, _ := body["HostConfig"].(map[string]any)
	for _, b := range list(host["Binds"]) {
		parts := strings.Split(fmt.Sprint(b), ":")
		m := map[string]any{"Source": parts[0], "Type": "volume"}
		if strings.HasPrefix(parts[0], "/") {
			m["Type"] = "bind"
		}
		if len(parts) > 2 {
			for o := range strings.SplitSeq(parts[2], ",") {
				switch o {
				case "rw":
				case "ro":
					m["ReadOnly"] = true
				case "nocopy":
					m["VolumeOptions"] = map[string]any{"NoCopy": true}
				case "z", "Z":
					m["SELinux"] = o
				default:
					m["BindOptions"] = map[string]any{"Propagation": o}
				}
			}
		}
		a.flatten("Mount "+parts[1], m)
	}
	for _, m := range list(host["Mounts"]) {
		m := maps.Clone(m.(map[string]any))
		target := fmt.Sprint(m["Target"])
		delete(m, "Target")
		a.flatten("Mount "+target, m)
	}
	tmpfs, _ := host["Tmpfs"].(map[string]any)
	for target, options := range tmpfs {
		m := map[string]any{"Type": "tmpfs"}
		for o := range strings.SplitSeq(fmt.Sprint(options), ",") {
			name, value, _ := strings.Cut(o, "=")
			switch n, err := strconv.ParseInt(value, 8, 64); {
			case name == "size":
				mebibytes, err := strconv.ParseInt(strings.TrimSuffix(value, "m"), 10, 64)
				m["TmpfsOptions.SizeBytes"] = tell(mebibytes<<20, err)
			case name == "mode":
				m["TmpfsOptions.Mode"] = tell(n, err)
			case o != "":
				m["Options."+o] = true
			}
		}
		a.flatten("Mount "+target, m)
	}
	nets, _ := body["NetworkingConfig"].(map[string]any)
	ends, _ := nets["EndpointsConfig"].(map[string]any)
	for name, e := range ends {
		r.network(a, name, e)
	}
	delete(body, "NetworkingConfig")
	for _, key := range []string{"Binds", "Mounts", "Tmpfs"} {
		delete(host, key)
	}
	for _, key := range []string{"NetworkMode", "PidMode", "IpcMode"} {
		if id, ok := strings.CutPrefix(fmt.Sprint(host[key]), "container:"); ok && r.of[id] != "" {
			host[key] = r.of[id]
		}
	}
	from := list(host["VolumesFrom"])
	for i := range from {
		id, mode, _ := strings.Cut(fmt.Sprint(from[i]), ":")
		from[i] = r.of[id] + " " + mode
	}
	a.flatten("", body)
	return a
}

// tell is a number as it stands in a request; what is none stands out.
func tell(n int64, err error) string {
	if err != nil {
		return err.Error()
	}
	return strconv.FormatInt(n, 10)
}

// network is an endpoint, by the network's name. The first may be named in the create call,
// or all be connected.
func (r *recorder) network(a asked, name string, e any) {
	var n struct{ Name string }
	if r.engine.call("GET", "/networks/"+name, nil, nil, &n) == nil {
		name = n.Name
	}
	a["Network "+name] = "joined"
	a.flatten("Network "+name, e)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// inAnyOrder are lists whose order means nothing to the engine.
var inAnyOrder = regexp.MustCompile(`(Env|CapAdd|CapDrop|GroupAdd|ExtraHosts|Aliases|SecurityOpt|Ulimits|DeviceCgroupRules|VolumesFrom)$`)

// oneSpelling is for words that the engine knows in two.
var oneSpelling = strings.NewReplacer(`"CAP_`, `"`, "no-new-privileges:true", "no-new-privileges=true")

// flatten adds what is not the zero value: the engine's default is asked for by both.
func (a asked) flatten(prefix string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			a.flatten(strings.TrimPrefix(prefix+"."+k, "."), sub)
		}
	case []any:
		var words []string
		for _, it := range v {
			b, _ := json.Marshal(it)
			words = append(words, oneSpelling.Replace(string(b)))
		}
		if inAnyOrder.MatchString(prefix) {
			slices.Sort(words)
		}
		if len(words) > 0 {
			a[prefix] = strings.Join(words, " ")
		}
	case nil:
	default:
		if text := fmt.Sprint(v); text != "" && text != "false" && text != "0" {
			a[prefix] = text
		}
	}
}

// newerKeys are those that Compose refuses for an older engine, where gitring notes them.
var newerKeys = regexp.MustCompile(`(?m)^ +start_interval: .*\n|, start_interval: [0-9a-z]+`)

// contentOf is where gitring keeps files of commits.
var contentOf = regexp.MustCompile(`^.*/state/content/[0-9a-f]+`)

// differ are all fields that two requests do not share.
func differ(what string, compose, gitring asked) (out []string, fields []difference) {
	kind, _, _ := strings.Cut(what, " ")
	for _, field := range slices.Sorted(maps.Keys(mergedFields(compose, gitring))) {
		c, g := compose[field], contentOf.ReplaceAllString(gitring[field], "<content>")
		if c != g {
			out = append(out, fmt.Sprintf("%s: %s: Compose %q, gitring %q", what, field, c, g))
			fields = append(fields, difference{field: kind + " " + field, compose: c, gitring: g})
		}
	}
	return out, fields
}

func mergedFields(a, b asked) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

func (d *difference) explains(of difference) bool {
	return regexp.MustCompile(d.field).MatchString(of.field) &&
		regexp.MustCompile(`^(?:`+d.compose+`)$`).MatchString(of.compose) && regexp.MustCompile(`^(?:`+d.gitring+`)$`).MatchString(of.gitring)
}

// differential is a stack that asks for all that any machine has.
func (h *host) differential(name, app, idle string) files {
	h.t.Helper()
	root := filepath.Join("testdata", "differential", name)
	out := files{}
	require.NoError(h.t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out[rel] = strings.ReplaceAll(strings.ReplaceAll(string(b), "image: any", "image: "+idle), "differential", app)
		return err
	}))
	out["compose.override.yaml"] = override(h.t, out["compose.yaml"])
	return out
}

// TestTheEngineIsAskedForWhatComposeAsksFor creates each stack with Compose itself and then
// with gitring, and compares what the engine was asked for, field by field.
func TestTheEngineIsAskedForWhatComposeAsksFor(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	program := composeProgram()
	if program == nil {
		t.Skip("docker compose is not here, nor bin/docker-compose: make compose")
	}
	idle := idleImage(t, h.engine)
	ours := newRecorder(t, filepath.Join(h.dir, "ours"), h.engine)
	theirs := newRecorder(t, filepath.Join(h.dir, "theirs"), h.engine)
	h.config["policy"] = obj{"profile": "owner"}
	h.config["engine"] = obj{"kind": "docker", "url": ours.at}
	h.config["data_root"] = h.repo.work
	outside := h.app("outside")
	h.external(outside)

	tree, apps := files{}, []string{}
	add := func(app string, stack files) {
		apps = append(apps, app)
		for name, text := range stack {
			tree[app+"/"+name] = text
		}
	}
	for _, name := range []string{"every-key", "namespaces", "mounted"} {
		app := h.app(name)
		add(app, h.differential(name, app, idle))
	}
	for _, c := range onEngine {
		if _, err := os.Stat(c.needs); c.name != "hooks" && (c.needs == "" || err == nil) { // hooks are newer than that Compose
			app := h.app(c.name)
			stack := h.brought(c.name, app, idle, outside)
			stack["compose.yaml"] = newerKeys.ReplaceAllString(stack["compose.yaml"], "")
			add(app, stack)
		}
	}
	h.repo.pushed("All of it", tree)
	compose := func(at, app string, args ...string) {
		c := exec.Command(program[0], append(program[1:len(program):len(program)], append([]string{"-p", app}, args...)...)...)
		c.Dir, c.Env = filepath.Join(h.repo.work, app), append(bareEnviron(), "HOME="+h.dir, "DOCKER_HOST="+at)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "docker compose %v in %s: %s", args, app, out)
	}
	for _, app := range apps {
		compose(theirs.at, app, "create", "--pull", "never")
		compose(h.engine.url, app, "down", "-v", "-t", "0")
	}
	h.start()
	missing := func() (out []string) {
		ours.mu.Lock()
		defer ours.mu.Unlock()
		for what := range theirs.all {
			if ours.all[what] == nil {
				out = append(out, what)
			}
		}
		return out
	}
	h.until("gitring asked for all of it", func() bool { return len(missing()) == 0 })
	require.NoError(t, h.stop())

	seen := make([]bool, len(knownDifferences))
	for _, what := range slices.Sorted(maps.Keys(theirs.all)) {
		says, fields := differ(what, theirs.all[what], ours.all[what])
		for i, f := range fields {
			k := slices.IndexFunc(knownDifferences, func(d difference) bool { return d.explains(f) })
			if k < 0 {
				t.Error(says[i])
				continue
			}
			seen[k] = true
		}
	}
	for what := range ours.all {
		if theirs.all[what] == nil && !strings.HasPrefix(what, "volume ") {
			t.Errorf("gitring asked for %s, and Compose did not", what)
		}
	}
	for k, d := range knownDifferences {
		if !seen[k] {
			t.Errorf("%s (%s) does not occur: take it out of the list", d.field, d.why)
		}
	}
}
