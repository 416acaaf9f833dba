package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
)

func init() { vectors = append(vectors, mountVectors...) }

var mountVectors = []vector{
	// where things are mounted
	{name: "a volume at /proc", lines: "volumes: ['data:/proc']", top: "volumes: {data: }\n", key: "services.web.volumes /proc:", owner: denied},
	{name: "a volume at /proc/self/attr", lines: "volumes: ['data:/proc/self/attr']", top: "volumes: {data: }\n", key: "services.web.volumes /proc/self/attr:", risk: "the kernel's own folders", owner: denied},
	{name: "a volume below /sys", lines: "volumes: ['data:/sys/fs/cgroup']", top: "volumes: {data: }\n", key: "services.web.volumes /sys/fs/cgroup:", owner: power},
	{name: "a volume at /dev", lines: "volumes: ['data:/dev']", top: "volumes: {data: }\n", key: "services.web.volumes /dev:", owner: power},
	{name: "a volume beside shared memory", lines: "volumes: ['data:/dev/shmem']", top: "volumes: {data: }\n", key: "services.web.volumes /dev/shmem:", owner: power},
	{name: "a volume by two slashes", lines: "volumes: ['data://proc//scsi/']", top: "volumes: {data: }\n", key: "services.web.volumes /proc/scsi:", owner: power},
	{name: "a volume by a dot", lines: "volumes: ['data:/./proc/fs']", top: "volumes: {data: }\n", key: "services.web.volumes /proc/fs:", owner: power},
	{name: "a volume by a detour", lines: "volumes: ['data:/var/../proc/fs']", top: "volumes: {data: }\n", key: "services.web.volumes /proc/fs:", owner: power},
	{name: "a volume in long form", lines: "volumes:\n  - {type: volume, source: data, target: /sys/kernel}", top: "volumes: {data: }\n", line: 5, key: "services.web.volumes /sys/kernel:", owner: power},
	{name: "an anonymous volume", lines: "volumes: [/proc/scsi]", key: "services.web.volumes /proc/scsi:", owner: power},
	{name: "a tmpfs below /sys", lines: "tmpfs: [/sys/firmware]", key: "/sys/firmware:", owner: power},
	{name: "a tmpfs with options", lines: "tmpfs: ['/proc/acpi:size=1m']", key: "/proc/acpi:", owner: power},
	{name: "a tmpfs in long form", lines: "volumes: [{type: tmpfs, target: /dev/disk}]", key: "/dev/disk:", owner: power},
	{
		name: "a config below /proc", lines: "configs: [{source: c, target: /proc/sys/kernel/core_pattern}]", top: "configs: {c: {content: '|/x'}}\n",
		key: "/proc/sys/kernel/core_pattern:", owner: denied,
	},
	{
		name: "a secret below /sys", lines: "secrets: [{source: s, target: /sys/power/state}]", top: "secrets: {s: {file: ./s}}\n",
		files: map[string]string{"web/s": "hunter2"}, key: "/sys/power/state:", owner: power,
	},
	{name: "a file of the commit below /proc", lines: "volumes: ['./f:/proc/self/attr/apparmor/exec:ro']", files: map[string]string{"web/f": "x"}, key: "/proc/self/attr/apparmor/exec:", owner: denied},
	{name: "data at /proc/sys", lines: "volumes: ['./data:/proc/sys/kernel']", key: "services.web.volumes /proc/sys/kernel:", owner: denied},
	{name: "the host's processes at their place", lines: "volumes: ['/proc:/proc']", key: "services.web.volumes /proc:", owner: power},
	{name: "another folder of the host at /proc", lines: "volumes: ['/srv/proc:/proc']", key: "services.web.volumes /proc:", risk: "the kernel's own folders", owner: denied},
	{name: "a part of the host's processes at /proc", lines: "volumes: ['/proc/1:/proc']", key: "services.web.volumes /proc:", risk: "the kernel's own folders", owner: denied},
	{name: "the host's processes at /proc/sys", lines: "volumes: ['/proc:/proc/sys']", key: "services.web.volumes /proc/sys:", risk: "the kernel's own folders", owner: denied},
	{name: "data at a process", lines: "volumes: ['./data:/proc/1/ns']", key: "services.web.volumes /proc/1/ns:", owner: denied},
	{name: "data at the calling thread", lines: "volumes: ['./data:/proc/thread-self/attr']", key: "services.web.volumes /proc/thread-self/attr:", owner: denied},
	{name: "data at /proc", lines: "volumes: ['./data:/proc/.']", key: "services.web.volumes /proc:", owner: denied},

	// how programs begin
	{name: "begins at an open file of runc", lines: "working_dir: /proc/self/fd/8", key: "services.web.working_dir /proc/self/fd/8:", risk: "open files of the host", owner: power},
	{name: "begins in /proc by two slashes", lines: "working_dir: //proc/self/cwd", key: "services.web.working_dir", owner: power},
	{name: "begins in /proc by a detour", lines: "working_dir: /var/../proc/1/root", key: "services.web.working_dir", owner: power},
	{name: "begins in /proc by a relative path", lines: "working_dir: ../proc/self/fd/7", key: "services.web.working_dir", owner: refused},
	{name: "begins in /dev", lines: "working_dir: /dev/fd/7", key: "services.web.working_dir /dev/fd/7:", owner: power},
	{name: "a hook begins at an open file", lines: "post_start: [{command: [x], working_dir: /proc/self/fd/7}]", key: "services.web.post_start /proc/self/fd/7:", owner: power},
	{name: "a hook before the stop begins in /proc", lines: "pre_stop: [{command: [x], working_dir: /proc/self/fd/7}]", key: "/proc/self/fd/7:", owner: power},
	{name: "the program that starts containers", lines: "entrypoint: [/proc/self/exe]", key: "services.web.entrypoint /proc/self/exe:", risk: "starts containers", owner: power},
	{name: "the same by a detour", lines: "entrypoint: [/usr/../proc/1/exe, x]", key: "services.web.entrypoint", owner: power},
	{name: "the same as a command", lines: "command: [/proc/thread-self/exe]", key: "services.web.command /proc/thread-self/exe:", owner: power},
	{name: "the same as a text", lines: "command: //proc/self/exe init", key: "services.web.command", owner: power},
	{name: "the same as a relative path", lines: "command: [proc/self/exe]", key: "services.web.command proc/self/exe:", owner: power},
	{name: "the same from a folder", lines: "working_dir: /a/b\n  ", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx\n    command: [../../proc/self/exe]\n    working_dir: /a/b\n"}, key: "services.web.command ../../proc/self/exe:", owner: power},
	{name: "the same as a healthcheck", lines: "healthcheck: {test: [CMD, /proc/self/exe]}", key: "services.web.healthcheck /proc/self/exe:", owner: power},
	{name: "the same in a healthcheck's shell", lines: "healthcheck: {test: /proc/self/exe x}", key: "services.web.healthcheck /proc/self/exe:", owner: power},
	{name: "the same as a hook", lines: "post_start: [{command: [/proc/self/exe]}]", key: "services.web.post_start /proc/self/exe:", owner: power},

	// folders inside folders that are written
	{name: "a folder inside one's own, elsewhere", lines: "volumes: ['./data:/data', './data/logs:/var/log/app']", key: "services.web.volumes web/data/logs in web/data of service web:", risk: "can become root here by a restart", owner: power},
	{name: "two levels down", lines: "volumes: ['./data:/data', './data/a/b:/data/a/b']", key: "services.web.volumes web/data/a/b in web/data of service web:", owner: power},
	{name: "the outer folder twice", lines: "volumes: ['./data:/data', './data/a:/data/a', './data:/again']", key: "services.web.volumes web/data/a in web/data of service web:", owner: power},
	{name: "inside, by an absolute path", lines: "volumes: ['./data:/data', '/srv/gitring/web/data/x:/x']", key: "web/data/x in web/data of service web:", owner: power},
}

// What people commonly mount, and how their programs begin.
func TestOrdinaryMountsAndProgramsPass(t *testing.T) {
	for name, lines := range map[string]string{
		"shared memory":                  "tmpfs: [/dev/shm]",
		"messages":                       "volumes: ['data:/dev/mqueue']",
		"a name like the kernel's":       "volumes: ['data:/process', './data:/system']",
		"run and tmp":                    "tmpfs: [/run, /tmp, /var/cache/nginx]",
		"a folder in its own place":      "volumes: ['./data:/data', './data/x:/data/x']",
		"both services, in place":        "volumes: ['./data:/data', './data/x:/data/x']\nvolumes_from: [db]",
		"the outer one only read":        "volumes: ['./data:/data:ro', './data/x:/x']",
		"committed inside data":          "volumes: ['./data:/data', './conf:/data/conf:ro']",
		"beside each other":              "volumes: ['./data:/data', './data2:/var/log/app']",
		"an absolute path of one's own":  "volumes: ['/srv/gitring/web/data:/data']",
		"an ordinary working folder":     "working_dir: /app",
		"a program of the image":         "entrypoint: [/docker-entrypoint.sh]\ncommand: [nginx, -g, 'daemon off;']",
		"a word that speaks of /proc":    "command: [sh, -c, 'cat /proc/self/status']",
		"a healthcheck that reads /proc": "healthcheck: {test: [CMD-SHELL, 'test -d /proc/1']}",
		"a hook":                         "post_start: [{command: [./migrate], working_dir: /app}]",
	} {
		t.Run(name, func(t *testing.T) {
			v := vector{lines: lines, files: map[string]string{"web/conf/a": "x"}, top: "  db: {image: nginx}\nvolumes: {data: }\n"}
			plan, refusals := judged(t, policy.Compose, v.commit())
			require.Empty(t, refusals)
			_, there := plan.App("web")
			require.True(t, there)
		})
	}
}

// What profile owner mounts of the host itself is judged by its source.
func TestFoldersOfTheKernelMayBeMountedAtTheirPlaceByTheOwner(t *testing.T) {
	for _, m := range []string{"/sys:/sys:ro", "/dev/bus/usb:/dev/bus/usb", "/var/lib/lxcfs/proc/cpuinfo:/proc/cpuinfo", "/sys/fs/cgroup:/sys/fs/cgroup:ro", "/proc:/host/proc:ro", "/proc:/proc", "/proc/:/proc/:ro"} {
		plan, refusals := judged(t, policy.Owner, vector{lines: "volumes: ['" + m + "']"}.commit())
		require.Empty(t, refusals, m)
		require.Len(t, plan.Apps, 1)
		require.Len(t, plan.Apps[0].Powers, 1, m)
	}
}

// Whoever writes one app could otherwise refuse all others by it.
func TestAnAppThatIsRefusedRefusesNoNeighbour(t *testing.T) {
	commit := vector{lines: "volumes: ['./data:/data']", files: map[string]string{
		"backup/compose.yaml": "services:\n  backup:\n    image: backup\n    volumes: ['/:/source']\n",
	}}.commit()
	plan, refusals := judged(t, policy.Compose, commit)
	require.Len(t, refusals, 1)
	require.Equal(t, "backup", refusals[0].App)
	require.NotContains(t, refusals[0].Says, "lies inside a folder")
	_, there := plan.App("web")
	require.True(t, there)
}
