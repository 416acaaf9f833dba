package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// swarmRig is a cluster of its own name on a swarm, and what only a test may do with that.
type swarmRig struct {
	*Swarm
	c        manager
	app      string
	content  string
	image    string
	allow    error
	managers int
	dial     func(t *testing.T, manager int, o Options) (*Swarm, error)
	pass     func(time.Duration) // time in which the swarm does what it has to do
	needs    []swarmNeed         // of the story that is told
}

// A swarmNeed is what not every swarm has. On one without it a story asserts what then holds.
type swarmNeed string

const severalManagers swarmNeed = "has several managers"

// lacks reports whether the swarm is without what a story needs, which the story has to name.
func (r *swarmRig) lacks(t *testing.T, n swarmNeed) bool {
	require.Contains(t, r.needs, n, "the story does not say that it needs it")
	return n == severalManagers && r.managers < 2
}

var (
	swarmImageOnce sync.Once
	swarmImage     string
	errSwarmImage  error
)

// imageOnNodes is the ID of the test's image, which every node has: no node pulls an ID.
func imageOnNodes(t *testing.T, first *client.Client) string {
	t.Helper()
	swarmImageOnce.Do(func() {
		errSwarmImage = func() error {
			fs, err := layer()
			if err != nil {
				return err
			}
			body, err := first.ImageImport(t.Context(), image.ImportSource{Source: bytes.NewReader(fs), SourceName: "-"}, "gitring-test/swarm:1", image.ImportOptions{})
			if err != nil {
				return err
			}
			if err := pulled(body, nil); err != nil {
				return err
			}
			i, err := first.ImageInspect(t.Context(), "gitring-test/swarm:1")
			if err != nil {
				return err
			}
			swarmImage = i.ID
			for _, at := range strings.Fields(os.Getenv("GITRING_SWARM_NODES"))[1:] {
				saved, err := first.ImageSave(t.Context(), []string{"gitring-test/swarm:1"})
				if err != nil {
					return err
				}
				node, err := client.NewClientWithOpts(client.WithHost(at), client.WithAPIVersionNegotiation())
				if err != nil {
					return err
				}
				loaded, err := node.ImageLoad(t.Context(), saved)
				if err != nil {
					return err
				}
				if err := pulled(loaded.Body, nil); err != nil {
					return err
				}
				if err := errors.Join(saved.Close(), node.Close()); err != nil {
					return err
				}
			}
			return nil
		}()
	})
	require.NoError(t, errSwarmImage)
	return swarmImage
}

// realSwarmRig is on the swarm that the tests run beside.
func realSwarmRig(t *testing.T, n int) *swarmRig {
	c := swarmOrSkip(t)
	nodes := strings.Fields(os.Getenv("GITRING_SWARM_NODES"))
	r := &swarmRig{
		c: c, image: imageOnNodes(t, c), managers: min(3, len(nodes)), pass: time.Sleep,
		dial: func(t *testing.T, manager int, o Options) (*Swarm, error) {
			o.URL = nodes[manager]
			return DialSwarm(t.Context(), o)
		},
	}
	r.begin(t, n)
	t.Cleanup(func() {
		if err := r.c.ServiceRemove(context.WithoutCancel(t.Context()), r.app+"_web"); err != nil && !cerrdefs.IsNotFound(err) {
			t.Log(err)
		}
	})
	return r
}

// memorySwarmRig is on a swarm of three managers in memory, whose time the test moves.
func memorySwarmRig(t *testing.T, n int) (*swarmRig, *enginetest.Swarm) {
	m := enginetest.NewSwarm(lifeOf, "node-1", "node-2", "node-3")
	r := &swarmRig{
		c: m.Client(), image: m.AddImage(enginetest.Image{Name: "gitring-test/swarm:1"}), managers: 3, pass: m.Pass,
		dial: func(t *testing.T, _ int, o Options) (*Swarm, error) {
			o.Now = m.Now
			return swarmOver(t.Context(), Over(m.Client(), o))
		},
	}
	r.begin(t, n)
	return r, m
}

// begin gives the rig an app and a cluster that no other test has.
func (r *swarmRig) begin(t *testing.T, n int) {
	r.app, r.content = fmt.Sprintf("s%d", n), t.TempDir()
	var err error
	r.Swarm, err = r.dial(t, 0, Options{Host: "cluster-" + r.app, ContentDir: r.content, Allow: func(string, any) error { return r.allow }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
}

// lifeOf is what the program of the test's image does, as far as stories of a swarm ask it to.
func lifeOf(c *swarm.ContainerSpec) (life enginetest.Life) {
	switch c.Args[0] {
	case "tell": // and then a code
		life.Ends = true
		life.Code, _ = strconv.Atoi(c.Args[2])
	case "cry":
		for i := range 300 {
			life.Log += fmt.Sprintf("line %d\n", i)
		}
	}
	if h := c.Healthcheck; h != nil && len(h.Test) > 2 && h.Test[2] == "read" {
		life.Unhealthy = !slices.ContainsFunc(c.Configs, func(f *swarm.ConfigReference) bool { return f.File.Name == h.Test[3] }) &&
			!slices.ContainsFunc(c.Secrets, func(f *swarm.SecretReference) bool { return f.File.Name == h.Test[3] })
	}
	return life
}

// action is to send service web: two tasks that are healthy at once, until change says otherwise.
func (r *swarmRig) action(change func(a *ring.Action, s *ring.Service)) ring.Action {
	knobs := ring.DefaultRollout()
	knobs.MinReadyTime = time.Second
	s := ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: 2, Rollout: knobs, Pin: ring.Pin{Image: r.image},
		Spec: ring.Spec{
			Image: "app", Entrypoint: []string{"/app"}, Command: []string{"serve"}, StopGrace: time.Second,
			Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, Interval: time.Second, Timeout: 3 * time.Second, Retries: 2},
			Cluster:     &ring.ClusterSpec{Restart: ring.Restart{Policy: ring.Always, Delay: time.Second}},
		},
	}
	app := &ring.App{Name: r.app, Source: "prod", Commit: ring.SHA(strings.Repeat("c", 40)), Path: "x", Files: []string{"x/compose.yaml"}, Services: []ring.Service{s}}
	a := ring.Action{Kind: ring.DoServe, Source: "prod", App: r.app, Service: "web", Commit: app.Commit, Of: app, Want: &app.Services[0], Networks: map[string]string{}}
	if change != nil {
		change(&a, a.Want)
	}
	a.Want.Version = ring.VersionOf(app, a.Want, a.Want.Pin)
	a.Version = a.Want.Version
	return a
}

// put is a file of a content, and its mount.
func (r *swarmRig) put(t *testing.T, hash, name, text, target string) ring.Mount {
	require.NoError(t, os.MkdirAll(filepath.Join(r.content, hash), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.content, hash, name), []byte(text), 0o444))
	return ring.Mount{Kind: ring.MountContent, Source: hash, File: name, Target: target}
}

func (r *swarmRig) must(t *testing.T, a ring.Action) ring.Done {
	t.Helper()
	done, err := r.Do(t.Context(), a)
	require.NoError(t, err)
	return done
}

func (r *swarmRig) refused(t *testing.T, a ring.Action, code ring.Code) {
	t.Helper()
	_, err := r.Do(t.Context(), a)
	var e *ring.EngineError
	require.ErrorAs(t, err, &e)
	require.NotNil(t, e.Refusal, "%v", err)
	require.Equal(t, code, e.Refusal.Code)
	require.NotEmpty(t, e.Refusal.Hint)
}

func (r *swarmRig) look(t *testing.T) ring.Seen {
	t.Helper()
	seen, err := r.Look(t.Context())
	require.NoError(t, err)
	return seen
}

// service is the one that is seen; it fails the test where there is none.
func (r *swarmRig) service(t *testing.T) ring.ClusterService {
	t.Helper()
	seen := r.look(t)
	require.Len(t, seen.Cluster.Services, 1)
	return seen.Cluster.Services[0]
}

// await looks until what is seen is as it should be.
func (r *swarmRig) await(t *testing.T, what string, is func(s ring.ClusterService, in []ring.Instance) bool) (ring.ClusterService, []ring.Instance) {
	t.Helper()
	var last ring.Seen
	for range 600 {
		last = r.look(t)
		if len(last.Cluster.Services) == 1 && is(last.Cluster.Services[0], last.Instances) {
			return last.Cluster.Services[0], last.Instances
		}
		r.pass(100 * time.Millisecond)
	}
	t.Fatalf("never %s: %+v %+v", what, last.Cluster.Services, last.Instances)
	return ring.ClusterService{}, nil
}

// serving reports whether so many tasks run a version, and no other does.
func serving(v ring.Version, n int) func(ring.ClusterService, []ring.Instance) bool {
	return func(_ ring.ClusterService, in []ring.Instance) bool {
		return len(in) == n && !slices.ContainsFunc(in, func(i ring.Instance) bool {
			return i.Version != v || i.State != ring.StateRunning || i.Health != "healthy"
		})
	}
}

// onto is an action that was decided on the service as it is.
func onto(s ring.ClusterService, a ring.Action) ring.Action {
	a.Index = s.Index
	return a
}

func changed(s ring.ClusterService) bool { return s.Changed() }

func ids(in []ring.Instance) (out []string) {
	for _, i := range in {
		out = append(out, i.ID)
	}
	slices.Sort(out)
	return out
}

func command(words ...string) func(*ring.Action, *ring.Service) {
	return func(_ *ring.Action, s *ring.Service) { s.Spec.Command = words }
}

func onEachNode(_ *ring.Action, s *ring.Service) { s.Spec.Cluster.Global = true }

// broken is a version whose check never passes. It is ended by a signal: a task that ended with status 0
// would pass for running for a moment, and cost the good task of its slot.
func broken(_ *ring.Action, s *ring.Service) {
	s.Spec.StopSignal = "SIGKILL"
	s.Spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", "/app", "read", "/not/there"}, Interval: time.Second, Timeout: time.Second, Retries: 1}
}

// A swarmStory is what a swarm does.
type swarmStory struct {
	name  string
	story func(t *testing.T, r *swarmRig)
	needs []swarmNeed
}

func swarmStories() []swarmStory {
	return []swarmStory{
		{"a service is seen with its version and its tasks by slot", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, in := r.await(t, "whole", serving(a.Version, 2))
			require.Equal(t, []string{r.app + "_web", r.app, "prod", "web"}, []string{s.Name, s.App, s.Source, s.Service})
			require.Equal(t, a.Version, s.Version)
			require.Equal(t, 2, s.Replicas)
			require.False(t, s.Changed())
			require.Equal(t, []int{1, 2}, []int{in[0].Slot, in[1].Slot})
			require.Equal(t, r.image, in[0].Image)
			require.False(t, in[0].Started.IsZero())
			nodes := r.look(t).Cluster.Nodes
			require.True(t, slices.ContainsFunc(nodes, func(n ring.Node) bool {
				return n.Name == in[0].Node && n.State == "ready" && n.Availability == "active"
			}), "%+v", nodes)
		}, nil},
		{"a task is asked where it runs and its log from anywhere", func(t *testing.T, r *swarmRig) {
			a := r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Command = []string{"cry", "stay"} })
			r.must(t, a)
			_, in := r.await(t, "whole", serving(a.Version, 2))
			info, err := r.c.Info(t.Context())
			require.NoError(t, err)
			here := map[string]bool{}
			for _, i := range in {
				var log bytes.Buffer
				require.NoError(t, r.Logs(t.Context(), i.ID, LogOptions{Tail: -1}, &log), i.Node)
				require.Contains(t, log.String(), "line 299\n", i.Node)
				require.NotContains(t, log.String(), "\x00", "its frames are taken off")
				exit, _, err := r.Exec(t.Context(), i.ID, []string{"/app", "check"})
				if here[i.ID] = i.Node == info.Name; here[i.ID] {
					require.NoError(t, err)
					require.Zero(t, exit)
					continue
				}
				require.ErrorContains(t, err, "it runs on node "+i.Node)
			}
			used, err := r.Usage(t.Context(), ids(in))
			require.NoError(t, err)
			for _, i := range in {
				_, measured := used[i.ID]
				require.Equal(t, here[i.ID], measured, i.Node)
			}
			require.ErrorContains(t, r.Logs(t.Context(), "0123456789abcdef", LogOptions{Tail: -1}, io.Discard), "there is no such task")
			commits, err := r.Commits(t.Context(), "prod")
			require.NoError(t, err)
			require.Equal(t, []ring.SHA{a.Commit}, commits)
			other, err := r.Commits(t.Context(), "lab")
			require.NoError(t, err)
			require.Empty(t, other)
			about, err := r.About(t.Context())
			require.NoError(t, err)
			require.NotZero(t, about.Swarm.Managers)
			require.False(t, about.Swarm.Autolock)
		}, nil},
		{"a change is heard and poked", func(t *testing.T, r *swarmRig) {
			heard := make(chan struct{}, 1)
			s, err := r.dial(t, 0, Options{Host: "cluster-" + r.app, ContentDir: r.content, Poke: func(string) {
				select {
				case heard <- struct{}{}:
				default:
				}
			}})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			await := func(what string) {
				select {
				case <-heard:
				case <-time.After(30 * time.Second):
					t.Fatal("never heard " + what)
				}
			}
			await("that it listens")
			r.must(t, r.action(nil))
			await("the service")
			stop()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.NoError(t, s.Close())
		}, nil},
		{"what a config or secret was made from is mounted", func(t *testing.T, r *swarmRig) {
			config := r.put(t, strings.Repeat("a1", 32), "app.conf", "a=1", "/etc/app.conf")
			r.must(t, r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts, s.Replicas = []ring.Mount{config}, 0 }))
			mounted, err := r.Mounted(t.Context())
			require.NoError(t, err)
			require.True(t, mounted[config.Source])
		}, nil},
		{"a step whose answer was lost is done already", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			was := r.service(t)
			require.Equal(t, "already present", r.must(t, a).Note)
			require.Equal(t, was.ID, r.service(t).ID)
		}, nil},
		{"a step that was decided on another service writes over nothing", func(t *testing.T, r *swarmRig) {
			r.must(t, r.action(nil))
			was := r.service(t)
			next := r.action(command("serve", "2"))
			next.Index = was.Index + 1
			_, err := r.Do(t.Context(), next)
			require.ErrorContains(t, err, "another one than was looked at")
			next.Index = 0
			_, err = r.Do(t.Context(), next)
			require.ErrorContains(t, err, "another one than was looked at")
			// What changes it between that look and the call is for the swarm to see.
			seen, _, err := r.c.ServiceInspectWithRaw(t.Context(), was.ID, swarm.ServiceInspectOptions{})
			require.NoError(t, err)
			_, err = r.c.ServiceUpdate(t.Context(), was.ID, swarm.Version{Index: was.Index - 1}, seen.Spec, swarm.ServiceUpdateOptions{})
			require.ErrorContains(t, err, "update out of sequence")
			require.Equal(t, was.Index, r.service(t).Index)
			require.Equal(t, was.Version, r.service(t).Version)
		}, nil},
		{"docker stack ls shows the app", func(t *testing.T, r *swarmRig) {
			r.must(t, r.action(nil))
			list, err := r.c.ServiceList(t.Context(), swarm.ServiceListOptions{Filters: filters.NewArgs(filters.Arg("label", "com.docker.stack.namespace="+r.app))})
			require.NoError(t, err)
			require.Len(t, list, 1)
		}, nil},
		{"a service of that name that is not ours refuses the app and stays", func(t *testing.T, r *swarmRig) {
			spec, err := serviceSpec("other", r.action(func(_ *ring.Action, s *ring.Service) { s.Replicas = 0 }), nil)
			require.NoError(t, err)
			made, err := r.c.ServiceCreate(t.Context(), spec, swarm.ServiceCreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = r.c.ServiceRemove(context.WithoutCancel(t.Context()), made.ID) })
			r.refused(t, r.action(nil), ring.ForeignProject)
			off := r.action(nil)
			off.Kind = ring.DoServeOff
			r.refused(t, off, ring.ForeignProject)
			require.Empty(t, r.look(t).Cluster.Services, "it is of another cluster")
			_, _, err = r.c.ServiceInspectWithRaw(t.Context(), made.ID, swarm.ServiceInspectOptions{})
			require.NoError(t, err)
		}, nil},
		{"files of the commit come as configs and values as secrets", func(t *testing.T, r *swarmRig) {
			config := r.put(t, strings.Repeat("a1", 32), "app.conf", "a=1", "/etc/app.conf")
			secret := r.put(t, strings.Repeat("b2", 32), "value", "s3cret", "/run/secrets/db")
			secret.Secret = true
			a := r.action(func(_ *ring.Action, s *ring.Service) {
				s.Spec.Mounts = []ring.Mount{config, secret}
				// It runs once both can be read.
				s.Spec.Healthcheck.Test = []string{"CMD", "/app", "read", "/run/secrets/db"}
			})
			r.must(t, a)
			r.await(t, "whole", serving(a.Version, 2))
			files := r.look(t).Cluster.Files
			require.Len(t, files, 2)
			require.Equal(t, []bool{false, true}, []bool{files[0].Secret, files[1].Secret})
			require.Equal(t, []string{files[0].Name, files[1].Name}, r.service(t).Files)
			require.Equal(t, []string{config.Source, secret.Source}, []string{files[0].Content, files[1].Content})
			c, _, err := r.c.ConfigInspectWithRaw(t.Context(), files[0].ID)
			require.NoError(t, err)
			require.Equal(t, "a=1", string(c.Spec.Data))
		}, nil},
		{"a folder of the commit comes file by file", func(t *testing.T, r *swarmRig) {
			m := r.put(t, strings.Repeat("a1", 32), "one.conf", "1", "/etc/conf.d")
			r.put(t, m.Source, "two.conf", "2", "")
			m.File = ""
			a := r.action(func(_ *ring.Action, s *ring.Service) {
				s.Spec.Mounts = []ring.Mount{m}
				s.Spec.Healthcheck.Test = []string{"CMD", "/app", "read", "/etc/conf.d/two.conf"}
			})
			r.must(t, a)
			r.await(t, "whole", serving(a.Version, 2))
			require.Len(t, r.look(t).Cluster.Files, 2)
		}, nil},
		{"a file is whose the app said", func(t *testing.T, r *swarmRig) {
			m := r.put(t, strings.Repeat("b2", 32), "key", "s3cret", "/run/secrets/key")
			m.Secret = true
			at := filepath.Join(r.content, m.Source, m.File)
			require.NoError(t, os.Chown(at, 7, 8))
			require.NoError(t, os.Chmod(at, 0o440))
			config := r.put(t, strings.Repeat("a1", 32), "run.sh", "x", "/run.sh")
			require.NoError(t, os.Chmod(filepath.Join(r.content, config.Source, config.File), 0o555))
			r.must(t, r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts, s.Replicas = []ring.Mount{m, config}, 0 }))
			seen, _, err := r.c.ServiceInspectWithRaw(t.Context(), r.app+"_web", swarm.ServiceInspectOptions{})
			require.NoError(t, err)
			c := seen.Spec.TaskTemplate.ContainerSpec
			require.Equal(t, &swarm.SecretReferenceFileTarget{Name: "/run/secrets/key", UID: "7", GID: "8", Mode: 0o440}, c.Secrets[0].File)
			require.Equal(t, &swarm.ConfigReferenceFileTarget{Name: "/run.sh", UID: "0", GID: "0", Mode: 0o555}, c.Configs[0].File)
		}, nil},
		{"a content that is not here makes nothing", func(t *testing.T, r *swarmRig) {
			a := r.action(func(_ *ring.Action, s *ring.Service) {
				s.Spec.Mounts = []ring.Mount{{Kind: ring.MountContent, Source: strings.Repeat("0", 64), File: "x", Target: "/x"}}
			})
			_, err := r.Do(t.Context(), a)
			require.ErrorContains(t, err, "is missing")
			require.Empty(t, r.look(t).Cluster.Services)
		}, nil},
		{"a config of the name with another content is a conflict", func(t *testing.T, r *swarmRig) {
			m := r.put(t, strings.Repeat("a1", 32), "app.conf", "a=1", "/etc/app.conf")
			f := swarmFile{Content: m.Source, Path: m.File, Target: m.Target}
			_, err := r.c.ConfigCreate(t.Context(), configSpec("somebody", r.app, f, []byte("else")))
			require.NoError(t, err)
			r.refused(t, r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts = []ring.Mount{m} }), ring.Conflict)
			require.Empty(t, r.look(t).Cluster.Services)
		}, nil},
		{"a file that is larger than a swarm keeps is refused", func(t *testing.T, r *swarmRig) {
			m := r.put(t, strings.Repeat("a1", 32), "big", strings.Repeat("x", 500<<10+1), "/big")
			r.refused(t, r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts = []ring.Mount{m} }), ring.TooLarge)
			require.Empty(t, r.look(t).Cluster.Services)
		}, nil},
		{"a file that a service names stays and goes after it", func(t *testing.T, r *swarmRig) {
			m := r.put(t, strings.Repeat("a1", 32), "app.conf", "a=1", "/etc/app.conf")
			a := r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts, s.Replicas = []ring.Mount{m}, 0 })
			r.must(t, a)
			off := ring.Action{Kind: ring.DoFileOff, App: r.app, Name: r.look(t).Cluster.Files[0].Name}
			require.True(t, r.must(t, off).InUse)
			a.Kind, a.Index = ring.DoServeOff, r.service(t).Index
			r.must(t, a)
			require.False(t, r.must(t, off).InUse)
			require.Empty(t, r.look(t).Cluster.Files)
			require.Equal(t, "already gone", r.must(t, off).Note)
		}, nil},
		{"a file of another app is not removed", func(t *testing.T, r *swarmRig) {
			f := swarmFile{Content: "ab", Path: "x", Target: "/x"}
			_, err := r.c.ConfigCreate(t.Context(), configSpec(r.docker.opts.Host, r.app+"-other", f, []byte("x")))
			require.NoError(t, err)
			require.Equal(t, "already gone", r.must(t, ring.Action{Kind: ring.DoFileOff, App: r.app, Name: f.name(r.app + "-other")}).Note)
			require.Len(t, r.look(t).Cluster.Files, 1)
		}, nil},
		{"an update replaces every task and is completed", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, _ := r.await(t, "whole", serving(a.Version, 2))
			next := r.action(command("serve", "2"))
			r.must(t, onto(s, next))
			r.await(t, "updated", func(s ring.ClusterService, in []ring.Instance) bool {
				return s.Update == ring.UpdateCompleted && serving(next.Version, 2)(s, in)
			})
		}, nil},
		{"a broken update pauses and the last good spec brings it back", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, before := r.await(t, "whole", serving(a.Version, 2))
			bad := r.action(broken)
			bad.Good = a.Version
			r.must(t, onto(s, bad))
			good := func(in []ring.Instance) (n int) {
				for _, i := range in {
					if i.Version == a.Version && i.State == ring.StateRunning {
						n++
					}
				}
				return n
			}
			paused, _ := r.await(t, "paused", func(s ring.ClusterService, in []ring.Instance) bool {
				require.Equal(t, 2, good(in), "the floor holds")
				return s.Update == ring.UpdatePaused && s.Failed != nil
			})
			require.NotEmpty(t, paused.Failed.Says)
			require.NotEmpty(t, paused.Says)
			require.Equal(t, a.Version, paused.Good, "another manager knows which version to bring back")
			a.Condemned = bad.Version
			r.must(t, onto(paused, a))
			back, after := r.await(t, "restored", func(s ring.ClusterService, in []ring.Instance) bool {
				require.Equal(t, 2, good(in), "the floor holds")
				return s.Update == ring.UpdateCompleted && serving(a.Version, 2)(s, in)
			})
			require.Equal(t, ids(before), ids(after), "what served was never touched")
			require.Equal(t, []ring.Version{bad.Version, ""}, []ring.Version{back.Condemned, back.Good})
			require.False(t, back.Changed())
		}, nil},
		{"a version that failed is made anew and what serves stays", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, before := r.await(t, "whole", serving(a.Version, 2))
			bad := r.action(broken)
			r.must(t, onto(s, bad))
			paused, was := r.await(t, "paused", func(s ring.ClusterService, _ []ring.Instance) bool { return s.Update == ring.UpdatePaused })
			bad.Anew = true
			r.must(t, onto(paused, bad))
			again, _ := r.await(t, "tried again", func(s ring.ClusterService, in []ring.Instance) bool {
				return s.Update == ring.UpdatePaused && s.Index != paused.Index && s.Says != paused.Says
			})
			require.False(t, again.Changed())
			require.Subset(t, ids(was), ids(before))
			r.must(t, onto(again, a))
			_, after := r.await(t, "restored", func(s ring.ClusterService, in []ring.Instance) bool {
				return s.Update == ring.UpdateCompleted && serving(a.Version, 2)(s, in)
			})
			require.Equal(t, ids(before), ids(after), "what serves was never touched")
		}, nil},
		{"a spec that paused is sent once more where that was looked at", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, _ := r.await(t, "whole", serving(a.Version, 2))
			bad := r.action(broken)
			r.must(t, onto(s, bad))
			isPaused := func(s ring.ClusterService, _ []ring.Instance) bool { return s.Update == ring.UpdatePaused }
			paused, _ := r.await(t, "paused", isPaused)
			require.Equal(t, "already present", r.must(t, bad).Note, "an answer that was lost")
			// Within moments of the pause Swarm takes no notice of it, so it is sent until it does.
			r.await(t, "paused again", func(s ring.ClusterService, in []ring.Instance) bool {
				if s.Update == "" || s.Index == paused.Index {
					r.pass(time.Second)
					require.Empty(t, r.must(t, onto(r.service(t), bad)).Note)
					return false
				}
				return isPaused(s, in) && s.Says != paused.Says
			})
		}, nil},
		{"an app is admitted beside what is on the swarm", func(t *testing.T, r *swarmRig) {
			a := r.action(func(a *ring.Action, s *ring.Service) {
				a.Of.Networks = []ring.Network{{Key: "default"}, {Key: "edge", External: r.app + "-edge"}}
				s.Spec.Networks = []ring.Attachment{{Network: "default"}, {Network: "edge"}}
			})
			a.Kind = ring.DoAdmit
			r.refused(t, a, ring.BadValue)
			_, err := r.c.NetworkCreate(t.Context(), r.app+"-edge", network.CreateOptions{Driver: "overlay"})
			require.NoError(t, err)
			t.Cleanup(func() { _ = r.c.NetworkRemove(context.WithoutCancel(t.Context()), r.app+"-edge") })
			r.must(t, a)
		}, nil},
		{"a version that supersedes a broken one is sent at once", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, _ := r.await(t, "whole", serving(a.Version, 2))
			r.must(t, onto(s, r.action(broken)))
			next := r.action(command("serve", "3"))
			r.must(t, onto(r.service(t), next))
			r.await(t, "superseded", func(s ring.ClusterService, in []ring.Instance) bool {
				return s.Update == ring.UpdateCompleted && serving(next.Version, 2)(s, in)
			})
		}, nil},
		{"another count and other knobs touch no task", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			s, before := r.await(t, "whole", serving(a.Version, 2))
			more := r.action(func(_ *ring.Action, s *ring.Service) { s.Replicas, s.Rollout.MaxParallel = 3, 2 })
			require.Equal(t, a.Version, more.Version)
			more.Commit, more.Of.Commit, more.Of.Path = ring.SHA(strings.Repeat("d", 40)), ring.SHA(strings.Repeat("d", 40)), "moved"
			r.must(t, onto(s, more))
			now, after := r.await(t, "three", serving(a.Version, 3))
			require.Subset(t, ids(after), ids(before))
			require.NotEqual(t, s.Settings, now.Settings)
		}, nil},
		{"tasks that somebody had made anew are not made anew once more", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			r.await(t, "whole", serving(a.Version, 2))
			seen, _, err := r.c.ServiceInspectWithRaw(t.Context(), r.app+"_web", swarm.ServiceInspectOptions{})
			require.NoError(t, err)
			seen.Spec.TaskTemplate.ForceUpdate++
			_, err = r.c.ServiceUpdate(t.Context(), seen.ID, seen.Version, seen.Spec, swarm.ServiceUpdateOptions{})
			require.NoError(t, err)
			s, forced := r.await(t, "made anew", func(s ring.ClusterService, in []ring.Instance) bool {
				return s.Update == ring.UpdateCompleted && serving(a.Version, 2)(s, in)
			})
			require.False(t, s.Changed(), "how often is no part of what was sent")
			more := r.action(func(_ *ring.Action, s *ring.Service) { s.Replicas = 3 })
			r.must(t, onto(s, more))
			_, after := r.await(t, "three", serving(a.Version, 3))
			require.Subset(t, ids(after), ids(forced))
		}, nil},
		{"a spec that somebody changed is seen and put back", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			seen, _, err := r.c.ServiceInspectWithRaw(t.Context(), r.app+"_web", swarm.ServiceInspectOptions{})
			require.NoError(t, err)
			seen.Spec.TaskTemplate.ContainerSpec.Env = append(seen.Spec.TaskTemplate.ContainerSpec.Env, "HAND=1")
			_, err = r.c.ServiceUpdate(t.Context(), seen.ID, seen.Version, seen.Spec, swarm.ServiceUpdateOptions{})
			require.NoError(t, err)
			s := r.service(t)
			require.True(t, s.Changed())
			r.must(t, onto(s, a))
			require.False(t, changed(r.service(t)))
		}, nil},
		{"a task is not running until its check passes", func(t *testing.T, r *swarmRig) {
			a := r.action(func(_ *ring.Action, s *ring.Service) {
				broken(nil, s)
				s.Spec.Healthcheck.StartPeriod = time.Minute
			})
			r.must(t, a)
			_, in := r.await(t, "starting", func(_ ring.ClusterService, in []ring.Instance) bool {
				return slices.ContainsFunc(in, func(i ring.Instance) bool { return i.Health == "starting" })
			})
			for _, i := range in {
				require.Equal(t, ring.StateCreated, i.State)
			}
		}, nil},
		{"how a task ended is told", func(t *testing.T, r *swarmRig) {
			r.must(t, r.action(func(_ *ring.Action, s *ring.Service) {
				s.Spec.Command, s.Spec.Healthcheck, s.Replicas = []string{"tell", "A", "7"}, nil, 1
			}))
			s, _ := r.await(t, "failed", func(s ring.ClusterService, _ []ring.Instance) bool { return s.Failed != nil })
			require.Equal(t, 7, s.Failed.ExitCode)
			require.Equal(t, 1, s.Failed.Slot)
			require.NotEmpty(t, s.Failed.Node)
			require.False(t, s.Failed.Rejected)
		}, nil},
		{"an image that a node does not have is told with its words", func(t *testing.T, r *swarmRig) {
			r.must(t, r.action(func(_ *ring.Action, s *ring.Service) { s.Pin.Image = "sha256:" + strings.Repeat("0", 64) }))
			s, _ := r.await(t, "rejected", func(s ring.ClusterService, _ []ring.Instance) bool { return s.Failed != nil })
			require.True(t, s.Failed.Rejected)
			require.Contains(t, strings.ToLower(s.Failed.Says), "no such image")
		}, nil},
		{"a count of none leaves the service", func(t *testing.T, r *swarmRig) {
			a := r.action(func(_ *ring.Action, s *ring.Service) { s.Replicas = 0 })
			r.must(t, a)
			s := r.service(t)
			require.Zero(t, s.Replicas)
			require.Empty(t, r.look(t).Instances)
		}, nil},
		{"a removed service is gone with its tasks", func(t *testing.T, r *swarmRig) {
			a := r.action(nil)
			r.must(t, a)
			a.Kind, a.Index = ring.DoServeOff, r.service(t).Index
			r.must(t, a)
			for range 100 { // what was about to begin ends a moment later
				seen := r.look(t)
				require.Empty(t, seen.Cluster.Services)
				if len(seen.Instances) == 0 {
					break
				}
				require.Equal(t, ring.StateRemoving, seen.Instances[0].State)
				r.pass(100 * time.Millisecond)
			}
			require.Empty(t, r.look(t).Instances)
			require.Equal(t, "already gone", r.must(t, a).Note)
		}, nil},
		{"a network is made over all nodes and once and removed when free", func(t *testing.T, r *swarmRig) {
			n := ring.Network{Key: "default"}
			make := ring.Action{Kind: ring.DoNetwork, App: r.app, Network: &n, NetworkName: r.app + "_default"}
			require.Empty(t, r.must(t, make).Note)
			require.Equal(t, "already present", r.must(t, make).Note)
			a := r.action(func(a *ring.Action, s *ring.Service) {
				a.Of.Networks, a.Networks = []ring.Network{n}, map[string]string{"default": r.app + "_default"}
				s.Spec.Networks = []ring.Attachment{{Network: "default"}}
			})
			r.must(t, a)
			r.await(t, "whole", serving(a.Version, 2))
			require.False(t, changed(r.service(t)), "the swarm names it by its ID")
			nets := r.look(t).Networks
			i := slices.IndexFunc(nets, func(n ring.SeenNetwork) bool { return n.Name == r.app+"_default" })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, []string{r.app, "default", n.Definition()}, []string{nets[i].App, nets[i].Key, nets[i].Definition})
			off := ring.Action{Kind: ring.DoNetworkOff, App: r.app, NetworkName: r.app + "_default"}
			require.True(t, r.must(t, off).InUse)
			a.Kind, a.Index = ring.DoServeOff, r.service(t).Index
			r.must(t, a)
			for i := 0; r.must(t, off).InUse; i++ {
				require.Less(t, i, 600, "its tasks never left it")
				r.pass(100 * time.Millisecond)
			}
			require.Equal(t, "already gone", r.must(t, off).Note)
		}, nil},
		{"a network of one node is none of the swarm", func(t *testing.T, r *swarmRig) {
			_, err := r.c.NetworkCreate(t.Context(), r.app+"_default", network.CreateOptions{Driver: "bridge"})
			require.NoError(t, err)
			r.refused(t, ring.Action{Kind: ring.DoNetwork, App: r.app, Network: &ring.Network{Key: "default"}, NetworkName: r.app + "_default"}, ring.Conflict)
		}, nil},
		{"a volume is made on the node of its task", func(t *testing.T, r *swarmRig) {
			a := r.action(func(a *ring.Action, s *ring.Service) {
				a.Of.Volumes = []ring.Volume{{Key: "data"}}
				s.Replicas = 1
				s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/data"}}
				s.Spec.Cluster.Constraints = []string{"node.hostname == node-1"}
			})
			r.must(t, a)
			_, in := r.await(t, "whole", serving(a.Version, 1))
			require.Equal(t, "node-1", in[0].Node)
			v, err := r.c.VolumeInspect(t.Context(), r.app+"_data")
			require.NoError(t, err)
			require.Equal(t, r.app, v.Labels["gitring.app"])
			a.Kind, a.Index = ring.DoServeOff, r.service(t).Index
			r.must(t, a)
			list, err := r.c.VolumeList(t.Context(), volume.ListOptions{})
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(list.Volumes, func(v *volume.Volume) bool { return v.Name == r.app+"_data" }), "it stays")
		}, nil},
		{"what writes to a volume never runs twice", func(t *testing.T, r *swarmRig) {
			pinned := func(words ...string) ring.Action {
				return r.action(func(a *ring.Action, s *ring.Service) {
					a.Of.Volumes, s.Replicas, s.Spec.Command = []ring.Volume{{Key: "data"}}, 1, words
					s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/data"}}
					s.Spec.Cluster.Constraints = []string{"node.hostname == node-1"}
				})
			}
			a, next := pinned("serve"), pinned("serve", "2")
			r.must(t, a)
			s, _ := r.await(t, "whole", serving(a.Version, 1))
			r.must(t, onto(s, next))
			r.await(t, "updated", func(s ring.ClusterService, in []ring.Instance) bool {
				running := slices.DeleteFunc(slices.Clone(in), func(i ring.Instance) bool { return i.State == ring.StateCreated })
				require.LessOrEqual(t, len(running), 1, "%+v", running)
				return s.Update == ring.UpdateCompleted && serving(next.Version, 1)(s, in)
			})
		}, nil},
		{"a service on each node has a task on every one", func(t *testing.T, r *swarmRig) {
			a := r.action(onEachNode)
			r.must(t, a)
			nodes := r.look(t).Cluster.Nodes
			s, in := r.await(t, "whole", serving(a.Version, len(nodes)))
			require.True(t, s.Global)
			require.Zero(t, s.Replicas)
			for i := range nodes {
				require.True(t, nodes[i].Takes(&a.Want.Spec), "%+v", nodes[i])
				require.Equal(t, []any{i + 1, nodes[i].Name}, []any{in[i].Slot, in[i].Node})
			}
			next := r.action(func(a *ring.Action, s *ring.Service) { onEachNode(a, s); s.Spec.Command = []string{"serve", "2"} })
			r.must(t, onto(s, next))
			r.await(t, "updated", func(s ring.ClusterService, in []ring.Instance) bool {
				return s.Update == ring.UpdateCompleted && serving(next.Version, len(nodes))(s, in)
			})
		}, nil},
		{"a service on each node is only on those that meet its constraints", func(t *testing.T, r *swarmRig) {
			nodes := r.look(t).Cluster.Nodes
			a := r.action(func(a *ring.Action, s *ring.Service) {
				onEachNode(a, s)
				s.Spec.Cluster.Constraints = []string{"node.hostname == " + nodes[0].Name}
			})
			r.must(t, a)
			_, in := r.await(t, "whole", serving(a.Version, 1))
			require.Equal(t, nodes[0].Name, in[0].Node)
			for i := range nodes {
				require.Equal(t, i == 0, nodes[i].Takes(&a.Want.Spec), nodes[i].Name)
			}
		}, nil},
		{"a broken update of a service on each node pauses on the first one", func(t *testing.T, r *swarmRig) {
			a := r.action(onEachNode)
			r.must(t, a)
			nodes := r.look(t).Cluster.Nodes
			s, _ := r.await(t, "whole", serving(a.Version, len(nodes)))
			next := r.action(func(a *ring.Action, s *ring.Service) { onEachNode(a, s); broken(a, s) })
			r.must(t, onto(s, next))
			s, in := r.await(t, "paused", func(s ring.ClusterService, _ []ring.Instance) bool { return s.Update == ring.UpdatePaused })
			require.NotEmpty(t, s.Failed.Node)
			require.Equal(t, s.Failed.Node, nodes[s.Failed.Slot-1].Name)
			serve := slices.DeleteFunc(slices.Clone(in), func(i ring.Instance) bool { return i.Version != a.Version || i.State != ring.StateRunning })
			require.Len(t, serve, len(nodes), "start-first leaves what served")
		}, nil},
		{"the mode of a service that is there cannot be changed", func(t *testing.T, r *swarmRig) {
			r.must(t, r.action(nil))
			a := r.action(onEachNode)
			a.Kind = ring.DoAdmit
			r.refused(t, a, ring.Conflict)
			a = r.action(nil)
			a.Kind = ring.DoAdmit
			r.must(t, a)
		}, nil},
		{"a constraint that no node meets leaves the tasks pending", func(t *testing.T, r *swarmRig) {
			r.must(t, r.action(func(_ *ring.Action, s *ring.Service) {
				s.Spec.Cluster.Constraints = []string{"node.hostname == nowhere"}
			}))
			_, in := r.await(t, "pending", func(_ ring.ClusterService, in []ring.Instance) bool { return len(in) == 2 })
			require.Equal(t, []string{"", ""}, []string{in[0].Node, in[1].Node})
			require.Equal(t, ring.StateCreated, in[0].State)
		}, nil},
		{"what the policy denies is not sent", func(t *testing.T, r *swarmRig) {
			m := r.put(t, strings.Repeat("a1", 32), "app.conf", "a=1", "/etc/app.conf")
			r.allow = errors.New("no")
			r.refused(t, r.action(func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts = []ring.Mount{m} }), ring.PolicyDenied)
			seen := r.look(t)
			require.Empty(t, seen.Cluster.Services)
			require.Empty(t, seen.Cluster.Files)
		}, nil},
		{"hands on a single task are no step of a swarm", func(t *testing.T, r *swarmRig) {
			for _, kind := range []ring.ActionKind{ring.DoRestart, ring.DoRename, ring.DoReload, ring.DoUpdate} {
				_, err := r.Do(t.Context(), ring.Action{Kind: kind, App: r.app, Service: "web"})
				require.ErrorContains(t, err, "cannot "+string(kind)+" on a swarm")
			}
		}, nil},
		{"a run of a job is made at rest and begins once", runsOnce, nil},
		{"a run that fails is not tried again by the swarm", runFails, nil},
		{"a run that is removed while it runs ends", runIsRemoved, nil},
		{"a run that is removed by hand leaves nothing that is seen", runIsRemovedByHand, nil},
		{"a run that is stopped ends and does not begin again", runStops, nil},
		{"a run that no node takes waits and says why", runWaits, nil},
		{"a run has the files of its version and they stay with it", runFiles, nil},
		{"runs of one version have one name and others another one", runNames, nil},
		{"a run that was begun is known after a hand removed it", runIsMarked, nil},
		{"a word on a commit stays until somebody who read it takes it back", wordsStay, nil},
		{"a record full of the longest words is taken", theRecordFits, nil},
		{"the lease moves and whoever has it no more changes nothing", leaseMoves, []swarmNeed{severalManagers}},
		{"a manager of another key is refused", otherKeyRefused, nil},
	}
}

// The one suite: what the swarm in memory does, the real one does.
func TestOnSwarmServicesConform(t *testing.T) {
	swarmOrSkip(t)
	servicesConform(t, swarmStories(), realSwarmRig)
}

func TestSwarmInMemoryServicesConform(t *testing.T) {
	servicesConform(t, swarmStories(), func(t *testing.T, n int) *swarmRig {
		r, _ := memorySwarmRig(t, n)
		return r
	})
}

func servicesConform(t *testing.T, stories []swarmStory, start func(*testing.T, int) *swarmRig) {
	for i, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			defer enginetest.FailOnPanic(t)
			r := start(t, i)
			r.needs = s.needs
			s.story(t, r)
		})
	}
}

func TestEachStoryOfASwarmHasANameThatCanBeAFolder(t *testing.T) {
	names := map[string]bool{}
	for _, s := range swarmStories() {
		require.False(t, strings.ContainsAny(s.name, ",:/"), s.name)
		require.False(t, names[s.name], s.name)
		names[s.name] = true
	}
	require.GreaterOrEqual(t, len(names), 25, "ENGINES asks for so many")
}

// An engine that is no manager ends serve with what it is: one of no swarm, and a worker.
func TestAnEngineThatManagesNoSwarmIsUnfit(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		info       swarm.Info
		can        bool
	}{
		{"a manager", "", swarm.Info{LocalNodeState: swarm.LocalNodeStateActive, ControlAvailable: true}, true},
		{"a manager that is locked may be one soon", "", swarm.Info{LocalNodeState: swarm.LocalNodeStateLocked}, true},
		{"one that joins just now", "", swarm.Info{LocalNodeState: swarm.LocalNodeStatePending}, true},
		{"a worker", "it is a worker", swarm.Info{LocalNodeState: swarm.LocalNodeStateActive}, true},
		{"no swarm", "it is part of none", swarm.Info{LocalNodeState: swarm.LocalNodeStateInactive}, true},
		{"Podman, which says nothing of it", "it is part of none", swarm.Info{}, true},
		{"one in other words", "its API has no services", swarm.Info{}, false},
	} {
		require.Equal(t, tt.says, noManager(tt.info, tt.can), tt.name)
	}
}

func TestAnEngineOfNoSwarmIsRefused(t *testing.T) {
	engineOrSkip(t)
	_, err := DialSwarm(t.Context(), Options{URL: engineURL(), Host: "prod"})
	var unfit *UnfitError
	require.ErrorAs(t, err, &unfit)
	require.Contains(t, unfit.Says, "as a swarm: it ")
	require.NotEmpty(t, unfit.Hint)
}

// It ends managers, so it has a swarm of its own: three of them, and a worker.
func TestLastOnSwarmWithoutQuorumNothingIsSeen(t *testing.T) {
	swarmOrSkip(t)
	nodes, pids := strings.Fields(os.Getenv("GITRING_SWARM_NODES")), strings.Fields(os.Getenv("GITRING_SWARM_PIDS"))
	if len(nodes) != 4 {
		t.Skip("it takes three managers and a worker: make swarm")
	}
	_, err := DialSwarm(t.Context(), Options{URL: nodes[3], Host: "prod"})
	var unfit *UnfitError
	require.ErrorAs(t, err, &unfit)
	require.Contains(t, unfit.Says, "it is a worker")

	r := realSwarmRig(t, 0)
	withoutQuorum(t, r, func() {
		for _, pid := range pids[1:3] {
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(n, syscall.SIGKILL))
		}
	})
}

func TestSwarmInMemoryWithoutQuorumNothingIsSeen(t *testing.T) {
	r, m := memorySwarmRig(t, 0)
	withoutQuorum(t, r, m.LoseQuorum)
}

// withoutQuorum is that nothing is seen and nothing is sent once too few managers are left.
func withoutQuorum(t *testing.T, r *swarmRig, lose func()) {
	a := r.action(func(_ *ring.Action, s *ring.Service) {
		s.Spec.Cluster.Constraints = []string{"node.hostname == node-1"}
	})
	r.must(t, a)
	r.await(t, "whole", serving(a.Version, 2))
	lose()
	for until := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		seen, err := r.Look(ctx)
		cancel()
		if err != nil && strings.Contains(err.Error(), "no quorum") {
			require.Zero(t, seen)
			var e *ring.EngineError
			require.ErrorAs(t, err, &e)
			require.True(t, e.NoQuorum)
			break
		}
		require.True(t, time.Now().Before(until), "what is said instead: %v", err)
	}
	next := r.action(command("serve", "2"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := r.Do(ctx, next)
	require.Error(t, err, "nothing is sent")
	list, err := r.c.ContainerList(t.Context(), container.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list, 2, "what runs goes on")
}
