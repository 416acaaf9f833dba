package health

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gitring/gitring/ring"
)

// grpcServer is a server of HTTP/2 that answers as h says, with or without TLS.
func grpcServer(t *testing.T, secure bool, h http.HandlerFunc) int {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	if secure {
		s.EnableHTTP2 = true
		s.Config.Protocols.SetHTTP2(true)
		s.StartTLS()
	} else {
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}

// message answers with one message and a status in the trailers.
func message(w http.ResponseWriter, msg []byte, status string) {
	w.Header().Set("Content-Type", "application/grpc+proto")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(msg))))
	_, _ = w.Write(msg)
	w.Header().Set("Grpc-Status", status)
}

func bare(status string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", status)
	}
}

func TestGRPCAsksTheStandardHealthService(t *testing.T) {
	// Byte for byte what protoc makes of HealthCheckRequest{service: "shop.v1.Cart"}.
	const wanted = "\x00\x00\x00\x00\x0e\x0a\x0cshop.v1.Cart"
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			port := grpcServer(t, secure, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch {
				case r.ProtoMajor != 2 || r.Method != http.MethodPost || r.URL.Path != "/grpc.health.v1.Health/Check",
					r.Header.Get("Te") != "trailers" || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Grpc-Timeout") != "5000m":
					message(w, nil, "13")
				case string(body) == wanted:
					message(w, []byte{0x08, 0x01}, "0")
				case string(body) == "\x00\x00\x00\x00\x00":
					message(w, []byte{0x08, 0x02}, "0")
				default:
					message(w, nil, "5")
				}
			})
			for service, want := range map[string]answer{
				"shop.v1.Cart": passed(),
				"":             failed("grpc :%d says NOT_SERVING", port),
				"other":        failed("grpc :%d does not know the service", port),
			} {
				require.Equal(t, want, ask(ring.Check{GRPC: &ring.GRPCCheck{Port: port, Service: service, TLS: secure}}), service)
			}
		})
	}
}

func TestGRPCSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		says string
	}{
		"an empty message is UNKNOWN":     {func(w http.ResponseWriter, _ *http.Request) { message(w, nil, "0") }, "says UNKNOWN"},
		"a value of a later protocol":     {func(w http.ResponseWriter, _ *http.Request) { message(w, []byte{8, 9}, "0") }, "says 9"},
		"no health service":               {bare("12"), "has no health service"},
		"wants to know who asks":          {bare("16"), "wants to know who asks"},
		"another status":                  {bare("13"), "failed with status 13"},
		"no status":                       {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/grpc") }, "ended without a status"},
		"a status that is no number":      {bare("s3cret"), "ended without a status"},
		"a web server":                    {status(200, "<html>"), "does not speak gRPC"},
		"a web server that knows no path": {status(404, ""), "answered 404, not gRPC"},
		"a compressed message": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write([]byte{1, 0, 0, 0, 2, 8, 1})
			w.Header().Set("Grpc-Status", "0")
		}, "gave no proper answer"},
	} {
		t.Run(name, func(t *testing.T) {
			port := grpcServer(t, false, tc.h)
			a := ask(ring.Check{GRPC: &ring.GRPCCheck{Port: port}})
			require.False(t, a.ok)
			require.Equal(t, fmt.Sprintf("grpc :%d ", port), a.says[:len(fmt.Sprintf("grpc :%d ", port))])
			require.Contains(t, a.says, tc.says)
			require.NotContains(t, a.says, "s3cret")
		})
	}
}

func TestGRPCOnSomethingElse(t *testing.T) {
	plain := serve(t, status(200, "")) // HTTP/1.1 only
	require.False(t, ask(ring.Check{GRPC: &ring.GRPCCheck{Port: plain}}).ok)
	require.Contains(t, ask(ring.Check{GRPC: &ring.GRPCCheck{Port: plain, TLS: true}}).says, "does not speak")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.Contains(t, ask(ring.Check{GRPC: &ring.GRPCCheck{Port: port}, Timeout: 50 * time.Millisecond}).says, "did not answer within 50ms")
	require.NoError(t, l.Close())
	require.Contains(t, ask(ring.Check{GRPC: &ring.GRPCCheck{Port: port}}).says, "refused the connection")

	release := make(chan struct{})
	slow := grpcServer(t, false, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	require.Contains(t, ask(ring.Check{GRPC: &ring.GRPCCheck{Port: slow}, Timeout: 50 * time.Millisecond}).says, "did not answer within 50ms")
}

// Whatever stands beside field 1, and however often it is said, its last value
// counts; and no bytes at all may end the daemon.
func TestAnAnswerOfGRPCIsReadByItsFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var msg []byte
		want := uint64(0)
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			field := rapid.Uint64Range(1, 20).Draw(t, "field")
			switch rapid.SampledFrom([]uint64{0, 1, 2, 5}).Draw(t, "wire") {
			case 0:
				v := rapid.Uint64().Draw(t, "value")
				msg = binary.AppendUvarint(binary.AppendUvarint(msg, field<<3), v)
				if field == 1 {
					want = v
				}
			case 1:
				msg = append(binary.AppendUvarint(msg, field<<3|1), make([]byte, 8)...)
			case 2:
				b := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
				msg = append(binary.AppendUvarint(binary.AppendUvarint(msg, field<<3|2), uint64(len(b))), b...)
			case 5:
				msg = append(binary.AppendUvarint(msg, field<<3|5), make([]byte, 4)...)
			}
		}
		frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(msg))), msg...)
		got, err := servingStatus(frame)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	rapid.Check(t, func(t *rapid.T) {
		_, _ = servingStatus(rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "bytes"))
	})
}
