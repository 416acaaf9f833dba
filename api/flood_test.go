package api

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// 10,000 connections come, most say nothing, some ask with a wrong token; a valid token gets in
// all the while, and afterwards all of them are gone.
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
	asked := 0
	for i := 1; i <= all; i++ {
		c, err := net.DialTimeout("tcp", address, time.Minute)
		require.NoError(t, err, "connection %d", i)
		if i%10 == 0 { // whoever may not come in; the server may have closed it already
			_, _ = c.Write([]byte("GET /v1/status HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer grt_aaaaaaaa_" + strings.Repeat("a", 43) + "\r\n\r\n"))
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
}
