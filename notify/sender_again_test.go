package notify

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAForgeIsAskedAtOnceWhenAPersonSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(func(*http.Request) (*http.Response, error) {
			return says(429, map[string]string{"Retry-After": "3000"}), nil
		})
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		require.Len(t, d.prod.times(), 1)
		d.prod.behave(nil)
		d.outbox.mu.Lock()
		for _, r := range d.outbox.rows { // as the store's SayAgain
			r.Next, r.Attempts = time.Time{}, 0
		}
		d.outbox.mu.Unlock()
		d.Again()
		after(time.Second)
		require.Len(t, d.prod.taken(), 1)
	})
}
