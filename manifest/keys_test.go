package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

// Each key as people write it, and what an instance is to run for it: the spec
// is that of the least service but for what the line says.
func TestEachKeyIsInTheSpec(t *testing.T) {
	resources := func(r ring.Resources) func(*ring.Spec) { return func(s *ring.Spec) { s.Resources = &r } }
	requests := func(r ...ring.DeviceRequest) func(*ring.Spec) {
		return func(s *ring.Spec) { s.DeviceRequests = r }
	}
	for line, change := range map[string]func(*ring.Spec){
		"annotations: {b: 2, a: x}":                   func(s *ring.Spec) { s.Annotations = map[string]string{"a": "x", "b": "2"} },
		"annotations: [a=x]":                          func(s *ring.Spec) { s.Annotations = map[string]string{"a": "x"} },
		"cap_add: [net_admin, CAP_CHOWN]":             func(s *ring.Spec) { s.CapAdd = []string{"CHOWN", "NET_ADMIN"} },
		"cap_add: [SYS_NICE, CAP_SYS_NICE, sys_nice]": func(s *ring.Spec) { s.CapAdd = []string{"SYS_NICE"} },
		"cap_drop: [all]":                             func(s *ring.Spec) { s.CapDrop = []string{"ALL"} },
		"cgroup: private":                             func(s *ring.Spec) { s.CgroupMode = "private" },
		"cgroup: host":                                func(s *ring.Spec) { s.CgroupMode = "host" },
		"cgroup_parent: m-executor-abcd":              func(s *ring.Spec) { s.CgroupParent = "m-executor-abcd" },
		"command: serve --port '80 81'":               func(s *ring.Spec) { s.Command = []string{"serve", "--port", "80 81"} },
		"command: [a, '']":                            func(s *ring.Spec) { s.Command = []string{"a", ""} },
		"cpus: 1.5":                                   resources(ring.Resources{NanoCPUs: 1_500_000_000}),
		"cpus: '0.1'":                                 resources(ring.Resources{NanoCPUs: 100_000_000}),
		"cpus: 3":                                     resources(ring.Resources{NanoCPUs: 3_000_000_000}),
		"cpus: .3":                                    resources(ring.Resources{NanoCPUs: 300_000_000}),
		"cpus: 0":                                     func(*ring.Spec) {},
		"cpuset: 0-2,5":                               resources(ring.Resources{CPUSet: "0-2,5"}),
		"cpu_shares: 512":                             resources(ring.Resources{CPUShares: 512}),
		"cpu_shares: '512'":                           resources(ring.Resources{CPUShares: 512}),
		"cpu_quota: -1":                               resources(ring.Resources{CPUQuota: -1}),
		"cpu_rt_period: 1000000":                      resources(ring.Resources{CPURTPeriod: 1_000_000}),
		"cpu_rt_runtime: 950000":                      resources(ring.Resources{CPURTRuntime: 950_000}),
		"mem_limit: 1g":                               resources(ring.Resources{Memory: 1 << 30}),
		"mem_limit: 0.5g":                             resources(ring.Resources{Memory: 1 << 29}),
		"mem_limit: 1073741824":                       resources(ring.Resources{Memory: 1 << 30}),
		"mem_limit: '1073741824'":                     resources(ring.Resources{Memory: 1 << 30}),
		"mem_limit: 300kb":                            resources(ring.Resources{Memory: 300 << 10}),
		"mem_reservation: 64M":                        resources(ring.Resources{MemoryReservation: 64 << 20}),
		"memswap_limit: -1":                           resources(ring.Resources{MemorySwap: -1}),
		"mem_swappiness: 0":                           resources(ring.Resources{MemorySwappiness: ptr(int64(0))}),
		"mem_swappiness: '100'":                       resources(ring.Resources{MemorySwappiness: ptr(int64(100))}),
		"pids_limit: -1":                              resources(ring.Resources{PidsLimit: ptr(int64(-1))}),
		"pids_limit: 200":                             resources(ring.Resources{PidsLimit: ptr(int64(200))}),
		"pids_limit: 0":                               func(*ring.Spec) {},
		"oom_kill_disable: true":                      resources(ring.Resources{OOMKillDisable: true}),
		"oom_score_adj: -1000":                        resources(ring.Resources{OOMScoreAdj: -1000}),
		"device_cgroup_rules: ['c 1:3 mr', 'a 7:* rmw']": func(s *ring.Spec) { s.DeviceCgroupRules = []string{"a 7:* rmw", "c 1:3 mr"} },
		"devices: ['/dev/ttyUSB0']": func(s *ring.Spec) {
			s.Devices = []ring.Device{{Host: "/dev/ttyUSB0", Container: "/dev/ttyUSB0", Permissions: "rwm"}}
		},
		"devices: ['/dev/ttyUSB0:/dev/tty:r']": func(s *ring.Spec) {
			s.Devices = []ring.Device{{Host: "/dev/ttyUSB0", Container: "/dev/tty", Permissions: "r"}}
		},
		"devices: [{source: /dev/b, target: /dev/c}, {source: /dev/a, target: /dev/a, permissions: rw}]": func(s *ring.Spec) {
			s.Devices = []ring.Device{{Host: "/dev/a", Container: "/dev/a", Permissions: "rw"}, {Host: "/dev/b", Container: "/dev/c", Permissions: "rwm"}}
		},
		"devices: ['vendor.com/gpu=all']":                   requests(ring.DeviceRequest{Driver: "cdi", IDs: []string{"vendor.com/gpu=all"}}),
		"gpus: all":                                         requests(ring.DeviceRequest{Count: -1, Capabilities: []string{"gpu"}}),
		"gpus: [{driver: nvidia, count: 2}]":                requests(ring.DeviceRequest{Driver: "nvidia", Count: 2, Capabilities: []string{"gpu"}}),
		"gpus: [{capabilities: [utility, gpu]}]":            requests(ring.DeviceRequest{Count: -1, Capabilities: []string{"gpu", "utility"}}),
		"gpus: [{device_ids: ['3', '0'], options: {a: b}}]": requests(ring.DeviceRequest{IDs: []string{"0", "3"}, Capabilities: []string{"gpu"}, Options: map[string]string{"a": "b"}}),
		"deploy: {resources: {reservations: {devices: [{capabilities: [gpu], driver: nvidia, count: all}]}}}": requests(ring.DeviceRequest{Driver: "nvidia", Count: -1, Capabilities: []string{"gpu"}}),
		"deploy: {resources: {reservations: {devices: [{capabilities: [gpu], device_ids: ['GPU-1']}]}}}":      requests(ring.DeviceRequest{IDs: []string{"GPU-1"}, Capabilities: []string{"gpu"}}),
		"deploy: {resources: {limits: {cpus: '0.50', memory: 256M, pids: 200}, reservations: {memory: 64M}}}": resources(ring.Resources{
			NanoCPUs: 500_000_000, Memory: 256 << 20, PidsLimit: ptr(int64(200)), MemoryReservation: 64 << 20,
		}),
		"deploy: {resources: {reservations: {cpus: '0.25'}}}": func(*ring.Spec) {},
		"dns: 9.9.9.9":                               func(s *ring.Spec) { s.DNS = []string{"9.9.9.9"} },
		"dns: [9.9.9.9, '2620:fe::fe', 1.1.1.1]":     func(s *ring.Spec) { s.DNS = []string{"9.9.9.9", "2620:fe::fe", "1.1.1.1"} },
		"dns_search: example.org":                    func(s *ring.Spec) { s.DNSSearch = []string{"example.org"} },
		"dns_search: [b.example.org, a.example.org]": func(s *ring.Spec) { s.DNSSearch = []string{"b.example.org", "a.example.org"} },
		"dns_opt: [use-vc, 'ndots:2']":               func(s *ring.Spec) { s.DNSOptions = []string{"use-vc", "ndots:2"} },
		"domainname: example.org":                    func(s *ring.Spec) { s.Domainname = "example.org" },
		"entrypoint: [/init]":                        func(s *ring.Spec) { s.Entrypoint = []string{"/init"} },
		"entrypoint: []":                             func(s *ring.Spec) { s.Entrypoint = []string{""} },
		"entrypoint: ''":                             func(s *ring.Spec) { s.Entrypoint = []string{""} },
		"entrypoint: null":                           func(*ring.Spec) {},
		"group_add: [video, 44, '999', video2]":      func(s *ring.Spec) { s.GroupAdd = []string{"44", "999", "video", "video2"} },
		"init: false":                                func(s *ring.Spec) { s.Init = ptr(false) },
		"logging: {driver: gelf, options: {gelf-address: 'udp://10.0.0.1:12201'}}": func(s *ring.Spec) {
			s.Logging = &ring.Logging{Driver: "gelf", Options: map[string]string{"gelf-address": "udp://10.0.0.1:12201"}}
		},
		"mac_address: 02:42:ac:11:65:43": func(s *ring.Spec) { s.MacAddress = "02:42:ac:11:65:43" },
		"platform: linux/arm64/v8":       func(s *ring.Spec) { s.Platform = "linux/arm64/v8" },
		"platform: Linux/AMD64":          func(s *ring.Spec) { s.Platform = "linux/amd64" },
		"privileged: true":               func(s *ring.Spec) { s.Privileged = true },
		"privileged: 'yes'":              func(s *ring.Spec) { s.Privileged = true },
		"pull_policy: always":            func(s *ring.Spec) { s.PullPolicy = "always" },
		"pull_policy: never":             func(s *ring.Spec) { s.PullPolicy = "never" },
		"pull_policy: missing":           func(*ring.Spec) {},
		"read_only: true":                func(s *ring.Spec) { s.ReadOnly = true },
		"runtime: runsc":                 func(s *ring.Spec) { s.Runtime = "runsc" },
		"security_opt: ['no-new-privileges:true', 'apparmor=unconfined', 'label:type:svirt_t']": func(s *ring.Spec) {
			s.SecurityOpt = []string{"apparmor=unconfined", "label=type:svirt_t", "no-new-privileges=true"}
		},
		"security_opt: [no-new-privileges, 'systempaths=unconfined', 'seccomp:unconfined']": func(s *ring.Spec) {
			s.SecurityOpt = []string{"no-new-privileges", "seccomp=unconfined", "systempaths=unconfined"}
		},
		"security_opt: ['seccomp:./seccomp.json']":                func(s *ring.Spec) { s.SecurityOpt = []string{`seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`} },
		"shm_size: 128mb":                                         func(s *ring.Spec) { s.ShmSize = 128 << 20 },
		"shm_size: 67108864":                                      func(s *ring.Spec) { s.ShmSize = 64 << 20 },
		"stdin_open: true":                                        func(s *ring.Spec) { s.StdinOpen = true },
		"storage_opt: {size: 1G}":                                 func(s *ring.Spec) { s.StorageOpt = map[string]string{"size": "1G"} },
		"sysctls: {net.core.somaxconn: 1024, kernel.shmmax: '1'}": func(s *ring.Spec) { s.Sysctls = map[string]string{"net.core.somaxconn": "1024", "kernel.shmmax": "1"} },
		"sysctls: [net.ipv4.ip_forward=1]":                        func(s *ring.Spec) { s.Sysctls = map[string]string{"net.ipv4.ip_forward": "1"} },
		"tty: true":                                               func(s *ring.Spec) { s.Tty = true },
		"ulimits: {nproc: 65535, memlock: {soft: -1, hard: -1}, nofile: {soft: 20000, hard: 40000}, core: 0}": func(s *ring.Spec) {
			s.Ulimits = []ring.Ulimit{{Name: "core"}, {Name: "memlock", Soft: -1, Hard: -1}, {Name: "nofile", Soft: 20000, Hard: 40000}, {Name: "nproc", Soft: 65535, Hard: 65535}}
		},
		"ulimits: {nofile: '1024', stack: {soft: 0, hard: 9}, data: {soft: 1, hard: -1}}": func(s *ring.Spec) {
			s.Ulimits = []ring.Ulimit{{Name: "data", Soft: 1, Hard: -1}, {Name: "nofile", Soft: 1024, Hard: 1024}, {Name: "stack", Soft: 0, Hard: 9}}
		},
		"userns_mode: host": func(s *ring.Spec) { s.UsernsMode = "host" },
		"uts: host":         func(s *ring.Spec) { s.UTSMode = "host" },
		"healthcheck: {test: x, start_period: 30s, start_interval: 2s}": func(s *ring.Spec) {
			s.Healthcheck = &ring.Healthcheck{Test: []string{"CMD-SHELL", "x"}, StartPeriod: 30 * time.Second, StartInterval: 2 * time.Second}
		},
		"blkio_config: {weight: 300, weight_device: [{path: /dev/sdb, weight: 200}, {path: /dev/sda, weight: 400}]}": resources(ring.Resources{Blkio: &ring.Blkio{
			Weight: 300, WeightDevice: []ring.BlkioRate{{Path: "/dev/sda", Rate: 400}, {Path: "/dev/sdb", Rate: 200}},
		}}),
		"blkio_config: {device_read_bps: [{path: /dev/sda, rate: 12mb}], device_read_iops: [{path: /dev/sda, rate: 120}], device_write_bps: [{path: /dev/sda, rate: '1024k'}], device_write_iops: [{path: /dev/sda, rate: '30'}]}": resources(ring.Resources{Blkio: &ring.Blkio{
			DeviceReadBps: []ring.BlkioRate{{Path: "/dev/sda", Rate: 12 << 20}}, DeviceReadIOps: []ring.BlkioRate{{Path: "/dev/sda", Rate: 120}},
			DeviceWriteBps: []ring.BlkioRate{{Path: "/dev/sda", Rate: 1 << 20}}, DeviceWriteIOps: []ring.BlkioRate{{Path: "/dev/sda", Rate: 30}},
		}}),
		"post_start: [{command: chown -R 1000 '/my data', user: root, privileged: true, working_dir: /, environment: {A: 1, B: ''}}, {command: [x]}]": func(s *ring.Spec) {
			s.PostStart = []ring.Hook{{Command: []string{"chown", "-R", "1000", "/my data"}, User: "root", Privileged: true, WorkingDir: "/", Environment: map[string]string{"A": "1", "B": ""}}, {Command: []string{"x"}}}
		},
		"pre_stop: [{command: [./flush, --all], environment: [A=1, NAMED]}]": func(s *ring.Spec) {
			s.PreStop = []ring.Hook{{Command: []string{"./flush", "--all"}, Environment: map[string]string{"A": "1", "NAMED": "of .env"}}}
		},
		"attach: true": func(*ring.Spec) {},
	} {
		t.Run(line, func(t *testing.T) {
			files := web("image: a", line)
			files["web/seccomp.json"] = "{\n  \"defaultAction\": \"SCMP_ACT_ALLOW\"\n}\n"
			files["web/.env"] = "NAMED=of .env\n"
			plan, _ := Read(repo(files), settings())
			if len(plan.Apps) != 1 {
				t.Fatal(plan.Refused["web"])
			}
			want := ring.Spec{Image: "a", Networks: []ring.Attachment{{Network: "default"}}}
			change(&want)
			if d := cmp.Diff(want, plan.Apps[0].Services[0].Spec); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAContainerNameIsInTheSpec(t *testing.T) {
	if s, _ := lone(t, "container_name: shop.web_1"); s.Spec.ContainerName != "shop.web_1" || (&ring.App{Services: []ring.Service{s}}).Alone(&s) == "" {
		t.Errorf("%q, alone %q", s.Spec.ContainerName, (&ring.App{Services: []ring.Service{s}}).Alone(&s))
	}
}

// What an engine may do otherwise than the file says is told.
func TestWhatAnEngineMayNotDoIsNoted(t *testing.T) {
	for line, note := range map[string]string{
		"healthcheck: {test: x, start_interval: 2s}":          "an older engine uses interval",
		"annotations: {a: b}":                                 "an older engine drops them",
		"attach: false":                                       "attach",
		"deploy: {resources: {reservations: {cpus: '0.25'}}}": "nothing can reserve a CPU",
	} {
		if _, notes := lone(t, line); len(notes) != 1 || !strings.Contains(notes[0], note) {
			t.Errorf("%s: %q", line, notes)
		}
	}
}

// The same asked in other words is the same version.
func TestWordsThatMeanTheSameAreOneVersion(t *testing.T) {
	for _, same := range [][]string{
		{"cap_add: [NET_ADMIN, CHOWN]", "cap_add: [CAP_CHOWN, net_admin]"},
		{"security_opt: ['no-new-privileges:true', label=disable]", "security_opt: ['label:disable', no-new-privileges=true]"},
		{"mem_limit: 1g", "mem_limit: 1073741824", "deploy: {resources: {limits: {memory: 1024m}}}"},
		{"cpus: 0.5", "cpus: '0.50'", "deploy: {resources: {limits: {cpus: '.5'}}}"},
		{"ulimits: {nofile: 5}", "ulimits: {nofile: {soft: 5, hard: 5}}"},
		{"devices: [/dev/a]", "devices: ['/dev/a:/dev/a:rwm']", "devices: [{source: /dev/a, target: /dev/a}]"},
		{"group_add: [b, a]", "group_add: [a, b]"},
		{"user: x", "user: x\n    privileged: false\n    cap_add: []\n    dns: []\n    sysctls: {}\n    blkio_config: {}\n    platform: ''\n    gpus: []\n    storage_opt: {}\n    annotations: {}"},
	} {
		first, _ := lone(t, same[0])
		for _, line := range same[1:] {
			if s, _ := lone(t, line); s.Written != first.Written {
				t.Errorf("%s and %s are two versions", same[0], line)
			}
		}
	}
}

func TestFollowsAreTheDependenciesWithRestart(t *testing.T) {
	a := app(t, `services:
  web:
    image: a
    depends_on:
      db: {condition: service_healthy, restart: true}
      cache: {condition: service_started, restart: false}
      off: {condition: service_started, restart: true, required: false}
      other: {condition: service_started, restart: true}
  db: {image: a}
  cache: {image: a}
  other: {image: a}
  off: {image: a, profiles: [x]}
`)
	web, _ := a.Service("web")
	if d := cmp.Diff([]string{"db", "other"}, web.Spec.Follows); d != "" {
		t.Error(d)
	}
}

// A later refusal, made on the payload, names the line of the key it is about.
func TestPlacesNameTheLinesOfKeys(t *testing.T) {
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": `services:
  web:
    image: a
    privileged: true
    cap_add:
      - SYS_TIME
      - CAP_net_admin
    devices:
      - /dev/a:/dev/b:r
      - {source: /dev/c, target: /dev/d}
    volumes:
      - data:/data
      - ./conf:/etc/conf:ro
      - /anonymous
      - type: tmpfs
        target: /run/
    ports:
      - 127.0.0.1:8080:80/tcp
      - "443"
      - target: 53
        published: "5353"
    sysctls:
      - net.ipv4.ip_forward=1
    security_opt:
      - seccomp:unconfined
    labels:
      a.b: c
    deploy:
      resources:
        limits:
          memory: 1g
    environment:
      - PASSWORD=do not tell
volumes: {data: }
`, "web/compose.override.yaml": "services:\n  web:\n    privileged: true\n    cap_add:\n      - CHOWN\n"}), settings())
	if len(plan.Apps) != 1 {
		t.Fatal(plan.Refused["web"])
	}
	s := plan.Apps[0].Services[0]
	for key, line := range map[string]int{
		"image": 3, "privileged": -3, "cap_add": -4, "cap_add.CHOWN": -5, "cap_add.SYS_TIME": 6, "cap_add.NET_ADMIN": 7,
		"devices./dev/a": 9, "devices./dev/c": 10, "volumes": 11, "volumes./data": 12, "volumes./etc/conf": 13, "volumes./anonymous": 14,
		"volumes./run": 15, "ports.8080": 18, "ports.443": 19, "ports.5353": 20, "sysctls.net.ipv4.ip_forward": 23,
		"security_opt.seccomp": 25, "security_opt.seccomp=unconfined": 25, "labels.a.b": 27, "deploy.resources.limits.memory": 31,
		"environment.PASSWORD": 33, "volumes./elsewhere": 11, "pid": 2, "devices": 8,
	} {
		want := ring.Place{File: "web/compose.yaml", Line: line}
		if line < 0 {
			want = ring.Place{File: "web/compose.override.yaml", Line: -line}
		}
		if got := s.Place(key); got != want {
			t.Errorf("%s is at %+v, not at %+v", key, got, want)
		}
	}
	for key := range s.Places {
		if strings.Contains(key, "do not tell") {
			t.Errorf("a place tells a value: %s", key)
		}
	}
}

func TestValuesThatNoEngineTakesAreRefused(t *testing.T) {
	for _, c := range []struct {
		line       string
		code       ring.Code
		at         int // line of the file, 0 is 4, the first after image
		says, hint string
	}{
		{line: "cpus: many", says: `services.web.cpus "many"`, hint: "0.5"},
		{line: "cpus: -1", says: "no number of CPUs"},
		{line: "cpus: .inf", says: "no number of CPUs"},
		{line: "cpuset: first", hint: "0-3"},
		{line: "cpu_shares: 0.5", hint: "whole number from 0"},
		{line: "cpu_rt_period: 400ms", hint: "whole number"},
		{line: "cpu_period: 100000\n    cpus: 1", says: "cpu_period and cpus"},
		{line: "cpu_quota: 50000\n    deploy: {resources: {limits: {cpus: '1'}}}", says: "cpu_quota and cpus"},
		{line: "mem_limit: 1e9", says: `"1e9" is no size`, hint: "512m"},
		{line: "mem_limit: -1", says: "no size"},
		{line: "mem_limit: lots", says: "no size"},
		{line: "mem_limit: 99999999999999999999g", says: "no size"},
		{line: "shm_size: -64m", says: "services.web.shm_size"},
		{line: "memswap_limit: -2", hint: "-1 for no limit"},
		{line: "memswap_limit: 1g", says: "without mem_limit"},
		{line: "memswap_limit: 1g\n    mem_limit: 2g", says: "below the memory limit"},
		{line: "mem_reservation: 2g\n    mem_limit: 1g", says: "more memory than its limit"},
		{line: "mem_swappiness: 101", hint: "from 0 to 100"},
		{line: "pids_limit: -2", hint: "from -1 on"},
		{line: "pids_limit: 1.5", hint: "whole number"},
		{line: "oom_score_adj: 1001", hint: "from -1000 to 1000"},
		{line: "mem_limit: 1g\n    deploy: {resources: {limits: {memory: 2g}}}", says: "mem_limit and deploy.resources.limits.memory differ", hint: "keep one"},
		{line: "cpus: 1\n    deploy: {resources: {limits: {cpus: '2'}}}", says: "cpus and deploy.resources.limits.cpus differ"},
		{line: "pids_limit: 1\n    deploy: {resources: {limits: {pids: 2}}}", says: "pids_limit and deploy.resources.limits.pids differ"},
		{line: "mem_reservation: 1m\n    deploy: {resources: {reservations: {memory: 2m}}}", says: "mem_reservation and deploy.resources.reservations.memory differ"},
		{line: "deploy: {resources: {limits: {memory: x}}}", says: "services.web.deploy.resources.limits.memory"},
		{line: "blkio_config: {weight: 2000}", hint: "1000"},
		{line: "blkio_config:\n      device_read_bps:\n        - {path: sda, rate: 1}", at: 6, says: `"sda"`},
		{line: "ulimits: {nofiles: 5}", says: "services.web.ulimits.nofiles", hint: "did you mean nofile?"},
		{line: "ulimits:\n      nofile: {soft: 10, hard: 5}", at: 5, says: "above the hard one"},
		{line: "ulimits: {nofile: {soft: -1, hard: 5}}", says: "above the hard one"},
		{line: "ulimits: {nofile: -2}", hint: "-1 for no limit"},
		{line: "ulimits: {nofile: many}", hint: "write a number"},
		{line: "ulimits: {nofile: {soft: 5}}", hint: "hard"},
		{line: "sysctls: {vm.max_map_count: 262144}", says: `"vm.max_map_count"`, hint: "on the host"},
		{line: "sysctls: [net.core.somaxconn]", hint: "name=value"},
		{line: "dns: [resolver]", says: `"resolver" is no address`},
		{line: "domainname: a b", says: "services.web.domainname"},
		{line: "mac_address: 02:42", says: "no MAC address"},
		{line: "mac_address: 02:42:ac:11:65:43\n    scale: 2", says: "cannot be that of 2 replicas"},
		{line: "platform: amd64", hint: "linux/amd64"},
		{line: "platform: linux/amd64/v2/x", says: "no platform"},
		{line: "platform: windows/amd64", code: ring.Unsupported, says: "not Linux"},
		{line: "container_name: a/b", says: "no container name"},
		{line: "container_name: web\n    deploy: {replicas: 3}", says: "cannot be that of 3 replicas", hint: "one replica"},
		{line: "devices: [dev/sda]", says: `"dev/sda" is no device`},
		{line: "devices: ['/dev/dri:dev/card']", says: `"dev/card" is no device`},
		{line: "devices:\n      - /dev/a\n      - /dev/sda:/dev/sda:x", at: 6, says: `"x" is no access`},
		{line: "devices: ['/a:/b:r:w']", says: "no device"},
		{line: "devices: [{source: /dev/a, target: b}]", says: "no device"},
		{line: "devices: [{source: /dev/a}]", says: "has no target", hint: "target: /dev/a"},
		{line: "device_cgroup_rules: [all]", hint: "c 1:3 mr"},
		{line: "gpus: [{contu: 1}]", code: ring.UnknownKey, hint: "count?"},
		{line: "gpus: [{count: some}]", says: `"some" is no count`},
		{line: "gpus: [{count: 1, device_ids: [a]}]", says: "both count and device_ids"},
		{line: "deploy: {resources: {reservations: {devices: [{capabilities: [gpu], count: 0}]}}}", says: `"0" is no count`},
		{line: "deploy: {resources: {reservations: {devices: [{count: 1}]}}}", hint: "capabilities"},
		{line: "security_opt: [no-new-privilege]", hint: "no-new-privileges?"},
		{line: "security_opt: ['no-new-privileges:maybe']", says: "neither true nor false"},
		{line: "security_opt: [apparmor]", hint: "apparmor=value"},
		{line: "security_opt:\n      - label:disable\n      - seccomp:./missing.json", at: 6, says: "does not hold web/missing.json"},
		{line: "security_opt: ['seccomp:/etc/passwd']", code: ring.OutsideCommit, says: "/etc/passwd"},
		{line: "security_opt: ['seccomp=../../x.json']", code: ring.OutsideCommit},
		{line: "userns_mode: remap", says: "services.web.userns_mode"},
		{line: "uts: 'container:x'", says: "services.web.uts"},
		{line: "cgroup: 'host'\n    uts: private", at: 5, says: "services.web.uts"},
		{line: "pull_policy: every_99w", says: "every_99w", hint: "daily"},
		{line: "command: ''\n    entrypoint: ''", code: ring.Unsupported},
		{line: "post_start:\n      - command: a && b", at: 5, says: "shell operator"},
		{line: "pre_stop:\n      - user: x", at: 5, hint: "command"},
		{line: "pre_stop:\n      - command: []", at: 5, says: "runs nothing"},
		{line: "pre_stop: [{command: x, working_dir: srv}]", hint: "absolute"},
		{line: "healthcheck: {test: x, start_interval: soon}", says: "no duration"},
		{line: "logging: {driver: local, options: {gelf-address: x}}", code: ring.UnknownKey, says: "services.web.logging.options.gelf-address"},
		{line: "deploy:\n      restart_policy:\n        delay: soon", at: 6, says: "no duration"},
		{line: "deploy:\n      restart_policy:\n        window: -5s", at: 6, says: "from 0s on"},
		{line: "deploy:\n      rollback_config:\n        monitor: soon", at: 6, says: "no duration"},
		{line: "deploy:\n      rollback_config:\n        delay: -1s", at: 6, says: "rollback_config.delay is not a duration from 0s on"},
	} {
		t.Run(c.line, func(t *testing.T) {
			code, line := c.code, c.at
			if code == "" {
				code = ring.BadValue
			}
			if line == 0 {
				line = 4
			}
			plan, _ := Read(repo(web("image: a", c.line)), settings())
			r := plan.Refused["web"]
			if r == nil {
				t.Fatalf("not refused: %s", dump(t, plan))
			}
			if r.Code != code || r.Where() != fmt.Sprintf("web/compose.yaml:%d", line) || !strings.Contains(r.Says, c.says) || !strings.Contains(r.Hint, c.hint) || r.Hint == "" {
				t.Errorf("got %v\nhint %s\nwant %s on line %d: %q hint %q", r, r.Hint, code, line, c.says, c.hint)
			}
		})
	}
}

// The engine leaves the image's command out where there is an entrypoint, so an
// empty one asks for nothing then.
func TestAnEmptyCommandBesideAnEntrypointIsNone(t *testing.T) {
	if s, _ := lone(t, "entrypoint: [/init]", "command: []"); s.Spec.Command != nil || len(s.Spec.Entrypoint) != 1 {
		t.Errorf("%+v", s.Spec)
	}
}

func TestTwoServicesCannotHaveOneContainerName(t *testing.T) {
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services:\n  a: {image: x, container_name: one}\n  b:\n    image: x\n    container_name: one\n"}), settings())
	if r := plan.Refused["web"]; r == nil || r.Line != 5 || !strings.Contains(r.Says, "is that of a too") {
		t.Errorf("got %v", r)
	}
}

// A seccomp profile is read from the commit and nowhere else.
func TestASeccompProfileMustBeJSONOfTheCommit(t *testing.T) {
	files := web("image: a", "security_opt: ['seccomp:profile.json']")
	files["web/profile.json"] = "{"
	plan, _ := Read(repo(files), settings())
	if r := plan.Refused["web"]; r == nil || r.File != "web/profile.json" || !strings.Contains(r.Says, "no JSON") {
		t.Errorf("got %v", r)
	}
}

// Whatever shape a value has, the key is carried out or refused with its place.
func TestNoShapeOfAValueIsTooOdd(t *testing.T) {
	keys := []string{"deploy: {resources: {limits", "deploy: {resources: {reservations: {devices", "healthcheck: {test", "blkio_config: {device_read_bps", "ulimits: {nofile", "post_start: [{environment"}
	for _, n := range composeShape().known["services"].named {
		keys = append(keys, sortedKeys(n.shape.known)...)
	}
	for _, key := range keys {
		for _, value := range []string{"''", "x", "-1", "1.5", "1e999", "true", "null", "[]", "{}", "[null]", "[[a]]", "[{}]", "[{a: b}]", "[':', '=', '/', '']", "{a: null}", "{a: {b: [c]}}", "[{source: [a], target: {}, count: {}, path: []}]"} {
			line := key + ": " + value
			line += strings.NewReplacer("{", "}", "[", "]").Replace(reversed(strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_: ")))
			plan, _ := Read(repo(web("image: a", line)), settings())
			if r := plan.Refused["web"]; len(plan.Apps) == 0 && (r == nil || r.File == "" || r.Hint == "") {
				t.Errorf("%s: %v", line, r)
			}
		}
	}
}

// reversed keeps the brackets of a key's path, last first.
func reversed(s string) string {
	out := ""
	for _, r := range s {
		if r == '{' || r == '[' {
			out = string(r) + out
		}
	}
	return out
}
