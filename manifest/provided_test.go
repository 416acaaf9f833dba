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

// Who moves a value into a vault, and leaves it in the env folder, would change it in vain.
func TestAValueOfAProviderThatTheEnvFolderHidesIsNoted(t *testing.T) {
	file := "services: {web: {image: nginx, environment: {A: '${DB}', B: '${OTHER}'}}}\nx-gitring: {secrets: {DB: 'vault:secret/web/db', OTHER: 'vault:secret/web/other'}}\n"
	const note = "DB is the value of the host's env folder, which wins over vault:secret/web/db"
	s := settings()
	s.Env = map[string]map[string][]byte{"web": {".env": []byte("DB=canary\n")}}
	s.EnvKey = []byte("key")
	r := Look(repo(map[string]string{"web/compose.yaml": file}), s)
	require.Empty(t, r.Refusals)
	notes := strings.Join(r.Plan.Apps[0].Notes, "\n")
	require.Equal(t, 1, strings.Count(notes, note), notes)
	require.NotContains(t, notes, "OTHER is the value")
	require.NotContains(t, notes, "canary")

	s.Env = nil
	r = Look(repo(map[string]string{"web/compose.yaml": file}), s)
	require.NotContains(t, strings.Join(r.Plan.Apps[0].Notes, "\n"), "which wins over")
}

// The apps of a commit are bounded together: many folders are not many times the calls. An
// app that was there before is not what gives way.
func TestTheAppsOfACommitNameABoundedNumberOfValuesTogether(t *testing.T) {
	files := map[string]string{}
	asking := func(app string, n int) {
		var file strings.Builder
		file.WriteString("services: {web: {image: nginx}}\nx-gitring:\n  secrets:\n")
		for i := range n {
			fmt.Fprintf(&file, "    V%d: vault:secret/%s/v%d\n", i, app, i)
		}
		files[app+"/compose.yaml"] = file.String()
	}
	asking("was", 128)
	asking("few", 3)
	for i := range 8 {
		asking(fmt.Sprintf("new%d", i), 120)
	}
	s := settings()
	s.Names = map[string]string{"was": "was"}
	r := Look(repo(files), s)
	refused := map[string]bool{}
	for app, why := range r.Plan.Refused {
		refused[app] = true
		require.Equal(t, ring.BadValue, why.Code)
		require.Contains(t, why.Says, "the apps of this commit name more than 1024 values of providers in x-gitring.secrets, and app "+app+" comes after the others")
		require.Empty(t, r.Plan.Asks[app], "nobody is asked for what is refused")
	}
	require.Equal(t, map[string]bool{"new7": true}, refused)
	all := 0
	for _, asks := range r.Plan.Asks {
		all += len(asks)
	}
	require.Equal(t, 128+3+7*120, all)
}
