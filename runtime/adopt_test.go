package runtime

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// composed is a container of Compose's, of service db of app shop.
func composed(edit func(*container.Summary)) container.Summary {
	c := container.Summary{ID: strings.Repeat("a", 64), Names: []string{"/shop-db-1"}, State: "running", Labels: map[string]string{
		composeProject: "shop", composeService: "db", composeNumber: "1", composeOneOff: "False",
	}}
	if edit != nil {
		edit(&c)
	}
	return c
}

// planOf is an app with one service, of which a test says what it mounts.
func planOf(edit func(*ring.Service)) ring.Action {
	s := ring.Service{Name: "db", Kind: ring.Worker, Replicas: 1}
	if edit != nil {
		edit(&s)
	}
	return ring.Action{App: "shop", Of: &ring.App{Name: "shop", Path: "shop", Files: []string{"shop/compose.yaml"}, Services: []ring.Service{s}}}
}

func mounting(ms ...ring.Mount) func(*ring.Service) {
	return func(s *ring.Service) { s.Spec.Mounts = ms }
}

func TestWhatAContainerWritesMustBeWhereTheNextOneLooks(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "opt", "shop", "data")
	content := filepath.Join(root, "content")
	for _, dir := range []string{folder, filepath.Join(content, "c0ffee", "conf")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	linked := filepath.Join(root, "linked")
	require.NoError(t, os.MkdirAll(filepath.Join(linked, "shop"), 0o755))
	require.NoError(t, os.Symlink(folder, filepath.Join(linked, "shop", "data")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "extra"), nil, 0o644))
	bind := container.MountPoint{Type: mount.TypeBind, Source: folder, Destination: "/data", RW: true}
	volume := func(name string) container.MountPoint {
		return container.MountPoint{Type: mount.TypeVolume, Name: name, Destination: "/data", RW: true}
	}
	data := ring.Mount{Kind: ring.MountData, Source: "shop/data", Target: "/data"}
	for _, c := range []struct {
		name       string
		at         container.MountPoint
		plan       []ring.Mount
		root       string
		says, hint string // "" is nothing in the way
	}{
		{name: "the volume of the plan", at: volume("shop_pg"), plan: []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/data"}}},
		{
			name: "another volume", at: volume("old_pg"), plan: []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/data"}},
			says: "has volume old_pg at /data; the next one would have volume shop_pg", hint: "external: true, name: old_pg",
		},
		{
			name: "an anonymous volume", at: volume(strings.Repeat("0", 64)), plan: []ring.Mount{{Kind: ring.MountVolume, Source: ring.AnonymousVolume("db", "/data"), Target: "/data"}},
			says: "has an anonymous volume at /data", hint: "name: " + strings.Repeat("0", 64),
		},
		{name: "a volume that the plan does not mount", at: volume("old_pg"), says: "the plan mounts nothing there", hint: "mount db-data at /data"},
		{name: "a folder that the plan does not mount", at: bind, says: "the plan mounts nothing there", hint: "volumes: [" + folder + ":/data]"},
		{name: "a volume where the plan has a folder", at: volume("old_pg"), plan: []ring.Mount{data}, root: filepath.Join(root, "opt"), says: "the next one would have " + folder, hint: "name: old_pg"},
		{name: "a folder where the plan has a volume", at: bind, plan: []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/data"}}, says: "would have volume shop_pg", hint: "volumes: [" + folder},
		{name: "a folder where the plan has nothing that lasts", at: bind, plan: []ring.Mount{{Kind: ring.MountTmpfs, Target: "/data"}}, says: "would have nothing of it", hint: "volumes: ["},
		{name: "the data folder itself", at: bind, plan: []ring.Mount{data}, root: filepath.Join(root, "opt")},
		{name: "the data folder by another name of its root", at: bind, plan: []ring.Mount{data}, root: filepath.Join(root, "opt", ".", "..", "opt")},
		{name: "a data folder elsewhere", at: bind, plan: []ring.Mount{data}, root: filepath.Join(root, "srv"), says: "would have " + filepath.Join(root, "srv", "shop", "data"), hint: "set data_root: " + filepath.Join(root, "opt") + " "},
		{name: "a symlink, which no instance is given", at: bind, plan: []ring.Mount{data}, root: linked, says: "would have", hint: "mount --bind"},
		{name: "an absolute path", at: bind, plan: []ring.Mount{{Kind: ring.MountBind, Source: folder, Target: "/data/"}}},
		{name: "another absolute path", at: bind, plan: []ring.Mount{{Kind: ring.MountBind, Source: root, Target: "/data"}}, says: "would have " + root, hint: folder},
		{name: "a folder of the commit with a file that it does not hold", at: bind, plan: []ring.Mount{{Kind: ring.MountContent, Source: "c0ffee", Target: "/data"}}, says: "and not extra", hint: "commit the file"},
		{name: "a file of the commit", at: bind, plan: []ring.Mount{{Kind: ring.MountContent, Source: "c0ffee", File: "conf", Target: "/data"}}},
		{name: "what it only reads", at: container.MountPoint{Type: mount.TypeBind, Source: folder, Destination: "/data"}},
		{name: "memory", at: container.MountPoint{Type: mount.TypeTmpfs, Destination: "/data", RW: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := planOf(mounting(c.plan...))
			d := &Docker{opts: Options{Host: "edge", DataRoot: c.root, ContentDir: content}}
			refusals := d.loses(a, &a.Of.Services[0], composed(func(x *container.Summary) { x.Mounts = []container.MountPoint{c.at} }), 1)
			if c.says == "" {
				require.Empty(t, refusals)
				return
			}
			require.Len(t, refusals, 1)
			require.Equal(t, ring.VolumeElsewhere, refusals[0].Code)
			require.Contains(t, refusals[0].Says, c.says)
			require.Contains(t, refusals[0].Hint, c.hint)
		})
	}
}

func TestOnlyAnInstanceOfAServiceIsAdopted(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*container.Summary)
		plan func(*ring.Service)
		says string
	}{
		{name: "of another host's gitring", edit: func(x *container.Summary) { x.Labels[labelHost] = "other" }, says: "belongs to gitring of host other"},
		{name: "that gitring runs in", edit: func(x *container.Summary) { x.ID = "0123456789abcdef" }, says: "gitring itself runs in container"},
		{name: "by docker compose run", edit: func(x *container.Summary) { x.Labels[composeOneOff] = "True" }, says: "docker compose run"},
		{name: "of a service that the plan does not have", edit: func(x *container.Summary) { x.Labels[composeService] = "old" }, says: "runs service old, which the plan does not have"},
		{name: "of a service that reloads in place", plan: func(s *ring.Service) { s.Reload = &ring.Reload{} }, says: "cannot reload files in place"},
		{name: "of a cron job", plan: func(s *ring.Service) { s.Kind = ring.CronK }, says: "which is a cron job"},
		{name: "of a service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := beside{host: "edge", self: "0123456789ab"}.place(planOf(c.plan), composed(c.edit))
			if c.says == "" {
				require.Nil(t, r)
				require.Equal(t, "db", s.Name)
				return
			}
			require.Contains(t, r.Says, c.says)
			require.NotEmpty(t, r.Hint)
		})
	}
}

func TestEachContainerFillsASlotOfItsOwn(t *testing.T) {
	a := planOf(func(s *ring.Service) { s.Replicas = 3 })
	b := beside{host: "edge"}
	ours := composed(func(x *container.Summary) {
		x.Labels[labelHost], x.Labels[labelService], x.Labels[labelSlot] = "edge", "db", "2"
	})
	free := b.freeSlots(a.Of, project{running: []container.Summary{ours, composed(nil)}})
	require.Equal(t, []int{1, 3}, free["db"], "slot 2 is gitring's")
	require.Equal(t, 3, take(free, "db", "3"), "its own number where that is free")
	require.Equal(t, 1, take(free, "db", "7"), "else the first")
	require.Zero(t, take(free, "db", "1"), "there are no more")
	require.Zero(t, take(free, "web", "1"))
}

func TestWhatRunsAndWhatAJobLeftIsAdopted(t *testing.T) {
	state := func(id, state, status string) container.Summary {
		return composed(func(x *container.Summary) { x.ID, x.State, x.Status = id, state, status })
	}
	p := project{running: []container.Summary{state("r", "running", "Up 3 minutes")}, stopped: []container.Summary{
		state("0", "exited", "Exited (0) 3 minutes ago"), state("1", "exited", "Exited (1) 3 minutes ago"), state("c", "created", "Created"),
	}}
	ids := func(kind ring.Kind) (out []string) {
		for _, c := range (beside{host: "edge"}).candidates(planOf(func(s *ring.Service) { s.Kind = kind }).Of, p) {
			out = append(out, c.ID)
		}
		return out
	}
	require.Equal(t, []string{"r"}, ids(ring.Worker))
	require.Equal(t, []string{"0", "r"}, ids(ring.JobK))
	require.Len(t, beside{host: "edge", returning: map[string]bool{"1": true}}.coming(planOf(nil), p), 1)
}

// A key of the engine's that a later client brings must be given a word, or be
// left out knowingly.
func TestEveryKeyOfAContainerIsCompared(t *testing.T) {
	keys := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Anonymous {
				walk(f.Type)
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			keys[name] = true
			require.Contains(t, composeWords, name)
		}
	}
	walk(reflect.TypeFor[container.Config]())
	walk(reflect.TypeFor[container.HostConfig]())
	for name := range composeWords {
		require.True(t, keys[name], "%s is no key of a container", name)
	}
}

// Two daemons may share an engine: what the other one made is its own, whatever a
// row of ours says.
func TestAdoptedOrNotAContainerOfAnotherHostIsNotOurs(t *testing.T) {
	d := &Docker{opts: Options{Host: "edge"}}
	d.Adopts(map[string]bool{"a": true})
	for _, x := range []struct {
		id   string
		host any
		ours bool
	}{{"a", nil, true}, {"b", nil, false}, {"b", "edge", true}, {"a", "other", false}, {"b", "other", false}, {"a", "", false}} {
		labels := map[string]string{composeProject: "shop"}
		if host, ok := x.host.(string); ok {
			labels[labelHost] = host
		}
		require.Equal(t, x.ours, d.own(x.id, labels), "%s of %v", x.id, x.host)
	}
}

func TestWhatAMountWritesAndOutlivesItIsSeen(t *testing.T) {
	got := outlived([]container.MountPoint{
		{Type: mount.TypeVolume, Name: "shop_pg", Source: "/var/lib/docker/volumes/shop_pg/_data", RW: true},
		{Type: mount.TypeVolume, Name: "shop_ro"},
		{Type: mount.TypeBind, Source: "/srv/gitring/shop/db", RW: true},
		{Type: mount.TypeBind, Source: "/srv/gitringer/shop", RW: true},
		{Type: mount.TypeBind, Source: "/etc/app"},
		{Type: mount.TypeTmpfs, RW: true},
	}, "/srv/gitring")
	require.Equal(t, []string{"/srv/gitring/shop/db", "/srv/gitringer/shop", ring.DataRootMark + "/shop/db", "volume shop_pg"}, got)
	require.Empty(t, outlived(nil, "/srv/gitring"))
}

func TestThePortsThatAContainerHoldsAreSeen(t *testing.T) {
	got := hostPorts(&container.HostConfig{PortBindings: nat.PortMap{
		"80/tcp": {{HostPort: "8080"}, {HostIP: "127.0.0.1", HostPort: "9090"}},
		"53/udp": {{HostIP: "::1", HostPort: "53"}},
		"81/tcp": {{}, {HostPort: "0"}},
		"82/tcp": nil,
	}})
	require.Equal(t, []string{"port 127.0.0.1:9090/tcp", "port 8080/tcp", "port [::1]:53/udp"}, got)
	require.Empty(t, hostPorts(nil))
}
