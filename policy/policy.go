// Package policy says what a commit may not ask of a host although it is
// signed: a signer is trusted to change apps, not to own the machine. It walks
// the very structs that are sent to the engine, field by field, and refuses
// what it has no rule for; so a new field of the engine's API widens nothing.
//
// It is pure: paths are cleaned and compared as texts. Symlinks are not
// resolved here, because a plan is judged without the host's disk; runtime
// walks a data folder component by component before it is mounted.
package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// Profile is how much of a host the signers are given.
type Profile string

// The profiles that this release carries out.
const (
	// Compose lets ordinary Compose files pass and refuses every escape.
	Compose Profile = "compose"
	// Owner is for hosts that belong to the signers: escapes are carried out,
	// and named as powers.
	Owner Profile = "owner"
)

// Rules are what this host says. The zero value is profile compose on a host
// without a folder of its own.
type Rules struct {
	Profile Profile // "" is Compose
	Host    string  // the owner label's value; "" is not compared
	// Own are the daemon's own files and folders, absolute and clean. No profile
	// lets anything at or below them be mounted, but for content in Content
	// that gitring placed there itself.
	Own     []string
	Content string
	// Secrets are further folders of contents, for files with values.
	Secrets []string
	// Live is where the live folders lie, which are as Content is.
	Live string
	// EngineGroups are the groups, by name and number, that may use the engine's
	// socket.
	EngineGroups []string
	// Services is how many services one app may bring; 0 is 100.
	Services int
	// Listen is host:port of the daemon's own listener; "" is none.
	Listen string
	// ListenAPI is that of its listener for people and programs; "" is none.
	ListenAPI string
	// DefaultRuntime is the engine's default runtime, and NvidiaRuntimes are those of
	// its runtimes that are NVIDIA's program; "" and nil where the engine was not asked.
	DefaultRuntime string
	NvidiaRuntimes []string
	// Routes are, by app, the host names that are its own: labels.routes.
	Routes map[string][]string
	// Lists are what this host says instead of its profile; nil is the profile's own.
	Lists *Lists
	// Grants are what single apps may have beside it, at the moment Now.
	Grants []Grant
	Now    time.Time
	// Signed is "" where one of the signers of a grant answers for the newest change of the
	// file in which a use stands, else why not. of and at are Finding.Of and Finding.At. nil is
	// where nobody knows who signs, such as in a folder: there it is told, and passes.
	Signed func(of, at string, signers []string) (why string)
}

// Request is one thing that the engine is about to be sent, with what is known
// of the app that asks.
type Request struct {
	App     string
	Source  string // whose app it is: a grant counts for one source and path alone
	Service string // "" for what belongs to the app as a whole
	// Key is "container", "network <key>" or "volume <key>", by the keys of the
	// Compose file.
	Key string
	// Body is the struct to send, or one that holds several. It is walked by
	// reflection and known by the names of its types.
	Body any

	DataRoot string // of the app, absolute; its data lies in DataRoot/Path
	Path     string // of the app, inside the commit
	// Taken are the data folders, absolute, that a signed answer gave the app. What they are
	// of apps in other hands is judged as ever.
	Taken []string
	// Contents are the hashes of the contents that gitring mounts for the service.
	Contents []string
	// Lives are the live folders of the instance, as paths below Rules.Live.
	Lives []string
	// Front are the mounts of the host that gitring itself gives a front, each as it stands;
	// nil is for every service that is none.
	Front []ring.HostMount
	// FrontOf is the service before which the container of a front stands: what it has of that
	// service is judged as that one's.
	FrontOf string
	// Owners are what "container:" may be followed by: containers of the same app.
	Owners []string
	// Elsewhere are those of them that are other apps' of the source, with app and service.
	Elsewhere map[string]string
	// Others is what belongs to other apps.
	Others Others
}

// Verdict is what becomes of a finding.
type Verdict string

// The verdicts.
const (
	Deny  Verdict = "deny"
	Power Verdict = "power" // carried out, and told
	Note  Verdict = "note"  // nothing beyond what every app may, but worth knowing
)

// UnknownField is the rule of a field that no rule speaks of.
const UnknownField = "UnknownField"

// Finding is one thing that a request asks beyond what every app may.
type Finding struct {
	App   string
	Rule  string // stable, such as "capabilities.add"
	Field string // such as "HostConfig.CapAdd"
	// Value is what was asked, fit to be shown: no secret, one line. "" where the
	// key says it all.
	Value string
	// Key is the key of the Compose file, "services.web.cap_add". Of is the part of
	// it that names the service, network or volume, and At what is below that,
	// with the item: "services.web" and "cap_add.NET_ADMIN".
	Key, Of, At string
	// Risk is what it would give, in one sentence without an end.
	Risk    string
	Verdict Verdict
	// Owner says that profile owner carries it out; Instead is what to write
	// otherwise, "" where there is nothing but to leave it out.
	Owner   bool
	Instead string
	// Asks is the value of a grant that lets it pass, "" where none does; Grant is
	// where the one stands that did.
	Asks, Grant string
	// Lapsed is why a grant of it does not count, and Renew what makes one count again; ""
	// where there is none.
	Lapsed, Renew string
	// Never is the entry of mounts.never that closes it to every grant, "" for none.
	Never string
}

// Says is the finding as people read it everywhere.
func (f Finding) Says() string {
	says := f.Key + ": " + f.Risk
	if f.Value != "" {
		says = f.Key + " " + f.Value + ": " + f.Risk
	}
	if f.Lapsed != "" {
		says += "; " + f.Lapsed
	}
	return says
}

// Hint is what the author can do about a denied finding.
func (f Finding) Hint() string {
	out := cmp.Or(f.Instead, "remove it")
	switch {
	case f.Renew != "":
		return out + "; " + f.Renew
	case f.Asks != "":
		return out + "; or grant it on this host: gitring policy suggest --app " + f.App + " prints the lines"
	case f.Never != "":
		return out + "; no grant covers it as long as mounts.never of this host has " + f.Never
	case f.Owner:
		return out + "; no grant covers it, only policy: {profile: owner}, where the signers own the host"
	}
	return out + "; no profile carries it out"
}

// Check gives all findings of a request, by key, value and field.
func Check(r Rules, req Request) []Finding {
	return check(table, r, req)
}

func sorted(out []Finding) []Finding {
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.At, b.At), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Risk, b.Risk))
	})
	return slices.Compact(out)
}
