package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func checkOf(t *testing.T, e Engine, name string) Check {
	t.Helper()
	e.Asked = Asked{Asked: true}
	for _, c := range engineChecks(&e) {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "no such check", name)
	return Check{}
}

func TestAPodmanWithoutSystemdFails(t *testing.T) {
	c := checkOf(t, Engine{Podman: true}, "checks")
	require.Equal(t, Fail, c.Result)
	require.Equal(t, OK, checkOf(t, Engine{Podman: true, Clock: true}, "checks").Result)
	require.Equal(t, OK, checkOf(t, Engine{}, "checks").Result)
}

func TestAPodmanThatDoesNotStartAtBootIsTold(t *testing.T) {
	c := checkOf(t, Engine{Podman: true, AtBoot: Boot{Asked: Asked{Asked: true}, Enabled: "disabled"}}, "starts at boot")
	require.Equal(t, Warn, c.Result)
	require.Equal(t, "systemctl enable podman-restart", c.Hint)
}

func TestOnPodmanARebootIsMendedByItsUnit(t *testing.T) {
	r := Reboot{Asked: Asked{Asked: true}, Podman: true, Ready: 2, Stay: []string{"web/db"}}
	require.Contains(t, rebootCheck(&r).Hint, "restart: always has podman-restart.service do it")
	r.Podman = false
	require.NotContains(t, rebootCheck(&r).Hint, "podman")

	// What crashed a moment ago has the policy in its file already.
	r.Crashed = r.Stay
	lately := "gitring keeps the restarts of web/db until it has run for a while, because it crashed: nothing is to be done for it"
	require.Equal(t, lately, rebootCheck(&r).Hint)
	r.Stay = append(r.Stay, "web/api")
	require.Equal(t, lately+"; for the others: gitring starts them as soon as it runs; restart: unless-stopped has the engine do it", rebootCheck(&r).Hint)
}
