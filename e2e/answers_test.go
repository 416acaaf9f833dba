package e2e

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// What a host has been through is told as the published document says: the paths that are asked
// are the document's own, and each answer is held to its schema.
func TestAnswersOfAHostAreAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port := h.app("shop"), h.freePort()
	version := func(web obj) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"migrate": migrate("1"), "web": web, "db": db("1", "pg")}, obj{"volumes": obj{"runs": obj{}, "pg": obj{}}})}
	}
	first := h.repo.pushed("Version 1", version(fronted("1", port)))
	h.start()
	h.synced(first)
	settled(h)
	h.tell(h.one("db"), "/exit?code=3")
	h.until("a crash is recorded", func() bool {
		code, out := h.run("crashes", app)
		return code == 0 && strings.Contains(out, "exit 3")
	})
	h.repo.pushed("Version 2", version(fronted("2", port, broken())))
	h.until("version 2 failed", func() bool { _, ok := h.journalled("rollout.restored", app, "web", ""); return ok })

	text, err := os.ReadFile(filepath.Join("..", "docs", "reference", "openapi.json"))
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", h.socket)
	}}}
	asks := map[string]url.Values{
		"/v1/acts":    {"app": {app}, "service": {"web"}},
		"/v1/crashes": {"logs": {"true"}},
		"/v1/inspect": {"app": {app}, "service": {"web"}, "trace": {"true"}},
		"/v1/jobs":    {"app": {app}, "service": {"migrate"}, "logs": {"true"}},
		"/v1/logs":    {"app": {app}},
	}
	asked := 0
	paths := doc.(obj)["paths"].(obj)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		get, ok := paths[path].(obj)["get"].(obj)
		if !ok || path == "/v1/stream" || path == "/v1/session" { // the one has no end, the other is a browser's
			continue
		}
		res, err := client.Get("http://gitring" + path + "?" + asks[path].Encode())
		require.NoError(t, err, path)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err, path)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", path, body)
		media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
		said, ok := get["responses"].(obj)["200"].(obj)["content"].(obj)[media]
		require.True(t, ok, "%s answers %s", path, media)
		require.NotEmpty(t, bytes.TrimSpace(body), path)
		if _, ok := said.(obj)["schema"]; !ok || media == "text/plain" {
			continue
		}
		s, err := c.Compile("openapi.json#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get/responses/200/content/" + strings.ReplaceAll(media, "/", "~1") + "/schema")
		require.NoError(t, err, path)
		answers := [][]byte{body}
		if media == "application/x-ndjson" {
			answers = bytes.Split(bytes.TrimSpace(body), []byte("\n"))
		}
		for _, one := range answers {
			answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(one))
			require.NoError(t, err, path)
			require.NoError(t, s.Validate(answer), "%s: %s", path, one)
			asked++
		}
	}
	require.Greater(t, asked, 40, "most of them are events")
}
