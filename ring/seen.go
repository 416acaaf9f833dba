package ring

import "time"

// Seen is one observation of the engine: every container with this host's
// label and every network, at one moment.
type Seen struct {
	At        time.Time
	Instances []Instance
	Networks  []SeenNetwork
	// Engine names the engine's present run: what ran before it was another
	// ended with that one. "" where the engine does not tell.
	Engine string
	// Memory is the host's, in bytes; 0 is not known.
	Memory int64
	// BoundsProcesses says that the engine bounds the processes of a container that asks
	// for no bound, by a number of its own configuration.
	BoundsProcesses bool
	// Cluster is what else was seen where the engine schedules by itself; nil elsewhere.
	Cluster *Cluster
}

// State is the engine's word for a container.
type State string

// The states of a container.
const (
	StateCreated    State = "created"
	StateRunning    State = "running"
	StatePaused     State = "paused"
	StateRestarting State = "restarting"
	StateExited     State = "exited"
	StateRemoving   State = "removing"
	StateDead       State = "dead"
)

// Instance is a container with our labels, as seen.
type Instance struct {
	ID, Name string
	App      string
	Source   string
	Path     string // folder of its app inside the commit; "" where no label says it
	Service  string
	Slot     int
	Version  Version
	Commit   SHA
	Kind     Kind
	Image    string // the pin it was created with
	State    State
	Created  time.Time
	// Started and Finished are the engine's; zero when it never was.
	Started, Finished time.Time
	// Since is when it was first seen running this time, by the clock of the
	// one who decides; set by the loop, never later than its now.
	Since time.Time
	// ExitCode and OOM are of the last exit, also of one after which the engine
	// started it again, where an event told of that; RanBefore is how long the run
	// took that ended so, 0 where it is not known.
	ExitCode  int
	OOM       bool
	RanBefore time.Duration
	// Restarts is how often the engine itself restarted it.
	Restarts int
	// Policy is the engine's restart policy in force: no, always, unless-stopped, on-failure.
	Policy     string
	MaxRetries int
	// Memory is what it declares to need, in bytes: its reservation, else its
	// limit; 0 is nothing.
	Memory int64
	// Grace is what it was made with between stop signal and kill; 0 is nothing said.
	Grace time.Duration
	// Health is the engine's word: "", starting, healthy, unhealthy.
	Health string
	// Joined are the IDs of the containers that it is tied to by namespace or
	// volumes_from; one that is gone cannot be joined again.
	Joined []string
	// Addresses are by the engine's network name.
	Addresses map[string]string
	// Gateways are the addresses of the gateways of a front's networks, sorted; of no other.
	Gateways []string
	// Hand is what somebody did to end it through the engine, "stopped" or
	// "killed", where an event told of that; "" where it ended by itself, or where
	// nobody heard. What gitring ended itself is told apart by its intent.
	Hand string
	// Limits are the bounds in force that can be changed while it runs; nil is not known.
	Limits *Resources
	// Writes is what it may write that outlives it: "volume " and the engine's name of
	// one, a folder of the host by its path, and one below the host's data root by
	// DataRootMark and the path below that, too. A host port that it publishes is held
	// in the same way: PortWord and what Port.Published says.
	Writes []string
	// Node is the name of the node of a cluster that it runs on; "" elsewhere, and before it has one.
	Node string
	// Run says which run of a job it is, on a cluster; nil elsewhere. Says is what the cluster says
	// of one that has not begun, or of how it ended; "" for nothing but its exit code.
	Run  *RunMark
	Says string
	// Unheard are ports that it publishes and nothing listens on, for people; nil also
	// where that cannot be seen.
	Unheard []Unheard
}

// Unheard is a published port that nothing from outside can reach a program on.
type Unheard struct {
	Port string // "8080/tcp", the container's
	// Loopback says that one listens there for its own container alone.
	Loopback bool
}

// DataRootMark stands for the host's data root where only the host knows that.
const DataRootMark = "<data_root>"

// Live reports whether the container holds its slot: it runs or is about to.
func (in *Instance) Live() bool {
	switch in.State {
	case StateRunning, StateRestarting, StatePaused:
		return true
	}
	return false
}

// Ended reports whether it ran and does not run now.
func (in *Instance) Ended() bool {
	return in.State == StateExited || in.State == StateDead
}

// SeenNetwork is a network as seen; App is "" for one that is not ours.
type SeenNetwork struct {
	ID, Name string
	App, Key string
	// Definition is the short hash of the definition it was made from.
	Definition string
}

// Health is the fold of an instance's check results into one verdict. The zero
// value is "nothing known yet": not ready.
type Health struct {
	// Ready says that startup and every readiness check is green; Since is when
	// that began, without a break.
	Ready bool
	Since time.Time
	// Failing reports whether a startup or readiness check failed as often in a row as its
	// threshold asks: not only no answer yet.
	Failing bool
	// Unlive says that a liveness check with on_failure restart or stop has
	// failed; Act is which of the two.
	Unlive bool
	Act    string
	// Canary is the check for: canary that failed, and what it said; "" where none did.
	Canary string
	// Reason is the check that decided and what it said, when not ready or not live.
	Reason string
}

// Streak is the run of equal results of one check on one instance.
type Streak struct {
	Instance string    `json:"instance"` // container ID
	Check    string    `json:"check"`
	Started  time.Time `json:"started"` // of the instance: a restart begins anew
	// Asks is the short hash of what the check asked; "" is as it stands now.
	Asks    string    `json:"asks,omitempty"`
	Passing bool      `json:"passing"` // the verdict, after thresholds
	Since   time.Time `json:"since"`   // of the verdict: first success after the last failure
	Count   int       `json:"count"`   // equal results in a row
	Last    bool      `json:"last"`    // the last result
	Says    string    `json:"says,omitempty"`
	At      time.Time `json:"at"`
}

// Result is what one check answered on one instance, the same so many times in a
// row, for people: no decision reads it.
type Result struct {
	Instance string        `json:"instance"` // container ID
	Check    string        `json:"check"`
	OK       bool          `json:"ok"`
	Says     string        `json:"says,omitempty"` // why not
	First    time.Time     `json:"first"`
	Last     time.Time     `json:"last"`
	Count    int           `json:"count"`
	Took     time.Duration `json:"took"` // the last of them
}

// Probe asks health to watch one instance.
type Probe struct {
	Instance *Instance // as seen, and never changed after that
	Checks   []Check
	// Ready is since when an instance without any check was held to be ready, where
	// Checks are its first; zero where it was not.
	Ready time.Time
}
