package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

const older = ring.SHA("1111111111111111111111111111111111111111")

// hashOf is a content's hash that a reader of a test can tell apart.
func hashOf(digit string) string { return strings.Repeat(digit, 64) }

func one(digit string) contents {
	h := hashOf(digit)
	return contents{h: {Hash: h, Files: []ring.ContentFile{
		{Path: "conf", Read: func() ([]byte, error) { return []byte("content " + digit), nil }},
	}}}
}

// mounting is a service that mounts the file of a content.
func mounting(digit string) ring.Service {
	return ring.Service{Name: "s" + digit, Spec: ring.Spec{Mounts: []ring.Mount{
		{Kind: ring.MountContent, Source: hashOf(digit), File: "conf", Target: "/conf"},
	}}}
}

func newTestContentStore(t *testing.T, mounted func(context.Context) (map[string]bool, error)) *contentStore {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return newContentStore(s, mounted, func(s ring.Sealed) (string, error) { return "the value of " + s.Name, nil })
}

func nothing(context.Context) (map[string]bool, error) { return nil, nil }

func (s *contentStore) has(t *testing.T, digit string) bool {
	t.Helper()
	return s.store.HasContent(hashOf(digit))
}

func (s *contentStore) conf(digit string) string {
	return filepath.Join(s.store.ContentDir(), hashOf(digit), "conf")
}

// scatter puts contents on disk that nobody names.
func scatter(t *testing.T, s *contentStore, digits string) {
	t.Helper()
	for _, d := range strings.Split(digits, "") {
		require.NoError(t, s.write(t.Context(), one(d)))
	}
}

// settled is a host with an app in force that mounts a, and whose last good
// service mounted b.
func settled(t *testing.T, s *contentStore) {
	t.Helper()
	app := ring.App{Name: "web", Source: "prod", Commit: older, Services: []ring.Service{mounting("a")}}
	good := ring.App{Name: "web", Source: "prod", Commit: older}
	require.NoError(t, s.store.Record(t.Context(), []ring.Fact{
		ring.InForce{App: app}, ring.Good{AppName: "web", App: good, Service: mounting("b"), Commit: older},
	}, nil))
}

func TestPruneKeepsWhatAnyPlanOrContainerNeeds(t *testing.T) {
	s := newTestContentStore(t, func(context.Context) (map[string]bool, error) { return map[string]bool{hashOf("c"): true}, nil })
	scatter(t, s, "abcf")
	settled(t, s)
	require.NoError(t, s.put(t.Context(), "prod", one("d")))
	require.NoError(t, s.put(t.Context(), "other", one("e")))

	require.NoError(t, s.prune(t.Context()))
	for _, d := range []string{"a", "b", "c", "d", "e"} {
		require.True(t, s.has(t, d), d)
	}
	require.False(t, s.has(t, "f"), "nothing names it")
}

func TestPruneKeepsThePlanBeforeUntilTheLoopHasTheNextOne(t *testing.T) {
	s := newTestContentStore(t, nothing)
	require.NoError(t, s.put(t.Context(), "prod", one("a")))
	s.taken("prod")
	require.NoError(t, s.put(t.Context(), "prod", one("b")))
	require.NoError(t, s.prune(t.Context()))
	require.True(t, s.has(t, "a"), "the loop may put it in force this moment")
	s.taken("prod")
	s.taken("prod") // every report says so
	require.NoError(t, s.prune(t.Context()))
	require.False(t, s.has(t, "a"))
	require.True(t, s.has(t, "b"))
}

func TestAnEngineThatDoesNotSayWhatIsMountedPrunesNothing(t *testing.T) {
	away := errors.New("the engine is away")
	s := newTestContentStore(t, func(context.Context) (map[string]bool, error) { return nil, away })
	scatter(t, s, "f")
	require.ErrorIs(t, s.prune(t.Context()), away)
	require.True(t, s.has(t, "f"))
}

func TestWhatIsWrittenWhilePruningStays(t *testing.T) {
	var s *contentStore
	put := make(chan error, 1)
	s = newTestContentStore(t, func(ctx context.Context) (map[string]bool, error) {
		written := make(chan struct{})
		go func() { put <- s.put(ctx, "prod", one("a")); close(written) }()
		select {
		case <-written: // it did not wait its turn: what follows removes it
		case <-time.After(50 * time.Millisecond):
		}
		return nil, nil
	})
	require.NoError(t, s.prune(t.Context()))
	require.NoError(t, <-put)
	require.True(t, s.has(t, "a"))
}

func TestMendWritesTheNewestPlansFilesAgain(t *testing.T) {
	s := newTestContentStore(t, nothing)
	require.NoError(t, s.put(t.Context(), "prod", one("a")))
	require.NoError(t, os.Remove(s.conf("a")))
	require.NoError(t, s.mend(t.Context(), "prod", func(context.Context, ring.SHA) (contents, error) {
		return nil, errors.New("it is at hand")
	}))
	require.FileExists(t, s.conf("a"))
}

func TestMendReadsAnEarlierCommitForWhatIsInForceOrWasGood(t *testing.T) {
	s := newTestContentStore(t, nothing)
	scatter(t, s, "ab")
	settled(t, s)
	require.NoError(t, s.put(t.Context(), "prod", one("d"))) // of the newest commit, which is not in force yet
	require.NoError(t, os.Remove(s.conf("a")))
	require.NoError(t, os.RemoveAll(filepath.Dir(s.conf("b"))))

	var asked []ring.SHA
	read := func(_ context.Context, sha ring.SHA) (contents, error) {
		asked = append(asked, sha)
		return contents{hashOf("a"): one("a")[hashOf("a")], hashOf("b"): one("b")[hashOf("b")]}, nil
	}
	require.NoError(t, s.mend(t.Context(), "other", read))
	require.Empty(t, asked, "it is not the other source's")
	require.NoError(t, s.mend(t.Context(), "prod", read))
	require.Equal(t, []ring.SHA{older}, asked)
	require.FileExists(t, s.conf("a"))
	require.FileExists(t, s.conf("b"))
	require.NoError(t, s.mend(t.Context(), "prod", read))
	require.Len(t, asked, 1, "nothing is missing any more")
}

func TestMendSaysWhatItCannotWriteAgain(t *testing.T) {
	s := newTestContentStore(t, nothing)
	settled(t, s)
	err := s.mend(t.Context(), "prod", func(context.Context, ring.SHA) (contents, error) { return one("d"), nil })
	require.ErrorContains(t, err, "commit 1111111, read with the configuration of today, has it no more")
	gone := errors.New("the mirror does not have it")
	err = s.mend(t.Context(), "prod", func(context.Context, ring.SHA) (contents, error) { return nil, gone })
	require.ErrorIs(t, err, gone)
}

func TestSealedFilesAreOpenedOnTheirWayToTheDisk(t *testing.T) {
	s := newTestContentStore(t, nothing)
	token := ring.Sealed{App: "shop", File: ".env", Name: "PASSWORD", MAC: "00"}.String()
	text := func(says string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(says), nil } }
	c := contents{hashOf("a"): {Hash: hashOf("a"), Files: []ring.ContentFile{
		{Path: "secret", Sealed: true, Read: text("user:" + token)},
		{Path: "script", Read: text("echo \x1b[31m" + token)},
	}}}
	read := func() (secret, script string) {
		t.Helper()
		dir := s.at(hashOf("a"))
		for name, into := range map[string]*string{"secret": &secret, "script": &script} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			*into = string(b)
			st, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o444), st.Mode().Perm())
		}
		return secret, script
	}
	require.NoError(t, s.put(t.Context(), "prod", c))
	for range 2 {
		secret, script := read()
		require.Equal(t, "user:the value of PASSWORD", secret)
		require.Equal(t, "echo \x1b[31m"+token, script, "a commit's own bytes are never opened")
		require.NoError(t, os.Remove(filepath.Join(s.at(hashOf("a")), "secret")))
		require.NoError(t, s.mend(t.Context(), "prod", nil))
	}
	st, err := os.Stat(filepath.Dir(s.store.ContentDir()))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm(), "nobody else gets as far as the file")
}

func TestWhatASeedNeedsIsKept(t *testing.T) {
	s := newTestContentStore(t, nothing)
	scatter(t, s, "af")
	app := ring.App{Name: "web", Source: "prod", Commit: older, Services: []ring.Service{{Name: "web", Spec: ring.Spec{
		Mounts: []ring.Mount{{Kind: ring.MountSeed, Source: "web/conf", Seed: hashOf("a"), Target: "/conf"}},
	}}}}
	require.NoError(t, s.store.Record(t.Context(), []ring.Fact{ring.InForce{App: app}}, nil))
	require.NoError(t, s.prune(t.Context()))
	require.True(t, s.has(t, "a"))
	require.False(t, s.has(t, "f"))
}
