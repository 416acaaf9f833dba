package ring

import (
	"slices"
	"strings"
	"time"
)

// Spec is what an instance runs, in engine-neutral terms, as the Compose file
// has it. Every field enters the version; a field added later must be
// omitempty, so that versions of format 1 stay what they are. Slices whose
// order means nothing are sorted by manifest.
type Spec struct {
	Image      string   `json:"image"` // as written
	PullPolicy string   `json:"pull_policy,omitempty"`
	Command    []string `json:"command,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	// CommandText and EntrypointText are set where a value of the host is more than one word
	// of a text: the text is split anew once its values are put in. The words above are then
	// those with the values still sealed.
	CommandText    string            `json:"command_text,omitempty"`
	EntrypointText string            `json:"entrypoint_text,omitempty"`
	Environment    map[string]string `json:"environment,omitempty"`
	// Unset are the names that environment has without a value, sorted: the image's own value is taken away too.
	Unset       []string          `json:"unset,omitempty"`
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

	// ContainerName is a name of the user's own, given by rename once the
	// instance before it gave it up; a service that has one runs alone.
	ContainerName string            `json:"container_name,omitempty"`
	Platform      string            `json:"platform,omitempty"` // os/arch[/variant]
	Domainname    string            `json:"domainname,omitempty"`
	MacAddress    string            `json:"mac_address,omitempty"` // on the first network
	Annotations   map[string]string `json:"annotations,omitempty"`
	Tty           bool              `json:"tty,omitempty"`
	StdinOpen     bool              `json:"stdin_open,omitempty"`
	ReadOnly      bool              `json:"read_only,omitempty"` // the root file system
	DNS           []string          `json:"dns,omitempty"`       // in the order asked
	DNSSearch     []string          `json:"dns_search,omitempty"`
	DNSOptions    []string          `json:"dns_opt,omitempty"`
	GroupAdd      []string          `json:"group_add,omitempty"`
	Sysctls       map[string]string `json:"sysctls,omitempty"`
	Ulimits       []Ulimit          `json:"ulimits,omitempty"`  // by name
	ShmSize       int64             `json:"shm_size,omitempty"` // bytes; 0 is the engine's default
	StorageOpt    map[string]string `json:"storage_opt,omitempty"`
	Resources     *Resources        `json:"resources,omitempty"`
	PostStart     []Hook            `json:"post_start,omitempty"` // after each start by gitring; a failing one fails the start
	PreStop       []Hook            `json:"pre_stop,omitempty"`   // before each stop by gitring; a failing one is told

	// What may give more of the host than Docker's defaults; policy decides.
	Privileged        bool            `json:"privileged,omitempty"`
	CapAdd            []string        `json:"cap_add,omitempty"` // upper case, without CAP_, sorted
	CapDrop           []string        `json:"cap_drop,omitempty"`
	SecurityOpt       []string        `json:"security_opt,omitempty"`
	Devices           []Device        `json:"devices,omitempty"`
	DeviceCgroupRules []string        `json:"device_cgroup_rules,omitempty"`
	DeviceRequests    []DeviceRequest `json:"device_requests,omitempty"` // gpus, deploy.resources.reservations.devices
	Runtime           string          `json:"runtime,omitempty"`
	CgroupParent      string          `json:"cgroup_parent,omitempty"`
	CgroupMode        string          `json:"cgroup,omitempty"` // host, private; "" is the engine's default
	PIDMode           string          `json:"pid,omitempty"`    // host
	IPCMode           string          `json:"ipc,omitempty"`    // host, private, shareable, none
	UTSMode           string          `json:"uts,omitempty"`    // host
	UsernsMode        string          `json:"userns_mode,omitempty"`
	// NetworkMode is "host", or "bridge" (the engine's own, on which nothing has a
	// name). "" where Networks, NoNetwork or NetworkOf say.
	NetworkMode string `json:"network_mode,omitempty"`

	// Shared fate: the services of the app whose instance of the same slot this
	// one joins, and those whose volumes it takes (docs/design/rollout.md#groups).
	// NetworkOf is also "<app>/<service>": see Elsewhere.
	NetworkOf   string        `json:"network_of,omitempty"`
	PIDOf       string        `json:"pid_of,omitempty"`
	IPCOf       string        `json:"ipc_of,omitempty"`
	VolumesFrom []VolumesFrom `json:"volumes_from,omitempty"`
	// Follows are the services whose replacement means a new instance too
	// (depends_on restart: true), sorted.
	Follows []string `json:"follows,omitempty"`

	// Mark is set by "rollout restart": a new mark is a new version.
	Mark string `json:"mark,omitempty"`

	// Cluster is set where the engine schedules by itself, and nil elsewhere.
	Cluster *ClusterSpec `json:"cluster,omitempty"`
}

// MountKind says where a mount's bytes come from.
type MountKind string

// The kinds of mounts.
const (
	MountVolume  MountKind = "volume"  // Source: the volume's key in the app
	MountContent MountKind = "content" // Source: the content's hash; always read-only
	MountData    MountKind = "data"    // Source: path below the data root
	MountSeed    MountKind = "seed"    // data, into which the files of content Seed are written when they change
	MountBind    MountKind = "bind"    // Source: absolute path on the host
	MountTmpfs   MountKind = "tmpfs"
	MountLive    MountKind = "live" // Source: key of Reload.Live; a folder whose content is swapped in place, read-only
)

// Mount is one mount of an instance.
type Mount struct {
	Kind     MountKind `json:"kind"`
	Source   string    `json:"source,omitempty"`
	File     string    `json:"file,omitempty"` // content: the one file in it to mount; "" mounts the folder
	Target   string    `json:"target"`
	ReadOnly bool      `json:"read_only,omitempty"`
	NoCopy   bool      `json:"no_copy,omitempty"` // volume: do not fill from the image
	Subpath  string    `json:"subpath,omitempty"` // volume: mount what is there in it; needs API 1.45
	Size     int64     `json:"size,omitempty"`    // tmpfs: bytes; 0 is the kernel's default
	Mode     uint32    `json:"mode,omitempty"`    // tmpfs: permission bits
	Options  string    `json:"options,omitempty"` // tmpfs: further mount options, as written

	Seed        string `json:"seed,omitempty"`        // seed: the hash of the content to write
	Create      bool   `json:"create,omitempty"`      // bind: the engine makes a missing folder, as Compose's short form has it
	MustExist   bool   `json:"must_exist,omitempty"`  // data: never made, as create_host_path: false says
	Propagation string `json:"propagation,omitempty"` // bind: "" is the engine's default, rprivate
	SELinux     string `json:"selinux,omitempty"`     // bind, data, seed, content, live: z or Z
	Rest        string `json:"rest,omitempty"`        // live: the hash of those of its files that are not reloaded in place; "" for none
	Secret      bool   `json:"secret,omitempty"`      // content: on a cluster it is a secret, because values of the host are in it
}

// Outlives reports whether what the instance writes there outlives it: two
// instances with such a mount must not run at once (I18).
func (m Mount) Outlives() bool {
	switch m.Kind {
	case MountVolume, MountData, MountSeed, MountBind:
		return !m.ReadOnly
	}
	return false
}

// Ulimit is one limit of the kernel; -1 is unlimited.
type Ulimit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"`
	Hard int64  `json:"hard"`
}

// Device is a device of the host.
type Device struct {
	Host        string `json:"host"`
	Container   string `json:"container"`
	Permissions string `json:"permissions"` // of r, w, m
}

// DeviceRequest asks a device driver of the engine, such as nvidia. Count -1 is all.
type DeviceRequest struct {
	Driver       string            `json:"driver,omitempty"`
	Count        int               `json:"count,omitempty"`
	IDs          []string          `json:"ids,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"` // all of them
	Options      map[string]string `json:"options,omitempty"`
}

// Hook is a command that runs inside an instance.
type Hook struct {
	Command     []string          `json:"command"`
	User        string            `json:"user,omitempty"`
	WorkingDir  string            `json:"working_dir,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Privileged  bool              `json:"privileged,omitempty"`
}

// VolumesFrom takes the mounts of another service's instance of the same slot.
type VolumesFrom struct {
	Service  string `json:"service"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Resources bound what an instance may use. Zero is the engine's default.
type Resources struct {
	NanoCPUs          int64  `json:"nano_cpus,omitempty"` // 1e9 is one CPU
	CPUShares         int64  `json:"cpu_shares,omitempty"`
	CPUPeriod         int64  `json:"cpu_period,omitempty"` // microseconds, as are the three below
	CPUQuota          int64  `json:"cpu_quota,omitempty"`
	CPURTPeriod       int64  `json:"cpu_rt_period,omitempty"`
	CPURTRuntime      int64  `json:"cpu_rt_runtime,omitempty"`
	CPUSet            string `json:"cpuset,omitempty"`
	Memory            int64  `json:"memory,omitempty"` // bytes
	MemoryReservation int64  `json:"memory_reservation,omitempty"`
	MemorySwap        int64  `json:"memory_swap,omitempty"` // memory and swap together; -1 is unlimited
	MemorySwappiness  *int64 `json:"memory_swappiness,omitempty"`
	PidsLimit         *int64 `json:"pids_limit,omitempty"` // -1 is unlimited
	OOMKillDisable    bool   `json:"oom_kill_disable,omitempty"`
	OOMScoreAdj       int    `json:"oom_score_adj,omitempty"`
	Blkio             *Blkio `json:"blkio,omitempty"`
}

// Blkio bounds block devices by their paths on the host.
type Blkio struct {
	Weight          uint16      `json:"weight,omitempty"`
	WeightDevice    []BlkioRate `json:"weight_device,omitempty"`
	DeviceReadBps   []BlkioRate `json:"device_read_bps,omitempty"` // bytes a second
	DeviceReadIOps  []BlkioRate `json:"device_read_iops,omitempty"`
	DeviceWriteBps  []BlkioRate `json:"device_write_bps,omitempty"`
	DeviceWriteIOps []BlkioRate `json:"device_write_iops,omitempty"`
}

// BlkioRate is a weight or a rate of one device.
type BlkioRate struct {
	Path string `json:"path"`
	Rate uint64 `json:"rate"`
}

// Owners are the services of the app whose containers an instance of s is tied
// to by ID, sorted, each once.
func (s *Spec) Owners() []string {
	if s.NetworkOf == "" && s.PIDOf == "" && s.IPCOf == "" && len(s.VolumesFrom) == 0 {
		return nil
	}
	var out []string
	network := s.NetworkOf
	if s.Elsewhere() != "" {
		network = ""
	}
	for _, o := range []string{network, s.PIDOf, s.IPCOf} {
		if o != "" {
			out = append(out, o)
		}
	}
	for _, v := range s.VolumesFrom {
		out = append(out, v.Service)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Elsewhere is the service of another app of the source whose network an instance of s is
// in, "" for none. It shares no fate with that one: it is made anew once that is another container.
func (s *Spec) Elsewhere() ServiceID {
	if !strings.Contains(s.NetworkOf, "/") {
		return ""
	}
	return ServiceID(s.NetworkOf)
}

// Ties are Owners and Elsewhere, as Action.Owners has them.
func (s *Spec) Ties() []string {
	if id := s.Elsewhere(); id != "" {
		return append(s.Owners(), string(id))
	}
	return s.Owners()
}

// Attachment joins an instance to a network of its app.
type Attachment struct {
	Network string   `json:"network"` // the key in the app
	Aliases []string `json:"aliases,omitempty"`
	// Unnamed reports whether the service's own name is none of the instance there: its front
	// has it (Route.Internal).
	Unnamed bool   `json:"unnamed,omitempty"`
	IPv4    string `json:"ipv4,omitempty"`
	IPv6    string `json:"ipv6,omitempty"`
	// LinkLocal, DriverOpts and MacAddress go to the endpoint as they are. The
	// network of the highest Priority is joined first.
	LinkLocal  []string          `json:"link_local,omitempty"`
	DriverOpts map[string]string `json:"driver_opts,omitempty"`
	MacAddress string            `json:"mac_address,omitempty"`
	Priority   int               `json:"priority,omitempty"`
}

// Healthcheck goes to the engine and counts as readiness. Zero durations and
// retries are the engine's defaults (30s, 30s, 0s, 3).
type Healthcheck struct {
	Test        []string      `json:"test,omitempty"` // ["CMD", …], ["CMD-SHELL", …], ["NONE"]
	Interval    time.Duration `json:"interval,omitempty"`
	Timeout     time.Duration `json:"timeout,omitempty"`
	StartPeriod time.Duration `json:"start_period,omitempty"`
	Retries     int           `json:"retries,omitempty"`
	// StartInterval needs API 1.44; an older engine uses Interval from the start.
	StartInterval time.Duration `json:"start_interval,omitempty"`
}

// Disabled reports whether Compose turned the image's own check off.
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
	// Name is the user's own for the engine; "" is <app>_<key>.
	Name        string            `json:"name,omitempty"`
	DriverOpts  map[string]string `json:"driver_opts,omitempty"`
	IPAMDriver  string            `json:"ipam_driver,omitempty"`
	IPAMOptions map[string]string `json:"ipam_options,omitempty"`
}

// EngineName is what the engine calls the network while its definition never
// changed: that of an external one, the user's own, else <app>_<key>.
func (n *Network) EngineName(app string) string {
	switch {
	case n.External != "":
		return n.External
	case n.Name != "":
		return n.Name
	}
	return NetworkName(app, n.Key)
}

// Pool is one ipam range of a network.
type Pool struct {
	Subnet  string `json:"subnet"`
	Gateway string `json:"gateway,omitempty"`
	IPRange string `json:"ip_range,omitempty"`
	// Aux are addresses that the engine must not give out, by name.
	Aux map[string]string `json:"aux,omitempty"`
}

// Volume is one named volume of an app. gitring creates it and never removes it.
type Volume struct {
	Key    string            `json:"key"`
	Labels map[string]string `json:"labels,omitempty"`
	// External is the engine's name of a volume that must be there; it is never
	// made. Name is the user's own for one that gitring makes.
	External string `json:"external,omitempty"`
	Name     string `json:"name,omitempty"`
	// From is the app that had the volume before, by which Name is then the volume's name
	// there; FromNone says that it is meant to begin empty; "" says nothing.
	From       string            `json:"from,omitempty"`
	Driver     string            `json:"driver,omitempty"` // "" is local
	DriverOpts map[string]string `json:"driver_opts,omitempty"`
}

// FromNone is the From of a volume that is meant to begin empty.
const FromNone = "none"

// EngineName is what the engine calls a volume of app.
func (v Volume) EngineName(app string) string {
	if v.External != "" {
		return v.External
	}
	if v.Name != "" {
		return v.Name
	}
	return VolumeName(app, v.Key)
}
