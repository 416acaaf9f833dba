package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	{`^container Mount .*\.Source$`, `<clone>/.*`, `<content>.*`, "a file of the commit is mounted from where it was checked and hashed, not from a clone that anybody may change"},
	{`^container Mount .*\.(Source|Type|ReadOnly)$`, ``, `<content>/value|<content>/given|bind|true`, "a config or secret of a text or a variable is a file that is mounted; Compose copies it into the made container"},
	{`^container Mount .*\.Source$`, ``, `.*_[0-9]+_[0-9a-f]{8}`, "an anonymous volume, the image's too, is made named: the next instance gets the same data"},
	{`^container Mount .*\.Type$`, ``, `volume`, "the volume of an image's VOLUME, as above"},
	{`^container HostConfig\.NetworkMode$`, `container:.*-db`, `container:container .*/db/1`, "a container of the app is joined by its ID: a name may come to mean another one"},
	{`^container HostConfig\.VolumesFrom$`, `"container [^:]*"`, `"container .*:ro"`, "Compose drops the :ro of a service in volumes_from"},
	{`^container (HostConfig\.Links|Network .*\.Links)$`, `.+`, ``, "the names of links are aliases on the network: the engine's links break when the other container is replaced"},
	{`^container Network .*\.Aliases$`, `.*`, `.*"(database|redis)".*`, "as above, on the other side"},
	{`^container Network .*\.IPAddress$`, `.+`, ``, "an address is asked for once, in IPAMConfig"},
	{`^container Name$`, `.+`, `.+-[0-9]+-[0-9a-f]{8}`, "a name holds while two versions run: what serves is given Compose's name once the other is gone"},
	{`^container MacAddress$`, ``, `02:.+`, "this Compose drops it for an engine before API 1.44; gitring asks for what the file says"},
	{`^network Attachable$`, ``, `true`, "people may join with docker run, as before Compose 2.24"},
	{`^network Driver$`, ``, `bridge`, "the engine's default, said"},
	{`^network IPAM\.Driver$`, `default`, ``, "the engine's default, not said"},
	{`^network IPAM\.Options\..*`, ``, `.+`, "Compose drops them; gitring asks for what the file says"},
	{`^volume Driver$`, `local`, ``, "the engine's default, not said"},
}

// An asked is all that is asked for of one thing, as far as two clients can be compared:
// fields by name.
type asked map[string]string

// askedFor is what requests ask for, by what they are of.
func askedFor(t *testing.T, all []wire) map[string]asked {
	t.Helper()
	out := map[string]asked{}
	for _, w := range all {
		var body map[string]any
		d := json.NewDecoder(bytes.NewReader(w.Body))
		d.UseNumber()
		require.NoError(t, d.Decode(&body), "%s %s", w.Of, w.Path)
		path, query, _ := strings.Cut(w.Path, "?")
		switch m := making.FindStringSubmatch(path); {
		case m[3] != "":
			require.NotNil(t, out[w.Of], "%s joins %s before it is made", w.Of, m[3])
			out[w.Of].network(m[3], body["EndpointConfig"])
		case m[1] == "containers":
			out[w.Of] = askedContainer(body)
			q, err := url.ParseQuery(query)
			require.NoError(t, err)
			out[w.Of].flatten("Name", q.Get("name"))
		default:
			delete(body, "Name")
			out[w.Of] = asked{}
			out[w.Of].flatten("", body)
		}
	}
	return out
}

// askedContainer is a create request, with each mount and network by its name, in whichever of
// the engine's forms it was asked for.
func askedContainer(body map[string]any) asked {
	a := asked{}
	host, _ := body["HostConfig"].(map[string]any)
	for _, b := range list(host["Binds"]) {
		parts := strings.Split(fmt.Sprint(b), ":")
		m := map[string]any{"Source": parts[0], "Type": "volume"}
		if strings.HasPrefix(parts[0], "/") || strings.HasPrefix(parts[0], "<clone>") || strings.HasPrefix(parts[0], "<dir>") {
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
		a.network(name, e)
	}
	delete(body, "NetworkingConfig")
	for _, key := range []string{"Binds", "Mounts", "Tmpfs"} {
		delete(host, key)
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
func (a asked) network(name string, e any) {
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

// inOneOrder sorts the one label that Compose writes in any order.
func inOneOrder(field, text string) string {
	if field != "Labels.com.docker.compose.depends_on" {
		return text
	}
	parts := strings.Split(text, ",")
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

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
		if text := inOneOrder(prefix, fmt.Sprint(v)); text != "" && text != "false" && text != "0" {
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
	for _, field := range slices.Sorted(maps.Keys(mergedKeys(compose, gitring))) {
		c, g := compose[field], contentOf.ReplaceAllString(gitring[field], "<content>")
		if c != g {
			out = append(out, fmt.Sprintf("%s: %s: Compose %q, gitring %q", what, field, c, g))
			fields = append(fields, difference{field: kind + " " + field, compose: c, gitring: g})
		}
	}
	return out, fields
}

func mergedKeys[V any, M ~map[string]V](a, b M) map[string]bool {
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
func (h *host) differential(name, app, idle, outside string) files {
	h.t.Helper()
	root := filepath.Join("testdata", "differential", name)
	out := files{}
	require.NoError(h.t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out[rel] = strings.NewReplacer("image: any", "image: "+idle, "differential", app, "outside", outside).Replace(string(b))
		return err
	}))
	out["compose.override.yaml"] = override(h.t, out["compose.yaml"])
	return out
}

// stacks are apps that are held to what Compose asks for, by the names of their folders.
type stacks struct {
	apps  []string
	tree  files
	of    map[string]bool
	names []string // what only this run has, and what the record calls it, in turns
}

// newStacks are none yet. Data that the files place beside themselves is at data.
func (h *host) newStacks(idle, data string) *stacks {
	run := strings.TrimPrefix(h.name, "e2e")
	return &stacks{
		tree: files{}, of: map[string]bool{},
		names: []string{data, "<clone>", h.repo.work, "<clone>", h.dir, "<dir>", cached(idle), "<image>-cache", idle, "<image>", run, "<run>"},
	}
}

// ownSubnet is one that a test gives a stack.
var ownSubnet = regexp.MustCompile(`10\.24[0-7]\.\d+\.\d+/28`)

// add is one stack more, with the ports of the host that were handed out for it.
func (s *stacks) add(app, name string, stack files, ports []string) {
	s.apps, s.of[name] = append(s.apps, app), true
	for i, port := range ports {
		s.names = append(s.names, `"`+port+`"`, fmt.Sprintf(`"<port %d of %s>"`, i+1, name))
	}
	if net := ownSubnet.FindString(stack["compose.override.yaml"]); net != "" {
		s.names = append(s.names, net, "<subnet of "+name+">")
	}
	for file, text := range stack {
		s.tree[app+"/"+file] = text
	}
}

// addDifferential adds the stacks of testdata/differential.
func (h *host) addDifferential(s *stacks, idle, outside string) {
	for _, name := range []string{"every-key", "namespaces", "mounted", "named", "joins"} {
		app := h.app(name)
		s.add(app, name, h.differential(name, app, idle, outside), nil)
	}
}

// addCorpus adds the stacks of testdata/corpus that Compose takes too.
func (h *host) addCorpus(s *stacks, idle, outside string) {
	for _, c := range onEngine {
		if c.name == "hooks" { // they are newer than that Compose
			continue
		}
		if _, err := os.Stat(c.needs); c.needs != "" && err != nil {
			h.t.Logf("%s is left out: %v", c.name, err)
			continue
		}
		app := h.app(c.name)
		h.ports = nil
		stack := h.brought(c.name, app, idle, outside)
		for file, text := range stack { // another test that has this stack runs beside this one
			stack[file] = strings.ReplaceAll(text, addressesOfStack, "10.213.7.")
		}
		stack["compose.yaml"] = newerKeys.ReplaceAllString(stack["compose.yaml"], "")
		s.add(app, c.name, stack, h.ports)
	}
	s.names = append(s.names, "10.213.7.", addressesOfStack)
}

// addressesOfStack begins those of static-addresses, which says its subnet itself.
const addressesOfStack = "10.213.8."

// askCompose has Compose create each stack, and returns what it asked the engine for.
func (h *host) askCompose(program []string, s *stacks) []wire {
	h.t.Helper()
	r := newRecorder(h.t, filepath.Join(h.dir, "theirs"), h.engine)
	compose := func(at, app string, args ...string) {
		c := exec.Command(program[0], append(program[1:len(program):len(program)], append([]string{"-p", app}, args...)...)...)
		c.Dir, c.Env = filepath.Join(h.repo.work, app), append(bareEnviron(), "HOME="+h.dir, "DOCKER_HOST="+at)
		out, err := c.CombinedOutput()
		require.NoError(h.t, err, "docker compose %v in %s: %s", args, app, out)
	}
	var left string
	h.t.Cleanup(func() { // where Compose stopped half way
		if left != "" {
			compose(h.engine.url, left, "down", "-v", "-t", "0")
		}
	})
	for _, app := range s.apps {
		left = app
		compose(r.at, app, "create", "--pull", "never")
		compose(h.engine.url, app, "down", "-v", "-t", "0")
		left = ""
	}
	return r.wires(h.t, strings.NewReplacer(s.names...))
}

// askedAnew has Compose itself create the stacks. make record keeps what it asked for, and
// make e2e holds the record to it.
func (h *host) askedAnew(s *stacks) {
	h.t.Helper()
	program := composeProgram()
	require.NotNil(h.t, program, "docker compose is not here, nor bin/docker-compose: make compose")
	now := h.askCompose(program, s)
	if os.Getenv("GITRING_RECORD") == "1" {
		require.Len(h.t, s.of, len(onEngine)+4, "this machine cannot record all stacks")
		writeRecord(h.t, h.recordHead(program), now)
		return
	}
	was, is := h.recorded(s), askedFor(h.t, now)
	for _, what := range slices.Sorted(maps.Keys(mergedKeys(was, is))) {
		for _, field := range slices.Sorted(maps.Keys(mergedKeys(was[what], is[what]))) {
			if a, b := was[what][field], is[what][field]; a != b {
				h.t.Errorf("the record is old (make record): %s: %s: recorded %q, Compose asks for %q", what, field, a, b)
			}
		}
	}
}

// recorded is what Compose asked for, as far as it is of these stacks.
func (h *host) recorded(s *stacks) map[string]asked {
	h.t.Helper()
	head, all := readRecord(h.t)
	h.t.Logf("held to what Compose %s asked an engine %s for", head.Compose, head.Engine)
	out := askedFor(h.t, all)
	maps.DeleteFunc(out, func(what string, _ asked) bool { return !s.of[stackOf(what)] })
	for name := range s.of {
		require.True(h.t, slices.ContainsFunc(slices.Collect(maps.Keys(out)), func(what string) bool { return stackOf(what) == name }), "the record has nothing of %s: make record", name)
	}
	return out
}

// stackOf is the stack of what a request makes.
func stackOf(what string) string {
	_, name, _ := strings.Cut(what, " ")
	name, _, _ = strings.Cut(name, "<run>")
	return name
}

func (h *host) recordHead(program []string) recordHead {
	h.t.Helper()
	out, err := exec.Command(program[0], append(program[1:len(program):len(program)], "version", "--short")...).Output()
	require.NoError(h.t, err)
	var v struct{ Version string }
	require.NoError(h.t, h.engine.call("GET", "/version", nil, nil, &v))
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	if version == "" || version == "dev" {
		version = composeVersion(h.t)
	}
	return recordHead{Compose: version, Engine: v.Version, By: "make record"}
}

// composeVersion is the version that scripts/compose.sh builds.
func composeVersion(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../tools/compose.mod")
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^require github\.com/docker/compose/v2 v(\S+)`).FindSubmatch(b)
	require.NotNil(t, m)
	return string(m[1])
}

// anonymous are volumes that gitring makes by a name, where Compose has the engine name them.
var anonymous = regexp.MustCompile(`^volume .*_[0-9]+_[0-9a-f]{8}$`)

// heldToCompose waits until gitring asked for all that Compose asked for, and compares
// field by field. It returns which known differences occur.
func (h *host) heldToCompose(s *stacks, ours *recorder) (occurs []bool) {
	h.t.Helper()
	theirs, names := h.recorded(s), strings.NewReplacer(s.names...)
	var got map[string]asked
	missing := []string{"all"}
	h.t.Cleanup(func() {
		if len(missing) > 0 {
			h.t.Logf("gitring did not ask for %s", strings.Join(missing, ", "))
		}
	})
	h.until("gitring asked for all of it", func() bool {
		got, missing = askedFor(h.t, ours.wires(h.t, names)), nil
		for what := range theirs {
			if got[what] == nil {
				missing = append(missing, what)
			}
		}
		return len(missing) == 0
	})
	occurs = make([]bool, len(knownDifferences))
	for _, what := range slices.Sorted(maps.Keys(theirs)) {
		says, fields := differ(what, theirs[what], got[what])
		for i, f := range fields {
			k := slices.IndexFunc(knownDifferences, func(d difference) bool { return d.explains(f) })
			if k < 0 {
				h.t.Error(says[i])
				continue
			}
			occurs[k] = true
		}
	}
	for what := range got {
		if theirs[what] == nil && s.of[stackOf(what)] && !anonymous.MatchString(what) {
			h.t.Errorf("gitring asked for %s, and Compose did not", what)
		}
	}
	return occurs
}

// TestTheEngineIsAskedForWhatComposeAsksFor creates each stack with gitring and compares what
// the engine was asked for with what Compose itself asked for, field by field.
//
// Without GITRING_E2E_LONG what Compose asked for is only read from its record, and the stacks
// of the corpus are compared where they run anyway, in TestWhatPeopleBringRuns.
func TestTheEngineIsAskedForWhatComposeAsksFor(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	all := os.Getenv("GITRING_E2E_LONG") == "1" || os.Getenv("GITRING_RECORD") == "1"
	idle, outside := idleImage(t, h.engine), h.app("outside")
	h.external(outside)
	ours := newRecorder(t, filepath.Join(h.dir, "ours"), h.engine)
	h.config["policy"] = obj{"profile": "owner"}
	h.config["engine"] = obj{"kind": "docker", "url": ours.at}
	h.config["data_root"] = h.repo.work
	s := h.newStacks(idle, h.repo.work)
	h.addDifferential(s, idle, outside)
	if all {
		h.addCorpus(s, idle, outside)
	}
	h.repo.pushed("All of it", s.tree)
	if all {
		h.askedAnew(s)
	}
	h.start()
	occurs := h.heldToCompose(s, ours)
	require.NoError(t, h.stop())
	for k, d := range knownDifferences {
		if all && !occurs[k] {
			t.Errorf("%s (%s) does not occur: take it out of the list", d.field, d.why)
		}
	}
}
