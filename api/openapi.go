package api

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"net/http"
)

// openAPIDocument is made from the routes and the types by a test, and unpacked the same as
// docs/reference/openapi.json. Packed it weighs a tenth.
//
//go:embed openapi.json.gz
var openAPIDocument []byte

// hubDocument is that of a hub.
//
//go:embed openapi-hub.json.gz
var hubDocument []byte

func (s *Socket) openAPI(w http.ResponseWriter, r *http.Request, _ Peer) error {
	return sendDocument(w, openAPIDocument)
}

func (h *hub) openAPI(w http.ResponseWriter, r *http.Request, _ Peer) error {
	return sendDocument(w, hubDocument)
}

func sendDocument(w http.ResponseWriter, packed []byte) error {
	document, err := unpacked(packed)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if a, ok := w.(*answerWriter); ok && same(a, document) {
		return nil
	}
	_, _ = w.Write(document)
	return nil
}

// unpacked is a document that this program holds.
func unpacked(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack a document of the API: %w", err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack a document of the API: %w", err)
	}
	return out, nil
}
