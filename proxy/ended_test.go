package proxy

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A deadline can pass in the moment in which an answer ends. What comes after it on the same
// connection is somebody else's.
func TestACallThatIsOverCutsNothing(t *testing.T) {
	for name, client := range map[string]*http.Client{"HTTP/1.1": {Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: wait}, "h2c": h2cClient(t)} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, ring.CarryHTTP)
			came, goOn := make(chan struct{}, 10), make(chan struct{}, 10)
			b.serve("one", func(w http.ResponseWriter, _ *http.Request) {
				came <- struct{}{}
				<-goOn
				_, _ = io.WriteString(w, "all of it")
			})
			b.route("one:active")
			answer := make(chan string, 1)
			ask := func() {
				res, err := client.Get(b.url("/"))
				if err != nil {
					answer <- err.Error()
					return
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					body = []byte(err.Error())
				}
				answer <- string(body)
			}
			go ask()
			<-came
			b.f.stalling.mu.Lock()
			var first *call
			for c := range b.f.stalling.calls {
				first = c
			}
			b.f.stalling.mu.Unlock()
			require.NotNil(t, first)
			goOn <- struct{}{}
			require.Equal(t, "all of it", <-answer)
			b.eventually("the first one is over", func() bool {
				first.ending.Lock()
				defer first.ending.Unlock()
				return first.ended
			})

			go ask()
			<-came
			require.NotPanics(t, func() { first.end(errStalled) })
			goOn <- struct{}{}
			require.Equal(t, "all of it", <-answer)
		})
	}
}
