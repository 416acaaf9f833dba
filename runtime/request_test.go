package runtime

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// unsent are the fields of a spec that no request carries, and why.
var unsent = map[string]string{
	"Spec.Image":             "the pin is sent",
	"Spec.PullPolicy":        "the pull's own",
	"Spec.ContainerName":     "given by a rename",
	"Spec.CommandText":       "split once its values are in, shown by a test of its own",
	"Spec.EntrypointText":    "split once its values are in, shown by a test of its own",
	"Spec.Follows":           "in the version only",
	"Spec.Mark":              "in the version only",
	"Spec.Mounts.MustExist":  "says what gitring does not make before the start",
	"Spec.Mounts.Seed":       "written into the folder before the start",
	"Spec.Mounts.Secret":     "a swarm's: what a file of a content is there",
	"Spec.Ports.Mode":        "a swarm's: where the port is published",
	"Spec.Mounts.Rest":       "in the version only: the files of a live folder that stay for as long as it does",
	"Spec.Networks.Priority": "an order, shown by a test of its own",
	"Spec.Networks.Network":  "names a network, shown by the round trip",
}

// A field that payloads forget is dropped without a word. So every one of them
// is changed, down to the last of the structs in it, and must change what is asked for.
func TestEveryFieldReachesARequest(t *testing.T) {
	full := func() *ring.Service {
		yes, few := true, int64(3)
		rate := []ring.BlkioRate{{Path: "/dev/a", Rate: 20}}
		return &ring.Service{Name: "web", Pin: ring.Pin{Image: "sha256:1"}, Spec: ring.Spec{
			Command: []string{"a"}, Entrypoint: []string{"a"}, Environment: map[string]string{"a": "b"}, Unset: []string{"u"}, Labels: map[string]string{"a": "b"},
			Ports: []ring.Port{{Container: 1, Protocol: "tcp"}}, Expose: []string{"2/tcp"}, Init: &yes,
			Mounts: []ring.Mount{
				{Kind: ring.MountVolume, Source: "v", Target: "/v"},
				{Kind: ring.MountBind, Source: "/b", Target: "/b", Create: true},
				{Kind: ring.MountBind, Source: "/c", Target: "/c"},
				{Kind: ring.MountTmpfs, Target: "/t", Options: "noexec"},
				{Kind: ring.MountContent, Source: "ab", File: "f", Target: "/f"},
				{Kind: ring.MountSeed, Source: "x", Target: "/x"},
			},
			Networks:    []ring.Attachment{{Network: "front", Aliases: []string{"a"}, LinkLocal: []string{"169.254.0.1"}, DriverOpts: map[string]string{"a": "b"}}},
			Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "a"}}, Logging: &ring.Logging{Driver: "a", Options: map[string]string{"a": "b"}},
			Annotations: map[string]string{"a": "b"}, DNS: []string{"a"}, DNSSearch: []string{"a"}, DNSOptions: []string{"a"}, GroupAdd: []string{"a"},
			ExtraHosts: []string{"a:b"}, Sysctls: map[string]string{"a": "b"}, Ulimits: []ring.Ulimit{{Name: "a"}}, StorageOpt: map[string]string{"a": "b"},
			Resources: &ring.Resources{MemorySwappiness: &few, PidsLimit: &few, Blkio: &ring.Blkio{WeightDevice: rate, DeviceReadBps: rate, DeviceReadIOps: rate, DeviceWriteBps: rate, DeviceWriteIOps: rate}},
			PostStart: []ring.Hook{{Command: []string{"a"}, Environment: map[string]string{"a": "b"}}}, PreStop: []ring.Hook{{Command: []string{"a"}, Environment: map[string]string{"a": "b"}}},
			CapAdd: []string{"A"}, CapDrop: []string{"A"}, SecurityOpt: []string{"a"}, Devices: []ring.Device{{Host: "a"}}, DeviceCgroupRules: []string{"a"},
			DeviceRequests: []ring.DeviceRequest{{Driver: "a", IDs: []string{"a"}, Capabilities: []string{"a"}, Options: map[string]string{"a": "b"}}},
			VolumesFrom:    []ring.VolumesFrom{{Service: "db"}},
		}}
	}
	asked := func(s *ring.Service) string {
		app := &ring.App{Name: "shop", Services: []ring.Service{{Name: "db"}, *s}, Networks: []ring.Network{{Key: "front"}}}
		all, err := Payloads("edge", app, s, "/srv", "/state/content")
		require.NoError(t, err)
		for i := range all {
			all[i].App, all[i].Service = nil, nil // who asks, not what for
		}
		b, err := json.Marshal(all)
		require.NoError(t, err)
		return string(b)
	}
	before := asked(full())
	for _, path := range leaves(reflect.TypeFor[ring.Spec](), "Spec") {
		if unsent[path] != "" || strings.HasPrefix(path, "Spec.Cluster.") { // a swarm's: TestEachFieldGoesWhereItsRowSays
			continue
		}
		changed := false
		for i := range 6 { // whichever of the elements it has an effect in
			s := full()
			if change(reflect.ValueOf(&s.Spec).Elem(), strings.Split(path, ".")[1:], i) {
				changed = changed || asked(s) != before
			}
		}
		require.True(t, changed, "%s changes nothing that the engine is asked for", path)
	}
}

// change sets the field at path to something else, in the i-th element of the
// slices on the way; false when there is none.
func change(v reflect.Value, path []string, i int) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return change(v.Elem(), path, i)
	case reflect.Slice:
		if i >= v.Len() {
			return false
		}
		return change(v.Index(i), path, i)
	case reflect.Struct:
		f := v.FieldByName(path[0])
		if f.Kind() == reflect.Slice && f.Type().Elem().Kind() != reflect.Struct {
			return i == 0 && change(f, path[1:], 0)
		}
		return change(f, path[1:], i)
	case reflect.Map:
		v.SetMapIndex(reflect.ValueOf("a"), reflect.ValueOf("another"))
	case reflect.String:
		switch {
		case v.Type() == reflect.TypeFor[ring.MountKind]():
			v.SetString(string(ring.MountData))
		case strings.HasPrefix(v.String(), "/"):
			v.SetString(v.String() + "/more")
		default:
			v.SetString(v.String() + "1/2")
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 11)
	case reflect.Uint32, reflect.Uint64, reflect.Uint16:
		v.SetUint(v.Uint() + 11)
	default:
		panic(fmt.Sprintf("what is another %s?", v.Kind()))
	}
	return true
}

func TestPayloadsNameAllThatIsMade(t *testing.T) {
	app := &ring.App{Name: "shop", DataRoot: "/data", Networks: []ring.Network{
		{Key: "default"}, {Key: "proxy", External: "traefik"}, {
			Key: "back", Name: "intranet", Driver: "macvlan", DriverOpts: map[string]string{"parent": "eth0"},
			IPAMDriver: "x", IPAMOptions: map[string]string{"a": "b"}, Pools: []ring.Pool{{Subnet: "10.0.0.0/24", Aux: map[string]string{"router": "10.0.0.2"}}},
		},
	}, Volumes: []ring.Volume{{Key: "db", Driver: "nfs", DriverOpts: map[string]string{"o": "addr=1.2.3.4"}}, {Key: "ext", External: "theirs"}}}
	s := &ring.Service{Name: "web", Spec: ring.Spec{
		Networks: []ring.Attachment{{Network: "default", Priority: 1}, {Network: "proxy", Priority: 5, MacAddress: "02:42:ac:11:00:08"}, {Network: "back"}},
		Mounts: []ring.Mount{
			{Kind: ring.MountVolume, Source: "db", Target: "/db"},
			{Kind: ring.MountVolume, Source: "db", Target: "/again"},
			{Kind: ring.MountVolume, Source: "ext", Target: "/ext"},
			{Kind: ring.MountData, Source: "x", Target: "/x"},
		},
		PIDOf: "db", VolumesFrom: []ring.VolumesFrom{{Service: "db"}}, Platform: "linux/arm/v7",
		PreStop: []ring.Hook{{Command: []string{"bye"}, Privileged: true, User: "0", Environment: map[string]string{"A": "1"}}},
	}, Image: ring.Image{Known: true, Volumes: []string{"/db", "/of-image", "/of-owner"}}}
	app.Services = []ring.Service{{Name: "db", Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountVolume, Source: "o", Target: "/of-owner"}}}}, *s}
	all, err := Payloads("edge", app, s, "/srv", "/state/content")
	require.NoError(t, err)
	var keys []string
	for _, r := range all {
		keys = append(keys, r.Key)
	}
	require.Equal(t, []string{"container", "network default", "network back", "volume db", "volume " + strings.ReplaceAll(ring.AnonymousVolume("web", "/of-image"), ring.SlotMark, "1")}, keys,
		"neither what is external nor what an owner brings")

	c := all[0].Body.(ContainerRequest)
	require.EqualValues(t, "traefik", c.HostConfig.NetworkMode, "the highest priority first")
	require.Len(t, c.Networks, 3)
	require.Equal(t, "02:42:ac:11:00:08", c.Networks["traefik"].MacAddress)
	require.EqualValues(t, "container:service:db", c.HostConfig.PidMode)
	require.Equal(t, []string{"service:db"}, c.HostConfig.VolumesFrom)
	require.Equal(t, []string{"service:db"}, c.Owners)
	require.Equal(t, "/data/x", c.HostConfig.Mounts[3].Source, "the app's own data root")
	require.Equal(t, &ocispec.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}, c.Platform)
	require.True(t, c.PreStop[0].Privileged)
	require.Equal(t, []string{"A=1"}, c.PreStop[0].Env)

	n := all[2].Body.(NetworkRequest)
	require.Equal(t, "intranet", n.Name)
	require.Equal(t, map[string]string{"parent": "eth0"}, n.Options.Options)
	require.Equal(t, "x", n.Options.IPAM.Driver)
	require.Equal(t, map[string]string{"a": "b"}, n.Options.IPAM.Options)
	require.Equal(t, network.IPAMConfig{Subnet: "10.0.0.0/24", AuxAddress: map[string]string{"router": "10.0.0.2"}}, n.Options.IPAM.Config[0])
	v := all[3].Body.(VolumeRequest)
	require.Equal(t, "shop_db", v.Options.Name)
	require.Equal(t, "nfs", v.Options.Driver)
	require.Equal(t, map[string]string{"o": "addr=1.2.3.4"}, v.Options.DriverOpts)

	s.Spec.Networks = []ring.Attachment{{Network: "nowhere"}}
	_, err = Payloads("edge", app, s, "/srv", "/state/content")
	require.ErrorContains(t, err, "service web")
}
