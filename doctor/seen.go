package doctor

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// Asked is embedded in what a probe returns. The zero value is that nobody asked.
type Asked struct {
	Asked bool
	Err   string // why there is no answer; "" where there is one
}

// Seen is all that the checks judge.
type Seen struct {
	Now    time.Time
	Status *ring.Status // nil where no daemon answers

	Engine     Engine
	Reboot     Reboot
	Folder     Folder
	Disk       Disk
	Fronts     Fronts
	Journal    Asked // Err is what is wrong with its chain
	Backup     Backup
	Trial      Trial
	Secrets    Secrets
	Clock      Clock
	Skews      []Skew
	Trust      []ring.TrustState
	Merges     bool // some source is of mode forge-merge
	Git        Git
	Remotes    []Remote
	Forges     []ForgeToken
	Health     Health
	Webhooks   []Webhook
	Registries []Registry
	Doors      Doors
	People     People
	Tokens     Tokens
	Beside     Beside
}

// Engine is what the engine says of itself.
type Engine struct {
	Asked
	Version, API       string   // such as 28.5.2, 1.51
	Least              string   // the oldest API that is spoken to
	Lacks              []string // what Compose files may ask for and it cannot do
	Cgroup             string   // 1 or 2
	Rootless           bool
	LogDriver, Storage string
	Podman, Clock      bool // whether it is Podman, and has systemd to run checks
	// Swarm is what a swarm says of itself; nil for one engine.
	Swarm *Swarm
	// Pools is how many networks the engine can still give addresses to; -1 is not known.
	Pools  int
	AtBoot Boot
}

// Swarm is a swarm, asked by one of its managers.
type Swarm struct {
	Managers int
	Nodes    []ring.NodeStatus // as of the daemon's last look
	// Autolock reports whether a manager that starts asks a person for a key first.
	Autolock bool
}

// Boot is whether the engine is started at boot.
type Boot struct {
	Asked
	Enabled string // as systemctl is-enabled says it
	Starts  string // the commands of the unit; asked of Podman's alone
}

// Reboot is what would come back without gitring.
type Reboot struct {
	Asked
	Podman bool
	Swarm  bool     // which places what ran on a node on another one
	Ready  int      // instances that are to come back
	Stay   []string // those of them that would not, as app/service
	// Crashed are those of Stay whose restarts are gitring's for a while, because they crashed:
	// their files ask the engine for them.
	Crashed []string
}

// Folder is the state directory.
type Folder struct {
	Asked
	Path     string
	Owner    int // of the folder, and User of the one who asks; -1 is not known
	User     int
	Mode     uint32 // nine bits
	FileSort string // of the file system, where it is no local disk: nfs, tmpfs, …; "" is well
}

// Disk is the room of the state directory.
type Disk struct {
	Asked
	Free   uint64 // bytes
	Inodes uint64 // that are left
	Counts bool   // the file system counts inodes
}

// Fronts is the folder of the program that every front runs.
type Fronts struct {
	Asked
	Path   string
	NoExec bool // its mount lets no program run, and so does the mount of it in a container
}

// Trial is what an upgrade noted of a release that has to prove itself.
type Trial struct {
	Asked
	On    bool
	To    string    // the release
	Until time.Time // when it is over at the latest, where the daemon was started with it
}

// Backup is when the last one was made.
type Backup struct {
	Asked
	At    time.Time // zero is never
	Since time.Time // of the oldest thing that is remembered
}

// Secrets is how a host keeps what encrypted files hold.
type Secrets struct {
	Asked
	Dir    string // of files in memory
	Memory bool   // files lie there, and not on the disk
	Unit   bool   // they are placed there before the engine starts
	Before int    // folders of them that containers mount there, although they are to lie on the disk
	Swap   Swap
	Keys   []KeyFile
}

// Swap is whether memory of this host goes to a disk.
type Swap struct {
	Asked
	On   bool // some disk takes it
	Kept bool // the mount of Secrets.Dir keeps off it
}

// KeyFile is a file of keys that the configuration names.
type KeyFile struct {
	Asked
	Path    string
	Missing bool
	Others  bool // its mode lets others read or write it
}

// Clock is the kernel's word on it.
type Clock struct {
	Asked
	Synced bool
}

// Skew is how far somebody else's clock is from this one.
type Skew struct {
	Asked
	Host string
	By   time.Duration // positive: ours is ahead
}

// Git is the program that forge-merge needs.
type Git struct {
	Asked
	Version string // such as 2.39.5
	Old     bool   // older than 2.38
}

// Remote is the repository of a source.
type Remote struct {
	Source string
	Host   string // "" where it is a file
	DNS    Asked
}

// Health is what listen.url answers.
type Health struct {
	Asked
	URL string
}

// Webhook is what came to the webhook of a source since the daemon began.
type Webhook struct {
	Source  string
	Taken   time.Time // the newest that was taken; zero is none
	Refused int
}

// Registry is where images of plans in force come from.
type Registry struct {
	Asked
	Name, Image string
	Refused     bool // it answered, and says no
	Login       Login
	Pulls       Pulls
}

// Pulls are how many a registry still answers, where it says so. Of is 0 where it names no bound.
type Pulls struct {
	Asked
	Left, Of int
	Within   time.Duration
}

// Login is how the daemon signs in to a registry. Nothing was tried.
type Login struct {
	Asked
	Helper  string // the program that knows; "" is none
	Missing bool   // it is not on the daemon's PATH
	File    bool   // the docker config file has them
}

// Doors are the addresses that are open.
type Doors struct {
	Asked
	Hooks string // listen.http; "" is none
	Wide  bool   // it is open beyond loopback
	API   string // listen.api; "" is none
	// APIWide reports whether it is open beyond loopback, and APIPlain whether it is so without TLS.
	APIWide, APIPlain bool
	// PlainCookie reports whether browsers' cookies go over plain HTTP to the name of the host.
	PlainCookie bool
}

// Tokens are those of listen.api, where that listens.
type Tokens struct {
	Asked
	All []PersonToken
}

// PersonToken is one of them.
type PersonToken struct {
	Name  string
	Until time.Time // zero is never
}

// ForgeToken is what a forge says of the token by which a source tells it things.
type ForgeToken struct {
	Asked
	Source  string
	Silent  bool   // this kind of forge does not say
	Refused string // why it does not take the token; "" where it does
	Expires time.Time
	// Left is how many requests it may make for now, of Limit; 0 of 0 is not told.
	Left, Limit int
}

// People are the members of groups that rule a host.
type People struct {
	Asked
	Groups map[string][]string
}

// Beside is what else of Compose runs here.
type Beside struct {
	Asked
	Projects []string
}
