package gitsync

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const signersPath = DefaultSignersInRepo

func inRepo(c *TrustConfig) { c.SignersInRepo = signersPath }

// listed is a file of signers with the yard's keys; each item is a name, maybe
// with roles after a colon: "bob" or "bob:commit,trust".
func (y *yard) listed(items ...string) string {
	y.t.Helper()
	text := "version: 1\nsigners:\n"
	for _, item := range items {
		name, roles, _ := strings.Cut(item, ":")
		text += fmt.Sprintf("  - signer: %s@example.org\n", name)
		if roles != "" {
			text += "    roles: [" + roles + "]\n"
		}
		text += "    keys: [" + y.publicLine(name) + "]\n"
	}
	return text
}

// texts is one change: path and content by turns.
func texts(of ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(of); i += 2 {
		out[of[i]] = of[i+1]
	}
	return out
}

// root is a yard where alice is in the daemon's configuration, and bob, carol,
// dave and mallory have keys and are nowhere.
func root(t *testing.T) *yard {
	t.Helper()
	y := newYard(t)
	y.allow("alice", "")
	for _, name := range []string{"bob", "carol", "dave", "mallory"} {
		y.key(name)
	}
	return y
}

// late is a commit on the branch that is checked out, which alice then brings onto
// main at a revision, whose signers she keeps.
func (y *yard) late(key, main string) ring.SHA {
	y.t.Helper()
	at := y.edit(key, "late", texts("late", "2"))
	y.checkout(ring.SHA(y.git("rev-parse", main)), "main")
	_, _ = runIn(y, "merge", "-q", "--no-ff", "--no-commit", string(at))
	y.git("checkout", "-q", main, "--", signersPath)
	y.commitWith(noon, "merge", y.signWith("alice")...)
	return at
}

// TestSignersInTheRepository is V64, V65 and what lies around them.
func TestSignersInTheRepository(t *testing.T) {
	for _, row := range []struct {
		id, name string
		// push makes the anchor and what comes after it; the anchor holds start.
		start []string
		push  func(y *yard) (at ring.SHA) // the commit refused; "" is the tip
		trust []func(*TrustConfig)
		want  ring.Code
		says  string
	}{
		{id: "V64", name: "a person is let in, and signs the next commit", start: nil, push: func(y *yard) ring.SHA {
			y.edit("alice", "bob joins", texts(signersPath, y.listed("bob")))
			y.edit("bob", "two", texts("a", "2"))
			return ""
		}},
		{id: "V64", name: "a trust-role signer of the file lets in another", start: []string{"bob:commit,trust"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "carol joins", texts(signersPath, y.listed("bob:commit,trust", "carol")))
			y.edit("carol", "two", texts("a", "2"))
			return ""
		}},
		{id: "V64", name: "the role trust alone is enough for the file alone", start: []string{"bob:trust"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "carol joins", texts(signersPath, y.listed("bob:trust", "carol")))
			return ""
		}},
		{id: "V64", name: "the role trust alone and another file", start: []string{"bob:trust"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "carol joins", texts(signersPath, y.listed("bob:trust", "carol"), "a", "2"))
			return ""
		}, want: ring.RoleNotAllowed, says: "role commit"},
		{id: "V64", name: "the file goes away, and the configuration's keys stay", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.edit("alice", "nobody", texts(signersPath, ""))
			y.edit("alice", "two", texts("a", "2"))
			return ""
		}},
		{id: "V65", name: "a key that lets itself in", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.edit("mallory", "me too", texts(signersPath, y.listed("bob", "mallory")))
			return ""
		}, want: ring.UnknownSigner},
		{id: "V65", name: "an unsigned commit lets a key in, which signs the next", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			at := y.edit("", "me too", texts(signersPath, y.listed("bob", "mallory:commit,vouch,trust")))
			y.edit("mallory", "two", texts("a", "2"))
			return at
		}, want: ring.Unsigned},
		{id: "V65", name: "an unsigned commit lets a key in, which vouches for it", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			at := y.edit("", "me too", texts(signersPath, y.listed("bob", "mallory:commit,vouch,trust")))
			y.edit("mallory", vouchFor(at), nil)
			return ring.SHA(y.git("rev-parse", "HEAD"))
		}, want: ring.UnknownSigner},
		{id: "V65", name: "a signer without the role lets a key in", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "mallory joins", texts(signersPath, y.listed("bob", "mallory")))
			return ""
		}, want: ring.RoleNotAllowed, says: "bob@example.org does not have the role trust"},
		{id: "V65", name: "a signer gives himself a role", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "more", texts(signersPath, y.listed("bob:commit,trust")))
			return ""
		}, want: ring.RoleNotAllowed},
		{name: "a signer takes the file away", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "none", texts(signersPath, ""))
			return ""
		}, want: ring.RoleNotAllowed},
		{name: "a signer makes a link of the file", start: []string{"bob:commit,trust"}, push: func(y *yard) ring.SHA {
			y.edit("", "x", texts(signersPath, ""))
			y.git("reset", "-q", "--soft", "HEAD~1")
			y.run(nil, y.dir, "ln", "-s", "../a", signersPath)
			y.edit("bob", "link", nil)
			return ""
		}, want: ring.BadTrustFile, says: "no regular file"},
		{name: "a file that cannot be read, by one who may", start: []string{"bob:commit,trust"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "oops", texts(signersPath, "version: 1\nsigners:\n  - signer: bob@example.org\n    role: [commit]\n"))
			return ""
		}, want: ring.BadTrustFile, says: `unknown key "role"`},
		{name: "somebody who is taken out", start: []string{"bob", "carol"}, push: func(y *yard) ring.SHA {
			y.edit("alice", "carol leaves", texts(signersPath, y.listed("bob")))
			return y.edit("carol", "two", texts("a", "2"))
		}, want: ring.UnknownSigner},
		{name: "a limited path in the file", start: nil, push: func(y *yard) ring.SHA {
			y.edit("alice", "bob joins", texts(signersPath, y.listed("bob")+"    paths: [web/**]\n"))
			y.edit("bob", "two", texts("web/a", "2"))
			return y.edit("bob", "three", texts("db/a", "2"))
		}, want: ring.PathNotAllowed},
		{name: "a key of the configuration that the file narrows keeps what it has", start: nil, push: func(y *yard) ring.SHA {
			y.edit("alice", "narrow", texts(signersPath, y.listed("alice:images")))
			y.edit("alice", "two", texts("a", "2"))
			return ""
		}},
		{name: "a key that the configuration limits and the file widens", start: nil, push: func(y *yard) ring.SHA {
			y.signers = append(y.signers, "bob@example.org "+y.publicLine("bob"))
			y.edit("alice", "bob too", texts(signersPath, y.listed("bob")))
			y.edit("bob", "two", texts("a", "2"))
			return ""
		}, trust: []func(*TrustConfig){bound(Binding{Signer: "bob@example.org", Paths: []string{"web/**"}})}},
		{name: "a binding of the configuration gives a name in the file nothing", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.edit("bob", "x", texts(signersPath, ""))
			return ""
		}, trust: []func(*TrustConfig){bound(Binding{Signer: "bob@example.org", Roles: []Role{RoleCommit, RoleTrust}})}, want: ring.RoleNotAllowed},
		{name: "an expired key of the file", start: nil, push: func(y *yard) ring.SHA {
			y.edit("alice", "bob joins", texts(signersPath, "version: 1\nsigners:\n  - signer: bob@example.org\n    keys:\n      - {key: "+y.publicLine("bob")+", valid_before: 2025-06-01}\n"))
			return y.edit("bob", "two", texts("a", "2"))
		}, want: ring.KeyExpired},
		{name: "revoked_keys of the host wins", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.revoked = []string{y.publicLine("bob")}
			return y.edit("bob", "two", texts("a", "2"))
		}, want: ring.Revoked},
		{name: "an old branch does not bring back who was taken out", start: []string{"bob", "mallory"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "mallory leaves", texts(signersPath, y.listed("bob")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			evil := y.edit("mallory", "late", texts("b", "2"))
			y.git("checkout", "-q", "main")
			y.merge("alice", string(evil))
			return evil
		}, want: ring.UnknownSigner},
		{name: "nor on top of an honest commit there", start: []string{"bob", "mallory"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "mallory leaves", texts(signersPath, y.listed("bob")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			y.edit("bob", "honest", texts("c", "2"))
			evil := y.edit("mallory", "late", texts("b", "2"))
			y.git("checkout", "-q", "main")
			y.merge("alice", string(evil))
			return evil
		}, want: ring.UnknownSigner},
		{name: "an honest old branch is merged, and the file stays new", start: []string{"bob", "carol"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "carol leaves", texts(signersPath, y.listed("bob")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			side := y.edit("bob", "honest", texts("c", "2"))
			y.git("checkout", "-q", "main")
			y.merge("bob", string(side))
			return y.edit("carol", "late", texts("d", "2"))
		}, want: ring.UnknownSigner},
		{name: "a merge that takes the old file of an old branch", start: []string{"bob", "carol"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "carol leaves", texts(signersPath, y.listed("bob")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			side := y.edit("bob", "honest", texts("c", "2"))
			y.git("checkout", "-q", "main")
			y.git("merge", "-q", "--no-ff", "--no-commit", string(side))
			y.git("checkout", "-q", string(old), "--", signersPath)
			return y.commitWith(noon, "merge", y.signWith("bob")...)
		}, want: ring.SignersStale},
		{name: "a change on a branch, merged by one without the role", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.git("checkout", "-q", "-b", "side")
			side := y.edit("alice", "carol joins", texts(signersPath, y.listed("bob", "carol")))
			y.git("checkout", "-q", "main")
			y.edit("bob", "two", texts("a", "2"))
			y.merge("bob", string(side))
			y.edit("carol", "three", texts("a", "3"))
			return ""
		}},
		{name: "two changes made apart, merged by one without the role", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.git("checkout", "-q", "-b", "side")
			side := y.edit("alice", "carol joins", texts(signersPath, y.listed("carol", "bob")))
			y.git("checkout", "-q", "main")
			y.edit("alice", "dave joins", texts(signersPath, y.listed("bob", "dave")))
			y.git("merge", "-q", "--no-ff", "--no-commit", "-X", "ours", string(side))
			return y.commitWith(noon, "merge", y.signWith("bob")...)
		}, want: ring.RoleNotAllowed},
		{name: "two changes made apart, brought together by one with it", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			y.git("checkout", "-q", "-b", "side")
			side := y.edit("alice", "carol joins", texts(signersPath, y.listed("carol", "bob")))
			y.git("checkout", "-q", "main")
			y.edit("alice", "dave joins", texts(signersPath, y.listed("bob", "dave")))
			y.git("merge", "-q", "--no-ff", "--no-commit", "-X", "ours", string(side))
			y.commitWith(noon, "merge", y.signWith("alice")...)
			return ""
		}},
		{name: "two changes made apart, brought together by one with it on one side alone", start: []string{"mallory:commit,merge,trust"}, push: func(y *yard) ring.SHA {
			y.git("checkout", "-q", "-b", "side")
			y.edit("alice", "carol joins", texts(signersPath, y.listed("mallory:commit,merge,trust", "carol")))
			y.git("checkout", "-q", "main")
			out := y.edit("alice", "mallory leaves", texts(signersPath, y.listed("bob")))
			y.git("checkout", "-q", "side")
			y.git("merge", "-q", "--no-ff", "--no-commit", "-X", "ours", string(out))
			y.git("checkout", "-q", "side", "--", signersPath)
			return y.commitWith(noon, "merge", y.signWith("mallory")...)
		}, want: ring.UnknownSigner},
		{name: "a change made of an old file, taken whole by a merge", start: []string{"bob", "carol"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "carol leaves", texts(signersPath, y.listed("bob")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			side := y.edit("alice", "dave joins", texts(signersPath, y.listed("bob", "carol", "dave")))
			y.git("checkout", "-q", "main")
			y.git("merge", "-q", "--no-ff", "--no-commit", "-X", "theirs", string(side))
			y.git("checkout", "-q", string(side), "--", signersPath)
			return y.commitWith(noon, "merge", y.signWith("bob")...)
		}, want: ring.SignersStale},
		{name: "somebody let in by a stale branch signs nothing there", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "dave joins", texts(signersPath, y.listed("bob", "dave")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			y.edit("alice", "carol joins", texts(signersPath, y.listed("bob", "carol")))
			return y.late("carol", "anchor")
		}, want: ring.UnknownSigner},
		{name: "nor does somebody whom a stale branch takes out", start: []string{"bob", "carol"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "dave joins", texts(signersPath, y.listed("bob", "carol", "dave")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			y.edit("alice", "carol leaves", texts(signersPath, y.listed("bob")))
			return y.late("carol", "anchor")
		}, want: ring.UnknownSigner},
		{name: "somebody whom both let in does", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			old := y.head()
			y.edit("alice", "dave joins", texts(signersPath, y.listed("bob", "dave")))
			y.git("tag", "anchor")
			y.checkout(old, "side")
			y.edit("alice", "carol joins", texts(signersPath, y.listed("bob", "carol")))
			y.late("bob", "anchor")
			return ""
		}},
		{name: "a merge by one who is taken out on its other side", start: []string{"bob", "carol"}, push: func(y *yard) ring.SHA {
			old := y.head()
			out := y.edit("alice", "carol leaves", texts(signersPath, y.listed("bob")))
			y.checkout(old, "main")
			y.edit("bob", "two", texts("a", "2"))
			return y.merge("carol", string(out))
		}, want: ring.UnknownSigner},
		{name: "two people where the threshold asks for two", start: []string{"bob:commit,trust,vouch"}, push: func(y *yard) ring.SHA {
			c := y.edit("alice", "carol joins", texts(signersPath, y.listed("bob:commit,trust,vouch", "carol")))
			y.edit("bob", vouchFor(c), nil)
			y.edit("carol", "two", texts("a", "2"))
			return ""
		}, trust: []func(*TrustConfig){func(c *TrustConfig) { c.TrustThreshold = 2 }}},
		{name: "one person where the threshold asks for two", start: []string{"bob:commit,trust,vouch"}, push: func(y *yard) ring.SHA {
			c := y.edit("alice", "carol joins", texts(signersPath, y.listed("bob:commit,trust,vouch", "carol")))
			y.edit("carol", "two", texts("a", "2"))
			return c
		}, trust: []func(*TrustConfig){func(c *TrustConfig) { c.TrustThreshold = 2 }}, want: ring.AwaitingApproval, says: "has 1 of 2 approvals of signers with the role trust"},
		{name: "a second person without the role trust does not count", start: []string{"bob:commit,vouch"}, push: func(y *yard) ring.SHA {
			c := y.edit("alice", "carol joins", texts(signersPath, y.listed("bob:commit,vouch", "carol")))
			y.edit("bob", vouchFor(c), nil)
			return c
		}, trust: []func(*TrustConfig){func(c *TrustConfig) { c.TrustThreshold = 2 }}, want: ring.AwaitingApproval},
		{name: "one who leaves answers for leaving", start: []string{"bob:commit,trust,vouch"}, push: func(y *yard) ring.SHA {
			c := y.edit("alice", "bob leaves", texts(signersPath, y.listed("carol")))
			y.edit("bob", vouchFor(c), nil)
			y.edit("carol", "two", texts("a", "2"))
			return ""
		}, trust: []func(*TrustConfig){func(c *TrustConfig) { c.TrustThreshold = 2 }}},
		{name: "one who leaves and brings something with that", start: []string{"bob:commit,trust,vouch"}, push: func(y *yard) ring.SHA {
			c := y.edit("alice", "bob leaves", texts(signersPath, y.listed("carol")))
			return y.edit("bob", vouchFor(c), texts("a", "2"))
		}, want: ring.UnknownSigner},
		{name: "one who left vouches for what came later", start: []string{"bob:commit,trust,vouch"}, push: func(y *yard) ring.SHA {
			y.edit("alice", "bob leaves", texts(signersPath, y.listed("carol")))
			c := y.edit("", "web", texts("a", "2"))
			y.edit("bob", vouchFor(c), nil)
			return "" // the tip
		}, want: ring.UnknownSigner},
		{name: "a change by one without the role, vouched for by one with it", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			c := y.edit("bob", "carol joins", texts(signersPath, y.listed("bob", "carol")))
			y.edit("alice", vouchFor(c), nil)
			y.edit("carol", "two", texts("a", "2"))
			return ""
		}},
		{id: "V62", name: "a signer of the file without the role vouches", start: []string{"bob"}, push: func(y *yard) ring.SHA {
			c := y.edit("", "web", texts("a", "2"))
			return y.edit("bob", vouchFor(c), nil)
		}, want: ring.VouchNotAllowed},
		{id: "V63", name: "a signer of the file vouches for what is trusted already", start: []string{"bob:commit,vouch"}, push: func(y *yard) ring.SHA {
			return y.edit("bob", vouchFor(y.head()), nil)
		}, want: ring.VouchOutside},
		{id: "V61", name: "a signer of the file vouches", start: []string{"bob:commit,vouch"}, push: func(y *yard) ring.SHA {
			c := y.edit("", "web", texts("a", "2"))
			y.edit("bob", vouchFor(c), nil)
			return ""
		}},
	} {
		t.Run(strings.TrimSpace(row.id+" "+row.name), func(t *testing.T) {
			t.Parallel()
			y := root(t)
			start := texts("a", "1")
			if row.start != nil {
				start[signersPath] = y.listed(row.start...)
			}
			anchor := y.edit("alice", "one", start)
			at := row.push(y)
			if out, err := runIn(y, "rev-parse", "anchor"); err == nil {
				anchor = ring.SHA(strings.TrimSpace(out))
			}
			l := look{anchor: anchor, tip: y.head(), trust: append(row.trust, inRepo), want: row.want, at: at, says: row.says}
			if row.want == "" {
				l.at = ""
			}
			y.ask(l)
		})
	}
}

// The same in forge-merge: a forge lands what somebody with the role signed, and
// makes no signers of its own. A host that was away comes to the same answer as
// one that saw each landing.
func TestForgesLandSignersAndMakeNone(t *testing.T) {
	forge := func(c *TrustConfig) { c.Mode = ForgeMerge; c.SignersInRepo = signersPath }
	squash := func(y *yard, base, head ring.SHA, more map[string]string) ring.SHA {
		y.checkout(base, "main")
		y.git("read-tree", "-u", "--reset", string(head))
		return y.edit("", "squash\n\nGitring-Head: "+string(head), more)
	}
	y := root(t)
	anchor := y.edit("alice", "one", texts(signersPath, y.listed("bob"), "a", "1"))
	head := y.edit("alice", "carol joins", texts(signersPath, y.listed("bob", "carol")))
	landed := squash(y, anchor, head, nil)
	branch := func(key string, m map[string]string) ring.SHA {
		y.checkout(landed, "side")
		return y.edit(key, "on a branch", m)
	}
	dave := branch("alice", texts(signersPath, y.listed("bob", "carol", "dave")))
	second := squash(y, landed, dave, nil)
	y.checkout(second, "side2")
	third := squash(y, second, y.edit("dave", "three", texts("a", "3")), nil)
	for _, from := range []ring.SHA{anchor, landed, second} {
		y.ask(look{anchor: from, tip: third, trust: []func(*TrustConfig){forge}, signer: "dave@example.org"})
	}
	refused := func(want ring.Code, head ring.SHA, more map[string]string) {
		_, refusal, err := y.trust(forge).Range(y, landed, squash(y, landed, head, more), noon, nil)
		require.NoError(t, err)
		require.NotNil(t, refusal)
		require.Equal(t, want, refusal.Code, refusal.Says)
	}
	refused(ring.RoleNotAllowed, branch("bob", texts(signersPath, y.listed("bob", "mallory"))), nil)
	// Two changes of it that a forge brings together are nobody's, although each is
	// somebody's and they merge by themselves.
	apart := func(y *yard, at ring.SHA, text string) ring.SHA {
		y.checkout(at, "side")
		return y.edit("alice", "apart", texts(signersPath, text))
	}
	gap := strings.Repeat("# gap\n", 10)
	wide := apart(y, anchor, y.listed("bob")+gap+"# end\n")
	one, two := apart(y, wide, y.listed("bob")+gap+"# one\n"), apart(y, wide, "# two\n"+y.listed("bob")+gap+"# end\n")
	y.checkout(one, "main")
	both := y.merge("", string(two))
	aids := Aids{Merge: func(ours, theirs ring.SHA) (ring.SHA, error) {
		return ring.SHA(y.git("merge-tree", "--write-tree", string(ours), string(theirs))), nil
	}}
	_, refusal, err := y.trust(forge).RangeWith(y, aids, wide, both, noon, nil)
	require.NoError(t, err)
	require.NotNil(t, refusal)
	require.Equal(t, ring.RoleNotAllowed, refusal.Code)
	refused(ring.NotSignedContent, branch("bob", texts("a", "2")), texts(signersPath, y.listed("mallory")))
	refused(ring.UnknownSigner, branch("mallory", texts("a", "2")), nil)
}

// OpenPGP keys stand in the file as armours; the name is the file's.
func TestOpenPGPSignersInTheRepository(t *testing.T) {
	y := newYard(t)
	y.gpg()
	y.allow("alice", "")
	key := y.pgpKey(noon.Add(-day), "gina", "ed25519", "cert", "never")
	y.gpgAt(noon.Add(-day), "--quick-add-key", key, "ed25519", "sign", "never")
	armour := strings.ReplaceAll(y.gpgAt(noon, "--armor", "--export", key), "\n", "\n        ")
	anchor := y.edit("alice", "one", texts(signersPath, "version: 1\nsigners:\n  - signer: gina\n    roles: [commit]\n    paths: [web/**]\n    openpgp:\n      - |\n        "+armour+"\n"))
	require.NoError(t, writeAll(y, texts("web/a", "1")))
	good := y.pgpCommit(key, noon, "")
	y.ask(look{anchor: anchor, tip: good, trust: []func(*TrustConfig){inRepo}, signer: "gina"})
	require.NoError(t, writeAll(y, texts("db/a", "1")))
	y.ask(look{anchor: anchor, tip: y.pgpCommit(key, noon, ""), trust: []func(*TrustConfig){inRepo}, want: ring.PathNotAllowed})
	y.revoked = []string{key}
	y.ask(look{anchor: anchor, tip: good, trust: []func(*TrustConfig){inRepo}, want: ring.Revoked})
}

func writeAll(y *yard, fs map[string]string) error {
	for name, text := range fs {
		y.run(nil, y.dir, "mkdir", "-p", name[:strings.LastIndex(name, "/")])
		write(y, name, text)
	}
	y.git("add", "-A")
	return nil
}

// What was trusted before the file could be read can be mended by the keys of the
// configuration, and by nobody else.
func TestAFileThatCannotBeReadNamesNobody(t *testing.T) {
	y := root(t)
	anchor := y.edit("alice", "one", texts(signersPath, "signers: ["))
	y.edit("alice", "mend", texts(signersPath, y.listed("bob")))
	y.ask(look{anchor: anchor, tip: y.edit("bob", "two", texts("a", "2")), trust: []func(*TrustConfig){inRepo}, signer: "bob@example.org"})
	y.checkout(anchor, "other")
	y.ask(look{anchor: anchor, tip: y.edit("bob", "two", texts("a", "2")), trust: []func(*TrustConfig){inRepo}, want: ring.UnknownSigner, hint: signersPath})
}

// A commit on its own is judged by the signers of the commit that is trusted.
func TestOneCommitIsJudgedByTheTrustedOnesSigners(t *testing.T) {
	y := root(t)
	anchor := y.edit("alice", "one", texts(signersPath, y.listed("bob")))
	tip := y.edit("bob", "two", texts("a", "2"))
	trust := y.trust(inRepo)
	_, refusal, err := trust.One(y, tip, noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.UnknownSigner, refusal.Code)
	of, err := trust.Of(y, anchor)
	require.NoError(t, err)
	one, refusal, err := of.One(y, tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, "bob@example.org", one.Signer)
	one, refusal, err = trust.OneOfHistory(y, tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, "bob@example.org", one.Signer)
	_, _, err = trust.OneOfHistory(y, "HEAD", noon, nil)
	require.Error(t, err)
}

// What a person at a terminal asks about one commit is what a range would say of it.
func TestOneCommitIsHeldToTheRightsOfItsSigner(t *testing.T) {
	y := root(t)
	bound := func(c *TrustConfig) {
		c.Bindings = []Binding{
			{Signer: "alice@example.org", Roles: []Role{RoleCommit, RoleMerge, RoleTrust}},
			{Signer: "bob@example.org", Paths: []string{"apps/web/**"}},
		}
	}
	elsewhere := func(c *TrustConfig) {
		c.Bindings = []Binding{{Signer: "bob@example.org", Branches: []string{"dev"}}}
	}
	y.signers = append(y.signers, "bob@example.org "+y.publicLine("bob"))
	first := y.edit("alice", "one", texts("apps/web/a", "1", "apps/db/a", "1"))
	web := y.edit("bob", "web", texts("apps/web/a", "2"))
	db := y.edit("bob", "db", texts("apps/db/a", "2"))
	y.branch("side", first)
	side := y.edit("alice", "side", texts("apps/web/b", "1"))
	y.back()
	merge := y.merge("bob", string(side))
	file := y.edit("bob", "signers", texts(signersPath, y.listed("carol")))
	for _, tc := range []struct {
		name   string
		commit ring.SHA
		rules  []func(*TrustConfig)
		want   ring.Code
	}{
		{"nobody is bound", db, nil, ""},
		{"the first commit of all", first, []func(*TrustConfig){bound}, ""},
		{"within the paths", web, []func(*TrustConfig){bound}, ""},
		{"outside of the paths", db, []func(*TrustConfig){bound}, ring.PathNotAllowed},
		{"on another branch", web, []func(*TrustConfig){elsewhere}, ring.BranchNotAllowed},
		{"a merge, which decides nothing", merge, []func(*TrustConfig){func(c *TrustConfig) {
			c.Bindings = []Binding{{Signer: "bob@example.org", Roles: []Role{RoleMerge}, Paths: []string{"x/**"}}}
		}}, ""},
		{"a merge without the role", merge, []func(*TrustConfig){func(c *TrustConfig) { c.Bindings = []Binding{{Signer: "bob@example.org", Roles: []Role{RoleCommit}}} }}, ring.RoleNotAllowed},
		{"the file of signers, without the role", file, []func(*TrustConfig){inRepo}, ring.RoleNotAllowed},
		{"no rights where nothing is signed", db, []func(*TrustConfig){bound, func(c *TrustConfig) { c.Mode = Disabled }}, ""},
	} {
		_, refusal, err := y.trust(tc.rules...).OneOfHistory(y, tc.commit, noon, nil)
		require.NoError(t, err, tc.name)
		if tc.want == "" {
			require.Nil(t, refusal, tc.name)
			continue
		}
		require.NotNil(t, refusal, tc.name)
		require.Equal(t, tc.want, refusal.Code, tc.name)
		require.Equal(t, tc.commit, refusal.Commit, tc.name)
	}
	require.False(t, y.trust().Binds())
	require.True(t, y.trust(bound).Binds())
	require.True(t, y.trust(inRepo).Binds())
}

// trust show lists whom the repository names beside whom the host does.
func TestSignersOfTheRepositoryAreShownWithWhereTheyStand(t *testing.T) {
	y := root(t)
	anchor := y.edit("alice", "one", texts(signersPath, y.listed("bob")))
	trust := y.trust(inRepo, func(c *TrustConfig) {
		c.Bindings = []Binding{{Signer: "alice@example.org", Roles: []Role{RoleCommit, RoleTrust}}}
	})
	all, file := trust.signersAt(y, anchor, noon)
	require.Equal(t, ring.TrustFile{Key: "signers_in_repo", Path: signersPath + " at " + anchor.Short(), Owner: -1}, file)
	names := map[string]ring.TrustedSigner{}
	for _, one := range all {
		names[one.Principal] = one
	}
	require.Len(t, names, len(all))
	require.False(t, names["alice@example.org"].InRepo)
	require.Equal(t, trust.cfg.AllowedSigners+":1", names["alice@example.org"].Place)
	bob := names["bob@example.org"]
	require.True(t, bob.InRepo)
	require.Regexp(t, "^"+signersPath+`:\d+$`, bob.Place)
	require.Equal(t, []ring.Grant{{Roles: []string{"commit", "merge"}}}, bob.Grants)

	broken := y.edit("alice", "two", texts(signersPath, "signers: ["))
	all, file = trust.signersAt(y, broken, noon)
	require.NotEmpty(t, file.Wrong)
	require.Len(t, all, len(names)-1, "those of the host count all the same")
	y.git("rm", "-q", signersPath)
	none := y.commit("alice", noon, "none")
	all, file = trust.signersAt(y, none, noon)
	require.Empty(t, file.Wrong)
	require.Len(t, all, len(names)-1)
}

func TestAFileOfSignersInTheRepositoryIsBounded(t *testing.T) {
	y := root(t)
	bob, carol := y.publicLine("bob"), y.publicLine("carol")
	for _, c := range []struct {
		name, text, says string
		line             int
	}{
		{"too large", strings.Repeat("#", maxSignersFile+1), "larger than", 1},
		{"too many", "version: 1\nsigners:\n" + strings.Repeat("  - {signer: a, openpgp: [x]}\n", maxRepoSigners+1), "more than 1000", 1},
		{"an alias", "version: 1\nsigners:\n  - &a\n    signer: bob\n    keys: [" + bob + "]\n  - *a\n", "an alias", 6},
		{"no key", "version: 1\nsigners:\n  - signer: bob\n", "has no key", 3},
		{"a pattern", "version: 1\nsigners:\n  - signer: '*'\n    keys: [" + bob + "]\n", "is a pattern", 3},
		{"one key of two people", "version: 1\nsigners:\n  - signer: bob\n    keys: [" + bob + "]\n  - signer: carol\n    keys:\n      - " + bob + "\n", "is signer bob's already", 7},
		{"a broken key", "version: 1\nsigners:\n  - signer: bob\n    keys:\n      - ssh-ed25519 AAAA\n", "the key is cut off at its beginning; paste the whole line", 5},
		{"no time", "version: 1\nsigners:\n  - signer: bob\n    keys:\n      - {key: " + bob + ", valid_after: soon}\n", "valid_after", 5},
		{"times that run back", "version: 1\nsigners:\n  - signer: bob\n    keys:\n      - {key: " + bob + ", valid_after: 2026-01-01, valid_before: 2025-01-01}\n", "earlier", 5},
		{"an unknown key of a key", "version: 1\nsigners:\n  - signer: bob\n    keys:\n      - {key: " + carol + ", valid_befor: 2026-01-01}\n", `unknown key "valid_befor"`, 5},
		{"no armour", "version: 1\nsigners:\n  - signer: bob\n    openpgp: [x]\n", "no armoured public key", 4},
	} {
		s, mistake := parseRepoSigners(signersPath, []byte(c.text))
		require.Nil(t, s, c.name)
		require.Contains(t, mistake.Says, c.says, c.name)
		require.Equal(t, c.line, mistake.Line, c.name)
	}
	s, mistake := parseRepoSigners(signersPath, []byte("version: 1\nsigners:\n  - signer: bob\n    keys: "+bob+"\n  - signer: bob\n    roles: vouch\n    keys: ["+bob+"]\n"))
	require.Nil(t, mistake)
	require.Len(t, s.grants, 1)
}

// FuzzRepoSigners: whatever the bytes, signers with a name and a key, or one
// mistake with a line.
func FuzzRepoSigners(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPIVXWdPxtIZNrWT764sJaLtR6C5nQAzZeoU+C5Fq8zU"
	f.Add("version: 1\nsigners:\n  - signer: bob\n    roles: [commit, trust]\n    paths: [a/**]\n    keys: [" + key + "]\n")
	f.Add("version: 1\nsigners:\n  - {signer: bob, keys: [{key: " + key + ", valid_after: 2026-01-01}]}\n")
	f.Add("version: 1\nsigners:\n  - {signer: bob, openpgp: ['" + beginKeys + "']}\n")
	f.Add("a: &a [*a]")
	f.Add("{[: ")
	f.Fuzz(func(t *testing.T, text string) {
		s, mistake := parseRepoSigners(signersPath, []byte(text))
		if mistake != nil {
			require.Nil(t, s)
			require.NotEmpty(t, mistake.Says)
			require.Positive(t, mistake.Line)
			return
		}
		for _, lines := range s.ssh {
			for _, l := range lines {
				require.NotNil(t, l.key)
				require.NotEmpty(t, l.principal())
				require.False(t, l.authority)
			}
		}
		for _, grants := range s.grants {
			for _, b := range grants {
				require.NoError(t, b.check())
			}
		}
	})
}
