package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed static
var staticFiles embed.FS

// kinds are of files, by their ending.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// asset is a file that a page names.
type asset struct {
	body []byte
	kind string
}

// assets are the files by the path that names them. A path holds the hash of the file: what
// it names never changes, and a newer release has another path.
type assets struct {
	byPath map[string]asset
	named  map[string]string
}

// loadAssets reads them once for all handlers.
var loadAssets = sync.OnceValue(func() *assets {
	out := &assets{byPath: map[string]asset{}, named: map[string]string{}}
	files, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, f := range files {
		body, err := staticFiles.ReadFile("static/" + f.Name())
		if err != nil {
			panic(err) // as above
		}
		sum := sha256.Sum256(body)
		at := "/assets/" + hex.EncodeToString(sum[:6]) + "/" + f.Name()
		out.byPath[at], out.named[f.Name()] = asset{body, kinds[path.Ext(f.Name())]}, at
	}
	return out
})

// serve reports whether a path is an asset's, and sends it.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/assets/") {
		return false
	}
	f, ok := a.byPath[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return true
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(f.body)
	return true
}
