package runtime

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/stretchr/testify/require"
)

func TestPathMismatch(t *testing.T) {
	bind := func(src, dst string) container.MountPoint {
		return container.MountPoint{Type: mount.TypeBind, Source: src, Destination: dst}
	}
	state := []string{"/var/lib/gitring", "/srv/gitring"}
	for _, x := range []struct {
		name   string
		mode   string
		mounts []container.MountPoint
		says   string
	}{
		{"both at their paths", "host", []container.MountPoint{bind("/var/lib/gitring", "/var/lib/gitring"), bind("/srv", "/srv")}, ""},
		{"one under another name", "host", []container.MountPoint{bind("/data", "/var/lib/gitring"), bind("/srv", "/srv")}, "/var/lib/gitring is /data on the host"},
		{"one not mounted", "host", []container.MountPoint{bind("/var/lib/gitring", "/var/lib/gitring")}, "/srv/gitring is not mounted"},
		{"a volume of the engine", "host", []container.MountPoint{
			{Type: mount.TypeVolume, Source: "/var/lib/docker/volumes/x/_data", Destination: "/var/lib/gitring"}, bind("/srv", "/srv"),
		}, "on the host"},
		{"a tmpfs inside a mount", "host", []container.MountPoint{bind("/var/lib", "/var/lib"), {Type: mount.TypeTmpfs, Destination: "/var/lib/gitring"}, bind("/srv", "/srv")}, "not mounted"},
		{"a neighbour with a longer name", "host", []container.MountPoint{bind("/var/lib/gitring", "/var/lib/gitring"), bind("/srv/git", "/srv/git")}, "/srv/gitring is not mounted"},
		{"without the host's network", "bridge", []container.MountPoint{bind("/var/lib/gitring", "/var/lib/gitring"), bind("/srv", "/srv")}, "network host"},
	} {
		t.Run(x.name, func(t *testing.T) {
			err := pathMismatch(container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{
				HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(x.mode)},
			}, Mounts: x.mounts}, state)
			if x.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, x.says)
		})
	}
}

func TestOwnID(t *testing.T) {
	id := strings.Repeat("0a", 32)
	other := strings.Repeat("0b", 32)
	docker := "714 700 8:1 /var/lib/docker/containers/" + id + "/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/sda1 rw\n"
	podman := "714 700 0:50 /containers/overlay-containers/" + id + "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n"
	// On a host, other containers' mounts show as themselves.
	host := "90 30 0:5 / /var/lib/docker/containers/" + other + "/mounts/shm rw - tmpfs shm rw\n"
	require.Equal(t, id, ownID(host+docker))
	require.Equal(t, id, ownID(podman))
	require.Empty(t, ownID(host))
	require.Empty(t, ownID(""))
}

func TestNothingIsSeenUntilOurOwnContainerIsSound(t *testing.T) {
	f := newFake(Options{Host: "edge-1", SamePaths: []string{"/nowhere"}})
	f.self = func() string { return "us" }
	id := f.AddForeign("us", nil)
	f.Down(true)
	_, err := f.Look(t.Context())
	require.Error(t, err, "the engine is away")
	f.Down(false)
	_, err = f.Look(t.Context())
	require.ErrorContains(t, err, "cannot run in this container (PathMismatch): /nowhere is not mounted from the host")

	f.TakeAway(id) // another engine runs us
	_, err = f.Look(t.Context())
	require.NoError(t, err)
	asked := f.Ops()["ContainerInspect"]
	_, err = f.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, asked, f.Ops()["ContainerInspect"], "it was said once")
}

func TestOutsideAContainerNothingIsWrong(t *testing.T) {
	f := newFake(Options{Host: "edge-1", SamePaths: []string{"/nowhere"}})
	f.self = func() string { return "" }
	_, err := f.Look(t.Context())
	require.NoError(t, err)
}
