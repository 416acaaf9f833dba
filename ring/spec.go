package ring

import "time"

// Spec is what an instance runs, in engine-neutral terms, as the Compose file
// has it. Every field enters the version; a field added later must be
// omitempty, so that versions of format 1 stay what they are. Slices whose
// order means nothing are sorted by manifest.
type Spec struct {
	Image       string            `json:"image"` // as written
	PullPolicy  string            `json:"pull_policy,omitempty"`
	Command     []string          `json:"command,omitempty"`
	Entrypoint  []string          `json:"entrypoint,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	User        string            `json:"user,omitempty"`
	WorkingDir  string            `json:"working_dir,omitempty"`
	Hostname    string            `json:"hostname,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"` // the user's own
	Ports       []Port            `json:"ports,omitempty"`
	Expose      []string          `json:"expose,omitempty"` // "8080/tcp"
	Mounts      []Mount           `json:"mounts,omitempty"` // by target
	Networks    []Attachment      `json:"networks,omitempty"`
	NoNetwork   bool              `json:"no_network,omitempty"` // network_mode: none
	Healthcheck *Healthcheck      `json:"healthcheck,omitempty"`
	StopSignal  string            `json:"stop_signal,omitempty"`
	StopGrace   time.Duration     `json:"stop_grace,omitempty"` // 0: the default, 10 s
	ExtraHosts  []string          `json:"extra_hosts,omitempty"`
	Init        *bool             `json:"init,omitempty"`
	Logging     *Logging          `json:"logging,omitempty"`
	// Mark is set by "rollout restart": a new mark is a new version.
	Mark string `json:"mark,omitempty"`
}

// Port is one published port. HostPort "" lets the engine choose.
type Port struct {
	HostIP    string `json:"host_ip,omitempty"`
	HostPort  string `json:"host_port,omitempty"` // one port, never a range
	Container int    `json:"container"`
	Protocol  string `json:"protocol"` // tcp, udp, sctp
}

// MountKind says where a mount's bytes come from.
type MountKind string

// The kinds of mounts.
const (
	MountVolume  MountKind = "volume"  // Source: the volume's key in the app
	MountContent MountKind = "content" // Source: the content's hash; always read-only
	MountData    MountKind = "data"    // Source: path below the data root
	MountTmpfs   MountKind = "tmpfs"
)

// Mount is one mount of an instance.
type Mount struct {
	Kind     MountKind `json:"kind"`
	Source   string    `json:"source,omitempty"`
	File     string    `json:"file,omitempty"` // content: the one file in it to mount; "" mounts the folder
	Target   string    `json:"target"`
	ReadOnly bool      `json:"read_only,omitempty"`
	NoCopy   bool      `json:"no_copy,omitempty"` // volume: do not fill from the image
	Size     int64     `json:"size,omitempty"`    // tmpfs: bytes; 0 is the kernel's default
	Mode     uint32    `json:"mode,omitempty"`    // tmpfs: permission bits
	Options  string    `json:"options,omitempty"` // tmpfs: further mount options, as written
}

// Outlives says whether what the instance writes there outlives it: two
// instances with such a mount must not run at once (I18).
func (m Mount) Outlives() bool {
	return !m.ReadOnly && (m.Kind == MountVolume || m.Kind == MountData)
}

// Attachment joins an instance to a network of its app.
type Attachment struct {
	Network string   `json:"network"` // the key in the app
	Aliases []string `json:"aliases,omitempty"`
	IPv4    string   `json:"ipv4,omitempty"`
	IPv6    string   `json:"ipv6,omitempty"`
}

// Healthcheck goes to the engine and counts as readiness. Zero durations and
// retries are the engine's defaults (30s, 30s, 0s, 3).
type Healthcheck struct {
	Test        []string      `json:"test,omitempty"` // ["CMD", …], ["CMD-SHELL", …], ["NONE"]
	Interval    time.Duration `json:"interval,omitempty"`
	Timeout     time.Duration `json:"timeout,omitempty"`
	StartPeriod time.Duration `json:"start_period,omitempty"`
	Retries     int           `json:"retries,omitempty"`
}

// Disabled says that Compose turned the image's own check off.
func (h *Healthcheck) Disabled() bool {
	return h != nil && len(h.Test) == 1 && h.Test[0] == "NONE"
}

// Logging is the engine's log driver and its options.
type Logging struct {
	Driver  string            `json:"driver,omitempty"`
	Options map[string]string `json:"options,omitempty"`
}

// Network is one network of an app.
type Network struct {
	Key      string            `json:"key"`
	Driver   string            `json:"driver,omitempty"` // "" is bridge
	Internal bool              `json:"internal,omitempty"`
	IPv6     bool              `json:"ipv6,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Pools    []Pool            `json:"pools,omitempty"`    // ipam
	External string            `json:"external,omitempty"` // the engine's name of a network that is not ours
}

// Pool is one ipam range of a network.
type Pool struct {
	Subnet  string `json:"subnet"`
	Gateway string `json:"gateway,omitempty"`
	IPRange string `json:"ip_range,omitempty"`
}

// Volume is one named volume of an app. gitring creates it and never removes it.
type Volume struct {
	Key    string            `json:"key"`
	Labels map[string]string `json:"labels,omitempty"`
}
