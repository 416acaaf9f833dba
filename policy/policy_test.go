package policy

import (
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// HostConfig is the engine's as a later release may have it: fields of every
// kind that no rule speaks of, beside some that have one.
type HostConfig struct {
	Privileged     bool
	ReadonlyRootfs bool
	CapAdd         []string
	SecurityOpt    []string
	Mounts         []Mount
	Embedded

	NewText   string
	NewTruth  bool
	NewCount  int64
	NewShare  float64
	NewTruthP *bool
	NewList   []string
	NewMap    map[string]string
	NewBytes  [4]byte
	NewAny    any
	NewStruct struct{ Deep struct{ Deeper string } }
	NewEmpty  *struct{}
	NewPtr    *Deep
	NewPtrs   []*Deep
	NewByName map[string]Deep
	NewFunc   func()
	NewChan   chan int
	Self      *HostConfig
}

type Embedded struct{ NewInside string }

type Deep struct{ Name string }

type Mount struct {
	Type, Source, Target string
	ReadOnly             bool
	NewOption            string
	BindOptions          *struct {
		Propagation string
		NewBind     bool
	}
}

func container(body any) Request {
	return Request{App: "web", Service: "web", Key: "container", Body: body, DataRoot: "/srv", Path: "web"}
}

// Every field without a rule is set to what is not zero, one at a time.
func TestAFieldWithoutARuleIsDeniedWhateverItsKind(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		name, field string
		body        HostConfig
	}{
		{"a text", "HostConfig.NewText", HostConfig{NewText: "secret"}},
		{"a truth", "HostConfig.NewTruth", HostConfig{NewTruth: true}},
		{"a count", "HostConfig.NewCount", HostConfig{NewCount: -1}},
		{"a share", "HostConfig.NewShare", HostConfig{NewShare: 0.5}},
		{"a truth behind a pointer", "HostConfig.NewTruthP", HostConfig{NewTruthP: &yes}},
		{"an untruth behind a pointer", "HostConfig.NewTruthP", HostConfig{NewTruthP: new(bool)}},
		{"a list", "HostConfig.NewList", HostConfig{NewList: []string{"secret"}}},
		{"a list of nothing", "HostConfig.NewList", HostConfig{NewList: []string{}}},
		{"a map", "HostConfig.NewMap", HostConfig{NewMap: map[string]string{"a": "secret"}}},
		{"bytes", "HostConfig.NewBytes", HostConfig{NewBytes: [4]byte{1}}},
		{"anything", "HostConfig.NewAny", HostConfig{NewAny: "secret"}},
		{"a struct in anything", "HostConfig.NewAny.Name", HostConfig{NewAny: Deep{"secret"}}},
		{"deep inside", "HostConfig.NewStruct.Deep.Deeper", HostConfig{NewStruct: struct{ Deep struct{ Deeper string } }{struct{ Deeper string }{"secret"}}}},
		{"a struct of nothing", "HostConfig.NewEmpty", HostConfig{NewEmpty: &struct{}{}}},
		{"behind a pointer", "HostConfig.NewPtr.Name", HostConfig{NewPtr: &Deep{"secret"}}},
		{"in a list of pointers", "HostConfig.NewPtrs[].Name", HostConfig{NewPtrs: []*Deep{nil, {"secret"}}}},
		{"in a map of structs", "HostConfig.NewByName[].Name", HostConfig{NewByName: map[string]Deep{"a": {"secret"}}}},
		{"a function", "HostConfig.NewFunc", HostConfig{NewFunc: func() {}}},
		{"a channel", "HostConfig.NewChan", HostConfig{NewChan: make(chan int)}},
		{"embedded", "HostConfig.NewInside", HostConfig{Embedded: Embedded{"secret"}}},
		{"beside what has a rule", "HostConfig.Mounts[].NewOption", HostConfig{Mounts: []Mount{{Type: "volume", NewOption: "secret"}}}},
		{"inside what a rule judges", "HostConfig.Mounts[].BindOptions.NewBind", HostConfig{Mounts: []Mount{{Type: "volume", BindOptions: &struct {
			Propagation string
			NewBind     bool
		}{NewBind: true}}}}},
	} {
		for _, profile := range []Profile{"", Compose, Owner, "hardened"} {
			t.Run(tt.name+" under "+string(profile), func(t *testing.T) {
				found := Check(Rules{Profile: profile}, container(&tt.body))
				found = slices.DeleteFunc(found, func(f Finding) bool { return strings.HasPrefix(f.Rule, "hardened.") }) // of what is not said
				require.Len(t, found, 1)
				f := found[0]
				require.Equal(t, Deny, f.Verdict)
				require.Equal(t, UnknownField, f.Rule)
				require.Equal(t, tt.field, f.Field)
				require.NotContains(t, f.Says(), "secret", "what it means is not known")
				require.Contains(t, f.Hint(), "no profile")
			})
		}
	}
}

// An unruled field is denied also when its rule is taken away: the table is all
// that lets anything pass.
func TestATableWithoutRulesLetsNothingPass(t *testing.T) {
	body := HostConfig{Privileged: true, ReadonlyRootfs: true, CapAdd: []string{"CHOWN"}, SecurityOpt: []string{"no-new-privileges"}}
	found := check(nil, Rules{Profile: Owner}, container(body))
	require.Len(t, found, 4)
	for _, f := range found {
		require.Equal(t, UnknownField, f.Rule)
		require.Equal(t, Deny, f.Verdict)
	}
	require.Empty(t, Check(Rules{Profile: Owner}, container(HostConfig{ReadonlyRootfs: true, CapAdd: []string{"CHOWN"}})))
}

func TestAValueThatHoldsItselfEnds(t *testing.T) {
	body := &HostConfig{}
	body.Self = body
	require.NotEmpty(t, Check(Rules{}, container(body)))
}

func TestAnUnknownProfileIsNoOwner(t *testing.T) {
	for _, p := range []Profile{"", "strict", "Owner"} {
		found := Check(Rules{Profile: p}, container(HostConfig{Privileged: true}))
		require.Len(t, found, 1)
		require.Equal(t, Deny, found[0].Verdict, p)
	}
}

// The findings are the same in the same order, whatever the order of maps and lists.
func TestTheOrderOfFindingsIsStable(t *testing.T) {
	caps := []string{"NET_ADMIN", "SYS_ADMIN", "MKNOD", "BPF", "SYS_TIME", "NET_RAW"}
	first := Check(Rules{}, container(HostConfig{Privileged: true, CapAdd: caps}))
	require.Len(t, first, 7)
	for range 20 {
		shuffled := slices.Clone(caps)
		rand.Shuffle(len(shuffled), reflect.Swapper(shuffled))
		require.Equal(t, first, Check(Rules{}, container(HostConfig{CapAdd: shuffled, Privileged: true})))
	}
}

func TestNoValueOfTheHostIsShown(t *testing.T) {
	sealed := ring.Sealed{App: "web", File: ".env", Name: "TOKEN", MAC: "0011"}.String()
	found := Check(Rules{}, container(HostConfig{SecurityOpt: []string{"label=" + sealed}, CapAdd: []string{"a\x1b[31m\nb" + string(make([]rune, 100))}}))
	require.Len(t, found, 2)
	for _, f := range found {
		require.NotContains(t, f.Says(), "TOKEN")
		require.NotContains(t, f.Says(), "0011")
		require.NotContains(t, f.Says(), ring.SealMark)
		require.NotContains(t, f.Says(), "\n")
		require.Less(t, len(f.Says()), 300)
	}
}

// Paths as the engine is given them, under an app whose data is in /srv/web.
func TestWhosePathItIs(t *testing.T) {
	r := Rules{Own: []string{"/mnt/state", "/mnt/env"}, Content: "/mnt/state/content"}
	for _, tt := range []struct {
		source       string
		readOnly     bool
		compose, own string // deny, power or ""
	}{
		{"/srv/web/data", false, "", ""},
		{"/srv/web", false, "", ""},
		{"/srv/web/../web/./data/", false, "", ""},
		{"/srv/web/../shop/data", false, "deny", "deny"},
		{"/srv/webby", false, "deny", "power"},
		{"/srv", false, "deny", "power"},
		{"/mnt/state/content/aa/x", true, "", ""},
		{"/mnt/state/content/aa", true, "", ""},
		{"/mnt/state/content/aa/x", false, "deny", "deny"},
		{"/mnt/state/content/ab/x", true, "deny", "deny"},
		{"/mnt/state/content/aa/../ab", true, "deny", "deny"},
		{"/mnt/state/content", true, "deny", "deny"},
		{"/mnt/state/gitring.db", true, "deny", "deny"},
		{"/mnt/env/web/.env", true, "deny", "deny"},
		{"/mnt", true, "deny", "power"},
		{"/", true, "deny", "power"},
		{"//", true, "deny", "power"},
		{"/etc/localtime", true, "", ""},
		{"/etc/./localtime", true, "", ""},
		{"/etc/localtime", false, "deny", "power"},
		{"/etc/localtimes", true, "deny", "power"},
		{"/usr/share/zoneinfo/Europe/Berlin", true, "", ""},
		{"/usr/share/zoneinfo/../..", true, "deny", "power"},
		{"/var/run/docker.sock", true, "deny", "power"},
		{"/run/gitring/gitring.sock", true, "deny", "deny"},
		{"/var/run/gitring/../gitring/gitring.sock", true, "deny", "deny"},
		{"/proc/self/root/mnt/state", true, "deny", "deny"},
		{"/proc/1/task/1/cwd/x", true, "deny", "deny"},
		{"/dev/fd/3", true, "deny", "deny"},
		{"/proc/cpuinfo", true, "deny", "power"},
		{"/var/lib/docker/volumes/x/_data", true, "deny", "deny"},
		{"/var/lib/docker/overlay2", true, "deny", "power"},
		{"relative", true, "deny", "deny"},
		{"~/x", true, "deny", "deny"},
	} {
		t.Run(tt.source, func(t *testing.T) {
			for profile, want := range map[Profile]string{Compose: tt.compose, Owner: tt.own} {
				r.Profile = profile
				q := container(HostConfig{Mounts: []Mount{{Type: "bind", Source: tt.source, Target: "/x", ReadOnly: tt.readOnly}}})
				q.Contents, q.Others = []string{"aa", "..", ""}, besideShop
				got := ""
				if found := Check(r, q); len(found) > 0 {
					require.Len(t, found, 1)
					got = string(found[0].Verdict)
				}
				require.Equal(t, want, got, profile)
			}
		})
	}
}

// Portainer's agent is documented with both.
func TestTheFolderOfAllVolumesIsAPowerBesideTheEnginesSocket(t *testing.T) {
	judged := func(profile Profile, sources ...string) (out []Verdict) {
		host := &Host{}
		for _, source := range sources {
			host.Mounts = append(host.Mounts, Mount{Type: "bind", Source: source, Target: source})
		}
		for _, f := range Check(Rules{Profile: profile}, container(Body{HostConfig: host})) {
			out = append(out, f.Verdict)
		}
		return out
	}
	const socket, all = "/var/run/docker.sock", "/var/lib/docker/volumes"
	require.ElementsMatch(t, []Verdict{Power, Power}, judged(Owner, socket, all))
	require.ElementsMatch(t, []Verdict{Power, Deny}, judged(Owner, socket, all+"/shop_data"), "one volume is named as a volume")
	require.ElementsMatch(t, []Verdict{Deny}, judged(Owner, all))
	require.ElementsMatch(t, []Verdict{Deny, Deny}, judged(Compose, socket, all))
}

// besideShop has another app of the same hand.
var besideShop = (&Whose{Holdings: []Holding{{Holder: Holder{App: "shop", Path: "shop"}, State: Next, DataRoot: "/srv"}}}).Of(Holder{App: "web", Path: "web"})

// An app in the root of the repository has the whole data root but for what
// belongs to its neighbours.
func TestAnAppAtTheRootKeepsOutOfItsNeighboursData(t *testing.T) {
	for source, want := range map[string]bool{"/srv/data": true, "/srv/shop/data": false, "/srv/shop": false, "/srv": false} {
		q := container(HostConfig{Mounts: []Mount{{Type: "bind", Source: source, Target: "/x"}}})
		q.Path, q.Others = ".", besideShop
		require.Equal(t, want, len(Check(Rules{}, q)) == 0, source)
	}
}

// What a signed answer gave an app lies in the folder of the app that had it.
func TestAFolderThatWasTakenOverIsTheAppsAndNoMore(t *testing.T) {
	of := func(source string, state State, data ...string) Others {
		w := Whose{Holdings: []Holding{{Holder: Holder{App: "old", Source: source, Path: "old"}, State: state, DataRoot: "/srv", Data: data}}}
		return w.Of(Holder{App: "web", Path: "web"})
	}
	for _, tt := range []struct {
		source string
		others Others
		passes bool
	}{
		{source: "/srv/old/data", passes: true},
		{source: "/srv/old/data", others: of("", Left, "/srv/old/data"), passes: true},
		{source: "/srv/old/data/deep", passes: true},
		{source: "/srv/old"},
		{source: "/srv/old/dat"},
		{source: "/srv/old/data/../other"},
		{source: "/srv/old/data", others: of("lab", Left)},
		{source: "/srv/old/data", others: of("lab", InForce, "/srv/old/data")},
		{source: "/srv/old/data", others: of("", Next, "/srv/old/data")},
	} {
		q := container(HostConfig{Mounts: []Mount{{Type: "bind", Source: tt.source, Target: "/x"}}})
		require.NotEmpty(t, Check(Rules{}, q), "without an answer")
		q.Taken, q.Others = []string{"/srv/old/data"}, tt.others
		require.Equal(t, tt.passes, len(Check(Rules{}, q)) == 0, "%s %v", tt.source, tt.others)
	}
	q := container(HostConfig{Mounts: []Mount{{Type: "bind", Source: "/var/lib/gitring", Target: "/x"}}})
	q.Taken = []string{"/var/lib"}
	require.NotEmpty(t, Check(Rules{}, q), "the daemon's own is nobody's")
}

// A data root inside the state folder is the host's own choice; the state
// beside it stays out of reach.
func TestADataRootInsideTheStateFolder(t *testing.T) {
	r := Rules{Own: []string{"/mnt/state"}, Profile: Owner}
	for source, want := range map[string]bool{"/mnt/state/data/web/x": true, "/mnt/state/data/shop": false, "/mnt/state/gitring.db": false} {
		q := container(HostConfig{Mounts: []Mount{{Type: "bind", Source: source, Target: "/x"}}})
		q.DataRoot = "/mnt/state/data"
		require.Equal(t, want, len(Check(r, q)) == 0, source)
	}
}

func TestWhatOnlyAnAppAsAWholeShows(t *testing.T) {
	app := &ring.App{Name: "web", Path: "web"}
	for range 101 {
		app.Services = append(app.Services, ring.Service{Name: "s", Replicas: 1})
	}
	found := CheckApp(Rules{}, app, "/srv", Others{})
	require.Len(t, found, 1)
	require.Equal(t, "limits.services_per_app", found[0].Rule)
	require.Empty(t, CheckApp(Rules{Profile: Owner}, app, "/srv", Others{}))

	data := func(name, source string, readOnly bool) ring.Service {
		return ring.Service{Name: name, Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountData, Source: source, Target: "/x", ReadOnly: readOnly}}}}
	}
	for _, tt := range []struct {
		name string
		a, b ring.Service
		want int
	}{
		{"the same folder", data("a", "web/data", false), data("b", "web/data", false), 0},
		{"beside each other", data("a", "web/data", false), data("b", "web/database", false), 0},
		{"inside one that is written", data("a", "web/data", false), data("b", "web/data/sub", true), 1},
		{"inside one that is only read", data("a", "web/data", true), data("b", "web/data/sub", false), 0},
	} {
		app.Services = []ring.Service{tt.a, tt.b}
		require.Len(t, CheckApp(Rules{}, app, "/srv", Others{}), tt.want, tt.name)
	}
}

// A grant says that it gives root wherever it is not known that it does not.
func TestOptionsOfAVolumeAreTameOrSayThatTheyGiveRoot(t *testing.T) {
	for _, tame := range []string{
		"device=/mnt/media;o=bind;type=none", "device=tmpfs;o=size=64k;type=tmpfs", "device=:/x;o=addr=10.0.0.1;type=nfs",
		"device=//nas/films;o=guest;type=cifs",
	} {
		require.False(t, GivesRoot("mounts.driver_opts", tame), tame)
	}
	for _, root := range []string{
		"device=proc;type=proc", "device=x;type=proc", "device=sysfs;type=sysfs", "device=devtmpfs;type=devtmpfs", "device=none;type=cgroup2",
		"device=none;type=securityfs", "device=/dev/sda1;type=ext4", "device=/dev/mapper/vg-root;type=xfs", "device=/dev/vg/root;type=ext4",
		"device=/mnt/disk.img;o=loop;type=ext4", "device=overlay;o=lowerdir=/mnt/a,upperdir=/mnt/b,workdir=/mnt/c;type=overlay",
		"device=etc;o=bind;type=none", "device=./etc/cron.d;o=bind;type=none", "device=.;o=bind;type=none", "device=/;o=bind", "device=var/run/docker.sock;o=bind;type=none",
		"o=bind,lowerdir=etc;type=none", "sha256:0123",
	} {
		require.True(t, GivesRoot("mounts.driver_opts", root), root)
	}
}

func TestADeviceIsTameOrSaysThatItGivesRoot(t *testing.T) {
	for _, tame := range []string{
		"/dev/dri", "/dev/dri/renderD128", "/dev/snd", "/dev/ttyUSB0", "/dev/ttyACM0", "/dev/serial/by-id/usb-zigbee", "/dev/net/tun", "/dev/bus/usb/001/004",
		"/dev/video0", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/kfd", "/dev/kvm", "/dev/rtc0", "/dev/watchdog", "gpus", "gpus:amd", "c 189:* rwm", "c 226:128 rw",
	} {
		require.False(t, GivesRoot("devices", tame), tame)
	}
	for _, root := range []string{
		"/dev/sda", "/dev/mmcblk0", "/dev/xvda", "/dev/ubuntu-vg/ubuntu-lv", "/dev/cpu/0/msr", "/dev/sg0", "/dev/hda", "/dev/zd0", "/dev/nbd0", "/dev/bcache0", "/dev/pmem0",
		"/dev/root", "/dev/bsg/0", "/dev/uinput", "/dev/vfio/1", "/dev/snapshot", "/dev/fuse", "/dev/mem", "/dev", "c 202:* rwm", "b 8:0 r", "a *:* rwm", "c 1:1 rwm", "c *:* rwm",
	} {
		require.True(t, GivesRoot("devices", root), root)
	}
	for _, bind := range []string{"/var/spool", "/run/crio", "/run/crio/crio.sock", "/nix", "/snap", "/run/k3s/containerd", "/run/buildkit", "/lib32"} {
		require.True(t, GivesRoot("mounts.bind", bind), bind)
	}
}
