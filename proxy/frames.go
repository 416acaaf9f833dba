package proxy

import (
	"bytes"
	"strings"
)

// frames reads HTTP/1 requests byte by byte, and knows where each begins and ends.
type frames struct {
	state   frameState
	ext     int    // bytes of the extension of a chunk
	name    []byte // of a header, as far as it can matter
	value   []byte // the same
	matters bool   // the header is one that says something of frames

	method, target int  // bytes of each
	star           bool // the target begins with *
	version        []byte

	first   bool // a request came already: a preface cannot come any more
	length  int64
	hasLen  bool
	chunked bool
	asks    bool // Connection: upgrade
	to      bool // Upgrade: something other than h2c
	chunk   int64
	digits  int
	trailer bool

	upgrade bool // the request just read asks for another protocol
	http2   bool // the connection is HTTP/2
}

type frameState uint8

const (
	inMethod frameState = iota
	inTarget
	inVersion
	inVersionLF
	inLineStart
	inName
	inValue
	inValueLF
	inEndLF
	inBody
	inChunkSize
	inChunkExt
	inChunkSizeLF
	inChunkData
	inChunkCR
	inChunkLF
)

// Bounds of single words; heads as a whole are bounded by the server.
const (
	nameMost  = 256
	valueMost = 1024 // of headers that say something of frames
	extMost   = 1024
)

// feed gives how many bytes of p may go on, and why no more may. It ends early after a head
// that asks for another protocol.
func (f *frames) feed(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		switch f.state {
		case inBody, inChunkData:
			left := &f.length
			if f.state == inChunkData {
				left = &f.chunk
			}
			n := min(int64(len(p)-i), *left)
			*left -= n
			i += int(n) - 1
			if *left == 0 && f.state == inBody {
				f.next()
			} else if *left == 0 {
				f.state = inChunkCR
			}
			continue
		}
		if !f.step(p[i]) {
			return i, errFraming
		}
		if f.upgrade || f.http2 {
			return i + 1, nil
		}
	}
	return len(p), nil
}

// headEnded reports whether the head of the first request was read.
func (f *frames) headEnded() bool { return f.first || f.http2 || f.upgrade || f.state >= inBody }

// next begins a new request.
func (f *frames) next() {
	*f = frames{first: true, name: f.name[:0], value: f.value[:0], version: f.version[:0]}
}

// step reads one byte outside of bodies, and reports whether it may stand there.
func (f *frames) step(c byte) bool {
	switch f.state {
	case inMethod:
		if c == ' ' {
			f.state = inTarget
			return f.method > 0
		}
		f.method++
		return isToken(c) && f.method <= methodMost
	case inTarget:
		if c == ' ' {
			f.state = inVersion
			return f.target == 1 || f.target > 1 && !f.star
		}
		f.target++
		if f.target == 1 {
			f.star = c == '*'
			return c == '/' || f.star
		}
		return c > ' ' && c != 0x7f && c != '#'
	case inVersion:
		if c == '\r' {
			f.state = inVersionLF
			v := string(f.version)
			return v == "HTTP/1.1" || v == "HTTP/1.0" || v == "HTTP/2.0" && !f.first && f.star && f.method == len("PRI")
		}
		f.version = append(f.version, c)
		return len(f.version) <= len("HTTP/1.1")
	case inVersionLF:
		if string(f.version) == "HTTP/2.0" {
			f.http2 = true // only the preface goes on so: the server looks at it whole
		}
		f.state = inLineStart
		return c == '\n'
	case inLineStart, inName, inValue, inValueLF, inEndLF:
		return f.stepHeader(c)
	}
	return f.stepChunk(c)
}

func (f *frames) stepHeader(c byte) bool {
	switch f.state {
	case inLineStart:
		if c == '\r' {
			f.state = inEndLF
			return true
		}
		f.state, f.name, f.value = inName, append(f.name[:0], c), f.value[:0]
		return isToken(c) // a blank would go on with the line before
	case inName:
		if c == ':' {
			f.state = inValue
			return f.judgeName()
		}
		f.name = append(f.name, c)
		return isToken(c) && len(f.name) <= nameMost
	case inValue:
		if c == '\r' {
			f.state = inValueLF
			return true
		}
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
		if f.matters {
			f.value = append(f.value, c)
		}
		return len(f.value) <= valueMost
	case inValueLF:
		f.state = inLineStart
		return c == '\n' && (!f.matters || f.judgeValue())
	}
	return c == '\n' && f.endHead() // inEndLF
}

// judgeName decides whether a header says something of frames. Names that some servers take
// for one of those are refused.
func (f *frames) judgeName() bool {
	name := strings.ToLower(string(f.name))
	switch name {
	case "content-length", "transfer-encoding":
		f.matters = true
		return !f.trailer
	case "connection", "upgrade":
		f.matters = true
		return true
	}
	f.matters = false
	switch strings.ReplaceAll(name, "_", "-") {
	case "content-length", "transfer-encoding":
		return false
	}
	return true
}

func (f *frames) judgeValue() bool {
	value := bytes.Trim(f.value, " \t")
	switch strings.ToLower(string(f.name)) {
	case "content-length":
		if f.hasLen || f.chunked || len(value) == 0 || len(value) > 18 {
			return false
		}
		f.hasLen = true
		for _, c := range value {
			if c < '0' || c > '9' {
				return false
			}
			f.length = f.length*10 + int64(c-'0')
		}
		return true
	case "transfer-encoding":
		if f.hasLen || f.chunked || string(f.version) != "HTTP/1.1" {
			return false
		}
		f.chunked = true
		return strings.EqualFold(string(value), "chunked")
	case "connection":
		for word := range strings.SplitSeq(string(value), ",") {
			f.asks = f.asks || strings.EqualFold(strings.Trim(word, " \t"), "upgrade")
		}
	case "upgrade":
		f.to = len(value) > 0 && !strings.Contains(strings.ToLower(string(value)), "h2c")
	}
	return true
}

func (f *frames) endHead() bool {
	switch {
	case f.trailer:
		f.next()
	case f.chunked:
		f.state, f.chunk, f.digits = inChunkSize, 0, 0
	case f.length > 0:
		f.state = inBody
	default:
		asks := f.asks && f.to && string(f.version) == "HTTP/1.1"
		f.next()
		f.upgrade = asks
	}
	return true
}

func (f *frames) stepChunk(c byte) bool {
	switch f.state {
	case inChunkSize:
		switch {
		case c == '\r' && f.digits > 0:
			f.state = inChunkSizeLF
			return true
		case c == ';' && f.digits > 0:
			f.state, f.ext = inChunkExt, 0
			return true
		}
		v := bytes.IndexByte([]byte("0123456789abcdef"), lower(c))
		f.chunk = f.chunk<<4 | int64(v)
		f.digits++
		return v >= 0 && f.digits <= 15
	case inChunkExt:
		if c == '\r' {
			f.state = inChunkSizeLF
			return true
		}
		f.ext++
		return (c >= ' ' || c == '\t') && c != 0x7f && f.ext <= extMost
	case inChunkSizeLF:
		f.state = inChunkData
		if f.chunk == 0 {
			f.trailer, f.state = true, inLineStart
		}
		return c == '\n'
	case inChunkCR:
		f.state = inChunkLF
		return c == '\r'
	}
	f.state, f.chunk, f.digits = inChunkSize, 0, 0 // inChunkLF
	return c == '\n'
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
