package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeliveriesAreRememberedForADay(t *testing.T) {
	var d deliveries
	at := time.Unix(0, 0)
	require.False(t, d.again("prod a", at))
	require.True(t, d.again("prod a", at.Add(time.Hour)))
	require.True(t, d.again("prod a", at.Add(24*time.Hour)), "an hour short of a day since it came last")
	require.False(t, d.again("prod b", at.Add(24*time.Hour)))
	require.False(t, d.again("prod a", at.Add(48*time.Hour)))
	require.False(t, d.again("", at))
	require.False(t, d.again("", at))
	require.Equal(t, 1, d.order.Len(), "b is forgotten, and a is there once")
}

func TestNoMoreThanTenThousandDeliveriesAreRemembered(t *testing.T) {
	var d deliveries
	at := time.Unix(0, 0)
	for i := range 30_000 {
		require.False(t, d.again(fmt.Sprint(i), at))
	}
	require.LessOrEqual(t, len(d.seen), 10_001)
	require.Equal(t, len(d.seen), d.order.Len())
	require.True(t, d.again("29999", at))
	require.False(t, d.again("1", at))
}

// A delivery that comes again is told, and is a hint all the same. No secret and
// nothing of the body is in the log.
func TestADeliveryThatComesAgainIsLogged(t *testing.T) {
	d := newDoor(t)
	var log bytes.Buffer
	d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, s := range samples(t) {
		if s.Name != "push" {
			continue
		}
		log.Reset()
		for range 3 {
			require.Equal(t, 202, d.ask(s.signed(time.Now())), s.Forge)
			require.Equal(t, 401, d.ask(s.request()), s.Forge)
		}
		source, again := sampleSource[s.Forge], 2
		if s.Forge == Generic {
			again = 0 // which has no numbers
		}
		require.Equal(t, 3, d.poked(source))
		require.Equal(t, min(again, 1), strings.Count(log.String(), `msg="webhook taken again" source=`+source+` delivery="\"`), s.Forge)
		require.Equal(t, 1, strings.Count(log.String(), `msg="webhook taken" source=`+source), s.Forge)
		for _, secret := range []string{string(secretOne), string(secretTwo), "alice"} {
			require.False(t, strings.Contains(log.String(), secret), s.Forge)
		}
	}
}

// Whoever sets a webhook up reads why it is not taken; a storm is one line a minute.
func TestWhyAWebhookIsNotTakenIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t)
		var log bytes.Buffer
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
		for i := range 90 * 50 { // 50 a second for 90 s
			source := []string{"prod", "other"}[i%2]
			require.Equal(t, 401, d.ask(hookRequest("/v1/webhook/"+source, "{}")))
			require.Equal(t, 404, d.ask(hookRequest("/v1/webhook/"+fmt.Sprint(i), "{}")))
			time.Sleep(20 * time.Millisecond)
		}
		require.Equal(t, 4, strings.Count(log.String(), "\n"))
		require.Equal(t, 2, strings.Count(log.String(), `source=prod status=401 reason="no signature in X-Hub-Signature-256"`))
	})
}

// A thousand replays, duplicates and forgeries are one line a minute for each kind, and
// the number of those left out is told, also when nothing follows.
func TestAThousandReplaysAreOneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t)
		var log bytes.Buffer
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		go d.tellLeftOut(ctx)
		time.Sleep(time.Second)
		ask := func(code int, delivery string, more ...string) {
			headers := append([]string{"X-GitHub-Event", "push", "X-GitHub-Delivery", delivery}, more...)
			require.Equal(t, code, d.ask(hookRequest("/v1/webhook/prod", "{}", headers...)))
		}
		right := []string{"X-Hub-Signature-256", "sha256=" + sign(secretOne, "{}")}
		for i := range 1000 {
			ask(202, "the same", right...)
			ask(202, fmt.Sprint("another ", i), right...)
			ask(401, fmt.Sprint("forged ", i))
		}
		require.Equal(t, 2000, d.poked("prod"), "each is a hint all the same")
		synctest.Wait()
		require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
		log.Reset()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `msg="webhook taken" source=prod left_out=1000`)
		require.Contains(t, log.String(), `msg="webhook taken again" source=prod left_out=998`)
		require.Contains(t, log.String(), `msg="webhook not taken, told once a minute" source=prod left_out=999`)
		log.Reset()
		time.Sleep(3 * time.Minute)
		ask(401, "forged")
		ask(401, "forged")
		time.Sleep(61 * time.Second)
		ask(401, "forged")
		synctest.Wait()
		require.LessOrEqual(t, strings.Count(log.String(), "\n"), 2, log.String())
		require.Contains(t, log.String(), "left_out=1")
		cancel()
	})
}
