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
)

// StartOwner starts an instance that others can join, with a volume.
func (r *kit) StartOwner(t *testing.T) ring.Instance {
	t.Helper()
	a := r.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.IPCMode = "vpn", "shareable"
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "keys", Target: "/keys"}}
	})
	r.Must(t, a)
	return r.InstanceOf(t, "vpn")
}

// InstanceOf is the instance of a service.
func (r *kit) InstanceOf(t *testing.T, service string) ring.Instance {
	t.Helper()
	for _, in := range r.Seen(t).Instances {
		if in.Service == service {
			return in
		}
	}
	require.Fail(t, "not seen", service)
	return ring.Instance{}
}

func (r *kit) JoinAction(owner string, edit func(*ring.Spec)) ring.Action {
	a := r.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.NoNetwork = "app", false
		s.Spec.Command = []string{"sleep"} // the owner's port is taken in its namespace
		edit(&s.Spec)
	})
	a.Owners = map[string]string{"vpn": owner}
	return a
}

func joins(t *testing.T, r *kit) {
	o := r.StartOwner(t)
	a := r.JoinAction(o.ID, func(s *ring.Spec) {
		s.NetworkOf, s.PIDOf, s.IPCOf = "vpn", "vpn", "vpn"
		s.VolumesFrom = []ring.VolumesFrom{{Service: "vpn", ReadOnly: true}}
		s.Expose = []string{"80"}
	})
	r.Must(t, a)
	in := r.InstanceOf(t, "app")
	require.Equal(t, ring.StateRunning, in.State)
	require.Equal(t, []string{o.ID}, in.Joined)
	require.Empty(t, o.Joined)
	require.Empty(t, in.Addresses, "its addresses are the owner's")
	c := r.Inspect(t, in.ID)
	require.EqualValues(t, "container:"+o.ID, c.HostConfig.NetworkMode)
	require.EqualValues(t, "container:"+o.ID, c.HostConfig.PidMode)
	require.EqualValues(t, "container:"+o.ID, c.HostConfig.IpcMode)
	require.Equal(t, []string{o.ID + ":ro"}, c.HostConfig.VolumesFrom)
	require.Empty(t, c.NetworkSettings.Networks)
	require.Len(t, c.Mounts, 1)
	require.Equal(t, r.App+"_keys", c.Mounts[0].Name)
	require.False(t, c.Mounts[0].RW)

	r.Must(t, a) // again: it is there
	a.Owners = map[string]string{"vpn": r.AddForeign(t, r.App+"-another")}
	e := r.MustFail(t, a)
	require.Contains(t, e.Error(), "replaced since")
	require.False(t, e.Permanent)
	a.Owners = map[string]string{"web": o.ID}
	a.Slot = 2
	require.ErrorContains(t, r.MustFail(t, a), "joins vpn")
	require.Len(t, r.Seen(t).Instances, 2)
}

func ownerAway(t *testing.T, r *kit) {
	o := r.StartOwner(t)
	for _, edit := range []func(*ring.Spec){
		func(s *ring.Spec) { s.NetworkOf = "vpn" },
		func(s *ring.Spec) { s.PIDOf, s.NoNetwork = "vpn", true },
		func(s *ring.Spec) { s.IPCOf, s.NoNetwork = "vpn", true },
		func(s *ring.Spec) { s.VolumesFrom, s.NoNetwork = []ring.VolumesFrom{{Service: "vpn"}}, true },
	} {
		gone := r.MustFail(t, r.JoinAction(strings.Repeat("0", 64), edit))
		require.Equal(t, ring.CauseCreate, gone.Cause, "%v", gone)
		require.False(t, gone.Permanent, "%v", gone)
		require.Nil(t, gone.Refusal)
	}
	r.Must(t, on(ring.DoStop, o))
	for slot, edit := range []func(*ring.Spec){
		func(s *ring.Spec) { s.NetworkOf = "vpn" },
		func(s *ring.Spec) { s.PIDOf, s.NoNetwork = "vpn", true },
		func(s *ring.Spec) { s.IPCOf, s.NoNetwork = "vpn", true },
	} {
		a := r.JoinAction(o.ID, edit)
		a.Slot = slot + 2
		stopped := r.MustFail(t, a)
		require.Equal(t, ring.CauseCreate, stopped.Cause, "%v", stopped)
		require.False(t, stopped.Permanent, "%v", stopped)
	}
	r.Must(t, on(ring.DoStart, o))
	a := r.JoinAction(o.ID, func(s *ring.Spec) { s.NetworkOf = "vpn" })
	a.Slot = 2
	r.Must(t, a) // finishes the one that was made
}

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
	require.ElementsMatch(t, []string{missing + ":/made", "/etc:/labelled:ro,z,rslave", r.Data + "-of-app/d:/data:Z"}, c.HostConfig.Binds)
	require.Len(t, c.HostConfig.Mounts, 1)
	require.EqualValues(t, "rslave", c.HostConfig.Mounts[0].BindOptions.Propagation)
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

func externalVolume(t *testing.T, r *kit) {
	name := r.App + "-theirs"
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountVolume, Source: "theirs", Target: "/t"},
			{Kind: ring.MountVolume, Source: "named", Target: "/n"},
		}
	})
	a.Of.Volumes = []ring.Volume{{Key: "theirs", External: name}, {Key: "named", Name: r.App + "-called-so", Driver: "local", DriverOpts: map[string]string{"type": "tmpfs", "device": "tmpfs"}}}
	e := r.MustFail(t, a)
	require.Equal(t, ring.BadValue, e.Refusal.Code)
	require.Contains(t, e.Refusal.Hint, "docker volume create "+name)
	require.Empty(t, r.Seen(t).Instances)

	r.AddVolume(t, name)
	done := r.Must(t, a)
	require.Empty(t, r.VolumeLabels(t, name), "and not labelled")
	require.Equal(t, "named", r.VolumeLabels(t, r.App+"-called-so")["com.docker.compose.volume"])
	var kept []string
	for _, k := range done.Kept {
		require.False(t, k.At.IsZero())
		kept = append(kept, k.Name)
	}
	require.Equal(t, []string{"volume " + r.App + "-called-so", "volume " + name}, kept)
}

func externalNetwork(t *testing.T, r *kit) {
	a := ring.Action{Kind: ring.DoNetwork, App: r.App, Network: ring.Network{Key: "ext", External: r.App + "-theirs"}, NetworkName: r.App + "-theirs"}
	e := r.MustFail(t, a)
	require.Equal(t, ring.BadValue, e.Refusal.Code)
	require.Contains(t, e.Refusal.Hint, "docker network create "+a.NetworkName)
	a.Network.External, a.NetworkName = "bridge", "bridge"
	require.NotEmpty(t, r.Must(t, a).Note)
}

func besideStranger(t *testing.T, r *kit) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
	})
	r.Must(t, a) // so that the volume is labelled
	r.Must(t, on(ring.DoRemove, r.OnlyInstance(t)))
	id := r.AddForeign(t, r.App+"-db-1", r.App+"_db:/data")
	e := r.MustFail(t, a)
	require.Equal(t, ring.ForeignProject, e.Refusal.Code)
	require.Contains(t, e.Refusal.Says, r.App+"-db-1")
	require.Contains(t, e.Refusal.Hint, "docker compose down in /home/me/"+r.App)
	require.False(t, e.Permanent)
	require.Empty(t, r.Seen(t).Instances)
	require.True(t, r.Inspect(t, id).State.Running)

	other := r.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.Mounts = "reader", []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db", ReadOnly: true}}
	})
	r.Must(t, other)
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
	made.NetworkName, made.Network.Key, made.Network.Pools = r.App+"_other", "other", []ring.Pool{{Subnet: subnet()}}
	require.Equal(t, own, r.MustFail(t, made).Refusal)
	_, there := r.FindNetwork(t, made.NetworkName)
	require.False(t, there)
}

func sealedValues(t *testing.T, r *rig) {
	secret := ring.Sealed{App: r.App, File: ".env", Name: "TOKEN", MAC: "00"}
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Environment = map[string]string{"TOKEN": "a-" + secret.String()}
		s.Spec.Labels = map[string]string{"of": secret.String()}
		s.Spec.Logging = &ring.Logging{Driver: "json-file", Options: map[string]string{"tag": secret.String()}}
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
	require.Equal(t, "hunter22", c.HostConfig.LogConfig.Config["tag"])
	require.Equal(t, []string{"CMD", "/app", "hunter22"}, c.Config.Healthcheck.Test)
	require.Equal(t, []string{"serve", "hunter22"}, []string(c.Config.Cmd))
	require.NotContains(t, c.Config.Labels[labelHooks], "hunter22")
	require.Contains(t, a.Want.Spec.Command[1], ring.SealMark, "the plan stays sealed")

	done := r.Must(t, on(ring.DoRemove, in))
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
	done = r.Must(t, ring.Action{Kind: ring.DoRemove, Instance: id, Grace: time.Second})
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
