package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logged are the lines of a log as JSON.
func logged(t *testing.T, b *bytes.Buffer) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		var l map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		out = append(out, l)
	}
	b.Reset()
	return out
}

// The log says who asked what, and what a stranger can have it write is bounded.
func TestTheLogSaysWhoAskedWhatAndDenialsAreBounded(t *testing.T) {
	var b bytes.Buffer
	w := newWebDoor(t, func(o *WebOptions) {
		o.Log = slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token := w.token("ann", "operate")
	from := func(address string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr = address }
	}

	require.Equal(t, http.StatusOK, w.ask("POST", "/v1/act", token, `{"verb":"hold","app":"web","reason":"r"}`, from("192.0.2.7:4711")).Code)
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/version", token, "", from("192.0.2.7:4711")).Code)
	lines := logged(t, &b)
	require.Len(t, lines, 2)
	for i, want := range []map[string]any{
		{"level": "INFO", "actor": "token/ann", "address": "192.0.2.7", "method": "POST", "path": "/v1/act", "status": 200.0},
		{"level": "DEBUG", "actor": "token/ann", "address": "192.0.2.7", "method": "GET", "path": "/v1/version", "status": 200.0},
	} {
		for key, value := range want {
			require.Equal(t, value, lines[i][key], key)
		}
		require.Contains(t, lines[i], "ms")
	}

	// A thousand denials are one line, and a minute later another that counts them.
	denied := func() {
		w.ask("GET", "/v1/status", "grt_00000000_"+strings.Repeat("A", 43), "", from("198.51.100.9:99"))
	}
	for range 1000 {
		denied()
	}
	lines = logged(t, &b)
	require.Len(t, lines, 1, "of one address within a minute")
	require.Equal(t, "INFO", lines[0]["level"])
	require.Equal(t, "198.51.100.9", lines[0]["address"])
	w.after(time.Minute)
	denied()
	lines = logged(t, &b)
	require.Len(t, lines, 1)
	require.InDelta(t, 999, lines[0]["left_out"], 0)
	require.NotContains(t, fmt.Sprint(lines), strings.Repeat("A", 43), "the log has a token")

	// Nor does one who comes from many addresses fill it, or the memory.
	for i := range 5000 {
		w.ask("GET", "/v1/status", "", "", from(fmt.Sprintf("203.%d.%d.1:99", i/250, i%250)))
	}
	require.LessOrEqual(t, len(logged(t, &b)), toldMost)
	require.LessOrEqual(t, len(w.told.kinds), toldMost)
	w.after(time.Minute)
	w.ask("GET", "/v1/status", "", "", from("192.0.2.99:1"))
	require.Len(t, logged(t, &b), 1, "a minute later there is room again")
	require.LessOrEqual(t, len(w.told.kinds), 1)
}
