package runtime

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/gitring/gitring/ring"
)

// drawn draws specs that an engine takes: what excludes each other is not drawn
// together. Equal seeds draw equal specs.
type drawn struct {
	*rand.Rand
	hash   string
	addrs  [2][2]string // free ones on the networks front and back, of IPv4 and IPv6
	number int
}

func newDrawn(seed uint64, hash string, front, back [2]string) *drawn {
	return &drawn{Rand: rand.New(rand.NewPCG(seed, 7)), hash: hash, addrs: [2][2]string{front, back}, number: int(seed)}
}

// addressIn is one inside the pool that nobody was given yet.
func addressIn(p ring.Pool) string {
	addr := netip.MustParsePrefix(p.Subnet).Addr()
	for range 5 {
		addr = addr.Next()
	}
	return addr.String()
}

// maybe is v, or else its zero value.
func maybe[T any](d *drawn, v T) (out T) {
	if d.IntN(3) > 0 {
		return v
	}
	return out
}

func pick[T any](d *drawn, all ...T) T { return all[d.IntN(len(all))] }

func (d *drawn) words(prefix string) []string {
	var out []string
	for i := range 1 + d.IntN(3) {
		out = append(out, fmt.Sprintf("%s%d-%d", prefix, i, d.IntN(100)))
	}
	return out
}

func (d *drawn) pairs(prefix string) map[string]string {
	out := map[string]string{}
	for _, w := range d.words(prefix) {
		out[w] = pick(d, "1", "x=y z", "", "ünï", "two\nlines")
	}
	return out
}

func (d *drawn) seconds() time.Duration { return time.Duration(1+d.IntN(90)) * time.Second }

func (d *drawn) spec() ring.Spec {
	yes := d.IntN(2) == 0
	s := ring.Spec{
		Image: localImage, PullPolicy: maybe(d, "never"), Mark: maybe(d, "2026-01-01"), ContainerName: maybe(d, "box"), Follows: maybe(d, []string{"db"}),
		Command: d.words("arg"), Entrypoint: pick(d, []string{"/app", "serve"}, []string{""}), Environment: maybe(d, d.pairs("VAR")), Unset: maybe(d, []string{"GONE"}),
		CommandText: maybe(d, `arg "two words"`), EntrypointText: maybe(d, "/app serve"),
		User: maybe(d, "1000:1000"), WorkingDir: maybe(d, "/work"), Domainname: maybe(d, "example.test"),
		Labels: maybe(d, d.pairs("label")), Annotations: maybe(d, d.pairs("note")),
		Expose: maybe(d, []string{fmt.Sprintf("%d/udp", 9000+d.IntN(9))}), Mounts: d.mounts(),
		Healthcheck: maybe(d, &ring.Healthcheck{
			Test: []string{"CMD", "/app", "check"}, Interval: d.seconds(), Timeout: d.seconds(), StartPeriod: d.seconds(),
			StartInterval: maybe(d, d.seconds()), Retries: 1 + d.IntN(5),
		}),
		StopSignal: maybe(d, "SIGUSR1"), StopGrace: maybe(d, d.seconds()), Init: maybe(d, &yes),
		Logging:  maybe(d, &ring.Logging{Driver: "json-file", Options: map[string]string{"max-size": "1m", "max-file": "3"}}),
		Platform: maybe(d, machine), Tty: d.IntN(2) == 0, StdinOpen: d.IntN(2) == 0, ReadOnly: d.IntN(2) == 0,
		GroupAdd: maybe(d, []string{"44", "video"}), Sysctls: maybe(d, map[string]string{"kernel.msgmax": "65536"}),
		Ulimits: maybe(d, []ring.Ulimit{{Name: "memlock", Soft: -1, Hard: -1}, {Name: "nofile", Soft: int64(1000 + d.IntN(9)), Hard: 4096}}),
		ShmSize: maybe(d, int64(1+d.IntN(64))<<20), StorageOpt: maybe(d, map[string]string{"size": "1G"}), Resources: maybe(d, d.resources()),
		PostStart:         maybe(d, []ring.Hook{{Command: d.words("do"), User: maybe(d, "root"), WorkingDir: maybe(d, "/"), Environment: maybe(d, d.pairs("H")), Privileged: yes}}),
		PreStop:           maybe(d, []ring.Hook{{Command: d.words("do"), User: maybe(d, "root"), WorkingDir: maybe(d, "/"), Environment: maybe(d, d.pairs("H")), Privileged: yes}}),
		Privileged:        d.IntN(3) == 0,
		CapAdd:            maybe(d, []string{"NET_ADMIN", "SYS_TIME"}),
		CapDrop:           maybe(d, pick(d, []string{"ALL"}, []string{"CHOWN", "MKNOD"})),
		SecurityOpt:       maybe(d, pick(d, []string{"no-new-privileges:true", "seccomp=unconfined"}, []string{"systempaths=unconfined"})),
		Devices:           maybe(d, []ring.Device{{Host: "/dev/null", Container: "/dev/nothing", Permissions: pick(d, "r", "rwm")}}),
		DeviceCgroupRules: maybe(d, []string{"c 1:3 mr"}),
		DeviceRequests: maybe(d, []ring.DeviceRequest{pick(d,
			ring.DeviceRequest{Driver: "nvidia", Count: -1, Capabilities: []string{"gpu", "compute"}, Options: map[string]string{"a": "b"}},
			ring.DeviceRequest{Driver: "nvidia", IDs: []string{"GPU-0"}, Capabilities: []string{"gpu"}})}),
		Runtime: maybe(d, "runc"), CgroupParent: maybe(d, "gitring-test"), CgroupMode: maybe(d, "host"), UsernsMode: maybe(d, "host"),
		PIDMode: maybe(d, "host"), IPCMode: maybe(d, pick(d, "host", "private", "shareable")), UTSMode: maybe(d, "host"),
	}
	d.network(&s)
	return s
}

// network draws where the instance is, and what goes with that.
func (d *drawn) network(s *ring.Spec) {
	named := func() {
		s.ExtraHosts, s.DNS = maybe(d, []string{"db.test:10.0.0.9", "host.test:host-gateway"}), maybe(d, []string{"10.0.0.1", "10.0.0.2"})
		s.DNSSearch, s.DNSOptions = maybe(d, []string{"b.test", "a.test"}), maybe(d, []string{"ndots:1"})
		if s.UTSMode == "" {
			s.Hostname = maybe(d, "box")
		}
	}
	switch d.number % 4 {
	case 0:
		s.NoNetwork = true
		named()
	case 1:
		s.NetworkMode = "host"
		named()
	case 2:
		s.NetworkOf, s.Domainname = "vpn", ""
		if s.PIDMode == "" {
			s.PIDOf = "vpn"
		}
		if s.IPCMode == "" {
			s.IPCOf = "vpn"
		}
		s.VolumesFrom = maybe(d, []ring.VolumesFrom{{Service: "vpn", ReadOnly: d.IntN(2) == 0}})
	default:
		named()
		s.Ports = maybe(d, []ring.Port{{HostIP: "127.0.0.1", HostPort: "0", Container: 8080, Protocol: "tcp"}, {Container: 53, Protocol: pick(d, "udp", "sctp")}})
		s.Networks = []ring.Attachment{d.attachment("front", 0), d.attachment("back", 1)}
		s.MacAddress = maybe(d, "02:42:ac:11:00:07")
		if s.MacAddress != "" {
			s.Networks[0].MacAddress, s.Networks[1].MacAddress = "", ""
		}
	}
}

func (d *drawn) attachment(key string, i int) ring.Attachment {
	return ring.Attachment{
		Network: key, Aliases: maybe(d, d.words("alias")), IPv4: maybe(d, d.addrs[i][0]), IPv6: maybe(d, d.addrs[i][1]), LinkLocal: maybe(d, []string{"169.254.8.8"}),
		DriverOpts: maybe(d, d.pairs("opt")), MacAddress: maybe(d, "02:42:ac:11:00:08"), Priority: d.IntN(3) + i*4*d.IntN(2),
	}
}

func (d *drawn) resources() *ring.Resources {
	rate := func() []ring.BlkioRate { return []ring.BlkioRate{{Path: "/dev/vda", Rate: uint64(10 + d.IntN(900))}} }
	few, limit := int64(1+d.IntN(99)), int64(100+d.IntN(99))
	r := &ring.Resources{
		CPUShares: maybe(d, int64(512)), CPUSet: maybe(d, "0"), Memory: 64 << 20, MemoryReservation: maybe(d, int64(32<<20)),
		MemorySwap: maybe(d, int64(128<<20)), MemorySwappiness: maybe(d, &few), PidsLimit: maybe(d, &limit), OOMKillDisable: d.IntN(2) == 0,
		OOMScoreAdj: maybe(d, 100), CPURTPeriod: maybe(d, int64(1000000)), CPURTRuntime: maybe(d, int64(950000)),
		Blkio: maybe(d, &ring.Blkio{Weight: 300, WeightDevice: rate(), DeviceReadBps: rate(), DeviceReadIOps: rate(), DeviceWriteBps: rate(), DeviceWriteIOps: rate()}),
	}
	if d.IntN(2) == 0 {
		r.NanoCPUs = 5e8
	} else {
		r.CPUPeriod, r.CPUQuota = 50000, 25000
	}
	return r
}

func (d *drawn) mounts() []ring.Mount {
	yes := func() bool { return d.IntN(2) == 0 }
	all := []ring.Mount{
		{Kind: ring.MountVolume, Source: "db", Target: "/a", NoCopy: yes(), ReadOnly: yes()},
		{Kind: ring.MountContent, Source: d.hash, File: maybe(d, "f"), Target: "/c", SELinux: maybe(d, "z")},
		{Kind: ring.MountData, Source: "x/y", Target: "/d", ReadOnly: yes(), SELinux: maybe(d, pick(d, "z", "Z"))},
		{Kind: ring.MountTmpfs, Target: "/e", Size: 1 << 20, Mode: 0o700},
		{Kind: ring.MountTmpfs, Target: "/f", Options: "noexec", Size: 1 << 20, Mode: 0o711, ReadOnly: yes()},
		{Kind: ring.MountSeed, Source: "x/s", Seed: d.hash, Target: "/g"},
		{Kind: ring.MountBind, Source: "/etc", Target: "/h", ReadOnly: yes(), Propagation: maybe(d, pick(d, "rprivate", "private"))},
		{Kind: ring.MountBind, Source: "/tmp", Target: "/i", ReadOnly: yes(), Create: yes(), SELinux: maybe(d, "z"), Propagation: maybe(d, "rprivate")},
	}
	var out []ring.Mount
	for _, m := range all {
		if d.IntN(3) > 0 {
			out = append(out, m)
		}
	}
	return out
}
