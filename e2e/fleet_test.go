package e2e

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
)

// fleet is an app with one service of each kind that a fault may hurt: web, two
// instances that are updated one over the other; db, which holds data; still,
// which no commit changes. Strangers run beside it, and a witness looks on.
type fleet struct {
	*host
	app  string
	w    *witness
	more []obj // of each service that commits change
	live time.Time
	n    int    // of the version pushed last
	tip  string // its commit
}

func newFleet(h *host, more ...obj) *fleet {
	h.t.Helper()
	f := &fleet{host: h, app: h.app("fleet"), more: more}
	f.w = newWitness(h, f.app, map[string]promise{
		"web": {replicas: 2, surge: 1}, "db": {replicas: 1, surge: 1, alone: true}, "still": {replicas: 1, still: true},
	})
	f.w.bystanders()
	return f
}

// begin has the first version live, and at rest.
func (f *fleet) begin() {
	f.t.Helper()
	f.push(0)
	f.start()
	f.synced(f.tip)
	settled(f.host)
	f.live = time.Now()
}

// push has n versions more in a commit; 0 is the same again.
func (f *fleet) push(n int, more ...obj) {
	f.t.Helper()
	f.n += n
	more = append(append([]obj{}, f.more...), more...)
	f.tip = f.repo.pushed(fmt.Sprintf("Version %d", f.n), files{f.app + "/compose.yaml": f.compose(f.app, obj{
		"web": merged(web(f.version(), more...), replicas(2)), "db": db(f.version(), "pg", more...), "still": web("0"),
	}, obj{"volumes": obj{"pg": obj{}}})})
}

// version is one of three that alternate, so that a revert to what still runs is among
// them.
func (f *fleet) version() string {
	return fmt.Sprint(f.n % 3)
}

// bad pushes a version that never becomes ready.
func (f *fleet) bad() {
	f.t.Helper()
	f.push(0, broken(), obj{"labels": obj{"e2e.bad": "1"}})
}

// whole waits until the last push is live, and finds nothing but it.
func (f *fleet) whole() {
	f.t.Helper()
	f.synced(f.tip)
	cs := f.containers()
	require.Len(f.t, cs, 4, "no duplicate, no orphan")
	for i, c := range cs {
		require.Equal(f.t, []string{"db 1", "still 1", "web 1", "web 2"}[i], c.service()+" "+c.slot())
		require.True(f.t, c.State.Running)
		require.Empty(f.t, c.env("BROKEN"))
		if c.service() != "still" {
			require.Equal(f.t, f.version(), c.env("VERSION"))
		}
		code, body := f.ask(c, "/healthz")
		require.Equal(f.t, 200, code, body)
	}
	nets, err := f.engine.networks("gitring.host=" + f.name)
	require.NoError(f.t, err)
	require.Equal(f.t, []string{f.app + "_default"}, nets)
	vols, err := f.engine.volumes("gitring.host=" + f.name)
	require.NoError(f.t, err)
	require.Equal(f.t, []string{f.app + "_pg"}, vols)
	onlyOne(f.t, f.journal(f.one("db")))
}

// over is the end of a test: everything is as the last commit says, every
// promise was kept, and a daemon that starts anew finds nothing to do.
func (f *fleet) over() {
	f.t.Helper()
	f.whole()
	f.w.holds(f.live)
	code, out := f.run("history", "--limit", "1000")
	require.Equal(f.t, 0, code, out)
	require.NoError(f.t, f.stop(), "%s", f.tail(20))
	before, told := identities(f.containers()), len(f.w.seen())
	f.start()
	f.synced(f.tip)
	code, out = f.run("sync", "--wait")
	require.Equal(f.t, 0, code, out)
	require.Equal(f.t, before, identities(f.containers()))
	for _, e := range f.w.seen()[told:] {
		// A rollout ends with a restart policy and a name, which may come after the stop.
		require.Contains(f.t, []string{"update", "rename"}, e.Action, "a daemon that starts at rest did something: %s", journalOf(f.w.seen()))
	}
	f.w.holds(f.live)
}

// pause is a moment that no event marks.
func pause(d time.Duration) { <-time.After(d) }

// somewhere waits for a moment in the middle of what comes after a mark: after
// up to n events, or none where they do not come.
func (f *fleet) somewhere(r interface{ IntN(int) int }, mark, n int) {
	f.events.wait(mark, r.IntN(n), 1500*time.Millisecond)
	pause(time.Duration(r.IntN(60)) * time.Millisecond)
}
