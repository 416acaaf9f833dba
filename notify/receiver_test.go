package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// told is a receiver of the test: what it took, and what it answers.
type told struct {
	mu     sync.Mutex
	took   []string // "<line> <kind> <subject>"
	tries  int
	answer func() reply
}

func (s *told) service() string { return "test" }
func (s *told) check() error    { return nil }

func (s *told) say(ctx context.Context, n Note) reply {
	s.mu.Lock()
	s.tries++
	answer := s.answer
	s.mu.Unlock()
	a := reply{taken: true}
	if answer != nil {
		a = answer()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.taken {
		says := fmt.Sprintf("%d %s %s", n.Line, n.Kind, subjectOf(ring.Event{Source: n.Source, App: n.App, Service: n.Service}))
		if n.Total > 0 {
			says = fmt.Sprintf("%d %d at once", n.Line, n.Total)
		}
		s.took = append(s.took, says)
	}
	return a
}

func (s *told) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.took
	s.took = nil
	return out
}

func (s *told) answers(a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func() reply { return a }
}

// house is one daemon's way out, over a store on disk, in fake time.
type house struct {
	t     *testing.T
	dir   string
	store *store.Store
	all   *Receivers
	stop  func()
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), stop: func() {}}
	h.open()
	return h
}

func (h *house) open() {
	s, err := store.Open(context.Background(), h.dir)
	require.NoError(h.t, err)
	h.store = s
}

// begins starts the receivers; a ledger of nil is the store.
func (h *house) begins(ledger Ledger, by map[string]speaker, chat bool) {
	if ledger == nil {
		ledger = h.store
	}
	h.all = &Receivers{host: "edge-1", ledger: ledger, log: slog.New(slog.DiscardHandler)}
	for name, s := range by {
		r := Receiver{Name: name}
		if !chat {
			r.Hook = &Hook{}
		}
		h.all.add(r, s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.all.Run(ctx) }()
	others := h.stop
	h.stop = func() {
		cancel()
		require.NoError(h.t, <-done)
		h.stop = func() {}
		others()
	}
	synctest.Wait()
}

func (h *house) ends() {
	h.stop()
	require.NoError(h.t, h.store.Close())
}

func (h *house) happens(events ...ring.Event) {
	h.t.Helper()
	require.NoError(h.t, h.store.Record(context.Background(), nil, events))
}

func looping(app string) ring.Event {
	return ring.Event{At: time.Now(), Kind: ring.AppCrashLooping, Source: "prod", App: app, Service: "web", Commit: "c1", Reason: "exit 1"}
}

// pass lets the clock of the test go on; time.Sleep is fake here.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAnOutageOfAReceiverEndsWithOneOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		team := &told{}
		h.begins(nil, map[string]speaker{"team": team}, true)
		team.answers(reply{away: true, says: "it answered 503"})
		for i := range 6 {
			h.happens(looping(fmt.Sprintf("app%d", i)), looping(fmt.Sprintf("app%d", i)))
			pass(time.Hour)
		}
		require.Empty(t, team.taken())
		require.Less(t, team.tries, 30, "it was left alone")
		require.Equal(t, []ring.ReceiverStatus{{Name: "team", Service: "test", Waiting: 6, Reason: "it answered 503"}}, h.all.Trouble())
		team.answers(reply{taken: true})
		pass(time.Hour + time.Minute)
		require.Equal(t, []string{
			"1 app.crash_looping app0/web", "3 app.crash_looping app1/web", "5 app.crash_looping app2/web",
			"7 app.crash_looping app3/web", "9 app.crash_looping app4/web", "11 app.crash_looping app5/web",
		}, team.taken())
		require.Empty(t, h.all.Trouble())
		pass(24 * time.Hour)
		require.Empty(t, team.taken())
	})
}

func TestANewReceiverBeginsAtTheEndAndAStoppedDaemonSaysWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer func() { h.ends() }()
		h.happens(looping("before"))
		team := &told{}
		h.begins(nil, map[string]speaker{"team": team}, true)
		pass(time.Minute)
		require.Empty(t, team.taken())
		h.happens(looping("web"))
		pass(time.Minute)
		require.Equal(t, []string{"2 app.crash_looping web/web"}, team.taken())

		h.stop()
		h.happens(looping("old"))
		pass(23 * time.Hour)
		h.happens(looping("new"), ring.Event{At: time.Now(), Kind: ring.AppRecovered, App: "web", Service: "web", Commit: "c1"})
		pass(2 * time.Hour)
		require.NoError(t, h.store.Close())
		h.open()
		h.begins(nil, map[string]speaker{"team": team}, true)
		pass(time.Minute)
		require.Equal(t, []string{"4 app.crash_looping new/web", "5 app.recovered web/web"}, team.taken())
		for range 3 { // a restart tells nothing again
			h.stop()
			h.begins(nil, map[string]speaker{"team": team}, true)
			pass(time.Minute)
		}
		require.Empty(t, team.taken())
	})
}

// forgetful fails to note what was delivered.
type forgetful struct{ *store.Store }

func (forgetful) Delivered(context.Context, string, time.Time) error {
	return errors.New("disk full")
}

func TestARestartBetweenSendingAndNotingSendsOnceMoreUnderTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		team := &told{}
		h.begins(forgetful{h.store}, map[string]speaker{"team": team}, true)
		h.happens(looping("web"))
		pass(time.Hour)
		require.Equal(t, []string{"1 app.crash_looping web/web"}, team.taken(), "while it lives it knows what it said")
		h.stop()
		h.begins(nil, map[string]speaker{"team": team}, true)
		pass(time.Hour)
		require.Equal(t, []string{"1 app.crash_looping web/web"}, team.taken())
		h.stop()
		h.begins(nil, map[string]speaker{"team": team}, true)
		pass(time.Hour)
		require.Empty(t, team.taken())
	})
}

func TestAReceiverThatHangsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		stuck, team := &told{}, &told{}
		release := make(chan struct{})
		stuck.answer = func() reply { <-release; return reply{taken: true} }
		h.begins(nil, map[string]speaker{"stuck": stuck, "team": team}, false)
		for i := range 5 {
			h.happens(looping(fmt.Sprintf("app%d", i)))
			pass(2 * time.Second)
		}
		require.Len(t, team.taken(), 5)
		require.Equal(t, 1, stuck.tries, "one at a time")
		close(release)
		pass(time.Second)
		require.Len(t, stuck.taken(), 5)
	})
}

func TestAReceiverThatIsAwayForADayIsGivenUpAndSentAgainByAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		hook := &told{}
		hook.answers(reply{away: true, says: "it answered 500"})
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		h.happens(looping("web"))
		pass(25 * time.Hour)
		st := h.all.Trouble()
		require.Equal(t, []ring.ReceiverStatus{{Name: "hook", Service: "test", Dead: 1, Reason: "it answered 500"}}, st)
		all, err := h.store.NotArrived(context.Background())
		require.NoError(t, err)
		require.Equal(t, "given up after 24h0m0s: it answered 500", all[0].Reason)
		hook.answers(reply{taken: true})
		pass(48 * time.Hour)
		require.Empty(t, hook.taken())
		n, err := h.store.SayAgain(context.Background(), "hook/1", false)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		h.all.Poke()
		pass(2 * time.Second)
		require.Equal(t, []string{"1 app.crash_looping web/web"}, hook.taken())
		require.Empty(t, h.all.Trouble())
	})
}

func TestAPersonDoesNotWaitForTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		hook := &told{}
		hook.answers(reply{away: true, wait: 6 * time.Hour, says: "it answered 429"})
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		h.happens(looping("web"))
		pass(time.Minute)
		require.Equal(t, 1, hook.tries)
		hook.answers(reply{taken: true})
		pass(time.Hour)
		require.Empty(t, hook.taken(), "it asked to be left alone")
		_, err := h.store.SayAgain(context.Background(), "hook/1", false)
		require.NoError(t, err)
		h.all.Poke()
		pass(2 * time.Second)
		require.Len(t, hook.taken(), 1)
	})
}

func TestWhatCanNeverArriveHoldsNothingElseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		hook := &told{}
		n := 0
		hook.answer = func() reply {
			n++
			switch n {
			case 1:
				return reply{gone: true, says: "it answered 410"}
			case 2:
				return reply{says: "it answered 400"}
			}
			return reply{taken: true}
		}
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		h.happens(looping("a"), looping("b"), looping("c"))
		pass(2 * time.Second)
		require.Equal(t, []string{"3 app.crash_looping c/web"}, hook.taken())
		pass(2 * time.Minute)
		require.Equal(t, []string{"2 app.crash_looping b/web"}, hook.taken())
		pass(48 * time.Hour)
		require.Empty(t, hook.taken())
	})
}

func TestAStormOfOneLookIsOneMessageToAChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		defer h.ends()
		team, hook := &told{}, &told{}
		h.begins(nil, map[string]speaker{"team": team}, true)
		h.begins(nil, map[string]speaker{"hook": hook}, false)
		var all []ring.Event
		for i := range 60 {
			all = append(all, looping(fmt.Sprintf("app%d", i)))
		}
		h.happens(all...)
		pass(2 * time.Second)
		require.Equal(t, []string{"60 60 at once"}, team.taken())
		require.Len(t, hook.taken(), 60)
	})
}

// Whatever goes wrong with whichever service, no part of its URL is in an error,
// in the log, in the status, in the outbox or in the database.
func TestNoSecretOfAReceiverIsToldOrStored(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(context.Background(), dir)
	require.NoError(t, err)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := newOneChat(t)
	c.body, c.header = "CANARY is wrong", http.Header{"Location": {"https://elsewhere/CANARY"}, "X": {"CANARY"}}

	var list []Receiver
	for name, raw := range chatURLs {
		list = append(list, Receiver{Name: name, URLFile: written(t, raw), Template: "{{.What}} for " + raw})
	}
	list = append(list, Receiver{Name: "mail", URLFile: written(t, "smtp://CANARYCANARY:CANARYCANARY@127.0.0.1:1/?from=a@b&to=CANARYCANARY@b")})
	list = append(list, Receiver{Name: "hook", Hook: &Hook{
		URLFile: written(t, c.URL+"/CANARY?CANARY=CANARY"), SecretFile: written(t, strings.Repeat("CANARY", 6)), AllowPrivate: true,
	}})
	r, err := NewReceivers(ReceiversOptions{Host: "edge-1", Ledger: s, Log: log}, list)
	require.NoError(t, err)
	var sent []chatMessage
	for _, l := range r.all {
		if chat, ok := l.speaker.(*chatSpeaker); ok {
			chat.run = func(_ context.Context, s chatMessage) (chatOutcome, error) {
				sent = append(sent, s)
				return s.send(c.road()), nil
			}
		}
		l.said = map[string]bool{}
		require.NoError(t, l.begin(context.Background()))
	}
	var told strings.Builder
	for _, status := range []int{500, 403, 302, 404} {
		c.status = status
		require.NoError(t, s.Record(context.Background(), nil, []ring.Event{looping(fmt.Sprint("app", status))}))
		for _, l := range r.all {
			l.hold = time.Time{}
			_, err := l.turn(context.Background())
			require.NoError(t, err)
		}
		for _, what := range []func() (any, error){
			func() (any, error) { return r.Trouble(), nil },
			func() (any, error) { return s.NotArrived(context.Background()) },
			func() (any, error) { return r.Test(context.Background(), "", "ops") },
		} {
			v, err := what()
			require.NoError(t, err)
			b, err := json.Marshal(v)
			require.NoError(t, err)
			told.Write(b)
		}
	}
	require.Contains(t, told.String(), "it answered 403")
	require.Contains(t, out.String(), "receiver not told")
	require.NotContains(t, out.String(), canary)
	require.NotContains(t, told.String(), canary)
	require.NotEmpty(t, sent)
	for _, m := range sent {
		require.NotContains(t, m.Text, canary, "a template told the URL")
	}

	// Files that are wrong, from the start on.
	for _, raw := range []string{"slack://CANARY", "CANARY", "matrix://CANARY:CANARY@", "https://CANARY"} {
		_, err := NewReceivers(ReceiversOptions{Host: "h", Ledger: s, Log: log}, []Receiver{{Name: "team", URLFile: written(t, raw)}})
		require.ErrorContains(t, err, "receiver team: cannot use the URL in ")
		require.NotContains(t, err.Error(), canary)
	}
	found := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(body), canary, path)
		found += bytes.Count(body, []byte("app.crash_looping")) // so that it is looked at in the right place
		return nil
	}))
	require.Positive(t, found)
	require.NoError(t, s.Close())
}

func TestATestMessageIsSentAtOnceAndToldApart(t *testing.T) {
	team, hook := &told{}, &told{}
	hook.answers(reply{says: "it answered 404"})
	r := &Receivers{host: "h", log: slog.New(slog.DiscardHandler)}
	r.add(Receiver{Name: "team"}, team)
	r.add(Receiver{Name: "hook", Hook: &Hook{}}, hook)
	all, err := r.Test(context.Background(), "", "ops")
	require.NoError(t, err)
	require.Equal(t, []Tested{{"team", "test", true, ""}, {"hook", "test", false, "it answered 404"}}, all)
	all, err = r.Test(context.Background(), "hook", "ops")
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = r.Test(context.Background(), "nobody", "ops")
	require.ErrorIs(t, err, ErrNoReceiver)
	_, err = (&Receivers{}).Test(context.Background(), "", "ops")
	require.ErrorIs(t, err, ErrNoReceiver)
}
