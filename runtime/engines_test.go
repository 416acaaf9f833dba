package runtime

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestThePageOfEnginesIsTheTable(t *testing.T) {
	const begin, end = "./runtime -->\n", "<!-- end -->"
	page := filepath.Join("..", "docs", "reference", "engines.md")
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(b), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var rows strings.Builder
	rows.WriteString("| a Compose file says | since | before, the engine | and gitring |\n|---|---|---|---|\n")
	for _, d := range Differences() {
		fmt.Fprintf(&rows, "| `%s` | Docker %s (API %s) | %s | %s |\n", d.Capability, d.Release, d.Since, d.Without, d.Answer)
	}
	rows.WriteString("\nOn Podman:\n\n| what differs | Podman | and gitring |\n|---|---|---|\n")
	for _, d := range PodmanDifferences() {
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", d.What, d.Does, d.Answer)
	}
	want := before + begin + rows.String() + end + after
	if os.Getenv("UPDATE_ENGINES") != "" {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(b), "UPDATE_ENGINES=1 writes it anew")
}

func TestEachCapabilityHasOneRow(t *testing.T) {
	seen := map[Capability]bool{}
	for _, c := range []Capability{VolumeParts, FurtherAddresses, StartInterval, Annotations} {
		require.NotPanics(t, func() { since(c) })
		seen[c] = true
	}
	require.Len(t, Differences(), len(seen))
	require.Empty(t, Lacking(newestAPI))
	require.Len(t, Lacking(MinAPI), len(Differences()))
	require.False(t, can("1.44", VolumeParts))
	require.True(t, can("1.45", VolumeParts))
	require.True(t, can("1.100", VolumeParts), "versions are numbers")
}

// Docker's own client is asked since when an engine takes a key: it refuses, without asking any
// engine, what it knows the agreed API not to have.
func TestDockersClientKnowsTheStartIntervalSinceTheSameAPI(t *testing.T) {
	refused := func(api string) bool {
		c, err := client.NewClientWithOpts(client.WithHost("unix:///nowhere"), client.WithVersion(api))
		require.NoError(t, err)
		_, err = c.ContainerCreate(t.Context(), &container.Config{Healthcheck: &container.HealthConfig{StartInterval: 1}}, nil, nil, nil, "")
		require.Error(t, err)
		return strings.Contains(err.Error(), "requires API version")
	}
	require.True(t, refused("1.43"))
	require.False(t, refused(since(StartInterval)))
}

// The answers are those of the engines' own documentation of GET /version: Podman names itself
// among its components, and speaks API 1.41.
func TestAPodmanThatIsTooOldIsRefused(t *testing.T) {
	podman := func(v string) types.Version {
		return types.Version{Version: v, APIVersion: "1.41", Components: []types.ComponentVersion{{Name: "Podman Engine", Version: v}, {Name: "Conmon", Version: "2.1.12"}}}
	}
	docker := types.Version{Version: "20.10.24", APIVersion: "1.41", Components: []types.ComponentVersion{{Name: "Engine", Version: "20.10.24"}, {Name: "containerd", Version: "1.6.20"}}}
	require.NoError(t, unfit("unix:///s", types.Ping{APIVersion: "1.41"}, docker))
	require.NoError(t, unfit("unix:///s", types.Ping{APIVersion: "1.41"}, podman("5.4.2")))
	require.NoError(t, unfit("unix:///s", types.Ping{APIVersion: "1.41"}, podman("5.10.0")), "versions are numbers")
	require.ErrorContains(t, unfit("unix:///s", types.Ping{APIVersion: "1.41"}, podman("4.3.1")), "cannot use the engine at unix:///s: it is Podman 4.3.1, older than 5.1")
	require.ErrorContains(t, unfit("unix:///s", types.Ping{APIVersion: "1.41"}, podman("5.0.3")), "older than 5.1")
	require.ErrorContains(t, unfit("unix:///s", types.Ping{APIVersion: "1.40"}, docker), "its API is 1.40, older than 1.41 (Docker 20.10)")
	require.ErrorContains(t, unfit("unix:///s", types.Ping{}, docker), "does not say which API it speaks")
}

// Podman tells it as Docker does: among its security options, which are asked for once it answers.
func TestAPodmanWithoutRootIsRefused(t *testing.T) {
	for options, refused := range map[string]bool{`"name=seccomp,profile=default","name=rootless"`: true, `"name=seccomp,profile=default"`: false} {
		at := socket(t)
		serve(t, at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/info") {
				fmt.Fprint(w, `{"SecurityOptions":[`+options+`]}`)
				return
			}
			fmt.Fprint(w, `{"Version":"5.4.2","ApiVersion":"1.41","Components":[{"Name":"Podman Engine","Version":"5.4.2"}]}`)
		}))
		d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge"})
		if !refused {
			require.NoError(t, err)
			require.NoError(t, d.Close())
			continue
		}
		var unfit *UnfitError
		require.ErrorAs(t, err, &unfit)
		require.Contains(t, unfit.Says, "it is Podman without root")
		require.NotEmpty(t, unfit.Hint)
	}
}

// Reached in two steps, too: a socket that was Docker's and is Podman's by now.
func TestAnEngineThatBecameAnotherIsRefusedOnceItIsReachedAnew(t *testing.T) {
	c, at := newCanned(t, 1), socket(t)
	stop := serve(t, at, c)
	d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	stop()
	serve(t, at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"Version":"4.3.1","ApiVersion":"1.41","Components":[{"Name":"Podman Engine","Version":"4.3.1"}]}`)
	}))
	d.forget()
	_, err = d.Look(t.Context())
	var unfit *UnfitError
	require.ErrorAs(t, err, &unfit)
	require.NotEmpty(t, unfit.Hint)
	_, err = d.Do(t.Context(), ring.Action{Kind: ring.DoCreate})
	require.ErrorAs(t, err, &unfit, "and nothing is made there")
}
