package gitsync

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// clocked follows by a clock of the test's.
func clocked(t *testing.T, f *Follower, at time.Time) *looker {
	f.now = func() time.Time { return at }
	return lookAt(t, f)
}

// validFor rewrites allowed_signers with options for alice's key.
func (o *origin) validFor(options string) {
	o.t.Helper()
	key, err := os.ReadFile(o.key + ".pub")
	require.NoError(o.t, err)
	require.NoError(o.t, os.WriteFile(o.signers, []byte("alice@example.org "+strings.TrimSpace(options+" "+string(key))), 0o600))
}

func sshStamp(t time.Time) string { return t.UTC().Format("20060102150405Z") }

func before(at time.Time) string { return `valid-before="` + sshStamp(at) + `"` }
func after(at time.Time) string  { return `valid-after="` + sshStamp(at) + `"` }

// The rows V28 to V32 through a follower whose host's clock then jumps, with a
// restart each time: when a commit was first seen was written down, so neither a
// yes nor a no changes.
func TestV28ToV32AClockThatJumpsChangesNoVerdict(t *testing.T) {
	for _, c := range []struct {
		name    string
		options string
		claimed time.Duration // to noon, as the other times
		seen    time.Duration // first, by this host's clock
		want    ring.Code     // "" is accept
	}{
		{"V28 an expired key", before(noon.Add(-30 * day)), 0, 0, ring.KeyExpired},
		{"V29 backdated into the life of an expired key", before(noon.Add(-30 * day)), -31 * day, 0, ring.KeyExpiredFirstSeen},
		{"V30 inside the grace", before(noon.Add(-day)), -2 * day, 0, ""},
		{"V30 at the end of the grace", before(noon.Add(-72 * time.Hour)), -4 * day, 0, ""},
		{"V30 a second after it", before(noon.Add(-72*time.Hour - time.Second)), -4 * day, 0, ring.KeyExpiredFirstSeen},
		{"V31 an hour ahead", "", time.Hour, 0, ring.FutureDated},
		{"V31 five minutes ahead", "", 5 * time.Minute, 0, ""},
		{"V31 ten minutes ahead", "", 10 * time.Minute, 0, ""},
		{"V32 a key of tomorrow", after(noon.Add(12 * time.Hour)), 0, 0, ring.KeyNotYetValid},
		{"a clock that was a day behind", "", 0, -day, ring.FutureDated},
		{"a clock that was thirty days ahead", before(noon.Add(5 * day)), 0, 30 * day, ring.KeyExpiredFirstSeen},
		{"a clock that was a day ahead", before(noon.Add(12 * time.Hour)), 0, day, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			o.at = noon.Add(-60 * day)
			root := o.signed("root")
			o.validFor("")
			f := o.follow(a, func(c *Config) { c.Trust.Introduction = root })
			clocked(t, f, o.at).must()
			o.validFor(c.options)
			o.at = noon.Add(c.claimed)
			tip := o.signed("one")
			judged := func(at time.Time) {
				t.Helper()
				again := o.follow(a, inMirrorOf(f), func(c *Config) { c.Trust.Introduction = root })
				l := clocked(t, again, at)
				for range 2 {
					r := l.must()
					if c.want == "" {
						require.Nil(t, r.Refusal, "%s", at)
						require.Equal(t, tip, r.Commit.SHA)
						continue
					}
					require.NotNil(t, r.Refusal, "accepted at %s", at)
					require.Equal(t, c.want, r.Refusal.Code)
					require.Equal(t, root, r.Commit.SHA)
				}
			}
			first := noon.Add(c.seen)
			judged(first)
			for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, 365 * day, -365 * day, 0} {
				judged(first.Add(jump))
				judged(noon.Add(jump))
			}
			if c.want == "" {
				require.Len(t, a.moves, 2, "it is not judged again")
			}
		})
	}
}

// A crash before the anchor was written: the commit was seen inside the grace,
// and that counts when it is judged again after it.
func TestV60ACommitThatWasVerifiedBeforeACrashIsAppliedExactlyOnce(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.at = noon.Add(-60 * day)
	o.signed("root")
	f := o.follow(a)
	clocked(t, f, o.at).must()
	o.validFor(before(noon.Add(-71 * time.Hour)))
	o.at = noon.Add(-4 * day)
	tip := o.signed("one")

	a.fail = errors.New("the machine lost its power")
	r := clocked(t, o.follow(a, inMirrorOf(f)), noon).look(t.Context())
	require.ErrorContains(t, r.Err, "lost its power")
	require.NotEqual(t, tip, r.Commit.SHA, "told before it is on disk")
	require.Len(t, a.moves, 1)

	a.fail = nil
	l := clocked(t, o.follow(a, inMirrorOf(f)), noon.Add(3*time.Hour)) // the grace is over
	r = l.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, tip, r.Commit.SHA)
	require.Contains(t, a.good[len(a.good)-1].Note, "inside expiry_grace")
	l.must()
	clocked(t, o.follow(a, inMirrorOf(f)), noon.Add(day)).must()
	require.Len(t, a.moves, 2)
	require.Equal(t, []string{ring.CommitAccepted, ring.CommitAccepted}, a.kinds())
}

// What a wrong clock made of a commit for good, a person can answer for; what is
// ahead of the right one, nobody.
func TestAPersonAnswersForAClockThatWasWrong(t *testing.T) {
	for _, c := range []struct {
		name    string
		options string
		seen    time.Duration
		now     time.Duration
		want    ring.Code
	}{
		{"it was behind", "", -day, 0, ""},
		{"it was ahead", before(noon.Add(5 * day)), 30 * day, 0, ""},
		{"the host was away for long", before(noon.Add(time.Hour)), 30 * day, 30 * day, ""},
		{"the commit is ahead even now", "", -2 * day, -day, ring.FutureDated},
		{"the key had expired before", before(noon.Add(-time.Hour)), 0, 0, ring.KeyExpired},
		{"the key was not valid yet", after(noon.Add(time.Hour)), 0, day, ring.KeyNotYetValid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			o.at = noon.Add(-60 * day)
			o.signed("root")
			f := o.follow(a)
			clocked(t, f, o.at).must()
			o.validFor(c.options)
			o.at = noon
			tip := o.signed("one")
			require.NotNil(t, clocked(t, o.follow(a, inMirrorOf(f)), noon.Add(c.seen)).must().Refusal)

			l := clocked(t, o.follow(a, inMirrorOf(f)), noon.Add(c.now))
			l.must()
			refusal, err := l.accept(t.Context(), acceptance{sha: tip, actor: "root", reason: "the clock was wrong"})
			require.NoError(t, err)
			if c.want != "" {
				require.Equal(t, c.want, refusal.Code)
				require.Len(t, a.moves, 1)
				return
			}
			require.Nil(t, refusal)
			require.Equal(t, tip, a.anchor.SHA)
			require.True(t, a.good[len(a.good)-1].FirstSeen.Equal(noon.Add(c.seen)), "when it was first seen stays what it was")
		})
	}
}
