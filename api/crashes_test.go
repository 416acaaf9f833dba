package api

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAlikeCrashesOfAServiceAreOneLine(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	crash := func(id ring.ServiceID, signature string, slot int, v ring.Version, minutes int, log ...string) ring.Crash {
		return ring.Crash{ID: id, Signature: signature, Slot: slot, Version: v, At: noon.Add(time.Duration(minutes) * time.Minute), Log: log}
	}
	all := []ring.Crash{
		crash("web/web", "exit 1 aa", 2, "v2", 9, "start", "fatal: x", " ", ""),
		crash("web/db", "exit 1 aa", 1, "v1", 8, "the same signature, another service"),
		crash("web/web", "oom bb", 1, "v2", 7),
		crash("web/web", "exit 1 aa", 1, "v1", 5, "older words"),
		crash("web/web", "exit 1 aa", 2, "v2", 3),
	}
	got := GroupCrashes(all, false)
	require.Len(t, got, 3)
	bare := all[0]
	bare.Log = nil
	require.Equal(t, CrashGroup{
		App: "web", Service: "web", Signature: "exit 1 aa", Count: 3, First: noon.Add(3 * time.Minute), Last: noon.Add(9 * time.Minute),
		Words: "fatal: x", Newest: bare, Slots: []int{1, 2}, Versions: []ring.Version{"v2", "v1"},
	}, got[0])
	require.Equal(t, []string{"db", "web"}, []string{got[1].Service, got[2].Service}, "the newest first")
	require.Equal(t, all[0].Log, GroupCrashes(all, true)[0].Newest.Log)
	require.Equal(t, []CrashGroup{}, GroupCrashes(nil, true))
}

func TestCrashesAreAskedForByAppAndService(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	got, err := c.Crashes(context.Background(), CrashQuery{App: "web", Service: "db", Logs: true})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, []string{"crashes web/db logs=true"}, d.takeCalled())
}
