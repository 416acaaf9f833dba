package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnActSaysItsDoor(t *testing.T) {
	for _, tt := range []struct{ kind, actor, want string }{
		{OverrideBegan, "root", "socket"},
		{OverrideBegan, "ann (uid 1000)", "socket"},
		{OverrideBegan, "uid 7", "socket"},
		{OverrideBegan, "token/ci", "token"},
		{PlanApproved, "oidc/alice@example.org", "oidc"},
		{OverrideBegan, "other/x", ""},
		{OverrideBegan, "", ""},
		{OverrideBegan, ByPolicy, ""},
		{CommitLanded, "alice@example.org", ""},
		{CommitLanded, "token/ci", ""},
		{AppInForce, "token/ci", "token"},
	} {
		e := Event{Kind: tt.kind, Actor: tt.actor}
		require.Equal(t, tt.want, e.ActedVia(), "%+v", tt)
	}
}
