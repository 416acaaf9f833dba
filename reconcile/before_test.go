package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A person reads in the plan what will run before what.
func TestThePlanShowsTheJobThatRunsFirst(t *testing.T) {
	s := newStory()
	for _, line := range []string{
		"service shop/backup job",
		"service shop/web min_ready 1s before backup",
		`service shop/tick cron "0 3 * * *"`,
		"version b1 exits 0 after 5s",
		"commit c1 shop/backup=b1 shop/web=v1 shop/tick=t1",
		"rest",
	} {
		require.NoError(t, s.tell(line), line)
	}
	require.NoError(t, s.bad)
	said := func(line string) map[string]string {
		t.Helper()
		require.NoError(t, s.tell(line))
		out := map[string]string{}
		for _, c := range Plan(s.world(), s.src.Next, s.clock()).Apps[0].Services {
			out[c.Service] = string(c.Class) + ": " + c.Reason
		}
		return out
	}
	none := said("commit c2")
	require.Equal(t, string(ring.ChangeNone)+": runs before web", none["backup"])
	require.Equal(t, string(ring.ChangeNone)+": ", none["web"])
	next := said("commit c3 shop/web=v2 shop/tick=t2")
	require.Contains(t, next["web"], string(ring.ChangeRoll)+": ")
	require.Contains(t, next["web"], "image v1 -> v2, to be resolved; backup runs first, and must succeed")
	require.Contains(t, next["tick"], "from the next run on")
}

// A person's wish is refused where it does not fit, with what to do.
func TestARunIsRefusedWhereItDoesNotFit(t *testing.T) {
	s := newStory()
	for _, line := range []string{
		"service shop/load job",
		"service shop/web min_ready 1s",
		"version l1 exits 0 after 1h",
		"commit c1 shop/load=l1 shop/web=v1",
		"wait 1m",
	} {
		require.NoError(t, s.tell(line), line)
	}
	ask := func(app, service string) *Unfit {
		t.Helper()
		_, err := Carry(s.world(), Act{Verb: RunNow, App: app, Service: service, Actor: "alice", Reason: "r"}, s.clock())
		var unfit *Unfit
		require.ErrorAs(t, err, &unfit)
		require.NotEmpty(t, unfit.Hint)
		return unfit
	}
	require.Contains(t, ask("shop", "web").Says, "shop/web is a worker and runs already")
	require.Contains(t, ask("shop", "load").Says, "a run of shop/load is under way: job runs on change")
	_, err := Carry(s.world(), Act{Verb: RunNow, App: "shop", Service: "nope"}, s.clock())
	require.ErrorIs(t, err, ErrNotFound)
}
