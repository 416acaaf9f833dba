package health

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The standard health protocol of gRPC, by hand: one request of one text field,
// one answer of one number. A library for it would be larger than this daemon.
const (
	grpcMethod  = "/grpc.health.v1.Health/Check"
	grpcContent = "application/grpc"
	// grpcCap bounds an answer, which is two bytes where all is well.
	grpcCap = 4 << 10
)

// What a server may say of a service.
const grpcServing = 1

var grpcSays = map[uint64]string{0: "UNKNOWN", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}

// Statuses of a call that people can act on.
var grpcStatus = map[string]string{
	"5":  "does not know the service",
	"7":  "refused the call",
	"12": "has no health service",
	"14": "is not available",
	"16": "wants to know who asks",
}

// grpc asks the health service of an instance.
func (p *prober) grpc(ctx context.Context, in ring.Instance, c ring.GRPCCheck, timeout time.Duration) answer {
	hosts := p.addresses(in)
	if len(hosts) == 0 {
		return failed(noAddress)
	}
	what := fmt.Sprintf("grpc :%d", c.Port)
	res, err := p.grpcCall(ctx, hosts, c, timeout)
	if err != nil {
		return failed("%s %s", what, grpcBecause(ctx, err, timeout))
	}
	defer res.Body.Close() //nolint:errcheck // nothing is written, and the connection goes
	if res.StatusCode != http.StatusOK {
		return failed("%s answered %d, not gRPC", what, res.StatusCode)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), grpcContent) {
		return failed("%s does not speak gRPC", what)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, grpcCap))
	if err != nil {
		return failed("%s %s", what, grpcBecause(ctx, err, timeout))
	}
	status := res.Trailer.Get("Grpc-Status")
	if status == "" {
		status = res.Header.Get("Grpc-Status") // an answer of nothing but trailers
	}
	if status != "0" {
		return failed("%s %s", what, grpcRefused(status))
	}
	serving, err := servingStatus(body)
	if err != nil {
		return failed("%s %s", what, err)
	}
	if serving == grpcServing {
		return passed()
	}
	says := grpcSays[serving]
	if says == "" {
		says = strconv.FormatUint(serving, 10)
	}
	return failed("%s says %s", what, says)
}

func (p *prober) grpcCall(ctx context.Context, hosts []string, c ring.GRPCCheck, timeout time.Duration) (*http.Response, error) {
	tr := p.transport(hosts, "")
	tr.Protocols = new(http.Protocols)
	scheme := "http"
	if c.TLS {
		scheme = "https"
		tr.Protocols.SetHTTP2(true)
	} else {
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	u := scheme + "://" + net.JoinHostPort(hosts[0], strconv.Itoa(c.Port)) + grpcMethod
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, bytes.NewReader(healthRequest(c.Service)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "gitring")
	req.Header.Set("Content-Type", grpcContent)
	req.Header.Set("Te", "trailers")
	req.Header.Set("Grpc-Timeout", strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)+"m")
	return tr.RoundTrip(req)
}

// healthRequest is the message {1: service}, behind its length.
func healthRequest(service string) []byte {
	var msg []byte
	if service != "" {
		const field1Text = 1<<3 | 2
		msg = append(msg, field1Text)
		msg = binary.AppendUvarint(msg, uint64(len(service)))
		msg = append(msg, service...)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(msg))) //nolint:gosec // a name in a manifest
	return append(frame, msg...)
}

var errNotHealth = errors.New("gave no proper answer of a health service")

// servingStatus is field 1 of the answer; without it the message says 0, UNKNOWN.
func servingStatus(frame []byte) (uint64, error) {
	const head = 5
	if len(frame) < head || frame[0] != 0 || uint64(binary.BigEndian.Uint32(frame[1:head])) != uint64(len(frame)-head) {
		return 0, errNotHealth
	}
	status := uint64(0)
	for msg := frame[head:]; len(msg) > 0; {
		key, n := binary.Uvarint(msg)
		if n <= 0 {
			return 0, errNotHealth
		}
		value, rest, err := protoField(key&7, msg[n:])
		if err != nil {
			return 0, err
		}
		if key == 1<<3 {
			status = value
		}
		msg = rest
	}
	return status, nil
}

// protoField takes one field off a message. Only a number's value is of use; the
// others are skipped, as fields of a later protocol have to be.
func protoField(wire uint64, msg []byte) (value uint64, rest []byte, err error) {
	const varint, fixed64, text, fixed32 = 0, 1, 2, 5
	skip := func(n uint64) (uint64, []byte, error) {
		if n > uint64(len(msg)) {
			return 0, nil, errNotHealth
		}
		return 0, msg[n:], nil
	}
	switch wire {
	case varint:
		v, n := binary.Uvarint(msg)
		if n <= 0 {
			return 0, nil, errNotHealth
		}
		return v, msg[n:], nil
	case fixed64:
		return skip(8)
	case fixed32:
		return skip(4)
	case text:
		size, n := binary.Uvarint(msg)
		if n <= 0 || size > uint64(len(msg)) {
			return 0, nil, errNotHealth
		}
		return skip(uint64(n) + size)
	}
	return 0, nil, errNotHealth
}

// grpcBecause adds what a server of another protocol looks like from here.
func grpcBecause(ctx context.Context, err error, timeout time.Duration) string {
	if says := because(ctx, err, timeout); says != noProperAnswer {
		return says
	}
	return "does not speak HTTP/2"
}

// grpcRefused says what a call that failed means. The text that a server gives
// with it stays with the server: it may hold anything.
func grpcRefused(status string) string {
	if says := grpcStatus[status]; says != "" {
		return says
	}
	if n, err := strconv.Atoi(status); err == nil {
		return "failed with status " + strconv.Itoa(n)
	}
	return "ended without a status"
}
