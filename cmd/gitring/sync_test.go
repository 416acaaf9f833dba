package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// Of two apps that pull, the source's line tells of one, and the other has its own.
func TestEachAppThatIsStagedIsTold(t *testing.T) {
	staged := func(name, says string) ring.AppStatus {
		return ring.AppStatus{Name: name, Health: ring.Progressing, Reason: says}
	}
	rolling := ring.ServiceStatus{Name: "api", Phase: ring.PhaseProgressing, Kind: ring.Worker, Wanted: 1, Updated: 1, Reason: "0/1 ready"}
	src := ring.SourceStatus{
		Name: "prod", Sync: ring.SyncStaging, Next: &ring.Next{Commit: "b2c3d4e5f60718293a4b5c6d7e8f9012345678a1", Reason: "app db: pulling db:1 (1MB of 9MB, 0 of 3 layers)"},
		Apps: []ring.AppStatus{
			staged("db", "pulling db:1 (1MB of 9MB, 0 of 3 layers)"), staged("web", "pulling web:1 (2MB of 8MB, 1 of 2 layers)"),
			{Name: "api", Health: ring.Progressing, Reason: rolling.Reason, Services: []ring.ServiceStatus{rolling}},
		},
	}
	var b strings.Builder
	g := &globals{now: time.Now}
	p := &progress{live: screen.NewLive(&b, g.now), g: g}
	require.NoError(t, p.show(&ring.Status{Sources: []ring.SourceStatus{src}}))
	require.Equal(t, `prod  Staging  next b2c3d4e: app db: pulling db:1 (1MB of 9MB, 0 of 3 layers)
  web  pulling web:1 (2MB of 8MB, 1 of 2 layers)
  api/api  Progressing  0/1 ready
`, b.String())
}

// Who waits in vain for an image is told what to look at.
func TestATimeoutSaysWhatToTryForAnImage(t *testing.T) {
	hint := func(code ring.ReasonCode) string {
		var f *exit.Failure
		require.ErrorAs(t, timedOut(&ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncStaging, Apps: []ring.AppStatus{{Name: "db", Code: code}}}}}, time.Second), &f)
		return f.Hint
	}
	require.Contains(t, hint(ring.WhyImagePending), "docker pull")
	require.NotContains(t, hint(""), "docker pull")
}
