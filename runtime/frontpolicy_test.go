package runtime

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

func asked(body any) policy.Request {
	return policy.Request{App: "web", Service: "web", Key: "container", Body: body, DataRoot: "/srv", Path: "web"}
}

func TestAFrontAloneHasItsImageAndItsThreeMounts(t *testing.T) {
	const state, name = "/var/lib/gitring", "web-web-front-1-01234567"
	own := FrontMounts(state+"/content", name)
	others := FrontMounts(state+"/content", "blog-web-front-1-01234567")
	require.Len(t, own, 3)
	asks := func(front []ring.HostMount, image string, mounts ...mount.Mount) []string {
		q := asked(ContainerRequest{
			Name: name, Config: &container.Config{Image: image}, HostConfig: &container.HostConfig{Mounts: mounts},
		})
		q.Front = front
		var says []string
		for _, profile := range []policy.Profile{policy.Compose, policy.Owner} {
			for _, f := range policy.Check(policy.Rules{Profile: profile, Own: []string{state}, Content: state + "/content"}, q) {
				require.Equal(t, policy.Deny, f.Verdict, "no profile lets it pass")
				says = append(says, f.Rule+" "+f.Value)
			}
		}
		return says
	}
	bindOf := func(m ring.HostMount) mount.Mount {
		return mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
	}
	require.Empty(t, asks(own, "gitring/front:0123456789ab", bindOf(own[0]), bindOf(own[1]), bindOf(own[2])))
	for _, image := range []string{"gitring/front:1", "docker.io/gitring/front", "index.docker.io/gitring/front:1", "gitring/front@sha256:" + hex64} {
		require.Len(t, asks(nil, image), 2, image)
		require.Empty(t, asks(own, image), image)
	}
	require.Empty(t, asks(nil, "example.org/gitring/front:1"), "that is somebody else's")
	for _, m := range own {
		require.Len(t, asks(nil, "nginx:1", bindOf(m)), 2, "another service has none of them: %s", m.Source)
	}

	// No front has another one's, more of its own than it is given, or what lies beside.
	writable, elsewhere, deeper, above, shared := bindOf(own[0]), bindOf(own[1]), bindOf(own[1]), bindOf(own[1]), bindOf(own[1])
	writable.ReadOnly = false
	elsewhere.Target = "/elsewhere"
	deeper.Source += "/.."
	above.Source = state + "/fronts"
	shared.BindOptions = &mount.BindOptions{Propagation: mount.PropagationRShared}
	for _, m := range []mount.Mount{writable, elsewhere, deeper, above, shared, bindOf(others[0]), bindOf(others[1])} {
		require.NotEmpty(t, asks(own, "gitring/front:1", m), "%+v", m)
	}

	labelled := asked(ContainerRequest{Name: name, HostConfig: &container.HostConfig{
		Binds: []string{own[0].Source + ":/table:ro,Z", own[1].Source + ":/run/front:Z", own[2].Source + ":/front:ro,z"},
	}})
	labelled.Front = own
	require.Empty(t, policy.Check(policy.Rules{Own: []string{state}}, labelled))
	labelled.Front = nil
	require.Len(t, policy.Check(policy.Rules{Own: []string{state}}, labelled), 3)
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
