package show

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

func TestAWhyThatHasNoRoomGoesBelowItsRow(t *testing.T) {
	head := []string{"SERVICE", "IS", "REASON"}
	rows := [][]screen.Word{{screen.Text("web/web"), screen.Text("Ready"), screen.Text("2/2 ready")}, {screen.Text("db/db"), screen.Text("Failed"), screen.Text("exit 1: no room left on device")}}
	for _, tt := range []struct {
		name  string
		width int
		want  string
	}{
		{name: "no terminal", width: 0, want: `
  SERVICE  IS      REASON
  web/web  Ready   2/2 ready
  db/db    Failed  exit 1: no room left on device
`},
		{name: "to the column", width: 49, want: `
  SERVICE  IS      REASON
  web/web  Ready   2/2 ready
  db/db    Failed  exit 1: no room left on device
`},
		{name: "one too few", width: 48, want: `
  SERVICE  IS      REASON
  web/web  Ready   2/2 ready
  db/db    Failed
    exit 1: no room left on device
`},
		{name: "the short one to the column", width: 28, want: `
  SERVICE  IS      REASON
  web/web  Ready   2/2 ready
  db/db    Failed
    exit 1: no room left on
    device
`},
		{name: "no room for any", width: 24, want: `
  SERVICE  IS
  web/web  Ready
    2/2 ready
  db/db    Failed
    exit 1: no room left
    on device
`},
		{name: "the others to the column", width: 17, want: `
  SERVICE  IS
  web/web  Ready
    2/2 ready
  db/db    Failed
    exit 1: no
    room left on
    device
`},
		{name: "no room for the others", width: 14, want: `
  SERVICE
  web/web
    is Ready
    2/2 ready
  db/db
    is Failed
    exit 1: no
    room left
    on device
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := screen.New(false, tt.width)
			s.Table(2, head, rows)
			require.Equal(t, strings.TrimPrefix(tt.want, "\n"), s.String())
		})
	}
}

func TestARefusalIsSaidOnce(t *testing.T) {
	const says = "image a:7 is not in the registry"
	st := &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{
		Name: "web", Health: ring.Degraded, Reason: says, Refusal: &ring.Refusal{Code: ring.ImageNotFound, App: "web", Says: says, Hint: "push it"},
		Services: []ring.ServiceStatus{{Name: "web", Phase: ring.PhaseReady, Reason: "1/1 ready", Conditions: []ring.Condition{{Type: ring.ConditionImageResolved, Status: ring.ConditionFalse, Reason: says}}}},
	}}}}}
	s := screen.New(false, 0)
	Status(s, st, View{})
	require.Equal(t, 1, strings.Count(s.String(), says), s.String())
	require.Contains(t, s.String(), "web/web image missing")
}

// What a commit no longer has is refused at no place, and the line has no hole there.
func TestARefusalWithoutAPlaceHasNoHole(t *testing.T) {
	s := screen.New(false, 0)
	Refusal(s, 0, "db", &ring.Refusal{Code: ring.VolumeLeftBehind, App: "db", Says: "VOLUME a WOULD BEGIN EMPTY"})
	require.Equal(t, "db refused VolumeLeftBehind: VOLUME a WOULD BEGIN EMPTY\n", s.String())
}

// One program that ends has one row, one line of what follows, and what to do. What waits for it has a row
// that names it. The words are those of a daemon.
func TestAFailureIsSaidOnce(t *testing.T) {
	const says = "slot 1 exited with code 1"
	lacking := ring.Condition{Type: ring.ConditionAvailable, Status: ring.ConditionFalse, Reason: "0 of 1 ready, at least 1 should be"}
	db := ring.ServiceStatus{
		Name: "db", Phase: ring.PhaseFailed, Wanted: 1, Code: ring.WhyRolloutFailed, Reason: says,
		Rollout: &ring.RolloutStatus{Phase: ring.RolloutPaused, Code: ring.WhyRolloutFailed, Commit: "ab12cd3", Reason: says},
		Conditions: []ring.Condition{
			lacking,
			{Type: ring.ConditionCrashLooping, Status: ring.ConditionTrue, Reason: "slot 1 crashed 17 times", ExitCode: 1},
			{Type: ring.ConditionQuarantined, Status: ring.ConditionTrue, Reason: says},
		},
		Instances: []ring.InstanceStatus{{Slot: 1, State: ring.SlotBackingOff, Restarts: 17}},
	}
	web := ring.ServiceStatus{
		Name: "web", Phase: ring.PhaseDegraded, Wanted: 1, Code: ring.WhyDependencyNotReady, On: "shop/db", Reason: "waits for db: failed: " + says,
		Conditions: []ring.Condition{lacking},
	}
	s := screen.New(false, 0)
	Status(s, &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "shop", Health: ring.Degraded, Reason: says, Services: []ring.ServiceStatus{db, web}}}}}}, View{})
	shown := s.String()
	require.Equal(t, 1, strings.Count(shown, says), shown)
	require.NotContains(t, shown, "at least 1 should be")
	require.NotContains(t, shown, "Stopped")
	require.Contains(t, shown, "\n  shop/db CrashLooping, Quarantined\n    hint: ")
	require.Regexp(t, `shop/web +Degraded .* waits for db: failed\n`, shown)
}

// What is left of several addresses is one that can be typed.
func TestAShortenedAddressIsStillOne(t *testing.T) {
	require.Equal(t, "127.0.0.1:18080,+1", cutAddress("127.0.0.1:18080,127.0.0.1:18081", leastAddress))
	require.Equal(t, "127.0.0.1:18080,+4", cutAddress("127.0.0.1:18080,:53/udp,+3", leastAddress))
	require.Equal(t, "172.18.0.2", cutAddress("172.18.0.2", leastAddress))
	require.Equal(t, "…8::1]:8080", cutAddress("[2001:db8::1]:8080", 11))
}

// A job that completed makes the phases wider; the names of images give way, not the addresses.
func TestAWideWordCostsNoAddress(t *testing.T) {
	began := time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC)
	service := func(name, image, port string) ring.ServiceStatus {
		return ring.ServiceStatus{
			Name: name, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Commit: "ab12cd3", Image: image, Ports: []string{port},
			Instances: []ring.InstanceStatus{{Slot: 1, Started: began}},
		}
	}
	st := &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "media", Services: []ring.ServiceStatus{
		service("torrents-1", "qbittorrent:5", "18081:80/tcp"), service("app", "nextcloud:31", "127.0.0.1:18082:80/tcp"),
		{Name: "backup", Kind: ring.JobK, Phase: ring.PhaseCompleted, Commit: "ab12cd3", Image: "backup:1"},
	}}}}}}
	s := screen.New(false, 80)
	Status(s, st, View{Now: began.Add(100 * time.Second)})
	for _, want := range []string{" ADDRESS ", " 127.0.0.1:18082 ", " :18081 ", "…:5 ", "…:31 ", " 100s\n"} {
		require.Contains(t, s.String(), want)
	}
	for line := range strings.Lines(s.String()) {
		require.LessOrEqual(t, screen.WidthOf(strings.TrimSuffix(line, "\n")), 80)
	}
}

// After an undo of one app the commit that waits is the one that the source is at.
func TestACommitThatWaitsIsNotNamedTwice(t *testing.T) {
	src := ring.SourceStatus{Name: "prod", Commit: "ab12cd3", Sync: ring.SyncHeld, Next: &ring.Next{Commit: "ab12cd3", Reason: "app web: undone by root"}}
	for _, app := range []ring.AppStatus{{Name: "web"}, {Name: "web", Reason: "undone by root"}} {
		src.Apps = []ring.AppStatus{app}
		st, status, progress := &ring.Status{Sources: []ring.SourceStatus{src}}, screen.New(false, 0), screen.New(false, 0)
		Status(status, st, View{})
		Progress(progress, st, "", time.Time{}, &Shown{}, nil)
		for _, s := range []*screen.Screen{status, progress} {
			require.NotContains(t, s.String(), "next ab12cd3")
			require.Equal(t, 1, strings.Count(s.String(), "undone by root"), s.String())
		}
	}
}

// A commit that cannot come into force is waited for beside the services of the one before.
// Why an image is not there yet is the sentence of its app, which stands above.
func TestAnImageThatIsLookedUpIsToldOnce(t *testing.T) {
	const why = "cannot resolve image db:2: connection refused; attempt 2"
	st := &ring.Status{Sources: []ring.SourceStatus{{
		Name: "prod", Commit: "ab12cd3", Sync: ring.SyncStaging, Next: &ring.Next{Commit: "cd34ef5", Reason: "app db: " + why, Code: ring.WhyImagePending},
		Apps: []ring.AppStatus{{Name: "db", Health: ring.Progressing, Reason: why, Code: ring.WhyImagePending, Services: []ring.ServiceStatus{{
			Name: "pg", Phase: ring.PhaseReady, Ready: 1, Wanted: 1, Reason: "1/1 ready",
			Conditions: []ring.Condition{{Type: ring.ConditionImageResolved, Status: ring.ConditionFalse, Reason: why}},
		}}}},
	}}}
	s := screen.New(false, 0)
	Status(s, st, View{})
	require.Equal(t, 1, strings.Count(s.String(), "connection refused"), s.String())
	require.Contains(t, s.String(), "image missing")
}

// What the next commit waits for is the first question of whoever sees that it is not there.
func TestTheNextCommitSaysWhoseHoldItWaitsFor(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		says, target, reason string
		kind                 ring.OverrideKind
		code                 ring.ReasonCode
	}{
		{"waits for the hold of db by alice, 26m ago; gitring release db ends it", "db", "held by alice: the disk moves", ring.OverrideHold, ring.WhyHeldByPerson},
		{"waits for the undo of db by alice, 26m ago; gitring release db ends it", "db", "undone to a1b2c3d by alice: it is slow", ring.OverrideUndo, ring.WhyUndoneByPerson},
		{"waits for the hold of db/pg by alice, 26m ago; gitring release db/pg ends it", "db/pg", "pg held by alice: the disk moves", ring.OverrideHold, ring.WhyHeldByPerson},
	} {
		st := ring.Status{
			Sources: []ring.SourceStatus{{
				Name: "prod", Commit: "a1b2c3d4", Sync: ring.SyncHeld, Code: tt.code, Reason: "app db: " + tt.reason,
				Next: &ring.Next{Commit: "b2c3d4e5", Reason: "app db: " + tt.reason, Code: tt.code},
				Apps: []ring.AppStatus{{Name: "db", Health: ring.Held, Code: tt.code, Reason: tt.reason}},
			}},
			Overrides: []ring.Override{{Kind: string(ring.OverrideHold), Target: "other", Actor: "bob"}, {Kind: string(tt.kind), Target: tt.target, Actor: "alice", Since: now.Add(-26 * time.Minute)}},
		}
		s := screen.New(false, 0)
		Status(s, &st, View{Now: now})
		require.Contains(t, s.String(), "next b2c3d4e: "+tt.says)
	}
}

func TestWhatIsWaitedForNamesTheNextCommitToo(t *testing.T) {
	slow := []ring.AppStatus{{Name: "web", Services: []ring.ServiceStatus{{Name: "job", Phase: ring.PhaseProgressing, Reason: "is running"}}}}
	st := &ring.Status{Sources: []ring.SourceStatus{
		{Name: "prod", Sync: ring.SyncStaging, Commit: "ab12cd3", Next: &ring.Next{Commit: "cd34ef5", Reason: "app db: resolving db:1"}, Apps: slow},
		{Name: "lab", Sync: ring.SyncApplying},
		{Name: "home", Sync: ring.SyncSynced},
	}}
	require.Equal(t, []string{"prod is Staging: next cd34ef5: app db: resolving db:1", "web/job is Progressing: is running", "lab is Applying"}, WaitsOf(st))
}

// A version that failed and that nothing can take the place of is kept, and started again:
// the screen does not say that it is not tried again.
func TestWhatIsStartedAgainIsNotSaidToBeGivenUp(t *testing.T) {
	seen := func(rollout, version, state string) string {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{
			Name: "shop", Services: []ring.ServiceStatus{{
				Name: "web", Kind: ring.Worker, Phase: ring.PhaseFailed, Wanted: 1, Version: "1:new", Reason: "slot 1 exited with code 1",
				Rollout:    &ring.RolloutStatus{Phase: rollout, Code: ring.WhyRolloutFailed, Reason: "slot 1 exited with code 1"},
				Conditions: []ring.Condition{{Type: ring.ConditionQuarantined, Status: ring.ConditionTrue, Reason: "slot 1 exited with code 1"}},
				Instances:  []ring.InstanceStatus{{Slot: 1, Version: ring.Version(version), State: state}},
			}},
		}}}}}, View{})
		return s.String()
	}
	const mend = ": push a commit that mends it (git revert works), or gitring retry shop/web\n"
	for _, state := range []string{ring.SlotBackingOff, ring.SlotCrashed} {
		require.Contains(t, seen(ring.RolloutPaused, "1:new", state), "hint: it is started again after waits that grow, and its rollout goes no further"+mend)
	}
	for _, state := range []string{ring.SlotStarting, ring.SlotNotReady, ring.SlotReady} {
		require.Contains(t, seen(ring.RolloutPaused, "1:new", state), "hint: it runs on, and its rollout goes no further"+mend)
	}
	for _, x := range [][3]string{
		{ring.RolloutPaused, "1:new", ring.SlotStopped},
		{ring.RolloutPaused, "1:old", ring.SlotReady},
		{ring.RolloutIsRestored, "1:old", ring.SlotReady},
		{ring.RolloutRestoring, "1:new", ring.SlotBackingOff},
	} {
		require.Contains(t, seen(x[0], x[1], x[2]), "hint: it is not tried again"+mend, "%v", x)
	}
}

// The README's sample of a version that is taken back is the screen that there is.
func TestTheReadmeShowsWhatAFailedRolloutSays(t *testing.T) {
	const reason = "slot 1 not ready within 6s: readiness check up: GET :8080/healthz answered 503"
	s := screen.New(false, 80)
	Synced(s, &ring.Status{Sources: []ring.SourceStatus{{
		Name: "demo", Sync: ring.SyncDegraded, Commit: "8ad5fa5", Subject: "Break it", Trusted: "8ad5fa5", Reason: "hello/web kept d146fc7: " + reason,
		Apps: []ring.AppStatus{{Name: "hello", Services: []ring.ServiceStatus{{Name: "other", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1}, {
			Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 2, Ready: 2, Reason: "kept d146fc7: " + reason,
			Rollout: &ring.RolloutStatus{Phase: ring.RolloutIsRestored, Code: ring.WhyRolloutFailed, Commit: "8ad5fa5", Reason: reason},
		}}}},
	}}}, "took 7s", Printed{"hello/web": {Checked: []string{"this version is broken on purpose"}}})
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "\n"+s.String()+"(exit status 6)\n")
}

// A service that crashes, whose version has not failed: when it is started again, and where to look.
func TestAServiceThatCrashesHasItsNextTry(t *testing.T) {
	seen := func(state, reason string) string {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{
			Name: "notes", Services: []ring.ServiceStatus{{
				Name: "web", Kind: ring.Worker, Phase: ring.PhaseDegraded, Wanted: 1, Reason: "0/1 ready; slot 1 exited with code 1",
				Instances: []ring.InstanceStatus{{Slot: 1, State: state, Reason: reason}},
			}},
		}}}}}, View{Problems: true})
		return s.String()
	}
	require.Contains(t, seen(ring.SlotBackingOff, "exited with code 1; next try 15:19:04"), "    hint: slot 1 exited with code 1; next try 15:19:04; gitring crashes notes/web --logs\n")
	require.NotContains(t, seen(ring.SlotCrashed, "exited with code 1"), "next try")
}

// A commit that an app keeps back by being refused is what the head of its source shows, with what
// holds it up: the one before may be the broken one that it takes back.
func TestTheHeadIsTheCommitThatIsFollowed(t *testing.T) {
	src := ring.SourceStatus{
		Name: "prod", Branch: "main", Sync: ring.SyncDegraded, Commit: "b2c3d4e5", Subject: "Break it", Signer: "bob@example.org", Trusted: "c3d4e5f6",
		Apps: []ring.AppStatus{{Name: "blog", Commit: "b2c3d4e5", Refusal: &ring.Refusal{Code: ring.UnknownKey, Says: "no"}}},
	}
	head := func() string {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{src}}, View{})
		return s.String()
	}
	require.Contains(t, head(), "main b2c3d4e  Break it\n  signed by bob@example.org, never reached\n  trusted up to c3d4e5f\n")
	src.Followed = &ring.Followed{Commit: "c3d4e5f6", Subject: "Take it back", Signer: "alice@example.org", App: "blog"}
	seen := head()
	require.Contains(t, seen, "main c3d4e5f  Take it back\n  signed by alice@example.org, never reached\n  held up by app blog, which is refused; all apps are at b2c3d4e or later\n")
	require.NotContains(t, seen, "Break it")
	require.NotContains(t, seen, "trusted up to")
}

// Lesson L28: short ids, null times and null lists are shown, not fatal.
func TestAnEmptyStatusIsShown(t *testing.T) {
	for _, wide := range []bool{false, true} {
		s := screen.New(false, 0)
		Status(s, &ring.Status{
			Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Services: []ring.ServiceStatus{
				{Rollout: &ring.RolloutStatus{}, Conditions: []ring.Condition{{}}, Instances: []ring.InstanceStatus{{}}},
			}}}}},
			Overrides: []ring.Override{{}},
		}, View{Wide: wide})
		require.Contains(t, s.String(), "SERVICE")
	}
	var st ring.Status
	require.NoError(t, json.Unmarshal([]byte(`{"sources":null,"overrides":null}`), &st))
	s := screen.New(false, 0)
	Status(s, &st, View{Wide: true, Now: time.Now()})
	require.Contains(t, s.String(), "no sources")
	c := &ring.Changes{Refusals: []*ring.Refusal{{}}}
	Changes(s, c, time.Now())
	require.Equal(t, "-", PlaceOf(ring.Event{}))
}

// Lesson L27: every word a daemon may say has its place on the screen.
func TestEveryStateIsShownAsItIsWritten(t *testing.T) {
	for _, x := range []ring.Sync{ring.SyncUnknown, ring.SyncRefused, ring.SyncHeld, ring.SyncStaging, ring.SyncApplying, ring.SyncDegraded, ring.SyncSynced, "Novel"} {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Sync: x}}}, View{})
		require.Contains(t, s.String(), "prod  "+string(x)+"\n")
	}
	for _, p := range []ring.Phase{ring.PhasePending, ring.PhaseProgressing, ring.PhaseReady, ring.PhaseDegraded, ring.PhaseFailed, ring.PhaseHeld, ring.PhaseRemoving, ring.PhaseCompleted, "Novel"} {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "a", Services: []ring.ServiceStatus{{Name: "s", Phase: p}}}}}}}, View{})
		require.Regexp(t, `a/s +`+string(p)+`\n`, s.String())
	}
	for _, c := range []ring.Class{ring.ChangeNone, ring.ChangeInPlace, ring.ChangeCreate, ring.ChangeRoll, ring.ChangeRecreate, ring.ChangeRemove} {
		s := screen.New(false, 0)
		Changes(s, &ring.Changes{Apps: []ring.AppChanges{{App: "a", Services: []ring.ServiceChange{{Service: "s", Class: c}}}}}, time.Now())
		require.Regexp(t, `a/s +`+string(c)+` `, s.String())
		require.NotContains(t, s.String()[strings.Index(s.String(), "SERVICE"):], "nothing to do, 0")
	}
}

func TestAFrontGoesWithItsService(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	app := ring.AppStatus{Name: "shop", Health: ring.Healthy, Services: []ring.ServiceStatus{
		{Name: "blog-front", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1},
		{Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 2, Ready: 2, Front: &ring.FrontStatus{Phase: ring.FrontServes, Queued: 3, QueuedSince: now.Add(-4 * time.Second)}},
		{Name: "web-front", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Ports: []string{"8080:80/tcp"}},
	}}
	st := ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncSynced, Apps: []ring.AppStatus{app}}}}
	seen := func(v View) string {
		s := screen.New(false, 0)
		v.Now = now
		Status(s, &st, v)
		return s.String()
	}
	plain := seen(View{})
	require.NotContains(t, plain, "shop/web-front")
	require.Contains(t, plain, "shop/blog-front", "of that name, and no front")
	require.Regexp(t, `shop/web +Ready +2/2.*8080`, plain, "its ports are the front's")
	require.Contains(t, plain, "shop/web 3 requests waiting for 4s")
	require.Contains(t, plain, "2 ready")
	require.Contains(t, seen(View{Wide: true}), "shop/web-front")

	front := &st.Sources[0].Apps[0].Services[2]
	front.Phase, front.Ready, front.Reason = ring.PhaseProgressing, 0, "0/1 ready; slot 1 its HEALTHCHECK has not passed yet"
	require.Regexp(t, `shop/web-front +Progressing +0/1 .*has not passed yet`, seen(View{}), "it is what is waited for")
	st.Sources[0].Apps[0].Services[1].Phase = ring.PhaseProgressing
	require.NotContains(t, seen(View{}), "shop/web-front", "its service is on its way, too")
	front.Phase = ring.PhaseDegraded
	require.Contains(t, seen(View{}), "shop/web-front", "it needs a person")
}

// A first deploy has no phase but Progressing until its deadline, also where its check
// fails or it crashes again and again: that is a problem to show.
func TestProblemsHaveWhatFailsWhileItStarts(t *testing.T) {
	seen := func(in ring.InstanceStatus) string {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncApplying, Apps: []ring.AppStatus{{
			Name: "shop", Health: ring.Progressing, Services: []ring.ServiceStatus{{
				Name: "web", Kind: ring.Worker, Phase: ring.PhaseProgressing, Wanted: 1, Reason: "0/1 ready; slot 1 readiness check up: it said no",
				Rollout: &ring.RolloutStatus{Phase: ring.RolloutProgressing}, Instances: []ring.InstanceStatus{in},
			}},
		}}}}}, View{Problems: true})
		return s.String()
	}
	for _, in := range []ring.InstanceStatus{{State: ring.SlotStarting, Failing: true}, {State: ring.SlotCrashed}, {State: ring.SlotBackingOff}} {
		require.Regexp(t, `shop/web +Progressing +0/1 .*slot 1 readiness check up: it said no`, seen(in))
	}
	require.NotContains(t, seen(ring.InstanceStatus{State: ring.SlotStarting}), "shop/web", "it may yet be well")
}

func TestAStatusSaysOfATagThatItMovesAndWhatItWaitsFor(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	shown := func(tag ring.TagStatus) string {
		s := screen.New(false, 0)
		service := ring.ServiceStatus{Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Tag: &tag}
		Status(s, &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "web", Services: []ring.ServiceStatus{service}}}}}}, View{Now: now})
		return s.String()
	}
	require.Contains(t, shown(ring.TagStatus{Image: "nginx:1", Asked: now.Add(-3 * time.Hour)}), "web/web its tag is followed, last asked 3h ago\n")
	waits := shown(ring.TagStatus{Asked: now.Add(-3 * time.Hour), Digest: "sha256:5e6f7a8b9c0d", Seen: now.Add(-5 * time.Hour), Waits: "is young", Until: now})
	require.Contains(t, waits, "asked 3h ago: means ")
	require.Contains(t, waits, "5e6f7a8b")
	require.Contains(t, waits, "for 5h: is young, from 2026-11-27 12:00 UTC")
	require.Contains(t, shown(ring.TagStatus{Asked: now, Error: "registry: no answer"}), "registry: no answer")
}

// An app of which nothing is in force is told as that: its source's line says what it waits for.
func TestAnAppThatIsNotInForceYetIsToldAsThat(t *testing.T) {
	says := func(a ring.AppStatus) string {
		s := screen.New(false, 0)
		Status(s, &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncHeld, Apps: []ring.AppStatus{a}}}}, View{})
		return s.String()
	}
	require.Contains(t, says(ring.AppStatus{Name: "clock", Health: ring.Unknown}), "  clock: nothing of it is in force yet\n")
	require.Contains(t, says(ring.AppStatus{Name: "clock", Health: ring.Unknown, Reason: "its engine is away"}), "  clock Unknown: its engine is away\n")
}

// What is new and answers 503 is updated, and not ready: both are said, and the bar is not full.
func TestAnUpdateThatIsNotReadyIsNoFullBar(t *testing.T) {
	sv := ring.ServiceStatus{
		Name: "web", Kind: ring.Worker, Phase: ring.PhaseProgressing, Wanted: 1, Updated: 1, Reason: "0/1 ready; slot 1 not ready: readiness check up: 503",
		Rollout: &ring.RolloutStatus{Phase: ring.RolloutProgressing},
	}
	require.Equal(t, "[----------] 1 of 1 updated, none ready; slot 1 not ready: readiness check up: 503", reasonOf(&sv, true))
	sv.Wanted, sv.Updated, sv.Ready = 4, 4, 2
	require.Regexp(t, `^\[#####-----\] 4 of 4 updated, 2 ready; `, reasonOf(&sv, true))
	sv.Updated, sv.Ready = 1, 3
	require.Regexp(t, `^\[##--------\] 1 of 4 updated; `, reasonOf(&sv, true), "those of before are ready")
	sv.Version, sv.Wanted, sv.Updated, sv.Ready = "2", 2, 1, 1
	sv.Instances = []ring.InstanceStatus{{Version: "1", State: ring.SlotReady}, {Version: "2", State: ring.SlotStarting, Failing: true}}
	require.Regexp(t, `^\[----------\] 1 of 2 updated, none of them ready; `, reasonOf(&sv, true), "what is ready is the one of before")
	sv.Instances[1] = ring.InstanceStatus{Version: "2", State: ring.SlotReady}
	require.Regexp(t, `^\[#####-----\] 1 of 2 updated; `, reasonOf(&sv, true))
}

// A log of a CI has no bar: the line of a service that moves counts what is updated.
func TestALineOfProgressCountsWhatIsUpdated(t *testing.T) {
	var out strings.Builder
	sv := ring.ServiceStatus{Name: "web", Kind: ring.Worker, Phase: ring.PhaseProgressing, Wanted: 4, Updated: 1, Ready: 3, Reason: "3/4 ready", Rollout: &ring.RolloutStatus{Phase: ring.RolloutProgressing}}
	src := ring.SourceStatus{Name: "prod", Sync: ring.SyncApplying, Apps: []ring.AppStatus{{Name: "shop", Services: []ring.ServiceStatus{sv}}}}
	require.NoError(t, SayProgress(screen.NewLive(&out, time.Now), src, nil, false))
	require.Regexp(t, `shop/web +Progressing +1 of 4 updated +3/4 ready`, out.String())
}

// What does not serve stands before what does, and is a problem, even on its first deploy.
func TestWhatIsDownStandsFirst(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	app := func(name string, sv ring.ServiceStatus) ring.AppStatus {
		sv.Name, sv.Kind, sv.Wanted = name, ring.Worker, 1
		return ring.AppStatus{Name: name, Services: []ring.ServiceStatus{sv}}
	}
	st := &ring.Status{At: now, Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncApplying, Apps: []ring.AppStatus{
		app("api", ring.ServiceStatus{Phase: ring.PhaseHeld, Ready: 1}),
		app("web", ring.ServiceStatus{Phase: ring.PhaseReady, Ready: 1, Rollout: &ring.RolloutStatus{Phase: ring.RolloutIsRestored}}),
		app("wiki", ring.ServiceStatus{Phase: ring.PhaseProgressing, Reason: "0/1 ready; slot 1 not ready: 503", Conditions: []ring.Condition{
			{Type: ring.ConditionAvailable, Status: ring.ConditionFalse, Since: now.Add(-time.Minute)},
		}}),
	}}}}
	says := func(v View) string {
		s := screen.New(false, 0)
		v.Now = now
		Status(s, st, v)
		return s.String()
	}
	require.Regexp(t, `(?s)wiki/wiki.*api/api.*web/web`, says(View{}))
	require.Regexp(t, `wiki/wiki +Progressing`, says(View{Problems: true}))
	st.Sources[0].Apps = st.Sources[0].Apps[2:]
	require.NotContains(t, says(View{Problems: true}), "nothing is wrong")
	shown := Fitting(st, 40, func(x *Shown) string { return says(View{Shown: x}) })
	require.Contains(t, shown, "wiki/wiki")
}

// inspect has the reason of a rollout in three places: it is read once.
func TestInspectSaysASentenceOnce(t *testing.T) {
	const why = "slot 1 exited with code 7"
	e := &ring.Explained{
		App: "shop", Service: "web", Phase: ring.PhaseDegraded, Says: "1/2 ready",
		Rollout:    &ring.RolloutStatus{Phase: ring.RolloutIsRestored, Version: "1:a1b2c3d4", Reason: why},
		Conditions: []ring.Condition{{Type: ring.ConditionQuarantined, Status: ring.ConditionTrue, Reason: why}, {Type: ring.ConditionAvailable, Status: ring.ConditionFalse, Reason: "1/2 ready"}},
		Crash:      &ring.Crash{Slot: 1, Reason: why},
	}
	s := screen.New(false, 0)
	Explained(s, e, time.Time{})
	require.Equal(t, 1, strings.Count(s.String(), why), s.String())
	require.Equal(t, 1, strings.Count(s.String(), "1/2 ready"), s.String())
	require.Contains(t, s.String(), "condition: Quarantined")

	e.Conditions[0].Reason = "another sentence"
	s = screen.New(false, 0)
	Explained(s, e, time.Time{})
	require.Contains(t, s.String(), "another sentence")
}

// What an app that is staged waits for is told by itself, and not where another line has it.
func TestAnAppThatIsStagedIsToldOnce(t *testing.T) {
	const why = "pulling web:1 (2MB of 8MB)"
	said := func(change func(*ring.SourceStatus, *ring.AppStatus)) string {
		a := ring.AppStatus{Name: "web", Reason: why}
		src := ring.SourceStatus{Name: "prod", Sync: ring.SyncStaging, Next: &ring.Next{Reason: "app db: pulling db:1"}}
		change(&src, &a)
		s := screen.New(false, 0)
		appProgress(s, src, a)
		return s.String()
	}
	require.Equal(t, "  web  "+why+"\n", said(func(*ring.SourceStatus, *ring.AppStatus) {}))
	for name, change := range map[string]func(*ring.SourceStatus, *ring.AppStatus){
		"the line of the source has it": func(src *ring.SourceStatus, _ *ring.AppStatus) { src.Next.Reason = "app web: " + why },
		"the row of its service has it": func(_ *ring.SourceStatus, a *ring.AppStatus) {
			a.Services = []ring.ServiceStatus{{Name: "web", Reason: why}}
		},
		"it is refused, and that is told": func(_ *ring.SourceStatus, a *ring.AppStatus) { a.Refusal = &ring.Refusal{Says: "no"} },
		"nothing is staged any more":      func(src *ring.SourceStatus, _ *ring.AppStatus) { src.Sync = ring.SyncApplying },
		"there is nothing to say of it":   func(_ *ring.SourceStatus, a *ring.AppStatus) { a.Reason = "" },
	} {
		require.Empty(t, said(change), name)
	}
}
