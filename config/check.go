package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// check judges a decoded configuration with its defaults in, and makes its
// paths absolute.
func (c *Config) check(env func(string) string) Mistakes {
	k := &checker{file: c.File, lines: c.lines, env: env}
	if abs, err := filepath.Abs(filepath.Dir(c.File)); err == nil {
		k.dir = abs
	}
	k.host(c.Host)
	k.folder("state", &c.State)
	k.folder("data_root", &c.DataRoot)
	k.folder("env.dir", &c.Env.Dir)
	k.secrets(c)
	k.path("registries.docker_config", &c.Registries.DockerConfig)
	k.helpers(c.Registries.Helpers)
	k.engine(&c.Engine)
	k.cluster(c)
	k.path("listen.socket", &c.Listen.Socket)
	k.listen(&c.Listen)
	k.path("api.tokens", &c.API.Tokens)
	k.listenAPI(c)
	k.oidc(c.API.OIDC, c.Listen.API)
	k.report(c.Report)
	k.poll("poll", c.Poll)
	k.policy(c)
	k.variables("facts", c.Facts)
	k.variables("interpolation", c.Interpolation)
	k.limits(c)
	k.traffic(&c.Traffic)
	if n := c.Prune.KeepImages(); c.Prune.Images != nil && (n < 1 || n > maxKeepImages) {
		k.wrong("prune.images.keep", fmt.Sprintf("a number from 1 to %d; take prune out to keep every image", maxKeepImages), "prune.images.keep: %d plans cannot keep their images", n)
	}
	k.home = c.Listen.URL
	k.sources(c.Sources, c.Listen.HTTP)
	k.pulls(c.Sources)
	k.notify(c.Notify)
	return k.mistakes.sorted()
}

// A checker collects the mistakes of one configuration.
type checker struct {
	file     string
	dir      string // of the file; relative paths begin there
	home     string // listen.url
	lines    lines
	env      func(string) string
	mistakes Mistakes
}

// wrong takes what is wrong at a path; hint may be "".
func (k *checker) wrong(at, hint, says string, args ...any) {
	k.mistakes = append(k.mistakes, Mistake{
		File: k.file, Line: k.lines.at(at),
		Says: fmt.Sprintf(says, args...), Hint: hint,
	})
}

// What names look like that a configuration says.
var (
	HostName   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	SourceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	branchName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,200}$`) // docs/design/trust.md#limits
	FullSHA    = regexp.MustCompile(`^[0-9a-f]{40}$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

func (k *checker) host(name string) {
	if name == "" {
		k.wrong("host", "host: names this machine in labels and commit statuses; never change it later", "host is missing")
		return
	}
	if !HostName.MatchString(name) {
		k.wrong("host", "lower-case letters, digits, '.', '_' and '-', at most 63, beginning with a letter or digit",
			"host: %q is no name for a host", name)
	}
}

func (k *checker) engine(e *EngineConfig) {
	if e.Kind != KindDocker && e.Kind != KindSwarm {
		k.wrong("engine.kind", ring.Meant(e.Kind, []string{KindDocker, KindSwarm}), "engine.kind: %q is not known", e.Kind)
	}
	scheme, rest, _ := strings.Cut(e.URL, "://")
	switch {
	case scheme == "unix" && strings.HasPrefix(rest, "/"):
	case scheme == "tcp" && rest != "":
	default:
		k.wrong("engine.url", "unix:///var/run/docker.sock, or tcp://host:port", "engine.url: %q is no address of an engine", e.URL)
	}
}

// longestCluster is the longest name of a cluster: a config of the swarm is named after it.
const longestCluster = 40

// cluster checks what is said of a swarm, and that nothing is where there is none.
func (k *checker) cluster(c *Config) {
	e := &c.Engine
	k.path("engine.key_file", &e.KeyFile)
	if !e.Swarm() {
		for _, of := range []struct{ at, value string }{{"engine.cluster", e.Cluster}, {"engine.key_file", e.KeyFile}} {
			if of.value != "" {
				k.wrong(of.at, "write engine.kind: swarm, or take it out", "%s is of a swarm, and engine.kind is %s", of.at, e.Kind)
			}
		}
		return
	}
	switch {
	case e.Cluster == "":
		k.wrong("engine", "cluster: prod names the swarm in labels and commit statuses; never change it later", "engine.cluster is missing")
	case !HostName.MatchString(e.Cluster) || len(e.Cluster) > longestCluster:
		k.wrong("engine.cluster", fmt.Sprintf("lower-case letters, digits, '.', '_' and '-', at most %d, beginning with a letter or digit", longestCluster),
			"engine.cluster: %q is no name for a swarm", e.Cluster)
	}
	if e.KeyFile == "" {
		k.wrong("engine", "key_file: /etc/gitring/cluster-key, of 32 random bytes, the same on each manager that runs gitring",
			"engine.key_file is missing")
	}
	if c.Secrets.HostKeyFile != "" {
		k.wrong("secrets.host_key_file", "take it out", "secrets.host_key_file: on a swarm engine.key_file is the key of the keyed hashes")
	}
}

func (k *checker) listen(l *Listen) {
	if l.URL != "" {
		k.listenURL(l)
	}
	if l.HTTP == "" {
		return
	}
	if _, port, err := net.SplitHostPort(l.HTTP); err != nil || port == "" {
		k.wrong("listen.http", "write 127.0.0.1:9480, or \"\" for no listener", "listen.http: %q is not host:port", l.HTTP)
	}
}

// listenURL is what people enter at a forge: where the listener is from outside,
// a folder of a proxy included.
func (k *checker) listenURL(l *Listen) {
	const hint = "such as https://edge-1.example.org"
	u, err := url.Parse(l.URL)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		k.wrong("listen.url", hint, "listen.url: %q is no address of the web", withoutUser(l.URL))
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		k.wrong("listen.url", hint, "listen.url: an address without user, query and fragment is wanted; webhooks are authenticated by their secret")
	default:
		l.URL = strings.TrimRight(l.URL, "/")
	}
}

func (k *checker) variables(at string, vars map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !variable.MatchString(name) {
			k.wrong(at+"."+name, "letters, digits and '_', beginning with a letter", "%s: %q is no name", at, name)
		}
	}
}

func (k *checker) sources(sources []SourceConfig, http string) {
	if len(sources) == 0 {
		k.wrong("sources", "see docs/reference/configuration.md for a source to begin with", "sources: there is none to follow")
	}
	seen := map[string]int{}
	for i := range sources {
		at := fmt.Sprintf("sources[%d]", i)
		s := &sources[i]
		if first, taken := seen[s.Name]; taken && s.Name != "" {
			k.wrong(at+".name", "each source needs a name of its own", "name: %q is taken by the source in line %d", s.Name, first)
		}
		seen[s.Name] = k.lines.at(at + ".name")
		k.source(at, s)
		if s.Webhook != nil && http == "" {
			k.wrong(at+".webhook", "give listen.http an address, or take the webhook out", "webhook: nothing listens for it, because listen.http is empty")
		}
	}
}

func (k *checker) source(at string, s *SourceConfig) {
	switch {
	case s.Name == "":
		k.wrong(at, "add name:, such as \"prod\"", "this source has no name")
	case !SourceName.MatchString(s.Name):
		k.wrong(at+".name", "lower-case letters, digits, '_' and '-', at most 63, beginning with a letter or digit",
			"name: %q is no name for a source", s.Name)
	}
	k.branch(at+".branch", s.Branch)
	if clean := path.Clean(s.Path); path.IsAbs(s.Path) || clean == ".." || strings.HasPrefix(clean, "../") {
		k.wrong(at+".path", "a folder inside the commit, such as \".\" or \"hosts/edge-1\"", "path: %q leaves the repository", s.Path)
	} else {
		s.Path = clean
	}
	if _, own := k.lines[at+".poll"]; own { // else it is that of all, judged above
		k.poll(at+".poll", s.Poll)
	}
	if s.MaxAge != nil && time.Duration(*s.MaxAge) < time.Hour {
		k.wrong(at+".max_age", "30d, or leave it out for never", "max_age: %s is less than an hour", time.Duration(*s.MaxAge))
	}
	if known := []string{"auto", "approve", "observe", "commit"}; !slices.Contains(known, s.Apply) {
		k.wrong(at+".apply", ring.Meant(s.Apply, known), "apply: %q is not known", s.Apply)
	}
	remote := k.remote(at, s)
	k.auth(at+".auth", &s.Auth, remote)
	k.trust(at, s)
	k.dataRoots(at, s)
	k.webhook(at+".webhook", s.Webhook)
	k.status(at+".status", s.Status, s.URL, k.home)
}

// dataRoots takes the folders of a source's data, and of single apps of it.
func (k *checker) dataRoots(at string, s *SourceConfig) {
	k.folder(at+".data_root", &s.DataRoot)
	for _, name := range slices.Sorted(maps.Keys(s.Apps)) {
		app := s.Apps[name]
		if !SourceName.MatchString(name) {
			k.wrong(at+".apps."+name, "the app's name, as gitring status shows it", "apps: %q is no name of an app", name)
		}
		k.folder(at+".apps."+name+".data_root", &app.DataRoot)
		s.Apps[name] = app
	}
}

func (k *checker) branch(at, name string) {
	bad := !branchName.MatchString(name) || strings.Contains(name, "..") || strings.HasPrefix(name, "-") ||
		strings.HasPrefix(name, "refs/") || strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, "/")
	if bad {
		k.wrong(at, "the branch's own name, such as \"main\"", "branch: %q is no name of a branch", name)
	}
}

func (k *checker) trust(at string, s *SourceConfig) {
	if s.Trust == nil {
		k.wrong(at, "trust: {allowed_signers: /etc/gitring/allowed_signers}; {mode: disabled} runs what nobody signed",
			"source %q has no trust", s.Name)
		return
	}
	at += ".trust"
	t := s.Trust
	if known := []string{"strict", "disabled", "forge-merge", "tip"}; !slices.Contains(known, t.Mode) {
		k.wrong(at+".mode", ring.Meant(t.Mode, known), "trust.mode: %q is not known", t.Mode)
	}
	k.path(at+".allowed_signers", &t.AllowedSigners)
	k.path(at+".openpgp_keys", &t.OpenPGPKeys)
	k.path(at+".revoked_keys", &t.RevokedKeys)
	k.signers(at, t)
	k.introduction(at, t)
	if t.TrustVersion < 0 {
		k.wrong(at+".trust_version", "begin with 1, and one more with each change", "trust.trust_version: %d is less than none", t.TrustVersion)
	}
	if t.MinCommit != "" {
		k.sha(at+".min_commit", "trust.min_commit", t.MinCommit)
	}
	if t.MaxRange < 0 {
		k.wrong(at+".max_range", "the default is 10000", "trust.max_range: %d is less than one commit", t.MaxRange)
	}
}

func (k *checker) sha(at, key, value string) {
	if !FullSHA.MatchString(value) {
		k.wrong(at, "all 40 digits; git rev-parse prints them", "%s: %q is no full commit id", key, value)
	}
}

func (k *checker) webhook(at string, w *Webhook) {
	if w == nil {
		return
	}
	k.forge(at, "webhook", w.Forge, api.Forges())
	if w.SecretFile == "" {
		k.wrong(at, "head -c 32 /dev/urandom | base64 > /etc/gitring/webhook-secret", "webhook.secret_file is missing")
	}
	k.path(at+".secret_file", &w.SecretFile)
}

func (k *checker) forge(at, key, forge string, known []string) {
	if forge == "" {
		k.wrong(at, "one of "+strings.Join(known, ", "), "%s.forge is missing", key)
		return
	}
	if !slices.Contains(known, forge) {
		k.wrong(at+".forge", ring.Meant(forge, known), "%s.forge: %q is not known", key, forge)
	}
}

// path makes a file's name absolute; "" stays "".
func (k *checker) path(at string, p *string) {
	if *p == "" {
		return
	}
	expanded, err := k.expand(*p)
	if err != nil {
		k.wrong(at, "systemd sets it for LoadCredential=; nothing else is expanded", "%s: %v", keyOf(at), err)
		return
	}
	if !filepath.IsAbs(expanded) {
		expanded = filepath.Join(k.dir, expanded)
	}
	*p = filepath.Clean(expanded)
}

// folder is path, for those that containers see: the root itself is no folder
// to keep things in.
func (k *checker) folder(at string, p *string) {
	k.path(at, p)
	if *p == "/" {
		k.wrong(at, "a folder of its own", "%s: / is the whole machine", keyOf(at))
	}
}

const credentials = "${CREDENTIALS_DIRECTORY}"

func (k *checker) expand(p string) (string, error) {
	if strings.Contains(p, credentials) {
		dir := k.env("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", fmt.Errorf("CREDENTIALS_DIRECTORY is not set")
		}
		p = strings.ReplaceAll(p, credentials, dir)
	}
	if strings.Contains(p, "${") {
		return "", fmt.Errorf("only %s is expanded in %q", credentials, p)
	}
	return p, nil
}

// keyOf is a path as people write it: without the source it stands in.
func keyOf(at string) string {
	if _, rest, ok := strings.Cut(at, "]."); ok {
		return rest
	}
	return at
}

// IsBranch reports whether a name can be that of a branch.
func IsBranch(name string) bool {
	k := &checker{}
	k.branch("branch", name)
	return len(k.mistakes) == 0
}

// RemoteMistakes are what is wrong with the URL of a source's remote.
func RemoteMistakes(url string) Mistakes {
	k := &checker{}
	k.remote("sources[0]", &SourceConfig{Name: "source", URL: url})
	return k.mistakes
}
