package ring

import (
	"strconv"
	"time"
)

// Facts is what can be neither seen nor computed, as the one who decides reads
// it. Rows are replaced whole. The zero value is a host that knows nothing.
type Facts struct {
	Apps      map[string]InForce
	Good      map[ServiceID]*Good // whole rows, which nobody changes
	Verdicts  map[string]Verdict  // by VersionKey
	Rollouts  map[ServiceID]RolloutRow
	Slots     map[string]SlotRow // by SlotKey
	Jobs      map[string]JobRun  // by VersionKey
	Intents   map[string]Intent  // by container ID
	Pins      map[string]*PinRow // by PinKey; whole rows, which nobody changes
	Approvals map[SHA]Approval
	Posts     map[string]Post // by PostKey
	Kept      map[string]Kept // by Kept.Name
	Refreshes map[ServiceID]Refresh
	Overrides map[string]OverrideRow // by OverrideKey
	Marks     map[ServiceID]Mark
	Past      map[string]Past // by PastKey
	Cron      map[ServiceID]CronRow
	Asks      map[ServiceID]Ask
	Hands     map[ServiceID]Hands
	Adopted   map[string]Adopted // by container ID
	Loads     map[string]Loaded  // by container ID
	Drift     map[ServiceID]Drift
	Troubles  map[string]Trouble // by TroubleKey
	Unread    map[string]Unread  // by container ID
	Names     map[string]Name    // by app, those that left too
	Left      map[string]Left    // by app
	Fronts    map[ServiceID]FrontRow
	Waves     map[string]WaveRow      // by source
	Awaited   map[string]AwaitedRow   // by source
	Signed    map[string]ImageVerdict // by VerdictKey
	Tags      map[string]TagRow       // by TagKey
	Ran       map[string]RanRow       // by digest
}

// A Fact is one row of the store, replaced whole under its table and key.
type Fact interface {
	Row() (table, key string)
}

// Forget is the fact that a row is no longer needed.
type Forget struct{ Table, Key string }

// Row is what is to be removed.
func (f Forget) Row() (string, string) { return f.Table, f.Key }

// InForce is the plan of an app that is being carried out, pinned.
type InForce struct {
	App   App       `json:"app"`
	Since time.Time `json:"since"`
	// Signer, Subject and Committed are those of App.Commit, for people.
	Signer    string    `json:"signer,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Committed time.Time `json:"committed,omitzero"`
	// Leaving says that the app left the commit: it has no services, and goes
	// when nothing of it is left.
	Leaving bool `json:"leaving,omitempty"`
	// Undone says that a person brought it back: it is not what Git asks for, though
	// it may be of the same commit.
	Undone bool `json:"undone,omitempty"`
}

// Row is by app.
func (f InForce) Row() (string, string) { return "app", f.App.Name }

// Good is a service as it last completed a rollout, with the networks and
// volumes it was made with: what a restore brings back.
type Good struct {
	AppName string    `json:"app_name"`
	App     App       `json:"app"` // Services are those it is tied to, with name, version and mounts alone
	Service Service   `json:"service"`
	Commit  SHA       `json:"commit"`
	At      time.Time `json:"at"`
	// With are, by what the service writes and what outlives it, the others that
	// the same plan has write it too: beside those it may come back.
	With map[string][]ServiceID `json:"with,omitempty"`
}

// Row is by service.
func (f Good) Row() (string, string) { return "good", string(ID(f.AppName, f.Service.Name)) }

// VersionKey is the key of (app, service, version).
func VersionKey(id ServiceID, v Version) string { return string(id) + "@" + string(v) }

// Verdict is the one on a version of a service. Every look asks for that on each wanted
// one: the key is put together where nothing is left of it.
func (f *Facts) Verdict(id ServiceID, v Version) (Verdict, bool) {
	var room [192]byte
	d, ok := f.Verdicts[string(append(append(append(room[:0], id...), '@'), v...))]
	return d, ok
}

// Verdict is good or failed for (app, service, version).
type Verdict struct {
	ID      ServiceID `json:"id"`
	Version Version   `json:"version"`
	Good    bool      `json:"good"`
	Commit  SHA       `json:"commit"` // that brought it
	Reason  string    `json:"reason"`
	// Code is why it failed; "" of a good one, and of one that an earlier release judged.
	Code ReasonCode `json:"code,omitempty"`
	At   time.Time  `json:"at"`
	// Memory is what the host had, in bytes, where the version failed for want of
	// it: on a host with more it is tried again.
	Memory int64 `json:"memory,omitempty"`
	// Live is the LiveVersion of a version that failed: with other files to reload
	// in place it is tried again. "" where there are none.
	Live Version `json:"live,omitempty"`
	// Final says that no instance gave cause for it, but a person or a job that runs
	// before: it stands whatever becomes of the engine or the host.
	Final bool `json:"final,omitempty"`
}

// Row is by service and version.
func (f Verdict) Row() (string, string) { return "verdict", VersionKey(f.ID, f.Version) }

// RolloutRow is the rollout under way of a service, or the last one.
type RolloutRow struct {
	ID      ServiceID `json:"id"`
	Version Version   `json:"version"` // wanted
	Commit  SHA       `json:"commit"`
	Began   time.Time `json:"began"`
	// Progress is when the last instance became ready, or Began. Ready is the
	// highest count of ready instances so far.
	Progress time.Time `json:"progress"`
	Ready    int       `json:"ready"`
	// Failures are failed instances in a row; LastFailure is the newest counted.
	Failures    int       `json:"failures,omitempty"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	Counted     []string  `json:"counted,omitempty"` // container IDs already counted
	Cause       string    `json:"cause,omitempty"`
	// Code is of the cause.
	Code ReasonCode `json:"code,omitempty"`
	// Checks are those of the wanted version and of superseded ones that still
	// run: an instance is probed by its own checks, never by newer ones.
	Checks map[Version][]Check `json:"checks,omitempty"`
	// Writes is what instances of the same versions write and what outlives them,
	// by the names that the host knows: "volume shop_data".
	Writes map[Version][]string `json:"writes,omitempty"`
	// Shared are those of the same versions that share what they write.
	Shared []Version `json:"shared,omitempty"`
	// Switched is when all of a second full set served, beside the old one that is
	// kept warm from then on. Baking is when nothing but the wanted version was
	// left, where it is watched before it is good. From the first of the two a
	// failure ends the rollout at once.
	Switched time.Time `json:"switched,omitzero"`
	Baking   time.Time `json:"baking,omitzero"`
	// Step is how many steps of a canary have passed, Stepped since when the one under way
	// has all its instances; zero is not yet. Canary is what its judge counted.
	Step    int        `json:"step,omitempty"`
	Stepped time.Time  `json:"stepped,omitzero"`
	Canary  *CanaryRow `json:"canary,omitempty"`
	// Promoted is when a person said to go on at once, past what is only time: bake,
	// warm_for, and the min_ready_time of a second full set.
	Promoted time.Time `json:"promoted,omitzero"`
	// Sent reports whether a cluster was seen to have the spec of Version.
	Sent bool `json:"sent,omitempty"`
	// Again is the version index of a cluster's service as a person wanted its version tried again:
	// what the cluster says of that index is of the try before. 0 is none.
	Again uint64 `json:"again,omitempty"`
	// Engine is Seen.Engine of the last look at the rollout under way.
	Engine string `json:"engine,omitempty"`
	Done   bool   `json:"done,omitempty"` // complete: steady since At
	// Few is, from a person's count below the plan's until the plan's is filled again, the
	// lowest slot that this left empty; 0 is none.
	Few int       `json:"few,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// Row is by service.
func (f RolloutRow) Row() (string, string) { return "rollout", string(f.ID) }

// SlotKey is the key of (app, service, slot, version): during a rollout a slot
// has two instances, and their crashes are their own.
func SlotKey(id ServiceID, slot int, v Version) string {
	return string(id) + "/" + strconv.Itoa(slot) + "@" + string(v)
}

// SlotRow is the crash record of a slot.
type SlotRow struct {
	ID       ServiceID `json:"id"`
	Slot     int       `json:"slot"`
	Version  Version   `json:"version"`
	Instance string    `json:"instance"`          // the container the counters below speak of
	Crashes  int       `json:"crashes"`           // without a stable window between them
	Restarts int       `json:"restarts"`          // the engine's own count, as last seen
	Finished time.Time `json:"finished,omitzero"` // of the last counted exit, by the engine
	ExitCode int       `json:"exit_code,omitempty"`
	OOM      bool      `json:"oom,omitempty"`
	Class    string    `json:"class,omitempty"`   // transient, permanent
	Next     time.Time `json:"next,omitzero"`     // when a restart may be tried
	Last     time.Time `json:"last,omitzero"`     // of the last crash, by the decider's clock
	Stopped  bool      `json:"stopped,omitempty"` // exit 0 under on_failure: rest until the version changes
}

// Row is by slot and version.
func (f SlotRow) Row() (string, string) { return "slot", SlotKey(f.ID, f.Slot, f.Version) }

// Intent is written before gitring stops a container, so that its exit is
// never taken for a crash. Kind: remove (drained, then removed), park (kept
// for a restore), restart, hooks (started, and its post_start hooks not yet
// done), rejoin (the namespaces it joined are gone; restarted once they are
// back), again (it ended with the engine, and is to be started again). A removal
// says whose slot it empties: until that is filled again it is nobody else's deed.
type Intent struct {
	Instance string    `json:"instance"`
	Kind     string    `json:"kind"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	ID       ServiceID `json:"id,omitempty"`
	Slot     int       `json:"slot,omitempty"`
	// Unstarted reports whether it was to be started again, or its hooks run, when it was meant
	// to go: that is done where it stays after all.
	Unstarted bool `json:"unstarted,omitempty"`
}

// Row is by container ID.
func (f Intent) Row() (string, string) { return "intent", f.Instance }

// PinKey is the key of (app, service, spec as written).
func PinKey(id ServiceID, written string) string { return string(id) + "@" + written }

// Pin is the pin of a service's spec as written; nil for one that was never asked for.
func (f *Facts) Pin(id ServiceID, written string) *PinRow {
	var room [192]byte
	return f.Pins[string(append(append(append(room[:0], id...), '@'), written...))]
}

// PinRow is a pin that a plan was given.
type PinRow struct {
	ID      ServiceID `json:"id"`
	Written string    `json:"written"`
	Pin     Pin       `json:"pin"`
	Image   Image     `json:"image,omitzero"`
	At      time.Time `json:"at"`
	// Off is when the image was removed from this host because no plan named it
	// any more; zero where it was not, or is wanted again.
	Off time.Time `json:"off,omitzero"`
}

// Row is by service and written spec.
func (f PinRow) Row() (string, string) { return "pin", PinKey(f.ID, f.Written) }

// Approval is a person's yes to a plan that a guard holds.
type Approval struct {
	Commit SHA       `json:"commit"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Row is by commit.
func (f Approval) Row() (string, string) { return "approval", string(f.Commit) }

// AwaitedRow is the plan of a source that waits for a person, and why, from when people were
// told of it until it waits no more.
type AwaitedRow struct {
	Source string `json:"source"`
	Commit SHA    `json:"commit"`
	Reason string `json:"reason"`
}

// Row is by source.
func (f AwaitedRow) Row() (string, string) { return "awaited", f.Source }

// PostKey is the key of (sha, context).
func PostKey(sha SHA, context string) string { return string(sha) + " " + context }

// Post is what the forge shall say of a commit in one context; latest wins.
type Post struct {
	Source      string    `json:"source"`
	SHA         SHA       `json:"sha"`
	Context     string    `json:"context"` // gitring/<host>[/<app>]
	State       string    `json:"state"`   // pending, success, failure, error
	Phase       string    `json:"phase,omitempty"`
	Description string    `json:"description"`
	At          time.Time `json:"at"`
	// Code is of the reason that is told, "" where it has none. Tally is how many services
	// the commit changes, adds and removes, as it was told when it was first staged.
	Code  ReasonCode `json:"code,omitempty"`
	Tally string     `json:"tally,omitempty"`
	// Turns is how often a failure that other hosts wait on was taken back.
	Turns int `json:"turns,omitempty"`
}

// Row is by sha and context.
func (f Post) Row() (string, string) { return "post", PostKey(f.SHA, f.Context) }

// Kept is a volume, a data folder or a path of the host that an instance of ours was given. It stays
// for ever, as what it names does: a thing that was there and is gone is never
// replaced by an empty one in silence.
type Kept struct {
	App string `json:"app"`
	// Name is "volume <name on the engine>", "data <absolute path>" or "path <absolute path>".
	Name string    `json:"name"`
	At   time.Time `json:"at"` // of the first time
}

// Row is by name.
func (f Kept) Row() (string, string) { return "kept", f.Name }

// Refresh is a person's wish that the tags of a service be resolved anew; pins
// made before it count no more.
type Refresh struct {
	ID     ServiceID `json:"id"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Row is by service.
func (f Refresh) Row() (string, string) { return "refresh", string(f.ID) }

// States of a post.
const (
	PostPending = "pending"
	PostSuccess = "success"
	PostFailure = "failure"
	PostError   = "error"
)
