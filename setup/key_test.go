package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/checkout"
)

// ssh-keygen asks for "a passphrase" alone. Whoever is asked is told before of what.
func TestWhoIsAskedForAPassphraseKnowsOfWhat(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	// It asks as the real one does, and makes no key.
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh-keygen"), []byte("#!/bin/sh\nprintf 'Enter passphrase (empty for no passphrase): ' >&2\nexit 1\n"), 0o755)) //nolint:gosec // a program
	for _, somebody := range []bool{true, false} {
		var told strings.Builder
		in := &Setup{
			Clone:  checkout.At(t.TempDir(), checkout.Person{Errs: &told, Notice: func(format string, args ...any) { fmt.Fprintf(&told, format+"\n", args...) }}),
			person: Person{Terminal: somebody, In: strings.NewReader("")}, options: Options{Generate: "ed25519"},
		}
		_, err := in.generated(t.Context())
		require.Error(t, err)
		said, asked, found := strings.Cut(told.String(), "Enter passphrase")
		require.Equal(t, somebody, found, "nobody is there to ask: %s", told.String())
		require.Empty(t, strings.TrimPrefix(asked, " (empty for no passphrase): "))
		file := filepath.Join(home, ".ssh", "gitring_ed25519")
		if somebody {
			require.Contains(t, said, file+" will be the key that signs your commits")
			require.Contains(t, said, "Enter for none")
		} else {
			require.Contains(t, said, file+" has no passphrase")
		}
	}
}
