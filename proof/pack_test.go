package proof_test

import (
	"bytes"
	"compress/flate"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
)

func inflate(t *testing.T, b []byte) []byte {
	t.Helper()
	out, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
	require.NoError(t, err)
	return out
}

func deflate(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func mac(text string) manifest.SealedValue { return manifest.SealedValue{MAC: text} }
