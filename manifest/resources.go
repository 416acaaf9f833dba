package manifest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// resources bound an instance: the keys of the service and those of
// deploy.resources, which say the same. nil when nothing is said.
func (b *builderOf) resources(c types.ServiceConfig) *ring.Resources {
	r := ring.Resources{
		NanoCPUs: nanos(c.CPUS), CPUShares: c.CPUShares, CPUPeriod: c.CPUPeriod, CPUQuota: c.CPUQuota,
		CPURTPeriod: c.CPURTPeriod, CPURTRuntime: c.CPURTRuntime, CPUSet: c.CPUSet,
		Memory: int64(c.MemLimit), MemoryReservation: int64(c.MemReservation), MemorySwap: int64(c.MemSwapLimit),
		OOMKillDisable: c.OomKillDisable, OOMScoreAdj: int(c.OomScoreAdj), Blkio: blkio(c.BlkioConfig),
	}
	if b.says("services", c.Name, "mem_swappiness") {
		n := int64(c.MemSwappiness) // 0 is not the default: it keeps anonymous memory out of swap
		r.MemorySwappiness = &n
	}
	pids := c.PidsLimit
	if c.Deploy != nil {
		b.deployed(c, &r, &pids)
	}
	if pids != 0 {
		r.PidsLimit = &pids
	}
	b.fitting(c.Name, r)
	if r == (ring.Resources{}) {
		return nil
	}
	return &r
}

// deployed puts deploy.resources over the keys of the service.
func (b *builderOf) deployed(c types.ServiceConfig, r *ring.Resources, pids *int64) {
	if l := c.Deploy.Resources.Limits; l != nil {
		b.sameAs(c.Name, "cpus", "limits.cpus", &r.NanoCPUs, nanos(l.NanoCPUs.Value()))
		b.sameAs(c.Name, "mem_limit", "limits.memory", &r.Memory, int64(l.MemoryBytes))
		b.sameAs(c.Name, "pids_limit", "limits.pids", pids, l.Pids)
	}
	if l := c.Deploy.Resources.Reservations; l != nil {
		b.sameAs(c.Name, "mem_reservation", "reservations.memory", &r.MemoryReservation, int64(l.MemoryBytes))
		if l.NanoCPUs != 0 {
			b.noteOff("%s: deploy.resources.reservations.cpus is not used: on one engine nothing can reserve a CPU", c.Name)
		}
	}
}

// sameAs takes what deploy.resources says for a key of the service, which may
// say the same or nothing.
func (b *builderOf) sameAs(service, key, deploy string, to *int64, said int64) {
	if said == 0 {
		return
	}
	if *to != 0 && *to != said {
		b.bad(b.place("services", service, key), "keep one of the two", "services.%s.%s and deploy.resources.%s differ", service, key, deploy)
	}
	*to = said
}

// fitting refuses bounds that contradict each other, which the engine would do
// when the app is half updated.
func (b *builderOf) fitting(service string, r ring.Resources) {
	at := func(key string) place { return b.place("services", service, key) }
	if r.MemorySwap > 0 && r.Memory == 0 {
		if b.anyLost(service, []string{"mem_limit"}, []string{"deploy", "resources"}) {
			return // nor is anything known of a reservation
		}
		b.bad(at("memswap_limit"), "add mem_limit", "services.%s.memswap_limit is said without mem_limit", service)
	} else if r.MemorySwap > 0 && r.MemorySwap < r.Memory {
		b.bad(at("memswap_limit"), "write memory and swap together, so at least mem_limit", "services.%s.memswap_limit is below the memory limit", service)
	}
	if r.Memory > 0 && r.MemoryReservation > r.Memory {
		b.bad(at("mem_reservation"), "reserve at most the limit", "services.%s reserves more memory than its limit", service)
	}
	for key, n := range map[string]int64{"cpu_period": r.CPUPeriod, "cpu_quota": r.CPUQuota} {
		if n > 0 && r.NanoCPUs > 0 {
			b.bad(at(key), "keep cpus", "services.%s.%s and cpus say the same thing", service, key)
		}
	}
}

// cpuSets are lists of CPUs and ranges of them.
var cpuSets = regexp.MustCompile(`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`)

func cpuSet(k *keyCheck) {
	if s := k.text(); s != "" && !cpuSets.MatchString(s) {
		k.bad("write CPUs such as 0,2 or 0-3", "%q names no CPUs", head(s))
	}
}

func blkio(c *types.BlkioConfig) *ring.Blkio {
	if c == nil {
		return nil
	}
	out := ring.Blkio{
		Weight:        c.Weight,
		DeviceReadBps: rates(c.DeviceReadBps), DeviceReadIOps: rates(c.DeviceReadIOps),
		DeviceWriteBps: rates(c.DeviceWriteBps), DeviceWriteIOps: rates(c.DeviceWriteIOps),
	}
	for _, w := range c.WeightDevice {
		out.WeightDevice = append(out.WeightDevice, ring.BlkioRate{Path: w.Path, Rate: uint64(w.Weight)})
	}
	sortRates(out.WeightDevice)
	if out.Weight == 0 && len(out.WeightDevice)+len(out.DeviceReadBps)+len(out.DeviceReadIOps)+len(out.DeviceWriteBps)+len(out.DeviceWriteIOps) == 0 {
		return nil
	}
	return &out
}

func rates(of []types.ThrottleDevice) []ring.BlkioRate {
	var out []ring.BlkioRate
	for _, t := range of {
		out = append(out, ring.BlkioRate{Path: t.Path, Rate: uint64(max(0, t.Rate))})
	}
	sortRates(out)
	return out
}

func sortRates(r []ring.BlkioRate) {
	slices.SortStableFunc(r, func(a, b ring.BlkioRate) int { return cmp.Compare(a.Path, b.Path) })
}

// ulimitNames are those that the kernel has and the engine's runtime takes.
var ulimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack",
}

// ulimitWords looks at each limit: a number, or soft and hard; -1 is unlimited.
func ulimitWords(k *keyCheck) {
	bad := func(at place, hint, says string, args ...any) {
		k.fs.add(ring.BadValue, at, hint, "%s.%s", k.name(), fmt.Sprintf(says, args...))
	}
	for _, p := range k.key.val.pairs {
		if !contains(ulimitNames, p.key) {
			bad(p.place, didYouMean(p.key, slices.Clone(ulimitNames)), "%s is no limit that the kernel has", head(p.key))
			continue
		}
		soft, hard := p.val, p.val
		if p.val.kind == mapping {
			soft, hard = p.val.get("soft"), p.val.get("hard")
		}
		if soft == nil || hard == nil {
			continue // told by the walk of the keys
		}
		s, ok := wholeOf(soft)
		h, ok2 := wholeOf(hard)
		switch {
		case !ok || !ok2 || s < -1 || h < -1:
			bad(p.place, "write a number, or -1 for no limit", "%s is no number from -1 on", p.key)
		case h != -1 && (s == -1 || s > h):
			bad(p.place, "raise hard, or lower soft", "%s has a soft limit above the hard one", p.key)
		}
	}
}

// ulimits are by name.
func ulimits(c types.ServiceConfig) []ring.Ulimit {
	var out []ring.Ulimit
	for _, name := range sortedKeys(c.Ulimits) {
		u := c.Ulimits[name]
		switch {
		case u == nil:
		case u.Single != 0:
			out = append(out, ring.Ulimit{Name: name, Soft: int64(u.Single), Hard: int64(u.Single)})
		default:
			out = append(out, ring.Ulimit{Name: name, Soft: int64(u.Soft), Hard: int64(u.Hard)})
		}
	}
	return out
}
