package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/upgrade"
)

func TestWhenADaemonThatNobodyJudgesMayBelieveItself(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	told := upgrade.Trial{From: "0.0.9", Probation: time.Minute}
	looked := func(change func(*ring.Status)) *ring.Status {
		st := &ring.Status{Trial: &ring.Trial{Looks: 3}}
		change(st)
		return st
	}
	well := looked(func(*ring.Status) {})
	for name, bad := range map[string]*ring.Status{
		"no whole look yet":              looked(func(s *ring.Status) { s.Trial.Looks = 0 }),
		"the engine is away":             looked(func(s *ring.Status) { s.Engine = "away" }),
		"the store cannot be written":    looked(func(s *ring.Status) { s.Store = "full" }),
		"what runs would not run on":     looked(func(s *ring.Status) { s.Trial.Would = []ring.TrialStep{{Does: "stop", Ends: true}} }),
		"the loop has not passed at all": {},
	} {
		tr := &trial{}
		require.False(t, tr.passed(bad, told, at), name)
		require.False(t, tr.passed(bad, told, at.Add(time.Hour)), name)
		require.False(t, tr.passed(well, told, at.Add(time.Hour)), "%s: the time counts from when it is well", name)
		require.True(t, tr.passed(well, told, at.Add(2*time.Hour)), name)
	}

	tr := &trial{}
	require.False(t, tr.passed(well, told, at))
	require.False(t, tr.passed(well, told, at.Add(time.Minute)), "the upgrade has the first word")
	require.True(t, tr.passed(well, told, at.Add(90*time.Second)))
	told.Back = true
	require.False(t, tr.passed(well, told, at.Add(time.Hour)), "the release before is being put back")
	start := looked(func(s *ring.Status) { s.Trial.Would = []ring.TrialStep{{Does: "start"}} })
	tr = &trial{}
	told.Back = false
	tr.passed(start, told, at)
	require.True(t, tr.passed(start, told, at.Add(time.Hour)), "what crashed is started by every release")

	restart := looked(func(s *ring.Status) {
		s.Trial.Would = []ring.TrialStep{{Does: "restart", On: "web/web", Slot: 1, Ends: true}}
	})
	tr = &trial{}
	told.Known = []ring.TrialStep{{Does: "restart", On: "web/web", Slot: 1, Ends: true}}
	tr.passed(restart, told, at)
	require.True(t, tr.passed(restart, told, at.Add(time.Hour)), "the rehearsals told of it")
	told.Known = []ring.TrialStep{{Does: "roll", On: "web/web", Ends: true}}
	require.False(t, tr.passed(restart, told, at.Add(2*time.Hour)), "they told of something else")
	told.AllowRoll = true
	tr.passed(restart, told, at.Add(2*time.Hour))
	require.True(t, tr.passed(restart, told, at.Add(3*time.Hour)), "and a person said yes to what becomes of web/web")
}

// The upgrade is gone, and nothing will ever judge: a daemon that did nothing for ever would
// be the worse fault.
func TestATrialThatNobodyEndsIsOverInItsTimeWhateverIsWrong(t *testing.T) {
	for name, note := range map[string]upgrade.Trial{
		"it never does well":      {From: "0.0.9", To: ring.Release, Probation: time.Minute, StartWithin: time.Minute},
		"the way back broke off":  {From: "0.0.9", To: ring.Release, Probation: time.Minute, StartWithin: time.Minute, Back: true},
		"of an earlier gitring's": {From: "0.0.9", To: ring.Release, Probation: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := t.TempDir()
				require.NoError(t, upgrade.BeginTrial(state, note))
				var said strings.Builder
				log := slog.New(slog.NewTextHandler(&said, nil))
				d := &Daemon{cfg: &config.Config{State: state}, log: log, trial: newTrial(state, log)}
				d.loop = reconcile.New(reconcile.Options{}, nil)
				begun := time.Now()
				require.ErrorContains(t, d.trial.refused(), "on trial")
				require.NoError(t, d.watchTrial(t.Context()))
				took := time.Since(begun)
				require.GreaterOrEqual(t, took, 2*time.Minute, "the upgrade has the first word")
				require.LessOrEqual(t, took, 5*time.Minute)
				require.Nil(t, d.trial.is())
				require.NoError(t, d.trial.refused())
				require.Contains(t, said.String(), "level=ERROR")
				require.Contains(t, said.String(), "gitring upgrade --resume")
				_, on := upgrade.ReadTrial(state)
				require.False(t, on)
			})
		})
	}
}

// Whoever put a third release in place by hand is not held by what an upgrade to another one
// left, and neither is that other one, later.
func TestANoteOfATrialOfOtherReleasesBindsNobody(t *testing.T) {
	state := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	for _, back := range []bool{false, true} {
		require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: "9.9.8", To: "9.9.9", Probation: time.Minute, Back: back}))
		require.Nil(t, newTrial(state, log))
		_, on := upgrade.ReadTrial(state)
		require.False(t, on, "it is removed")
		require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: ring.Release, To: "9.9.9", Probation: time.Minute, Back: back}))
		require.Nil(t, newTrial(state, log))
		_, on = upgrade.ReadTrial(state)
		require.True(t, on, "it is the upgrade's, which may be under way")
		require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: "9.9.8", To: ring.Release, Probation: time.Minute, Back: back}))
		require.NotNil(t, newTrial(state, log))
	}
}

func TestPartsThatActWaitForTheEndOfATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: "0.0.9", Probation: time.Minute}))
		d := &Daemon{cfg: &config.Config{State: state}, log: slog.New(slog.DiscardHandler), trial: newTrial(state, slog.New(slog.DiscardHandler))}
		d.loop = reconcile.New(reconcile.Options{}, nil)
		acted := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = d.trial.after(func(context.Context) error { close(acted); return nil })(ctx) }()
		ended := make(chan error, 1)
		go func() { ended <- d.watchTrial(ctx) }()
		time.Sleep(4 * time.Minute)
		select {
		case <-acted:
			t.Fatal("it acted on trial")
		default:
		}
		require.NotNil(t, d.trial.is())
		asked := false
		calls := d.onTrial(api.Calls{Poke: func(context.Context, string) error { asked = true; return nil }})
		err := calls.Poke(ctx, "prod")
		require.ErrorIs(t, err, api.ErrConflict)
		require.False(t, asked)

		require.NoError(t, upgrade.EndTrial(state))
		require.NoError(t, <-ended)
		<-acted
		require.Nil(t, d.trial.is())
		require.NoError(t, calls.Poke(ctx, "prod"), "the same calls serve after it")
		require.True(t, asked)
	})
}

func TestANoteOfATrialThatCannotBeReadIsATrial(t *testing.T) {
	state := t.TempDir()
	require.Nil(t, newTrial(state, slog.New(slog.DiscardHandler)))
	require.Nil(t, newTrial(state, slog.New(slog.DiscardHandler)).is(), "the loop asks it all the same")
	require.NoError(t, os.WriteFile(filepath.Join(state, "trial.json"), []byte("{"), 0o600))
	require.NotNil(t, newTrial(state, slog.New(slog.DiscardHandler)))
	got, on := upgrade.ReadTrial(state)
	require.True(t, on)
	require.Equal(t, upgrade.Probation, got.Probation)
	require.NoError(t, upgrade.EndTrial(state))
	require.NoError(t, upgrade.EndTrial(state), "it may be repeated")
	require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: ring.Release, To: "9.9.9"}))
	require.Nil(t, newTrial(state, slog.New(slog.DiscardHandler)), "the release of before is not on trial where it is back")
	require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: ring.Release, To: ring.Release}))
	require.NotNil(t, newTrial(state, slog.New(slog.DiscardHandler)), "two builds of one name cannot be told apart")
	require.NoError(t, upgrade.EndTrial(state))
	require.Nil(t, newTrial(state, slog.New(slog.DiscardHandler)))
}

func TestDoctorIsToldSinceWhenATrialStands(t *testing.T) {
	state := t.TempDir()
	require.False(t, probeTrial(state).On)
	require.Empty(t, probeTrial(state).Err)
	require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: "0.0.9", To: "9.9.9", Probation: time.Minute, StartWithin: time.Minute}))
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(state, "trial.json"), at, at))
	got := probeTrial(state)
	require.True(t, got.On)
	require.Equal(t, "9.9.9", got.To)
	require.WithinRange(t, got.Until, at.Add(2*time.Minute), at.Add(5*time.Minute))
}
