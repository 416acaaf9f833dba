package manifest

import (
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

// reloading is a service that mounts ./conf and reloads what the line says.
func reloading(reload string, more ...string) map[string]string {
	files := web(append([]string{"image: a", "volumes: ['./conf:/etc/app:ro']", "x-gitring: {reload: " + reload + "}"}, more...)...)
	return with(with(files, "web/conf/Caddyfile", "one"), "web/conf/sites/a", "two")
}

func service(t *testing.T, files map[string]string) (ring.Service, map[string]ring.Content) {
	t.Helper()
	plan, contents := Read(repo(files), settings())
	if len(plan.Apps) != 1 || plan.Refused != nil {
		t.Fatal(dump(t, plan))
	}
	return plan.Apps[0].Services[0], contents
}

// Lesson L58, for the files that are reloaded in place: their change moves
// the content and not the version; that of any other mounted file is a new version.
func TestTheFilesThatAreReloadedLeaveTheVersion(t *testing.T) {
	version := func(s ring.Service) ring.Version {
		return ring.VersionOf(&ring.App{Name: "web"}, &s, ring.Pin{Image: "a@sha256:1"})
	}
	for _, c := range []struct {
		name, paths string
		file        string // is changed
		same        bool
	}{
		{"the whole folder", "[./conf]", "web/conf/Caddyfile", true},
		{"a file deep in it", "[./conf]", "web/conf/sites/a", true},
		{"a folder above it", "[.]", "web/conf/sites/a", true},
		{"one file of it that is named", "[./conf/Caddyfile]", "web/conf/Caddyfile", true},
		{"one of it that is not named", "[./conf/Caddyfile]", "web/conf/sites/a", false},
		{"a folder of it that is named", "[./conf/sites]", "web/conf/sites/a", true},
		{"what is not named beside that", "[./conf/sites]", "web/conf/Caddyfile", false},
		{"a file of it that is new", "[./conf]", "web/conf/new", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := reloading("{paths: " + c.paths + ", signal: SIGUSR1}")
			before, had := service(t, files)
			after, has := service(t, with(files, c.file, "another"))
			if m := before.Spec.Mounts[0]; m.Kind != ring.MountLive || m.Source != "conf" || !m.ReadOnly || m.Target != "/etc/app" {
				t.Fatalf("the mount is %+v", m)
			}
			if (version(before) == version(after)) != c.same || (before.Written == after.Written) != c.same {
				t.Errorf("%s -> %s", version(before), version(after))
			}
			x, y := before.Reload.Live["conf"], after.Reload.Live["conf"]
			if x == y || len(had[x].Files) < 2 || len(has[y].Files) < 2 {
				t.Errorf("the content is %q, then %q, of %d and %d files", x, y, len(had[x].Files), len(has[y].Files))
			}
		})
	}
}

func TestFormsOfReload(t *testing.T) {
	for _, c := range []struct {
		name, reload string
		want         ring.Reload
	}{
		{"a signal", "{paths: [./conf], signal: SIGHUP}", ring.Reload{Paths: []string{"./conf"}, Signal: "SIGHUP"}},
		{"one path and a short signal", "{paths: conf, signal: usr1}", ring.Reload{Paths: []string{"conf"}, Signal: "SIGUSR1"}},
		{"a program", "{paths: [./conf/], exec: [caddy, reload]}", ring.Reload{Paths: []string{"./conf/"}, Exec: []string{"caddy", "reload"}}},
		{"a line for the shell", "{paths: [./conf], exec: nginx -t && nginx -s reload}", ring.Reload{Paths: []string{"./conf"}, Exec: []string{"/bin/sh", "-c", "nginx -t && nginx -s reload"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := service(t, reloading(c.reload))
			if c.want.Live = s.Reload.Live; len(c.want.Live) != 1 {
				t.Errorf("live: %v", c.want.Live)
			}
			if d := cmp.Diff(&c.want, s.Reload); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestALaterFileChangesHowReloadIsDone(t *testing.T) {
	files := reloading("{paths: [./conf], signal: SIGHUP}")
	files["web/compose.override.yaml"] = "services: {web: {x-gitring: {reload: {exec: [app, reload]}}}}\n"
	s, _ := service(t, files)
	if s.Reload.Signal != "" || len(s.Reload.Exec) != 2 || len(s.Reload.Paths) != 1 {
		t.Errorf("%+v", s.Reload)
	}
}

func TestReloadsThatCannotBe(t *testing.T) {
	single := func(reload string) map[string]string {
		return with(web("image: a", "volumes: ['./Caddyfile:/etc/caddy/Caddyfile']", "x-gitring: {reload: "+reload+"}"), "web/Caddyfile", "x")
	}
	areRefused(t, []refused{
		{name: "of a single file that is mounted", files: single("{paths: [./Caddyfile], exec: [caddy, reload]}"), code: ring.BadValue, line: 4, says: "mounts the single file ./Caddyfile", hint: "mount the folder it is in (say .:/etc/caddy)"},
		{name: "without a path", files: reloading("{signal: SIGHUP}"), code: ring.BadValue, line: 5, says: "no path is named", hint: "paths: [./conf]"},
		{name: "without an act", files: reloading("{paths: [./conf]}"), code: ring.BadValue, line: 5, says: "nothing tells the instance", hint: "signal: SIGHUP"},
		{name: "with two acts", files: reloading("{paths: [./conf], signal: SIGHUP, exec: [x]}"), code: ring.BadValue, line: 5, says: "a signal and an exec"},
		{name: "by a signal that ends it", files: reloading("{paths: [./conf], signal: SIGTERM}"), code: ring.BadValue, line: 5, says: "SIGTERM stops the service"},
		{name: "by its own stop signal", files: reloading("{paths: [./conf], signal: SIGQUIT}", "stop_signal: QUIT"), code: ring.BadValue, line: 5, says: "SIGQUIT stops the service"},
		{name: "by a kill", files: reloading("{paths: [./conf], signal: SIGKILL}"), code: ring.BadValue, line: 5, says: "no signal to reload at"},
		{name: "by a command of nothing", files: reloading("{paths: [./conf], exec: []}"), code: ring.BadValue, line: 5, says: "the reload's exec runs nothing"},
		{name: "of what is not mounted", files: with(reloading("{paths: [./conf, ./more], signal: SIGHUP}"), "web/more/x", "y"), code: ring.BadValue, line: 5, says: "no folder of the commit that the service mounts holds ./more", hint: "mount the folder"},
		{name: "of what is not there", files: reloading("{paths: [./conf/none], signal: SIGHUP}"), code: ring.BadValue, line: 5, says: "holds ./conf/none"},
		{name: "of a path of the host", files: reloading("{paths: [/etc/app], signal: SIGHUP}"), code: ring.BadValue, line: 5, says: "is not relative"},
		{name: "of what is data", files: with(web("image: a", "volumes: ['./conf:/etc/app']", "x-gitring: {mounts: {./conf: seed}, reload: {paths: [./conf], signal: SIGHUP}}"), "web/conf/a", "x"), code: ring.BadValue, line: 5, says: "cannot be seed"},
		{name: "of a job", files: reloading("{paths: [./conf], signal: SIGHUP}", "restart: 'no'"), code: ring.BadValue, line: 5, says: "a job is not reloaded"},
		{name: "with something mounted upon it", files: with(web("image: a", "volumes: ['./conf:/etc/app', './certs:/etc/app/certs']", "x-gitring: {reload: {paths: [./conf], signal: SIGHUP}}"), "web/conf/a", "x"), code: ring.BadValue, line: 4, says: "upon /etc/app", hint: "beside the folder"},
		{name: "with a name of the live folder's own", files: with(reloading("{paths: [./conf], signal: SIGHUP}"), "web/conf/..data", "x"), code: ring.BadValue, line: 4, says: "two dots"},
		{name: "with a key nobody knows", files: reloading("{path: [./conf], signal: SIGHUP}"), code: ring.UnknownKey, line: 5, hint: "paths"},
	})
}
