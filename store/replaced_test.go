package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What is written to a file that has no name any more is lost at the next start, and a
// decision that was carried out on the strength of it with it.
func TestNothingIsWrittenOnceTheDatabaseWasTakenAway(t *testing.T) {
	for _, tt := range []struct {
		name string
		take func(t *testing.T, dir string)
	}{
		{"the folder was removed", func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }},
		{"the folder was moved", func(t *testing.T, dir string) { require.NoError(t, os.Rename(dir, dir+".old")) }},
		{"a copy was put in its place", func(t *testing.T, dir string) {
			at := filepath.Join(dir, fileName)
			b, err := os.ReadFile(at)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(at+".copy", b, 0o600))
			require.NoError(t, os.Rename(at+".copy", at))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			s := opened(t, dir)
			e := []ring.Event{{At: noon, Kind: ring.InstanceStep, App: "shop", Reason: "create: first deploy"}}
			require.NoError(t, s.Record(t.Context(), nil, e))
			tt.take(t, dir)
			err := s.Record(t.Context(), nil, e)
			require.ErrorContains(t, err, "removed or replaced while gitring runs; restart gitring")
			_, err = s.Facts(t.Context())
			require.NoError(t, err, "what was read is known still")
		})
	}
}
