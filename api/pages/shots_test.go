package pages

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
)

// everything is who may do all.
var everything = api.Viewer{Actor: "token/alice", Scopes: api.Scopes{api.ScopeRead, api.ScopeLogs, api.ScopeOperate, api.ScopeApprove}, Session: true}

// shots are the pages that pictures are taken of, by name.
var shots = map[string]string{
	"now": "/", "app": "/app/web", "service": "/svc/web/web", "logs": "/logs/web/web", "search": "/logs/web/web?q=slow", "commit": "/commit/" + string(shaNow),
	"plan": "/plan", "history": "/history", "jobs": "/jobs", "crashes": "/crashes", "trust": "/trust", "doctor": "/doctor",
	"act": "/act/web/web", "hold": "/act/db?verb=hold", "approve": "/approve/" + string(shaNext), "signin": "/signin",
}

// TestPicturesOfEveryPage takes them into the folder that GITRING_SHOTS names, with the
// browser of this machine: light, dark, and as narrow as a phone.
func TestPicturesOfEveryPage(t *testing.T) {
	dir := os.Getenv("GITRING_SHOTS")
	if dir == "" {
		t.Skip("GITRING_SHOTS names no folder")
	}
	pages := rich().handler(everything)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/stream" { // a picture is of a page that is connected
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(": here\n\n"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		pages.ServeHTTP(w, r)
	}))
	defer server.Close()
	only := os.Getenv("GITRING_SHOTS_ONLY")
	for name, path := range shots {
		for look, flags := range map[string][]string{
			"light": {"--window-size=1280,1400"},
			"dark":  {"--window-size=1280,1400", "--blink-settings=preferredColorScheme=0"},
			"phone": {"--window-size=500,1800"},
		} {
			if only != "" && only != name && only != look && only != name+"-"+look {
				continue
			}
			to := filepath.Join(dir, name+"-"+look+".png")
			args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--screenshot=" + to}, flags...)
			out, err := exec.Command("chromium", append(args, server.URL+path)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.FileExists(t, to)
		}
	}
}
