package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// withShared are settings with files in the host's env folder for all apps.
func withShared(files map[string]string) Settings {
	s := settings()
	s.EnvKey = []byte("key")
	s.Env = map[string]map[string][]byte{}
	s.Shared = map[string][]byte{}
	for name, text := range files {
		s.Shared[name] = []byte(text)
	}
	return s
}

// environmentOf is what an app's service w gets, its sealed values open.
func environmentOf(t *testing.T, files map[string]string, s Settings, app string) map[string]string {
	t.Helper()
	return environmentIn(t, repo(files), s, app)
}

func environmentIn(t *testing.T, c *ring.Commit, s Settings, app string) map[string]string {
	t.Helper()
	plan, all := Check(c, s)
	require.Empty(t, all)
	a, ok := plan.App(app)
	require.True(t, ok)
	w, ok := a.Service("w")
	require.True(t, ok)
	values := map[ring.Sealed]string{}
	for folder, of := range map[string]map[string][]byte{SharedEnv("prod"): s.Shared, app: s.Env[app]} {
		sealed, r := Seal(folder, of, s.EnvKey, s.Interpolation)
		require.Nil(t, r)
		for k, v := range sealed {
			values[k] = v
		}
	}
	out := map[string]string{}
	for name, text := range w.Spec.Environment {
		if text == "" {
			continue
		}
		require.True(t, !strings.Contains(text, "secret"), "%s stands open in the plan", name)
		open, err := ring.Open(text, func(k ring.Sealed) (string, error) {
			v, ok := values[k]
			require.True(t, ok, k)
			return v, nil
		})
		require.NoError(t, err)
		out[name] = open
	}
	return out
}

// A file above the app that is kept outside of Git has a place on the host, and the
// refusal names it: with the file there, it is gone.
func TestAFileAboveTheAppsHasAPlaceOnTheHost(t *testing.T) {
	for written, place := range map[string]string{"../stack.env": "stack.env", "../.env": ".env", "../common/db.env": "common/db.env"} {
		files := map[string]string{"web/compose.yaml": "services: {w: {image: a, env_file: " + written + "}}\n"}
		_, all := Check(repo(files), withShared(nil))
		require.Len(t, all, 1, written)
		_, named, _ := strings.Cut(all[0].Hint, "<env.dir>/")
		require.Equal(t, "_shared/prod/"+place, named)
		env := environmentOf(t, files, withShared(map[string]string{place: "PW=secret\n"}), "web")
		require.Equal(t, map[string]string{"PW": "secret"}, env, written)
	}

	secret := map[string]string{"web/compose.yaml": "services: {w: {image: a, secrets: [s]}}\nsecrets: {s: {file: ../secrets/db}}\n"}
	_, all := Check(repo(secret), withShared(nil))
	require.Len(t, all, 1)
	require.Contains(t, all[0].Hint, "<env.dir>/_shared/prod/secrets/db")
	_, all = Check(repo(secret), withShared(map[string]string{"secrets/db": "secret\n"}))
	require.Empty(t, all)
}

// An env file that is named by its path on the host is not read there: a commit could name
// any. It has a place in the env folder.
func TestAnEnvFileOfTheHostHasAPlaceInTheEnvFolder(t *testing.T) {
	files := map[string]string{"web/compose.yaml": "services: {w: {image: a, env_file: /srv/stacks/../web/.env}}\n"}
	_, all := Check(repo(files), withShared(nil))
	require.Len(t, all, 1)
	require.Equal(t, ring.OutsideCommit, all[0].Code)
	_, named, _ := strings.Cut(all[0].Hint, "<env.dir>/")
	require.Equal(t, "_shared/prod/srv/web/.env", named)
	s := withShared(map[string]string{"srv/web/.env": "PW=secret\n"})
	require.Equal(t, map[string]string{"PW": "secret"}, environmentOf(t, files, s, "web"))

	files["web/compose.yaml"] = "services: {w: {image: a, env_file: [{path: /srv/web/.env, required: false}]}}\n"
	require.Empty(t, environmentOf(t, files, withShared(nil), "web"))
	require.Equal(t, map[string]string{"PW": "secret"}, environmentOf(t, files, s, "web"))
}

// Below the source's path is where the place is counted from.
func TestAFileAboveTheAppsIsNamedBelowTheSourcesPath(t *testing.T) {
	files := map[string]string{"stacks/media/web/compose.yaml": "services: {w: {image: a, env_file: ../stack.env}}\n"}
	s := withShared(nil)
	s.Path = "stacks"
	_, all := Check(repo(files), s)
	require.Len(t, all, 1)
	require.Contains(t, all[0].Hint, "<env.dir>/_shared/prod/media/stack.env")
	s.Shared["media/stack.env"] = []byte("PW=secret\n")
	require.Equal(t, map[string]string{"PW": "secret"}, environmentOf(t, files, s, "web"))
}

// Variables of the .env above the apps hold for those below it; the nearer wins, and
// the app's own wins over both.
func TestASharedEnvHasVariablesForTheAppsBelowIt(t *testing.T) {
	files := map[string]string{
		"media/web/compose.yaml": "services: {w: {image: a, environment: {A: '${A}', B: '${B}', C: '${C}', D: '${D:-none}'}}}\n",
		"media/web/.env":         "B=commit\n",
		"db/compose.yaml":        "services: {w: {image: a, environment: {A: '${A}', D: '${D:-none}'}}}\n",
	}
	s := withShared(map[string]string{
		".env":       "A=secret\nB=root\nC=root\nCOMPOSE_PROJECT_NAME=all\nCOMPOSE_PROFILES=x\n",
		"media/.env": "C=secret-media\nD=secret-d\n",
	})
	require.Equal(t, map[string]string{"A": "secret", "B": "commit", "C": "secret-media", "D": "secret-d"}, environmentOf(t, files, s, "web"))
	require.Equal(t, map[string]string{"A": "secret", "D": "none"}, environmentOf(t, files, s, "db"))
	s.Env["web"] = map[string][]byte{".env": []byte("A=own-secret\n")}
	require.Equal(t, "own-secret", environmentOf(t, files, s, "web")["A"])
}

// People set SERVICE to the name of the app. No value is told, and the path is the one to use.
func TestAHintNamesTheHostsFilesWhateverTheValuesAre(t *testing.T) {
	files := map[string]string{"website/compose.yaml": "services: {w: {image: a, env_file: more.env, environment: {A: '${A}', S: '${SERVICE}', P: '${POOL}'}}}\n"}
	s := withShared(map[string]string{".env": "POOL=production\n"})
	s.Source = "production"
	s.Env["website"] = map[string][]byte{".env": []byte("SERVICE=website\n")}
	r := Look(repo(files), s)
	all := r.Refusals
	r.Hide(all...) // as a host does once more, with what its policy denies
	require.Len(t, all, 2)
	require.Contains(t, all[0].Hint+all[1].Hint, "as <env.dir>/website/more.env")
	for _, place := range []string{"<env.dir>/website/.env on the host", "<env.dir>/_shared/production/.env for all apps"} {
		require.Contains(t, all[0].Hint+all[1].Hint, place)
	}
	files["website/compose.yaml"] = "services: {w: {image: '${SERVICE}:a b'}}\n"
	_, all = Check(repo(files), s)
	require.Len(t, all, 1)
	require.Contains(t, all[0].Says, "${SERVICE}")
	require.NotContains(t, all[0].Says, "website")
}

// An app in the folder of the source's path has nothing above it, and is one of all apps.
func TestASharedEnvHoldsForTheAppAtTheTop(t *testing.T) {
	for _, path := range []string{".", "stacks"} {
		top := strings.TrimPrefix(path+"/", "./")
		files := map[string]string{
			top + "compose.yaml":    "name: top\nservices: {w: {image: a, environment: {A: '${A}', B: '${B}'}}}\n",
			top + ".env":            "B=commit\n",
			top + "db/compose.yaml": "services: {w: {image: a, environment: {A: '${A}'}}}\n",
		}
		s := withShared(nil)
		s.Path = path
		_, all := Check(repo(files), s)
		require.Len(t, all, 2)
		for _, r := range all {
			require.Contains(t, r.Hint, "<env.dir>/_shared/prod/.env for all apps")
		}
		s.Shared[".env"] = []byte("A=secret\nB=shared\nCOMPOSE_PROJECT_NAME=all\n")
		require.Equal(t, map[string]string{"A": "secret", "B": "commit"}, environmentOf(t, files, s, "top"))
		require.Equal(t, map[string]string{"A": "secret"}, environmentOf(t, files, s, "db"))
		s.Env["top"] = map[string][]byte{".env": []byte("A=own-secret\n")}
		require.Equal(t, "own-secret", environmentOf(t, files, s, "top")["A"])
	}
}

// The hint of a variable that is not set names the files of the host, and each does.
func TestTheHintOfAVariableNamesTheHostsFiles(t *testing.T) {
	files := map[string]string{"web/compose.yaml": "services: {w: {image: a, environment: {A: '${A}'}}}\n"}
	_, all := Check(repo(files), withShared(nil))
	require.Len(t, all, 1)
	require.Contains(t, all[0].Hint, "<env.dir>/web/.env")
	require.Contains(t, all[0].Hint, "<env.dir>/_shared/prod/.env")
	require.Equal(t, map[string]string{"A": "secret"}, environmentOf(t, files, withShared(map[string]string{".env": "A=secret\n"}), "web"))
}
