package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// docs/design/rollout.md#overlap: each word of the list, and what is none.
func TestWhatKeepsTwoInstancesFromRunningAtOnce(t *testing.T) {
	mount := func(kind ring.MountKind, source string) func(*ring.Service) {
		return func(s *ring.Service) {
			s.Spec.Mounts = []ring.Mount{{Kind: kind, Source: source, Target: "/x"}}
		}
	}
	spec := func(change func(*ring.Spec)) func(*ring.Service) {
		return func(s *ring.Service) { change(&s.Spec) }
	}
	for _, c := range []struct {
		name   string
		change func(*ring.Service)
		why    string // "" is that they can
	}{
		{"nothing of the kind", func(*ring.Service) {}, ""},
		{"a port of the host", spec(func(s *ring.Spec) { s.Ports = []ring.Port{{HostPort: "80", Container: 80, Protocol: "tcp"}} }), "host port 80/tcp"},
		{"a port that the engine chooses", spec(func(s *ring.Spec) { s.Ports = []ring.Port{{Container: 80, Protocol: "tcp"}} }), ""},
		{"the host's network", spec(func(s *ring.Spec) { s.NetworkMode = "host" }), "the host's network"},
		{"a static address", spec(func(s *ring.Spec) { s.Networks = []ring.Attachment{{Network: "lan", IPv4: "10.0.0.9"}} }), "static address on network lan"},
		{"a static address of IPv6", spec(func(s *ring.Spec) { s.Networks = []ring.Attachment{{Network: "lan", IPv6: "fd00::9"}} }), "static address on network lan"},
		{"a link-local address", spec(func(s *ring.Spec) {
			s.Networks = []ring.Attachment{{Network: "lan", LinkLocal: []string{"169.254.9.9"}}}
		}), "static address on network lan"},
		{"a MAC address on a network", spec(func(s *ring.Spec) { s.Networks = []ring.Attachment{{Network: "lan", MacAddress: "02:00:00:00:00:01"}} }), "static address on network lan"},
		{"a MAC address", spec(func(s *ring.Spec) { s.MacAddress = "02:00:00:00:00:01" }), "mac_address 02:00:00:00:00:01"},
		{"a network alone", spec(func(s *ring.Spec) { s.Networks = []ring.Attachment{{Network: "lan"}} }), ""},
		{"a container_name", spec(func(s *ring.Spec) { s.ContainerName = "edge" }), "container_name edge"},
		{"a device", spec(func(s *ring.Spec) { s.Devices = []ring.Device{{Host: "/dev/ttyUSB0"}} }), "device /dev/ttyUSB0"},
		{"NET_ADMIN", spec(func(s *ring.Spec) { s.CapAdd = []string{"CHOWN", "NET_ADMIN"} }), "NET_ADMIN"},
		{"every capability, NET_ADMIN among them", spec(func(s *ring.Spec) { s.CapAdd = []string{"ALL"} }), "NET_ADMIN, by cap_add ALL"},
		{"privileged, which has every device and NET_ADMIN", spec(func(s *ring.Spec) { s.Privileged = true }), "privileged"},
		{"another capability", spec(func(s *ring.Spec) { s.CapAdd = []string{"NET_BIND_SERVICE"} }), ""},
		{"another's network", spec(func(s *ring.Spec) { s.NetworkOf = "vpn" }), "joins vpn"},
		{"another's processes", spec(func(s *ring.Spec) { s.PIDOf = "vpn" }), "joins vpn"},
		{"another's memory", spec(func(s *ring.Spec) { s.IPCOf = "vpn" }), "joins vpn"},
		{"another's volumes", spec(func(s *ring.Spec) { s.VolumesFrom = []ring.VolumesFrom{{Service: "vpn"}} }), "joins vpn"},
		{"a volume", mount(ring.MountVolume, "data"), "writable volume data at /x"},
		{"a data folder", mount(ring.MountData, "shop/db"), "writable data shop/db at /x"},
		{"a path of the host", mount(ring.MountBind, "/srv/x"), "writable bind /srv/x at /x"},
		{"a volume of the image", func(s *ring.Service) { s.Image.Volumes = []string{"/var/lib/db"} }, "at /var/lib/db"},
		{"a volume that is read only", func(s *ring.Service) {
			s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/x", ReadOnly: true}}
		}, ""},
		{"files of the commit", mount(ring.MountContent, "ab"), ""},
		{"memory", mount(ring.MountTmpfs, ""), ""},
		{"a volume that its author shares", func(s *ring.Service) { mount(ring.MountVolume, "data")(s); s.Share = true }, ""},
		{"a port, which nothing shares", func(s *ring.Service) {
			s.Spec.Ports, s.Share = []ring.Port{{HostPort: "80", Container: 80, Protocol: "tcp"}}, true
		}, "host port 80/tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ring.Service{Name: "web"}
			c.change(&s)
			app := ring.App{Name: "shop", Services: []ring.Service{s, {Name: "vpn"}}}
			why := app.Alone(&s)
			if c.why == "" {
				require.Empty(t, why)
				return
			}
			require.Contains(t, why, c.why)
			if owners := s.Spec.Owners(); len(owners) > 0 {
				vpn, _ := app.Service("vpn")
				require.Equal(t, "joined by web", app.Alone(&vpn), "on either side")
			}
		})
	}
}
