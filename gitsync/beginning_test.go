package gitsync

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

func signedIntroduction(sha ring.SHA, signer string) []func(*TrustConfig) {
	return append(introducedBy(sha), func(c *TrustConfig) { c.IntroductionSigner = signer })
}

func required(c *TrustConfig) { c.RequireIntroduction = true }

func TestWhereTrustBegins(t *testing.T) {
	for _, row := range []struct {
		name string
		look func(y *yard) look
	}{
		{"the introduction is signed by whom the configuration names", func(y *yard) look {
			y.allow("alice", "")
			intro := y.commit("alice", noon.Add(-time.Hour), "introduction")
			return look{tip: y.commit("alice", noon, "one"), trust: signedIntroduction(intro, "alice@example.org"), count: 2}
		}},
		{"named by a pattern", func(y *yard) look {
			y.allow("alice", "")
			intro := y.commit("alice", noon, "introduction")
			return look{tip: intro, trust: signedIntroduction(intro, "*@example.org"), count: 1}
		}},
		{"named by a fingerprint", func(y *yard) look {
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(y.key("alice")))
			require.NoError(y.t, err)
			y.signers = append(y.signers, "alice@example.org "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
			intro := y.commit("alice", noon, "introduction")
			return look{tip: intro, trust: signedIntroduction(intro, ssh.FingerprintSHA256(key)), count: 1, signer: "alice@example.org"}
		}},
		{"its key has expired since, and the configuration names the very commit", func(y *yard) look {
			y.allow("alice", `valid-before="20250101Z"`)
			y.allow("bob", "")
			intro := y.commit("alice", noon.Add(-365*day), "introduction")
			return look{tip: y.commit("bob", noon, "one"), trust: signedIntroduction(intro, "alice@example.org"), count: 2}
		}},
		{"its key had expired when it was made", func(y *yard) look {
			y.allow("alice", `valid-before="20200101Z"`)
			intro := y.commit("alice", noon.Add(-365*day), "introduction")
			return look{tip: intro, trust: signedIntroduction(intro, "alice@example.org"), want: ring.KeyExpired}
		}},
		{"it is signed by another trusted signer", func(y *yard) look {
			y.allow("alice", "")
			y.allow("bob", "")
			intro := y.commit("bob", noon, "introduction")
			return look{
				tip: y.commit("alice", noon, "one"), trust: signedIntroduction(intro, "alice@example.org"),
				want: ring.IntroductionMismatch, at: intro, says: "signed by bob@example.org",
			}
		}},
		{"it is signed by nobody", func(y *yard) look {
			y.allow("alice", "")
			intro := y.commit("", noon, "introduction")
			return look{tip: y.commit("alice", noon, "one"), trust: signedIntroduction(intro, "alice@example.org"), want: ring.Unsigned, at: intro}
		}},
		{"its key was revoked", func(y *yard) look {
			y.allow("alice", "")
			y.revoked = []string{strings.Join(strings.Fields(y.signers[0])[1:], " ")}
			intro := y.commit("alice", noon, "introduction")
			return look{tip: intro, trust: signedIntroduction(intro, "alice@example.org"), want: ring.Revoked}
		}},
		{"without an introduction that is required, a good tip is proposed", func(y *yard) look {
			y.allow("alice", "")
			tip := y.commit("alice", noon, "one")
			return look{tip: tip, trust: []func(*TrustConfig){required}, want: ring.IntroductionMissing, hint: "introduction: " + string(tip), says: "alice@example.org signed"}
		}},
		{"and a bad one is not", func(y *yard) look {
			y.allow("alice", "")
			return look{tip: y.commit("", noon, "one"), trust: []func(*TrustConfig){required}, want: ring.Unsigned}
		}},
		{"also where nothing has to be signed", func(y *yard) look {
			return look{tip: y.commit("", noon, "one"), trust: []func(*TrustConfig){disabled, required}, want: ring.IntroductionMissing, says: "nobody had to sign"}
		}},
		{"with one it is nothing to ask for", func(y *yard) look {
			y.allow("alice", "")
			intro := y.commit("", noon, "introduction")
			return look{tip: y.commit("alice", noon, "one"), trust: append(introducedBy(intro), required), count: 2}
		}},
		{"nor with an anchor", func(y *yard) look {
			y.allow("alice", "")
			a := y.commit("alice", noon, "one")
			return look{anchor: a, tip: y.commit("alice", noon, "two"), trust: []func(*TrustConfig){required}, count: 1}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.ask(row.look(y))
		})
	}
}

func TestABeginningThatCannotHoldIsRefused(t *testing.T) {
	for want, cfg := range map[string]TrustConfig{
		"names signer alice and no commit":           {Mode: Strict, IntroductionSigner: "alice"},
		"and mode disabled looks at no signature":    {Mode: Disabled, IntroductionSigner: "alice", Introduction: ring.SHA(strings.Repeat("a", 40))},
		"trust_version -3 is negative; begin with 1": {Mode: Disabled, Version: -3},
	} {
		_, err := LoadTrust(cfg, "prod", "main")
		require.ErrorContains(t, err, want)
	}
}

func TestARequiredIntroductionIsAskedForThroughAFollowerUntilItIsThere(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	f := o.follow(a, func(c *Config) { c.Trust.RequireIntroduction = true })
	w := lookAt(t, f)
	for range 2 {
		r := w.must()
		require.Equal(t, ring.IntroductionMissing, r.Refusal.Code)
		require.Nil(t, r.Commit)
	}
	require.Empty(t, a.moves)
	r := lookAt(t, o.follow(a, inMirrorOf(f), func(c *Config) { c.Trust.RequireIntroduction, c.Trust.Introduction = true, one })).must()
	require.Equal(t, one, r.Commit.SHA)
	require.False(t, r.Anchor.FirstUse())
}

// V58: a poke says nothing but "look": what is there counts, not what somebody
// said would be.
func TestV58WhatTheRefResolvesToCountsAndNothingElse(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	f := o.follow(a, func(c *Config) { c.Poll = "24h" })
	reports, stop := running(t, f)
	defer stop()
	next(t, reports, func(r ring.Report) bool { return r.Commit != nil && r.Commit.SHA == one })
	told := o.signed("two")
	o.git(o.work, "reset", "-q", "--hard", string(one))
	there := o.signed("three") // pushed over it before anybody looked
	f.Poke()
	r := next(t, reports, func(r ring.Report) bool { return r.Tip != one })
	require.Equal(t, there, r.Tip)
	require.Equal(t, there, r.Commit.SHA)
	require.NotContains(t, a.sawAll(), told)
}

// Where a button lands everything, the first tip is the forge's too: what it
// brought has to be signed.
func TestALandingCanBeWhereTrustBeginsAndWhatAPersonAccepts(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	forge := func(c *Config) { c.Trust.Mode = ForgeMerge }
	land := func(on ring.SHA, content, extra string) ring.SHA {
		o.git(o.work, "checkout", "-q", "-B", "side", string(on))
		head := o.commit(content, "-S")
		o.git(o.work, "checkout", "-q", "-B", "main", string(on))
		o.git(o.work, "merge", "-q", "--no-ff", "--no-commit", string(head))
		if extra != "" {
			o.write("extra", extra)
			o.git(o.work, "add", "-A")
		}
		o.git(o.work, "commit", "-q", "--no-gpg-sign", "-m", "Merge pull request #1")
		o.push()
		return o.head()
	}
	base := o.commit("nobody signed the past")
	land(base, "one", "and a file that nobody signed")
	w := lookAt(t, o.follow(a, forge))
	require.Equal(t, ring.NotSignedContent, w.must().Refusal.Code)
	require.Empty(t, a.moves)

	tip := land(base, "one", "")
	r := w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, tip, r.Commit.SHA)
	require.True(t, r.Anchor.FirstUse())
	require.Equal(t, "alice@example.org", r.Commit.Signer)

	aside := land(base, "another", "evil")
	require.Equal(t, ring.NonFastForward, w.must().Refusal.Code)
	refusal, err := w.accept(t.Context(), acceptance{sha: aside, actor: "root", reason: "r"})
	require.NoError(t, err)
	require.Equal(t, ring.NotSignedContent, refusal.Code)
	aside = land(base, "another", "")
	refusal, err = w.accept(t.Context(), acceptance{sha: aside, actor: "root", reason: "r"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, aside, w.must().Commit.SHA)
}

// Where trust begins with a landing, nothing below it is trusted: what lies there
// has to be signed as well, or nobody's content would run.
func TestALandingWhereTrustBeginsHoldsNothingUnsigned(t *testing.T) {
	for _, row := range []struct {
		name string
		push func(y *yard)
		want ring.Code // "" is accept
	}{
		{"an unsigned commit, named as the head by one on top of it", func(y *yard) {
			evil := y.edit("", "evil", texts("a", "evil"))
			y.edit("", "squash\n\nGitring-Head: "+string(evil), nil)
		}, ring.Unsigned},
		{"a signed branch merged into an unsigned commit", func(y *yard) {
			one := y.head()
			y.branch("side", one)
			head := y.edit("alice", "two", texts("b", "1"))
			y.back()
			y.edit("", "evil", texts("a", "evil"))
			y.merge("", string(head))
		}, ring.Unsigned},
		{"and a landing on top of that", func(y *yard) {
			one := y.head()
			y.branch("side", one)
			head := y.edit("alice", "two", texts("b", "1"))
			y.back()
			y.edit("", "evil", texts("a", "evil"))
			y.merge("", string(head))
			y.edit("", "squash\n\nGitring-Head: "+string(head), nil)
		}, ring.Unsigned},
		{"a signed branch merged into a signed commit", func(y *yard) {
			one := y.head()
			y.branch("side", one)
			head := y.edit("alice", "two", texts("b", "1"))
			y.back()
			y.edit("alice", "meanwhile", texts("a", "2"))
			y.merge("", string(head))
		}, ""},
		{"landings on top of each other", func(y *yard) {
			for i, base := 0, y.head(); i < 3; i++ {
				y.git("checkout", "-q", "-B", "side", string(base))
				head := y.edit("alice", "work", texts(string(rune('b'+i)), "1"))
				y.back()
				at := y.head()
				y.merge("", string(head))
				base = at // the next branch begins before this landing
			}
		}, ""},
		{"a branch signed on top of what nobody signed, which its signer signed with it", func(y *yard) {
			y.edit("", "past", texts("a", "2"))
			y.git("checkout", "-q", "-b", "side")
			head := y.edit("alice", "two", texts("b", "1"))
			y.back()
			y.merge("", string(head))
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.edit("alice", "one", texts("a", "1"))
			row.push(y)
			tip := y.head()
			_, refusal, err := y.trust(forgeMerge).RangeWith(y, y.aids(), "", tip, noon, nil)
			require.NoError(t, err)
			_, accepted, err := y.trust(forgeMerge).Answered(y, y.aids(), tip, noon, noon)
			require.NoError(t, err)
			require.Equal(t, refusal, accepted, "what a person accepts")
			if row.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, row.want, refusal.Code, refusal.Says)
			require.Equal(t, tip, refusal.Commit)
			require.Contains(t, refusal.Hint, "gitring init --introduce")
		})
	}
}

// Nobody can vouch before trust began; after that a person does.
func TestAnUnsignedHistoryIsToldHowTrustBegins(t *testing.T) {
	for _, mode := range []func(*TrustConfig){func(c *TrustConfig) { c.Mode = Strict }, func(c *TrustConfig) { c.Mode = Tip }, forgeMerge} {
		y := newYard(t)
		y.allow("alice", "")
		root := y.edit("", "one", texts("a", "1"))
		told := func(anchor, tip ring.SHA) string {
			_, refusal, err := y.trust(mode).RangeWith(y, y.aids(), anchor, tip, noon, nil)
			require.NoError(t, err)
			require.Equal(t, ring.Unsigned, refusal.Code)
			return refusal.Hint
		}
		second := y.edit("", "two", texts("a", "2"))
		for _, tip := range []ring.SHA{root, second} {
			require.Contains(t, told("", tip), "gitring init --introduce")
			require.NotContains(t, told("", tip), "vouch")
		}
		begun := y.edit("alice", "three", nil)
		require.Contains(t, told(begun, y.edit("", "four", nil)), "gitring vouch")
	}
}

// TestFirstUseNeedsASignerOfEverything is V65b: a first tip is taken with its whole
// tree, which somebody with rights for a part of it never looked at.
func TestFirstUseNeedsASignerOfEverything(t *testing.T) {
	alice := Binding{Signer: "alice@example.org", Roles: []Role{RoleCommit, RoleMerge, RoleVouch}}
	web := Binding{Signer: "bob@example.org", Paths: []string{"web/**"}}
	image := func(tag string) string { return "services:\n  web:\n    image: example.org/web:" + tag + "\n" }
	rows := []struct {
		id, name string
		push     func(y *yard) // on top of a commit of nobody, with db/a and web/compose.yaml
		bind     []Binding
		trust    []func(*TrustConfig)
		want     ring.Code
	}{
		{id: "V65b", name: "a signer of some paths", push: func(y *yard) {
			y.edit("bob", "web", texts("web/a", "1"))
		}, bind: []Binding{alice, web}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "an empty commit of that signer", push: func(y *yard) {
			y.edit("bob", "web", nil)
		}, bind: []Binding{alice, web}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "the same in mode tip", push: func(y *yard) {
			y.edit("bob", "web", texts("web/a", "1"))
		}, bind: []Binding{alice, web}, trust: []func(*TrustConfig){func(c *TrustConfig) { c.Mode = Tip }}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "a signer of images", push: func(y *yard) {
			y.edit("bob", "move", texts("web/compose.yaml", image("1.1")))
		}, bind: []Binding{alice, {Signer: "bob@example.org", Roles: []Role{RoleImages}}}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "a signer of the list of signers", push: func(y *yard) {
			y.edit("bob", "carol joins", texts(signersPath, y.listed("carol")))
		}, bind: []Binding{alice, {Signer: "bob@example.org", Roles: []Role{RoleTrust}}}, trust: []func(*TrustConfig){inRepo}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "a signer who may vouch, for some paths", push: func(y *yard) {
			at := y.edit("", "web", texts("web/a", "1"))
			y.edit("bob", vouchFor(at), nil)
		}, bind: []Binding{alice, {Signer: "bob@example.org", Roles: []Role{RoleCommit, RoleVouch}, Paths: []string{"web/**"}}}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "a merge by a signer of some paths", push: func(y *yard) {
			y.branch("side", y.head())
			side := y.edit("alice", "side", texts("db/b", "1"))
			y.back()
			y.edit("alice", "main", texts("db/c", "1"))
			y.merge("bob", string(side))
		}, bind: []Binding{alice, web}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "forge-merge, a branch that such a signer made and the forge squashed", push: func(y *yard) {
			y.edit("alice", "base", nil)
			y.branch("side", y.head())
			side := y.edit("bob", "web", texts("web/a", "1"))
			y.back()
			y.pull(7, side)
			y.squash("", side, "Web (#7)")
		}, bind: []Binding{alice, web}, trust: []func(*TrustConfig){forgeMerge}, want: ring.IntroductionNeeded},
		{id: "V65b", name: "forge-merge, what it was landed on is of such a signer", push: func(y *yard) {
			y.branch("side", y.head())
			side := y.edit("alice", "db", texts("db/b", "1"))
			y.back()
			y.edit("bob", "base", texts("web/b", "1"))
			y.merge("", string(side))
		}, bind: []Binding{alice, web}, trust: []func(*TrustConfig){forgeMerge}, want: ring.IntroductionNeeded},

		{name: "a signer of everything", push: func(y *yard) {
			y.edit("alice", "web", texts("web/a", "1"))
		}, bind: []Binding{alice, web}},
		{name: "a signer of some paths for one role, and of all for another", push: func(y *yard) {
			y.edit("bob", "web", texts("web/a", "1"))
		}, bind: []Binding{alice, web, {Signer: "bob@*"}}},
		{name: "a signer whom no binding names", push: func(y *yard) {
			y.edit("bob", "web", texts("web/a", "1"))
		}, bind: []Binding{alice}},
		{name: "forge-merge, a branch of a signer of everything", push: func(y *yard) {
			y.edit("alice", "base", nil)
			y.branch("side", y.head())
			y.edit("bob", "web", texts("web/a", "1"))
			side := y.edit("alice", "db", texts("db/b", "1"))
			y.back()
			y.merge("", string(side))
		}, bind: []Binding{alice, web}, trust: []func(*TrustConfig){forgeMerge}},
		{name: "signatures do not count", push: func(y *yard) {
			y.edit("", "web", texts("web/a", "1"))
		}, bind: []Binding{alice, web}, trust: []func(*TrustConfig){func(c *TrustConfig) { c.Mode = Disabled }}},
	}
	for _, row := range rows {
		t.Run(row.id+" "+row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			y.key("carol")
			first := y.edit("", "nobody's", texts("db/a", "1", "web/compose.yaml", image("1.0")))
			row.push(y)
			change := append(row.trust, bound(row.bind...))
			trust := y.trust(change...)
			_, refusal, err := trust.RangeWith(y, y.aids(), "", y.head(), noon, nil)
			require.NoError(t, err)
			if row.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, row.want, refusal.Code, refusal.Says)
			require.Equal(t, y.head(), refusal.Commit)
			require.Contains(t, refusal.Hint, "introduction: "+string(y.head()))
			_, refusal, err = trust.Answered(y, y.aids(), y.head(), noon, noon)
			require.NoError(t, err)
			require.Nil(t, refusal, "a person on the host answers for it")
			_, refusal, err = y.trust(append(change, introducedBy(y.head())...)...).RangeWith(y, y.aids(), "", y.head(), noon, nil)
			require.NoError(t, err)
			require.Nil(t, refusal, "what the hint says")
			require.NotEqual(t, first, y.head())
		})
	}
}
