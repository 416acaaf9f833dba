package admission

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// What the policy denies goes to the forge, in the words of the request: a value of the host
// that stands open in it is told by its name.
func TestWhatThePolicyDeniesIsToldWithoutAValueOfTheHost(t *testing.T) {
	for _, says := range []string{
		`cap_add: ["$PW"]`, `logging: {driver: "$PW"}`, `pid: "service:$PW"`, `security_opt: ["seccomp:$PW"]`, `runtime: "$PW"`, `volumes: ["/etc/$PW:/x"]`, `devices: ["/dev/$PW"]`, `volumes: ["/etc/$ODD:/x"]`,
	} {
		s := manifest.Settings{
			Source: "prod", Path: ".", Host: "edge", EnvKey: []byte("key"),
			Env: map[string]map[string][]byte{"web": {".env": []byte("PW=cana.ry-x\nODD='cana.ry \"y\"'\n")}},
		}
		tree := fstest.MapFS{"web/compose.yaml": {Data: []byte("services: {web: {image: a, " + says + "}, cana.ry-x: {image: b}}\n")}}
		plan, all := Anywhere(policy.Compose).Look(&ring.Commit{SHA: "c0ffee", Tree: tree}, s)
		require.NotEmpty(t, all, says)
		require.NotEmpty(t, plan.Refused, says)
		text, err := json.Marshal([]any{all, plan.Refused, plan.Decisions})
		require.NoError(t, err)
		require.NotContains(t, strings.ToLower(string(text)), "cana.ry", says)
		require.Contains(t, string(text), "${", says)
	}
}
