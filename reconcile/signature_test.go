package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gitring/gitring/ring"
)

func TestEqualCrashesHaveOneSignatureWhateverTheirNumbers(t *testing.T) {
	for name, pair := range map[string][2]string{
		"a time":                              {"2026-03-01T12:00:00.123Z cannot connect", "2026-11-30T01:59:59.9Z cannot connect"},
		"a date":                              {"Mar 01 12:00:00 cannot connect", "Nov 30 01:59:59 cannot connect"},
		"an address":                          {"dial tcp 10.0.0.2:5432: refused", "dial tcp 172.18.0.13:5432: refused"},
		"IPv6":                                {"dial tcp [fd00::1]:5432: refused", "dial tcp [fd00:1:2::3]:5432: refused"},
		"hex":                                 {"goroutine 1 [running]: pc=0x46f2a1", "goroutine 17 [running]: pc=0xc000112"},
		"an id":                               {"container 3f2a9c1d77aa exited", "container 9b0c11d2ee31 exited"},
		"a uuid":                              {"job 123e4567-e89b-12d3-a456-426614174000 died", "job 00000000-e89b-12d3-a456-42661417400f died"},
		"a duration":                          {"gave up after 1.5s", "gave up after 300s"},
		"a duration in other units":           {"gave up after 900ms", "gave up after 1m2.5s"},
		"colours":                             {"\x1b[31mfatal\x1b[0m: no config", "fatal: no config"},
		"blank lines":                         {"fatal: no config\n\n  \n---", "fatal: no config"},
		"what was said before its last words": {"a\nb\nc\nfatal: x\nbye\nend", "z\nfatal: x\nbye\nend"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ring.Crash{ExitCode: 1, Log: lines(pair[0])}
			b := ring.Crash{ExitCode: 1, Log: lines(pair[1])}
			if name == "a duration" || name == "colours" {
				require.Equal(t, logEndWords(a.Log), logEndWords(b.Log))
			}
			require.Equal(t, signatureOf(a), signatureOf(b), "%q %q", logEndWords(a.Log), logEndWords(b.Log))
		})
	}
}

func TestUnequalCrashesHaveSignaturesOfTheirOwn(t *testing.T) {
	all := []ring.Crash{
		{ExitCode: 1, Log: []string{"fatal: no config"}},
		{ExitCode: 1, Log: []string{"fatal: no database"}},
		{ExitCode: 2, Log: []string{"fatal: no config"}},
		{ExitCode: 137, Log: []string{"fatal: no config"}},
		{ExitCode: 137, OOM: true, Log: []string{"fatal: no config"}},
		{ExitCode: 139},
		{ExitCode: 0},
		{ExitCode: 1, Log: []string{"fatal: no config", "bye"}},
	}
	seen := map[string]int{}
	for i, c := range all {
		s := signatureOf(c)
		was, twice := seen[s]
		require.False(t, twice, "%d and %d are both %q", was, i, s)
		seen[s] = i
	}
	require.Regexp(t, `^signal 11 [0-9a-f]{8}$`, signatureOf(all[5]))
	require.Regexp(t, `^oom [0-9a-f]{8}$`, signatureOf(all[4]))
}

// Numbers anywhere in a line never tell two crashes apart.
func TestNumbersNeverTellCrashesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{"slot %d crashed", "port %d taken (%[1]d)", "x%dy", "at %d:%[1]d", "#%d", "%d-%[1]d-%[1]d failed"}).Draw(t, "format")
		a, b := rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b")
		one, two := ring.Crash{Log: []string{fmt.Sprintf(format, a)}}, ring.Crash{Log: []string{fmt.Sprintf(format, b)}}
		require.Equal(t, signatureOf(one), signatureOf(two), "%q %q", logEndWords(one.Log), logEndWords(two.Log))
	})
}

func lines(s string) (out []string) {
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		out = append(out, s[:i])
		s = s[min(i+1, len(s)):]
	}
	return out
}

// TestACrashIsKnownByItsLastWordsOnceTheyWereRead: two ends with one exit code are
// two crashes where their logs differ.
func TestACrashIsKnownByItsLastWordsOnceTheyWereRead(t *testing.T) {
	signed := func(words string) string {
		a := ring.Action{Kind: ring.DoLog, Record: ring.Crash{ExitCode: 1, Signature: "exit 1 00000000"}}
		facts, _ := Settle(NewRecent(), nil, a, ring.Done{Log: []string{words}}, nil, time.Unix(0, 0))
		require.Len(t, facts, 1)
		c := facts[0].(ring.Crash)
		require.Equal(t, []string{words}, c.Log)
		return c.Signature
	}
	require.NotEqual(t, signed("no such table"), signed("disk is full"))
	require.NotEqual(t, "exit 1 00000000", signed("no such table"))
	require.Equal(t, signed("no such table"), signed("no such table"))
}
