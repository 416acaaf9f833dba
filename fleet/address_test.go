package fleet

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Address{
		"ssh://edge-1":                           {Host: "edge-1"},
		"ssh://edge-1/":                          {Host: "edge-1"},
		"ssh://ann@edge-1.example.org:2222":      {User: "ann", Host: "edge-1.example.org", Port: 2222},
		"ssh://edge_1/run/gitring/gitring.sock":  {Host: "edge_1", Socket: "/run/gitring/gitring.sock"},
		"ssh://ann@[fd00::1]:22/run/gitring-2.s": {User: "ann", Host: "fd00::1", Port: 22, Socket: "/run/gitring-2.s"},
		"ssh://[::1]":                            {Host: "::1"},
		"ssh://10.0.0.7:65535":                   {Host: "10.0.0.7", Port: 65535},
		"ssh://A.B-C_d@Z/x.y_z-0":                {User: "A.B-C_d", Host: "Z", Socket: "/x.y_z-0"},
	} {
		got, err := ParseAddress(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseAddress(got.String())
		require.NoError(t, err, text)
		require.Equal(t, got, again, text)
	}
}

// hostile are addresses that ssh, or the shell at the far end, would take for more than a
// name.
var hostile = []string{
	"ssh://-oProxyCommand=touch${IFS}pwned", "ssh://-oProxyCommand=x@edge-1", "ssh://ann@-edge-1", "ssh://edge-1;reboot",
	"ssh://edge-1 -oProxyCommand=x", "ssh://$(reboot)", "ssh://`reboot`", "ssh://edge-1/run/$(reboot)", "ssh://edge-1/run/a b", "ssh://edge-1/run/a;b",
	"ssh://edge-1/run/a'b", "ssh://edge-1/run/a\nb", "ssh://edge-1:22;x", "ssh://edge-1:-1", "ssh://edge-1:0", "ssh://edge-1:65536", "ssh://edge-1:",
	"ssh://[::1", "ssh://[::1]x", "ssh://[edge-1]", "ssh://[127.0.0.1]", "ssh://[fe80::1%eth0]", "ssh://::1", "ssh://@edge-1", "ssh://", "ssh:///run/x",
	"ssh://a@b@c", "ssh://edge%2d1", "ssh://édge", "http://edge-1", "edge-1", "", "ssh://ann:secret@edge-1", "ssh://edge-1?x", "ssh://edge-1#x",
	"ssh://edge-1/run/a&b", "ssh://edge-1/run/|x", "ssh://edge-1/run/~", "ssh://edge-1\x00", "SSH://edge-1",
}

func TestHostileAddressesAreRefused(t *testing.T) {
	for _, text := range hostile {
		_, err := ParseAddress(text)
		require.ErrorContains(t, err, "is no host to ask", "%q", text)
	}
}

func TestTheNameIsNeverAnOptionOfSSH(t *testing.T) {
	a, err := ParseAddress("ssh://ann@edge-1:2222/run/g.sock")
	require.NoError(t, err)
	require.Equal(t, []string{
		"-T", "-a", "-x", "-o", "ClearAllForwardings=yes", "-p", "2222", "-l", "ann", "--", "edge-1", "gitring", "dial-stdio", "--socket", "/run/g.sock",
	}, a.args())
	a.Foreign = true
	require.Equal(t, []string{"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"}, a.args()[5:9])
	require.Equal(t, "edge-1", a.args()[slices.Index(a.args(), "--")+1])
}
