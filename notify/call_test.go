package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// slow is a body that never ends, a byte a second.
type slow struct{ ctx context.Context }

func (s slow) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	}
}

func (slow) Close() error { return nil }

func TestABodyThatNeverEndsIsGivenUp(t *testing.T) {
	token := tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w := &wire{do: func(r *http.Request) (*http.Response, error) {
			res := says(http.StatusCreated, nil)
			res.Body = slow{r.Context()}
			return res, nil
		}}
		f := Forge{Kind: GitHub, APIURL: "https://forge.example.org/api/v3", Repo: "acme/infra", TokenFile: token, Client: &http.Client{Transport: w}}
		began := time.Now()
		var out struct{}
		_, err := f.call(t.Context(), http.MethodGet, "/x", plainStatus{}, &out)
		require.EqualError(t, err, "cannot read the forge's answer: no answer within 10s")
		require.Equal(t, timeout, time.Since(began))
	})
}

// pipes is a listener of connections in memory, which a bubble's clock knows.
type pipes struct {
	net.Listener
	taken chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.taken:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
func (pipes) Close() error   { return nil }

func TestAPostTakesNoConnectionThatIsIdleForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipes{taken: make(chan net.Conn), done: make(chan struct{})}
		var over []net.Conn // which connection each request came over
		server := &http.Server{
			ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, pipes{}, c) },
			Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				over = append(over, r.Context().Value(pipes{}).(net.Conn))
			}),
		}
		go server.Serve(l) //nolint:errcheck // it ends with the test
		tr := transportBy(func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			l.taken <- theirs
			return ours, nil
		})
		post := func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/x", strings.NewReader("{}"))
			require.NoError(t, err)
			res, err := tr.RoundTrip(req)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			synctest.Wait()
		}
		post()
		time.Sleep(time.Second)
		post()
		time.Sleep(5 * time.Second) // after that the servers of many proxies are gone
		post()
		require.Len(t, over, 3)
		require.Same(t, over[0], over[1], "posts at one time share a connection")
		require.NotSame(t, over[1], over[2], "a connection of five idle seconds was taken")
		tr.CloseIdleConnections()
		close(l.done)
		require.NoError(t, server.Close())
	})
}

func TestAConnectionThatBreaksOffIsToldInWords(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, fmt.Errorf("net/http: %w", io.EOF), errors.New("http: server closed idle connection")} {
		require.Equal(t, "the connection broke off", because(t.Context(), err))
	}
}

func TestABodyWithoutEndIsNotRead(t *testing.T) {
	f := newFake(t, GitHub)
	f.answer(fakeAnswer{code: 200, body: `{"id":1,"x":"` + strings.Repeat("x", maxAnswer) + `"}`})
	f.on("GET", "/x", nil)
	var out struct{ ID int }
	_, err := f.forge(t).call(t.Context(), http.MethodGet, "/x", nil, &out)
	require.EqualError(t, err, "the forge's answer is longer than 4 MiB")
}

// Neither the token nor a word of the answer is in any error, whatever is answered.
func TestNoErrorRepeatsAnAnswerOrTheToken(t *testing.T) {
	const theirs = "someone else's words"
	for _, kind := range Kinds() {
		f := newFake(t, kind)
		forge := f.forge(t)
		for _, code := range []int{300, 301, 302, 304, 307, 308, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413, 415, 418, 421, 423, 425, 426, 429, 451, 500, 501, 502, 503, 504, 520, 599} {
			f.answer(fakeAnswer{code: code, header: map[string]string{"Location": f.URL + "/" + secret}, body: `{"message":"` + theirs + ` ` + secret + `"}`})
			o := forge.say(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
			require.False(t, o.done, code)
			require.NotContains(t, o.says, theirs)
			require.NotContains(t, o.says, secret)
			require.NotContains(t, o.says, f.URL)
			require.Equal(t, f.root, forge.APIURL[len(f.URL):])
		}
	}
}

// A forge that sends elsewhere gets no request there, and no token.
func TestEachForgeStaysOnItsHost(t *testing.T) {
	for _, kind := range Kinds() {
		there := newFake(t, Gitea)
		f := newFake(t, kind)
		for _, code := range []int{301, 302, 303, 307, 308} {
			f.answer(fakeAnswer{code: code, header: map[string]string{"Location": there.URL + "/api/v1/repos/acme/infra/statuses/" + string(sha)}})
			require.True(t, f.forge(t).say(t, post("gitring/edge-1", ring.PostSuccess, "healthy")).permanent)
		}
		require.Empty(t, there.requests())
		require.Len(t, f.requests(), 5)
	}
}

func TestPartsOfAPathAreEscaped(t *testing.T) {
	f := Forge{Repo: "group/sub/na+me"}
	require.Equal(t, "/projects/group%2Fsub%2Fna+me/statuses/x", f.project("statuses", "x"))
	require.Equal(t, "/projects/a%2Fb%3Fc%23d", segments("projects", "a/b?c#d"))
	require.NotContains(t, segments("..", "%2e"), "%2e/")
}

func TestAnswersToAListAreRead(t *testing.T) {
	f := newFake(t, GitHub)
	f.answer(fakeAnswer{code: 200, body: `[{"id":7}]`})
	f.on("GET", "/x", nil)
	var out []struct{ ID int }
	a, err := f.forge(t).call(t.Context(), http.MethodGet, "/x", nil, &out)
	require.NoError(t, err)
	require.Equal(t, 200, a.code)
	require.Equal(t, 7, out[0].ID)
}
