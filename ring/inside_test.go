package ring

import (
	"math/rand"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values are found in a text as a greedy pattern of it finds them.
func TestTheValuesInsideATextAreThoseOfItsPattern(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	word := func() string {
		var out strings.Builder
		for range r.Intn(4) {
			out.WriteByte("ab.\n"[r.Intn(4)])
		}
		return out.String()
	}
	found := 0
	for range 20_000 {
		sealed, pattern, text := "", "", ""
		for i := range 1 + r.Intn(4) {
			if i > 0 {
				sealed += Sealed{App: "a", Name: "N", MAC: "00"}.String()
				pattern += "(.*)"
				text += word()
			}
			part := word()
			sealed, pattern, text = sealed+part, pattern+regexp.QuoteMeta(part), text+part
		}
		if r.Intn(3) == 0 {
			text = word() + text + word()
		}
		var want []string
		if m := regexp.MustCompile("(?s)^" + pattern + "$").FindStringSubmatch(text); m != nil {
			want = m[1:]
			found++
		}
		require.Equal(t, want, Inside(sealed, text), "%q in %q", pattern, text)
	}
	require.Greater(t, found, 10_000)
}
