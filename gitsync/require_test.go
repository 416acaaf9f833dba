package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func requires(r Require) func(*TrustConfig) { return func(c *TrustConfig) { c.Require = r } }

// TestHardware is V66 and what goes with it.
func TestHardware(t *testing.T) {
	touch := func(flags byte) func(*yard) ring.SHA {
		return func(y *yard) ring.SHA {
			k := newTouched(y.t)
			y.signers = append(y.signers, "alice@example.org "+k.line())
			d := y.draft(noon)
			return y.put(d.signed(k.sign(y.t, d.payload(), flags)))
		}
	}
	file := func(y *yard) ring.SHA {
		y.allow("alice", "")
		return y.commit("alice", noon, "one")
	}
	gpg := func(y *yard) ring.SHA {
		y.gpg()
		return y.pgpCommit(y.pgpKey(noon.Add(-day), "alice", "ed25519", "sign", "never"), noon, "")
	}
	for _, row := range []struct {
		name string
		tip  func(*yard) ring.SHA
		ask  Require
		want ring.Code
	}{
		{"V66 a file key", file, Require{HardwareKey: true}, ring.HardwareKeyRequired},
		{"V66 an OpenPGP key, which may be anywhere", gpg, Require{HardwareKey: true}, ring.HardwareKeyRequired},
		{"V66 a security key", touch(userPresent), Require{HardwareKey: true}, ""},
		{"V66 a security key in a certificate", func(y *yard) ring.SHA { return certifiedTouch(y, userPresent, "").tip }, Require{HardwareKey: true}, ""},
		{"V66 a file key in a certificate", func(y *yard) ring.SHA {
			y.authority("ca", "*", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return y.certCommit("alice", noon)
		}, Require{HardwareKey: true}, ring.HardwareKeyRequired},
		{"a security key that did not ask who touched it", touch(userPresent), Require{UserVerified: true}, ring.NoUserVerification},
		{"a security key that asked for its PIN", touch(userPresent | userVerified), Require{HardwareKey: true, UserVerified: true}, ""},
		{"a PIN and no touch", touch(userVerified), Require{UserVerified: true}, ring.NoUserPresence},
		{"a file key where users have to be verified", file, Require{UserVerified: true}, ring.HardwareKeyRequired},
		{"a file key where nothing is required", file, Require{}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			tip := row.tip(y)
			change := []func(*TrustConfig){requires(row.ask)}
			if y.gnupg != "" {
				change = append(change, y.keyring("alice@example.org"))
			}
			y.ask(look{tip: tip, trust: change, want: row.want})
		})
	}
}

// team is a yard with three people, all of whom may vouch, and a first commit.
func team(t *testing.T) (*yard, ring.SHA) {
	t.Helper()
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	y.allow("carol", "")
	return y, y.edit("alice", "one", map[string]string{"a": "1"})
}

var allVouch = Binding{Signer: "*@example.org", Roles: []Role{RoleCommit, RoleMerge, RoleVouch}}

func vouchFor(shas ...ring.SHA) string {
	text := "vouch\n"
	for _, sha := range shas {
		text += "\nGitring-Vouch: " + string(sha)
	}
	return text
}

// TestApprovals is V67: how many people answered for each commit of a range.
func TestApprovals(t *testing.T) {
	for _, row := range []struct {
		name string
		need int
		push func(y *yard) (waits ring.SHA) // the commit that waits; "" is accept
		says string
	}{
		{"V67 one signer", 2, func(y *yard) ring.SHA {
			return y.edit("alice", "two", map[string]string{"a": "2"})
		}, "has 1 of 2 approvals"},
		{"V67 a second person's vouch commit approves", 2, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			y.edit("bob", vouchFor(c), nil)
			return ""
		}, ""},
		{"V67 one vouch commit approves all that it names", 2, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			d := y.edit("carol", "three", map[string]string{"a": "3"})
			y.edit("bob", vouchFor(c, d), nil)
			return ""
		}, ""},
		{"V67 one of two that the vouch commit does not name", 2, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			d := y.edit("carol", "three", map[string]string{"a": "3"})
			y.edit("bob", vouchFor(d), nil)
			return c
		}, "has 1 of 2 approvals"},
		{"V67 the same person twice", 2, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			y.edit("alice", vouchFor(c), nil)
			return c
		}, "has 1 of 2 approvals"},
		{"V67 three people, one vouch missing", 3, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			y.edit("bob", vouchFor(c), nil)
			return c
		}, "has 2 of 3 approvals"},
		{"V67 three people, two vouches", 3, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			v := y.edit("bob", vouchFor(c), nil)
			y.edit("carol", vouchFor(c, v), nil)
			return ""
		}, ""},
		{"V67 an unsigned commit that two people vouch for", 2, func(y *yard) ring.SHA {
			c := y.edit("", "two", map[string]string{"a": "2"})
			y.edit("bob", vouchFor(c), nil)
			y.edit("carol", vouchFor(c), nil)
			return ""
		}, ""},
		{"V67 an unsigned commit that one vouches for", 2, func(y *yard) ring.SHA {
			c := y.edit("", "two", map[string]string{"a": "2"})
			y.edit("bob", vouchFor(c), nil)
			return c
		}, "has 1 of 2 approvals"},
		{"V67 a vouch commit that brings a change of its own", 2, func(y *yard) ring.SHA {
			c := y.edit("alice", "two", map[string]string{"a": "2"})
			return y.edit("bob", vouchFor(c), map[string]string{"b": "of bob alone"})
		}, "has 1 of 2 approvals"},
		{"V67 a commit without a change that does not vouch", 2, func(y *yard) ring.SHA {
			return y.edit("bob", "two", nil)
		}, "has 1 of 2 approvals"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y, anchor := team(t)
			waits := row.push(y)
			_, refusal, err := y.trust(bound(allVouch), requires(Require{Approvals: row.need})).Range(y, anchor, y.head(), noon, nil)
			require.NoError(t, err)
			if waits == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, ring.AwaitingApproval, refusal.Code, refusal.Says)
			require.Equal(t, waits, refusal.Commit)
			require.Contains(t, refusal.Says, "commit "+waits.Short()+" "+row.says)
		})
	}
	t.Run("a refusal comes before waiting", func(t *testing.T) {
		y, anchor := team(t)
		y.edit("alice", "two", map[string]string{"a": "2"})
		y.edit("", "three", map[string]string{"a": "3"})
		y.ask(look{anchor: anchor, tip: y.head(), trust: []func(*TrustConfig){requires(Require{Approvals: 2})}, want: ring.Unsigned})
	})
	t.Run("two names with one key are one person", func(t *testing.T) {
		y, anchor := team(t)
		y.signers[0] = strings.Replace(y.signers[0], "alice@example.org", `alice@example.org valid-before="20250615120000Z"`, 1)
		y.signers = append(y.signers, `alias@example.org `+strings.Join(strings.Fields(y.signers[0])[2:], " "))
		c := y.edit("alice", "two", map[string]string{"a": "2"})
		y.commit("alice", noon.Add(time.Minute), vouchFor(c))
		y.ask(look{anchor: anchor, tip: y.head(), trust: []func(*TrustConfig){bound(allVouch), requires(Require{Approvals: 2})}, want: ring.AwaitingApproval, at: c})
	})
	t.Run("first use waits for an introduction", func(t *testing.T) {
		y, tip := team(t)
		y.ask(look{tip: tip, trust: []func(*TrustConfig){requires(Require{Approvals: 2})}, want: ring.AwaitingApproval, says: "introduction"})
		y.ask(look{tip: tip, trust: append(introducedBy(tip), requires(Require{Approvals: 2}))})
	})
	t.Run("a squash of a branch whose commits were approved there", func(t *testing.T) {
		y, anchor := team(t)
		y.git("checkout", "-q", "-b", "side")
		c := y.edit("alice", "two", map[string]string{"a": "2"})
		for _, approved := range []bool{false, true} {
			y.git("checkout", "-q", "side")
			if approved {
				y.edit("bob", vouchFor(c), nil)
			}
			head := y.head()
			y.checkout(anchor, "main")
			y.git("read-tree", "-u", "--reset", string(head))
			tip := y.commit("", noon, "squash\n\nGitring-Head: "+string(head))
			l := look{anchor: anchor, tip: tip, trust: []func(*TrustConfig){bound(allVouch), requires(Require{Approvals: 2}), func(c *TrustConfig) { c.Mode = ForgeMerge }}}
			if !approved {
				l.want, l.at = ring.AwaitingApproval, c
			}
			y.ask(l)
		}
	})
}

func TestWhatTheModeCannotGiveIsAMistake(t *testing.T) {
	for _, c := range []struct {
		cfg  TrustConfig
		says string
	}{
		{TrustConfig{Mode: Disabled, Require: Require{HardwareKey: true}}, "mode disabled does not look at"},
		{TrustConfig{Mode: Tip, Require: Require{Approvals: 2}}, "does not go with mode tip"},
		{TrustConfig{Mode: Tip, SignersInRepo: ".gitring/signers"}, "does not go with mode tip"},
		{TrustConfig{Mode: Strict, TrustThreshold: 2}, "signers_in_repo, which is not set"},
		{TrustConfig{Mode: Strict, SignersInRepo: "/etc/x"}, "clean path"},
		{TrustConfig{Mode: Strict, SignersInRepo: "../x"}, "clean path"},
		{TrustConfig{Mode: Strict, Require: Require{Approvals: -1}}, "is negative"},
		{TrustConfig{Mode: Strict, SignersInRepo: "x", TrustThreshold: -1}, "is negative"},
	} {
		_, err := LoadTrust(c.cfg, "prod", "main")
		require.ErrorContains(t, err, c.says)
	}
}

// A file of bindings is read as the other trust files are.
func TestBindingsComeFromAFile(t *testing.T) {
	y, anchor := team(t)
	file := filepath.Join(t.TempDir(), "signers.yaml")
	use := func(text string) (*Trust, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		signers := filepath.Join(t.TempDir(), "allowed")
		require.NoError(t, os.WriteFile(signers, []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
		return LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: signers, SignersFile: file}, "prod", "main")
	}
	trust, err := use("version: 1\nsigners:\n  - signer: bob@example.org\n    paths: [web/**]\n  - {signer: dave@example.org, roles: images}\n")
	require.NoError(t, err)
	require.Equal(t, "no key in the trust files has the name of signer dave@example.org, whom trust.signers names", trust.Idle())
	tip := y.edit("bob", "two", map[string]string{"a": "2"})
	_, refusal, err := trust.Range(y, anchor, tip, noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.PathNotAllowed, refusal.Code)

	for _, c := range []struct{ name, text, says string }{
		{"nothing", "", ":1: the file is empty; begin with version: 1"},
		{"no YAML", "version: 1\nsigners: [", ": it is no YAML: "},
		{"no version", "signers: []", ":1: version is missing; add version: 1"},
		{"another version", "version: 2\nsigners: []", `:1: version "2" is not known`},
		{"an unknown key at the top", "version: 1\nsigner: []", `:2: unknown key "signer"; did you mean "signers"?`},
		{"an unknown key", "version: 1\nsigners:\n  - signer: a\n    pathes: [b]", `:4: unknown key "pathes"; did you mean "paths"?`},
		{"keys, which are for the repository", "version: 1\nsigners:\n  - signer: a\n    keys: [b]", `:4: unknown key "keys"`},
		{"a key twice", "version: 1\nsigners:\n  - signer: a\n    signer: b", `:4: key "signer" is given twice; keep one`},
		{"an unknown role", "version: 1\nsigners:\n  - signer: a\n    roles: [commit, vuoch]", `:4: role "vuoch" is not known; did you mean "vouch"?`},
		{"no signer", "version: 1\nsigners:\n  - roles: [commit]", ":3: this item names no signer"},
		{"no roles", "version: 1\nsigners:\n  - signer: a\n    roles: []", ":4: roles is empty"},
		{"no paths, which is not all", "version: 1\nsigners:\n  - signer: a\n    paths: []", ":4: paths is empty"},
		{"an empty path", "version: 1\nsigners:\n  - signer: a\n    paths: ['']", ":4: nothing where a text belongs"},
		{"a path that leaves", "version: 1\nsigners:\n  - signer: a\n    paths: [ok, ../b]", `:4: path "../b" of signer a`},
		{"a mapping for a list", "version: 1\nsigners: {a: b}", ":2: a mapping where a list of signers belongs"},
		{"two documents", "version: 1\nsigners: []\n---\nversion: 1\n", "a second document begins here"},
		{"two mistakes", "version: 1\nsigners:\n  - signer: a\n    roles: [x]\n  - signer: b\n    path: y", "(and 1 more, the next in line 6)"},
	} {
		_, err := use(c.text)
		require.ErrorContains(t, err, "cannot use trust of source prod: cannot read "+file, c.name)
		require.ErrorContains(t, err, c.says, c.name)
	}
	require.NoError(t, os.Chmod(file, 0o666))
	_, err = LoadTrust(TrustConfig{Mode: Strict, SignersFile: file}, "prod", "main")
	require.ErrorContains(t, err, "chmod go-w")
}

func TestABindingThatACertificateMayFillIsNotIdle(t *testing.T) {
	y := newYard(t)
	y.authority("ca", "*@example.org", "")
	y.allow("bob", "")
	for signer, idle := range map[string]bool{"alice@example.org": false, "bob@example.org": false, "*@elsewhere.org": false, "eve@elsewhere.org": true} {
		require.Equal(t, idle, y.trust(bound(Binding{Signer: signer})).Idle() != "", signer)
	}
}
