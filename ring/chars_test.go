package ring

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyPlainNamesArePlain(t *testing.T) {
	for _, s := range []string{"a", "Web-1.v2_x", strings.Repeat("x", 255), "-", "."} {
		require.True(t, IsMadeOf(s, NameChars, 255), s)
	}
	for _, s := range []string{"", strings.Repeat("x", 256), "a b", "a\n", "\na", "a/b", "a\x00b", "é", "\xff", "a:b"} {
		require.False(t, IsMadeOf(s, NameChars, 255), "%q", s)
	}
	require.True(t, IsMadeOf("c0ffee", HexDigits, 6))
	require.False(t, IsMadeOf("C0FFEE", HexDigits, 6))
}

func TestPartsOfAnAddressSteerNoShell(t *testing.T) {
	for _, s := range []string{"ssh://-x", "ssh://a@-x", "ssh://-u@host", "ssh://a b", "ssh://host/a;b", "ssh://host/" + strings.Repeat("x", 256), "ssh://" + strings.Repeat("x", 254)} {
		_, err := ParseHostAddress(s)
		require.Error(t, err, s)
	}
	for _, s := range []string{"ssh://_x", "ssh://a.b-c", "ssh://u@host/run/a-b_c.sock", "ssh://host/" + strings.Repeat("x", 255), "ssh://" + strings.Repeat("x", 253)} {
		_, err := ParseHostAddress(s)
		require.NoError(t, err, s)
	}
}
