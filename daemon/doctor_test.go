package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

// check is the one of a report; it has to be there.
func check(t *testing.T, r doctor.Report, about, name string) doctor.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.About == about && c.Name == name {
			return c
		}
	}
	require.FailNow(t, "no such check", "%s: %s", about, name)
	return doctor.Check{}
}

func TestHowManyChecksFailedIsSaid(t *testing.T) {
	r := doctor.Report{At: time.Date(2026, 11, 26, 14, 31, 0, 0, time.UTC), Checks: []doctor.Check{{Result: doctor.OK}, {Result: doctor.Warn}, {Result: doctor.Skip}}}
	require.Empty(t, failedSays(&r))
	r.Checks = append(r.Checks, doctor.Check{Result: doctor.Fail})
	require.Equal(t, "1 check fails, as of 2026-11-26 14:31 UTC", failedSays(&r))
	r.Checks = append(r.Checks, doctor.Check{Result: doctor.Fail})
	require.Equal(t, "2 checks fail, as of 2026-11-26 14:31 UTC", failedSays(&r))
}

func TestTheDoctorOfADaemonWhoseEngineIsAwaySaysSoAndKeepsItsAnswer(t *testing.T) {
	cfg := lonely(t, "")
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	told := func() string {
		st, err := d.status(ctx)
		require.NoError(t, err)
		return st.Doctor
	}
	require.Empty(t, told(), "nobody asked so far")
	r, err := d.doctor(ctx)
	require.NoError(t, err)
	require.Regexp(t, `^\d+ checks? fails?, as of \d{4}-\d\d-\d\d \d\d:\d\d UTC$`, told())
	require.True(t, r.Daemon)
	require.Equal(t, "edge-1", r.Host)
	require.Equal(t, doctor.Fail, check(t, r, "engine", "answers").Result)
	require.Equal(t, doctor.OK, check(t, r, "state", "owner and mode").Result)
	require.Equal(t, doctor.OK, check(t, r, "state", "journal").Result)
	require.Equal(t, doctor.Skip, check(t, r, "state", "backup").Result, "nobody knows how old this host is")
	require.Equal(t, doctor.OK, check(t, r, "source", "prod: name").Result, "its repository is a folder")
	require.Equal(t, doctor.Skip, check(t, r, "trust", "prod: keys").Result)
	require.Equal(t, doctor.Skip, check(t, r, "reboot", "services come back").Result, "nobody saw what runs")
	require.True(t, r.Failed())

	// The state is opened to others: within a minute nobody looks again.
	require.NoError(t, os.Chmod(cfg.State, 0o755)) //nolint:gosec // to be found
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			again, err := d.doctor(ctx)
			if err != nil || !again.At.Equal(r.At) {
				t.Error("a second report within a minute", err)
			}
		})
	}
	wg.Wait()
	d.reports.last.At = r.At.Add(-2 * time.Minute)
	r, err = d.doctor(ctx)
	require.NoError(t, err)
	require.Equal(t, doctor.Fail, check(t, r, "state", "owner and mode").Result)
	require.NoError(t, os.Chmod(cfg.State, 0o700)) //nolint:gosec // as it was
	cancel()
	<-ended
	d.Close()
}

func TestWithoutADaemonTheDoctorLooksAtWhatItCan(t *testing.T) {
	cfg := lonely(t, "0.0.0.0:9480")
	s := Examine(t.Context(), cfg)
	r := doctor.Report{Checks: doctor.Judge(s)}
	require.Equal(t, doctor.Warn, check(t, r, "doors", "webhooks").Result)
	require.NotEqual(t, doctor.Skip, check(t, r, "state", "room").Result)
	require.Equal(t, doctor.Skip, check(t, r, "engine", "answers").Result)
	require.Equal(t, doctor.Skip, check(t, r, "state", "writable").Result)
}

func TestAProbeThatIsLateHasNoAnswer(t *testing.T) {
	require.Equal(t, doctor.Asked{Asked: true}, answer(nil))
	require.Equal(t, doctor.Asked{Asked: true, Err: "no answer within 5s"}, answer(context.DeadlineExceeded))
	require.Equal(t, doctor.Asked{Asked: true, Err: "no"}, answer(errors.New("no")))
}

func TestTheRegistryOfAnImageIsTheOneThatDockerAsks(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "docker.io", "nginx:1.27": "docker.io", "acme/api:1": "docker.io", "ghcr.io/acme/api:1": "ghcr.io",
		"localhost/x": "localhost", "registry:5000/x": "registry:5000",
	} {
		require.Equal(t, want, registryOf(image), image)
	}
}

func TestAnAddressIsWideUnlessItIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"": false, "127.0.0.1:9480": false, "[::1]:9480": false, "localhost:9480": false, ":9480": true, "0.0.0.0:9480": true, "10.0.0.7:9480": true,
	} {
		require.Equal(t, want, wide(address), address)
	}
}

func TestTheMembersOfGroupsAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "group")
	require.NoError(t, os.WriteFile(file, []byte("root:x:0:\ndocker:x:99:gitring,eve\nbroken\n"), 0o600))
	require.Equal(t, map[string][]string{"docker": {"gitring", "eve"}}, probePeople(file).Groups)
	require.NotEmpty(t, probePeople(file+"none").Err)
}

func TestARebootIsToldOfByTheEnginesPolicy(t *testing.T) {
	f := ring.Facts{Apps: map[string]ring.InForce{"web": {App: ring.App{Name: "web", Services: []ring.Service{{Name: "api"}, {Name: "db"}, {Name: "job"}}}}}}
	in := func(app, service, policy string, kind ring.Kind, state ring.State) ring.Instance {
		return ring.Instance{App: app, Service: service, Policy: policy, Kind: kind, State: state}
	}
	seen := ring.Seen{Instances: []ring.Instance{
		in("web", "api", "unless-stopped", ring.Worker, ring.StateRunning), in("web", "db", "no", ring.Worker, ring.StateRunning),
		in("web", "job", "no", ring.JobK, ring.StateRunning), in("web", "api", "no", ring.Worker, ring.StateExited),
		in("web", "old", "no", ring.Worker, ring.StateRunning), in("other", "api", "no", ring.Worker, ring.StateRunning),
	}}
	r := reboot(&f, &seen, &doctor.Engine{}, nil, "")
	require.Equal(t, 2, r.Ready)
	require.Equal(t, []string{"web/db"}, r.Stay)
	require.Empty(t, r.Crashed)

	db := &seen.Instances[1]
	db.ID, db.Slot, db.Version = "c1", 1, "1:aa"
	f.Slots = map[string]ring.SlotRow{ring.SlotKey("web/db", 1, "1:aa"): {Instance: "c1", Crashes: 2}}
	require.Empty(t, reboot(&f, &seen, &doctor.Engine{}, nil, "").Crashed, "its file asks for no restart by the engine")
	f.Apps["web"].App.Services[1].Restart.Engine = "unless-stopped"
	require.Equal(t, []string{"web/db"}, reboot(&f, &seen, &doctor.Engine{}, nil, "").Crashed)
	db.ID = "c2"
	require.Empty(t, reboot(&f, &seen, &doctor.Engine{}, nil, "").Crashed, "another one crashed")
	require.Equal(t, "away", reboot(&f, &seen, &doctor.Engine{}, nil, "away").Err)
	require.Equal(t, "no answer within 5s", reboot(&f, &seen, &doctor.Engine{}, context.DeadlineExceeded, "").Err)
}

// Podman starts nothing with the host by itself: its unit does, and says what.
func TestARebootOnPodmanCountsWhatItsUnitStarts(t *testing.T) {
	f := ring.Facts{Apps: map[string]ring.InForce{"web": {App: ring.App{Name: "web", Services: []ring.Service{{Name: "api"}, {Name: "db"}}}}}}
	seen := ring.Seen{Instances: []ring.Instance{
		{App: "web", Service: "api", Policy: "always", Kind: ring.Worker, State: ring.StateRunning},
		{App: "web", Service: "db", Policy: "unless-stopped", Kind: ring.Worker, State: ring.StateRunning},
	}}
	asked := doctor.Asked{Asked: true}
	for _, c := range []struct {
		says, enabled, starts string
		stay                  []string
	}{
		{"not enabled", "disabled", "start --all --filter restart-policy=always", []string{"web/api", "web/db"}},
		{"not there", "not-found", "", []string{"web/api", "web/db"}},
		{"of Podman 5.4", "enabled", "start --all --filter restart-policy=always", []string{"web/db"}},
		{"that says nothing", "enabled", "", []string{"web/db"}},
		{"of a newer one", "enabled", "start --all --filter should-start-on-boot=true", nil},
		{"as people write it", "enabled", "start --all --filter restart-policy=always --filter restart-policy=unless-stopped", nil},
	} {
		r := reboot(&f, &seen, &doctor.Engine{Podman: true, AtBoot: doctor.Boot{Asked: asked, Enabled: c.enabled, Starts: c.starts}}, nil, "")
		require.Equal(t, c.stay, r.Stay, c.says)
		require.Equal(t, 2, r.Ready)
		require.True(t, r.Podman)
	}
	require.False(t, reboot(&f, &seen, &doctor.Engine{Podman: true}, nil, "").Asked.Asked, "without systemd nobody can tell")
}
