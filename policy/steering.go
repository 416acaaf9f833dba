package policy

import (
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// steering judges the labels that programs with the engine's socket, such as
// reverse proxies and job runners, take as orders beyond the app that wrote them.
func (l *look) steering(all map[string]string) {
	at := *l
	at.rule = steeringRule
	at.rule.key = l.rule.key
	for _, name := range sortedKeys(all) {
		if risk := l.steers(name, all[name]); risk != "" {
			at.find(finding{value: name, at: name, risk: risk})
		}
	}
	l.out = at.out
}

// steers is what a label gives its author over others; "" is nothing. Case and
// white space are read as the most lenient consumer reads them.
func (l *look) steers(name, value string) string {
	key := strings.TrimRight(strings.ToLower(strings.TrimSpace(name)), ". ")
	first, _, _ := strings.Cut(key, ".")
	switch {
	case slices.Contains(jobRunners, first):
		return jobRisk(strings.Split(key, "."))
	case within(strings.ReplaceAll(key, ".", "/"), "io/portainer/accesscontrol"):
		return "says who may manage the container in Portainer"
	case strings.HasPrefix(key, "com.docker.swarm."), strings.HasPrefix(key, "com.docker.stack."):
		return "claims to be a part of a Swarm service or stack"
	case first == "traefik":
		return l.traefikRisk(key, value)
	case first == "caddy", caddySite.MatchString(first):
		return caddyRisk(strings.TrimSpace(name), value)
	case key == "caddy_controlled_server":
		return "has Caddy's controller send the whole proxy's configuration to the container"
	}
	return ""
}

// jobRunners are programs that run jobs by labels: Ofelia, and Chadburn, which reads
// the same ones under its own name.
var jobRunners = []string{"ofelia", "chadburn"}

// hostJobs are kinds of job that do not run inside the container that names them.
var hostJobs = []string{"job-run", "job-local", "job-service-run", "job-compose"}

// jobRisk judges ofelia.<kind>.<job>.<setting>.
func jobRisk(parts []string) string {
	last := parts[len(parts)-1]
	switch {
	case len(parts) > 1 && slices.Contains(hostJobs, parts[1]):
		return "has the job runner start a container or program of the label's choice, with any mount of the host"
	case len(parts) > 2 && last == "container", len(parts) > 3 && slices.Contains(parts[3:], "container"):
		return "has the job runner run a command in any container of the host"
	case len(parts) > 2 && last == "privileged", len(parts) > 3 && slices.Contains(parts[3:], "privileged"):
		return "has the job runner run a command with every device and the whole kernel"
	}
	return ""
}

// traefikTarget are the keys of Traefik's labels that name a service.
var traefikTarget = regexp.MustCompile(`\.(service|fallback|(services|mirrors)\[\d+\]\.name)$`)

// traefikRisk judges who a Traefik label routes to: Traefik's own services, and
// those of its files, are not the app's.
func (l *look) traefikRisk(key, value string) string {
	target := strings.ToLower(strings.Trim(value, " \t\r\n\"'`"))
	if !traefikTarget.MatchString(key) || target == "noop@internal" || l.holdsEngineSocket() {
		return ""
	}
	switch {
	case strings.HasSuffix(target, "@internal"):
		return "routes to a service of Traefik itself, such as its dashboard with every route of the host"
	case strings.HasSuffix(target, "@file"):
		return "routes to a service that only Traefik's own files name"
	}
	return ""
}

// holdsEngineSocket reports whether the container mounts an engine's socket of the
// host. Who does is refused, or has the power, already. A file of the app's own that
// bears such a name is none.
func (l *look) holdsEngineSocket() bool {
	body := deref(reflect.ValueOf(l.req.Body))
	if body.Kind() != reflect.Struct {
		return false
	}
	host := deref(body.FieldByName("HostConfig"))
	if !host.IsValid() || host.Kind() != reflect.Struct {
		return false
	}
	var sources []string
	if binds := host.FieldByName("Binds"); binds.IsValid() {
		for i := range binds.Len() {
			source, _, _ := strings.Cut(textOf(binds.Index(i)), ":")
			sources = append(sources, source)
		}
	}
	if mounts := host.FieldByName("Mounts"); mounts.IsValid() {
		for i := range mounts.Len() {
			if m := deref(mounts.Index(i)); textOf(m.FieldByName("Type")) == "bind" {
				sources = append(sources, textOf(m.FieldByName("Source")))
			}
		}
	}
	return slices.ContainsFunc(sources, func(source string) bool {
		base := path.Base(source)
		return (base == "docker.sock" || base == "podman.sock") && l.pathAt(source, false, false) != nil
	})
}

// caddySite is the first part of a label for another site of the same container.
var caddySite = regexp.MustCompile(`^caddy_\d+$`)

// caddyPart is a part of a label of caddy-docker-proxy: an order before the name, and a
// number after it that keeps equal names apart.
var caddyPart = regexp.MustCompile(`^(?:\d+_)?([^.]+?)(?:_\d+)?$`)

// caddyDirectives are those of an ordinary site; caddyBlocks of them, and
// handle_response inside reverse_proxy, hold directives again. What is below any other
// is its argument.
var (
	caddyDirectives = []string{
		"reverse_proxy", "tls", "header", "encode", "redir", "rewrite", "uri", "handle", "handle_path", "route", "basic_auth", "basicauth", "log", "respond",
	}
	caddyBlocks = []string{"handle", "handle_path", "route"}
)

// caddyRisk judges one label of caddy-docker-proxy. Its parts are directives of the
// Caddyfile, one inside the other, and its value holds the last one's arguments.
func caddyRisk(name, value string) string {
	parts := strings.Split(strings.ReplaceAll(name, `\.`, "\x00"), ".")
	block := true // the parts at hand are directives, not arguments
	var leaf string
	for _, part := range parts[1:] {
		m := caddyPart.FindStringSubmatch(part)
		if m == nil || strings.ContainsAny(part, "{}\t\r\n`\"") {
			return "breaks out of its line of the proxy's configuration"
		}
		word := m[1]
		switch {
		case !block:
			block = leaf == "reverse_proxy" && strings.HasPrefix(word, "handle_response")
		case strings.HasPrefix(word, "@"):
			block, leaf = false, word
		case !slices.Contains(caddyDirectives, word):
			return "is a directive by which Caddy serves its own files, imports others or changes the whole proxy"
		default:
			block, leaf = slices.Contains(caddyBlocks, word), word
		}
	}
	return caddyValueRisk(leaf, value)
}

var (
	// caddyUpstreams is the one template that ordinary labels have.
	caddyUpstreams = regexp.MustCompile(`\{\{-?\s*upstreams(\s+("[a-z0-9]*"|[a-z0-9]+))*\s*-?\}\}`)
	caddyFile      = regexp.MustCompile(`(?i)\{\s*file\.`)
	caddyEnv       = regexp.MustCompile(`(?i)\{\s*(env\.|\$)`)
)

// mayUseEnv are directives that do not show a value of Caddy's environment to anybody:
// "tls" has tokens for a DNS provider, the others hashes of passwords; "" is the site.
var mayUseEnv = []string{"tls", "basic_auth", "basicauth", ""}

func caddyValueRisk(directive, value string) string {
	rest := caddyUpstreams.ReplaceAllString(value, "")
	words := strings.Fields(rest)
	switch {
	case slices.Contains(words, "{"), slices.Contains(words, "}"):
		return "breaks out of its line of the proxy's configuration"
	case strings.Contains(rest, "{{"):
		return "is a template that runs inside the proxy and can read its environment"
	case caddyFile.MatchString(rest):
		return "has Caddy tell what its own files hold, such as the keys of its certificates"
	case caddyEnv.MatchString(rest) && !slices.Contains(mayUseEnv, directive):
		return "has Caddy tell what its own environment holds, such as tokens"
	}
	return ""
}
