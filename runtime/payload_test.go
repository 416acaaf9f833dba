package runtime

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func action(edit func(*ring.Spec)) ring.Action {
	s := &ring.Service{Name: "web", Pin: ring.Pin{Image: "sha256:1"}}
	if edit != nil {
		edit(&s.Spec)
	}
	return ring.Action{
		Kind: ring.DoCreate, App: "shop", Service: "web", Slot: 2, Version: "1:0123456789ab", Of: &ring.App{Name: "shop"}, Want: s,
		Networks: map[string]string{"default": "shop_default", "back": "shop_back_1234", "ext": "bridge"},
	}
}

var testSite = site{host: "edge", content: "/state/content", data: "/srv", api: MinAPI}

func build(t *testing.T, a ring.Action) payload {
	p, err := containerPayload(testSite, a)
	require.NoError(t, err)
	return p
}

func TestPayloadIsPure(t *testing.T) {
	for seed := range uint64(8) {
		a := action(func(s *ring.Spec) {
			*s = newDrawn(seed, "ab", [2]string{"10.0.0.5", "fd00::5"}, [2]string{"10.0.1.5", "fd01::5"}).spec()
		})
		a.Networks["front"], a.Owners = "shop_front", map[string]string{"vpn": "0123"}
		require.Equal(t, build(t, a), build(t, a))
	}
}

func TestPayloadNetworks(t *testing.T) {
	p := build(t, action(nil))
	require.Equal(t, "shop-web-2-01234567", p.Name)
	require.EqualValues(t, "none", p.Host.NetworkMode, "never the engine's own bridge")
	require.Nil(t, p.first())

	p = build(t, action(func(s *ring.Spec) {
		s.Networks = []ring.Attachment{{Network: "default", Aliases: []string{"www"}, IPv6: "fd00::5"}, {Network: "back"}, {Network: "ext"}}
	}))
	require.EqualValues(t, "shop_default", p.Host.NetworkMode)
	require.Equal(t, map[string]*network.EndpointSettings{"shop_default": {
		Aliases: []string{"web", "shop-web-2", "www"}, IPAMConfig: &network.EndpointIPAMConfig{IPv6Address: "fd00::5"},
	}}, p.first().EndpointsConfig, "API 1.41 takes one")
	require.Equal(t, []join{{"shop_back_1234", &network.EndpointSettings{Aliases: []string{"web", "shop-web-2"}}}, {"bridge", &network.EndpointSettings{}}}, p.Networks[1:])

	_, err := containerPayload(testSite, action(func(s *ring.Spec) { s.Networks = []ring.Attachment{{Network: "nowhere"}} }))
	require.ErrorContains(t, err, `"nowhere"`)

	p = build(t, action(func(s *ring.Spec) { s.NoNetwork = true; s.Networks = []ring.Attachment{{Network: "default"}} }))
	require.True(t, p.Host.NetworkMode.IsNone())
}

func TestPayloadKeepsOutOfTheWay(t *testing.T) {
	p := build(t, action(nil))
	require.Nil(t, p.Config.StopTimeout, "the engine's default")
	require.Nil(t, p.Config.Healthcheck, "the image's own")
	require.Nil(t, p.Host.Init)
	require.Empty(t, p.Config.Cmd)
	require.Empty(t, p.Config.Entrypoint)
	require.True(t, p.Host.RestartPolicy.IsNone())
	require.False(t, p.Host.AutoRemove)
	require.False(t, p.Host.Privileged)

	p = build(t, action(func(s *ring.Spec) { s.StopGrace = 1500 * time.Millisecond; s.Expose = []string{"80"} }))
	require.Equal(t, 2, *p.Config.StopTimeout, "never shorter than asked for")
	require.Contains(t, p.Config.ExposedPorts, port(ring.Port{Container: 80, Protocol: "tcp"}))
}

func TestPayloadContentIsReadOnly(t *testing.T) {
	p := build(t, action(func(s *ring.Spec) {
		s.Mounts = []ring.Mount{{Kind: ring.MountContent, Source: "ab", File: "x/y", Target: "/y"}, {Kind: ring.MountVolume, Source: "v_{slot}", Target: "/v"}}
	}))
	require.Equal(t, []mount.Mount{
		{Type: mount.TypeBind, Source: "/state/content/ab/x/y", Target: "/y", ReadOnly: true},
		{Type: mount.TypeVolume, Source: "shop_v_2", Target: "/v"},
	}, p.Host.Mounts)
	require.Equal(t, "shop_v_2", p.Volumes[0].Name)
}

func TestNetworkPayload(t *testing.T) {
	n := ring.Network{
		Key: "back", Internal: true, IPv6: true, Driver: "macvlan", Labels: map[string]string{"team": "blue", "gitring.app": "x"},
		Pools: []ring.Pool{{Subnet: "10.1.0.0/24", Gateway: "10.1.0.1", IPRange: "10.1.0.0/25"}, {Subnet: "fd00::/64"}},
	}
	o := networkPayload("edge", "shop", n)
	require.True(t, o.Internal)
	require.True(t, *o.EnableIPv6)
	require.Equal(t, "macvlan", o.Driver)
	require.Equal(t, []network.IPAMConfig{{Subnet: "10.1.0.0/24", Gateway: "10.1.0.1", IPRange: "10.1.0.0/25"}, {Subnet: "fd00::/64"}}, o.IPAM.Config)
	require.Equal(t, map[string]string{
		"team": "blue", "gitring.host": "edge", "gitring.app": "shop", "gitring.definition": n.Definition(),
		"com.docker.compose.project": "shop", "com.docker.compose.network": "back",
	}, o.Labels)
	require.Equal(t, "bridge", networkPayload("edge", "shop", ring.Network{Key: "x"}).Driver)
	require.Nil(t, networkPayload("edge", "shop", ring.Network{Key: "x"}).IPAM)
}

func TestPayloadPlatform(t *testing.T) {
	require.Nil(t, build(t, action(nil)).Platform, "the engine's own")
	for written, want := range map[string]ocispec.Platform{
		"linux/arm64/v8": {OS: "linux", Architecture: "arm64", Variant: "v8"}, "amd64": {OS: "linux", Architecture: "amd64"}, "linux/x86_64": {OS: "linux", Architecture: "amd64"},
	} {
		require.Equal(t, want, *build(t, action(func(s *ring.Spec) { s.Platform = written })).Platform, written)
	}
}

// A newer engine has places that 1.41 has not.
func TestPayloadOfNewerEngine(t *testing.T) {
	a := action(func(s *ring.Spec) {
		s.Annotations = map[string]string{"a": "b"}
		s.Healthcheck = &ring.Healthcheck{StartInterval: time.Second}
		s.MacAddress = "02:42:ac:11:00:07"
		s.Networks = []ring.Attachment{{Network: "default"}, {Network: "back", MacAddress: "02:42:ac:11:00:08"}}
	})
	at := testSite
	p := build(t, a)
	require.Len(t, p.Told, 3)
	require.Contains(t, p.Told[0], "mac_address on network shop_back_1234")
	require.Empty(t, p.Networks[0].Settings.MacAddress+p.Networks[1].Settings.MacAddress, "the client would refuse it")
	require.Equal(t, "02:42:ac:11:00:07", p.Config.MacAddress) //nolint:staticcheck // an older engine knows no other place

	at.api = "1.44"
	p, err := containerPayload(at, a)
	require.NoError(t, err)
	require.Empty(t, p.Told)
	require.Equal(t, []string{"02:42:ac:11:00:07", "02:42:ac:11:00:08"}, []string{p.Networks[0].Settings.MacAddress, p.Networks[1].Settings.MacAddress})
	require.Empty(t, p.Config.MacAddress) //nolint:staticcheck // its place is the endpoint now
	require.Equal(t, map[string]string{"a": "b"}, p.Host.Annotations)
	require.Equal(t, time.Second, p.Config.Healthcheck.StartInterval)
	require.Len(t, p.first().EndpointsConfig, 1, "the others are joined before the start, as with every engine")
}

func TestANameWithoutAValueTakesTheImagesValueAway(t *testing.T) {
	require.Equal(t, []string{"A=1", "GONE"}, environment(map[string]string{"A": "1"}, []string{"GONE"}))
	require.Equal(t, map[string]string{"A": "1"}, variables([]string{"GONE=of the image", "A=1", "GONE"}))
}

func TestATextIsSplitOnceItsValuesAreIn(t *testing.T) {
	pw := ring.Sealed{App: "web", File: ".env", Name: "ARGS", MAC: "00"}
	o := &opener{reveal: func(ring.Sealed) (string, error) { return `--port "4711-secret"`, nil }, opened: map[string]string{}}
	p := payload{
		Config: &container.Config{Cmd: []string{"run", pw.String()}, Entrypoint: []string{pw.String()}}, Host: &container.HostConfig{},
		CmdText: "run " + pw.String(),
	}
	o.payload(p)
	require.NoError(t, o.err)
	require.Equal(t, []string{"run", "--port", "4711-secret"}, []string(p.Config.Cmd))
	require.Equal(t, []string{`--port "4711-secret"`}, []string(p.Config.Entrypoint), "a list is not split")
	require.Equal(t, "cannot run <ARGS> 1: <ARGS>", o.redact("cannot run --port 1: 4711-secret"))
}

func TestADataFolderThatMustExistIsNotMade(t *testing.T) {
	p, err := containerPayload(site{host: "edge", data: "/srv"}, action(func(s *ring.Spec) {
		s.Mounts = []ring.Mount{{Kind: ring.MountData, Source: "web/made", Target: "/a"}, {Kind: ring.MountData, Source: "web/there", Target: "/b", MustExist: true}}
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"web/made"}, p.Data)
	require.Equal(t, "/srv/web/there", p.Host.Mounts[1].Source, "the engine refuses one that is missing")
}

func TestAPartOfAVolumeGoesToTheEngineThatKnowsIt(t *testing.T) {
	part := action(func(s *ring.Spec) {
		s.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/pg", Subpath: "data"}}
	})
	p, err := containerPayload(site{host: "edge", api: "1.45"}, part)
	require.NoError(t, err)
	require.Equal(t, "data", p.Host.Mounts[0].VolumeOptions.Subpath)
	require.False(t, p.Host.Mounts[0].VolumeOptions.NoCopy)
	_, err = containerPayload(site{host: "edge", api: "1.44"}, part)
	require.ErrorContains(t, err, "older than 1.45")
}
