package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

var updateCorpus = flag.Bool("update", false, "write the golden files of e2e/testdata/corpus-golden anew")

const (
	corpusDir = "../../e2e/testdata/corpus"
	goldenDir = "../../e2e/testdata/corpus-golden"
)

// escapes are the stacks of the corpus that ask for more of the host than
// every app gets; invalid are those with a mistake. All others are what people
// bring on the first evening, and need no leave.
var (
	escapes = []string{
		"caddy", "gitlab-runner", "home-automation", "llm-gpu", "macvlan", "mail", "media-gpu", "monitoring", "nfs-volume", "override-other-name", "pihole",
		"portainer-like", "reverse-proxy-labels", "samba", "sidecar-pid", "updater", "vpn-joined", "wireguard",
	}
	invalid = []string{"built-here", "typo", "undefined"}
)

// The golden files are what gitring makes of stacks after the idioms of
// well-known software: they are read by people, who say whether it is what one
// expects.
func TestWhatPeopleBringIsReadAsTheyExpect(t *testing.T) {
	stacks := corpusStacks(t)
	require.GreaterOrEqual(t, len(stacks), 40)
	for _, name := range stacks {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			compose, owner := told(t, name, policy.Compose), told(t, name, policy.Owner)
			if owner == compose {
				owner = "  the same\n"
			}
			fmt.Fprintf(&b, "profile compose:\n%sprofile owner:\n%s", compose, owner)
			file := filepath.Join(goldenDir, name+".txt")
			if *updateCorpus {
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "go test ./cmd/gitring -run %s -update", t.Name())
			require.Equal(t, string(want), b.String())
		})
	}
}

func TestOrdinaryStacksPassWithoutAGrant(t *testing.T) {
	for _, name := range corpusStacks(t) {
		_, compose := readUnder(t, name, policy.Compose)
		_, owner := readUnder(t, name, policy.Owner)
		for _, r := range slices.Concat(compose, owner) {
			require.NotEmpty(t, r.File, "%s: %s", name, r.Says)
			require.NotZero(t, r.Line, "%s: %s", name, r.Says)
			require.NotEmpty(t, r.Hint, "%s: %s", name, r.Says)
		}
		switch {
		case slices.Contains(invalid, name):
			require.NotEmpty(t, compose, name)
			require.NotEmpty(t, owner, name)
		case slices.Contains(escapes, name):
			require.NotEmpty(t, compose, name)
			require.Empty(t, owner, name)
		default:
			require.Empty(t, compose, name)
			require.Empty(t, owner, name)
		}
	}
}

func corpusStacks(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(corpusDir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// readUnder is a stack as "gitring validate" reads it.
func readUnder(t *testing.T, name string, p policy.Profile) (ring.Plan, []*ring.Refusal) {
	t.Helper()
	tree, err := gitsync.OpenFolder(filepath.Join(corpusDir, name))
	require.NoError(t, err)
	defer tree.Close()
	return admission.Anywhere(p).Look(&ring.Commit{Tree: tree}, manifest.Settings{Source: name, Path: ".", Host: "edge-1"})
}

func told(t *testing.T, name string, p policy.Profile) string {
	t.Helper()
	plan, refusals := readUnder(t, name, p)
	var b strings.Builder
	tellPlan(&b, &plan, refusals)
	return b.String()
}

// tellPlan writes a plan in the short form of the golden files: what is as it
// is for every service is left out.
func tellPlan(b *strings.Builder, p *ring.Plan, refusals []*ring.Refusal) {
	for _, r := range refusals {
		fmt.Fprintf(b, "  %s %s: %s\n    hint: %s\n", r.Where(), r.Code, r.Says, r.Hint)
	}
	for i := range p.Apps {
		a := &p.Apps[i]
		fmt.Fprintf(b, "  app %s: %s\n", a.Name, strings.Join(a.Files, ", "))
		for j := range a.Services {
			tellService(b, a, &a.Services[j])
		}
		for _, n := range a.Networks {
			fmt.Fprintf(b, "    network %s: %s\n", n.Key, networkIn(n))
		}
		for _, v := range a.Volumes {
			fmt.Fprintf(b, "    volume %s: %s\n", v.Key, volumeIn(a.Name, v))
		}
		for _, note := range a.Notes {
			fmt.Fprintf(b, "    note: %s\n", note)
		}
		for _, power := range a.Powers {
			fmt.Fprintf(b, "    power: %s\n", power)
		}
	}
}

// facts are "name value" pairs that are not empty.
type facts []string

func (f *facts) add(name string, value any) {
	text := fmt.Sprint(value)
	if text == "" || text == "0" || text == "0s" || text == "false" || text == "[]" || text == "map[]" {
		return
	}
	if text == "true" {
		text = ""
	}
	*f = append(*f, strings.TrimSpace(name+" "+text))
}

func tellService(b *strings.Builder, a *ring.App, s *ring.Service) {
	fmt.Fprintf(b, "    %s %s x%d: %s\n", s.Kind, s.Name, s.Replicas, s.Spec.Image)
	line := func(f facts) {
		if len(f) > 0 {
			fmt.Fprintf(b, "      %s\n", strings.Join(f, "; "))
		}
	}
	line(runsAs(a, s))
	for _, d := range s.DependsOn {
		line(facts{"waits for " + d.Service + " " + string(d.Until) + map[bool]string{true: ", if it is there"}[d.Optional]})
	}
	if h := s.Spec.Healthcheck; h != nil {
		f := facts{"healthcheck of the image"}
		if len(h.Test) > 0 {
			f = facts{fmt.Sprintf("healthcheck %q", h.Test)}
		}
		f.add("every", h.Interval)
		f.add("timeout", h.Timeout)
		f.add("retries", h.Retries)
		f.add("start_period", h.StartPeriod)
		f.add("start_interval", h.StartInterval)
		line(f)
	}
	for _, n := range s.Spec.Networks {
		line(attachedTo(n))
	}
	for _, p := range s.Spec.Ports {
		line(facts{"port " + strings.TrimPrefix(p.HostIP+":"+p.HostPort+":", ":") + strconv.Itoa(p.Container) + "/" + p.Protocol})
	}
	for _, m := range s.Spec.Mounts {
		line(mountIn(m))
	}
	line(processOf(&s.Spec))
	line(limitsOf(&s.Spec))
	line(reachOf(&s.Spec))
	for _, h := range s.Spec.PostStart {
		line(facts{fmt.Sprintf("after its start %q as %s", h.Command, h.User)})
	}
	for _, h := range s.Spec.PreStop {
		line(facts{fmt.Sprintf("before its stop %q", h.Command)})
	}
}

// runsAs is how instances follow each other.
func runsAs(a *ring.App, s *ring.Service) facts {
	if s.Kind == ring.JobK {
		f := facts{"runs " + s.Job.Run}
		f.add("retries", s.Job.Retries)
		f.add("timeout", s.Job.Timeout)
		return f
	}
	f := facts{"rolls"}
	if why := a.Alone(s); why != "" {
		f = facts{"recreated: " + why}
	} else if s.Rollout.Strategy == ring.Recreate {
		f = facts{"recreated, as asked"}
	}
	if !s.Gated() {
		f = append(f, "ready when it runs")
	}
	def := ring.DefaultRollout()
	if s.Rollout.MaxSurge != def.MaxSurge || s.Rollout.MaxUnavailable != def.MaxUnavailable {
		f = append(f, fmt.Sprintf("surge %d, unavailable %d", s.Rollout.MaxSurge.N, s.Rollout.MaxUnavailable.N))
	}
	for _, d := range []struct {
		name     string
		got, def time.Duration
	}{{"min_ready_time", s.Rollout.MinReadyTime, def.MinReadyTime}, {"start_timeout", s.Rollout.StartTimeout, def.StartTimeout}} {
		if d.got != d.def {
			f.add(d.name, d.got)
		}
	}
	f = append(f, "restart "+s.Restart.Engine)
	f.add("at most", s.Restart.MaxRetries)
	f.add("container_name", s.Spec.ContainerName)
	return f
}

func attachedTo(n ring.Attachment) facts {
	f := facts{"on " + n.Network}
	f.add("as", strings.Join(n.Aliases, " "))
	f.add("address", n.IPv4+n.IPv6)
	f.add("mac", n.MacAddress)
	f.add("priority", n.Priority)
	return f
}

func mountIn(m ring.Mount) facts {
	from := m.Source
	switch {
	case m.Kind == ring.MountContent:
		from = "of the commit" + map[bool]string{true: ", file " + m.File}[m.File != ""]
	case m.Kind == ring.MountSeed:
		from += ", with the commit's files"
	}
	f := facts{strings.TrimSpace(fmt.Sprintf("%s -> %s", strings.TrimSpace(string(m.Kind)+" "+from), m.Target))}
	f.add("ro", m.ReadOnly)
	f.add("", m.Propagation)
	f.add("selinux", m.SELinux)
	f.add("size", m.Size)
	return f
}

// processOf is what runs in an instance.
func processOf(s *ring.Spec) (f facts) {
	if s.Entrypoint != nil {
		f.add("entrypoint", fmt.Sprintf("%q", s.Entrypoint))
	}
	if s.Command != nil {
		f.add("command", fmt.Sprintf("%q", s.Command))
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		env = append(env, name+"="+s.Environment[name])
	}
	f.add("env", strings.Join(env, " "))
	f.add("user", s.User)
	f.add("group_add", s.GroupAdd)
	f.add("working_dir", s.WorkingDir)
	f.add("hostname", strings.TrimSuffix(s.Hostname+"."+s.Domainname, "."))
	if s.Init != nil {
		f.add("init", *s.Init)
	}
	f.add("tty", s.Tty)
	f.add("stdin_open", s.StdinOpen)
	f.add("read_only", s.ReadOnly)
	f.add("stop_signal", s.StopSignal)
	f.add("stop_grace", s.StopGrace)
	f.add("platform", s.Platform)
	f.add("pull_policy", s.PullPolicy)
	f.add("labels", pairsOf(s.Labels))
	f.add("annotations", pairsOf(s.Annotations))
	return f
}

func limitsOf(s *ring.Spec) (f facts) {
	if r := s.Resources; r != nil {
		f.add("cpus", float64(r.NanoCPUs)/1e9)
		f.add("cpu_shares", r.CPUShares)
		f.add("memory", r.Memory)
		f.add("memory_reservation", r.MemoryReservation)
		if r.PidsLimit != nil {
			f.add("pids", *r.PidsLimit)
		}
	}
	f.add("shm_size", s.ShmSize)
	for _, u := range s.Ulimits {
		f = append(f, fmt.Sprintf("ulimit %s %d:%d", u.Name, u.Soft, u.Hard))
	}
	if s.Logging != nil {
		f.add("logging", s.Logging.Driver+" "+pairsOf(s.Logging.Options))
	}
	return f
}

// reachOf is what an instance may do and see outside of itself.
func reachOf(s *ring.Spec) (f facts) {
	f.add("network_mode", s.NetworkMode)
	f.add("no network", s.NoNetwork)
	f.add("joins the network of", s.NetworkOf)
	f.add("pid", s.PIDMode)
	f.add("joins the processes of", s.PIDOf)
	f.add("ipc", s.IPCMode)
	f.add("joins the ipc of", s.IPCOf)
	for _, v := range s.VolumesFrom {
		f = append(f, "volumes of "+v.Service+map[bool]string{true: " ro"}[v.ReadOnly])
	}
	f.add("made anew with", s.Follows)
	f.add("expose", s.Expose)
	f.add("dns", s.DNS)
	f.add("dns_search", s.DNSSearch)
	f.add("extra_hosts", s.ExtraHosts)
	f.add("sysctls", pairsOf(s.Sysctls))
	f.add("privileged", s.Privileged)
	f.add("cap_add", s.CapAdd)
	f.add("cap_drop", s.CapDrop)
	f.add("security_opt", s.SecurityOpt)
	for _, d := range s.Devices {
		f = append(f, "device "+d.Host+" -> "+d.Container+" "+d.Permissions)
	}
	for _, d := range s.DeviceRequests {
		f = append(f, fmt.Sprintf("device of %s, %d, %v", d.Driver, d.Count, d.Capabilities))
	}
	return f
}

func networkIn(n ring.Network) string {
	if n.External != "" {
		return "external " + n.External
	}
	f := facts{}
	f.add("name", n.Name)
	f.add("driver", n.Driver)
	f.add("options", pairsOf(n.DriverOpts))
	f.add("internal", n.Internal)
	for _, p := range n.Pools {
		f.add("subnet", p.Subnet)
		f.add("gateway", p.Gateway)
	}
	f.add("labels", pairsOf(n.Labels))
	return or(strings.Join(f, "; "), "made")
}

func volumeIn(app string, v ring.Volume) string {
	if v.External != "" {
		return "external " + v.External
	}
	f := facts{v.EngineName(app)}
	f.add("driver", v.Driver)
	f.add("options", pairsOf(v.DriverOpts))
	f.add("labels", pairsOf(v.Labels))
	return strings.Join(f, "; ")
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func pairsOf(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, " ")
}
