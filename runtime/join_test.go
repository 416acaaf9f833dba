package runtime

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func binds(t *testing.T, r *rig) {
	missing := r.Data + "-not-there/deep"
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountBind, Source: missing, Target: "/made", Create: true},
			{Kind: ring.MountBind, Source: "/etc", Target: "/etc-of-host", ReadOnly: true, Propagation: "rslave"},
			{Kind: ring.MountBind, Source: "/etc", Target: "/labelled", ReadOnly: true, Create: true, SELinux: "z", Propagation: "rslave"},
			{Kind: ring.MountData, Source: "d", Target: "/data", SELinux: "Z"},
		}
	})
	a.Start = false // whether the host's mounts propagate is not ours to say
	a.Of.DataRoot = r.Data + "-of-app"
	done := r.Must(t, a)
	c := r.Inspect(t, done.Instance)
	if onPodman() { // it tells all of them, with each of their options
		require.Subset(t, c.HostConfig.Binds, []string{
			missing + ":/made:rw,rprivate,rbind", "/etc:/etc-of-host:ro,rslave,bind", "/etc:/labelled:ro,z,rslave,rbind",
			r.Data + "-of-app/d:/data:Z,rw,rprivate,rbind",
		})
	} else {
		bindsAsAsked(t, r, c, missing)
	}
	require.DirExists(t, r.Data+"-of-app/d")
	require.NoDirExists(t, r.Data+"/d")
	var kept []string
	for _, k := range done.Kept {
		require.Equal(t, r.App, k.App)
		kept = append(kept, k.Name)
	}
	require.Equal(t, []string{"data " + r.Data + "-of-app/d", "path /etc", "path " + missing}, kept, "what the engine would make anew")

	a.Slot, a.Start = 2, true
	a.Want.Spec.Mounts = a.Want.Spec.Mounts[:1]
	r.Must(t, a)
	if r.opts.URL != "memory" {
		require.DirExists(t, missing, "as Compose's short form has it")
	}
	a.Want.Spec.Mounts = []ring.Mount{{Kind: ring.MountData, Source: "d", Target: "/data", SELinux: "z"}}
	a.Slot = 3
	id := r.Must(t, a).Instance
	gone := ring.Action{Kind: ring.DoStop, App: r.App, Service: "web", Instance: id, Grace: time.Second}
	r.Must(t, gone)
	require.NoError(t, os.RemoveAll(r.Data+"-of-app"))
	for _, gone.Kind = range []ring.ActionKind{ring.DoStart, ring.DoRestart} {
		e := r.MustFail(t, gone)
		require.Equal(t, ring.Conflict, e.Refusal.Code)
		require.Contains(t, e.Refusal.Hint, "mkdir -p "+r.Data+"-of-app/d")
		require.NoDirExists(t, r.Data+"-of-app")
	}
	a.Slot = 4
	a.Want.Spec.Mounts = []ring.Mount{{Kind: ring.MountBind, Source: missing + "/not", Target: "/x"}}
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseFiles, e.Cause, "without Create nothing is made")
	a.Want.Spec.Mounts = []ring.Mount{{Kind: ring.MountBind, Source: "/a:b", Target: "/x", Create: true}}
	require.ErrorContains(t, r.MustFail(t, a), "no colon")
}

func told(t *testing.T, r *rig) {
	v, err := r.Version(t.Context())
	require.NoError(t, err)
	if !apiBefore(v.API, "1.43") {
		t.Skip("this engine can do all of it")
	}
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, StartInterval: time.Second}
		s.Spec.Annotations = map[string]string{"a": "b"}
	})
	done := r.Must(t, a)
	require.Len(t, done.Told, 2)
	require.Contains(t, done.Told[0], "start_interval")
	require.Contains(t, done.Told[0], "1.44")
	require.Contains(t, done.Told[1], "annotations")
	require.Zero(t, r.Inspect(t, done.Instance).Config.Healthcheck.StartInterval)
}

func notAllowed(t *testing.T, r *rig) {
	var asked []string
	deny := ""
	no := errors.New("no")
	r.opts.Allow = func(app string, payload any) error {
		require.Equal(t, r.App, app)
		q, ok := payload.(Request)
		require.True(t, ok)
		if c, is := q.Body.(ContainerRequest); is && c.HostConfig == nil {
			return nil // how the image begins, which makes nothing
		}
		asked = append(asked, q.Key)
		if q.Key == deny {
			return no
		}
		return nil
	}
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
	})
	made := r.AddNetwork(t, &a, "default")
	require.Equal(t, []string{"network default"}, asked)
	for _, deny = range []string{"volume db", "container"} {
		e := r.MustFail(t, a)
		require.ErrorIs(t, e, e.Refusal)
		require.Equal(t, ring.PolicyDenied, e.Refusal.Code)
		require.True(t, e.Permanent)
		require.Empty(t, r.Seen(t).Instances)
	}
	deny = ""
	r.Must(t, a)
	require.Equal(t, []string{"network default", "volume db", "volume db", "container", "container"}, asked, "right before each thing that is made")

	own := &ring.Refusal{Code: ring.PolicyDenied, Says: "privileged is denied", Hint: "take it out"}
	r.opts.Allow = func(string, any) error { return own }
	made.NetworkName, made.Network.Key, made.Network.Pools = r.App+"_other", "other", []ring.Pool{{Subnet: enginetest.Subnet()}}
	require.Equal(t, own, r.MustFail(t, made).Refusal)
	_, there := r.FindNetwork(t, made.NetworkName)
	require.False(t, there)
}

// hooksThatTellFiles have values that stand in no spec: a hook prints a file that is mounted,
// also one of which only the beginning is kept.
func hooksThatTellFiles(t *testing.T, r *rig) {
	long := strings.Repeat("cana.ry", 1000)
	r.opts.Values = func(app string) (map[string]string, error) {
		require.Equal(t, r.App, app)
		return map[string]string{"hunter22": "tls.key", long: "long"}, nil
	}
	for _, says := range [][]string{{"hunter22", "1"}, {"cana.ry", "1000"}} {
		hook := ring.Hook{Command: append([]string{"/app", "say"}, append(says, "3")...)}
		err := r.MustFail(t, hooked(r, []ring.Hook{hook}, nil))
		require.Contains(t, err.Error(), "<")
		require.NotContains(t, err.Error(), says[0])
		r.Must(t, enginetest.ActionOn(ring.DoRemove, r.OnlyInstance(t)))
	}
	r.opts.Values = func(string) (map[string]string, error) { return nil, errors.New("it cannot be read") }
	err := r.MustFail(t, hooked(r, []ring.Hook{{Command: []string{"/app", "say", "hunter22", "1", "3"}}}, nil))
	require.NotContains(t, err.Error(), "hunter22")
	require.Contains(t, err.Error(), "what it said is not told")
}

func sealedValues(t *testing.T, r *rig) {
	secret := ring.Sealed{App: r.App, File: ".env", Name: "TOKEN", MAC: "00"}
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Environment = map[string]string{"TOKEN": "a-" + secret.String()}
		s.Spec.Labels = map[string]string{"of": secret.String()}
		s.Spec.Logging = &ring.Logging{Driver: "json-file", Options: map[string]string{"tag": secret.String()}}
		if onPodman() {
			s.Spec.Logging = nil // it takes a tag for journald alone; see podman_test.go
		}
		s.Spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", "/app", secret.String()}}
		s.Spec.Command = []string{"serve", secret.String()}
		s.Spec.PreStop = []ring.Hook{{Command: []string{"/app", "tell", "TOKEN", "3"}}}
	})
	require.ErrorContains(t, r.MustFail(t, a), "TOKEN")
	require.Empty(t, r.Seen(t).Instances)

	r.opts.Open = func(s ring.Sealed) (string, error) {
		require.Equal(t, secret, s)
		return "hunter22", nil
	}
	r.opts.Allow = func(_ string, payload any) error {
		c := payload.(Request).Body.(ContainerRequest)
		if c.HostConfig == nil {
			return nil // how the image begins
		}
		require.Contains(t, c.Config.Env, "TOKEN=a-"+secret.String(), "judged with the seal on")
		return nil
	}
	r.Must(t, a)
	in := r.OnlyInstance(t)
	c := r.Inspect(t, in.ID)
	require.Contains(t, c.Config.Env, "TOKEN=a-hunter22")
	require.Equal(t, "hunter22", c.Config.Labels["of"])
	if !onPodman() {
		require.Equal(t, "hunter22", c.HostConfig.LogConfig.Config["tag"])
	}
	require.Equal(t, []string{"CMD", "/app", "hunter22"}, c.Config.Healthcheck.Test)
	require.Equal(t, []string{"serve", "hunter22"}, []string(c.Config.Cmd))
	require.NotContains(t, c.Config.Labels[labelHooks], "hunter22")
	require.Contains(t, a.Want.Spec.Command[1], ring.SealMark, "the plan stays sealed")

	done := r.Must(t, stopped(ring.DoRemove, in))
	require.Len(t, done.Told, 1)
	require.Contains(t, done.Told[0], "TOKEN=a-<TOKEN>")
	require.NotContains(t, done.Told[0], "hunter22")

	// The engine repeats the name of a program that it cannot find.
	a.Want.Spec.Entrypoint, a.Slot = []string{secret.String()}, 2
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseCreate, e.Cause)
	require.True(t, e.Permanent)
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		require.NotContains(t, err.Error(), "hunter22")
	}
	require.Contains(t, e.Error(), "<TOKEN>")

	// A later daemon, whose env folder says something else.
	a.Want.Spec.Entrypoint, a.Slot = []string{"/app"}, 3
	id := r.Must(t, a).Instance
	r.opts.Open = nil
	done = r.Must(t, ring.Action{Kind: ring.DoRemove, Instance: id, Grace: time.Minute})
	require.Len(t, done.Told, 1)
	require.NotContains(t, done.Told[0], "hunter22")
	require.Contains(t, done.Told[0], "not told")
}

func TestJoinedIDs(t *testing.T) {
	require.Nil(t, joinedIDs(&container.HostConfig{NetworkMode: "shop_default", PidMode: "host", IpcMode: "shareable"}))
	require.Equal(t, []string{"a", "b", "c"}, joinedIDs(&container.HostConfig{
		NetworkMode: "container:b", PidMode: "container:a", IpcMode: "container:b", VolumesFrom: []string{"c:ro", "a"},
	}))
}

// bindsAsAsked holds what Docker tells of binds to what it was asked for.
func bindsAsAsked(t *testing.T, r *rig, c container.InspectResponse, missing string) {
	require.ElementsMatch(t, []string{missing + ":/made", "/etc:/labelled:ro,z,rslave", r.Data + "-of-app/d:/data:Z"}, c.HostConfig.Binds)
	require.Len(t, c.HostConfig.Mounts, 1)
	require.EqualValues(t, "rslave", c.HostConfig.Mounts[0].BindOptions.Propagation)
}
