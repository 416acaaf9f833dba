package notify

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What comes and goes all day is told when it is news, once a day, and when it lasts.
func TestAnAppThatFlapsForADayIsToldCalmly(t *testing.T) {
	h := newHearing(t, Choice{})
	for range 24 * 60 { // down for 30 s, up for 30 s
		h.hears("app.crash_looping web/web c1")
		h.pass(30 * time.Second)
		h.hears("app.recovered web/web c1")
		h.pass(30 * time.Second)
	}
	require.Equal(t, []string{
		"app.crash_looping web/web", "app.recovered web/web", "app.crash_looping web/web", "app.recovered web/web", "app.crash_looping web/web",
	}, h.said)
	h.said = nil
	h.pass(2 * time.Minute)
	h.hears("app.crash_looping web/web c1")
	h.hears("app.recovered web/web c1")
	h.saidSince("app.crash_looping web/web (1437 more)")
	h.pass(59 * time.Minute)
	h.saidSince()
	h.pass(2 * time.Minute)
	h.saidSince("app.recovered web/web")
	h.hears("app.crash_looping web/web c1") // as if nothing had been
	h.hears("app.recovered web/web c1")
	h.pass(time.Hour)
	h.saidSince("app.crash_looping web/web", "app.recovered web/web")
}

// A drift that is healed each time is told as calmly, and another commit is news.
func TestADriftThatIsHealedAllDayIsToldCalmly(t *testing.T) {
	h := newHearing(t, Choice{})
	for range 2 * 60 {
		h.hears("drift.seen web/web c1", "drift.healed web/web c1")
		h.pass(30 * time.Second)
	}
	h.saidSince("drift.healed web/web", "drift.healed web/web")
	for i := range 4 { // somebody pushes, and each push fails
		h.hears(fmt.Sprintf("rollout.failed web/web bad%d", i))
		h.pass(2 * time.Minute)
		h.hears(fmt.Sprintf("rollout.recovered web/web good%d", i))
		h.pass(2 * time.Minute)
	}
	n := 0
	for _, s := range h.said {
		if s == "rollout.failed web/web" {
			n++
		}
	}
	require.Equal(t, 4, n)
}

// Two overrides of one service end at two times.
func TestEachOverrideThatEndsIsTold(t *testing.T) {
	h := newHearing(t, Choice{})
	h.hears("override.expiring web/web - hold: ends at 12:10", "override.expiring web/web - scale to 3: ends at 12:20", "override.expiring web/web - hold: ends at 12:10")
	h.saidSince("override.expiring web/web", "override.expiring web/web")
}

// The journal's clock is the process's own, and the wall's may be set meanwhile: what
// is journalled now is news all the same.
func TestAClockThatIsSetMutesNobody(t *testing.T) {
	for _, off := range []time.Duration{-72 * time.Hour, -24 * time.Hour, 24 * time.Hour} {
		for _, chat := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				defer h.ends()
				team := &told{}
				h.begins(nil, map[string]speaker{"team": team}, chat)
				e := looping("web")
				e.At = e.At.Add(off)
				h.happens(e)
				e.Kind, e.At = ring.RolloutFailed, e.At.Add(time.Second)
				h.happens(e)
				pass(2 * time.Minute)
				require.Len(t, team.taken(), 2, "%v, chat %v", off, chat)
				again := looping("web")
				again.At = again.At.Add(off)
				h.happens(again)
				pass(2 * time.Minute)
				require.Len(t, team.taken(), map[bool]int{true: 0, false: 1}[chat], "%v, chat %v", off, chat)
			})
		}
	}
}

// A clock that is set back while a receiver is left alone does not leave it alone for
// as long as that.
func TestAClockThatIsSetBackHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		team := &told{}
		l := &listener{Receivers: &Receivers{ledger: h.store}, name: "team", speaker: team, said: map[string]bool{}}
		ctx := context.Background()
		d, err := delivery("team", noteOf(looping("web")), time.Now())
		require.NoError(t, err)
		require.NoError(t, h.store.Advance(ctx, ring.Receiver{Name: "team"}, []ring.Delivery{d}))
		require.NoError(t, h.store.Postpone(ctx, d.ID, "it answered 500", time.Now().Add(24*time.Hour+time.Minute)))
		l.since, l.hold = time.Now().Add(24*time.Hour), time.Now().Add(25*time.Hour)
		_, err = l.tell(ctx)
		require.NoError(t, err)
		require.Len(t, team.taken(), 1)
	})
	m := memory{Held: []Note{{Kind: ring.DriftSeen, Until: noon.Add(24 * time.Hour)}}}
	_, wake := m.release(noon)
	require.False(t, wake.After(noon.Add(calm)))
}

// A journal that began anew is shorter than what a receiver remembers.
func TestACursorBeyondTheJournalMutesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		require.NoError(t, h.store.Advance(context.Background(), ring.Receiver{Name: "team", Cursor: 5000, State: []byte("{}")}, nil))
		team := &told{}
		h.begins(nil, map[string]speaker{"team": team}, true)
		h.happens(looping("web"))
		pass(2 * time.Second)
		require.Equal(t, []string{"1 app.crash_looping web/web"}, team.taken())
	})
}

// A chat that was away for long hears few messages, and one of all the rest.
func TestALongOutageEndsInFewMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		team := &told{}
		h.begins(nil, map[string]speaker{"team": team}, true)
		team.answers(reply{away: true, says: "it answered 503"})
		for i := range 100 {
			h.happens(looping(fmt.Sprintf("app%d", i)))
			pass(2 * time.Minute)
		}
		team.answers(reply{taken: true})
		pass(2 * time.Hour)
		took := team.taken()
		require.Len(t, took, alone+1, "%v", took)
		require.Contains(t, took[alone], fmt.Sprintf(" %d at once", 100-alone))
		require.Empty(t, h.all.Trouble())
	})
}

// Many that are refused one by one are in nobody's way, and a slow receiver does not
// keep the journal from being read.
func TestManyThatAreRefusedHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		hook := &told{}
		hook.answers(reply{says: "it answered 400"})
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		var all []ring.Event
		for i := range saidAtOnce + 1 {
			all = append(all, looping(fmt.Sprintf("app%d", i)))
		}
		h.happens(all...)
		pass(3 * time.Hour) // each is left alone for most of an hour
		hook.answers(reply{taken: true})
		h.happens(looping("new"))
		pass(2 * time.Second)
		require.Contains(t, hook.taken(), fmt.Sprintf("%d app.crash_looping new/web", saidAtOnce+2))
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		hook := &told{}
		hook.answer = func() reply { time.Sleep(14 * time.Second); return reply{taken: true} }
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		var all []ring.Event
		for i := range saidAtOnce + 10 {
			all = append(all, looping(fmt.Sprintf("app%d", i)))
		}
		h.happens(all...)
		pass(time.Minute)
		h.happens(looping("new"))
		pass(saidAtOnce * 14 * time.Second)
		r, _, err := h.store.Receiver(context.Background(), "hook")
		require.NoError(t, err)
		require.EqualValues(t, saidAtOnce+11, r.Cursor)
		hook.answer = nil
	})
}

// One that asks to be asked again at once, for ever, is not.
func TestAReceiverCannotMakeUsAskForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		hook := &told{}
		hook.answers(reply{away: true, wait: time.Second, says: "it answered 429"})
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		h.happens(looping("web"))
		pass(24 * time.Hour)
		require.Less(t, hook.tries, 40)
	})
}
