package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func TestColoursSurroundWhatWasCleaned(t *testing.T) {
	s := newScreen(true, 0)
	s.line(2, " ", painted("re\x1bd", red), painted("", green), w("plain"))
	require.Equal(t, "  \x1b[31mred\x1b[0m plain\n", s.String())
	s = newScreen(false, 0)
	s.line(2, " ", painted("red", red), w("plain"))
	require.Equal(t, "  red plain\n", s.String())
}

func TestARowEndsAtTheEdgeOfATerminalOnly(t *testing.T) {
	rows := [][]word{{w("web/web"), painted("Ready", green), w(strings.Repeat("long ", 30))}}
	for _, color := range []bool{false, true} {
		for _, width := range []int{12, 20, 40, 80, 200} {
			s := newScreen(color, width)
			s.table(2, []string{"SERVICE", "PHASE", "REASON"}, rows)
			for _, line := range strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n") {
				shown := len([]rune(paints.ReplaceAllString(line, "")))
				require.LessOrEqual(t, shown, width, line)
			}
			require.Equal(t, 30, strings.Count(s.String(), "long"), "%d columns: %s", width, s)
		}
	}
	whole := newScreen(false, 0)
	whole.table(2, []string{"SERVICE", "PHASE", "REASON"}, rows)
	require.Contains(t, whole.String(), strings.TrimSpace(strings.Repeat("long ", 30)))
}

func TestAWhyThatHasNoRoomGoesBelowItsRow(t *testing.T) {
	head := []string{"SERVICE", "IS", "REASON"}
	rows := [][]word{{w("web/web"), w("Ready"), w("2/2 ready")}, {w("db/db"), w("Failed"), w("exit 1: no room left on device")}}
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
			s := newScreen(false, tt.width)
			s.table(2, head, rows)
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
	s := newScreen(false, 0)
	showStatus(s, st, view{})
	require.Equal(t, 1, strings.Count(s.String(), says), s.String())
	require.Contains(t, s.String(), "web/web not ImageResolved")
}

// Lesson L28: short ids, null times and null lists are shown, not fatal.
func TestAnEmptyStatusIsShown(t *testing.T) {
	for _, wide := range []bool{false, true} {
		s := newScreen(false, 0)
		showStatus(s, &ring.Status{
			Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Services: []ring.ServiceStatus{
				{Rollout: &ring.RolloutStatus{}, Conditions: []ring.Condition{{}}, Instances: []ring.InstanceStatus{{}}},
			}}}}},
			Overrides: []ring.Override{{}},
		}, view{wide: wide})
		require.Contains(t, s.String(), "SERVICE")
	}
	var st ring.Status
	require.NoError(t, json.Unmarshal([]byte(`{"sources":null,"overrides":null}`), &st))
	s := newScreen(false, 0)
	showStatus(s, &st, view{wide: true, now: time.Now()})
	require.Contains(t, s.String(), "no sources")
	c := &ring.Changes{Refusals: []*ring.Refusal{{}}}
	showChanges(s, c, time.Now())
	require.Equal(t, "-", placeOf(ring.Event{}))
}

// Lesson L27: every word a daemon may say has its place on the screen.
func TestEveryStateIsShownAsItIsWritten(t *testing.T) {
	for _, x := range []ring.Sync{ring.SyncUnknown, ring.SyncRefused, ring.SyncHeld, ring.SyncStaging, ring.SyncApplying, ring.SyncDegraded, ring.SyncSynced, "Novel"} {
		s := newScreen(false, 0)
		showStatus(s, &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Sync: x}}}, view{})
		require.Contains(t, s.String(), "prod  "+string(x)+"\n")
	}
	for _, p := range []ring.Phase{ring.PhasePending, ring.PhaseProgressing, ring.PhaseReady, ring.PhaseDegraded, ring.PhaseFailed, ring.PhaseHeld, ring.PhaseRemoving, ring.PhaseCompleted, "Novel"} {
		s := newScreen(false, 0)
		showStatus(s, &ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{Name: "a", Services: []ring.ServiceStatus{{Name: "s", Phase: p}}}}}}}, view{})
		require.Regexp(t, `a/s +`+string(p)+`\n`, s.String())
	}
	for _, c := range []ring.Class{ring.ChangeNone, ring.ChangeInPlace, ring.ChangeCreate, ring.ChangeRoll, ring.ChangeRecreate, ring.ChangeRemove} {
		s := newScreen(false, 0)
		showChanges(s, &ring.Changes{Apps: []ring.AppChanges{{App: "a", Services: []ring.ServiceChange{{Service: "s", Class: c}}}}}, time.Now())
		require.Regexp(t, `a/s +`+string(c)+` `, s.String())
		require.NotContains(t, s.String()[strings.Index(s.String(), "SERVICE"):], "nothing to do, 0")
	}
}

func TestATerminalIsRedrawnInPlace(t *testing.T) {
	var b bytes.Buffer
	l := &live{w: &b, terminal: true, size: func() (int, int) { return 5, 4 }}
	require.NoError(t, l.redraw("one\ntwo\n"))
	require.NoError(t, l.redraw("\x1b[31mthree and\x1b[0m\n"))
	require.NoError(t, l.redraw("1\n2\n3\n4\n5\n"))
	require.NoError(t, l.redraw("end\n"))
	shown := strings.ReplaceAll(b.String(), "\x1b[0m", "")
	require.Equal(t, "\r\x1b[Jone\ntwo\n"+
		"\x1b[2A\r\x1b[J\x1b[31mthree\n  \x1b[31mand\n"+
		"\x1b[2A\r\x1b[J1\n2\n… 3\n"+
		"\x1b[3A\r\x1b[Jend\n", shown)
}

func TestElsewhereALineIsSaidWhenItChanged(t *testing.T) {
	var b bytes.Buffer
	l := newLive(&b, time.Now)
	for _, x := range [][2]string{{"a", "1"}, {"b", "1"}, {"a", "1"}, {"a", "2"}, {"a", "1"}} {
		require.NoError(t, l.say(x[0], x[0]+x[1]))
	}
	require.Equal(t, "a1\nb1\na2\na1\n", b.String())
}

func TestAStatusIsTheSameWhileOnlyTimePasses(t *testing.T) {
	st := ring.Status{At: time.Unix(1, 0), Sources: []ring.SourceStatus{{Name: "prod", Checked: time.Unix(1, 0)}}}
	later := ring.Status{At: time.Unix(9, 0), Sources: []ring.SourceStatus{{Name: "prod", Checked: time.Unix(9, 0), Checking: true}}}
	require.Equal(t, faceOf(st), faceOf(later))
	require.True(t, later.Sources[0].Checking, "the status itself is left alone")
	later.Sources[0].Sync = ring.SyncApplying
	require.NotEqual(t, faceOf(st), faceOf(later))
}

func TestNarrowingLeavesTheStatusAlone(t *testing.T) {
	st := &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{
		{Name: "web", Services: []ring.ServiceStatus{{Name: "a"}, {Name: "b"}}}, {Name: "db"},
	}}, {Name: "lab"}}}
	before, err := json.Marshal(st)
	require.NoError(t, err)
	part, ok := api.Narrow(st, "web/b")
	require.True(t, ok)
	require.Len(t, part.Sources, 1)
	require.Equal(t, []ring.ServiceStatus{{Name: "b"}}, part.Sources[0].Apps[0].Services)
	for _, none := range []string{"lab", "web/c", "prod", "db/a", ""} {
		_, ok = api.Narrow(st, none)
		require.False(t, ok, none)
	}
	after, err := json.Marshal(st)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))
	require.True(t, reflect.DeepEqual(api.AppsOf(st), []string{"web", "db"}))
}
