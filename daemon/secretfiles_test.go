package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
	"github.com/gitring/gitring/store"
)

// The canary is in each secret of these tests, so that one search finds all that leaked.
const canary = "canary-7f3a"

// nextSHA is a commit after older.
const nextSHA = ring.SHA("2222222222222222222222222222222222222222")

// testAgeKey is a key for tests alone, and the two files were encrypted for it by age.
const (
	testAgeKey       = "AGE-SECRET-KEY-1YGK9KZMGY99MKSVSN0VAVGQ6GCMH29HZSPWMRLC9J6C2M4UUXK6SFRU2HX"
	testAgeRecipient = "age178lxcm2vpa0hmgkp5v9gl56f09994j0pvk3p8rkk44gh9tvnsugsj7nyy4"
	// TOKEN=canary-of-an-age-file
	ageEnvFile = `-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBURHdhUmtGTDVGZTVBUnNy
czZBY3RzR2JFQnEwTjFmWkc4a2hDeHhlN1VjCnJDZjdsMzIrc0xPc3p2MFpBdG81
S1FVV242TnQzQVllVWRPZm1wMzFDZlUKLS0tIFh0OFk5d0FkYjg5eHJyWXRlYmNi
WmlQY2xMN2ZQQUJhTjhpMDlSQ2g0Wm8Kz9y6hDZtq4m/QI1Nx18mTUdt/xWR31oJ
Jkf0kzV1awMiE9lrJo4tlcobM7Dm52Z1y6CwpusH+wuX9DyC
-----END AGE ENCRYPTED FILE-----
`
)

// keyring is a pair of keys of hosts: what is encrypted for, and what opens.
type keyring struct {
	file      string
	recipient string
}

func newKeyring(t *testing.T) keyring {
	t.Helper()
	body, recipient, err := secrets.NewAgeKey(time.Now())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "age.key")
	require.NoError(t, os.WriteFile(file, body, 0o600))
	return keyring{file, recipient}
}

// encrypt is a file as SOPS writes it.
func encrypt(t *testing.T, form secrets.Form, plain string, recipients ...string) []byte {
	t.Helper()
	rule, err := secrets.RuleFor([]byte("creation_rules: [{age: '"+strings.Join(recipients, ",")+"'}]"), "x")
	require.NoError(t, err)
	body, err := secrets.Encrypt(form, []byte(plain), rule, nil, time.Now().UTC(), true)
	require.NoError(t, err)
	return body
}

// secretHost is a source of a host that has keys.
type secretHost struct {
	*follower
	t *testing.T
}

func newSecretHost(t *testing.T, keys ...config.SecretKey) *secretHost {
	t.Helper()
	h := &secretHost{follower: following(t), t: t}
	h.d.cfg.Secrets = config.SecretsConfig{Keys: keys, AtRest: config.AtRestDisk}
	h.d.cfg.Sources = []config.SourceConfig{{Name: "prod"}}
	h.restart()
	return h
}

// restart reads the keys and what is kept, as a new process does.
func (h *secretHost) restart() {
	h.t.Helper()
	var err error
	h.d.env, err = newEnvFolder(h.d.cfg)
	require.NoError(h.t, err)
	h.d.secrets, err = newSecretFiles(h.d.cfg, h.d.env.key)
	require.NoError(h.t, err)
	require.NoError(h.t, h.d.wireProviders())
	mounted := h.d.contentStore.mounted
	h.d.contentStore = newContentStore(h.d.store, mounted, h.d.openSealed)
	h.d.contentStore.places, err = newPlaces(h.d.cfg, h.d.secrets.kept)
	require.NoError(h.t, err)
	require.NoError(h.t, h.d.contentStore.places.begin())
}

// look reads a commit as a look at the remote does, and writes what it mounts.
func (h *secretHost) look(sha ring.SHA, tree fstest.MapFS) *ring.Plan {
	h.t.Helper()
	values, err := h.d.env.read()
	require.NoError(h.t, err)
	plan, err := h.plan(h.t.Context(), &ring.Commit{SHA: sha, Tree: tree}, values)
	require.NoError(h.t, err)
	text, err := json.Marshal(plan)
	require.NoError(h.t, err)
	require.NotContains(h.t, string(text), canary)
	return plan
}

func (h *secretHost) app(plan *ring.Plan, name string) *ring.App {
	h.t.Helper()
	app, ok := plan.App(name)
	require.True(h.t, ok, "%v", plan.Refused[name])
	return &app
}

// opened is a text of a plan as a container gets it.
func (h *secretHost) opened(text string) string {
	h.t.Helper()
	out, err := ring.Open(text, h.d.openSealed)
	require.NoError(h.t, err)
	return out
}

// mountedAt is the file that a service has at a target.
func (h *secretHost) mountedAt(s ring.Service, target string) string {
	h.t.Helper()
	for _, m := range s.Spec.Mounts {
		if rest, ok := strings.CutPrefix(target, m.Target); ok && (rest == "" || rest[0] == '/') {
			body, err := os.ReadFile(filepath.Join(h.d.contentStore.at(m.Source), m.File, rest))
			require.NoError(h.t, err)
			return string(body)
		}
	}
	h.t.Fatalf("nothing is mounted at %s", target)
	return ""
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func sealedFile(body []byte) *fstest.MapFile { return &fstest.MapFile{Data: body, Mode: 0o644} }

func TestAnEncryptedFileIsOpenedWhereverAManifestReadsOrMountsOne(t *testing.T) {
	keys := newKeyring(t)
	age := filepath.Join(t.TempDir(), "age2.key")
	require.NoError(t, os.WriteFile(age, []byte(testAgeKey+"\n"), 0o600))
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file}, config.SecretKey{AgeFile: age})
	enc := func(form secrets.Form, plain string) *fstest.MapFile {
		return sealedFile(encrypt(t, form, plain, keys.recipient))
	}
	tree := fstest.MapFS{
		"gitring.yaml": file("version: 1\napps: [{name: web, path: web, env_files: [more.enc.env]}]\n"),
		"web/compose.yaml": file(`services:
  web:
    image: "web:1"
    pull_policy: never
    env_file: [db.enc.env, token.age]
    environment: {URL: "db://u:${DOT}@db", MORE: "${MORE}"}
    command: ["run", "--password=${DOT}"]
    labels: {app.secret: "${DOT}"}
    volumes: ["./app.enc.yaml:/app.yaml:ro", "./conf:/conf:ro"]
    secrets: [{source: tls, uid: "70", gid: "71", mode: 0400}, pw]
    configs: [c]
secrets: {tls: {file: ./tls.key.enc}, pw: {environment: DOT}}
configs: {c: {file: settings.json}}
`),
		"web/.env":             enc(secrets.Env, "DOT="+canary+"-dot\ngitring_for=web\n"),
		"web/more.enc.env":     enc(secrets.Env, "MORE="+canary+"-more\n"),
		"web/db.enc.env":       enc(secrets.Env, "PASSWORD="+canary+"-env\nEMPTY=\nPORT=1\n"),
		"web/token.age":        file(ageEnvFile),
		"web/app.enc.yaml":     enc(secrets.YAML, "b: "+canary+"-yaml\na: 1\ngitring_for: [web]\n"),
		"web/conf/plain.conf":  file("plain\n"),
		"web/conf/secret.ini":  enc(secrets.INI, "[db]\npw = "+canary+"-ini\n"),
		"web/tls.key.enc":      enc(secrets.Binary, "-----BEGIN "+canary+"\x00\n"),
		"web/settings.json":    enc(secrets.JSON, `{"k": "`+canary+`-json"}`),
		"web/nobody.enc.yaml":  enc(secrets.YAML, "x: unused\n"),
		"web/README.md":        file("# web\n"),
		"other/docker-compose": file(""),
	}
	plan := h.look(older, tree)
	web, _ := h.app(plan, "web").Service("web")
	env := map[string]string{}
	for name, text := range web.Spec.Environment {
		env[name] = h.opened(text)
	}
	require.Equal(t, map[string]string{
		"PASSWORD": canary + "-env", "EMPTY": "", "PORT": "1", "TOKEN": "canary-of-an-age-file", "URL": "db://u:" + canary + "-dot@db", "MORE": canary + "-more",
	}, env)
	for _, note := range []string{
		"environment of web/web has secrets: the engine keeps them on its disk, and docker inspect shows them; mounted as a file they would be in neither", "command of web/web: every user of the host sees it in ps",
	} {
		require.Contains(t, h.app(plan, "web").Notes, note)
	}
	require.Equal(t, "--password="+canary+"-dot", h.opened(web.Spec.Command[1]))
	require.Equal(t, canary+"-dot", h.opened(web.Spec.Labels["app.secret"]))
	require.Equal(t, "b: "+canary+"-yaml\na: 1\n", h.mountedAt(web, "/app.yaml"))
	require.Equal(t, "plain\n", h.mountedAt(web, "/conf/plain.conf"))
	require.Equal(t, "[db]\npw = "+canary+"-ini\n", h.mountedAt(web, "/conf/secret.ini"))
	require.Equal(t, "-----BEGIN "+canary+"\x00\n", h.mountedAt(web, "/run/secrets/tls"))
	require.Equal(t, canary+"-dot", h.mountedAt(web, "/run/secrets/pw"))
	require.Contains(t, h.mountedAt(web, "/c"), canary+"-json")

	// Nothing encrypted is handed over, and nothing opened lies but where secrets do.
	require.NoError(t, filepath.WalkDir(h.d.cfg.State, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		if strings.HasPrefix(p, secretsOnDisk(h.d.cfg.State)) {
			require.NotContains(t, string(body), "ENC[", p)
			return err
		}
		require.NotContains(t, string(body), canary, p)
		return err
	}))
	for _, m := range web.Spec.Mounts {
		if m.Target != "/run/secrets/tls" {
			continue
		}
		st, err := os.Stat(filepath.Join(h.d.contentStore.at(m.Source), m.File))
		require.NoError(t, err)
		want := os.FileMode(0o400)
		if os.Geteuid() != 0 {
			want = 0o444 // nobody else may give a file away
		}
		require.Equal(t, want, st.Mode().Perm())
	}
}

// A file has the owner and mode that Compose says, wherever its value is from. Where the daemon
// may give nothing away, the plan of each such file says so.
func TestAMountedSecretHasTheOwnerAndModeThatComposeSays(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	h.d.cfg.Env.Dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(h.d.cfg.Env.Dir, "shop"), 0o700))
	for name, body := range map[string]string{".env": "PASSWORD=" + canary + "-folder\n", "own.pem": canary + "-pem"} {
		require.NoError(t, os.WriteFile(filepath.Join(h.d.cfg.Env.Dir, "shop", name), []byte(body), 0o600))
	}
	h.restart()
	tree := fstest.MapFS{
		"shop/compose.yaml": file(`services:
  web:
    image: web:1
    pull_policy: never
    secrets:
      - {source: pw, uid: "70", gid: "71", mode: 0440}
      - {source: own, uid: "70", mode: 0400}
      - {source: tls, gid: "71", mode: 0440}
      - {source: pw, target: plain}
secrets: {pw: {environment: PASSWORD}, own: {file: own.pem}, tls: {file: tls.enc}}
`),
		"shop/tls.enc": sealedFile(encrypt(t, secrets.Binary, canary+"-tls", keys.recipient)),
	}
	const lacks = "keeps the daemon's owner, and every user of the container may read it: gitring may not give files away here (CAP_CHOWN)"
	web, _ := h.app(h.look(older, tree), "shop").Service("web")
	require.Equal(t, canary+"-folder", h.mountedAt(web, "/run/secrets/pw"))
	for target, want := range map[string]string{
		"pw": "-r--r----- 70 71", "own": "-r-------- 70 0", "tls": "-r--r----- 0 71", "plain": fmt.Sprintf("-r--r--r-- %d %d", os.Geteuid(), os.Getegid()),
	} {
		if !mayChown() {
			want = fmt.Sprintf("-r--r--r-- %d %d", os.Geteuid(), os.Getegid())
		}
		m := web.Spec.Mounts[slices.IndexFunc(web.Spec.Mounts, func(m ring.Mount) bool { return m.Target == "/run/secrets/"+target })]
		st, err := os.Stat(filepath.Join(h.d.contentStore.at(m.Source), m.File))
		require.NoError(t, err)
		uid, gid, _ := disk.OwnersOf(st)
		require.Equal(t, want, fmt.Sprint(st.Mode(), " ", uid, " ", gid), target)
	}
	values, err := h.d.env.read()
	require.NoError(t, err)
	for _, no := range []bool{false, true} {
		s := h.here(values)
		s.NoChown = no
		plan := h.askedBy(s, &ring.Commit{SHA: nextSHA, Tree: tree}, values).Plan
		notes := h.app(&plan, "shop").Notes
		for _, name := range []string{"pw", "own", "tls"} {
			require.Equal(t, no, slices.Contains(notes, "web: secret "+name+" "+lacks), "%v", notes)
		}
		require.NotContains(t, strings.Join(notes, "\n"), "is not carried out")
	}
}

// A text without a value has the owner and mode that Compose gives it, too. It lies among the
// contents, where the daemon asks each now and then whether it is an opened value of before.
func TestATextOfTheComposeFileHasTheOwnerAndModeThatComposeSays(t *testing.T) {
	h := newSecretHost(t)
	tree := fstest.MapFS{
		"shop/.env": file("GREETING=hello\n"),
		"shop/compose.yaml": file(`services:
  web:
    image: web:1
    pull_policy: never
    configs:
      - {source: text, target: /etc/own, uid: "70", gid: "71", mode: 0400}
      - {source: text, target: /etc/run, mode: 0555}
      - {source: text, target: /etc/group, gid: "71"}
      - {source: text, target: /etc/plain}
      - {source: held, target: /etc/held, uid: "70"}
    secrets: [{source: word, target: /etc/word, uid: "70", mode: 0440}]
configs: {text: {content: "one text\n"}, held: {file: held.txt}}
secrets: {word: {environment: GREETING}}
`),
		"shop/held.txt": file("of the commit"),
	}
	app := h.app(h.look(older, tree), "shop")
	web, _ := app.Service("web")
	require.Equal(t, "one text\n", h.mountedAt(web, "/etc/own"))
	require.Equal(t, "hello", h.mountedAt(web, "/etc/word"))
	us := fmt.Sprintf("%d %d", os.Geteuid(), os.Getegid())
	for target, want := range map[string]string{
		"own": "-r-------- 70 71", "group": "-r--r--r-- 0 71", "run": "-r-xr-xr-x " + us, "plain": "-r--r--r-- " + us, "held": "-r--r--r-- " + us,
		"word": "-r--r----- 70 0",
	} {
		if !mayChown() {
			want = want[:10] + " " + us
			want = strings.Replace(strings.Replace(want, "-r--------", "-r--r--r--", 1), "-r--r-----", "-r--r--r--", 1)
		}
		m := web.Spec.Mounts[slices.IndexFunc(web.Spec.Mounts, func(m ring.Mount) bool { return m.Target == "/etc/"+target })]
		st, err := os.Stat(filepath.Join(h.d.contentStore.at(m.Source), m.File))
		require.NoError(t, err)
		uid, gid, _ := disk.OwnersOf(st)
		require.Equal(t, want, fmt.Sprint(st.Mode(), " ", uid, " ", gid), target)
	}
	require.Equal(t, []string{"web: uid of config held is not carried out: the file is root's, and every user of the container may read it"},
		slices.DeleteFunc(slices.Clone(app.Notes), func(n string) bool { return !strings.Contains(n, "carried out") }))
	opened, err := h.d.store.OpenedContents()
	require.NoError(t, err)
	require.Empty(t, opened, "none of them is a value of before")
}

const oneSecretCompose = `services:
  db:
    image: web:1
    pull_policy: never
    env_file: db.enc.env
  web:
    image: web:1
    pull_policy: never
    secrets: [tls]
  idle:
    image: web:1
    pull_policy: never
secrets: {tls: {file: tls.enc}}
`

func writtenOf(app *ring.App) map[string]string {
	out := map[string]string{}
	for _, s := range app.Services {
		out[s.Name] = s.Written
	}
	return out
}

func TestEncryptingAgainIsNothingToDoAndANewValueRollsItsServicesAlone(t *testing.T) {
	keys, other := newKeyring(t), newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	tree := func(pw, tls string, recipients ...string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file(oneSecretCompose),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+pw+"\n", recipients...)),
			"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, tls, recipients...)),
		}
	}
	first := writtenOf(h.app(h.look(older, tree(canary+"1", canary+"t", keys.recipient)), "shop"))
	for i := range 10 {
		recipients := []string{keys.recipient, other.recipient}
		if i%2 == 1 {
			recipients = []string{other.recipient, keys.recipient}
		}
		again := h.app(h.look(ring.SHA(strings.Repeat(fmt.Sprint(i), 40)), tree(canary+"1", canary+"t", recipients...)), "shop")
		require.Equal(t, first, writtenOf(again), "encrypted again")
	}
	second := writtenOf(h.app(h.look(older, tree(canary+"2", canary+"t", keys.recipient)), "shop"))
	require.NotEqual(t, first["db"], second["db"])
	require.Equal(t, first["web"], second["web"])
	require.Equal(t, first["idle"], second["idle"])
	third := writtenOf(h.app(h.look(older, tree(canary+"2", canary+"u", keys.recipient)), "shop"))
	require.NotEqual(t, second["web"], third["web"])
	require.Equal(t, second["db"], third["db"])
}

// Of a file that is mounted a plan says that it is another one: no value, no length, and no
// hash that whoever guesses the value could compare.
func TestAPlanSaysThatAMountedSecretIsAnotherAndNothingOfIt(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	tree := func(value string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file(oneSecretCompose),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD=x\n", keys.recipient)),
			"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, value, keys.recipient)),
		}
	}
	first := h.app(h.look(older, tree(canary+"1")), "shop")
	differs := func(value string) (reason string, told []byte) {
		next := h.app(h.look(nextSHA, tree(value)), "shop")
		before, _ := first.Service("web")
		after, _ := next.Service("web")
		changes := reconcile.Plan(reconcile.World{Facts: ring.Facts{Apps: map[string]ring.InForce{"shop": {App: *first}}}}, &ring.Plan{Source: "prod", Apps: []ring.App{*next}}, time.Now())
		text, err := json.Marshal(changes)
		require.NoError(t, err)
		return reconcile.Differs(first, &before, next, &after), text
	}
	reason, _ := differs(canary + "1")
	require.Empty(t, reason, "encrypted anew it is the same")
	const longer = canary + " and much longer than before"
	reason, text := differs(longer)
	require.Equal(t, "file tls.enc at /run/secrets/tls", reason)
	require.Contains(t, string(text), reason)
	for _, value := range []string{canary + "1", longer} {
		sum := sha256.Sum256([]byte(value))
		for _, no := range []string{canary, hex.EncodeToString(sum[:])[:8], base64.StdEncoding.EncodeToString(sum[:])[:8], fmt.Sprint(len(value)) + " B"} {
			require.NotContains(t, string(text), no)
		}
	}
}

// The key of the host may be a credential of systemd: then it lies in no state, and two states
// with the same one have the same versions.
func TestTheKeyOfTheHostMayBeACredential(t *testing.T) {
	keys := newKeyring(t)
	credential := filepath.Join(t.TempDir(), "host.key")
	require.NoError(t, os.WriteFile(credential, []byte(strings.Repeat("k", EnvKeySize)), 0o600))
	tree := fstest.MapFS{
		"shop/compose.yaml": file(oneSecretCompose),
		"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", keys.recipient)),
		"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, canary, keys.recipient)),
	}
	versions := func(with bool) map[string]string {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
		if with {
			require.NoError(t, os.Remove(filepath.Join(h.d.cfg.State, "env.key"))) // of its first start
			h.d.cfg.Secrets.HostKeyFile = credential
			h.restart()
		}
		app := h.app(h.look(older, tree), "shop")
		if with {
			require.NoFileExists(t, filepath.Join(h.d.cfg.State, "env.key"))
		}
		return writtenOf(app)
	}
	first := versions(true)
	require.Equal(t, first, versions(true))
	other := versions(false)
	require.NotEqual(t, first["db"], other["db"])
	require.Equal(t, first["idle"], other["idle"], "what has no secret is the same everywhere")
}

func TestAFileThatNoKeyOpensRefusesItsAppAloneAndSaysForWhomItIs(t *testing.T) {
	keys, other := newKeyring(t), newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	tree := func(recipients ...string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file("services: {db: {image: 'web:1', pull_policy: never, env_file: db.enc.env}}\n"),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", recipients...)),
			"blog/compose.yaml": file("services: {web: {image: 'web:1', pull_policy: never}}\n"),
		}
	}
	plan := h.look(older, tree(other.recipient))
	r := plan.Refused["shop"]
	require.NotNil(t, r)
	require.Equal(t, ring.SecretKey, r.Code)
	require.Equal(t, "shop/db.enc.env", r.File)
	require.Contains(t, r.Says, other.recipient[:20])
	require.Contains(t, r.Says, keys.recipient[:20])
	require.Contains(t, r.Hint, keys.recipient)
	h.app(plan, "blog")
	h.app(h.look(older, tree(other.recipient, keys.recipient)), "shop") // updatekeys heals it
}

func TestAChangedFileRefusesItsAppAndTellsNoValue(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	good := string(encrypt(t, secrets.Env, "A="+canary+"\nB="+canary+"2\n", keys.recipient))
	lines := strings.Split(good, "\n")
	for name, body := range map[string]string{
		"two values swapped": strings.Join(append([]string{"A=" + strings.TrimPrefix(lines[1], "B="), "B=" + strings.TrimPrefix(lines[0], "A=")}, lines[2:]...), "\n"),
		"one taken out":      strings.Join(lines[1:], "\n"),
		"one in clear":       strings.Join(append([]string{"A=plain"}, lines[1:]...), "\n"),
		"one added":          "C=\n" + good + "D=1\n",
		"the MAC taken out":  strings.Join(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "sops_mac=") }), "\n"),
	} {
		plan := h.look(older, fstest.MapFS{
			"shop/compose.yaml": file("services: {db: {image: 'web:1', pull_policy: never, env_file: db.enc.env}}\n"),
			"shop/db.enc.env":   file(body),
		})
		r := plan.Refused["shop"]
		require.NotNil(t, r, name)
		require.Equal(t, ring.SecretMAC, r.Code, name)
		require.Equal(t, "shop/db.enc.env", r.File, name)
		require.NotContains(t, r.Says+r.Hint, canary, name)
	}
}

func TestASecretMayOnlyStandWhereItReachesNothingButTheContainer(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	for _, service := range []string{
		"image: 'web:$PW'", "image: 'web:1', ports: ['${PW}:80']", "image: 'web:1', container_name: '$PW'", "image: 'web:1', volumes: ['./${PW}:/x']",
		"image: 'web:1', user: '$PW'", "image: 'web:1', hostname: '$PW'", "image: 'web:1', command: ['$PW', x]", "image: 'web:1', command: '$PW x'",
		"image: 'web:1', entrypoint: ['$PW']", "image: 'web:1', environment: {LD_PRELOAD: '$PW'}", "image: 'web:1', labels: {traefik.http.routers.x.rule: '$PW'}",
		"image: 'web:1', labels: {caddy: '$PW'}", "image: 'web:1', labels: {Traefik.http.routers.x.rule: '$PW'}", "image: 'web:1', labels: {chadburn.job-exec.x.command: '$PW'}", "image: 'web:1', healthcheck: {test: [CMD, '$PW']}", "image: 'web:1', x-gitring: {kind: job}, working_dir: '$PW'",
		"image: 'web:1', logging: {driver: syslog, options: {syslog-address: 'udp://$PW'}}", "image: 'web:1', post_start: [{command: ['$PW']}]",
		"image: 'web:1', networks: {default: {aliases: ['$PW']}}", "image: 'web:1', extra_hosts: ['$PW:1.2.3.4']", "image: 'web:1', configs: [{source: s, target: '$PW'}]",
		"image: 'web:1', environment: ['$PW=1']",
		// Each of what the policy judges by its value, or a front takes.
		"image: 'web:1', environment: {LD_LIBRARY_PATH: '$PW'}", "image: 'web:1', environment: {NVIDIA_VISIBLE_DEVICES: '$PW'}", "image: 'web:1', environment: {NVIDIA_DRIVER_CAPABILITIES: '$PW'}",
		"image: 'web:1', environment: {VIRTUAL_HOST: '$PW'}", "image: 'web:1', environment: {LETSENCRYPT_HOST: '$PW'}",
		"image: 'web:1', labels: {ofelia.job-exec.x.command: '$PW'}", "image: 'web:1', labels: {io.portainer.accesscontrol.public: '$PW'}", "image: 'web:1', labels: {caddy_0.reverse_proxy: '$PW'}",
		"image: 'web:1', logging: {driver: splunk, options: {splunk-url: '$PW'}}", "image: 'web:1', logging: {driver: awslogs, options: {awslogs-endpoint: '$PW'}}",
		"image: 'web:1', logging: {driver: gelf, options: {gelf-address: '$PW'}}",
		"image: 'web:1', pre_stop: [{command: ['$PW']}]", "image: 'web:1', pre_stop: [{command: [a], environment: {LD_PRELOAD: '$PW'}}]", "image: 'web:1', post_start: [{command: [a], environment: {LD_PRELOAD: '$PW'}}]",
	} {
		plan := h.look(older, fstest.MapFS{
			"shop/compose.yaml": file("services:\n  db: {" + service + "}\nconfigs: {s: {content: x}}\n"),
			"shop/.env":         sealedFile(encrypt(t, secrets.Env, "PW="+canary+"\n", keys.recipient)),
		})
		r := plan.Refused["shop"]
		require.NotNil(t, r, service)
		require.NotContains(t, fmt.Sprintf("%+v", r), canary, service)
		if r.Code != ring.SecretPlace {
			t.Errorf("%s: %v", service, r)
		}
		require.NotEmpty(t, r.Hint, service)
		require.Equal(t, 2, r.Line, service)
	}
	// The same of files: what is in one is the container's alone, and where it lies, whose it is
	// and what it is made of shapes the plan.
	for _, says := range []string{
		"services: {db: {image: a, secrets: [{source: s, uid: '$PW'}]}}\nsecrets: {s: {file: ./f}}", "services: {db: {image: a, secrets: [{source: s, gid: '$PW'}]}}\nsecrets: {s: {file: ./f}}",
		"services: {db: {image: a, secrets: [{source: s, mode: '$PW'}]}}\nsecrets: {s: {file: ./f}}", "services: {db: {image: a, secrets: [{source: s, target: '/x/$PW'}]}}\nsecrets: {s: {file: ./f}}",
		"services: {db: {image: a, secrets: ['$PW']}}\nsecrets: {s: {file: ./f}}", "services: {db: {image: a, secrets: [s]}}\nsecrets: {s: {file: './$PW'}}",
		"services: {db: {image: a, secrets: [s]}}\nsecrets: {s: {environment: '$PW'}}", "services: {db: {image: a, configs: [s]}}\nconfigs: {s: {file: './$PW'}}",
		"services: {db: {image: a, configs: [{source: s, mode: '$PW'}]}}\nconfigs: {s: {content: x}}", "services: {db: {image: a, volumes: ['./f:/x/$PW:ro']}}", "services: {db: {image: a, volumes: [{type: bind, source: './$PW', target: /x}]}}",
		"services: {db: {image: a, env_file: ['$PW']}}", "services: {db: {image: a, x-gitring: {reload: {paths: ['./$PW'], signal: HUP}}}}",
	} {
		plan := h.look(older, fstest.MapFS{
			"shop/compose.yaml": file(says + "\n"), "shop/f": file("x"), "shop/.env": sealedFile(encrypt(t, secrets.Env, "PW="+canary+"\n", keys.recipient)),
		})
		r := plan.Refused["shop"]
		require.NotNil(t, r, says)
		require.Contains(t, string(r.Code)+r.Says, "a secret may only stand where", "%s: %v", says, r) // beside others, maybe
		require.NotContains(t, fmt.Sprintf("%+v", r), canary, says)
	}
	inFile := h.look(older, fstest.MapFS{
		"shop/compose.yaml": file("services: {db: {image: a, pull_policy: never, configs: [c], secrets: [s]}}\nconfigs: {c: {content: 'password = $PW'}}\nsecrets: {s: {environment: PW}}\n"),
		"shop/.env":         sealedFile(encrypt(t, secrets.Env, "PW="+canary+"\n", keys.recipient)),
	})
	db, _ := h.app(inFile, "shop").Service("db")
	require.Equal(t, "password = "+canary, h.mountedAt(db, "/c"))
	require.Equal(t, canary, h.mountedAt(db, "/run/secrets/s"))
	steering := h.look(older, fstest.MapFS{
		"shop/compose.yaml": file("services: {db: {image: 'web:1', pull_policy: never}}\n"),
		"shop/.env":         sealedFile(encrypt(t, secrets.Env, "COMPOSE_PROFILES="+canary+"\n", keys.recipient)),
	})
	require.Equal(t, ring.SecretPlace, steering.Refused["shop"].Code)
}

func TestWhatShapesAPlanMayNotBeEncrypted(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	enc := sealedFile(encrypt(t, secrets.YAML, "services: {db: {image: 'web:1'}}\n", keys.recipient))
	lines := sealedFile(encrypt(t, secrets.Env, "a=b\n", keys.recipient))
	plain := "services: {db: {image: 'web:1', pull_policy: never}}\n"
	for name, tree := range map[string]fstest.MapFS{
		"a Compose file":    {"shop/compose.yaml": enc},
		"an included file":  {"shop/compose.yaml": file("include: [x.yaml]\n" + plain), "shop/x.yaml": enc},
		"an extended file":  {"shop/compose.yaml": file("services: {db: {extends: {file: x.yaml, service: db}}}\n"), "shop/x.yaml": enc},
		"a file of labels":  {"shop/compose.yaml": file("services: {db: {image: 'web:1', label_file: l.env}}\n"), "shop/l.env": lines},
		"a seeded folder":   {"shop/compose.yaml": file("services: {db: {image: 'web:1', volumes: ['./d:/d'], x-gitring: {mounts: {./d: seed}}}}\n"), "shop/d/x.enc.yaml": enc},
		"one that relabels": {"shop/compose.yaml": file("services: {db: {image: 'web:1', volumes: ['./x.enc.yaml:/x:ro,z']}}\n"), "shop/x.enc.yaml": enc},
		"yaml as lines":     {"shop/compose.yaml": file("services: {db: {image: 'web:1', env_file: x.enc.yaml}}\n"), "shop/x.enc.yaml": enc},
		"in a text":         {"shop/compose.yaml": file("services: {db: {image: 'web:1', configs: [c]}}\nconfigs: {c: {content: \"sops_mac=x\\n\"}}\n")},
		"a reloaded folder": {"shop/compose.yaml": file("services: {db: {image: 'web:1', volumes: ['./d:/d:ro'], x-gitring: {reload: {paths: [./d], signal: SIGHUP}}}}\n"), "shop/d/x.enc.yaml": enc},
		"the file of hosts": {"shop/compose.yaml": file(plain), ".gitring/fleet.yaml": enc},
		"the list of apps":  {"shop/compose.yaml": file(plain), "gitring.yaml": enc},
		"a seccomp profile": {"shop/compose.yaml": file("services: {db: {image: 'web:1', security_opt: ['seccomp:./s.json']}}\n"), "shop/s.json": enc},
	} {
		plan := h.look(older, tree)
		r := plan.Refused["shop"]
		if r == nil {
			r = plan.Refusal
		}
		require.NotNil(t, r, name)
		require.Equal(t, ring.SecretForm, r.Code, "%s: %v", name, r)
		require.NotEmpty(t, r.Hint, name)
		require.Empty(t, plan.Apps, name)
	}
}

// Two apps of one commit; whoever writes blog may write nothing of shop.
func TestNobodyGetsTheSecretsOfAnotherApp(t *testing.T) {
	keys := newKeyring(t)
	key := config.SecretKey{AgeFile: keys.file, Sources: []string{"prod"}, Paths: []string{"apps/shop/**"}}
	shops := encrypt(t, secrets.Env, "PW="+canary+"\n", keys.recipient)
	named := encrypt(t, secrets.Env, "PW="+canary+"\ngitring_for=shop\n", keys.recipient)
	blog := func(service string, more fstest.MapFS) fstest.MapFS {
		tree := fstest.MapFS{
			"apps/shop/compose.yaml": file("services: {db: {image: 'web:1', pull_policy: never, env_file: x.enc.env}}\n"),
			"apps/shop/x.enc.env":    sealedFile(shops),
			"apps/blog/compose.yaml": file(service),
		}
		for name, f := range more {
			tree[name] = f
		}
		return tree
	}
	env := func(name string) string {
		return "services: {web: {image: 'web:1', pull_policy: never, env_file: " + name + "}}\n"
	}
	for name, tree := range map[string]fstest.MapFS{
		"a copy":                    blog(env("x.enc.env"), fstest.MapFS{"apps/blog/x.enc.env": sealedFile(shops)}),
		"a copy under another name": blog(env("mine.env"), fstest.MapFS{"apps/blog/mine.env": sealedFile(shops)}),
		"a copy that names another": blog(env("x.enc.env"), fstest.MapFS{"apps/blog/x.enc.env": sealedFile(named)}),
		"the file itself":           blog(env("../shop/x.enc.env"), nil),
		"extends":                   blog("services: {web: {extends: {file: ../shop/compose.yaml, service: db}}}\n", nil),
		"include":                   blog("include: [{path: inc/c.yaml, env_file: ../shop/x.enc.env}]\nservices: {web: {image: 'web:1', pull_policy: never}}\n", fstest.MapFS{"apps/blog/inc/c.yaml": file("services: {i: {image: 'web:1', pull_policy: never, environment: [PW]}}\n")}),
		"a symlink":                 blog(env("link.env"), fstest.MapFS{"apps/blog/link.env": {Data: []byte("../shop/x.enc.env"), Mode: os.ModeSymlink | 0o777}}),
		"a mounted folder":          blog("services: {web: {image: 'web:1', pull_policy: never, volumes: ['../shop:/s:ro']}}\n", nil),
		"another app's name":        blog("name: shop2\n"+env("x.enc.env"), fstest.MapFS{"apps/blog/x.enc.env": sealedFile(shops)}),
	} {
		h := newSecretHost(t, key)
		h.d.secrets.sources = 2 // another source is followed, too
		plan := h.look(older, tree)
		h.app(plan, "shop")
		app := "blog"
		if name == "another app's name" {
			app = "shop2"
		}
		r := plan.Refused[app]
		require.NotNil(t, r, name)
		require.Contains(t, []ring.Code{ring.SecretNotFor, ring.SecretKey}, r.Code, "%s: %v", name, r)
		require.NotContains(t, fmt.Sprintf("%+v", r), canary)
	}

	t.Run("another source", func(t *testing.T) {
		h := newSecretHost(t, key)
		h.d.secrets.sources, h.settings.Source = 2, "dev"
		h.cfg.Name = "dev"
		plan := h.look(older, fstest.MapFS{"apps/shop/compose.yaml": file(env("x.enc.env")), "apps/shop/x.enc.env": sealedFile(shops)})
		require.Contains(t, []ring.Code{ring.SecretNotFor, ring.SecretKey}, plan.Refused["shop"].Code)
	})
	t.Run("a key without limits says nothing of whose a file is", func(t *testing.T) {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
		h.d.secrets.sources = 2
		plan := h.look(older, blog(env("x.enc.env"), fstest.MapFS{"apps/blog/x.enc.env": sealedFile(shops)}))
		require.Equal(t, ring.SecretNotFor, plan.Refused["blog"].Code)
		require.Equal(t, ring.SecretNotFor, plan.Refused["shop"].Code)
	})
	t.Run("a form without values has no place for whose it is", func(t *testing.T) {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
		h.d.secrets.sources = 2
		mounts := "services: {web: {image: 'web:1', pull_policy: never, secrets: [s]}}\nsecrets: {s: {file: ./s.enc}}\n"
		plan := h.look(older, fstest.MapFS{
			"apps/shop/compose.yaml": file(mounts), "apps/shop/s.enc": {Data: encrypt(t, secrets.Binary, canary, keys.recipient)},
			"apps/blog/compose.yaml": file(env("x.enc.env")), "apps/blog/x.enc.env": sealedFile(shops),
		})
		require.Equal(t, "bind a key of the host to apps/shop/** and to nothing else (secrets.keys: paths, sources)", plan.Refused["shop"].Hint)
		require.Contains(t, plan.Refused["blog"].Hint, "add gitring_for: blog to the encrypted values of the file, or bind a key")
	})
	t.Run("the file says which app it serves", func(t *testing.T) {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
		h.d.secrets.sources = 2
		plan := h.look(older, fstest.MapFS{"apps/shop/compose.yaml": file(env("../common.env")), "apps/common.env": sealedFile(named)})
		db, _ := h.app(plan, "shop").Service("web")
		require.Equal(t, canary, h.opened(db.Spec.Environment["PW"]))
		require.NotContains(t, db.Spec.Environment, "gitring_for")
	})
	t.Run("one source without bindings may use every file", func(t *testing.T) {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
		tree := fstest.MapFS{"common.env": sealedFile(shops)}
		for i := range 10 {
			tree[fmt.Sprintf("a%d/compose.yaml", i)] = file(env("../common.env"))
		}
		plan := h.look(older, tree)
		require.Len(t, plan.Apps, 10, "%v", plan.Refused)
	})
}

// Where a signer of the one source is bound to paths, a key says whose a file is by its paths
// alone, and not by those that are of all apps.
func TestAKeyThatIsBoundToNoAppOpensForNoneWhereASignerIs(t *testing.T) {
	keys := newKeyring(t)
	of := func(text string) []byte { return encrypt(t, secrets.Env, "PW="+canary+"\n"+text, keys.recipient) }
	for _, tt := range []struct {
		name           string
		sources, paths []string
		app            string
		body           []byte
		code           ring.Code
	}{
		{"its folder", nil, []string{"apps/shop/**"}, "shop", of(""), ""},
		{"its folder, and the source", []string{"prod"}, []string{"apps/shop/**"}, "shop", of(""), ""},
		{"another folder", nil, []string{"apps/shop/**"}, "blog", of(""), ring.SecretKey},
		{"no limit", nil, nil, "shop", of(""), ring.SecretNotFor},
		{"the source alone", []string{"prod"}, nil, "shop", of(""), ring.SecretNotFor},
		{"all paths", nil, []string{"**"}, "shop", of(""), ring.SecretNotFor},
		{"all paths beside its folder", nil, []string{"apps/shop/**", "**"}, "shop", of(""), ring.SecretNotFor},
		{"all paths, and the file names the app", nil, []string{"**"}, "shop", of("gitring_for=shop\n"), ""},
		{"no limit, and the file names the app", nil, nil, "shop", of("gitring_for=blog,shop\n"), ""},
		{"no limit, and the file names another one", nil, nil, "shop", of("gitring_for=blog\n"), ring.SecretNotFor},
	} {
		h := newSecretHost(t, config.SecretKey{AgeFile: keys.file, Sources: tt.sources, Paths: tt.paths})
		all := func([]string) bool { return true }
		_, r := openerFor{secretFiles: h.d.secrets, source: "prod", signers: signersOf{limited: true, oneHand: all}}.Open(manifest.SecretFile{
			Source: "prod", App: tt.app, Folder: "apps/" + tt.app, Path: "apps/" + tt.app + "/x.enc.env", Body: tt.body,
		})
		if tt.code == "" {
			require.Nil(t, r, tt.name)
			continue
		}
		require.NotNil(t, r, tt.name)
		require.Equal(t, tt.code, r.Code, tt.name)
		require.NotContains(t, r.Says+r.Hint, canary)
	}
}

// Whoever may add files to a part of what a key opens could copy others' ciphertext into it. So
// such a key says of no file whose it is, whichever apps lie there now.
func TestAKeyOfSeveralHandsSaysOfNoFileWhoseItIs(t *testing.T) {
	keys, own := newKeyring(t), newKeyring(t)
	const blogs, everything = "apps/blog/**", "apps/**"
	images := []gitsync.Role{gitsync.RoleImages}
	for _, tt := range []struct {
		name     string
		keys     []config.SecretKey
		bindings []gitsync.Binding
		text     string
		code     ring.Code
		hint     string
	}{
		{
			"a key for the folders of two", []config.SecretKey{{Paths: []string{everything}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}}}, "",
			ring.SecretNotFor, "add gitring_for: blog to the encrypted values of the file, or bind a key of the host to apps/blog/** and to nothing else (secrets.keys: paths, sources)",
		},
		{"and the file names the app", []config.SecretKey{{Paths: []string{everything}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}}}, "gitring_for=blog\n", "", ""},
		{"a key of its own", []config.SecretKey{{Paths: []string{blogs}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}}}, "", "", ""},
		{"one hand has all of them", []config.SecretKey{{Paths: []string{everything}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{"**"}}, {Signer: "eve", Paths: []string{"docs/**"}}}, "", "", ""},
		{"the same key twice", []config.SecretKey{{Paths: []string{blogs}}, {Paths: []string{"apps/shop/**"}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}}}, "", ring.SecretNotFor, "gitring_for"},
		{"the same key, and once for all", []config.SecretKey{{Paths: []string{blogs}}, {}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}}}, "", ring.SecretNotFor, "gitring_for"},
		{"another key for all", []config.SecretKey{{Paths: []string{blogs}}, {AgeFile: own.file}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}}}, "", "", ""},
		{
			"a part of the folder", []config.SecretKey{{Paths: []string{blogs}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{"apps/blog/conf/**"}}}, "",
			ring.SecretNotFor, "bind a key of the host to apps/blog/x.enc.env and",
		},
		{"the other part of the folder", []config.SecretKey{{Paths: []string{"apps/blog/x.enc.env"}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{"apps/blog/conf/**"}}}, "", "", ""},
		{"who answers for others brings files, too", []config.SecretKey{{Paths: []string{everything}}}, []gitsync.Binding{{Signer: "bob", Roles: []gitsync.Role{gitsync.RoleVouch}, Paths: []string{blogs}}}, "", ring.SecretNotFor, "gitring_for"},
		{"who moves images brings none", []config.SecretKey{{Paths: []string{everything}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{"**"}}, {Signer: "bot", Roles: images, Paths: []string{blogs}}}, "", "", ""},
		{"nobody but who moves images is bound", []config.SecretKey{{}}, []gitsync.Binding{{Signer: "bot", Roles: images, Paths: []string{blogs}}}, "", "", ""},
		{"bound at another source", []config.SecretKey{{Paths: []string{everything}}}, []gitsync.Binding{{Signer: "bob", Paths: []string{blogs}, Sources: []string{"lab"}}}, "", "", ""},
	} {
		for i := range tt.keys {
			tt.keys[i].AgeFile = cmp.Or(tt.keys[i].AgeFile, keys.file)
		}
		h := newSecretHost(t, tt.keys...)
		l := &ledger{}
		require.True(t, l.signersOf("prod").limited, "after a start nobody knows who signs")
		require.False(t, l.signersOf("prod").alike(blogs))
		l = &ledger{hands: map[string]gitsync.Hands{"prod": handsOf(t, tt.bindings)}}
		// The shop, from which the file was copied, is no app any more.
		_, r := openerFor{secretFiles: h.d.secrets, source: "prod", signers: l.signersOf("prod")}.Open(manifest.SecretFile{
			Source: "prod", App: "blog", Folder: "apps/blog", Path: "apps/blog/x.enc.env", Body: encrypt(t, secrets.Env, "PW="+canary+"\n"+tt.text, keys.recipient),
		})
		if tt.code == "" {
			require.Nil(t, r, tt.name)
			continue
		}
		require.NotNil(t, r, tt.name)
		require.Equal(t, tt.code, r.Code, tt.name)
		require.Contains(t, r.Hint, tt.hint, tt.name)
	}
}

// Whoever signs for one of two sources could copy ciphertext of the other into it.
func TestAKeyOfTwoSourcesSaysOfNoFileWhoseItIs(t *testing.T) {
	keys := newKeyring(t)
	for name, key := range map[string][]config.SecretKey{
		"one key":        {{AgeFile: keys.file, Sources: []string{"prod", "dev"}}},
		"the same twice": {{AgeFile: keys.file, Sources: []string{"prod"}}, {AgeFile: keys.file, Sources: []string{"dev"}}},
	} {
		for _, text := range []string{"", "gitring_for=shop\n"} {
			h := newSecretHost(t, key...)
			h.d.secrets.sources = 2
			_, r := openerFor{secretFiles: h.d.secrets, source: "dev"}.Open(manifest.SecretFile{
				Source: "dev", App: "shop", Folder: "shop", Path: "shop/x.enc.env", Body: encrypt(t, secrets.Env, "PW="+canary+"\n"+text, keys.recipient),
			})
			if text != "" {
				require.Nil(t, r, name)
				continue
			}
			require.NotNil(t, r, name)
			require.Equal(t, ring.SecretNotFor, r.Code, name)
		}
	}
}

// Who checks a folder with a host's configuration is told what the host says.
func TestOpeningWithAConfigurationKnowsItsSigners(t *testing.T) {
	keys, signers := newKeyring(t), filepath.Join(t.TempDir(), "signers")
	require.NoError(t, os.WriteFile(signers, []byte(aSigner), 0o600))
	f := manifest.SecretFile{Source: "prod", App: "shop", Folder: "shop", Path: "shop/x.enc.env", Body: encrypt(t, secrets.Env, "PW="+canary+"\n", keys.recipient)}
	for _, bound := range []bool{false, true} {
		c := &config.Config{Sources: []config.SourceConfig{{Name: "prod", Branch: "main"}}}
		c.Secrets.Keys = []config.SecretKey{{AgeFile: keys.file}}
		rules := config.TrustRules{Mode: gitsync.Strict, AllowedSigners: signers, ExpiryGrace: new(config.Duration)}
		if bound {
			rules.Signers.Bindings = []gitsync.Binding{{Signer: "bob", Paths: []string{"blog/**"}}}
		}
		c.Sources[0].Trust = &rules
		_, r := OpenSecrets(c, manifest.Settings{Source: "prod"}, nil).Secrets.Open(f)
		require.Equal(t, bound, r != nil, "%v", r)
	}
}

const aSigner = "bob ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"

// handsOf are what signers may do who are bound like this.
func handsOf(t *testing.T, bindings []gitsync.Binding) gitsync.Hands {
	t.Helper()
	key := filepath.Join(t.TempDir(), "signers")
	require.NoError(t, os.WriteFile(key, []byte(aSigner), 0o600))
	trust, err := gitsync.LoadTrust(gitsync.TrustConfig{Mode: gitsync.Strict, AllowedSigners: key, Bindings: bindings}, "prod", "main")
	require.NoError(t, err)
	return trust.Hands()
}

// What was read is kept as long as nothing by which files were opened changed: a source whose
// signer is bound to paths since is read anew, and so it is with another key, host or source.
func TestWhatDecidesWhoseAFileIsHasFilesReadAnew(t *testing.T) {
	keys, other := newKeyring(t), newKeyring(t)
	bound := "bob to apps/**"
	print := func(limited bool, sources int, host string, key config.SecretKey) string {
		h := newSecretHost(t, key)
		h.d.secrets.sources, h.d.secrets.host = sources, []byte(host)
		return h.d.secrets.print(signersOf{limited: limited, print: bound})
	}
	key := config.SecretKey{AgeFile: keys.file}
	was := print(false, 1, "k", key)
	require.Equal(t, was, print(false, 1, "k", key))
	for what, is := range map[string]string{
		"a signer is bound to paths": print(true, 1, "k", key), "another source": print(false, 2, "k", key), "another key of the host": print(false, 1, "l", key),
		"another key":        print(false, 1, "k", config.SecretKey{AgeFile: other.file}),
		"a key for a source": print(false, 1, "k", config.SecretKey{AgeFile: keys.file, Sources: []string{"prod"}}),
		"a key for paths":    print(false, 1, "k", config.SecretKey{AgeFile: keys.file, Paths: []string{"a/**"}}),
	} {
		require.NotEqual(t, was, is, what)
	}
	bound = "bob to apps/blog/**"
	require.NotEqual(t, was, print(false, 1, "k", key), "a signer is bound to other paths")
}

// What may be pushed by anybody is never opened: its plan would be an oracle.
func TestWhatIsNotVerifiedIsNotOpened(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	body := encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", keys.recipient)
	tree := func(env []byte) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file("services: {db: {image: 'web:1', pull_policy: never, env_file: db.enc.env}}\n"), "shop/db.enc.env": sealedFile(env),
		}
	}
	first := h.app(h.look(older, tree(body)), "shop")
	values, err := h.d.env.read()
	require.NoError(t, err)
	head := func(env []byte) *ring.App {
		t.Helper()
		p, err := h.planned(t.Context(), h.d.judge, &ring.Commit{SHA: nextSHA, Tree: tree(env)})
		require.NoError(t, err)
		return h.app(&p.next, "shop")
	}
	_ = values
	require.Equal(t, writtenOf(first), writtenOf(head(body)), "the same ciphertext at the same place is known")
	same := head(encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", keys.recipient))
	other := head(encrypt(t, secrets.Env, "PASSWORD=other\n", keys.recipient))
	require.NotEqual(t, writtenOf(first), writtenOf(same), "an equal value shows as little as another one")
	require.NotEqual(t, writtenOf(first), writtenOf(other))
	require.Contains(t, same.Notes, "shop/db.enc.env: not opened for a plan")
	require.NotContains(t, strings.Join(head(body).Notes, "\n"), "not opened", "nothing of it is unknown")
	db, _ := same.Service("db")
	_, err = ring.Open(db.Spec.Environment["PASSWORD"], h.d.openSealed)
	require.Error(t, err)
	was, _ := first.Service("db")
	require.Equal(t, "shop/db.enc.env changed: may roll", reconcile.Differs(first, &was, same, &db))
	landed := h.app(h.look(nextSHA, tree(encrypt(t, secrets.Env, "PASSWORD=other\n", keys.recipient))), "shop")
	db, _ = landed.Service("db")
	require.Equal(t, "secret PASSWORD of shop/db.enc.env changed", reconcile.Differs(first, &was, landed, &db))
}

// After updatekeys an older version is made of newer ciphertext, also without the old key.
func TestAVersionIsMadeAgainAfterItsKeyIsGone(t *testing.T) {
	old, fresh := newKeyring(t), newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: old.file}, config.SecretKey{AgeFile: fresh.file})
	tree := func(recipient string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file(oneSecretCompose),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", recipient)),
			"shop/tls.enc":      sealedFile(encrypt(t, secrets.Binary, canary+"tls", recipient)),
		}
	}
	before := tree(old.recipient)
	first := h.app(h.look(older, before), "shop")
	require.Equal(t, writtenOf(first), writtenOf(h.app(h.look(nextSHA, tree(fresh.recipient)), "shop")))
	h.d.cfg.Secrets.Keys = []config.SecretKey{{AgeFile: fresh.file}}
	h.restart()
	db, _ := first.Service("db")
	require.Equal(t, canary, h.opened(db.Spec.Environment["PASSWORD"]))
	require.Equal(t, writtenOf(first), writtenOf(h.app(h.look(older, before), "shop")), "an undo reads the old commit")
	require.NoError(t, os.RemoveAll(secretsOnDisk(h.d.cfg.State)))
	require.NoError(t, h.d.placeSecrets(t.Context()))
	web, _ := first.Service("web")
	require.Equal(t, canary+"tls", h.mountedAt(web, "/run/secrets/tls"))

	other := newKeyring(t)
	h.d.cfg.Secrets.Keys = []config.SecretKey{{AgeFile: other.file}}
	h.restart()
	_, err := ring.Open(db.Spec.Environment["PASSWORD"], h.d.openSealed)
	require.ErrorContains(t, err, "cannot open PASSWORD of shop/db.enc.env")
	require.NotContains(t, err.Error(), canary)
}

func TestAfterARebootTheFilesAreThereBeforeTheEngineStarts(t *testing.T) {
	if is, err := inMemory("/dev/shm"); err != nil || !is {
		t.Skip("needs /dev/shm on a memory file system")
	}
	dir, err := os.MkdirTemp("/dev/shm", "gitring-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	h.d.cfg.Secrets.AtRest, h.d.cfg.Secrets.Dir = config.AtRestMemory, filepath.Join(dir, "secrets")
	h.restart()
	tree := fstest.MapFS{
		"shop/compose.yaml":  file("services: {web: {image: 'web:1', pull_policy: never, secrets: [tls], volumes: ['./conf:/conf:ro']}}\nsecrets: {tls: {file: tls.enc}}\n"),
		"shop/tls.enc":       sealedFile(encrypt(t, secrets.Binary, canary, keys.recipient)),
		"shop/conf/a.conf":   file("plain"),
		"shop/conf/b.enc.js": sealedFile(encrypt(t, secrets.JSON, `{"a": "`+canary+`"}`, keys.recipient)),
	}
	was := unitLinks
	t.Cleanup(func() { unitLinks = was })
	link := filepath.Join(dir, "gitring-secrets.service")
	unitLinks = []string{link}
	const note = "files of shop/web: they are in memory, and after a reboot without gitring it does not start; systemctl enable gitring-secrets places them first"
	require.Contains(t, h.app(h.look(older, tree), "shop").Notes, note)
	require.NoError(t, os.Symlink("/usr/lib/systemd/system/gitring-secrets.service", link))
	app := h.app(h.look(nextSHA, tree), "shop")
	require.NotContains(t, app.Notes, note)
	web, _ := app.Service("web")
	at := h.d.contentStore.at(web.Spec.Mounts[0].Source)
	require.True(t, strings.HasPrefix(at, dir), at)
	st, err := os.Stat(h.d.cfg.Secrets.Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	require.NoDirExists(t, secretsOnDisk(h.d.cfg.State))

	other := *h.d.cfg
	other.State = t.TempDir()
	require.NoError(t, os.WriteFile(listOf(other.State), []byte("{}"), 0o600))
	_, err = PlaceSecrets(t.Context(), &other)
	require.ErrorContains(t, err, "is that of the daemon with the state "+h.d.cfg.State, "two daemons would remove each other's files")

	for range 20 { // each is a reboot without a daemon, an engine and a database
		require.NoError(t, os.RemoveAll(h.d.cfg.Secrets.Dir))
		placed, err := PlaceSecrets(context.Background(), h.d.cfg)
		require.NoError(t, err)
		require.Equal(t, 3, placed, "a file, and two of a folder")
		require.Equal(t, canary, h.mountedAt(web, "/run/secrets/tls"))
		require.Equal(t, "plain", h.mountedAt(web, "/conf/a.conf"))
	}
	require.NoError(t, os.RemoveAll(h.d.cfg.Secrets.Dir)) // a hand emptied it
	require.NoError(t, h.d.contentStore.mend(t.Context(), "prod", nil))
	require.Equal(t, canary, h.mountedAt(web, "/run/secrets/tls"))

	h.d.cfg.Secrets.Dir = filepath.Join(t.TempDir(), "disk")
	// What it lies on is asked of another program: whoever calls a disk memory must not pass.
	if sort, err := exec.Command("stat", "-f", "-c", "%T", t.TempDir()).Output(); err == nil && !slices.Contains([]string{"tmpfs", "ramfs"}, strings.TrimSpace(string(sort))) {
		_, err := PlaceSecrets(context.Background(), h.d.cfg)
		require.ErrorContains(t, err, "SecretsOnDisk")
		// and where the memory is gone while the daemon runs, nothing is written below it
		h.d.contentStore.places.memory = store.PlaceAt(h.d.cfg.Secrets.Dir)
		value := ring.Sealed{From: ring.FromSOPS, App: "shop", File: "shop/tls.enc", MAC: strings.Repeat("a", 32)}
		require.ErrorContains(t, h.d.contentStore.writeOne(t.Context(), ring.Content{Hash: "ab", Files: []ring.ContentFile{{
			Path: "tls", Sealed: true, Read: func() ([]byte, error) { return []byte(value.String()), nil },
		}}}), "SecretsOnDisk")
		require.NoDirExists(t, filepath.Join(h.d.cfg.Secrets.Dir, "ab"))
	}
}

// What mounts a folder has lost what was in it, once that is another folder. What mounts a file
// by itself has it still, and so has what was started since.
func TestWhatMountsAFolderThatWasEmptiedHasLostIt(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	tree := func(value string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file(`services:
  folder: {image: 'web:1', pull_policy: never, volumes: ['./conf:/conf:ro']}
  file: {image: 'web:1', pull_policy: never, secrets: [tls]}
  clear: {image: 'web:1', pull_policy: never, volumes: ['./clear:/conf:ro']}
secrets: {tls: {file: tls.enc}}
`),
			"shop/tls.enc":         sealedFile(encrypt(t, secrets.Binary, value, keys.recipient)),
			"shop/conf/b.enc.json": sealedFile(encrypt(t, secrets.JSON, `{"a": "`+value+`"}`, keys.recipient)),
			"shop/clear/a.conf":    file("plain"),
		}
	}
	w := reconcile.World{Facts: ring.Facts{Apps: map[string]ring.InForce{}}}
	for _, service := range []string{"folder", "file", "clear"} {
		w.Seen.Instances = append(w.Seen.Instances, ring.Instance{App: "shop", Service: service, Slot: 1, State: ring.StateRunning, Started: time.Now().Add(-time.Minute)})
	}
	inForce := func(sha ring.SHA, value string) {
		app := h.app(h.look(sha, tree(value)), "shop")
		w.Facts.Apps["shop"] = ring.InForce{App: *app}
		require.NoError(t, h.d.store.Record(t.Context(), []ring.Fact{ring.InForce{App: *app}}, nil))
		h.d.contentStore.taken("prod")
	}
	inForce(older, canary+"1")
	inForce(nextSHA, canary+"2")
	require.NoError(t, h.d.contentStore.mend(t.Context(), "prod", nil))
	require.Empty(t, h.d.contentStore.haveLost(&w), "nobody emptied anything")
	for name, again := range map[string]func() error{
		"a look":   func() error { return h.d.contentStore.mend(t.Context(), "prod", nil) },
		"a start":  func() error { return h.d.placeSecrets(t.Context()) },
		"a commit": func() error { h.look(nextSHA, tree(canary+"2")); return nil },
	} {
		require.NoError(t, os.RemoveAll(secretsOnDisk(h.d.cfg.State)))
		require.NoError(t, again())
		require.Equal(t, []ring.ServiceID{"shop/folder"}, h.d.contentStore.haveLost(&w), name)
		h.d.contentStore.emptied.Clear()
	}
	require.NoError(t, os.RemoveAll(secretsOnDisk(h.d.cfg.State)))
	require.NoError(t, h.d.contentStore.mend(t.Context(), "prod", nil))
	for i := range w.Seen.Instances {
		w.Seen.Instances[i].Started = time.Now().Add(time.Minute)
	}
	require.Empty(t, h.d.contentStore.haveLost(&w), "it was started since")
	require.NoError(t, h.d.rollWhatLost(t.Context()))
}

func TestSecretsArePlacedAsTheDaemonsUserOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("gives a folder to another user")
	}
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	require.NoError(t, os.Chown(h.d.cfg.State, 65534, 65534))
	_, err := PlaceSecrets(t.Context(), h.d.cfg)
	require.ErrorContains(t, err, "belongs to user 65534, and this is user 0")
	h.d.cfg.State = filepath.Join(t.TempDir(), "none")
	placed, err := PlaceSecrets(t.Context(), h.d.cfg)
	require.NoError(t, err, "no daemon ran yet")
	require.Zero(t, placed)
	require.NoDirExists(t, h.d.cfg.State)
}

func TestWithoutTheUnitFilesLieOnTheDisk(t *testing.T) {
	was := unitLinks
	t.Cleanup(func() { unitLinks = was })
	link := filepath.Join(t.TempDir(), "gitring-secrets.service")
	unitLinks = []string{link}
	c := &config.Config{}
	require.Equal(t, config.AtRestDisk, atRest(c))
	require.NoError(t, os.Symlink("/usr/lib/systemd/system/gitring-secrets.service", link))
	require.Equal(t, config.AtRestMemory, atRest(c))
	c.Secrets.AtRest = config.AtRestDisk
	require.Equal(t, config.AtRestDisk, atRest(c), "what is written is carried out")
}

// What nobody names goes: files at once, ciphertext when no undo may need it.
func TestWhatNoPlanNamesIsRemoved(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	h.d.contentStore.mounted = func(context.Context) (map[string]bool, error) { return nil, nil }
	tree := func(value string) fstest.MapFS {
		return fstest.MapFS{
			"shop/compose.yaml": file(oneSecretCompose),
			"shop/db.enc.env":   sealedFile(encrypt(t, secrets.Env, "PASSWORD="+value+"\n", keys.recipient)),
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
	require.NoError(t, h.d.contentStore.prune(t.Context()))
	web, _ := first.Service("web")
	require.NoDirExists(t, h.d.contentStore.at(web.Spec.Mounts[0].Source), "the old file is gone at once")
	db, _ := first.Service("db")
	require.Equal(t, canary+"1", h.opened(db.Spec.Environment["PASSWORD"]), "an undo may need it")
	web2, _ := second.Service("web")
	require.Equal(t, canary+"2", h.mountedAt(web2, "/run/secrets/tls"))
	require.Len(t, h.d.secrets.kept.find(func(*cipherEntry) bool { return true }), 4)
	require.Equal(t, store.PlaceAt(secretsOnDisk(h.d.cfg.State)), h.d.contentStore.places.disk)
}

func TestAnAppWithSecretsIsHandedBackWithThemOrNotAtAll(t *testing.T) {
	keys := newKeyring(t)
	h := newSecretHost(t, config.SecretKey{AgeFile: keys.file})
	tree := fstest.MapFS{
		"shop/compose.yaml":    file(oneSecretCompose),
		"shop/db.enc.env":      sealedFile(encrypt(t, secrets.Env, "PASSWORD="+canary+"\n", keys.recipient)),
		"shop/tls.enc":         sealedFile(encrypt(t, secrets.Binary, canary+"tls", keys.recipient)),
		"shop/unused.enc.yaml": sealedFile(encrypt(t, secrets.YAML, "x: "+canary+"\n", keys.recipient)),
	}
	app := h.app(h.look(older, tree), "shop")
	require.Equal(t, []string{"db", "web"}, h.d.needSecrets(app))
	plain, err := h.d.secrets.plainOf(app, tree)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"shop/db.enc.env": []byte("PASSWORD=" + canary + "\n"), "shop/tls.enc": []byte(canary + "tls")}, plain, "what it does not use stays shut")

	dir := filepath.Join(t.TempDir(), "left")
	back := &handback{app: app, tree: tree, root: "shop", plain: plain, more: map[string][]byte{}}
	_, err = back.write(dir)
	require.NoError(t, err)
	for name, want := range map[string]string{"db.enc.env": "PASSWORD=" + canary + "\n", "tls.enc": canary + "tls"} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(body))
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	}
	body, err := os.ReadFile(filepath.Join(dir, "unused.enc.yaml"))
	require.NoError(t, err)
	require.NotContains(t, string(body), canary)
}
