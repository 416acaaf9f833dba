package runtime

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// theirs is a container of a Compose project in a folder.
func theirs(project, dir, state string, more ...func(*container.Summary)) container.Summary {
	c := container.Summary{
		ID: "0123456789abcdef", Names: []string{"/" + project + "-db-1"}, State: state,
		Labels: map[string]string{
			"com.docker.compose.project": project, "com.docker.compose.service": "db", "com.docker.compose.oneoff": "False",
			"com.docker.compose.project.working_dir": dir, "com.docker.compose.project.config_files": dir + "/compose.yaml",
		},
	}
	for _, m := range more {
		m(&c)
	}
	return c
}

func bound(source, target string) func(*container.Summary) {
	return func(c *container.Summary) {
		c.Mounts = append(c.Mounts, container.MountPoint{Type: mount.TypeBind, Source: source, Destination: target})
	}
}

func writable(kind mount.Type, name, source, target string) func(*container.Summary) {
	return func(c *container.Summary) {
		c.Labels["gitring.service"] = "db"
		c.Mounts = append(c.Mounts, container.MountPoint{Type: kind, Name: name, Source: source, Destination: target, RW: true})
	}
}

func withLabels(more map[string]string) func(*container.Summary) {
	return func(c *container.Summary) {
		for k, v := range more {
			c.Labels[k] = v
		}
	}
}

// ourOwn makes a container one of this host's gitring.
func ourOwn(app, path string) func(*container.Summary) {
	return withLabels(map[string]string{
		"gitring.host": "edge-1", "gitring.app": app, "com.docker.compose.project": app,
		"com.docker.compose.project.working_dir": path, "com.docker.compose.project.config_files": path + "/compose.yaml",
	})
}

func madeFor(name, project, key string) *volume.Volume {
	return &volume.Volume{Name: name, Labels: map[string]string{"com.docker.compose.project": project, "com.docker.compose.volume": key}}
}

// oursOf is a volume that gitring made when shop had another name, in a source.
func oursOf(app, source string, edit ...func(*ring.App)) *volume.Volume {
	a := shop(append(edit, func(a *ring.App) { a.Name, a.Source = app, source })...)
	return &volume.Volume{Name: app + "_pg", Labels: volumeLabels("edge-1", a, "pg", nil)}
}

// anothers is the same of another gitring's.
func anothers(host string, v *volume.Volume) *volume.Volume {
	v.Labels[labelHost] = host
	return v
}

// from has shop take its volume over from another app.
func from(app string) func(*ring.App) {
	return func(a *ring.App) { a.Volumes[0].Name, a.Volumes[0].From = app+"_pg", app }
}

func ofSource(source string) func(*container.Summary) {
	return withLabels(map[string]string{"gitring.source": source})
}

func elsewhereFolder(a *ring.App) { a.Path, a.Files = "apps/blog", []string{"apps/blog/compose.yaml"} }

const namelessID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// nameless is an anonymous volume of a container of Compose's.
func nameless(target string) func(*container.Summary) {
	return func(c *container.Summary) {
		c.Labels["com.docker.compose.container-number"] = "1"
		c.Mounts = append(c.Mounts, container.MountPoint{Type: mount.TypeVolume, Name: namelessID, Destination: target, RW: true})
	}
}

// partOfVolume has the shop mount a part of its volume.
func partOfVolume(a *ring.App) { a.Services[0].Spec.Mounts[0].Subpath = "sub" }

// shop is an app with a volume, a data folder and a network.
func shop(edit ...func(*ring.App)) *ring.App {
	app := &ring.App{
		Name: "shop", Source: "prod", Path: "apps/shop", Files: []string{"apps/shop/compose.yaml"},
		Networks: []ring.Network{{Key: "default"}}, Volumes: []ring.Volume{{Key: "pg"}},
		Services: []ring.Service{{
			Name: "db", File: "apps/shop/compose.yaml", Line: 3,
			Places: map[string]ring.Place{"volumes./pg": {File: "apps/shop/compose.yaml", Line: 7}},
			Spec: ring.Spec{
				Mounts: []ring.Mount{
					{Kind: ring.MountVolume, Source: "pg", Target: "/pg"},
					{Kind: ring.MountData, Source: "apps/shop/data", Target: "/data"},
					{Kind: ring.MountVolume, Source: "db_{slot}_0a0a0a0a", Target: "/anonymous"},
				},
				Networks: []ring.Attachment{{Network: "default"}},
			},
		}},
	}
	for _, e := range edit {
		e(app)
	}
	return app
}

func atRoot(a *ring.App) {
	a.Path, a.Files = ".", []string{"compose.yaml"}
	a.Services[0].Spec.Mounts[1].Source = "data"
}

func external(a *ring.App) {
	a.Volumes[0].External = "their_pg"
	a.Networks[0].External = "their_net"
}

func onBridge(a *ring.App) {
	s := &a.Services[0]
	s.Spec.NetworkMode, s.Spec.Networks = "bridge", nil
	s.Places = map[string]ring.Place{"network_mode": {File: "compose.yaml", Line: 9}}
}

func TestAnAppIsAdmittedOnlyBesideWhatItCannotHarm(t *testing.T) {
	const running, exited = "running", "exited"
	net := func(name string, l map[string]string) network.Summary { return network.Summary{Name: name, Labels: l} }
	all := func(cs ...container.Summary) []container.Summary { return cs }
	vols := func(vs ...*volume.Volume) []*volume.Volume { return vs }
	const ofSelf = "gitring itself runs in container shop-db-1 of this app, and cannot replace the container that it runs in"
	for _, tt := range []struct {
		name   string
		app    *ring.App
		was    *ring.App
		kept   []string
		makers map[string]string
		here   beside
		code   ring.Code // "" admits
		says   string
		hints  []string
		not    string // in the hint
		told   string
		line   int
	}{
		{name: "a host with nothing on it", app: shop()},
		{name: "a part of a volume, on an engine that can", app: shop(partOfVolume), here: beside{api: "1.45"}},
		{
			name: "a part of a volume, on an engine that is older", app: shop(partOfVolume), here: beside{api: "1.44"},
			code: ring.Unsupported, says: "services.db mounts sub of volume pg at /pg, which needs Docker 26 (API 1.45), and this engine has API 1.44",
			hints: []string{"update the engine, or mount the whole volume"}, line: 7,
		},
		{
			name: "its project runs under Compose", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/shop", running), theirs("shop", "/opt/shop", "paused"), theirs("shop", "/opt/shop", "restarting"))},
			code: ring.ForeignProject, says: "a Compose project shop runs here that gitring did not start (shop-db-1, shop-db-1, shop-db-1)",
			hints: []string{"docker compose down in /opt/shop", "never with -v"},
		},
		{
			name: "its project is stopped under Compose", app: shop(), here: beside{containers: all(theirs("shop", "/opt/shop", exited))},
			told: "container shop-db-1 of Compose project shop is not ours and is stopped; it stays as it is",
		},
		{
			name: "its project is stopped under Compose and comes back with the engine", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/shop", exited)), returning: map[string]bool{"0123456789abcdef": true}},
			code: ring.ForeignProject, says: "a stopped Compose project shop is started again with the engine, beside the app (restart: always of shop-db-1)",
			hints: []string{"docker compose down in /opt/shop", "never with -v"},
		},
		{
			name: "its project runs with an anonymous volume", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/shop", running, nameless("/anonymous")))},
			code: ring.ForeignProject, hints: []string{
				"what db has in /anonymous is in an anonymous volume that the app would not find",
				"volumes: {db-data: {external: true, name: " + namelessID + "}} and mount db-data at /anonymous",
			},
		},
		{
			name: "its project is stopped with an anonymous volume", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/shop", exited, nameless("/anonymous")))},
			code: ring.VolumeElsewhere, says: "Compose project shop keeps what db has in /anonymous in an anonymous volume, and the app would begin with an empty shop_db_1_0a0a0a0a",
			hints: []string{"external: true", "docker rm"},
		},
		{
			name: "an anonymous volume at another place", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/shop", exited, nameless("/cache")))},
			told: "container shop-db-1 of Compose project shop is not ours and is stopped; it stays as it is",
		},
		{
			name: "its own in the stead of an anonymous one is here", app: shop(),
			here: beside{
				containers: all(theirs("shop", "/opt/shop", exited, nameless("/anonymous"))),
				volumes:    vols(madeFor("shop_db_1_0a0a0a0a", "shop", "db_1_0a0a0a0a")),
			},
			told: "container shop-db-1 of Compose project shop is not ours and is stopped; it stays as it is",
		},
		{
			name: "gitring runs in it", app: shop(), here: beside{self: theirs("shop", "/opt/shop", running).ID, containers: all(theirs("shop", "/opt/shop", running))},
			code: ring.Self, says: ofSelf, hints: []string{"exclude:", "docker compose up -d"}, not: "adopt",
		},
		{
			name: "gitring runs in it, and knows its short ID alone", app: shop(), here: beside{self: theirs("shop", "/opt/shop", running).ID[:12], containers: all(theirs("shop", "/opt/shop", running))},
			code: ring.Self, says: ofSelf,
		},
		{
			name: "gitring runs in it, and an older release took it over", app: shop(), here: beside{
				host: "edge-1", self: theirs("shop", "/opt/shop", running).ID, containers: all(theirs("shop", "/opt/shop", running)),
				adopted: map[string]bool{theirs("shop", "/opt/shop", running).ID: true},
			},
			code: ring.Self, says: ofSelf,
		},
		{
			name: "a host name that is no ID", app: shop(), here: beside{self: "0123", containers: all(theirs("shop", "/opt/shop", running))},
			code: ring.ForeignProject,
		},
		{name: "its own containers run", app: shop(), here: beside{containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop")))}},
		{
			name: "another host's gitring runs it on this engine", app: shop(),
			here: beside{containers: all(theirs("shop", "apps/shop", running, withLabels(map[string]string{"gitring.host": "edge-2"})))},
			code: ring.ForeignProject, says: "an app shop of host edge-2 is on this engine (shop-db-1)",
			hints: []string{"another name on one of the two hosts", "write host: edge-2"},
		},
		{name: "another project runs", app: shop(), here: beside{containers: all(theirs("blog", "/opt/blog", running))}},
		{
			name: "its project runs with the data beside the file", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/infra/apps/shop", running, bound("/opt/infra/apps/shop/data", "/data"), bound("/etc/localtime", "/etc/localtime")))},
			code: ring.ForeignProject, hints: []string{"mkdir -p /srv/apps/shop && mv -T /opt/infra/apps/shop/data /srv/apps/shop/data"},
		},
		{
			name: "its project is down and the data is still beside the file", app: shop(),
			here: beside{containers: all(theirs("shop", "/opt/shop", exited, bound("/opt/shop/data", "/data")))},
			code: ring.VolumeElsewhere, says: "Compose project shop keeps the app's data in /opt/shop/data, and the app would begin with an empty /srv/apps/shop/data",
			hints: []string{"mv -T /opt/shop/data /srv/apps/shop/data", "docker rm"},
		},
		{
			name: "the data was moved already", app: shop(),
			here: beside{
				containers: all(theirs("shop", "/opt/shop", exited, bound("/opt/shop/data", "/data"))),
				folders:    map[string]filling{"/srv/apps/shop/data": filled},
			},
			told: "container shop-db-1 of Compose project shop is not ours and is stopped; it stays as it is",
		},
		{
			name: "an empty folder of the app in force is its own", app: shop(), was: shop(),
			here: beside{
				containers: all(theirs("shop", "/opt/shop", exited, bound("/opt/shop/data", "/data"))),
				folders:    map[string]filling{"/srv/apps/shop/data": empty},
			},
			told: "container shop-db-1 of Compose project shop is not ours and is stopped; it stays as it is",
		},
		{name: "Compose's own volume under the same name", app: shop(), here: beside{volumes: vols(madeFor("shop_pg", "shop", "pg"))}},
		{
			name: "its volume under a project of the folder's name, without containers", app: shop(func(a *ring.App) { a.Path = "apps/My.Store" }),
			here: beside{volumes: vols(madeFor("mystore_pg", "mystore", "pg"))}, line: 7,
			code: ring.VolumeElsewhere, says: "volume pg of this project is here as mystore_pg, of project mystore; the app would begin with an empty shop_pg",
			hints: []string{"name: mystore", "volumes: {pg: {external: true, name: mystore_pg}}", "docker volume create shop_pg"},
		},
		{
			name: "its volume under a project started from the folder", app: shop(),
			here: beside{volumes: vols(madeFor("prod_pg", "prod", "pg")), containers: all(theirs("prod", "/home/me/shop", exited))},
			code: ring.VolumeElsewhere, hints: []string{"name: prod"},
		},
		{
			name: "its volume under the name that gitring ran the folder as before", app: shop(func(a *ring.App) { a.Name = "store" }),
			here: beside{volumes: vols(madeFor("shop_pg", "shop", "pg")), containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop")))},
			code: ring.VolumeElsewhere, hints: []string{"name: shop"},
		},
		{
			name: "another app of the same folder, from another file", app: shop(func(a *ring.App) { a.Name, a.Files = "store", []string{"apps/shop/two.yaml"} }),
			here: beside{volumes: vols(madeFor("shop_pg", "shop", "pg")), containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop")))},
		},
		{
			name: "its volume under its former name, of which no container is left", app: shop(func(a *ring.App) { a.Name = "store" }),
			here: beside{volumes: vols(oursOf("old", "prod"))},
			code: ring.VolumeElsewhere, hints: []string{"name: old"},
		},
		{
			name: "its volume under another host's name, where one more gitring serves the engine or this one was called so", app: shop(func(a *ring.App) { a.Name = "store" }),
			here: beside{
				volumes:    vols(anothers("blue", oursOf("shop", "prod"))),
				containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"), withLabels(map[string]string{"gitring.host": "blue", "gitring.source": "prod"}))),
			},
			code: ring.VolumeElsewhere, says: "volume pg of this app is here as shop_pg, of app shop of host blue; the app would begin with an empty store_pg",
			hints: []string{"if host blue is another gitring", "docker volume create store_pg", "host: blue"}, not: "name: shop",
		},
		{
			name: "a volume of an app that another host of this engine runs, asked for by name", app: shop(func(a *ring.App) {
				a.Name, a.Volumes = "store", []ring.Volume{{Key: "pg", External: "shop_pg"}}
			}),
			here: beside{
				volumes:    vols(anothers("blue", oursOf("shop", "prod"))),
				containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"), withLabels(map[string]string{"gitring.host": "blue", "gitring.source": "prod"}))),
			},
			code: ring.ForeignProject, hints: []string{"an app of host blue", "host: blue"}, not: "docker compose down",
		},
		{
			name: "a root app of another source with the same volume", app: shop(atRoot, func(a *ring.App) { a.Name = "blog" }),
			here: beside{sources: []string{"prod", "blog"}, volumes: vols(oursOf("old", "blog", atRoot)), containers: all(theirs("old", "", running, ourOwn("old", "."), withLabels(map[string]string{
				"gitring.source": "blog", "com.docker.compose.project.config_files": "compose.yaml",
			})))},
		},
		{
			name: "a root app of a source that was renamed", app: shop(atRoot),
			here: beside{sources: []string{"prod"}, volumes: vols(oursOf("old", "former", atRoot))},
			code: ring.VolumeElsewhere, hints: []string{"name: old"},
		},
		{
			name: "a volume of the same key of another project", app: shop(),
			here: beside{volumes: vols(madeFor("blog_pg", "blog", "pg")), containers: all(theirs("blog", "/opt/blog", running))},
		},
		{name: "a volume taken over from an app that runs here", app: shop(from("blog")), here: beside{
			containers: all(theirs("blog", "", running, ourOwn("blog", "apps/blog"))), volumes: vols(oursOf("blog", "prod", elsewhereFolder)),
		}},
		{name: "a volume taken over from an app that left", app: shop(from("blog")), here: beside{volumes: vols(oursOf("blog", "prod", elsewhereFolder))}},
		{name: "a volume of Compose's, taken over by the app in force from one that left since", app: shop(from("blog")), was: shop(from("blog")), here: beside{
			volumes: vols(madeFor("blog_pg", "blog", "pg")),
		}},
		{name: "its volume under the name that gitring ran the folder as before, and it is to begin empty", app: shop(func(a *ring.App) { a.Name, a.Volumes[0].From = "store", ring.FromNone }), here: beside{
			volumes: vols(madeFor("shop_pg", "shop", "pg")), containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"))),
		}},
		{name: "the same by a signed answer", app: shop(func(a *ring.App) { a.Name, a.Empty = "store", []string{"volume store_pg"} }), here: beside{
			volumes: vols(madeFor("shop_pg", "shop", "pg")), containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"))),
		}},
		{
			name: "an answer about another volume", app: shop(func(a *ring.App) { a.Name, a.Empty = "store", []string{"volume store_other"} }),
			here: beside{volumes: vols(madeFor("shop_pg", "shop", "pg")), containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop")))},
			code: ring.VolumeElsewhere,
		},
		{
			name: "the database is lost, and an instance has what a signed answer gave the app", app: shop(), line: 7,
			here: beside{
				volumes:    vols(oursOf("blog", "prod", elsewhereFolder)),
				containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"), ofSource("prod"), writable(mount.TypeVolume, "blog_pg", "", "/pg"))),
			},
			code: ring.VolumeElsewhere, says: "instance shop-db-1 has its data in blog_pg, and the app would begin with an empty shop_pg",
			hints: []string{"volumes: {pg: {name: blog_pg, x-gitring: {from: blog}}}", "docker volume create shop_pg"},
		},
		{
			name: "the database is lost, and its instance is stopped", app: shop(),
			here: beside{containers: all(theirs("shop", "", exited, ourOwn("shop", "apps/shop"), ofSource("prod"), writable(mount.TypeVolume, "blog_pg", "", "/pg")))},
			code: ring.VolumeElsewhere, hints: []string{"volumes: {pg: {name: blog_pg}}"},
		},
		{
			name: "the database is lost, and an instance has another folder", app: shop(),
			here: beside{containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"), ofSource("prod"), writable(mount.TypeBind, "", "/srv/blog/data", "/data")))},
			code: ring.VolumeElsewhere, says: "instance shop-db-1 has its data in /srv/blog/data, and the app would begin with an empty /srv/apps/shop/data",
			hints: []string{"docker stop $(docker ps -q -f label=gitring.app=shop), mkdir -p /srv/apps/shop && mv -T /srv/blog/data /srv/apps/shop/data", "to begin empty: mkdir -p /srv/apps/shop/data"},
		},
		{name: "the database is lost, and an instance has what the app wants", app: shop(), here: beside{
			volumes: vols(oursOf("shop", "prod")), folders: map[string]filling{"/srv/apps/shop/data": filled},
			containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"), ofSource("prod"), writable(mount.TypeVolume, "shop_pg", "", "/pg"), writable(mount.TypeBind, "", "/srv/apps/shop/data", "/data"))),
		}},
		{name: "an instance of an app in force has what that had", app: shop(), was: shop(from("blog")), here: beside{
			containers: all(theirs("shop", "", running, ourOwn("shop", "apps/shop"), ofSource("prod"), writable(mount.TypeVolume, "blog_pg", "", "/pg"))),
		}},
		{
			name: "a volume taken over from a project that gitring never ran", app: shop(from("blog")),
			here: beside{volumes: vols(madeFor("blog_pg", "blog", "pg"))},
			code: ring.PolicyDenied, says: "volume blog_pg belongs to project blog", hints: []string{"docker volume create"},
		},
		{
			name: "a volume taken over from an app of another host", app: shop(from("blog")),
			here: beside{volumes: vols(anothers("edge-2", oursOf("blog", "prod", elsewhereFolder)))},
			code: ring.PolicyDenied, says: "volume blog_pg belongs to project blog", hints: []string{"docker volume create"},
		},
		{name: "a volume of Compose's, taken over from an app that runs here", app: shop(from("blog")), here: beside{
			containers: all(theirs("blog", "", running, ourOwn("blog", "apps/blog"), ofSource("prod"))), volumes: vols(madeFor("blog_pg", "blog", "pg")),
		}},
		{
			name: "a volume taken over, of another host, while an app of that name runs here", app: shop(from("blog")),
			here: beside{volumes: vols(anothers("edge-2", oursOf("blog", "prod", elsewhereFolder))), containers: all(theirs("blog", "", running, ourOwn("blog", "apps/blog"), ofSource("prod")))},
			code: ring.PolicyDenied, says: "volume blog_pg belongs to project blog", hints: []string{"docker volume create"},
		},
		{
			name: "a volume taken over, of Compose's, while another source's app of that name runs here", app: shop(from("blog")),
			here: beside{volumes: vols(madeFor("blog_pg", "blog", "pg")), containers: all(theirs("blog", "", running, ourOwn("blog", "apps/blog"), ofSource("lab")))},
			code: ring.PolicyDenied, says: "volume blog_pg belongs to project blog", hints: []string{"docker volume create"},
		},
		{
			name: "a volume taken over, of another source", app: shop(from("blog")),
			here: beside{volumes: vols(oursOf("blog", "lab", elsewhereFolder)), containers: nil},
			code: ring.PolicyDenied, says: "volume blog_pg belongs to project blog", hints: []string{"docker volume create"},
		},
		{
			name: "an app at the root and a project of the same services", app: shop(atRoot),
			here: beside{volumes: vols(madeFor("infra_pg", "infra", "pg")), containers: all(theirs("infra", "/opt/infra", running))},
			code: ring.VolumeElsewhere, hints: []string{"name: infra"},
		},
		{
			name: "an app at the root and a project of other services", app: shop(atRoot),
			here: beside{volumes: vols(madeFor("infra_pg", "infra", "pg")), containers: all(theirs("infra", "/opt/infra", running, withLabels(map[string]string{"com.docker.compose.service": "web"})))},
		},
		{
			name: "an app at the root and a project with the same volumes, without containers", app: shop(atRoot),
			here: beside{volumes: vols(madeFor("infra_pg", "infra", "pg"))}, code: ring.VolumeElsewhere, hints: []string{"name: infra"},
		},
		{
			name: "an app at the root and a project with more volumes", app: shop(atRoot),
			here: beside{volumes: vols(madeFor("infra_pg", "infra", "pg"), madeFor("infra_x", "infra", "x"))},
		},
		{
			name: "what is external and missing, all at once", app: shop(external), line: 7,
			code: ring.BadValue, says: "volume their_pg is external and not on this host (and 1 more: network their_net is external and not on this host)",
			hints: []string{"docker volume create their_pg"},
		},
		{
			name: "an external network that is missing", app: shop(external), here: beside{volumes: vols(&volume.Volume{Name: "their_pg"})},
			code: ring.BadValue, says: "network their_net is external and not on this host", hints: []string{"docker network create their_net"},
		},
		{
			name: "an external network that another app of the commit makes", app: shop(external), here: beside{volumes: vols(&volume.Volume{Name: "their_pg"})},
			makers: map[string]string{"their_net": "edge"},
			code:   ring.BadValue, says: "network their_net is external and not on this host yet", hints: []string{"app edge of this commit makes it, and this app follows by itself"},
		},
		{
			name: "external ones of nobody", app: shop(external),
			here: beside{volumes: vols(&volume.Volume{Name: "their_pg"}), networks: []network.Summary{net("their_net", nil)}},
		},
		{
			name: "an external network of another project", app: shop(external),
			here: beside{volumes: vols(&volume.Volume{Name: "their_pg"}), networks: []network.Summary{net("their_net", map[string]string{"com.docker.compose.project": "proxy"})}},
		},
		{
			name: "the engine's own network, of an engine without", app: shop(onBridge), here: beside{networks: []network.Summary{net("host", nil), net("none", nil)}}, line: 9,
			code: ring.Unsupported, says: "network_mode: bridge needs the engine's own network, and this engine has none (dockerd --bridge none)", hints: []string{"take network_mode out"},
		},
		{
			name: "the engine's own network", app: shop(onBridge), here: beside{networks: []network.Summary{net("bridge", nil)}},
		},
		{
			name: "the engine's own network, of Podman", app: shop(onBridge), here: beside{podman: true, networks: []network.Summary{net("bridge", nil)}}, line: 9,
			code: ring.Unsupported, says: "network_mode: bridge is Docker's own network, and Podman's is another one (podman), where services do not find each other", hints: []string{"take network_mode out"},
		},
		{
			name: "an external network for Swarm only", app: shop(external),
			here: beside{volumes: vols(&volume.Volume{Name: "their_pg"}), networks: []network.Summary{{Name: "their_net", Scope: "swarm"}}},
			code: ring.BadValue, says: "network their_net takes Swarm services only", hints: []string{"--attachable"},
		},
		{
			name: "an external volume of another project", app: shop(external),
			here: beside{
				volumes:  vols(madeFor("their_pg", "their", "pg")),
				networks: []network.Summary{net("their_net", nil)},
			},
			code: ring.PolicyDenied, says: "volume their_pg belongs to project their", hints: []string{"docker volume create"},
		},
		{
			name: "an external volume of this folder's project", app: shop(external),
			here: beside{
				volumes: vols(madeFor("their_pg", "their", "pg")), containers: all(theirs("their", "/opt/shop", exited)),
				networks: []network.Summary{net("their_net", nil)},
			},
		},
		{
			name: "an external volume of this folder's project, which runs", app: shop(external),
			here: beside{
				volumes: vols(madeFor("their_pg", "their", "pg")), containers: all(theirs("their", "/opt/shop", running)),
				networks: []network.Summary{net("their_net", nil)},
			},
			code: ring.ForeignProject, says: "project their runs here on volume their_pg (their-db-1)", hints: []string{"docker compose down in /opt/shop"},
		},
		{
			name: "a volume of another app of gitring", app: shop(func(a *ring.App) { a.Volumes[0].Name = "blog_pg" }),
			here: beside{volumes: vols(&volume.Volume{Name: "blog_pg", Labels: map[string]string{"gitring.app": "blog", "gitring.host": "edge-1"}})},
			code: ring.PolicyDenied, says: "volume blog_pg belongs to project blog",
		},
		{
			name: "a named volume of an app that was renamed", app: shop(func(a *ring.App) { a.Volumes[0].Name = "pg" }),
			here: beside{volumes: vols(&volume.Volume{Name: "pg", Labels: map[string]string{"gitring.app": "blog", "gitring.host": "edge-1", "gitring.source": "prod"}})},
			code: ring.PolicyDenied, says: "volume pg belongs to project blog", hints: []string{"where app blog has become shop: volumes: {pg: {x-gitring: {from: blog}}}", "docker volume create"},
		},
		{
			name: "a named volume of another host's app", app: shop(func(a *ring.App) { a.Volumes[0].Name = "pg" }),
			here: beside{volumes: vols(&volume.Volume{Name: "pg", Labels: map[string]string{"gitring.app": "blog", "gitring.host": "edge-2", "gitring.source": "prod"}})},
			code: ring.PolicyDenied, says: "volume pg belongs to project blog", hints: []string{"use a volume of the app's own"},
		},
		{
			name: "its own volume of the days when the host had another name", app: shop(),
			here: beside{volumes: vols(&volume.Volume{Name: "shop_pg", Labels: map[string]string{"gitring.app": "shop", "gitring.host": "old"}})},
		},
		{
			name: "a network under its name that is another project's", app: shop(func(a *ring.App) { a.Networks[0].Name = "proxy" }),
			here: beside{networks: []network.Summary{net("proxy", map[string]string{"com.docker.compose.project": "traefik"})}},
			code: ring.PolicyDenied, says: "network proxy belongs to project traefik", hints: []string{"external: true, name: proxy"},
		},
		{
			name: "a network of its name that nobody says whose it is", app: shop(), here: beside{networks: []network.Summary{net("shop_default", map[string]string{"mine": "yes"})}},
			code: ring.BadValue, says: "network shop_default is here, made by neither gitring nor Compose",
			hints: []string{"networks: {default: {external: true, name: shop_default}}", "docker network rm shop_default"},
		},
		{name: "the same network, and the app is on it already", app: shop(), was: shop(), here: beside{networks: []network.Summary{net("shop_default", nil)}}},
		{
			name: "a volume of its name that nobody says whose it is", app: shop(), here: beside{volumes: vols(&volume.Volume{Name: "shop_pg"})},
			told: "volume shop_pg was here before, made by neither gitring nor Compose; the app uses it with what is in it",
		},
		{name: "the same volume, and the app has it already", app: shop(), was: shop(), here: beside{volumes: vols(&volume.Volume{Name: "shop_pg"})}},
		{name: "its own network", app: shop(), here: beside{networks: []network.Summary{net("shop_default", map[string]string{"gitring.app": "shop"})}}},
		{name: "Compose's network", app: shop(), here: beside{networks: []network.Summary{net("shop_default", map[string]string{"com.docker.compose.project": "shop"})}}},
		{
			name: "the data root moved and the data did not", app: shop(func(a *ring.App) { a.DataRoot = "/mnt" }), was: shop(),
			here: beside{folders: map[string]filling{"/srv/apps/shop/data": filled, "/mnt/apps/shop/data": empty}},
			code: ring.VolumeElsewhere, says: "the app's data is in /srv/apps/shop/data, and it would begin with an empty /mnt/apps/shop/data",
			hints: []string{"mkdir -p /mnt/apps/shop && mv -T /srv/apps/shop/data /mnt/apps/shop/data", "label=gitring.app=shop"},
		},
		{
			name: "the data root moved and the data too", app: shop(func(a *ring.App) { a.DataRoot = "/mnt" }), was: shop(),
			here: beside{folders: map[string]filling{"/mnt/apps/shop/data": filled, "/srv/apps/shop/data": filled}},
		},
		{
			name: "the folder of the app moved in the repository", app: shop(func(a *ring.App) {
				a.Path, a.Services[0].Spec.Mounts[1].Source = "shop", "shop/data"
			}), was: shop(),
			here: beside{folders: map[string]filling{"/srv/apps/shop/data": filled}},
			code: ring.VolumeElsewhere, says: "the app's data is in /srv/apps/shop/data, and it would begin with an empty /srv/shop/data",
		},
		{
			name: "the data root moved and nothing was in it", app: shop(func(a *ring.App) { a.DataRoot = "/mnt" }), was: shop(),
			here: beside{folders: map[string]filling{"/srv/apps/shop/data": empty}},
		},
		{
			name: "the data root moved and the old disk is away", app: shop(func(a *ring.App) { a.DataRoot = "/mnt" }), was: shop(),
			kept: []string{"data /srv/apps/shop/data"},
			code: ring.VolumeElsewhere, says: "the app's data was in /srv/apps/shop/data, which is gone, and /mnt/apps/shop/data is not there either",
			hints: []string{"is its disk mounted?", "mkdir -p /mnt/apps/shop/data"},
		},
		{
			name: "the author mounts another folder", app: shop(func(a *ring.App) { a.Services[0].Spec.Mounts[1].Source = "apps/shop/other" }), was: shop(),
			here: beside{folders: map[string]filling{"/srv/apps/shop/data": filled}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ring.Action{Kind: ring.DoAdmit, App: tt.app.Name, Commit: "c0ffee", Of: tt.app, Was: tt.was, Kept: tt.kept, Makers: tt.makers}
			tt.here.host, tt.here.root = "edge-1", "/srv"
			told, all := admit(a, tt.here)
			if tt.code == "" {
				require.Equal(t, tt.told, strings.Join(told, "\n"))
				require.Empty(t, all)
				return
			}
			require.NotEmpty(t, all)
			r := joined(all)
			require.Equal(t, tt.code, r.Code, "%v", r)
			if tt.says != "" {
				require.Equal(t, tt.says, r.Says)
			}
			for _, h := range tt.hints {
				require.Contains(t, r.Hint, h)
			}
			if tt.not != "" {
				require.NotContains(t, r.Hint, tt.not)
			}
			require.Equal(t, ring.SHA("c0ffee"), r.Commit)
			require.Equal(t, tt.app.Name, r.App)
			require.NotEmpty(t, r.File)
			if tt.line > 0 {
				require.Equal(t, tt.line, r.Line)
			}
		})
	}
}

// Who follows an app under another name must be told apart from who wants what stays.
func TestAdmissionNamesTheAppThatTakesWithItWhatIsInTheWay(t *testing.T) {
	ours := map[string]string{"gitring.host": "edge-1", "gitring.app": "store", "com.docker.compose.project": "store"}
	app := shop(func(a *ring.App) { a.Networks[0].Name = "proxy" })
	net := func(l map[string]string) []network.Summary { return []network.Summary{{Name: "proxy", Labels: l}} }
	pg := []*volume.Volume{{Name: "shop_pg", Labels: ours}}
	of := func(b beside) string {
		b.host, b.root = "edge-1", "/srv"
		_, all := admit(ring.Action{Kind: ring.DoAdmit, App: app.Name, Commit: "c0ffee", Of: app}, b)
		require.NotEmpty(t, all)
		return joined(all).Owner
	}
	require.Equal(t, "store", of(beside{networks: net(ours)}))
	require.Empty(t, of(beside{networks: net(map[string]string{"com.docker.compose.project": "traefik"})}), "nothing of this host's")
	require.Empty(t, of(beside{volumes: pg}), "a volume stays when its app goes")
	require.Empty(t, of(beside{volumes: pg, networks: net(ours)}), "one that goes and one that stays")
}

// The engine is asked at most three things, and only for what the app has.
func TestAdmissionIsThreeListsAtMost(t *testing.T) {
	f := newFake(Options{Host: "edge-1", DataRoot: t.TempDir()})
	bare := &ring.App{Name: "shop", Path: "shop", Services: []ring.Service{{Name: "job", Spec: ring.Spec{NoNetwork: true}}}}
	calls := func(app *ring.App) map[string]int {
		before := f.Ops()
		_, err := f.Do(t.Context(), ring.Action{Kind: ring.DoAdmit, App: app.Name, Of: app})
		require.NoError(t, err)
		got := map[string]int{}
		for op, n := range f.Ops() {
			if n > before[op] && op != "Ping" && op != "ServerVersion" { // both are asked once, of an engine that is reached anew
				got[op] = n - before[op]
			}
		}
		return got
	}
	require.Equal(t, map[string]int{"ContainerList": 1}, calls(bare))
	require.Equal(t, map[string]int{"ContainerList": 1, "VolumeList": 1, "NetworkList": 1}, calls(shop()))
}

func TestAnAdmissionThatCannotSeeIsNoRefusal(t *testing.T) {
	for _, op := range []string{"ContainerList", "VolumeList", "NetworkList"} {
		f := newFake(Options{Host: "edge-1", DataRoot: t.TempDir()})
		f.Fail(func(name string, _ int) (before, after error) {
			if name == op {
				return enginetest.ErrDown, nil
			}
			return nil, nil
		})
		_, err := f.Do(t.Context(), ring.Action{Kind: ring.DoAdmit, App: "shop", Of: shop()})
		var e *ring.EngineError
		require.ErrorAs(t, err, &e)
		require.Nil(t, e.Refusal, "%s: not seen is not empty", op)
	}
}
