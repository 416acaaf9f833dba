package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	setAt  = "/api/v1/repos/demo/fleet/statuses/abc"
	readAt = "/api/v1/repos/demo/fleet/commits/abc/status?limit=50&page=1"
)

func TestTheNewestStatusOfEachContextIsTold(t *testing.T) {
	forge := routes("secret")
	call := func(method, at, token, body string) (int, string) {
		r := httptest.NewRequest(method, at, strings.NewReader(body))
		r.Header.Set("Authorization", "token "+token)
		w := httptest.NewRecorder()
		forge.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, said := call("GET", readAt, "secret", "")
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"sha":"abc","statuses":[]}`, said)

	for _, body := range []string{
		`{"context":"gitring/a","state":"pending","description":"begins"}`,
		`{"context":"gitring/b","state":"pending","description":""}`,
		`{"context":"gitring/a","state":"success","description":"healthy 2/2"}`,
	} {
		code, said = call("POST", setAt, "secret", body)
		require.Equal(t, 201, code, said)
		require.Contains(t, said, `"id":`, "what has none is no answer of a forge")
	}
	_, said = call("GET", readAt, "secret", "")
	require.JSONEq(t, `{"sha":"abc","statuses":[
		{"id":3,"context":"gitring/a","status":"success","description":"healthy 2/2"},
		{"id":2,"context":"gitring/b","status":"pending","description":""}]}`, said)
	_, said = call("GET", strings.Replace(readAt, "page=1", "page=2", 1), "secret", "")
	require.JSONEq(t, `{"sha":"abc","statuses":[]}`, said)

	for _, at := range []string{setAt, strings.Replace(setAt, "abc", "def", 1)} {
		code, _ = call("POST", at, "another", `{"context":"gitring/b","state":"success"}`)
		require.Equal(t, 401, code)
	}
	code, _ = call("GET", readAt, "another", "")
	require.Equal(t, 401, code)
	code, _ = call("POST", setAt, "secret", `{"context":"gitring/b","state":"splendid"}`)
	require.Equal(t, 422, code)
	code, _ = call("GET", "/api/v1/version", "secret", "")
	require.Equal(t, 404, code)
	_, said = call("GET", readAt, "secret", "")
	require.Contains(t, said, `{"id":2,"context":"gitring/b","status":"pending","description":""}`)
}
