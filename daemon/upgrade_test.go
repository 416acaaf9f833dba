package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

func frontsProgram(sum string) runtime.FrontBuild {
	return runtime.FrontBuild{Sum: strings.Repeat(sum, 64), Open: func() ([]byte, error) { return []byte("program " + sum), nil }}
}

func TestTheNewestProxyLiesWhereFrontsLookForIt(t *testing.T) {
	state := t.TempDir()
	u := newUpgrader(frontsProgram("a"), state)
	file := filepath.Join(state, "front", strings.Repeat("a", 64), "front")
	for range 2 { // the second start finds it
		require.NoError(t, u.place())
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "program a", string(body))
		st, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o555), st.Mode().Perm())
		st, err = os.Stat(filepath.Dir(file))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), st.Mode().Perm(), "a front is another user")
	}
	next := newUpgrader(frontsProgram("b"), state)
	require.NoError(t, next.place())
	newest := func() string { return newestOf(t, filepath.Join(state, "front")) }
	require.NoError(t, os.Chtimes(filepath.Dir(file), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	require.Equal(t, strings.Repeat("b", 64), newest())
	require.NoError(t, u.place(), "the release before comes back")
	require.Equal(t, strings.Repeat("a", 64), newest())
	require.NoError(t, next.place())
	require.Equal(t, strings.Repeat("b", 64), newest())
	require.NoError(t, os.Mkdir(filepath.Join(state, "front", "somebody's"), 0o755))
	require.NoError(t, next.sweep(map[string]bool{u.build(): true}))
	require.FileExists(t, file, "a front runs it")
	require.NoError(t, next.sweep(nil))
	require.NoFileExists(t, file)
	require.DirExists(t, filepath.Join(state, "front", "somebody's"))
	require.FileExists(t, filepath.Join(state, "front", strings.Repeat("b", 64), "front"), "the next front may need it")

	broken := runtime.FrontBuild{Sum: strings.Repeat("c", 64), Open: func() ([]byte, error) { return nil, errors.New("not whole") }}
	require.ErrorContains(t, newUpgrader(broken, state).place(), "cannot read the program of fronts: not whole")
	require.NoError(t, newUpgrader(runtime.FrontBuild{}, state).place(), "a build without fronts has none to place")
}

// newestOf is the folder that changed last.
func newestOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	name, at := "", time.Time{}
	for _, e := range entries {
		st, err := e.Info()
		require.NoError(t, err)
		if st.ModTime().After(at) {
			name, at = e.Name(), st.ModTime()
		}
	}
	return name
}

func TestProxiesAreUpgradedOneByOneOnceNothingMoves(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	u := newUpgrader(frontsProgram("a"), t.TempDir())
	front := func(app string, newest bool, at time.Time) api.FrontNow {
		return api.FrontNow{App: app, Service: "web", Container: app + "-web-front-1-00000000", Newest: newest, At: at}
	}
	fronts := []api.FrontNow{front("a", true, now), front("b", false, time.Time{}), front("c", false, now), front("d", false, now)}
	next := func(synced bool) string {
		f, _ := u.next(fronts, synced, now)
		return f.App
	}
	require.Empty(t, next(false), "something moves")
	require.Equal(t, "c", next(true), "the first has it, and the second does not answer")

	u.failed(ring.ID("c", "web"), now)
	require.Equal(t, "d", next(true), "one that did not take it is left alone")
	fronts[3].Newest = true
	require.Empty(t, next(true))
	now = now.Add(upgradeAgain)
	require.Equal(t, "c", next(true), "and tried again by itself")
	u.failed(ring.ID("c", "web"), now)

	u.ask([]ring.ServiceID{ring.ID("c", "web")})
	require.Equal(t, "c", next(false), "a person's word waits for nothing")
	u.failed(ring.ID("c", "web"), now)
	require.Empty(t, next(false), "and counts once")

	u.ask([]ring.ServiceID{ring.ID("c", "web")})
	fronts[2].Newest = true
	require.Empty(t, next(false))
	fronts[2].Newest = false
	require.Empty(t, next(false), "what was asked for is done")
}

// A host without fronts keeps the room; one that has some gets the program at the start.
func TestAProgramOfFrontsIsPlacedWhereAFrontIs(t *testing.T) {
	state := t.TempDir()
	u := newUpgrader(frontsProgram("a"), state)
	fronts := filepath.Join(state, "fronts")
	file := filepath.Join(state, "front", u.Sum, "front")
	require.NoError(t, u.prepare(fronts))
	require.DirExists(t, filepath.Join(state, "front"), "what fronts mount")
	require.NoFileExists(t, file)
	require.NoError(t, os.MkdirAll(filepath.Join(fronts, "0123456789abcdef"), 0o755))
	require.NoError(t, u.prepare(fronts))
	require.FileExists(t, file)
}

// Between the end of one upgrade and the next there are 10 s, however long one took and whoever
// asked meanwhile: a bad one is met once.
func TestUpgradesOfProxiesAreTenSecondsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		poke, began := make(chan struct{}, 1), time.Now()
		var begun []time.Duration
		took := []time.Duration{time.Second, 9 * time.Second, 25 * time.Second, 0, 0}
		done := make(chan struct{})
		go func() {
			defer close(done)
			oneByOne(ctx, poke, func() bool {
				if len(begun) == len(took) {
					return false
				}
				begun = append(begun, time.Since(began))
				time.Sleep(took[len(begun)-1])
				return true
			}, stop)
		}()
		time.Sleep(3 * time.Second)
		for range 5 {
			poke <- struct{}{}
			time.Sleep(2 * time.Second)
			select {
			case <-poke:
			default:
			}
		}
		<-done
		seconds := func(all ...int) (out []time.Duration) {
			for _, n := range all {
				out = append(out, time.Duration(n)*time.Second)
			}
			return out
		}
		require.Equal(t, seconds(3, 14, 33, 68, 78), begun)
	})
}
