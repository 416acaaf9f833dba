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
