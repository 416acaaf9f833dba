package api

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// 10,000 connections come, half of them say nothing, half ask with a wrong token, for all that
// there is; a valid token gets in all the while, and afterwards all of them are gone. A look
// waits for the engine, the store and the loop, and no call to any of these is made for them: so
// a look takes as long as ever, but for the processor's time.
func TestTenThousandConnectionsKeepNoValidTokenOut(t *testing.T) {
	const all, held, every = 10_000, 300, 1000
	w := newWebDoor(t)
	token := w.token("ann", "read")
	url := w.serve()
	address := strings.TrimPrefix(url, "http://")
	open := make([]net.Conn, 0, held)
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	asks := []string{"GET /v1/status", "GET /v1/events?follow=1", "GET /v1/stream", "GET /v1/history", "GET /v1/doctor", "GET /v1/outdated", "GET /metrics", "POST /v1/sync", "POST /v1/act", "POST /v1/refresh", "POST /v1/plan", "GET /v1/logs?app=web&service=api", "GET /"}
	asked := 0
	for i := 1; i <= all; i++ {
		c, err := net.DialTimeout("tcp", address, time.Minute)
		require.NoError(t, err, "connection %d", i)
		if i%2 == 0 { // whoever may not come in; the server may have closed it already
			_, _ = c.Write([]byte(asks[i/2%len(asks)] + " HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer grt_aaaaaaaa_" + strings.Repeat("a", 43) + "\r\n\r\n"))
		}
		if open = append(open, c); len(open) == held {
			for _, c := range open[:held/2] {
				_ = c.Close()
			}
			open = append(open[:0], open[held/2:]...)
		}
		if i%every != 0 {
			continue
		}
		w.after(time.Second) // of the bound on requests of one actor
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/status", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(r)
		require.NoError(t, err, "after %d connections", i)
		require.Equal(t, http.StatusOK, res.StatusCode, "after %d connections", i)
		require.NoError(t, res.Body.Close())
		asked++
	}
	require.Equal(t, all/every, asked)
	require.Equal(t, slices.Repeat([]string{"status"}, asked), w.d.takeCalled(), "the daemon was asked for those who may ask, and for nobody else")
}
