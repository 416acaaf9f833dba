package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/gitring/gitring/ring"
)

// The oracle is Compose's own loader. What it leaves to the engine to choose is refused.
func TestPortsArePublishedAsComposeReadsThem(t *testing.T) {
	for _, ports := range []string{
		"'80'", "'8080:80'", "80:80/udp", "127.0.0.1:8080:80", "'[::1]:8080:80'", "127.0.0.1::80", "'3000-3002'", "8000-8002:9000-9002/tcp", "127.0.0.1:8000-8001:80-81/udp",
		"8000-8010:80", "127.0.0.1:8000-8010:80/udp", "{target: 80, published: '8000-8010'}", "{target: 80, published: '8080', protocol: udp, host_ip: 127.0.0.1}", "{target: 80}",
		"8000-8002:80-81", "8010-8000:80",
	} {
		files := map[string]string{"web/compose.yaml": "services: {w: {image: a, ports: [" + ports + "]}}\n"}
		want, open, wrong := composesPorts(t, files)
		plan, refusals := Check(repo(files), settings())
		switch {
		case open:
			if len(refusals) != 1 || refusals[0].Code != ring.Unsupported || !strings.Contains(refusals[0].Hint, "write one host port, such as 8000:80") {
				t.Errorf("%s: %s", ports, dump(t, refusals))
			}
		case wrong:
			if len(refusals) == 0 || refusals[0].Code != ring.BadValue {
				t.Errorf("%s: Compose refuses it, and here it says %s", ports, dump(t, refusals))
			}
		case len(plan.Apps) != 1:
			t.Errorf("%s: Compose takes it, and here it says %s", ports, dump(t, refusals))
		default:
			var got []string
			for _, p := range plan.Apps[0].Services[0].Spec.Ports {
				got = append(got, fmt.Sprintf("%s:%s:%d/%s", p.HostIP, p.HostPort, p.Container, p.Protocol))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, Compose reads %v", ports, got, want)
			}
		}
	}
}

// composesPorts are the ports of the one service as Compose hands them to the engine; open
// where the engine is to choose from a range, wrong where Compose refuses them.
func composesPorts(t *testing.T, files map[string]string) (ports []string, open, wrong bool) {
	t.Helper()
	options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(writtenFiles(t, files)), cli.WithDefaultConfigPath)
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		return nil, false, true
	}
	for _, p := range project.Services["w"].Ports {
		open = open || strings.Contains(p.Published, "-")
		ports = append(ports, fmt.Sprintf("%s:%s:%d/%s", p.HostIP, p.Published, p.Target, cmp.Or(p.Protocol, "tcp")))
	}
	slices.Sort(ports)
	return ports, open, false
}

// What gets a certificate listens where the proxy will: Compose runs the one after the other.
func TestAJobAndWhoWaitsForItsEndPublishOnePort(t *testing.T) {
	const job, waits = "image: a, restart: 'no', ports: ['80:80']", "image: b, ports: ['80:80'], depends_on: "
	files := func(services ...string) map[string]string {
		return map[string]string{"web/compose.yaml": "services:\n  " + strings.Join(services, "\n  ") + "\n"}
	}
	for name, tt := range map[string]struct {
		services []string
		change   func(*Settings)
		note     string // "" refuses
	}{
		"it waits":                 {services: []string{"cert: {" + job + "}", "web: {" + waits + "{cert: {condition: service_completed_successfully}}}"}, note: "services cert and web of web publish host port 80 in turn: web starts once cert has ended, and no later run of cert begins while web runs"},
		"the job comes last":       {services: []string{"acme: {" + waits + "{cert: {condition: service_completed_successfully}}}", "cert: {" + job + "}"}, note: "acme starts once cert has ended"},
		"it waits for who waits":   {services: []string{"cert: {" + job + "}", "db: {image: a, depends_on: {cert: {condition: service_completed_successfully}}}", "web: {" + waits + "[db]}"}, note: "web starts once cert has ended"},
		"two jobs":                 {services: []string{"cert: {" + job + "}", "test: {restart: 'no', " + waits + "{cert: {condition: service_completed_successfully}}}"}, note: "test starts once cert has ended"},
		"it waits for the start":   {services: []string{"cert: {" + job + "}", "web: {" + waits + "[cert]}"}},
		"nobody waits":             {services: []string{"cert: {" + job + "}", "web: {image: b, ports: ['80:80']}"}},
		"it may pass it over":      {services: []string{"cert: {" + job + "}", "web: {" + waits + "{cert: {condition: service_completed_successfully, required: false}}}"}},
		"it runs at each commit":   {services: []string{"cert: {" + job + ", x-gitring: {job: {run: always}}}", "web: {" + waits + "{cert: {condition: service_completed_successfully}}}"}},
		"a front publishes it":     {services: []string{"cert: {" + job + "}", "web: {x-gitring: {publish: front}, " + waits + "{cert: {condition: service_completed_successfully}}}"}},
		"both wait, and run both":  {services: []string{"cert: {image: a, restart: 'no'}", "a: {" + waits + "{cert: {condition: service_completed_successfully}}}", "b: {" + waits + "{cert: {condition: service_completed_successfully}}}"}},
		"a swarm publishes for it": {services: []string{"cert: {" + job + "}", "web: {" + waits + "{cert: {condition: service_completed_successfully}}}"}, change: func(s *Settings) { s.Swarm = true }},
	} {
		s := settings()
		if tt.change != nil {
			tt.change(&s)
		}
		plan, _ := Read(repo(files(tt.services...)), s)
		if tt.note == "" {
			if r := plan.Refused["web"]; r == nil || !strings.Contains(r.Says, "host port 80 is published by") {
				t.Errorf("%s: it is not refused: %v", name, r)
			}
			continue
		}
		if len(plan.Apps) != 1 || !strings.Contains(notes(plan.Apps[0]), tt.note) {
			t.Errorf("%s: %s", name, dump(t, plan))
		}
	}
}
