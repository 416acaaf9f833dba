package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sopsProgram is the SOPS of the tests, built where it is not there yet.
func sopsProgram(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(filepath.Join("..", "scripts", "sops.sh")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	path, err := filepath.Abs(filepath.Join("..", "bin", "sops"))
	require.NoError(t, err)
	return path
}

// --- secrets.md --------------------------------------------------------------------

func secretsPage() howto {
	var app, host, mine, first, tls string
	var ids map[string]string
	keys := func(d *desk, names ...string) {
		var all []any
		for _, name := range names {
			all = append(all, obj{"age_file": filepath.Join(d.etc, name)})
		}
		d.config["secrets"] = obj{"keys": all}
		d.writeConfig()
	}
	rules := func(d *desk) {
		d.repo.write(files{".sops.yaml": "creation_rules:\n  - path_regex: \\.enc\n    age: " + host + "," + mine + "\n"})
	}
	recipient := func(d *desk, out string) string {
		d.t.Helper()
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "age1") {
				return strings.TrimSpace(line)
			}
		}
		require.FailNow(d.t, "no recipient", out)
		return ""
	}
	sealed := func(d *desk, name, plain string) {
		d.t.Helper()
		b, err := os.ReadFile(filepath.Join(d.repo.work, app, name))
		require.NoError(d.t, err)
		require.Contains(d.t, string(b), "ENC[AES256_GCM,")
		require.NotContains(d.t, string(b), plain)
	}
	// live are the ids of both containers, once the commit is and each has its value.
	live := func(d *desk) map[string]string {
		d.t.Helper()
		d.synced(d.repo.head())
		settled(d.host)
		_, body := d.ask(d.one("web"), "/file?path=/run/secrets/tls")
		require.Equal(d.t, tls, body)
		return map[string]string{"db": d.one("db").ID, "web": d.one("web").ID}
	}
	return howto{
		begin: func(d *desk) {
			app, tls = d.app("shop"), "the key of a certificate"
			d.says("shop", app)
			require.NoError(d.t, os.Symlink(sopsProgram(d.t), filepath.Join(d.path, "sops")))
			require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, "home", "tls.key"), []byte(tls), 0o600))
			d.repo.pushed("Version 1", files{app + "/compose.yaml": d.compose(app, obj{"db": web("1"), "web": web("1")})})
			d.repo.git("branch", "-q", "--set-upstream-to", "origin/main")
			d.start()
			d.synced(d.repo.head())
			settled(d.host)
		},
		steps: []step{
			{line: "sudo gitring secret keys --create --age-file /etc/gitring/age.key", after: func(d *desk, out string) {
				host = recipient(d, out)
				keys(d, "age.key")
			}},
			{line: "sudo chown gitring: /etc/gitring/age.key", as: "sudo chown $(id -un): /etc/gitring/age.key"}, // there is no such user here
			{line: "gitring secret keys --create --age-file ~/.config/sops/age/keys.txt", after: func(d *desk, out string) {
				mine = recipient(d, out)
				rules(d)
			}},
			{line: "gitring secret encrypt shop/db.enc.env", before: func(d *desk) {
				b, err := os.ReadFile(filepath.Join(d.repo.work, app, "db.enc.env"))
				require.NoError(d.t, err)
				_, first, _ = strings.Cut(strings.TrimSpace(string(b)), "=")
				require.Len(d.t, first, 32)
			}, after: func(d *desk, _ string) { sealed(d, "db.enc.env", first) }},
			{line: "sops encrypt -i shop/tls.enc", after: func(d *desk, _ string) {
				sealed(d, "tls.enc", tls)
				d.repo.write(files{app + "/compose.yaml": d.compose(app, obj{
					"db":  web("1", obj{"env_file": []any{"db.enc.env"}}),
					"web": web("1", obj{"secrets": []any{"tls"}}),
				}, obj{"secrets": obj{"tls": obj{"file": "./tls.enc"}}})})
			}},
			{line: "gitring secret check", after: func(d *desk, out string) { require.Equal(d.t, 2, strings.Count(out, "not opened here"), out) }},
			{line: "gitring plan .", after: func(d *desk, out string) { require.NotContains(d.t, out, first) }},
			{line: `git add -A && git commit -S -m "Give shop its password" && git push`, after: func(d *desk, _ string) {
				ids = live(d)
				require.Equal(d.t, first, d.one("db").env("DB_PASSWORD"))
			}},
			{line: "sops edit shop/db.enc.env", as: "EDITOR='sed -i s/=.*/=another/' sops edit shop/db.enc.env"}, // a person types there
			{line: `git commit -a -S -m "Change the password of shop" && git push`, after: func(d *desk, _ string) {
				now := live(d)
				require.Equal(d.t, "another", d.one("db").env("DB_PASSWORD"))
				require.NotEqual(d.t, ids["db"], now["db"])
				require.Equal(d.t, ids["web"], now["web"], "no other rolls")
				ids = now
			}},
			{line: "sudo gitring secret keys --create --age-file /etc/gitring/age-2027.key", after: func(d *desk, out string) {
				host = recipient(d, out)
				keys(d, "age.key", "age-2027.key")
				rules(d)
			}},
			{line: "sudo chown gitring: /etc/gitring/age-2027.key", as: "sudo chown $(id -un): /etc/gitring/age-2027.key"}, // there is no such user here
			{line: `git commit -a -S -m "Encrypt for the new key of the host" && git push`, after: func(d *desk, _ string) {
				b, err := os.ReadFile(filepath.Join(d.repo.work, app, "db.enc.env"))
				require.NoError(d.t, err)
				require.Contains(d.t, string(b), host)
				require.Equal(d.t, ids, live(d), "nothing rolls")
			}},
			{line: "sudo gitring sync --wait", after: func(d *desk, _ string) { keys(d, "age-2027.key") }},
			{line: "sudo systemctl restart gitring", after: func(d *desk, _ string) {
				require.Equal(d.t, ids, live(d))
				units := filepath.Join(d.dir, "units", "etc", "systemd", "system")
				require.NoError(d.t, os.MkdirAll(units, 0o755))
				unit, err := os.ReadFile(filepath.Join("..", "deploy-examples", "systemd", "gitring-secrets.service"))
				require.NoError(d.t, err)
				require.NoError(d.t, os.WriteFile(filepath.Join(units, "gitring-secrets.service"), unit, 0o600))
				d.says("<units>", filepath.Join(d.dir, "units"))
			}},
			enablesSecrets("<units>", func(d *desk) { // those of the page are below here
				_, err := os.Lstat(filepath.Join(d.dir, "units", "etc", "systemd", "system", "docker.service.wants", "gitring-secrets.service"))
				require.NoError(d.t, err)
			}),
			{line: `sudo gitring leave shop --with-secrets --reason "the host goes to another team"`, after: func(d *desk, _ string) {
				left := filepath.Join(d.dir, "state", "left", app)
				found := map[string]bool{}
				require.NoError(d.t, filepath.WalkDir(left, func(path string, e os.DirEntry, err error) error {
					if err != nil || e.IsDir() {
						return err
					}
					b, err := os.ReadFile(path)
					for _, value := range []string{"another", tls} {
						found[value] = found[value] || strings.Contains(string(b), value)
					}
					return err
				}))
				require.Equal(d.t, map[string]bool{"another": true, tls: true}, found)
			}},
		},
	}
}
