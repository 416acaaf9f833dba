package runtime

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
)

// What a plan cannot know the image says: it is judged before a container is made.
func TestAnImageThatBeginsInTheKernelsFoldersIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		app    container.Config
		image  ocispec.ImageConfig
		health []string
		rule   string // "" passes
	}{
		{"its working folder", container.Config{}, ocispec.ImageConfig{WorkingDir: "/proc/self/fd/7"}, nil, "start.working_dir"},
		{"a detour", container.Config{}, ocispec.ImageConfig{WorkingDir: "/app/../proc/self/cwd"}, nil, "start.working_dir"},
		{"the app's folder comes first", container.Config{WorkingDir: "/app"}, ocispec.ImageConfig{WorkingDir: "/proc/self/fd/7"}, nil, ""},
		{"the app's folder in the image's", container.Config{WorkingDir: "fd/7"}, ocispec.ImageConfig{WorkingDir: "/proc/self"}, nil, "start.working_dir"},
		{"its entrypoint", container.Config{}, ocispec.ImageConfig{Entrypoint: []string{"/proc/self/exe"}}, nil, "start.program"},
		{"its command", container.Config{}, ocispec.ImageConfig{Cmd: []string{"/proc/self/exe"}}, nil, "start.program"},
		{"the app's entrypoint drops its command", container.Config{Entrypoint: []string{"/x"}}, ocispec.ImageConfig{Cmd: []string{"/proc/self/exe"}}, nil, ""},
		{"a relative program in its folder", container.Config{Cmd: []string{"./self/exe"}}, ocispec.ImageConfig{WorkingDir: "/proc/"}, nil, "start.program"},
		{"its healthcheck", container.Config{}, ocispec.ImageConfig{}, []string{"CMD", "/proc/self/exe"}, "start.program"},
		{"an ordinary one", container.Config{}, ocispec.ImageConfig{WorkingDir: "/usr/src/app", Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"node"}}, []string{"CMD-SHELL", "curl -f localhost"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said, err := json.Marshal(map[string]any{"Config": map[string]any{
				"WorkingDir": tt.image.WorkingDir, "Entrypoint": tt.image.Entrypoint, "Cmd": tt.image.Cmd, "Healthcheck": map[string]any{"Test": tt.health},
			}})
			require.NoError(t, err)
			var i image.InspectResponse
			require.NoError(t, json.Unmarshal(said, &i))
			require.True(t, tt.rule == "" || namesKernel(i))
			body := ContainerRequest{Config: beginning(&tt.app, i)}
			found := policy.Check(policy.Rules{}, policy.Request{App: "web", Service: "web", Key: "container", Body: body})
			if tt.rule == "" {
				require.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			var rules []string
			for _, f := range found {
				rules = append(rules, f.Rule)
			}
			require.Contains(t, rules, tt.rule)
		})
	}
}

// A real image that begins in /proc makes no container.
func TestEngineAnImageThatBeginsInProcMakesNoContainer(t *testing.T) {
	c := engineOrSkip(t)
	r := realRig(t)
	r.judgedBy(policy.Compose)
	made, err := c.ContainerCreate(t.Context(), &container.Config{Image: r.Image, Cmd: []string{"/app"}, Labels: map[string]string{labelHost: r.Host}}, nil, nil, nil, r.App+"-seed")
	require.NoError(t, err)
	bad, err := c.ContainerCommit(t.Context(), made.ID, container.CommitOptions{Changes: []string{"WORKDIR /proc/self/fd/8"}})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := c.ImageRemove(context.WithoutCancel(t.Context()), bad.ID, image.RemoveOptions{Force: true, PruneChildren: true})
		require.NoError(t, err)
	})
	a := r.mounting("web")
	a.Want.Pin.Image = bad.ID
	e := r.MustFail(t, a)
	require.NotNil(t, e.Refusal, "%v", e)
	require.Contains(t, e.Refusal.Says, "start.working_dir")
	require.Contains(t, e.Refusal.Says, "/proc/self/fd/8")
}
