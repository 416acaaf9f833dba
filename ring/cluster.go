package ring

import (
	"slices"
	"strings"
	"time"
)

// ClusterSpec is what an engine that schedules by itself is told of a service besides what its
// instances run. All of it is part of what a task is made from, and so of the version.
type ClusterSpec struct {
	// Global is one instance on each node that the constraints let pass, instead of Replicas.
	Global bool `json:"global,omitempty"`
	// Constraints are as the Compose file has them, "node.labels.disk==ssd", and Spread are the
	// preferences. PerNode is the most instances of it on one node; 0 is no bound.
	Constraints []string `json:"constraints,omitempty"`
	Spread      []string `json:"spread,omitempty"`
	PerNode     int      `json:"per_node,omitempty"`
	// Endpoint is vip or dnsrr; "" is the engine's default, vip.
	Endpoint string `json:"endpoint,omitempty"`
	// ReservedCPUs is what a node must have left, in 1e-9 of a CPU.
	ReservedCPUs int64 `json:"reserved_cpus,omitempty"`
	// Labels are those of the service, where Spec.Labels are its containers'.
	Labels map[string]string `json:"labels,omitempty"`
	// Patience is how long an instance may take until its check passes, Rollout.StartTimeout: who
	// judges that is gitring, so the cluster has to let it be for so long.
	Patience time.Duration `json:"patience,omitempty"`
	// Restart is that of the service: the engine restarts by itself, so it is part of a task.
	Restart Restart `json:"restart"`
}

// Where a cluster publishes a port.
const (
	PortIngress = "ingress" // on each node, by the cluster's mesh
	PortHost    = "host"    // on the nodes where an instance runs
)

// OnEachNode reports whether the cluster runs one instance on each node.
func (s *Spec) OnEachNode() bool { return s.Cluster != nil && s.Cluster.Global }

// PinnedTo is the constraint that has every instance of a service on one node, "" where none does.
func (s *Spec) PinnedTo() string {
	if s.Cluster == nil {
		return ""
	}
	i := slices.IndexFunc(s.Cluster.Constraints, func(c string) bool {
		key, value, equal := strings.Cut(c, "==")
		key = strings.ToLower(strings.TrimSpace(key))
		return equal && (key == "node.id" || key == "node.hostname") && strings.TrimSpace(value) != ""
	})
	if i < 0 {
		return ""
	}
	return s.Cluster.Constraints[i]
}

// Cluster is what was seen of an engine that schedules by itself.
type Cluster struct {
	Nodes    []Node           // by name, then ID
	Services []ClusterService // with this cluster's label, by name
	Runs     []ClusterRun     // of jobs, with this cluster's label, by name; each is an Instance, too
	Files    []ClusterFile    // configs and secrets with this cluster's label, by name
	Lease    Lease
	Record   ClusterRecord
}

// ClusterRecord is what the managers of a cluster write down for each other, so that none says another
// word on a commit than the one before, or begins a run that was begun. Each part keeps its newest
// entries; the zero value has none.
type ClusterRecord struct {
	Words map[string]CommitWord // by PostKey
	Begun map[string]string     // the services of runs of jobs that were begun, by BegunKey: their IDs
}

// CommitWord is the newest word on a commit, as a Post has it. An open one says no more than that it is open.
type CommitWord struct {
	Source      string     `json:"source,omitempty"`
	State       string     `json:"state"`
	Phase       string     `json:"phase,omitempty"`
	Description string     `json:"says"`
	Code        ReasonCode `json:"code,omitempty"`
	// N is its number in the record, from 1 on. In an Action it is that of the word whose place it
	// takes; 0 for none. First is that of the first word on its commit, so a commit with a greater one
	// is newer.
	N     uint64 `json:"n"`
	First uint64 `json:"first"`
	// Told reports whether the forge is known to have been told. Where it is false, it may have been.
	Told bool `json:"told,omitempty"`
}

// Open reports whether the commit is not closed by that word.
func (w CommitWord) Open() bool { return w.State == PostPending }

// Lease says which of several managers with gitring acts. The others follow: they fetch, verify
// and look, and change nothing.
type Lease struct {
	// Holder is the name of the manager that has it, and Mine whether that is this one. Zero is
	// an engine without a lease.
	Holder string
	Mine   bool
}

// Follows reports whether another manager acts.
func (c *Cluster) Follows() bool { return c != nil && c.Lease.Holder != "" && !c.Lease.Mine }

// Node is one machine of a cluster. gitring shows nodes, and changes none.
type Node struct {
	ID, Name string
	Manager  bool
	// State is the cluster's word: ready, down, unknown, disconnected. Availability is what
	// persons said of it: active, pause, drain.
	State, Availability string
	// What constraints ask about. Arch is the kernel's word, x86_64.
	OS, Arch, Addr       string
	Labels, EngineLabels map[string]string
}

// Word is the node's state in one word for people: ready, drained, paused, down, or another one
// of the cluster's.
func (n *Node) Word() string {
	switch {
	case n.State != "ready":
		return n.State
	case n.Availability == "drain":
		return "drained"
	case n.Availability == "pause":
		return "paused"
	}
	return n.State
}

// ClusterStatus is a cluster for people.
type ClusterStatus struct {
	Name string `json:"name"`
	// State is "quorum", or "no quorum": then nothing is decided, and what runs goes on.
	State string `json:"state"`
	// Acts is the manager that acts in the place of this one; "" where this one does.
	Acts string `json:"acts,omitempty"`
	// Nodes are as of the last look, by name.
	Nodes []NodeStatus `json:"nodes"`
}

// The states of a cluster.
const (
	ClusterQuorum   = "quorum"
	ClusterNoQuorum = "no quorum"
)

// NodeStatus is one node of a cluster.
type NodeStatus struct {
	Name    string `json:"name"`
	Manager bool   `json:"manager,omitempty"`
	State   string `json:"state"` // Node.Word
	// Tasks are those of ours that run there.
	Tasks int `json:"tasks"`
}

// ClusterStatusOf is the cluster of a look; nil for one engine.
func ClusterStatusOf(name string, seen *Seen) *ClusterStatus {
	if seen.Cluster == nil {
		return nil
	}
	st := &ClusterStatus{Name: name, State: ClusterQuorum, Nodes: make([]NodeStatus, len(seen.Cluster.Nodes))}
	if seen.Cluster.Follows() {
		st.Acts = seen.Cluster.Lease.Holder
	}
	for i := range seen.Cluster.Nodes {
		n := &seen.Cluster.Nodes[i]
		st.Nodes[i] = NodeStatus{Name: n.Name, Manager: n.Manager, State: n.Word()}
		for j := range seen.Instances {
			if in := &seen.Instances[j]; in.Node == n.Name && in.State == StateRunning {
				st.Nodes[i].Tasks++
			}
		}
	}
	return st
}

// UpdateState is the engine's word for how far an update of a service is; "" before the first.
type UpdateState string

// The states of an update.
const (
	UpdateRunning   UpdateState = "updating"
	UpdatePaused    UpdateState = "paused"
	UpdateCompleted UpdateState = "completed"
)

// RolledBack reports whether the engine went, or goes, back to a spec by itself. gitring never
// asks for that.
func (u UpdateState) RolledBack() bool { return strings.HasPrefix(string(u), "rollback_") }

// ClusterService is a service with our labels, as the cluster has it.
type ClusterService struct {
	ID, Name string
	App      string
	Source   string
	Service  string
	Kind     Kind
	Version  Version // of the spec in force
	Commit   SHA
	// Settings is what ClusterSettings was of the spec in force, and Sent the hash of the spec
	// that gitring sent, and Is the hash of the one in force: others where somebody changed it.
	Settings, Sent, Is string
	// Replicas is how many it is to have; 0 for one with an instance on each node, which is Global.
	Replicas int
	Global   bool
	// Index is the version index of the object: an update names the one that it was decided on.
	Index uint64
	// Update is how far the last update is, and Says the engine's sentence about it.
	Update UpdateState
	Says   string
	// Updated is when the object changed last, and Began when the update did; both by the engine.
	Updated, Began time.Time
	// Previous is the version of the spec before the one in force; "" for none.
	Previous Version
	// Condemned is the wanted version that failed, where the spec in force is another one for that.
	Condemned Version
	// Good is the version that who sent the spec in force would have gone back to; "" for none, or
	// for this one. It says which, and never what: see Good.
	Good Version
	// Files are the names of configs and secrets in its spec, and in the spec before it, sorted.
	Files []string
	// Networks are the names of those that its instances join.
	Networks []string
	// Failed is the newest task of the version in force that failed or was rejected; nil for none.
	Failed *FailedTask
	// Writes is what its tasks may write that outlives them, as that of an Instance.
	Writes []string
}

// Changed reports whether somebody changed the spec by hand.
func (s *ClusterService) Changed() bool { return s.Sent != s.Is }

// ClusterRun is what the service of one run of a job names.
type ClusterRun struct {
	Name, App, Service string
	Files, Networks    []string // as those of a ClusterService
}

// RunMark says which run of a job a service of a cluster is, for whoever finds it there.
type RunMark struct {
	Trigger, For string    // as those of a JobRun
	Due          time.Time // of a cron job's run, or of one that a person asked for; to the second, as a label has it
}

// MarkedDue is a time as the mark of a run has it.
func MarkedDue(due time.Time) time.Time { return due.UTC().Truncate(time.Second) }

// Is reports whether two marks are of one run.
func (m RunMark) Is(o RunMark) bool {
	return m.Trigger == o.Trigger && m.For == o.For && m.Due.Equal(o.Due)
}

// longestRunName is the longest name that Swarm takes for a service.
const longestRunName = 63

// RunName is what a run of a job is called on a cluster; it is the lock: there is one for a version
// of a job, and one for each time that a cron job is due.
func RunName(app, service string, v Version, mark RunMark) string {
	name, tail := app+"_"+service, "_"+v.Short()
	if !mark.Due.IsZero() {
		tail += "_" + mark.Due.UTC().Format("20060102T150405")
	}
	if room := longestRunName - len(tail); len(name) > room {
		name = name[:room-9] + "_" + hash(name)[:8]
	}
	return name + tail
}

// BegunKey is by what a ClusterRecord has a run of a job: its name, and what waits for it.
func BegunKey(name string, mark RunMark) string { return name + " " + mark.For }

// FailedTask is a task that did not come to run, or ended by itself.
type FailedTask struct {
	ID       string
	Slot     int
	Node     string // its name; "" where it never had one
	Says     string // the node's words
	ExitCode int
	// Rejected says that the node refused it: an image that it cannot have, say.
	Rejected bool
	At       time.Time
}

// ClusterFile is a config or secret with our labels. Neither ever changes.
type ClusterFile struct {
	ID, Name string
	App      string
	// Content is the hash of the content that it was made from, as Mount.Source has it.
	Content string
	Secret  bool
}

// ClusterSettings is the short hash of what of a service changes in place: how many instances
// there are, and how the engine goes from one version to the next.
func ClusterSettings(s *Service, alone bool) string {
	replicas := s.Replicas
	if s.Spec.OnEachNode() {
		replicas = 0
	}
	return hash(struct {
		Replicas int
		Rollout  Rollout
		Alone    bool
	}{replicas, s.Rollout, alone})[:8]
}
