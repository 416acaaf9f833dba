package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Whoever may change one app reads another's values of the host where he can have it be called
// like that one for as long as it is read.
func TestAnAppThatChangesItsNameWhileItIsReadHasNoOthersValues(t *testing.T) {
	for name, env := range map[string]string{
		"by what the host's folder has":   "COMPOSE_PROJECT_NAME=${PASSWORD:+evil}\n",
		"by what it has, the other way":   "COMPOSE_PROJECT_NAME=${PASSWORD:-shop}\n",
		"by a default":                    "COMPOSE_PROJECT_NAME=${NONE:-${PASSWORD:+evil}}\n",
		"by a variable of the host's":     "X=${PASSWORD:+evil}\nCOMPOSE_PROJECT_NAME=$X\n",
		"by a value of the host's folder": "COMPOSE_PROJECT_NAME=${OTHER}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			s.EnvKey = []byte("0123456789abcdef0123456789abcdef")
			s.Env = map[string]map[string][]byte{"shop": {".env": []byte("PASSWORD=secret\nOTHER=evil\n")}}
			r := Look(repo(map[string]string{
				"apps/evil/compose.yaml": "name: shop\nservices: {web: {image: nginx, environment: {P: '${PASSWORD}'}}}\n",
				"apps/evil/.env":         env,
			}), s)
			for _, app := range r.Plan.Apps {
				for _, v := range ring.SealedIn(app.Services[0].Spec.Environment["P"]) {
					require.Equal(t, app.Name, v.App, "%s has a value of %s", app.Name, v.App)
				}
			}
			require.Empty(t, r.Plan.Apps)
			require.Len(t, r.Refusals, 1)
			require.Equal(t, "apps/evil/.env", r.Refusals[0].File)
			require.Contains(t, r.Refusals[0].Says, "COMPOSE_PROJECT_NAME is made of values that the host has")
			require.NotContains(t, dump(t, r.Refusals)+dump(t, r.Plan), "secret")
		})
	}
}
