package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/program"
	"github.com/gitring/gitring/ring"
)

// vaultOf is a provider that is a script: it answers what lies in the file of a folder, and
// notes each call.
func vaultOf(t *testing.T, more ...func(*config.SecretProvider)) (p config.SecretProvider, dir string) {
	t.Helper()
	dir = t.TempDir()
	script := filepath.Join(dir, "vault")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$1\" >> "+dir+"/calls\ncat "+dir+"/\"$(echo \"$1\" | tr / _)\"\n"), 0o755))
	p = config.SecretProvider{Exec: []string{script, "{ref}"}, Refs: []string{"secret/{app}/*"}, Timeout: config.Duration(time.Minute), Keep: config.KeepSealed}
	for _, change := range more {
		change(&p)
	}
	return p, dir
}

func says(t *testing.T, dir, ref, value string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(ref, "/", "_")), []byte(value), 0o600))
}

func callsOf(t *testing.T, dir string) int {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "calls"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	return bytes.Count(body, []byte("\n"))
}

func newProviderHost(t *testing.T, p config.SecretProvider) *secretHost {
	t.Helper()
	h := newSecretHost(t)
	h.d.cfg.Secrets.Providers = map[string]config.SecretProvider{"vault": p}
	h.restart()
	return h
}

// asked has each value that a plan waits for asked for, as serve does.
func (h *secretHost) asked() {
	h.t.Helper()
	due, _ := h.d.secrets.providers.dueUpTo(1000)
	for _, of := range due {
		_, err := h.d.secrets.providers.ask(h.t.Context(), of)
		require.NoError(h.t, err)
	}
}

const shopFile = `x-gitring: {secrets: {PW: "vault:secret/shop/db"}}
services:
  db:
    image: "db:1"
    pull_policy: never
    environment: {PW: "${PW}"}
    secrets: [pw]
  web: {image: "web:1", pull_policy: never}
secrets: {pw: {environment: PW}}
`

func TestAProvidersValueReachesItsContainersAndNothingElse(t *testing.T) {
	vault, dir := vaultOf(t)
	says(t, dir, "secret/shop/db", canary+"-1\n")
	h := newProviderHost(t, vault)
	tree := fstest.MapFS{"shop/compose.yaml": file(shopFile)}

	plan := h.look(older, tree)
	require.Equal(t, map[string]string{"shop": "waits for vault:secret/shop/db"}, plan.Awaits, "its value is not known yet")
	h.asked()
	plan = h.look(older, tree)
	require.Empty(t, plan.Awaits)
	first := h.app(plan, "shop")
	db, _ := first.Service("db")
	require.Equal(t, canary+"-1", h.opened(db.Spec.Environment["PW"]), "one newline at the end is cut")
	require.Equal(t, canary+"-1", h.mountedAt(db, "/run/secrets/pw"))
	require.Equal(t, 1, callsOf(t, dir))

	// It is in no file of the state but where files with values lie.
	require.NoError(t, filepath.WalkDir(h.d.cfg.State, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(p, secretsOnDisk(h.d.cfg.State)) {
			return err
		}
		body, err := os.ReadFile(p)
		require.NoError(t, err)
		require.NotContains(t, string(body), canary, p)
		return nil
	}))

	// A look that changes nothing asks nobody, and neither does a new process.
	h.look(nextSHA, tree)
	h.restart()
	plan = h.look(nextSHA, tree)
	require.Empty(t, plan.Awaits)
	require.Equal(t, writtenOf(first), writtenOf(h.app(plan, "shop")))
	h.asked()
	require.Equal(t, 1, callsOf(t, dir))

	// A person asks again: another value is a new version of exactly what uses it.
	says(t, dir, "secret/shop/db", canary+"-2\n")
	for _, of := range h.d.secrets.providers.ofApp("shop") {
		changed, err := h.d.secrets.providers.ask(t.Context(), of)
		require.NoError(t, err)
		require.True(t, changed)
	}
	second := h.app(h.look(nextSHA, tree), "shop")
	require.NotEqual(t, writtenOf(first)["db"], writtenOf(second)["db"])
	require.Equal(t, writtenOf(first)["web"], writtenOf(second)["web"])
	// The version before can be made again, also by a new process.
	h.restart()
	require.Equal(t, canary+"-1", h.opened(db.Spec.Environment["PW"]))
	values, err := h.d.valuesOf("shop")
	require.NoError(t, err)
	require.Equal(t, map[string]string{canary + "-1": "PW", canary + "-2": "PW"}, values, "what is struck out of logs")

	// It goes back to the value before, and a new process knows which one counts.
	says(t, dir, "secret/shop/db", canary+"-1\n")
	h.look(nextSHA, tree)
	for _, of := range h.d.secrets.providers.ofApp("shop") {
		_, err := h.d.secrets.providers.ask(t.Context(), of)
		require.NoError(t, err)
	}
	require.Equal(t, writtenOf(first), writtenOf(h.app(h.look(nextSHA, tree), "shop")))
	h.restart()
	require.Equal(t, writtenOf(first), writtenOf(h.app(h.look(nextSHA, tree), "shop")))
}

func TestAProviderIsAskedForNothingButWhatTheAppMayName(t *testing.T) {
	vault, dir := vaultOf(t)
	h := newProviderHost(t, vault)
	for ref, hint := range map[string]string{
		"vault:secret/blog/db":         "secret/shop/*",
		"vault:secret/shop/../blog/db": "no part . or ..",
		"vault:secret/shop/a/b":        "secret/shop/*",
		"vault:secret/shop/":           "secret/shop/*",
		"vault:-field=secret/shop/db":  "no - at its beginning",
		"vault:-secret/shop/db":        "no - at its beginning",
		"vault:secret/shop/$(id)":      "use letters",
		"vault:secret/shop/a b":        "use letters",
		"vault:secret/shop/.":          "no part . or ..",
		"vault:secret/*/db":            "use letters",
		"bank:secret/shop/db":          "secrets.providers",
	} {
		t.Run(ref, func(t *testing.T) {
			tree := fstest.MapFS{"shop/compose.yaml": file(strings.Replace(shopFile, "vault:secret/shop/db", ref, 1))}
			plan := h.look(older, tree)
			r := plan.Refused["shop"]
			require.NotNil(t, r)
			require.Equal(t, ring.SecretRef, r.Code)
			require.Equal(t, "shop/compose.yaml:1", r.Where())
			require.Contains(t, r.Hint, hint)
		})
	}
	require.Zero(t, callsOf(t, dir))
}

func TestAProviderThatIsNotVerifiedIsNotAsked(t *testing.T) {
	vault, dir := vaultOf(t)
	says(t, dir, "secret/shop/db", canary)
	h := newProviderHost(t, vault)
	tree := fstest.MapFS{"shop/compose.yaml": file(shopFile)}
	values, err := h.d.env.read()
	require.NoError(t, err)
	r := manifest.Look(&ring.Commit{SHA: older, Tree: tree}, closed(h.here(values)))
	require.Empty(t, r.Refusals)
	require.Empty(t, r.Plan.Awaits)
	due, _ := h.d.secrets.providers.dueUpTo(1000)
	require.Empty(t, due)
	app, _ := r.Plan.App("shop")
	require.Contains(t, app.Notes, "PW of vault:secret/shop/db: not asked for here")
}

func TestAValueStandsOnlyWhereItReachesTheContainer(t *testing.T) {
	vault, dir := vaultOf(t)
	says(t, dir, "secret/shop/db", canary)
	h := newProviderHost(t, vault)
	tree := fstest.MapFS{"shop/compose.yaml": file(strings.Replace(shopFile, `image: "db:1"`, `image: "db:${PW}"`, 1))}
	for range 2 { // before it is known, and after
		r := h.look(older, tree).Refused["shop"]
		require.NotNil(t, r)
		require.Equal(t, ring.SecretPlace, r.Code)
		h.asked()
	}
}

func TestProvidersAreNotAskedForAnAppThatThereIsNot(t *testing.T) {
	vault, _ := vaultOf(t)
	h := newProviderHost(t, vault)
	_, err := h.d.refreshSecrets(t.Context(), api.Peer{}, api.SecretRefreshRequest{App: "nix"})
	require.ErrorContains(t, err, `no app "nix" on edge-1`)
}

func TestVariablesOfProvidersHaveTheirPlaceInTheOrder(t *testing.T) {
	vault, dir := vaultOf(t)
	for _, name := range []string{"a", "b", "c"} {
		says(t, dir, "secret/shop/"+name, "of-the-provider")
	}
	h := newProviderHost(t, vault)
	h.d.cfg.Env.Dir = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(h.d.cfg.Env.Dir, "shop"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.d.cfg.Env.Dir, "shop", ".env"), []byte("B=of-the-host\n"), 0o600))
	h.restart()
	tree := fstest.MapFS{
		"gitring.yaml": file("version: 1\napps: [{name: shop, path: shop, env_files: [more.env]}]\n"),
		"shop/.env":    file("A=of-the-commit\nB=of-the-commit\nC=of-the-commit\n"), "shop/more.env": file("C=of-env-files\n"),
		"shop/compose.yaml": file(`x-gitring: {secrets: {A: "vault:secret/shop/a", B: "vault:secret/shop/b", C: "vault:secret/shop/c"}}
services: {db: {image: "db:1", pull_policy: never, environment: {A: "${A}", B: "${B}", C: "${C}"}}}
`),
	}
	h.look(older, tree)
	h.asked()
	db, _ := h.app(h.look(older, tree), "shop").Service("db")
	require.Equal(t, "of-the-provider", h.opened(db.Spec.Environment["A"]))
	require.Equal(t, "of-the-host", h.opened(db.Spec.Environment["B"]))
	require.Equal(t, "of-env-files", h.opened(db.Spec.Environment["C"]))
}

func TestWhatIsNotKeptIsAskedForAtEachCreateAndAfterEachStart(t *testing.T) {
	vault, dir := vaultOf(t, func(p *config.SecretProvider) { p.Keep = config.KeepNone })
	says(t, dir, "secret/shop/db", canary+"-1")
	h := newProviderHost(t, vault)
	tree := fstest.MapFS{"shop/compose.yaml": file(`x-gitring: {secrets: {PW: "vault:secret/shop/db"}}
services: {db: {image: "db:1", pull_policy: never, environment: {PW: "${PW}"}}}
`)}
	h.look(older, tree)
	h.asked()
	db, _ := h.app(h.look(older, tree), "shop").Service("db")
	require.Equal(t, 1, callsOf(t, dir))
	require.Equal(t, canary+"-1", h.opened(db.Spec.Environment["PW"]))
	require.Equal(t, 2, callsOf(t, dir))
	require.NoError(t, filepath.WalkDir(h.d.cfg.State, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		require.NoError(t, err)
		require.NotContains(t, string(body), canary, p)
		return nil
	}))
	h.restart()
	require.Equal(t, []string{"shop"}, keysOf(h.look(older, tree).Awaits))

	says(t, dir, "secret/shop/db", canary+"-2")
	h.asked()
	_, err := ring.Open(db.Spec.Environment["PW"], h.d.openSealed)
	require.ErrorContains(t, err, "another value now")
	require.NotContains(t, err.Error(), canary)
}

// A reference means what its program makes of it. What another program said of it stays until
// the new one has answered, and that one is asked at once, though nothing has it asked by time.
func TestAnotherProgramOfAProviderIsAskedAnew(t *testing.T) {
	before, old := vaultOf(t)
	after, dir := vaultOf(t)
	says(t, old, "secret/shop/db", canary+"-of-the-old")
	h := newProviderHost(t, before)
	tree := fstest.MapFS{"shop/compose.yaml": file(shopFile)}
	h.look(older, tree)
	h.asked()
	db, _ := h.app(h.look(older, tree), "shop").Service("db")
	require.Equal(t, canary+"-of-the-old", h.opened(db.Spec.Environment["PW"]))

	h.d.cfg.Secrets.Providers = map[string]config.SecretProvider{"vault": after}
	h.restart()
	plan := h.look(older, tree)
	require.Empty(t, plan.Awaits, "the old value is known")
	due, _ := h.d.secrets.providers.dueUpTo(10)
	require.Len(t, due, 1)
	_, err := h.d.secrets.providers.ask(t.Context(), due[0]) // it has no answer yet
	require.Error(t, err)
	now, _ := h.app(h.look(nextSHA, tree), "shop").Service("db")
	require.Equal(t, db.Spec.Environment, now.Spec.Environment, "what runs stays")
	h.restart()
	h.look(nextSHA, tree)
	says(t, dir, "secret/shop/db", canary+"-of-the-old") // the same value, by the new program
	h.asked()
	require.Equal(t, 1, callsOf(t, dir)-1, "after the restart it was asked once more")
	now, _ = h.app(h.look(nextSHA, tree), "shop").Service("db")
	require.Equal(t, db.Spec.Environment, now.Spec.Environment)
	h.restart()
	h.look(nextSHA, tree)
	h.asked()
	require.Equal(t, 2, callsOf(t, dir), "the new program is known to have said it")

	says(t, dir, "secret/shop/db", canary+"-of-the-new")
	h.d.cfg.Secrets.Providers["vault"] = func() config.SecretProvider { after.Exec = append(after.Exec, "more"); return after }()
	h.restart()
	h.look(nextSHA, tree)
	h.asked()
	now, _ = h.app(h.look(nextSHA, tree), "shop").Service("db")
	require.Equal(t, canary+"-of-the-new", h.opened(now.Spec.Environment["PW"]))
}

func keysOf(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// clockedProviders are providers whose programs are answer, with nothing kept.
func clockedProviders(t *testing.T, says config.SecretProvider, answer func(program.Call) ([]byte, error)) (*providers, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	says.Exec, says.Timeout = append([]string{"/vault"}, says.Exec...), config.Duration(10*time.Second)
	if len(says.Refs) == 0 {
		says.Refs = []string{"**"}
	}
	p, err := newProviders(&config.Config{Secrets: config.SecretsConfig{Providers: map[string]config.SecretProvider{"vault": says}}}, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	p.kept = func(askedFor) (learnedValue, bool) { return learnedValue{}, false }
	p.run = func(_ context.Context, c program.Call) ([]byte, error) { return answer(c) }
	return p, log
}

func TestAProviderThatDoesNotAnswerIsAskedWithPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		p, log := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"s"}}, func(program.Call) ([]byte, error) {
			at = append(at, time.Since(began))
			return nil, errors.New("/vault ended with exit status 1")
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.serve(ctx) }()
		of, r := p.checked("shop", "vault:s")
		require.Nil(t, r)
		p.uses("prod", map[string][]string{"shop": {"vault:s"}})
		_, known, waits := p.value(of, true)
		require.False(t, known)
		require.Equal(t, "waits for vault:s", waits)
		time.Sleep(2 * time.Hour)
		_, _, waits = p.value(of, true)
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, fmt.Sprintf("waits for vault:s: /vault ended with exit status 1; attempt %d", len(at)), waits)
		var gaps []time.Duration
		for i := range at[1:] {
			gaps = append(gaps, at[i+1]-at[i])
		}
		require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 640 * time.Second}, gaps[:7])
		for _, gap := range gaps[7:] {
			require.Equal(t, 15*time.Minute, gap)
		}
		require.Equal(t, 1, strings.Count(log.String(), "did not answer"), "told once")
	})
}

func TestAHundredAppsWithOneReferenceAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		p, _ := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"s"}}, func(program.Call) ([]byte, error) {
			calls.Add(1)
			return []byte("v"), nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.serve(ctx) }()
		all := map[string][]string{}
		for i := range 100 {
			app := fmt.Sprintf("app%d", i)
			of, r := p.checked(app, "vault:s")
			require.Nil(t, r)
			p.value(of, true)
			all[app] = []string{"vault:s"}
		}
		p.uses("prod", all)
		time.Sleep(24 * time.Hour)
		stop()
		require.NoError(t, <-ended)
		require.EqualValues(t, 1, calls.Load())
	})
}

func TestAProviderIsAskedAgainAsTheConfigurationSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, pokes := 0, 0
		p, _ := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"s"}, Refresh: config.Duration(time.Hour)}, func(program.Call) ([]byte, error) {
			n++
			if n > 3 && n < 6 {
				return nil, errors.New("away")
			}
			return fmt.Appendf(nil, "v%d", n/3), nil
		})
		p.changed = func() { pokes++ }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.serve(ctx) }()
		of, _ := p.checked("shop", "vault:s")
		p.uses("prod", map[string][]string{"shop": {"vault:s"}})
		p.value(of, true)
		time.Sleep(time.Second)
		require.Equal(t, 1, pokes, "it is known")
		time.Sleep(time.Hour)
		require.Equal(t, 1, pokes, "the same")
		time.Sleep(time.Hour)
		require.Equal(t, 2, pokes, "another value")
		time.Sleep(time.Hour + time.Second)
		value, known, _ := p.value(of, true)
		require.True(t, known)
		require.Equal(t, "v1", value, "while it is away the known value stays")
		require.Equal(t, 2, pokes)
		// Once no app has it, it is asked no more.
		p.uses("prod", nil)
		was := n
		time.Sleep(24 * time.Hour)
		require.LessOrEqual(t, n, was+1)
		stop()
		require.NoError(t, <-ended)
	})
}

func TestAtMostFourProvidersRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		p, _ := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"*"}}, func(program.Call) ([]byte, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(5 * time.Second)
			now.Add(-1)
			return []byte("v"), nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.serve(ctx) }()
		var refs []string
		for i := range 20 {
			ref := fmt.Sprintf("vault:s%d", i)
			of, _ := p.checked("shop", ref)
			p.value(of, true)
			refs = append(refs, ref)
		}
		p.uses("prod", map[string][]string{"shop": refs})
		time.Sleep(time.Minute)
		stop()
		require.NoError(t, <-ended)
		require.EqualValues(t, 4, most.Load())
	})
}

func TestTheProgramOfAProviderGetsItsEnvironmentAndNoOther(t *testing.T) {
	t.Setenv("GITRING_TOKEN", canary)
	dir := t.TempDir()
	env := filepath.Join(dir, "vault.env")
	require.NoError(t, os.WriteFile(env, []byte("VAULT_TOKEN=t-1\n# a comment\n"), 0o644))
	vault, _ := vaultOf(t, func(p *config.SecretProvider) {
		p.Exec, p.EnvFile = []string{"/usr/bin/env", "--", "sh", "-c", `echo "$0 $VAULT_TOKEN [$GITRING_TOKEN] $(env | cut -d= -f1 | sort | tr "\n" " ")"`, "{ref} {app} {host}"}, env
	})
	c := &config.Config{Host: "edge-1", Secrets: config.SecretsConfig{Providers: map[string]config.SecretProvider{"vault": vault}}}
	_, err := newProviders(c, slog.New(slog.DiscardHandler))
	var host *ring.HostError
	require.ErrorAs(t, err, &host, "others may read it")
	require.Contains(t, host.Hint, "chmod 600 "+env)
	require.NoError(t, os.Chmod(env, 0o600))
	p, err := newProviders(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	of, r := p.checked("shop", "vault:secret/shop/db")
	require.Nil(t, r)
	out, err := p.answerOf(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, "secret/shop/db shop edge-1 t-1 [] HOME PATH PWD VAULT_TOKEN ", strings.Replace(strings.Replace(out, "SHLVL ", "", 1), "_ ", "", 1))
}

// What was kept of a value is known, so somebody's commit that nobody verified can name it. It
// may be due to be asked for again by then.
func TestACommitThatNobodyVerifiedHasNothingAskedAgain(t *testing.T) {
	p, _ := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"s"}, Refresh: config.Duration(time.Hour)}, func(program.Call) ([]byte, error) { return nil, nil })
	p.kept = func(askedFor) (learnedValue, bool) {
		return learnedValue{value: canary, at: time.Now().Add(-24 * time.Hour)}, true
	}
	of, r := p.checked("shop", "vault:s")
	require.Nil(t, r)
	_, known, _ := p.value(of, false)
	require.True(t, known)
	due, _ := p.dueUpTo(9)
	require.Empty(t, due)
	p.uses("prod", map[string][]string{"shop": {"vault:s"}})
	due, _ = p.dueUpTo(9)
	require.Len(t, due, 1, "once a commit of the branch has it")
}

// Two sources are looked at side by side: one says what it uses while the other has only been
// told that it waits.
func TestAReferenceIsAskedForWhateverAnotherSourceSaysMeanwhile(t *testing.T) {
	p, _ := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"s"}}, func(program.Call) ([]byte, error) { return []byte("v"), nil })
	of, _ := p.checked("shop", "vault:s")
	_, _, waits := p.value(of, true)
	require.Equal(t, "waits for vault:s", waits)
	p.uses("infra", nil)
	p.uses("prod", map[string][]string{"shop": {"vault:s"}})
	due, _ := p.dueUpTo(9)
	require.Equal(t, []askedFor{of}, due)
}

// Whoever may change one app can have it name any number of values that nobody has.
func TestAnAppWithManyReferencesKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := clockedProviders(t, config.SecretProvider{Exec: []string{"{ref}"}, Refs: []string{"{app}/*"}}, func(c program.Call) ([]byte, error) {
			time.Sleep(10 * time.Second)
			if strings.HasPrefix(c.Argv[1], "greedy") {
				return nil, errors.New("/vault ended with exit status 1")
			}
			return []byte("v"), nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.serve(ctx) }()
		var many []string
		for i := range 2000 {
			many = append(many, fmt.Sprintf("vault:greedy/s%d", i))
		}
		p.uses("prod", map[string][]string{"greedy": many})
		time.Sleep(5 * time.Second)
		p.uses("prod", map[string][]string{"greedy": many, "shop": {"vault:shop/db"}})
		of, _ := p.checked("shop", "vault:shop/db")
		time.Sleep(20 * time.Second)
		_, known, waits := p.value(of, true)
		stop()
		require.NoError(t, <-ended)
		require.True(t, known, waits)
	})
}

func TestOneReferenceMayHaveSeveralNames(t *testing.T) {
	for _, keep := range []string{config.KeepSealed, config.KeepNone} {
		t.Run(keep, func(t *testing.T) {
			vault, dir := vaultOf(t, func(p *config.SecretProvider) { p.Keep = keep })
			says(t, dir, "secret/shop/db", canary+"-1")
			h := newProviderHost(t, vault)
			tree := fstest.MapFS{"shop/compose.yaml": file(`x-gitring: {secrets: {A: "vault:secret/shop/db", B: "vault:secret/shop/db"}}
services: {db: {image: "db:1", pull_policy: never, environment: {A: "${A}", B: "x${B}"}}}
`)}
			h.look(older, tree)
			h.asked()
			db, _ := h.app(h.look(older, tree), "shop").Service("db")
			require.Equal(t, canary+"-1", h.opened(db.Spec.Environment["A"]))
			require.Equal(t, "x"+canary+"-1", h.opened(db.Spec.Environment["B"]))
			kept := func() int {
				files, err := filepath.Glob(filepath.Join(h.d.cfg.State, "ciphertext", "*"))
				require.NoError(t, err)
				return len(files)
			}
			was := kept()
			for _, sha := range []ring.SHA{nextSHA, older, nextSHA} {
				h.memory = manifest.Memory{}
				h.look(sha, tree)
			}
			require.Equal(t, was, kept(), "nothing is kept anew where nothing changed")
			values, err := h.d.valuesOf("shop")
			require.NoError(t, err)
			require.Contains(t, values, canary+"-1", "it is struck out of logs")
		})
	}
}

func TestAProviderThatOthersCanWriteIsNotRun(t *testing.T) {
	vault, dir := vaultOf(t)
	says(t, dir, "secret/shop/db", canary)
	require.NoError(t, os.Chmod(vault.Exec[0], 0o777))
	h := newProviderHost(t, vault)
	h.look(older, fstest.MapFS{"shop/compose.yaml": file(shopFile)})
	due, _ := h.d.secrets.providers.dueUpTo(10)
	require.Len(t, due, 1)
	_, err := h.d.secrets.providers.ask(t.Context(), due[0])
	require.ErrorContains(t, err, vault.Exec[0])
	require.Zero(t, callsOf(t, dir))
}
