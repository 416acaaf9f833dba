package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A probe of ring.Check has a key of its name, the hint of a check without a probe names
// it, and one that needs a port is refused where the service has no network of its own.
func TestEveryProbeIsReadAndNamedAndNeedsItsNetwork(t *testing.T) {
	plan, _ := Read(repo(web("image: a", "x-gitring:", "  checks:", "    - {name: up}")), settings())
	hint := plan.Refused["web"].Hint
	seen := 0
	for f := range reflect.TypeFor[ring.Check]().Fields() {
		if slices.Contains([]string{"Name", "For", "Interval", "Timeout", "Failures", "Successes", "OnFailure"}, f.Name) {
			continue
		}
		seen++
		key := strings.ToLower(f.Name)
		require.Contains(t, checkKeys, key)
		require.Contains(t, hint, key, "the hint of a check without a probe")
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		if _, asks := f.Type.Elem().FieldByName("Port"); !asks {
			continue
		}
		for network, says := range map[string]string{"none": "no network", "service:db": "no address of its own"} {
			files := web("image: a", "network_mode: "+network, "x-gitring:", "  checks:", fmt.Sprintf("    - %s: {port: 80}", key))
			files["web/compose.yaml"] += "  db: {image: a}\n"
			plan, _ := Read(repo(files), settings())
			require.NotNil(t, plan.Refused["web"], "%s with network_mode: %s", key, network)
			require.Contains(t, plan.Refused["web"].Says, says, "%s with network_mode: %s", key, network)
		}
	}
	require.GreaterOrEqual(t, seen, 5)
}
