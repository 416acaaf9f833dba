package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// What a person does about who may change what runs.

// refused waits until the tip is refused, and holds for what.
func (d *desk) refused(code string) {
	d.t.Helper()
	st := d.await("the tip is refused", func(st status) bool { return st.Sources[0].Refusal != nil && st.Sources[0].Tip == d.repo.head() })
	require.Equal(d.t, code, st.Sources[0].Refusal.Code)
}

// keyOf makes a key beside the clone's files, as somebody sent it.
func (d *desk) keyOf(name string) string {
	d.t.Helper()
	file := filepath.Join(d.repo.work, name)
	pub := newKey(d.t, file)
	return strings.TrimSpace(pub)
}

// signed commits as whoever has the key.
func (d *desk) signed(subject, key string) string {
	d.t.Helper()
	d.repo.git("-c", "gpg.format=ssh", "-c", "user.signingKey="+key, "commit", "-q", "-S", "--allow-empty", "-m", subject)
	d.repo.push()
	return d.repo.head()
}

// --- onboard-a-person.md -----------------------------------------------------------------

func onboardAPerson() howto {
	return howto{
		begin: func(d *desk) {
			_, first := d.serving()
			d.tracks()
			for _, who := range []string{"bob", "carol", "authority", "dave"} {
				d.keyOf(who)
			}
			d.source()["trust"].(obj)["introduction"] = first
		},
		steps: []step{
			{line: `echo "bob@example.org namespaces=\"git\" $(cat bob.pub)" >> /etc/gitring/allowed_signers`, before: func(d *desk) {
				d.signed("By Bob", filepath.Join(d.repo.work, "bob"))
				d.refused("UnknownSigner")
			}},
			{line: "gitring trust show", after: func(d *desk, out string) {
				require.Regexp(d.t, `bob@example.org +always +ssh .* commit, merge`, out)
				require.Equal(d.t, "bob@example.org", d.synced(d.repo.head()).Sources[0].Signer)
			}},
			{line: `git add .gitring/signers && git commit -m "Let carol in"`, before: func(d *desk) {
				require.NoError(d.t, d.stop())
				d.source()["trust"].(obj)["signers_in_repo"] = ".gitring/signers"
				d.start()
				d.tracks()
				b, err := os.ReadFile(d.configFile())
				require.NoError(d.t, err)
				require.NoError(d.t, os.WriteFile(filepath.Join(d.repo.work, "config.yaml"), b, 0o600))
				pub, err := os.ReadFile(filepath.Join(d.repo.work, "carol.pub"))
				require.NoError(d.t, err)
				require.NoError(d.t, os.MkdirAll(filepath.Join(d.repo.work, ".gitring"), 0o755))
				require.NoError(d.t, os.WriteFile(filepath.Join(d.repo.work, ".gitring", "signers"), []byte(
					"version: 1\nsigners:\n  - signer: carol@example.org\n    roles: [commit, merge]\n    paths: [docs/**]\n    keys:\n      - "+string(pub)), 0o600))
			}},
			{line: "git push", after: func(d *desk, _ string) {
				d.synced(d.repo.head())
				_, out := d.types("gitring trust show")
				require.Regexp(d.t, `carol@example.org +always +ssh `, out)
			}},
			{line: "ssh-keygen -s authority -I dave -n dave@example.org -z 7 -V +52w dave.pub", after: func(d *desk, _ string) {
				for _, name := range []string{"dave", "dave.pub", "dave-cert.pub"} { // Dave has them at home
					require.NoError(d.t, os.Rename(filepath.Join(d.repo.work, name), filepath.Join(d.dir, "home", ".ssh", name)))
				}
			}},
			{line: "git config user.signingKey ~/.ssh/dave-cert.pub", after: func(d *desk, _ string) {
				sha := d.repo.pushed("By Dave", nil)
				require.Equal(d.t, "dave@example.org", d.synced(sha).Sources[0].Signer)
			}},
		},
	}
}

// --- rotate-and-revoke-a-key.md ------------------------------------------------------------

// pgp makes an OpenPGP key at the desk; it returns its full fingerprint.
func (d *desk) pgp(name string) string {
	d.t.Helper()
	d.hasGPG()
	code, out := d.types(`gpg --batch --passphrase '' --quick-generate-key "` + name + `" ed25519 sign 2y`)
	require.Equal(d.t, 0, code, out)
	return d.fingerprint(name)
}

func (d *desk) hasGPG() {
	d.t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		d.t.Skip("gpg is not here")
	}
	d.t.Cleanup(func() { _ = d.shell("gpgconf --kill all").Run() })
}

func (d *desk) fingerprint(name string) string {
	d.t.Helper()
	_, out := d.types(`gpg --batch --with-colons --list-secret-keys "` + name + `"`)
	m := regexp.MustCompile(`(?m)^fpr:+([0-9A-F]{40}):`).FindStringSubmatch(out)
	require.NotNil(d.t, m, out)
	return m[1]
}

func rotateAndRevokeAKey() howto {
	return howto{
		begin: func(d *desk) {
			require.NoError(d.t, os.WriteFile(filepath.Join(d.etc, "revoked"), nil, 0o600))
			d.source()["trust"].(obj)["revoked_keys"] = filepath.Join(d.etc, "revoked")
			d.serving()
			fingerprint := d.pgp("Erin <erin@example.org>")
			d.says("<full fingerprint>", fingerprint)
			d.says("<full OpenPGP fingerprint>", fingerprint)
			d.says("<fingerprint>", fingerprint)
			bob := d.keyOf("bob")
			d.keyOf("authority")
			b, err := os.ReadFile(d.repo.signers)
			require.NoError(d.t, err)
			require.NoError(d.t, os.WriteFile(d.repo.signers, append(b, []byte(`bob@example.org namespaces="git" `+bob+"\n")...), 0o600))
		},
		steps: []step{
			{
				line: "ssh-keygen -t ed25519 -f ~/.ssh/id_2027 -C alice@laptop", as: "ssh-keygen -t ed25519 -f ~/.ssh/id_2027 -C alice@laptop -N ''", // a passphrase is asked for
			},
			{line: `echo "alice@example.org namespaces=\"git\" $(cat ~/.ssh/id_2027.pub)"`, after: func(d *desk, out string) {
				f, err := os.OpenFile(d.repo.signers, os.O_APPEND|os.O_WRONLY, 0)
				require.NoError(d.t, err)
				_, err = f.WriteString(out)
				require.NoError(d.t, err)
				require.NoError(d.t, f.Close())
				d.synced(d.signed("By the new key", filepath.Join(d.dir, "home", ".ssh", "id_2027.pub")))
				_, out = d.types("gitring trust show")
				require.Equal(d.t, 2, strings.Count(out, "alice@example.org  always"), out)
			}},
			{line: "gpg --quick-set-expire <full fingerprint> 2y"},
			{line: "gpg --armor --export <full fingerprint>", after: func(d *desk, out string) {
				require.Contains(d.t, out, "BEGIN PGP PUBLIC KEY BLOCK")
			}},
			{line: "gitring sync", before: func(d *desk) {
				d.signed("By Bob", filepath.Join(d.repo.work, "bob"))
			}, after: func(d *desk, _ string) {
				d.refused("Revoked")
				b, err := os.ReadFile(filepath.Join(d.etc, "revoked"))
				require.NoError(d.t, err)
				require.Regexp(d.t, `^SHA256:\S+\n[0-9A-F]{40}\n$`, string(b))
			}},
			{line: "ssh-keygen -k -u -f /etc/gitring/revoked.krl bob.pub", as: "ssh-keygen -k -f /etc/gitring/revoked.krl bob.pub"}, // the first is made without -u
			{line: "ssh-keygen -Q -l -f /etc/gitring/revoked.krl", after: func(d *desk, out string) {
				require.Contains(d.t, out, "serial: 7")
				require.Contains(d.t, out, "SHA256:")
			}},
			{line: "git show <each of them>", as: "git show HEAD"},
			{line: "gpg --import <fingerprint>.rev", as: `sed 's/^:-----/-----/' ~/.gnupg/openpgp-revocs.d/<fingerprint>.rev > r && gpg --import r`},
			{line: "gpg --armor --export <fingerprint>", after: func(d *desk, out string) {
				_, listed := d.types("gpg --with-colons --list-keys <fingerprint>")
				require.Regexp(d.t, `(?m)^pub:r:`, listed, "it is revoked")
				require.Contains(d.t, out, "BEGIN PGP PUBLIC KEY BLOCK")
			}},
		},
	}
}

// --- sign-commits.md -------------------------------------------------------------------------

func signCommits() howto {
	var trusted string
	return howto{
		begin: func(d *desk) {
			_, trusted = d.serving()
			d.tracks()
			for _, setting := range []string{"gpg.format", "user.signingKey", "commit.gpgSign"} {
				d.repo.git("config", "--unset", setting)
			}
			newKey(d.t, filepath.Join(d.dir, "home", ".ssh", "id_ed25519"))
			require.NoError(d.t, os.WriteFile(filepath.Join(d.repo.work, ".git", "info", "exclude"), []byte("allowed_signers\nkeys.asc\n"), 0o600))
		},
		steps: []step{
			{line: `echo "$(git config user.email) namespaces=\"git\" $(cat ~/.ssh/id_ed25519.pub)"`, after: func(d *desk, out string) {
				f, err := os.OpenFile(d.repo.signers, os.O_APPEND|os.O_WRONLY, 0)
				require.NoError(d.t, err)
				_, err = f.WriteString(out)
				require.NoError(d.t, err)
				require.NoError(d.t, f.Close())
				trusted = d.repo.pushed("Signed by Git's settings", nil)
				d.synced(trusted)
			}},
			{line: `ssh-keygen -t ed25519-sk -f ~/.ssh/id_sign -C "alice, token"`, why: "a security key asks for a touch"},
			{line: `ssh-keygen -t ed25519-sk -O verify-required -f ~/.ssh/id_sign -C "alice, token"`, why: "a security key asks for a PIN"},
			{line: "git config user.signingKey ~/.ssh/id_sign.pub", before: func(d *desk) {
				d.hasGPG()
				newKey(d.t, filepath.Join(d.dir, "home", ".ssh", "id_sign")) // on no security key
			}, after: func(d *desk, _ string) {
				code, out := d.types("git commit -q --allow-empty -m 'By the other key' && git cat-file -p HEAD && git reset -q --hard HEAD~1")
				require.Equal(d.t, 0, code, out)
				require.Contains(d.t, out, "BEGIN SSH SIGNATURE")
			}},
			{
				line:  `gpg --quick-generate-key "Bob <bob@example.org>" ed25519 sign 2y`,
				as:    `gpg --batch --passphrase '' --quick-generate-key "Bob <bob@example.org>" ed25519 sign 2y`, // it asks for one
				after: func(d *desk, _ string) { d.says("<full fingerprint>", d.fingerprint("Bob <bob@example.org>")) },
			},
			{line: "gpg --list-secret-keys --keyid-format=none bob@example.org", after: func(d *desk, out string) {
				require.Contains(d.t, out, d.here("<full fingerprint>"))
			}},
			{line: "gpg --armor --export <full fingerprint>", after: func(d *desk, out string) {
				require.NoError(d.t, os.WriteFile(filepath.Join(d.repo.work, "keys.asc"), []byte(out), 0o600))
				b, err := os.ReadFile(d.repo.signers)
				require.NoError(d.t, err)
				require.NoError(d.t, os.WriteFile(filepath.Join(d.repo.work, "allowed_signers"), b, 0o600))
				code, out := d.types(`git commit -q --allow-empty -m "By Bob"`)
				require.Equal(d.t, 0, code, out)
			}},
			{line: "gitring verify --allowed-signers allowed_signers --openpgp-keys keys.asc origin/main..HEAD", after: func(d *desk, out string) {
				require.Contains(d.t, out, "bob@example.org")
			}},
			{line: "gitring init --hook --allowed-signers allowed_signers", after: func(d *desk, _ string) {
				d.repo.git("reset", "-q", "--hard", trusted)
				d.repo.git("-c", "commit.gpgSign=false", "commit", "-q", "--allow-empty", "-m", "Nobody signed this")
				code, out := d.types("git push")
				require.NotEqual(d.t, 0, code, "the hook keeps it here: %s", out)
				require.Contains(d.t, out, "Unsigned")
				for _, kv := range [][2]string{{"gpg.format", "ssh"}, {"user.signingKey", filepath.Join(d.dir, "home", ".ssh", "id_ed25519.pub")}} {
					d.repo.git("config", kv[0], kv[1])
				}
				d.repo.git("reset", "-q", "--hard", trusted)
				d.repo.write(files{"first": "a"})
				d.repo.git("-c", "commit.gpgSign=false", "commit", "-q", "-m", "Nobody signed this")
				d.repo.git("push", "-q", "--force", "--no-verify", "origin", "HEAD:main")
				d.refused("Unsigned")
			}},
			{line: "git push --force-with-lease", after: func(d *desk, _ string) { d.synced(d.repo.head()) }},
			{line: "git rebase --force-rebase -S <the parent of the unsigned commit>", before: func(d *desk) {
				trusted = d.repo.head()
				d.says("<the parent of the unsigned commit>", trusted)
				d.repo.write(files{"a": "a"})
				d.repo.git("-c", "commit.gpgSign=false", "commit", "-q", "-m", "Nobody signed this")
				d.repo.write(files{"b": "b"})
				d.repo.commit("Signed on top")
				d.repo.git("push", "-q", "--no-verify", "origin", "HEAD:main")
				d.refused("Unsigned")
			}},
			{line: "git push --force-with-lease", after: func(d *desk, _ string) { d.synced(d.repo.head()) }},
			{line: `gitring trust accept <full sha> --reason "history rewritten to drop a large file"`, before: func(d *desk) {
				d.repo.git("commit", "-q", "--amend", "-S", "-m", "Written anew")
				d.repo.git("push", "-q", "--force", "--no-verify", "origin", "HEAD:main")
				d.says("<full sha>", d.repo.head())
				d.refused("NonFastForward")
			}, after: func(d *desk, _ string) { d.synced(d.repo.head()) }},
		},
	}
}

// --- unwedge-after-a-web-edit.md ---------------------------------------------------------------

func unwedge() howto {
	return howto{
		begin: func(d *desk) {
			_, trusted := d.serving()
			d.says("<last trusted commit>", trusted)
			other := filepath.Join(d.dir, "web-editor")
			d.repo.run(d.dir, "clone", "-q", d.repo.bare, other)
			require.NoError(d.t, os.WriteFile(filepath.Join(other, "README.md"), []byte("corrected\n"), 0o600))
			d.repo.run(other, "add", "-A")
			d.repo.run(other, "-c", "user.name=Carol", "-c", "user.email=carol@example.org", "commit", "-q", "-m", "Update README.md")
			d.repo.run(other, "push", "-q", "origin", "HEAD:main")
			d.await("the edit is refused", func(st status) bool { return st.Sources[0].Refusal != nil && st.Sources[0].Refusal.Code == "Unsigned" })
			d.tracks()
		},
		steps: []step{
			{line: "gitring vouch --since <last trusted commit>", as: "gitring vouch --since <last trusted commit> --yes", after: func(d *desk, out string) {
				require.Regexp(d.t, `Carol <carol@example.org> +Update README.md +Unsigned`, out)
			}},
			{line: "git push", after: func(d *desk, _ string) { d.synced(d.repo.head()) }},
		},
	}
}

// --- recover-from-a-lost-key.md ----------------------------------------------------------------

func recoverFromALostKey() howto {
	return howto{
		begin: func(d *desk) { d.serving() },
		steps: []step{
			{line: "ssh-keygen -t ed25519 -f ~/.ssh/id_new -C alice@laptop2", as: "ssh-keygen -t ed25519 -f ~/.ssh/id_new -C alice@laptop2 -N ''"},
			{line: "sudoedit /etc/gitring/allowed_signers", as: `echo "alice@example.org namespaces=\"git\" $(cat ~/.ssh/id_new.pub)" > /etc/gitring/allowed_signers`},
			{line: "gitring sync", after: func(d *desk, _ string) {
				d.repo.git("config", "user.signingKey", filepath.Join(d.dir, "home", ".ssh", "id_new.pub"))
				d.synced(d.repo.pushed("By the new key", nil))
			}},
			{line: "gitring status", exit: 7, before: func(d *desk) {
				d.repo.git("reset", "-q", "--hard", "HEAD~1")
				d.repo.pushed("Restored from a clone", nil)
				d.says("<full id of the tip>", d.repo.head())
				d.says("<tip>", d.repo.head())
				d.await("it is refused", func(st status) bool { return st.Sources[0].Refusal != nil })
			}},
			{line: `gitring trust accept <full id of the tip> --reason "forge lost on 3 May, restored from alice's clone"`, after: func(d *desk, _ string) {
				d.synced(d.repo.head())
				_, out := d.types("gitring history")
				require.Contains(d.t, out, "forge lost on 3 May")
			}},
		},
	}
}

// --- start-from-a-repository.md ------------------------------------------------------------------

func startFromARepository() howto {
	var app string
	return howto{
		begin: func(d *desk) {
			app = d.app("web")
			d.repo.git("config", "commit.gpgSign", "false")
			d.repo.pushed("As it was", files{app + "/compose.yaml": d.compose(app, obj{"web": web("1")})})
			d.at = filepath.Join(d.dir, "home")
			require.NoError(d.t, os.RemoveAll(d.etc)) // this host has never seen gitring
			d.says("edge-1", d.name)
			d.says("git@github.com:acme/infra.git", "file://"+d.repo.bare+" infra")
			for _, line := range []string{"git config --global user.name Alice", "git config --global user.email alice@example.org"} {
				code, out := d.types(line)
				require.Equal(d.t, 0, code, out)
			}
		},
		steps: []step{
			{
				// On a terminal, by somebody who has a key and takes every proposal.
				line: "sudo -E gitring init", as: `yes '' | head -40 | script -qec "sudo -E gitring init --out ../../first" /dev/null`,
				before: func(d *desk) {
					require.NoError(d.t, os.MkdirAll(filepath.Join(d.dir, "home", ".ssh"), 0o700))
					newKey(d.t, filepath.Join(d.dir, "home", ".ssh", "id_ed25519"))
				},
				after: func(d *desk, out string) {
					require.Contains(d.t, out, "first/config.yaml")
					b, err := os.ReadFile(filepath.Join(d.dir, "first", "config.yaml"))
					require.NoError(d.t, err)
					require.Contains(d.t, string(b), "mode: strict")
					// What undoes it is typed as it says, and nothing of it is left.
					_, undo, found := strings.Cut(strings.ReplaceAll(out, "\r", ""), "to undo it:")
					require.True(d.t, found, out)
					undo, _, _ = strings.Cut(undo, "Next:")
					for _, line := range regexp.MustCompile(`(?m)^  ((?:git|rm) .*)$`).FindAllStringSubmatch(undo, -1) {
						code, out := d.types(line[1])
						require.Equal(d.t, 0, code, "%s: %s", line[1], out)
					}
					require.NoFileExists(d.t, filepath.Join(d.dir, "first", "config.yaml"))
					_, left := d.types("git config --local --list && git log --oneline")
					require.NotContains(d.t, left, "gitring")
					require.Equal(d.t, 1, strings.Count(left, "As it was"), left)
					for _, file := range []string{"id_ed25519", "id_ed25519.pub"} { // from here on there is none
						require.NoError(d.t, os.Remove(filepath.Join(d.dir, "home", ".ssh", file)))
					}
				},
			},
			{line: "gitring init --generate-key", as: "gitring init --generate-key --yes --host edge-1 --landing push --out ../../etc", exit: 0},
			{line: "gitring init --generate-key=ed25519-sk", why: "a security key asks for a touch"},
			{line: "gitring init --set-git-config", as: "gitring init --set-git-config --yes --host edge-1 --landing push --out ../../etc --force"},
			{line: "gitring init --introduce && git push", as: "gitring init --introduce --yes --host edge-1 --landing push --out ../../etc --force && git push"},
			{
				// Until somebody who sees the app run ends it.
				line: "gitring serve --config /etc/gitring/config.yaml", as: "gitring serve --config /etc/gitring/config.yaml & " +
					`for i in $(seq 600); do [ -z "$(docker ps -q --filter label=gitring.host=edge-1)" ] || break; sleep 0.1; done; kill -INT $!; wait $!`,
				before: func(d *desk) {
					code, out := d.types("gitring config check /etc/gitring/config.yaml && gitring verify HEAD && gitring validate --config /etc/gitring/config.yaml")
					require.Equal(d.t, 0, code, out)
					// The folders of this machine are not the test's.
					f, err := os.OpenFile(d.configFile(), os.O_APPEND|os.O_WRONLY, 0)
					require.NoError(d.t, err)
					_, err = fmt.Fprintf(f, "state: %s\ndata_root: %s\nlisten: {socket: %s, http: \"\"}\n", filepath.Join(d.dir, "state"), filepath.Join(d.dir, "data"), d.socket)
					require.NoError(d.t, err)
					require.NoError(d.t, f.Close())
				},
				after: func(d *desk, out string) {
					require.Contains(d.t, out, "app.in_force")
					d.until("the app runs", func() bool { return len(d.containers("web")) == 1 })
				},
			},
			{line: "gitring init --hook --config /etc/gitring/config.yaml"},
		},
	}
}

// --- merge-buttons-and-bots.md -------------------------------------------------------------------

func mergeButtons() howto {
	return howto{
		begin: func(d *desk) {
			d.source()["trust"].(obj)["mode"] = "forge-merge"
			d.serving()
			d.tracks()
			d.repo.git("switch", "-q", "-c", "topic")
			d.repo.commit("On the branch")
			d.repo.git("push", "-q", "-u", "origin", "topic")
			d.repo.git("switch", "-q", "main")
			d.says("<branch>", "topic")
			b, err := os.ReadFile(d.configFile())
			require.NoError(d.t, err)
			require.NoError(d.t, os.WriteFile(filepath.Join(d.repo.work, "config.yaml"), b, 0o600))
		},
		steps: []step{
			{line: "gitring verify --config config.yaml origin/main..HEAD", after: func(d *desk, out string) {
				require.Equal(d.t, 2, strings.Count(out, " good alice@example.org"), out)
			}},
		},
	}
}

// --- webhooks.md, notifications.md ------------------------------------------------------------------

func webhooksPage() howto {
	return howto{
		begin: func(d *desk) { d.serving() },
		steps: []step{
			{line: "openssl rand -hex 32 | sudo install -m 0600 -o gitring -g gitring /dev/stdin /etc/gitring/webhook-secret", after: func(d *desk, _ string) {
				d.config["listen"].(obj)["http"], d.config["listen"].(obj)["url"] = freePort(d.t), "https://edge-1.example.org"
				d.source()["webhook"] = obj{"forge": "github", "secret_file": filepath.Join(d.etc, "webhook-secret")}
				d.writeConfig()
			}},
			{line: "gitring webhook url prod", as: "gitring webhook url prod --config /etc/gitring/config.yaml", after: func(d *desk, out string) {
				require.Contains(d.t, out, "https://edge-1.example.org/v1/webhook/prod")
			}},
		},
	}
}

func notificationsPage() howto {
	return howto{
		begin: func(d *desk) { d.writeConfig() },
		steps: []step{
			{line: `echo "whsec_$(head -c 32 /dev/urandom | base64 -w0)" > /etc/gitring/hook-secret`, after: func(d *desk, _ string) {
				url := filepath.Join(d.etc, "hook-url")
				require.NoError(d.t, os.WriteFile(url, []byte("https://hook.example.org/x\n"), 0o600))
				require.NoError(d.t, os.Chmod(filepath.Join(d.etc, "hook-secret"), 0o600))
				d.config["notify"] = []any{obj{"name": "audit", "webhook": obj{"url_file": url, "secret_file": filepath.Join(d.etc, "hook-secret")}}}
				d.writeConfig()
				code, out := d.types("gitring config check /etc/gitring/config.yaml")
				require.Equal(d.t, 0, code, out)
			}},
		},
	}
}

// --- forge-*.md --------------------------------------------------------------------------------------

// forgePage has a token typed in, and the daemon's configuration taken with it.
func forgePage(forge string) howto {
	const line = "sudo install -m 0600 -o gitring -g gitring /dev/stdin /etc/gitring/status-token"
	return howto{
		begin: func(d *desk) { d.writeConfig() },
		steps: []step{
			{line: line, as: "echo a-token | " + line, after: func(d *desk, _ string) {
				token := filepath.Join(d.etc, "status-token")
				st, err := os.Stat(token)
				require.NoError(d.t, err)
				require.Equal(d.t, os.FileMode(0o600), st.Mode())
				d.source()["status"] = obj{"forge": forge, "token_file": token, "api_url": "https://forge.example.org/api", "repo": "acme/infra"}
				d.writeConfig()
				code, out := d.types("gitring config check /etc/gitring/config.yaml")
				require.Equal(d.t, 0, code, out)
			}},
		},
	}
}
