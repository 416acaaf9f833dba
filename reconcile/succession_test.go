package reconcile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func appOf(images ...string) *ring.App {
	app := &ring.App{Name: "shop"}
	for _, pair := range images {
		name, image, _ := strings.Cut(pair, "=")
		app.Services = append(app.Services, ring.Service{Name: name, Spec: ring.Spec{Image: image}})
	}
	return app
}

func TestAppsAreAlikeByNamesAndOneImage(t *testing.T) {
	was := appOf("web=registry:5000/shop/web:1", "db=postgres:17")
	for _, c := range []struct {
		says string
		next *ring.App
		want bool
	}{
		{"the same", appOf("web=registry:5000/shop/web:1", "db=postgres:17"), true},
		{"another tag of one, another image for the other", appOf("web=registry:5000/shop/web:2", "db=mysql:8"), true},
		{"pinned now", appOf("web=registry:5000/shop/web:1@sha256:aa", "db=mysql:8"), true},
		{"Docker's own, spelt out", appOf("web=other", "db=docker.io/library/postgres"), true},
		{"no image in common", appOf("web=nginx", "db=mysql"), false},
		{"the same images under each other's names", appOf("web=postgres", "db=registry:5000/shop/web"), false},
		{"one service more", appOf("web=registry:5000/shop/web:1", "db=postgres:17", "cache=redis"), false},
		{"one service less", appOf("db=postgres:17"), false},
		{"one service under another name", appOf("front=registry:5000/shop/web:1", "db=postgres:17"), false},
		{"an image that could not be read", appOf("web=", "db="), false},
	} {
		require.Equal(t, c.want, isLike(was, c.next), c.says)
	}
	require.False(t, isLike(appOf(), appOf()), "two that have nothing")
	require.False(t, isLike(appOf("web="), appOf("web=")), "two of which no image is known")
}

// ordersOf is what apps wait for by a story's next commit, beforehand.
func ordersOf(t *testing.T, begin, next string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, a := range planOf(t, begin, next).Apps {
		out[a.App] = a.Order
	}
	return out
}

func TestPlanSaysWhichAppServesUntilAnotherCan(t *testing.T) {
	const begin = `service shop/web
service shop/db external pg
service old/web
app shop after data ready
commit c1 shop/web=w1 shop/db=d1 old/web=nginx:1
rest`
	const move = `service data/db external pg
service new/web
commit c2 -shop/db data/db=d1 -old new/web=nginx:2`
	got := ordersOf(t, begin, move)
	require.Equal(t, "after app data is ready, waits for app data, which takes over volume pg", got["shop"])
	require.Equal(t, "waits for app new, which takes its place", got["old"])
	require.Empty(t, got["data"])
	require.Empty(t, got["new"])

	got = ordersOf(t, begin, move+" refused data refused new")
	require.Equal(t, "after app data is ready, waits for app data, which takes over volume pg and is refused", got["shop"])
	require.Equal(t, "waits for app new, which takes its place and is refused", got["old"])

	got = ordersOf(t, begin+"\napply commit", move)
	require.Equal(t, "after app data is ready", got["shop"], "all of the commit comes at once")
	require.Empty(t, got["old"])
}

// Who waits for one that waits says so once, and of its own source alone.
func TestStatusSaysOnceForWhomTheOtherAppWaits(t *testing.T) {
	s := newStory()
	for _, line := range strings.Split(`service shop/db external pg
service old/web
commit c1 shop/db=d1 old/web=nginx:1
rest
service shop/db external other
service data/db external pg
service new/web
service mid/web
app data after mid ready
app new after mid ready
commit c2 shop/db=d2 data/db=d1 -old new/web=nginx:2 mid/web=m1 refused mid
wait 1h`, "\n") {
		require.NoError(t, s.tell(line), line)
	}
	w := s.world()
	w.Sources = append(w.Sources, Source{Name: "other", Next: &ring.Plan{Source: "other", Commit: shaOf("x"), Apps: []ring.App{*newApp("x")}}})
	says := map[string]string{}
	for _, a := range Diff(w, s.clock()).Status.Sources[0].Apps {
		says[a.Name] = a.Reason
	}
	require.Equal(t, "waits for app data, which takes over volume pg and waits for app mid, which is refused", says["shop"])
	require.Equal(t, "waits for app new, which takes its place and waits for app mid, which is refused", says["old"])
}
