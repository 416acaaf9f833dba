package runtime

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// podmanKeeps says how Podman gives back what it tells otherwise than Docker.
var podmanKeeps = map[string]func(t *testing.T, s survived){
	"Image": func(t *testing.T, s survived) {
		require.Equal(t, s.a.Want.Pin.Image, "sha256:"+strings.TrimPrefix(s.c.Image, "sha256:"))
	},
	"Environment": func(t *testing.T, s survived) {
		for name, value := range s.Environment {
			require.Contains(t, s.c.Config.Env, name+"="+value)
		}
	},
	"Unset": func(t *testing.T, s survived) {
		for _, name := range s.Unset {
			for _, is := range s.c.Config.Env {
				require.False(t, strings.HasPrefix(is, name+"="), is)
			}
		}
	},
	"WorkingDir": func(t *testing.T, s survived) {
		require.Contains(t, []string{s.WorkingDir, "/"}, s.c.Config.WorkingDir)
	},
	"StopSignal": func(t *testing.T, s survived) {
		want := map[string]string{"": "15", "SIGTERM": "15", "SIGUSR1": "10", "SIGQUIT": "3", "SIGINT": "2"}[s.StopSignal]
		require.Contains(t, []string{want, s.StopSignal}, s.c.Config.StopSignal)
	},
	"Init": func(t *testing.T, s survived) {
		require.Equal(t, s.Init != nil && *s.Init, s.c.HostConfig.Init != nil && *s.c.HostConfig.Init)
	},
	"Ulimits": func(t *testing.T, s survived) {
		got := map[string]ring.Ulimit{}
		for _, u := range s.c.HostConfig.Ulimits {
			got[u.Name] = ring.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard}
		}
		for _, u := range s.Ulimits {
			u.Name = "RLIMIT_" + strings.ToUpper(u.Name)
			require.Equal(t, u, got[u.Name])
		}
	},
	"SecurityOpt": func(t *testing.T, s survived) {
		for _, o := range s.SecurityOpt {
			if o == "no-new-privileges:true" {
				require.Contains(t, s.c.HostConfig.SecurityOpt, "no-new-privileges")
			}
		}
	},
	"Devices": func(t *testing.T, s survived) {
		var got []string
		for _, d := range s.c.HostConfig.Devices {
			got = append(got, d.PathOnHost+":"+d.PathInContainer)
		}
		for _, d := range s.Devices {
			if s.Privileged {
				break // it has all of them
			}
			require.Contains(t, got, d.Host+":"+d.Container)
		}
	},
	"Runtime": func(t *testing.T, s survived) { require.Equal(t, "oci", s.c.HostConfig.Runtime) },
	"UTSMode": func(t *testing.T, s survived) {
		require.EqualValues(t, cmp.Or(s.UTSMode, "private"), s.c.HostConfig.UTSMode)
	},
	// It tells what differs from its own list.
	"CapAdd": func(t *testing.T, s survived) {
		if !s.Privileged {
			require.Subset(t, plainCaps(s.c.HostConfig.CapAdd), s.CapAdd)
		}
	},
	"CapDrop": func(t *testing.T, s survived) {
		for _, c := range s.CapDrop {
			require.NotContains(t, plainCaps(s.c.HostConfig.CapAdd), c)
		}
	},
	"StopGrace": func(t *testing.T, s survived) {
		require.EqualValues(t, cmp.Or(s.StopGrace, 10*time.Second).Seconds(), *s.c.Config.StopTimeout)
	},
	"PIDMode": func(t *testing.T, s survived) {
		require.EqualValues(t, cmp.Or(joinedOr(s.a.Owners[s.PIDOf], s.PIDMode), "private"), s.c.HostConfig.PidMode)
	},
	"Networks": func(t *testing.T, s survived) {
		for _, n := range s.Networks {
			require.Contains(t, s.c.NetworkSettings.Networks, s.a.Networks[n.Network])
		}
	},
	"Ports": func(t *testing.T, s survived) {
		for _, p := range s.Ports {
			require.NotEmpty(t, s.c.HostConfig.PortBindings[nat.Port(fmt.Sprintf("%d/%s", p.Container, p.Protocol))])
		}
	},
	"MacAddress": func(t *testing.T, s survived) { require.Empty(t, s.c.Config.MacAddress) }, //nolint:staticcheck // where older engines keep it
	"Mounts": func(t *testing.T, s survived) {
		there := map[string]bool{}
		for _, m := range s.c.Mounts {
			there[m.Destination] = true
		}
		for at := range s.c.HostConfig.Tmpfs {
			there[at] = true
		}
		for _, m := range s.Mounts {
			require.True(t, there[m.Target], "%s of %v", m.Target, there)
		}
	},
	// It carries these out and does not tell them.
	"Sysctls":           func(t *testing.T, s survived) { require.Empty(t, s.c.HostConfig.Sysctls) },
	"DeviceCgroupRules": func(t *testing.T, s survived) { require.Empty(t, s.c.HostConfig.DeviceCgroupRules) },
	"UsernsMode":        func(t *testing.T, s survived) { require.Empty(t, s.c.HostConfig.UsernsMode) },
	"CgroupMode":        func(t *testing.T, s survived) { require.Empty(t, s.c.HostConfig.CgroupnsMode) },
}

// dropRefused takes out what is refused on Podman; podman_test.go shows the refusals.
func dropRefused(s *ring.Spec) {
	s.Domainname, s.DeviceRequests = "", nil
	if s.PIDMode != "" || s.PIDOf != "" {
		s.Init = nil
	}
	if s.IPCMode == "host" {
		s.ShmSize = 0
	}
	if s.Logging != nil {
		l := *s.Logging
		l.Options = nil
		s.Logging = &l
	}
}

// podmanRefuses reports whether a field is of what no request to Podman carries.
func podmanRefuses(path string) bool {
	for _, p := range []string{"Spec.Domainname", "Spec.DeviceRequests", "Spec.Logging.Options"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}
