package ring_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAValueIsStruckOutInEachFormInWhichItIsRepeated(t *testing.T) {
	const value = "cana.ry/\"p w\" \\ü<&+"
	for name, text := range map[string]string{
		"plain":             value,
		"quoted":            fmt.Sprintf("%q", value),
		"quoted for ASCII":  fmt.Sprintf("%+q", value),
		"quoted for JSON":   `{"pw": "cana.ry/\"p w\" \\ü\u003c\u0026+"}`,
		"of a query":        "https://h/?pw=" + url.QueryEscape(value),
		"of an address":     "https://u:" + url.PathEscape(value) + "@h",
		"in hex":            hex.EncodeToString([]byte(value)),
		"in upper hex":      strings.ToUpper(hex.EncodeToString([]byte(value))),
		"base64":            base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 of a login": base64.StdEncoding.EncodeToString([]byte("alice:" + value)),
		"behind one byte":   base64.StdEncoding.EncodeToString([]byte("a" + value + " and more")),
		"behind two bytes":  base64.URLEncoding.EncodeToString([]byte("ab" + value + "!")),
	} {
		t.Run(name, func(t *testing.T) {
			got := ring.Strike("it said: "+text+".", value, "<PW>")
			require.Contains(t, got, "<PW>")
			require.Contains(t, got, "it said: ")
			for _, part := range []string{"cana", "63616e61", "63616E61", base64.RawStdEncoding.EncodeToString([]byte("cana.r"))[:7]} {
				require.NotContains(t, got, part)
			}
			if _, after, found := strings.Cut(got, "<PW>"); found && strings.HasPrefix(name, "b") {
				require.Less(t, len(after), 20, "no more than what stood beside it is left")
			}
		})
	}
	require.Equal(t, "line 2: <PW> is wrong", ring.Strike("line 2: second-line is wrong", "first-line\r\nsecond-line\n", "<PW>"))
	require.Equal(t, "abc is in every sentence", ring.Strike("abc is in every sentence", "abc", "<PW>"))
	require.Equal(t, "cGFzc3dvcmQ is no base64 of it", ring.Strike("cGFzc3dvcmQ is no base64 of it", "assw", "<PW>"), "what is short is not looked for inside")
}
