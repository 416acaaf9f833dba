package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// The days are told by hand: a grant of 30 June ends with that day.
func TestAGrantThatEndsSoonIsTold(t *testing.T) {
	first := time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC) // on which it does not count
	grants := []policy.Grant{
		{App: "vpn", Source: "prod", Feature: "devices", Value: "gpus", Expires: first.AddDate(0, 0, 3), At: "p.yaml:9"},
		{App: "vpn", Source: "prod", Feature: "capabilities.add", Value: "NET_ADMIN", Expires: first, At: "p.yaml:8"},
		{App: "vpn", Source: "prod", Feature: "ports.host", Value: "22", At: "p.yaml:7"},
		{App: "gone", Source: "prod", Feature: "ports.host", Value: "22", Expires: first, At: "p.yaml:6"},
		{App: "vpn", Source: "lab", Feature: "ports.host", Value: "22", Expires: first, At: "p.yaml:5"},
	}
	inForce := map[string]ring.InForce{"vpn": {App: ring.App{Name: "vpn", Source: "prod"}}}
	const netAdmin = "vpn: its grant of capabilities.add NET_ADMIN (p.yaml:8) ends with 2027-06-30"
	gpus := "vpn: its grant of devices gpus (p.yaml:9) ends with 2027-07-03"
	for _, tt := range []struct {
		at   time.Time
		want []string
	}{
		{first.AddDate(0, 0, -15), nil},
		{first.AddDate(0, 0, -14), []string{netAdmin}},
		{first.AddDate(0, 0, -1), []string{netAdmin, gpus}},
		{first, []string{gpus}},
		{first.AddDate(0, 0, 4), nil},
	} {
		require.Equal(t, tt.want, endingSoon(grants, inForce, "prod", tt.at), tt.at)
	}
	src := ring.SourceStatus{Sync: ring.SyncSynced, Conditions: []ring.Condition{{Type: ring.ConditionGrantExpires, Status: ring.ConditionTrue}}}
	well, held := ring.Status{Sources: []ring.SourceStatus{{Sync: ring.SyncSynced}}}, ring.Status{Sources: []ring.SourceStatus{src}}
	require.Equal(t, well.ExitCode(), held.ExitCode(), "nothing is wrong yet")
}
