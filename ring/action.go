package ring

import "time"

// ActionKind is one kind of step.
type ActionKind string

// The steps. Each can be repeated: its effect is the same the second time.
const (
	DoResolve ActionKind = "resolve" // ask what image a name means now
	DoVerify  ActionKind = "verify"  // ask who signed a pinned image
	DoPull    ActionKind = "pull"    // have a pinned image here
	// DoAdmit looks whether the app can be carried out beside what is on this
	// host and not ours: ForeignProject, VolumeElsewhere, what is external. It
	// changes nothing.
	DoAdmit      ActionKind = "admit"
	DoNetwork    ActionKind = "create network"
	DoCreate     ActionKind = "create"  // and join networks; and start, when Start
	DoStart      ActionKind = "start"   // finish its networks and start
	DoStop       ActionKind = "stop"    // signal, grace, kill; the container stays
	DoRemove     ActionKind = "remove"  // stop if it runs, then remove
	DoRestart    ActionKind = "restart" // stop and start the same container
	DoPolicy     ActionKind = "set restart policy"
	DoRename     ActionKind = "rename" // to NewName; a container keeps its ID and goes on running
	DoName       ActionKind = "name"   // to NewName, where nobody has it; fails where somebody has
	DoNetworkOff ActionKind = "remove network"
	DoReload     ActionKind = "reload"       // swap the content of live folders, then signal or exec; the old content comes back when that fails
	DoLog        ActionKind = "keep log"     // read the last lines of an instance for Record; changes nothing
	DoConnect    ActionKind = "connect"      // join the networks that an instance was cut off from
	DoUnpause    ActionKind = "unpause"      // let run again what somebody paused
	DoUpdate     ActionKind = "update"       // put resource limits back that somebody changed
	DoImageOff   ActionKind = "remove image" // that no plan names; InUse of what it found says that it stayed
	DoSignal     ActionKind = "signal"       // SIGHUP to a front: it starts its proxy anew, and what is open stays open
	DoRoute      ActionKind = "route"        // tell the front Instance its Table; answers with what it then says of itself
	// On an engine that schedules by itself. DoServe makes a service or sends it the spec of
	// Want, with the configs and secrets that it names. Index is the version index of the service
	// that this was decided on; 0 is none there.
	DoServe    ActionKind = "send service"
	DoServeOff ActionKind = "remove service"
	DoFileOff  ActionKind = "remove file" // a config, or with Secret a secret, that no spec names
	DoWords    ActionKind = "write down"  // the Words, for the other managers of the cluster
	DoWhose    ActionKind = "ask whose"   // fails, with the Holder, where somebody else has Name; changes nothing
)

// Action is one step on the engine, with its reason. It carries all that
// carrying it out needs.
type Action struct {
	Kind    ActionKind
	Source  string
	App     string
	Service string
	Slot    int
	Version Version
	Commit  SHA
	Reason  string
	// Instance and Name are of the container a step is about; the engine checks
	// its owner labels before it touches it.
	Instance, Name string
	NewName        string    // of a rename
	Began          time.Time // of Instance: Started, when the step was decided
	// Asked is when the step was handed on to be carried out; nil is now. It may have waited
	// for its turn since, and what the engine has said meanwhile answers it.
	Asked *time.Time
	// Of is the app, and Want the service of it, to create. Of a resolve, Want is
	// the service in force, whose pin stays where the registry knows no better.
	Of   *App
	Want *Service
	// Was is the app in force, for admit; nil when there is none.
	Was *App
	// Coming are, for admit, the networks by the engine's names that apps make which come
	// into force at once with this one. None of them has to be there yet.
	Coming []string
	// Makers are, for admit, the other apps of the commit by the networks that they make.
	Makers map[string]string
	// Adopted are, for admit, the containers of the app that a person gave into our
	// hands and that wait for its plan to come into force.
	Adopted []Adopted
	// Owners are the container IDs, by service, that a create ties the instance to.
	Owners map[string]string
	// Table is, for route, what the front is told.
	Table *FrontTable
	// Told is, for route, the kind of event that its success is; "" is RouteChanged.
	Told string
	// Kept are the data folders and volumes, by Kept.Name, that were there
	// before: one of them that is gone is never made anew.
	Kept []string
	// Index is, for what is done to a service of a cluster, the version index that it must have.
	Index uint64
	// Run says, for the create of a run of a job on a cluster, which one it is.
	Run *RunMark
	// Condemned is the wanted version that failed, where DoServe brings another one back for that.
	Condemned Version
	// Good is the last good version, where DoServe brings another one.
	Good Version
	// Anew has DoServe make every instance anew, though the cluster has that spec.
	Anew bool
	// Words are, by PostKey, the words on commits that DoWords writes down. One that another
	// manager wrote meanwhile stays.
	Words map[string]CommitWord
	// Secret says that a file to remove is a secret.
	Secret bool
	// Start says that a created instance is started at once.
	Start bool
	// Networks are the engine's names by the app's keys, for create and start.
	Networks map[string]string
	Network  *Network // to create; nil for every other step
	// NetworkName is the engine's name of the network to create or remove.
	NetworkName string
	Image       string    // resolve: as written; pull: the pin
	Tag         string    // of a resolve, the TagKey that is asked by the clock; "" for a plan
	Asks        *ImageAsk // of a verify; and of a resolve or pull, where the host asks anything of images
	Platform    string    // of a resolve or pull; "" is the engine's own
	PullPolicy  string
	Grace       time.Duration // between stop signal and kill
	Delay       time.Duration // before the stop signal
	Timeout     time.Duration // of the step; 0 is the loop's own
	Policy      string        // the engine's restart policy to set
	MaxRetries  int
	// Record is the Crash or Run that a DoLog completes with lines, and the TagRow that the
	// answer of a Tag changes.
	Record Fact
	// Then are facts that are true once the step has succeeded.
	Then []Fact
	// Lines bounds what a DoLog reads, and From and To, by the engine's clock, where
	// they are not zero.
	Lines    int
	From, To time.Time
	// Over is, for the DoLog of a crash, when its run was over: one that fails is
	// repeated up to there.
	Over time.Time
	// Back is, for a reload, the content that comes back when it fails; nil is
	// what lies there.
	Back map[string]string
}

// ImageAsk is what the host asks of an image: as the commit names it, and the print of the
// rule that counts, "" for none.
type ImageAsk struct{ Written, Rule string }

// Target is what the action keeps busy; at most one step is in flight for one
// target. A step of a service keeps the service busy.
func (a Action) Target() string {
	switch a.Kind {
	case DoResolve:
		if a.Tag != "" { // one answer is for all services of the tag, and none of them waits for it
			return "tag " + a.Tag
		}
		return "resolve " + a.Image + " " + a.App + "/" + a.Service
	case DoVerify: // one answer is for all services that want the image
		return "verify " + VerdictKey(a.Image)
	case DoPull:
		return "pull " + a.Image
	case DoNetwork, DoNetworkOff:
		return "network " + a.NetworkName
	case DoAdmit:
		return "admit " + a.App
	case DoRoute:
		return "route " + a.App + "/" + a.Service
	case DoLog: // reads only: it keeps nothing busy that anybody waits for
		return "log " + a.Instance
	case DoImageOff:
		return "image " + a.Image
	case DoWhose: // reads only, as well
		return "name " + a.Name
	case DoFileOff:
		return "file " + a.Name
	case DoWords:
		return "words"
	case DoName: // nobody waits for it
		return "name of " + a.Instance
	}
	return a.App + "/" + a.Service
}

// Try is what became of the last attempts at a target; kept in memory by the
// loop, gone after a restart or a success.
type Try struct {
	Kind    ActionKind
	Version Version
	Name    string    // of the container, where the step is about one
	Asked   string    // how an image was asked for: its pull_policy and platform, as written
	N       int       // failures in a row
	At      time.Time // of the last
	Next    time.Time // not before
	Err     string
	// Cause is a word that people filter by (docs/design/rollout.md#states): create_container_error, …
	Cause string
	// Permanent says that trying again as it is cannot help.
	Permanent bool
	// Broken is the container, by ID, that can never be started, though another in
	// its place can: the engine lost its way in it.
	Broken string
	// Surely says that it was refused so more than once in a row. Began is when it was
	// started last before that, by the engine; zero for one that never was.
	Surely bool
	Began  time.Time
	// Holder is the container of somebody else that has the name which the step needs,
	// as people read it; "" where nobody does.
	Holder string
	// Refusal is set when a commit's author can act on it.
	Refusal *Refusal
}

// EngineError is an error of the engine with what it means; runtime makes it.
type EngineError struct {
	Cause     string
	Permanent bool
	Broken    bool // this container can never be started; see Try
	Refusal   *Refusal
	Holder    string // as in Try
	// NoQuorum reports whether an engine that schedules by itself has too few managers to answer.
	NoQuorum bool
	// Wait is how long it is of no use to try again, where that is known, such
	// as a registry that limits requests; 0 leaves it to the one who decides.
	Wait time.Duration
	Err  error
}

func (e *EngineError) Error() string { return e.Err.Error() }
func (e *EngineError) Unwrap() error { return e.Err }

// Causes, by the names users filter by.
const (
	CauseImagePull = "image_pull_back_off"
	CauseCreate    = "create_container_error"
	CauseNetwork   = "network_error"
	CauseConfig    = "config_error"
	CauseFiles     = "file_system_error"
	CauseCrash     = "crash_loop_back_off"
	CauseResources = "insufficient_resources"
	CauseDeadline  = "readiness_deadline_exceeded"
	CauseReload    = "reload_failed" // the instance did not take over what it should reload; the old content is back
)

// Done is what a step found out: the container it made, the pin it resolved.
type Done struct {
	Instance string
	Pin      Pin
	Image    Image // of a pull
	// Verdict is that of a verify.
	Verdict *ImageVerdict
	// Kept are the volumes and data folders that a create found or made.
	Kept []Kept
	// Told are sentences for the journal, and Drift those about files of a seeded folder
	// that the app changed.
	Told, Drift []string
	// Front is what a front that took a table said of itself.
	Front *FrontSeen
	// Progress is a note for people, such as "already present".
	Note string
	// InUse says that an image stayed because a container uses it.
	InUse bool
	// Log are the lines that a DoLog read, redacted, the oldest first.
	Log []string
	// Checked are the last lines of what a check printed that failed, redacted as Log is.
	Checked []string
}
