package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// V55 with the rule of V54: who may write the files and their folders is asked
// again whenever that changes, not only at the start.
func TestV55TrustFilesThatOthersMayWriteFromNowOnAcceptNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil, mend func(t *testing.T, file string)
		says        string
	}{
		"the file is world-writable": {
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o666)) },
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o600)) }, "can be written by others (mode 0666)",
		},
		"its folder is group-writable": {
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(filepath.Dir(file), 0o775)) },
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(filepath.Dir(file), 0o755)) }, "can be written by others (mode 0775)",
		},
		"a folder above is world-writable": {
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(file)), 0o757)) },
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(file)), 0o755)) }, "can be written by others (mode 0757)",
		},
		"it became a symlink": {
			func(t *testing.T, file string) {
				require.NoError(t, os.Rename(file, file+".real"))
				require.NoError(t, os.Symlink(file+".real", file))
			},
			func(t *testing.T, file string) { require.NoError(t, os.Rename(file+".real", file)) }, "it is a symlink",
		},
		"it is gone": {
			func(t *testing.T, file string) { require.NoError(t, os.Rename(file, file+".gone")) },
			func(t *testing.T, file string) { require.NoError(t, os.Rename(file+".gone", file)) }, "no such file",
		},
		"it is a stranger's": {
			func(t *testing.T, file string) {
				if os.Geteuid() != 0 {
					t.Skip("only root gives files away")
				}
				require.NoError(t, os.Chown(file, 4711, -1))
			},
			func(t *testing.T, file string) { require.NoError(t, os.Chown(file, 0, -1)) }, "belongs to user 4711",
		},
		"a folder is a stranger's": {
			func(t *testing.T, file string) {
				if os.Geteuid() != 0 {
					t.Skip("only root gives folders away")
				}
				require.NoError(t, os.Chown(filepath.Dir(file), 4711, -1))
			},
			func(t *testing.T, file string) { require.NoError(t, os.Chown(filepath.Dir(file), 0, -1)) }, "belongs to user 4711",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			dir := filepath.Join(t.TempDir(), "etc", "gitring")
			require.NoError(t, os.MkdirAll(dir, 0o755))
			signers := filepath.Join(dir, "allowed_signers")
			require.NoError(t, os.Rename(o.signers, signers))
			o.signers = signers
			one := o.signed("one")
			w := lookAt(t, o.follow(a))
			w.must()

			c.spoil(t, signers)
			two := o.signed("two")
			r := w.must()
			require.True(t, strings.HasPrefix(r.Reason, ring.TrustConfigInvalid+": "), r.Reason)
			require.Contains(t, r.Reason, c.says)
			require.Equal(t, one, r.Commit.SHA)
			require.Equal(t, "alice@example.org", r.Commit.Signer, "the set before is kept")
			_, err := New(w.cfg, a, nil)
			require.ErrorContains(t, err, c.says, "and nothing starts with it")

			c.mend(t, signers)
			r = w.must()
			require.Empty(t, r.Reason)
			require.Equal(t, two, r.Commit.SHA)
		})
	}
}
