package manifest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// extensionKey is the key in a service that says what Compose cannot.
const extensionKey = "x-gitring"

// extras is x-gitring of one service, as written: what is absent is nil or zero.
type extras struct {
	kind    ring.Kind
	kindAt  place
	checks  []ring.Check
	places  map[string]place // of checks, by name
	rollout rolloutWords
	job     jobWords
	share   bool
	mounts  []mountMode
	reload  *reloadWords
	cron    cronWords
	before  written
	route   routeWords
	updates updatesWords
}

type jobWords struct {
	place   place
	run     string
	timeout time.Duration
	retries *int
	rerun   bool
	replace bool
}

// mountMode is one entry of mounts.
type mountMode struct {
	written string
	path    string // inside the commit
	mode    string
	place   place
}

const (
	modeContent = "content"
	modeData    = "data"
	modeSeed    = "seed"
)

func (x *extras) mountOf(p string) *mountMode {
	for i := range x.mounts {
		if x.mounts[i].path == p {
			return &x.mounts[i]
		}
	}
	return nil
}

var (
	extensionKeys = []string{"kind", "checks", "rollout", "job", "mounts", "share", "reload", "cron", "before", "publish", "route", "updates"}
	jobKeys       = []string{"run", "timeout", "retries", "rerun_interrupted", "replace"}
)

// extrasOf reads x-gitring of a service from each file in order; the later wins
// key by key, a check wins over one of the same name.
func (a *appReader) extrasOf(service string) *extras {
	x := &extras{places: map[string]place{}}
	d := &decoder{}
	for _, f := range a.files {
		n := f.root.get("services").get(service).get(extensionKey)
		if n.null() {
			continue
		}
		if d.mapping(n, extensionKey) {
			d.extras(n, x, a.from.path)
		}
	}
	a.faults.list = append(a.faults.list, d.faults.list...)
	return x
}

func (d *decoder) extras(n *node, x *extras, root string) {
	d.keys(n, extensionKey, extensionKeys)
	if k := n.get("kind"); !k.null() {
		x.kindAt = k.place
		x.kind = ring.Kind(d.oneOf(k, "kind", string(ring.Worker), string(ring.JobK), string(ring.CronK)))
	}
	for _, c := range d.list(n.get("checks"), "checks") {
		d.check(c, x)
	}
	if r := n.get("rollout"); !r.null() && d.mapping(r, "rollout") {
		d.rollout(r, &x.rollout)
	}
	if j := n.get("job"); !j.null() && d.mapping(j, "job") {
		d.job(j, &x.job)
	}
	if c := n.get("cron"); !c.null() && d.mapping(c, "cron") {
		d.cron(c, &x.cron)
	}
	if w := n.get("before"); !w.null() {
		x.before = written{d.text(w, "before"), w.place}
	}
	if r := n.get("reload"); !r.null() && d.mapping(r, "reload") {
		if x.reload == nil {
			x.reload = &reloadWords{}
		}
		d.reload(r, x.reload, root)
	}
	if p := n.get("publish"); !p.null() {
		d.publish(p, &x.route)
	}
	if r := n.get("route"); !r.null() && d.mapping(r, "route") {
		d.route(r, &x.route)
	}
	if u := n.get("updates"); !u.null() && d.mapping(u, "updates") {
		d.updates(u, &x.updates)
	}
	x.share = d.boolean(n.get("share"), "share", x.share)
	if m := n.get("mounts"); !m.null() && d.mapping(m, "mounts") {
		for _, p := range m.pairs {
			d.mount(p, x, root)
		}
	}
}

func (d *decoder) job(n *node, j *jobWords) {
	j.place = n.place
	d.keys(n, "job", jobKeys)
	if r := n.get("run"); !r.null() {
		j.run = d.oneOf(r, "run", "on_change", "once", "always")
	}
	if t := n.get("timeout"); !t.null() {
		j.timeout = d.duration(t, "timeout", 0)
	}
	if r := n.get("retries"); !r.null() {
		v := d.number(r, "retries", 0, 1000)
		j.retries = &v
	}
	j.rerun = d.boolean(n.get("rerun_interrupted"), "rerun_interrupted", j.rerun)
	j.replace = d.boolean(n.get("replace"), "replace", j.replace)
}

func (d *decoder) mount(p pair, x *extras, root string) {
	m := mountMode{written: p.key, path: path.Join(root, p.key), place: p.place}
	if path.IsAbs(p.key) {
		d.bad(p.place, "write the relative source as it stands in volumes", "mounts: %s is not relative", head(p.key))
		return
	}
	m.mode = d.oneOf(p.val, "mounts "+p.key, modeContent, modeData, modeSeed)
	if old := x.mountOf(m.path); old != nil {
		*old = m
		return
	}
	x.mounts = append(x.mounts, m)
}

var checkKeys = []string{"name", "for", "http", "tcp", "exec", "grpc", "docker", "interval", "timeout", "failures", "successes", "on_failure"}

// checkName is what a check may be called: it is a key of the store.
var checkName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Defaults of a check, as docs/reference/manifest.md and ring.Check have them.
const (
	checkInterval = 5 * time.Second
	checkTimeout  = 2 * time.Second
	checkFailures = 3
	leastInterval = 100 * time.Millisecond
)

func (d *decoder) check(n *node, x *extras) {
	if !d.mapping(n, "checks") {
		return
	}
	d.keys(n, "a check", checkKeys)
	c := ring.Check{For: ring.Readiness, Interval: checkInterval, Timeout: checkTimeout, Failures: checkFailures, Successes: 1}
	sure := !mistyped(n, "name", checkKeys) && !mistyped(n, "for", checkKeys) // what it is called and for
	if f := n.get("for"); !f.null() {
		c.For = ring.CheckFor(or2(d.oneOf(f, "for", string(ring.Startup), string(ring.Readiness), string(ring.Liveness), string(ring.OfCanary)), string(c.For)))
		sure = sure && f.text == string(c.For)
	}
	c.Name = or2(d.text(n.get("name"), "name"), string(c.For))
	d.checkTimes(n, &c)
	d.checkKind(n, &c)
	if o := n.get("on_failure"); !o.null() {
		c.OnFailure = d.oneOf(o, "on_failure", "restart", "alert", "stop")
		if c.For != ring.Liveness && sure {
			d.bad(o.place, "remove it, or say for: liveness", "on_failure belongs to a liveness check")
		}
	} else if c.For == ring.Liveness {
		c.OnFailure = "restart"
	}
	if name := n.get("name"); sure && (name == nil || name.kind == scalar) {
		d.addCheck(n, c, x)
	}
}

func (d *decoder) checkTimes(n *node, c *ring.Check) {
	if v := n.get("interval"); !v.null() {
		c.Interval = d.duration(v, "interval", leastInterval)
	}
	if v := n.get("timeout"); !v.null() {
		c.Timeout = d.duration(v, "timeout", time.Millisecond)
	}
	if v := n.get("failures"); !v.null() {
		c.Failures = d.number(v, "failures", 1, 1000)
	}
	if v := n.get("successes"); !v.null() {
		c.Successes = d.number(v, "successes", 1, 1000)
	}
}

// checkKind takes the one probe that a check must have.
func (d *decoder) checkKind(n *node, c *ring.Check) {
	kinds := 0
	if h := n.get("http"); !h.null() {
		kinds++
		c.HTTP = d.http(h)
	}
	if t := n.get("tcp"); !t.null() {
		kinds++
		c.TCP = d.tcp(t)
	}
	if e := n.get("exec"); !e.null() {
		kinds++
		c.Exec = d.exec(e)
	}
	if g := n.get("grpc"); !g.null() {
		kinds++
		c.GRPC = d.grpc(g)
	}
	if v := n.get("docker"); !v.null() {
		before := len(d.faults.list)
		if c.Docker = d.boolean(v, "docker", false); c.Docker || len(d.faults.list) > before {
			kinds++
		}
	}
	// A key that is not known may be the probe that was meant.
	if kinds != 1 && !slices.ContainsFunc(n.pairs, func(p pair) bool { return !contains(checkKeys, p.key) }) {
		d.bad(n.place, "give it one of http, tcp, exec, grpc, docker", "check %s has %d probes", head(c.Name), kinds)
	}
}

func (d *decoder) addCheck(n *node, c ring.Check, x *extras) {
	if !checkName.MatchString(c.Name) {
		d.bad(n.place, "use at most 63 of a-z, 0-9, _ and -", "%q cannot be the name of a check", head(c.Name))
	}
	if c.Name == dockerCheck {
		d.bad(n.place, "choose another name", "healthcheck is the name of the check that Compose's healthcheck makes")
	}
	if first, twice := x.places[c.Name]; twice {
		if first.file == n.place.file {
			d.bad(n.place, "give each check a name of its own", "check %s is there twice, first on line %d", c.Name, first.line)
			return
		}
		for i := range x.checks {
			if x.checks[i].Name == c.Name {
				x.checks[i] = c
			}
		}
	} else {
		x.checks = append(x.checks, c)
	}
	x.places[c.Name] = n.place
}

func (d *decoder) port(n *node, name string) int {
	if n.null() {
		return 0
	}
	return d.number(n, name, 1, 65535)
}

var (
	tcpKeys  = []string{"port"}
	httpKeys = []string{"port", "path", "scheme", "host", "headers", "status", "match", "redirects"}
)

func (d *decoder) noPort(n *node, known []string, what string) {
	if !mistyped(n, "port", known) {
		d.bad(n.place, "add port:", "%s has no port", what)
	}
}

func (d *decoder) tcp(n *node) *ring.TCPCheck {
	t := &ring.TCPCheck{}
	if n.kind == scalar {
		t.Port = d.port(n, "tcp")
		return t
	}
	if !d.mapping(n, "tcp") {
		return t
	}
	d.keys(n, "tcp", tcpKeys)
	if t.Port = d.port(n.get("port"), "port"); t.Port == 0 {
		d.noPort(n, tcpKeys, "a tcp check")
	}
	return t
}

func (d *decoder) http(n *node) *ring.HTTPCheck {
	h := &ring.HTTPCheck{Path: "/"}
	if !d.mapping(n, "http") {
		return h
	}
	d.keys(n, "http", httpKeys)
	if h.Port = d.port(n.get("port"), "port"); h.Port == 0 {
		d.noPort(n, httpKeys, "an http check")
	}
	if p := n.get("path"); !p.null() {
		if h.Path = d.text(p, "path"); p.kind == scalar && !strings.HasPrefix(h.Path, "/") {
			d.bad(p.place, "write a path such as /healthz; the instance itself is asked", "path %q does not start with /", head(h.Path))
		}
	}
	if s := n.get("scheme"); !s.null() {
		h.Scheme = d.oneOf(s, "scheme", "http", "https")
	}
	h.Host, h.Match = d.text(n.get("host"), "host"), d.text(n.get("match"), "match")
	h.Redirects = d.boolean(n.get("redirects"), "redirects", false)
	h.Headers = d.textMap(n.get("headers"), "headers")
	d.headers(n.get("headers"), h.Headers)
	for _, s := range d.scalars(n.get("status"), "status") {
		h.Status = append(h.Status, d.number(s, "status", 100, 599))
	}
	return h
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func (d *decoder) headers(n *node, headers map[string]string) {
	for _, name := range sortedKeys(headers) {
		if !headerName.MatchString(name) || strings.ContainsAny(headers[name], "\r\n\x00") {
			d.bad(n.place, "write Name: value, on one line", "%q is no header", head(name))
		}
	}
}

// scalars are the entries of a list, or the one that stands for it.
func (d *decoder) scalars(n *node, name string) []*node {
	if !n.null() && n.kind == scalar {
		return []*node{n}
	}
	return d.list(n, name)
}

// exec is an argv, or a line for the container's shell.
func (d *decoder) exec(n *node) []string {
	if n.kind == scalar {
		return []string{"/bin/sh", "-c", n.text}
	}
	var out []string
	for _, it := range d.list(n, "exec") {
		out = append(out, d.text(it, "exec"))
	}
	if n.kind == list && (len(out) == 0 || n.items[0].kind == scalar && out[0] == "") {
		d.bad(n.place, fmt.Sprintf("write exec: [%s]", "program, argument"), "an exec check runs nothing")
	}
	return out
}
