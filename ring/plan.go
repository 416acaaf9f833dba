package ring

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Plan is everything one commit asks of this host: a pure function of the
// commit's tree and the host's declared values. Its identity is Commit.
type Plan struct {
	Source string `json:"source"`
	Commit SHA    `json:"commit"`
	Signer string `json:"signer,omitempty"`
	// AllowRemove is the commit's signed leave to remove that many services.
	AllowRemove int `json:"allow_remove,omitempty"`
	// Waves are those whose hosts come before this one, the first of them first, and
	// AllowWaves is the commit's signed leave not to wait for them.
	Waves      []Wave `json:"waves,omitempty"`
	AllowWaves bool   `json:"allow_waves,omitempty"`
	// Awaited reports whether a wave names this host: others may wait for what it says of the commit.
	Awaited bool `json:"awaited,omitempty"`
	// Data are the commit's signed answers on what holds data.
	Data []DataAnswer `json:"data,omitempty"`
	Apps []App        `json:"apps"` // by name; those that can be carried out
	// Refused are the apps that cannot, by name: each keeps its plan in force.
	Refused map[string]*Refusal `json:"refused,omitempty"`
	// Asks are, by name, what apps ask providers of the host for: provider:reference.
	Asks map[string][]string `json:"-"`
	// Awaits are, by name, the apps that lack a value which a provider of the host is asked
	// for, each with why: none of them can be put in force yet.
	Awaits map[string]string `json:"awaits,omitempty"`
	// Claims is what could be read of them.
	Claims Claims `json:"claims,omitempty"`
	// Limits are, by app, the patterns of paths to which whoever gave it its name is
	// limited; an app without an entry was named by somebody without limits.
	Limits map[string][]string `json:"-"`
	// Beside are, by app, what the policy tells of apps that share the host with it. It
	// is no part of Written: what others do changes no app.
	Beside map[string][]string `json:"-"`
	// Policy is the hash of the rules by which it was judged.
	Policy string `json:"policy,omitempty"`
	// Decisions are what the policy says of what the apps ask, refused ones among them.
	Decisions []Decision `json:"-"`
	// Doubts are what is most likely not meant and breaks no rule, each with its place.
	Doubts []string `json:"-"`
	// Refusal is a fault of the whole commit (gitring.yaml does not parse):
	// nothing of it is carried out.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Ask says of an app what it asks providers for.
func (p *Plan) Ask(app string, refs []string) {
	if p.Asks == nil {
		p.Asks = map[string][]string{}
	}
	p.Asks[app] = append(p.Asks[app], refs...)
}

// Await says of an app that it lacks a value of a provider, and why.
func (p *Plan) Await(app, why string) {
	if p.Awaits == nil {
		p.Awaits = map[string]string{}
	}
	p.Awaits[app] = why
}

// App finds an app by name; false when the plan has none or refused it.
func (p *Plan) App(name string) (App, bool) {
	for i := range p.Apps {
		if p.Apps[i].Name == name {
			return p.Apps[i], true
		}
	}
	return App{}, false
}

// MayTake reports whether whoever gave an app of the plan its name may change file too.
func (p *Plan) MayTake(app, file string) bool {
	limits, limited := p.Limits[app]
	return !limited || slices.ContainsFunc(limits, func(pattern string) bool { return MatchPath(pattern, file) })
}

// App is one Compose project. Services, Networks and Volumes are sorted by
// name, so equal apps are equal values.
type App struct {
	Name   string   `json:"name"`
	Source string   `json:"source"`
	Commit SHA      `json:"commit"` // that asked for it
	Path   string   `json:"path"`   // folder inside the commit, "." is the root
	Files  []string `json:"files"`  // Compose files, inside the commit
	// Written is the hash of the app as read, before any image is resolved: a
	// plan is a function of the host's declared values too, so one commit can
	// ask for another plan after those changed. "" compares equal to itself.
	Written  string     `json:"written,omitempty"`
	Services []Service  `json:"services"`
	Networks []Network  `json:"networks,omitempty"`
	Volumes  []Volume   `json:"volumes,omitempty"`
	After    []AfterApp `json:"after,omitempty"`
	NoPrune  bool       `json:"no_prune,omitempty"`
	// Drift is what is done about what others changed by hand: DriftHeal ("" too) or DriftReport.
	Drift string   `json:"drift,omitempty"`
	Hold  *Hold    `json:"hold,omitempty"`
	Notes []string `json:"notes,omitempty"` // what plan tells about how it was read
	// DataRoot is the folder below which the app's data lies, absolute; "" is
	// the host's. Powers are what it asks of the host beyond Docker's defaults,
	// with the risk, as plan and status list them.
	DataRoot string   `json:"data_root,omitempty"`
	Powers   []string `json:"powers,omitempty"`
	// Taken is what a signed answer had the app take over, in this commit or before it, and
	// Empty what by one begins empty, as in Kept.Name.
	Taken []Taken  `json:"taken,omitempty"`
	Empty []string `json:"empty,omitempty"`
	// Attachable are the keys of the networks that others may join.
	Attachable []string `json:"attachable,omitempty"`
	// UseFiles are, by key such as "services.vpn.cap_add.NET_ADMIN", the files that say what
	// only a grant with signers lets pass.
	UseFiles map[string][]string `json:"use_files,omitempty"`
	// Naming are the files of the commit by which the app comes to files that are not its own
	// by their names: those with include, extends or COMPOSE_FILE, links, and gitring.yaml.
	Naming []string `json:"-"`
	// Places are as Service.Places, for the app's own: "networks.front.driver_opts",
	// "volumes.data.name".
	Places map[string]Place `json:"-"`
}

// Place is where key is said, else the key above it, else the app's first file.
func (a *App) Place(key string) Place {
	if p, ok := placeOf(a.Places, key); ok {
		return p
	}
	if len(a.Files) == 0 {
		return Place{}
	}
	return Place{File: a.Files[0]}
}

// Service finds a service by name.
func (a *App) Service(name string) (Service, bool) {
	for i := range a.Services { // they are large: only the one that is found is copied
		if a.Services[i].Name == name {
			return a.Services[i], true
		}
	}
	return Service{}, false
}

// Network finds a network by its key.
func (a *App) Network(key string) (Network, bool) {
	for _, n := range a.Networks {
		if n.Key == key {
			return n, true
		}
	}
	return Network{}, false
}

// What is done about what others changed by hand.
const (
	DriftHeal   = "heal"
	DriftReport = "report"
)

// AfterApp orders apps.
type AfterApp struct {
	App   string `json:"app"`
	Until Until  `json:"until"`
}

// Until says how far a dependency must have come.
type Until string

// The three stages of a dependency; Compose's names are mapped onto them.
const (
	Started   Until = "started"
	ReadyDep  Until = "ready"
	Completed Until = "completed"
)

// Hold is a declared hold of an app. A zero Until never ends.
type Hold struct {
	Reason string    `json:"reason"`
	Until  time.Time `json:"until,omitzero"`
}

// Kind is what a service is.
type Kind string

// The kinds of services.
const (
	Worker Kind = "worker"
	JobK   Kind = "job"
	CronK  Kind = "cron"
)

// Service is one service of an app: what its instances run, and how gitring
// treats them. Only Spec, Pin and the networks it joins enter the version;
// everything else changes in place.
type Service struct {
	Name     string `json:"name"`
	Kind     Kind   `json:"kind"`
	Replicas int    `json:"replicas"` // a job has 1
	Spec     Spec   `json:"spec"`
	// Written is the hash of Spec as written: the key under which a pin is kept.
	Written string `json:"written"`
	// Pin and Version are zero until the image is resolved.
	Pin     Pin     `json:"pin,omitzero"`
	Version Version `json:"version,omitempty"`
	// Image is what the pinned image itself says; zero until it is on this host.
	Image Image `json:"image,omitzero"`
	// Changed is the commit that last changed Version.
	Changed   SHA          `json:"changed,omitempty"`
	DependsOn []Dependency `json:"depends_on,omitempty"`
	Checks    []Check      `json:"checks,omitempty"`
	Rollout   Rollout      `json:"rollout"`
	Restart   Restart      `json:"restart"`
	Job       *Job         `json:"job,omitempty"`
	Cron      *Cron        `json:"cron,omitempty"` // of kind cron
	// Updates says how its tag is followed by the clock; nil is never.
	Updates *Updates `json:"updates,omitempty"`
	// Before names the job of the app that must succeed before each rollout of
	// this service to a new version: a backup, a migration. "" is none.
	Before string  `json:"before,omitempty"`
	Reload *Reload `json:"reload,omitempty"`
	// Composed is what Docker Compose would take its hash of; nil where an earlier
	// release read the plan. It is a pointer because plans are copied often.
	Composed *Composed `json:"composed,omitempty"`
	// Route says how its front carries requests; nil is a service without one. The front
	// itself is the service HasFront names, which stands before this one: FrontOf says so.
	Route   *Route `json:"route,omitempty"`
	FrontOf string `json:"front_of,omitempty"`
	// Share says that two instances may write one volume at the same time.
	Share bool   `json:"share,omitempty"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	// Places are where the Compose files say what Spec holds, by key:
	// "privileged", "cap_add.NET_ADMIN", "volumes./data" (by target). They live as
	// long as the plan is read; a refusal made after that names the service's.
	Places map[string]Place `json:"-"`
}

// Place is a line of a file of the commit.
type Place struct {
	File string
	Line int // from 1
}

// Place is where key is said, else the key above it, else the service.
func (s *Service) Place(key string) Place {
	if p, ok := placeOf(s.Places, key); ok {
		return p
	}
	return Place{s.File, s.Line}
}

func placeOf(places map[string]Place, key string) (Place, bool) {
	for key != "" {
		if p, ok := places[key]; ok {
			return p, true
		}
		i := strings.LastIndex(key, ".")
		key = key[:max(0, i)]
	}
	return Place{}, false
}

// Mounts are those of the spec, and of each VOLUME of the image that no mount
// covers: as the anonymous volume made named, which outlives its container. What
// volumes_from covers besides is the app's to say: App.Mounts. Nothing may be
// changed in what it returns.
func (s *Service) Mounts() []Mount {
	out := slices.Clip(s.Spec.Mounts)
	for _, target := range s.Image.Volumes {
		if !slices.ContainsFunc(s.Spec.Mounts, func(m Mount) bool { return m.Target == target }) {
			out = append(out, Mount{Kind: MountVolume, Source: AnonymousVolume(s.Name, target), Target: target})
		}
	}
	return out
}

// Mounts are those of s itself. What it takes by volumes_from stands in for a
// VOLUME of its image at the same place, as it does for the engine.
func (a *App) Mounts(s *Service) []Mount {
	all := s.Mounts()
	if len(s.Spec.VolumesFrom) == 0 {
		return all
	}
	taken := a.taken(s, map[string]bool{s.Name: true})
	return slices.DeleteFunc(slices.Clone(all), func(m Mount) bool {
		declared := slices.ContainsFunc(s.Spec.Mounts, func(o Mount) bool { return o.Target == m.Target })
		return !declared && taken[m.Target]
	})
}

// taken are the targets that s has by volumes_from, at whatever distance; met
// are the services already asked.
func (a *App) taken(s *Service, met map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, from := range s.Spec.VolumesFrom {
		owner, ok := a.Service(from.Service)
		if !ok || met[from.Service] {
			continue
		}
		met[from.Service] = true
		for _, m := range owner.Mounts() {
			out[m.Target] = true
		}
		for target := range a.taken(&owner, met) {
			out[target] = true
		}
	}
	return out
}

// Alone says why two instances of s cannot run at once, "" when they can:
// docs/design/rollout.md#overlap.
func (a *App) Alone(s *Service) string {
	if why := s.alone(); why != "" {
		return why
	}
	if !s.Share {
		for _, m := range a.Mounts(s) {
			if m.Outlives() {
				return "writable " + string(m.Kind) + " " + m.Source + " at " + m.Target
			}
		}
	}
	for i := range a.Services {
		if slices.Contains(a.Services[i].Spec.Owners(), s.Name) {
			return "joined by " + a.Services[i].Name
		}
	}
	return ""
}

func (s *Service) alone() string {
	for _, p := range s.Spec.Ports {
		if p.HostPort != "" && p.Mode != PortIngress {
			return fmt.Sprintf("host port %s/%s", p.HostPort, p.Protocol)
		}
	}
	for _, n := range s.Spec.Networks {
		if n.IPv4 != "" || n.IPv6 != "" || n.MacAddress != "" || len(n.LinkLocal) > 0 {
			return "static address on network " + n.Network
		}
	}
	return s.Spec.alone()
}

func (s *Spec) alone() string {
	switch {
	case s.NetworkMode == "host":
		return "the host's network"
	case s.MacAddress != "":
		return "mac_address " + s.MacAddress
	case s.ContainerName != "":
		return "container_name " + s.ContainerName
	case len(s.Devices) > 0:
		return "device " + s.Devices[0].Host
	case slices.Contains(s.CapAdd, "NET_ADMIN"):
		return "NET_ADMIN"
	case slices.Contains(s.CapAdd, "ALL"):
		return "NET_ADMIN, by cap_add ALL"
	case s.Privileged: // every device of the host, and NET_ADMIN
		return "privileged"
	case len(s.Ties()) > 0:
		return "joins " + s.Ties()[0]
	}
	return ""
}

// HasFront is the name of the service that is the front of s, "" where it has none.
func (s *Service) HasFront() string {
	if s.Route == nil {
		return ""
	}
	return s.Name + FrontSuffix
}

// Gated reports whether readiness of an instance is probed at all.
func (s *Service) Gated() bool { return Gated(s.Checks) }

// Gated reports whether one of checks is about readiness.
func Gated(checks []Check) bool {
	for i := range checks { // they are large
		if checks[i].For.Gates() {
			return true
		}
	}
	return false
}

// Dependency is one depends_on of a service.
type Dependency struct {
	Service  string `json:"service"`
	Until    Until  `json:"until"`
	Optional bool   `json:"optional,omitempty"` // required: false
}

// CheckFor is what a check decides.
type CheckFor string

// The uses of a check.
const (
	Startup   CheckFor = "startup"
	Readiness CheckFor = "readiness"
	Liveness  CheckFor = "liveness"
	OfCanary  CheckFor = "canary" // asked of the canary's instances while its steps last
)

// Gates reports whether an instance is ready only when such a check passes.
func (f CheckFor) Gates() bool { return f != Liveness && f != OfCanary }

// Check is one probe. Exactly one of HTTP, TCP, Exec, GRPC and Docker is set.
type Check struct {
	Name      string        `json:"name"`
	For       CheckFor      `json:"for"`
	HTTP      *HTTPCheck    `json:"http,omitempty"`
	TCP       *TCPCheck     `json:"tcp,omitempty"`
	Exec      []string      `json:"exec,omitempty"`
	GRPC      *GRPCCheck    `json:"grpc,omitempty"`
	Docker    bool          `json:"docker,omitempty"`     // the engine's own verdict of the HEALTHCHECK
	Interval  time.Duration `json:"interval"`             // default 5 s
	Timeout   time.Duration `json:"timeout"`              // default 2 s
	Failures  int           `json:"failures"`             // in a row until not ready; default 3
	Successes int           `json:"successes"`            // in a row until ready; default 1
	OnFailure string        `json:"on_failure,omitempty"` // liveness: restart (default), alert, stop
}

// HTTPCheck asks the instance itself; redirects are answers, unless Redirects.
type HTTPCheck struct {
	Port    int               `json:"port"`
	Path    string            `json:"path"`             // default "/"
	Scheme  string            `json:"scheme,omitempty"` // http (default), https (certificate not checked: it is the instance itself)
	Host    string            `json:"host,omitempty"`   // Host header
	Headers map[string]string `json:"headers,omitempty"`
	Status  []int             `json:"status,omitempty"` // accepted codes; none = 200..299
	Match   string            `json:"match,omitempty"`  // the first 64 KiB of the body contain it
	// Redirects are followed, at most five and only on the instance itself.
	Redirects bool `json:"redirects,omitempty"`
}

// GRPCCheck asks the standard health service of gRPC.
type GRPCCheck struct {
	Port    int    `json:"port"`
	Service string `json:"service,omitempty"` // "" is the server as a whole
	TLS     bool   `json:"tls,omitempty"`     // certificate not checked: it is the instance itself
}

// TCPCheck opens a connection and closes it.
type TCPCheck struct {
	Port int `json:"port"`
}

// Count is a number or a percentage of the replicas.
type Count struct {
	N       int  `json:"n"`
	Percent bool `json:"percent,omitempty"`
}

// Of resolves a count for d replicas: surge rounds up, unavailable down.
func (c Count) Of(d int, up bool) int {
	if !c.Percent {
		return c.N
	}
	f := float64(c.N) * float64(d) / 100
	if up {
		return int(math.Ceil(f))
	}
	return int(math.Floor(f))
}

// Strategies and what follows a failure.
const (
	Rolling   = "rolling"
	Recreate  = "recreate"
	BlueGreen = "blue_green" // a full second set, one switch, the old kept warm for WarmFor
	Canary    = "canary"     // a share of the requests first, judged, in steps; then rolling

	OnFailureRestore  = "restore"
	OnFailurePause    = "pause"
	OnFailureContinue = "continue"
)

// Rollout holds the knobs of a rollout, complete: manifest has put
// the defaults in.
type Rollout struct {
	Strategy         string        `json:"strategy"`
	MaxSurge         Count         `json:"max_surge"`
	MaxUnavailable   Count         `json:"max_unavailable"`
	MaxParallel      int           `json:"max_parallel"`
	MinReadyTime     time.Duration `json:"min_ready_time"`
	StartTimeout     time.Duration `json:"start_timeout"`
	ProgressDeadline time.Duration `json:"progress_deadline"`
	PullTimeout      time.Duration `json:"pull_timeout"`
	FailureThreshold int           `json:"failure_threshold"`
	OnFailure        string        `json:"on_failure"`
	DrainDelay       time.Duration `json:"drain_delay"`
	// Bake is how long after completion a failure still restores; 0 is not at all.
	Bake time.Duration `json:"bake,omitempty"`
	// WarmFor is how long blue_green keeps the old set running after the switch.
	WarmFor time.Duration `json:"warm_for,omitempty"`
	// Canary is how its steps go; nil where the strategy is another.
	Canary *CanaryPlan `json:"canary,omitempty"`
	// Back are the knobs while the last good version is brought back, as Compose's
	// rollback_config has them; nil is the same as for the way there.
	Back *Back `json:"back,omitempty"`
}

// Back is how the last good version is brought back.
type Back struct {
	MaxSurge       Count         `json:"max_surge"`
	MaxUnavailable Count         `json:"max_unavailable"`
	MaxParallel    int           `json:"max_parallel"`
	MinReadyTime   time.Duration `json:"min_ready_time"`
}

// Returning is r while the last good version is brought back.
func (r Rollout) Returning() Rollout {
	if b := r.Back; b != nil {
		r.MaxSurge, r.MaxUnavailable, r.MaxParallel, r.MinReadyTime = b.MaxSurge, b.MaxUnavailable, b.MaxParallel, b.MinReadyTime
	}
	return r
}

// DefaultRollout holds the default of every knob.
func DefaultRollout() Rollout {
	return Rollout{
		Strategy: Rolling, MaxSurge: Count{N: 1}, MaxParallel: 1,
		MinReadyTime: 10 * time.Second, StartTimeout: 120 * time.Second,
		ProgressDeadline: 10 * time.Minute, PullTimeout: 10 * time.Minute,
		FailureThreshold: 2, OnFailure: OnFailureRestore,
	}
}

// Room is how far a rollout of d replicas may go above and below d by its knobs, where
// the strategy says nothing else. Both zero after rounding would never move, so surge
// becomes 1, as it is for a Compose file that says nothing.
func (r Rollout) Room(d int) (surge, unavailable int) {
	surge, unavailable = r.MaxSurge.Of(d, true), min(r.MaxUnavailable.Of(d, false), d)
	if surge == 0 && unavailable == 0 {
		surge = 1
	}
	return surge, unavailable
}

// Restart policies.
const (
	Always    = "always"
	OnFail    = "on_failure"
	NeverStop = "never"
)

// Restart is what follows an exit of a worker's instance.
type Restart struct {
	Policy     string `json:"policy"`                // always | on_failure | never
	Engine     string `json:"engine"`                // as Compose says it: always, unless-stopped, on-failure, no
	MaxRetries int    `json:"max_retries,omitempty"` // on-failure:n
	// Delay is the first wait between restarts, which doubles, and Window the run
	// that forgives the crashes before it; 0 is the default of docs/design/rollout.md#restarts.
	Delay  time.Duration `json:"delay,omitempty"`
	Window time.Duration `json:"window,omitempty"`
}

// Job is how a job runs.
type Job struct {
	Run     string        `json:"run"`     // on_change (default) | once | always
	Timeout time.Duration `json:"timeout"` // 0 is none
	Retries int           `json:"retries"`
	// Rerun begins a run anew that was interrupted: by the host, the engine, or
	// somebody else's hands.
	Rerun bool `json:"rerun_interrupted,omitempty"`
	// Replace has a newer version stop the run of an older one that is under way,
	// instead of waiting for its end.
	Replace bool `json:"replace,omitempty"`
}

// DefaultStopGrace is Compose's own: 10 s between stop signal and kill.
const DefaultStopGrace = 10 * time.Second

// Grace is how long a stop may take before the engine kills.
func (s *Service) Grace() time.Duration {
	if s.Spec.StopGrace > 0 {
		return s.Spec.StopGrace
	}
	return DefaultStopGrace
}

// Content is a file or folder of a commit that containers mount, addressed by
// the hash of its paths, modes and bytes.
type Content struct {
	Hash  string
	Files []ContentFile
}

// ValueFile is the name of the one file in a content that a plan made of a text or
// a value, and no commit has as a file.
const ValueFile = "value"

// GivenFile is that name where the text holds no value, and the file is for a user that the
// Compose file names: the daemon may not read it any more.
const GivenFile = "given"

// ContentFile is one regular file; Path is relative and clean.
type ContentFile struct {
	Path string
	Exec bool
	Read func() ([]byte, error)
	// Sealed says that the bytes hold sealed values, which are opened as the file
	// is written. Those of any other file are a commit's own and never opened.
	Sealed bool
	// As says whose the file is in the container; nil leaves it to the daemon's user, for
	// everybody to read.
	As *FileOwner
}

// FileOwner is who may do what with a mounted file.
type FileOwner struct {
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Mode uint32 `json:"mode"` // permission bits
}

// ForAll reports whether everybody may read a file of root's, as where nothing is said.
func (o *FileOwner) ForAll() bool {
	return o == nil || o.UID == 0 && o.GID == 0 && (o.Mode == 0o444 || o.Mode == 0o555)
}

// AddTo writes into the hash of a content what f adds to it, with its bytes. The
// files of a content are added in the order of their paths.
func (f ContentFile) AddTo(all io.Writer, body []byte) {
	mode := "-"
	if f.Exec {
		mode = "x"
	}
	if f.Sealed {
		mode += "s" // the same bytes in a file of the commit are not opened
	}
	if f.As != nil {
		mode += fmt.Sprintf(" %d:%d %o", f.As.UID, f.As.GID, f.As.Mode)
	}
	fmt.Fprintf(all, "%s\x00%s\x00%x\n", f.Path, mode, sha256.Sum256(body))
}

// ServiceID names a service on this host: "app/service".
type ServiceID string

// ID is the id of a service of app a.
func ID(app, service string) ServiceID { return ServiceID(app + "/" + service) }

// Split is the app and the service.
func (id ServiceID) Split() (app, service string) {
	app, service, _ = strings.Cut(string(id), "/")
	return app, service
}
