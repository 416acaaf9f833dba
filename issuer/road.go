package issuer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"golang.org/x/oauth2"
)

const (
	// headLimit and bodyLimit are far above what an issuer answers.
	headLimit = 64 << 10
	bodyLimit = 1 << 20
	// longestReason is of what the log and the page repeat.
	longestReason = 200
)

// newClient keeps no connection, so that nothing of it is left when a sign-in has ended.
func newClient() *http.Client {
	return &http.Client{
		Timeout: within,
		// An issuer that sends elsewhere is another one: what it was told is for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: bounded{&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: within}).DialContext, TLSHandshakeTimeout: within,
			DisableKeepAlives: true, MaxResponseHeaderBytes: headLimit,
		}},
	}
}

// bounded ends bodies that are too long, and drops those of answers that are none: an issuer could
// repeat there what it was sent.
type bounded struct{ by http.RoundTripper }

// codeError is an answer that is none.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("it answered with status %d", int(e)) }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.by.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodGet && res.StatusCode != http.StatusOK {
		_ = res.Body.Close() // nothing of it is read
		return nil, codeError(res.StatusCode)
	}
	res.Body = &limitedBody{res.Body, bodyLimit}
	return res, nil
}

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("it answered more than 1 MiB")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// errorCode is an error as OAuth names it.
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// because is why the issuer did not say who somebody is, without what it was sent or has sent.
func because(err error) error {
	var answered *oauth2.RetrieveError
	var asked *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it did not answer within %v", within.Round(time.Second))
	case errors.As(err, &answered):
		if errorCode.MatchString(answered.ErrorCode) {
			return fmt.Errorf("it refused the code: %s", answered.ErrorCode)
		}
		return fmt.Errorf("it refused the code with status %d", answered.Response.StatusCode)
	case errors.As(err, &asked):
		if asked.Timeout() {
			return fmt.Errorf("it did not answer within %v", within.Round(time.Second))
		}
		return asked.Err
	}
	says := plainText(err.Error())
	if len(says) > longestReason {
		says = says[:longestReason] + " …"
	}
	return errors.New(says)
}

// plainText has no character that moves a terminal.
func plainText(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = ' '
		}
	}
	return string(b)
}
