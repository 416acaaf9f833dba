package proof_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
)

// hostKey is what only the host has.
var hostKey = []byte("0123456789abcdef0123456789abcdef")

// A host reads commits with values that nobody else has. What stands for them in a proof
// gives the same version, whatever is done with them.
func TestAVersionComesOutWithoutTheHostsValues(t *testing.T) {
	for _, tt := range []struct {
		name, compose string
		more          map[string]string            // files of the commit
		env           map[string]string            // of the app's folder in the env folder
		shared        map[string]string            // of the folder for all apps
		needs         map[string]map[string]string // by file, the names that have to be in the proof
	}{
		{
			name: "in an environment", compose: "services: {web: {image: 'a:1', environment: {P: '${P}', Q: 'x${P}y'}}}",
			env: map[string]string{".env": "P=secret\nOTHER=unused\n"}, needs: map[string]map[string]string{".env": {"P": ""}},
		},
		{
			name: "as a default that is not taken", compose: "services: {web: {image: 'a:1', environment: {P: '${P:-none}', E: '${E:-empty}'}}}",
			env: map[string]string{".env": "P=secret\nE=\n"}, needs: map[string]map[string]string{".env": {"P": ""}},
		},
		{
			name: "a whole env file in the place of one that the commit does not have", compose: "services: {web: {image: 'a:1', env_file: [db.env]}}",
			env: map[string]string{"db.env": "A=1\nB=two words\nEMPTY=\n"}, needs: map[string]map[string]string{"db.env": {"A": "", "B": "", "EMPTY": ""}},
		},
		{
			name: "a file that is mounted", compose: "services: {web: {image: 'a:1', secrets: [tls]}}\nsecrets: {tls: {file: ./tls.key}}",
			env: map[string]string{"tls.key": "-----BEGIN\nKEY\n"}, needs: map[string]map[string]string{"tls.key": {"": ""}},
		},
		{
			name: "a command with one word of it", compose: "services: {web: {image: 'a:1', command: 'serve --token ${P}'}}",
			env: map[string]string{".env": "P=secret\n"}, needs: map[string]map[string]string{".env": {"P": ""}},
		},
		{
			name: "a command with several words of it", compose: "services: {web: {image: 'a:1', command: 'serve ${P}'}}",
			env: map[string]string{".env": "P=--token secret --more\n"}, needs: map[string]map[string]string{".env": {"P": ""}},
		},
		{
			name: "of all apps of the source", compose: "services: {web: {image: 'a:1', environment: {P: '${P}'}}}",
			shared: map[string]string{".env": "P=secret\n"}, needs: map[string]map[string]string{".env": {"P": ""}},
		},
		{
			name: "nothing of it", compose: "services: {web: {image: 'a:1', environment: {P: 'plain'}}}",
			env: map[string]string{".env": "P=secret\n", "other.env": "X=1\n"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			files := map[string]string{"shop/compose.yaml": tt.compose, "other/compose.yaml": "services: {x: {image: 'b:1'}}"}
			for name, text := range tt.more {
				files[name] = text
			}
			s := &sample{world: w}
			sha := w.commit(&alice, w.tree(files), "One")
			c := s.commitOf(sha)

			// As the daemon reads it.
			settings := manifest.Settings{
				Source: "prod", Path: ".", Host: "edge-1", Facts: map[string]string{"tier": "edge"}, Interpolation: map[string]string{"UNUSED": "u"},
				Traffic: manifest.DefaultTraffic(), EnvKey: hostKey, Env: map[string]map[string][]byte{"shop": bytesOf(tt.env)}, Shared: bytesOf(tt.shared),
			}
			plan, _ := manifest.Read(c, settings)
			require.Empty(t, plan.Refused)
			app, ok := plan.App("shop")
			require.True(t, ok)
			web, _ := app.Service("web")
			version := ring.VersionOf(&app, &web, ring.Pin{Image: "a:1@" + digestA})

			st := &proof.Statement{
				Host: "edge-1", Source: "prod", App: "shop", Service: "web", Version: version, Commit: sha,
				Pins: map[string]proof.Pin{"web": {Image: "a:1@" + digestA}}, Values: proof.ValuesOf(&settings),
			}
			st.Values.Env = manifest.SealedOf("shop", bytesOf(tt.env), hostKey, nil)
			for folder, of := range manifest.SealedOf(manifest.SharedEnv("prod"), bytesOf(tt.shared), hostKey, nil) {
				st.Values.Env[folder] = of
			}
			require.NoError(t, proof.Least(c, st))
			found, err := proof.Compute(c, st)
			require.NoError(t, err)
			require.Equal(t, version, found.Service.Version)

			// No more of the host than that.
			v := st.Values
			require.Equal(t, "shop", v.Only)
			require.Nil(t, v.Facts)
			require.Nil(t, v.Interpolation)
			require.Nil(t, v.Traffic)
			kept := map[string]map[string]string{}
			for _, files := range v.Env {
				for file, names := range files {
					kept[file] = map[string]string{}
					for name := range names {
						kept[file][name] = ""
					}
				}
			}
			if tt.needs == nil {
				tt.needs = map[string]map[string]string{}
			}
			require.Equal(t, tt.needs, kept)
			b, err := json.Marshal(st)
			require.NoError(t, err)
			for _, secret := range []string{"secret", "two words", "BEGIN", "unused"} {
				require.False(t, strings.Contains(string(b), secret), "%s", b)
			}
		})
	}
}

func bytesOf(files map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, text := range files {
		out[name] = []byte(text)
	}
	return out
}

// A value that shapes the plan itself cannot be told without telling what it is.
func TestAVersionThatDependsOnThePlainTextIsRefused(t *testing.T) {
	w := newWorld(t)
	s := &sample{world: w}
	sha := w.commit(&alice, w.tree(map[string]string{"shop/compose.yaml": "services: {web: {image: 'a:${TAG}'}}"}), "One")
	c := s.commitOf(sha)
	env := map[string][]byte{".env": []byte("TAG=1.2\n")}
	settings := manifest.Settings{Source: "prod", Path: ".", EnvKey: hostKey, Env: map[string]map[string][]byte{"shop": env}}
	plan, _ := manifest.Read(c, settings)
	app, ok := plan.App("shop")
	require.True(t, ok)
	web, _ := app.Service("web")
	st := &proof.Statement{
		Source: "prod", App: "shop", Service: "web", Commit: sha, Version: ring.VersionOf(&app, &web, ring.Pin{Image: "a:1.2@" + digestA}),
		Pins: map[string]proof.Pin{"web": {Image: "a:1.2@" + digestA}}, Values: proof.ValuesOf(&settings),
	}
	st.Values.Env = manifest.SealedOf("shop", env, hostKey, nil)
	require.Error(t, proof.Least(c, st))
}
