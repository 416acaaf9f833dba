package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// posted is what package notify posts; its own test holds the file to that.
func posted(t *testing.T) []byte {
	t.Helper()
	body, err := os.ReadFile("../../notify/testdata/trace.json")
	require.NoError(t, err)
	return body
}

// The collector's own reading of a post has every span at its place in the tree.
func TestACollectorReadsTheTrace(t *testing.T) {
	request := ptraceotlp.NewExportRequest()
	require.NoError(t, request.UnmarshalJSON(posted(t)))
	all := request.Traces()
	require.Equal(t, 1, all.ResourceSpans().Len())
	require.Equal(t, map[string]any{"service.name": "gitring", "service.version": "1.2.3", "host.name": "edge-1"}, all.ResourceSpans().At(0).Resource().Attributes().AsRaw())
	spans := all.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	var names []string
	seen := map[string]bool{}
	for i := range spans.Len() {
		s := spans.At(i)
		names = append(names, s.Name())
		require.Equal(t, "442e0271b8f1c0a1442e0271b8f1c0a1", s.TraceID().String())
		require.Equal(t, ptrace.SpanKindInternal, s.Kind())
		require.False(t, s.SpanID().IsEmpty())
		require.False(t, seen[s.SpanID().String()], "two spans of one id")
		seen[s.SpanID().String()] = true
		require.GreaterOrEqual(t, s.EndTimestamp(), s.StartTimestamp())
		if i == 0 {
			require.True(t, s.ParentSpanID().IsEmpty())
			continue
		}
		require.Equal(t, spans.At(0).SpanID(), s.ParentSpanID())
		require.GreaterOrEqual(t, s.StartTimestamp(), spans.At(0).StartTimestamp())
		require.LessOrEqual(t, s.EndTimestamp(), spans.At(0).EndTimestamp())
	}
	require.Equal(t, []string{"commit 442e027", "fetch", "verify", "stage db", "stage shop", "run shop/migrate", "rollout shop/web", "post shop", "post"}, names)
	root, rollout := spans.At(0), spans.At(6)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.Equal(t, noon, root.StartTimestamp().AsTime())
	require.Equal(t, 22*time.Second, root.EndTimestamp().AsTime().Sub(noon))
	require.Equal(t, ptrace.StatusCodeError, root.Status().Code())
	require.Equal(t, "slot 1 exited with code 3", rollout.Status().Message())
	require.Equal(t, map[string]any{"gitring.app": "shop", "gitring.service": "web", "gitring.version": "v3", "gitring.result": "rollout.restored"}, rollout.Attributes().AsRaw())
	require.Equal(t, "stage db: KeyRefused: build is not taken", root.Status().Message())
	require.Equal(t, ptrace.StatusCodeUnset, spans.At(5).Status().Code())
	require.Equal(t, ptrace.StatusCodeUnset, spans.At(7).Status().Code())
	require.Equal(t, "failure as gitring/edge-1: the forge answered 422", spans.At(8).Status().Message())
}

// strict reads a post by the protocol's definition, which knows each field and takes no other. Only
// its ids are written otherwise in OTLP's JSON: hexadecimal, where JSON of protobuf has base64.
func strict(t *testing.T, post []byte) (*collector.ExportTraceServiceRequest, error) {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal(post, &fields))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for key, x := range v {
				if id, is := x.(string); is && (key == "traceId" || key == "spanId" || key == "parentSpanId") {
					raw, err := hex.DecodeString(id)
					require.NoError(t, err)
					v[key] = base64.StdEncoding.EncodeToString(raw)
					continue
				}
				walk(x)
			}
		}
	}
	walk(fields)
	body, err := json.Marshal(fields)
	require.NoError(t, err)
	var out collector.ExportTraceServiceRequest
	return &out, protojson.Unmarshal(body, &out)
}

func TestEveryFieldOfTheTraceIsOneOfTheProtocol(t *testing.T) {
	request, err := strict(t, posted(t))
	require.NoError(t, err)
	require.Positive(t, proto.Size(request))
	for _, s := range request.ResourceSpans[0].ScopeSpans[0].Spans {
		require.Len(t, s.TraceId, 16)
		require.Len(t, s.SpanId, 8)
	}
	_, err = strict(t, bytes.Replace(posted(t), []byte(`"startTimeUnixNano"`), []byte(`"startTime"`), 1))
	require.Error(t, err, "a field that the protocol does not have")
}
