package main

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
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
	p := &progress{live: screen.NewLive(&b, g.now), g: g, printed: printedLines{asked: time.Now(), lines: show.Printed{}}}
	require.NoError(t, p.show(t.Context(), &ring.Status{Sources: []ring.SourceStatus{src}}))
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

// What a check says is why a rollout stands still: a log and a terminal have it while it waits.
func TestProgressTellsWhatAFailingCheckPrints(t *testing.T) {
	web := ring.ServiceStatus{Name: "web", Phase: ring.PhaseProgressing, Kind: ring.Worker, Wanted: 1, Updated: 1, Reason: "0/1 ready", Instances: []ring.InstanceStatus{{Slot: 1, State: ring.SlotStarting}}}
	st := &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncApplying, Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{web}}}}}}
	kept := printedLines{asked: time.Now(), lines: show.Printed{"shop/web": {Checked: []string{"no route to db"}}}}
	var b strings.Builder
	g := &globals{now: time.Now}
	p := &progress{live: screen.NewLive(&b, g.now), g: g, printed: kept}
	require.NoError(t, p.show(t.Context(), st))
	onTerminal := show.Fitting(st, 40, func(shown *show.Shown) string {
		s := screen.New(false, 80)
		show.Progress(s, st, "", time.Now(), shown, kept.lines)
		return s.String()
	})
	for _, shown := range []string{b.String(), onTerminal} {
		require.Regexp(t, ` the check of shop/web printed:\n +no route to db\n`, shown)
	}
}

// A screen that goes on asks what checks print now and then, and not each time that it is drawn.
func TestWhatChecksPrintIsAskedNowAndThen(t *testing.T) {
	now, asked := time.Now(), 0
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprintf(w, `{"instances":[{"slot":1,"printed":[{"lines":["answer %d"]}]}]}`, asked)
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	g := &globals{now: func() time.Time { return now }, socket: socket}
	st := &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{{Name: "web", Instances: []ring.InstanceStatus{{State: ring.SlotNotReady}}}}}}}}}
	var kept printedLines
	for range 3 {
		require.Equal(t, []string{"answer 1"}, kept.of(t.Context(), g, st)["shop/web"].Checked)
	}
	now = now.Add(printedEvery)
	require.Equal(t, []string{"answer 2"}, kept.of(t.Context(), g, st)["shop/web"].Checked)
	require.Contains(t, g.watchedScreen(t.Context(), st, 40, kept.of(t.Context(), g, st)), "answer 2")
	require.Contains(t, g.statusScreen(st, kept.of(t.Context(), g, st)), "answer 2")
}
