package api

import (
	_ "embed"
	"net/http"
)

// openAPIDocument is made from the routes and the types by a test, and the same as
// docs/reference/openapi.json.
//
//go:embed openapi.json
var openAPIDocument []byte

// hubDocument is that of a hub.
//
//go:embed openapi-hub.json
var hubDocument []byte

func (s *Socket) openAPI(w http.ResponseWriter, r *http.Request, _ Peer) error {
	return sendDocument(w, openAPIDocument)
}

func (h *hub) openAPI(w http.ResponseWriter, r *http.Request, _ Peer) error {
	return sendDocument(w, hubDocument)
}

func sendDocument(w http.ResponseWriter, document []byte) error {
	w.Header().Set("Content-Type", "application/json")
	if a, ok := w.(*answerWriter); ok && same(a, document) {
		return nil
	}
	_, _ = w.Write(document)
	return nil
}
