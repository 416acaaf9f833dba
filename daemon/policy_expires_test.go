package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
)

func TestAGrantIsToldBeforeItExpires(t *testing.T) {
	g := policy.Grant{Expires: time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC)}
	for days, want := range map[int]int{20: 0, 14: 14, 13: 0, 2: 0, 1: 1, 0: 0, -1: 0} {
		require.Equal(t, want, expiresIn(&g, g.Expires.AddDate(0, 0, -days)), "%d days before", days)
	}
	require.Zero(t, expiresIn(&policy.Grant{}, time.Now()))
}
