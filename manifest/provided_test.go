package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Each reference is a call on the host, so whoever changes one app may not name any number.
func TestAnAppNamesABoundedNumberOfValuesOfProviders(t *testing.T) {
	for _, n := range []int{mostProvided, mostProvided + 1, 1000} {
		var file strings.Builder
		file.WriteString("services: {web: {image: nginx}}\nx-gitring:\n  secrets:\n")
		for i := range n {
			fmt.Fprintf(&file, "    V%d: vault:secret/web/v%d\n", i, i)
		}
		r := Look(repo(map[string]string{"web/compose.yaml": file.String()}), settings())
		require.LessOrEqual(t, len(r.Plan.Asks["web"]), mostProvided)
		if n == mostProvided {
			require.Empty(t, r.Refusals)
			continue
		}
		require.Len(t, r.Refusals, 1)
		require.Equal(t, ring.BadValue, r.Refusals[0].Code)
		require.Contains(t, r.Refusals[0].Says, "x-gitring.secrets names more than 128 values")
	}
}
