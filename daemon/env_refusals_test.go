package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A folder of the host that cannot be used is told instead of what is wrong only
// because its values are missing.
func TestABadFolderOfTheHostIsToldInsteadOfItsConsequences(t *testing.T) {
	folder := &ring.Refusal{App: "web", Code: ring.BadValue, Says: "the folder is open to others"}
	v := HostValues{bad: map[string]*ring.Refusal{"web": folder, "of-another-source": folder}}
	plan := ring.Plan{Refused: map[string]*ring.Refusal{"web": folder}}
	other := &ring.Refusal{App: "db", Code: ring.UnknownKey, File: "db/compose.yaml", Line: 3, Says: "unknown key"}
	got := v.refusals(&plan, []*ring.Refusal{other, {App: "web", Code: ring.UndefinedVariable, File: "web/compose.yaml", Line: 2, Says: "variable"}})
	require.Equal(t, []*ring.Refusal{folder, other}, got)
}
