package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// swarmAction is to send a service that has something in every list, so that each field of an
// item can be changed by itself.
func swarmAction() ring.Action {
	spec := ring.Spec{
		Image: "app", Command: []string{"a"}, Entrypoint: []string{"/app"}, Environment: map[string]string{"A": "1"},
		Ports:       []ring.Port{{HostPort: "8080", Container: 80, Protocol: "tcp", Mode: ring.PortHost}},
		Mounts:      []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/data"}, {Kind: ring.MountBind, Source: "/srv/x", Target: "/x", ReadOnly: true}, {Kind: ring.MountTmpfs, Target: "/tmp"}},
		Networks:    []ring.Attachment{{Network: "default"}},
		Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, Interval: 4 * time.Second, Timeout: time.Second, StartPeriod: time.Second, Retries: 5},
		Logging:     &ring.Logging{Driver: "json-file"}, Resources: &ring.Resources{},
		ExtraHosts: []string{"db:10.0.0.1"}, Ulimits: []ring.Ulimit{{Name: "nofile", Soft: 1, Hard: 2}},
		Cluster: &ring.ClusterSpec{Constraints: []string{"node.hostname == node-1"}, Restart: ring.Restart{Policy: ring.OnFail}},
	}
	s := ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Spec: spec, Pin: ring.Pin{Image: "sha256:" + strings.Repeat("ab", 32)}, Version: "1:" + ring.Version(strings.Repeat("cd", 32)), Rollout: ring.DefaultRollout()}
	app := ring.App{Name: "shop", Source: "prod", Commit: ring.SHA(strings.Repeat("e", 40)), Path: "shop", Services: []ring.Service{s}, Networks: []ring.Network{{Key: "default"}}}
	return ring.Action{
		Kind: ring.DoServe, Source: "prod", App: "shop", Service: "web", Version: s.Version, Commit: app.Commit, Of: &app, Want: &app.Services[0],
		Networks: map[string]string{"default": "shop_default", "other": "shop_other"},
	}
}

// fieldsBelow are the fields of a type that hold no further ones, by the names that name gives.
func fieldsBelow(t reflect.Type, path string, name func(reflect.StructField) string) (out []string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return fieldsBelow(t.Elem(), path, name)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return fieldsBelow(t.Elem(), path+"[]", name)
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]():
		return []string{path}
	case t.NumField() == 0:
		return []string{path}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		at := strings.TrimPrefix(path+"."+name(f), ".")
		if f.Anonymous {
			at = path
		}
		out = append(out, fieldsBelow(f.Type, at, name)...)
	}
	return out
}

func goName(f reflect.StructField) string { return f.Name }

// saysOf reports whether what is said of one path counts for the other: it is the same, or above.
func saysOf(said, path string) bool {
	return said == path || strings.HasPrefix(path, said+".") || strings.HasPrefix(path, said+"[]")
}

func TestEachFieldOfASpecHasARowForSwarm(t *testing.T) {
	idle := map[string]bool{}
	for _, k := range SwarmKeys() {
		require.False(t, idle[k.Field], "twice: %s", k.Field)
		idle[k.Field] = true
		said := 0
		for _, is := range []bool{len(k.To) > 0, k.Itself != "", k.Says != ""} {
			if is {
				said++
			}
		}
		require.Equal(t, 1, said, "%s is carried, or said of itself, or refused", k.Field)
	}
	for _, leaf := range fieldsBelow(reflect.TypeFor[ring.Spec](), "", jsonName) {
		var rows []string
		for _, k := range SwarmKeys() {
			if saysOf(k.Field, leaf) {
				rows = append(rows, k.Field)
				delete(idle, k.Field)
			}
		}
		require.Len(t, rows, 1, "decide about %s in SwarmKeys", leaf)
	}
	require.Empty(t, idle, "rows of no field")
}

func TestEachFieldOfAServiceSpecIsCarriedOrSaidWhy(t *testing.T) {
	said := map[string]bool{}
	for _, k := range SwarmKeys() {
		for _, path := range k.To {
			said[path] = true
		}
	}
	for path := range SwarmUnused() {
		require.False(t, said[path], "%s is both", path)
		said[path] = true
	}
	idle := map[string]bool{}
	for path := range said {
		idle[path] = true
	}
	for _, leaf := range fieldsBelow(reflect.TypeFor[swarm.ServiceSpec](), "", goName) {
		found := false
		for path := range said {
			if saysOf(path, leaf) {
				found = true
				delete(idle, path)
			}
		}
		require.True(t, found, "a newer library has %s: decide about it", leaf)
	}
	require.Empty(t, idle, "rows of no field")
}

// flatOf is a value by the paths of its leaves; items of a list have the path of their list.
func flatOf(v any) map[string]string {
	out := map[string]string{}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch {
		case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.Len() == 0:
		case v.Kind() == reflect.Pointer:
			walk(v.Elem(), path)
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
			for i := range v.Len() {
				walk(v.Index(i), path+"[]")
			}
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				f := v.Type().Field(i)
				at := strings.TrimPrefix(path+"."+f.Name, ".")
				if f.Anonymous {
					at = path
				}
				walk(v.Field(i), at)
			}
		case !v.IsZero():
			b, _ := json.Marshal(v.Interface())
			out[path] += string(b) + ";"
		}
	}
	walk(reflect.ValueOf(v), "")
	return out
}

func differing(a, b map[string]string) (paths []string) {
	for path := range b {
		if a[path] != b[path] {
			paths = append(paths, path)
		}
	}
	for path := range a {
		if _, there := b[path]; !there {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// changeField sets the field at a path of a spec to something else than it is; of a list its first
// item, or one more where the items are no structs.
func changeField(t *testing.T, spec *ring.Spec, path string) {
	v := reflect.ValueOf(spec).Elem()
	for part := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		found := false
		for i := range v.NumField() {
			if jsonName(v.Type().Field(i)) == name {
				v, found = v.Field(i), true
				break
			}
		}
		require.True(t, found, path)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		if list {
			if v.Len() == 0 || v.Type().Elem().Kind() != reflect.Struct {
				v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			}
			v = v.Index(itemFor(path, v.Len()))
		}
	}
	setSample(t, v, path)
}

// itemFor is the item of a list to change: of the mounts that of the kind which has the field.
func itemFor(path string, n int) int {
	switch path {
	case "mounts[].propagation":
		return 1
	case "mounts[].size", "mounts[].mode", "mounts[].options":
		return 2
	}
	if strings.HasPrefix(path, "mounts[]") || strings.HasPrefix(path, "networks[].") {
		return 0
	}
	return n - 1
}

var sample = map[string]any{
	"mounts[].kind": ring.MountTmpfs, "networks[].network": "other", "extra_hosts[]": "mail:10.0.0.2", "ports[].host_port": "9090", "ports[].protocol": "udp",
	"ports[].mode": ring.PortIngress, "platform": "linux/arm64", "cap_add[]": "NET_ADMIN", "cluster.restart.policy": ring.NeverStop, "cluster.endpoint": "dnsrr",
	"healthcheck.interval": 9 * time.Second, "healthcheck.timeout": 9 * time.Second, "healthcheck.start_period": 9 * time.Second,
	"resources.nano_cpus": int64(5e8), "cluster.reserved_cpus": int64(5e8), "resources.memory": int64(1 << 26), "resources.memory_reservation": int64(1 << 25),
	"volumes_from[]": ring.VolumesFrom{Service: "db"}, "network_of": "db", "pid_of": "db", "ipc_of": "db",
}

func setSample(t *testing.T, v reflect.Value, path string) {
	if x, ok := sample[path]; ok {
		v.Set(reflect.ValueOf(x).Convert(v.Type()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x" + v.String())
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 7)
	case reflect.Uint32, reflect.Uint16:
		v.SetUint(v.Uint() + 7)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "x"}))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String {
				f.SetString("x")
				return
			} else if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String {
				f.Set(reflect.ValueOf([]string{"x"}))
				return
			} else if f.Kind() == reflect.Uint16 {
				f.SetUint(7)
				return
			}
		}
		t.Fatalf("no field of %s can be set", path)
	default:
		t.Fatalf("%s is a %s", path, v.Kind())
	}
}

func TestEachFieldGoesWhereItsRowSays(t *testing.T) {
	specOf := func(a ring.Action) map[string]string {
		spec, err := serviceSpec("prod", a, nil)
		require.NoError(t, err)
		delete(spec.Labels, labelSent)
		return flatOf(spec)
	}
	was := specOf(swarmAction())
	for _, k := range SwarmKeys() {
		if len(k.To) == 0 {
			continue
		}
		t.Run(k.Field, func(t *testing.T) {
			a := swarmAction()
			require.Empty(t, NotBySwarm(a.Of))
			changeField(t, &a.Want.Spec, k.Field)
			want := slices.Sorted(slices.Values(k.To))
			got := differing(was, specOf(a))
			got = slices.DeleteFunc(got, func(p string) bool { // what the field takes along
				return k.Field == "mounts[].kind" && p != inMounts+"Type" || k.Field == "mounts[].source" && strings.HasPrefix(p, inVolume+"Labels")
			})
			require.Equal(t, want, got)
		})
	}
}

func TestWhatSwarmCannotCarryIsRefusedByName(t *testing.T) {
	for _, k := range SwarmKeys() {
		if k.Says == "" {
			continue
		}
		t.Run(k.Field, func(t *testing.T) {
			a := swarmAction()
			a.Want.File, a.Want.Line = "shop/compose.yaml", 3
			a.Want.Places = map[string]ring.Place{k.Key: {File: "shop/compose.yaml", Line: 7}}
			changeField(t, &a.Want.Spec, k.Field)
			all := NotBySwarm(a.Of)
			require.NotEmpty(t, all)
			found := slices.ContainsFunc(all, func(r *ring.Refusal) bool {
				return r.Code == ring.Unsupported && strings.Contains(r.Says, "services.web."+k.Key+": ") && r.Line == 7 && r.Hint != "" && r.App == "shop"
			})
			require.True(t, found, "%+v", all[0])
		})
	}
}

func TestWhatASwarmRefusesBesidesFields(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		code       ring.Code
		make       func(a *ring.Action)
	}{
		{"an http check", "is asked by gitring", ring.Unsupported, func(a *ring.Action) {
			a.Want.Checks = []ring.Check{{Name: "up", For: ring.Readiness, HTTP: &ring.HTTPCheck{Port: 80}}}
		}},
		{"a job that publishes a port", ".ports: it is a job", ring.Unsupported, func(a *ring.Action) { a.Want.Kind = ring.JobK }},
		{"a cron job on each node", ".deploy.mode: global: it is a cron", ring.Unsupported, func(a *ring.Action) { a.Want.Kind, a.Want.Spec.Cluster.Global = ring.CronK, true }},
		{"a front", "has a front", ring.Unsupported, func(a *ring.Action) { a.Want.Route = &ring.Route{} }},
		{"files changed in place", "x-gitring.reload", ring.Unsupported, func(a *ring.Action) { a.Want.Reload = &ring.Reload{} }},
		{"a canary", "canary needs a front", ring.Unsupported, func(a *ring.Action) { a.Want.Rollout.Strategy = ring.Canary }},
		{"an entrypoint that is taken away", "cannot take the image's own away", ring.Unsupported, func(a *ring.Action) { a.Want.Spec.Entrypoint = []string{""} }},
		{"the host's own address", "no node is the host", ring.Unsupported, func(a *ring.Action) { a.Want.Spec.ExtraHosts = []string{"host.docker.internal:host-gateway"} }},
		{"a variant of a platform", "without v7", ring.Unsupported, func(a *ring.Action) { a.Want.Spec.Platform = "linux/arm/v7" }},
		{"a data folder", "data folder at /d", ring.Unsupported, func(a *ring.Action) {
			a.Want.Spec.Mounts = append(a.Want.Spec.Mounts, ring.Mount{Kind: ring.MountData, Source: "shop/d", Target: "/d"})
		}},
		{"a secret in the environment", "environment.PASSWORD has a value of the host", ring.Unsupported, func(a *ring.Action) {
			a.Want.Spec.Environment["PASSWORD"] = ring.Sealed{App: "shop", File: ".env", Name: "PASSWORD", MAC: "ab"}.String()
		}},
		{"a secret in the command", "command has a value of the host", ring.Unsupported, func(a *ring.Action) {
			a.Want.Spec.Command = []string{"--password=" + ring.Sealed{App: "shop", Name: "P", MAC: "ab"}.String()}
		}},
		{"a secret in a label of the service", "cluster.labels has a value of the host", ring.Unsupported, func(a *ring.Action) {
			a.Want.Spec.Cluster.Labels = map[string]string{"auth": ring.Sealed{App: "shop", Name: "P", MAC: "ab"}.String()}
		}},
		{"a label of a stack", "is a label that the swarm has for itself", ring.Unsupported, func(a *ring.Action) {
			a.Want.Spec.Labels = map[string]string{"com.docker.stack.namespace": "other"}
		}},
		{"a label of a stack on the service", "is a label that the swarm has for itself", ring.Unsupported, func(a *ring.Action) {
			a.Want.Spec.Cluster.Labels = map[string]string{"Com.Docker.Swarm.x": "other"}
		}},
		{"a label of a stack on a network", "networks.default.labels: com.docker.stack.namespace is a label", ring.Unsupported, func(a *ring.Action) {
			a.Of.Networks[0].Labels = map[string]string{"com.docker.stack.namespace": "other"}
		}},
		{"a label of a stack on a volume", "volumes.data.labels: com.docker.stack.namespace is a label", ring.Unsupported, func(a *ring.Action) {
			a.Of.Volumes = []ring.Volume{{Key: "data", Labels: map[string]string{"com.docker.stack.namespace": "other"}}}
		}},
		{"a volume of each node", "runs on each node, each of which would have one of its own", ring.VolumeNotPinned, func(a *ring.Action) {
			a.Want.Spec.Cluster.Global, a.Want.Spec.Cluster.Constraints = true, []string{"node.role == worker"}
		}},
		{"a volume that is pinned to no node", "is pinned to no node", ring.VolumeNotPinned, func(a *ring.Action) { a.Want.Spec.Cluster.Constraints = []string{"node.role == worker"} }},
		{"a volume of all nodes but one", "is pinned to no node", ring.VolumeNotPinned, func(a *ring.Action) { a.Want.Spec.Cluster.Constraints = []string{"node.hostname != node-1"} }},
		{"a volume that two tasks write", "with 2 replicas", ring.VolumeNotPinned, func(a *ring.Action) { a.Want.Replicas = 2 }},
		{"a volume whose writer may stop for longer than Swarm waits", "stop_grace_period: 51s", ring.Unsupported, func(a *ring.Action) { a.Want.Spec.StopGrace = 51 * time.Second }},
		{"the image's own volume", "is pinned to no node", ring.VolumeNotPinned, func(a *ring.Action) {
			a.Want.Spec.Mounts, a.Want.Spec.Cluster.Constraints = nil, nil
			a.Want.Image.Volumes = []string{"/var/lib/db"}
		}},
		{"one port twice", "publishes port 8080/tcp", ring.Conflict, func(a *ring.Action) {
			other := a.Of.Services[0]
			other.Name = "zweb"
			a.Of.Services = append(a.Of.Services, other)
			a.Want = &a.Of.Services[0]
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := swarmAction()
			tt.make(&a)
			var says []string
			for _, r := range NotBySwarm(a.Of) {
				says = append(says, string(r.Code)+" "+r.Says)
				require.NotEmpty(t, r.Hint)
			}
			require.True(t, slices.ContainsFunc(says, func(s string) bool { return strings.HasPrefix(s, string(tt.code)) && strings.Contains(s, tt.says) }), "%q", says)
		})
	}
}

func TestAVolumeThatIsReadOnlyOrPinnedIsCarried(t *testing.T) {
	a := swarmAction()
	require.Empty(t, NotBySwarm(a.Of), "pinned, one replica")
	for _, pin := range []string{"node.id==abc", "node.hostname == node-2"} {
		a.Want.Spec.Cluster.Constraints = []string{"node.role==worker", pin}
		require.Empty(t, NotBySwarm(a.Of))
	}
	a.Want.Spec.StopGrace = longestStop
	require.Empty(t, NotBySwarm(a.Of), "it has ended when the next one starts")
	a.Want.Spec.Cluster.Constraints, a.Want.Spec.StopGrace = nil, time.Hour
	a.Want.Spec.Mounts[0].ReadOnly = true
	require.Empty(t, NotBySwarm(a.Of))
}

func TestAnUpdatePausesWhereItFailsAndNeverGoesBack(t *testing.T) {
	a := swarmAction()
	a.Want.Spec.Mounts, a.Want.Spec.Ports, a.Want.Replicas = nil, nil, 4
	for _, tt := range []struct {
		name                string
		surge, unavailable  ring.Count
		parallel            int
		order               string
		atOnce              uint64
		ready, check, watch time.Duration
	}{
		{"one more first", ring.Count{N: 1}, ring.Count{}, 1, "start-first", 1, 10 * time.Second, 0, 10 * time.Second},
		{"several more first", ring.Count{N: 50, Percent: true}, ring.Count{}, 3, "start-first", 2, 10 * time.Second, 0, 10 * time.Second},
		{"one less first", ring.Count{}, ring.Count{N: 1}, 5, "stop-first", 1, 10 * time.Second, 0, 10 * time.Second},
		{"a slow check is waited for", ring.Count{N: 1}, ring.Count{}, 1, "start-first", 1, time.Second, 5 * time.Second, 3*(5*time.Second+30*time.Second) + 2*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &a.Want.Rollout
			r.MaxSurge, r.MaxUnavailable, r.MaxParallel, r.MinReadyTime = tt.surge, tt.unavailable, tt.parallel, tt.ready
			a.Want.Spec.Healthcheck = nil
			if tt.check > 0 {
				a.Want.Spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", "x"}, Interval: tt.check, StartPeriod: 2 * time.Second}
			}
			spec, err := serviceSpec("prod", a, nil)
			require.NoError(t, err)
			u := spec.UpdateConfig
			require.Equal(t, "pause", u.FailureAction)
			require.Zero(t, u.MaxFailureRatio)
			require.Nil(t, spec.RollbackConfig)
			require.Equal(t, tt.order, u.Order)
			require.Equal(t, tt.atOnce, u.Parallelism)
			require.Equal(t, tt.watch, u.Monitor)
			require.Equal(t, tt.ready, u.Delay)
		})
	}
	a = swarmAction()
	spec, err := serviceSpec("prod", a, nil)
	require.NoError(t, err)
	require.Equal(t, "stop-first", spec.UpdateConfig.Order, "two tasks may not write one volume")
}

func TestTasksHaveNoLabelThatChangesWhileTheVersionStays(t *testing.T) {
	a := swarmAction()
	was, err := serviceSpec("prod", a, nil)
	require.NoError(t, err)
	a.Commit = ring.SHA(strings.Repeat("f", 40))
	a.Of.Commit, a.Of.Source, a.Of.Path, a.Of.Files = a.Commit, "other", "moved", []string{"moved/compose.yaml"}
	a.Want.Rollout.MaxParallel, a.Want.Replicas = 9, 7
	is, err := serviceSpec("prod", a, nil)
	require.NoError(t, err)
	require.Equal(t, was.TaskTemplate, is.TaskTemplate)
	require.NotEqual(t, was.Labels[labelSettings], is.Labels[labelSettings])
	require.NotEqual(t, was.Labels[labelSent], is.Labels[labelSent])
	for key, value := range map[string]string{
		"gitring.host": "prod", "gitring.source": "other", "gitring.app": "shop", "gitring.service": "web", "gitring.commit": string(a.Commit),
		"gitring.version": string(a.Version), "gitring.kind": "worker", "com.docker.stack.namespace": "shop", "com.docker.compose.project": "shop",
	} {
		require.Equal(t, value, is.Labels[key], key)
	}
	require.Equal(t, "shop_web", is.Name)
}

func TestNamesOfFilesSayTheirContentAndFitSwarm(t *testing.T) {
	config := swarmFile{Content: strings.Repeat("a1", 32), Path: "nginx.conf", Target: "/etc/nginx/nginx.conf"}
	require.Regexp(t, `^shop_nginx\.conf_[0-9a-f]{8}$`, config.name("shop"))
	other := config
	other.Content = strings.Repeat("b2", 32)
	require.NotEqual(t, config.name("shop"), other.name("shop"), "another content is another config")
	other = config
	other.Path = "conf.d/nginx.conf"
	require.NotEqual(t, config.name("shop"), other.name("shop"), "two files of one name in a folder")
	for _, target := range []string{"/x", "/a b/ü", "/.hidden.", "/" + strings.Repeat("long", 40), "/---"} {
		f := swarmFile{Content: "c", Path: "p", Target: target}
		for _, app := range []string{"a", strings.Repeat("app", 21)} {
			name := f.name(app)
			require.LessOrEqual(t, len(name), 64)
			require.Regexp(t, `^[a-zA-Z0-9]([a-zA-Z0-9_.-]*[a-zA-Z0-9])?$`, name, "what Swarm takes")
		}
	}
}

// With a plain hash in a name anybody who sees it could try values.
func TestTheNameOfASecretIsOfItsKeyedHash(t *testing.T) {
	names := map[string]bool{}
	for _, mac := range []string{"0011", "2233"} {
		sealed := ring.Sealed{App: "shop", File: "secrets/db", MAC: mac}.String()
		f := swarmFile{Secret: true, Content: fmt.Sprintf("%x", sealed), Path: "db", Target: "/run/secrets/db"}
		names[f.name("shop")] = true
	}
	require.Len(t, names, 2, "the same value under two keys has two names")
}

// A node that ends a task before gitring says that it failed may have Swarm end the good one of its slot.
func TestNoNodeEndsATaskBeforeGitringSaysThatItFailed(t *testing.T) {
	own := &ring.Healthcheck{Test: []string{"CMD", "x"}, Interval: 2 * time.Second, Retries: 5}
	image := &ring.Healthcheck{Interval: time.Second, StartPeriod: 5 * time.Minute}
	for name, tt := range map[string]struct {
		said, image *ring.Healthcheck
		patience    time.Duration
		want        *container.HealthConfig
	}{
		"none":                          {nil, nil, time.Minute, nil},
		"of the file":                   {own, nil, time.Minute, &container.HealthConfig{Test: own.Test, Interval: 2 * time.Second, Retries: 5, StartPeriod: 75 * time.Second}},
		"of the image":                  {nil, image, time.Minute, &container.HealthConfig{StartPeriod: 5*time.Minute + judgedFirst}},
		"of the file, over the image's": {own, image, time.Minute, &container.HealthConfig{Test: own.Test, Interval: 2 * time.Second, Retries: 5, StartPeriod: 5*time.Minute + judgedFirst}},
		"switched off":                  {&ring.Healthcheck{Test: []string{"NONE"}}, image, time.Minute, &container.HealthConfig{Test: []string{"NONE"}}},
	} {
		spec := &ring.Spec{Healthcheck: tt.said, Cluster: &ring.ClusterSpec{Patience: tt.patience}}
		require.Equal(t, tt.want, nodeCheck(spec, tt.image), name)
	}
}

// A label of the tasks would have each of them made anew, for a word to managers.
func TestWordsToManagersAreLabelsOfTheServiceAlone(t *testing.T) {
	a := swarmAction()
	was, err := serviceSpec("prod", a, nil)
	require.NoError(t, err)
	a.Condemned, a.Good = "1:ab", "1:cd"
	is, err := serviceSpec("prod", a, nil)
	require.NoError(t, err)
	require.Equal(t, was.TaskTemplate, is.TaskTemplate)
	require.Equal(t, "1:ab", is.Labels[labelFailed])
	require.Equal(t, "1:cd", is.Labels[labelGood])
	require.NotContains(t, was.Labels, labelFailed)
	require.NotContains(t, was.Labels, labelGood)
	seen := seenService(&swarm.Service{Spec: is}, nil, nil, nil)
	require.Equal(t, []ring.Version{"1:ab", "1:cd"}, []ring.Version{seen.Condemned, seen.Good})
	require.False(t, seen.Changed(), "what was sent is what is there")
	require.Empty(t, seen.Previous)
	back := seenService(&swarm.Service{Spec: was, PreviousSpec: &swarm.ServiceSpec{Annotations: swarm.Annotations{Labels: map[string]string{labelVersion: "1:ef"}}}}, nil, nil, nil)
	require.Equal(t, ring.Version("1:ef"), back.Previous)
}

// Whoever has the port may go, so the version is tried again and not condemned.
func TestAPortThatAServiceOfTheSwarmHasIsTriedAgain(t *testing.T) {
	err := fmt.Errorf("Error response from daemon: rpc error: code = InvalidArgument desc = port '8080' is already in use by service 'edge_web' (k3j) as an ingress port: %w", cerrdefs.ErrInvalidArgument)
	e := serveFault(swarmAction(), "cannot send service shop_web", err)
	require.False(t, e.Permanent)
	require.NotNil(t, e.Refusal)
	require.Equal(t, ring.Conflict, e.Refusal.Code)
	require.Equal(t, "port 8080 of the swarm is taken by service edge_web", e.Refusal.Says)
	require.Contains(t, e.Refusal.Hint, "docker service rm edge_web")
	require.Equal(t, askAgain, e.Wait)
	require.True(t, serveFault(swarmAction(), "cannot", fmt.Errorf("name must be valid: %w", cerrdefs.ErrInvalidArgument)).Permanent, "any other is the version's")
}

// oneService is a manager with one service, which may not be changed: a call would panic.
type oneService struct {
	manager
	is swarm.Service
}

func (o oneService) ServiceInspectWithRaw(context.Context, string, swarm.ServiceInspectOptions) (swarm.Service, []byte, error) {
	return o.is, nil, nil
}

// A service that somebody changed meanwhile is looked at again, and not removed.
func TestAServiceIsRemovedAsItWasLookedAt(t *testing.T) {
	s := &Swarm{docker: &Docker{opts: Options{Host: "prod"}}}
	m := oneService{is: swarm.Service{Meta: swarm.Meta{Version: swarm.Version{Index: 8}}, Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{
		Name: "shop_web", Labels: map[string]string{labelHost: "prod", labelApp: "shop", labelService: "web"},
	}}}}
	_, err := s.serveOff(t.Context(), m, ring.Action{Kind: ring.DoServeOff, App: "shop", Service: "web", Index: 7})
	require.ErrorContains(t, err, "it is another one than was looked at")
}

// What an image declares is known when it was looked at: right before its service is sent. A call
// to the swarm would panic.
func TestAVolumeOfTheImageIsHeldToThePinBeforeItsServiceIsSent(t *testing.T) {
	s := &Swarm{docker: &Docker{opts: Options{Host: "prod", Allow: func(string, any) error { return nil }}}}
	for name, tt := range map[string]struct {
		says string
		make func(s *ring.Service)
	}{
		"pinned to no node": {"is pinned to no node", func(s *ring.Service) { s.Spec.Cluster.Constraints = nil }},
		"two replicas":      {"with 2 replicas", func(s *ring.Service) { s.Replicas = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			a := swarmAction()
			a.Want.Spec.Mounts, a.Want.Image = nil, ring.Image{Known: true, Volumes: []string{"/var/lib/db"}}
			tt.make(a.Want)
			_, err := s.serve(t.Context(), silent{}, a)
			var fault *ring.EngineError
			require.ErrorAs(t, err, &fault)
			require.True(t, fault.Permanent)
			require.Equal(t, ring.VolumeNotPinned, fault.Refusal.Code)
			require.Contains(t, fault.Refusal.Says, "/var/lib/db")
			require.Contains(t, fault.Refusal.Says, tt.says)
		})
	}
}
