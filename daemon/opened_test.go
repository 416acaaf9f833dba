package daemon

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const secretCompose = `services:
  web:
    image: web:1
    pull_policy: never
    secrets: [pass]
    configs: [plain]
secrets: {pass: {environment: PASSWORD}}
configs: {plain: {content: the same for all}}
`

// rotated is a host with one app that mounts a value of the env folder.
type rotated struct {
	*follower
	t       *testing.T
	env     string // the folder
	mounted map[string]bool
}

func newRotated(t *testing.T) *rotated {
	r := &rotated{follower: following(t), t: t, mounted: map[string]bool{}}
	r.d.env, r.env = envAt(t, map[string]string{"shop/.env": "PASSWORD=canary-1\n"})
	r.d.contentStore = newContentStore(r.d.store, func(context.Context) (map[string]bool, error) { return r.mounted, nil }, r.d.env.open)
	return r
}

// look reads the commit with the values of now, as each look at the remote does.
func (r *rotated) look() (ring.App, string) {
	r.t.Helper()
	v, err := r.d.env.read()
	require.NoError(r.t, err)
	plan, files, _ := r.follower.look(&ring.Commit{SHA: older, Tree: fstest.MapFS{"shop/compose.yaml": {Data: []byte(secretCompose)}}}, v)
	app, ok := plan.App("shop")
	require.True(r.t, ok, "%v", plan.Refused["shop"])
	require.NoError(r.t, r.d.contentStore.put(r.t.Context(), "prod", files))
	r.d.contentStore.taken("prod")
	for hash, c := range files {
		if c.Files[0].Sealed {
			return app, hash
		}
	}
	require.Fail(r.t, "the plan mounts no value")
	return app, ""
}

// contentsNow are what the commit has with the values of now.
func (r *rotated) contentsNow(context.Context, ring.SHA) (contents, error) {
	v, err := r.d.env.read()
	if err != nil {
		return nil, err
	}
	_, files, _ := r.follower.look(&ring.Commit{SHA: older, Tree: fstest.MapFS{"shop/compose.yaml": {Data: []byte(secretCompose)}}}, v)
	return files, nil
}

func (r *rotated) record(facts ...ring.Fact) {
	r.t.Helper()
	require.NoError(r.t, r.d.store.Record(r.t.Context(), facts, nil))
}

// completed has a plan in force and finished.
func (r *rotated) completed(app ring.App) {
	r.record(ring.InForce{App: app}, ring.Past{App: app},
		ring.Good{AppName: "shop", App: ring.App{Name: "shop", Source: "prod"}, Service: app.Services[0], Commit: older})
}

// pruned is one look for what is to be removed.
func (r *rotated) pruned() (again bool) {
	r.t.Helper()
	again, err := r.d.contentStore.pruneOpened(r.t.Context())
	require.NoError(r.t, err)
	return again
}

// holding are the files of the state folder that hold a text, the database with its
// WAL among them.
func (r *rotated) holding(text string) (names []string) {
	r.t.Helper()
	wal := false
	require.NoError(r.t, filepath.WalkDir(r.d.cfg.State, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		wal = wal || filepath.Ext(p) == ".db-wal"
		b, err := os.ReadFile(p)
		if bytes.Contains(b, []byte(text)) {
			names = append(names, p)
		}
		return err
	}))
	require.True(r.t, wal, "the database's own log was looked at")
	return names
}

func TestAReplacedValueOfTheHostIsNowhereBelowTheStateOnceNothingMountsIt(t *testing.T) {
	r := newRotated(t)
	first, one := r.look()
	r.completed(first)
	r.mounted[one] = true
	require.False(t, r.pruned(), "all of it is in force")
	require.Equal(t, []string{filepath.Join(secretsOnDisk(r.d.cfg.State), one, ring.ValueFile)}, r.holding("canary-1"))

	putEnv(t, r.env, "shop/.env", "PASSWORD=canary-2\n")
	second, two := r.look()
	require.NotEqual(t, one, two)
	r.mounted[two] = true
	require.False(t, r.pruned(), "the old value is in force until the plan with the new one is")
	require.NotEmpty(t, r.holding("canary-1"))

	r.record(ring.InForce{App: second})
	r.mounted = map[string]bool{two: true}
	require.False(t, r.pruned())
	require.NotEmpty(t, r.holding("canary-1"), "a rollout that fails goes back to it")

	r.completed(second)
	r.mounted[one] = true
	require.True(t, r.pruned(), "an instance of before is still there, stopped or not")
	require.NotEmpty(t, r.holding("canary-1"))
	values, err := r.d.valuesOf("shop")
	require.NoError(t, err)
	require.Contains(t, values, "canary-1", "it may still print it")
	require.Contains(t, values, "canary-2")
	delete(r.mounted, one)
	require.False(t, r.pruned())
	require.Empty(t, r.holding("canary-1"))
	require.NotEmpty(t, r.holding("canary-2"))
	require.NotEmpty(t, r.holding("the same for all"))
}

func TestAValueThatAnEarlierReleaseLeftGoesAtTheStart(t *testing.T) {
	r := newRotated(t)
	first, _ := r.look()
	r.completed(first)
	putEnv(t, r.env, "shop/.env", "PASSWORD=canary-2\n")
	second, two := r.look()
	r.completed(second) // and ten plans were remembered, each with its files
	r.mounted[two] = true

	require.NoError(t, r.d.store.Trim(t.Context(), time.Now()))
	r.d.contentStore = newContentStore(r.d.store, r.d.contentStore.mounted, r.d.env.open) // a start: nothing is offered yet
	require.False(t, r.pruned())
	require.Empty(t, r.holding("canary-1"))
	require.NotEmpty(t, r.holding("canary-2"))
	require.NotEmpty(t, r.holding("the same for all"), "files of a commit stay for an undo, and for the hourly look")
}

func TestAnEngineThatDoesNotSayWhatIsMountedKeepsEveryValue(t *testing.T) {
	r := newRotated(t)
	_, one := r.look()
	away := errors.New("the engine is away")
	r.d.contentStore = newContentStore(r.d.store, func(context.Context) (map[string]bool, error) { return nil, away }, r.d.env.open)
	again, err := r.d.contentStore.pruneOpened(t.Context())
	require.ErrorIs(t, err, away)
	require.True(t, again)
	require.True(t, r.d.contentStore.places.disk.Has(one))
}

func TestAnUndoHasItsValuesAgainWhereTheyAreTheSame(t *testing.T) {
	r := newRotated(t)
	first, one := r.look()
	r.completed(first)
	putEnv(t, r.env, "shop/.env", "PASSWORD=canary-2\n")
	second, _ := r.look()
	r.completed(second)
	require.False(t, r.pruned())
	require.False(t, r.d.contentStore.places.disk.Has(one))

	_, err := r.d.contentStore.back(t.Context(), &first, r.contentsNow)
	require.ErrorIs(t, err, errOther, "the value is the host's, and it is another one now")
	require.Empty(t, r.holding("canary-1"))
	gone := errors.New("the mirror does not have it")
	_, err = r.d.contentStore.back(t.Context(), &first, func(context.Context, ring.SHA) (contents, error) { return nil, gone })
	require.ErrorIs(t, err, gone)

	putEnv(t, r.env, "shop/.env", "PASSWORD=canary-1\n")
	done, err := r.d.contentStore.back(t.Context(), &first, r.contentsNow)
	require.NoError(t, err)
	require.False(t, r.pruned())
	require.True(t, r.d.contentStore.places.disk.Has(one), "the undo is on its way")
	past := ring.PastKey(&first)
	r.record(ring.OverrideRow{Kind: ring.OverrideUndo, Target: "shop", Past: past})
	done()
	require.False(t, r.pruned())
	require.NoError(t, r.d.contentStore.prune(t.Context()))
	require.True(t, r.d.contentStore.places.disk.Has(one), "the undo stands, and the loop has not put it in force yet")

	r.record(ring.Forget{Table: "override", Key: ring.OverrideKey(ring.OverrideUndo, "shop")})
	require.False(t, r.pruned())
	require.False(t, r.d.contentStore.places.disk.Has(one))

	// What is here needs nobody to be asked.
	done, err = r.d.contentStore.back(t.Context(), &second, func(context.Context, ring.SHA) (contents, error) { panic("asked") })
	require.NoError(t, err)
	done()
	require.Empty(t, r.d.contentStore.undoing)
}

func TestAnUndoOfAPlanWhoseSourceLeftSaysThatItsFilesAreGone(t *testing.T) {
	r := newRotated(t)
	first, _ := r.look()
	r.completed(first)
	putEnv(t, r.env, "shop/.env", "PASSWORD=canary-2\n")
	second, _ := r.look()
	r.completed(second)
	require.False(t, r.pruned())
	_, err := r.d.filesAtHand(t.Context(), &first)
	require.ErrorContains(t, err, "files that commit 1111111 mounts are not on this host any more: ")
	require.NotContains(t, err.Error(), "canary")
}
