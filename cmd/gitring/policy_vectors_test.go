package main

import (
	"cmp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// judged reads files as a commit and holds the plan to a profile.
func judged(t *testing.T, profile policy.Profile, files map[string]string) (ring.Plan, []*ring.Refusal) {
	t.Helper()
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	j := admission.Anywhere(profile)
	j.Rules.Host, j.Rules.EngineGroups = "edge-1", []string{"998"}
	return j.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, manifest.Settings{Source: "prod", Host: "edge-1"})
}

// What owner does with a vector.
const (
	power   = "power" // carried out, and told
	denied  = "denied"
	carried = "carried out" // beyond a limit of compose only
	refused = "refused"     // by manifest, whatever the profile
)

// vector is one thing that a commit may ask and that profile compose refuses.
// The service's lines begin on line 3, each vector on line 4 unless it says so.
type vector struct {
	name  string
	lines string            // of service web, below its image
	top   string            // below the services
	files map[string]string // instead of both: more files
	line  int
	key   string // in the sentence: the key, and the value where it is told apart
	risk  string // a piece of the sentence
	owner string
	told  string // key in the sentence of a power; "" for key itself: a power names the host's path
}

func (v vector) commit() map[string]string {
	files := map[string]string{}
	for name, body := range v.files {
		files[name] = body
	}
	if files["web/compose.yaml"] == "" {
		files["web/compose.yaml"] = "services:\n  web:\n    image: nginx\n    " + strings.ReplaceAll(v.lines, "\n", "\n    ") + "\n" + v.top
	}
	return files
}

const plainWeb = "services: {web: {image: nginx, volumes: ['data:/d']}}\nvolumes: {data: }\n"

var vectors = []vector{
	// the whole host
	{name: "privileged", lines: "privileged: true", key: "services.web.privileged:", risk: "every device and the whole kernel", owner: power},
	{name: "privileged by a variable", lines: "privileged: ${P}", files: map[string]string{"web/.env": "P=true\n"}, key: "services.web.privileged:", owner: power},
	{name: "privileged by an anchor", lines: "<<: {privileged: true}", key: "services.web.privileged:", owner: power},
	{name: "the API's socket and the registries' credentials", lines: "use_api_socket: true", key: "services.web.use_api_socket", owner: refused},
	{name: "a program of the host", lines: "provider: {type: /bin/sh}", key: "services.web.provider", owner: refused},
	{name: "a build on the host", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    user: x\n    build: .\n"}, key: "services.web.build", owner: refused},
	{name: "a build from elsewhere", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    user: x\n    build: https://example.org/x.git\n"}, key: "services.web.build", owner: refused},
	{name: "a hook with everything", lines: "post_start: [{command: [x], privileged: true}]", key: "services.web.post_start:", risk: "every device", owner: power},
	{name: "a hook before the stop with everything", lines: "pre_stop: [{command: [x], privileged: true}]", key: "services.web.pre_stop:", risk: "every device", owner: power},

	// capabilities
	{name: "all capabilities", lines: "cap_add: [ALL]", key: "services.web.cap_add ALL:", risk: "all of the kernel's powers", owner: power},
	{name: "all capabilities in small letters", lines: "cap_add: [all]", key: "services.web.cap_add ALL:", owner: power},
	{name: "SYS_ADMIN", lines: "cap_add: [SYS_ADMIN]", key: "services.web.cap_add SYS_ADMIN:", risk: "mounts", owner: power},
	{name: "SYS_ADMIN by its long name", lines: "cap_add: [CAP_SYS_ADMIN]", key: "services.web.cap_add SYS_ADMIN:", owner: power},
	{name: "SYS_MODULE", lines: "cap_add: [SYS_MODULE]", key: "services.web.cap_add SYS_MODULE:", risk: "code into the host's kernel", owner: power},
	{name: "SYS_RAWIO", lines: "cap_add: [SYS_RAWIO]", key: "services.web.cap_add SYS_RAWIO:", owner: power},
	{name: "SYS_PTRACE", lines: "cap_add: [SYS_PTRACE]", key: "services.web.cap_add SYS_PTRACE:", owner: power},
	{name: "SYS_TIME", lines: "cap_add: [SYS_TIME]", key: "services.web.cap_add SYS_TIME:", risk: "clock", owner: power},
	{name: "DAC_READ_SEARCH", lines: "cap_add: [DAC_READ_SEARCH]", key: "services.web.cap_add DAC_READ_SEARCH:", owner: power},
	{name: "NET_ADMIN", lines: "cap_add: [NET_ADMIN]", key: "services.web.cap_add NET_ADMIN:", risk: "firewall", owner: power},
	{name: "NET_RAW", lines: "cap_add: [NET_RAW]", key: "services.web.cap_add NET_RAW:", owner: power},
	{name: "BPF", lines: "cap_add: [BPF]", key: "services.web.cap_add BPF:", owner: power},
	{name: "MKNOD", lines: "cap_add: [MKNOD]", key: "services.web.cap_add MKNOD:", owner: power},
	{name: "one bad among good ones", lines: "cap_add:\n  - CHOWN\n  - SYS_BOOT", line: 6, key: "services.web.cap_add SYS_BOOT:", owner: power},

	// namespaces
	{name: "the host's network", lines: "network_mode: host", key: "services.web.network_mode host:", risk: "every service on it", owner: power},
	{name: "a stranger's network", lines: "network_mode: container:x", key: "services.web.network_mode", owner: refused},
	{name: "the host's network as an external one", lines: "networks: [h]", top: "networks:\n  h: {external: true, name: host}\n", line: 6, key: "networks.h", owner: refused},
	{name: "a stranger's network as an external one", lines: "networks: [h]", top: "networks:\n  h: {external: true, name: 'container:x'}\n", line: 6, key: "container:x", owner: refused},
	{name: "the host's processes", lines: "pid: host", key: "services.web.pid host:", risk: "every process of the host", owner: power},
	{name: "a stranger's processes", lines: "pid: container:x", key: "services.web.pid", owner: refused},
	{name: "the processes of a neighbour", lines: "pid: service:db", top: "  db: {image: nginx}\n", key: "services.web.pid service:db:", risk: "another service of the app", owner: power},
	{name: "the host's memory between processes", lines: "ipc: host", key: "services.web.ipc host:", owner: power},
	{name: "a stranger's memory", lines: "ipc: container:x", key: "services.web.ipc", owner: refused},
	{name: "the host's name", lines: "uts: host", key: "services.web.uts host:", owner: power},
	{name: "the host's users", lines: "userns_mode: host", key: "services.web.userns_mode host:", owner: power},
	{name: "the host's control groups", lines: "cgroup: host", key: "services.web.cgroup host:", owner: power},
	{name: "a control group of the host", lines: "cgroup_parent: /", key: "services.web.cgroup_parent /:", owner: power},

	// devices
	{name: "a disk", lines: "devices: [/dev/sda]", key: "services.web.devices /dev/sda:", risk: "a disk of the host", owner: power},
	{name: "a disk in long form", lines: "devices:\n  - {source: /dev/nvme0n1, target: /dev/x}", line: 5, key: "services.web.devices /dev/nvme0n1:", risk: "a disk", owner: power},
	{name: "memory", lines: "devices: ['/dev/mem:/dev/mem:r']", key: "services.web.devices /dev/mem:", risk: "memory of the host", owner: power},
	{name: "a serial port", lines: "devices: ['/dev/ttyUSB0:/dev/ttyUSB0']", key: "services.web.devices /dev/ttyUSB0:", owner: power},
	{name: "a tunnel", lines: "devices: [/dev/net/tun]", key: "services.web.devices /dev/net/tun:", owner: power},
	{name: "device rules", lines: "device_cgroup_rules: ['a *:* rwm']", key: "services.web.device_cgroup_rules a *:* rwm:", owner: power},
	{name: "graphics cards", lines: "gpus: all", key: "services.web.gpus", risk: "graphics card", owner: power},
	{name: "graphics cards by reservation", lines: "deploy:\n  resources:\n    reservations:\n      devices: [{driver: nvidia, capabilities: [gpu]}]", line: 7, key: "services.web.gpus", owner: power},
	{name: "a device by a driver's name", lines: "devices: ['vendor.com/class=one']", key: "services.web.devices vendor.com/class=one:", owner: power},

	// what confines
	{name: "no seccomp", lines: "security_opt: ['seccomp:unconfined']", key: "services.web.security_opt seccomp=unconfined:", risk: "calls of the kernel", owner: power},
	{name: "no AppArmor", lines: "security_opt: ['apparmor=unconfined']", key: "services.web.security_opt apparmor=unconfined:", owner: power},
	{name: "no SELinux", lines: "security_opt: ['label=disable']", key: "services.web.security_opt label=disable:", owner: power},
	{name: "a label of one's own", lines: "security_opt: ['label=type:spc_t']", key: "services.web.security_opt label=type:spc_t:", owner: power},
	{name: "no hidden paths", lines: "security_opt: ['systempaths=unconfined']", key: "services.web.security_opt", risk: "hides of the kernel", owner: power},
	{name: "new privileges", lines: "security_opt: ['no-new-privileges:false']", key: "services.web.security_opt no-new-privileges=false:", owner: power},
	{name: "a seccomp profile of the commit", lines: "security_opt: ['seccomp=./s.json']", files: map[string]string{"web/s.json": `{"defaultAction":"SCMP_ACT_ALLOW"}`}, key: "services.web.security_opt seccomp:", owner: power},
	{name: "another runtime", lines: "runtime: sysbox-runc", key: "services.web.runtime sysbox-runc:", owner: power},
	{name: "a word for the runtime", lines: "annotations: {org.systemd.property.ExecStop: x}", key: "services.web.annotations org.systemd.property.ExecStop:", risk: "as root on the host", owner: power},
	{name: "a word for another runtime", lines: "annotations: {run.oci.hooks.stdout: /x}", key: "services.web.annotations run.oci.hooks.stdout:", owner: power},
	{name: "the group of the engine", lines: "group_add: ['998']", key: "services.web.group_add 998:", risk: "engine's socket", owner: power},
	{name: "the group of the engine by name", lines: "group_add: [docker]", key: "services.web.group_add docker:", owner: power},
	{name: "a switch of the kernel", lines: "sysctls: {net.ipv4.ip_forward: 1}", key: "services.web.sysctls net.ipv4.ip_forward:", owner: power},
	{name: "a switch of the kernel in a list", lines: "sysctls:\n  - net.ipv4.conf.all.forwarding=1", line: 5, key: "services.web.sysctls net.ipv4.conf.all.forwarding:", owner: power},
	{name: "messages of the kernel", lines: "sysctls: {kernel.msgmax: 1}", key: "services.web.sysctls kernel.msgmax:", owner: power},
	{name: "an option of the storage driver", lines: "storage_opt: {size: 10G}", key: "services.web.storage_opt size:", owner: power},
	{name: "real time", lines: "ulimits: {rtprio: 99}", key: "services.web.ulimits rtprio:", owner: power},
	{name: "real time by the scheduler", lines: "cpu_rt_runtime: 950000", key: "services.web.cpu_rt_runtime", owner: power},
	{name: "never the one that is killed", lines: "oom_score_adj: -1000", key: "services.web.oom_score_adj -1000:", owner: power},
	{name: "no killing at all", lines: "oom_kill_disable: true", key: "services.web.oom_kill_disable:", owner: power},

	// paths of the host
	{name: "the host", lines: "volumes: ['/:/host']", key: "services.web.volumes /:", risk: "never granted", owner: power},
	{name: "the host, read-only", lines: "volumes: ['/:/host:ro']", key: "services.web.volumes /:", risk: "every file of the host", owner: power},
	{name: "the host in long form", lines: "volumes:\n  - type: bind\n    source: /\n    target: /host", line: 5, key: "services.web.volumes /:", owner: power},
	{name: "the host by dots", lines: "volumes: ['/srv/gitring/../..:/host']", key: "services.web.volumes /:", owner: power},
	{name: "the host by a variable", lines: "volumes: ['${D}:/host']", files: map[string]string{"web/.env": "D=/\n"}, key: "services.web.volumes /:", owner: power},
	{name: "the engine's socket", lines: "volumes: ['/var/run/docker.sock:/var/run/docker.sock']", key: "services.web.volumes /var/run/docker.sock:", risk: "root on the host", owner: power},
	{name: "the engine's socket, read-only", lines: "volumes: ['/var/run/docker.sock:/var/run/docker.sock:ro']", key: "services.web.volumes /var/run/docker.sock:", risk: "needs a grant", owner: power},
	{name: "the engine's socket elsewhere", lines: "volumes: ['/opt/x/docker.sock:/s']", key: "services.web.volumes /opt/x/docker.sock:", risk: "**/docker.sock", owner: power},
	{name: "another engine's socket", lines: "volumes: ['/run/containerd/containerd.sock:/s']", key: "services.web.volumes", risk: "engine's socket", owner: power},
	{name: "the folder of the sockets", lines: "volumes: ['/var/run:/r']", key: "services.web.volumes /var/run:", owner: power},
	{name: "a bus", lines: "volumes: ['/run/dbus/system_bus_socket:/s']", key: "services.web.volumes", risk: "/run/dbus", owner: power},
	{name: "the host's configuration", lines: "volumes: ['/etc:/e:ro']", key: "services.web.volumes /etc:", risk: "needs a grant", owner: power},
	{name: "the host's passwords", lines: "volumes: ['/etc/shadow:/e:ro']", key: "services.web.volumes /etc/shadow:", owner: power},
	{name: "root's home", lines: "volumes: ['/root/.ssh:/k']", key: "services.web.volumes /root/.ssh:", risk: "/root is never granted", owner: power},
	{name: "homes", lines: "volumes: ['/home/me:/k']", key: "services.web.volumes /home/me:", owner: power},
	{name: "the boot loader", lines: "volumes: ['/boot:/b']", key: "services.web.volumes /boot:", risk: "never granted", owner: power},
	{name: "devices as files", lines: "volumes: ['/dev:/dev']", key: "services.web.volumes /dev:", risk: "devices of the host", owner: power},
	{name: "the kernel's files", lines: "volumes: ['/sys:/sys']", key: "services.web.volumes /sys:", owner: power},
	{name: "processes as files", lines: "volumes: ['/proc:/p']", key: "services.web.volumes /proc:", owner: power},
	{name: "the root by a process", lines: "volumes: ['/proc/1/root:/p']", key: "services.web.volumes /proc/1/root:", risk: "through a process", owner: denied},
	{name: "modules", lines: "volumes: ['/lib/modules:/m:ro']", key: "services.web.volumes /lib/modules:", owner: power},
	{name: "logs of the host", lines: "volumes: ['/var/log:/l:ro']", key: "services.web.volumes /var/log:", owner: power},
	{name: "the engine's own files", lines: "volumes: ['/var/lib/docker:/d']", key: "services.web.volumes /var/lib/docker:", risk: "all containers", owner: power},
	{name: "volumes as files", lines: "volumes: ['/var/lib/docker/volumes/shop_data/_data:/d']", key: "services.web.volumes", risk: "volumes of all apps", owner: denied},
	{name: "any other folder", lines: "volumes: ['/mnt/media:/m']", key: "services.web.volumes /mnt/media:", risk: "outside the app's own data", owner: power},
	{name: "the daemon's state", lines: "volumes: ['/var/lib/gitring:/s:ro']", key: "services.web.volumes /var/lib/gitring:", risk: "the daemon's own", owner: denied},
	{name: "the daemon's state by dots", lines: "volumes: ['/srv/../var/lib/gitring/gitring.db:/s:ro']", key: "services.web.volumes /var/lib/gitring/gitring.db:", owner: denied},
	{name: "content that gitring did not place", lines: "volumes: ['/var/lib/gitring/content/0123:/s:ro']", key: "services.web.volumes", risk: "the daemon's own", owner: denied},
	{name: "the daemon's configuration", lines: "volumes: ['/etc/gitring:/s:ro']", key: "services.web.volumes /etc/gitring:", owner: denied},
	{name: "the env folder", lines: "volumes: ['/etc/gitring/env/web/.env:/s:ro']", key: "services.web.volumes", owner: denied},
	{name: "the daemon's socket", lines: "volumes: ['/run/gitring/gitring.sock:/s']", key: "services.web.volumes", owner: denied},
	{name: "the daemon's socket by the old path", lines: "volumes: ['/var/run/gitring:/s']", key: "services.web.volumes", risk: "the daemon's own", owner: denied},
	{name: "the folder above the daemon's state", lines: "volumes: ['/var/lib:/s:ro']", key: "services.web.volumes /var/lib:", risk: "holds the daemon's state too", owner: power},
	{name: "the data of another app", lines: "volumes: ['/srv/gitring/shop/data:/d']", files: map[string]string{"shop/compose.yaml": plainWeb}, key: "services.web.volumes", risk: "data of app shop", owner: denied},
	{name: "the data of all apps", lines: "volumes: ['/srv/gitring:/d']", key: "services.web.volumes /srv/gitring:", owner: power},
	{name: "the data of another app by dots", lines: "volumes: ['../shop/data:/d']", files: map[string]string{"shop/compose.yaml": plainWeb}, key: "services.web.volumes", risk: "data of app shop", owner: denied},
	{name: "data beside the app's own", lines: "volumes: ['../shared:/d']", key: "services.web.volumes ../shared:", told: "services.web.volumes /srv/gitring/shared:", risk: "outside the app's own data", owner: power},
	{name: "the time zone, writable", lines: "volumes: ['/etc/localtime:/etc/localtime']", key: "services.web.volumes /etc/localtime:", risk: "lets the container change", owner: power},
	{name: "certificates, writable", lines: "volumes: ['/etc/ssl/certs:/etc/ssl/certs:rw']", key: "services.web.volumes /etc/ssl/certs:", owner: power},
	{name: "certificates' keys by dots", lines: "volumes: ['/etc/ssl/certs/../private:/k:ro']", key: "services.web.volumes /etc/ssl/private:", owner: power},
	{name: "a label for the time zone", lines: "volumes: ['/etc/localtime:/etc/localtime:ro,z']", key: "services.web.volumes /etc/localtime:", risk: "SELinux", owner: power},
	{name: "shared mounts", lines: "volumes: ['./data:/d:rshared']", key: "services.web.volumes", risk: "shares later mounts", owner: power},
	{name: "shared mounts in long form", lines: "volumes:\n  - {type: bind, source: ./data, target: /d, bind: {propagation: shared}}", line: 5, key: "services.web.volumes", risk: "shares later mounts", owner: power},
	{name: "a slave of the host's mounts", lines: "volumes: ['./data:/d:rslave']", key: "services.web.volumes", owner: power},
	{name: "a folder inside another's", lines: "volumes: ['./data/sub:/d']", top: "  db: {image: nginx, volumes: ['./data:/d']}\n", key: "services.web.volumes web/data/sub in web/data of service db:", risk: "become root here by a restart", owner: power},

	// volumes
	{name: "the host by a volume's options", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: none, o: bind, device: /}\n", line: 7, key: "volumes.data.driver_opts device, o, type:", risk: "any folder or device", owner: power},
	{name: "the daemon's state by a volume's options", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: none, o: bind, device: /var/lib/gitring}\n", line: 7, key: "volumes.data.driver_opts device", risk: "/var/lib/gitring is the daemon's own", owner: denied},
	{name: "the daemon's state by an overlay", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: overlay, device: overlay, o: 'lowerdir=/var/lib/gitring,upperdir=/u,workdir=/w'}\n", line: 7, key: "volumes.data.driver_opts o:", risk: "the daemon's own", owner: denied},
	{name: "the daemon's state by a relative path", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: none, o: bind, device: var/lib/gitring}\n", line: 7, key: "volumes.data.driver_opts device", risk: "/var/lib/gitring is the daemon's own", owner: denied},
	{name: "a folder of wherever the engine was started", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: none, o: bind, device: ../x}\n", line: 7, key: "volumes.data.driver_opts device", risk: "wherever the engine was started", owner: denied},
	{name: "the daemon's state by a relative overlay", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: overlay, device: overlay, o: 'lowerdir=usr:var/lib/gitring,upperdir=/u,workdir=/w'}\n", line: 7, key: "volumes.data.driver_opts o:", risk: "the daemon's own", owner: denied},
	{name: "a share of the network", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts: {type: nfs, o: 'addr=10.0.0.1', device: ':/x'}\n", line: 7, key: "volumes.data.driver_opts", risk: "share of the network", owner: power},
	{name: "a share with a password", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver_opts:\n      type: cifs\n      o: username=u,password=hunter2\n", line: 8, key: "volumes.data.driver_opts", owner: power},
	{name: "another volume driver", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    driver: rclone\n", line: 7, key: "volumes.data.driver rclone:", owner: power},
	{name: "another app's volume by name", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    name: shop_data\n", files: map[string]string{"shop/compose.yaml": plainWeb}, line: 7, key: "shop_data", owner: refused},
	{name: "another app's volume as external", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    external: true\n    name: shop_data\n", files: map[string]string{"shop/compose.yaml": plainWeb}, key: "services.web.volumes shop_data:", risk: "volume of app shop", owner: denied},
	{name: "the volumes of a stranger", lines: "volumes_from: ['container:x']", key: "services.web.volumes_from", owner: refused},
	{name: "a tmpfs of half the memory", lines: "tmpfs: ['/t:size=8g']", key: "services.web.tmpfs", risk: "more than 2 GiB", owner: carried},
	{name: "a tmpfs by options", lines: "tmpfs: ['/t:size=3g,exec,uid=1']", key: "services.web.tmpfs", risk: "more than 2 GiB", owner: carried},
	{name: "a tmpfs in long form", lines: "volumes:\n  - {type: tmpfs, target: /t, tmpfs: {size: 4294967296}}", line: 5, key: "services.web.tmpfs /t size=4294967296:", owner: carried},
	{name: "shared memory of the host's size", lines: "shm_size: 4gb", key: "services.web.shm_size 4294967296:", owner: carried},

	// networks and ports
	{name: "a driver on the host's network", lines: "networks: [lan]", top: "networks:\n  lan:\n    driver: macvlan\n", line: 7, key: "networks.lan.driver macvlan:", owner: power},
	{name: "another driver on the host's network", lines: "networks: [lan]", top: "networks:\n  lan:\n    driver: ipvlan\n", line: 7, key: "networks.lan.driver ipvlan:", owner: power},
	{name: "an option of the bridge", lines: "networks: [lan]", top: "networks:\n  lan:\n    driver_opts: {com.docker.network.bridge.name: br0}\n", line: 7, key: "networks.lan.driver_opts com.docker.network.bridge.name:", owner: power},
	{name: "another giver of addresses", lines: "networks: [lan]", top: "networks:\n  lan:\n    ipam:\n      driver: dhcp\n", line: 8, key: "networks.lan.ipam.driver dhcp:", owner: power},
	{name: "the address of credentials", lines: "networks: [lan]", top: "networks:\n  lan:\n    ipam:\n      config: [{subnet: 169.254.169.0/24}]\n", line: 8, key: "networks.lan.ipam.config 169.254.169.0/24:", risk: "credentials", owner: power},
	{name: "the address of credentials in a wide net", lines: "networks: [lan]", top: "networks:\n  lan:\n    ipam:\n      config: [{subnet: 168.0.0.0/6}]\n", line: 8, key: "networks.lan.ipam.config 168.0.0.0/6:", owner: power},
	{name: "an option of an endpoint", lines: "networks:\n  lan:\n    driver_opts: {com.docker.network.endpoint.sysctls: x}", top: "networks: {lan: }\n", line: 6, key: "services.web.networks.lan.driver_opts com.docker.network.endpoint.sysctls:", owner: power},
	{name: "an address of one's own on the link", lines: "networks:\n  lan:\n    link_local_ips: [169.254.169.254]", top: "networks: {lan: }\n", line: 6, key: "services.web.networks.lan.link_local_ips 169.254.169.254:", owner: power},
	{name: "a name for the address of credentials", lines: "extra_hosts: ['meta:169.254.169.254']", key: "services.web.extra_hosts", risk: "credentials", owner: power},
	{name: "names asked of the address of credentials", lines: "dns: 169.254.169.253", key: "services.web.dns 169.254.169.253:", owner: power},
	{name: "a port below", lines: "ports: ['53:53/udp']", key: "services.web.ports 53/udp:", risk: "its own services", owner: power},
	{name: "the port of shells", lines: "ports: ['22:22']", key: "services.web.ports 22:", owner: power},
	{name: "a port in long form", lines: "ports:\n  - {target: 25, published: '25'}", line: 5, key: "services.web.ports 25:", owner: power},
	{name: "a range from below", lines: "ports: ['78-81:78-81']", key: "services.web.ports 78, 79:", owner: power},
	{name: "the port of shared files", lines: "ports: ['445:445']", key: "services.web.ports 445:", risk: "its own services", owner: power},
	{name: "the port of engines", lines: "ports: ['2375:2375']", key: "services.web.ports 2375:", risk: "engines and clusters", owner: power},
	{name: "the port of clusters", lines: "ports: ['127.0.0.1:2377:1']", key: "services.web.ports 2377:", owner: power},
	{name: "logs to a server", lines: "logging: {driver: syslog, options: {syslog-address: 'tcp://10.0.0.1:514'}}", key: "services.web.logging.driver syslog:", risk: "host's own network", owner: power},
	{name: "logs to another server", lines: "logging: {driver: gelf, options: {gelf-address: 'udp://10.0.0.1:1'}}", key: "services.web.logging.driver gelf:", owner: power},

	// whose things are
	{name: "a label of gitring", lines: "labels: {gitring.app: shop}", key: "gitring.app", owner: refused},
	{name: "a label of gitring in a list", lines: "labels: ['gitring.host=x']", key: "gitring.host", owner: refused},
	{name: "a label of Compose", lines: "labels: {com.docker.compose.project: shop}", key: "com.docker.compose.project", owner: refused},
	{name: "a label of Compose on a volume", lines: "volumes: ['data:/d']", top: "volumes:\n  data:\n    labels: {com.docker.compose.volume: x}\n", line: 7, key: "com.docker.compose.volume", owner: refused},
	{name: "a label of gitring on a network", lines: "networks: [lan]", top: "networks:\n  lan:\n    labels: {gitring.app: x}\n", line: 7, key: "gitring.app", owner: refused},

	// limits
	{name: "an army", lines: "deploy:\n  replicas: 21", line: 5, key: "services.web.deploy.replicas 21:", owner: carried},
	{name: "an army by scale", lines: "scale: 21", key: "services.web.deploy.replicas 21:", owner: carried},
	{name: "a stop without an end", lines: "stop_grace_period: 20m", key: "services.web.stop_grace_period 1200:", owner: carried},
}

func TestEveryEscapeIsDeniedByDefaultAtItsLine(t *testing.T) {
	require.GreaterOrEqual(t, len(vectors), 100)
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			plan, refusals := judged(t, policy.Compose, v.commit())
			_, there := plan.App("web")
			require.False(t, there, "it would be carried out")
			require.NotEmpty(t, refusals)
			line := max(v.line, 4)
			var told *ring.Refusal
			for _, r := range refusals {
				if strings.Contains(r.Says, v.key) && strings.Contains(r.Says, v.risk) && r.Line == line {
					told = r
				}
			}
			require.NotNil(t, told, "line %d: %v", line, refusals)
			require.Equal(t, "web/compose.yaml", told.File)
			require.NotEmpty(t, told.Hint)
			for _, r := range refusals {
				require.NotContains(t, r.Error()+r.Hint, "hunter2")
				if v.owner != refused {
					require.Equal(t, ring.PolicyDenied, r.Code)
				}
			}
		})
	}
}

func TestWhatOwnerDoesWithEveryEscape(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			plan, refusals := judged(t, policy.Owner, v.commit())
			app, there := plan.App("web")
			switch v.owner {
			case denied, refused:
				require.False(t, there)
				require.NotEmpty(t, refusals)
				require.NotContains(t, refusals[0].Hint, "profile: owner", "it would not help")
				return
			}
			require.Empty(t, refusals)
			require.True(t, there)
			if v.owner == carried {
				require.Empty(t, app.Powers)
				return
			}
			require.NotEmpty(t, app.Powers)
			all := strings.Join(app.Powers, "\n")
			require.Contains(t, all, cmp.Or(v.told, v.key))
			require.NotContains(t, all, "hunter2")
		})
	}
}
