package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// What tools of a homelab mount of the host is started under owner, by the host's
// own links too, with all of them on the engine at once.
func TestEngineStartsWhatAHomelabMounts(t *testing.T) {
	engineOrSkip(t)
	media := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(media, "downloads"), 0o755))
	readOnly := func(source, target string) ring.Mount {
		m := bindMount(source, target)
		m.ReadOnly = true
		return m
	}
	r := realRig(t)
	r.judgedBy(policy.Owner)
	for name, mounts := range map[string][]ring.Mount{
		"films":     {bindMount(media, "/media"), dataMount(r, "films", "/config")},
		"series":    {bindMount(media, "/data"), readOnly("/etc/localtime", "/etc/localtime")},
		"downloads": {bindMount(filepath.Join(media, "downloads"), "/downloads")},
		"proxy":     {readOnly("/var/run/docker.sock", "/var/run/docker.sock")},
		"portainer": {bindMount("/var/run/docker.sock", "/var/run/docker.sock"), bindMount("/", "/host")},
		"cadvisor":  {readOnly("/", "/rootfs"), readOnly("/var/run", "/var/run"), readOnly("/sys", "/sys"), readOnly("/dev", "/host/dev")},
		"periphery": {bindMount("/var/run/docker.sock", "/var/run/docker.sock"), bindMount("/proc", "/proc")},
		"backup":    {bindMount("/", "/source"), readOnly("/etc/localtime", "/etc/localtime")},
		"metrics":   {readOnly("/proc", "/host/proc"), readOnly("/sys", "/host/sys")},
	} {
		r.Must(t, r.mounting(name, mounts...))
	}
	seen := r.Seen(t)
	require.Len(t, seen.Instances, 9)
	for _, in := range seen.Instances {
		require.Equal(t, ring.StateRunning, in.State, in.Service)
	}
}
