package daemon

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// What the engine said once counts while it is away, and is asked again after a while.
func TestWhyAHostHasNoFrontsIsAskedOnceInAWhile(t *testing.T) {
	now := time.Unix(1000, 0)
	asked, says, away := 0, "the engine maps users", error(nil)
	n := noFronts{ask: func() (string, error) { asked++; return says, away }}
	require.Equal(t, says, n.said(now))
	require.Equal(t, says, n.said(now.Add(time.Minute)))
	require.Equal(t, 1, asked)

	away = errors.New("down")
	require.Equal(t, "the engine maps users", n.said(now.Add(time.Hour)))
	require.Equal(t, "the engine maps users", n.said(now.Add(time.Hour+time.Second)))
	require.Equal(t, 2, asked, "an engine that is away is not asked at once again")

	says, away = "", nil
	require.Empty(t, n.said(now.Add(2*time.Hour)))
	require.Empty(t, (&noFronts{}).said(now), "without an engine nothing is known")
}

// A build without the program of fronts says so before anything of a service changes.
func TestABuildWithoutAFrontGivesNoServiceOne(t *testing.T) {
	n := noFronts{build: noFrontHere, ask: func() (string, error) { return "", nil }}
	require.Equal(t, noFrontHere, n.said(time.Unix(1000, 0)))
	require.Equal(t, noFrontHere, noFrontIn(runtime.FrontBuild{}))
	require.Empty(t, noFrontIn(runtime.FrontBuild{Sum: "0123456789ab"}))
}

func TestNoRegistryIsAskedForTheImageOfAFront(t *testing.T) {
	f := ring.NewFacts()
	f.Apps["shop"] = ring.InForce{App: ring.App{Name: "shop", Services: []ring.Service{{Name: "web"}, {Name: "web-front", FrontOf: "web"}}}}
	require.Len(t, inForce(&f, "", ""), 1)
	require.Equal(t, "web", inForce(&f, "shop", "")[0].Name)
	require.Empty(t, inForce(&f, "shop", "web-front"))
}
