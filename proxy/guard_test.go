package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What follows is a parser of HTTP/1.1 of its own, by the grammar of RFC 9112 and nothing
// else: the oracle of what a client sent, and of what an instance got.

type strictRequest struct {
	head, body string
}

var (
	strictStart  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+ (/[^ #\\x00-\\x1f\\x7f]*|\\*) HTTP/1\\.([01])$")
	strictHeader = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \\t]*([^\\x00-\\x08\\x0a-\\x1f\\x7f]*?)[ \\t]*$")
	strictLength = regexp.MustCompile(`^[0-9]{1,18}$`)
	strictChunk  = regexp.MustCompile(`^([0-9A-Fa-f]{1,15})(;[^\x00-\x08\x0a-\x1f\x7f]*)?$`)
)

var errStrict = errors.New("not by the grammar")

// strictRead reads one request off the front of in.
func strictRead(in string) (r strictRequest, rest string, err error) {
	line := func() (string, error) {
		i := strings.Index(in, "\r\n")
		if i < 0 {
			return "", io.ErrUnexpectedEOF
		}
		l := in[:i]
		in = in[i+2:]
		if strings.ContainsAny(l, "\r\n") {
			return "", errStrict
		}
		return l, nil
	}
	l, err := line()
	if err != nil {
		return r, "", err
	}
	m := strictStart.FindStringSubmatch(l)
	if m == nil {
		return r, "", errStrict
	}
	r.head = l
	var lengths, codings []string
	for {
		if l, err = line(); err != nil {
			return r, "", err
		}
		if l == "" {
			break
		}
		h := strictHeader.FindStringSubmatch(l)
		if h == nil {
			return r, "", errStrict
		}
		switch strings.ToLower(h[1]) {
		case "content-length":
			lengths = append(lengths, h[2])
		case "transfer-encoding":
			codings = append(codings, h[2])
		}
	}
	switch {
	case len(lengths)+len(codings) > 1:
		return r, "", errStrict
	case len(codings) == 1:
		if !strings.EqualFold(codings[0], "chunked") || m[2] != "1" {
			return r, "", errStrict
		}
		for {
			if l, err = line(); err != nil {
				return r, "", err
			}
			c := strictChunk.FindStringSubmatch(l)
			if c == nil {
				return r, "", errStrict
			}
			n, _ := strconv.ParseInt(c[1], 16, 64)
			if n == 0 {
				break
			}
			if int64(len(in)) < n+2 {
				return r, "", io.ErrUnexpectedEOF
			}
			r.body += in[:n]
			if in[n:n+2] != "\r\n" {
				return r, "", errStrict
			}
			in = in[n+2:]
		}
		for {
			if l, err = line(); err != nil {
				return r, "", err
			}
			if l == "" {
				return r, in, nil
			}
			if strictHeader.FindStringSubmatch(l) == nil {
				return r, "", errStrict
			}
		}
	case len(lengths) == 1:
		if !strictLength.MatchString(lengths[0]) {
			return r, "", errStrict
		}
		n, _ := strconv.Atoi(lengths[0])
		if len(in) < n {
			return r, "", io.ErrUnexpectedEOF
		}
		r.body, in = in[:n], in[n:]
	}
	return r, in, nil
}

// strictAll are the requests that can be read off a stream, to the first that cannot.
func strictAll(in string) (out []strictRequest) {
	for in != "" {
		r, rest, err := strictRead(in)
		if err != nil {
			return out
		}
		out, in = append(out, r), rest
	}
	return out
}

// recorder is an instance that writes down each byte, and answers whatever it takes for the
// end of a request.
type recorder struct {
	mu    sync.Mutex
	conns []*bytes.Buffer
}

func (r *recorder) take(c net.Conn) {
	b := &bytes.Buffer{}
	r.mu.Lock()
	r.conns = append(r.conns, b)
	r.mu.Unlock()
	buf := make([]byte, 32<<10)
	answered := 0
	for {
		n, err := c.Read(buf)
		r.mu.Lock()
		b.Write(buf[:n])
		whole := len(strictAll(b.String()))
		r.mu.Unlock()
		for ; answered < whole; answered++ {
			_, _ = io.WriteString(c, okAnswer)
		}
		if err != nil {
			return
		}
	}
}

// got is what came on each connection that anything came on.
func (r *recorder) got() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.conns {
		if b.Len() > 0 {
			out = append(out, b.String())
		}
	}
	return out
}

func (r *recorder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = nil
}

const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"

// smuggling are streams of clients in which some parser or other sees requests that another
// does not.
func smuggling() map[string]string {
	post := "POST /a HTTP/1.1\r\nHost: x\r\n"
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n"
	n := strconv.Itoa(len(hidden))
	out := map[string]string{
		"both lengths, CL first":         post + "Content-Length: " + n + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"both lengths, TE first":         post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":                    post + "Content-Length: 0\r\nContent-Length: " + n + "\r\n\r\n" + hidden,
		"two equal lengths":              post + "Content-Length: " + n + "\r\nContent-Length: " + n + "\r\n\r\n" + hidden,
		"a list of lengths":              post + "Content-Length: 0, " + n + "\r\n\r\n" + hidden,
		"a list of equal lengths":        post + "Content-Length: " + n + ", " + n + "\r\n\r\n" + hidden,
		"a length with a plus":           post + "Content-Length: +" + n + "\r\n\r\n" + hidden,
		"a negative length":              post + "Content-Length: -1\r\n\r\n" + hidden,
		"a hex length":                   post + "Content-Length: 0x10\r\n\r\n" + hidden,
		"a length with a blank":          post + "Content-Length: 1 0\r\n\r\n" + hidden,
		"a length with an underscore":    post + "Content-Length: 1_0\r\n\r\n" + hidden,
		"an empty length":                post + "Content-Length: \r\n\r\n" + hidden,
		"a length with a point":          post + "Content-Length: 5.0\r\n\r\n" + hidden,
		"a length that overflows":        post + "Content-Length: 18446744073709551616\r\n\r\n" + hidden,
		"a length in quotes":             post + "Content-Length: \"5\"\r\n\r\n" + hidden,
		"a length with a null":           post + "Content-Length: 5\x00\r\n\r\n" + hidden,
		"a length with a tab":            post + "Content-Length:\t" + n + "\r\n\r\n" + hidden,
		"a length with a form feed":      post + "Content-Length:\x0c5\r\n\r\n" + hidden,
		"a blank before the colon":       post + "Content-Length : " + n + "\r\n\r\n" + hidden,
		"a tab before the colon":         post + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"a folded length":                post + "Content-Length:\r\n " + n + "\r\n\r\n" + hidden,
		"a folded coding":                post + "Transfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a fold that hides a length":     post + "X: y\r\n Content-Length: " + n + "\r\n\r\n" + hidden,
		"a fold right at the start":      "POST /a HTTP/1.1\r\n Content-Length: " + n + "\r\nHost: x\r\n\r\n" + hidden,
		"a length with _ for -":          post + "Content_Length: " + n + "\r\n\r\n" + hidden,
		"a coding with _ for -":          post + "Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"a null in a name":               post + "Content-Length\x00: " + n + "\r\n\r\n" + hidden,
		"a null in a value":              post + "X: a\x00b\r\n\r\n" + hidden,
		"an escape in a value":           post + "X: a\x1bb\r\n\r\n" + hidden,
		"no colon":                       post + "Content-Length\r\n\r\n" + hidden,
		"an empty name":                  post + ": x\r\n\r\n" + hidden,
		"a name in parentheses":          post + "(Content-Length): 5\r\n\r\n" + hidden,
		"a name that is not ASCII":       post + "C\xc3\xb6ntent-Length: 5\r\n\r\n" + hidden,
		"bare LF everywhere":             strings.ReplaceAll(post+"Content-Length: "+n+"\r\n\r\n", "\r\n", "\n") + hidden,
		"bare LF after a header":         post + "X: y\nContent-Length: " + n + "\r\n\r\n" + hidden,
		"bare LF at the end":             post + "X: y\r\n\n" + hidden,
		"bare CR in a value":             post + "X: y\rContent-Length: " + n + "\r\n\r\n" + hidden,
		"CR CR LF":                       post + "X: y\r\r\n\r\n" + hidden,
		"bare CR in the start line":      "GET /a\r HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a coding that is unknown":       post + "Transfer-Encoding: gzip\r\n\r\n" + hidden,
		"two codings":                    post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked not last":               post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
		"chunked twice in two lines":     post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"identity and a length":          post + "Transfer-Encoding: identity\r\nContent-Length: " + n + "\r\n\r\n" + hidden,
		"a coding with a vertical tab":   post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a coding in quotes":             post + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + hidden,
		"a coding with a parameter":      post + "Transfer-Encoding: chunked;x=y\r\n\r\n0\r\n\r\n" + hidden,
		"a coding that only begins so":   post + "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n" + hidden,
		"an empty coding":                post + "Transfer-Encoding:\r\n\r\n0\r\n\r\n" + hidden,
		"a coding in HTTP/1.0":           "POST /a HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"CHUNKED":                        post + "Transfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk with 0x":                chunked + "0x3\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk with a plus":            chunked + "+3\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk with a minus":           chunked + "-1\r\n\r\n0\r\n\r\n" + hidden,
		"a chunk with a blank before":    chunked + " 3\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk with a blank after":     chunked + "3 \r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk with an underscore":     chunked + "1_0\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk that overflows":         chunked + "10000000000000003\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk without a size":         chunked + "\r\nabc\r\n0\r\n\r\n" + hidden,
		"a chunk with bare LF":           chunked + "3\nabc\r\n0\r\n\r\n" + hidden,
		"bare LF after chunk data":       chunked + "3\r\nabc\n0\r\n\r\n" + hidden,
		"no end after chunk data":        chunked + "3\r\nabcd\r\n0\r\n\r\n" + hidden,
		"a last chunk with bare LF":      chunked + "0\n\n" + hidden,
		"bare LF in an extension":        chunked + "3;x\nabc\r\n0\r\n\r\n" + hidden,
		"bare CR in an extension":        chunked + "3;x\ry\r\nabc\r\n0\r\n\r\n" + hidden,
		"an extension":                   chunked + "3;x=\"y\"\r\nabc\r\n0\r\n\r\n" + hidden,
		"many zeros":                     chunked + "0000003\r\nabc\r\n00\r\n\r\n" + hidden,
		"a trailer":                      chunked + "0\r\nX-Y: z\r\n\r\n" + hidden,
		"a length in a trailer":          chunked + "0\r\nContent-Length: 5\r\n\r\n" + hidden,
		"a coding in a trailer":          chunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden,
		"a folded trailer":               chunked + "0\r\nX: y\r\n z\r\n\r\n" + hidden,
		"a trailer without a colon":      chunked + "0\r\nXY\r\n\r\n" + hidden,
		"two blanks in a start line":     "GET  /a HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a tab in a start line":          "GET\t/a HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a blank at its end":             "GET /a HTTP/1.1 \r\nHost: x\r\n\r\n" + hidden,
		"a blank in a target":            "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"HTTP/0.9":                       "GET /a\r\n\r\n" + hidden,
		"HTTP/1.2":                       "GET /a HTTP/1.2\r\nHost: x\r\n\r\n" + hidden,
		"HTTP/2.0 in words":              "GET /a HTTP/2.0\r\nHost: x\r\n\r\n" + hidden,
		"http in small letters":          "GET /a http/1.1\r\nHost: x\r\n\r\n" + hidden,
		"an empty line before":           "\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a fragment":                     "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"a null in a target":             "GET /a\x00 HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"two hosts":                      "GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + hidden,
		"no host":                        "GET /a HTTP/1.1\r\n\r\n" + hidden,
		"a folded host":                  "GET /a HTTP/1.1\r\nHost: x\r\n y\r\n\r\n" + hidden,
		"a body of a GET":                "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: " + n + "\r\n\r\n" + hidden + hidden,
		"an h2c upgrade with a body":     post + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: " + n + "\r\n\r\n" + hidden + hidden,
		"a refused upgrade, more behind": "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + hidden,
		"a length named by Connection":   post + "Connection: Content-Length\r\nContent-Length: " + n + "\r\n\r\n" + hidden + hidden,
		"a coding named by Connection":   post + "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + hidden,
		"Expect and a body":              post + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" + hidden,
		"Expect of something else":       post + "Expect: x\r\nContent-Length: 3\r\n\r\nabc" + hidden,
		"plain":                          post + "Content-Length: 3\r\n\r\nabc" + hidden,
		"plain, HTTP/1.0":                "POST /a HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc" + hidden,
		"plain, chunked":                 chunked + "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n" + hidden,
	}
	return out
}

// sendRaw writes a stream and half-closes nothing: it waits until the front has said all.
func (b *bench) sendRaw(in string) string {
	b.t.Helper()
	c, err := net.Dial("tcp", b.addr())
	require.NoError(b.t, err)
	defer c.Close()
	_, _ = io.WriteString(c, in)
	// What is not refused by now waits for more: another request, which ends the connection.
	_, _ = io.WriteString(c, "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(wait))
	got, _ := io.ReadAll(c)
	return string(got)
}

// agree holds what an instance got against what a strict reader finds in the client's stream.
func agree(t *testing.T, in string, conns []string) {
	t.Helper()
	sent := strictAll(in)
	var got []strictRequest
	for _, c := range conns {
		rest := c
		for rest != "" {
			r, more, err := strictRead(rest)
			if err != nil { // cut short: the front gave up on a body, and closed
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, "an instance got what is no plain HTTP: %q", c)
				break
			}
			got, rest = append(got, r), more
		}
	}
	require.LessOrEqual(t, len(got), len(sent), "%q became %q", in, conns)
	for i := range got { // one client, one after the other
		word := func(r strictRequest) string { return strings.Join(strings.Fields(r.head)[:2], " ") }
		require.Equal(t, word(sent[i]), word(got[i]), "%q became %q", in, conns)
		require.Equal(t, sent[i].body, got[i].body, "%q became %q", in, conns)
	}
}

func TestFrontAndInstanceNeverDisagree(t *testing.T) {
	cases := smuggling()
	require.GreaterOrEqual(t, len(cases), 60)
	for _, carry := range []string{ring.CarryHTTP, ring.CarryAuto} {
		b := newBench(t, carry)
		rec := &recorder{}
		b.raw("one", func(_ int, c net.Conn) { rec.take(c) })
		b.route("one:active")
		for name, in := range cases {
			if carry == ring.CarryAuto && judgeFirst([]byte(in)) == isTCP {
				continue // carried byte for byte, on a connection of its own
			}
			t.Run(carry+" "+name, func(t *testing.T) {
				rec.clear()
				said := b.sendRaw(in)
				full := in + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
				// Requests of one client may go over several connections: one of them each.
				conns := rec.got()
				sortByOrder(conns, full)
				agree(t, full, conns)
				plain := strings.HasPrefix(name, "plain") || name == "CHUNKED"
				if plain {
					require.Equal(t, 3, strings.Count(said, "HTTP/1.1 200 OK")+strings.Count(said, "HTTP/1.0 200 OK"), said)
				}
				if len(strictAll(full)) == 0 {
					for _, c := range conns {
						require.Empty(t, strictAll(c), "what is refused is never forwarded, and of its body never all")
					}
					require.Regexp(t, `^HTTP/1.1 (400|501|505)`, said)
				}
			})
		}
	}
}

// sortByOrder brings connections in the order in which a client's stream has their first paths.
func sortByOrder(conns []string, in string) {
	at := func(c string) int {
		words := strings.Fields(c)
		if len(words) < 2 {
			return len(in)
		}
		if i := strings.Index(in, words[1]); i >= 0 {
			return i
		}
		return len(in)
	}
	for i := range conns {
		for j := i + 1; j < len(conns); j++ {
			if at(conns[j]) < at(conns[i]) {
				conns[i], conns[j] = conns[j], conns[i]
			}
		}
	}
}

// What the guard lets through, a strict reader reads alike: as many requests, ending at the
// same bytes, however the stream is cut into pieces.
func FuzzFrames(f *testing.F) {
	for _, in := range smuggling() {
		f.Add([]byte(in), uint8(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		if len(in) > 4096 {
			return
		}
		size := int(piece)%64 + 1
		var fr frames
		passed := 0
		var broken error
		for passed < len(in) && broken == nil && !fr.http2 {
			n, err := fr.feed(in[passed:min(passed+size, len(in))])
			passed += n
			broken = err
			fr.upgrade = false
			if n == 0 && err == nil {
				t.Fatal("it stands still")
			}
		}
		if fr.http2 {
			return
		}
		// All that was passed is a row of whole requests and the beginning of one more.
		rest := string(in[:passed])
		for rest != "" {
			_, more, err := strictRead(rest)
			if err != nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) && broken == nil {
					t.Fatalf("passed %q, and %q is not by the grammar", in[:passed], rest)
				}
				break
			}
			rest = more
		}
	})
}

func TestWhatAClientBeginsWithTellsItsProtocol(t *testing.T) {
	for text, want := range map[string]verdict{
		"": unclear, "G": unclear, "GET": unclear, "GET ": unclear, "GET /": isHTTP, "OPTIONS * HTTP/1.1\r\n": isHTTP, "OPTIONS *": unclear,
		"OPTIONS * HTT": unclear, "OPTIONS * RTSP/1.0": isTCP, "M-SEARCH * HTTP/1.1": isHTTP, "PRI * HTTP/2.0": isHTTP, "PRI": unclear,
		"CONNECT a:1 HTTP/1.1": isTCP, "GET http://a/ HTTP/1.1": isTCP, "OPTIONS rtsp://a RTSP/1.0": isTCP, "INVITE sip:a SIP/2.0": isTCP,
		"\x16\x03\x01": isTCP, "SSH-2.0-x\r\n": isTCP, "\x00": isTCP, "get /": isHTTP, "\r\nGET /": isHTTP, "\nGET /": isHTTP, "GET\t/": isHTTP,
		"EHLO x\r\n": isTCP, "PING\r\n": isTCP, strings.Repeat("A", 33): isTCP, "*1\r\n$4\r\nPING": isTCP, " GET /": isTCP,
	} {
		require.Equal(t, want, judgeFirst([]byte(text)), "%q", text)
	}
}

func TestAnAutoPortCarriesWhatComes(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.raw("one", func(_ int, c net.Conn) {
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if strings.HasPrefix(string(buf[:n]), "GET /") {
			_, _ = io.WriteString(c, okAnswer)
			return
		}
		_, _ = fmt.Fprintf(c, "raw %q", buf[:n])
	})
	b.route("one:active")
	for in, want := range map[string]string{
		"\x16\x03\x01\x00":               `raw "\x16\x03\x01\x00"`,
		"CONNECT a:1 HTTP/1.1\r\n\r\n":   `raw "CONNECT a:1 HTTP/1.1\r\n\r\n"`,
		"GET http://a/ HTTP/1.1\r\n\r\n": `raw "GET http://a/ HTTP/1.1\r\n\r\n"`,
		"AB":                             `raw "AB"`, // begins like a method, and ends there
	} {
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		_, err = io.WriteString(c, in)
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		require.NoError(t, c.Close())
	}
	// Byte by byte, it is HTTP all the same.
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	for _, x := range []byte("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") {
		_, err = c.Write([]byte{x})
		require.NoError(t, err)
	}
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(got), "HTTP/1.1 200 OK")
}

// An instance that speaks first is heard, and what the client says then is carried.
func TestAnInstanceMaySpeakFirst(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.raw("one", func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, "220 hello\r\n")
		_, _ = io.Copy(c, c)
	})
	b.raw("two", func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, "221 hello\r\n")
		_, _ = io.Copy(c, c)
	})
	b.route("one:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	buf := make([]byte, 11)
	_, err = io.ReadFull(c, buf)
	require.NoError(t, err)
	require.Equal(t, "220 hello\r\n", string(buf))
	_, err = io.WriteString(c, "GET / HTTP/1.1")
	require.NoError(t, err)
	_, err = io.ReadFull(c, buf)
	require.NoError(t, err)
	require.Equal(t, "GET / HTTP/", string(buf))
}

// A client that is silent for long and then speaks HTTP is served; nothing of it counts as in
// flight before, so its instance can drain.
func TestASilentClientHoldsNoInstance(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var open sync.WaitGroup
	open.Add(1)
	var once sync.Once
	b.raw("old", func(_ int, c net.Conn) {
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			t.Error("the client said nothing")
		}
		once.Do(open.Done)
	})
	b.says("new")
	b.route("old:active")
	conns := []net.Conn{}
	for range 3 {
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		defer c.Close()
		conns = append(conns, c)
	}
	idle := func() (n int) {
		b.f.mu.Lock()
		defer b.f.mu.Unlock()
		for c := range b.f.members["old"].claims {
			if c.idle && c.cut != nil {
				n++
			}
		}
		return n
	}
	b.eventually("the instance is connected to as well", func() bool { return idle() == 3 })
	require.Zero(t, b.instance("old").InFlight)
	require.Zero(t, b.instance("old").Counts.Requests)
	b.drainUntil("new", time.Now().Add(time.Hour), "old")
	b.eventually("they are given up at once", func() bool { return idle() == 0 })
	for _, c := range conns {
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(got), "new")
	}
	require.Zero(t, b.f.cuts.Load())
}
