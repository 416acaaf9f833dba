package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// DefaultFile is where the configuration is when nobody says otherwise.
const DefaultFile = "/etc/gitring/config.yaml"

// DefaultSocket is where the daemon listens when nobody says otherwise.
const DefaultSocket = "/run/gitring/gitring.sock"

// Config is the daemon's configuration (docs/reference/configuration.md). One
// that Load returned is complete: defaults are in, paths are absolute,
// and nothing in it has to be checked again.
type Config struct {
	Host          string            `yaml:"host"`
	Facts         map[string]string `yaml:"facts"`
	Interpolation map[string]string `yaml:"interpolation"`
	Env           EnvConfig         `yaml:"env"`
	Secrets       SecretsConfig     `yaml:"secrets"`
	Registries    Registries        `yaml:"registries"`
	State         string            `yaml:"state"`
	DataRoot      string            `yaml:"data_root"`
	Engine        EngineConfig      `yaml:"engine"`
	Listen        Listen            `yaml:"listen"`
	API           APIConfig         `yaml:"api"`
	Report        *ReportConfig     `yaml:"report"` // nil is none
	Poll          string            `yaml:"poll"`
	// RequireConfinement ends serve where the kernel cannot confine the process that
	// fetches whole.
	RequireConfinement bool `yaml:"require_confinement"`
	// Traffic is what the host says of fronts.
	Traffic TrafficConfig `yaml:"traffic"`

	Sources []SourceConfig `yaml:"sources"`
	Prune   Prune          `yaml:"prune"`
	Notify  []NotifyConfig `yaml:"notify"`
	// Policy is as written: a mapping, or the name of a file with one.
	Policy yaml.Node `yaml:"policy"`

	// Limits is as written; limits is what came of it.
	Limits yaml.Node `yaml:"limits"`

	File   string `yaml:"-"` // which was read
	print  string // of its words, see PrintOf
	lines  lines
	Rules  Policy `yaml:"-"` // what came of Policy
	limits limits
}

// EnvConfig says where this host keeps values that a commit must not hold.
type EnvConfig struct {
	// Dir holds a folder for each app; "" is none.
	Dir string `yaml:"dir"`
}

// Registries says where the credentials for registries are.
type Registries struct {
	// DockerConfig is a Docker CLI config.json, which need not exist; "" where
	// there is no home to look in.
	DockerConfig string `yaml:"docker_config"`
	// Helpers are credential helpers by patterns of registries: the program
	// docker-credential-<name>.
	Helpers map[string]string `yaml:"helpers"`
}

// EngineConfig says what runs the containers.
type EngineConfig struct {
	Kind string `yaml:"kind"` // docker or swarm
	URL  string `yaml:"url"`
	// Cluster is the name of a swarm, and KeyFile has the key of its keyed hashes, the same on
	// every manager that runs gitring. Both are "" for one engine.
	Cluster string `yaml:"cluster"`
	KeyFile string `yaml:"key_file"`
}

// Swarm reports whether the engine schedules by itself.
func (e *EngineConfig) Swarm() bool { return e.Kind == KindSwarm }

// OwnerName is by which what gitring makes is known, on the engine and at the forge: the name of
// the cluster, and of this host where there is none.
func (c *Config) OwnerName() string {
	if c.Engine.Swarm() {
		return c.Engine.Cluster
	}
	return c.Host
}

// Listen says where the daemon can be reached.
type Listen struct {
	Socket string `yaml:"socket"`
	// HTTP is host:port of the listener for webhooks; "" is none.
	HTTP string `yaml:"http"`
	// URL is how the world reaches HTTP, for gitring webhook url; "" is not said.
	URL string `yaml:"url"`
	// API is the listener for people and programs; nil is none.
	API *ListenAPI `yaml:"api"`
}

// ListenAPI is the listener for people and programs.
type ListenAPI struct {
	Address string `yaml:"address"`
	// URL is how the world names it; "" where only this host does.
	URL string `yaml:"url"`
	// TLS is nil for plain HTTP. Beyond loopback Plain has to say that this is meant.
	TLS   *ListenTLS `yaml:"tls"`
	Plain bool       `yaml:"plain"`
	Hosts []string   `yaml:"hosts"`
}

// ListenTLS is a certificate. The files are read again when they change.
type ListenTLS struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// APIConfig says who may sign in.
type APIConfig struct {
	Tokens string `yaml:"tokens"` // the file of them
	// OIDC is an issuer that people sign in with; nil is none.
	OIDC *OIDCConfig `yaml:"oidc"`
}

// OIDCConfig is an OpenID Connect issuer, and what those whom it knows may do.
type OIDCConfig struct {
	Issuer   string `yaml:"issuer"`
	ClientID string `yaml:"client_id"`
	// ClientSecretFile is "" where the issuer gave the client none.
	ClientSecretFile string `yaml:"client_secret_file"`
	// Scopes are asked for besides openid.
	Scopes []string `yaml:"scopes"`
	// GroupsClaim is where the issuer tells of groups.
	GroupsClaim string `yaml:"groups_claim"`
	// Roles are the scopes of an e-mail, of group:<name> and of sub:<subject>.
	Roles map[string][]string `yaml:"roles"`
}

// Prune says what is removed from this host that nothing needs any more. What
// holds data never is.
type Prune struct {
	// Images is nil where no image is ever removed.
	Images *PruneImages `yaml:"images"`
}

// PruneImages removes images that a registry gave and that nothing names.
type PruneImages struct {
	// Keep is of how many of the newest good plans of each app the images stay.
	Keep int `yaml:"keep"`
}

// KeepImages is 0 where no image is removed.
func (p *Prune) KeepImages() int {
	if p.Images == nil {
		return 0
	}
	return p.Images.Keep
}

// SourceConfig is one branch and path of one repository.
type SourceConfig struct {
	Name    string       `yaml:"name"`
	URL     string       `yaml:"url"`
	Branch  string       `yaml:"branch"`
	Path    string       `yaml:"path"`
	Poll    string       `yaml:"poll"`    // duration or cron expression; the default is in
	MaxAge  *Duration    `yaml:"max_age"` // nil is for ever
	Apply   string       `yaml:"apply"`
	Auth    AuthConfig   `yaml:"auth"`
	Trust   *TrustRules  `yaml:"trust"` // never nil after Load
	Webhook *Webhook     `yaml:"webhook"`
	Status  *ForgeStatus `yaml:"status"`

	// DataRoot is where the data of the source's apps lies; "" is the host's.
	DataRoot string               `yaml:"data_root"`
	Apps     map[string]AppConfig `yaml:"apps"`

	// Limits is as written; limits are the host's with what it says put over them.
	Limits yaml.Node `yaml:"limits"`
	limits limits
}

// AppConfig is what this host says of one app of a source.
type AppConfig struct {
	DataRoot string `yaml:"data_root"` // "" is the source's
}

// AuthConfig is what the remote wants to see. Secrets are files, never values.
type AuthConfig struct {
	Username       string `yaml:"username"`
	PasswordFile   string `yaml:"password_file"`
	SSHKeyFile     string `yaml:"ssh_key_file"`
	KnownHostsFile string `yaml:"known_hosts_file"`
}

// TrustRules say whose commits are carried out.
type TrustRules struct {
	Mode                string       `yaml:"mode"` // strict | disabled
	AllowedSigners      string       `yaml:"allowed_signers"`
	OpenPGPKeys         string       `yaml:"openpgp_keys"`
	RevokedKeys         string       `yaml:"revoked_keys"`
	Introduction        Introduction `yaml:"introduction"`
	MinCommit           string       `yaml:"min_commit"`
	RequireTarget       bool         `yaml:"require_target"`
	RequireUpToDate     bool         `yaml:"require_up_to_date"`
	ExpiryGrace         *Duration    `yaml:"expiry_grace"` // never nil after Load
	MaxRange            int          `yaml:"max_range"`
	TrustVersion        int          `yaml:"trust_version"` // 0 is none
	RequireIntroduction bool         `yaml:"require_introduction"`

	Signers        Signers `yaml:"signers"`
	Require        Require `yaml:"require"`
	SignersInRepo  string  `yaml:"signers_in_repo"` // "" is none
	TrustThreshold int     `yaml:"trust_threshold"` // 0 is 1
}

// Webhook is the way in from a forge.
type Webhook struct {
	Forge      string `yaml:"forge"`
	SecretFile string `yaml:"secret_file"`
}

// The kinds of engines.
const (
	KindDocker = "docker"
	KindSwarm  = "swarm"
)

// The defaults of docs/reference/configuration.md.
const (
	DefaultState       = "/var/lib/gitring"
	DefaultDataRoot    = "/srv/gitring"
	DefaultEngineURL   = "unix:///var/run/docker.sock"
	defaultHTTP        = "127.0.0.1:9480"
	defaultPoll        = "60s"
	DefaultBranch      = "main"
	DefaultExpiryGrace = 72 * time.Hour
	DefaultMaxRange    = 10000
	defaultKeepImages  = 3
	maxKeepImages      = 10 // of how many plans the store remembers
)

// setDefaults fills in what the file leaves out.
func (c *Config) setDefaults(env func(string) string) {
	orElse(&c.Registries.DockerConfig, DockerConfig(env))
	orElse(&c.State, DefaultState)
	orElse(&c.DataRoot, DefaultDataRoot)
	orElse(&c.Engine.Kind, KindDocker)
	orElse(&c.Engine.URL, DefaultEngineURL)
	orElse(&c.Listen.Socket, DefaultSocket)
	orElse(&c.Secrets.Dir, DefaultSecretsDir)
	if _, said := c.lines["listen.http"]; !said {
		c.Listen.HTTP = defaultHTTP
	}
	orElse(&c.Poll, defaultPoll)
	c.Traffic.setDefaults(c.lines)
	if _, said := c.lines["prune.images.keep"]; c.Prune.Images != nil && !said {
		c.Prune.Images.Keep = defaultKeepImages
	}
	for i := range c.Sources {
		c.Sources[i].setDefaults(c.Poll)
	}
}

func (s *SourceConfig) setDefaults(poll string) {
	orElse(&s.Branch, DefaultBranch)
	orElse(&s.Path, ".")
	orElse(&s.Poll, poll)
	orElse(&s.Apply, "auto")
	if s.Trust == nil {
		return
	}
	orElse(&s.Trust.Mode, "strict")
	if s.Trust.ExpiryGrace == nil {
		d := Duration(DefaultExpiryGrace)
		s.Trust.ExpiryGrace = &d
	}
	if s.Trust.MaxRange == 0 {
		s.Trust.MaxRange = DefaultMaxRange
	}
}

// DockerConfig is where Docker's own command line looks.
func DockerConfig(env func(string) string) string {
	if dir := env("DOCKER_CONFIG"); dir != "" {
		return filepath.Join(dir, "config.json")
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".docker", "config.json")
	}
	return ""
}

func orElse(s *string, otherwise string) {
	if *s == "" {
		*s = otherwise
	}
}

// dataRoots are, by app, the folders that are not the host's; "" is the
// source's own.
func (s *SourceConfig) dataRoots() map[string]string {
	roots := map[string]string{}
	if s.DataRoot != "" {
		roots[""] = s.DataRoot
	}
	for name, app := range s.Apps {
		if app.DataRoot != "" {
			roots[name] = app.DataRoot
		}
	}
	return roots
}

// SamePaths are the folders that the engine mounts for gitring: they must be
// the same ones inside and outside a container.
func (c *Config) SamePaths() []string {
	paths := []string{c.State, c.DataRoot}
	for i := range c.Sources {
		paths = append(paths, slices.Sorted(maps.Values(c.Sources[i].dataRoots()))...)
	}
	return paths
}

// Source finds a source by name; nil when there is none.
func (c *Config) Source(name string) *SourceConfig {
	for i := range c.Sources {
		if c.Sources[i].Name == name {
			return &c.Sources[i]
		}
	}
	return nil
}

// SourceNameOf makes a name for a source out of a folder's.
func SourceNameOf(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	if !SourceName.MatchString(s) {
		return "source"
	}
	return s
}
