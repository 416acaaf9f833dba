package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestALogOfErrorsHasNoQueryAndNoHeader(t *testing.T) {
	b := newBench(t, ring.CarryHTTP)
	answer := func(name, text string) {
		l := b.listen(name)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, text)
				_ = c.Close()
			}
		}()
	}
	answer("ends", "")
	answer("garbled", "HTTP/1.1 200 OK\r\nSet-Cookie hidden=answer\r\n\r\n")
	answer("nonsense", "hidden=status\r\n\r\n")
	b.says("good")
	log := &lockedBuffer{}
	b.f.Log.SetOutput(log)
	ask := func(instance string, want int) {
		b.route(instance)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url("/pay?card=hidden"), strings.NewReader("hidden=body"))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer hidden")
		res, err := b.client(false).Do(r)
		require.NoError(t, err)
		require.Equal(t, want, res.StatusCode, instance)
		require.NoError(t, res.Body.Close())
	}
	ask("ends:active", http.StatusBadGateway)
	require.Empty(t, log.String(), "nobody asked for a log")

	b.table.LogErrors = true
	ask("good:active", http.StatusOK)
	require.Empty(t, log.String(), "a good answer")
	for _, name := range []string{"ends", "garbled", "nonsense"} {
		ask(name+":active", http.StatusBadGateway)
		b.eventually("a line of "+name, func() bool { return strings.Contains(log.String(), "instance="+name) })
	}
	ask("good:warm", http.StatusServiceUnavailable)
	b.eventually("a line of nobody", func() bool { return strings.Contains(log.String(), "status=503") })
	require.Equal(t, 4, strings.Count(log.String(), "\n"), log.String())
	require.Equal(t, 4, strings.Count(log.String(), `method=POST path="/pay"`), log.String())
	require.NotContains(t, log.String(), "hidden")
	require.Contains(t, log.String(), "the answer cannot be read")
}
