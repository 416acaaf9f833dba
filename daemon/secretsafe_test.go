package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// Others may write to /dev/shm and its like: they could have made the folder first.
func TestAFolderOfSecretsThatIsAnothersIsNotUsed(t *testing.T) {
	if is, err := inMemory("/dev/shm"); err != nil || !is {
		t.Skip("needs /dev/shm on a memory file system")
	}
	made := func() string {
		dir, err := os.MkdirTemp("/dev/shm", "gitring-test-")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		return dir
	}
	theirs, link, open := made(), filepath.Join(made(), "link"), made()
	require.NoError(t, os.Chmod(theirs, 0o755))
	require.NoError(t, os.Symlink(theirs, link))
	require.NoError(t, os.Chmod(open, 0o777))
	for name, dir := range map[string]string{"a link": link, "below a folder that others write to": filepath.Join(open, "secrets")} {
		require.ErrorContains(t, makeMemoryDir(dir), "cannot trust secrets.dir", name)
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(theirs, 65534, 65534))
		require.ErrorContains(t, makeMemoryDir(theirs), "belongs to user 65534")
	}
	st, err := os.Stat(theirs)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode().Perm(), "what is another's is not changed")
	require.NoError(t, makeMemoryDir(filepath.Join(made(), "a", "secrets")))
}

// What an undo may need is sealed in the list, and a start writes none of it.
func TestAStartPlacesNoValueThatWasReplaced(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	h.d.contentStore.mounted = func(context.Context) (map[string]bool, error) { return nil, nil }
	tree := func(value string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file(oneSecretCompose),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD=x\n", keys.recipient)),
			"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, value, keys.recipient)),
		}
	}
	first := h.app(h.look(older, tree(canary+"1")), "shop")
	require.NoError(t, h.d.store.Record(t.Context(), []ring.Fact{ring.InForce{App: *first}, ring.Past{App: *first}}, nil))
	second := h.app(h.look(nextSHA, tree(canary+"2")), "shop")
	h.d.contentStore.taken("prod")
	require.NoError(t, h.d.store.Record(t.Context(), []ring.Fact{ring.InForce{App: *second}}, nil))
	_, err := h.d.contentStore.pruneOpened(t.Context())
	require.NoError(t, err)
	h.restart()
	require.NoError(t, h.d.placeSecrets(t.Context()))
	web1, _ := first.Service("web")
	web2, _ := second.Service("web")
	require.NoDirExists(t, h.d.contentStore.at(web1.Spec.Mounts[0].Source))
	require.Equal(t, canary+"2", h.mountedAt(web2, "/run/secrets/tls"))
	require.Equal(t, canary+"1", h.mountedAt(func() ring.Service { h.look(older, tree(canary+"1")); return web1 }(), "/run/secrets/tls"), "an undo writes it again")
}

// A container goes on with the files that it was made with, wherever at_rest had them then.
// Once none mounts them from there, the values are where at_rest says, and nowhere else.
func TestAValueDoesNotStayWhereAtRestHadItBefore(t *testing.T) {
	if is, err := inMemory("/dev/shm"); err != nil || !is {
		t.Skip("needs /dev/shm on a memory file system")
	}
	dir, err := os.MkdirTemp("/dev/shm", "gitring-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	memory := filepath.Join(dir, "secrets")
	h.d.cfg.Secrets.Dir = memory
	tree := fstest.MapFS{
		"shop/compose.yaml": file(oneSecretCompose),
		"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD=x\n", keys.recipient)),
		"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, canary, keys.recipient)),
	}
	to := func(atRest string) (at, hash string) {
		h.d.cfg.Secrets.AtRest = atRest
		h.restart()
		require.NoError(t, h.d.placeSecrets(t.Context()))
		app := h.app(h.look(older, tree), "shop")
		h.d.contentStore.taken("prod")
		require.NoError(t, h.d.store.Record(t.Context(), []ring.Fact{ring.InForce{App: *app}}, nil))
		web, _ := app.Service("web")
		hash = web.Spec.Mounts[0].Source
		return h.d.contentStore.at(hash), hash
	}
	pruned := func(mounted ...string) (again bool) {
		h.d.contentStore.mounted = func(context.Context) (map[string]bool, error) {
			all := map[string]bool{}
			for _, m := range mounted {
				all[m], all[filepath.Base(m)] = true, true
			}
			return all, nil
		}
		again, err := h.d.contentStore.pruneOpened(t.Context())
		require.NoError(t, err)
		return again
	}
	was, hash := to(config.AtRestDisk)
	for _, other := range []string{config.AtRestMemory, config.AtRestDisk} {
		now, _ := to(other)
		require.NotEqual(t, was, now)
		require.Equal(t, other == config.AtRestMemory, strings.HasPrefix(now, memory))
		require.True(t, pruned(was), "it is asked again as long as a container mounts it")
		require.DirExists(t, was)
		require.Equal(t, map[bool]int{true: 0, false: 1}[other == config.AtRestMemory], probeSecrets(h.d.cfg).Before)
		require.True(t, pruned("/another/name/for/it/"+hash), "it may be the same folder by another name")
		require.DirExists(t, was)
		require.False(t, pruned(now))
		require.NoDirExists(t, was)
		require.DirExists(t, now)
		was = now
	}
	require.Zero(t, probeSecrets(h.d.cfg).Before)
}

// A plan that is read, and not in force yet, may be pruned beside; and an app that the policy
// let through later is as its manifests were read before.
func TestNothingIsPrunedThatAPlanIsAboutToNeed(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	h.d.contentStore.mounted = func(context.Context) (map[string]bool, error) { return nil, nil }
	tree := fstest.MapFS{
		"shop/compose.yaml": file(oneSecretCompose),
		"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", keys.recipient)),
		"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, canary+"tls", keys.recipient)),
	}
	password := func() string {
		db, _ := h.app(h.look(older, tree), "shop").Service("db")
		return db.Spec.Environment["PASSWORD"]
	}
	sealed := password()
	require.NoError(t, h.d.contentStore.prune(t.Context()))
	require.Equal(t, canary, h.opened(sealed), "pruned before the loop had the plan")

	rules := h.d.judge.Rules
	h.d.judge.Rules.Services = 1
	require.NotNil(t, h.look(older, tree).Refused["shop"])
	h.d.contentStore.taken("prod")
	require.NoError(t, h.d.contentStore.prune(t.Context()))
	require.Empty(t, h.d.secrets.kept.find(func(*cipherEntry) bool { return true }), "nothing needs it")
	h.d.judge.Rules = rules
	require.Equal(t, canary, h.opened(password()), "the policy lets it through now")
}

// A container that was made before its key was taken out may still tell its values.
func TestAValueThatNoKeyOpensIsStillStruckOutOfLogs(t *testing.T) {
	keys, other := newKeyring(t), newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	h.look(older, fstest.MapFS{
		"shop/compose.yaml": file(oneSecretCompose),
		"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD=x\n", keys.recipient)),
		"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, canary, keys.recipient)),
	})
	h.d.cfg.Secrets.Keys = []config.SecretKey{{AgeFile: other.file}}
	h.restart()
	values, err := h.d.valuesOf("shop")
	require.NoError(t, err)
	require.Contains(t, values, canary)
}

// A signer may have rights on apps/compose.yaml, and none on apps/shop.
func TestAnAppGetsNoSecretsOfTheAppsBelowIt(t *testing.T) {
	keys := newKeyring(t)
	body := encrypt(t, secrets.Env, "PW="+canary+"\n", keys.recipient)
	compose := func(env string) *fstest.MapFile {
		return file("services: {web: {image: 'web:1', pull_policy: never, env_file: " + env + "}}\n")
	}
	for name, more := range map[string]fstest.MapFS{
		"found":  {"apps/compose.yaml": compose("shop/x.enc.env")},
		"listed": {"apps/compose.yaml": compose("shop/x.enc.env"), "gitring.yaml": file("version: 1\napps: [{path: apps}, {path: apps/shop}]\n")},
		"deeper": {"apps/compose.yaml": compose("shop/conf/x.enc.env"), "apps/shop/conf/x.enc.env": sealedFile(body)},
	} {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file, Sources: []string{"prod"}, Paths: []string{"apps/**"}})
		h.d.secrets.sources = 2
		tree := fstest.MapFS{"apps/shop/compose.yaml": compose("x.enc.env"), "apps/shop/x.enc.env": sealedFile(body)}
		for p, f := range more {
			tree[p] = f
		}
		plan := h.look(older, tree)
		h.app(plan, "shop")
		require.NotNil(t, plan.Refused["apps"], name)
		require.Equal(t, ring.SecretNotFor, plan.Refused["apps"].Code, name)
	}
}
