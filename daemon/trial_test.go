package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
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
}

func TestPartsThatActWaitForTheEndOfATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: "0.0.9", Probation: time.Minute}))
		d := &Daemon{cfg: &config.Config{State: state}, log: slog.New(slog.DiscardHandler), trial: newTrial(state)}
		d.loop = reconcile.New(reconcile.Options{}, nil)
		acted := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = d.trial.after(func(context.Context) error { close(acted); return nil })(ctx) }()
		ended := make(chan error, 1)
		go func() { ended <- d.watchTrial(ctx) }()
		time.Sleep(time.Hour)
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
	require.Nil(t, newTrial(state))
	require.Nil(t, newTrial(state).is(), "the loop asks it all the same")
	require.NoError(t, os.WriteFile(filepath.Join(state, "trial.json"), []byte("{"), 0o600))
	require.NotNil(t, newTrial(state))
	got, on := upgrade.ReadTrial(state)
	require.True(t, on)
	require.Equal(t, upgrade.Probation, got.Probation)
	require.NoError(t, upgrade.EndTrial(state))
	require.NoError(t, upgrade.EndTrial(state), "it may be repeated")
	require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: ring.Release, To: "9.9.9"}))
	require.Nil(t, newTrial(state), "the release of before is not on trial where it is back")
	require.NoError(t, upgrade.BeginTrial(state, upgrade.Trial{From: ring.Release, To: ring.Release}))
	require.NotNil(t, newTrial(state), "two builds of one name cannot be told apart")
	require.NoError(t, upgrade.EndTrial(state))
	require.Nil(t, newTrial(state))
}
